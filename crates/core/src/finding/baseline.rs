//! `--baseline`: findings that an earlier report also has. They are shown as known and do not affect the outcome.
//!
//! A finding is known only if it is not worse than in the earlier report. Only findings of that report matter: "could
//! not check" is not a finding, so it is never known.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CheckReport, CheckStatus, Evidence, Examined, Finding, Fingerprint, Severity, Verdict};

/// How a finding compares with the baseline, in the terms of SARIF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BaselineState {
    /// The baseline does not have it.
    New,
    /// The baseline has it, and it is not worse now.
    Unchanged,
    /// The baseline has a finding of the same rule at the same place, but this one is different or worse. It counts as
    /// new.
    Updated,
}

/// How the findings of a run compare with those of the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BaselineEntry {
    /// The file of the earlier report.
    pub file: String,
    /// Findings that the baseline does not have.
    pub new: usize,
    /// Findings that the baseline has and that are not worse now: they are known and do not count.
    pub unchanged: usize,
    /// Findings that are different or worse than in the baseline: they count as new.
    pub updated: usize,
    /// Findings of the baseline that are gone, from checks that completed in this run.
    pub absent: usize,
}

/// The findings of an earlier report.
#[derive(Debug, Clone, Default)]
pub struct Baseline {
    file: String,
    /// Each with the name of its check.
    findings: Vec<(String, Finding)>,
}

impl Baseline {
    /// A baseline of the findings of these checks from the report in `file`.
    pub fn new(file: String, checks: Vec<CheckReport>) -> Self {
        let of_check = |check: CheckReport| {
            let name = check.name;
            check.findings.into_iter().map(move |finding| (name.clone(), finding))
        };
        Baseline { file, findings: checks.into_iter().flat_map(of_check).collect() }
    }

    /// Sets the baseline state of every finding, and the severity `Known` of findings that are not worse than before.
    /// Waived findings stay waived, and what the API server refuses stays an error.
    pub fn apply(&self, reports: &mut [CheckReport]) -> BaselineEntry {
        let mut places: BTreeMap<Fingerprint, Vec<usize>> = BTreeMap::new();
        for (at, (_, finding)) in self.findings.iter().enumerate() {
            places.entry(Fingerprint::of_place(finding)).or_default().push(at);
        }
        let mut is_used = vec![false; self.findings.len()];
        // Each finding of the baseline matches one finding. Unchanged findings are matched first.
        for state in [BaselineState::Unchanged, BaselineState::Updated] {
            for finding in reports.iter_mut().flat_map(|report| &mut report.findings) {
                if finding.baseline_state.is_some() {
                    continue;
                }
                let there = places.get(&Fingerprint::of_place(finding)).into_iter().flatten().copied();
                let fits = |known: &Finding| state == BaselineState::Updated || is_as_it_was(known, finding);
                let found = there.into_iter().find(|at| !is_used[*at] && fits(&self.findings[*at].1));
                if let Some(at) = found {
                    is_used[at] = true;
                    finding.baseline_state = Some(state);
                }
            }
        }
        let mut entry = BaselineEntry { file: self.file.clone(), new: 0, unchanged: 0, updated: 0, absent: 0 };
        for finding in reports.iter_mut().flat_map(|report| &mut report.findings) {
            match *finding.baseline_state.get_or_insert(BaselineState::New) {
                BaselineState::New => entry.new += 1,
                BaselineState::Updated => entry.updated += 1,
                BaselineState::Unchanged => {
                    entry.unchanged += 1;
                    if finding.severity != Severity::Waived && !finding.refused_by_server {
                        finding.original_severity = Some(finding.severity);
                        finding.severity = Severity::Known;
                    }
                }
            }
        }
        let ended = |name: &str| {
            let is_over = |report: &CheckReport| !matches!(report.status, CheckStatus::Failed | CheckStatus::Skipped);
            reports.iter().any(|report| report.name == name && is_over(report))
        };
        let left = self.findings.iter().zip(&is_used).filter(|((check, _), is_used)| !**is_used && ended(check));
        entry.absent = left.count();
        entry
    }
}

/// Whether a finding is the same as one of the same rule and place in the baseline, and not worse.
fn is_as_it_was(known: &Finding, now: &Finding) -> bool {
    let is_same = match (&known.body.fact, &now.body.fact) {
        (Some(was), Some(is)) => was == is,
        // Messages about objects contain their number, which `is_worse` compares.
        _ if known.body.affected.is_some() && now.body.affected.is_some() => true,
        // Reports of older versions have no facts.
        _ => known.body.message == now.body.message,
    };
    is_same && !is_worse(known, now)
}

fn is_worse(known: &Finding, now: &Finding) -> bool {
    let was = if known.severity == Severity::Known { known.severity_if_unaccepted() } else { known.severity };
    let is_harmless = matches!(now.body.verdict, None | Some(Verdict::Equal | Verdict::Widening));
    let affected = |finding: &Finding| finding.body.affected.as_ref().map_or(0, |affected| affected.count);
    let impact = |finding: &Finding| finding.body.evidence.as_ref().map(impact);
    now.severity < was
        || now.body.breaks.iter().any(|breaks| !known.body.breaks.contains(breaks))
        || now.body.verdict != known.body.verdict && !is_harmless
        || affected(now) > affected(known)
        || impact(now) > impact(known).or(Some((false, 0)))
}

