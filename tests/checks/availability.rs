//! `APIAvailability` from the command line, on a real API server.

use crate::support::{Bed, ControlPlane, Output, Proxy, When, control_plane, eventually};
use serde_json::{Value, json};

fn findings(output: &Output) -> Vec<(String, u64, String)> {
    let report = output.report();
    let check = report["checks"].as_array().expect("checks").iter().find(|check| check["name"] == "APIAvailability");
    let found = check.expect("the check ran")["findings"].as_array().expect("findings").clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.iter().map(|f| (text(&f["rule"]), f["source"]["line"].as_u64().unwrap_or(0), text(&f["help"]))).collect()
}

const CHECK: [&str; 4] = ["--preflight", "APIAvailability", "-o", "json"];

/// An APIService without a backend, for its own group.
fn down_api(cp: &ControlPlane, group: &str) {
    let name = format!("v1.{group}");
    let service = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name},
            "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
                "insecureSkipTLSVerify": true, "service": {"name": "nobody", "namespace": "default", "port": 443}}});
    assert_eq!(cp.post("/apis/apiregistration.k8s.io/v1/apiservices", &service).0, 201);
    eventually("the aggregated API is known and down", || {
        (cp.get(&format!("/apis/{group}/v1")).0 == 503).then_some(())
    });
}

#[test]
fn every_unserved_kind_is_found_at_its_line_and_other_checks_continue() {
    let cp = control_plane();
    let bed = Bed::new();
    let (group, namespace) = (&bed.names.group, &bed.names.namespace);
    let crd = bed.crd("first: {type: string}");
    let manifests = format!(
        "apiVersion: extensions/v1beta1
kind: Ingress
metadata: {{name: old, namespace: {namespace}}}
---
apiVersion: apps/v1
kind: Deploymnet
metadata: {{name: misspelt, namespace: {namespace}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: nowhere-{namespace}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: {namespace}, namespace: {namespace}}}
---
apiVersion: {group}/v1
kind: Sample
metadata: {{name: brought, namespace: {namespace}}}
first: x
---
{crd}"
    );
    bed.write("manifests.yaml", &manifests);
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).run();
    output.code(3);
    let found: Vec<(String, u64, String)> =
        findings(&output).into_iter().map(|(rule, line, help)| (rule, line, help.to_owned())).collect();
    let expected = [
        ("NamespaceIgnored", 15, "remove the namespace; the object applies to the whole cluster"),
        ("NamespaceAssumed", 11, "set metadata.namespace, or pass --namespace"),
        ("ApiRemoved", 1, "change it to networking.k8s.io/v1; kubectl explain shows which fields differ there"),
        ("ApiNotServed", 6, "change it to kind: Deployment if that is what you meant"),
    ];
    assert_eq!(found, expected.map(|(rule, line, help)| (rule.to_owned(), line, help.to_owned())));
    assert_eq!(cp.get(&format!("/api/v1/namespaces/{namespace}")).0, 404, "nothing was written");
    // Without the check it is an error that ends the run.
    let output = bed.deploy(cp.kubeconfig("admin"), &["--preflight", "CRDUpgradeSafety"]).run();
    output.code(3).stderr_contains("no kind \"Ingress\" in \"extensions/v1beta1\" is served by the target");
    // It cannot be deployed, so it is no warning, and nothing else is deployed either.
    let output = bed.deploy(cp.kubeconfig("admin"), &["--preflight", "APIAvailability", "--warn-only"]).run();
    output.code(3).stdout_contains("error[ApiNotServed]: Deploymnet of apps/v1 is neither served by the target");
    assert_eq!(cp.get(&format!("/api/v1/namespaces/{namespace}")).0, 404, "nothing was written");
}

