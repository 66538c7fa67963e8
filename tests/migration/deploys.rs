//! `gantry deploy --migrate`: stored objects move before a version is removed, and after the storage version moves.

use serde_json::{Value, json};

use super::samples::StoredSamples;
use super::webhooks;
use crate::support::{CrdBuilder, Gantry, Output, Webhook, control_plane, eventually, string_fields};

/// The CRD without v1.
fn only_v2(samples: &StoredSamples) -> CrdBuilder {
    samples.builder().version_of_spec("v2", string_fields(&["a", "b"])).status_subresource()
}

/// With an object that was written and is stored at v1, which is no longer served.
fn with_unserved_v1() -> StoredSamples {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    let unserved = samples.v1().served(false).storage(false).version_of_spec("v2", string_fields(&["a", "b"]));
    samples.set_versions(unserved.storage(true).status_subresource());
    samples
}

fn deploy(samples: &StoredSamples, crd: CrdBuilder, more: &[&str]) -> Gantry {
    deploy_as(samples, "admin", crd, more)
}

fn deploy_as(samples: &StoredSamples, user: &str, crd: CrdBuilder, more: &[&str]) -> Gantry {
    samples.bed.write("manifests.yaml", &crd.build().to_string());
    samples.bed.deploy(control_plane().kubeconfig(user), &["--migrate", "--force-conflicts"]).args(more)
}

/// Runs the `gantry migrate` that the output names, which stands on one line.
fn run_migrate(samples: &StoredSamples, output: &Output, kubeconfig: &std::path::Path, more: &[&str]) -> Output {
    let (_, command) = output.stderr.split_once("gantry migrate ").unwrap_or_else(|| panic!("no command\n{output}"));
    let words = shlex::split(command.lines().next().unwrap().trim_end_matches(')')).expect("a command line");
    samples.bed.gantry(kubeconfig.to_owned(), &["migrate"]).args(&words).args(more).run()
}

#[test]
fn objects_move_before_a_version_is_removed() {
    let samples = with_unserved_v1();
    let name = samples.crd_name();
    // The deploy itself is refused, with or without a waiver.
    samples.bed.write("manifests.yaml", &only_v2(&samples).build().to_string());
    let refused = samples.bed.deploy(control_plane().kubeconfig("admin"), &[]).run();
    refused.code(3).stdout_contains("NoStoredVersionRemoved");

    let foretold = deploy(&samples, only_v2(&samples), &["--dry-run", "-v"]).run();
    foretold.code(0).stderr_contains(&format!("before the deploy: {name}: 1 object, to write at v2"));
    foretold.stdout_contains("deploy --migrate moves the stored objects first");
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v1", json!(["v1", "v2"])));

    let run = deploy(&samples, only_v2(&samples), &["-o", "json"]).run();
    run.code(0).stderr_contains(&format!("{name}: wrote 1 object; verified; status.storedVersions is [v2]"));
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((&report["outcome"], &report["summary"]["errors"]), (&json!("deployed"), &json!(0)));
    let expected = json!([{
        "crd": name, "when": "beforeDeploy", "storageVersion": "v2", "objects": 1, "toWrite": 1,
        "result": {"outcome": "migrated", "written": 1, "storedVersions": ["v2"]},
    }]);
    assert_eq!(report["migrations"], expected);
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
    assert_eq!(samples.crd()["spec"]["versions"].as_array().map(Vec::len), Some(1));
    // Also its managedFields: a manager of v1 can go on at v2.
    let object = samples.object("v2", "one", json!({"a": "9"}));
    let path = format!("{}/one?fieldManager=owner&force=true", samples.path("v2"));
    eventually("an apply at v2", || (control_plane().apply_to(&path, &object).0 == 200).then_some(()));
    assert_eq!(samples.get("v2", "one")["spec"], json!({"a": "9", "b": "2"}));
}

#[test]
fn a_version_is_dropped_in_three_releases_with_the_flag_in_each() {
    let samples = StoredSamples::new();
    samples.apply(samples.v1());
    samples.create("v1", "one", json!({"a": "1", "b": "2"}));
    let fields = ["a", "b"];
    deploy(&samples, samples.v1_and_v2(&fields), &[]).run().code(0).stderr_contains("wrote 1 object; verified");
    assert_eq!(samples.stored_versions(), json!(["v2"]));
    let unserved = samples.v1().served(false).storage(false).version_of_spec("v2", string_fields(&fields));
    deploy(&samples, unserved.storage(true).status_subresource(), &[]).run().code(0);
    // Nothing is stored at v1 any more, but the object's managedFields name it.
    let last = deploy(&samples, only_v2(&samples), &[]).run();
    last.code(0).stderr_contains("wrote 1 object; verified").contains_nowhere("ObjectInRemovedVersion");
    let entries = samples.get("v2", "one")["metadata"]["managedFields"].clone();
    let at_v2 = |entry: &Value| entry["apiVersion"].as_str().is_some_and(|version| version.ends_with("/v2"));
    assert!(entries.as_array().expect("entries").iter().all(at_v2), "{entries:#}");
    // And nothing is left to do.
    deploy(&samples, only_v2(&samples), &[]).run().code(0).contains_nowhere("wrote");
}