/// Whether it is unknown what the change affects, and the number of affected objects and manifests.
fn impact(evidence: &Evidence) -> (bool, u64) {
    (evidence.examined == Examined::No, evidence.affected_objects + evidence.affected_manifests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Affected, Breaks, samples};

    fn compare(known: Vec<Finding>, now: Vec<Finding>) -> (Vec<(Severity, BaselineState)>, BaselineEntry) {
        let check = |findings| samples::check("CRDUpgradeSafety", CheckStatus::Blocked, findings);
        let baseline = Baseline::new("old.json".into(), vec![check(known)]);
        let mut reports = [check(now)];
        let entry = baseline.apply(&mut reports);
        let state = |finding: &Finding| (finding.severity, finding.baseline_state.expect("it is marked"));
        (reports[0].findings.iter().map(state).collect(), entry)
    }

    fn removed() -> Finding {
        samples::removed_field("v1", 24)
    }

    #[test]
    fn a_finding_of_the_baseline_is_known_at_any_line() {
        let moved = samples::removed_field("v1", 99);
        let (states, entry) = compare(vec![removed()], vec![moved, samples::removed_field("v2", 24)]);
        assert_eq!(states, [(Severity::Known, BaselineState::Unchanged), (Severity::Error, BaselineState::New)]);
        let expected = BaselineEntry { file: "old.json".into(), new: 1, unchanged: 1, updated: 0, absent: 0 };
        assert_eq!(entry, expected);
    }

    #[test]
    fn a_finding_that_is_worse_than_in_the_baseline_or_not_in_it_counts() {
        let warning = Finding { severity: Severity::Warning, ..removed() };
        let waived = Finding { severity: Severity::Waived, ..removed() };
        let milder = removed().with(|body| body.breaks = vec![Breaks::Data]);
        let narrowing = removed().with(|body| body.verdict = Some(Verdict::Narrowing));
        let other = removed().with(|body| body.fact = Some("removed with all below".into()));
        let affecting = |count| {
            removed().with(|body| {
                body.affected = Some(Affected { count, of: 9, unlisted: 0, examples: 1, objects: Vec::new() })
            })
        };
        for known in [warning, waived, milder, narrowing, other, affecting(2)] {
            let (states, entry) = compare(
                vec![known.clone()],
                vec![if known.body.affected.is_some() { affecting(3) } else { removed() }],
            );
            assert_eq!(states, [(Severity::Error, BaselineState::Updated)], "{known:?}");
            assert_eq!((entry.updated, entry.absent), (1, 0));
        }
        // Better is not worse.
        let (states, _) = compare(vec![affecting(3)], vec![affecting(2)]);
        assert_eq!(states, [(Severity::Known, BaselineState::Unchanged)]);
        let (states, _) = compare(vec![removed()], vec![Finding { severity: Severity::Warning, ..removed() }]);
        assert_eq!(states, [(Severity::Known, BaselineState::Unchanged)]);
    }

    #[test]
    fn each_finding_of_the_baseline_matches_one() {
        let (states, _) = compare(vec![removed()], vec![removed(), removed()]);
        assert_eq!(states, [(Severity::Known, BaselineState::Unchanged), (Severity::Error, BaselineState::New)]);
        // An identical finding is matched first, in any order.
        let other = removed().with(|body| body.fact = Some("other".into()));
        let (states, entry) = compare(vec![removed(), other.clone()], vec![other, removed(), removed()]);
        let [unchanged, new] = [BaselineState::Unchanged, BaselineState::New];
        assert_eq!(states.iter().map(|(_, state)| *state).collect::<Vec<_>>(), [unchanged, unchanged, new]);
        assert_eq!(entry.absent, 0);
    }

    #[test]
    fn findings_without_facts_are_compared_by_message() {
        let old = removed().with(|body| body.fact = None);
        let (states, _) = compare(vec![old.clone()], vec![removed()]);
        assert_eq!(states, [(Severity::Known, BaselineState::Unchanged)]);
        let (states, _) = compare(vec![old.with(|body| body.message = "something else".into())], vec![removed()]);
        assert_eq!(states, [(Severity::Error, BaselineState::Updated)]);
    }

    #[test]
    fn a_known_finding_stays_known_in_the_next_report() {
        let known = Finding { severity: Severity::Known, original_severity: Some(Severity::Error), ..removed() };
        let (states, _) = compare(vec![known.clone()], vec![removed()]);
        assert_eq!(states, [(Severity::Known, BaselineState::Unchanged)]);
        let mild = Finding { original_severity: Some(Severity::Warning), ..known };
        let (states, _) = compare(vec![mild], vec![removed()]);
        assert_eq!(states, [(Severity::Error, BaselineState::Updated)]);
    }

    #[test]
    fn absent_findings_are_counted_if_their_check_completed() {
        assert_eq!(compare(vec![removed(), removed()], vec![removed()]).1.absent, 1);
        let check = |status, findings| samples::check("CRDUpgradeSafety", status, findings);
        let baseline = Baseline::new("old.json".into(), vec![check(CheckStatus::Blocked, vec![removed()])]);
        assert_eq!(baseline.apply(&mut [check(CheckStatus::Failed, Vec::new())]).absent, 0);
        assert_eq!(baseline.apply(&mut []).absent, 0);
        assert_eq!(baseline.apply(&mut [check(CheckStatus::Passed, Vec::new())]).absent, 1);
    }

    #[test]
    fn a_waived_finding_stays_waived() {
        let waived = Finding { severity: Severity::Waived, original_severity: Some(Severity::Error), ..removed() };
        let (states, _) = compare(vec![removed()], vec![waived]);
        assert_eq!(states, [(Severity::Waived, BaselineState::Unchanged)]);
    }
}
