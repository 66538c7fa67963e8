//! kapp-controller's App, PackageInstall and PackageRepository, which gantry waits for without a configuration. Their
//! CRDs have the groups and the status of the real ones. The tests act as kapp-controller: as a user of their own, with
//! server-side apply of the status.

use std::sync::OnceLock;

use crate::support::{Api, CrdBuilder, Gantry, control_plane, eventually};
use crate::waiting::Stage;
use serde_json::{Value, json};

const CONTROLLER: &str = "kapp-controller";

/// Group, kind and plural.
const KINDS: [(&str, &str, &str); 3] = [
    ("kappctrl.k14s.io", "App", "apps"),
    ("packaging.carvel.dev", "PackageInstall", "packageinstalls"),
    ("packaging.carvel.dev", "PackageRepository", "packagerepositories"),
];

/// The relevant parts of the CRDs.
fn crd((group, kind, plural): (&str, &str, &str)) -> Value {
    let text = json!({"type": "string"});
    let condition = json!({"type": "object", "required": ["type", "status"],
        "properties": {"type": text, "status": text, "reason": text, "message": text}});
    let status = json!({"type": "object", "properties": {
        "observedGeneration": {"type": "integer", "format": "int64"},
        "friendlyDescription": text,
        "usefulErrorMessage": text,
        "conditions": {"type": "array", "items": condition}}});
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": status}});
    CrdBuilder::new(group, kind).plural(plural).version("v1alpha1", schema).status_subresource().build()
}

/// The API as kapp-controller's user. The CRDs, which all tests share, are there.
fn controller() -> &'static Api {
    static API: OnceLock<Api> = OnceLock::new();
    API.get_or_init(|| {
        KINDS.iter().for_each(|kind| drop(control_plane().apply_yaml(&crd(*kind).to_string())));
        let rule = |group: &str| json!({"apiGroups": [group], "resources": ["*"], "verbs": ["get", "patch", "update"]});
        let user = control_plane().user(&json!([rule(KINDS[0].0), rule(KINDS[1].0)]));
        control_plane().api_as(&user)
    })
}

/// Creates the CRDs, which all tests share.
pub fn ensure_crds() {
    controller();
}

struct Packages(Stage);

impl Packages {
    fn new() -> Self {
        controller();
        Packages(Stage::new())
    }

    /// In a change group of its own name.
    fn object(&self, kind: &str, name: &str, version: &str) -> Value {
        let (group, ..) = KINDS.iter().find(|(_, known, _)| *known == kind).expect("the kind");
        let annotations = json!({"kapp.k14s.io/change-group": name});
        self.0.object(&format!("{group}/v1alpha1"), kind, name, annotations, json!({"serviceAccountName": version}))
    }

    /// A ConfigMap that is written after this group.
    fn after(&self, group: &str) -> Value {
        self.0.config_map("later", json!({"kapp.k14s.io/change-rule": format!("upsert after upserting {group}")}))
    }

    fn later_exists(&self) -> bool {
        control_plane().get(&self.0.bed.config_map_path("later")).0 == 200
    }

    fn run(&self, arguments: &[&str]) -> Gantry {
        let app = ["-a", "shop", "-n", self.0.namespace()];
        self.0.bed.gantry(control_plane().kubeconfig("admin"), &[arguments, &app].concat())
    }

    fn deploy(&self, flags: &[&str]) -> Gantry {
        self.run(&[&["deploy", "-f", "manifests.yaml"], flags].concat())
    }

    /// The readiness that `inspect` reports for the object.
    fn readiness(&self, object: &Value) -> Value {
        let report: Value =
            serde_json::from_str(&self.run(&["inspect", "-o", "json"]).run().stdout).expect("the JSON of inspect");
        let objects = report["objects"].as_array().expect("objects");
        let is_it = |found: &&Value| found["object"]["kind"] == object["kind"];
        objects.iter().find(is_it).expect("the object")["readiness"].clone()
    }
}

