//! A ConfigMap that holds a record: gantry's or kapp's.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The parts of a ConfigMap that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigMap {
    pub metadata: ConfigMapMetadata,
    data: Option<BTreeMap<String, String>>,
    binary_data: Option<BTreeMap<String, IgnoredAny>>,
    immutable: Option<bool>,
}

/// The parts of its metadata that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConfigMapMetadata {
    pub name: String,
    pub namespace: Option<String>,
    pub uid: String,
    pub resource_version: String,
    pub deletion_timestamp: Option<String>,
    finalizers: Option<Vec<String>>,
    managed_fields: Option<Vec<ConfigMapManagerEntry>>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ConfigMapManagerEntry {
    manager: String,
    operation: String,
    time: Option<Timestamp>,
}

impl ConfigMap {
    /// # Errors
    /// It is not a ConfigMap.
    pub fn parse(json: &str) -> serde_json::Result<Self> {
        serde_json::from_str(json)
    }

    /// The value of a key of `data`.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.data.as_ref()?.get(key).map(String::as_str)
    }

    /// Whether `binaryData` has the key. The server allows it only where `data` does not have it.
    pub fn is_binary(&self, key: &str) -> bool {
        self.binary_data.as_ref().is_some_and(|data| data.contains_key(key))
    }

    /// Whether the server refuses every change of the data.
    pub fn is_immutable(&self) -> bool {
        self.immutable == Some(true)
    }

    pub fn finalizers(&self) -> &[String] {
        self.metadata.finalizers.as_deref().unwrap_or_default()
    }

    /// When a field manager last changed something with a server-side apply, by the clock of the server.
    pub fn applied(&self, manager: &str) -> Option<Timestamp> {
        let entries = self.metadata.managed_fields.iter().flatten();
        entries
            .filter(|entry| entry.manager == manager && entry.operation == "Apply")
            .filter_map(|entry| entry.time)
            .max()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

/// The error for a key of `data` whose JSON is not what `tool` writes there. It does not mention Rust types.
pub fn not_as_written(key: &str, tool: &str, error: &serde_json::Error) -> String {
    format!("data.{key} is not in {tool}'s format (line {}, column {})", error.line(), error.column())
}
