//! A ClusterExtension that leaves an app: OLM v1 deletes everything it has installed for it, including CRDs with all
//! objects.

use std::fs;

use serde_json::json;
use tempfile::TempDir;

use crate::support::CrdBuilder;
use crate::support::olm::Olm;

#[test]
fn an_extension_is_deleted_only_without_objects_of_its_crds() {
    let olm = Olm::alone();
    let cp = olm.control_plane();
    let folder = TempDir::new().unwrap();
    let extension = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "leaving"},
        "spec": {"namespace": "default", "serviceAccount": {"name": "installer"},
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "leaving"}}}});
    let stays = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stays-with-extension", "namespace": "default"}});
    let write = |objects: &[&serde_json::Value]| {
        let text: String = objects.iter().map(|object| format!("---\n{object}\n")).collect();
        fs::write(folder.path().join("all.yaml"), text).unwrap();
    };
    write(&[&extension, &stays]);
    let run = |arguments: &[&str]| {
        let app = ["-f", "all.yaml", "-a", "leaving", "-n", "default", "--wait=false"];
        olm.gantry("admin", &[arguments, &app].concat()).cwd(folder.path()).run()
    };
    run(&["deploy"]).code(0);
    // The objects that OLM has installed, with its labels.
    let labels = json!({"olm.operatorframework.io/owner-kind": "ClusterExtension", "olm.operatorframework.io/owner-name": "leaving"});
    let crd = |plural: &str, labels: &serde_json::Value| {
        let crd = CrdBuilder::new("leaving.example.com", plural).plural(plural);
        let mut crd = crd.version("v1", json!({"type": "object"})).build();
        crd["metadata"]["labels"] = labels.clone();
        crd
    };
    let object = |plural: &str| json!({"apiVersion": "leaving.example.com/v1", "kind": plural, "metadata": {"name": "one", "namespace": "default"}});
    for object in [crd("owned", &labels), crd("others", &json!({})), object("owned"), object("others")] {
        cp.apply_yaml(&object.to_string());
    }
    write(&[&stays]);
    let output = run(&["deploy", "--prune=yes"]);
    output.code(3).stdout_contains("ExtensionDeletionLosesObjects").stdout_contains("1 object of");
    output.stdout_contains("owned.leaving.example.com: 1 in namespace default (one)");
    assert!(!output.stdout.contains("others.leaving"), "{output}");
    cp.delete("/apis/leaving.example.com/v1/namespaces/default/owned/one");
    run(&["deploy", "--prune=yes"]).code(0).stdout_contains("1 deleted");
    for crd in ["owned", "others"] {
        cp.delete(&format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd}.leaving.example.com"));
    }
}
