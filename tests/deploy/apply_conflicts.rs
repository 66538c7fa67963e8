//! Field conflicts are known before anything is written: gantry predicts the API server's answer.

mod shapes;

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Bed, CrdBuilder, Output, Proxy, control_plane, eventually, merge};
use serde_json::{Value, json};

use shapes::{built_in_shapes, custom_shapes, every_way_to_merge, merged};

fn deploy(bed: &Bed, more: &[&str]) -> Output {
    bed.deploy(control_plane().kubeconfig("admin"), more).run()
}

fn config_map(bed: &Bed, name: &str, data: Value) -> Value {
    bed.object("v1", "ConfigMap", name, json!({"data": data}))
}

/// A CRD whose kind is its plural with a capital letter.
fn crd(bed: &Bed, plural: &str, schema: &Value) -> Value {
    let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..]);
    CrdBuilder::new(&bed.names.group, &kind).plural(plural).version("v1", schema.clone()).build()
}

/// Waits until the server has published the schema of a CRD, which happens a moment after the CRD is served.
fn is_published(bed: &Bed, crd: &Value) {
    eventually("the schema is published", || {
        let (status, document) = control_plane().get(&format!("/openapi/v3/apis/{}/v1", bed.names.group));
        let kind = crd["spec"]["names"]["kind"].as_str().expect("a kind");
        let is_kind = |name: &String| name.ends_with(&format!(".v1.{kind}"));
        (status == 200 && document["components"]["schemas"].as_object()?.keys().any(is_kind)).then_some(())
    });
}

/// Writes a live object like a tool: `Apply` is server-side apply, otherwise a create with plain updates. `None`
/// leaves no managedFields.
fn write_as(manager: &str, operation: &str, object: &Value) {
    let path = control_plane().path_of(object);
    let (status, answer) = match operation {
        "Apply" => control_plane().server_side_apply(&path, manager, object),
        _ => {
            let (collection, _) = path.rsplit_once('/').expect("a path");
            control_plane().post(&format!("{collection}?fieldManager={manager}"), object)
        }
    };
    assert!(status < 300, "{answer:#}");
    if operation == "None" {
        let (_, emptied) = control_plane().patch(&path, &json!({"metadata": {"managedFields": [{}]}}));
        assert!(emptied["metadata"].is_object() && emptied["metadata"]["managedFields"].is_null(), "{emptied:#}");
    }
}

/// For each object, named as in a report, the fields and their managers.
type Conflicts = BTreeMap<String, BTreeSet<(String, String)>>;

/// The conflicts in the errors of a report.
fn foreseen(report: &Value) -> Conflicts {
    let mut conflicts = Conflicts::new();
    for error in report["errors"].as_array().into_iter().flatten() {
        let message = error["message"].as_str().unwrap_or_default();
        let manager = message.split('"').nth(1).expect("a manager in quotes").to_owned();
        for line in message.lines().skip(1) {
            // Objects with the same fields share a line.
            let (objects, fields) = line.trim().split_once(": ").expect("objects and their fields");
            let fields = fields.split(", ").map(|field| (field.to_owned(), manager.clone()));
            for object in objects.split(", ") {
                conflicts.entry(object.to_owned()).or_default().extend(fields.clone());
            }
        }
    }
    conflicts
}

