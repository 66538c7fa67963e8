//! Configuration in the other two forms that users of kapp have: what `kapp deploy-config` prints, and a Config within
//! a ConfigMap.

use crate::support::{Bed, Output, closed_port, control_plane};
use serde_json::{Value, json};

fn deploy_config() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/kapp/deploy-config.yaml");
    std::fs::read_to_string(path).expect("the fixture")
}

fn object(bed: &Bed, api_version: &str, kind: &str, name: &str, rest: &Value) -> Value {
    let mut object = rest.clone();
    (object["apiVersion"], object["kind"]) = (api_version.into(), kind.into());
    (object["metadata"]["name"], object["metadata"]["namespace"]) = (name.into(), bed.names.namespace.as_str().into());
    object
}

fn write(bed: &Bed, objects: &[Value]) {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    bed.write("manifests.yaml", &texts.join("\n---\n"));
}

fn prepared() -> Bed {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed
}

fn deploy(bed: &Bed, flags: &[&str]) -> Output {
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", &bed.names.namespace, "--wait=false"];
    bed.gantry(control_plane().kubeconfig("admin"), &[&arguments, flags].concat()).run()
}

fn workload(bed: &Bed) -> Value {
    let labels = json!({"run": "web"});
    let from = json!([{"configMapRef": {"name": "settings"}}]);
    let containers = json!([{"name": "web", "image": "web:1", "envFrom": from}]);
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
    object(
        bed,
        "apps/v1",
        "Deployment",
        "web",
        &json!({"spec": {"selector": {"matchLabels": labels}, "template": template}}),
    )
}

