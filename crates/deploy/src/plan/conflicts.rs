//! Predicts field conflicts: which fields owned by other field managers would an apply change?
//!
//! The server answers that only to users who may write, and a deploy that fails at its fortieth object is half
//! done. So conflicts are computed from the live objects, before anything is written. Only certain conflicts are
//! reported: if the schema of a kind is unavailable, or a manager wrote at another version, the server decides at
//! apply.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::published::Published;
use super::{Change, Plan, kinds};
use gantry_cluster::{Described, FieldConflict, FormerTools, ManagerOperation, Target, deploy_tool};
use gantry_core::managed_fields::{FieldSet, MergePathStep};
use gantry_core::merge::{self, MergeSchema, Owned};
use gantry_core::parallel::in_parallel;
use gantry_core::problem::Problem;
use gantry_core::text;
use gantry_schema::json::Json;
use gantry_schema::scan;

/// The maximum number of objects of one manager that are named (those with the same fields in one line), and of fields
/// of one object.
const OBJECTS_SHOWN: usize = 50;
const OBJECTS_IN_A_LINE: usize = 5;
const FIELDS_SHOWN: usize = 10;

/// The conflicts of one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeConflicts {
    /// Index into `plan.changes`.
    pub change: usize,
    /// Sorted; never empty.
    pub conflicts: Vec<FieldConflict>,
}

/// Computes the conflicts of every update of the plan. Only reads, and requests schemas from the target only if they
/// matter.
pub async fn foresee(plan: &Plan, target: &Target) -> Vec<ChangeConflicts> {
    let field_manager = &*plan.policy.field_manager;
    // The server itself transfers fields of a client-side apply by kubectl.
    if field_manager == "kubectl" {
        return Vec::new();
    }
    let finder = ConflictFinder { plan, field_manager, unrecorded: target.is_server() };
    // Helm sends a patch, which cannot conflict.
    let is_update = |change: &Change| change.is_written() && change.helm.is_none() && change.action.changes_live();
    let updates: Vec<usize> = (0..plan.changes.len()).filter(|index| is_update(&plan.changes[*index])).collect();
    let looks = in_parallel(&updates, |index| finder.find_conflicts(&plan.changes[*index], target));
    let mut foreseen = Vec::new();
    let mut open = Vec::new();
    for (change, look) in updates.into_iter().zip(looks) {
        match look {
            ConflictForecast::Sure(conflicts) => foreseen.push(ChangeConflicts { change, conflicts }),
            ConflictForecast::NeedsSchema => open.push(change),
        }
    }

    let published = Published::read(open.iter().map(|index| &plan.changes[*index]), target).await;
    let found = in_parallel(&open, |index| {
        let change = &plan.changes[*index];
        let Described { schema, definitions } = published.schema(&change.resource)?;
        let schema = merge::of_kind(schema, Some(definitions));
        Some(ChangeConflicts {
            change: *index,
            conflicts: conflicts(change, &finder.records(change, &live_json(change)), schema),
        })
    });
    foreseen.extend(found.into_iter().flatten());
    foreseen.retain(|found| !found.conflicts.is_empty());
    foreseen.sort_by_key(|found| found.change);
    foreseen
}

/// Whether fields of other managers are in the way of this change of a CRD.
pub fn is_crd_in_conflict(change: &Change, plan: &Plan, target: &Target) -> bool {
    let field_manager = &*plan.policy.field_manager;
    let finder = ConflictFinder { plan, field_manager, unrecorded: target.is_server() };
    let is_update = change.is_written() && change.helm.is_none() && change.action.changes_live();
    let find = || finder.find_conflicts(change, target);
    let is_free = plan.policy.force_conflicts || field_manager == "kubectl" || !is_update;
    !is_free && matches!(find(), ConflictForecast::Sure(conflicts) if !conflicts.is_empty())
}