#[test]
fn an_aggregated_api_that_is_down_leaves_the_check_incomplete_and_hides_no_finding() {
    // A control plane of its own, because no namespace can be deleted while such an API exists.
    let cp = &ControlPlane::start();
    let bed = Bed::new();
    down_api(cp, &bed.names.group);
    let here = format!(
        "apiVersion: {}/v1\nkind: Metric\nmetadata: {{name: m, namespace: default}}\n---\n{}",
        bed.names.group,
        bed.namespace()
    );
    bed.write("manifests.yaml", &here);
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).run();
    output.code(1);
    assert_eq!(findings(&output), []);
    let report = output.report();
    assert_eq!(report["checks"][0]["status"], "failed");
    let said = report["checks"][0]["unchecked"][0]["message"].as_str().unwrap().to_owned();
    let expected = format!(
        "whether Metric of {0}/v1 is served (manifests.yaml:1): /apis/{0}/v1 is not available (503): service unavailable",
        bed.names.group
    );
    assert_eq!(said, expected);
    assert_eq!(cp.get(&format!("/api/v1/namespaces/{}", bed.names.namespace)).0, 404, "nothing was written");
    // An error elsewhere is reported as well.
    bed.write("manifests.yaml", &format!("{here}---\napiVersion: apps/v9\nkind: Deployment\nmetadata: {{name: d}}\n"));
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).run();
    output.code(3);
    assert_eq!(findings(&output).len(), 1);
    assert_eq!(output.report()["checks"][0]["unchecked"].as_array().map(Vec::len), Some(1));
}

#[test]
fn deprecated_kinds_have_the_warning_of_the_server_and_block_nothing() {
    let cp = control_plane();
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    cp.apply_yaml(&bed.namespace());
    bed.write(
        "manifests.yaml",
        &format!("apiVersion: v1\nkind: Endpoints\nmetadata: {{name: e, namespace: {namespace}}}\n"),
    );
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).run();
    output.code(0).stderr_contains("the API server warns: v1 Endpoints is deprecated in v1.33+");
    let found = findings(&output);
    let [(rule, 1, help)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(rule, "ApiDeprecated");
    assert!(help.starts_with("use EndpointSlice of discovery.k8s.io/v1"), "{help}");
    assert_eq!(cp.get(&format!("/api/v1/namespaces/{namespace}/endpoints/e")).0, 200);
}

/// The CRD of [`Bed::crd`] with the additional version v1alpha1.
pub(super) fn two_versions(bed: &Bed, old_is_served: bool) -> String {
    bed.crd("first: {type: string}").replace(
        "  versions:\n",
        &format!(
            "  versions:\n  - name: v1alpha1\n    served: {old_is_served}\n    storage: false\n    schema: \
             {{openAPIV3Schema: {{type: object, properties: {{first: {{type: string}}}}}}}}\n"
        ),
    )
}

/// The messages of ApiGoesAway.
fn going(output: &Output) -> Vec<String> {
    let report = output.report();
    let found = report["checks"][0]["findings"].as_array().expect("findings");
    let of_rule = found.iter().filter(|finding| finding["rule"] == "ApiGoesAway");
    of_rule.map(|finding| finding["message"].as_str().expect("a message").to_owned()).collect()
}

pub(super) const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

#[test]
fn every_reference_to_a_removed_api_is_a_finding() {
    let cp = control_plane();
    let bed = Bed::new();
    let (group, namespace) = (&bed.names.group, &bed.names.namespace);
    let crd = |old_is_served: bool| two_versions(&bed, old_is_served);
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(&crd(true));
    let object = json!({"apiVersion": format!("{group}/v1alpha1"), "kind": "Sample",
        "metadata": {"name": "one", "namespace": namespace}, "first": "x"});
    let path = format!("/apis/{group}/v1alpha1/namespaces/{namespace}/samples/one");
    assert_eq!(cp.server_side_apply(&path, "old-controller", &object).0, 201);
    let webhook = json!({"metadata": {"name": group}, "webhooks": [{"name": "w.example.com", "sideEffects": "None",
        "matchPolicy": "Exact", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore", "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [{"apiGroups": [group], "apiVersions": ["v1alpha1"], "operations": ["*"], "resources": ["samples"]}]}]});
    let webhooks = format!("{ADMISSION}/validatingwebhookconfigurations");
    assert_eq!(cp.post(&webhooks, &webhook).0, 201);
    let sample = bed.sample().replace("/v1\n", "/v1alpha1\n").replace("name: one", "name: two");
    bed.write("manifests.yaml", &format!("{}---\n{sample}", crd(false)));
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).run();
    cp.delete(&format!("{webhooks}/{group}"));
    output.code(3);
    let report = output.report();
    let found = report["checks"][0]["findings"].as_array().expect("findings");
    let said: Vec<String> = found
        .iter()
        .map(|f| {
            let text = |key: &str| f[key].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}: {}", text("rule"), text("severity"), f["source"]["line"], text("message"))
        })
        .collect();
    let name = format!("samples.{group}");
    assert_eq!(
        said,
        [
            format!(
                "ApiGoesAway error 10: the webhook configuration {group} names v1alpha1 of {name} and no version that \
                    is still served: the server will no longer call its webhook"
            ),
            format!(
                "ApiGoesAway warning 10: live objects of {name} were written at v1alpha1 by old-controller (1 object)"
            ),
            format!("ApiGoesAway error 21: this deploy stops serving v1alpha1 of {name}, which the object uses"),
        ]
    );
}

