//! Following objects as they change: a list first, then every change that the target reports.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;

use gantry_core::resource::{LiveObject, Resource};

/// Which objects to follow: objects of one kind in one namespace.
#[derive(Debug, Clone)]
pub struct FollowRequest {
    /// The kind whose objects are watched.
    pub resource: Arc<Resource>,
    /// `None` for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// Events of other objects are dropped.
    pub names: BTreeSet<String>,
    /// A label selector in Kubernetes' syntax that matches all of them, so the target does not report other objects.
    pub label_selector: Option<String>,
    /// Reports only changes since this resourceVersion, without a list first.
    pub since: Option<String>,
}

/// An event about the objects that are followed.
#[derive(Debug, Clone)]
pub enum WatchEvent {
    /// The existing objects, if a list was requested; other objects did not exist at this resourceVersion.
    Listed {
        /// Each object with its name.
        objects: Vec<(String, LiveObject)>,
        /// That of the list.
        resource_version: String,
    },
    /// An object was created, or has changed. The string is its name.
    Changed(String, LiveObject),
    /// An object (its name) was deleted or no longer matches, at this resourceVersion.
    Deleted(String, String),
    /// No events arrive until [`WatchEvent::Resumed`].
    Disconnected,
    /// The connection is back; the changes that were missed follow.
    Resumed,
}

/// Reports events until it is dropped. If the objects cannot be watched, it ends after [`WatchEvent::Disconnected`].
pub(crate) type Follow = BoxFuture<'static, ()>;
