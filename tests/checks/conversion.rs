//! `ConversionWebhook` with the API server and test webhooks, each with its own CA.

use crate::support::{Bed, CrdBuilder, Output, Webhook, control_plane, eventually, string_fields};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use gantry_preflight::registry;
use gantry_yaml as yaml;
use serde_json::{Value, json};

/// A bed with a namespace, and helpers for the tests of this check.
pub(super) struct Conversion(pub(super) Bed);

/// The CRD and its objects: v1 is stored; v2 has `amount` in place of `size` in v1.
impl Conversion {
    pub(super) fn new() -> Self {
        let bed = Bed::new();
        control_plane().apply_yaml(&bed.namespace());
        Conversion(bed)
    }

    pub(super) fn crd(&self, conversion: &Value) -> Value {
        CrdBuilder::samples(&self.0.names.group)
            .version_of_spec("v1", string_fields(&["size", "color"]))
            .version_of_spec("v2", string_fields(&["amount", "color"]))
            .conversion(conversion)
            .build()
    }

    /// Creates the CRD with this conversion, and three objects.
    pub(super) fn live(&self, conversion: &Value) -> &Self {
        let cp = control_plane();
        cp.apply_yaml(&self.crd(conversion).to_string());
        // A write at the storage version needs no conversion.
        let (group, namespace) = (&self.0.names.group, &self.0.names.namespace);
        for name in ["a", "b", "c"] {
            cp.apply_yaml(
                &json!({"apiVersion": format!("{group}/v1"), "kind": "Sample", "metadata": {"name": name, "namespace": namespace},
                    "spec": {"size": "large-one", "color": "confidential"}})
                .to_string(),
            );
        }
        self
    }

    pub(super) fn check(&self, manifests: &[Value], more: &[&str]) -> Output {
        let manifests: Vec<String> = manifests.iter().map(Value::to_string).collect();
        self.0.write("manifests.yaml", &manifests.join("\n---\n"));
        // The live objects were written by another manager.
        let arguments = ["check", "-f", "manifests.yaml", "--preflight", "ConversionWebhook", "--force-conflicts"];
        self.0.gantry(control_plane().kubeconfig("admin"), &arguments).args(more).run()
    }

    /// The rules, versions and messages of the findings.
    fn found(&self, manifests: &[Value]) -> Vec<String> {
        let report = self.check(manifests, &["-o", "json"]).report();
        let check = &report["checks"][0];
        assert_eq!(check["unchecked"], Value::Null, "{check:#}");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let findings = check["findings"].as_array().expect("findings").iter();
        findings
            .map(|finding| [&finding["severity"], &finding["rule"], &finding["message"]].map(text).join(" "))
            .collect()
    }

    pub(super) fn service(&self, name: &str, spec: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": self.0.names.namespace}, "spec": spec})
    }

    /// A webhook behind the Service `webhook` of the bed's namespace.
    pub(super) fn by_service(&self, port: u16, ca_bundle: &Value) -> Value {
        json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
            "caBundle": ca_bundle,
            "service": {"namespace": self.0.names.namespace, "name": "webhook", "port": port, "path": "/convert"}}}})
    }
}

/// Renames the field in both directions.
pub(super) fn rename(mut object: Value, wanted: &str) -> Value {
    let (from, to) = if wanted.ends_with("/v2") { ("size", "amount") } else { ("amount", "size") };
    if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
        object["spec"][to] = value;
    }
    object["apiVersion"] = wanted.into();
    object
}

pub(super) fn webhook(convert: impl Fn(Value, &str) -> Value + Send + Sync + 'static) -> Webhook {
    Webhook::with_own_ca(&[], move |review| Webhook::answer(review, &convert))
}

pub(super) fn ca_bundle(webhook: &Webhook) -> Value {
    webhook.conversion()["webhook"]["clientConfig"]["caBundle"].clone()
}

#[test]
fn a_healthy_webhook_passes_and_nothing_is_written() {
    let bed = Conversion::new();
    let webhook = webhook(rename);
    let crd = bed.live(&webhook.conversion()).crd(&webhook.conversion());
    let path = format!("/apis/{}/v1/namespaces/{}/samples", bed.0.names.group, bed.0.names.namespace);
    let before = control_plane().get(&path).1["items"].clone();
    bed.check(std::slice::from_ref(&crd), &[]).code(0).stdout_contains("ConversionWebhook  passed");
    assert_eq!(control_plane().get(&path).1["items"], before);
    // The live webhook is checked, whatever the deploy does to the CRD.
    assert_eq!(bed.found(&[bed.crd(&json!({"strategy": "None"}))]), Vec::<String>::new());
}

