//! Hooks and waves of Argo CD and Helm: they are written in their order, and those of other events are not written.

use crate::controllers::cluster;
use crate::order::written;
use crate::support::{Bed, Proxy, control_plane};
use crate::waiting::{ended, status};
use serde_json::{Value, json};

const HOOK: &str = "argocd.argoproj.io/hook";
const WAVE: &str = "argocd.argoproj.io/sync-wave";
const HELM: &str = "helm.sh/hook";

fn config_map(bed: &Bed, name: &str, annotations: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": bed.names.namespace, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}})
}

fn job(bed: &Bed, name: &str, image: &str, annotations: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": bed.names.namespace, "annotations": annotations});
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": image}]}});
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": pod}})
}

/// Writes each object on its own line, with separators between them.
fn write(bed: &Bed, objects: &[Value]) {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    bed.write("manifests.yaml", &texts.join("\n---\n"));
}

fn prepared() -> Bed {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed
}

fn exists(object: &Value) -> bool {
    let cp = control_plane();
    cp.get(&cp.path_of(object)).0 == 200
}

#[test]
fn hooks_that_are_not_for_a_deploy_are_not_written() {
    let events = [
        (HOOK, "PostDelete"),
        (HOOK, "PreDelete"),
        (HOOK, "SyncFail"),
        (HOOK, "Skip"),
        (HOOK, "SyncFail, PostDelete"),
        (HOOK, "presync"),
        (HOOK, ""),
        (HELM, "test"),
        (HELM, "test-success"),
        (HELM, "pre-delete"),
        (HELM, "post-delete"),
        (HELM, "pre-rollback,post-rollback"),
        (HELM, "Post-Delete"),
        (HELM, "pre-instal"),
    ];
    for has_app in [true, false] {
        let bed = prepared();
        let namespace = &bed.names.namespace;
        let hook = |(index, (key, event)): (usize, &(&str, &str))| {
            job(&bed, &format!("hook{index}"), "a", &json!({*key: event}))
        };
        let hooks: Vec<Value> = events.iter().enumerate().map(hook).collect();
        let plain = config_map(&bed, "plain", &json!({}));
        write(&bed, &[&hooks[..], std::slice::from_ref(&plain)].concat());
        let arguments = if has_app { &["-a", "shop", "-n", namespace][..] } else { &[] };
        let output = bed.deploy(control_plane().kubeconfig("admin"), arguments).run();
        output.code(0).stdout_contains("1 created, 14 skipped");
        for (index, (object, (key, event))) in hooks.iter().zip(events).enumerate() {
            assert!(!exists(object), "{event:?}\n{output}");
            let first = event.split(',').next().unwrap_or_default();
            output.stderr_contains(&format!("job.batch/hook{index} -n {namespace} is not written ({key}: {first})"));
            output.stderr_contains(&format!("notice: manifests.yaml:{}:", 2 * index + 1));
        }
        assert!(exists(&plain), "{output}");
        if has_app {
            // They are no members.
            let arguments = ["delete", "-a", "shop", "-n", namespace, "--yes"];
            bed.gantry(control_plane().kubeconfig("admin"), &arguments).run().code(0).stdout_contains("1 deleted");
        }
    }
}

#[test]
fn a_hook_for_deletions_may_have_an_unserved_kind() {
    let bed = prepared();
    let metadata = json!({"name": "clean-up", "namespace": bed.names.namespace, "annotations": {HOOK: "PostDelete"}});
    let workflow = json!({"apiVersion": "argoproj.example.com/v1", "kind": "Workflow", "metadata": metadata});
    let metadata = json!({"name": "package", "annotations": {"config.kubernetes.io/local-config": "true"}});
    let kptfile = json!({"apiVersion": "kpt.example.com/v1", "kind": "Kptfile", "metadata": metadata});
    let plain = config_map(&bed, "plain", &json!({}));
    write(&bed, &[workflow, kptfile, plain.clone()]);
    let output = bed.deploy(control_plane().kubeconfig("admin"), &[]).run();
    output
        .code(0)
        .stderr_contains("workflow.argoproj.example.com/clean-up")
        .stderr_contains("notice: manifests.yaml:1:");
    output.stderr_contains("kptfile.kpt.example.com/package").stdout_contains("1 created");
    assert!(exists(&plain));
}

