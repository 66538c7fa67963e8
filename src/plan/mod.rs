//! The plan: desired objects beside live ones, and what a deploy would do to each.

mod built_in;
pub mod bundles;
pub mod conflicts;
pub mod filter;
pub mod graph;
pub(crate) mod kinds;
pub mod only_defaults;
mod order;
pub mod owner;
pub mod pin;
pub mod predicted;
mod prefetch;
pub mod rebase;
pub mod rebase_rules;
pub mod refusals;
pub mod removal;
mod settle;
pub mod strategy;
pub mod unchanged;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;

use crate::app::last_applied::Mark;
use crate::app::members::Place;
use crate::cluster::{self, Apply, DryRunError, OnRead, Pin, Read, Target, Wanted};
use crate::crd::Sides;
pub use crate::finding::Action;
use crate::manifest::{self, Loaded, Manifest};
use crate::olm::cluster_extension::LiveExtension;
use crate::parallel::in_parallel;
use crate::problem::{Error, Problem, Result};
use crate::resource::{Live, ObjectRef, RawObject, Resource};
use gantry_schema::json::Json;

pub(crate) use kinds::is_built_in;
pub use prefetch::Prefetch;
use unchanged::Comparison;

/// One object of the plan.
#[derive(Debug, Clone)]
pub struct Change {
    pub action: Action,
    /// The manifest, its `object.namespace` filled in for a namespaced kind.
    pub desired: Manifest,
    /// The object as it was read; `None` where there is none.
    pub live: Option<Live>,
    /// The object that is deleted before this one is created: see [`Action::Replace`]. Then nothing counts as live.
    pub replaces: Option<Box<removal::Removal>>,
    /// Why there is no telling whether there is a live object; see [`PlanOptions::goes_on_unread`].
    pub unread: Option<Box<Problem>>,
    pub resource: Arc<Resource>,
    /// The other tool that owns the live object, as far as the change is one of what it owns.
    pub owner: Option<Box<owner::Owner>>,
    pub kapp: OfKapp,
    /// The last run left the object as this manifest has it, and nobody has written it since; it was awaited then. What
    /// [`Change::live`] holds is the manifest with the live metadata.
    pub is_as_applied: bool,
    /// Who applied the live object, where it is part of a bundle: see [`bundles`].
    pub installer: Option<Box<str>>,
    pub crds: Crds,
    pub answer: Answer,
}

/// What a change has to do with kapp, which deployed the object before.
#[derive(Debug, Clone, Default)]
pub struct OfKapp {
    /// The value of the label of its app that the selector keeps: see [`rebase`].
    pub kept: Option<String>,
    /// It is a member of the app that is taken over as a whole.
    pub joins: bool,
    /// The fields that kapp wrote are taken, which is no conflict; those of any other manager are not.
    pub seized: bool,
}

/// What the server's dry run of the request that writes a change said, where that is kept: see
/// [`PlanOptions::keeps_answers`]. Who asks first tells the others. Few changes of very many have one.
#[derive(Debug, Clone, Default)]
pub struct Answer(OnceLock<Box<std::result::Result<RawObject, DryRunError>>>);

impl Answer {
    pub fn get(&self) -> Option<&std::result::Result<RawObject, DryRunError>> {
        self.0.get().map(|answer| &**answer)
    }

    /// Keeps the first one.
    pub fn keep(&self, answer: &std::result::Result<RawObject, DryRunError>) {
        let _ = self.0.set(Box::new(answer.clone()));
    }
}

/// The CRD of a change, read when somebody first looks at it. A change that is made of another one and has another live
/// object takes a new one.
#[derive(Debug, Clone, Default)]
pub struct Crds(OnceLock<Arc<Sides>>);

impl Change {
    /// A change of which nobody has said yet what it does.
    fn new(desired: Manifest, read: Read, resource: Arc<Resource>) -> Self {
        let (live, unread) = match read {
            Ok(live) => (live, None),
            Err(problem) => (None, Some(Box::new(problem))),
        };
        let live_of_bundle = live.as_ref().filter(|_| desired.bundle.is_some());
        let installer = live_of_bundle.and_then(|live| bundles::installer(&live.raw));
        Change {
            installer,
            action: Action::Create,
            desired,
            live,
            replaces: None,
            unread,
            resource,
            owner: None,
            kapp: OfKapp::default(),
            is_as_applied: false,
            crds: Crds::default(),
            answer: Answer::default(),
        }
    }

