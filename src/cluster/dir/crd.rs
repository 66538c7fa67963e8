//! What the API server does to a CustomResourceDefinition that it accepts, and why it would refuse one.
//!
//! Defaults are filled in, `status.storedVersions` remembers every version that was ever the storage version, and
//! what cannot be changed is refused in the server's own words. Where the server prints a Go dump of all versions
//! inside its message, the dump is left out.

use serde_json::{Map, Value, json};

use crate::problem::Problem;

const DNS_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Adds what the server adds when it reads a CRD, and drops what it never stores.
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

/// Makes `crd` what the server would store, or says everything that it would refuse.
///
/// `crd` is the merged object; its status is taken from `live`, as a manifest has no say in it.
pub(super) fn admit(live: Option<&Value>, crd: &mut Value) -> Result<(), Vec<String>> {
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

    let mut errors = Vec::new();
    if live.is_none() && text(crd, "/metadata/name") != format!("{}.{}", plural(crd), group(crd)) {
        errors.push(format!(
            "metadata.name: Invalid value: {:?}: must be spec.names.plural+\".\"+spec.group",
            text(crd, "/metadata/name")
        ));
    }
    check_spec(crd, storage.len(), &mut errors);
    if let Some(live) = live {
        for path in ["/spec/scope", "/spec/names/kind", "/spec/group", "/spec/names/plural"] {
            let (was, is) = (text(live, path), text(crd, path));
            if was != is {
                let field = path[1..].replace('/', ".");
                errors.push(format!("{field}: Invalid value: {is:?}: field is immutable"));
            }
        }
    }
    check_stored_versions(crd, &mut errors);
    if crd.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
        errors.push(
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
             x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
                .into(),
        );
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The server's sentence around one or several reasons, and what to do about it.
pub(super) fn refusal(name: &str, errors: &[String]) -> Problem {
    let reasons = match errors {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    let problem = Problem::new(format!("CustomResourceDefinition.apiextensions.k8s.io {name:?} is invalid: {reasons}"));
    if errors.iter().any(|error| error.contains("was previously a storage version")) {
        problem.help("keep the version with served: false until every object is stored at another one")
    } else if errors.iter().any(|error| error.ends_with("field is immutable")) {
        problem.help("such a change takes a new CRD, under another name, and the move of all objects to it")
    } else {
        problem.help("correct the manifest; an API server would refuse it too")
    }
}

fn check_spec(crd: &Value, storage: usize, errors: &mut Vec<String>) {
    let required = |path: &str, errors: &mut Vec<String>| {
        if text(crd, path).is_empty() {
            errors.push(format!("{}: Required value", path[1..].replace('/', ".")));
        }
    };
    required("/spec/group", errors);
    if !group(crd).is_empty() && !group(crd).contains('.') {
        errors.push(format!("spec.group: Invalid value: {:?}: should be a domain with at least one dot", group(crd)));
    }
    required("/spec/scope", errors);
    let scope = text(crd, "/spec/scope");
    if !matches!(scope, "" | "Cluster" | "Namespaced") {
        errors.push(format!("spec.scope: Unsupported value: {scope:?}: supported values: \"Cluster\", \"Namespaced\""));
    }
    let mut names = Vec::new();
    for (index, version) in versions(crd).iter().enumerate() {
        check_version(index, version, errors);
        names.push(text(version, "/name"));
    }
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        errors.push("spec.versions: Invalid value: must contain unique version names".into());
    }
    if storage != 1 {
        errors.push("spec.versions: Invalid value: must have exactly one version marked as storage version".into());
    }
    for path in ["/spec/names/plural", "/spec/names/singular", "/spec/names/kind", "/spec/names/listKind"] {
        required(path, errors);
    }
}

fn check_version(index: usize, version: &Value, errors: &mut Vec<String>) {
    let at = format!("spec.versions[{index}]");
    let name = text(version, "/name");
    if !is_dns_label(name) {
        errors.push(format!("{at}.name: Invalid value: {name:?}: {DNS_LABEL}"));
    }
    let at = format!("{at}.schema.openAPIV3Schema");
    match version.pointer("/schema/openAPIV3Schema") {
        None | Some(Value::Null) => errors.push(format!("{at}: Required value")),
        Some(schema) => match text(schema, "/type") {
            "object" => {}
            "" => errors.push(format!("{at}.type: Required value: must not be empty at the root")),
            other => errors.push(format!("{at}.type: Invalid value: {other:?}: must be object at the root")),
        },
    }
}

fn check_stored_versions(crd: &Value, errors: &mut Vec<String>) {
    let stored = crd.pointer("/status/storedVersions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if stored.is_empty() {
        errors.push("status.storedVersions: Invalid value: null: must have at least one stored version".into());
    }
    for (index, version) in stored.iter().enumerate() {
        let version = version.as_str().unwrap_or_default();
        if !versions(crd).iter().any(|known| text(known, "/name") == version) {
            errors.push(format!(
                "status.storedVersions[{index}]: Invalid value: {version:?}: missing from spec.versions; {version} \
                 was previously a storage version, and must remain in spec.versions until a storage migration ensures \
                 no data remains persisted in {version} and removes {version} from status.storedVersions"
            ));
        }
    }
}

fn is_dns_label(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// `spec.versions`, empty where it is missing or no list.
fn versions(crd: &Value) -> &[Value] {
    crd.pointer("/spec/versions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn group(crd: &Value) -> &str {
    text(crd, "/spec/group")
}

fn plural(crd: &Value) -> &str {
    text(crd, "/spec/names/plural")
}

fn storage_versions(crd: &Value) -> impl Iterator<Item = &str> {
    versions(crd).iter().filter(|version| version.get("storage") == Some(&Value::Bool(true))).map(|v| text(v, "/name"))
}

/// The string at a JSON pointer; empty where there is none.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(versions: &[(&str, bool)]) -> Value {
        let versions: Vec<Value> = versions
            .iter()
            .map(|(name, storage)| {
                json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}})
            })
            .collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "samples.test.example.com"},
            "spec": {
                "group": "test.example.com",
                "names": {"plural": "samples", "kind": "Sample"},
                "scope": "Namespaced",
                "preserveUnknownFields": false,
                "versions": versions,
            },
        })
    }

    /// What is stored after `desired` replaced `live`.
    fn stored(live: Option<&Value>, mut desired: Value) -> Result<Value, Vec<String>> {
        admit(live, &mut desired).map(|()| desired)
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
    fn what_the_manifest_names_is_not_defaulted() {
        let mut desired = crd(&[("v1", true)]);
        desired["spec"]["names"]["singular"] = "one".into();
        desired["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {}}}});
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
                "spec.versions[0].name",
                "spec.versions[1].schema.openAPIV3Schema.type",
                "spec.versions[2].schema.openAPIV3Schema",
                "spec.versions",
                "spec.versions",
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
