//! The resolution of a ClusterExtension.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How OLM v1 resolves one ClusterExtension of the manifests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionEntry {
    /// The name of the ClusterExtension.
    pub name: String,
    /// The package that it names.
    pub package: String,
    /// The installed version; absent if nothing is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// The bundle that it resolves to; absent if it does not resolve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<ResolvedBundle>,
    /// The versions that OLM installs automatically, one after another. If the ClusterExtension does not resolve: the
    /// shortest path over the edges of the catalog from the installed version to the highest requested version, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Whether `version` names one version, so OLM never installs another one automatically.
    pub pinned: bool,
    /// Why it does not resolve, in OLM's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ExtensionEntry {
    /// The version that it resolves to, and those that OLM then installs automatically; empty if it does not resolve.
    pub fn versions(&self) -> Vec<String> {
        let Some(ResolvedBundle { version, .. }) = &self.resolved else { return Vec::new() };
        // The path does not start with a version that is already installed.
        let then = self.path.iter().filter(|step| *step != version);
        std::iter::once(version).chain(then).cloned().collect()
    }
}

/// The bundle that a ClusterExtension resolves to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedBundle {
    /// Its name.
    pub bundle: String,
    /// Its version.
    pub version: String,
    /// The ClusterCatalog that has it.
    pub catalog: String,
    /// The channels that have it, among those that the ClusterExtension names, or among all.
    pub channels: Vec<String>,
}
