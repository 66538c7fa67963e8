//! The ValidatingAdmissionPolicy of `gantry admission policy`, evaluated by the API server.

use std::fs;

use gantry_admission::install;
use gantry_core::options::AdmissionMode;
use serde_json::{Value, json};

use crate::support::*;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The label of the CRDs of a test.
const LABEL: &str = "policy-of";

/// A copy of the policy that looks at the CRDs of one test.
struct Policy {
    names: Isolated,
}

impl Policy {
    /// Installs it in the mode deny, and waits until it is in force.
    fn install() -> Self {
        let policy = Policy { names: isolated() };
        for document in install::policy(AdmissionMode::Deny).split("---\n") {
            let mut object: Value = serde_yaml::from_str(document).unwrap();
            object["metadata"]["name"] = json!(policy.names.namespace);
            match object["kind"].as_str() {
                Some("ValidatingAdmissionPolicy") => {
                    object["spec"]["matchConstraints"]["objectSelector"] =
                        json!({"matchLabels": {LABEL: policy.names.namespace}});
                }
                _ => object["spec"]["policyName"] = json!(policy.names.namespace),
            }
            control_plane().apply_yaml(&object.to_string());
        }
        let probe = policy.create(crd(&policy.names.group, "Probe"));
        eventually("the policy to be in force", || {
            let (status, _) = policy.try_replace(&probe, |crd| drop(versions(crd).pop()));
            (status == 403).then_some(())
        });
        policy
    }

    /// Creates a CRD, and returns it when it is established.
    fn create(&self, mut crd: Value) -> Value {
        crd["metadata"]["labels"] = json!({LABEL: self.names.namespace});
        control_plane().apply_yaml(&crd.to_string()).remove(0)
    }

    /// The answer to a dry run of a change.
    fn try_replace(&self, live: &Value, change: impl Fn(&mut Value)) -> (u16, String) {
        self.send("", live, change, "?dryRun=All")
    }

    /// Sends what the change makes of the CRD, until the controllers have not written it at the same time.
    fn send(&self, subresource: &str, live: &Value, change: impl Fn(&mut Value), query: &str) -> (u16, String) {
        let path = control_plane().path_of(live);
        eventually("an answer other than a conflict", || {
            let (_, mut crd) = control_plane().get(&path);
            change(&mut crd);
            let (status, answer) = control_plane().put(&format!("{path}{subresource}{query}"), &crd);
            (status != 409).then(|| (status, answer["message"].as_str().unwrap_or_default().to_owned()))
        })
    }

    /// The denial of the policy. If the API server itself refuses the change or allows it, there is none.
    fn denial(&self, (status, message): &(u16, String)) -> Option<String> {
        let said = message.split_once("denied request: ").filter(|_| *status == 403);
        said.filter(|(before, _)| before.contains(&self.names.namespace)).map(|(_, denial)| denial.to_owned())
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        for kind in ["validatingadmissionpolicybindings", "validatingadmissionpolicies"] {
            control_plane().delete(&format!("/apis/admissionregistration.k8s.io/v1/{kind}/{}", self.names.namespace));
        }
    }
}

/// Two versions with the fields `data`, `spec.size`, `spec.colour` and `status.ready`.
fn crd(group: &str, kind: &str) -> Value {
    let schema = fields(json!({
        "data": {"type": "string"},
        "spec": string_fields(&["size", "colour"]),
        "status": string_fields(&["ready"]),
    }));
    CrdBuilder::new(group, kind).version("v1", schema.clone()).version("v2", schema).build()
}

fn versions(crd: &mut Value) -> &mut Vec<Value> {
    crd["spec"]["versions"].as_array_mut().unwrap()
}

/// The schema of a version.
fn schema(crd: &mut Value, version: usize) -> &mut Value {
    &mut crd["spec"]["versions"][version]["schema"]["openAPIV3Schema"]
}

fn remove(value: &mut Value, key: &str) {
    value.as_object_mut().unwrap().shift_remove(key).expect(key);
}

type Change = fn(&mut Value);

#[test]
fn a_removed_version_or_field_is_denied_with_its_name_and_the_next_step() {
    let policy = Policy::install();
    let live = policy.create(crd(&policy.names.group, "Widget"));
    let changes: [(Change, &str); 6] = [
        (|crd| drop(versions(crd).pop()), "version v2 is removed while it is served"),
        (|crd| remove(&mut schema(crd, 0)["properties"], "data"), "v1: ^.data."),
        (|crd| remove(&mut schema(crd, 1)["properties"], "status"), "v2: ^.status."),
        (|crd| remove(&mut schema(crd, 0)["properties"]["spec"]["properties"], "size"), "v1: ^.spec.size."),
        (|crd| remove(&mut schema(crd, 1)["properties"]["status"], "properties"), "v2: ^.status.ready."),
        (
            |crd| {
                remove(&mut schema(crd, 0)["properties"], "data");
                remove(&mut schema(crd, 1)["properties"]["spec"]["properties"], "size");
            },
            "v1: ^.data; v2: ^.spec.size.",
        ),
    ];
    for (change, expected) in changes {
        let answer = policy.try_replace(&live, change);
        let denial = policy.denial(&answer).unwrap_or_else(|| panic!("{expected}: {answer:?}"));
        assert!(denial.contains(expected), "{expected}: {denial}");
        let way = format!("kubectl label crd widgets.{} gantry.dev/crd-floor=skip", policy.names.group);
        assert!(denial.ends_with(&way), "{denial}");
    }
}

