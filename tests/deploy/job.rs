//! The Job of `packaging/kubernetes`: its rights are enough for its arguments, and none of them can be left out.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Bed, control_plane};

const JOB: &str = include_str!("../../packaging/kubernetes/check.yaml");

#[test]
fn the_rights_of_the_job_are_the_least_for_its_arguments() {
    let documents: Vec<Value> =
        serde_yaml::Deserializer::from_str(JOB).map(|document| Value::deserialize(document).expect("YAML")).collect();
    let of = |kind: &str| documents.iter().find(|object| object["kind"] == kind).expect(kind);
    let rules = &of("ClusterRole")["rules"];
    let container = &of("Job")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/manifests");
    let arguments: Vec<&str> = container["args"].as_array().expect("args").iter().filter_map(Value::as_str).collect();
    let arguments: Vec<&str> =
        arguments.into_iter().map(|one| if one == "/manifests" { "manifests.yaml" } else { one }).collect();

    let cp = control_plane();
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.crd("field: {type: string, maxLength: 9}"));
    bed.deploy(cp.kubeconfig("admin"), &["--preflight", "CRDUpgradeSafety"]).run().code(0);
    bed.write("manifests.yaml", &bed.crd("field: {type: string, maxLength: 5}"));
    let check = |rules: &Value| {
        let user = cp.user(rules);
        bed.gantry(cp.kubeconfig(&user), &arguments).run()
    };
    check(rules).code(3).stdout_contains("error[NoMaxLengthTightened]");
    let verbs = rules[0]["verbs"].as_array().expect("verbs");
    assert_eq!(rules.as_array().map(Vec::len), Some(1));
    // A list serves many CRDs where `get` serves few: of the two, one alone is for a folder of another size.
    let mut less = rules.clone();
    less[0]["verbs"] = json!(verbs.iter().filter(|verb| *verb != "get").collect::<Vec<_>>());
    check(&less).code(1).stderr_contains("may not get");
}
