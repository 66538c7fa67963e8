//! Asks the API server about each CRD that the deploy writes, with a dry run of the request that writes it.
//!
//! gantry validates CRDs as the releases of Kubernetes do by default. Feature gates and vendors change what a server
//! accepts. So on a cluster the server has the last word: what it refuses is a finding even
//! if gantry's own validation accepts it, and what it accepts is none. If it cannot be asked, gantry's own validation
//! decides, and a notice says so.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use futures::stream::StreamExt;
use serde_json::Value;

use super::compare::RuleViolation;
use super::rule::ViolationText;
use super::same_definition::is_same_definition;
use super::{NAME, server};
use crate::{Context, CouldNotCheck, dry_runs, server_field};
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{Described, DryRunError, Refusal, RefusalCause, Refuser};
use gantry_core::parallel::in_parallel;
use gantry_core::problem::Problem;
use gantry_core::resource::{RawObject, Step};
use gantry_core::text;
use gantry_deploy::plan::{Change, Published, conflicts, is_dropped_from_crd, pin as plan_pin};
use gantry_k8s_cel::KubernetesRelease;
use gantry_schema::json::Json;
use gantry_schema::typed::{self, Duplicates, TypedValueError, UnreadableKind};

/// The maximum number of CRDs that one notice names.
const CRDS_SHOWN: usize = 3;

/// What the server says about a CRD.
#[derive(Debug)]
pub enum CrdAnswer {
    /// It stores the CRD without these fields, with `[*]` for indexes.
    Accepts {
        dropped: Vec<String>,
    },
    Refuses(Refusal),
    /// It was not asked, but its OpenAPI document lacks these fields of the CRD.
    Lacks(Vec<TypedValueError>),
}

/// The answers of the server, by the index of the change. A CRD about which the server gives no answer is left out.
pub async fn request_answers(context: &Context<'_>) -> BTreeMap<usize, CrdAnswer> {
    let Some(server) = context.target.as_server() else { return BTreeMap::new() };
    let changes = &context.plan.changes;
    let is_asked = |index: &usize| changes[*index].desired.object.is_crd() && !changes[*index].action.leaves_alone();
    let crds: Vec<usize> = (0..changes.len()).filter(is_asked).collect();
    let is_known = |index: &usize| changes[*index].crd().is_some_and(|crd| is_same_definition(crd));
    let known = in_parallel(&crds, is_known);
    let crds: Vec<(usize, bool)> = crds.into_iter().zip(known).collect();
    let accepted = |index| (index, CrdAnswer::Accepts { dropped: Vec::new() });
    let mut answers: BTreeMap<usize, CrdAnswer> =
        crds.iter().filter(|(_, is_known)| *is_known).map(|(index, _)| accepted(*index)).collect();
    let crds = crds.into_iter().filter(|(_, is_known)| !is_known).map(|(index, _)| index).collect();
    let mut received = pin!(dry_runs::request_each(crds, |index| ask(&changes[index], context, server)));
    let mut unanswered: BTreeMap<Problem, Vec<usize>> = BTreeMap::new();
    while let Some((index, answer)) = received.next().await {
        let problem = match answer {
            Some(Ok(stored)) => {
                let dropped = dropped_fields(&changes[index].desired.raw, &stored).into_iter().collect();
                answers.insert(index, CrdAnswer::Accepts { dropped });
                continue;
            }
            Some(Err(DryRunError::Refused(refusal))) if refusal.by == Refuser::Validation => {
                answers.insert(index, CrdAnswer::Refuses(refusal));
                continue;
            }
            // Who denies it does not judge the definition: the deploy stops, and gantry's own validation decides.
            Some(answer @ Err(DryRunError::Refused(Refusal { by: Refuser::Policy, .. }))) => {
                changes[index].answer.keep(&answer);
                continue;
            }
            // Each of these ends the deploy before it writes.
            Some(Err(DryRunError::Conflict(_) | DryRunError::Changed)) => continue,
            Some(Err(DryRunError::Refused(Refusal { problem, .. }) | DryRunError::Unanswered { problem, .. })) => {
                problem
            }
            None => Problem::new("the server no longer answers"),
        };
        unanswered.entry(problem).or_default().push(index);
    }
    // What the tables say of a known release needs no document.
    if context.plan.release().is_unknown() {
        let crds: Vec<usize> = unanswered.values().flatten().copied().collect();
        answers.extend(read_lacking(&crds, context).await);
    }
    for (problem, crds) in unanswered {
        let crds: Vec<&Change> = crds.into_iter().map(|index| &changes[index]).collect();
        context.notices.not_checked(NAME, not_asked(problem, &crds, context.plan.release()));
    }
    answers
}

/// The fields of these CRDs that the server's OpenAPI document lacks, which needs no right to write. Empty if the server
/// does not publish it.
async fn read_lacking(crds: &[usize], context: &Context<'_>) -> Vec<(usize, CrdAnswer)> {
    let changes = &context.plan.changes;
    let published = Published::read(crds.iter().map(|index| &changes[*index]), context.target).await;
    let lacking = |index: &usize| {
        let change = &changes[*index];
        let Described { schema, definitions } = published.schema(&change.resource)?;
        let (desired, release) = (change.desired.raw.value(), context.plan.release());
        let mut found = typed::unreadable_by(schema, definitions, &desired, Duplicates::Refused, release);
        found.retain(|found| found.kind == UnreadableKind::Undeclared);
        Some((*index, CrdAnswer::Lacks(found)))
    };
    in_parallel(crds, lacking).into_iter().flatten().collect()
}