#[test]
fn a_webhook_that_is_down_or_not_trusted_is_a_finding_with_the_message_of_the_server() {
    let bed = Conversion::new();
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("its address").port();
    let trusted = webhook(rename);
    let down = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {
        "url": format!("https://127.0.0.1:{port}/convert"), "caBundle": ca_bundle(&trusted)}}});
    let crd = bed.live(&down).crd(&down);
    let run = bed.check(&[crd], &[]);
    run.code(3).stdout_contains("error[ConversionFails]: the 3 existing objects cannot be converted to v2");
    assert!(run.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains("connection refused"), "{run}");

    let bed = Conversion::new();
    let mut wrong_ca = trusted.conversion();
    wrong_ca["webhook"]["clientConfig"]["caBundle"] = ca_bundle(&webhook(rename));
    let found = bed.live(&wrong_ca).found(&[bed.crd(&wrong_ca)]);
    assert!(found.len() == 1 && found[0].contains("certificate signed by unknown authority"), "{found:?}");

    // A deploy that sets the right one can continue.
    let right = bed.crd(&trusted.conversion());
    let found = bed.found(std::slice::from_ref(&right));
    assert!(found.len() == 1 && found[0].starts_with("warning ConversionFails"), "{found:?}");
    bed.check(&[right], &[]).code(0).stdout_contains(
        "this deploy changes the webhook: run the check again after the \
        deploy",
    );

    let bed = Conversion::new();
    let nonsense = Webhook::with_own_ca(&[], |_| json!({"kind": "Nonsense"}));
    let found = bed.live(&nonsense.conversion()).found(&[bed.crd(&nonsense.conversion())]);
    assert!(found.len() == 1 && found[0].starts_with("error ConversionFails"), "{found:?}");
}

#[test]
fn a_lossy_webhook_is_shown_with_the_values_that_it_loses() {
    // Lost in the conversion to v2, although v2 has the field.
    let bed = Conversion::new();
    let drops = webhook(|object, wanted| {
        let mut object = rename(object, wanted);
        object["spec"].as_object_mut().expect("a spec").remove("color");
        object
    });
    let crd = bed.live(&drops.conversion()).crd(&drops.conversion());
    let run = bed.check(std::slice::from_ref(&crd), &[]);
    run.code(3)
        .stdout_contains(
            "error[ConversionLosesData]: a value stored at v1 is missing at v2, which has the field: spec.color",
        )
        .stdout_contains("spec.color: \"confidential\"");
    bed.check(&[crd], &["--redact"]).code(3).contains_nowhere("confidential").stdout_contains("spec.color: (string)");

    // Lost in the conversion to v2, which has no such field and does not keep the value: perhaps the webhook restores
    // it.
    let bed = Conversion::new();
    let forgets = webhook(|object, wanted| {
        let mut object = rename(object, wanted);
        object["spec"].as_object_mut().expect("a spec").remove("amount");
        object
    });
    let found = bed.live(&forgets.conversion()).found(&[bed.crd(&forgets.conversion())]);
    assert_eq!(
        found,
        ["warning ConversionLosesData a value stored at v1 is missing at v2: unless the webhook restores it, a \
          write there erases it: spec.size"]
    );

    // Lost in the conversion back.
    let bed = Conversion::new();
    let one_way = webhook(|object, wanted| {
        let mut object = rename(object, wanted);
        if wanted.ends_with("/v1") {
            object["spec"]["size"] = "small-one".into();
        }
        object
    });
    let crd = bed.live(&one_way.conversion()).crd(&one_way.conversion());
    // A different webhook may be better; a new CA bundle for the same webhook changes nothing.
    let mut renewed = one_way.conversion();
    renewed["webhook"]["clientConfig"]["caBundle"] = ca_bundle(&webhook(rename));
    bed.check(&[bed.crd(&renewed)], &[]).code(3);
    bed.check(&[bed.crd(&webhook(rename).conversion())], &[]).code(0).stdout_contains("warning[ConversionLosesData]");
    bed.check(&[crd], &[])
        .code(3)
        .stdout_contains("is changed when it is read and written back at v2: spec.amount")
        .stdout_contains("spec.amount: \"large-one\", is returned as \"small-one\"");
}

