//! Objects that are stored at a version which is removed, because somebody took it out of `status.storedVersions`
//! before every object was written again.

use serde_json::{Value, json};

use super::managed_fields::run_migration;
use crate::support::{CrdBuilder, Gantry, Output, Samples, control_plane, eventually, string_fields, text};

struct RemovedVersion(Samples);

impl RemovedVersion {
    /// An object that is stored at v1beta1, and a CRD that stores at v1beta2 and says that nothing is stored elsewhere.
    fn new() -> Self {
        let bed = RemovedVersion(Samples::new());
        bed.0.live(&bed.crd(&[("v1beta1", true, true)]));
        let object = bed.object("v1beta1", "old");
        eventually("the object is created", || {
            (control_plane().post(&bed.0.collection("v1beta1"), &object).0 == 201).then_some(())
        });
        bed.0.live(&bed.crd(&[("v1beta1", false, false), ("v1beta2", true, true)]));
        let status = json!({"status": {"storedVersions": ["v1beta2"]}});
        let path = format!("{}/status", bed.0.crd_path());
        eventually("v1beta1 is taken out of the status", || {
            let (_, crd) = control_plane().patch(&path, &status);
            (crd["status"]["storedVersions"] == json!(["v1beta2"])).then_some(())
        });
        bed
    }

    /// A CRD with these versions: name, served, storage.
    fn crd(&self, versions: &[(&str, bool, bool)]) -> Value {
        let add = |crd: CrdBuilder, (name, served, storage): &(&str, bool, bool)| {
            crd.version_of_spec(name, string_fields(&["a"])).served(*served).storage(*storage)
        };
        versions.iter().fold(CrdBuilder::samples(&self.0.names.group), add).build()
    }

    fn desired(&self) -> Value {
        self.crd(&[("v1beta2", true, true)])
    }

    fn object(&self, version: &str, name: &str) -> Value {
        let mut object = self.0.object(name, &json!({"a": "x"}));
        object["apiVersion"] = json!(format!("{}/{version}", self.0.names.group));
        object
    }

    /// Runs gantry with its default checks.
    fn run(&self, command: &str, flags: &[&str]) -> Output {
        let gantry = Gantry::new().kubeconfig(control_plane().kubeconfig("admin"));
        let arguments = [command, "-f", "-", "--force-conflicts"];
        gantry.args(arguments).args(flags).stdin(self.desired().to_string()).run()
    }

    fn list(&self) -> (u16, Value) {
        control_plane().get(&self.0.collection("v1beta2"))
    }
}

fn objects(finding: &Value) -> Vec<String> {
    finding["affected"]["objects"].as_array().unwrap().iter().map(|object| text(&object["name"])).collect()
}

#[test]
fn an_object_that_may_still_be_stored_at_a_removed_version_blocks_until_it_is_written_again() {
    let bed = RemovedVersion::new();
    let (status, answer) = control_plane().post(&bed.0.collection("v1beta2"), &bed.object("v1beta2", "new"));
    assert_eq!(status, 201, "{answer}");
    let blocked = bed.run("check", &["-o", "json"]);
    let checks = blocked.code(3).report()["checks"].as_array().unwrap().clone();
    let of = |rule: &str| -> Vec<Value> {
        let findings = checks.iter().flat_map(|check| check["findings"].as_array().cloned().unwrap_or_default());
        findings.filter(|finding| finding["rule"] == rule).collect()
    };
    let [found] = &of("ObjectInRemovedVersion")[..] else { panic!("{blocked}") };
    assert_eq!((&found["severity"], &found["version"]), (&json!("error"), &json!("v1beta1")));
    assert_eq!(
        text(&found["message"]),
        "1 of 2 objects may still be stored at v1beta1, which is removed: managedFields have no entry at another version. \
         If one object is, this kind becomes unreadable: every list of its objects fails, and that object can be neither \
         read nor deleted"
    );
    assert_eq!(objects(found), ["old"]);
    let [warning] = &of("UnservedVersionRemoved")[..] else { panic!("{blocked}") };
    assert!(text(&warning["message"]).contains("makes this kind unreadable"), "{warning}");

    // The step that it prints. Every object is still there, and the version can go.
    run_migration(&text(&found["help"]));
    bed.run("deploy", &[]).code(0);
    eventually("v1beta1 is gone", || {
        let (status, list) = bed.list();
        let names: Vec<String> = list["items"].as_array()?.iter().map(|item| text(&item["metadata"]["name"])).collect();
        (status == 200 && names == ["new", "old"]).then_some(())
    });
    let applied = bed.object("v1beta2", "old");
    let path = format!("{}/old", bed.0.collection("v1beta2"));
    eventually("the object can be applied", || {
        (control_plane().server_side_apply(&path, "any", &applied).0 == 200).then_some(())
    });
}

/// What the finding warns about.
#[test]
fn one_object_at_a_removed_version_makes_its_kind_unreadable() {
    let bed = RemovedVersion::new();
    let cp = control_plane();
    let (status, _) = cp.post(&bed.0.collection("v1beta2"), &bed.object("v1beta2", "new"));
    assert_eq!(status, 201);
    bed.0.live(&bed.desired());
    // Kubernetes calls it temporary: 429, "storage is (re)initializing".
    eventually("the server uses the CRD without v1beta1", || {
        let (status, answer) = bed.list();
        (status == 429 && text(&answer["message"]).contains("invalid group/version")).then_some(())
    });
    let path = |name: &str| format!("{}/{name}", bed.0.collection("v1beta2"));
    assert_eq!((cp.get(&path("old")).0, cp.delete(&path("old")).0), (500, 500));
    assert_eq!(cp.get(&path("new")).0, 200);
    // In every namespace, and for good.
    assert_eq!(cp.get(&format!("/apis/{}/v1beta2/samples", bed.0.names.group)).0, 429);
    // The version in the CRD brings them back.
    bed.0.live(&bed.crd(&[("v1beta1", false, false), ("v1beta2", true, true)]));
    eventually("the server reads all objects again", || {
        (cp.get(&path("old")).0 == 200 && bed.list().0 == 200).then_some(())
    });
}
