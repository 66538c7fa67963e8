//! A server that does not answer a write within the time limit of a request.

use crate::support::{Bed, Gantry, Proxy, When, control_plane};

fn deploy(bed: &Bed, proxy: &Proxy) -> Gantry {
    bed.deploy(proxy.kubeconfig("admin"), &["--wait=crds"]).env("GANTRY_TIMEOUTS__REQUEST", "2s")
}

fn with_crd() -> (Bed, Proxy, When) {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.crd("first: {type: string}"));
    let when = When::new("PATCH", &bed.crd_path());
    (bed, Proxy::start(control_plane()), when)
}

#[test]
fn an_apply_without_a_response_is_sent_again() {
    let (bed, proxy, patch) = with_crd();
    let held = proxy.hold(patch.nth(1));
    deploy(&bed, &proxy).run().code(0).stdout_contains("1 created");
    drop(held);
    assert_eq!(control_plane().get(&bed.crd_path()).0, 200);
}

#[test]
fn an_apply_with_a_late_response_is_not_taken_for_a_foreign_change() {
    let (bed, proxy, patch) = with_crd();
    let held = proxy.hold_answer(patch.nth(1));
    deploy(&bed, &proxy).run().code(0).stdout_contains("1 created");
    drop(held);
    // The same for an update.
    bed.write("manifests.yaml", &bed.crd("first: {type: string}, second: {type: string}"));
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold_answer(When::new("PATCH", &bed.crd_path()).nth(1));
    deploy(&bed, &proxy).run().code(0).stdout_contains("1 updated");
    drop(held);
    let (_, crd) = control_plane().get(&bed.crd_path());
    assert!(crd["spec"]["versions"][0].to_string().contains("second"), "{crd}");
}

#[test]
fn a_foreign_object_is_not_taken_for_the_result_of_an_apply_without_a_response() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed.write("manifests.yaml", &bed.config_map("a", "ours"));
    let proxy = Proxy::start(control_plane());
    let theirs = bed.config_map("a", "theirs");
    let held = proxy.hold(When::new("PATCH", "/configmaps/a").nth(1));
    let running = deploy(&bed, &proxy).spawn();
    held.reached();
    control_plane().apply_yaml(&theirs);
    running.wait().code(1).stdout_contains("was created in the target after the checks ran");
    drop(held);
    assert!(!control_plane().get(&bed.config_map_path("a")).1["data"].to_string().contains("ours"));
}

#[test]
fn a_server_that_stays_slow_ends_the_deploy_with_the_setting_to_wait_longer() {
    let (bed, proxy, patch) = with_crd();
    let held = proxy.hold(patch);
    let output = deploy(&bed, &proxy).run();
    output.code(1).stdout_contains("it is unknown whether the object was written");
    output.stdout_contains("timeouts.request").stdout_contains("GANTRY_TIMEOUTS__REQUEST=2m");
    let patches = proxy.writes().iter().filter(|request| request.path == bed.crd_path()).count();
    assert_eq!(patches, 3);
    drop(held);
    // The advice.
    let longer =
        bed.deploy(control_plane().kubeconfig("admin"), &["--wait=crds"]).env("GANTRY_TIMEOUTS__REQUEST", "2m");
    longer.run().code(0);
    assert_eq!(control_plane().get(&bed.crd_path()).0, 200);
}