/// Writes the status as kapp-controller does once it has observed this generation.
fn report(object: &Value, generation: i64, conditions: &[(&str, &str)], error: Option<&str>) {
    let path = control_plane().path_of(object);
    eventually("the generation", || {
        let (code, live) = controller().get(&path);
        (code == 200 && live["metadata"]["generation"] == generation).then_some(())
    });
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(name, message)| json!({"type": name, "status": "True", "reason": "", "message": message}))
        .collect();
    let mut status = json!({"observedGeneration": generation, "conditions": conditions});
    if let Some(error) = error {
        status["usefulErrorMessage"] = error.into();
    }
    let applied = json!({"apiVersion": object["apiVersion"], "kind": object["kind"],
        "metadata": {"name": object["metadata"]["name"]}, "status": status});
    let (code, answer) = controller().server_side_apply(&format!("{path}/status"), CONTROLLER, &applied);
    assert_eq!(code, 200, "{answer}");
}

#[test]
fn packages_are_awaited_until_kapp_controller_has_reconciled_them() {
    let packages = Packages::new();
    let [app, install, repository] =
        [("App", "app"), ("PackageInstall", "install"), ("PackageRepository", "repository")]
            .map(|(kind, name)| packages.object(kind, name, "one"));
    packages.0.write(&[&app, &install, &repository, &packages.after("app")]);
    let running = packages.deploy(&[]).spawn();
    report(&app, 1, &[("Reconciling", "deploying")], None);
    let readiness = packages.readiness(&app);
    assert_eq!(readiness["state"], "inProgress", "{readiness}");
    assert!(readiness["reason"].to_string().contains("deploying"), "{readiness}");
    assert!(!packages.later_exists());
    report(&app, 1, &[("ReconcileSucceeded", "")], None);
    eventually("what waits for the App", || packages.later_exists().then_some(()));
    // By default custom resources come after ConfigMaps.
    for object in [&install, &repository] {
        let path = control_plane().path_of(object);
        eventually("the object", || (control_plane().get(&path).0 == 200).then_some(()));
        assert_eq!(packages.readiness(object)["state"], "inProgress");
        report(object, 1, &[("ReconcileSucceeded", "")], None);
        assert_eq!(packages.readiness(object)["state"], "ready");
    }
    running.wait().code(0).stdout_contains("4 created");
    // What another manager writes is left alone, and nothing is to do.
    packages.deploy(&[]).run().code(0).stdout_contains("4 objects unchanged");

    // The success of the generation before does not count.
    packages.0.write(&[&packages.object("App", "app", "two"), &install, &repository, &packages.after("app")]);
    let output = packages.deploy(&["--wait-timeout=1s"]).run();
    output.code(5).stdout_contains("is not ready after 1s: its controller has seen generation 1 of 2");
    let running = packages.deploy(&[]).spawn();
    report(&app, 2, &[("ReconcileSucceeded", "")], None);
    running.wait().code(0);
}

#[test]
fn a_failure_of_kapp_controller_ends_the_deploy_with_its_message() {
    const ERROR: &str = "kapp: Error: waiting on reconcile job/migrate: Finished unsuccessfully (Failed)";
    for (kind, condition) in
        [("App", "ReconcileFailed"), ("PackageInstall", "ReconcileFailed"), ("PackageRepository", "DeleteFailed")]
    {
        let packages = Packages::new();
        let object = packages.object(kind, "one", "one");
        packages.0.write(&[&object, &packages.after("one")]);
        let running = packages.deploy(&[]).spawn();
        // kapp-controller tries again and again.
        report(&object, 1, &[(condition, "Error (see .status.usefulErrorMessage for details)")], Some(ERROR));
        let output = running.wait();
        output.code(5).stdout_contains(&format!("has failed: {condition} is True: {ERROR}"));
        output.stdout_contains("--> manifests.yaml:1").contains_nowhere("for details");
        assert!(!packages.later_exists(), "{kind}");
        // Without a message of the program, the condition's own.
        report(&object, 1, &[(condition, "Syncing: not found")], None);
        let output = packages.deploy(&[]).run();
        output.code(5).stdout_contains(&format!("has failed: {condition} is True: Syncing: not found"));
        // A new attempt that succeeds is the end of it.
        report(&object, 1, &[("ReconcileSucceeded", "")], None);
        packages.deploy(&[]).run().code(0);
        assert!(packages.later_exists(), "{kind}");
    }
}
