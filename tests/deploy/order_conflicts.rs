//! The order of a deploy: rules between what is written and what is deleted, and defaults that contradict each other.

use crate::support::{Proxy, Recorded, control_plane, eventually};
use crate::waiting::{Stage, available, status, widget, widgets};
use serde_json::{Value, json};

/// Method and name of each write of an object, without dry runs and the app's record.
fn writes(proxy: &Proxy) -> Vec<String> {
    let is_one = |request: &Recorded| !request.path.contains(".gantry") && !request.query.contains("dryRun");
    let line =
        |request: Recorded| format!("{} {}", request.method, request.path.rsplit('/').next().unwrap_or_default());
    proxy.writes().into_iter().filter(is_one).map(line).collect()
}

fn exists(object: &Value) -> bool {
    control_plane().get(&control_plane().path_of(object)).0 == 200
}

#[test]
fn a_deletion_begins_when_objects_written_before_it_are_ready() {
    let stage = Stage::new();
    let old = stage.config_map("old", json!({"gantry.dev/change-group": "x.example.com/old"}));
    let also =
        stage.config_map("also", json!({"kapp.k14s.io/change-rule": "delete after upserting x.example.com/new"}));
    let stays = stage.config_map("stays", json!({}));
    stage.write(&[&stays, &also, &old]);
    stage.deploy(&[]).run().code(0);
    let mut new = stage.deployment_named("new");
    new["metadata"]["annotations"] = json!({"gantry.dev/change-rule": "upsert before deleting x.example.com/old",
        "gantry.dev/change-group": "x.example.com/new"});
    stage.write(&[&stays, &new]);
    let proxy = Proxy::start(control_plane());
    let running = stage.deploy_as(proxy.kubeconfig("admin"), &["--prune=yes", "--prune-max=9"]).spawn();
    status(&new, available(1));
    assert_eq!(writes(&proxy), ["PATCH new"]);
    assert!(exists(&old) && exists(&also));
    status(&new, available(2));
    running.wait().code(0).stdout_contains("1 created, 2 deleted");
    let mut order = writes(&proxy);
    order[1..].sort();
    assert_eq!(order, ["PATCH new", "DELETE also", "DELETE old"]);
}

#[test]
fn a_rule_to_delete_before_a_write_blocks_the_deploy() {
    let stage = Stage::new();
    // The rule is on the live object, with a suffix.
    let rule = "kapp.k14s.io/change-rule.x";
    let old = stage.config_map("old", json!({rule: "delete before upserting x.example.com/{namespace}-new"}));
    let stays = stage.config_map("stays", json!({}));
    stage.write(&[&stays, &old]);
    stage.deploy(&[]).run().code(0);
    let new = stage.config_map("new", json!({"kapp.k14s.io/change-group": "x.example.com/{namespace}-{name}"}));
    stage.write(&[&stays, &new]);
    let (old_name, new_name) =
        (format!("configmap/old -n {}", stage.namespace()), format!("configmap/new -n {}", stage.namespace()));
    let proxy = Proxy::start(control_plane());
    let flags = ["--prune=yes", "--prune-max=9"];
    let report =
        stage.deploy_as(proxy.kubeconfig("admin"), &[&flags[..], &["-o", "json"]].concat()).run().code(3).report();
    let [error] = &report["errors"].as_array().expect("errors")[..] else { panic!("{report}") };
    assert_eq!(
        error["message"],
        format!(
            "{old_name}: {rule}: {old_name} would have to be deleted before {new_name} is written, and gantry deletes last"
        )
    );
    let help = error["help"].as_str().expect("a help");
    assert!(help.starts_with(&format!("deploy twice: first without {new_name}, which deletes {old_name}")), "{help}");
    assert_eq!(writes(&proxy), [""; 0]);
    assert!(exists(&old) && !exists(&new));
    // Two deploys, as it says.
    for (manifests, said) in [(&[&stays][..], "1 deleted"), (&[&stays, &new], "1 created")] {
        stage.write(manifests);
        stage.deploy(&flags).run().code(0).stdout_contains(said);
    }
    assert!(exists(&new) && !exists(&old));
}

