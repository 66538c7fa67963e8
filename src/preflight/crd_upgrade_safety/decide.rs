//! The central decision: a rule's weight, what is proven, and the preset make a severity.
//!
//! | weight of the rule | proven harmless | proven to break | undecided |
//! |---|---|---|---|
//! | the documents forbid it | error; semantic: info | error (semantic, behaviour only: warning) | error; semantic: `failMode` |
//! | the documents call it unknown | info | error (semantic, behaviour only: warning) | `failMode` |
//! | the documents do not speak of it | the rule's own severity, under semantic its semantic one | | |

use super::FailMode;
use super::options::{Options, Preset};
use super::prover::Proof;
use super::rules::{Rule, Said, Weight};
use crate::report::{Breaks, Severity, Verdict};

/// How loud a violation is, before the enforcement of single rules.
pub fn severity(rule: &Rule, said: &Said, of_whole_crd: bool, proof: Option<&Proof>, options: &Options) -> Severity {
    let semantic = options.preset == Preset::Semantic;
    let undecided = match options.fail_mode {
        FailMode::Closed => Severity::Error,
        FailMode::Open => Severity::Info,
    };
    let verdict = decided(proof.map(|proof| proof.verdict));
    // What the keyword alone decides counts where objects are the measure; the documents know no such thing.
    let verdict = if semantic { verdict.or(decided(said.verdict)) } else { verdict };
    let proven = |verdict| match verdict {
        Verdict::Equal | Verdict::Widening => Severity::Info,
        _ if semantic && proof.is_some_and(|proof| proof.breaks == [Breaks::Behaviour]) => Severity::Warning,
        _ => Severity::Error,
    };
    match (rule.weight, verdict) {
        (Weight::Beyond { semantic: severity }, _) if semantic => severity,
        (Weight::Beyond { .. }, _) => rule.doc.severity,
        // No proof is asked about whole CRDs: scope and stored versions break by themselves.
        (Weight::Forbidden, _) if of_whole_crd || !semantic => Severity::Error,
        (Weight::Unknown | Weight::Forbidden, Some(verdict)) => proven(verdict),
        (Weight::Forbidden, None) if rule.doc.breaks == [Breaks::Behaviour] => Severity::Warning,
        (Weight::Unknown | Weight::Forbidden, None) => undecided,
    }
}

fn decided(verdict: Option<Verdict>) -> Option<Verdict> {
    verdict.filter(|verdict| *verdict != Verdict::Undecided)
}

/// What remains of a severity under `rules: [{name, enforcement}]`; `None` where the rule is switched off.
///
/// A rule that is made an error is one for what may break; what is proven harmless stays a piece of information.
pub fn enforce(severity: Severity, proven_harmless: bool, rule: &str, options: &Options) -> Option<Severity> {
    match options.enforcement(rule) {
        None => Some(severity),
        Some(None) => None,
        Some(Some(Severity::Error)) if proven_harmless => Some(severity),
        Some(Some(Severity::Error)) => Some(Severity::Error),
        Some(Some(loudest)) => Some(severity.max(loudest)),
    }
}
