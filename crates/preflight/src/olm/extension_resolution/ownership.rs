//! Whose a live object is, by the criterion of the runtime with which OLM v1 installs bundles.
//!
//! The default runtime is Helm: it takes over an object only if its metadata name the release, which is the
//! ClusterExtension in its namespace (`checkOwnership` of helm.sh/helm/v3). The runtime Boxcutter, which is behind a
//! feature gate, asks for a controller: a ClusterObjectSet of the ClusterExtension.

use serde_json::Value;

use gantry_core::resource::{HELM_NAMESPACE, HELM_RELEASE, MANAGED_BY, ObjectRef};
use gantry_core::text::sanitize;
use gantry_olm::cluster_catalog::GROUP;
use gantry_olm::cluster_extension::{self, Extension, OWNER_KIND, OWNER_NAME};

/// The kinds of Boxcutter's revisions: the current one, and that of earlier releases.
pub const REVISIONS: [&str; 2] = ["ClusterObjectSet", "ClusterExtensionRevision"];

/// What is known about the installation of an extension.
#[derive(Debug, Clone, Copy)]
pub struct Installation<'a> {
    /// The extension.
    pub extension: &'a Extension,
    /// Whether its status says that a bundle is installed.
    pub is_installed: bool,
    /// Whether the target serves the revisions of Boxcutter.
    pub is_boxcutter: bool,
}

impl Installation<'_> {
    /// Whose the live object is, in words; `None` if OLM can write it for the extension.
    pub fn other_owner(&self, live: &Value) -> Option<String> {
        let (labels, annotations) = (&live["metadata"]["labels"], &live["metadata"]["annotations"]);
        let Extension { name, namespace, .. } = self.extension;
        let of_labels = (labels[OWNER_KIND].as_str(), labels[OWNER_NAME].as_str());
        let has_own_labels = of_labels == (Some(cluster_extension::KIND), Some(name));
        // What the installed version contains is in the release whatever its metadata are.
        if has_own_labels && self.is_installed {
            return None;
        }
        let release = (annotations[HELM_RELEASE].as_str(), annotations[HELM_NAMESPACE].as_str());
        let is_of_helm = labels[MANAGED_BY] == "Helm";
        if is_of_helm && release == (Some(name), Some(namespace)) {
            return None;
        }
        let controller = controller(live);
        if controller.is_some_and(|owner| self.is_own_revision(owner)) {
            return None;
        }
        let text = |value: &Value| sanitize(value.as_str().unwrap_or_default()).into_owned();
        Some(match (of_labels, release, controller) {
            ((Some(kind), Some(owner)), ..) if !has_own_labels => {
                format!("it belongs to {} {}", sanitize(kind), sanitize(owner))
            }
            (_, (Some(name), namespace), _) if is_of_helm => {
                let namespace = sanitize(namespace.unwrap_or_default()).into_owned();
                format!("it belongs to the Helm release {} in namespace {namespace}", sanitize(name))
            }
            (_, _, Some(owner)) => format!("it belongs to {} {}", text(&owner["kind"]), text(&owner["name"])),
            _ if labels["olm.owner"].is_string() => {
                format!("classic OLM installed it for {}", text(&labels["olm.owner"]))
            }
            _ => "it was not installed by OLM v1".to_owned(),
        })
    }

    fn is_own_revision(&self, owner: &Value) -> bool {
        let is_revision = REVISIONS.iter().any(|kind| owner["kind"] == *kind)
            && owner["apiVersion"].as_str().is_some_and(|version| version.starts_with(GROUP));
        let number = owner["name"].as_str().and_then(|name| name.strip_prefix(&self.extension.name)?.strip_prefix('-'));
        is_revision && number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    }

    /// How an object can come under the extension without the loss of data. `resource` is what kubectl names it by.
    pub fn help(&self, object: &ObjectRef, resource: &str) -> String {
        let Extension { name, namespace, .. } = self.extension;
        let keep = if object.is_crd() { "keep the CRD, because deleting it deletes all its objects; " } else { "" };
        if self.is_boxcutter {
            return format!(
                "{keep}OLM v1 does not take it over: remove this ClusterExtension, or install it into a cluster without \
                 the other installation"
            );
        }
        let place = object.namespace.as_ref().map_or(String::new(), |namespace| format!(" -n {}", sanitize(namespace)));
        let (name, namespace, of) = (sanitize(name), sanitize(namespace), sanitize(&object.name));
        format!(
            "{keep}stop the other installation from managing it (for a Helm release: annotate it \
             helm.sh/resource-policy=keep before helm uninstall), and then hand it over:\n\
             kubectl label --overwrite {resource} {of}{place} {MANAGED_BY}=Helm\n\
             kubectl annotate --overwrite {resource} {of}{place} {HELM_RELEASE}={name} {HELM_NAMESPACE}={namespace}"
        )
    }
}

