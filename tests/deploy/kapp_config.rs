//! The parts of kapp's Config that a deploy applies.

use crate::support::{Bed, Proxy, Recorded, closed_port, control_plane};
use serde_json::{Value, json};

const GROUP: &str = "kapp.k14s.io/change-group";
const RULE: &str = "kapp.k14s.io/change-rule";

fn config_map(bed: &Bed, name: &str, annotations: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": bed.names.namespace, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// Writes each object on its own line, with separators between them.
fn write(bed: &Bed, objects: &[Value]) {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    bed.write("manifests.yaml", &texts.join("\n---\n"));
}

/// `body` from line 3.
fn config(bed: &Bed, body: &str) {
    bed.write("kapp.yaml", &format!("apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\n{body}"));
}

fn prepared() -> Bed {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed
}

/// The names of the ConfigMaps in the order in which they were written or deleted.
fn written(proxy: &Proxy, method: &str) -> Vec<String> {
    let is_one = |request: &Recorded| {
        request.method == method
            && !request.query.contains("dryRun")
            && request.path.contains("configmaps")
            && !request.path.contains(".gantry")
    };
    let name = |request: Recorded| request.path.rsplit('/').next().unwrap_or_default().to_owned();
    proxy.requests().into_iter().filter(is_one).map(name).collect()
}

#[test]
fn bindings_order_all_objects_that_their_matchers_fit() {
    let bed = prepared();
    let proxy = Proxy::start(control_plane());
    let namespace = &bed.names.namespace;
    write(
        &bed,
        &[
            config_map(&bed, "a-last", &json!({"late": "yes"})),
            config_map(&bed, "b-middle", &json!({GROUP: "middle"})),
            config_map(&bed, "c-first", &json!({"early": "yes"})),
        ],
    );
    config(
        &bed,
        &format!(
            "changeGroupBindings:
- name: of-{{namespace}}
  resourceMatchers:
  - andMatcher:
      matchers:
      - hasAnnotationMatcher: {{keys: [early]}}
      - hasNamespaceMatcher: {{names: [{namespace}]}}
changeRuleBindings:
- rules:
  - upsert after upserting middle
  resourceMatchers:
  - hasAnnotationMatcher: {{keys: [late]}}
- rules:
  - upsert after upserting of-{{namespace}}
  resourceMatchers:
  - kindNamespaceNameMatcher: {{kind: ConfigMap, namespace: {namespace}, name: b-middle}}
# Would close a cycle.
- rules:
  - upsert after upserting middle
  ignoreIfCyclical: true
  resourceMatchers:
  - allMatcher: {{}}
"
        ),
    );
    bed.deploy(proxy.kubeconfig("admin"), &["-c", "kapp.yaml"]).run().code(0);
    assert_eq!(written(&proxy, "PATCH"), ["c-first", "b-middle", "a-last"]);
}

#[test]
fn bindings_that_cannot_be_kept_or_read_end_the_run_before_any_request() {
    let bed = Bed::new();
    let nowhere = || closed_port(bed.folder.path());
    write(
        &bed,
        &[
            config_map(&bed, "a", &json!({GROUP: "a"})),
            config_map(&bed, "b", &json!({GROUP: "b", RULE: "upsert after upserting a"})),
        ],
    );
    let rule = "changeRuleBindings:
- rules:
  - upsert after upserting b
  resourceMatchers:
  - kindNamespaceNameMatcher: {kind: ConfigMap, namespace: NS, name: a}
"
    .replace("NS", &bed.names.namespace);
    config(&bed, &rule);
    let output = bed.deploy(nowhere(), &["-c", "kapp.yaml"]).run();
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 2
    ----- stderr
    error: the order of the objects has a cycle: configmap/b -n NAME comes after configmap/a -n NAME (manifests.yaml:3), configmap/a -n NAME comes after configmap/b -n NAME (kapp.yaml:5)
     --> manifests.yaml:3:136
    3 | ..."kapp.k14s.io/change-group":"b","kapp.k14s.io/change-rule":"upsert after upserting a"}}}
      |                                    ^^^^^^^^^^^^^^^^^^^^^^^^^^
      = help: change or remove one of these rules
    "#);
    let namespace = &bed.names.namespace;
    output.stderr_contains(&format!("configmap/a -n {namespace} comes after configmap/b -n {namespace} (kapp.yaml:5)"));
    output.stderr_contains(&format!(
        "configmap/b -n {namespace} comes after configmap/a -n {namespace} (manifests.yaml:3)"
    ));

    config(&bed, &rule.replace("upserting b", "upserting {crd-kind}"));
    let output = bed.deploy(nowhere(), &["-c", "kapp.yaml"]).run();
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 2
    ----- stderr
    error: configmap/a -n NAME: changeRuleBindings: {crd-kind} has no value for this object
     --> kapp.yaml:5:5
    4 | - rules:
    5 |   - upsert after upserting {crd-kind}
      |     ^^^^^^
    "#);

    config(&bed, &rule.replace("kindNamespaceNameMatcher", "kindNameMatcher"));
    let output = bed.deploy(nowhere(), &["-c", "kapp.yaml"]).run();
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 2
    ----- stderr
    error: unknown key "changeRuleBindings[0].resourceMatchers[0].kindNameMatcher"
     --> kapp.yaml:7:5
    4 | - rules:
    ...
    7 |   - kindNameMatcher: {kind: ConfigMap, namespace: NAME, name: a}
      |     ^^^^^^^^^^^^^^^
      = help: did you mean "kindNamespaceNameMatcher"?
    "#);
}

