//! Runs the enabled checks and turns what they say into findings: placed in the manifests, weighed by `mode`, waived.

use std::collections::BTreeMap;

use futures::future::join_all;

use super::registry::{self, CHECKS};
use super::waive::Waivers;
use super::{Answer, Check, Context, CouldNotCheck, Violation};
use crate::manifest::Spans;
use crate::plan::Plan;
use crate::problem::Problem;
use crate::report::{Affected, CheckReport, CheckStatus, Finding, Mode, Severity, Unchecked};
use crate::target::Target;
use crate::ui::progress::Stage;

/// A check that takes part in this run.
pub struct Enabled {
    pub name: &'static str,
    pub mode: Mode,
    pub check: Box<dyn Check>,
}

/// What a run of the checks depends on beside the plan.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    pub warn_only: bool,
    pub redact: bool,
    pub field_manager: &'a str,
    pub force_conflicts: bool,
    pub waivers: Waivers<'a>,
    pub stage: &'a Stage,
}

/// Runs all checks, whatever each of them finds, and answers in their order; and what is to be said of the waivers.
pub async fn run(
    checks: &[Enabled],
    plan: &Plan,
    target: &Target,
    options: RunOptions<'_>,
) -> (Vec<CheckReport>, Vec<Problem>) {
    let RunOptions { warn_only, redact, field_manager, force_conflicts, waivers, stage } = options;
    let context = || Context { plan, target, field_manager, force_conflicts, redact, stage };
    let answers = join_all(checks.iter().map(|enabled| enabled.check.run(context()))).await;
    let mut reports: Vec<CheckReport> =
        checks.iter().zip(answers).map(|(enabled, answer)| weigh(enabled, answer, plan, warn_only)).collect();
    let problems = waive(&mut reports, waivers);
    if redact {
        reports.iter_mut().flat_map(|report| &mut report.findings).for_each(Finding::redact);
    }
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
            report.status = status(&report.findings, !report.unchecked.is_empty());
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
    let (message, unchecked, findings) = match answer {
        Ok(Answer::Checked { violations, unchecked }) => (None, unchecked, place(violations, plan, mode)),
        Ok(Answer::Skipped(reason)) => (Some(reason), Vec::new(), Vec::new()),
        Err(error) => (None, vec![error], Vec::new()),
    };
    let status = if message.is_some() { CheckStatus::Skipped } else { status(&findings, !unchecked.is_empty()) };
    let unchecked = unchecked.into_iter().map(|CouldNotCheck { message, help }| Unchecked { message, help }).collect();
    CheckReport { name: enabled.name.to_owned(), mode, status, message, unchecked, findings }
}

/// Finds line and column of each violation. A manifest is read again only once, however many violations it has.
fn place(violations: Vec<Violation>, plan: &Plan, mode: Mode) -> Vec<Finding> {
    let mut by_change: BTreeMap<usize, Vec<Violation>> = BTreeMap::new();
    for violation in violations {
        by_change.entry(violation.change).or_default().push(violation);
    }
    let mut groups: Vec<(usize, Vec<Violation>)> = by_change.into_iter().collect();
    // They may be many, and are moved: a copy would double what they take.
    let affected: Vec<Option<Affected>> =
        groups.iter_mut().flat_map(|(_, violations)| violations).map(|violation| violation.affected.take()).collect();
    let placed = crate::plan::in_parallel(&groups, |(index, violations)| {
        let desired = plan.manifest(*index);
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
                affected: None,
                help: violation.help.clone(),
                waived: None,
            })
            .collect::<Vec<_>>()
    });
    let findings = placed.into_iter().flatten().zip(affected);
    findings.map(|(finding, affected)| Finding { affected, ..finding }).collect()
}
