//! What the API server does to a CustomResourceDefinition that it accepts, and why it would refuse one.
//!
//! It adds defaults, and `status.storedVersions` records every version that was ever the storage version. Refusals use
//! the server's own words ([`gantry_schema::crd`] has them).

use serde_json::{Map, Value, json};

use gantry_core::problem::Problem;
use gantry_core::text::cut_quote;
use gantry_k8s_cel::KubernetesRelease;
use gantry_schema::crd as server;

/// Adds what the server adds when it reads a CRD, and removes what it never stores.
pub(super) fn set_defaults(crd: &mut Value) {
    let storage: Vec<Value> = storage_versions(crd).take(1).map(Value::from).collect();
    let Some(object) = crd.as_object_mut() else { return };
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        default_spec(spec);
    }
    let status = object.entry("status").or_insert_with(|| json!({}));
    if !status.is_object() {
        *status = json!({});
    }
    if status.get("storedVersions").and_then(Value::as_array).is_none_or(Vec::is_empty) && !storage.is_empty() {
        status["storedVersions"] = Value::Array(storage);
    }
}

fn default_spec(spec: &mut Map<String, Value>) {
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
        spec.shift_remove("preserveUnknownFields");
    }
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            for (key, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
                if names.get(key).and_then(Value::as_str).unwrap_or_default().is_empty() {
                    names.insert(key.into(), default.into());
                }
            }
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".into(), json!({"strategy": "None"}));
    }
    let service =
        spec.get_mut("conversion").and_then(|conversion| conversion.pointer_mut("/webhook/clientConfig/service"));
    if let Some(service) = service.and_then(Value::as_object_mut) {
        service.entry("port").or_insert_with(|| json!(443));
    }
}