    /// Both sides of a CRD, each read once for everybody who looks at it; `None` for anything else.
    pub fn crd(&self) -> Option<&Arc<Sides>> {
        let sides = || Sides::new(self.desired.raw.clone(), self.live.as_ref().map(|live| live.raw.clone())).into();
        self.desired.object.is_crd().then(|| self.crds.0.get_or_init(sides))
    }

    /// Whether a deploy sends a request that writes the object. What is part of a bundle is judged as if one did.
    pub fn is_written(&self) -> bool {
        self.desired.bundle.is_none() && !self.action.leaves_alone()
    }

    /// What a report says that becomes of the object.
    pub fn told_action(&self) -> Action {
        match (self.desired.bundle, self.action) {
            (_, Action::Unknown) | (None, _) => self.action,
            (Some(_), _) => Action::InstalledByOlm,
        }
    }

    /// The live object as it was read, or that there was none.
    pub fn pin(&self) -> Pin {
        match &self.live {
            None => Pin::Absent,
            Some(live) => Pin::At { uid: live.uid.clone(), resource_version: live.resource_version.clone() },
        }
    }

    /// By which a later run knows that the object, which is `live` after this one, is as the manifest has it; `None` where
    /// the server has made something else of it.
    pub fn mark(&self, live: &Live, field_manager: &str) -> Option<Mark> {
        let object = &self.desired.object;
        let mark = Mark::of(object, &self.desired.raw, &live.raw.json(), field_manager)?;
        let facts = unchanged::Facts { field_manager, schema: None, built_in: true };
        let is_same = self.is_as_applied
            || unchanged::compare(object, &self.desired.raw, &live.raw, &facts) == Comparison::Unchanged;
        is_same.then_some(mark)
    }

    /// The request that writes this change.
    pub fn request<'a>(&'a self, pin: &'a Pin, field_manager: &'a str, force_conflicts: bool) -> Apply<'a> {
        Apply {
            resource: &self.resource,
            object: &self.desired.object,
            raw: &self.desired.raw,
            live: self.live.as_ref().map(|live| &live.raw),
            pin,
            field_manager: self.installer.as_deref().unwrap_or(field_manager),
            // OLM takes every field of its objects, whatever the configuration says of others.
            force_conflicts: force_conflicts || self.kapp.seized || self.desired.bundle.is_some(),
        }
    }

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
        let Some(namespace) = &self.desired.object.namespace else { return json };
        match serde_json::from_str::<Head<'_>>(&json) {
            Ok(Head { metadata: Metadata { namespace: Some(_) } }) => json,
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

/// The CRDs that are live and that would change, with the index of the change. What nobody writes breaks nothing.
pub fn upgraded_crds(changes: &[Change]) -> impl Iterator<Item = (usize, &Change, &Arc<Sides>)> {
    let written = changes.iter().enumerate().filter(|(_, change)| !change.action.leaves_alone());
    let live = written.filter(|(_, change)| change.live.is_some());
    live.filter_map(|(index, change)| Some((index, change, change.crd()?)))
}

/// A manifest of a kind that the target does not serve and the manifests do not define, or of which nobody knows.
#[derive(Debug, Clone)]
pub struct Unplaced {
    /// Its namespace as it is written: whether the kind has any is not known.
    pub manifest: Manifest,
    /// What a deploy has to say of it.
    pub problem: Problem,
    /// The API that would serve it gives no answer.
    pub is_down: bool,
    /// It is served, but nothing of it can be written.
    pub is_unwritable: bool,
}

