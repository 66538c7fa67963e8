//! Validates the metadata of objects of built-in kinds as the server does for every kind: names, labels and the keys of
//! annotations.

use serde_json::Value;

use gantry_cluster::Gvk;
use gantry_core::rbac;
use gantry_core::resource::Step;
use gantry_schema::names;

/// An invalid name, label or annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataError {
    pub at: Vec<Step>,
    pub message: String,
}

/// The errors that the server's validation of metadata would report.
pub fn errors(kind: &Gvk, object: &Value) -> Vec<MetadataError> {
    let mut errors = Vec::new();
    let mut refuse = |at: &[&str], value: &str, messages: Vec<String>| {
        errors.extend(messages.into_iter().map(|said| {
            let at = ["metadata"].iter().chain(at).map(|key| Step::from(*key)).collect();
            MetadataError { at, message: format!("Invalid value: {value:?}: {said}") }
        }));
    };
    let metadata = &object["metadata"];
    if let Some(name) = metadata["name"].as_str() {
        // Names of most kinds are DNS subdomains, or stricter; names of roles are nearly free-form.
        let is_role = kind.group == rbac::GROUP;
        refuse(&["name"], name, if is_role { names::path_segment(name, false) } else { names::subdomain(name) });
    }
    let texts =
        |key: &str| metadata[key].as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str()));
    for (key, value) in texts("labels") {
        refuse(&["labels", key], key, names::qualified(key));
        if let Some(value) = value {
            refuse(&["labels", key], value, names::label_value(value));
        }
    }
    for (key, _) in texts("annotations") {
        refuse(&["annotations", key], key, names::qualified(&key.to_lowercase()));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_names_labels_and_annotations_are_found() {
        let refused = |group: &str, metadata: Value| -> Vec<usize> {
            let kind = Gvk { group: group.into(), version: "v1".into(), kind: "K".into() };
            errors(&kind, &json!({"metadata": metadata})).iter().map(|error| error.at.len()).collect()
        };
        let fine = json!({"name": "a.b-c", "labels": {"a.b/c": "", "d": "E_f"}, "annotations": {"A/b": "any text"}});
        assert_eq!(refused("", fine), [0; 0]);
        assert_eq!(
            refused("", json!({"name": "A_b", "labels": {"a": "b c", "a b": "c"}, "annotations": {"/x": ""}})),
            [2, 3, 3, 3]
        );
        assert_eq!(refused(rbac::GROUP, json!({"name": "system:A_b"})), [0; 0]);
        assert_eq!(refused(rbac::GROUP, json!({"name": "a/b"})), [2]);
        assert_eq!(refused("", json!({"labels": {"a": 7}, "annotations": []})), [0; 0]);
    }
}
