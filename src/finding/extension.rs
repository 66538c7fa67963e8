//! What becomes of a ClusterExtension.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What OLM v1 makes of one ClusterExtension of the manifests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionEntry {
    /// The name of the ClusterExtension.
    pub name: String,
    /// The package that it asks for.
    pub package: String,
    /// The version that is installed; absent where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// What it resolves to; absent where nothing is resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<ResolvedBundle>,
    /// The versions that OLM installs by itself, one after another. Where nothing is resolved, the shortest way over the edges
    /// of the catalog from what is installed to the highest version that is asked for, if there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Whether `version` names one version, so that no other is ever installed by itself.
    pub pinned: bool,
    /// Why nothing is resolved, in OLM's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ExtensionEntry {
    /// The version that it resolves to, and those that OLM goes on to by itself; none where nothing is resolved.
    pub fn versions(&self) -> Vec<String> {
        let Some(ResolvedBundle { version, .. }) = &self.resolved else { return Vec::new() };
        // The path does not begin with a version that is installed already.
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
    /// The ClusterCatalog that it is from.
    pub catalog: String,
    /// The channels that have it, of those that the ClusterExtension names, or of all.
    pub channels: Vec<String>,
}
