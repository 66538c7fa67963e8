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
    /// The image with its content; absent if the catalog names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The directory with its content among the manifests; absent if only what the catalog says was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

/// What classic OLM installs for one Subscription of the manifests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionEntry {
    /// The name of the Subscription.
    pub name: String,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The package that it names.
    pub package: String,
    /// The channel that it names; empty for all.
    pub channel: String,
    /// The CatalogSource that it names.
    pub catalog: String,
    /// The installed version, or the name of the installed ClusterServiceVersion if its version is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// The version that OLM installs next, or the installed one if it stays; absent if it does not resolve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// The bundle of that version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// What makes the edge from the installed version: `replaces`, `skips` or `skipRange` with the range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<String>,
    /// The versions that OLM installs afterwards, one after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<String>,
    /// Whether `startingCSV` names the version that is installed first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub starting_csv: bool,
    /// Whether somebody has to approve each step (`installPlanApproval: Manual`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
    /// Whether the resolved bundle is at the head of its channel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_at_head: bool,
    /// Why OLM cannot resolve it, in OLM's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