/// A policy that denies objects named `bad`, with these fields in its spec; it is in force on return.
fn denying(cp: &ControlPlane, bed: &Bed, more: &Value) {
    let group = &bed.names.group;
    let mut policy = json!({"metadata": {"name": group}, "spec": {
        "validations": [{"expression": "object.metadata.name != 'bad'"}],
        "matchConstraints": {"resourceRules": [
            {"apiGroups": [group], "apiVersions": ["v1alpha1"], "operations": ["CREATE"], "resources": ["samples"]}]}}});
    policy["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut binding =
        json!({"metadata": {"name": group}, "spec": {"policyName": group, "validationActions": ["Deny"]}});
    if more["paramKind"].is_object() {
        binding["spec"]["paramRef"] = json!({"name": "x", "namespace": "default", "parameterNotFoundAction": "Allow"});
    }
    assert_eq!(cp.post(&format!("{ADMISSION}/validatingadmissionpolicies"), &policy).0, 201);
    assert_eq!(cp.post(&format!("{ADMISSION}/validatingadmissionpolicybindings"), &binding).0, 201);
    eventually("the policy denies", || (create(cp, bed, "bad").0 == 422).then_some(()));
}

fn create(cp: &ControlPlane, bed: &Bed, name: &str) -> (u16, Value) {
    let (group, namespace) = (&bed.names.group, &bed.names.namespace);
    let object = json!({"apiVersion": format!("{group}/v1"), "kind": "Sample", "metadata": {"name": name}});
    cp.post(&format!("/apis/{group}/v1/namespaces/{namespace}/samples?dryRun=All"), &object)
}

/// The findings match the API server's behaviour: a policy still applies if the CRD keeps the version, and is lost with
/// it.
#[test]
fn a_policy_is_reported_only_if_its_last_version_is_removed() {
    let (cp, bed) = (control_plane(), Bed::new());
    let group = &bed.names.group;
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(&two_versions(&bed, true));
    denying(cp, &bed, &json!({}));

    bed.write("manifests.yaml", &two_versions(&bed, false));
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).arg("--force-conflicts").run();
    assert_eq!(going(output.code(0)), [""; 0]);
    eventually("v1alpha1 is gone", || (cp.get(&format!("/apis/{group}/v1alpha1")).0 == 404).then_some(()));
    // The object is validated as v1alpha1, which is not served.
    for _ in 0..20 {
        assert_eq!(create(cp, &bed, "bad").0, 422);
    }

    cp.apply_yaml(&two_versions(&bed, true));
    bed.write("manifests.yaml", &bed.crd("first: {type: string}"));
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).arg("--force-conflicts").run();
    let said = format!(
        "the policy {group} names v1alpha1 of samples.{group} and no version that is still served: the server will no \
            longer evaluate it"
    );
    assert_eq!(going(output.code(3)), [said]);
    bed.deploy(cp.kubeconfig("admin"), &["--force-conflicts", "--warn-only"]).run().code(0);
    eventually("nothing is denied any more", || (create(cp, &bed, "bad").0 == 201).then_some(()));
}

