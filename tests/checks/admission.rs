//! `AdmissionDryRun` from the command line: objects that a real API server would refuse are found before anything is
//! written. Refusals that depend on the deploy itself are in `admission_plan.rs`.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::admission::{Admission, comes_into_force, findings, its_name, limit_range, only, quota, rule};
use crate::support::{Bed, Proxy, Webhook, When, control_plane};
use serde_json::{Value, json};

const CHECK: [&str; 2] = ["--preflight", "AdmissionDryRun"];

/// The lines with a marker `# <- RULE`, with the rules that must be reported there.
fn marked(manifests: &str) -> BTreeSet<(String, u64)> {
    let lines = manifests.lines().zip(1..);
    lines.filter_map(|(line, number)| Some((line.split_once("# <- ")?.1.trim().to_owned(), number))).collect()
}

/// A CRD that is live in the form of `crd`.
fn live_state(bed: &Bed) {
    let cp = control_plane();
    cp.apply_yaml(&bed.crd("first: {type: string, maxLength: 3}"));
    // Written by gantry's own manager, because a field conflict would hide the intended refusal.
    let stored = bed.crd("first: {type: string}").replace("samples", "stored").replace("Sample", "Stored");
    let stored: Value = serde_yaml::from_str(&stored.replace("sample", "storedone")).expect("YAML");
    assert_eq!(cp.server_side_apply(&cp.path_of(&stored), "gantry", &stored).0, 201);
    let immutable = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "immutable"}, "immutable": true,
        "data": {"key": "old"}});
    assert_eq!(cp.server_side_apply(&bed.config_map_path("immutable"), "gantry", &immutable).0, 201);
    let owned =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned"}, "data": {"key": "theirs"}});
    assert_eq!(cp.server_side_apply(&bed.config_map_path("owned"), "somebody-else", &owned).0, 201);
}

/// Each marked line is refused by the rule of its marker.
fn refused_manifests(bed: &Bed) -> String {
    let (group, namespace) = (&bed.names.group, &bed.names.namespace);
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: invalid, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata:
      labels: {{app: wbe}} # <- ObjectInvalid
    spec:
      containers:
      - name: web
        image: web
        imagePullPolicy: Sometimes # <- ObjectInvalid
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: unknown, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - name: first
        image: web
      - name: second
        image: web
        comand: [run] # <- ObjectInvalid
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: broken.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: broken, kind: Broken}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: nope # <- ObjectInvalid
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: stored.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: stored, singular: storedone, kind: Stored, listKind: StoredList}}
  versions: # <- ObjectInvalid
  - name: v2
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: immutable, namespace: {namespace}}}
immutable: true
data: # <- ImmutableField
  key: new
---
apiVersion: v1
kind: Service
metadata:
  name: too-many # <- QuotaExceeded
  namespace: {namespace}
