//! Watches objects that are being deleted, with one watch for each kind and namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::observe::{KindInNamespace, MOST_WATCHES};
use crate::app::PART_OF;
use crate::plan::removal::Removal;
use gantry_cluster::Target;
use gantry_cluster::watch::{FollowRequest, WatchEvent};
use gantry_core::resource::ObjectRef;

/// Watches objects until it is dropped.
pub struct DeletionWatches {
    known: Arc<DeletionState>,
    _watches: JoinSet<()>,
}

struct DeletionState {
    places: Mutex<BTreeMap<KindInNamespace, WatchedObjects>>,
    news: watch::Sender<()>,
}

/// The state of one watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct WatchedObjects {
    /// Whether the watch is connected.
    is_followed: bool,
    /// The uids of the existing objects, by name.
    there: BTreeMap<String, String>,
}

impl WatchedObjects {
    fn check_manifests(&mut self, event: WatchEvent) {
        match event {
            WatchEvent::Listed { objects, .. } => {
                self.there = objects.into_iter().map(|(name, live)| (name, live.uid)).collect();
                self.is_followed = true;
            }
            WatchEvent::Changed(name, live) => drop(self.there.insert(name, live.uid)),
            WatchEvent::Deleted(name, _) => drop(self.there.remove(&name)),
            WatchEvent::Disconnected => self.is_followed = false,
            WatchEvent::Resumed => self.is_followed = true,
        }
    }
}

impl DeletionState {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<KindInNamespace, WatchedObjects>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeletionWatches {
    /// Starts to watch the objects, up to the limit of watches.
    pub fn start<'r>(removals: impl Iterator<Item = &'r Removal>, target: &Target) -> Self {
        let mut places: BTreeMap<KindInNamespace, Vec<&Removal>> = BTreeMap::new();
        for removal in removals {
            places.entry(kind_in_namespace(removal)).or_default().push(removal);
        }
        let known = Arc::new(DeletionState { places: Mutex::default(), news: watch::Sender::new(()) });
        let mut watches = JoinSet::new();
        for (of, removals) in places.into_iter().take(MOST_WATCHES) {
            let names: BTreeSet<String> = removals.iter().map(|removal| removal.object.name.clone()).collect();
            let label_selector = common_label_selector(&removals);
            // Listing everything would cost more than the reads that it saves.
            if names.len() > 1 && label_selector.is_none() {
                continue;
            }
            let (resource, namespace) = of.clone();
            let request = FollowRequest { resource, namespace, names, label_selector, since: None };
            let shared = Arc::clone(&known);
            let follow = target.follow(request, move |event| {
                shared.lock().entry(of.clone()).or_default().check_manifests(event);
                shared.news.send_replace(());
            });
            if let Some(follow) = follow {
                watches.spawn(follow);
            }
        }
        DeletionWatches { known, _watches: watches }
    }

    /// Whether a watch reports that an object exists.
    pub fn is_there(&self, removal: &Removal) -> bool {
        let places = self.known.lock();
        let told = places.get(&kind_in_namespace(removal)).filter(|told| told.is_followed);
        told.is_some_and(|told| told.there.get(&removal.object.name) == Some(&removal.facts.uid))
    }

    /// Waits until one of the objects may have changed: at an event, or if an object is not watched.
    pub async fn wait_for_news<'r>(&self, removals: impl Iterator<Item = &'r Removal> + Clone) {
        let mut news = self.known.news.subscribe();
        while removals.clone().all(|removal| self.is_there(removal)) {
            if news.changed().await.is_err() {
                return;
            }
        }
    }
}

fn kind_in_namespace(removal: &Removal) -> KindInNamespace {
    let ObjectRef { namespace, .. } = &*removal.object;
    (Arc::clone(&removal.resource), namespace.clone().filter(|_| removal.resource.namespaced))
}

/// The label of the app, if all of the objects have it. One that loses it counts as gone until it is read.
fn common_label_selector(removals: &[&Removal]) -> Option<String> {
    let mut values = removals.iter().map(|removal| removal.facts.labels.get(PART_OF));
    let first = values.next().flatten()?;
    values.all(|value| value == Some(first)).then(|| format!("{PART_OF}={first}"))
}