#[test]
fn hooks_and_waves_are_written_in_their_order_and_deleted_in_the_opposite_one() {
    let bed = prepared();
    let proxy = Proxy::start(control_plane());
    let objects = [
        config_map(&bed, "post-late", &json!({HELM: "post-install,post-upgrade", "helm.sh/hook-weight": "5"})),
        config_map(&bed, "post", &json!({HOOK: "PostSync"})),
        config_map(&bed, "late", &json!({WAVE: "2"})),
        config_map(&bed, "plain", &json!({})),
        config_map(&bed, "sync", &json!({HOOK: "Sync", WAVE: "1"})),
        config_map(&bed, "early", &json!({WAVE: "-1"})),
        config_map(&bed, "pre", &json!({HELM: "pre-install"})),
        config_map(&bed, "pre-early", &json!({HELM: "pre-install", "helm.sh/hook-weight": "-3"})),
        // Its own annotation replaces that of Helm.
        config_map(&bed, "pre-argo", &json!({HELM: "post-install", HOOK: "PreSync", WAVE: "7"})),
    ];
    write(&bed, &objects);
    let namespace = &bed.names.namespace;
    let app = |command: &str, flags: &[&str]| {
        let arguments = [command, "-a", "shop", "-n", namespace];
        bed.gantry(proxy.kubeconfig("admin"), &[&arguments, flags].concat()).run()
    };
    app("deploy", &["-f", "manifests.yaml"]).code(0).contains_nowhere("notice");
    let order = ["pre-early", "pre", "pre-argo", "early", "plain", "sync", "late", "post", "post-late"];
    assert_eq!(written(&proxy, "PATCH"), order);
    app("deploy", &["-f", "manifests.yaml"]).code(0).stdout_contains("9 objects unchanged");

    app("delete", &["--yes"]).code(0);
    let deleted = written(&proxy, "DELETE");
    let place =
        |name: &str| deleted.iter().position(|deleted| deleted == name).unwrap_or_else(|| panic!("{deleted:?}"));
    assert_eq!(deleted.len(), 9);
    let waves = ["pre-argo", "late", "sync", "plain", "early"];
    assert!(waves.is_sorted_by_key(|name| place(name)), "{deleted:?}");
}

#[test]
fn the_namespace_of_a_hook_comes_before_the_hook_and_everything_else_after_it() {
    let bed = Bed::new();
    let proxy = Proxy::start(control_plane());
    let namespace: Value = serde_yaml::from_str(&bed.namespace()).expect("a namespace");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "account", "namespace": bed.names.namespace}});
    let hook = config_map(&bed, "migrate", &json!({HOOK: "PreSync"}));
    write(&bed, &[account, hook, namespace]);
    bed.deploy(proxy.kubeconfig("admin"), &[]).run().code(0).stdout_contains("3 created");
    assert_eq!(written(&proxy, "PATCH"), ["migrate", "account"]);
}

