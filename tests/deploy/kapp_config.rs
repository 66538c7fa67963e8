//! What kapp's Config says and a deploy honours.

use crate::support::{Bed, Proxy, Recorded, closed_port, control_plane};
use serde_json::{Value, json};

const GROUP: &str = "kapp.k14s.io/change-group";
const RULE: &str = "kapp.k14s.io/change-rule";

fn config_map(bed: &Bed, name: &str, annotations: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": bed.names.namespace, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// Each object on a line of its own, the separators between them.
fn write(bed: &Bed, objects: &[Value]) {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    bed.write("manifests.yaml", &texts.join("\n---\n"));
}

/// `body` from line 3.
fn config(bed: &Bed, body: &str) {
    bed.write("kapp.yaml", &format!("apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\n{body}"));
}

fn prepared() -> Bed {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed
}

/// The names of the ConfigMaps in the order in which they were written or deleted.
fn written(proxy: &Proxy, method: &str) -> Vec<String> {
    let is_one = |request: &Recorded| {
        request.method == method
            && !request.query.contains("dryRun")
            && request.path.contains("configmaps")
            && !request.path.ends_with(".gantry")
    };
    let name = |request: Recorded| request.path.rsplit('/').next().unwrap_or_default().to_owned();
    proxy.requests().into_iter().filter(is_one).map(name).collect()
}

#[test]
fn bindings_order_all_objects_that_their_matchers_fit() {
    let bed = prepared();
    let proxy = Proxy::start(control_plane());
    let namespace = &bed.names.namespace;
    write(
        &bed,
        &[
            config_map(&bed, "a-last", &json!({"late": "yes"})),
            config_map(&bed, "b-middle", &json!({GROUP: "middle"})),
            config_map(&bed, "c-first", &json!({"early": "yes"})),
        ],
    );
    config(
        &bed,
        &format!(
            "changeGroupBindings:
- name: of-{{namespace}}
  resourceMatchers:
  - andMatcher:
      matchers:
      - hasAnnotationMatcher: {{keys: [early]}}
      - hasNamespaceMatcher: {{names: [{namespace}]}}
changeRuleBindings:
- rules:
  - upsert after upserting middle
  resourceMatchers:
  - hasAnnotationMatcher: {{keys: [late]}}
- rules:
  - upsert after upserting of-{{namespace}}
  resourceMatchers:
  - kindNamespaceNameMatcher: {{kind: ConfigMap, namespace: {namespace}, name: b-middle}}
# Would close a cycle.
- rules:
  - upsert after upserting middle
  ignoreIfCyclical: true
  resourceMatchers:
  - allMatcher: {{}}
"
        ),
    );
    bed.deploy(proxy.kubeconfig("admin"), &["-c", "kapp.yaml"]).run().code(0);
    assert_eq!(written(&proxy, "PATCH"), ["c-first", "b-middle", "a-last"]);
}

#[test]
fn bindings_that_cannot_be_kept_or_read_end_the_run_before_any_request() {
    let bed = Bed::new();
    let nowhere = || closed_port(bed.folder.path());
    write(
        &bed,
        &[
            config_map(&bed, "a", &json!({GROUP: "a"})),
            config_map(&bed, "b", &json!({GROUP: "b", RULE: "upsert after upserting a"})),
        ],
    );
    let rule = "changeRuleBindings:
- rules:
  - upsert after upserting b
  resourceMatchers:
  - kindNamespaceNameMatcher: {kind: ConfigMap, namespace: NS, name: a}
"
    .replace("NS", &bed.names.namespace);
    config(&bed, &rule);
    let output = bed.deploy(nowhere(), &["-c", "kapp.yaml"]).run();
    output.code(2).stderr_contains("the order of the objects is a cycle");
    let namespace = &bed.names.namespace;
    output.stderr_contains(&format!("configmap/a -n {namespace} goes after configmap/b -n {namespace} (kapp.yaml:5)"));
    output.stderr_contains(&format!(
        "configmap/b -n {namespace} goes after configmap/a -n {namespace} (manifests.yaml:3)"
    ));

    config(&bed, &rule.replace("upserting b", "upserting {crd-kind}"));
    let output = bed.deploy(nowhere(), &["-c", "kapp.yaml"]).run();
    output.code(2).stderr_contains("{crd-kind} has no value for this object").stderr_contains("--> kapp.yaml:5:5");

    config(&bed, &rule.replace("kindNamespaceNameMatcher", "kindNameMatcher"));
    let output = bed.deploy(nowhere(), &["-c", "kapp.yaml"]).run();
    output.code(2).stderr_contains("unknown key").stderr_contains("--> kapp.yaml:7:5");
    output.stderr_contains("did you mean \"kindNamespaceNameMatcher\"?");
}

#[test]
fn a_config_among_the_manifests_orders_deletions() {
    let bed = prepared();
    let proxy = Proxy::start(control_plane());
    let among = |objects: &[Value], flags: &[&str]| {
        write(&bed, objects);
        let arguments = ["deploy", "-f", "manifests.yaml", "-f", "kapp.yaml", "-a", "shop", "-n", &bed.names.namespace];
        bed.gantry(proxy.kubeconfig("admin"), &[&arguments, flags].concat()).run()
    };
    config(
        &bed,
        "changeGroupBindings:
- name: deleted/{name}
  resourceMatchers:
  - allMatcher: {}
changeRuleBindings:
- rules:
  - delete after deleting deleted/c
  resourceMatchers:
  - hasAnnotationMatcher: {keys: [late]}
",
    );
    let (kept, late) = (config_map(&bed, "kept", &json!({})), json!({"late": "yes"}));
    let leaving =
        [kept.clone(), config_map(&bed, "a", &late), config_map(&bed, "b", &late), config_map(&bed, "c", &json!({}))];
    among(&leaving, &[]).code(0);
    among(&[kept], &["--prune=yes", "--prune-max=9"]).code(0).stdout_contains("3 deleted");
    assert_eq!(written(&proxy, "DELETE")[0], "c");
}
