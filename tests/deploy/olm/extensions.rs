//! A deploy of an app waits until OLM v1 has installed the requested version. The tests act as operator-controller.

use serde_json::{Value, json};

use crate::support::olm::Olm;
use crate::support::{Bed, Gantry, eventually};

/// A catalog with the package `p`, in which each version replaces the previous one.
const VERSIONS: [&str; 3] = ["1.0.0", "1.1.0", "1.2.0"];

fn package() -> String {
    let entries = VERSIONS.iter().enumerate().map(|(place, version)| match place {
        0 => json!({"name": format!("p.v{version}")}),
        _ => json!({"name": format!("p.v{version}"), "replaces": format!("p.v{}", VERSIONS[place - 1])}),
    });
    let entries: Vec<Value> = entries.collect();
    let mut blobs = vec![
        json!({"schema": "olm.package", "name": "p", "defaultChannel": "a"}),
        json!({"schema": "olm.channel", "package": "p", "name": "a", "entries": entries}),
    ];
    blobs.extend(VERSIONS.iter().map(|version| {
        json!({"schema": "olm.bundle", "package": "p", "name": format!("p.v{version}"), "properties": [
            {"type": "olm.package", "value": {"packageName": "p", "version": version}}]})
    }));
    blobs.iter().map(|blob| format!("{blob}\n")).collect()
}

/// A namespace for the operator, and the catalog.
struct Stage {
    olm: Olm,
    bed: Bed,
}

/// The status that OLM has reached.
struct Status<'a> {
    /// The installed version; empty if there is none.
    installed: &'a str,
    /// Status, reason and message.
    progressing: (&'a str, &'a str, &'a str),
    /// The number of generations that it is behind.
    behind: i64,
}

const REACHED: (&str, &str, &str) = ("True", "Succeeded", "Desired state reached");

impl Stage {
    fn new() -> Self {
        let stage = Stage { olm: Olm::alone(), bed: Bed::new() };
        stage.olm.serve("operators", &json!({}), package());
        stage.olm.control_plane().apply_yaml(&stage.bed.namespace());
        stage
    }

    fn extension(&self, range: &str) -> Value {
        json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": self.bed.names.namespace},
            "spec": {"namespace": self.bed.names.namespace, "serviceAccount": {"name": "installer"},
                "source": {"sourceType": "Catalog", "catalog": {"packageName": "p", "version": range}}}})
    }

    fn gantry(&self, arguments: &[&str]) -> Gantry {
        let of_app = ["-a", "operators", "-n", &self.bed.names.namespace];
        self.bed.gantry(self.olm.kubeconfig("admin"), &[arguments, &of_app].concat())
    }

    fn deploy(&self, object: &Value, flags: &[&str]) -> Gantry {
        self.bed.write("manifests.yaml", &object.to_string());
        self.gantry(&[&["deploy", "-f", "manifests.yaml"], flags].concat())
    }

    /// The live ClusterExtension, once its spec matches the manifest.
    fn live(&self, object: &Value) -> Value {
        let path = self.olm.control_plane().path_of(object);
        eventually("the ClusterExtension", || {
            let (code, live) = self.olm.control_plane().get(&path);
            (code == 200 && live["spec"] == object["spec"]).then_some(live)
        })
    }

    fn status(&self, object: &Value, Status { installed, progressing, behind }: &Status<'_>) {
        let generation = self.live(object)["metadata"]["generation"].as_i64().expect("a generation") - behind;
        let condition = |name: &str, (status, reason, message): (&str, &str, &str)| {
            json!({"type": name, "status": status, "reason": reason, "message": message,
                "observedGeneration": generation, "lastTransitionTime": "2026-08-21T10:00:00Z"})
        };
        let is_installed = match *installed {
            "" => ("False", "Failed", "No bundle installed"),
            _ => ("True", "Succeeded", "Installed bundle successfully"),
        };
        let bundle = json!({"name": format!("p.v{installed}"), "version": installed});
        let mut status =
            json!({"conditions": [condition("Installed", is_installed), condition("Progressing", *progressing)]});
        match object["apiVersion"] == "olm.operatorframework.io/v1" {
            _ if installed.is_empty() => {}
            true => status["install"] = json!({"bundle": bundle}),
            false => status["installedBundle"] = bundle,
        }
        let path = format!("{}/status", self.olm.control_plane().path_of(object));
        let (code, answer) = self.olm.control_plane().patch(&path, &json!({ "status": status }));
        assert_eq!(code, 200, "{answer}");
    }

    /// Deployed before, and installed at this version.
    fn installed(&self, object: &Value, version: &str) {
        self.deploy(object, &["--wait=false"]).run().code(0);
        self.status(object, &Status { installed: version, progressing: REACHED, behind: 0 });
    }

    /// The readiness that `inspect` reports.
    fn readiness(&self) -> Value {
        let report: Value =
            serde_json::from_str(&self.gantry(&["inspect", "-o", "json"]).run().stdout).expect("the JSON of inspect");
        report["objects"][0]["readiness"].clone()
    }
}