/// The server's answer to a dry run of the same apply.
fn answered(object: &Value) -> BTreeSet<(String, String)> {
    let path = control_plane().path_of(object);
    let (status, answer) = control_plane().server_side_apply(&path, "gantry&dryRun=All", object);
    assert!(matches!(status, 200 | 409), "{answer:#}");
    let causes = answer["details"]["causes"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |cause: &Value| {
        let manager = text(&cause["message"]).split('"').nth(1).expect("a manager in quotes").to_owned();
        (text(&cause["field"]), manager)
    };
    causes.iter().map(entry).collect()
}

#[test]
fn predicted_conflicts_are_those_that_the_server_reports() {
    let bed = Bed::with_namespace();
    let crd = crd(&bed, "shapes", &every_way_to_merge());
    control_plane().apply_yaml(&crd.to_string());
    is_published(&bed, &crd);
    let custom = format!("{}/v1", bed.names.group);
    let mut shapes: Vec<(String, String, String, Value, Value)> = Vec::new();
    for (name, live, desired) in custom_shapes() {
        let spec = |spec: Value| json!({"spec": spec});
        shapes.push((custom.clone(), "Shapes".into(), name.into(), spec(live), spec(desired)));
    }
    for (api_version, kind, name, live, desired) in built_in_shapes() {
        shapes.push((api_version.into(), kind.into(), name.into(), live, desired));
    }

    let mut manifests = Vec::new();
    for (api_version, kind, name, live, desired) in shapes {
        for (manager, operation) in [("tool", "Apply"), ("kubectl-client-side-apply", "Update"), ("tool", "None")] {
            let name = format!("{name}-{}", operation.to_lowercase());
            write_as(manager, operation, &bed.object(&api_version, &kind, &name, live.clone()));
            manifests.push(bed.object(&api_version, &kind, &name, desired.clone()));
        }
    }
    bed.write_objects(&manifests);
    // Other checks would find that some of these values are invalid, too.
    let run = deploy(&bed, &["--dry-run", "-o", "json", "--preflight", "CRDUpgradeSafety"]);
    let report = run.code(3).report();
    let foreseen = foreseen(&report);
    let alike = report["errors"].to_string();
    let alike =
        alike.split("\\n  ").filter(|line| line.contains("/atomic-apply ") && line.contains("/atomic-empty-apply "));
    assert_eq!(alike.count(), 1, "what is the same in several objects is said once: {report:#}");

    let mut expected = Conflicts::new();
    for manifest in &manifests {
        let answered = answered(manifest);
        if !answered.is_empty() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let api_version = text(&manifest["apiVersion"]);
            let kind = text(&manifest["kind"]).to_lowercase();
            let kind = match api_version.split_once('/') {
                Some((group, _)) => format!("{kind}.{group}"),
                None => kind,
            };
            let name = format!("{kind}/{} -n {}", text(&manifest["metadata"]["name"]), bed.names.namespace);
            expected.insert(name, answered);
        }
    }
    let objects: BTreeSet<&String> = foreseen.keys().chain(expected.keys()).collect();
    let different: Vec<String> = objects
        .into_iter()
        .filter(|object| foreseen.get(*object) != expected.get(*object))
        .map(|object| format!("{object}\n  foreseen {:?}\n  answered {:?}", foreseen.get(object), expected.get(object)))
        .collect();
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(expected.len() > 30, "the shapes are to be in conflict, most of them: {expected:#?}");
}

#[test]
fn a_conflict_stops_a_deploy_before_it_writes_anything() {
    let bed = Bed::with_namespace();
    write_as("kubectl-client-side-apply", "Update", &config_map(&bed, "old", json!({"a": "1"})));
    write_as("team-a", "Apply", &config_map(&bed, "shared", json!({"a": "1"})));
    // A new object is first in the order: it would exist if the deploy had started.
    let new = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "new", "namespace": bed.names.namespace}});
    bed.write_objects(&[
        new,
        config_map(&bed, "old", json!({"a": "2"})),
        config_map(&bed, "shared", json!({"a": "2"})),
    ]);
    let proxy = Proxy::start(control_plane());
    let run = bed.deploy(proxy.kubeconfig("admin"), &[]).run();
    run.code(3).stdout_contains("Nothing was written").stdout_contains("kubectl apply");
    run.stdout_contains("\"kubectl-client-side-apply\"").stdout_contains("\"team-a\"");
    let object = format!("\n  | configmap/old -n {}: .data.a\n", bed.names.namespace);
    run.stdout_contains(&object).stdout_contains("--force-conflicts");
    assert_eq!(proxy.writes(), []);
}

#[test]
fn a_check_ends_at_conflicts_as_a_deploy_does_and_needs_no_right_to_write() {
    let bed = Bed::with_namespace();
    write_as("team-a", "Apply", &config_map(&bed, "a", json!({"a": "1"})));
    bed.write_objects(&[config_map(&bed, "a", json!({"a": "2"}))]);
    let check = |flags: &[&str]| {
        bed.gantry(control_plane().kubeconfig("reader"), &["check", "-f", "manifests.yaml"]).args(flags).run()
    };
    let report = check(&["-o", "json"]).code(3).report();
    let error = report["errors"][0]["message"].as_str().unwrap_or_default();
    assert!(error.contains("owns fields that the manifests change") && error.contains("team-a"), "{report}");
    assert_eq!((report["errors"].as_array().map(Vec::len), &report["warnings"]), (Some(1), &Value::Null), "{report}");
    check(&["--force-conflicts"]).code(0).stderr_contains("--force-conflicts takes ownership of these fields");
}

