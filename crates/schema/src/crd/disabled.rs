//! Fields that a server knows but does not keep, because their feature is not enabled in its release.

use std::borrow::Cow;

use gantry_k8s_cel::KubernetesRelease;
use serde_json::Value;

use super::DroppedField;
use super::model::CrdModel;
use crate::Step;
use crate::older_releases::{AddedCrdField, OPTIONAL_OLD_SELF, SELECTABLE_FIELDS};
use crate::ratchet::value_at_mut;

/// The CRD without the fields that a server of this release does not keep, and the fields that it knows but removes.
/// Those that it does not know are errors of server-side apply: see [`crate::typed::unreadable_crd`].
///
/// A live CRD that has such a field proves that the feature is enabled.
pub fn without_disabled<'v>(
    crd: &'v Value,
    old: Option<&CrdModel>,
    release: KubernetesRelease,
) -> (Cow<'v, Value>, Vec<DroppedField>) {
    let mut removal =
        DisabledFieldRemoval { crd: Cow::Borrowed(crd), is_known: false, at: Vec::new(), dropped: Vec::new() };
    let has_selectable =
        |old: &CrdModel| old.selectable.is_given || old.versions.iter().any(|version| version.selectable.is_given);
    let has_optional = |old: &CrdModel| {
        old.has_schema_with(&mut |schema| schema.rules.iter().any(|rule| rule.optional_old_self.is_some()))
    };
    let is_disabled = |removal: &mut DisabledFieldRemoval, field: &AddedCrdField, is_live: bool| {
        removal.is_known = release >= field.since;
        release < field.enabled && !(removal.is_known && is_live)
    };
    if is_disabled(&mut removal, &SELECTABLE_FIELDS, old.is_some_and(has_selectable)) {
        removal.selectable_fields(crd);
    }
    if is_disabled(&mut removal, &OPTIONAL_OLD_SELF, old.is_some_and(has_optional)) {
        removal.optional_old_selves(crd);
    }
    (removal.crd, removal.dropped)
}

struct DisabledFieldRemoval<'v> {
    crd: Cow<'v, Value>,
    /// Whether the server knows the field that is removed.
    is_known: bool,
    /// The path of the value that is visited.
    at: Vec<Step>,
    dropped: Vec<DroppedField>,
}

impl DisabledFieldRemoval<'_> {
    fn selectable_fields(&mut self, crd: &Value) {
        for (index, version) in versions(crd) {
            if version[SELECTABLE_FIELDS.name].as_array().is_some_and(|fields| !fields.is_empty()) {
                self.at = vec!["spec".into(), "versions".into(), index.into()];
                self.remove(SELECTABLE_FIELDS.name);
            }
        }
    }

    fn optional_old_selves(&mut self, crd: &Value) {
        for (index, version) in versions(crd) {
            self.at = vec!["spec".into(), "versions".into(), index.into(), "schema".into(), "openAPIV3Schema".into()];
            self.schema(&version["schema"]["openAPIV3Schema"]);
        }
    }

    fn schema(&mut self, schema: &Value) {
        if !schema.is_object() {
            return;
        }
        for (index, rule) in schema["x-kubernetes-validations"].as_array().into_iter().flatten().enumerate() {
            if !rule[OPTIONAL_OLD_SELF.name].is_null() {
                let depth = self.at.len();
                self.at.extend(["x-kubernetes-validations".into(), index.into()]);
                self.remove(OPTIONAL_OLD_SELF.name);
                self.at.truncate(depth);
            }
        }
        for keyword in ["items", "additionalProperties"] {
            self.below(&[keyword], &schema[keyword]);
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            self.below(&["properties", name], property);
        }
    }

    fn below(&mut self, steps: &[&str], schema: &Value) {
        let depth = self.at.len();
        self.at.extend(steps.iter().map(|step| Step::from(*step)));
        self.schema(schema);
        self.at.truncate(depth);
    }

    /// Removes this field of the visited value.
    fn remove(&mut self, name: &str) {
        if let Some(Value::Object(object)) = value_at_mut(self.crd.to_mut(), &self.at) {
            object.shift_remove(name);
        }
        if self.is_known {
            self.dropped.push(DroppedField::new(self.at.iter().cloned().chain([name.into()]).collect()));
        }
    }
}

fn versions(crd: &Value) -> impl Iterator<Item = (usize, &Value)> {
    crd["spec"]["versions"].as_array().into_iter().flatten().enumerate()
}
