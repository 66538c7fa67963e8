//! Runs the enabled checks and turns what they say into findings: placed in the manifests, weighed by `mode`.

use std::collections::BTreeMap;

use futures::future::join_all;

use super::{Answer, Check, Context, CouldNotCheck, Violation};
use crate::manifest::Spans;
use crate::plan::Plan;
use crate::report::{CheckReport, CheckStatus, Finding, Mode, Severity};
use crate::target::Target;

/// A check that takes part in this run.
pub struct Enabled {
    pub name: &'static str,
    pub mode: Mode,
    pub check: Box<dyn Check>,
}

/// Runs all checks, whatever each of them finds, and answers in their order.
pub async fn run(checks: &[Enabled], plan: &Plan, target: &Target, warn_only: bool) -> Vec<CheckReport> {
    let answers = join_all(checks.iter().map(|enabled| enabled.check.run(Context { plan, target }))).await;
    checks.iter().zip(answers).map(|(enabled, answer)| weigh(enabled, answer, plan, warn_only)).collect()
}

fn weigh(enabled: &Enabled, answer: Result<Answer, CouldNotCheck>, plan: &Plan, warn_only: bool) -> CheckReport {
    let mode = if warn_only { Mode::Warn } else { enabled.mode };
    let report =
        |status, message, findings| CheckReport { name: enabled.name.to_owned(), mode, status, message, findings };
    match answer {
        Ok(Answer::Checked(violations)) => {
            let findings = place(violations, plan, mode);
            let status = match findings.iter().map(|finding| finding.severity).min() {
                Some(Severity::Error) => CheckStatus::Blocked,
                Some(Severity::Warning) => CheckStatus::Warned,
                _ => CheckStatus::Passed,
            };
            report(status, None, findings)
        }
        Ok(Answer::Skipped(reason)) => report(CheckStatus::Skipped, Some(reason), Vec::new()),
        Err(CouldNotCheck { message, help }) => {
            let message = help.map_or(message.clone(), |help| format!("{message}; {help}"));
            report(CheckStatus::Failed, Some(message), Vec::new())
        }
    }
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
            })
            .collect::<Vec<_>>()
    });
    placed.into_iter().flatten().collect()
}
