//! Validates the objects that the server cannot validate yet: custom resources against their CRD, with gantry's own
//! validator, and objects of built-in kinds against the server's OpenAPI document. Each namespace and CRD that prevents
//! a dry run gets a note that says how many objects were validated, and how.

use std::collections::{BTreeMap, BTreeSet};

use super::depend::{self, Dependence};
use super::metadata::{self, MetadataError};
use super::{ViolationsFound, rules};
use crate::objects::manifests::{self, ManifestRefusal};
use crate::{CheckLookup, Context, Violation};
use gantry_cluster::{Described, Gvk};
use gantry_core::next_step;
use gantry_core::resource::Step;
use gantry_core::text;
use gantry_deploy::plan::{Change, Plan, Published, is_built_in};
use gantry_schema::typed::{self, Duplicates};

/// The objects that are validated here, each with the change that it waits for.
fn waiting_for(changes: &[Change], dependence: &[Dependence]) -> BTreeMap<usize, usize> {
    let written = |(index, _): &(usize, &Dependence)| changes[*index].action.applies();
    let pair = |(index, dependence): (usize, &Dependence)| match dependence {
        Dependence::Nothing => None,
        Dependence::Created(by) | Dependence::Changed(by) => Some((index, *by)),
    };
    dependence.iter().enumerate().filter(written).filter_map(pair).collect()
}

/// The CRDs that [`check`] reads. Quotas are not included: if the user may not read them, the check only adds a note.
pub fn lookups(plan: &Plan) -> Vec<CheckLookup> {
    let waiting = waiting_for(&plan.changes, &depend::dependence(plan));
    manifests::lookups(&plan.changes, &|index| waiting.contains_key(&index))
}

pub async fn check_offline(context: &Context<'_>, dependence: &[Dependence]) -> ViolationsFound {
    let changes = &context.plan.changes;
    let waiting = waiting_for(changes, dependence);
    let mut found = ViolationsFound::default();
    if waiting.is_empty() {
        return found;
    }
    let custom = manifests::check_manifests(context, &|index| waiting.contains_key(&index)).await;
    found.unchecked = custom.unchecked.into_iter().chain(custom.not_allowed).collect();
    found.violations = custom.faults.into_iter().map(as_violation).collect();
    let described = built_in(context, waiting.keys().copied(), &mut found.violations).await;
    found.violations.extend(report_waiting_objects(changes, &waiting, &described));
    found
}

/// A fault of the validator, as a violation of a rule of this check.
fn as_violation(fault: ManifestRefusal) -> Violation {
    let message = format!("found by gantry's own validator, because the server cannot be asked yet: {}", fault.message);
    ManifestRefusal { message, ..fault }.into_violation(&rules::INVALID)
}

/// Validates objects of built-in kinds against their schemas. Returns which of them have a schema.
async fn built_in(
    context: &Context<'_>,
    indices: impl Iterator<Item = usize>,
    violations: &mut Vec<Violation>,
) -> BTreeSet<usize> {
    let changes = &context.plan.changes;
    let indices: Vec<usize> = indices.filter(|index| is_built_in(&changes[*index].resource.group)).collect();
    let published = Published::read(indices.iter().map(|index| &changes[*index]), context.target).await;
    let mut described = BTreeSet::new();
    for index in indices {
        let resource = &changes[index].resource;
        let kind =
            Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() };
        let object = changes[index].desired.raw.value();
        let mut errors = metadata::errors(&kind, &object);
        // Neither values nor `required` are checked by it: what the server really requires differs from the document in
        // both directions.
        if let Some(Described { schema, definitions }) = published.schema(resource) {
            described.insert(index);
            let unreadable =
                typed::unreadable_by(schema, definitions, &object, Duplicates::Refused, context.plan.release());
            errors.extend(
                unreadable.into_iter().map(|found| MetadataError { at: found.steps(), message: found.message }),
            );
        }
        violations.extend(errors.into_iter().map(|MetadataError { at, message }| {
            let path = text::field(&at);
            let message =
                format!("found by gantry's own validator, because the server cannot be asked yet: {path}: {message}");
            let help = next_step::FIX_HERE.to_owned();
            Violation::new(&rules::INVALID, index, None, message, help, at).path(path)
        }));
    }
    described
}

/// For each namespace and CRD of the deploy, how many objects wait for it and how they were validated.
fn report_waiting_objects(
    changes: &[Change],
    waiting: &BTreeMap<usize, usize>,
    described: &BTreeSet<usize>,
) -> Vec<Violation> {
    let mut by_change: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, by) in waiting {
        by_change.entry(*by).or_default().push(*index);
    }
    let note = |(by, indices): (usize, Vec<usize>)| {
        let count = |fits: &dyn Fn(usize) -> bool| indices.iter().filter(|index| fits(**index)).count();
        let custom = count(&|index| !is_built_in(&changes[index].resource.group));
        let shaped = count(&|index| described.contains(&index));
        let rest = indices.len() - custom - shaped;
        let said = [
            (custom, "validated against their CRD by gantry"),
            (shaped, "checked by gantry against the server's schema (not their values)"),
            (rest, "not validated"),
        ];
        let said: Vec<String> =
            said.iter().filter(|(number, _)| *number > 0).map(|(number, how)| format!("{number} {how}")).collect();
        let waiting = text::count(indices.len(), "object");
        let message = format!("the server cannot validate {waiting} before this is written: {}", said.join(", "));
        let help = "deploy this first, then the server can validate the rest".to_owned();
        let at = vec![Step::from("metadata"), Step::from("name")];
        Violation::new(&rules::NOT_DRY_RUN, by, None, message, help, at)
    };
    by_change.into_iter().map(note).collect()
}
