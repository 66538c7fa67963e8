//! Objects that the server does not write, and rights that the user lacks.

use serde_json::json;

use super::samples::StoredSamples;
use crate::support::{control_plane, eventually, rights};

#[test]
fn an_object_that_a_policy_protects_is_named_before_anything_is_written() {
    let samples = StoredSamples::moved(&["free", "frozen"], &["a", "b"]);
    let group = &samples.bed.names.group;
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": format!("frozen.{group}")},
        "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["samples"]}]},
            "validations": [{"expression": "object.metadata.name != 'frozen'", "message": "frozen by the team"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": format!("frozen.{group}")},
        "spec": {"policyName": format!("frozen.{group}"), "validationActions": ["Deny"]},
    });
    control_plane().apply_yaml(&format!("{policy}\n---\n{binding}"));
    let path = format!("{}/frozen?dryRun=All", samples.path("v2"));
    eventually("the policy to be in force", || (control_plane().patch(&path, &json!({})).0 == 422).then_some(()));
    let run = samples.migrate(&["--yes"]).run();
    let namespace = &samples.bed.names.namespace;
    run.code(3).stderr_contains(&format!("the server does not write 1 object of samples.{group} as they are:"));
    run.stderr_contains(&format!("{namespace}/frozen: ")).stderr_contains("frozen by the team");
    assert_eq!(["free", "frozen"].map(|name| samples.version_of(name)), ["v1", "v1"]);
    for kind in ["validatingadmissionpolicybindings", "validatingadmissionpolicies"] {
        control_plane().delete(&format!("/apis/admissionregistration.k8s.io/v1/{kind}/frozen.{group}"));
    }
}

#[test]
fn an_object_whose_namespace_is_gone_is_named_before_anything_is_written() {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    let group = &samples.bed.names.group;
    let mut orphan = samples.stored("one");
    orphan["metadata"]["namespace"] = format!("gone-{}", samples.bed.names.namespace).into();
    orphan["metadata"]["uid"] = "5f6c1c0e-0000-4000-8000-000000000001".into();
    let namespace = orphan["metadata"]["namespace"].as_str().expect("a namespace").to_owned();
    let key = format!("/registry/{group}/samples/{namespace}/one");
    control_plane().store(&key, &orphan);
    let path = format!("/apis/{group}/v2/namespaces/{namespace}/samples/one");
    eventually("the server to know the object", || (control_plane().get(&path).0 == 200).then_some(()));
    let run = samples.migrate(&["--yes"]).run();
    run.code(3).stderr_contains(&format!("{namespace}/one: there is no namespace {namespace:?}"));
    assert_eq!(samples.version_of("one"), "v1");
    // As the message says.
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    assert_eq!(control_plane().post("/api/v1/namespaces", &object).0, 201);
    samples.migrate(&["--yes", "--prune-stored-versions"]).run().code(0);
    assert_eq!(control_plane().stored(&key)["apiVersion"], format!("{group}/v2"));
    control_plane().delete(&path);
}

#[test]
fn a_user_without_rights_learns_what_to_grant_and_nothing_is_written() {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    let crds =
        json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]});
    let user = control_plane().user(&json!([crds]));
    let run = samples.migrate_as(control_plane(), &user, &["--yes"]).run();
    run.code(1).stderr_contains("samples").stderr_contains("list");
    let group = &samples.bed.names.group;
    let list = json!({"apiGroups": [group], "resources": ["samples"], "verbs": ["list"]});
    let user = control_plane().user(&json!([crds, list]));
    let run = samples.migrate_as(control_plane(), &user, &["--yes"]).run();
    run.code(1).stderr_contains("may not patch samples");
    // Without the right to change the CRD, the objects move, and it says what is left.
    let patch = json!({"apiGroups": [group], "resources": ["samples"], "verbs": ["list", "patch"]});
    let user = control_plane().user(&json!([crds, patch]));
    let run = samples.migrate_as(control_plane(), &user, &["--yes", "--prune-stored-versions"]).run();
    run.code(1).stderr_contains("all objects are migrated, but status.storedVersions was not trimmed");
    run.stderr_contains("notice: the CRD cannot be annotated");
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v1", "v2"])));
}

#[test]
fn the_printed_rights_are_enough_and_no_more_than_needed() {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    samples.bed.write("manifests.yaml", &samples.v1_and_v2(&["a", "b"]).build().to_string());
    let user = control_plane().user(&json!([]));
    let printed = rights::printed_with(&samples.bed, control_plane(), &user, &["--for", "migrate"]);
    let name = samples.crd_name();
    let verbs: Vec<&str> = printed.lines().filter_map(|line| line.trim().strip_prefix("verbs: ")).collect();
    assert_eq!(verbs, ["[get, patch]", "[patch]", "[list, patch]"], "{printed}");
    rights::grant(control_plane(), &user, &printed);
    let run = samples.migrate_as(control_plane(), &user, &["--yes", "--prune-stored-versions"]).run();
    run.code(0).stdout_contains(&format!("{name}: wrote 1 object; verified; status.storedVersions is [v2]"));
    assert_eq!(run.stderr, "");
}
