//! Migrations that lose nothing.

use serde_json::{Value, json};

use super::samples::StoredSamples;
use crate::support::{CrdBuilder, control_plane, eventually, fields, string_fields, text};

/// What must not change: content, generation, and who owns which fields.
fn content(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!([object["spec"], object["status"], metadata["generation"], metadata["managedFields"], metadata["finalizers"]])
}

#[test]
fn objects_move_to_the_storage_version_and_nothing_else_changes() {
    let samples = StoredSamples::moved(&["one", "two"], &["a", "b", "new"]);
    let status = json!({"status": {"phase": "Ready"}});
    let (code, _) = control_plane().patch(&format!("{}/two/status", samples.path("v1")), &status);
    assert_eq!(code, 200);
    // A write by anybody stores at v2.
    let label = json!({"metadata": {"labels": {"team": "a"}}});
    assert_eq!(control_plane().patch(&format!("{}/two", samples.path("v1")), &label).0, 200);
    let before = ["one", "two"].map(|name| content(&samples.stored(name)));
    assert_eq!((samples.version_of("one").as_str(), samples.version_of("two").as_str()), ("v1", "v2"));

    let name = samples.crd_name();
    let plan = format!("{name}: 2 objects, to write at v2; stored versions: v1, v2; nothing is lost\n");
    assert_eq!(samples.migrate(&["--dry-run"]).run().code(0).stdout, plan);
    assert_eq!(samples.version_of("one"), "v1");

    let run = samples.migrate(&["--yes", "--prune-stored-versions"]).run();
    run.code(0).stdout_contains(&plan);
    run.stdout_contains(&format!("{name}: wrote 2 objects"));
    run.stdout_contains("verified; status.storedVersions is [v2]\n");
    assert_eq!(["one", "two"].map(|name| samples.version_of(name)), ["v2", "v2"]);
    assert_eq!(["one", "two"].map(|name| content(&samples.stored(name))), before);
    assert_eq!(samples.stored_versions(), json!(["v2"]));
    assert_eq!(samples.crd()["metadata"]["annotations"]["gantry.dev/stored-since"], Value::Null);

    // The next run has nothing to do, and the server lets the old version go.
    let run = samples.migrate(&[]).run();
    assert_eq!(run.code(0).stdout, format!("{name}: nothing to do: all objects are stored at v2 (2 objects)\n"));
    let only_v2 = samples.builder().version_of_spec("v2", string_fields(&["a", "b", "new"]));
    samples.apply(only_v2.status_subresource());
    assert_eq!(samples.get("v2", "one")["spec"], json!({"a": "1", "b": "2"}));
}

#[test]
fn what_gantry_itself_applied_moves_unchanged() {
    let samples = StoredSamples::new();
    samples.apply(samples.v1());
    let (bed, group) = (&samples.bed, &samples.bed.names.group);
    let mut object = bed.object(&format!("{group}/v1"), "Sample", "one", json!({"spec": {"a": "1", "b": "2"}}));
    object["metadata"]["labels"] = json!({"team": "a"});
    bed.write_objects([&object]);
    bed.deploy(control_plane().kubeconfig("admin"), &["-a", "app"]).run().code(0);
    // Somebody applied as the name that gantry takes next.
    let path = format!("{}/one", samples.path("v1"));
    let own = samples.object("v1", "one", json!({"a": "1"}));
    assert_eq!(control_plane().server_side_apply(&path, "gantry-migrate", &own).0, 200);
    samples.apply(samples.v1_and_v2(&["a", "b", "new"]));
    let before = samples.stored("one");
    samples.migrate(&["--yes", "--prune-stored-versions"]).run().code(0).stdout_contains("nothing is lost");
    let after = samples.stored("one");
    assert_eq!((content(&after), &after["metadata"]["labels"]), (content(&before), &before["metadata"]["labels"]));
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
}