#[test]
fn a_conflict_about_defaults_of_the_server_alone_says_so() {
    let bed = Bed::with_namespace();
    let policy = |port: u16| {
        let spec = json!({"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": port}]}]}});
        bed.object("networking.k8s.io/v1", "NetworkPolicy", "a", spec)
    };
    // The server adds `protocol: TCP` to the port, in a list that one manager owns as a whole.
    write_as("team-a", "Update", &policy(80));
    write_as("team-a", "Apply", &config_map(&bed, "b", json!({"x": "1"})));
    bed.write_objects(&[policy(80), config_map(&bed, "b", json!({"x": "2"}))]);
    let run = deploy(&bed, &[]);
    let only = "field manager \"team-a\" owns fields that differ from the manifests only in values that the server \
        defaulted, in 1 object:";
    run.code(3).stdout_contains(only).stdout_contains("it changes none of their values");
    run.stdout_contains("field manager \"team-a\" owns fields that the manifests change in 1 object:");
    let object = format!("networkpolicy.networking.k8s.io/a -n {}: .spec.ingress", bed.names.namespace);
    run.stdout_contains(&object);
    let asked = bed
        .gantry(
            control_plane().kubeconfig("admin"),
            &["check", "-f", "manifests.yaml", "--preflight", "AdmissionDryRun"],
        )
        .run();
    asked.code(3).stdout_contains(
        "owns fields that differ from the manifest only in values that the server defaulted: \
            .spec.ingress",
    );

    // The message is correct: a forced deploy changes no value.
    let path = control_plane().path_of(&policy(80));
    let before = control_plane().get(&path).1["spec"].clone();
    deploy(&bed, &["--force-conflicts"]).code(0).stderr_contains("only in values that the server defaulted");
    assert_eq!(control_plane().get(&path).1["spec"], before);
    // A different port is a real conflict.
    bed.write_objects(&[policy(81)]);
    write_as("team-b", "Apply", &config_map(&bed, "c", json!({"x": "1"})));
    let changed = control_plane().server_side_apply(&path, "team-b&force=true", &policy(82));
    assert_eq!(changed.0, 200, "{}", changed.1);
    let run = deploy(&bed, &[]);
    run.code(3).stdout_contains("field manager \"team-b\" owns fields that the manifests change in 1 object:");
    run.contains_nowhere("only in values that the server defaulted");
}

#[test]
fn the_server_is_asked_about_a_crd_only_if_its_schemas_have_the_same_meaning() {
    let bed = Bed::with_namespace();
    let schema = |more: Value| {
        let mut x = json!({"type": "string", "description": "one"});
        merge(&mut x, more);
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": x}}}})
    };
    let live = crd(&bed, "as", &schema(json!({})));
    write_as("team-a", "Apply", &live);
    // The server still writes its status, and a dry run of an object that changes meanwhile has no answer.
    control_plane().wait_until_served(&control_plane().path_of(&live));
    let check = |more: Value| {
        bed.write_objects(&[crd(&bed, "as", &schema(more))]);
        let proxy = Proxy::start(control_plane());
        let run = bed
            .gantry(proxy.kubeconfig("admin"), &["check", "-f", "manifests.yaml", "--preflight", "APIAvailability"])
            .run();
        let asked = proxy.requests().iter().filter(|request| request.query.contains("dryRun")).count();
        run.code(3).stdout_contains("field manager \"team-a\" owns");
        (asked, run.stdout.contains("only in values that the server defaulted"))
    };
    // The server drops `nullable: false`.
    assert_eq!(check(json!({"nullable": false})), (1, true));
    assert_eq!(check(json!({"maxLength": 5})), (0, false));
    assert_eq!(check(json!({"description": "another"})), (0, false));
}