spec: {{ports: [{{port: 80}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  namespace: {namespace}
  name: denied-by-policy # <- AdmissionDenied
data: {{key: value}}
---
apiVersion: v1
kind: Secret
metadata:
  name: denied-by-webhook # <- AdmissionDenied
  namespace: {namespace}
stringData: {{password: hunter2-s3cret}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: owned, namespace: {namespace}}}
data:
  other: ours
  key: ours # <- FieldConflict
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: nowhere # <- NamespaceMissing
  namespace: no-{namespace}
data: {{key: value}}
---
apiVersion: v1
kind: Pod
metadata:
  name: over-the-limit # <- AdmissionDenied
  namespace: {namespace}
spec: {{containers: [{{name: web, image: web, resources: {{limits: {{cpu: '4'}}}}}}]}}
---
apiVersion: {group}/v1
kind: Sample
metadata: {{name: one, namespace: {namespace}}}
first: too long # <- ObjectInvalid
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: needs-the-webhook-that-is-down # <- AdmissionWebhookFailed
  namespace: {namespace}
"
    )
}

/// The server state that refuses all of [`refused_manifests`].
fn refusing(bed: &Bed) -> Admission {
    let cp = control_plane();
    cp.apply_yaml(&bed.namespace());
    quota(bed, "quota", &json!({"hard": {"services": "1"}}), &json!({"services": "1"}));
    limit_range(bed);
    live_state(bed);
    let mut rules = Admission::default();
    rules.policy(bed, "configmaps", &its_name(bed));
    // It echoes the object that it was sent, as careless webhooks do.
    let webhook = Webhook::admitting(cp, |review| {
        let object = &review["request"]["object"];
        Some(format!("weak password {} in {}", object["data"]["password"], object["metadata"]["name"]))
    });
    rules.webhook(bed, "secrets", &webhook.client_config(), "weak password");
    rules.webhook(bed, "serviceaccounts", &json!({"url": "https://127.0.0.1:1/"}), "failed calling webhook");
    rules
}

#[test]
fn every_kind_of_refusal_is_found_at_its_line_before_anything_is_written() {
    let cp = control_plane();
    let bed = Bed::new();
    let rules = refusing(&bed);
    let manifests = refused_manifests(&bed);
    bed.write("manifests.yaml", &manifests);
    let proxy = Proxy::start(cp);
    let output = bed.deploy(proxy.kubeconfig("admin"), &CHECK).args(["-o", "json"]).run();
    output.code(3).contains_nowhere("hunter2").contains_nowhere("aHVudGVyMi1zM2NyZXQ");
    let found = findings(&output);
    let placed: BTreeSet<(String, u64)> = found.iter().map(|(rule, _, line, _)| (rule.clone(), *line)).collect();
    assert_eq!(placed, marked(&manifests));
    assert!(found.iter().all(|(_, severity, ..)| severity == "error"), "{found:#?}");
    assert_eq!(found.len(), marked(&manifests).len(), "{found:#?}");
    assert!(proxy.writes().is_empty(), "{:?}", proxy.writes());
    let said = |rule: &str| {
        let (.., message) = found.iter().find(|(name, ..)| name == rule).unwrap();
        message.clone()
    };
    assert!(said("QuotaExceeded").contains("exceeded quota: quota, requested: services=1, used: services=1"));
    assert!(said("ImmutableField").contains("field is immutable when `immutable` is set"));
    assert!(said("FieldConflict").contains(
        "field manager \"somebody-else\" owns fields that the manifest changes: \
            .data.key"
    ));
    // The same in the human report, and only once: a predicted failure of the deploy does not repeat the check's
    // findings.
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).run();
    output.code(3).contains_nowhere("hunter2").contains_nowhere("deploy would stop before it writes");
    output.stdout_contains("manifests.yaml:8 ").stdout_contains("supported values: \"Always\", \"IfNotPresent\"");
    // With `--redact`, without any value.
    let output = bed.deploy(cp.kubeconfig("admin"), &CHECK).arg("--redact").run();
    output.code(3).contains_nowhere("Sometimes").contains_nowhere("10.0.0");
    drop(rules);
}

#[test]
fn the_server_accepts_and_refuses_what_the_check_predicts() {
    let cp = control_plane();
    let bed = Bed::new();
    let rules = refusing(&bed);
    let namespace = &bed.names.namespace;
    let mut documents: Vec<String> = refused_manifests(&bed).split("---\n").map(str::to_owned).collect();
    let good = [
        bed.config_map("good", "x"),
        bed.sample().replace("first: x", "first: abc").replace("name: one", "name: good"),
        bed.crd("first: {type: string, maxLength: 3}"),
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: good, namespace: {namespace}}}\nspec: {{containers: [{{name: a, image: a}}]}}\n"
        ),
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: good, namespace: {namespace}}}\nspec: {{selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: a, image: a}}]}}}}}}\n"
        ),
        format!(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: good, namespace: {namespace}}}\nspec: {{schedule: '* * * * *', jobTemplate: {{spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: a}}]}}}}}}}}}}\n"
        ),
        format!(
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: good, namespace: {namespace}}}\nspec: {{minAvailable: 1, selector: {{matchLabels: {{a: b}}}}}}\n"
        ),
    ];
    // The same kinds, each with an error.
    let bad = [
        bed.config_map("Not_A_Name", "x"),
        good[1].replace("first: abc", "second: abc").replace("name: good", "name: unknown"),
        good[3].replace("image: a", "image: ''").replace("name: good", "name: no-image"),
        good[4].replace("{a: b}}, template", "{a: c}}, template").replace("name: good", "name: selector"),
        good[5].replace("'* * * * *'", "'often'").replace("name: good", "name: schedule"),
        good[5].replace("restartPolicy: Never", "restartPolicy: Always").replace("name: good", "name: policy"),
        good[6].replace("minAvailable: 1", "minAvailable: 1, maxUnavailable: 1").replace("name: good", "name: both"),
        good[6].replace("minAvailable: 1", "minAvailable: lots").replace("name: good", "name: lots"),
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bytes, namespace: {namespace}, labels: {{a: 'b c'}}}}\nbinaryData: {{a: 'no base64'}}\n"
        ),
    ];
    documents.extend(good.into_iter().chain(bad));
    bed.write("manifests.yaml", &documents.join("---\n"));
    let output = bed.gantry(cp.kubeconfig("admin"), &["check", "-f", "manifests.yaml", "-o", "json"]).args(CHECK).run();
    output.code(3);
    let report = output.report();
    let name = |object: &Value| format!("{} {}", object["kind"], object["name"]);
    let found = report["checks"][0]["findings"].as_array().expect("findings");
    let predicted: BTreeSet<String> =
        found.iter().filter(|f| f["severity"] == "error").map(|f| name(&f["object"])).collect();
    assert_eq!(report["checks"][0]["unchecked"], Value::Null);

    let mut refused = BTreeSet::new();
    let mut answers = BTreeMap::new();
    for document in &documents {
        let object: Value = serde_yaml::from_str(document).expect("YAML");
        let path = format!("{}?fieldManager=gantry&fieldValidation=Strict&x=", cp.path_of(&object));
        let (status, answer) = cp.server_side_apply(&path, "y", &object);
        let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
        answers.insert(name.clone(), answer["message"].clone());
        if status >= 400 {
            refused.insert(name);
        }
    }
    assert_eq!(predicted, refused, "{answers:#?}");
    assert!(refused.len() > 20 && documents.len() > refused.len() + 5);
    drop(rules);
}