/// Each of two webhook configurations can refuse objects of one kind, so these come after it. It is also about the
/// other kind, whose objects do not need it, so it comes after those.
#[test]
fn defaults_that_contradict_each_other_are_dropped_and_everything_is_written() {
    let stage = Stage::new();
    let (namespace, group) = (stage.namespace().to_owned(), stage.bed.names.group.clone());
    let gadgets: Value =
        serde_json::from_str(&widgets(&stage).to_string().replace("widget", "gadget").replace("Widget", "Gadget"))
            .expect("JSON");
    let one = widget(&stage, "first");
    let mut two = widget(&stage, "second");
    two["kind"] = "Gadget".into();
    let service = |name: &str| {
        let spec = json!({"selector": {"run": name}, "ports": [{"port": 443}]});
        stage.object("v1", "Service", name, json!({}), spec)
    };
    let workload = |name: &str| {
        let labels = json!({"run": name});
        let mut workload = stage.deployment_named(name);
        workload["spec"]["selector"]["matchLabels"] = labels.clone();
        workload["spec"]["template"]["metadata"]["labels"] = labels;
        workload
    };
    let hooks = |name: &str, refused: &str, seen: &[(&str, &str)]| {
        let webhook = |(group, plural): &(&str, &str), policy: &str| {
            let client = json!({"service": {"namespace": namespace, "name": name}, "caBundle": ""});
            let rules =
                json!([{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [plural]}]);
            // It matches no object.
            let selector = json!({"matchLabels": {"example.com/nothing": "here"}});
            json!({"name": format!("{plural}.example.com"), "clientConfig": client, "rules": rules, "failurePolicy": policy,
                "objectSelector": selector, "sideEffects": "None", "admissionReviewVersions": ["v1"]})
        };
        let webhooks: Vec<Value> = [webhook(&(&group, refused), "Fail")]
            .into_iter()
            .chain(seen.iter().map(|kind| webhook(kind, "Ignore")))
            .collect();
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": format!("{namespace}-{name}")}, "webhooks": webhooks})
    };
    let configurations = [
        hooks("one", "widgets", &[(&group, "gadgets"), ("", "services")]),
        hooks("two", "gadgets", &[(&group, "widgets")]),
    ];
    let workloads = [workload("one"), workload("two")];
    let crds = [widgets(&stage), gadgets];
    let objects = [&crds[0], &crds[1], &one, &two, &service("one"), &service("two"), &workloads[0], &workloads[1]];
    let objects = [&objects[..], &[&configurations[0], &configurations[1]]].concat();
    stage.write(&objects);
    let proxy = Proxy::start(control_plane());
    let running = stage.deploy_as(proxy.kubeconfig("admin"), &[]).spawn();
    for workload in &workloads {
        eventually("the workload is written", || exists(workload).then_some(()));
    }
    assert!(!exists(&one) && !exists(&two), "they wait until the workloads are ready");
    workloads.iter().for_each(|workload| status(workload, available(2)));
    running.wait().code(0).stdout_contains("10 created");
    // What is about certain objects is kept.
    let order = writes(&proxy);
    let place = |name: &str| order.iter().position(|line| *line == format!("PATCH {name}")).expect("a write");
    for (configuration, resource) in [("one", "first"), ("two", "second")] {
        assert!(place(&format!("{namespace}-{configuration}")) < place(resource), "{order:?}");
    }
    assert!(objects.iter().all(|object| exists(object)));
    stage.deploy(&[]).run().code(0).stdout_contains("Nothing to do");
    let gone = configurations.iter().chain(&crds);
    gone.for_each(|object| drop(control_plane().delete(&control_plane().path_of(object))));
}
