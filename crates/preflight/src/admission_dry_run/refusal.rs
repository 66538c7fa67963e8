//! Turns the server's refusals into findings at the lines of the manifest.

use std::collections::BTreeSet;

use serde_json::Value;

use super::depend::Dependence;
use super::{resolved, rules};
use crate::rule::RuleDoc;
use crate::{Violation, dry_runs, server_field};
use gantry_cluster::{self as cluster, DryRunError, FieldConflict, ManagerOperation, Refusal, Refuser, deploy_tool};
use gantry_core::finding::ServerRefusal;
use gantry_core::next_step;
use gantry_core::resource::Step;
use gantry_deploy::plan::managed;
use gantry_deploy::plan::{Change, Plan};

/// The maximum number of fields of one manager that a finding names.
const FIELDS_SHOWN: usize = 10;

/// Adds the findings of one of the server's answers.
pub fn report_refusal(
    plan: &Plan,
    index: usize,
    error: &DryRunError,
    dependence: Dependence,
    violations: &mut Vec<Violation>,
) {
    match error {
        DryRunError::Conflict(conflicts) => report_conflicts(plan, index, conflicts, violations),
        // `offline` validates the object against the new schema.
        DryRunError::Refused(refusal)
            if matches!(refusal.by, Refuser::Validation | Refuser::ManagedFields)
                && matches!(dependence, Dependence::Changed(_)) => {}
        DryRunError::Refused(refusal) if refusal.by == Refuser::ManagedFields => {
            violations.push(managed_fields(&plan.changes[index], index, refusal));
        }
        DryRunError::Refused(refusal) => report_refused_fields(plan, index, refusal, violations),
        DryRunError::Changed | DryRunError::Unanswered { .. } => {}
    }
}

/// The server refuses every apply of the live object, or this one, because of a version in its `managedFields`.
fn managed_fields(change: &Change, index: usize, refusal: &Refusal) -> Violation {
    let live = change.live.as_ref().map(|live| live.raw.value()).unwrap_or_default();
    let (group, to) = (&change.resource.group, change.resource.version.as_str());
    let versions: BTreeSet<&str> =
        managed::entries(&live, group).iter().map(|entry| entry.version).filter(|version| *version != to).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    let help = if versions.is_empty() {
        refusal.problem.help.clone().unwrap_or_else(|| "follow the server's message".to_owned())
    } else {
        let command = managed::move_entries_command(&change.resource, &change.desired.object, &versions, to);
        format!(
            "managedFields of the live object have entries at {}; move them to {to}:\n{command}",
            versions.join(", ")
        )
    };
    let at = vec![Step::from("apiVersion")];
    let mut violation = Violation::new(&rules::INVALID, index, None, refusal.problem.message.clone(), help, at);
    violation.body.complaint = Some(ServerRefusal::ManagedFields);
    violation.path("metadata.managedFields".to_owned())
}