#[test]
fn without_the_flag_the_stored_versions_stay_and_a_second_run_writes_only_what_is_new() {
    let samples = StoredSamples::moved(&["one", "two"], &["a", "b"]);
    let run = samples.migrate(&["--yes"]).run();
    run.code(0).stdout_contains("status.storedVersions still has v1: --prune-stored-versions removes it");
    assert_eq!(samples.stored_versions(), json!(["v1", "v2"]));
    let annotation = samples.crd()["metadata"]["annotations"]["gantry.dev/stored-since"].clone();
    assert!(text(&annotation).starts_with("{\"version\":\"v2\""), "{annotation}");
    samples.create("v1", "three", json!({"a": "1"}));
    let run = samples.migrate(&["--prune-stored-versions", "--yes", "-o", "json"]).run();
    let report: Value = serde_json::from_str(&run.code(0).stdout).expect("JSON");
    let crd = &report["crds"][0];
    assert_eq!((&crd["objects"], &crd["toWrite"], &crd["continued"]), (&json!(3), &json!(0), &json!(true)));
    assert_eq!(crd["result"]["storedVersions"], json!(["v2"]));
    assert_eq!(samples.stored_versions(), json!(["v2"]));
}

#[test]
fn a_mark_of_another_crd_does_not_count() {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    let mark = json!({"version": "v2", "uid": "of-another-crd", "generation": samples.crd()["metadata"]["generation"],
        "resourceVersion": u32::MAX, "complete": true});
    let annotation = json!({"metadata": {"annotations": {"gantry.dev/stored-since": mark.to_string()}}});
    assert_eq!(control_plane().patch(&samples.bed.crd_path(), &annotation).0, 200);
    samples.migrate(&["--yes", "--prune-stored-versions"]).run().code(0).stdout_contains("wrote 1 object;");
    assert_eq!(samples.version_of("one"), "v2");
}

#[test]
fn a_mark_of_another_storage_version_does_not_count() {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    samples.migrate(&["--yes"]).run().code(0);
    // Back to v1, where somebody writes an object, and to v2 again.
    let back = samples.v1().version_of_spec("v2", string_fields(&["a", "b"])).status_subresource();
    samples.set_versions(back);
    let label = json!({"metadata": {"labels": {"team": "a"}}});
    eventually("the server to store at v1", || {
        assert_eq!(control_plane().patch(&format!("{}/one", samples.path("v1")), &label).0, 200);
        let none = json!({"metadata": {"labels": null}});
        assert_eq!(control_plane().patch(&format!("{}/one", samples.path("v1")), &none).0, 200);
        (samples.version_of("one") == "v1").then_some(())
    });
    samples.set_versions(samples.v1_and_v2(&["a", "b"]));
    assert!(samples.crd()["metadata"]["annotations"]["gantry.dev/stored-since"].is_string());
    samples.migrate(&["--yes", "--prune-stored-versions"]).run().code(0).stdout_contains("wrote 1 object;");
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
}

#[test]
fn objects_that_only_ratcheting_tolerates_move() {
    let samples = StoredSamples::new();
    samples.apply(samples.v1());
    samples.create("v1", "long", json!({"a": "much too long"}));
    samples.create("v1", "twice", json!({"a": "x", "b": "y"}));
    let strict = json!({
        "type": "object",
        "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "!has(self.b) || self.b == self.a"}, {"rule": "self == oldSelf"}],
    });
    samples.apply(samples.v1().storage(false).version_of_spec("v2", strict).storage(true).status_subresource());
    samples.migrate(&["--yes", "--prune-stored-versions"]).run().code(0);
    assert_eq!(["long", "twice"].map(|name| samples.version_of(name)), ["v2", "v2"]);
}

