//! Asks the API server about each CRD that the deploy writes, with a dry run of the request that writes it.
//!
//! gantry validates CRDs as [`RELEASE`] does. Other releases know other CEL functions, fields and limits, and feature
//! gates change what a server accepts. So on a cluster the server has the last word: what it refuses is a finding even
//! if gantry's own validation accepts it, and what it accepts is none. If it cannot be asked, gantry's own validation
//! decides, and a notice says so.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::stream::StreamExt;
use serde_json::Value;

use super::compare::RuleViolation;
use super::rule::ViolationText;
use super::{NAME, server};
use crate::{Context, CouldNotCheck, dry_runs, server_field};
use gantry_cluster::{DryRunError, Refusal, RefusalCause, Refuser};
use gantry_core::problem::Problem;
use gantry_core::resource::Step;
use gantry_core::text;
use gantry_deploy::plan::{Change, pin as plan_pin};

/// The release of Kubernetes whose validation of CRDs gantry reproduces.
const RELEASE: &str = "Kubernetes 1.36";
/// The maximum number of CRDs that one notice names.
const CRDS_SHOWN: usize = 3;

/// What the server answers about a CRD.
#[derive(Debug)]
pub enum CrdAnswer {
    Accepts,
    Refuses(Refusal),
}

/// The answers of the server, by the index of the change. A CRD about which the server gives no answer is left out.
pub async fn request_answers(context: &Context<'_>) -> BTreeMap<usize, CrdAnswer> {
    let Some(server) = context.target.as_server() else { return BTreeMap::new() };
    let changes = &context.plan.changes;
    let is_asked = |index: &usize| changes[*index].desired.object.is_crd() && changes[*index].is_written();
    let crds = (0..changes.len()).filter(is_asked).collect();
    let mut received = pin!(dry_runs::request_each(crds, |index| {
        plan_pin::dry_run_once(&changes[index], context.plan, server, context.target)
    }));
    let mut answers = BTreeMap::new();
    let mut unanswered: BTreeMap<Problem, Vec<&Change>> = BTreeMap::new();
    while let Some((index, answer)) = received.next().await {
        let problem = match answer {
            Some(Ok(_)) => {
                answers.insert(index, CrdAnswer::Accepts);
                continue;
            }
            Some(Err(DryRunError::Refused(refusal))) if refusal.by == Refuser::Validation => {
                answers.insert(index, CrdAnswer::Refuses(refusal));
                continue;
            }
            // Each of these ends the deploy before it writes.
            Some(Err(DryRunError::Conflict(_) | DryRunError::Changed)) => continue,
            Some(Err(DryRunError::Refused(Refusal { problem, .. }) | DryRunError::Unanswered { problem, .. })) => {
                problem
            }
            None => Problem::new("the server no longer answers"),
        };
        unanswered.entry(problem).or_default().push(&changes[index]);
    }
    for (problem, crds) in unanswered {
        context.notices.not_checked(NAME, not_asked(problem, &crds));
    }
    answers
}

fn not_asked(problem: Problem, crds: &[&Change]) -> CouldNotCheck {
    let shown = crds.iter().take(CRDS_SHOWN).map(|change| text::sanitize(&change.desired.object.name).into_owned());
    let mut names: Vec<String> = shown.collect();
    if crds.len() > CRDS_SHOWN {
        names.push(text::count(crds.len() - CRDS_SHOWN, "more CRD"));
    }
    let message = format!(
        "whether this server accepts {} was only compared with the rules of {RELEASE}: {}",
        names.join(", "),
        problem.message
    );
    CouldNotCheck { message, help: problem.help }
}

/// What the server refuses in a CRD, except what gantry's own validation found as well.
pub fn to_violations(refusal: &Refusal, desired: &Value, own: &[RuleViolation]) -> Vec<RuleViolation> {
    let Some(rule) = server::rule() else { return Vec::new() };
    let help: String = match own.is_empty() {
        true => format!(
            "{RELEASE} accepts it: deploy a version of this CRD that supports the release of this server, or upgrade \
             the cluster first"
        ),
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
