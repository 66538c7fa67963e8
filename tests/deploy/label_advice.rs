//! The commands that gantry prints to remove a label or an annotation, run on a custom resource: kubectl prefers a version that
//! lacks a field of it, and the field stays.

use crate::support::{Bed, Output, control_plane, printed_command, run_printed};
use serde_json::{Value, json};

struct Stage(Bed);

impl Stage {
    /// A kind whose v2 lacks the field `more` of its v1, and whose name in commands is not its kind.
    fn new() -> Self {
        let bed = Bed::new();
        let crd =
            bed.crd("first: {type: string}, more: {type: string}").replace("singular: sample", "singular: example");
        let second = "  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties: {first: {type: string}}
";
        control_plane().apply_yaml(&format!("{}---\n{crd}{second}", bed.namespace()));
        Stage(bed)
    }

    fn object(&self, first: &str, labels: &Value, annotations: &Value) -> Value {
        let metadata =
            json!({"name": "one", "namespace": self.0.names.namespace, "labels": labels, "annotations": annotations});
        json!({"apiVersion": format!("{}/v1", self.0.names.group), "kind": "Sample", "metadata": metadata, "first": first})
    }

    fn deploy(&self, object: &Value, flags: &[&str]) -> Output {
        self.0.write("manifests.yaml", &object.to_string());
        self.0.deploy(control_plane().kubeconfig("admin"), &[&["-n", &self.0.names.namespace], flags].concat()).run()
    }

    /// Writes a field that the manifests do not have, and these parts of the metadata.
    fn patch(&self, metadata: &Value) {
        let (status, answer) =
            control_plane().patch(&self.0.sample_path(), &json!({"more": "kept", "metadata": metadata}));
        assert_eq!(status, 200, "{answer}");
    }

    /// Runs the printed command that begins with `start` and ends with the name of what it removes.
    fn follow(&self, said: &Output, start: &str, removed: &str) {
        let command = printed_command(said, start, &format!("{removed}-")) + &format!(" {removed}-");
        run_printed(&command, &control_plane().kubeconfig("admin"), self.0.folder.path());
        let live = self.live();
        assert_eq!(live["more"], "kept", "{command}");
        assert!(!live["metadata"].to_string().replace("f:", "").contains(&format!("\"{removed}\":\"")), "{live}");
    }

    fn live(&self) -> Value {
        control_plane().get(&self.0.sample_path()).1
    }
}

const APP: [&str; 2] = ["-a", "shop"];

#[test]
fn an_exclusion_in_the_cluster_is_removed() {
    let reconcile = "kustomize.toolkit.fluxcd.io/reconcile";
    for (map, verb) in [("annotations", "annotate"), ("labels", "label")] {
        let stage = Stage::new();
        stage.deploy(&stage.object("1", &json!({}), &json!({})), &APP).code(0);
        stage.patch(&json!({map: {reconcile: "disabled"}}));
        let newer = stage.object("2", &json!({}), &json!({}));
        let said = stage.deploy(&newer, &APP);
        said.code(0).stderr_contains("is not changed: the live object has the");
        assert_eq!(stage.live()["first"], "1");
        stage.follow(&said, &format!("kubectl {verb} "), reconcile);
        stage.deploy(&newer, &APP).code(0).stdout_contains("1 updated");
        let live = stage.live();
        assert_eq!((&live["first"], &live["more"]), (&json!("2"), &json!("kept")));
    }
}

#[test]
fn the_label_of_an_app_that_an_object_has_left_is_removed() {
    let stage = Stage::new();
    stage.deploy(&stage.object("1", &json!({}), &json!({})), &APP).code(0);
    stage.patch(&json!({}));
    let left = stage.object("2", &json!({}), &json!({"kapp.k14s.io/noop": ""}));
    let said = stage.deploy(&left, &APP);
    said.code(0).stderr_contains("leaves the app shop and stays in the cluster");
    stage.follow(&said, "kubectl label ", "applyset.kubernetes.io/part-of");
    stage.deploy(&left, &APP).code(0);
    let namespace = &stage.0.names.namespace;
    let delete = ["delete", "-a", "shop", "-n", namespace, "--yes"];
    stage.0.gantry(control_plane().kubeconfig("admin"), &delete).run().code(0);
    assert_eq!((&stage.live()["first"], &stage.live()["more"]), (&json!("1"), &json!("kept")));
    assert_eq!(control_plane().get(&stage.0.config_map_path("shop.gantry")).0, 404);
}

#[test]
fn an_object_stops_being_the_parent_of_an_applyset() {
    let id = "applyset.kubernetes.io/id";
    let stage = Stage::new();
    stage.deploy(&stage.object("1", &json!({id: "applyset-x-v1"}), &json!({})), &[]).code(0);
    stage.patch(&json!({}));
    let newer = stage.object("2", &json!({}), &json!({}));
    let said = stage.deploy(&newer, &["--force-conflicts"]);
    said.code(3).stdout_contains("would lose the label of it");
    stage.follow(&said, "kubectl label ", id);
    stage.deploy(&newer, &["--force-conflicts"]).code(0).stdout_contains("1 updated");
    assert_eq!((&stage.live()["first"], &stage.live()["more"]), (&json!("2"), &json!("kept")));
}
