//! Bundle directories checked against a folder, whose objects have neither `uid` nor `resourceVersion`.

use super::{Stage, extension};
use serde_json::json;

/// A CRD that OLM has installed for the ClusterExtension `e`.
const INSTALLED: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: samples.example.com
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: e}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: samples, singular: sample, kind: Sample, listKind: SampleList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";

fn csv(owned: &str) -> String {
    format!(
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {{name: p.v1.1.0}}\nspec:\n  \
         version: 1.1.0\n  installModes: [{{type: AllNamespaces, supported: true}}]\n  customresourcedefinitions: {{owned: \
         {owned}}}\n"
    )
}

#[test]
fn a_crd_that_leaves_a_bundle_is_found_in_a_folder() {
    let run = |objects: &str| {
        let stage = Stage::new().installed("1.0.0").desired(extension(json!({"packageName": "p"}))).bundle(objects);
        stage.write("live/crd.yaml", INSTALLED);
        stage
            .write("live/sample.yaml", "apiVersion: example.com/v1\nkind: Sample\nmetadata: {name: a, namespace: x}\n");
        stage.gantry(&["check"])
    };
    let crd = INSTALLED.lines().filter(|line| !line.contains("labels:")).collect::<Vec<_>>().join("\n");
    run(&format!("{}---\n{crd}", csv("[{name: samples.example.com, version: v1, kind: Sample}]"))).code(0);
    let lost = run(&csv("[]")).code(3);
    assert!(lost.stdout.contains("1 object of samples.example.com: 1 in namespace x (a)"), "{}", lost.stdout);
}