#[test]
fn a_webhook_that_does_not_support_dry_runs_leaves_the_check_incomplete() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let namespace = &bed.names.namespace;
    // Since v1 the API refuses such a webhook, but a webhook that was created earlier still exists.
    let webhook = Webhook::admitting(cp, |_| None);
    let name = format!("w-old-{namespace}");
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name, "uid": name, "creationTimestamp": "2020-01-01T00:00:00Z"},
        "webhooks": [{"name": "hook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "Some",
            "failurePolicy": "Ignore", "matchPolicy": "Equivalent", "objectSelector": {}, "timeoutSeconds": 10,
            "clientConfig": webhook.client_config(), "namespaceSelector": only(&bed), "rules": [rule("configmaps")]}]});
    let (status, answer) =
        cp.post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", &configuration);
    assert_eq!(status, 422, "{answer}");
    cp.store(&format!("/registry/validatingwebhookconfigurations/{name}"), &configuration);
    comes_into_force(&bed, "configmaps", "does not support dry run");

    bed.write("manifests.yaml", &format!("{}---\n{}", bed.config_map("a", "b"), bed.config_map("c", "d")));
    let proxy = Proxy::start(cp);
    let output = bed.deploy(proxy.kubeconfig("admin"), &CHECK).args(["-o", "json", "--warn-only"]).run();
    output.code(1);
    let report = output.report();
    assert_eq!(report["checks"][0]["status"], "failed");
    assert_eq!(
        report["checks"][0]["unchecked"][0]["message"],
        format!(
            "configmap/a -n {namespace} (manifests.yaml:1), configmap/c -n {namespace} (manifests.yaml:6): the webhook \
             \"hook.example.com\" does not support dry runs"
        )
    );
    assert!(proxy.writes().is_empty());
    // The server cannot answer a dry run, but it accepts the objects.
    bed.deploy(cp.kubeconfig("admin"), &["-q"]).run().code(0);
    let path = format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}");
    assert_eq!(cp.delete(&path).0, 200);
}

#[test]
fn missing_rights_are_reported_before_the_first_write() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let user = cp.user(&json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": [""], "resources": ["services"], "verbs": ["get"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["get", "create", "patch"]},
    ]));
    let namespace = &bed.names.namespace;
    let manifests = format!(
        "{}---
apiVersion: v1
kind: Service
metadata:
  name: mine # <- ApplyForbidden
  namespace: {namespace}
spec: {{ports: [{{port: 80}}]}}
",
        bed.config_map("a", "b")
    );
    bed.write("manifests.yaml", &manifests);
    let output = bed.deploy(cp.kubeconfig(&user), &CHECK).args(["-o", "json"]).run();
    output.code(3);
    let found = findings(&output);
    let placed: BTreeSet<_> = found.iter().map(|(rule, _, line, _)| (rule.clone(), *line)).collect();
    assert_eq!(placed, marked(&manifests));
    assert!(found[0].3.contains("may not patch services"), "{found:?}");
    // A binding to a role of the same deploy waits for the role; a role that grants more than the user holds is
    // refused.
    let rbac = |kind: &str, name: &str, rest: &str| {
        format!(
            "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: {namespace}}}\n{rest}\n"
        )
    };
    let manifests = [
        bed.config_map("a", "b"),
        rbac("Role", "own", "rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]"),
        rbac("RoleBinding", "own", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: own}"),
        rbac("RoleBinding", "other", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: none}"),
    ];
    bed.write("manifests.yaml", &manifests.concat());
    let output = bed.deploy(cp.kubeconfig(&user), &CHECK).args(["-o", "json"]).run();
    output.code(3);
    let found: Vec<(String, String)> =
        findings(&output).into_iter().map(|(rule, severity, ..)| (rule, severity)).collect();
    // The note is about the quotas for two bindings, which this user may not read.
    let expected = [("RefusedByServer", "warning"), ("JudgedWithoutServer", "info"), ("RefusedByServer", "error")];
    assert_eq!(found, expected.map(|(rule, severity)| (rule.to_owned(), severity.to_owned())));
}

