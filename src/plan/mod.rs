//! The plan: desired objects beside live ones, and what a deploy would do to each.

mod ahead;
mod built_in;
pub mod conflicts;
mod kinds;
mod order;
mod ownership;
pub mod unchanged;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::Value;

use crate::json::Json;
use crate::manifest::Manifest;
use crate::problem::{Error, Result};
use crate::resource::{Live, RawObject, Resource};
use crate::target::{OnRead, Target, Wanted};

pub use ahead::Ahead;
pub use kinds::CrdHead;
pub(crate) use kinds::is_built_in;

/// What a deploy does to one object.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    Create,
    Update,
    Unchanged,
    Delete,
}

/// One object of the plan.
#[derive(Debug, Clone)]
pub struct Change {
    pub action: Action,
    /// The manifest, its `object.namespace` filled in for a namespaced kind.
    pub desired: Manifest,
    /// The object as it was read; `None` where there is none.
    pub live: Option<Live>,
    pub resource: Resource,
}

impl Change {
    /// The manifest as JSON, with the namespace that it gets where it names none.
    pub fn desired_json(&self) -> Cow<'_, str> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow, default)]
            metadata: Metadata<'a>,
        }
        #[derive(Deserialize, Default)]
        struct Metadata<'a> {
            #[serde(borrow, default)]
            namespace: Option<Cow<'a, str>>,
        }
        let json = self.desired.raw.json();
        let Some(namespace) = &self.desired.object.namespace else { return json.into() };
        match serde_json::from_str::<Head<'_>>(json) {
            Ok(Head { metadata: Metadata { namespace: Some(_) } }) => json.into(),
            _ => {
                let mut value = self.desired.raw.value();
                if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.insert("namespace".into(), namespace.as_str().into());
                }
                value.to_string().into()
            }
        }
    }

    /// The same as a tree.
    pub fn desired_value(&self) -> Value {
        match self.desired_json() {
            Cow::Borrowed(_) => self.desired.raw.value(),
            Cow::Owned(json) => RawObject::new(json).value(),
        }
    }

    /// Changes of one rank are written together; a lower rank comes first. CRDs have a rank of their own.
    pub fn rank(&self) -> u8 {
        order::rank(&self.desired.object)
    }
}

/// Every object of the manifests, in apply order.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub changes: Vec<Change>,
}

/// What the plan depends on beside manifests and target.
#[derive(Debug, Clone, Copy)]
pub struct PlanOptions<'a> {
    /// For namespaced objects whose manifest names none; `None` for the target's own default.
    pub namespace: Option<&'a str>,
    pub field_manager: &'a str,
}

/// Reads the live state of `manifests`, as far as it was not read `ahead`, and says what a deploy would do. Writes
/// nothing.
///
/// # Errors
/// Kinds that nobody serves, objects that cannot be read, two manifests for one object.
pub async fn build(
    manifests: Vec<Manifest>,
    ahead: Ahead,
    target: &Target,
    options: PlanOptions<'_>,
    on_read: OnRead<'_>,
) -> Result<Plan> {
    let (crds, others): (Vec<Manifest>, Vec<Manifest>) = manifests.into_iter().partition(|m| m.object.is_crd());

    // CRDs first: they say where the custom resources among the manifests are served now.
    let live_crds = ahead.complete(&crds, target, on_read).await?;

    let kinds = kinds::resolve(&crds, &live_crds, &others, target).await?;
    let mut changes: Vec<Change> = crds
        .into_iter()
        .zip(live_crds)
        .map(|(desired, live)| Change { action: Action::Create, desired, live, resource: Resource::crd() })
        .collect();

    let namespace = options.namespace.unwrap_or_else(|| target.default_namespace());
    let placed = kinds::place(others, &kinds, namespace)?;
    let wanted: Vec<Wanted> = placed.iter().filter_map(|(m, kind)| kind.wanted(&m.object)).collect();
    let mut live = target.read(&wanted, on_read).await?.into_iter();
    for (desired, kind) in placed {
        let live = if kind.read_as.is_some() { live.next().flatten() } else { None };
        changes.push(Change { action: Action::Create, desired, live, resource: kind.resource.clone() });
    }

    let schemas = kinds.schemas(&changes, target).await;
    decide(&mut changes, &schemas, options.field_manager);
    changes.sort_by_key(Change::rank);
    Ok(Plan { changes })
}

/// Fills in the action of each change, on all cores.
fn decide(changes: &mut [Change], schemas: &BTreeMap<Resource, RawObject>, field_manager: &str) {
    let schemas: BTreeMap<&Resource, Json<'_>> =
        schemas.iter().filter_map(|(resource, raw)| Some((resource, Json::parse_bounded(raw.json()).ok()?))).collect();
    let action = |change: &Change| {
        let Some(live) = &change.live else { return Action::Create };
        let schema = schemas.get(&change.resource);
        let facts = unchanged::Facts {
            field_manager,
            schema,
            built_in: schema.is_none() && kinds::is_built_in(&change.resource.group),
        };
        match unchanged::is_unchanged(&change.desired.object, &change.desired.raw, &live.raw, &facts) {
            true => Action::Unchanged,
            false => Action::Update,
        }
    };
    let actions = in_parallel(changes, action);
    for (change, action) in changes.iter_mut().zip(actions) {
        change.action = action;
    }
}

/// `work` over all items, on all cores, the answers in the items' order.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    if threads <= 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let mut answers: Vec<(usize, R)> = std::thread::scope(|scope| {
        let worker = || {
            let mut answers = Vec::new();
            while let Some((index, item)) = {
                let index = next.fetch_add(1, Ordering::Relaxed);
                items.get(index).map(|item| (index, item))
            } {
                answers.push((index, work(item)));
            }
            answers
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Two manifests that turn out to be one object once namespaces are filled in.
fn duplicates(placed: &[(Manifest, &kinds::Kind)]) -> Option<Error> {
    let mut seen = BTreeMap::new();
    let mut problems = Vec::new();
    for (manifest, _) in placed {
        let identity = manifest.object.identity();
        if let Some(first) = seen.insert(identity, &manifest.origin) {
            problems.push(
                crate::problem::Problem::new(format!("{} is defined twice", manifest.object))
                    .at(manifest.origin.location())
                    .help(format!("the other one is at {}; keep one of them", first.location())),
            );
        }
    }
    (!problems.is_empty()).then_some(Error::Failed(problems))
}
