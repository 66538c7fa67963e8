//! Faults, kills, and changes by others while a migration runs.

use serde_json::{Value, json};

use super::samples::StoredSamples;
use crate::support::{Proxy, When, control_plane};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const ALL: [&str; 2] = ["--yes", "--prune-stored-versions"];

fn versions(samples: &StoredSamples) -> Vec<String> {
    NAMES.iter().map(|name| samples.version_of(name)).collect()
}

/// Whether the migration is done, and nothing is lost.
fn is_done(samples: &StoredSamples) -> bool {
    for name in NAMES {
        assert_eq!(samples.get("v2", name)["spec"], json!({"a": "1", "b": "2"}));
    }
    samples.stored_versions() == json!(["v2"])
}

/// The stored versions are trimmed only if no object is left.
fn assert_not_trimmed_too_early(samples: &StoredSamples) {
    if samples.stored_versions() == json!(["v2"]) {
        assert_eq!(versions(samples), ["v2"; 4]);
    }
}

#[test]
fn killed_before_or_after_each_write_it_loses_nothing_and_another_run_ends() {
    // Four dry runs, the annotation, four writes, the trimmed versions, and the annotation again.
    std::thread::scope(|scope| {
        for nth in 1..=11 {
            scope.spawn(move || kill_and_run_again(nth));
        }
    });
}

fn kill_and_run_again(nth: usize) {
    let samples = StoredSamples::moved(&NAMES, &["a", "b"]);
    let proxy = Proxy::start(control_plane());
    let write = When::new("PATCH", "").nth(nth);
    if nth.is_multiple_of(2) {
        proxy.refuse_from(write)
    } else {
        proxy.lose_answer(write)
    }
    let run = samples.bed.gantry(proxy.kubeconfig("admin"), &["migrate", &samples.crd_name()]).args(ALL).run();
    assert!([Some(0), Some(1), Some(3)].contains(&run.code), "request {nth}: {run}");
    assert_not_trimmed_too_early(&samples);
    samples.migrate(&ALL).run().code(0);
    assert!(is_done(&samples), "request {nth}");
    assert_eq!(versions(&samples), ["v2"; 4]);
}

#[test]
fn a_server_that_is_busy_is_asked_again() {
    let samples = StoredSamples::moved(&NAMES, &["a", "b"]);
    let proxy = Proxy::start(control_plane());
    let busy =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "TooManyRequests", "code": 429});
    for nth in [2, 6, 7] {
        proxy.answer(When::new("PATCH", "/samples/").nth(nth), 429, busy.clone());
    }
    proxy.cut(When::new("PATCH", "/samples/").nth(9));
    samples.bed.gantry(proxy.kubeconfig("admin"), &["migrate", &samples.crd_name()]).args(ALL).run().code(0);
    assert!(is_done(&samples));
}

#[test]
fn objects_that_others_write_or_delete_meanwhile_keep_what_they_wrote() {
    let samples = StoredSamples::moved(&NAMES, &["a", "b"]);
    let proxy = Proxy::start(control_plane());
    let path = samples.path("v1");
    // Before the first write that is no dry run: after the annotation.
    proxy.before(When::new("PATCH", "/customresourcedefinitions/").nth(1), move || {
        assert_eq!(control_plane().patch(&format!("{path}/a"), &json!({"spec": {"a": "changed"}})).0, 200);
        assert_eq!(control_plane().delete(&format!("{path}/b")).0, 200);
        let (group, _) = path["/apis/".len()..].split_once('/').expect("a group");
        let new = json!({"apiVersion": format!("{group}/v1"), "kind": "Sample", "metadata": {"name": "e"}, "spec": {"b": "5"}});
        assert_eq!(control_plane().post(&path, &new).0, 201);
    });
    let run = samples.bed.gantry(proxy.kubeconfig("admin"), &["migrate", &samples.crd_name()]).args(ALL).run();
    run.code(0).stdout_contains("wrote 2 objects");
    assert_eq!(samples.stored("a")["spec"], json!({"a": "changed", "b": "2"}));
    assert_eq!(["a", "c", "d", "e"].map(|name| samples.version_of(name)), ["v2"; 4]);
    assert_eq!(samples.stored_versions(), json!(["v2"]));
}

