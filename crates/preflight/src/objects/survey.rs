//! Lists the objects of one changed CRD page by page, validates each page on all cores while the next one is fetched,
//! and keeps only the effects.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::effect::ObjectEffect;
use super::group::{Groups, ObjectName};
use super::object::{FieldManagerEntry, ManagedFieldsDetail, ObjectProjection, ProjectedObject};
use super::pass::{self, Pass};
use super::tally::{ExampleObject, ObjectOutcomes, TalliedCause, Tally, owners};
use super::validator::ObjectValidator;
use super::{Upgrade, Wants, coming};
use crate::{Context, CouldNotCheck};
use gantry_cluster::{ListError, ListPage, ListRequest, Target};
use gantry_core::parallel::{in_parallel, on_cpu_thread};
use gantry_core::resource::Step;

/// The number of objects that a thread validates in a row.
const IN_A_ROW: usize = 16;

/// The objects to examine.
#[derive(Debug, Clone, Default)]
pub struct ObjectSelection {
    /// The namespaces of the objects; empty means all.
    pub namespaces: Vec<String>,
    pub label_selector: Option<String>,
    /// The number of objects on one page of a list.
    pub page_size: u32,
}

impl ObjectSelection {
    /// Whether every object is selected.
    pub fn is_whole(&self) -> bool {
        self.namespaces.is_empty() && self.label_selector.is_none()
    }
}

/// The result of examining the objects of one CRD.
#[derive(Debug, Default)]
pub struct Surveyed {
    pub lists: Vec<SurveyedList>,
    /// Versions at which objects cannot be read yet.
    pub not_validated: Vec<Arc<str>>,
    /// Removed versions that `status.storedVersions` names and that are not the storage version.
    pub perhaps_stored: Vec<Arc<str>>,
    /// The reason why no object was examined, if that is so.
    pub error: Option<CouldNotCheck>,
}

/// The result of one list.
#[derive(Debug)]
pub struct SurveyedList {
    /// The version at which the objects were listed.
    pub version: Arc<str>,
    /// The versions against whose schemas the objects were validated.
    pub validated: Vec<Arc<str>>,
    /// The number of objects, or why not all of them could be read.
    pub read: Result<u64, IncompleteListReason>,
    named: Mutex<Option<Groups>>,
    /// See [`Wants::tallied`].
    pub tally: Option<Tally>,
}