#[test]
fn objects_with_finalizers_and_those_being_deleted_move() {
    let samples = StoredSamples::moved(&["kept", "leaving"], &["a", "b"]);
    let finalizers = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    // The write stores the object at v2, so it is put back as it was.
    let path = format!("{}/leaving", samples.path("v1"));
    assert_eq!(control_plane().patch(&path, &finalizers).0, 200);
    assert_eq!(control_plane().delete(&path).0, 200);
    let mut old = samples.stored("leaving");
    old["apiVersion"] = format!("{}/v1", samples.bed.names.group).into();
    let (group, namespace) = (&samples.bed.names.group, &samples.bed.names.namespace);
    control_plane().store(&format!("/registry/{group}/samples/{namespace}/leaving"), &old);
    samples.migrate(&["--yes", "--prune-stored-versions"]).run().code(0);
    assert_eq!(["kept", "leaving"].map(|name| samples.version_of(name)), ["v2", "v2"]);
    assert!(samples.get("v2", "leaving")["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(control_plane().patch(&path, &json!({"metadata": {"finalizers": null}})).0, 200);
}

#[test]
fn cluster_scoped_objects_move_and_a_storage_version_that_is_not_served_is_no_obstacle() {
    let samples = StoredSamples::cluster_scoped();
    samples.apply(samples.v1());
    samples.create("v1", "one", json!({"a": "1", "b": "2"}));
    samples.apply(samples.v1_and_v2(&["a", "b"]).served(false));
    samples.migrate(&["--yes", "--prune-stored-versions"]).run().code(0).stdout_contains("wrote 1 object;");
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
    assert_eq!(samples.get("v1", "one")["spec"], json!({"a": "1", "b": "2"}));
}

#[test]
fn managed_fields_at_a_version_that_is_not_served_any_more_move_so_that_applies_work_without_it() {
    let samples = StoredSamples::new();
    samples.apply(samples.v1());
    let path = |version: &str| format!("{}/one", samples.path(version));
    let object = |version: &str| samples.object(version, "one", json!({"a": "1"}));
    assert_eq!(control_plane().server_side_apply(&path("v1"), "owner", &object("v1")).0, 201);
    samples.apply(samples.v1_and_v2(&["a", "b"]));
    samples.migrate(&["--yes", "--prune-stored-versions"]).run().code(0);
    let unserved = samples.v1().served(false).storage(false).version_of_spec("v2", string_fields(&["a", "b"]));
    samples.apply(unserved.storage(true).status_subresource());
    let run = samples.migrate(&["--yes"]).run();
    run.code(0).stdout_contains(
        "1 object, all are stored at v2; managedFields of 1 name versions that are not served, and are changed to v2",
    );
    let owners = samples.get("v2", "one")["metadata"]["managedFields"].clone();
    assert_eq!(owners[0]["apiVersion"], format!("{}/v2", samples.bed.names.group), "{owners:#}");
    samples.apply(samples.builder().version_of_spec("v2", string_fields(&["a", "b"])).status_subresource());
    eventually("an apply without v1", || {
        let (status, _) = control_plane().server_side_apply(&path("v2"), "owner", &object("v2"));
        (status == 200).then_some(())
    });
}

#[test]
fn an_object_that_server_side_apply_cannot_parse_moves_all_the_same() {
    let list = |extra: Value| {
        let mut list = json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}});
        list.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        fields(json!({"list": list}))
    };
    let samples = StoredSamples::new();
    samples.apply(samples.builder().version_of_spec("v1", list(json!({}))));
    // Without its key.
    samples.create("v1", "one", json!({"list": [{}]}));
    let keyed = json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
        "type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}});
    let both: CrdBuilder =
        samples.builder().version_of_spec("v1", list(json!({}))).storage(false).version_of_spec("v2", list(keyed));
    samples.apply(both.storage(true));
    let path = format!("{}/one", samples.path("v2"));
    let nothing =
        json!({"apiVersion": format!("{}/v2", samples.bed.names.group), "kind": "Sample", "metadata": {"name": "one"}});
    eventually("an apply to be refused", || {
        (control_plane().server_side_apply(&path, "other", &nothing).0 == 500).then_some(())
    });
    samples.migrate(&["--yes", "--prune-stored-versions"]).run().code(0).stdout_contains("wrote 1 object;");
    assert_eq!(samples.version_of("one"), "v2");
    assert_eq!(samples.get("v2", "one")["metadata"]["managedFields"][0]["manager"], "owner");
}

#[test]
fn objects_that_the_status_forgot_are_written_if_the_status_is_not_trusted() {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    let path = format!("{}/status", samples.bed.crd_path());
    eventually("v1 to be taken out of the status", || {
        let by_hand = json!({"status": {"storedVersions": ["v2"]}});
        assert_eq!(control_plane().patch(&path, &by_hand).0, 200);
        (samples.stored_versions() == json!(["v2"])).then_some(())
    });
    let name = samples.crd_name();
    let run = samples.migrate(&[]).run();
    assert_eq!(run.code(0).stdout, format!("{name}: nothing to do: all objects are stored at v2 (1 object)\n"));
    assert_eq!(samples.version_of("one"), "v1");
    let run = samples.migrate(&["--every-object", "--yes"]).run();
    run.code(0).stdout_contains(&format!("{name}: wrote 1 object; verified\n"));
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
    samples.bed.gantry(control_plane().kubeconfig("admin"), &["migrate", "--all", "--every-object"]).run().code(2);
}
