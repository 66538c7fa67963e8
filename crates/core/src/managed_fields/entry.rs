//! The entries of `metadata.managedFields`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::field_set::FieldSet;

/// How a field manager wrote a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ManagerOperation {
    /// By server-side apply.
    Apply,
    /// By anything else: create, replace, patch.
    Update,
}

impl ManagerOperation {
    /// Parses the `operation` of an entry. Everything but `Apply` counts as an update, as in the API server.
    pub fn parse(text: &str) -> Self {
        if text == "Apply" { ManagerOperation::Apply } else { ManagerOperation::Update }
    }
}

/// Who wrote an entry of `metadata.managedFields`, read from text without the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagerEntryHead<'a> {
    /// The name of the field manager.
    #[serde(borrow)]
    pub manager: Cow<'a, str>,
    /// See [`ManagerEntryHead::operation`].
    #[serde(borrow)]
    operation: Cow<'a, str>,
    /// The `apiVersion` that the fields are those of.
    #[serde(borrow)]
    pub api_version: Cow<'a, str>,
    /// The subresource that was written; empty for the object itself.
    #[serde(borrow)]
    pub subresource: Cow<'a, str>,
}

impl ManagerEntryHead<'_> {
    /// How the manager wrote.
    pub fn operation(&self) -> ManagerOperation {
        ManagerOperation::parse(&self.operation)
    }
}

/// An entry of `metadata.managedFields`.
#[derive(Debug, Clone, Copy)]
pub struct ManagerEntry<'v>(&'v Value);

impl<'v> ManagerEntry<'v> {
    /// Wraps one item of the list.
    pub fn new(entry: &'v Value) -> Self {
        ManagerEntry(entry)
    }

    /// The entries of an object, in its order.
    pub fn all(object: &'v Value) -> impl Iterator<Item = Self> + use<'v> {
        let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        entries.into_iter().flatten().map(ManagerEntry)
    }

    fn text(self, key: &str) -> &'v str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The whole item.
    pub fn value(self) -> &'v Value {
        self.0
    }

    /// The name of the field manager; empty if the entry has none.
    pub fn manager(self) -> &'v str {
        self.text("manager")
    }

    /// How the manager wrote. A manager can have one entry for each.
    pub fn operation(self) -> ManagerOperation {
        ManagerOperation::parse(self.text("operation"))
    }

    /// The `apiVersion` that the fields are those of.
    pub fn api_version(self) -> &'v str {
        self.text("apiVersion")
    }

    /// The subresource that was written; empty for the object itself.
    pub fn subresource(self) -> &'v str {
        self.text("subresource")
    }

    /// An invalid or missing record gives an empty set.
    pub fn fields(self) -> FieldSet {
        self.0.get("fieldsV1").map(FieldSet::parse).unwrap_or_default()
    }

    /// Whether it is of what `manager` applied, to the object itself or to a subresource.
    pub fn is_of_applier(self, manager: &str) -> bool {
        self.manager() == manager && self.operation() == ManagerOperation::Apply
    }

    /// Whether it is of what `manager` applied to the object itself.
    pub fn is_apply_of(self, manager: &str) -> bool {
        self.is_of_applier(manager) && self.subresource().is_empty()
    }

    /// The entry with other fields.
    pub fn with_fields(self, fields: &FieldSet) -> Value {
        let mut entry = self.0.clone();
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("fieldsV1".to_owned(), fields.to_json());
        }
        entry
    }
}
