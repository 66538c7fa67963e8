//! The last known state of the objects that a deploy waits for: from the response to the write, and from one watch for
//! each kind and namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::app::PART_OF;
use crate::plan::{Action, Change, Plan};
use crate::readiness::rules::WaitRule;
use crate::readiness::{self, Readiness};
use gantry_cluster::Target;
use gantry_cluster::watch::{FollowRequest, WatchEvent};
use gantry_core::resource::{LiveObject, Resource};

/// The maximum number of concurrent watches, because each one is a connection. Objects without a watch are polled.
pub const MOST_WATCHES: usize = 32;

/// Objects of one kind in one namespace.
pub type KindInNamespace = (Arc<Resource>, Option<String>);

/// What is known of one object.
#[derive(Debug, Clone)]
pub enum ObjectObservation {
    /// It has not changed since the last call.
    Same,
    /// It was ready when it was written, and there was no event since.
    Ready(Readiness),
    /// Its current state.
    At(Arc<Value>, u64),
    /// It is not watched and has to be read.
    Unseen,
    /// It does not exist.
    Absent(u64),
}

/// The objects of a plan that may be awaited.
pub struct Observer<'a> {
    target: &'a Target,
    rules: &'a [WaitRule],
    changes: &'a [Change],
    /// The objects that may be awaited, by watch.
    places: BTreeMap<KindInNamespace, BTreeMap<String, usize>>,
    known: Arc<SharedKnowledge>,
    watches: Mutex<JoinSet<()>>,
}

/// Shared with the watch tasks.
struct SharedKnowledge {
    /// Whether only metadata and status of CRDs, which are large, are kept.
    is_slim: bool,
    state: Mutex<Knowledge>,
    news: watch::Sender<()>,
}

#[derive(Default)]
struct Knowledge {
    objects: BTreeMap<usize, ObservedObject>,
    places: BTreeMap<KindInNamespace, WatchState>,
    /// The start of the first wait for each object.
    begun: BTreeMap<usize, Instant>,
    revision: u64,
}

/// The state of a watch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WatchState {
    /// The list has not arrived yet.
    Begun,
    Yes,
    /// Disconnected, or never started.
    Lost,
}

#[derive(Default)]
struct ObservedObject {
    what: What,
    /// Increases with every event.
    revision: u64,
    /// The version of the last event.
    at: Option<ResourceVersion>,
    /// The version in the response to the last write. Older events are out of date.
    written: Option<ResourceVersion>,
}

#[derive(Default)]
enum What {
    #[default]
    Nothing,
    Ready(Readiness),
    Is(Arc<Value>),
    Absent,
}

/// A resourceVersion. In Kubernetes' own storage these are increasing numbers.
#[derive(Clone, Copy)]
enum ResourceVersion {
    Number(u64),
    /// Not a number, so that two cannot be compared.
    Opaque,
}

impl ResourceVersion {
    fn parse(text: &str) -> Self {
        text.parse().map_or(ResourceVersion::Opaque, ResourceVersion::Number)
    }
}

impl ObservedObject {
    /// Whether a state of this version is not older than the last write.
    fn is_news(&self, at: ResourceVersion) -> bool {
        match (self.written, at) {
            (None, _) => true,
            (Some(ResourceVersion::Number(written)), ResourceVersion::Number(at)) => at >= written,
            _ => false,
        }
    }

    fn set(&mut self, what: What, at: ResourceVersion, revision: u64) {
        (self.what, self.at, self.revision) = (what, Some(at), revision);
    }
}

