//! Objects followed as they change: a list first, then every change that the target tells of.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;

use crate::resource::{Live, Resource};

/// Which objects to follow: some of one kind in one place.
#[derive(Debug, Clone)]
pub struct FollowRequest {
    pub resource: Arc<Resource>,
    /// `None` for a kind without namespaces.
    pub namespace: Option<String>,
    /// Events of any other are dropped.
    pub names: BTreeSet<String>,
    /// All of them have this label, in Kubernetes' syntax, so that the target need not tell of others.
    pub label_selector: Option<String>,
    /// Only what has changed since this resourceVersion, without a list first.
    pub since: Option<String>,
}

/// An event of the objects that are followed.
#[derive(Debug, Clone)]
pub enum WatchEvent {
    /// Those that there are, where the target was asked for a list; what is missing was not there at this resourceVersion.
    Listed { objects: Vec<(String, Live)>, resource_version: String },
    /// An object is there, or has changed.
    Changed(String, Live),
    /// An object was deleted, or is not one of those any more: the resourceVersion of that.
    Deleted(String, String),
    /// From now on there are no events: see [`WatchEvent::Resumed`].
    Disconnected,
    /// What was missed since comes now.
    Resumed,
}

/// Tells of the objects until it is dropped, or for ever silent after [`WatchEvent::Disconnected`].
pub type Follow = BoxFuture<'static, ()>;