/// Every object of the manifests, in apply order.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub changes: Vec<Change>,
    /// The bundles that some of these are part of: see [`Manifest::bundle`].
    pub bundles: Vec<bundles::Bundle>,
    /// The ClusterExtensions of the target, where they were listed for these.
    pub live_extensions: Option<Vec<LiveExtension>>,
    /// What is worth knowing of how the plan was made.
    pub notices: Vec<Problem>,
    /// Empty unless [`PlanOptions::keep_unplaced`]. With any of these nothing can be written.
    pub unplaced: Vec<Unplaced>,
    /// Members of the app that leave it.
    pub removals: Vec<removal::Removal>,
    /// What a deploy asks the target for objects that are neither changes nor removals.
    pub lookups: Vec<ObjectLookup>,
    /// In which order both are written.
    pub graph: graph::Graph,
    /// The schema of each custom kind that has live objects in the plan, where answers are kept.
    pub schemas: BTreeMap<Resource, RawObject>,
    /// See [`PlanOptions::keeps_answers`].
    pub keeps_answers: bool,
    /// A deploy of it waits until what it writes is ready.
    pub is_awaited: bool,
    /// A deploy of it shows logs of Pods that do not become ready.
    pub shows_logs: bool,
    /// An API that does not answer keeps nothing from being deleted.
    pub ignores_failing_apis: bool,
    /// Where objects without a namespace go, if neither flag nor configuration chose it for this run.
    pub assumed_namespace: Option<String>,
}

/// What is asked the target for the sake of an object that is no change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectLookup {
    /// What it is done for.
    pub object: Arc<ObjectRef>,
    pub resource: Resource,
    /// `None`: in all namespaces, or of a kind that has none.
    pub namespace: Option<String>,
    /// One object; `None`: any.
    pub name: Option<String>,
    /// As RBAC has it.
    pub verb: &'static str,
}

impl Plan {
    /// Why some live objects could not be read, each reason once.
    pub fn unread(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> =
            self.changes.iter().filter_map(|change| change.unread.as_deref().cloned()).collect();
        problems.sort();
        problems.dedup();
        problems
    }

    /// How many changes a deploy writes.
    pub fn changes_written(&self) -> usize {
        self.changes.iter().filter(|change| change.is_written()).count()
    }

    /// The bundle that a change is part of.
    pub fn bundle_of(&self, change: &Change) -> Option<&bundles::Bundle> {
        self.bundles.get(change.desired.bundle?)
    }

    /// The objects that are deleted: members that leave the app, and what is replaced.
    pub fn deleted(&self) -> impl Iterator<Item = &removal::Removal> {
        let replaced = self.changes.iter().filter_map(|change| change.replaces.as_deref());
        self.removals.iter().filter(|removal| removal.action == Action::Delete).chain(replaced)
    }

    /// How many objects a deploy writes, deletes or lets go.
    pub fn writes(&self) -> usize {
        self.changes_written() + self.removals.iter().filter(|removal| !removal.is_done).count()
    }

    /// Whether a deploy of this plan would write anything.
    pub fn is_written(&self) -> bool {
        !self.unplaced.is_empty() || !self.removals.is_empty() || self.changes.iter().any(Change::is_written)
    }

    /// Whether anything becomes another, be it that OLM writes it.
    pub fn has_effect(&self) -> bool {
        self.is_written() || self.changes.iter().any(|change| !change.action.leaves_alone())
    }

    /// Why nothing of this plan can be written.
    ///
    /// # Errors
    /// Kinds that nobody serves, each said once where an API does not answer.
    pub fn whole(&self) -> Result<()> {
        whole(&self.unplaced)
    }
}

fn whole(unplaced: &[Unplaced]) -> Result<()> {
    let (down, unknown): (Vec<&Unplaced>, Vec<&Unplaced>) = unplaced.iter().partition(|unplaced| unplaced.is_down);
    let mut problems: Vec<Problem> = down.into_iter().map(|unplaced| unplaced.problem.clone()).collect();
    problems.sort();
    problems.dedup();
    if problems.is_empty() {
        problems = unknown.into_iter().map(|unplaced| unplaced.problem.clone()).collect();
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::Failed(problems)) }
}

