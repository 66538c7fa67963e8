//! Asks the API server about each CRD that the deploy writes, with a dry run of the request that writes it.
//!
//! gantry validates CRDs as [`RELEASE`] does. Other releases know other CEL functions, fields and limits, and feature
//! gates change what a server accepts. So on a cluster the server has the last word: what it refuses is a finding even
//! if gantry's own validation accepts it, and what it accepts is none. If it cannot be asked, gantry's own validation
//! decides, and a notice says so.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt};
use serde_json::Value;

use super::compare::RuleViolation;
use super::rule::ViolationText;
use super::{NAME, server};
use crate::{Context, CouldNotCheck, server_field};
use gantry_cluster::{self as cluster, DryRunError, IN_FLIGHT, Refusal, Refuser};
use gantry_core::finding::ServerRefusal;
use gantry_core::problem::Problem;
use gantry_core::resource::Step;
use gantry_core::text;
use gantry_deploy::plan::{Change, pin};

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
    let crds =
        (0..changes.len()).filter(|index| changes[*index].desired.object.is_crd() && changes[*index].is_written());
    let requests = crds.map(|index| async move {
        let change = &changes[index];
        // The answer is dropped here, because CRDs are large.
        if let Some(known) = change.answer.get() {
            return (index, known.as_ref().err().cloned());
        }
        let answer = pin::dry_run(change, context.plan.policy.writing(), server, context.target).await;
        if context.plan.keeps_answers {
            change.answer.keep(&answer);
        }
        (index, answer.err())
    });
    let mut answers = BTreeMap::new();
    let mut unanswered: BTreeMap<Problem, Vec<&Change>> = BTreeMap::new();
    let mut received = stream::iter(requests).buffered(IN_FLIGHT);
    while let Some((index, error)) = received.next().await {
        match error {
            None => drop(answers.insert(index, CrdAnswer::Accepts)),
            Some(DryRunError::Refused(refusal)) if refusal.by == Refuser::Validation => {
                answers.insert(index, CrdAnswer::Refuses(refusal));
            }
            Some(DryRunError::Refused(Refusal { problem, .. }) | DryRunError::Unanswered { problem, .. }) => {
                unanswered.entry(problem).or_default().push(&changes[index]);
            }
            // Each of these ends the deploy before it writes.
            Some(DryRunError::Conflict(_) | DryRunError::Changed) => {}
        }
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
        diagnosis.body.complaint = Some(match cluster::is_undeclared(said) {
            true => ServerRefusal::UnknownField,
            false => ServerRefusal::Refused(said.to_owned()),
        });
        RuleViolation { rule, version: None, path: None, node: Vec::new(), diagnosis }
    };
    if refusal.causes.is_empty() {
        // For example a field that the server's schema of CRDs does not have: the text names it.
        let is_known = !own.is_empty();
        return (!is_known).then(|| violation(&refusal.problem.message, Vec::new())).into_iter().collect();
    }
    let is_new = |cause: &&cluster::RefusalCause, at: &[Step]| {
        let is_there = |own: &RuleViolation| at.starts_with(&own.diagnosis.at) || own.diagnosis.at.starts_with(at);
        !own.iter().any(|own| is_there(own) || own.diagnosis.message.for_versions("").contains(&cause.message))
    };
    let placed = refusal.causes.iter().map(|cause| (cause, server_field::steps(&cause.field, desired)));
    let new = placed.filter(|(cause, at)| is_new(cause, at));
    new.map(|(cause, at)| {
        let field = cause.field.trim_start_matches('.');
        let colon = if field.is_empty() { "" } else { ": " };
        violation(&format!("{field}{colon}{}", cause.message), at)
    })
    .collect()
}