/// Needs its own server, which it starts.
#[test]
fn a_policy_whose_parameter_kind_is_removed_refuses_everything_it_matches() {
    let (cp, bed) = (&ControlPlane::start(), Bed::new());
    let group = &bed.names.group;
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(&two_versions(&bed, true));
    let params = json!({"paramKind": {"apiVersion": format!("{group}/v1alpha1"), "kind": "Sample"}, "matchConstraints":
        {"resourceRules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["samples"]}]}});
    // Without an object there is nothing to check.
    let object = json!({"apiVersion": format!("{group}/v1alpha1"), "kind": "Sample", "metadata": {"name": "x"}});
    let path = format!("/apis/{group}/v1alpha1/namespaces/default/samples/x");
    assert_eq!(cp.server_side_apply(&path, "old-controller", &object).0, 201);
    denying(cp, &bed, &params);
    eventually("what is good passes", || (create(cp, &bed, "good").0 == 201).then_some(()));
    bed.write("manifests.yaml", &two_versions(&bed, false));
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).arg("--force-conflicts").run();
    let said = format!(
        "the policy {group} reads its parameters at v1alpha1 of samples.{group}, where the API server will not find \
         them: it refuses everything that it matches, at the latest after the server's next restart"
    );
    assert_eq!(going(output.code(3))[0], said);
    bed.deploy(cp.kubeconfig("admin"), &["--force-conflicts", "--warn-only"]).run().code(0);
    cp.kill_api_server();
    cp.restart_api_server();
    eventually("what is good is refused", || {
        let (status, answer) = create(cp, &bed, "good");
        let message = answer["message"].as_str().unwrap_or_default();
        (status == 422 && message.contains("failed to find resource referenced by paramKind")).then_some(())
    });
}

#[test]
fn aggregated_roles_that_refer_to_an_unserved_crd_are_findings() {
    let (cp, bed) = (control_plane(), Bed::new());
    let group = &bed.names.group;
    cp.apply_yaml(&bed.crd("first: {type: string}"));
    let role = format!("samples-{}", bed.names.namespace);
    cp.apply_yaml(&format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n\
         metadata: {{name: {role}, labels: {{rbac.authorization.k8s.io/aggregate-to-view: 'true'}}}}\n\
         rules: [{{apiGroups: [{group}], resources: [samples], verbs: [get]}}]\n"
    ));
    bed.write("manifests.yaml", &bed.crd("first: {type: string}").replace("served: true", "served: false"));
    let check = |kubeconfig, more: &[&str]| bed.gantry(kubeconfig, &["check", "-f", "manifests.yaml"]).args(more).run();
    let output = check(cp.kubeconfig("admin"), &CHECK);
    let said = format!(
        "the aggregated ClusterRole {role} names v1 of samples.{group} and no version that is still served: its rules \
            will match nothing"
    );
    assert_eq!(going(output.code(3)), [said]);
    // The lists that this needs are permissions, which are reported in advance.
    let user =
        cp.user(&json!([{"apiGroups": ["apiextensions.k8s.io"], "resources": ["*"], "verbs": ["get", "patch"]}]));
    let output = check(cp.kubeconfig(&user), &["--preflight", "APIAvailability,PermissionValidation"]);
    output.code(3);
    for resource in ["clusterroles", "validatingwebhookconfigurations", "mutatingadmissionpolicybindings", "samples"] {
        assert!(output.stdout.contains(&format!("Resource={resource} at the cluster scope")), "{}", output.stdout);
    }
}

#[test]
fn policies_of_an_older_server_are_found_at_its_version() {
    let (cp, bed) = (control_plane(), Bed::new());
    let group = &bed.names.group;
    cp.apply_yaml(&two_versions(&bed, true));
    bed.write("manifests.yaml", &bed.crd("first: {type: string}"));
    let proxy = Proxy::start(cp);
    let missing =
        json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": "the server could not find it"});
    proxy.answer(When::new("GET", "/v1/mutatingadmissionpolicies"), 404, missing);
    let rule = json!({"apiGroups": [group], "apiVersions": ["v1alpha1"], "operations": ["*"], "resources": ["*"]});
    let list = json!({"kind": "MutatingAdmissionPolicyList", "metadata": {}, "items": [
        {"metadata": {"name": "older"}, "spec": {"matchConstraints": {"resourceRules": [rule]}}}]});
    proxy.answer(When::new("GET", "/v1beta1/mutatingadmissionpolicies"), 200, list);
    let output = bed.gantry(proxy.kubeconfig("admin"), &["check", "-f", "manifests.yaml"]).args(CHECK).run();
    let said = format!(
        "the policy older names v1alpha1 of samples.{group} and no version that is still served: the server will no \
            longer evaluate it"
    );
    assert_eq!(going(output.code(3)), [said]);
}

#[test]
fn a_user_who_may_not_read_crds_can_deploy_their_objects() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(
        &bed.crd("first: {type: string}").replace("    served: true\n", "    served: true\n    deprecated: true\n"),
    );
    bed.write("manifests.yaml", &bed.sample());
    let user = cp.user(
        &json!([{"apiGroups": [bed.names.group], "resources": ["samples"], "verbs": ["get", "create", "patch"]}]),
    );
    let output = bed.deploy(cp.kubeconfig(&user), &CHECK).run();
    output.code(0).stderr_contains("only the API server's own warnings show");
    output.stderr_contains(&format!("the API server warns: {}/v1 Sample is deprecated", bed.names.group));
    assert_eq!(cp.get(&bed.sample_path()).0, 200);
}