/// Among the objects that kapp deployed, finds those with fields of other managers, which are not taken over with
/// kapp's.
pub(crate) async fn spare_others(plan: &mut Plan, target: &Target) {
    if plan.changes.iter().any(|change| change.kapp.seized) {
        for found in foresee(plan, target).await {
            plan.changes[found.change].kapp.seized = false;
        }
    }
}

/// The live object; empty if there is none.
fn live_json(change: &Change) -> Cow<'_, str> {
    change.live.as_ref().map(|live| live.raw.json()).unwrap_or_default()
}

enum ConflictForecast {
    Sure(Vec<FieldConflict>),
    NeedsSchema,
}

struct ConflictFinder<'a> {
    plan: &'a Plan,
    field_manager: &'a str,
    /// Whether an object without managedFields belongs to its last writer, as on a server.
    unrecorded: bool,
}

impl ConflictFinder<'_> {
    fn find_conflicts(&self, change: &Change, target: &Target) -> ConflictForecast {
        let live = live_json(change);
        let records = self.records(change, &live);
        if records.is_empty() {
            return ConflictForecast::Sure(Vec::new());
        }
        // A folder or a commit merges without schemas. In a CRD only lists are atomic, including `versions`.
        if !target.is_server() || change.desired.object.is_crd() {
            return ConflictForecast::Sure(conflicts(change, &records, MergeSchema::Deduced));
        }
        if !kinds::is_built_in(&change.resource.group) {
            // The deploy writes this CRD first, so it determines how the object is merged.
            let name = format!("{}.{}", change.resource.plural, change.resource.group);
            let of_plan = self.plan.changes.iter().find(|c| c.desired.object.is_crd() && c.desired.object.name == name);
            if let Some(crd) = of_plan {
                let schema = crd.crd().and_then(|sides| kinds::schema_of(sides.defined()?, &change.resource));
                let schema = schema.and_then(|schema| serde_json::from_str(schema).ok());
                let conflicts = schema.map(|schema| conflicts(change, &records, merge::of_kind(&schema, None)));
                return ConflictForecast::Sure(conflicts.unwrap_or_default());
            }
        }
        match for_each_manager(change, &records, |desired, live, owned| merge::overlaps(desired, live, owned))
            .into_iter()
            .any(|(_, overlaps)| overlaps)
        {
            true => ConflictForecast::NeedsSchema,
            false => ConflictForecast::Sure(Vec::new()),
        }
    }

    /// The entries of other managers at the version of the manifest that name fields an apply can change. Most
    /// name only the status; then the objects need not be parsed.
    fn records<'c>(&self, change: &Change, live: &'c str) -> Vec<ManagerFieldsEntry<'c>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ConflictMetadata<'a> {
            #[serde(borrow, default)]
            managed_fields: Vec<ConflictFieldsEntry<'a>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ConflictFieldsEntry<'a> {
            #[serde(borrow, default)]
            manager: Cow<'a, str>,
            #[serde(borrow, default)]
            operation: Cow<'a, str>,
            #[serde(borrow, default)]
            api_version: Cow<'a, str>,
            #[serde(borrow, default)]
            subresource: Cow<'a, str>,
            #[serde(borrow, default)]
            fields_v1: Option<&'a RawValue>,
        }
        let metadata = scan::member(live, "metadata");
        let Some(Ok(metadata)) = metadata.map(serde_json::from_str::<ConflictMetadata<'_>>) else { return Vec::new() };
        let entries = metadata.managed_fields;
        if entries.is_empty() && self.unrecorded {
            let manager = "before-first-apply".into();
            return vec![ManagerFieldsEntry { manager, operation: ManagerOperation::Update, fields: None }];
        }
        let ours = |entry: &ConflictFieldsEntry<'_>| {
            entry.manager == self.field_manager && entry.operation == "Apply" && entry.subresource.is_empty()
        };
        entries
            .into_iter()
            .filter(|entry| !ours(entry) && entry.api_version == change.desired.object.api_version)
            .filter(|entry| !(change.kapp.seized && entry.manager == "kapp" && entry.operation == "Update"))
            .filter_map(|entry| {
                let operation = ManagerOperation::parse(&entry.operation);
                let is_apply = operation == ManagerOperation::Apply;
                let fields = FieldSet::parse(&Json::parse(entry.fields_v1?.get()).ok()?);
                let is_taken = change.former_tools() == FormerTools::Take
                    && merge::of_manager(&entry.manager, is_apply, &fields).is_some();
                (merge::is_at_stake(&fields) && !is_taken).then_some(ManagerFieldsEntry {
                    manager: entry.manager,
                    operation,
                    fields: Some(fields),
                })
            })
            .collect()
    }
}