fn controller(live: &Value) -> Option<&Value> {
    live["metadata"]["ownerReferences"].as_array()?.iter().find(|owner| owner["controller"] == true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn extension() -> Extension {
        let object = ObjectRef {
            api_version: format!("{GROUP}/v1"),
            kind: cluster_extension::KIND.into(),
            namespace: None,
            name: "shop".into(),
        };
        let spec = json!({"spec": {"namespace": "ns", "source": {"catalog": {"packageName": "p"}}}});
        Extension::parse(&object, &spec).unwrap()
    }

    #[test]
    fn an_object_belongs_to_the_extension_by_the_criterion_of_the_runtime() {
        let helm = |name: &str, namespace: &str| {
            json!({"metadata": {"labels": {MANAGED_BY: "Helm"},
                "annotations": {HELM_RELEASE: name, HELM_NAMESPACE: namespace}}})
        };
        let owned = |kind: &str, name: &str| {
            let owner = json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "name": name, "controller": true});
            json!({"metadata": {"ownerReferences": [owner]}})
        };
        let labelled = |name: &str| json!({"metadata": {"labels": {OWNER_KIND: "ClusterExtension", OWNER_NAME: name}}});
        let unlabelled = json!({"metadata": {"annotations": {HELM_RELEASE: "shop", HELM_NAMESPACE: "ns"}}});
        let extension = extension();
        for (live, first, later) in [
            (helm("shop", "ns"), None, None),
            (helm("shop", "other"), Some("the Helm release shop in namespace other"), Some("the Helm release")),
            (helm("other", "ns"), Some("the Helm release other in namespace ns"), Some("the Helm release")),
            (unlabelled, Some("was not installed by OLM v1"), Some("was not installed by OLM v1")),
            (json!({}), Some("was not installed by OLM v1"), Some("was not installed by OLM v1")),
            (labelled("shop"), Some("was not installed by OLM v1"), None),
            (labelled("other"), Some("belongs to ClusterExtension other"), Some("belongs to ClusterExtension other")),
            (owned("ClusterObjectSet", "shop-3"), None, None),
            (owned("ClusterObjectSet", "shop-more-3"), Some("ClusterObjectSet shop-more-3"), Some("shop-more-3")),
            (owned("ClusterExtensionRevision", "shop-1"), None, None),
            (owned("Elsewhere", "shop-1"), Some("belongs to Elsewhere shop-1"), Some("belongs to Elsewhere shop-1")),
            (
                json!({"metadata": {"labels": {"olm.owner": "p.v1"}}}),
                Some("classic OLM installed it for p.v1"),
                Some("p.v1"),
            ),
        ] {
            for (is_installed, expected) in [(false, first), (true, later)] {
                let installation = Installation { extension: &extension, is_installed, is_boxcutter: false };
                let owner = installation.other_owner(&live);
                match expected {
                    None => assert_eq!(owner, None, "{live}"),
                    Some(words) => {
                        assert!(owner.as_ref().is_some_and(|owner| owner.contains(words)), "{owner:?} {live}")
                    }
                }
            }
        }
    }
}