#[test]
fn an_object_of_a_client_side_tool_is_taken_over_once() {
    let bed = Bed::with_namespace();
    let live = config_map(&bed, "a", json!({"changed": "1", "same": "1", "theirs": "1"}));
    write_as("kubectl-client-side-apply", "Update", &live);
    bed.write_objects(&[config_map(&bed, "a", json!({"changed": "2", "same": "1"}))]);
    let run = deploy(&bed, &["--force-conflicts"]);
    run.code(0).stderr_contains("--force-conflicts takes ownership of these fields");
    run.stderr_contains(".data.changed").stderr_contains("kubectl-client-side-apply");
    run.stderr_contains("taking over from kubectl apply");

    // A value that both had set is now an ordinary change and no longer a conflict.
    bed.write_objects(&[config_map(&bed, "a", json!({"changed": "2", "same": "2"}))]);
    deploy(&bed, &[]).code(0);
    let live = control_plane().get(&control_plane().path_of(&live)).1;
    // As after kubectl's own change to server-side apply, the object is as the manifest.
    assert_eq!(live["data"], json!({"changed": "2", "same": "2"}));
    let managers = live["metadata"]["managedFields"].as_array().expect("records");
    assert!(managers.iter().all(|entry| entry["manager"] == "gantry"), "{managers:?}");
}

#[test]
fn a_crd_that_kubectl_created_is_taken_over_once() {
    let bed = Bed::with_namespace();
    let crd = |fields: &[&str]| {
        let fields: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), json!({"type": "string"}))).collect();
        crd(&bed, "samples", &json!({"type": "object", "properties": fields}))
    };
    write_as("kubectl-client-side-apply", "Update", &crd(&["a"]));
    // The same versions, set again: nothing is lost, so there is no conflict.
    bed.write_objects(&[crd(&["a"])]);
    deploy(&bed, &[]).code(0);
    // From then on they are gantry's alone.
    bed.write_objects(&[crd(&["a", "b"])]);
    deploy(&bed, &[]).code(0);
    // If the first deploy changes their values, that is a conflict, which force resolves for good.
    let crd = |fields: &[&str]| {
        let mut other = crd(fields);
        let name = format!("others.{}", bed.names.group);
        other["metadata"]["name"] = name.into();
        other["spec"]["names"] =
            json!({"plural": "others", "singular": "other", "kind": "Other", "listKind": "OtherList"});
        other
    };
    let mut kubectls = crd(&["a"]);
    kubectls["spec"]["names"]["shortNames"] = json!(["oth"]);
    write_as("kubectl-client-side-apply", "Update", &kubectls);
    bed.write_objects(&[crd(&["a", "b"])]);
    let run = deploy(&bed, &[]);
    run.code(3).stdout_contains(".spec.versions").stdout_contains("kubectl apply").contains_nowhere("taking over");
    run.stderr_contains("not taken over from kubectl apply, because of the conflicts");
    deploy(&bed, &["--force-conflicts"]).code(0).stderr_contains("taking over from kubectl apply");
    bed.write_objects(&[crd(&["a", "b", "c"])]);
    deploy(&bed, &[]).code(0);
}

#[test]
fn the_crd_of_the_same_deploy_says_how_its_objects_are_merged() {
    let bed = Bed::with_namespace();
    let schema = |list: Value| {
        let list = merged(
            &json!({"type": "array", "items": {"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string"}, "value": {"type": "string"}}}}),
            list,
        );
        json!({"type": "object", "properties": {"list": list}})
    };
    let keyed = json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    let first = crd(&bed, "samples", &schema(json!({})));
    bed.write_objects([&first]);
    deploy(&bed, &[]).code(0);
    is_published(&bed, &first);
    let custom = format!("{}/v1", bed.names.group);
    let sample = |list: Value| bed.object(&custom, "Samples", "one", json!({"list": list}));
    write_as("team-a", "Apply", &sample(json!([{"name": "a", "value": "1"}])));

    // As an atomic list, the list is one field of theirs.
    bed.write_objects(&[sample(json!([{"name": "b", "value": "1"}]))]);
    deploy(&bed, &["--dry-run"]).code(3).stdout_contains(".list").stdout_contains("team-a");
    // With keys, b is a separate item, and the CRD that defines this is written first.
    bed.write_objects(&[crd(&bed, "samples", &schema(keyed)), sample(json!([{"name": "b", "value": "1"}]))]);
    deploy(&bed, &["--warn-only"]).code(0);
    let live = control_plane().get(&control_plane().path_of(&sample(json!([])))).1;
    assert_eq!(live["list"], json!([{"name": "a", "value": "1"}, {"name": "b", "value": "1"}]));
}