impl SurveyedList {
    /// Takes the affected objects. There can be many, and only one check reports them, so only the first call returns
    /// them.
    pub fn take_named(&self) -> Groups {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}

impl Surveyed {
    /// The number of objects. Each list has the same ones.
    pub fn count_objects(&self) -> Option<u64> {
        self.lists.iter().filter_map(|list| list.read.as_ref().ok()).max().copied()
    }
}

/// Why a list is incomplete.
#[derive(Debug, Clone)]
pub enum IncompleteListReason {
    /// The conversion webhook fails.
    Webhook(String),
    /// The user may not list them.
    Forbidden(CouldNotCheck),
    /// A folder or a commit cannot call the conversion webhook.
    NotConvertible(CouldNotCheck),
    Other(CouldNotCheck),
}

/// Examines the objects of a CRD.
pub async fn survey_objects(
    upgrade: &Upgrade,
    selection: &ObjectSelection,
    wants: Wants,
    context: &Context<'_>,
) -> Surveyed {
    let passes = match pass::passes(upgrade, context.redact) {
        Ok(passes) => passes,
        Err(error) => return Surveyed { error: Some(error), ..Surveyed::default() },
    };
    let mut surveyed =
        Surveyed { not_validated: passes.not_validated, perhaps_stored: passes.perhaps_stored, ..Surveyed::default() };
    for Pass { version, validator } in passes.passes {
        let validated = validator.desired.0.iter().map(|compiled| compiled.name.clone()).collect();
        let validator = Arc::new(validator);
        let (read, named, tally) = match list(upgrade, &version, &validator, selection, wants, context).await {
            Ok(mut gathered) => {
                if let Some(tally) = &mut gathered.tally {
                    coming::validate(upgrade, &version, &validator, context, tally);
                }
                (Ok(gathered.total), gathered.named, gathered.tally)
            }
            Err(error) => (Err(error), None, None),
        };
        surveyed.lists.push(SurveyedList { version, validated, read, named: Mutex::new(named), tally });
    }
    surveyed
}

/// The data kept about the objects of one list.
#[derive(Debug, Clone, Default)]
struct GatheredObjects {
    total: u64,
    named: Option<Groups>,
    tally: Option<Tally>,
}

impl GatheredObjects {
    fn new(wants: Wants) -> Self {
        GatheredObjects {
            total: 0,
            named: wants.named.then(Groups::default),
            tally: wants.tallied.then(Tally::default),
        }
    }
}

async fn list(
    upgrade: &Upgrade,
    version: &str,
    validator: &Arc<ObjectValidator>,
    selection: &ObjectSelection,
    wants: Wants,
    context: &Context<'_>,
) -> Result<GatheredObjects, IncompleteListReason> {
    let resource = upgrade.live.resource(version);
    let everywhere = [None];
    let some: Vec<Option<&str>> = selection.namespaces.iter().map(|name| Some(name.as_str())).collect();
    let namespaces = if resource.namespaced && !some.is_empty() { &some[..] } else { &everywhere[..] };
    let mut gathered = GatheredObjects::new(wants);
    for namespace in namespaces {
        let request = ListRequest {
            namespace: *namespace,
            label_selector: selection.label_selector.as_deref(),
            ..ListRequest::new(&resource, selection.page_size)
        };
        gathered = pages(request, gathered, validator, context)
            .await
            .map_err(|error| unlisted(error, upgrade, context.target))?;
    }
    Ok(gathered)
}

/// Reads all pages of one list and adds them to the results `before` it, from other namespaces.
async fn pages(
    request: ListRequest<'_>,
    before: GatheredObjects,
    validator: &Arc<ObjectValidator>,
    context: &Context<'_>,
) -> Result<GatheredObjects, ListError> {
    let name = format!("{}.{}", request.resource.plural, request.resource.group);
    let mut pages = context.target.list(&request);
    let mut gathered = before.clone();
    let mut page = next(&mut pages, &mut gathered, &before).await?;
    while let Some(current) = page {
        let remaining = current.remaining();
        let validator = Arc::clone(validator);
        let mut taken = std::mem::take(&mut gathered);
        let work = on_cpu_thread(move || {
            let validated = validate_page(&validator, &current, &mut taken);
            (taken, validated)
        });
        let (validated, following) = futures::join!(work, pages.next());
        match validated {
            Some((taken, Ok(()))) => gathered = taken,
            Some((_, Err(error))) => {
                let message = format!("the list of {name} contains a malformed object: {error}");
                return Err(ListError::Other(gantry_core::problem::Problem::new(message)));
            }
            None => {
                return Err(ListError::Other(gantry_core::problem::Problem::new(
                    "interrupted while validating objects",
                )));
            }
        }
        let total = remaining.map(|remaining| usize::try_from(gathered.total + remaining).unwrap_or(usize::MAX));
        context.stage.note(&name);
        context.stage.set(usize::try_from(gathered.total).unwrap_or(usize::MAX), total);
        page = match following {
            Err(ListError::Expired) => {
                gathered = before.clone();
                next(&mut pages, &mut gathered, &before).await?
            }
            following => following?,
        };
    }
    Ok(gathered)
}

/// The next page. If the list has to be restarted, its earlier results are discarded.
async fn next(
    pages: &mut gantry_cluster::Pages,
    gathered: &mut GatheredObjects,
    before: &GatheredObjects,
) -> Result<Option<ListPage>, ListError> {
    loop {
        match pages.next().await {
            Err(ListError::Expired) => *gathered = before.clone(),
            answer => return answer,
        }
    }
}

/// The data kept about one object.
struct Validated {
    managed: Vec<FieldManagerEntry>,
    affected: Option<(ObjectName, Vec<ObjectEffect>, Option<ObjectOutcomes>)>,
}

fn validate_page(
    validator: &ObjectValidator,
    page: &ListPage,
    gathered: &mut GatheredObjects,
) -> Result<(), serde_json::Error> {
    let mut parts = validator.parts();
    let tallied = gathered.tally.is_some();
    if tallied {
        parts.managed = parts.managed.max(ManagedFieldsDetail::Writers);
    }
    let items: Vec<&str> = page.items().collect();
    let rows: Vec<&[&str]> = items.chunks(IN_A_ROW).collect();
    let validated = in_parallel(&rows, |row| {
        let mut found = Vec::new();
        for json in *row {
            let item = ProjectedObject::parse(json, &parts)?;
            let effects = if validator.is_unaffected(&item) { Vec::new() } else { validator.effects(&item) };
            let affected = match effects.is_empty() {
                true => None,
                false => {
                    let outcomes = tallied.then(|| decide_outcomes(&item, json, &effects)).transpose()?;
                    Some((ObjectName::of_object(&item), effects, outcomes))
                }
            };
            if tallied || affected.is_some() {
                found.push(Validated { managed: item.managed, affected });
            }
        }
        Ok(found)
    });
    gathered.total += items.len() as u64;
    for row in validated {
        for Validated { managed, affected } in row? {
            if let Some(tally) = &mut gathered.tally {
                tally.written_by(&managed);
            }
            let Some((named, effects, outcomes)) = affected else { continue };
            if let (Some(tally), Some(outcomes)) = (&mut gathered.tally, outcomes) {
                tally.add(outcomes);
            }
            if let Some(groups) = &mut gathered.named {
                groups.add(&named, effects);
            }
        }
    }
    if let Some(groups) = &mut gathered.named {
        groups.total = gathered.total;
    }
    Ok(())
}

/// The causes of the effects on an object, and the managers of the affected fields. Only an affected object has its
/// whole `metadata.managedFields` parsed, which is often half of it.
fn decide_outcomes(
    item: &ProjectedObject,
    json: &str,
    effects: &[ObjectEffect],
) -> Result<ObjectOutcomes, serde_json::Error> {
    let whole;
    let managed = match item.managed.iter().any(|entry| entry.fields.is_some()) {
        true => &item.managed,
        false => {
            let parts = ObjectProjection { managed: ManagedFieldsDetail::Fields, ..ObjectProjection::default() };
            whole = ProjectedObject::parse(json, &parts)?.managed;
            &whole
        }
    };
    // The owners are the same for all items of a list.
    let mut known: HashMap<Vec<Step>, BTreeSet<String>> = HashMap::new();
    let mut causes: BTreeMap<TalliedCause, BTreeSet<String>> = BTreeMap::new();
    for effect in effects {
        let Some(cause) = TalliedCause::of_effect(effect) else { continue };
        let in_list = |step: &Step| if let Step::Index(_) = step { Step::Index(0) } else { step.clone() };
        let owned =
            known.entry(effect.steps.iter().map(in_list).collect()).or_insert_with_key(|steps| owners(managed, steps));
        causes.entry(cause).or_default().extend(owned.iter().cloned());
    }
    let ObjectName { namespace, name } = ObjectName::of_object(item);
    let example = ExampleObject { namespace, name, from_manifest: false };
    Ok(ObjectOutcomes { example, causes: causes.into_iter().collect() })
}

fn unlisted(error: ListError, upgrade: &Upgrade, target: &Target) -> IncompleteListReason {
    let unlisted = match error {
        ListError::Conversion { .. } => IncompleteListReason::NotConvertible,
        ListError::Forbidden(_) => IncompleteListReason::Forbidden,
        _ => IncompleteListReason::Other,
    };
    let problem = match error {
        // A folder cannot call a webhook, which is not a fault of the webhook.
        ListError::Conversion { said, .. } if target.is_server() => {
            return IncompleteListReason::Webhook(said);
        }
        error => error.problem().cloned(),
    };
    let (reason, help) = match problem {
        Some(problem) => (problem.message, problem.help),
        None => ("the list expired".to_owned(), Some("run again".to_owned())),
    };
    unlisted(CouldNotCheck { message: format!("the objects of {} cannot be validated: {reason}", upgrade.name), help })
}
