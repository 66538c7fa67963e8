//! `waitRules` of the configuration, with custom resources like kapp-controller's. The tests act as the controller.

use crate::support::{Bed, Gantry, closed_port, control_plane, eventually};
use serde_json::{Value, json};

/// The CRDs of App and PackageInstall, with the relevant parts, in a group of the test.
const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: PLURAL, singular: SINGULAR, kind: KIND, listKind: KINDList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties:
              observedGeneration: {type: integer, format: int64}
              friendlyDescription: {type: string}
              usefulErrorMessage: {type: string}
              conditions:
                type: array
                items:
                  type: object
                  required: [type, status]
                  properties:
                    type: {type: string}
                    status: {type: string}
                    reason: {type: string}
                    message: {type: string}
";

/// kapp's wait rules for both, as a Config.
const RULES: &str = "waitRules:
- supportsObservedGeneration: true
  conditionMatchers:
  - {type: ReconcileFailed, status: \"True\", failure: true}
  - {type: DeleteFailed, status: \"True\", failure: true}
  - {type: ReconcileSucceeded, status: \"True\", success: true}
  - {type: Reconciling, status: \"True\", unblockChanges: true}
  resourceMatchers:
  - apiVersionKindMatcher: {apiVersion: GROUP/v1alpha1, kind: App}
  - apiVersionKindMatcher: {apiVersion: GROUP/v1alpha1, kind: PackageInstall}
";

struct Stage {
    bed: Bed,
}

impl Stage {
    fn new() -> Self {
        let stage = Stage { bed: Bed::with_namespace() };
        for (kind, plural, singular) in
            [("App", "apps", "app"), ("PackageInstall", "packageinstalls", "packageinstall")]
        {
            let crd = CRD.replace("PLURAL", plural).replace("SINGULAR", singular).replace("KIND", kind);
            control_plane().apply_yaml(&stage.of_group(&crd));
        }
        stage
    }

    fn of_group(&self, text: &str) -> String {
        text.replace("GROUP", &self.bed.names.group)
    }

    fn config(&self, body: &str) {
        let body = self.of_group(body);
        self.bed.write("kapp.yaml", &format!("apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\n{body}"));
    }

    /// With its own change group.
    fn custom_resource(&self, kind: &str, name: &str) -> Value {
        let annotations = json!({"kapp.k14s.io/change-group": name});
        let metadata = json!({"name": name, "namespace": self.bed.names.namespace, "annotations": annotations});
        let api_version = format!("{}/v1alpha1", self.bed.names.group);
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"serviceAccountName": "sa"}})
    }

    /// A ConfigMap that is written after this group.
    fn after(&self, group: &str) -> Value {
        let annotations = json!({"kapp.k14s.io/change-rule": format!("upsert after upserting {group}")});
        let metadata = json!({"name": "later", "namespace": self.bed.names.namespace, "annotations": annotations});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    }

    fn write(&self, objects: &[&Value]) {
        self.bed.write_objects(objects.iter().copied());
    }

    fn run(&self, arguments: &[&str]) -> Gantry {
        let of_app = ["-a", "shop", "-n", &self.bed.names.namespace, "-c", "kapp.yaml"];
        self.bed.gantry(control_plane().kubeconfig("admin"), &[arguments, &of_app].concat())
    }

    fn deploy(&self, flags: &[&str]) -> Gantry {
        self.run(&[&["deploy", "-f", "manifests.yaml"], flags].concat())
    }

    fn later_exists(&self) -> bool {
        control_plane().get(&self.bed.config_map_path("later")).0 == 200
    }

    /// The readiness that `inspect` reports for the objects of this kind.
    fn readiness(&self, kind: &str) -> Value {
        let report: Value =
            serde_json::from_str(&self.run(&["inspect", "-o", "json"]).run().stdout).expect("the JSON of inspect");
        let objects = report["objects"].as_array().expect("objects");
        let found = objects.iter().find(|found| found["object"]["kind"] == kind).expect("the object");
        found["readiness"].clone()
    }

    fn status(&self, object: &Value, conditions: &[&str]) {
        status(object, 0, conditions);
    }
}

/// Writes true conditions to the status of an object once it exists; `behind` generations behind.
fn status(object: &Value, behind: i64, conditions: &[&str]) {
    let path = control_plane().path_of(object);
    let live = eventually("the object", || Some(control_plane().get(&path)).filter(|(code, _)| *code == 200)).1;
    let generation = live["metadata"]["generation"].as_i64().expect("a generation") - behind;
    let condition = |name: &&str| json!({"type": name, "status": "True", "reason": "ByTest", "message": "exit 1"});
    let conditions: Vec<Value> = conditions.iter().map(condition).collect();
    let status = json!({"observedGeneration": generation, "conditions": conditions});
    let (code, answer) = control_plane().patch(&format!("{path}/status"), &json!({ "status": status }));
    assert_eq!(code, 200, "{answer}");
}

#[test]
fn a_resource_is_ready_by_a_success_condition_and_unblocks_others_earlier() {
    let stage = Stage::new();
    let (app, install) = (stage.custom_resource("App", "simple"), stage.custom_resource("PackageInstall", "pkg"));
    stage.config(RULES);
    stage.write(&[&app, &install, &stage.after("simple")]);
    let running = stage.deploy(&[]).spawn();
    // For an older generation the condition does not count, and the other object is not written.
    status(&app, 1, &["ReconcileSucceeded"]);
    assert_eq!(stage.readiness("App")["reason"], "its controller has seen generation 0 of 1");
    assert!(!stage.later_exists());
    stage.status(&app, &["Reconciling"]);
    eventually("what waits for the App", || stage.later_exists().then_some(()));
    assert_eq!(stage.readiness("App")["state"], "inProgress");
    // By default custom resources come after ConfigMaps.
    stage.status(&install, &["ReconcileSucceeded"]);
    assert_eq!(stage.readiness("PackageInstall")["state"], "ready");
    let (_, record) = control_plane().get(&stage.bed.config_map_path("shop.gantry"));
    assert!(record["data"]["last"].as_str().expect("a last run").contains("started"), "the App is still awaited");
    stage.status(&app, &["ReconcileSucceeded"]);
    running.wait().code(0).stdout_contains("3 created");
    assert_eq!(stage.readiness("App")["state"], "ready");
}

#[test]
fn a_failure_condition_ends_the_deploy_before_what_waits_for_it() {
    let stage = Stage::new();
    let install = stage.custom_resource("PackageInstall", "pkg");
    stage.config(RULES);
    stage.write(&[&install, &stage.after("pkg")]);
    let running = stage.deploy(&[]).spawn();
    stage.status(&install, &["ReconcileSucceeded", "ReconcileFailed"]);
    let output = running.wait();
    output.code(5).stdout_contains("has failed: ReconcileFailed is True: ByTest: exit 1");
    output.stdout_contains("--> manifests.yaml:1");
    assert!(!stage.later_exists());
    assert_eq!(stage.readiness("PackageInstall")["state"], "failed");
    // Without the rules its conditions have no meaning.
    stage.config("");
    assert_eq!(stage.readiness("PackageInstall")["state"], "ready");
}

#[test]
fn the_first_rule_that_matches_an_object_decides_alone() {
    let stage = Stage::new();
    let (app, install) = (stage.custom_resource("App", "simple"), stage.custom_resource("PackageInstall", "pkg"));
    let rule = |condition: &str, outcome: &str, matcher: &str| {
        format!(
            "- conditionMatchers: [{{type: {condition}, status: \"True\", {outcome}: true}}]\n  resourceMatchers: [{matcher}]\n"
        )
    };
    let of_apps = rule("Done", "success", "{apiGroupKindMatcher: {apiGroup: GROUP, kind: App}}");
    let of_all = rule("Done", "failure", "{allMatcher: {}}");
    stage.config(&format!("waitRules:\n{of_apps}{of_all}"));
    stage.write(&[&app]);
    let running = stage.deploy(&[]).spawn();
    stage.status(&app, &["Done"]);
    running.wait().code(0).stdout_contains("1 created");
    // The other kind only matches the second rule.
    stage.write(&[&app, &install]);
    let running = stage.deploy(&[]).spawn();
    stage.status(&install, &["Done"]);
    running.wait().code(5).stdout_contains("packageinstall").stdout_contains("has failed: Done is True");
    assert_eq!(stage.readiness("App")["state"], "ready");
    // In the other order, the rule about everything decides.
    stage.config(&format!("waitRules:\n{of_all}{of_apps}"));
    assert_eq!(stage.readiness("App")["state"], "failed");
    // A condition of the second rule does not count, even if the first rule does not say anything about it.
    let of_apps = rule("Other", "success", "{apiGroupKindMatcher: {apiGroup: GROUP, kind: App}}");
    stage.config(&format!("waitRules:\n{of_apps}{of_all}"));
    assert_eq!(stage.readiness("App")["state"], "inProgress");
}

#[test]
fn the_reason_of_a_wait_rule_is_named_at_the_time_limit() {
    let stage = Stage::new();
    let app = stage.custom_resource("App", "simple");
    stage.config(RULES);
    stage.write(&[&app]);
    // No controller has observed it.
    let output = stage.deploy(&["--wait-timeout=1s"]).run();
    output.code(5).stdout_contains("is not ready after 1s: its controller has not seen it yet");
    // A failure that counts only after a time.
    stage.config(&RULES.replace("failure: true}", "failure: true, timeout: 1s}"));
    stage.status(&app, &["ReconcileFailed"]);
    let output = stage.deploy(&[]).run();
    output.code(5).stdout_contains("has failed: ReconcileFailed is True: ByTest: exit 1 (for 1s)");
}

#[test]
fn an_expression_says_when_a_resource_without_conditions_is_ready() {
    let stage = Stage::new();
    let app = stage.custom_resource("App", "simple");
    stage.config(
        "waitRules:
- cel:
    success: object.status.friendlyDescription == 'Reconcile succeeded'
    failure: object.status.usefulErrorMessage != ''
  resourceMatchers:
  - apiGroupKindMatcher: {apiGroup: GROUP, kind: App}
",
    );
    stage.write(&[&app]);
    let running = stage.deploy(&[]).spawn();
    let path = control_plane().path_of(&app);
    eventually("the object", || (control_plane().get(&path).0 == 200).then_some(()));
    assert_eq!(stage.readiness("App")["state"], "inProgress");
    let patch = json!({"status": {"friendlyDescription": "Reconcile succeeded"}});
    assert_eq!(control_plane().patch(&format!("{path}/status"), &patch).0, 200);
    running.wait().code(0);
    let patch = json!({"status": {"usefulErrorMessage": "exit 1"}});
    assert_eq!(control_plane().patch(&format!("{path}/status"), &patch).0, 200);
    assert_eq!(stage.readiness("App")["state"], "failed");
}

#[test]
fn a_function_of_ytt_ends_the_run_before_any_request() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.config_map("a", "b"));
    let config = "apiVersion: kapp.k14s.io/v1alpha1
kind: Config
waitRules:
- ytt:
    funcContractV1:
      resource.star: |
        def is_done(resource):
          return {}
        end
  resourceMatchers:
  - allMatcher: {}
";
    bed.write("kapp.yaml", config);
    let output = bed.deploy(closed_port(bed.folder.path()), &["-c", "kapp.yaml"]).run();
    output.code(2).stderr_contains("waitRules[0].ytt: gantry does not run ytt functions");
    output.stderr_contains("--> kapp.yaml:4:3");
}
