//! Builds the plan: reads the live objects, and decides what a deploy would do with each.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::unchanged::{self, ObjectComparison};
use super::{
    Action, Change, DesiredState, Plan, PlanOptions, Prefetch, bundles, directives, doubtful, export,
    installed_releases, kapp_labels, kinds, leaving_objects, not_honoured, owner, rebase_rules, require_served_kinds,
    strategy,
};
use crate::app::members::MemberKey;
use gantry_cluster::{self as cluster, ObjectToRead, OnRead, ReadResult, Target};
use gantry_core::manifest::Manifest;
use gantry_core::parallel::in_parallel;
use gantry_core::problem::{Error, Result};
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};
use gantry_schema::json::Json;

/// Reads the live state of the manifests that was not read `ahead`, and decides what a deploy would do. Writes nothing.
///
/// # Errors
/// Kinds that are not served, unless they are kept; objects that cannot be read; two manifests for one object.
pub async fn build(
    desired: impl Into<DesiredState>,
    ahead: Prefetch,
    target: &Target,
    options: PlanOptions<'_>,
    on_read: OnRead<'_>,
) -> Result<Plan> {
    // There may be very many manifests, so do not copy the list.
    let DesiredState { manifests: mut others, bundles } = desired.into();
    let namespace = options.namespace.unwrap_or_else(|| target.default_namespace());
    let bundles::OpenedBundles { bundles, manifests: of_bundles, mut notices, live: live_extensions } =
        match bundles.is_empty() {
            true => Default::default(),
            false => bundles::open(bundles, &others, target, namespace).await?,
        };
    others.extend(of_bundles);
    let crds: Vec<Manifest> = others.extract_if(.., |manifest| manifest.object.is_crd()).collect();

    // CRDs first: they define where the custom resources among the manifests are served now.
    let crd = Arc::new(Resource::crd());
    // If some objects are as the last run left them, nothing was read ahead.
    let ahead = if options.as_applied.is_empty() { ahead } else { Prefetch::known(options.as_applied) };
    let (live_crds, kinds_ahead) =
        futures::join!(ahead.complete(&crds, target, on_read), kinds::look_ahead(&crds, &others, target));
    let live_crds = live_crds?;
    let tolerate = |read: Vec<ReadResult>| if options.goes_on_unread { Ok(read) } else { refuse_unread(read) };
    let live_crds = tolerate(live_crds)?;

    let of_crd = |(desired, read)| Change::undecided(desired, read, crd.clone());
    let mut changes: Vec<Change> = crds.into_iter().zip(live_crds).map(of_crd).collect();
    bundles::add_conversions(&mut changes, &bundles, namespace);
    let kinds = kinds::resolve(&changes, &others, kinds_ahead?, target).await?;

    let kinds::PlacedManifests { manifests, kinds: of, mut unplaced } = kinds::place(others, &kinds, namespace)?;
    // What is not written needs no kind that is served.
    unplaced.retain(|unplaced| {
        let notice = not_honoured::notice_if_left_out(&unplaced.manifest);
        let is_written = notice.is_none();
        notices.extend(notice);
        is_written
    });
    bundles::explain_certificates(&mut unplaced);
    if !options.keep_unplaced {
        kinds::name_served_versions(&mut unplaced, &kinds, target).await;
        require_served_kinds(&unplaced)?;
    }
    let wanted: Vec<ObjectToRead> =
        manifests.iter().zip(&of).filter_map(|(m, kind)| kind.object_to_read(&m.object)).collect();
    let read = match options.known.is_empty() && options.as_applied.is_empty() {
        true => tolerate(target.read_each(&wanted, on_read).await?)?,
        false => tolerate(read_unknown(&wanted, options, target, on_read).await?)?,
    };
    drop(wanted);
    let asked = of.iter().enumerate().filter(|(_, kind)| kind.read_as.is_some()).map(|(index, _)| index);
    let mut live: BTreeMap<usize, ReadResult> = asked.zip(read).filter(|(_, read)| !matches!(read, Ok(None))).collect();
    changes.reserve_exact(manifests.len());
    for (index, (desired, kind)) in manifests.into_iter().zip(of).enumerate() {
        changes.push(Change::undecided(desired, live.remove(&index).unwrap_or(Ok(None)), kind.resource.clone()));
    }

    for change in changes.iter_mut().filter(|_| !options.as_applied.is_empty()) {
        change.is_as_applied = options.as_applied.contains_key(&place(&change.resource, &change.desired.object));
    }
    export::prepare_creations(&mut changes);
    rebase_rules::follow(&mut changes, options.rebases, &options.policy.field_manager);
    kapp_labels::keep_kapp_labels(&mut changes, options.taken.drops_kapp_selector());
    let (releases, of_releases) = installed_releases::find_upgrades(&mut changes, &bundles, target).await;
    notices.extend(of_releases);
    let (deleted_by_olm, unknown) = match releases.is_empty() {
        true => Default::default(),
        false => leaving_objects::find(&releases, &changes, &unplaced, target).await,
    };
    notices.extend(unknown);
    if let Some(release) = options.helm_release {
        installed_releases::find_upgrades_of(release, &mut changes).map_err(Error::failed)?;
    }
    let schemas = kinds.schemas(&changes, target).await;
    let doubtful = decide(&mut changes, &schemas, &options.policy.field_manager);
    installed_releases::decide(&mut changes, target, &options.policy.field_manager, options.settles_doubts).await;
    if options.settles_doubts {
        doubtful::mark_unchanged(&mut changes, &doubtful, target, &options.policy.field_manager, options.keeps_answers)
            .await;
    }
    owner::find(&mut changes, options.taken, options.app);
    strategy::replace(&mut changes, target, &options.policy.field_manager).await;
    // Sort in place: there may be very many.
    changes.sort_by_cached_key(Change::rank);
    let assumed_namespace = options.namespace.is_none().then(|| namespace.to_owned());
    let keeps_answers = options.keeps_answers;
    let schemas = if keeps_answers { schemas } else { BTreeMap::new() };
    Ok(Plan {
        changes,
        bundles,
        live_extensions,
        deleted_by_olm,
        notices,
        unplaced,
        schemas,
        keeps_answers,
        policy: options.policy.clone(),
        assumed_namespace,
        acts_as: target.impersonated().map(str::to_owned),
        ..Plan::default()
    })
}

