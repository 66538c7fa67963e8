//! The outcome of a run: a pure function of its results.
//!
//! [`before_writing`] decides whether anything is written, once the report is complete. Nothing after it changes the
//! verdict of the checks. [`after_writing`] derives the outcome from what was written.

use super::host::Exit;
use gantry_cluster::FieldConflict;
use gantry_core::finding::{CheckReport, CheckStatus, Finding, Severity, Source};
use gantry_core::options::FailOn;
use gantry_core::problem::{Error, Location, Problem};
use gantry_core::text;
use gantry_deploy::apply::Applied;
use gantry_deploy::apply::delete::DeletionResults;
use gantry_deploy::plan::conflicts::{self, ChangeConflicts};
use gantry_deploy::plan::{Change, Plan};
use gantry_preflight::registry;
use gantry_report::{ErrorEntry, Outcome};

/// What would stop a deploy at its first object or half way, and is not a finding.
#[derive(Default)]
pub struct DeployForecast {
    pub conflicts: Vec<ChangeConflicts>,
    pub refusals: Vec<Problem>,
    /// Annotations that a deploy cannot honour: see [`gantry_deploy::plan::strategy`].
    pub not_honoured: Vec<Problem>,
    /// A deploy would delete more members of the app than its limit allows.
    pub too_many: Vec<Problem>,
    /// Members of the app that could not be read.
    pub unread_members: Vec<Problem>,
    /// Objects of other tools that the deploy would change: see [`gantry_deploy::plan::owner`].
    pub owned: Vec<Problem>,
}

/// The settings that the outcome depends on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms {
    /// A deploy, and no dry run.
    pub writes: bool,
    pub force_conflicts: bool,
    pub fail_on: FailOn,
    pub redact: bool,
}

/// The verdict before anything is written.
#[derive(Debug, PartialEq, Eq)]
pub struct PlanVerdict {
    pub outcome: Outcome,
    /// The exit code, if the run ends here.
    pub exit: Exit,
    /// Why it cannot continue, apart from findings.
    pub errors: Vec<ErrorEntry>,
    /// Notices about field conflicts that do not stop the run.
    pub notices: Vec<Problem>,
    /// The deploy continues and writes.
    pub goes_on: bool,
}

/// Derives the verdict from the checks and from what a deploy would meet.
pub fn before_writing(checks: &[CheckReport], plan: &Plan, foreseen: &DeployForecast, terms: Terms) -> PlanVerdict {
    let has = |status| checks.iter().any(|check| check.status == status);
    let conflicts = || of_plan(plan, foreseen.conflicts.iter());
    let untold =
        || of_plan(plan, foreseen.conflicts.iter().filter(|found| !is_reported(checks, &plan.changes[found.change])));
    let notices = |conflicts: &[_]| match terms.force_conflicts {
        true => conflicts::explain_taken(conflicts),
        false => conflicts::explain_ahead(conflicts),
    };
    let ends =
        |outcome, exit, errors| PlanVerdict { outcome, exit, errors, notices: notices(&untold()), goes_on: false };

    // Blocked takes precedence over failed: what blocks is certain, and has to be fixed first.
    let mut blocks =
        foreseen.not_honoured.iter().chain(&foreseen.owned).chain(&foreseen.too_many).map(ErrorEntry::from).peekable();
    if has(CheckStatus::Blocked) || blocks.peek().is_some() {
        return ends(Outcome::Blocked, Exit::Blocked, blocks.collect());
    }
    if terms.fail_on == FailOn::Warning && has(CheckStatus::Warned) {
        let findings = checks.iter().flat_map(|check| &check.findings);
        let number = findings.filter(|finding| finding.severity == Severity::Warning).count();
        let verb = if number == 1 { "blocks" } else { "block" };
        let problem = Problem::new(format!("{} {verb}, because --fail-on is warning", text::count(number, "warning")))
            .help("fix what is reported, or accept it with a waiver");
        return ends(Outcome::Blocked, Exit::Blocked, vec![ErrorEntry::from(&problem)]);
    }
    // The preset of another tool may call it a warning; the server would still refuse the request.
    let refused = foretold_refusals(checks);
    if !refused.is_empty() {
        let errors = hidden(refused.iter().map(ErrorEntry::from).collect(), terms.redact);
        return ends(Outcome::Blocked, Exit::Blocked, errors);
    }
    // A check may report the same as a warning only; the server would still refuse the request.
    let conflicts = if terms.force_conflicts { Vec::new() } else { conflicts::explain(&conflicts()) };
    let not_served = plan.require_served_kinds().err();
    let (not_served, unanswered) = match &not_served {
        Some(Error::Blocked(problems)) => (&problems[..], &[][..]),
        Some(error) => (&[][..], error.problems()),
        None => Default::default(),
    };
    let unread = if terms.writes { plan.unread() } else { plan.unread_by_check() };
    let open = || foreseen.unread_members.iter().chain(unanswered);
    let with_unread = |mut errors: Vec<ErrorEntry>| {
        errors.extend(unread.iter().map(ErrorEntry::from));
        errors
    };
    let mut refused = conflicts.iter().chain(&foreseen.refusals).chain(not_served).peekable();
    if refused.peek().is_some() {
        // Without --force-conflicts, conflicts are among these errors.
        let notices = if terms.force_conflicts { notices(&untold()) } else { Vec::new() };
        let errors = with_unread(hidden(refused.chain(open()).map(ErrorEntry::from).collect(), terms.redact));
        return PlanVerdict { outcome: Outcome::Blocked, exit: Exit::Blocked, errors, notices, goes_on: false };
    }
    if has(CheckStatus::Failed) {
        return ends(Outcome::Failed, Exit::Failed, Vec::new());
    }
    let errors = with_unread(hidden(open().map(ErrorEntry::from).collect(), terms.redact));
    if !errors.is_empty() {
        return ends(Outcome::Failed, Exit::Failed, errors);
    }
    let notices = if terms.force_conflicts { notices(&untold()) } else { Vec::new() };
    let goes_on = terms.writes && plan.is_written();
    let outcome = if terms.writes && !goes_on { Outcome::Unchanged } else { Outcome::Planned };
    PlanVerdict { outcome, exit: Exit::Success, errors: Vec::new(), notices, goes_on }
}

