//! What a run comes to: a function of what was found out, and of nothing else.
//!
//! [`before_writing`] decides once the report is complete whether anything is written; nothing after it changes what the
//! checks amount to. [`after_writing`] says what became of the objects.

use super::host::Exit;
use crate::apply::Applied;
use crate::apply::delete::Removed;
use crate::cluster::FieldConflict;
use crate::finding::{CheckReport, CheckStatus};
use crate::plan::conflicts::{self, Foreseen as ForeseenConflict};
use crate::plan::{Change, Plan};
use crate::preflight::registry;
use crate::problem::Problem;
use crate::report::{ErrorEntry, Outcome};

/// What a deploy would meet at its first object or half way, with nothing of it a finding.
#[derive(Default)]
pub struct Foreseen {
    pub conflicts: Vec<ForeseenConflict>,
    pub refusals: Vec<Problem>,
    /// What the manifests ask for and a deploy cannot do: see [`crate::plan::strategy`].
    pub not_honoured: Vec<Problem>,
    /// The app would lose more than one deploy may delete.
    pub too_many: Vec<Problem>,
    /// What of the app could not be looked at.
    pub unread_members: Vec<Problem>,
    /// Objects of other tools that the deploy would change: see [`crate::plan::owner`].
    pub owned: Vec<Problem>,
}

/// What the settings have to do with it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms {
    /// A deploy, and no dry run.
    pub writes: bool,
    pub force_conflicts: bool,
    pub redact: bool,
}

/// What everything that was looked at amounts to.
#[derive(Debug, PartialEq, Eq)]
pub struct Verdict {
    pub outcome: Outcome,
    /// Where the run ends here.
    pub exit: Exit,
    /// Why it cannot go on, apart from findings.
    pub errors: Vec<ErrorEntry>,
    /// What is to be said of field conflicts that do not end it.
    pub notices: Vec<Problem>,
    /// The deploy goes on and writes.
    pub goes_on: bool,
}

/// What the checks and what is foreseen amount to.
pub fn before_writing(checks: &[CheckReport], plan: &Plan, foreseen: &Foreseen, terms: Terms) -> Verdict {
    let has = |status| checks.iter().any(|check| check.status == status);
    let conflicts = || of_plan(plan, foreseen.conflicts.iter());
    let untold =
        || of_plan(plan, foreseen.conflicts.iter().filter(|found| !is_told(checks, &plan.changes[found.change])));
    let notices = |conflicts: &[_]| match terms.force_conflicts {
        true => conflicts::explain_taken(conflicts),
        false => conflicts::explain_ahead(conflicts),
    };
    let ends = |outcome, exit, errors| Verdict { outcome, exit, errors, notices: notices(&untold()), goes_on: false };

    // Blocked weighs more than failed: the findings are certain, and they are what has to be fixed first.
    let mut blocks =
        foreseen.not_honoured.iter().chain(&foreseen.owned).chain(&foreseen.too_many).map(ErrorEntry::from).peekable();
    if has(CheckStatus::Blocked) || blocks.peek().is_some() {
        return ends(Outcome::Blocked, Exit::Blocked, blocks.collect());
    }
    if has(CheckStatus::Failed) {
        return ends(Outcome::Failed, Exit::Failed, Vec::new());
    }
    let unread = plan.unread();
    if !unread.is_empty() {
        return ends(Outcome::Failed, Exit::Failed, unread.iter().map(ErrorEntry::from).collect());
    }
    // What a check said of it may have been turned down to a warning; no request would say it more kindly.
    let conflicts = if terms.force_conflicts { Vec::new() } else { conflicts::explain(&conflicts()) };
    let not_served = plan.whole().err();
    let not_served = not_served.iter().flat_map(|error| error.problems());
    let hindrances: Vec<ErrorEntry> = conflicts
        .iter()
        .chain(&foreseen.refusals)
        .chain(&foreseen.unread_members)
        .chain(not_served)
        .map(ErrorEntry::from)
        .collect();
    // Without force, the conflicts are among these errors or there are none.
    let notices = if terms.force_conflicts { notices(&untold()) } else { Vec::new() };
    if !hindrances.is_empty() {
        let errors = hidden(hindrances, terms.redact);
        return Verdict { outcome: Outcome::Failed, exit: Exit::Failed, errors, notices, goes_on: false };
    }
    let goes_on = terms.writes && plan.is_written();
    let outcome = if terms.writes && !goes_on { Outcome::Unchanged } else { Outcome::Planned };
    Verdict { outcome, exit: Exit::Success, errors: Vec::new(), notices, goes_on }
}

/// What became of the objects that were written: the outcome, how the process ends, and the errors.
pub fn after_writing(applied: &Applied, removed: &Removed, redact: bool) -> (Outcome, Exit, Vec<ErrorEntry>) {
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

fn hidden(mut errors: Vec<ErrorEntry>, redact: bool) -> Vec<ErrorEntry> {
    if redact {
        errors.iter_mut().for_each(ErrorEntry::redact);
    }
    errors
}

/// Whether a check has said of the object that its fields are somebody else's.
fn is_told(checks: &[CheckReport], change: &Change) -> bool {
    checks.iter().any(|check| {
        let rule = registry::find(&check.name).and_then(|entry| entry.field_conflicts);
        let findings = check.findings.iter().filter(|finding| Some(finding.rule.as_str()) == rule);
        findings.into_iter().any(|finding| finding.object.as_ref() == Some(&*change.desired.object))
    })
}

fn of_plan<'a>(
    plan: &'a Plan,
    foreseen: impl Iterator<Item = &'a ForeseenConflict>,
) -> Vec<(&'a Change, &'a [FieldConflict])> {
    foreseen.map(|found| (&plan.changes[found.change], &found.conflicts[..])).collect()
}

#[cfg(test)]
mod tests;
