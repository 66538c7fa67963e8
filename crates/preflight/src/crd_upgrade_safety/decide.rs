//! The central decision: the severity of a violation, from its rule's weight, what is proven, and the preset.
//!
//! | [weight](Weight) | proven harmless | proven to break | undecided |
//! |---|---|---|---|
//! | forbidden | error; semantic: info | error (semantic, behaviour only: warning) | error; semantic: `failMode` |
//! | unknown | info | error (semantic, behaviour only: warning) | `failMode` |
//! | beyond | info | the rule's own severity; under semantic that of the finding or rule | |
//!
//! What has [an effect beyond the proof](BeyondProof) has at least the severity of that effect.

use super::FailMode;
use super::compare::RuleViolation;
use super::options::{CrdUpgradeOptions, Preset};
#[cfg(doc)]
use super::rule::BeyondProof;
use super::rule::{Rule, ViolationText, Weight};
use crate::proofs::ChangeProof;
use gantry_core::finding::{Breaks, Severity, Verdict};

/// The severities of a violation, before the enforcement of single rules is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleSeverities {
    /// Under the configured preset.
    pub configured: Severity,
    /// Under `preset: semantic`.
    pub semantic: Severity,
}

/// The severities of a violation, with what is proven about it.
pub fn severities_by_preset(
    violation: &RuleViolation,
    proof: Option<&ChangeProof>,
    options: &CrdUpgradeOptions,
) -> RuleSeverities {
    let RuleViolation { rule, path, diagnosis, .. } = violation;
    let severity = |is_semantic| severity(rule, diagnosis, path.is_none(), proof, options, is_semantic);
    let semantic = severity(true);
    let is_semantic = matches!(options.preset, Preset::Semantic | Preset::Evidence);
    RuleSeverities { configured: if is_semantic { semantic } else { severity(false) }, semantic }
}

fn severity(
    rule: &Rule,
    diagnosis: &ViolationText,
    of_whole_crd: bool,
    proof: Option<&ChangeProof>,
    options: &CrdUpgradeOptions,
    is_semantic: bool,
) -> Severity {
    let undecided = match options.fail_mode {
        FailMode::Closed => Severity::Error,
        FailMode::Open => Severity::Info,
    };
    let verdict = decided(proof.map(|proof| proof.verdict));
    // A verdict from the keyword alone counts only under the semantic presets; the documentation has no such notion.
    let verdict = if is_semantic { verdict.or(decided(diagnosis.verdict)) } else { verdict };
    let proven = |verdict| match verdict {
        Verdict::Equal | Verdict::Widening => Severity::Info,
        _ if is_semantic && proof.is_some_and(|proof| proof.breaks == [Breaks::Behaviour]) => Severity::Warning,
        _ => Severity::Error,
    };
    let decided = match (rule.weight, verdict) {
        (Weight::Beyond { .. }, Some(Verdict::Equal | Verdict::Widening)) => Severity::Info,
        (Weight::Beyond { semantic: severity }, _) if is_semantic => diagnosis.semantic.unwrap_or(severity),
        (Weight::Beyond { .. }, _) => rule.doc.severity(),
        // Violations about whole CRDs (scope, stored versions) need no proof.
        (Weight::Forbidden, _) if of_whole_crd || !is_semantic => Severity::Error,
        (Weight::Unknown | Weight::Forbidden, Some(verdict)) => proven(verdict),
        (Weight::Forbidden, None)
            if rule.doc.breaks() == [Breaks::Behaviour]
                && proof.is_none_or(|proof| proof.breaks.iter().all(|who| *who == Breaks::Behaviour)) =>
        {
            Severity::Warning
        }
        (Weight::Unknown | Weight::Forbidden, None) => undecided,
    };
    diagnosis.beyond_proof.map_or(decided, |effect| decided.min(effect.least_severity()))
}

fn decided(verdict: Option<Verdict>) -> Option<Verdict> {
    verdict.filter(|verdict| *verdict != Verdict::Undecided)
}