impl SharedKnowledge {
    fn lock(&self) -> MutexGuard<'_, Knowledge> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_manifests(&self, place: &KindInNamespace, indices: &BTreeMap<String, usize>, told: WatchEvent) {
        let mut state = self.lock();
        let state = &mut *state;
        state.revision += 1;
        let revision = state.revision;
        let mut see = |name: &str, at: &str, what: What| {
            if let Some(index) = indices.get(name) {
                let (seen, at) = (state.objects.entry(*index).or_default(), ResourceVersion::parse(at));
                if seen.is_news(at) {
                    seen.set(what, at, revision);
                }
            }
        };
        match told {
            WatchEvent::Listed { objects, resource_version } => {
                let mut absent: BTreeSet<&String> = indices.keys().collect();
                for (name, live) in &objects {
                    absent.remove(name);
                    see(name, &live.resource_version, What::Is(self.parts(place, live)));
                }
                absent.into_iter().for_each(|name| see(name, &resource_version, What::Absent));
                state.places.insert(place.clone(), WatchState::Yes);
            }
            WatchEvent::Changed(name, live) => see(&name, &live.resource_version, What::Is(self.parts(place, &live))),
            WatchEvent::Deleted(name, at) => see(&name, &at, What::Absent),
            WatchEvent::Disconnected => {
                state.places.insert(place.clone(), WatchState::Lost);
            }
            WatchEvent::Resumed => {
                state.places.insert(place.clone(), WatchState::Yes);
            }
        }
        self.news.send_replace(());
    }

    fn parts(&self, (resource, _): &KindInNamespace, live: &LiveObject) -> Arc<Value> {
        if self.is_slim && is_crd(resource) { parse_head(live) } else { parts(live) }
    }
}

fn is_crd(resource: &Resource) -> bool {
    resource.group == "apiextensions.k8s.io" && resource.plural == "customresourcedefinitions"
}

/// Metadata and status of an object, without a tree of the rest.
fn parse_head(live: &LiveObject) -> Arc<Value> {
    #[derive(Deserialize)]
    struct SlimCrd {
        #[serde(default)]
        metadata: Value,
        #[serde(default)]
        status: Value,
    }
    let Ok(SlimCrd { mut metadata, status }) = serde_json::from_str(&live.raw.json()) else { return parts(live) };
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("managedFields");
    }
    Arc::new(json!({"metadata": metadata, "status": status}))
}

/// An object without managedFields, which are often half of it and do not matter here.
pub fn parts(live: &LiveObject) -> Arc<Value> {
    let mut value = live.raw.value();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Arc::new(value)
}

impl<'a> Observer<'a> {
    /// Creates it for the objects of the plan that may be awaited. Sends no request.
    pub fn new(
        target: &'a Target,
        plan: &'a Plan,
        rules: &'a [WaitRule],
        awaited: impl IntoIterator<Item = usize>,
    ) -> Self {
        let mut places: BTreeMap<KindInNamespace, BTreeMap<String, usize>> = BTreeMap::new();
        for index in awaited {
            let object = &plan.changes[index].desired.object;
            places.entry(kind_in_namespace(&plan.changes[index])).or_default().insert(object.name.clone(), index);
        }
        // A wait rule may need any field.
        let known =
            SharedKnowledge { is_slim: rules.is_empty(), state: Mutex::default(), news: watch::Sender::new(()) };
        let (changes, known, watches) = (plan.changes.as_slice(), Arc::new(known), Mutex::default());
        Observer { target, rules, changes, places, known, watches }
    }

    /// Adds the response to the request that wrote an object.
    pub fn record_written(&self, index: usize, live: &LiveObject) {
        let change = &self.changes[index];
        let value = self.known.parts(&kind_in_namespace(change), live);
        let verdict = readiness::evaluate_by(self.rules, &change.desired.object, &value);
        // A ready object need not be kept. Whether its kind has a status is found out when it is awaited.
        let lacks_status = is_new(change) && readiness::lacks_status(self.rules, &change.desired.object, &value);
        let what = match verdict.state {
            state @ Readiness::Ready { .. } if !lacks_status => What::Ready(state),
            _ => What::Is(value),
        };
        let mut state = self.known.lock();
        state.revision += 1;
        let revision = state.revision;
        let seen = state.objects.entry(index).or_default();
        let at = ResourceVersion::parse(&live.resource_version);
        seen.written = Some(at);
        // An event may have arrived before the response.
        let is_outdated =
            matches!((seen.at, at), (Some(ResourceVersion::Number(told)), ResourceVersion::Number(at)) if told > at);
        if !is_outdated {
            seen.set(what, at, revision);
        }
    }

