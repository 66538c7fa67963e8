//! What the API server does with each CRD that the deploy writes: by its own answer to a dry run, or as gantry's own
//! validation foretells.

use std::collections::BTreeMap;

use super::NAME;
use super::compare::RuleViolation;
use super::dry_run::{self, CrdAnswer};
use super::server::{self, PlannedCrdWrite};
use crate::objects::definition::{self, ForetoldAnswer};
use crate::proofs::Proofs;
use crate::{Context, CouldNotCheck};
use gantry_core::text;
use gantry_deploy::plan::Change;
use gantry_k8s_cel::KubernetesRelease;
use gantry_schema::Undecided;

/// What the server does with a CRD of the plan: by its own answer, or as foretold.
#[derive(Default)]
pub struct ExpectedAnswer {
    pub refusals: Vec<RuleViolation>,
    /// What could not be decided.
    pub undecided: Vec<Undecided>,
    /// The fields that the server drops, with `[*]` for indexes.
    pub dropped: Vec<String>,
}

/// The answer about one CRD: the server's own one, or gantry's if the server gave none.
pub fn expect_answer(crd: &PlannedCrdWrite, answer: Option<&CrdAnswer>, proofs: &Proofs) -> ExpectedAnswer {
    if let Some(CrdAnswer::Accepts { dropped }) = answer {
        return ExpectedAnswer { dropped: dropped.clone(), ..ExpectedAnswer::default() };
    }
    let manager = Some(&*crd.manager);
    let foretell = |release| definition::validate(&crd.crd, manager, release, proofs.known());
    let (release, newest) = (proofs.release(), KubernetesRelease::NEWEST_KNOWN);
    let ForetoldAnswer { mut refusals, mut undecided, dropped } = foretell(release);
    if let Some(CrdAnswer::Lacks(fields)) = answer {
        let desired = crd.crd.desired_object.value();
        undecided.retain(|open| !fields.iter().any(|field| field.steps() == open.at));
        refusals.extend(fields.iter().map(|field| definition::cannot_parse(field, &desired)));
    }
    let is_accepted = |answer: ForetoldAnswer| answer.refusals.is_empty() && answer.undecided.is_empty();
    let is_too_new = !refusals.is_empty() && release < newest && is_accepted(foretell(newest));
    let mut refusals = server::to_violations(refusals, &crd.crd, manager);
    for violation in refusals.iter_mut().filter(|_| is_too_new) {
        violation.diagnosis.help = format!(
            "Kubernetes {newest} accepts it: deploy a version of this CRD that supports {release}, or upgrade the cluster \
             first"
        )
        .into();
        violation.diagnosis.steps.clear();
    }
    match answer {
        Some(CrdAnswer::Refuses(refusal)) => {
            let desired = serde_json::from_str(&crd.crd.desired_object.json()).unwrap_or_default();
            refusals.extend(dry_run::to_violations(refusal, &desired, &refusals));
            ExpectedAnswer { refusals, ..ExpectedAnswer::default() }
        }
        _ => ExpectedAnswer { refusals, undecided, dropped },
    }
}

/// The fields that the server drops, each with the changes of its CRDs.
pub type DroppedFields = BTreeMap<String, Vec<usize>>;

/// Says which fields of CRDs have no effect.
pub fn notify_dropped(context: &Context<'_>, dropped: DroppedFields) {
    let release = context.plan.release();
    for (field, changes) in dropped {
        let crds: Vec<&Change> = changes.iter().map(|index| &context.plan.changes[*index]).collect();
        context.notices.add(format!(
            "{NAME}: the server drops the field {field} of {}: Kubernetes {release} may not support it, or a webhook \
             removes it. It has no effect, and on a cluster each later deploy shows it as a change.",
            dry_run::name_crds(&crds),
        ));
    }
}

/// That it is unknown whether the server accepts a CRD.
pub fn could_not_decide(crd: &PlannedCrdWrite, open: &Undecided, release: KubernetesRelease) -> CouldNotCheck {
    let desired = crd.crd.desired_object.value();
    let name = text::sanitize(desired["metadata"]["name"].as_str().unwrap_or_default());
    let why = format!("{}: {}", open.path, open.reason);
    let why = text::cut_quote(&why);
    CouldNotCheck {
        message: format!("whether Kubernetes {release} accepts the CRD {name} could not be decided: {why}"),
        help: Some("check on a cluster with the right to patch CRDs: then the server itself is asked".to_owned()),
    }
}
