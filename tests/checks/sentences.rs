//! Every message of the rules of the checks that use an API server, in one snapshot for each check: its diff shows the
//! effect of a changed message. `INSTA_UPDATE=always cargo test --test checks sentences` updates the snapshots.
//!
//! The snapshot of `AdmissionDryRun` is in `admission_examples`, that of `CRDUpgradeSafety` in the tests without a
//! server.

use super::availability::{ADMISSION, two_versions};
use super::conversion::{Conversion, ca_bundle, deployment, rename, webhook};
use crate::support::{Bed, Samples, Sentences, Webhook, control_plane, fields};
use gantry_preflight::registry;
use serde_json::{Value, json};

/// The messages; asserts that every rule of the check has at least one.
fn all(said: Sentences, check: &str) -> String {
    let rules = registry::find(check).expect("the check").rules;
    said.of_rules(rules().into_iter().map(|rule| rule.name))
}

#[test]
fn messages_of_permission_validation_are_those_of_the_snapshot() {
    let (cp, bed) = (control_plane(), Bed::new());
    let ns = &bed.names.namespace;
    cp.apply_yaml(&[bed.namespace(), bed.config_map("live", "x")].join("---\n"));
    let rbac = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ";
    let subject = "subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: team}]\n";
    let refers = |kind: &str, name: &str| {
        format!("roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {name}}}\n{subject}")
    };
    let rules = "rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]\n";
    let aggregation = "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\n";
    let matches = "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], \
        resources: [configmaps]}]}";
    let manifests = [
        bed.config_map("live", "z"),
        bed.config_map("new", "z"),
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: unread, namespace: {ns}}}\n"),
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: web, namespace: {ns}}}\n\
             spec: {{containers: [{{name: web, image: web}}]}}\n"
        ),
        format!("{rbac}Role\nmetadata: {{name: reader, namespace: {ns}}}\n{rules}"),
        format!("{rbac}ClusterRole\nmetadata: {{name: {ns}}}\n{aggregation}"),
        format!("{rbac}RoleBinding\nmetadata: {{name: brought, namespace: {ns}}}\n{}", refers("Role", "reader")),
        format!("{rbac}RoleBinding\nmetadata: {{name: viewers, namespace: {ns}}}\n{}", refers("ClusterRole", "view")),
        format!("{rbac}ClusterRoleBinding\nmetadata: {{name: {ns}}}\n{}", refers("ClusterRole", "view")),
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: {ns}}}\n\
             spec: {{paramKind: {{apiVersion: v1, kind: ConfigMap}}, validations: [{{expression: 'true'}}], {matches}}}\n"
        ),
    ];
    bed.write("manifests.yaml", &manifests.join("---\n"));
    let user = cp.user(&json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "create", "patch", "list", "watch"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings", "clusterrolebindings"],
            "verbs": ["get", "create", "patch"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["get", "create", "patch"],
            "resourceNames": [ns]},
        {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["get", "create", "patch"]},
    ]));
    let arguments = ["check", "-f", "manifests.yaml", "--preflight", "PermissionValidation", "-o", "json"];
    let mut said = Sentences::default();
    said.add(
        &bed.gantry(cp.kubeconfig(&user), &arguments)
            .args(["--force-conflicts", "--wait", "--logs"])
            .run()
            .code(3)
            .report(),
    );
    insta::assert_snapshot!(all(said, "PermissionValidation"));
}