#[test]
fn objects_after_a_hook_wait_until_it_has_succeeded() {
    let bed = prepared();
    let hook = |image: &str| {
        job(&bed, "migrate", image, &json!({HOOK: "PreSync", "argocd.argoproj.io/hook-delete-policy": "HookSucceeded"}))
    };
    let plain = |value: &str| {
        let mut plain = config_map(&bed, "plain", &json!({}));
        plain["data"]["a"] = value.into();
        plain
    };
    let deploy = |objects: &[Value], flags: &[&str]| {
        write(&bed, objects);
        let arguments = ["-a", "shop", "-n", &bed.names.namespace, "--wait-timeout=1s"];
        bed.deploy(control_plane().kubeconfig("admin"), &[&arguments, flags].concat()).run()
    };
    let output = deploy(&[plain("1"), hook("a")], &[]);
    output.code(5).stdout_contains("job.batch/migrate");
    output.stderr_contains("HookSucceeded: the object stays in the cluster after it has run");
    assert!(exists(&hook("a")) && !exists(&plain("1")), "{output}");
    deploy(&[plain("1"), hook("a")], &[]).code(5);
    assert!(!exists(&plain("1")), "an unchanged hook that has not succeeded holds back the rest");
    status(&hook("a"), ended("Complete", ""));
    deploy(&[plain("1"), hook("a")], &[]).code(0).stdout_contains("1 created, 1 unchanged");
}

#[test]
fn a_hook_that_changes_runs_again_and_one_that_is_unchanged_only_with_a_nonce() {
    let bed = Bed::new();
    cluster().apply_yaml(&bed.namespace());
    let hook = |image: &str| job(&bed, "migrate", image, &json!({HOOK: "PreSync"}));
    let plain = |value: &str| {
        let mut plain = config_map(&bed, "plain", &json!({}));
        plain["data"]["a"] = value.into();
        plain
    };
    let uid = || cluster().get(&cluster().path_of(&hook("a"))).1["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let deploy = |objects: &[Value]| {
        write(&bed, objects);
        let arguments = ["-a", "shop", "-n", &bed.names.namespace, "--wait=false"];
        bed.deploy(cluster().kubeconfig("admin"), &arguments).run()
    };
    deploy(&[plain("1"), hook("a")]).code(0).stdout_contains("2 created");
    // A change of something else does not run it again, and a notice says so.
    let first = uid();
    let output = deploy(&[plain("2"), hook("a")]);
    output.code(0).stderr_contains("the object is unchanged, so this deploy does not run it again");
    output.stderr_contains("notice: manifests.yaml:3:").stderr_contains("kapp.k14s.io/nonce: \"\"");
    assert_eq!(uid(), first);
    deploy(&[plain("2"), hook("a")]).code(0).contains_nowhere("run it again");
    // The server refuses any change of a Job's template, so a hook that changes is a new object.
    deploy(&[plain("2"), hook("b")]).code(0).stdout_contains("1 replaced");
    let mut before = uid();
    assert_ne!(before, first);

    // As the notice advises: with a nonce, each deploy runs it.
    let mut each = hook("b");
    each["metadata"]["annotations"]["kapp.k14s.io/nonce"] = "".into();
    for _ in 0..2 {
        deploy(&[plain("2"), each.clone()]).code(0).stdout_contains("1 replaced");
        assert_ne!(uid(), before);
        before = uid();
    }
}

#[test]
fn a_deploy_that_does_not_wait_says_which_hook_it_does_not_wait_for() {
    let bed = prepared();
    let objects = [config_map(&bed, "plain", &json!({})), job(&bed, "migrate", "a", &json!({HELM: "pre-upgrade"}))];
    write(&bed, &objects);
    let output = bed.deploy(control_plane().kubeconfig("admin"), &[]).run();
    output.code(0).stderr_contains("helm.sh/hook").stderr_contains("is written when job.batch/migrate");
    output.stderr_contains("notice: manifests.yaml:3:").stderr_contains("-a NAME");
}

#[test]
fn an_order_that_contradicts_another_one_ends_the_run_before_anything_is_written() {
    let bed = prepared();
    let rule = json!({WAVE: "-1", "gantry.dev/change-rule": "upsert after upserting base"});
    let objects =
        [config_map(&bed, "first", &rule), config_map(&bed, "base", &json!({"gantry.dev/change-group": "base"}))];
    write(&bed, &objects);
    let output = bed.deploy(control_plane().kubeconfig("admin"), &[]).run();
    output.code(2).stderr_contains(WAVE).stderr_contains("gantry.dev/change-rule");
    assert!(!exists(&objects[0]) && !exists(&objects[1]));
}