    /// The start of the first wait for an object: now, if there was none.
    pub fn observed_since(&self, index: usize) -> Instant {
        *self.known.lock().begun.entry(index).or_insert_with(Instant::now)
    }

    /// Starts the watch for an object, if there is none yet.
    pub fn follow(&self, index: usize) {
        let change = &self.changes[index];
        let place = kind_in_namespace(change);
        let Some(indices) = self.places.get(&place) else { return };
        // A list of CRDs is large, and their earlier state is known.
        let lists = !is_crd(&place.0);
        let since = if lists { None } else { self.version_to_watch_from(indices.values()) };
        {
            let mut state = self.known.lock();
            if state.places.contains_key(&place) {
                return;
            }
            let followed = state.places.values().filter(|following| **following != WatchState::Lost);
            let is_one_more = followed.count() < MOST_WATCHES && (lists || since.is_some());
            state.places.insert(place.clone(), if is_one_more { WatchState::Begun } else { WatchState::Lost });
            if !is_one_more {
                return;
            }
        }
        let (resource, namespace) = place.clone();
        let request = FollowRequest {
            resource,
            namespace,
            names: indices.keys().cloned().collect(),
            label_selector: self.label(indices.values()),
            since,
        };
        let (known, indices, of) = (Arc::clone(&self.known), indices.clone(), place.clone());
        match self.target.follow(request, move |told| known.check_manifests(&of, &indices, told)) {
            Some(follow) => {
                self.watches.lock().unwrap_or_else(PoisonError::into_inner).spawn(follow);
            }
            None => {
                self.known.lock().places.insert(place, WatchState::Lost);
            }
        }
    }

    /// The resourceVersion at which the watch begins: the lowest at which one of the objects is known. `None` if
    /// versions are not numbers and cannot be compared.
    fn version_to_watch_from<'i>(&self, indices: impl Iterator<Item = &'i usize>) -> Option<String> {
        let state = self.known.lock();
        let version = |index: &usize| match state.objects.get(index).and_then(|seen| seen.written) {
            Some(version) => Some(version),
            // Objects that are written later get a higher version.
            None if self.changes[*index].is_written() => None,
            None => Some(ResourceVersion::parse(&self.changes[*index].live.as_ref()?.resource_version)),
        };
        let versions: Option<Vec<u64>> = indices
            .filter_map(version)
            .map(|version| match version {
                ResourceVersion::Number(number) => Some(number),
                ResourceVersion::Opaque => None,
            })
            .collect();
        versions?.into_iter().min().map(|first| first.to_string())
    }

    /// The label of the app, if all of the objects have it.
    fn label<'i>(&self, indices: impl Iterator<Item = &'i usize>) -> Option<String> {
        #[derive(Deserialize)]
        struct PartOfHead {
            metadata: PartOfMetadata,
        }
        #[derive(Deserialize)]
        struct PartOfMetadata {
            labels: Option<BTreeMap<String, String>>,
        }
        let mut values = indices.map(|index| {
            let change = &self.changes[*index];
            let head = serde_json::from_str::<PartOfHead>(&change.desired.raw.json()).ok()?;
            // Objects that the deploy leaves alone need not have the label.
            head.metadata.labels?.remove(PART_OF).filter(|_| change.action != Action::Skip)
        });
        let first = values.next().flatten()?;
        values.all(|value| value.as_ref() == Some(&first)).then(|| format!("{PART_OF}={first}"))
    }

    /// The state of an object, if it is newer than the revision (0: never seen).
    pub fn observe(&self, index: usize, revision: u64) -> ObjectObservation {
        let state = self.known.lock();
        let following = state.places.get(&kind_in_namespace(&self.changes[index]));
        let Some(seen) = state.objects.get(&index) else {
            return if following == Some(&WatchState::Begun) {
                ObjectObservation::Same
            } else {
                ObjectObservation::Unseen
            };
        };
        let is_told = match following {
            Some(WatchState::Yes | WatchState::Begun) => !matches!(seen.written, Some(ResourceVersion::Opaque)),
            _ => false,
        };
        match &seen.what {
            What::Ready(ready) if revision < seen.revision => ObjectObservation::Ready(ready.clone()),
            What::Absent => ObjectObservation::Absent(seen.revision),
            What::Is(value) if revision < seen.revision => ObjectObservation::At(Arc::clone(value), seen.revision),
            _ if is_told => ObjectObservation::Same,
            _ => ObjectObservation::Unseen,
        }
    }

    /// A receiver that is notified at each event.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.known.news.subscribe()
    }
}