#[test]
fn messages_of_api_availability_are_those_of_the_snapshot() {
    let (cp, bed) = (control_plane(), Bed::new());
    let (group, ns) = (&bed.names.group, &bed.names.namespace);
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(&two_versions(&bed, true));
    let object = json!({"apiVersion": format!("{group}/v1alpha1"), "kind": "Sample",
        "metadata": {"name": "one", "namespace": ns}, "first": "x"});
    let path = format!("/apis/{group}/v1alpha1/namespaces/{ns}/samples/one");
    assert_eq!(cp.server_side_apply(&path, "old-controller", &object).0, 201);
    // Objects that refer to v1alpha1, and objects that refer only to v1.
    let rule =
        json!({"apiGroups": [group], "apiVersions": ["v1alpha1"], "operations": ["*"], "resources": ["samples"]});
    let webhook = json!({"metadata": {"name": group}, "webhooks": [{"name": "w.example.com", "sideEffects": "None",
        "matchPolicy": "Exact", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": [rule]}]});
    let exact = json!({"matchPolicy": "Exact", "resourceRules": [rule]});
    // Without bindings they do not affect other tests.
    let policy = |name: String, more: Value| {
        let mut spec = json!({"validations": [{"expression": "true"}], "matchConstraints": exact});
        spec.as_object_mut().expect("a spec").extend(more.as_object().expect("an object").clone());
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let params = json!({"paramKind": {"apiVersion": format!("{group}/v1alpha1"), "kind": "Sample"}});
    let configured = [
        ("validatingwebhookconfigurations", webhook),
        ("validatingadmissionpolicies", policy(format!("{group}-matches"), json!({}))),
        ("validatingadmissionpolicies", policy(format!("{group}-reads"), params)),
    ];
    for (resource, object) in &configured {
        let (status, answer) = cp.post(&format!("{ADMISSION}/{resource}"), object);
        assert_eq!(status, 201, "{answer}");
    }
    cp.apply_yaml(&format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n\
         metadata: {{name: {ns}, labels: {{rbac.authorization.k8s.io/aggregate-to-view: 'true'}}}}\n\
         rules: [{{apiGroups: [{group}], resources: [samples], verbs: [get]}}]\n"
    ));
    let named = |api: &str, kind: &str, name: &str| {
        format!("apiVersion: {api}\nkind: {kind}\nmetadata: {{name: {name}, namespace: {ns}}}\n")
    };
    let manifests = [
        two_versions(&bed, false),
        bed.sample().replace("/v1\n", "/v1alpha1\n").replace("name: one", "name: two"),
        named("extensions/v1beta1", "Ingress", "removed"),
        named("apps/v1", "Deploymnet", "misspelt"),
        named("apps/v9", "Deployment", "of-no-version"),
        named("authorization.k8s.io/v1", "SubjectAccessReview", "request"),
        named("example.invalid/v1", "Widget", "of-no-group"),
        named("v1", "Endpoints", "deprecated"),
        named("v1", "Namespace", ns),
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: nowhere-{ns}}}\n"),
    ];
    let mut said = Sentences::default();
    let mut check = |manifests: &str| {
        bed.write("manifests.yaml", manifests);
        let arguments = ["check", "-f", "manifests.yaml", "--preflight", "APIAvailability", "-o", "json"];
        said.add(&bed.gantry(cp.kubeconfig("admin"), &arguments).arg("--force-conflicts").run().code(3).report());
    };
    check(&manifests.join("---\n"));
    // No served version is left.
    check(&two_versions(&bed, false).replace("served: true", "served: false"));
    for (resource, object) in &configured {
        cp.delete(&format!("{ADMISSION}/{resource}/{}", object["metadata"]["name"].as_str().expect("a name")));
    }
    insta::assert_snapshot!(all(said, "APIAvailability"));
}

#[test]
fn messages_of_custom_resource_validation_are_those_of_the_snapshot() {
    let cp = control_plane();
    let mut said = Sentences::default();

    let bed = Samples::new();
    let spec = || {
        json!({"size": {"type": "integer"}, "gone": {"type": "string"}, "owner": {"type": "string"},
            "mode": {"type": "string", "default": "old"}, "count": {"type": "integer"}, "name": {"type": "string"}})
    };
    let live = bed.crd(&[("v1", true, fields(spec())), ("v1alpha1", false, fields(spec()))]);
    bed.live(&live);
    bed.create("big", &json!({"size": 9, "gone": "x", "owner": "me", "count": 9}));
    bed.create("nobody-s", &json!({"size": 1}));
    let mut old = bed.object("old", &json!({"owner": "me"}));
    old["apiVersion"] = json!(format!("{}/v1alpha1", bed.names.group));
    let path = format!("{}/old", bed.collection("v1alpha1"));
    assert_eq!(cp.server_side_apply(&path, "old-controller", &old).0, 201);
    let mut new = spec();
    new.as_object_mut().expect("fields").remove("gone");
    new["size"]["maximum"] = json!(5);
    new["mode"]["default"] = json!("new");
    new["count"]["x-kubernetes-validations"] =
        json!([{"rule": "oldSelf.hasValue() || self < 5", "optionalOldSelf": true}]);
    let mut v1 = fields(new.clone());
    v1["required"] = json!(["owner"]);
    let mut desired = bed.crd(&[("v1", true, v1), ("v1alpha1", false, fields(new))]);
    desired["spec"]["versions"][1]["served"] = json!(false);
    // Custom resources next to it, which are validated against the new CRD.
    let manifests = json!({"apiVersion": "v1", "kind": "List", "items": [
        desired,
        bed.object("misspelt", &json!({"owner": "me", "sise": 1})),
        bed.object("refused", &json!({"size": 7, "name": 3})),
    ]});
    said.add(&bed.gantry(cp.kubeconfig("admin"), "check", &manifests, &["-o", "json"]).code(3).report());

    // A value that the storage version lacks.
    let bed = Samples::new();
    let text = || json!({"type": "string"});
    let crd = bed
        .crd(&[("v1", true, fields(json!({"a": text()}))), ("v2", false, fields(json!({"a": text(), "b": text()})))]);
    let mut lossy = bed.object("lossy", &json!({"a": "x", "b": "lost"}));
    lossy["apiVersion"] = json!(format!("{}/v2", bed.names.group));
    let manifests = json!({"apiVersion": "v1", "kind": "List", "items": [crd, lossy]});
    said.add(&bed.gantry(cp.kubeconfig("admin"), "check", &manifests, &["-o", "json"]).code(3).report());

    // Objects that need a webhook, which fails.
    let bed = Conversion::new();
    let down = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/convert"}}});
    let mut crd = bed.live(&down).crd(&down);
    let mut v3 = crd["spec"]["versions"][1].clone();
    v3["name"] = "v3".into();
    let v2 = &mut crd["spec"]["versions"][1];
    v2["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["amount"]["maxLength"] = json!(3);
    crd["spec"]["versions"].as_array_mut().expect("versions").push(v3);
    bed.0.write("manifests.yaml", &crd.to_string());
    let arguments = ["check", "-f", "manifests.yaml", "--preflight", "CustomResourceValidation", "-o", "json"];
    said.add(&bed.0.gantry(cp.kubeconfig("admin"), &arguments).arg("--force-conflicts").run().code(3).report());
    insta::assert_snapshot!(all(said, "CustomResourceValidation"));
}

#[test]
fn messages_of_conversion_webhook_are_those_of_the_snapshot() {
    let cp = control_plane();
    // A CRD for each case, all in one check.
    let mut crds: Vec<Value> = Vec::new();
    let by_url = |url: &str, bundle: &Value, versions: &[&str]| {
        json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": versions,
            "clientConfig": {"url": url, "caBundle": bundle}}})
    };
    let trusted = webhook(rename);
    let bundle = ca_bundle(&trusted);
    let nothing = "https://127.0.0.1:1/convert";

    // New CRDs.
    crds.push(Conversion::new().crd(&by_url(nothing, &json!("Tm8gY2VydGlmaWNhdGU="), &["v1"])));
    crds.push(Conversion::new().crd(&by_url(nothing, &bundle, &["v2"])));
    let bed = Conversion::new();
    crds.push(bed.crd(&bed.by_service(443, &Value::Null)));

    // Live CRDs whose Service is missing, does not have the port, or has no endpoint.
    let spec = |port: u16| json!({"selector": {"app": "webhook"}, "ports": [{"name": "https", "port": port}]});
    for port in [None, Some(443), Some(8443)] {
        let bed = Conversion::new();
        let crd = bed.crd(&bed.by_service(8443, &bundle));
        cp.apply_yaml(&crd.to_string());
        if let Some(port) = port {
            cp.apply_yaml(&bed.service("webhook", &spec(port)).to_string());
        }
        crds.push(crd);
    }

    // Live CRDs with objects, whose webhook is down, loses a value in the conversion, or loses it in the conversion
    // back.
    let down = by_url(nothing, &bundle, &["v1"]);
    crds.push(Conversion::new().live(&down).crd(&down));
    let drops = webhook(|object, wanted| {
        let mut object = rename(object, wanted);
        object["spec"].as_object_mut().expect("a spec").remove("color");
        object
    });
    crds.push(Conversion::new().live(&drops.conversion()).crd(&drops.conversion()));
    let one_way = webhook(|object, wanted| {
        let mut object = rename(object, wanted);
        if wanted.ends_with("/v1") {
            object["spec"]["size"] = "small-one".into();
        }
        object
    });
    crds.push(Conversion::new().live(&one_way.conversion()).crd(&one_way.conversion()));

    // A CRD whose webhook this deploy starts.
    let bed = Conversion::new();
    let host = format!("webhook.{}.svc", bed.0.names.namespace);
    let started = Webhook::with_own_ca(&[host], |review| Webhook::answer(review, rename));
    let external = json!({"type": "ExternalName", "externalName": "localhost", "selector": {"app": "webhook"},
        "ports": [{"port": started.port()}]});
    cp.apply_yaml(&bed.service("webhook", &external).to_string());
    let conversion = bed.by_service(started.port(), &ca_bundle(&started));
    crds.push(bed.live(&conversion).crd(&conversion));
    crds.push(deployment(&bed, "webhook:1", false));

    let mut said = Sentences::default();
    said.add(&bed.check(&crds, &["-o", "json"]).code(3).report());
    insta::assert_snapshot!(all(said, "ConversionWebhook"));
}
