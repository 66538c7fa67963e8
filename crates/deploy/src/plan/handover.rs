//! What taking objects over from former deploy tools means for their fields, as notices.

use std::collections::{BTreeMap, BTreeSet};

use super::conflicts::ChangeConflicts;
use super::{Change, Plan};
use gantry_cluster::FormerTools;
use gantry_core::finding::Action;
use gantry_core::managed_fields::FieldSet;
use gantry_core::merge::{self, Owners};
use gantry_core::parallel::in_parallel;
use gantry_core::problem::Problem;
use gantry_core::text::{self, sanitize};
use gantry_schema::scan;

/// The maximum number of objects, and of fields of one object, that a notice names.
const OBJECTS_SHOWN: usize = 5;
const FIELDS_SHOWN: usize = 5;

/// How one change treats the fields of others.
struct ForeignFields {
    /// The deploy tools whose fields are taken over, if they have any that the manifest does not set.
    tools: Vec<&'static str>,
    /// Fields that the manifest does not set and that stay, with their managers.
    staying: BTreeSet<(String, String)>,
}

/// Whose fields are taken over, and which fields stay although no manifest sets them.
///
/// Of an object in conflict nothing is taken over, unless the deploy forces it.
pub fn notices(plan: &Plan, conflicts: &[ChangeConflicts]) -> Vec<Problem> {
    // What another tool keeps deploying blocks, and Helm sends a patch: nothing of these is taken over.
    let is_refused_owner = |change: &Change| change.owner.is_some() && change.action != Action::Adopt;
    let is_taken = |change: &Change| change.is_written() && change.helm.is_none() && !is_refused_owner(change);
    let written = |(_, change): &(usize, &Change)| change.live.is_some() && is_taken(change);
    let written: Vec<(usize, &Change)> = plan.changes.iter().enumerate().filter(written).collect();
    let found = in_parallel(&written, |(_, change)| fields_of(change, &plan.policy.field_manager));
    let is_refused =
        |number: usize| !plan.policy.force_conflicts && conflicts.iter().any(|found| found.change == number);
    let mut taken: BTreeMap<(bool, String), Vec<&Change>> = BTreeMap::new();
    let mut staying: BTreeMap<BTreeSet<(String, String)>, Vec<&Change>> = BTreeMap::new();
    for ((number, change), fields) in written.into_iter().zip(found) {
        let Some(fields) = fields else { continue };
        if !fields.tools.is_empty() {
            let tools = merge::listed(fields.tools).into_owned();
            taken.entry((is_refused(number), tools)).or_default().push(change);
        }
        if !fields.staying.is_empty() {
            staying.entry(fields.staying).or_default().push(change);
        }
    }
    let taken = taken.into_iter().map(|((is_refused, tool), changes)| {
        let objects = named(&changes);
        let message = match is_refused {
            true => format!(
                "not taken over from {tool}, because of the conflicts: {objects}. With --force-conflicts, what {tool} set \
                 there and the manifests do not set is removed"
            ),
            false => format!(
                "taking over from {tool}: {objects}. What {tool} set there and the manifests do not set is removed"
            ),
        };
        Problem::new(message).help("gantry diff shows what changes")
    });
    let staying = staying.into_iter().map(|(fields, changes)| {
        let shown = fields.iter().take(FIELDS_SHOWN).map(|(manager, field)| format!("{field} of {manager}"));
        let mut shown: Vec<String> = shown.collect();
        if fields.len() > FIELDS_SHOWN {
            shown.push(format!("… and {} more", fields.len() - FIELDS_SHOWN));
        }
        let (them, verb) = if fields.len() == 1 { ("it", "stays") } else { ("them", "stay") };
        let message = format!("{}: {} {verb}, although no manifest sets {them}", named(&changes), shown.join(", "));
        Problem::new(message)
    });
    taken.chain(staying).collect()
}

/// The first of these objects by name, and how many more there are.
pub(super) fn named(changes: &[&Change]) -> String {
    let mut names: Vec<String> =
        changes.iter().take(OBJECTS_SHOWN).map(|change| change.desired.object.to_string()).collect();
    if changes.len() > OBJECTS_SHOWN {
        names.push(format!("… and {} more", text::count(changes.len() - OBJECTS_SHOWN, "object")));
    }
    names.join(", ")
}

fn fields_of(change: &Change, field_manager: &str) -> Option<ForeignFields> {
    if change.former_tools() == FormerTools::Keep {
        return None;
    }
    let live = &change.live.as_ref()?.raw;
    // A folder and a commit have no field managers.
    if !scan::member(&live.json(), "metadata")?.contains("managedFields") {
        return None;
    }
    let live = live.value();
    let owners = Owners::of_object(&live, field_manager, &change.desired.object.api_version);
    let desired = change.desired.raw.value();
    // Includes fields that only the server filled in: it fills them in again.
    let is_missing = |fields: &FieldSet| {
        let mut fields = fields.clone();
        let mut set = fields.clone();
        set.retain_existing(&desired);
        fields.subtract(&set);
        fields
    };
    let mut ours = owners.ours.clone();
    ours.add(&owners.taken);
    let ours = is_missing(&ours);
    let mut staying = BTreeSet::new();
    for other in owners.others.iter().filter(|other| !other.is_of_status && other.manager != merge::UNRECORDED) {
        let mut fields = is_missing(&other.fields);
        if owners.tools.is_empty() {
            // Only what this deploy gives up.
            let mut not_given_up = fields.clone();
            not_given_up.subtract(&ours);
            fields.subtract(&not_given_up);
        }
        for path in [&["metadata", "finalizers"][..], &["metadata", "ownerReferences"], &["status"]] {
            fields.split_off(path);
        }
        let manager = sanitize(&other.manager).into_owned();
        staying.extend(fields.paths().iter().map(|path| (manager.clone(), merge::path_text(path))));
    }
    let removes = !is_missing(&owners.taken).is_empty();
    Some(ForeignFields { tools: if removes { owners.tools } else { Vec::new() }, staying })
}