fn report_refused_fields(plan: &Plan, index: usize, refusal: &Refusal, violations: &mut Vec<Violation>) {
    let change = &plan.changes[index];
    let object = change.desired.raw.value();
    let resolved_by = resolved::resolved_by(plan, index, refusal);
    let is_update = change.action.changes_live();
    let mut say = |doc: &'static RuleDoc, field: Option<&str>, said: &str, message: String, help: String| {
        let at = match field {
            Some(field) if !field.is_empty() => server_field::steps(field, &object),
            _ => name_of(&object),
        };
        let mut violation = Violation::new(doc, index, None, message, help, at);
        violation.body.complaint = Some(dry_runs::complaint(said));
        violation.body.path =
            field.filter(|field| !field.is_empty()).map(|field| field.trim_start_matches('.').to_owned());
        if let Some(resolved_by) = resolved_by {
            let first = &plan.changes[resolved_by].desired.object;
            let help = format!("this deploy writes {first} before it, so the server may accept it then");
            violation = violation.may_be_accepted(help);
        }
        violations.push(violation);
    };
    let live = change.live.as_ref().map(|live| live.raw.value());
    let help = refusal.problem.help.clone();
    match refusal.by {
        Refuser::Validation if !refusal.causes.is_empty() => {
            for cause in &refusal.causes {
                let said = cause.to_text();
                let doc = if is_update && cluster::is_immutable(&cause.message) {
                    &rules::IMMUTABLE
                } else {
                    &rules::INVALID
                };
                let object = &change.desired.object;
                let help = match (doc.name == rules::IMMUTABLE.name, change.desired.bundle) {
                    (true, Some(_)) => cluster::immutable_help_for_olm(object),
                    (false, Some(_)) => "OLM cannot install the bundle until its publisher fixes this".to_owned(),
                    (true, None) => cluster::immutable_help(object, live.as_ref()),
                    (false, None) => next_step::FIX_HERE.to_owned(),
                };
                say(doc, Some(&cause.field), &said, format!("the server refuses it: {said}"), help);
            }
        }
        // A webhook can name several fields; a policy names only the object.
        Refuser::Policy if !refusal.causes.is_empty() => {
            for cause in &refusal.causes {
                let help = help.clone().unwrap_or_else(|| DENIED_HELP.to_owned());
                let message = format!("the server refuses it: {}", cause.message);
                say(&rules::DENIED, Some(&cause.field), &cause.message, message, help);
            }
        }
        by => {
            let missing = refusal.missing.as_ref().map_or("", |(_, name)| name);
            let create_namespace = next_step::create_namespace(missing);
            let (doc, what): (_, &str) = match by {
                Refuser::Validation | Refuser::ManagedFields if change.desired.bundle.is_some() => {
                    (&rules::INVALID, "OLM cannot install the bundle until its publisher fixes this")
                }
                Refuser::Validation | Refuser::ManagedFields => (&rules::INVALID, next_step::FIX_MANIFEST),
                Refuser::Admission | Refuser::Policy => (&rules::DENIED, DENIED_HELP),
                Refuser::FailedWebhook => (&rules::WEBHOOK_FAILED, "fix the webhook, or remove its configuration"),
                Refuser::Quota => (&rules::QUOTA, "request less, delete something, or ask for a higher quota"),
                Refuser::Authorization => (&rules::FORBIDDEN, "ask for the permission"),
                Refuser::Lookup if is_namespace(refusal) => (&rules::NAMESPACE, &create_namespace),
                Refuser::Lookup | Refuser::Other => (&rules::REFUSED, "follow the server's message"),
            };
            let cause = refusal.causes.first().filter(|_| by == Refuser::Admission);
            let said = cause.map_or(&refusal.problem.message, |cause| &cause.message);
            let message = if cause.is_some() { format!("the server refuses it: {said}") } else { said.clone() };
            let field = cause.map(|cause| cause.field.as_str());
            say(doc, field, said, message, help.unwrap_or_else(|| what.to_owned()));
        }
    }
}

/// How a finding names fields that are in conflict but would not change.
const ONLY_DEFAULTS: &str = "fields that differ from the manifest only in values that the server defaulted";

const DENIED_HELP: &str = "change the object so that admission accepts it, or ask the owner of the rule";

fn is_namespace(refusal: &Refusal) -> bool {
    refusal.missing.as_ref().is_some_and(|(kind, _)| kind == "namespaces")
}

/// The path of the object's name, which identifies the object best.
fn name_of(object: &Value) -> Vec<Step> {
    match object.pointer("/metadata/name") {
        Some(_) => vec![Step::from("metadata"), Step::from("name")],
        None => Vec::new(),
    }
}

/// One finding for each manager whose fields the manifest changes.
fn report_conflicts(plan: &Plan, index: usize, conflicts: &[FieldConflict], violations: &mut Vec<Violation>) {
    let object = plan.changes[index].desired.raw.value();
    let mut managers: Vec<(&str, ManagerOperation, bool)> = Vec::new();
    for conflict in conflicts {
        let manager = (conflict.manager.as_str(), conflict.operation, conflict.only_defaults);
        if !managers.contains(&manager) {
            managers.push(manager);
        }
    }
    for (manager, operation, only_defaults) in managers {
        let of_manager = conflicts
            .iter()
            .filter(|c| c.manager == manager && c.operation == operation && c.only_defaults == only_defaults);
        let fields: Vec<&str> = of_manager.map(|conflict| conflict.field.as_str()).collect();
        let mut shown = fields.iter().take(FIELDS_SHOWN).copied().collect::<Vec<_>>().join(", ");
        if fields.len() > FIELDS_SHOWN {
            shown.push_str(&format!(", … and {} more", fields.len() - FIELDS_SHOWN));
        }
        let what = if only_defaults { ONLY_DEFAULTS } else { "fields that the manifest changes" };
        let message = format!("field manager {manager:?} owns {what}: {shown}");
        let help = match deploy_tool(manager, operation) {
            _ if only_defaults => "take ownership once with --force-conflicts: that changes no value".to_owned(),
            Some(tool) => format!("it was last deployed by {tool}; take ownership once with --force-conflicts"),
            None => format!("leave these fields to {manager:?}, or take ownership with --force-conflicts"),
        };
        let first = fields.first().copied().unwrap_or_default();
        let at = server_field::steps(first, &object);
        let violation = Violation::new(&rules::CONFLICT, index, None, message, help, at);
        let path = first.trim_start_matches('.').to_owned();
        violations.push(violation.path(path).label("owned by another manager".to_owned()));
    }
}