/// Derives the outcome, the exit code and the errors from what was written.
pub fn after_writing(applied: &Applied, removed: &DeletionResults, redact: bool) -> (Outcome, Exit, Vec<ErrorEntry>) {
    let failed = applied.problems.iter().chain(&removed.problems);
    let is_failed = applied.interrupted || failed.clone().next().is_some();
    let mut errors =
        hidden(failed.chain(&applied.unready).chain(&removed.stuck).map(ErrorEntry::from).collect(), redact);
    if applied.interrupted {
        errors.push((&Problem::new("interrupted").help("run the same command again to continue")).into());
    }
    match errors.is_empty() {
        true => (Outcome::Deployed, Exit::Success, errors),
        false if is_failed => (Outcome::Failed, Exit::Failed, errors),
        false => (Outcome::Failed, Exit::NotReady, errors),
    }
}

/// The refusals that checks predict without an error, because they reproduce the verdict of another tool.
fn foretold_refusals(checks: &[CheckReport]) -> Vec<Problem> {
    let findings = checks.iter().flat_map(|check| &check.findings);
    let refused = findings.filter(|finding| finding.refused_by_server && finding.severity != Severity::Error);
    let problem = |finding: &Finding| {
        let of = finding.object.as_ref().map(|object| format!("{object}: ")).unwrap_or_default();
        let message = format!("{of}the API server would refuse it: {}", finding.body.message);
        let problem = Problem::new(message).help("fix it: without it, the deploy would end half way");
        match &finding.source {
            Some(Source { file, line, column }) => {
                problem.at(Location { file: file.to_string(), line: *line, column: column.unwrap_or_default() })
            }
            None => problem,
        }
    };
    refused.map(problem).collect()
}

fn hidden(mut errors: Vec<ErrorEntry>, redact: bool) -> Vec<ErrorEntry> {
    if redact {
        errors.iter_mut().for_each(ErrorEntry::redact);
    }
    errors
}

/// Whether a check reported that other field managers own fields of the object.
fn is_reported(checks: &[CheckReport], change: &Change) -> bool {
    checks.iter().any(|check| {
        let rule = registry::find(&check.name).and_then(|entry| entry.field_conflicts);
        let findings = check.findings.iter().filter(|finding| Some(finding.rule.as_str()) == rule);
        findings.into_iter().any(|finding| finding.object.as_ref() == Some(&*change.desired.object))
    })
}

fn of_plan<'a>(
    plan: &'a Plan,
    foreseen: impl Iterator<Item = &'a ChangeConflicts>,
) -> Vec<(&'a Change, &'a [FieldConflict])> {
    foreseen.map(|found| (&plan.changes[found.change], &found.conflicts[..])).collect()
}

#[cfg(test)]
mod tests;