#[test]
fn a_deploy_without_the_flag_names_the_command_that_moves_the_objects() {
    let samples = StoredSamples::new();
    samples.apply(samples.v1());
    samples.create("v1", "one", json!({"a": "1", "b": "2"}));
    samples.bed.write("manifests.yaml", &samples.v1_and_v2(&["a", "b"]).build().to_string());
    let run = samples.bed.deploy(control_plane().kubeconfig("admin"), &["--force-conflicts", "-v"]).run();
    let command = format!("gantry migrate {} --prune-stored-versions", samples.crd_name());
    run.code(0).stdout_contains("StorageVersionMoved").stdout_contains(&command).stderr_contains(&command);
    assert_eq!(samples.version_of("one"), "v1");
    run_migrate(&samples, &run, &control_plane().kubeconfig("admin"), &["--yes"]).code(0);
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
}

#[test]
fn a_deploy_that_fails_on_warnings_does_not_doubt_its_own_migration() {
    let samples = with_unserved_v1();
    let run = deploy(&samples, only_v2(&samples), &["--fail-on", "warning"]).run();
    run.code(0).stderr_contains("wrote 1 object; verified");
    assert_eq!(samples.crd()["spec"]["versions"].as_array().map(Vec::len), Some(1));
}

#[test]
fn the_crd_of_an_app_is_migrated_as_well() {
    let samples = with_unserved_v1();
    let run = deploy(&samples, only_v2(&samples), &["-a", "shop", "-n", &samples.bed.names.namespace]).run();
    run.code(0).stderr_contains("wrote 1 object; verified; status.storedVersions is [v2]");
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
    let apps =
        samples.bed.gantry(control_plane().kubeconfig("admin"), &["apps", "-n", &samples.bed.names.namespace]).run();
    apps.code(0).stdout_contains("shop");
}

#[test]
fn objects_move_after_the_storage_version_moved() {
    let samples = StoredSamples::new();
    samples.apply(samples.v1());
    samples.create("v1", "one", json!({"a": "1", "b": "2"}));
    let name = samples.crd_name();
    let both = || samples.v1_and_v2(&["a", "b"]);
    let foretold = deploy(&samples, both(), &["--dry-run"]).run();
    foretold
        .code(0)
        .stderr_contains(&format!("after the deploy: {name}: 1 object, to write at v2; v2 has every field"));
    let run = deploy(&samples, both(), &["-o", "json"]).run();
    run.code(0).stderr_contains(&format!("{name}: wrote 1 object; verified; status.storedVersions is [v2]"));
    let expected = json!([{
        "crd": name, "when": "afterDeploy", "storageVersion": "v2", "objects": 1, "toWrite": 1,
        "result": {"outcome": "migrated", "written": 1, "storedVersions": ["v2"]},
    }]);
    assert_eq!(run.report()["migrations"], expected);
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
    let again = deploy(&samples, both(), &[]).run();
    again.code(0).contains_nowhere("wrote 1 object");
}

#[test]
fn what_the_schemas_tell_about_objects_that_move_later_is_said_before() {
    let samples = StoredSamples::new();
    samples.apply(samples.v1());
    samples.create("v1", "one", json!({"a": "1", "b": "2"}));
    samples.create("v1", "two", json!({"a": "1"}));
    let name = samples.crd_name();
    let narrower = samples.v1_and_v2(&["a"]);
    let run = deploy(&samples, narrower, &["--dry-run", "-o", "json", "--preflight", "APIAvailability"]).run();
    run.code(0).stderr_contains(&format!(
        "after the deploy: {name}: 2 objects, to write at v2; v2 lacks spec.b: if an object has a value there, none of them moves"
    ));
    let expected = json!([{"crd": name, "when": "afterDeploy", "storageVersion": "v2", "objects": 2}]);
    assert_eq!(run.report()["migrations"], expected);
}

#[test]
fn nothing_moves_if_the_deploy_is_blocked_for_another_reason() {
    let samples = with_unserved_v1();
    let narrower = samples.builder().version_of_spec("v2", string_fields(&["a"])).status_subresource();
    let run = deploy(&samples, narrower, &[]).run();
    run.code(3).stdout_contains("NoExistingFieldRemoved");
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v1", json!(["v1", "v2"])));
}

#[test]
fn a_version_that_is_still_served_is_removed_in_the_steps_that_are_printed() {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    let run = deploy(&samples, only_v2(&samples), &[]).run();
    run.code(3).stdout_contains("NoStoredVersionRemoved").stdout_contains("at served: false");
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v1", json!(["v1", "v2"])));
}

