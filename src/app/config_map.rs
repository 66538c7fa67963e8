//! A ConfigMap as records are kept in: ours and those of kapp.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What is read of a ConfigMap.
#[derive(Debug, Default, Deserialize)]
pub struct ConfigMap {
    #[serde(default)]
    pub metadata: Metadata,
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

/// What is read of its metadata.
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
    /// It is no ConfigMap.
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

/// What is wrong with a key of `data` that is not the JSON which `tool` writes there. The types that it is read into are
/// nobody's business.
pub fn not_as_written(key: &str, tool: &str, error: &serde_json::Error) -> String {
    format!("data.{key} is not as {tool} writes it (line {}, column {})", error.line(), error.column())
}
