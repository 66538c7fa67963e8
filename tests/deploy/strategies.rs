//! What annotations of kapp ask of a deploy: objects that it leaves alone, and what it cannot do.

use crate::support::{Bed, control_plane, results};
use serde_json::{Value, json};

/// A ConfigMap with these annotations, as YAML.
fn config_map(bed: &Bed, name: &str, value: &str, annotations: &Value) -> String {
    let metadata = json!({"name": name, "namespace": bed.names.namespace, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}).to_string()
}

fn live(bed: &Bed, name: &str) -> Option<String> {
    let (status, answer) = control_plane().get(&bed.config_map_path(name));
    (status == 200).then(|| answer["data"]["a"].as_str().expect("a value").to_owned())
}

#[test]
fn what_an_annotation_leaves_alone_is_never_written() {
    let cp = control_plane();
    let bed = Bed::new();
    let admin = || cp.kubeconfig("admin");
    let kapp = |name: &str, value: &str| json!({format!("kapp.k14s.io/{name}"): value});
    let manifests = |value: &str| {
        let objects = [
            bed.namespace(),
            config_map(&bed, "noop", value, &kapp("noop", "")),
            config_map(&bed, "exists", value, &kapp("exists", "")),
            config_map(&bed, "once", value, &kapp("update-strategy", "skip")),
            config_map(&bed, "usual", value, &kapp("disable-wait", "")),
        ];
        bed.write("manifests.yaml", &objects.join("\n---\n"));
    };

    // Nothing is there: what is created only once is created, the rest stays missing.
    manifests("first");
    let output = bed.deploy(admin(), &[]).run();
    output.code(0).stderr_contains("configmap/exists").stderr_contains("does not exist yet");
    output.stdout_contains("3 created, 2 skipped");
    assert_eq!(["noop", "exists", "once", "usual"].map(|name| live(&bed, name).is_some()), [false, false, true, true]);

    // All is there, and differs.
    for name in ["noop", "exists"] {
        cp.apply_yaml(&config_map(&bed, name, "theirs", &json!({})));
    }
    manifests("second");
    let output = bed.deploy(admin(), &["--force-conflicts", "-o", "json"]).run();
    output.code(0).contains_nowhere("does not exist yet");
    let report = output.report();
    let mut results = results(&report);
    results.sort();
    let result =
        |name: &str| results.iter().find(|(object, _)| object.contains(name)).map(|(_, result)| result.as_str());
    assert_eq!(["noop", "exists", "once", "usual"].map(result), ["skipped", "skipped", "skipped", "applied"].map(Some));
    assert_eq!(report["summary"]["skipped"], 3);
    let now = ["noop", "exists", "once", "usual"].map(|name| live(&bed, name).expect("it is there"));
    assert_eq!(now, ["theirs", "theirs", "first", "second"]);

    // Nothing is left to do, and that is said so.
    bed.deploy(admin(), &[]).run().code(0).stdout_contains("2 objects unchanged, 3 skipped");
}

#[test]
fn an_absent_namespace_of_somebody_else_ends_the_deploy_before_it_writes() {
    let bed = Bed::new();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bed.names.namespace,
        "annotations": {"kapp.k14s.io/exists": ""}}});
    bed.write("manifests.yaml", &format!("{namespace}\n---\n{}", config_map(&bed, "a", "1", &json!({}))));
    let output = bed.deploy(control_plane().kubeconfig("admin"), &[]).run();
    output.code(1).stdout_contains("there is no namespace");
}

#[test]
fn a_versioned_object_blocks_and_a_nonce_is_a_notice() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let nonce = json!({"kapp.k14s.io/nonce": ""});
    let objects = [
        config_map(&bed, "plain", "1", &nonce),
        config_map(&bed, "other", "1", &nonce),
        config_map(&bed, "config", "1", &json!({"kapp.k14s.io/versioned": ""})),
    ];
    bed.write("manifests.yaml", &objects.join("\n---\n"));
    for more in [&["deploy"][..], &["check"], &["deploy", "--dry-run"]] {
        let arguments = [more, &["-f", "manifests.yaml", "--force-conflicts"]].concat();
        let output = bed.gantry(cp.kubeconfig("admin"), &arguments).run();
        output.code(3).stdout_contains("configmap/config").stdout_contains("kapp.k14s.io/versioned: ");
        output.stdout_contains("--> manifests.yaml:5:").stdout_contains("1 error. Nothing was written.");
        assert_eq!(output.stderr.matches("gantry writes the value as it is").count(), 1, "{output}");
    }
    assert_eq!(live(&bed, "plain"), None);
}