#[test]
fn a_field_that_admission_changes_with_every_write_is_no_loss() {
    let cp = control_plane();
    let bed = Conversion::new();
    let healthy = webhook(rename);
    let crd = bed.crd(&healthy.conversion());
    bed.live(&healthy.conversion());
    let group = &bed.0.names.group;
    let path = format!("/apis/{group}/v1/namespaces/{}/samples", bed.0.names.namespace);
    for name in ["a", "b", "c"] {
        let note = json!({"metadata": {"annotations": {"written": "first"}}});
        assert_eq!(cp.patch(&format!("{path}/{name}"), &note).0, 200);
    }
    // It sets an annotation to a different value with each write.
    let stamps = Webhook::start(cp, |review| {
        let request = &review["request"];
        let patch = json!([{"op": "add", "path": "/metadata/annotations/written", "value": request["uid"]}]);
        let response = json!({"uid": request["uid"], "allowed": true, "patchType": "JSONPatch",
            "patch": BASE64.encode(patch.to_string())});
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
    });
    let rule = json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["samples"]});
    let hook = json!({"name": "stamps.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": stamps.client_config(), "rules": [rule]});
    let base = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    let name = format!("stamps-{}", bed.0.names.namespace);
    let (status, answer) = cp.post(base, &json!({"metadata": {"name": name}, "webhooks": [hook]}));
    assert_eq!(status, 201, "{answer}");
    eventually("the webhook comes into force", || {
        let (_, object) = cp.patch(&format!("{path}/a?dryRun=All"), &json!({"spec": {"color": "other"}}));
        (object["metadata"]["annotations"]["written"] != "first").then_some(())
    });
    assert_eq!(bed.found(&[crd]), Vec::<String>::new());
    cp.delete(&format!("{base}/{name}"));
}

#[test]
fn an_object_that_cannot_be_converted_back_from_storage_is_found() {
    let bed = Conversion::new();
    let refuses = webhook(|object, wanted| {
        let mut object = rename(object, wanted);
        if wanted.ends_with("/v1") {
            object["metadata"]["name"] = "other".into();
        }
        object
    });
    let found = bed.live(&refuses.conversion()).found(&[bed.crd(&refuses.conversion())]);
    assert!(
        found.len() == 1 && found[0].starts_with("error ConversionFails") && found[0].contains("to v1"),
        "{found:?}"
    );
}

#[test]
fn the_service_of_a_webhook_must_exist_with_its_port_and_ready_endpoints() {
    let cp = control_plane();
    let bed = Conversion::new();
    let trusted = webhook(rename);
    let crd = bed.crd(&bed.by_service(8443, &ca_bundle(&trusted)));
    cp.apply_yaml(&crd.to_string());
    let namespace = &bed.0.names.namespace;
    let one = |expected: String| assert_eq!(bed.found(std::slice::from_ref(&crd)), [expected]);
    one(format!(
        "error ConversionServiceMissing there is no Service {namespace}/webhook, neither live nor among the manifests"
    ));
    let spec = |port: u16| json!({"selector": {"app": "webhook"}, "ports": [{"name": "https", "port": port}]});
    cp.apply_yaml(&bed.service("webhook", &spec(443)).to_string());
    one(format!("error ConversionServiceMissing the Service {namespace}/webhook has no port 8443: it has 443"));
    // The Service among the manifests takes precedence.
    let service = bed.service("webhook", &spec(8443));
    let not_ready =
        format!("error ConversionServiceNotReady no endpoint of the Service {namespace}/webhook is ready at port 8443");
    let may_come = bed.found(&[crd.clone(), service.clone()]);
    let group = &bed.0.names.group;
    let expected = format!("; until that changes, the server can neither read nor write samples.{group} at v2");
    assert_eq!(may_come, [format!("{}{expected}", not_ready.replacen("error", "warning", 1))]);
    cp.apply_yaml(&service.to_string());
    one(not_ready.clone());
    let slice = |ready: bool| {
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "webhook-1", "namespace": namespace, "labels": {"kubernetes.io/service-name": "webhook"}},
            "ports": [{"name": "https", "port": 8443}],
            "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": ready}}]})
    };
    cp.apply_yaml(&slice(false).to_string());
    one(not_ready);
    cp.apply_yaml(&slice(true).to_string());
    assert_eq!(bed.found(&[crd]), Vec::<String>::new());
}