#[test]
fn lost_values_end_the_deploy_before_it_writes_with_the_command_that_accepts_them() {
    let samples = StoredSamples::moved(&["one"], &["a"]);
    let unserved = samples.v1().served(false).storage(false).version_of_spec("v2", string_fields(&["a"]));
    samples.set_versions(unserved.storage(true).status_subresource());
    let without_v1 = || samples.builder().version_of_spec("v2", string_fields(&["a"])).status_subresource();
    let run = deploy(&samples, without_v1(), &[]).run();
    let name = samples.crd_name();
    run.code(3).stderr_contains("can have values of spec.b, which v2 lacks");
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v1", json!(["v1", "v2"])));
    // With the flags of the deploy by which it found the cluster, as the user of no kubeconfig.
    let (kubeconfig, none) = (control_plane().kubeconfig("admin"), samples.bed.folder.path().join("none"));
    let flags = ["--kubeconfig", kubeconfig.to_str().unwrap(), "--context", "test", "--yes"];
    let run = deploy(&samples, without_v1(), &flags).kubeconfig(&none).run();
    let accept = format!("gantry migrate {name} --prune-stored-versions --accept-loss ");
    let moved = run_migrate(&samples, run.code(3).stderr_contains(&accept), &none, &[]);
    moved.code(0).stdout_contains("wrote 1 object; verified; status.storedVersions is [v2]");
    deploy(&samples, without_v1(), &[]).run().code(0);
    assert_eq!(samples.stored("one")["spec"], json!({"a": "1"}));
}

#[test]
fn what_a_webhook_loses_after_the_deploy_is_said_and_the_deploy_stays() {
    let webhook = Webhook::start(control_plane(), |review| Webhook::answer(review, webhooks::rename_and_lose_color));
    let samples = StoredSamples::new();
    let v1 = || samples.builder().version_of_spec("v1", string_fields(&["size", "color"]));
    samples.apply(v1());
    samples.create("v1", "two", json!({"size": "large", "color": "red"}));
    let v2 = v1().storage(false).version_of_spec("v2", string_fields(&["amount", "color"])).storage(true);
    let v2 = v2.conversion(&webhook.conversion());
    let run = deploy(&samples, v2, &["--preflight", "CRDUpgradeSafety", "-o", "json"]).run();
    let blocked = json!({"outcome": "blocked", "written": 0});
    assert_eq!(run.report()["migrations"][0]["result"], blocked, "{run}");
    run.code(1).stderr_contains("the manifests are deployed; the migration of").stderr_contains("loses 1 value");
    assert_eq!(samples.crd()["spec"]["versions"].as_array().map(Vec::len), Some(2));
    assert_eq!((samples.version_of("two").as_str(), samples.stored_versions()), ("v1", json!(["v1", "v2"])));
    let moved = run_migrate(&samples, &run, &control_plane().kubeconfig("admin"), &[]);
    moved.code(0).stdout_contains("wrote 1 object; verified");
    assert_eq!((samples.version_of("two").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
}

#[test]
fn a_user_who_does_not_move_the_objects_now_gets_the_command_that_moves_them() {
    let samples = StoredSamples::new();
    samples.apply(samples.v1());
    samples.create("v1", "one", json!({"a": "1", "b": "2"}));
    let mut terminal = deploy(&samples, samples.v1_and_v2(&["a", "b"]), &[]).env("NO_COLOR", "1").on_terminal();
    terminal
        .wait_for("After the deploy the stored objects of 1 CRD (1 object) move to the storage version, after another");
    terminal.wait_for("Update 1 in");
    terminal.press("y\n");
    terminal.wait_for("Write 1 object of 1 CRD");
    terminal.press("n\n");
    let output = terminal.wait();
    output.code(1).stderr_contains("to move them later:");
    let command = format!("gantry migrate {} --prune-stored-versions", samples.crd_name());
    output.stderr_contains(&command);
    run_migrate(&samples, &output, &control_plane().kubeconfig("admin"), &["--yes"]).code(0);
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
}

#[test]
fn a_missing_right_is_found_before_anything_is_written() {
    let samples = with_unserved_v1();
    let user = control_plane().user(&json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["patch"]},
        {"nonResourceURLs": ["*"], "verbs": ["get"]},
    ]));
    let run =
        deploy_as(&samples, &user, only_v2(&samples), &["--preflight", "CRDUpgradeSafety,PermissionValidation"]).run();
    run.code(1).stderr_contains("patch").stderr_contains("samples");
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v1", json!(["v1", "v2"])));
}

#[test]
fn other_targets_and_several_clusters_are_refused() {
    let samples = StoredSamples::new();
    let run = deploy(&samples, samples.v1(), &["--target", "dir:cluster"]).run();
    run.code(2).stderr_contains("--migrate: only the API server of a cluster has stored objects");
    let run = deploy(&samples, samples.v1(), &["--context", "test,test2"]).run();
    run.code(2);
}

#[test]
fn on_a_terminal_each_step_is_asked_for() {
    let samples = with_unserved_v1();
    let mut terminal = deploy(&samples, only_v2(&samples), &[]).on_terminal();
    terminal.wait_for("Write 1 object of 1 CRD and trim the stored versions");
    terminal.press("y\n");
    terminal.wait_for("Update 1 in");
    terminal.press("y\n");
    terminal.wait().code(0);
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
    assert_eq!(samples.crd()["spec"]["versions"].as_array().map(Vec::len), Some(1));
}