#[test]
fn the_configuration_that_kapp_prints_is_accepted() {
    let bed = prepared();
    bed.write("kapp.yaml", &deploy_config());
    let account = || object(&bed, "v1", "ServiceAccount", "web", &json!({}));
    let service = object(&bed, "v1", "Service", "web", &json!({"spec": {"ports": [{"port": 80}]}}));
    let versioned = json!({"kapp.k14s.io/versioned": ""});
    let settings = |value: &str| {
        let rest = json!({"metadata": {"annotations": versioned}, "data": {"a": value}});
        object(&bed, "v1", "ConfigMap", "settings", &rest)
    };
    write(&bed, &[account(), service.clone(), settings("1"), workload(&bed)]);
    let output = deploy(&bed, &["-c", "kapp.yaml"]);
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     create    4 (1 ServiceAccount, 1 ConfigMap, 1 Service, 1 Deployment)
             create    serviceaccount/web -n NAME
             create    configmap/settings-ver-1 -n NAME
             create    service/web -n NAME
             create    deployment.apps/web -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed
    DeletionSafety            passed

    Deployed: 4 created
    ----- stderr
    notice: kapp.yaml:2:1: ignored in kapp's Config: diffAgainstLastAppliedFieldExclusionRules, ownershipLabelRules, labelScopingRules, templateRules (gantry reads only preflightRules, changeGroupBindings, changeRuleBindings, waitRules, rebaseRules, diffMaskRules, diffAgainstExistingFieldExclusionRules, additionalLabels from it)
    "#);
    assert_eq!(output.stderr.matches("notice: ").count(), 1, "{}", output.stderr);
    // As a controller does.
    let path = control_plane().path_of(&account());
    let token = json!({"secrets": [{"name": "web-token-x"}], "imagePullSecrets": [{"name": "web-dockercfg-x"}]});
    assert_eq!(control_plane().patch(&path, &token).0, 200);
    let live = || control_plane().get(&control_plane().path_of(&service)).1["spec"]["clusterIP"].clone();
    let ip = live();
    // The same as documents among the manifests, as kapp wants them, and references follow the new version.
    write(&bed, &[account(), service.clone(), settings("2"), workload(&bed)]);
    let output = deploy(&bed, &["-f", "kapp.yaml"]);
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     create    1 (1 ConfigMap)
             update    1 (1 Deployment)
             unchanged 2 (1 ServiceAccount, 1 Service)
             create    configmap/settings-ver-2 -n NAME
             update    deployment.apps/web -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed
    DeletionSafety            passed

    Deployed: 1 created, 1 updated, 2 unchanged
    ----- stderr
    notice: kapp.yaml:2:1: ignored in kapp's Config: diffAgainstLastAppliedFieldExclusionRules, ownershipLabelRules, labelScopingRules, templateRules (gantry reads only preflightRules, changeGroupBindings, changeRuleBindings, waitRules, rebaseRules, diffMaskRules, diffAgainstExistingFieldExclusionRules, additionalLabels from it)
    "#);
    let (_, account) = control_plane().get(&path);
    assert_eq!((&account["secrets"], &account["imagePullSecrets"]), (&token["secrets"], &token["imagePullSecrets"]));
    assert_eq!(live(), ip);
    let (_, web) = control_plane().get(&control_plane().path_of(&workload(&bed)));
    let template = &web["spec"]["template"];
    assert_eq!(template["spec"]["containers"][0]["envFrom"][0]["configMapRef"]["name"], "settings-ver-2");
    // No label of an app goes into it.
    assert_eq!(template["metadata"]["labels"], json!({"run": "web"}));
    insta::assert_snapshot!(deploy(&bed, &["-c", "kapp.yaml"]).shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     unchanged 4 (1 ServiceAccount, 1 ConfigMap, 1 Service, 1 Deployment)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed
    DeletionSafety            passed

    Nothing to do: 4 objects unchanged
    ----- stderr
    notice: kapp.yaml:2:1: ignored in kapp's Config: diffAgainstLastAppliedFieldExclusionRules, ownershipLabelRules, labelScopingRules, templateRules (gantry reads only preflightRules, changeGroupBindings, changeRuleBindings, waitRules, rebaseRules, diffMaskRules, diffAgainstExistingFieldExclusionRules, additionalLabels from it)
    "#);
}

#[test]
fn a_rule_that_kapp_does_not_have_itself_still_ends_the_run() {
    let bed = Bed::new();
    write(
        &bed,
        &[object(&bed, "v1", "ConfigMap", "a", &json!({"metadata": {"annotations": {"kapp.k14s.io/versioned": ""}}}))],
    );
    let nowhere = || closed_port(bed.folder.path());
    let changed = |from: &str, to: &str| {
        let config = deploy_config();
        assert!(config.contains(from), "{from}");
        bed.write("kapp.yaml", &config.replace(from, to));
    };
    changed(
        "        - name: #@ tokens[0]\n",
        "        - name: #@ tokens[0]\n        automountServiceAccountToken: false\n",
    );
    let output = bed.deploy(nowhere(), &["-c", "kapp.yaml"]).run();
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 2
    ----- stderr
    error: rebaseRules[11].ytt: gantry does not run ytt overlays
     --> kapp.yaml:39:3
      = help: use path and type: copy to keep the live value of a field
    "#);
    changed(
        "  - apiVersionKindMatcher: {apiVersion: v1, kind: ServiceAccount}\n- paths",
        "  - allMatcher: {}\n- paths",
    );
    insta::assert_snapshot!(bed.deploy(nowhere(), &["-c", "kapp.yaml"]).run().shown(), @r#"
    exit code 2
    ----- stderr
    error: rebaseRules[11].ytt: gantry does not run ytt overlays
     --> kapp.yaml:39:3
      = help: use path and type: copy to keep the live value of a field
    "#);

    let bed = prepared();
    write(
        &bed,
        &[object(&bed, "v1", "ConfigMap", "a", &json!({"metadata": {"annotations": {"kapp.k14s.io/versioned": ""}}}))],
    );
    bed.write("kapp.yaml", &deploy_config().replace("volumes, {allIndexes: true}, configMap]", "config]"));
    insta::assert_snapshot!(deploy(&bed, &["-c", "kapp.yaml"]).shown(), @r#"
    exit code 3
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     create    1 (1 ConfigMap)
             create    configmap/a-ver-1 -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed
    DeletionSafety            passed

    error: templateRules: gantry follows only its own list of references to versioned objects, and configmap/a-ver-1 -n NAME is one
     --> kapp.yaml:133:1
      = help: remove the rules if Pods, workloads and CronJobs alone refer to it, or annotate the others
              with kapp.k14s.io/versioned-explicit-ref

    Blocked: 1 error. Nothing was written.
    ----- stderr
    notice: kapp.yaml:2:1: ignored in kapp's Config: diffAgainstLastAppliedFieldExclusionRules, ownershipLabelRules, labelScopingRules, templateRules (gantry reads only preflightRules, changeGroupBindings, changeRuleBindings, waitRules, rebaseRules, diffMaskRules, diffAgainstExistingFieldExclusionRules, additionalLabels from it)
    "#);
}

/// A ConfigMap with a Config in it, as a block of text.
fn holder(bed: &Bed, config: &str) -> String {
    let lines: Vec<String> = config.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kapp-config\n  namespace: {}\n  labels:\n    \
         kapp.k14s.io/config: \"\"\ndata:\n  config.yml: |\n{}",
        bed.names.namespace,
        lines.concat()
    )
}

const REPLICAS: &str = "apiVersion: kapp.k14s.io/v1alpha1
kind: Config
rebaseRules:
- path: [spec, replicas]
  type: copy
  sources: [existing, new]
  resourceMatchers:
  - apiVersionKindMatcher: {apiVersion: apps/v1, kind: Deployment}
";

#[test]
fn a_config_within_a_config_map_is_used_and_the_config_map_is_deployed() {
    let bed = prepared();
    let mut web = workload(&bed);
    web["spec"]["replicas"] = 2.into();
    let path = control_plane().path_of(&web);
    let both =
        |config: &str, web: &Value| bed.write("manifests.yaml", &format!("{}---\n{web}\n", holder(&bed, config)));
    both(REPLICAS, &web);
    insta::assert_snapshot!(deploy(&bed, &[]).shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     create    2 (1 ConfigMap, 1 Deployment)
             create    configmap/kapp-config -n NAME
             create    deployment.apps/web -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed
    DeletionSafety            passed

    Deployed: 2 created
    "#);
    assert_eq!(control_plane().get(&bed.config_map_path("kapp-config")).1["data"]["config.yml"], REPLICAS);
    assert_eq!(control_plane().patch(&path, &json!({"spec": {"replicas": 5}})).0, 200);
    deploy(&bed, &[]).code(0);
    assert_eq!(control_plane().get(&path).1["spec"]["replicas"], 5);
    // Also as a member of a List, where the text is quoted.
    let config = object(
        &bed,
        "v1",
        "ConfigMap",
        "kapp-config",
        &json!({"metadata": {"labels": {"kapp.k14s.io/config": "yes"}}, "data": {"config.yml": REPLICAS}}),
    );
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [web, config]});
    bed.write("manifests.yaml", &list.to_string());
    deploy(&bed, &[]).code(0);
    assert_eq!(control_plane().get(&path).1["spec"]["replicas"], 5);
    // Without the label it is any ConfigMap.
    both(REPLICAS, &web);
    let text = std::fs::read_to_string(bed.folder.path().join("manifests.yaml")).expect("the manifests");
    bed.write("manifests.yaml", &text.replace("kapp.k14s.io/config", "example.com/config"));
    deploy(&bed, &["--force-conflicts"]).code(0);
    assert_eq!(control_plane().get(&path).1["spec"]["replicas"], 2);
}

#[test]
fn problems_of_a_config_within_a_config_map_have_their_lines() {
    let bed = Bed::new();
    let run = |text: &str| {
        bed.write("manifests.yaml", text);
        bed.deploy(closed_port(bed.folder.path()), &[]).run()
    };
    let text = holder(&bed, REPLICAS);
    let output = run(&text.replace("type: copy", "type: take"));
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 2
    ----- stderr
    error: rebaseRules[0].type: "take" is not one of copy, remove
      --> manifests.yaml:14:13
    13 |     - path: [spec, replicas]
    14 |       type: take
       |             ^^^^
    "#);
    insta::assert_snapshot!(run(&text.replace("kind: Config\n", "kind: Confid\n")).shown(), @r#"
    exit code 2
    ----- stderr
    error: unknown kind "Confid" in kapp.k14s.io/v1alpha1
      --> manifests.yaml:11:11
     9 |   config.yml: |
    10 |     apiVersion: kapp.k14s.io/v1alpha1
    11 |     kind: Confid
       |           ^^^^^^
       = help: did you mean "Config"?
    "#);
    let quoted = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.yml": REPLICAS.replace("copy", "take")},
        "metadata": {"name": "a", "labels": {"kapp.k14s.io/config": ""}}});
    insta::assert_snapshot!(run(&quoted.to_string()).shown(), @r#"
    exit code 2
    ----- stderr
    error: rebaseRules[0].type: "take" is not one of copy, remove
     --> manifests.yaml:1:60
    1 | ...yml":"apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\nrebaseRules:\n- path: [spec, replic...
      |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
    let overlay = "- ytt: {overlayContractV1: {overlay.yml: x}}\n  resourceMatchers: [{allMatcher: {}}]\n";
    insta::assert_snapshot!(run(&holder(&bed, &format!("{REPLICAS}{overlay}"))).shown(), @r#"
    exit code 2
    ----- stderr
    error: rebaseRules[1].ytt: gantry does not run ytt overlays
      --> manifests.yaml:18:7
     9 |   config.yml: |
    ...
    18 |     - ytt: {overlayContractV1: {overlay.yml: x}}
       |       ^^^
       = help: use path and type: copy to keep the live value of a field
    "#);
    // What a document among the manifests cannot set, this cannot either.
    let output = run(&holder(&bed, "apiVersion: gantry.dev/v1alpha1\nkind: Config\nforceConflicts: true\n"));
    insta::assert_snapshot!(output.shown(), @r#"
    exit code 2
    ----- stderr
    error: a Config document among the manifests cannot set "forceConflicts"
      --> manifests.yaml:12:5
     9 |   config.yml: |
    ...
    12 |     forceConflicts: true
       |     ^^^^^^^^^^^^^^
       = help: manifests may not choose where and how they are deployed; set this in a config file
               (gantry.yaml, or -c FILE)
    "#);
    insta::assert_snapshot!(run(&text.replace("config.yml", "config.yaml")).shown(), @r#"
    exit code 1
    ----- stderr
    error: the label kapp.k14s.io/config requires a Config in data at "config.yml", but there is none
     --> manifests.yaml:1:1
    1 | apiVersion: v1
      | ^^^^^^^^^^
      = help: write the Config as a text at that key, or remove the label
    "#);
    insta::assert_snapshot!(run(&text.replace("kind: ConfigMap", "kind: Secret")).shown(), @r#"
    exit code 1
    ----- stderr
    error: the label kapp.k14s.io/config is for ConfigMaps, but this is a Secret
     --> manifests.yaml:1:1
      = help: remove the label
    "#);
}
