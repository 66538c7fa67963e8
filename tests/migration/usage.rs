//! How the command is called.

use serde_json::{Value, json};

use super::samples::StoredSamples;
use crate::support::{Gantry, Output, control_plane, string_fields};

#[test]
fn crds_are_named_by_name_by_manifests_or_all_of_them() {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    let name = samples.crd_name();
    let admin = || control_plane().kubeconfig("admin");
    samples.bed.write("crd.yaml", &samples.v1_and_v2(&["a", "b"]).build().to_string());
    let plan = format!("{name}: 1 object, to write at v2; stored versions: v1, v2; nothing is lost\n");
    let by_file = samples.bed.gantry(admin(), &["migrate", "-f", "crd.yaml", "--dry-run"]).run();
    assert_eq!(by_file.code(0).stdout, plan);
    samples.bed.gantry(admin(), &["migrate", "--all", "--dry-run"]).run().stdout_contains(&plan);
    samples.migrate(&["--to", "v2", "--dry-run"]).run().code(0).stdout_contains(&plan);
    let run = samples.migrate(&["--to", "v1"]).run();
    run.code(1).stderr_contains(&format!("the storage version of {name} is v2, not v1"));
}

#[test]
fn wrong_arguments_are_refused_with_the_next_step() {
    let samples = StoredSamples::new();
    let admin = || control_plane().kubeconfig("admin");
    samples.bed.gantry(admin(), &["migrate"]).run().code(2);
    samples.bed.gantry(admin(), &["migrate", "--all", "a.b"]).run().code(2);
    let run = samples.bed.gantry(admin(), &["migrate", "samples"]).run();
    run.code(2).stderr_contains("\"samples\" is not the name of a CRD").stderr_contains("PLURAL.GROUP");
    let run = samples.migrate(&[]).run();
    run.code(1).stderr_contains(&format!("there is no CRD {} in the cluster", samples.crd_name()));
    samples.bed.write("none.yaml", &samples.bed.config_map("a", "b"));
    let run = samples.bed.gantry(admin(), &["migrate", "-f", "none.yaml"]).run();
    run.code(1).stderr_contains("there is no CRD in none.yaml");
    samples.bed.write("gantry.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\ntarget: dir:cluster\n");
    let run = samples.bed.gantry(admin(), &["migrate", "a.b"]).run();
    run.code(2).stderr_contains("only the API server of a cluster has stored objects");
    let run = Gantry::new().args(["migrate", "a.example.com"]).run();
    run.code(1);
}

#[test]
fn every_error_is_in_the_json_document() {
    let samples = StoredSamples::new();
    let name = samples.crd_name();
    let run = |user: &str, more: &[&str]| -> (Output, Value) {
        let arguments = [&["migrate", "-o", "json"], more].concat();
        let output = samples.bed.gantry(control_plane().kubeconfig(user), &arguments).run();
        let document = serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}\n{output}"));
        (output, document)
    };
    let errors = |(output, document): (Output, Value), code: i32, message: &str| {
        output.code(code).stderr_contains(message);
        let errors = document["errors"].as_array().expect("errors").clone();
        assert!(errors[0]["message"].as_str().is_some_and(|text| text.contains(message)), "{document:#}");
        assert_eq!(errors.len(), 1, "{document:#}");
        (errors[0].clone(), document["crds"].as_array().expect("crds").len())
    };
    let (missing, crds) = errors(run("admin", &[&name]), 1, &format!("there is no CRD {name} in the cluster"));
    assert_eq!((missing["help"].to_string().contains("kubectl get crds"), crds), (true, 0));
    errors(run("admin", &["samples"]), 2, "is not the name of a CRD");

    samples.apply(samples.v1());
    samples.create("v1", "one", json!({"a": "1", "b": "2"}));
    samples.apply(samples.v1_and_v2(&["a", "b"]));
    errors(run("admin", &[&name, "--to", "v1"]), 1, "the storage version of");
    errors(run(&control_plane().user(&json!([])), &[&name]), 1, "may not get customresourcedefinitions");
    // With what was proven.
    let (_, crds) = errors(run("admin", &[&name]), 1, "cannot ask for confirmation");
    assert_eq!((crds, samples.version_of("one").as_str()), (1, "v1"));
    let (output, document) = run("admin", &[&name, "--yes"]);
    output.code(0);
    assert_eq!((&document["errors"], &document["crds"][0]["result"]["outcome"]), (&json!([]), &json!("migrated")));
}

#[test]
fn without_a_terminal_nothing_is_written_unless_it_is_confirmed() {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    let run = samples.migrate(&[]).run();
    run.code(1).stderr_contains("cannot ask for confirmation: there is no terminal").stderr_contains("--yes");
    assert_eq!(samples.version_of("one"), "v1");
}

#[test]
fn a_crd_that_cannot_be_migrated_is_an_error_also_among_all() {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    let none_served = samples.v1().served(false).storage(false).version_of_spec("v2", string_fields(&["a", "b"]));
    samples.set_versions(none_served.storage(true).served(false));
    let run = samples.bed.gantry(control_plane().kubeconfig("admin"), &["migrate", "--all", "--dry-run"]).run();
    run.stderr_contains(&format!("no version of the CRD {} is served", samples.crd_name()));
    assert_ne!(run.code, Some(0));
    // What needs no migration is left alone.
    let path = format!("{}/status", samples.bed.crd_path());
    assert_eq!(control_plane().patch(&path, &json!({"status": {"storedVersions": ["v2"]}})).0, 200);
    let run = samples.bed.gantry(control_plane().kubeconfig("admin"), &["migrate", "--all", "--dry-run"]).run();
    run.contains_nowhere(&samples.crd_name());
}

#[test]
fn stored_versions_that_the_crd_lacks_are_reported_with_the_repair() {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    let path = format!("{}/status", samples.bed.crd_path());
    let forged = json!({"status": {"storedVersions": ["v1", "v2", "v3"]}});
    assert_eq!(control_plane().patch(&path, &forged).0, 200);
    let run = samples.migrate(&["--yes"]).run();
    run.code(1).stderr_contains("status.storedVersions of the CRD").stderr_contains("add v3 to spec.versions again");
}