/// Whether this deploy created the object.
pub fn is_new(change: &Change) -> bool {
    change.live.is_none() || change.replaces.is_some()
}

fn kind_in_namespace(change: &Change) -> KindInNamespace {
    (Arc::clone(&change.resource), change.desired.object.namespace.clone().filter(|_| change.resource.namespaced))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::resource::RawObject;

    fn live(version: &str) -> LiveObject {
        let value = json!({"metadata": {"name": "web", "uid": "u", "resourceVersion": version, "managedFields": [{}]}});
        LiveObject { raw: RawObject::from_value(&value), uid: "u".into(), resource_version: version.into() }
    }

    /// The state of one object after a write and some events.
    fn known(written: Option<&str>, told: Vec<WatchEvent>) -> ObservedObject {
        let known = SharedKnowledge { is_slim: true, state: Mutex::default(), news: watch::Sender::new(()) };
        let place = (Arc::new(Resource::crd()), None);
        if let Some(version) = written {
            let seen = ObservedObject { written: Some(ResourceVersion::parse(version)), ..ObservedObject::default() };
            known.lock().objects.insert(0, seen);
        }
        for told in told {
            known.check_manifests(&place, &BTreeMap::from([("web".to_owned(), 0)]), told);
        }
        known.lock().objects.remove(&0).unwrap_or_default()
    }

    fn version(seen: &ObservedObject) -> String {
        match &seen.what {
            What::Nothing => "nothing".into(),
            What::Ready(_) => "ready".into(),
            What::Is(value) => value["metadata"]["resourceVersion"].as_str().expect("a version").into(),
            What::Absent => "absent".into(),
        }
    }

    #[test]
    fn events_older_than_the_response_to_a_write_are_ignored() {
        let is = |version: &str| WatchEvent::Changed("web".into(), live(version));
        let gone = |version: &str| WatchEvent::Deleted("web".into(), version.into());
        let listed = |objects: Vec<(String, LiveObject)>, version: &str| WatchEvent::Listed {
            objects,
            resource_version: version.into(),
        };
        for (written, told, expected) in [
            (Some("9"), vec![is("8")], "nothing"),
            (Some("9"), vec![is("9")], "9"),
            // As numbers, not as text.
            (Some("9"), vec![is("10")], "10"),
            (Some("9"), vec![is("10"), is("8")], "10"),
            (Some("9"), vec![gone("8")], "nothing"),
            (Some("9"), vec![gone("12")], "absent"),
            (Some("9"), vec![listed(Vec::new(), "8")], "nothing"),
            (Some("9"), vec![listed(Vec::new(), "9")], "absent"),
            (Some("9"), vec![listed(vec![("web".into(), live("8"))], "20")], "nothing"),
            (None, vec![listed(vec![("web".into(), live("8"))], "20")], "8"),
            // Versions that are not numbers cannot be compared.
            (Some("v1"), vec![is("v2")], "nothing"),
            (Some("9"), vec![WatchEvent::Changed("other".into(), live("12"))], "nothing"),
        ] {
            let count = told.len();
            assert_eq!(version(&known(written, told)), expected, "{written:?} and {count} told");
        }
        assert!(parts(&live("1"))["metadata"].get("managedFields").is_none());
        assert!(parse_head(&live("1"))["metadata"].get("managedFields").is_none());
    }
}
