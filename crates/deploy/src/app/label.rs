//! Adds the label of an app's members to the manifests, so that what is planned, checked and shown is what is applied.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::app::PART_OF;
use gantry_core::manifest::{Manifest, Spans};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::{RawObject, Step};

#[derive(Deserialize)]
struct LabelledHead<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

#[derive(Deserialize)]
struct LabelledMetadata<'a> {
    /// Present, even if it is `null`.
    #[serde(borrow, default, deserialize_with = "as_written")]
    labels: Option<&'a RawValue>,
}

fn as_written<'de: 'a, 'a, D: Deserializer<'de>>(value: D) -> std::result::Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// Gives every manifest the label of the set `id`. Exports of its members, such as those of a snapshot, have it.
///
/// # Errors
/// Manifests with the label of another set: it says which set an object belongs to, and only the tool that keeps the set
/// may write it.
pub fn put_label(manifests: &mut [Manifest], id: &str) -> Result<()> {
    let mut problems = Vec::new();
    for manifest in manifests {
        let is_labelled = manifest.metadata_may_contain(&["applyset.kubernetes.io"]);
        if let Some(label) = is_labelled.then(|| label_of(&manifest.raw.json())).flatten() {
            if label == id {
                continue;
            }
            let at = Spans::parse(&manifest.origin).locate(&[Step::from("metadata"), "labels".into(), PART_OF.into()]);
            let message = format!("{}: the label {PART_OF} is set by the tool that keeps an ApplySet", manifest.object);
            problems.push(Problem::new(message).at(at.location).help("remove the label from the manifest"));
            continue;
        }
        manifest.raw = match manifest.raw.text_in_memory() {
            Some(json) => RawObject::new(labelled(json, id)),
            None => {
                let (raw, id) = (manifest.raw.clone(), id.to_owned());
                RawObject::made_when_asked(move || labelled(&raw.json(), &id))
            }
        };
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::Usage(problems)) }
}

/// Gives every manifest these labels, overriding its own values.
pub fn add(manifests: &mut [Manifest], labels: &BTreeMap<String, String>) {
    put_metadata(manifests, "labels", labels);
}

/// Gives every manifest these `labels` or `annotations`, overriding its own values.
pub fn put_metadata(manifests: &mut [Manifest], member: &'static str, texts: &BTreeMap<String, String>) {
    if texts.is_empty() {
        return;
    }
    for manifest in manifests {
        let with = {
            let texts = texts.clone();
            move |raw: &RawObject| {
                let mut object = raw.value();
                let found = &mut object["metadata"][member];
                if found.is_null() {
                    *found = serde_json::json!({});
                }
                if let Some(found) = found.as_object_mut() {
                    found.extend(texts.iter().map(|(key, value)| (key.clone(), value.as_str().into())));
                }
                object.to_string()
            }
        };
        manifest.raw = match manifest.raw.text_in_memory() {
            Some(_) => RawObject::new(with(&manifest.raw)),
            None => {
                let raw = manifest.raw.clone();
                RawObject::made_when_asked(move || with(&raw))
            }
        };
    }
}

/// The value of the label, if the object has it.
fn label_of(json: &str) -> Option<serde_json::Value> {
    if !json.contains(PART_OF) {
        return None;
    }
    let labels = || -> Option<BTreeMap<String, serde_json::Value>> {
        let head: LabelledHead<'_> = serde_json::from_str(json).ok()?;
        let metadata: LabelledMetadata<'_> = serde_json::from_str(head.metadata.get()).ok()?;
        serde_json::from_str(metadata.labels?.get()).ok()
    };
    labels()?.remove(PART_OF)
}

/// The JSON of an object with one more label.
fn labelled(json: &str, id: &str) -> String {
    let label = format!("\"{PART_OF}\":\"{id}\"");
    let place = || -> Option<(usize, usize, String)> {
        let head: LabelledHead<'_> = serde_json::from_str(json).ok()?;
        let metadata: LabelledMetadata<'_> = serde_json::from_str(head.metadata.get()).ok()?;
        let start = |part: &RawValue| part.get().as_ptr() as usize - json.as_ptr() as usize;
        let comma = |members: &str| if members[1..].trim_start().starts_with('}') { "" } else { "," };
        Some(match metadata.labels.filter(|labels| labels.get().starts_with('{')) {
            Some(labels) => (start(labels) + 1, start(labels) + 1, format!("{label}{}", comma(labels.get()))),
            None => match metadata.labels {
                // `labels: null`
                Some(null) => (start(null), start(null) + null.get().len(), format!("{{{label}}}")),
                None => {
                    let text = format!("\"labels\":{{{label}}}{}", comma(head.metadata.get()));
                    (start(head.metadata) + 1, start(head.metadata) + 1, text)
                }
            },
        })
    };
    match place() {
        Some((start, end, text)) => format!("{}{text}{}", &json[..start], &json[end..]),
        // An object without metadata; the loader refuses these.
        None => json.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_label_is_added_to_existing_labels_and_changes_nothing_else() {
        for (written, labels) in [
            (json!({"name": "a"}), json!({})),
            (json!({"name": "a", "labels": {}}), json!({})),
            (json!({"name": "a", "labels": null}), json!({})),
            (json!({"labels": {"b": "c", "d": "\"{"}, "name": "a"}), json!({"b": "c", "d": "\"{"})),
            (json!({}), json!({})),
        ] {
            let object = json!({"kind": "X", "spec": {"metadata": {"labels": {"no": "no"}}}, "metadata": written});
            let mut expected = object.clone();
            expected["metadata"]["labels"] = labels;
            expected["metadata"]["labels"][PART_OF] = "set".into();
            let made = labelled(&object.to_string(), "set");
            assert_eq!(serde_json::from_str::<Value>(&made).expect(&made), expected);
            let pretty = labelled(&serde_json::to_string_pretty(&object).unwrap(), "set");
            assert_eq!(serde_json::from_str::<Value>(&pretty).expect(&pretty), expected);
            assert_eq!((label_of(&made), label_of(&object.to_string())), (Some("set".into()), None));
        }
    }

    #[test]
    fn additional_labels_are_added_and_override_existing_ones() {
        let of = |metadata: Value| {
            let text = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).to_string();
            let source = std::sync::Arc::new(gantry_core::manifest::ManifestSource::new("m.yaml", text));
            let mut manifests = gantry_core::manifest::read(&source).unwrap().manifests;
            add(&mut manifests, &[("a".to_owned(), "new".to_owned())].into());
            manifests[0].raw.value()["metadata"]["labels"].take()
        };
        assert_eq!(of(json!({"name": "x"})), json!({"a": "new"}));
        assert_eq!(of(json!({"name": "x", "labels": null})), json!({"a": "new"}));
        assert_eq!(of(json!({"name": "x", "labels": {"a": "old", "b": "c"}})), json!({"a": "new", "b": "c"}));
    }

    #[test]
    fn only_a_label_of_the_object_itself_is_one() {
        assert_eq!(label_of(&json!({"metadata": {"annotations": {PART_OF: "x"}}}).to_string()), None);
        assert_eq!(label_of(&json!({"metadata": {}, "spec": {"labels": {PART_OF: "x"}}}).to_string()), None);
    }
}
