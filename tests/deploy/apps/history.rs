//! What `gantry history` says of deploys that did not complete, and the way back that they name.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::Shop;
use super::undo::deployment;
use crate::support::{Output, Proxy, When, control_plane};

/// A server that denies writes of this ConfigMap.
fn denying(name: &str) -> Proxy {
    let proxy = Proxy::start(control_plane());
    let message = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden",
        "message": "admission webhook \"w\" denied the request: no"});
    proxy.answer(When::new("PATCH", &format!("/configmaps/{name}")).query("fieldManager"), 403, message);
    proxy
}

impl Shop {
    fn deploy_to(&self, kubeconfig: PathBuf, flags: &[&str]) -> Output {
        self.command(kubeconfig, &[&["deploy", "-f", "manifests.yaml", "-a", "shop"], flags].concat()).run()
    }

    /// The row of a revision in the table, without its alignment.
    fn row(&self, number: u64) -> String {
        let table = self.admin(&["history", "-a", "shop"]).code(0).stdout.clone();
        let number = number.to_string();
        let row = table.lines().find(|line| line.split_whitespace().next() == Some(&*number));
        let row = row.unwrap_or_else(|| panic!("no revision {number}:\n{table}"));
        row.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The annotations of the head of a revision.
    fn annotate(&self, number: u64, annotations: &Value) {
        let name = self.secrets(&format!("shop.gantry.r{number}."))[0]["metadata"]["name"].as_str().unwrap().to_owned();
        let path = format!("/api/v1/namespaces/{}/secrets/{name}", self.bed.names.namespace);
        let (status, answer) = control_plane().patch(&path, &json!({"metadata": {"annotations": annotations}}));
        assert_eq!(status, 200, "{answer}");
    }
}

fn counts(revision: &Value) -> [Value; 3] {
    ["created", "updated", "deleted"].map(|what| revision["changes"][what]["count"].clone())
}

/// Runs the command that a deploy printed to go back, with more flags.
fn go_back(shop: &Shop, output: &Output, flags: &[&str]) -> Output {
    let command = output.stderr.split("to go back to it: ").nth(1).unwrap_or_else(|| panic!("no command\n{output}"));
    let command = command.lines().next().unwrap().trim_end_matches(')');
    let words = shlex::split(command).expect("a command line");
    let arguments: Vec<&str> = words[1..].iter().map(String::as_str).chain(flags.iter().copied()).collect();
    shop.bed.gantry(control_plane().kubeconfig("admin"), &arguments).run()
}

#[test]
fn a_deploy_that_failed_has_what_it_changed_and_not_what_it_planned() {
    let shop = Shop::new();
    shop.config_maps(&["a", "gone"]);
    shop.deploy(&[]).code(0);
    // `b` and `a` are written: nothing after the failure, and nothing is deleted.
    let order = |name: &str, wave: &str| {
        let mut object = shop.config_map(name, "2");
        object["metadata"]["annotations"] = json!({"gantry.dev/change-group": format!("example.com/{name}")});
        if !wave.is_empty() {
            let rule = format!("upsert after upserting example.com/{wave}");
            object["metadata"]["annotations"]["gantry.dev/change-rule"] = rule.into();
        }
        object
    };
    shop.write(&[order("b", ""), order("a", "b"), order("c", "a"), order("d", "c")]);
    let proxy = denying("c");
    let failed = shop.deploy_to(proxy.kubeconfig("admin"), &["--prune=yes"]);
    failed.code(1).stdout_contains("Failed       configmap/c");
    let namespace = &shop.bed.names.namespace;
    let row = shop.row(2);
    assert!(row.contains(&format!("failed 1 created (configmap/b -n {namespace}); 1 updated (configmap/a")), "{row}");
    assert!(!row.contains("deleted") && !row.contains("planned"), "{row}");
    let history = shop.history();
    assert_eq!(counts(&history[1]), [json!(1), json!(1), json!(0)]);
    assert_eq!((&history[0]["planned"], &history[1]["planned"]), (&json!(false), &json!(false)));
    assert_eq!(history[1]["changes"]["created"]["names"], json!([format!("configmap/b -n {namespace}")]));

    // The same run again reaches nothing.
    shop.deploy_to(proxy.kubeconfig("admin"), &["--prune=yes"]).code(1);
    assert!(shop.row(3).ends_with("failed nothing"), "{}", shop.row(3));

    // An older gantry has not written what was done.
    let end = json!({"time": "2026-01-01T00:00:00Z", "outcome": "failed"}).to_string();
    shop.annotate(2, &json!({"gantry.dev/revision-outcome": end}));
    let row = shop.row(2);
    assert!(row.contains("failed planned: 3 created (configmap/b"), "{row}");
    let history = shop.history();
    assert_eq!((counts(&history[1]), &history[1]["planned"]), ([json!(3), json!(1), json!(1)], &json!(true)));
}

#[test]
fn a_lost_answer_and_a_deletion_that_does_not_end_are_neither_done_nor_left_out() {
    let shop = Shop::new();
    let mut held = shop.config_map("held", "1");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    shop.write(&[shop.config_map("a", "1"), held]);
    shop.deploy(&[]).code(0);
    shop.write(&[shop.config_map("a", "2")]);
    shop.bed.write("gantry.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\ntimeouts: {delete: 1s}\n");
    shop.deploy(&["--prune=yes"]).code(5);
    let row = shop.row(2);
    assert!(
        row.contains("not ready 1 updated (configmap/a") && row.contains("1 being deleted (configmap/held"),
        "{row}"
    );
    shop.patch("held", &json!({"metadata": {"finalizers": null}}));
    let proxy = Proxy::start(control_plane());
    proxy.lose_answer(When::new("PATCH", "/configmaps/a").query("fieldManager"));
    shop.write(&[shop.config_map("a", "3")]);
    shop.deploy_to(proxy.kubeconfig("admin"), &["--apply-timeout=1s"]).code(1);
    let row = shop.row(3);
    assert!(row.contains("1 perhaps changed (configmap/a"), "{row}");
}

#[test]
fn a_deploy_that_was_killed_has_what_it_planned() {
    let shop = Shop::new();
    shop.config_maps(&["a"]);
    shop.deploy(&[]).code(0);
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new("PATCH", "/configmaps/b"));
    shop.config_maps(&["a", "b"]);
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop"];
    let mut running = shop.command(proxy.kubeconfig("admin"), &arguments).spawn();
    held.reached();
    let row = shop.row(2);
    assert!(row.contains("(current)") && row.contains("in progress planned: 1 created (configmap/b"), "{row}");
    running.kill();
    drop(running);
    proxy.refuse();
    let row = shop.row(2);
    assert!(row.contains("interrupted planned: 1 created (configmap/b"), "{row}");
    let history = shop.history();
    assert_eq!((&history[1]["outcome"], &history[1]["planned"]), (&json!("interrupted"), &json!(true)));
}