/// What the plan depends on beside manifests and target.
#[derive(Debug, Clone, Copy)]
pub struct PlanOptions<'a> {
    /// For namespaced objects whose manifest names none; `None` for the target's own default.
    pub namespace: Option<&'a str>,
    pub field_manager: &'a str,
    /// Continues where some live objects cannot be read: their action is unknown. For callers that report all missing
    /// rights at once.
    pub goes_on_unread: bool,
    /// A check reports kinds that are not served, not the plan.
    pub keep_unplaced: bool,
    /// Asks the server about updates that may change nothing.
    pub settles_doubts: bool,
    /// The objects that are taken over from the tools that own them.
    pub taken: &'a owner::Taken,
    /// Fields that the cluster decides about.
    pub rebases: &'a [rebase_rules::RebaseRule],
    /// The identifier of the app that the objects belong to.
    pub app: Option<&'a str>,
    /// Live objects that were read already.
    pub known: &'a BTreeMap<Place, Live>,
    /// Live objects that are as the last run left them: see [`Change::is_as_applied`].
    pub as_applied: &'a BTreeMap<Place, Live>,
    /// Keeps what the server's dry runs answer, for a diff.
    pub keeps_answers: bool,
}

/// What a plan is made of.
#[derive(Debug, Default)]
pub struct Desired {
    /// What a deploy writes.
    pub manifests: Vec<Manifest>,
    /// What OLM writes.
    pub bundles: Vec<manifest::Bundle>,
}

impl From<Vec<Manifest>> for Desired {
    fn from(manifests: Vec<Manifest>) -> Self {
        Desired { manifests, bundles: Vec::new() }
    }
}

impl From<Loaded> for Desired {
    fn from(loaded: Loaded) -> Self {
        Desired { manifests: loaded.manifests, bundles: loaded.bundles }
    }
}

/// Reads the live state of `manifests`, as far as it was not read `ahead`, and says what a deploy would do. Writes
/// nothing.
///
/// # Errors
/// Kinds that nobody serves, unless they are kept; objects that cannot be read, two manifests for one object.
pub async fn build(
    desired: impl Into<Desired>,
    ahead: Prefetch,
    target: &Target,
    options: PlanOptions<'_>,
    on_read: OnRead<'_>,
) -> Result<Plan> {
    // There may be very many manifests, of which there should not be two lists.
    let Desired { manifests: mut others, bundles } = desired.into();
    let bundles::Opened { bundles, manifests: of_bundles, notices, live: live_extensions } = match bundles.is_empty() {
        true => Default::default(),
        false => bundles::open(bundles, &others, target).await,
    };
    others.extend(of_bundles);
    let crds: Vec<Manifest> = others.extract_if(.., |manifest| manifest.object.is_crd()).collect();

    // CRDs first: they say where the custom resources among the manifests are served now.
    let crd = Arc::new(Resource::crd());
    // Where there are any, nothing was read ahead.
    let ahead = if options.as_applied.is_empty() { ahead } else { Prefetch::known(options.as_applied) };
    let live_crds = ahead.complete(&crds, target, on_read).await?;
    let tolerate = |read: Vec<Read>| if options.goes_on_unread { Ok(read) } else { refuse_unread(read) };
    let live_crds = tolerate(live_crds)?;

    let of_crd = |(desired, read)| Change::new(desired, read, crd.clone());
    let mut changes: Vec<Change> = crds.into_iter().zip(live_crds).map(of_crd).collect();
    let namespace = options.namespace.unwrap_or_else(|| target.default_namespace());
    bundles::add_conversions(&mut changes, &bundles, namespace);
    let kinds = kinds::resolve(&changes, &others, target).await?;

    let kinds::Placed { manifests, kinds: of, unplaced } = kinds::place(others, &kinds, namespace)?;
    if !options.keep_unplaced {
        whole(&unplaced)?;
    }
    let wanted: Vec<Wanted> = manifests.iter().zip(&of).filter_map(|(m, kind)| kind.wanted(&m.object)).collect();
    let read = match options.known.is_empty() && options.as_applied.is_empty() {
        true => tolerate(target.read_each(&wanted, on_read).await?)?,
        false => tolerate(read_unknown(&wanted, options, target, on_read).await?)?,
    };
    drop(wanted);
    let asked = of.iter().enumerate().filter(|(_, kind)| kind.read_as.is_some()).map(|(index, _)| index);
    let mut live: BTreeMap<usize, Read> = asked.zip(read).filter(|(_, read)| !matches!(read, Ok(None))).collect();
    changes.reserve_exact(manifests.len());
    for (index, (desired, kind)) in manifests.into_iter().zip(of).enumerate() {
        changes.push(Change::new(desired, live.remove(&index).unwrap_or(Ok(None)), kind.resource.clone()));
    }

    for change in changes.iter_mut().filter(|_| !options.as_applied.is_empty()) {
        change.is_as_applied = options.as_applied.contains_key(&place(&change.resource, &change.desired.object));
    }
    rebase_rules::follow(&mut changes, options.rebases, options.field_manager);
    rebase::keep(&mut changes, options.taken.drops_kapp_selector());
    let schemas = kinds.schemas(&changes, target).await;
    let doubtful = decide(&mut changes, &schemas, options.field_manager);
    if options.settles_doubts {
        settle::settle(&mut changes, &doubtful, target, options.field_manager, options.keeps_answers).await;
    }
    owner::find(&mut changes, options.taken, options.app);
    strategy::replace(&mut changes, target, options.field_manager).await;
    // In place: there may be very many.
    changes.sort_by_cached_key(Change::rank);
    let assumed_namespace = options.namespace.is_none().then(|| namespace.to_owned());
    let keeps_answers = options.keeps_answers;
    let schemas = if keeps_answers { schemas } else { BTreeMap::new() };
    Ok(Plan {
        changes,
        bundles,
        live_extensions,
        notices,
        unplaced,
        schemas,
        keeps_answers,
        assumed_namespace,
        ..Plan::default()
    })
}

