//! An app: the objects that one team deploys together, under a name that the cluster keeps.
//!
//! An app is an ApplySet (<https://kep.k8s.io/3659>): its parent is the ConfigMap `NAME.gantry` in the app's namespace,
//! and each member carries the label `applyset.kubernetes.io/part-of` with the identifier of the set. In addition to
//! what an ApplySet requires, the parent has an inventory of the members with their uids. An object is deleted only if
//! both agree: the label on the live object, and its uid in the inventory.

pub mod children;
mod config_map;
pub mod inventory;
pub mod kapp;
pub mod label;
pub mod last_applied;
pub mod members;
mod not_recorded;
pub mod parent;
pub mod parts;
pub mod revisions;
mod unserved;
pub mod versions;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use gantry_cluster::Target;
use gantry_core::options::InvalidOption;
use gantry_core::resource::{ObjectRef, Resource};

pub use inventory::AppMember;
pub use parent::{Parent, RunOutcome};

/// The label that identifies the members of an ApplySet; its value is the identifier of the set.
pub const PART_OF: &str = "applyset.kubernetes.io/part-of";

/// The field manager of parents and their parts, whatever the deploy uses for members.
const MANAGER: &str = "gantry";

/// The suffix of the name of an app's parent.
pub(crate) const SUFFIX: &str = ".gantry";

/// An app, identified by its name and the namespace of its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// The name that `--app` gives. It is a valid label value.
    pub name: String,
    /// The namespace of the record. Members can be in any namespace.
    pub namespace: String,
}

impl App {
    /// The app with a name, in the namespace chosen for it, or otherwise in the namespace of the run.
    pub fn new(name: &str, app_namespace: Option<&str>, namespace: Option<&str>, target: &Target) -> Self {
        let namespace = app_namespace.or(namespace).unwrap_or_else(|| target.default_namespace());
        App { name: name.to_owned(), namespace: namespace.to_owned() }
    }

    /// The ConfigMap that records the app.
    pub fn parent(&self) -> ObjectRef {
        ObjectRef {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some(self.namespace.clone()),
            name: format!("{}{SUFFIX}", self.name),
        }
    }

    /// The identifier of the set, the label value of its members: `applyset-` and the hash of the parent's name,
    /// namespace, kind and group (which is empty), as the KEP defines it.
    pub fn id(&self) -> String {
        let text = format!("{}{SUFFIX}.{}.ConfigMap.", self.name, self.namespace);
        let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(hash))
    }
}

/// The resource of ConfigMaps.
pub fn config_maps() -> Resource {
    Resource::built_in("", "ConfigMap", "configmaps", true)
}

/// Checks that `text` can be the name of an app.
///
/// # Errors
/// Why it cannot.
pub fn check_name(text: &str) -> Result<(), InvalidOption> {
    let is_label = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
    };
    match text.len() <= 253 - SUFFIX.len() && text.split('.').all(is_label) {
        true => Ok(()),
        false => Err(format!(
            "{text:?} is not the name of an app: at most {} lower case letters, digits, - and .",
            253 - SUFFIX.len()
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identifier_is_that_of_kubectl() {
        // The label that kubectl gives the parent of `--applyset=configmaps/their.gantry -n kk`.
        let app = App { name: "their".into(), namespace: "kk".into() };
        let id = app.id();
        assert_eq!(id, "applyset-woG-qjQ8PtPaRF4goAPEoOiPh4m7E27e4etfrYM9qXg-v1");
        assert_ne!(id, App { namespace: "other".into(), ..app }.id());
    }

    #[test]
    fn names_are_those_of_config_maps() {
        assert!(["shop", "shop.v1", "a-b"].iter().all(|name| check_name(name).is_ok()));
        assert!(["", "Shop", "a..b", "-a", "a/b", &"a".repeat(247)].iter().all(|name| check_name(name).is_err()));
    }
}