const CHECKED: [&str; 2] = ["--preflight", "ExtensionResolution"];

#[test]
fn a_deploy_ends_when_the_predicted_version_is_installed() {
    let stage = Stage::new();
    let pinned = stage.extension("1.0.0");
    let running = stage.deploy(&pinned, &CHECKED).spawn();
    let rolling_out = ("True", "RollingOut", "Revision 1.0.0 is rolling out.");
    stage.status(&pinned, &Status { installed: "", progressing: rolling_out, behind: 0 });
    assert_eq!(
        stage.readiness(),
        json!({"state": "inProgress", "reason": "RollingOut: Revision 1.0.0 is rolling out."})
    );
    stage.status(&pinned, &Status { installed: "1.0.0", progressing: REACHED, behind: 0 });
    running.wait().code(0).stdout_contains("p 1.0.0 (a, operators)");
    assert_eq!(stage.readiness(), json!({"state": "ready"}));

    // OLM installs 1.1.0 and continues to 1.2.0, whatever the result.
    let open = stage.extension(">=1.0");
    let running = stage.deploy(&open, &[&CHECKED[..], &["-o", "json"]].concat()).spawn();
    stage.status(&open, &Status { installed: "1.0.0", progressing: REACHED, behind: 1 });
    stage.status(&open, &Status { installed: "1.0.0", progressing: rolling_out, behind: 0 });
    let retrying = ("True", "Retrying", "no such image");
    stage.status(&open, &Status { installed: "1.1.0", progressing: retrying, behind: 0 });
    let report = running.wait().code(0).report();
    assert_eq!(report["extensions"][0]["path"], json!(["1.1.0", "1.2.0"]));
    assert_eq!(report["waits"][0]["state"], "ready", "{report}");
    // For any other command, it is not ready yet.
    assert_eq!(stage.readiness()["reason"], "Retrying: no such image");
}

#[test]
fn the_previous_version_does_not_end_a_deploy_although_olm_calls_it_installed() {
    let stage = Stage::new();
    stage.installed(&stage.extension("1.0.0"), "1.0.0");
    let open = stage.extension(">=1.0");
    let flags = [&CHECKED[..], &["--wait-timeout=2s"]].concat();
    // No controller has observed the new generation.
    stage.deploy(&open, &flags).run().code(5).stdout_contains("its conditions are older than generation 2");
    stage.status(&open, &Status { installed: "1.0.0", progressing: REACHED, behind: 0 });
    let output = stage.deploy(&open, &flags).run();
    output.code(5).stdout_contains("is not ready after 2s: 1.0.0 is installed, not yet 1.1.0 or 1.2.0");
    // Without the check, any version in the range is sufficient.
    stage.deploy(&open, &[]).run().code(0);
    // A version that OLM has continued to is also sufficient.
    let other = stage.extension(">=1.0.1");
    let running = stage.deploy(&other, &CHECKED).spawn();
    stage.status(&other, &Status { installed: "1.2.0", progressing: REACHED, behind: 0 });
    running.wait().code(0).stdout_contains("p 1.0.0 -> 1.1.0 (a, operators)");
}

#[test]
fn the_message_of_olm_is_shown_if_it_cannot_resolve_in_time() {
    let stage = Stage::new();
    stage.installed(&stage.extension("1.0.0"), "1.0.0");
    // The check would have reported this in advance.
    let beyond = stage.extension("2.0.0");
    let text = "error upgrading from currently installed version \"1.0.0\": no bundles found for package \"p\" \
        matching version \"2.0.0\"";
    let running = stage.deploy(&beyond, &["--wait-timeout=10s"]).spawn();
    stage.status(&beyond, &Status { installed: "1.0.0", progressing: ("True", "Retrying", text), behind: 0 });
    let output = running.wait();
    output.code(5).stdout_contains(&format!("is not ready after 10s: Retrying: {text}"));
    output.stdout_contains("kubectl describe clusterextension.olm.operatorframework.io/");
    assert_eq!(stage.readiness(), json!({"state": "inProgress", "reason": format!("Retrying: {text}")}));
    // The same command continues to wait.
    stage.deploy(&beyond, &["--wait-timeout=1s"]).run().code(5).stdout_contains("Retrying: error upgrading");
}

#[test]
fn an_extension_that_olm_has_given_up_fails_at_once() {
    let stage = Stage::new();
    let pinned = stage.extension("1.0.0");
    let running = stage.deploy(&pinned, &CHECKED).spawn();
    let text = "CustomResourceDefinition 'samples.example.com' already exists";
    stage.status(&pinned, &Status { installed: "", progressing: ("False", "Blocked", text), behind: 0 });
    // Long before the wait's time limit of 15 minutes.
    let output = running.wait();
    output.code(5).stdout_contains(&format!("has failed: Blocked: {text}")).stdout_contains("--> manifests.yaml:1");
    assert_eq!(stage.readiness(), json!({"state": "failed", "reason": format!("Blocked: {text}")}));
}

