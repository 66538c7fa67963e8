//! Whether the metadata of an object of a built-in kind is what the server takes of every kind: its name, and what its labels and
//! annotations are called.

use serde_json::Value;

use super::shape::Misfit;
use crate::cluster::Gvk;
use crate::rbac;
use crate::resource::Step;
use gantry_schema::names;

/// What the server's validation of any object would refuse.
pub fn misfits(kind: &Gvk, object: &Value) -> Vec<Misfit> {
    let mut misfits = Vec::new();
    let mut refuse = |at: &[&str], value: &str, messages: Vec<String>| {
        misfits.extend(messages.into_iter().map(|said| {
            let at = ["metadata"].iter().chain(at).map(|key| Step::from(*key)).collect();
            Misfit { at, message: format!("Invalid value: {value:?}: {said}") }
        }));
    };
    let metadata = &object["metadata"];
    if let Some(name) = metadata["name"].as_str() {
        // Of most kinds names are DNS subdomains, or stricter; roles are called as one likes.
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
    misfits
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_labels_and_annotations_are_judged() {
        let refused = |group: &str, metadata: Value| -> Vec<usize> {
            let kind = Gvk { group: group.into(), version: "v1".into(), kind: "K".into() };
            misfits(&kind, &json!({"metadata": metadata})).iter().map(|misfit| misfit.at.len()).collect()
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