#[test]
fn an_object_that_changes_between_list_and_write_is_not_overwritten() {
    let samples = StoredSamples::moved(&NAMES, &["a", "b"]);
    let proxy = Proxy::start(control_plane());
    let path = samples.path("v1");
    // The first four are dry runs.
    proxy.before(When::new("PATCH", "/samples/").nth(5), move || {
        for name in NAMES {
            let _ = control_plane().patch(&format!("{path}/{name}"), &json!({"metadata": {"labels": {"new": "yes"}}}));
        }
    });
    samples.bed.gantry(proxy.kubeconfig("admin"), &["migrate", &samples.crd_name()]).args(ALL).run().code(0);
    for name in NAMES {
        assert_eq!(samples.stored(name)["metadata"]["labels"], json!({"new": "yes"}), "{name}");
    }
    assert_eq!(versions(&samples), ["v2"; 4]);
}

#[test]
fn a_crd_that_changes_meanwhile_is_not_trimmed() {
    for request in ["first", "last"] {
        let samples = StoredSamples::moved(&NAMES, &["a", "b"]);
        let proxy = Proxy::start(control_plane());
        let changed = samples.v1().version_of_spec("v2", crate::support::string_fields(&["a", "b"]));
        let changed = changed.status_subresource().build().to_string();
        let when = match request {
            "first" => When::new("PATCH", "/samples/").nth(5),
            _ => When::new("PATCH", "/status"),
        };
        proxy.before(when, move || drop(control_plane().apply_yaml(&changed)));
        let run = samples.bed.gantry(proxy.kubeconfig("admin"), &["migrate", &samples.crd_name()]).args(ALL).run();
        run.code(1).stderr_contains("was changed meanwhile");
        assert_eq!(samples.stored_versions(), json!(["v1", "v2"]), "{request}");
    }
}

#[test]
fn two_migrations_at_once_both_end() {
    let samples = StoredSamples::moved(&NAMES, &["a", "b"]);
    let runs = [samples.migrate(&ALL).spawn(), samples.migrate(&ALL).spawn()];
    let codes: Vec<Option<i32>> = runs.into_iter().map(|run| run.wait().code).collect();
    assert_eq!(codes, [Some(0), Some(0)]);
    assert!(is_done(&samples));
    assert_eq!(samples.crd()["metadata"]["annotations"]["gantry.dev/stored-since"], Value::Null);
}

#[test]
fn an_interrupt_ends_after_the_requests_in_flight_and_another_run_does_the_rest() {
    let samples = StoredSamples::moved(&NAMES, &["a", "b"]);
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new("PATCH", "/samples/a").nth(2));
    let mut run = samples
        .bed
        .gantry(proxy.kubeconfig("admin"), &["migrate", &samples.crd_name(), "--parallel", "1"])
        .args(ALL)
        .spawn();
    held.reached();
    run.interrupt();
    run.wait_for_stderr("interrupted");
    drop(held);
    let run = run.wait();
    run.code(1).stderr_contains("interrupted; of samples.").stderr_contains("run the same command again for the rest");
    assert_eq!(versions(&samples), ["v2", "v1", "v1", "v1"]);
    assert_eq!(samples.stored_versions(), json!(["v1", "v2"]));
    let proxy = Proxy::start(control_plane());
    samples.bed.gantry(proxy.kubeconfig("admin"), &["migrate", &samples.crd_name()]).args(ALL).run().code(0);
    let written: Vec<String> =
        proxy.writes().into_iter().map(|request| request.path).filter(|path| path.contains("/samples/")).collect();
    assert_eq!(written.len(), 3, "{written:?}");
    assert!(is_done(&samples));
}