fn place(resource: &Arc<Resource>, object: &ObjectRef) -> MemberKey {
    (resource.clone(), object.namespace.clone(), object.name.clone())
}

/// Reads the objects that are not known yet.
async fn read_unknown(
    wanted: &[ObjectToRead],
    options: PlanOptions<'_>,
    target: &Target,
    on_read: OnRead<'_>,
) -> Result<Vec<ReadResult>> {
    let known = |wanted: &ObjectToRead| {
        let place = place(&wanted.resource, &wanted.object);
        options.as_applied.get(&place).or_else(|| options.known.get(&place))
    };
    let unknown: Vec<ObjectToRead> = wanted.iter().filter(|wanted| known(wanted).is_none()).cloned().collect();
    let mut read = target.read_each(&unknown, on_read).await?.into_iter();
    let answer = |wanted: &ObjectToRead| match known(wanted) {
        Some(live) => Ok(Some(live.clone())),
        None => read.next().unwrap_or(Ok(None)),
    };
    Ok(wanted.iter().map(answer).collect())
}

fn refuse_unread(read: Vec<ReadResult>) -> Result<Vec<ReadResult>> {
    // There may be very many, so do not copy them without need.
    if read.iter().all(std::result::Result::is_ok) {
        Ok(read)
    } else {
        cluster::collect_reads(read).map(|live| live.into_iter().map(Ok).collect())
    }
}

/// Sets the action of each change, on all cores. Returns the indices of the updates that may change nothing.
fn decide(changes: &mut [Change], schemas: &BTreeMap<Resource, RawObject>, field_manager: &str) -> Vec<usize> {
    let schemas: BTreeMap<&Resource, Cow<'_, str>> = schemas.iter().map(|(kind, raw)| (kind, raw.json())).collect();
    let schemas: BTreeMap<&Resource, Json<'_>> =
        schemas.iter().filter_map(|(resource, json)| Some((*resource, Json::parse_bounded(json).ok()?))).collect();
    let by_itself = |change: &Change| {
        if change.is_as_applied {
            return (Action::Unchanged, false);
        }
        let Some(live) = &change.live else {
            return (if change.unread.is_some() { Action::Unknown } else { Action::Create }, false);
        };
        let schema = schemas.get(&*change.resource);
        let facts = unchanged::ComparisonContext {
            field_manager,
            schema,
            built_in: schema.is_none() && kinds::is_built_in(&change.resource.group),
        };
        let crd = change.crd().map(|crd| &**crd);
        match unchanged::compare(&change.desired.object, &change.desired.raw, &live.raw, crd, &facts) {
            ObjectComparison::Unchanged => (Action::Unchanged, false),
            ObjectComparison::Doubtful => (Action::Update, true),
            ObjectComparison::Changed => (Action::Update, false),
        }
    };
    let action = |change: &Change| {
        let (action, is_doubtful) = by_itself(change);
        let is_held = |live: &LiveObject| directives::live_exclusion(&live.raw, field_manager).is_some();
        let is_own = change.desired.bundle.is_none();
        if action == Action::Update && is_own && change.live.as_ref().is_some_and(is_held) {
            return (Action::Skip, false);
        }
        let action = strategy::read_strategy(&change.desired).map_or(action, |strategy| strategy.apply(action));
        (action, is_doubtful && action == Action::Update)
    };
    let actions = in_parallel(changes, action);
    let mut doubtful = Vec::new();
    for (index, (change, (action, is_doubtful))) in changes.iter_mut().zip(actions).enumerate() {
        change.action = action;
        if is_doubtful {
            doubtful.push(index);
        }
    }
    doubtful
}