#[test]
fn extensions_of_v1alpha1_are_waited_for() {
    let stage = Stage::new();
    let name = &stage.bed.names.namespace;
    let extension = |range: &str| {
        json!({"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtension", "metadata": {"name": name},
            "spec": {"installNamespace": name, "packageName": "p", "version": range}})
    };
    stage.installed(&extension("1.0.0"), "1.0.0");
    let next = extension("1.1.x");
    let output = stage.deploy(&next, &["--wait-timeout=1s"]).run();
    output.code(5).stdout_contains("its conditions are older than generation 2");
    stage.status(&next, &Status { installed: "1.0.0", progressing: REACHED, behind: 0 });
    let output = stage.deploy(&next, &["--wait-timeout=1s"]).run();
    output.code(5).stdout_contains("1.0.0 is installed, which is not in the range \"1.1.x\"");
    let pinned = extension("1.1.0");
    let running = stage.deploy(&pinned, &CHECKED).spawn();
    stage.status(&pinned, &Status { installed: "1.1.0", progressing: REACHED, behind: 0 });
    running.wait().code(0).stdout_contains("p 1.0.0 -> 1.1.0 (a, operators)");
}

/// The Deployment of operator-controller, which is deleted at the end.
struct Controller<'a> {
    stage: &'a Stage,
    path: String,
}

impl<'a> Controller<'a> {
    fn start(stage: &'a Stage, image: &str) -> Self {
        let labels = json!({"app": "operator-controller"});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "operator-controller-controller-manager", "namespace": "olmv1-system"},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "manager", "image": image}]}}}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "olmv1-system"}});
        let objects = stage.olm.control_plane().apply_yaml(&format!("{namespace}\n---\n{deployment}"));
        let path = stage.olm.control_plane().path_of(objects.last().expect("a Deployment"));
        Controller { stage, path }
    }
}

impl Drop for Controller<'_> {
    fn drop(&mut self) {
        self.stage.olm.control_plane().delete(&self.path);
    }
}

#[test]
fn the_cluster_tells_which_release_of_olm_it_has() {
    let stage = Stage::new();
    let check = |user: &str| {
        stage.bed.write("manifests.yaml", &stage.extension("1.0.0").to_string());
        let arguments = ["check", "-f", "manifests.yaml", "--preflight", "ExtensionResolution"];
        stage.bed.gantry(stage.olm.kubeconfig(user), &arguments).run()
    };
    check("admin").code(0).stdout_contains("warning[OlmReleaseUnknown]: serviceaccount installer");
    let controller = Controller::start(&stage, "quay.io/operator-framework/operator-controller:v1.10.0");
    check("admin").code(3).stdout_contains("error[ServiceAccountMissing]: serviceaccount installer");
    drop(controller);
    let controller = Controller::start(&stage, "quay.io/operator-framework/operator-controller:v1.11.0");
    check("admin").code(0).contains_nowhere("OlmReleaseUnknown");
    drop(controller);
}

/// The account need not read its ClusterExtension, which somebody else deploys.
#[test]
fn the_account_of_an_extension_passes_with_the_rights_that_are_printed_for_it() {
    let stage = Stage::new();
    let bed = &stage.bed;
    for folder in ["bundle/manifests", "bundle/metadata"] {
        std::fs::create_dir_all(bed.folder.path().join(folder)).expect("a folder");
    }
    let annotation = "operators.operatorframework.io.bundle";
    bed.write(
        "bundle/metadata/annotations.yaml",
        &format!("annotations:\n  {annotation}.mediatype.v1: registry+v1\n  {annotation}.package.v1: p\n"),
    );
    let csv = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "p.v1.0.0"},
        "spec": {"version": "1.0.0", "installModes": [{"type": "AllNamespaces", "supported": true}]}});
    bed.write("bundle/manifests/csv.yaml", &csv.to_string());
    bed.write("bundle/manifests/crd.yaml", &bed.crd("first: {type: string}"));
    bed.write("extension.yaml", &stage.extension("1.0.0").to_string());
    let both = ["-f", "bundle", "-f", "extension.yaml"];
    let gantry = |arguments: &[&str]| bed.gantry(stage.olm.kubeconfig("admin"), &[arguments, &both].concat()).run();
    let account = format!("system:serviceaccount:{}:installer", bed.names.namespace);
    let check = || gantry(&["check", "--preflight=PermissionValidation", "--as", &account]);
    check().code(3).stdout_contains("RequestNotPermitted");
    let rights = gantry(&["permissions"]);
    stage.olm.control_plane().apply_yaml(&rights.code(0).stdout);
    check().code(0).stdout_contains("PermissionValidation  passed").stdout_contains("unread    1");
    // A deploy would have to write it.
    let deploy = gantry(&["deploy", "-y", "--preflight=PermissionValidation", "--as", &account]);
    deploy.code(1).stdout_contains("may not get clusterextensions");
}