#[test]
fn a_change_that_the_server_keeps_all_fields_of_passes() {
    let policy = Policy::install();
    let live = policy.create(crd(&policy.names.group, "Widget"));
    let preserves = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let changes: [Change; 6] = [
        |_| (),
        |crd| versions(crd)[1]["served"] = false.into(),
        |crd| schema(crd, 0)["properties"]["spec"]["properties"]["new"] = json!({"type": "string"}),
        |crd| schema(crd, 0)["properties"]["spec"]["properties"]["size"] = json!({"type": "integer"}),
        |crd| {
            schema(crd, 0)["properties"]["spec"] = json!({"type": "object", "additionalProperties": {"type": "string"}})
        },
        |crd| {
            remove(&mut schema(crd, 0)["properties"], "data");
            schema(crd, 0)["x-kubernetes-preserve-unknown-fields"] = true.into();
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert_eq!(policy.try_replace(&live, change), (200, String::new()), "{number}");
    }
    let described_no_longer = |crd: &mut Value| schema(crd, 0)["properties"]["spec"] = preserves.clone();
    assert_eq!(policy.try_replace(&live, described_no_longer).0, 200);
    // Unknown fields that are kept at the top are dropped below it.
    let kept_at_the_top_alone = |crd: &mut Value| {
        remove(&mut schema(crd, 0)["properties"]["spec"]["properties"], "size");
        schema(crd, 0)["x-kubernetes-preserve-unknown-fields"] = true.into();
    };
    assert!(policy.denial(&policy.try_replace(&live, kept_at_the_top_alone)).is_some());
}

#[test]
fn a_version_that_is_not_served_may_lose_fields_and_be_removed() {
    let policy = Policy::install();
    let mut widgets = crd(&policy.names.group, "Widget");
    widgets["spec"]["versions"][1]["served"] = false.into();
    let live = policy.create(widgets);
    let changes: [Change; 2] =
        [|crd| remove(&mut schema(crd, 1)["properties"], "spec"), |crd| drop(versions(crd).pop())];
    for change in changes {
        assert_eq!(policy.try_replace(&live, change).0, 200);
    }
    // Every object passes through the schema of the storage version.
    let mut gadgets = crd(&policy.names.group, "Gadget");
    gadgets["spec"]["versions"][0]["served"] = false.into();
    let live = policy.create(gadgets);
    let answer = policy.try_replace(&live, |crd| remove(&mut schema(crd, 0)["properties"], "data"));
    let denial = policy.denial(&answer).unwrap_or_else(|| panic!("{answer:?}"));
    assert!(denial.contains("v1: ^.data."), "{denial}");
}

#[test]
fn a_shortened_list_of_stored_versions_is_denied() {
    let policy = Policy::install();
    let live = policy.create(crd(&policy.names.group, "Widget"));
    let lengthened = policy.send("/status", &live, |crd| crd["status"]["storedVersions"] = json!(["v1", "v2"]), "");
    assert_eq!(lengthened.0, 200, "{lengthened:?}");
    let shortened: [Change; 2] =
        [|crd| crd["status"]["storedVersions"] = json!(["v1"]), |crd| remove(&mut crd["status"], "storedVersions")];
    for change in shortened {
        let answer = policy.send("/status", &live, change, "?dryRun=All");
        let denial = policy.denial(&answer).unwrap_or_else(|| panic!("{answer:?}"));
        assert!(denial.contains("status.storedVersions no longer names") && denial.contains("v2"), "{denial}");
    }
    // After a complete migration of this generation it may be shortened.
    let uid = live["metadata"]["uid"].as_str().expect("a uid");
    for (uid, generation, expected) in [(uid, 1, 200), (uid, 12, 403), ("of-another-crd", 1, 403)] {
        let mark = format!(
            "{{\"version\":\"v1\",\"uid\":\"{uid}\",\"generation\":{generation},\"resourceVersion\":1,\"complete\":true}}"
        );
        let annotated =
            policy.send("", &live, |crd| crd["metadata"]["annotations"] = json!({"gantry.dev/stored-since": mark}), "");
        assert_eq!(annotated.0, 200, "{annotated:?}");
        let shortened =
            policy.send("/status", &live, |crd| crd["status"]["storedVersions"] = json!(["v1"]), "?dryRun=All");
        assert_eq!(shortened.0, expected, "{shortened:?}");
    }
    // A condition alone may change.
    let condition = |crd: &mut Value| {
        let condition = json!({"type": "NonStructuralSchema", "status": "False", "reason": "a", "message": "b"});
        crd["status"]["conditions"].as_array_mut().unwrap().push(condition);
    };
    assert_eq!(policy.send("/status", &live, condition, "?dryRun=All"), (200, String::new()));
}

/// The API server refuses another scope only once a CRD is established.
#[test]
fn another_scope_of_a_crd_whose_names_are_taken_is_denied() {
    let policy = Policy::install();
    policy.create(crd(&policy.names.group, "Widget"));
    let mut second = crd(&policy.names.group, "Widget");
    second["metadata"] = json!({"name": format!("others.{}", policy.names.group)});
    second["metadata"]["labels"] = json!({LABEL: policy.names.namespace});
    second["spec"]["names"]["plural"] = "others".into();
    second["spec"]["names"]["singular"] = "other".into();
    assert_eq!(control_plane().post(CRDS, &second).0, 201);
    let answer = policy.try_replace(&second, |crd| crd["spec"]["scope"] = "Cluster".into());
    let denial = policy.denial(&answer).unwrap_or_else(|| panic!("{answer:?}"));
    assert!(denial.starts_with("the scope changes from Namespaced to Cluster"), "{denial}");
}

#[test]
fn the_label_makes_an_exception_for_the_next_change_and_not_for_its_own() {
    let policy = Policy::install();
    let live = policy.create(crd(&policy.names.group, "Widget"));
    let label = |crd: &mut Value| crd["metadata"]["labels"]["gantry.dev/crd-floor"] = "skip".into();
    let with_the_change = |crd: &mut Value| {
        label(crd);
        versions(crd).pop();
    };
    assert!(policy.denial(&policy.try_replace(&live, with_the_change)).is_some());
    assert_eq!(policy.send("", &live, label, "").0, 200);
    assert_eq!(policy.send("", &live, |crd| drop(versions(crd).pop()), ""), (200, String::new()));
}

#[test]
fn finalizers_of_a_crd_that_is_being_deleted_can_go() {
    let policy = Policy::install();
    let mut widgets = crd(&policy.names.group, "Widget");
    widgets["metadata"]["finalizers"] = json!(["test.example.com/hold"]);
    let path = control_plane().path_of(&policy.create(widgets));
    assert_eq!(control_plane().delete(&path).0, 200);
    eventually("the finalizer to go", || {
        let status = control_plane().patch(&path, &json!({"metadata": {"finalizers": null}})).0;
        (status == 200).then_some(())
    });
    eventually("the CRD to go", || (control_plane().get(&path).0 == 404).then_some(()));
}

/// The API server ends expressions that cost too much, and the policy would deny every change then.
#[test]
fn a_crd_with_thousands_of_top_level_fields_is_within_the_cost_limit() {
    let policy = Policy::install();
    let names: Vec<String> = (0..200).map(|number| format!("field{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let part = string_fields(&names);
    let schema_of_all = fields(json!({"spec": part, "status": part}));
    let mut large = CrdBuilder::new(&policy.names.group, "Widget");
    for number in 1..=10 {
        large = large.version(&format!("v{number}"), schema_of_all.clone());
    }
    let live = policy.create(large.build());
    let added = |crd: &mut Value| schema(crd, 9)["properties"]["spec"]["properties"]["new"] = json!({"type": "string"});
    assert_eq!(policy.try_replace(&live, added), (200, String::new()));
    let all_lost = |crd: &mut Value| {
        for number in 0..10 {
            remove(&mut schema(crd, number)["properties"], "spec");
            schema(crd, number)["properties"]["status"] = json!({"type": "object"});
        }
    };
    let answer = policy.try_replace(&live, all_lost);
    let denial = policy.denial(&answer).unwrap_or_else(|| panic!("{answer:?}"));
    assert!(denial.contains("v1: ^.spec") && denial.contains('…') && denial.len() < 2_000, "{denial}");
}

/// The upgrades that show the rules of CRDUpgradeSafety.
#[test]
fn of_the_fixtures_of_rules_only_those_with_removed_versions_and_fields_are_denied() {
    let policy = Policy::install();
    let mut denied = Vec::new();
    for folder in crd_fixture_folders() {
        let group = isolated().group;
        let read = |file: &str| -> Value {
            let text = fs::read_to_string(folder.join(file)).unwrap().replace("test.example.com", &group);
            serde_yaml::from_str(&text).unwrap()
        };
        let live = policy.create(read("live.yaml"));
        let desired = read("desired.yaml");
        let answer = policy.try_replace(&live, |crd| crd["spec"] = desired["spec"].clone());
        assert!(!answer.1.contains("failed") && answer.0 != 500, "{}: {answer:?}", folder.display());
        if let Some(denial) = policy.denial(&answer) {
            let expected = fs::read_to_string(folder.join("expected.yaml")).unwrap();
            assert!(expected.contains("severity: error"), "{} is allowed: {denial}", folder.display());
            denied.push(folder.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    let expected =
        ["branch-removed", "every-version-is-judged", "field-removed", "real-rhtas-1.5.0", "served-version-removed"];
    assert_eq!(denied, expected);
}
