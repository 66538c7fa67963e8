//! `--baseline`: findings that an earlier report has, too. They are shown as known and decide nothing.
//!
//! Only what is no worse than it was is known. What the earlier report was made of does not matter otherwise: "could not check" is
//! no finding, and so is never known.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CheckReport, CheckStatus, Evidence, Examined, Finding, Fingerprint, Severity, Verdict};

/// What became of a finding since the baseline, in the words of SARIF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BaselineState {
    /// The baseline does not have it.
    New,
    /// The baseline has it, and it is no worse than there.
    Unchanged,
    /// The baseline has a finding of the same rule at the same place, and this one is another or a worse one: it counts like
    /// a new one.
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
    /// Findings that the baseline has and that are no worse: they are known and do not count.
    pub unchanged: usize,
    /// Findings that are another or worse than in the baseline: they count like new ones.
    pub updated: usize,
    /// Findings of the baseline that are gone, of the checks that have come to an end in this run.
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
    /// The findings of these checks, which the report in `file` holds.
    pub fn new(file: String, checks: Vec<CheckReport>) -> Self {
        let of_check = |check: CheckReport| {
            let name = check.name;
            check.findings.into_iter().map(move |finding| (name.clone(), finding))
        };
        Baseline { file, findings: checks.into_iter().flat_map(of_check).collect() }
    }

    /// Marks every finding, and makes those known that are no worse than they were. What is waived stays waived.
    pub fn apply(&self, reports: &mut [CheckReport]) -> BaselineEntry {
        let mut places: BTreeMap<Fingerprint, Vec<usize>> = BTreeMap::new();
        for (at, (_, finding)) in self.findings.iter().enumerate() {
            places.entry(Fingerprint::of_place(finding)).or_default().push(at);
        }
        let mut is_used = vec![false; self.findings.len()];
        // Each finding of the baseline matches one. Those that are as they were choose first.
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
                    if finding.severity != Severity::Waived {
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

/// Whether a finding says what another one of the same rule and place said, and is no worse.
fn is_as_it_was(known: &Finding, now: &Finding) -> bool {
    let is_same = match (&known.fact, &now.fact) {
        (Some(was), Some(is)) => was == is,
        // Messages about objects count them; how many there are is looked at below.
        _ if known.affected.is_some() && now.affected.is_some() => true,
        // Reports before there were facts have nothing else.
        _ => known.message == now.message,
    };
    is_same && !is_worse(known, now)
}

fn is_worse(known: &Finding, now: &Finding) -> bool {
    let was = if known.severity == Severity::Known { known.severity_if_unaccepted() } else { known.severity };
    let is_harmless = matches!(now.verdict, None | Some(Verdict::Equal | Verdict::Widening));
    let affected = |finding: &Finding| finding.affected.as_ref().map_or(0, |affected| affected.count);
    let suffers = |finding: &Finding| finding.evidence.as_ref().map(suffering);
    now.severity < was
        || now.breaks.iter().any(|breaks| !known.breaks.contains(breaks))
        || now.verdict != known.verdict && !is_harmless
        || affected(now) > affected(known)
        || suffers(now) > suffers(known).or(Some((false, 0)))
}

/// Whether anybody could say what suffers, and how much does.
fn suffering(evidence: &Evidence) -> (bool, u64) {
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
    fn what_the_baseline_has_is_known_wherever_its_lines_are() {
        let moved = samples::removed_field("v1", 99);
        let (states, entry) = compare(vec![removed()], vec![moved, samples::removed_field("v2", 24)]);
        assert_eq!(states, [(Severity::Known, BaselineState::Unchanged), (Severity::Error, BaselineState::New)]);
        let expected = BaselineEntry { file: "old.json".into(), new: 1, unchanged: 1, updated: 0, absent: 0 };
        assert_eq!(entry, expected);
    }

    #[test]
    fn what_got_worse_or_is_another_counts() {
        let warning = Finding { severity: Severity::Warning, ..removed() };
        let waived = Finding { severity: Severity::Waived, ..removed() };
        let milder = Finding { breaks: vec![Breaks::Data], ..removed() };
        let narrowing = Finding { verdict: Some(Verdict::Narrowing), ..removed() };
        let other = Finding { fact: Some("removed with all below".into()), ..removed() };
        let affecting = |count| Finding {
            affected: Some(Affected { count, of: 9, unlisted: 0, examples: 1, objects: Vec::new() }),
            ..removed()
        };
        for known in [warning, waived, milder, narrowing, other, affecting(2)] {
            let (states, entry) =
                compare(vec![known.clone()], vec![if known.affected.is_some() { affecting(3) } else { removed() }]);
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
    fn each_finding_of_the_baseline_stands_for_one() {
        let (states, _) = compare(vec![removed()], vec![removed(), removed()]);
        assert_eq!(states, [(Severity::Known, BaselineState::Unchanged), (Severity::Error, BaselineState::New)]);
        // The one that is the same is taken by it, in whatever order they are.
        let other = Finding { fact: Some("other".into()), ..removed() };
        let (states, entry) = compare(vec![removed(), other.clone()], vec![other, removed(), removed()]);
        let [unchanged, new] = [BaselineState::Unchanged, BaselineState::New];
        assert_eq!(states.iter().map(|(_, state)| *state).collect::<Vec<_>>(), [unchanged, unchanged, new]);
        assert_eq!(entry.absent, 0);
    }

    #[test]
    fn reports_without_facts_are_gone_by_their_messages() {
        let old = Finding { fact: None, ..removed() };
        let (states, _) = compare(vec![old.clone()], vec![removed()]);
        assert_eq!(states, [(Severity::Known, BaselineState::Unchanged)]);
        let (states, _) = compare(vec![Finding { message: "something else".into(), ..old }], vec![removed()]);
        assert_eq!(states, [(Severity::Error, BaselineState::Updated)]);
    }

    #[test]
    fn what_is_known_stays_known_in_the_next_report() {
        let known = Finding { severity: Severity::Known, original_severity: Some(Severity::Error), ..removed() };
        let (states, _) = compare(vec![known.clone()], vec![removed()]);
        assert_eq!(states, [(Severity::Known, BaselineState::Unchanged)]);
        let mild = Finding { original_severity: Some(Severity::Warning), ..known };
        let (states, _) = compare(vec![mild], vec![removed()]);
        assert_eq!(states, [(Severity::Error, BaselineState::Updated)]);
    }

    #[test]
    fn what_is_gone_is_counted_where_its_check_came_to_an_end() {
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