pub(super) fn deployment(bed: &Conversion, image: &str, probe: bool) -> Value {
    let mut container = json!({"name": "webhook", "image": image});
    if probe {
        container["readinessProbe"] = json!({"httpGet": {"port": 8443, "scheme": "HTTPS"}});
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "webhook", "namespace": bed.0.names.namespace},
        "spec": {"selector": {"matchLabels": {"app": "webhook"}}, "template": {
            "metadata": {"labels": {"app": "webhook"}}, "spec": {"containers": [container]}}}})
}

/// The API server reaches the webhook through the Service, which is an external name because the test has no pod
/// network.
#[test]
fn a_deploy_that_replaces_the_webhooks_workload_says_how_many_objects_wait() {
    let cp = control_plane();
    let bed = Conversion::new();
    let host = format!("webhook.{}.svc", bed.0.names.namespace);
    let webhook = Webhook::with_own_ca(&[host], |review| Webhook::answer(review, rename));
    let port = webhook.port();
    let spec = json!({"type": "ExternalName", "externalName": "localhost", "selector": {"app": "webhook"}, "ports": [{"port": port}]});
    cp.apply_yaml(&bed.service("webhook", &spec).to_string());
    let conversion = bed.by_service(port, &ca_bundle(&webhook));
    let crd = bed.live(&conversion).crd(&conversion);
    assert_eq!(bed.found(std::slice::from_ref(&crd)), Vec::<String>::new(), "it converts through its Service");

    let name = &bed.0.names;
    let start =
        format!("deployment.apps/webhook -n {}, the conversion webhook of samples.{}", name.namespace, name.group);
    let waits = "3 objects cannot be read at v2";
    let rule = "warning ConversionWorkloadReplaced";
    let new = deployment(&bed, "webhook:1", false);
    let starts = format!("{rule} this deploy starts {start}: until it runs, {waits}");
    assert_eq!(bed.found(&[crd.clone(), new.clone()]), std::slice::from_ref(&starts));
    // The CRD need not be among the manifests.
    assert_eq!(bed.found(std::slice::from_ref(&new)), [starts]);

    bed.check(std::slice::from_ref(&new), &["-q"]);
    bed.0.deploy(cp.kubeconfig("admin"), &["-q", "--preflight", "CRDUpgradeSafety"]).run().code(0);
    assert_eq!(bed.found(std::slice::from_ref(&new)), Vec::<String>::new(), "nothing changes");
    let mut labelled = new;
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(bed.found(&[labelled]), Vec::<String>::new(), "no Pod starts anew");
    let replaces = format!("{rule} this deploy replaces {start}: until it runs, {waits}");
    assert_eq!(bed.found(&[deployment(&bed, "webhook:2", false)]), [replaces]);
    let rolls =
        format!("info ConversionWorkloadReplaced this deploy replaces {start}: if it does not become ready, {waits}");
    assert_eq!(bed.found(&[deployment(&bed, "webhook:2", true)]), [rolls]);
}

#[test]
fn findings_about_the_crd_itself_need_no_server() {
    let bed = Conversion::new();
    std::fs::create_dir(bed.0.folder.path().join("cluster")).expect("a folder");
    let by = |bundle: Value| bed.by_service(443, &bundle);
    let check = |crd: &Value| {
        bed.0.write("manifests.yaml", &crd.to_string());
        let arguments =
            ["check", "-f", "manifests.yaml", "--preflight", "ConversionWebhook", "--target", "dir:cluster"];
        bed.0.gantry(control_plane().kubeconfig("nobody"), &arguments).run()
    };
    let trusted = webhook(rename);
    check(&bed.crd(&by(ca_bundle(&trusted))))
        .code(0)
        .stdout_contains("ConversionWebhook  skipped: services, endpoints");
    check(&bed.crd(&json!({"strategy": "None"}))).code(0).stdout_contains("ConversionWebhook  passed");
    for (bundle, says) in [
        (json!("Cg=="), "it contains no certificate"),
        (json!("?"), "it is not base64"),
        (Value::Null, "there is no CA bundle"),
    ] {
        let mut crd = bed.crd(&by(bundle.clone()));
        // The webhook can fill in a missing bundle itself, but the server refuses a CRD with an invalid one.
        let (code, severity) = if bundle.is_null() { (0, "warning") } else { (3, "error") };
        let found = format!("{severity}[ConversionCABundleInvalid]");
        check(&crd).code(code).stdout_contains(&found).stdout_contains(says);
        for promise in [
            json!({"cert-manager.io/inject-ca-from": "a/b"}),
            json!({"cert-manager.io/inject-apiserver-ca": "true"}),
            json!({"service.beta.openshift.io/inject-cabundle": "true"}),
        ] {
            crd["metadata"]["annotations"] = promise;
            check(&crd).code(0).stdout_contains("skipped");
        }
        crd["metadata"]["annotations"] = json!({"service.beta.openshift.io/inject-cabundle": "false"});
        check(&crd).code(code).stdout_contains(says);
    }
    let mut crd = bed.crd(&by(ca_bundle(&trusted)));
    crd["spec"]["conversion"]["webhook"]["conversionReviewVersions"] = json!(["v2"]);
    let run = check(&crd);
    run.code(3)
        .stdout_contains("error[ConversionReviewVersionUnknown]")
        .stderr_contains("notice: ConversionWebhook: services");
}

