//! `preset: evidence`: what happens to objects at a version where no violation explains it.
//!
//! For example, a new version requires a field that no object has. Nothing that live has changes for the worse, so no
//! rule reports it; it is a violation of its own, at the version and the node where it happens.

use std::collections::BTreeMap;

use super::compare::RuleViolation;
use super::evidence::{self, WeighedViolation};
use super::options::CrdUpgradeOptions;
use super::rule::ViolationText;
use super::rules::INDIRECT_CHANGE;
use crate::objects::Upgrade;
use crate::objects::survey::Surveyed;
use crate::objects::tally::{ObjectOutcome, TalliedCause, Tally};
use crate::proofs::ChangeProof;
use gantry_core::crd::steps;
use gantry_core::finding::wording::wording;
use gantry_core::finding::{Breaks, Verdict};
use gantry_core::resource::Step;

/// The violations that only the objects show: one for each node of a version.
pub fn violations(
    found: &[WeighedViolation],
    upgrade: &Upgrade,
    surveyed: &Surveyed,
    options: &CrdUpgradeOptions,
) -> Vec<WeighedViolation> {
    let causes = surveyed.lists.iter().flat_map(|list| &list.tally).flat_map(Tally::causes);
    // A default that is filled in breaks nothing by itself.
    let causes = causes.filter(|cause| !matches!(cause.outcome, ObjectOutcome::Defaulted | ObjectOutcome::Unknown));
    let mut by_node: BTreeMap<(&str, &[Step]), Vec<&TalliedCause>> = BTreeMap::new();
    for cause in causes.filter(|cause| evidence::responsible(found, cause).is_empty()) {
        by_node.entry((&cause.version, &cause.node)).or_default().push(cause);
    }
    let weigh = |((version, node), causes): ((&str, &[Step]), Vec<&TalliedCause>)| {
        let (violation, proof) = violation(version, node, &causes, upgrade);
        WeighedViolation { is_error: true, ..WeighedViolation::new(violation, proof, options) }
    };
    by_node.into_iter().map(weigh).collect()
}

fn violation(
    version: &str,
    node: &[Step],
    causes: &[&TalliedCause],
    upgrade: &Upgrade,
) -> (RuleViolation, Option<ChangeProof>) {
    let path = path(node);
    let field = path.strip_prefix("^.").unwrap_or("the object");
    let is_lost =
        causes.iter().any(|cause| matches!(cause.outcome, ObjectOutcome::Pruned | ObjectOutcome::PrunedAtStorage));
    let is_undecided = causes.iter().all(|cause| cause.outcome == ObjectOutcome::Undecided);
    let mut keywords: Vec<&str> = causes.iter().filter_map(|cause| cause.keyword.as_deref()).collect();
    keywords.sort_unstable();
    keywords.dedup();
    let reason = if keywords.is_empty() { String::new() } else { format!(" ({})", keywords.join(", ")) };
    let message = match (is_lost, is_undecided) {
        (true, _) => wording!("", VERSIONS, " drops a part of {field} that existing objects have{reason}"),
        (false, true) => wording!("", VERSIONS, " may refuse {field} of existing objects{reason}"),
        (false, false) => wording!("", VERSIONS, " refuses {field} of existing objects{reason}"),
    };
    let mut at: Vec<Step> =
        upgrade.desired.version(version).map(|version| steps::schema(version.index)).unwrap_or_default();
    at.extend(node.iter().cloned());
    let diagnosis = ViolationText {
        message,
        help: wording!("make ", VERSIONS, " accept the objects of the other versions, or change these objects first"),
        at,
        ..ViolationText::default()
    }
    .fact("existing objects do not fit".to_owned());
    let proof = (!is_undecided).then(|| ChangeProof {
        verdict: if is_lost { Verdict::DataLoss } else { Verdict::Narrowing },
        reason: None,
        breaks: if is_lost { vec![Breaks::Readers, Breaks::Data] } else { vec![Breaks::StoredObjects] },
        witnesses: Vec::new(),
    });
    let violation = RuleViolation {
        rule: &INDIRECT_CHANGE,
        version: Some(version.to_owned()),
        path: Some(path),
        node: node.to_vec(),
        diagnosis,
    };
    (violation, proof)
}

/// The path of a node: `^.spec.list.items`.
fn path(node: &[Step]) -> String {
    let mut path = String::from("^");
    let mut steps = node.iter();
    while let Some(step) = steps.next() {
        match step {
            Step::Key(key) if key == "properties" => {
                if let Some(Step::Key(name)) = steps.next() {
                    path.push('.');
                    path.push_str(name);
                }
            }
            Step::Key(key) => {
                path.push('.');
                path.push_str(key);
            }
            Step::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}