#[test]
fn every_failed_run_names_the_way_back_while_something_is_changed() {
    let shop = Shop::new();
    let value = |name: &str| shop.get(name).map(|object| object["data"]["a"].clone());
    shop.write(&[shop.config_map("a", "1"), shop.config_map("b", "1")]);
    shop.deploy(&[]).code(0);
    // Nothing was changed, so there is nothing to go back from.
    let proxy = denying("b");
    shop.write(&[shop.config_map("a", "1"), shop.config_map("b", "2")]);
    shop.deploy_to(proxy.kubeconfig("admin"), &[]).code(1).contains_nowhere("gantry rollback");
    shop.write(&[shop.config_map("a", "2"), shop.config_map("b", "2")]);
    for _ in 0..3 {
        // The first run writes `a`, the others nothing.
        let output = shop.deploy_to(proxy.kubeconfig("admin"), &[]);
        output.code(1).stderr_contains("revision 1 of the app shop was deployed before");
        output.stderr_contains("to go back to it: gantry rollback 1 -a shop -n");
        assert_eq!((value("a"), value("b")), (Some(json!("2")), Some(json!("1"))));
    }
    let output = shop.deploy_to(proxy.kubeconfig("admin"), &[]);
    go_back(&shop, &output, &[]).code(0);
    assert_eq!((value("a"), value("b")), (Some(json!("1")), Some(json!("1"))));
}

#[test]
fn a_run_that_only_waits_in_vain_names_the_way_back() {
    let shop = Shop::new();
    let write = |image: &str| shop.write(&[deployment(&shop.bed, image)]);
    write("web:1");
    shop.deploy(&["--wait=false"]).code(0);
    write("web:2");
    let mut output = None;
    for _ in 0..2 {
        let run = shop.deploy(&["--wait-timeout=1s"]);
        run.code(5).stderr_contains("to go back to it: gantry rollback 1 -a shop -n");
        output = Some(run);
    }
    let report = shop.deploy(&["--wait-timeout=1s", "-o", "json"]).code(5).report();
    assert!(report["notices"].to_string().contains("gantry rollback 1 -a shop"), "{report:#}");
    go_back(&shop, &output.expect("a run"), &["--wait=false"]).code(0);
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", shop.bed.names.namespace);
    let live = control_plane().get(&path).1;
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "web:1");
}
