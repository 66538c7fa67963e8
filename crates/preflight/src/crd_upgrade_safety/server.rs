//! `CRDInvalid`: what the API server refuses in the CRDs of a plan, including new ones, as violations.

use std::sync::Arc;

use super::compare::RuleViolation;
use super::kept_fields;
use super::presets::{crdify, kapp};
use super::rule::{Rule, ViolationText};
use super::rules::RULES;
use crate::Violation;
use crate::objects::definition::CrdRefusal;
use gantry_core::crd::{CrdSides, steps};
use gantry_core::finding::Severity;
use gantry_core::resource::Step;
use gantry_deploy::plan::Change;

/// The rule.
pub const NAME: &str = "CRDInvalid";

/// A change that the server refuses in every upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeRefusal {
    /// The scope changes.
    Scope,
    /// A stored version is removed.
    StoredVersions,
}

/// The rules of the presets that report the same refusal.
pub const TWINS: [(UpgradeRefusal, &[&str]); 2] = [
    (UpgradeRefusal::Scope, &[kapp::NO_SCOPE_CHANGE, crdify::SCOPE]),
    (UpgradeRefusal::StoredVersions, &[kapp::NO_STORED_VERSION_REMOVED, crdify::STORED_VERSION_REMOVAL]),
];

/// Whether findings of the rule are about a stored version that is removed.
pub fn is_of_removed_stored_version(rule: &str) -> bool {
    let (_, rules) = TWINS[1];
    rules.contains(&rule)
}

/// The rules, of gantry and of the tools that it reproduces, whose findings are certain refusals.
pub const REFUSALS: &[&str] = &[
    NAME,
    "KindChanged",
    kapp::NO_SCOPE_CHANGE,
    kapp::NO_STORED_VERSION_REMOVED,
    crdify::SCOPE,
    crdify::STORED_VERSION_REMOVAL,
];

/// A CRD that a deploy would write.
pub struct PlannedCrdWrite {
    /// The index of the change in the plan.
    pub change: usize,
    pub crd: Arc<CrdSides>,
    /// The field manager that applies it.
    pub manager: String,
    /// Whether only the API server validates it: see [`gantry_olm::cluster_extension::SafetyOff`].
    pub is_left_to_server: bool,
}

impl PlannedCrdWrite {
    /// The CRDs that `changes` write, in the order of the plan.
    pub fn all(changes: &[Change], manager: &str) -> Vec<Self> {
        let is_written = |change: &&Change| change.action.applies();
        let crds = changes.iter().enumerate().filter(|(_, change)| change.desired.object.is_crd());
        crds.filter(|(_, change)| is_written(change))
            .filter_map(|(index, change)| {
                let crd = Arc::clone(change.crd()?);
                Some(PlannedCrdWrite { change: index, crd, manager: manager.to_owned(), is_left_to_server: false })
            })
            .collect()
    }
}

/// The rule, from the list of all.
pub(super) fn rule() -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.doc.name == NAME)
}

/// The refusals of a CRD that `manager` creates, or applies over the live one. Without a manager, the CRD is an upgrade
/// from one manifest to another.
pub fn to_violations(refusals: Vec<CrdRefusal>, crd: &CrdSides, manager: Option<&str>) -> Vec<RuleViolation> {
    let Some(rule) = rule() else { return Vec::new() };
    let violation = |CrdRefusal { version, path, at, message }| RuleViolation {
        rule,
        version,
        path,
        node: Vec::new(),
        diagnosis: diagnosis(message, manager.and_then(|manager| kept_fields::next_step(crd, manager, &at)), at),
    };
    refusals.into_iter().map(violation).collect()
}

fn diagnosis(message: String, next: Option<(String, Vec<String>)>, at: Vec<Step>) -> ViolationText {
    let (help, steps) = match next {
        Some((help, steps)) => (help.into(), steps),
        None => ("fix the CRD; otherwise the deploy stops when the server refuses it".into(), Vec::new()),
    };
    ViolationText { message: message.into(), help, steps, at, ..ViolationText::default() }.label("refused".to_owned())
}

/// Removes the `CRDInvalid` violations that another rule reports too for the same CRD, and the `PatternChange`
/// violations of patterns that the server refuses.
pub fn deduplicate(violations: &mut Vec<Violation>) {
    let is_pattern = |at: &[Step]| at.last() == Some(&Step::from("pattern"));
    let refused: Vec<_> = violations
        .iter()
        .filter(|violation| {
            violation.rule == NAME && violation.severity == Severity::Error && is_pattern(&violation.at)
        })
        .map(|violation| (format!("{:?}", violation.subject), violation.at.clone()))
        .collect();
    violations.retain(|violation| {
        let is_it =
            |(subject, at): &(String, Vec<Step>)| *at == violation.at && *subject == format!("{:?}", violation.subject);
        violation.rule != "PatternChange" || !refused.iter().any(is_it)
    });
    let loud: Vec<(String, String)> = violations
        .iter()
        .filter(|violation| violation.severity == Severity::Error || violation.rule != NAME)
        .map(|violation| (format!("{:?}", violation.subject), violation.rule.to_string()))
        .collect();
    violations.retain(|violation| {
        if violation.rule != NAME {
            return true;
        }
        let subject = format!("{:?}", violation.subject);
        let has = |rule: &str| loud.iter().any(|(other, name)| *other == subject && name == rule);
        let at = &violation.at;
        let of = |refusal: UpgradeRefusal| {
            TWINS.iter().find(|(other, _)| *other == refusal).map_or(&[][..], |(_, twins)| *twins)
        };
        let twins: &[&str] = if *at == steps::spec("scope") {
            of(UpgradeRefusal::Scope)
        } else if *at == steps::versions() {
            of(UpgradeRefusal::StoredVersions)
        } else if at.len() == 3 && at.starts_with(&steps::spec("names")) {
            &["KindChanged"]
        } else {
            &[]
        };
        !twins.iter().any(|twin| has(twin))
    });
}