/// The fields that applying the change would take from the managers of these entries.
fn conflicts(
    change: &Change,
    records: &[ManagerFieldsEntry<'_>],
    schema: MergeSchema<'_, Value>,
) -> Vec<FieldConflict> {
    let is_built_in = kinds::is_built_in(&change.resource.group);
    let lost = for_each_manager(change, records, |desired, live, owned| {
        let mut lost = merge::lost_fields(desired, live, owned, schema);
        // The owner of everything does not own the parts that an object of a built-in kind has even if it is empty,
        // such as `podSelector: {}`.
        if is_built_in && matches!(owned, Owned::AllLive) {
            lost.retain(|path| !is_empty_map_at(live, path));
        }
        lost
    });
    let mut conflicts: Vec<FieldConflict> = lost
        .into_iter()
        .flat_map(|((manager, operation), fields)| {
            fields.into_iter().map(move |path| FieldConflict::new(manager.clone(), operation, merge::path_text(&path)))
        })
        .collect();
    conflicts.sort();
    conflicts.dedup();
    conflicts
}

/// Whether the value at a path of fields is `{}`.
fn is_empty_map_at(object: &Json<'_>, path: &[MergePathStep]) -> bool {
    let value = path.iter().try_fold(object, |value, step| match step {
        MergePathStep::Field(name) => value.map()?.get(name),
        MergePathStep::Item(_) => None,
    });
    value.and_then(Json::map).is_some_and(|map| map.iter().next().is_none())
}

/// Runs `work` on the fields of each other manager.
fn for_each_manager<T>(
    change: &Change,
    records: &[ManagerFieldsEntry<'_>],
    work: impl Fn(&Json<'_>, &Json<'_>, Owned<'_>) -> T,
) -> Vec<((String, ManagerOperation), T)> {
    if records.is_empty() {
        return Vec::new();
    }
    let Some(live) = &change.live else { return Vec::new() };
    let (live, desired): (Cow<'_, str>, Cow<'_, str>) = match change.crd().and_then(|crd| crd.without_same_versions()) {
        Some((live, desired)) => (live.into(), desired.into()),
        None => (live.raw.json(), change.desired.raw.json()),
    };
    // If it nests too deep to be parsed, nothing is certain.
    let (Ok(desired), Ok(live)) = (Json::parse(&desired), Json::parse(&live)) else {
        return Vec::new();
    };
    let answer = |record: &ManagerFieldsEntry<'_>| {
        let owner = (text::sanitize(&record.manager).into_owned(), record.operation);
        let owned = match &record.fields {
            None => Owned::AllLive,
            Some(fields) => Owned::Fields(fields),
        };
        (owner, work(&desired, &live, owned))
    };
    records.iter().map(answer).collect()
}

/// The managedFields entry of one manager of a live object.
struct ManagerFieldsEntry<'c> {
    manager: Cow<'c, str>,
    operation: ManagerOperation,
    /// Its `fieldsV1`; `None` for every field that the live object has.
    fields: Option<FieldSet>,
}

/// Objects, each with the fields of it that one manager owns.
type Shares<'a> = Vec<(&'a Change, Vec<&'a str>)>;

/// Fields in conflict whose values would not change.
pub(crate) const ONLY_DEFAULTS: &str =
    "fields that differ from the manifests only in values that the server defaulted,";
const ONLY_DEFAULTS_HELP: &str = "take ownership of them once with --force-conflicts: it changes none of their values";

/// Reports the owners: a problem for each manager, and another for its fields that would not change.
pub fn explain(conflicts: &[(&Change, &[FieldConflict])]) -> Vec<Problem> {
    let mut managers: BTreeMap<(&str, ManagerOperation, bool), Shares<'_>> = BTreeMap::new();
    for (change, conflicts) in conflicts {
        for FieldConflict { manager, operation, field, only_defaults } in *conflicts {
            let objects = managers.entry((manager, *operation, *only_defaults)).or_default();
            match objects.last_mut() {
                Some((last, fields)) if std::ptr::eq(*last, *change) => fields.push(field),
                _ => objects.push((change, vec![field])),
            }
        }
    }
    managers
        .into_iter()
        .map(|((manager, operation, only_defaults), objects)| {
            let count = text::count(objects.len(), "object");
            let what = if only_defaults { ONLY_DEFAULTS } else { "fields that the manifests change" };
            let mut message = format!("field manager {manager:?} owns {what} in {count}:");
            // Fields that are the same in many objects are reported once, with the list of objects.
            let mut alike: Vec<(&[&str], Vec<String>)> = Vec::new();
            for (change, fields) in objects.iter().take(OBJECTS_SHOWN) {
                let object = change.desired.object.to_string();
                match alike.iter_mut().find(|(known, _)| *known == fields.as_slice()) {
                    Some((_, objects)) => objects.push(object),
                    None => alike.push((fields, vec![object])),
                }
            }
            for (fields, objects) in &alike {
                for objects in objects.chunks(OBJECTS_IN_A_LINE) {
                    message.push_str(&format!("\n  {}: {}", objects.join(", "), list_fields(fields)));
                }
            }
            if objects.len() > OBJECTS_SHOWN {
                message.push_str(&format!("\n  … and {} more", objects.len() - OBJECTS_SHOWN));
            }
            let help = match deploy_tool(manager, operation) {
                _ if only_defaults => ONLY_DEFAULTS_HELP.to_owned(),
                Some(tool) => format!(
                    "they were last deployed by {tool}; if gantry deploys them from now on, take ownership once with \
                     --force-conflicts"
                ),
                None => format!(
                    "remove these fields from the manifests to leave them to {manager:?}, or take ownership with \
                     --force-conflicts"
                ),
            };
            let problem = Problem::new(message).help(help);
            match objects.first() {
                Some((change, _)) => problem.at(change.desired.origin.location()),
                None => problem,
            }
        })
        .collect()
}

/// The conflicts that would stop a deploy without --force-conflicts.
pub fn explain_ahead(conflicts: &[(&Change, &[FieldConflict])]) -> Vec<Problem> {
    let mut ahead = explain(conflicts);
    for problem in &mut ahead {
        problem.message = format!("deploy would stop before it writes: {}", problem.message);
    }
    ahead
}

/// The fields that managers lose with --force-conflicts.
pub fn explain_taken(conflicts: &[(&Change, &[FieldConflict])]) -> Vec<Problem> {
    let mut taken = explain(conflicts);
    for problem in &mut taken {
        problem.message = format!("--force-conflicts takes ownership of these fields: {}", problem.message);
        problem.help = None;
        problem.at = None;
    }
    taken
}

fn list_fields(fields: &[&str]) -> String {
    let mut shown = fields.iter().take(FIELDS_SHOWN).copied().collect::<Vec<_>>().join(", ");
    if fields.len() > FIELDS_SHOWN {
        shown.push_str(&format!(", … and {} more", fields.len() - FIELDS_SHOWN));
    }
    shown
}