#[test]
fn a_config_among_the_manifests_orders_deletions() {
    let bed = prepared();
    let proxy = Proxy::start(control_plane());
    let among = |objects: &[Value], flags: &[&str]| {
        write(&bed, objects);
        let arguments = ["deploy", "-f", "manifests.yaml", "-f", "kapp.yaml", "-a", "shop", "-n", &bed.names.namespace];
        bed.gantry(proxy.kubeconfig("admin"), &[&arguments, flags].concat()).run()
    };
    config(
        &bed,
        "changeGroupBindings:
- name: deleted/{name}
  resourceMatchers:
  - allMatcher: {}
changeRuleBindings:
- rules:
  - delete after deleting deleted/c
  resourceMatchers:
  - hasAnnotationMatcher: {keys: [late]}
",
    );
    let (kept, late) = (config_map(&bed, "kept", &json!({})), json!({"late": "yes"}));
    let leaving =
        [kept.clone(), config_map(&bed, "a", &late), config_map(&bed, "b", &late), config_map(&bed, "c", &json!({}))];
    among(&leaving, &[]).code(0);
    insta::assert_snapshot!(among(&[kept], &["--prune=yes", "--prune-max=9"]).shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (http://127.0.0.1:PORT)
    Plan     delete    3 (3 ConfigMap)
             unchanged 1 (1 ConfigMap)
             delete    configmap/a -n NAME
             delete    configmap/b -n NAME
             delete    configmap/c -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed
    DeletionSafety            passed

    Deployed: 3 deleted, 1 unchanged
    "#);
    assert_eq!(written(&proxy, "DELETE")[0], "c");
}

/// A rebase rule for the replicas of Deployments.
fn replicas(sources: &str) -> String {
    format!(
        "rebaseRules:
- path: [spec, replicas]
  type: copy
  sources: [{sources}]
  resourceMatchers:
  - apiVersionKindMatcher: {{apiVersion: apps/v1, kind: Deployment}}
"
    )
}

fn deployment(bed: &Bed, spec: &Value) -> Value {
    let labels = json!({"run": "web"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}});
    let mut spec = spec.clone();
    (spec["selector"], spec["template"]) = (json!({"matchLabels": labels}), template);
    let metadata = json!({"name": "web", "namespace": bed.names.namespace});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
}

#[test]
fn a_field_that_the_cluster_decides_about_keeps_its_live_value() {
    let bed = prepared();
    let deploy = |flags: &[&str]| bed.deploy(control_plane().kubeconfig("admin"), flags).run();
    let path = control_plane().path_of(&deployment(&bed, &json!({})));
    let live = || control_plane().get(&path).1["spec"]["replicas"].clone();
    // A new object is as in the manifest.
    config(&bed, &replicas("existing, new"));
    write(&bed, &[deployment(&bed, &json!({"replicas": 2}))]);
    deploy(&["-c", "kapp.yaml"]).code(0);
    assert_eq!(live(), 2);
    // A field that only gantry owns is not removed when the rule leaves it out.
    write(&bed, &[deployment(&bed, &json!({"replicas": 3}))]);
    insta::assert_snapshot!(deploy(&["-c", "kapp.yaml"]).shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     unchanged 1 (1 Deployment)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    "#);
    assert_eq!(live(), 2);
    config(&bed, &replicas("new, existing"));
    write(&bed, &[deployment(&bed, &json!({"paused": true}))]);
    deploy(&["-c", "kapp.yaml"]).code(0);
    assert_eq!(live(), 2, "the manifest has none");
    // Another manager scales it.
    assert_eq!(control_plane().patch(&path, &json!({"spec": {"replicas": 5}})).0, 200);
    write(&bed, &[deployment(&bed, &json!({"replicas": 3, "paused": false}))]);
    insta::assert_snapshot!(deploy(&[]).shown(), @r#"
    exit code 3
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     update    1 (1 Deployment)
             update    deployment.apps/web -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    error: field manager "unknown" owns fields that the manifests change in 1 object:
     --> manifests.yaml:1
      | deployment.apps/web -n NAME: .spec.replicas
      = help: remove these fields from the manifests to leave them to "unknown", or take ownership with
              --force-conflicts

    Blocked: 1 error. Nothing was written.
    "#);
    config(&bed, &replicas("existing"));
    deploy(&["-c", "kapp.yaml"]).code(0);
    let (_, object) = control_plane().get(&path);
    assert_eq!((&object["spec"]["replicas"], &object["spec"]["paused"]), (&json!(5), &Value::Null));
    insta::assert_snapshot!(deploy(&["-c", "kapp.yaml"]).shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     unchanged 1 (1 Deployment)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    "#);
    config(&bed, &replicas("existing").replace("copy", "remove").replace("  sources: [existing]\n", ""));
    insta::assert_snapshot!(deploy(&["-c", "kapp.yaml"]).shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     unchanged 1 (1 Deployment)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    "#);
    assert_eq!(live(), 5);
}

#[test]
fn a_regex_in_a_path_selects_every_matching_field() {
    let bed = prepared();
    let deploy = |flags: &[&str]| bed.deploy(control_plane().kubeconfig("admin"), flags).run();
    let map = |annotations: Value| config_map(&bed, "a", &annotations);
    let path = bed.config_map_path("a");
    let live = || control_plane().get(&path).1["metadata"]["annotations"].clone();
    let rule = |what: &str| {
        let matchers = "[{apiVersionKindMatcher: {apiVersion: v1, kind: ConfigMap}}]";
        config(
            &bed,
            &format!(
                "rebaseRules:\n- path: [metadata, annotations, {{regex: ^foo}}]\n  {what}\n  resourceMatchers: {matchers}\n"
            ),
        );
    };
    write(&bed, &[map(json!({"foo1": "1", "foo2": "2", "bar": "3"}))]);
    deploy(&[]).code(0);
    // Fields that only gantry owns.
    rule("type: copy\n  sources: [new, existing]");
    write(&bed, &[map(json!({"foo2": "new"}))]);
    deploy(&["-c", "kapp.yaml"]).code(0);
    assert_eq!(live(), json!({"foo1": "1", "foo2": "new"}));
    // Fields that another manager owns: without the rule, a conflict.
    assert_eq!(
        control_plane().patch(&path, &json!({"metadata": {"annotations": {"foo2": "theirs", "foo3": "3"}}})).0,
        200
    );
    write(&bed, &[map(json!({"foo2": "ours"}))]);
    insta::assert_snapshot!(deploy(&[]).shown(), @r#"
    exit code 3
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     update    1 (1 ConfigMap)
             update    configmap/a -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    error: field manager "unknown" owns fields that the manifests change in 1 object:
     --> manifests.yaml:1
      | configmap/a -n NAME: .metadata.annotations.foo2
      = help: remove these fields from the manifests to leave them to "unknown", or take ownership with
              --force-conflicts

    Blocked: 1 error. Nothing was written.
    "#);
    rule("type: copy\n  sources: [existing, new]");
    insta::assert_snapshot!(deploy(&["-c", "kapp.yaml"]).shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     unchanged 1 (1 ConfigMap)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    "#);
    assert_eq!(live(), json!({"foo1": "1", "foo2": "theirs", "foo3": "3"}));
    rule("type: remove");
    write(&bed, &[map(json!({"foo9": "9", "bar": "3"}))]);
    deploy(&["-c", "kapp.yaml"]).code(0);
    assert_eq!(live(), json!({"bar": "3", "foo2": "theirs", "foo3": "3"}));
    // In diffs.
    config(
        &bed,
        "diffMaskRules:\n- path: [metadata, annotations, {regex: 9$}]\n  resourceMatchers: [{allMatcher: {}}]\n",
    );
    write(&bed, &[map(json!({"foo9": "masked-value", "bar": "shown-value"}))]);
    let output = deploy(&["-c", "kapp.yaml", "--diff"]);
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)

    update configmap/a -n NAME  (manifests.yaml:1)
      metadata.annotations:
    -   bar: "3"
    +   bar: shown-value
    +   foo9: "[hidden 1]"

    Plan     update    1 (1 ConfigMap)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Deployed: 1 updated
    "#);
    config(&bed, "rebaseRules:\n- paths: [[a, {regex: '['}]]\n  type: remove\n  resourceMatchers: []\n");
    insta::assert_snapshot!(deploy(&["-c", "kapp.yaml"]).shown(), @r#"
    exit code 2
    ----- stderr
    error: rebaseRules[0].paths[0][1].regex: "[" is not a regular expression: unterminated character class
     --> kapp.yaml:4:23
    4 | - paths: [[a, {regex: '['}]]
      |                       ^^^
    "#);
}

#[test]
fn keys_in_another_case_count_as_in_kapp() {
    let bed = prepared();
    let map = |data: Value| {
        let mut map = config_map(&bed, "a", &json!({}));
        map["data"] = data;
        map
    };
    let deploy = || bed.deploy(control_plane().kubeconfig("admin"), &["-c", "kapp.yaml"]).run();
    let path = bed.config_map_path("a");
    write(&bed, &[map(json!({"keep": "first", "other": "1"}))]);
    config(
        &bed,
        "RebaseRules:
- Paths: [[data, {Regex: ^keep}]]
  Type: copy
  SOURCES: [existing, new]
  ResourceMatchers:
  - ApiVersionKindMatcher: {APIVersion: v1, Kind: ConfigMap}
additionallabels: {Team: shop}
",
    );
    deploy().code(0);
    write(&bed, &[map(json!({"keep": "second", "other": "2"}))]);
    deploy().code(0).contains_nowhere("ignored in kapp's Config");
    let (_, live) = control_plane().get(&path);
    assert_eq!(
        (&live["data"], &live["metadata"]["labels"]),
        (&json!({"keep": "first", "other": "2"}), &json!({"Team": "shop"}))
    );
    config(&bed, "rebaseRules: []\nRebaseRules: []\n");
    insta::assert_snapshot!(deploy().shown(), @r#"
    exit code 2
    ----- stderr
    error: the key "rebaseRules" is written twice
     --> kapp.yaml:4:1
    4 | RebaseRules: []
      | ^^^^^^^^^^^
      = help: first defined at kapp.yaml:3:1; keep one of them
    "#);
}

#[test]
fn values_that_secretgen_fills_in_stay() {
    let bed = prepared();
    let secret = |annotations: Value| {
        let mut secret = config_map(&bed, "pull", &annotations);
        (secret["kind"], secret["type"]) = ("Secret".into(), "kubernetes.io/dockerconfigjson".into());
        secret["data"] = json!({".dockerconfigjson": "e30K"});
        secret
    };
    const FILLED_IN: &str = "secretgen.carvel.dev/image-pull-secret";
    const DISABLED: &str = "kapp.k14s.io/disable-default-secretgen-rebase-rules";
    let deploy = || bed.deploy(control_plane().kubeconfig("admin"), &[]).run();
    write(&bed, &[secret(json!({FILLED_IN: ""}))]);
    deploy().code(0);
    // As secretgen-controller does.
    let path = control_plane().path_of(&secret(json!({})));
    let filled_in = json!({"data": {".dockerconfigjson": "eyJhdXRocyI6e319"},
        "metadata": {"annotations": {"secretgen.carvel.dev/status": "{}"}}});
    assert_eq!(control_plane().patch(&path, &filled_in).0, 200);
    write(&bed, &[secret(json!({FILLED_IN: "", "other": "new"}))]);
    insta::assert_snapshot!(deploy().shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     update    1 (1 Secret)
             update    secret/pull -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Deployed: 1 updated
    "#);
    insta::assert_snapshot!(deploy().shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     unchanged 1 (1 Secret)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    "#);
    let (_, live) = control_plane().get(&path);
    let annotations = json!({FILLED_IN: "", "other": "new", "secretgen.carvel.dev/status": "{}"});
    assert_eq!((&live["data"], &live["metadata"]["annotations"]), (&filled_in["data"], &annotations));
    write(&bed, &[secret(json!({FILLED_IN: "", DISABLED: ""}))]);
    insta::assert_snapshot!(deploy().shown(), @r#"
    exit code 3
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     update    1 (1 Secret)
             update    secret/pull -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    error: field manager "unknown" owns fields that the manifests change in 1 object:
     --> manifests.yaml:1
      | secret/pull -n NAME: .data..dockerconfigjson
      = help: remove these fields from the manifests to leave them to "unknown", or take ownership with
              --force-conflicts

    Blocked: 1 error. Nothing was written.
    "#);
    // The status, even if the manifest has one.
    write(&bed, &[secret(json!({FILLED_IN: "", "other": "new", "secretgen.carvel.dev/status": "old"}))]);
    insta::assert_snapshot!(deploy().shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     unchanged 1 (1 Secret)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    "#);
    assert_eq!(control_plane().get(&path).1["metadata"]["annotations"], annotations);
    // Secrets that secretgen-controller does not fill in are the manifest's.
    write(&bed, &[secret(json!({"other": "new"}))]);
    insta::assert_snapshot!(deploy().shown(), @r#"
    exit code 3
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     update    1 (1 Secret)
             update    secret/pull -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    error: field manager "unknown" owns fields that the manifests change in 1 object:
     --> manifests.yaml:1
      | secret/pull -n NAME: .data..dockerconfigjson
      = help: remove these fields from the manifests to leave them to "unknown", or take ownership with
              --force-conflicts

    Blocked: 1 error. Nothing was written.
    "#);
}

#[test]
fn an_overlay_of_ytt_ends_the_run_before_any_request() {
    let bed = Bed::new();
    write(&bed, &[config_map(&bed, "a", &json!({}))]);
    config(
        &bed,
        "rebaseRules:\n- ytt: {overlayContractV1: {overlay.yml: x}}\n  resourceMatchers: [{allMatcher: {}}]\n",
    );
    let output = bed.deploy(closed_port(bed.folder.path()), &["-c", "kapp.yaml"]).run();
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 2
    ----- stderr
    error: rebaseRules[0].ytt: gantry does not run ytt overlays
     --> kapp.yaml:4:3
    4 | - ytt: {overlayContractV1: {overlay.yml: x}}
      |   ^^^
      = help: use path and type: copy to keep the live value of a field
    "#);
}

#[test]
fn the_rules_of_an_aggregated_cluster_role_are_left_to_the_cluster() {
    let bed = Bed::new();
    let role = |label: &str| {
        let selector = json!({"clusterRoleSelectors": [{"matchLabels": {"aggregate": bed.names.namespace}}]});
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": bed.names.namespace, "labels": {"is": label}},
            "aggregationRule": selector, "rules": []})
    };
    let deploy = || bed.deploy(control_plane().kubeconfig("admin"), &[]).run();
    write(&bed, &[role("first")]);
    deploy().code(0);
    // Like the controller.
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let path = control_plane().path_of(&role(""));
    let body = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": bed.names.namespace}, "rules": rules});
    let (code, answer) = control_plane().server_side_apply(&path, "clusterrole-aggregation-controller", &body);
    assert_eq!(code, 200, "{answer}");
    insta::assert_snapshot!(deploy().shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     unchanged 1 (1 ClusterRole)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    "#);
    write(&bed, &[role("second")]);
    deploy().code(0);
    let (_, live) = control_plane().get(&path);
    assert_eq!((&live["metadata"]["labels"]["is"], &live["rules"]), (&json!("second"), &rules));
    assert_eq!(control_plane().delete(&path).0, 200);
}

#[test]
fn diffs_hide_what_the_rules_name_and_every_object_gets_the_labels() {
    let bed = prepared();
    let map = |data: Value| {
        let mut map = config_map(&bed, "a", &json!({}));
        map["data"] = data;
        map
    };
    write(&bed, &[map(json!({"password": "first-secret", "noise": "first-noise", "plain": "first-plain"}))]);
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    write(&bed, &[map(json!({"password": "other-secret", "noise": "other-noise", "plain": "other-plain"}))]);
    config(
        &bed,
        "diffMaskRules:
- path: [data, password]
  resourceMatchers:
  - kindNamespaceNameMatcher: {kind: ConfigMap, namespace: NS, name: a}
diffAgainstExistingFieldExclusionRules:
- path: [data, noise]
  resourceMatchers:
  - allMatcher: {}
additionalLabels:
  department: marketing
"
        .replace("NS", &bed.names.namespace)
        .as_str(),
    );
    let arguments = ["diff", "-f", "manifests.yaml", "-c", "kapp.yaml"];
    let output = bed.gantry(control_plane().kubeconfig("admin"), &arguments).run();
    output.code(0).contains_nowhere("secret").contains_nowhere("noise");
    output.stdout_contains("-   password: \"[hidden 1]\"").stdout_contains("+   password: \"[hidden 2]\"");
    output.stdout_contains("-   plain: first-plain").stdout_contains("+     department: marketing");
    bed.deploy(control_plane().kubeconfig("admin"), &["-c", "kapp.yaml"]).run().code(0);
    let (_, live) = control_plane().get(&bed.config_map_path("a"));
    assert_eq!(
        (&live["data"]["noise"], &live["metadata"]["labels"]["department"]),
        (&json!("other-noise"), &json!("marketing"))
    );
}

#[test]
fn rules_about_versioned_objects_block_only_if_there_is_one() {
    let bed = prepared();
    config(&bed, "templateRules:\n- resourceMatchers: [{allMatcher: {}}]\n");
    let deploy = |flags: &[&str]| {
        let arguments = ["deploy", "-f", "manifests.yaml", "-c", "kapp.yaml", "-a", "shop", "-n", &bed.names.namespace];
        bed.gantry(control_plane().kubeconfig("admin"), &[&arguments, flags].concat()).run()
    };
    write(&bed, &[config_map(&bed, "plain", &json!({}))]);
    insta::assert_snapshot!(deploy(&[]).shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     create    1 (1 ConfigMap)
             create    configmap/plain -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed
    DeletionSafety            passed

    Deployed: 1 created
    ----- stderr
    notice: kapp.yaml:1:1: ignored in kapp's Config: templateRules (gantry reads only preflightRules, changeGroupBindings, changeRuleBindings, waitRules, rebaseRules, diffMaskRules, diffAgainstExistingFieldExclusionRules, additionalLabels from it)
    "#);
    write(
        &bed,
        &[config_map(&bed, "plain", &json!({})), config_map(&bed, "v", &json!({"kapp.k14s.io/versioned": ""}))],
    );
    let output = deploy(&[]);
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 3
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     create    1 (1 ConfigMap)
             unchanged 1 (1 ConfigMap)
             create    configmap/v-ver-1 -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed
    DeletionSafety            passed

    error: templateRules: gantry follows only its own list of references to versioned objects, and configmap/v-ver-1 -n NAME is one
     --> kapp.yaml:3:1
      = help: remove the rules if Pods, workloads and CronJobs alone refer to it, or annotate the others
              with kapp.k14s.io/versioned-explicit-ref

    Blocked: 1 error. Nothing was written.
    ----- stderr
    notice: kapp.yaml:1:1: ignored in kapp's Config: templateRules (gantry reads only preflightRules, changeGroupBindings, changeRuleBindings, waitRules, rebaseRules, diffMaskRules, diffAgainstExistingFieldExclusionRules, additionalLabels from it)
    "#);
}