/// Asks about one CRD. If fields of other managers are in the way, the server would say only that: then it is asked what
/// it does with them taken over.
async fn ask(change: &Change, context: &Context<'_>, server: &KubeTarget) -> Result<RawObject, DryRunError> {
    let Context { plan, target, .. } = *context;
    // The answer about a CRD that the server asks about is known.
    if change.answer.get().is_none() && conflicts::is_crd_in_conflict(change, plan, target) {
        let answer = plan_pin::forced_dry_run(change, &plan.policy.field_manager, server, target).await;
        return answer.cloned().map_err(Clone::clone);
    }
    plan_pin::dry_run_once(change, plan, server, target).await
}

/// The fields of `spec` that a manifest sets and the server does not store, with `[*]` for indexes.
fn dropped_fields(desired: &RawObject, stored: &RawObject) -> BTreeSet<String> {
    let mut dropped = BTreeSet::new();
    let (desired, stored) = (desired.json(), stored.json());
    if let (Ok(Json::Map(desired)), Ok(Json::Map(stored))) = (Json::parse(&desired), Json::parse(&stored))
        && let (Some(desired), Some(stored)) = (desired.get("spec"), stored.get("spec"))
    {
        add_dropped(desired, stored, "spec", &mut dropped);
    }
    dropped
}

fn add_dropped(desired: &Json<'_>, stored: &Json<'_>, path: &str, dropped: &mut BTreeSet<String>) {
    match (desired, stored) {
        (Json::Map(desired), Json::Map(stored)) => {
            for (name, value) in desired.iter() {
                let path = format!("{path}.{name}");
                match stored.get(name) {
                    Some(stored) => add_dropped(value, stored, &path, dropped),
                    None if is_dropped_from_crd(name, value) => {}
                    None => drop(dropped.insert(path)),
                }
            }
        }
        (Json::List(desired), Json::List(stored)) if desired.len() == stored.len() => {
            let path = format!("{path}[*]");
            desired.iter().zip(stored).for_each(|(desired, stored)| add_dropped(desired, stored, &path, dropped));
        }
        _ => {}
    }
}

/// The names of the first few, and the number of the others.
pub fn name_crds(crds: &[&Change]) -> String {
    let shown = crds.iter().take(CRDS_SHOWN).map(|change| text::sanitize(&change.desired.object.name).into_owned());
    let mut names: Vec<String> = shown.collect();
    if crds.len() > CRDS_SHOWN {
        names.push(text::count(crds.len() - CRDS_SHOWN, "more CRD"));
    }
    names.join(", ")
}

fn not_asked(problem: Problem, crds: &[&Change], release: KubernetesRelease) -> CouldNotCheck {
    let message = format!(
        "the server was not asked whether it accepts {}; gantry's own rules for Kubernetes {release} decided: {}",
        name_crds(crds),
        problem.message
    );
    CouldNotCheck { message, help: problem.help }
}

/// What the server refuses in a CRD, except what gantry's own validation found as well.
pub fn to_violations(refusal: &Refusal, desired: &Value, own: &[RuleViolation]) -> Vec<RuleViolation> {
    let Some(rule) = server::rule() else { return Vec::new() };
    let help: String = match own.is_empty() {
        true => {
            "newer releases of Kubernetes may accept it: deploy a version of this CRD that supports the release of \
                 this server, or upgrade the cluster first"
                .into()
        }
        false => "fix the CRD; otherwise the deploy stops when the server refuses it".into(),
    };
    let violation = |said: &str, at: Vec<Step>| {
        let mut diagnosis = ViolationText {
            message: format!("this server refuses it: {said}").into(),
            help: help.as_str().into(),
            at,
            ..ViolationText::default()
        }
        .label("refused".to_owned());
        diagnosis.body.complaint = Some(dry_runs::complaint(said));
        RuleViolation { rule, version: None, path: None, node: Vec::new(), diagnosis }
    };
    let is_new = |cause: &RefusalCause, at: &[Step]| {
        let is_there = |own: &RuleViolation| at.starts_with(&own.diagnosis.at) || own.diagnosis.at.starts_with(at);
        !own.iter().any(|own| is_there(own) || own.diagnosis.message.for_versions("").contains(&cause.message))
    };
    match refusal.causes.is_empty() {
        // For example a field that the server's schema of CRDs does not have: the text names it.
        true if own.is_empty() => vec![violation(&refusal.problem.message, Vec::new())],
        true => Vec::new(),
        false => {
            let placed = refusal.causes.iter().map(|cause| (cause, server_field::steps(&cause.field, desired)));
            let new = placed.filter(|(cause, at)| is_new(cause, at));
            new.map(|(cause, at)| violation(&cause.to_text(), at)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_dropped_if_the_answer_lacks_it_and_the_server_would_keep_its_value() {
        let version = |schema: Value, more: Value| {
            let mut version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema}});
            version.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            RawObject::new(json!({"spec": {"versions": [version]}}).to_string())
        };
        // What the server leaves out anyway, and a zero that means something.
        let schema = json!({"type": "integer", "minimum": 0, "description": "", "enum": []});
        let desired = version(schema, json!({"selectableFields": [{"jsonPath": ".spec.a"}], "deprecated": false}));
        let kept = version(json!({"type": "integer", "minimum": 0}), json!({}));
        let of = |stored: &RawObject| dropped_fields(&desired, stored).into_iter().collect::<Vec<_>>();
        assert_eq!(of(&kept), ["spec.versions[*].selectableFields"]);
        let without_zero = version(json!({"type": "integer"}), json!({"selectableFields": [{"jsonPath": ".spec.a"}]}));
        assert_eq!(of(&without_zero), ["spec.versions[*].schema.openAPIV3Schema.minimum"]);
        assert_eq!(of(&desired), [""; 0]);
    }
}