#[test]
fn only_objects_that_would_be_written_are_sent_and_warnings_are_reported_once() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let endpoints =
        format!("apiVersion: v1\nkind: Endpoints\nmetadata: {{name: e, namespace: {}}}\n", bed.names.namespace);
    bed.write("manifests.yaml", &format!("{}---\n{endpoints}", bed.config_map("a", "b")));
    let proxy = Proxy::start(cp);
    let asked = || proxy.requests().iter().filter(|request| request.query.contains("dryRun=All")).count();
    let output = bed.deploy(proxy.kubeconfig("admin"), &CHECK).run();
    output.code(0);
    assert_eq!(asked(), 2);
    assert_eq!(output.stderr.matches("v1 Endpoints is deprecated").count(), 1, "{}", output.stderr);
    bed.deploy(proxy.kubeconfig("admin"), &CHECK).run().code(0);
    assert_eq!(asked(), 2, "nothing changes, nothing is asked");
    // With `--force-conflicts` the dry run also forces, so the result is that of the deploy.
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"key": "theirs"}});
    assert_eq!(cp.server_side_apply(&bed.config_map_path("b"), "somebody-else", &theirs).0, 201);
    bed.write("manifests.yaml", &bed.config_map("b", "ours"));
    bed.deploy(proxy.kubeconfig("admin"), &CHECK).run().code(3);
    bed.deploy(proxy.kubeconfig("admin"), &CHECK).arg("--force-conflicts").run().code(0);
}

#[test]
fn an_object_that_changes_meanwhile_is_no_finding() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    bed.write("manifests.yaml", &bed.config_map("a", "b"));
    let proxy = Proxy::start(cp);
    let path = format!("/api/v1/namespaces/{}/configmaps", bed.names.namespace);
    let theirs = json!({"metadata": {"name": "a"}, "data": {"key": "theirs"}});
    proxy.before(When::new("PATCH", "/configmaps/a").nth(1), move || {
        control_plane().post(&path, &theirs);
    });
    let output = bed.deploy(proxy.kubeconfig("admin"), &CHECK).args(["-o", "json"]).run();
    output.code(1);
    let report = output.report();
    let said = report["checks"][0]["unchecked"][0]["message"].as_str().unwrap().to_owned();
    assert!(said.contains("was created in the target after the checks ran"), "{said}");
}

#[test]
fn objects_that_are_no_longer_sent_are_counted() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let manifests: Vec<String> = (0..40).map(|n| bed.config_map(&format!("c{n}"), "x")).collect();
    bed.write("manifests.yaml", &manifests.join("---\n"));
    let proxy = Proxy::start(cp);
    let answer = json!({"kind": "Status", "status": "Failure", "code": 401, "message": "Unauthorized"});
    proxy.answer(When::new("PATCH", "/configmaps/").query("dryRun=All"), 401, answer);
    let output = bed.deploy(proxy.kubeconfig("admin"), &CHECK).args(["-o", "json"]).run();
    let report = output.code(1).report();
    let [asked, rest] = &report["checks"][0]["unchecked"].as_array().expect("what was not checked")[..] else {
        panic!("{output}")
    };
    let [asked, rest] = [asked, rest].map(|unchecked| unchecked["message"].as_str().expect("a message"));
    let number = |text: &str| text.split(' ').next_back().and_then(|number| number.parse().ok());
    // At most five of the dry-run objects are named.
    let more = asked.split_once(" more: ").and_then(|(before, _)| number(before)).unwrap_or(0);
    let unasked = rest.strip_suffix(" objects were not sent to the server").and_then(number).unwrap_or(0);
    assert_eq!(asked.matches("(manifests.yaml:").count() + more + unasked, 40, "{output}");
}

#[test]
fn the_check_is_skipped_for_a_folder() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.config_map("a", "b"));
    std::fs::create_dir(bed.folder.path().join("cluster")).unwrap();
    let output = bed
        .gantry(control_plane().kubeconfig("admin"), &["check", "-f", "manifests.yaml", "--target", "dir:cluster"])
        .args(CHECK)
        .args(["-o", "json"])
        .run();
    output.code(0);
    let check = &output.report()["checks"][0];
    assert_eq!(
        (check["status"].as_str(), check["message"].as_str()),
        (Some("skipped"), Some("only a running API server can do a dry run"))
    );
}
