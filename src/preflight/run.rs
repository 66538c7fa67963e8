//! Runs the enabled checks and turns what they say into findings: placed in the manifests, weighed by `mode`, waived.

use std::collections::BTreeMap;

use futures::future::join_all;

use super::registry::{self, CHECKS};
use super::waive::Waivers;
use super::{Answer, Check, Context, CouldNotCheck, Violation};
use crate::manifest::Spans;
use crate::plan::Plan;
use crate::problem::Problem;
use crate::report::{CheckReport, CheckStatus, Finding, Mode, Severity};
use crate::target::Target;

/// A check that takes part in this run.
pub struct Enabled {
    pub name: &'static str,
    pub mode: Mode,
    pub check: Box<dyn Check>,
}

/// Runs all checks, whatever each of them finds, and answers in their order; and what is to be said of the waivers.
pub async fn run(
    checks: &[Enabled],
    plan: &Plan,
    target: &Target,
    warn_only: bool,
    waivers: Waivers<'_>,
) -> (Vec<CheckReport>, Vec<Problem>) {
    let answers = join_all(checks.iter().map(|enabled| enabled.check.run(Context { plan, target }))).await;
    let mut reports: Vec<CheckReport> =
        checks.iter().zip(answers).map(|(enabled, answer)| weigh(enabled, answer, plan, warn_only)).collect();
    let problems = waive(&mut reports, waivers);
    (reports, problems)
}

fn waive(reports: &mut [CheckReport], waivers: Waivers<'_>) -> Vec<Problem> {
    let all: Vec<&str> = CHECKS.iter().flat_map(|check| (check.names)()).collect();
    let ran = reports.iter().filter(|report| !matches!(report.status, CheckStatus::Failed | CheckStatus::Skipped));
    let ran: Vec<&str> =
        ran.filter_map(|report| registry::find(&report.name)).flat_map(|check| (check.names)()).collect();
    let problems = waivers.apply(reports, &all, &ran);
    for report in reports {
        // What blocked or warned may do so no more.
        if matches!(report.status, CheckStatus::Blocked | CheckStatus::Warned) {
            report.status = status(&report.findings, report.message.is_some());
        }
    }
    problems
}

/// What findings amount to, together with whether something could not be checked.
fn status(findings: &[Finding], unchecked: bool) -> CheckStatus {
    match findings.iter().map(|finding| finding.severity).min() {
        Some(Severity::Error) => CheckStatus::Blocked,
        _ if unchecked => CheckStatus::Failed,
        Some(Severity::Warning) => CheckStatus::Warned,
        _ => CheckStatus::Passed,
    }
}

fn weigh(enabled: &Enabled, answer: Result<Answer, CouldNotCheck>, plan: &Plan, warn_only: bool) -> CheckReport {
    let mode = if warn_only { Mode::Warn } else { enabled.mode };
    let report =
        |status, message, findings| CheckReport { name: enabled.name.to_owned(), mode, status, message, findings };
    match answer {
        Ok(Answer::Checked { violations, unchecked }) => {
            let findings = place(violations, plan, mode);
            let status = status(&findings, !unchecked.is_empty());
            let reasons: Vec<String> = unchecked.into_iter().map(reason).collect();
            report(status, (!reasons.is_empty()).then(|| reasons.join("\n")), findings)
        }
        Ok(Answer::Skipped(reason)) => report(CheckStatus::Skipped, Some(reason), Vec::new()),
        Err(error) => report(CheckStatus::Failed, Some(reason(error)), Vec::new()),
    }
}

fn reason(CouldNotCheck { message, help }: CouldNotCheck) -> String {
    help.map_or_else(|| message.clone(), |help| format!("{message}: {help}"))
}

/// Finds line and column of each violation. A manifest is read again only once, however many violations it has.
fn place(violations: Vec<Violation>, plan: &Plan, mode: Mode) -> Vec<Finding> {
    let mut by_change: BTreeMap<usize, Vec<Violation>> = BTreeMap::new();
    for violation in violations {
        by_change.entry(violation.change).or_default().push(violation);
    }
    let groups: Vec<(usize, Vec<Violation>)> = by_change.into_iter().collect();
    let placed = crate::plan::in_parallel(&groups, |(index, violations)| {
        let desired = &plan.changes[*index].desired;
        let spans = Spans::of(&desired.origin);
        violations
            .iter()
            .map(|violation| Finding {
                rule: violation.rule.to_owned(),
                severity: match (violation.severity, mode) {
                    (Severity::Error, Mode::Warn) => Severity::Warning,
                    (severity, _) => severity,
                },
                object: desired.object.clone(),
                source: Some(spans.locate(&violation.at).location.into()),
                label: violation.label.clone(),
                version: violation.version.clone(),
                path: violation.path.clone(),
                message: violation.message.clone(),
                documented: violation.documented.clone(),
                verdict: violation.verdict,
                breaks: violation.breaks.clone(),
                witnesses: violation.witnesses.clone(),
                help: violation.help.clone(),
                waived: None,
            })
            .collect::<Vec<_>>()
    });
    placed.into_iter().flatten().collect()
}
