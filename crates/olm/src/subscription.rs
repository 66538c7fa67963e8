//! A Subscription of classic OLM: what is to be installed, and what is installed according to its status.
//!
//! Source: `pkg/operators/v1alpha1/subscription_types.go` of operator-framework/api.

use gantry_catalog::classic::Subscription;
use serde_json::Value;

use gantry_cluster::Target;
use gantry_core::problem::Problem;
use gantry_core::resource::ObjectRef;

/// The API group of classic OLM.
pub const GROUP: &str = "operators.coreos.com";
/// The kind.
pub const KIND: &str = "Subscription";

/// A Subscription. A field that is not set is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriptionObject {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The package: `spec.name`.
    pub package: String,
    /// The channel; empty for all channels of the package.
    pub channel: String,
    /// The name of the CatalogSource.
    pub source: String,
    /// The namespace of the CatalogSource.
    pub source_namespace: String,
    /// The ClusterServiceVersion to install first.
    pub starting_csv: String,
    /// Whether somebody has to approve each InstallPlan (`installPlanApproval: Manual`).
    pub needs_approval: bool,
    /// The installed ClusterServiceVersion, from the status.
    pub installed_csv: String,
}

impl SubscriptionObject {
    /// Parses a Subscription; `None` for an object of another kind, or without a name.
    pub fn parse(json: &Value) -> Option<SubscriptionObject> {
        let text = |path: &str| json.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = text("/metadata/name");
        let is_one = text("/kind") == KIND && text("/apiVersion").split('/').next() == Some(GROUP);
        (is_one && !name.is_empty()).then(|| SubscriptionObject {
            name,
            namespace: text("/metadata/namespace"),
            package: text("/spec/name"),
            channel: text("/spec/channel"),
            source: text("/spec/source"),
            source_namespace: text("/spec/sourceNamespace"),
            starting_csv: text("/spec/startingCSV"),
            needs_approval: text("/spec/installPlanApproval") == "Manual",
            installed_csv: text("/status/installedCSV"),
        })
    }

    /// The parts that determine what OLM installs.
    pub fn request(&self) -> Subscription<'_> {
        Subscription {
            name: &self.name,
            package: &self.package,
            channel: &self.channel,
            starting_csv: &self.starting_csv,
            source: &self.source,
            source_namespace: &self.source_namespace,
        }
    }
}

/// Whether an object is a Subscription.
pub fn is_one(object: &ObjectRef) -> bool {
    object.kind == KIND && object.group() == GROUP
}

/// The Subscriptions of a target; empty if it does not serve the kind.
///
/// # Errors
/// They cannot be listed, usually because permission is missing.
pub async fn list(target: &Target) -> Result<Vec<SubscriptionObject>, Problem> {
    let add = |all: &mut Vec<SubscriptionObject>, json: &str| {
        let value = serde_json::from_str::<Value>(json).ok();
        all.extend(value.and_then(|value| SubscriptionObject::parse(&value)));
    };
    Ok(crate::gather(target, (GROUP, KIND), &["v1alpha1"], add).await?.unwrap_or_default())
}