fn place(resource: &Arc<Resource>, object: &ObjectRef) -> Place {
    (resource.clone(), object.namespace.clone(), object.name.clone())
}

/// Reads what is not known.
async fn read_unknown(
    wanted: &[Wanted],
    options: PlanOptions<'_>,
    target: &Target,
    on_read: OnRead<'_>,
) -> Result<Vec<Read>> {
    let known = |wanted: &Wanted| {
        let place = place(&wanted.resource, &wanted.object);
        options.as_applied.get(&place).or_else(|| options.known.get(&place))
    };
    let unknown: Vec<Wanted> = wanted.iter().filter(|wanted| known(wanted).is_none()).cloned().collect();
    let mut read = target.read_each(&unknown, on_read).await?.into_iter();
    let answer = |wanted: &Wanted| match known(wanted) {
        Some(live) => Ok(Some(live.clone())),
        None => read.next().unwrap_or(Ok(None)),
    };
    Ok(wanted.iter().map(answer).collect())
}

fn refuse_unread(read: Vec<Read>) -> Result<Vec<Read>> {
    // Very many of them are not copied only to look at them.
    if read.iter().all(std::result::Result::is_ok) {
        Ok(read)
    } else {
        cluster::all(read).map(|live| live.into_iter().map(Ok).collect())
    }
}

/// Fills in the action of each change, on all cores. Gives the indices of the updates that may change nothing.
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
        let facts = unchanged::Facts {
            field_manager,
            schema,
            built_in: schema.is_none() && kinds::is_built_in(&change.resource.group),
        };
        match unchanged::compare(&change.desired.object, &change.desired.raw, &live.raw, &facts) {
            Comparison::Unchanged => (Action::Unchanged, false),
            Comparison::Doubtful => (Action::Update, true),
            Comparison::Changed => (Action::Update, false),
        }
    };
    let action = |change: &Change| {
        let (action, is_doubtful) = by_itself(change);
        let action = strategy::of(&change.desired).map_or(action, |strategy| strategy.apply(action));
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

/// Two manifests that turn out to be one object once namespaces are filled in.
fn duplicates(placed: &[Manifest]) -> Option<Error> {
    let mut seen = BTreeMap::new();
    let mut problems = Vec::new();
    for manifest in placed {
        let identity = manifest.object.identity();
        if let Some(first) = seen.insert(identity, &manifest.origin) {
            problems.push(
                Problem::new(format!("{} is defined twice", manifest.object))
                    .at(manifest.origin.location())
                    .help(format!("it is also defined at {}; keep one of them", first.location())),
            );
        }
    }
    (!problems.is_empty()).then_some(Error::Failed(problems))
}