/// Turns `crd` into what the server would store, or returns every reason why it would refuse it.
///
/// `crd` is the merged object. Its status is taken from `live`, because a manifest cannot set it.
pub(super) fn admit_crd(live: Option<&Value>, crd: &mut Value, release: KubernetesRelease) -> Result<(), Vec<String>> {
    if let Some(object) = crd.as_object_mut() {
        match live.and_then(|live| live.get("status")) {
            Some(status) => object.insert("status".into(), status.clone()),
            None => object.shift_remove("status"),
        };
    }
    set_defaults(crd);
    let storage: Vec<String> = storage_versions(crd).map(str::to_owned).collect();
    if let (Some(first), Some(stored)) =
        (storage.first(), crd.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut))
        && !stored.iter().any(|version| version == first)
    {
        stored.push(first.as_str().into());
    }

    let errors = match server::validate(crd, live, release) {
        Ok(outcome) => outcome.refusals.iter().map(|refusal| cut_quote(&refusal.to_string()).into_owned()).collect(),
        Err(unreadable) => vec![unreadable.to_string()],
    };
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The server's message for one or more reasons, and the next step.
pub(super) fn refusal(name: &str, errors: &[String]) -> Problem {
    let reasons = match errors {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    let problem = Problem::new(format!("CustomResourceDefinition.apiextensions.k8s.io {name:?} is invalid: {reasons}"));
    if errors.iter().any(|error| error.contains("was previously a storage version")) {
        problem.help("keep the version with served: false until every object is stored at another version")
    } else if errors.iter().any(|error| error.ends_with("field is immutable")) {
        problem.help("to make this change, define a new CRD with another name and move all objects to it")
    } else {
        problem.help("fix the manifest; an API server would refuse it too")
    }
}

/// `spec.versions`; empty if it is missing or not a list.
fn versions(crd: &Value) -> &[Value] {
    crd.pointer("/spec/versions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn storage_versions(crd: &Value) -> impl Iterator<Item = &str> {
    versions(crd).iter().filter(|version| version.get("storage") == Some(&Value::Bool(true))).map(|v| text(v, "/name"))
}

/// The string at a JSON pointer; empty if there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::crd::builder::CrdBuilder;

    fn crd(versions: &[(&str, bool)]) -> Value {
        let add = |crd: CrdBuilder, (name, storage): &(&str, bool)| {
            crd.version(name, json!({"type": "object"})).storage(*storage)
        };
        let crd = versions.iter().fold(CrdBuilder::samples("test.example.com"), add);
        crd.set("names", json!({"plural": "samples", "kind": "Sample"})).set("preserveUnknownFields", false).build()
    }

    /// What is stored after `desired` replaces `live`.
    fn stored(live: Option<&Value>, mut desired: Value) -> Result<Value, Vec<String>> {
        admit_crd(live, &mut desired, KubernetesRelease::default()).map(|()| desired)
    }

    #[test]
    fn a_new_crd_gets_what_the_server_adds() {
        let mut desired = crd(&[("v1", true)]);
        desired["status"] = json!({"storedVersions": ["v9"], "conditions": []});
        let stored = stored(None, desired).unwrap();
        assert_eq!(
            stored["spec"]["names"],
            json!({"plural": "samples", "kind": "Sample", "singular": "sample", "listKind": "SampleList"})
        );
        assert_eq!(stored["spec"]["conversion"], json!({"strategy": "None"}));
        assert_eq!(stored["spec"].get("preserveUnknownFields"), None);
        assert_eq!(stored["status"], json!({"storedVersions": ["v1"]}));
    }

    #[test]
    fn fields_that_the_manifest_sets_are_not_defaulted() {
        let mut desired = crd(&[("v1", true)]);
        desired["spec"]["names"]["singular"] = "one".into();
        let service = json!({"namespace": "n", "name": "hook"});
        desired["spec"]["conversion"] = json!({"strategy": "Webhook",
            "webhook": {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}});
        let stored = stored(None, desired).unwrap();
        assert_eq!(stored["spec"]["names"]["singular"], "one");
        assert_eq!(stored["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"], 443);
    }

    #[test]
    fn stored_versions_only_ever_grow() {
        let first = stored(None, crd(&[("v1alpha1", true)])).unwrap();
        let second = stored(Some(&first), crd(&[("v1alpha1", false), ("v1", true)])).unwrap();
        assert_eq!(second["status"]["storedVersions"], json!(["v1alpha1", "v1"]));
        let third = stored(Some(&second), crd(&[("v1alpha1", true), ("v1", false)])).unwrap();
        assert_eq!(third["status"]["storedVersions"], json!(["v1alpha1", "v1"]));

        let errors = stored(Some(&third), crd(&[("v1", true)])).unwrap_err();
        assert_eq!(
            refusal("samples.test.example.com", &errors).message,
            "CustomResourceDefinition.apiextensions.k8s.io \"samples.test.example.com\" is invalid: \
             status.storedVersions[0]: Invalid value: \"v1alpha1\": missing from spec.versions; v1alpha1 was \
             previously a storage version, and must remain in spec.versions until a storage migration ensures no data \
             remains persisted in v1alpha1 and removes v1alpha1 from status.storedVersions"
        );
    }

    #[test]
    fn scope_kind_group_and_plural_are_immutable() {
        let live = stored(None, crd(&[("v1", true)])).unwrap();
        for (path, value) in [
            ("/spec/scope", "Cluster"),
            ("/spec/names/kind", "Other"),
            ("/spec/group", "other.example.com"),
            ("/spec/names/plural", "others"),
        ] {
            let mut desired = crd(&[("v1", true)]);
            *desired.pointer_mut(path).unwrap() = value.into();
            let field = path[1..].replace('/', ".");
            assert_eq!(
                stored(Some(&live), desired).unwrap_err(),
                [format!("{field}: Invalid value: \"{value}\": field is immutable")]
            );
        }
    }

    #[test]
    fn an_invalid_crd_is_refused_for_every_reason_at_once() {
        let mut desired = crd(&[("V1", true), ("v2", true), ("v2", false)]);
        desired["metadata"]["name"] = "x.test.example.com".into();
        desired["spec"]["scope"] = "Galaxy".into();
        desired["spec"]["versions"][1]["schema"]["openAPIV3Schema"] = json!({"type": "string"});
        desired["spec"]["versions"][2].as_object_mut().unwrap().shift_remove("schema");
        let errors = stored(None, desired).unwrap_err();
        let starts: Vec<&str> = errors.iter().map(|error| error.split(": ").next().unwrap()).collect();
        assert_eq!(
            starts,
            [
                "metadata.name",
                "spec.scope",
                "spec.versions[2].schema.openAPIV3Schema",
                "spec.versions[0].name",
                "spec.versions[1].schema.openAPIV3Schema.type",
                "spec.versions",
                "spec.versions",
                "spec.version",
                "status.storedVersions",
            ]
        );
        assert!(
            refusal("n", &errors).message.contains("is invalid: [metadata.name: Invalid value: \"x.test.example.com\"")
        );
    }

    #[test]
    fn an_empty_or_odd_crd_is_refused_and_no_panic() {
        for desired in [json!({}), json!({"spec": null}), json!({"spec": {"versions": {}, "names": []}, "status": 3})] {
            assert!(stored(None, desired).is_err());
        }
    }

    #[test]
    fn a_live_crd_written_by_hand_stores_its_storage_version() {
        let mut live = crd(&[("v1alpha1", false), ("v1", true)]);
        set_defaults(&mut live);
        assert_eq!(live["status"]["storedVersions"], json!(["v1"]));
    }
}