/// Applies `rules: [{name, enforcement}]` to a severity; `None` if the rule is switched off.
///
/// `enforcement: error` raises only what may break something; what is proven harmless keeps its severity.
pub fn enforce(severity: Severity, proven_harmless: bool, rule: &str, options: &CrdUpgradeOptions) -> Option<Severity> {
    match options.find_enforced(rule).map(|entry| entry.enforcement) {
        None => Some(severity),
        Some(None) => None,
        Some(Some(Severity::Error)) if proven_harmless => Some(severity),
        Some(Some(Severity::Error)) => Some(Severity::Error),
        Some(Some(loudest)) => Some(severity.max(loudest)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::RULES;
    use super::*;

    fn violation(name: &str, diagnosis: ViolationText, path: Option<&str>) -> RuleViolation {
        let rule = RULES.iter().find(|rule| rule.doc.name == name).expect("a rule");
        RuleViolation { rule, version: None, path: path.map(str::to_owned), node: Vec::new(), diagnosis }
    }

    fn proof(verdict: Verdict) -> ChangeProof {
        let breaks = if verdict == Verdict::Equal { vec![] } else { vec![Breaks::Writers] };
        ChangeProof { verdict, reason: None, breaks, witnesses: Vec::new() }
    }

    /// The severity of a rule about a node: unproven, and for each verdict.
    fn severities(name: &str, preset: Preset, fail_mode: FailMode) -> Vec<Severity> {
        let options = CrdUpgradeOptions { preset, fail_mode, ..CrdUpgradeOptions::default() };
        let of = |proof: Option<ChangeProof>| {
            severities_by_preset(&violation(name, ViolationText::default(), Some("^")), proof.as_ref(), &options)
                .configured
        };
        let verdicts = [Verdict::Undecided, Verdict::Equal, Verdict::Widening, Verdict::Narrowing, Verdict::DataLoss];
        std::iter::once(of(None)).chain(verdicts.map(|verdict| of(Some(proof(verdict))))).collect()
    }

    #[test]
    fn fail_mode_decides_only_what_is_undecided() {
        use Severity::{Error, Info};
        for preset in [Preset::Documented, Preset::Semantic] {
            let closed = severities("PatternChange", preset, FailMode::Closed);
            assert_eq!(closed, [Error, Error, Info, Info, Error, Error]);
            let open = severities("PatternChange", preset, FailMode::Open);
            assert_eq!(open, [Info, Info, Info, Info, Error, Error]);
        }
        assert_eq!(severities("NoEnumAdded", Preset::Documented, FailMode::Open), [Error; 6]);
        assert_eq!(
            severities("NoEnumAdded", Preset::Semantic, FailMode::Closed),
            [Error, Error, Info, Info, Error, Error]
        );
    }

    #[test]
    fn changed_behaviour_alone_is_a_warning_under_semantic() {
        let behaviour = ChangeProof { breaks: vec![Breaks::Behaviour], ..proof(Verdict::Narrowing) };
        for (preset, expected) in [(Preset::Documented, Severity::Error), (Preset::Semantic, Severity::Warning)] {
            let options = CrdUpgradeOptions { preset, ..CrdUpgradeOptions::default() };
            let of_node = violation("NoDefaultAdded", ViolationText::default(), Some("^"));
            assert_eq!(severities_by_preset(&of_node, Some(&behaviour), &options).configured, expected, "{preset:?}");
        }
    }

    #[test]
    fn the_verdict_of_a_keyword_counts_under_semantic_until_something_is_proven() {
        let diagnosis = ViolationText { verdict: Some(Verdict::Widening), ..ViolationText::default() };
        let of_node = violation("FormatChange", diagnosis, Some("^"));
        let of = |preset, proof: Option<&ChangeProof>| {
            severities_by_preset(&of_node, proof, &CrdUpgradeOptions { preset, ..CrdUpgradeOptions::default() })
                .configured
        };
        assert_eq!(of(Preset::Semantic, None), Severity::Info);
        assert_eq!(of(Preset::Documented, None), Severity::Error);
        assert_eq!(of(Preset::Semantic, Some(&proof(Verdict::Narrowing))), Severity::Error);
    }

    #[test]
    fn a_violation_about_a_whole_crd_has_the_severity_of_its_rule() {
        for (name, documented, semantic) in [
            // The classic document of OLM: "not allow a serving version of a CRD to be removed right away".
            ("ServedVersionRemoved", Severity::Error, Severity::Error),
            ("SubresourceRemoved", Severity::Warning, Severity::Error),
            ("VersionUnserved", Severity::Warning, Severity::Error),
            ("UnservedVersionRemoved", Severity::Warning, Severity::Warning),
            ("VersionDeprecated", Severity::Info, Severity::Info),
            ("KindChanged", Severity::Error, Severity::Error),
        ] {
            for (preset, expected) in [(Preset::Documented, documented), (Preset::Semantic, semantic)] {
                let options = CrdUpgradeOptions { preset, fail_mode: FailMode::Open, ..CrdUpgradeOptions::default() };
                let of_crd = violation(name, ViolationText::default(), None);
                assert_eq!(severities_by_preset(&of_crd, None, &options).configured, expected, "{name} {preset:?}");
            }
        }
    }

    #[test]
    fn enforcement_lowers_and_raises_but_does_not_raise_what_is_proven_harmless() {
        let options = |enforcement| {
            let entry = super::super::options::Enforced { pattern: "Pattern*".into(), enforcement, at: None };
            CrdUpgradeOptions { rules: vec![entry], ..CrdUpgradeOptions::default() }
        };
        let (error, warn, none) = (Some(Severity::Error), Some(Severity::Warning), None);
        for (severity, harmless, enforcement, expected) in [
            (Severity::Info, false, error, error),
            (Severity::Info, true, error, Some(Severity::Info)),
            (Severity::Error, false, warn, warn),
            (Severity::Info, false, warn, Some(Severity::Info)),
            (Severity::Error, false, none, None),
        ] {
            assert_eq!(enforce(severity, harmless, "PatternChange", &options(enforcement)), expected);
            assert_eq!(enforce(severity, harmless, "FormatChange", &options(enforcement)), Some(severity));
        }
    }
}