#[test]
fn a_ca_bundle_of_another_manager_is_no_finding() {
    let bed = Conversion::new();
    let trusted = webhook(rename);
    let by = |bundle: &Value| bed.by_service(443, bundle);
    bed.live(&by(&ca_bundle(&trusted)));
    let dummy = bed.crd(&by(&json!("Cg==")));
    let rules = |found: Vec<String>| found.iter().filter(|found| found.contains("ConversionCABundle")).count();
    assert_eq!(rules(bed.found(std::slice::from_ref(&dummy))), 1);
    // An operator that runs writes the bundle into the live CRD.
    let mut injected = bed.crd(&json!({"strategy": "Webhook", "webhook": {"clientConfig": {
        "caBundle": ca_bundle(&trusted)}}}));
    injected["spec"] = json!({"conversion": injected["spec"]["conversion"]});
    let path = format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}",
        injected["metadata"]["name"].as_str().unwrap()
    );
    let (status, answer) = control_plane().apply_to(&format!("{path}?fieldManager=operator&force=true"), &injected);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(rules(bed.found(&[dummy])), 0);
}

/// As the operator of a first install does, if its ClusterRole allows it.
#[test]
fn an_operator_that_may_write_its_own_crd_needs_no_bundle_in_the_manifest() {
    let bed = Conversion::new();
    let crd = bed.crd(&bed.by_service(443, &Value::Null));
    let service = bed.service("webhook", &json!({"selector": {"app": "webhook"}, "ports": [{"port": 443}]}));
    let role = |verbs: &[&str]| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": bed.0.names.namespace}, "rules": [{"apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"], "verbs": verbs}]})
    };
    let found = |verbs: &[&str]| {
        let found = bed.found(&[crd.clone(), service.clone(), role(verbs)]);
        found.iter().filter(|found| found.contains("warning ConversionCABundleInvalid")).count()
    };
    assert_eq!(found(&["get", "list"]), 1);
    assert_eq!(found(&["get", "patch"]), 0);
}

#[test]
fn a_user_without_rights_to_read_sees_which_are_missing() {
    let bed = Conversion::new();
    let webhook = webhook(rename);
    let crd = bed.live(&webhook.conversion()).crd(&webhook.conversion());
    bed.0.write("manifests.yaml", &crd.to_string());
    let user = control_plane().user(&json!([
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get", "list"]},
        {"apiGroups": [bed.0.names.group], "resources": ["samples"], "verbs": ["get", "list"]},
    ]));
    let arguments = ["check", "-f", "manifests.yaml", "--preflight", "ConversionWebhook"];
    let run = bed.0.gantry(control_plane().kubeconfig(&user), &arguments).run();
    let flat = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    run.code(1);
    assert!(flat.contains("survives a write at v2: ") && flat.contains("patch"), "{run}");
}

/// The examples that need no webhook and no Service.
#[test]
fn the_examples_of_the_rules_trigger_just_them() {
    let rules = registry::find("ConversionWebhook").expect("the check").rules;
    let needs_none = ["ConversionCABundleInvalid", "ConversionReviewVersionUnknown", "ConversionServiceMissing"];
    for rule in rules().into_iter().filter(|rule| needs_none.contains(&rule.name)) {
        let bed = Conversion::new();
        let example = yaml::parse(rule.example().desired()).expect("YAML").expect("a document").to_value();
        let mut crd = bed.crd(&example["spec"]["conversion"]);
        if let Some(annotations) = example["metadata"].get("annotations") {
            crd["metadata"]["annotations"] = annotations.clone();
        }
        let found = bed.found(&[crd]);
        // The Service of a new CRD can still be created.
        let severity = if rule.name == "ConversionServiceMissing" { "warning" } else { "error" };
        assert!(found.len() == 1 && found[0].starts_with(&format!("{severity} {} ", rule.name)), "{found:?}");
    }
}
