//! How often a run waits for a distant server: it opens one connection, and requests that do not depend on each other
//! are sent without waiting for the answer to another.

use std::collections::BTreeSet;

use crate::support::{Bed, Proxy, Recorded, Relay, When, control_plane, eventually};

/// More objects than a server without HTTP/2 gets connections for at a time.
const OBJECTS: usize = 24;

/// A CRD and many ConfigMaps, live and in the manifests.
fn deployed() -> Bed {
    let bed = Bed::with_namespace();
    write(&bed, "first: {type: string}", "old");
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    bed
}

fn write(bed: &Bed, fields: &str, value: &str) {
    let names = (0..OBJECTS).map(|number| bed.config_map(&format!("map-{number}"), value));
    let documents: Vec<String> = [bed.crd(fields)].into_iter().chain(names).collect();
    bed.write("manifests.yaml", &documents.join("---\n"));
}

fn check(bed: &Bed, kubeconfig: std::path::PathBuf, more: &[&str]) -> crate::support::Gantry {
    bed.gantry(kubeconfig, &["check", "-f", "manifests.yaml"]).args(more)
}

/// Waits until the proxy has received as many different requests of this kind.
fn arrive(proxy: &Proxy, what: &str, expected: usize, is_one: impl Fn(&Recorded) -> bool) {
    eventually(what, || {
        let requests = proxy.requests();
        let found: BTreeSet<(&str, &str)> =
            requests.iter().filter(|request| is_one(request)).map(|one| (&*one.path, &*one.query)).collect();
        (found.len() == expected).then_some(())
    });
}

#[test]
fn a_check_and_a_deploy_open_one_connection_each() {
    let bed = deployed();
    let relay = Relay::start(control_plane());
    check(&bed, relay.kubeconfig(), &[]).run().code(0);
    assert_eq!(relay.take_connections(), 1, "of a check without changes");
    write(&bed, "first: {type: string}, second: {type: string}", "new");
    let checks = "AdmissionDryRun,APIAvailability,CRDUpgradeSafety,CustomResourceValidation,PermissionValidation";
    check(&bed, relay.kubeconfig(), &["--preflight", checks]).run().code(0);
    assert_eq!(relay.take_connections(), 1, "of a check of all objects");
    bed.deploy(relay.kubeconfig(), &[]).run().code(0).stdout_contains("25 updated");
    assert_eq!(relay.take_connections(), 1, "of a deploy");
    let run = check(&bed, relay.kubeconfig(), &[]).env("DISABLE_HTTP2", "true").run();
    run.code(0);
    assert!(relay.take_connections() > 1, "HTTP/1.1 has one connection for each concurrent request");
}

#[test]
fn nothing_is_requested_twice_if_nothing_changes() {
    let bed = deployed();
    let proxy = Proxy::start(control_plane());
    check(&bed, proxy.kubeconfig("admin"), &[]).run().code(0);
    // The objects, the kinds of the core group, and the release, which most runs need.
    assert_eq!(proxy.requests().len(), OBJECTS + 1 + 2, "{:#?}", proxy.requests());
}

#[test]
fn kinds_and_the_release_do_not_wait_for_live_crds() {
    let bed = deployed();
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new("GET", &bed.crd_path()));
    let run = check(&bed, proxy.kubeconfig("admin"), &[]).spawn();
    held.reached();
    arrive(&proxy, "kinds and release are requested", 2, |request| {
        ["/api/v1", "/version"].contains(&request.path.as_str())
    });
    drop(held);
    run.wait().code(0);
}

#[test]
fn all_objects_are_requested_at_once() {
    let bed = deployed();
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new("GET", "/configmaps/"));
    let run = check(&bed, proxy.kubeconfig("admin"), &[]).spawn();
    held.reached();
    arrive(&proxy, "all objects are requested", OBJECTS, |request| request.path.contains("/configmaps/"));
    drop(held);
    run.wait().code(0);
}

#[test]
fn dry_runs_do_not_wait_for_each_other_and_schemas_not_for_checks() {
    let bed = deployed();
    write(&bed, "first: {type: string}, second: {type: string}", "new");
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new("PATCH", &bed.config_map_path("map-0")).ending());
    let run = check(&bed, proxy.kubeconfig("admin"), &["--preflight", "AdmissionDryRun"]).spawn();
    held.reached();
    arrive(&proxy, "all dry runs are requested", OBJECTS, |request| {
        request.method == "PATCH" && request.path.contains("/configmaps/")
    });
    drop(held);
    run.wait().code(0);

    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new("PATCH", &bed.crd_path()));
    let run = check(&bed, proxy.kubeconfig("admin"), &[]).spawn();
    held.reached();
    arrive(&proxy, "schemas are requested", 1, |request| request.path == "/openapi/v3/api/v1");
    drop(held);
    run.wait().code(0);
}

#[test]
fn the_rights_of_an_administrator_are_reviewed_beside_the_list_of_rules() {
    let bed = deployed();
    write(&bed, "first: {type: string}", "new");
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new("POST", "/selfsubjectrulesreviews"));
    let run = check(&bed, proxy.kubeconfig("admin"), &["--preflight", "PermissionValidation"]).spawn();
    held.reached();
    arrive(&proxy, "the access review is requested", 1, |request| request.path.ends_with("/selfsubjectaccessreviews"));
    drop(held);
    run.wait().code(0);
}