#[test]
fn a_kind_that_cannot_be_stored_is_found_before_anything_is_written() {
    let (cp, bed) = (control_plane(), Bed::new());
    for (kind, verbs) in [
        ("apiVersion: authorization.k8s.io/v1\nkind: SubjectAccessReview", "create"),
        ("apiVersion: v1\nkind: ComponentStatus", "get, list"),
    ] {
        let odd = format!(
            "{kind}\nmetadata: {{name: x}}\nspec: {{user: jane, nonResourceAttributes: {{path: /, verb: get}}}}\n"
        );
        bed.write("manifests.yaml", &[bed.namespace(), odd].join("---\n"));
        let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).run();
        assert_eq!(findings(output.code(3))[0].0, "ApiNotServed");
        let said = format!("the API does not support patch (only {verbs})");
        output.stdout_contains(&said);
        bed.deploy(cp.kubeconfig("admin"), &["--preflight", "CRDUpgradeSafety"]).run().code(3).stderr_contains(&said);
        assert_eq!(cp.get(&format!("/api/v1/namespaces/{}", bed.names.namespace)).0, 404, "nothing was written");
    }
}

#[test]
fn the_table_of_removed_apis_agrees_with_the_server() {
    let cp = control_plane();
    let (status, discovery) = cp.get("/apis");
    assert_eq!(status, 200);
    let groups = discovery["groups"].as_array().expect("groups");
    let versions: Vec<&str> = groups
        .iter()
        .flat_map(|group| group["versions"].as_array().into_iter().flatten())
        .filter_map(|version| version["groupVersion"].as_str())
        .collect();
    let table = include_str!("../../crates/preflight/src/api_availability/lifecycle.txt");
    let gone = table.lines().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|words| {
        let minor = words[3].strip_prefix("1.").and_then(|minor| minor.parse::<u32>().ok());
        minor.is_some_and(|minor| minor <= 36)
    });
    let mut seen = 0;
    for words in gone {
        seen += 1;
        let is_served = versions.contains(&words[0])
            && cp.get(&format!("/apis/{}", words[0])).1["resources"]
                .as_array()
                .is_some_and(|resources| resources.iter().any(|resource| resource["kind"] == words[1]));
        assert!(!is_served, "{words:?}");
        if let Some(successor) = words.get(4).filter(|successor| **successor != "-") {
            let prefix = if successor.contains('/') { "apis" } else { "api" };
            let (status, list) = cp.get(&format!("/{prefix}/{successor}"));
            let kinds = list["resources"].as_array().cloned().unwrap_or_default();
            assert!(status == 200 && kinds.iter().any(|kind| kind["kind"] == words[5]), "{words:?}");
        }
    }
    assert!(seen > 50);
}

#[test]
fn a_suggestion_needs_few_requests_and_none_if_everything_is_served() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    bed.write("manifests.yaml", &bed.config_map("a", "b"));
    let proxy = Proxy::start(cp);
    bed.deploy(proxy.kubeconfig("admin"), &CHECK).arg("--dry-run").run().code(0);
    let before = proxy.requests().len();
    assert!(before <= 5, "{:?}", proxy.requests());
    bed.write("manifests.yaml", &bed.config_map("a", "b").replace("ConfigMap", "ConfigMop"));
    let misspelt = || {
        let output = bed.deploy(proxy.kubeconfig("admin"), &CHECK).run();
        output.code(3);
        findings(&output)[0].2.clone()
    };
    assert!(misspelt().starts_with("change it to kind: ConfigMap if that is what you meant"));
    assert!(proxy.requests().len() - before <= 5, "{:?}", proxy.requests());
    // If discovery as a whole is refused, there is no suggestion, but the finding remains.
    let forbidden = json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"});
    proxy.answer(When::new("GET", "/apis"), 403, forbidden);
    assert!(misspelt().starts_with("check apiVersion and kind"), "{}", misspelt());
}
