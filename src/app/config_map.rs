//! A ConfigMap that holds a record: gantry's or kapp's.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The parts of a ConfigMap that are read.
#[derive(Debug, Default, Deserialize)]
pub struct ConfigMap {
    #[serde(default)]
    pub metadata: Metadata,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

/// The parts of its metadata that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub name: String,
    pub namespace: Option<String>,
    pub uid: String,
    pub resource_version: String,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
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
