//! How the run ended: its errors, the result of each object, and a last line.

use std::io;

use super::causes::{GroupedFinding, ObjectCauses};
use super::pen::Pen;
use super::{Excerpts, HumanOptions, ReportPurpose, plan, problems};
use crate::finding::{ApplyResult, CheckStatus, Finding, Severity};
use crate::report::{Outcome, Report, WaitState};
use crate::text;
use crate::ui::color::TextRole;

/// The maximum number of objects with the same result that are listed, unless `verbose`; the others are counted.
const LISTED: usize = 20;

pub fn write(report: &Report, options: &HumanOptions, excerpts: &dyn Excerpts, pen: &mut Pen<'_>) -> io::Result<()> {
    pen.begun = review_said_something(report, options);
    if !report.errors.is_empty() {
        pen.blank()?;
        problems::write(&report.errors, options, excerpts, pen)?;
        if let Some(hint) = pen.cluster_of_kubectl() {
            pen.blank()?;
            let hint = pen.paint.text(TextRole::Faint, hint);
            pen.line(&hint)?;
        }
    }
    let success = !matches!(report.outcome, Outcome::Blocked | Outcome::Failed);
    if success && options.quiet {
        return Ok(());
    }
    let began = report.changes.iter().any(|change| change.result.is_some());
    if report.outcome == Outcome::Failed && began {
        pen.blank()?;
        fates(report, options, pen)?;
    }
    pen.blank()?;
    if report.outcome == Outcome::Blocked
        && let Some(harmless) = proven_harmless(report)
    {
        pen.line(&harmless)?;
    }
    if report.outcome == Outcome::Failed && began {
        let any = |result| report.changes.iter().any(|change| change.result == Some(result));
        // After a lost response it is unknown whether a failed object was written; its error says so.
        let may_be_written = [ApplyResult::Failed, ApplyResult::Deleted, ApplyResult::Deleting].into_iter().any(any);
        let stays = match (any(ApplyResult::Applied), may_be_written) {
            (true, _) => "Applied objects stay applied. ",
            (false, true) => "",
            (false, false) => "Nothing was written. ",
        };
        // The server would refuse the same manifest again.
        let then = match any(ApplyResult::Failed) {
            true => "Fix the errors above, then run the same command again to continue.",
            false => "Run the same command again to continue.",
        };
        pen.line(&format!("{stays}{then}"))?;
    }
    // The verdict comes last, where users look for it.
    let (word, rest) = last_line(report, options.purpose, began);
    let role = if success { TextRole::Good } else { TextRole::Error };
    let word = pen.paint.text(role, &word);
    pen.line(&format!("{word}{rest}"))
}

/// The last line: how the run ended.
pub fn verdict(report: &Report, purpose: ReportPurpose) -> String {
    let began = report.changes.iter().any(|change| change.result.is_some());
    let (word, rest) = last_line(report, purpose, began);
    format!("{word}{rest}")
}

/// The result of each object, and the outcome.
pub fn write_fate(report: &Report, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    fates(report, options, pen)?;
    let (word, rest) = last_line(report, options.purpose, true);
    pen.line(&format!("{word}{rest}"))
}

fn fates(report: &Report, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    fate(report, ApplyResult::Applied, "Applied", TextRole::Good, options, pen)?;
    fate(report, ApplyResult::Deleted, "Deleted", TextRole::Good, options, pen)?;
    fate(report, ApplyResult::Deleting, "Not gone", TextRole::Error, options, pen)?;
    fate(report, ApplyResult::Failed, "Failed", TextRole::Error, options, pen)?;
    fate(report, ApplyResult::NotReached, "Not reached", TextRole::Warning, options, pen)
}

/// Whether the review above printed anything.
fn review_said_something(report: &Report, options: &HumanOptions) -> bool {
    match options.quiet {
        true => report.checks.iter().any(|check| check.status != CheckStatus::Passed),
        false => !(report.target.is_empty() && report.changes.is_empty() && report.checks.is_empty()),
    }
}

/// The objects with this result, one on each line.
fn fate(
    report: &Report,
    result: ApplyResult,
    word: &str,
    role: TextRole,
    options: &HumanOptions,
    pen: &mut Pen<'_>,
) -> io::Result<()> {
    const COLUMN: usize = 13;
    let objects: Vec<String> = report
        .changes
        .iter()
        .filter(|change| change.result == Some(result))
        .map(|change| text::cut(&text::sanitize(&change.object.to_string()), 300).into_owned())
        .collect();
    let shown = if options.verbose { objects.len() } else { LISTED };
    for (index, object) in objects.iter().take(shown).enumerate() {
        let word = if index == 0 { pen.paint.text(role, &text::pad(word, COLUMN)) } else { " ".repeat(COLUMN) };
        pen.line(&format!("{word}{object}"))?;
    }
    if objects.len() > shown {
        pen.line(&format!("{}… and {} more (-v lists all)", " ".repeat(COLUMN), objects.len() - shown))?;
    }
    Ok(())
}

/// The last line: the coloured word, and the rest.
fn last_line(report: &Report, purpose: ReportPurpose, began: bool) -> (String, String) {
    let summary = &report.summary;
    let done = done(report);
    let warnings = if summary.warnings > 0 { " with warnings" } else { "" };
    let line = |word: &str, rest: String| (word.to_owned(), rest);
    let skipped = if summary.skipped > 0 { format!(", {} skipped", summary.skipped) } else { String::new() };
    let left = match summary.installed_by_olm {
        0 => String::new(),
        number => format!("{} of a bundle, which OLM installs", text::count(number, "object")),
    };
    let unchanged = match (summary.unchanged, summary.skipped) {
        (0, 0) if !left.is_empty() => format!(": {left}. Nothing was written."),
        // A deletion of an app without members, or of none.
        (0, 0) if report.changes.is_empty() => String::new(),
        _ => {
            let left = if left.is_empty() { left } else { format!(", {left}") };
            format!(": {} unchanged{skipped}{left}", text::count(summary.unchanged, "object"))
        }
    };
    match report.outcome {
        Outcome::Blocked => {
            let word = if matches!(purpose, ReportPurpose::Deploy | ReportPurpose::Delete) {
                "Blocked"
            } else {
                "Would be blocked"
            };
            line(word, format!(": {}. Nothing was written.", errors(report)))
        }
        Outcome::Deployed if purpose == ReportPurpose::Delete => line("Deleted", format!("{warnings}: {done}")),
        Outcome::Deployed => line("Deployed", format!("{warnings}: {done}")),
        Outcome::Unchanged if purpose == ReportPurpose::Delete => {
            line("Nothing to delete", format!("{warnings}{unchanged}"))
        }
        Outcome::Unchanged => line("Nothing to do", format!("{warnings}{unchanged}")),
        Outcome::Planned
            if summary.created
                + summary.updated
                + summary.adopted
                + summary.replaced
                + summary.deleted
                + summary.orphaned
                == 0 =>
        {
            line("Nothing to do", format!("{warnings}{unchanged}"))
        }
        Outcome::Planned => {
            let why = match purpose {
                ReportPurpose::Check => "check only",
                ReportPurpose::Diff => "diff only",
                ReportPurpose::Deploy | ReportPurpose::Delete | ReportPurpose::DryRun => "dry run",
            };
            line("Planned", format!("{warnings}: {}; nothing was written ({why})", plan::counts(&report.changes)))
        }
        Outcome::Failed if began => line("Failed", format!(": {}", interrupted(report))),
        Outcome::Failed => {
            let unchecked: Vec<_> = report
                .checks
                .iter()
                .filter(|check| check.status == CheckStatus::Failed)
                .map(|check| text::cut(&text::sanitize(&check.name), 60).into_owned())
                .collect();
            let is_unready = report.waits.iter().any(|wait| wait.state != WaitState::Ready);
            match unchecked.is_empty() {
                true if is_unready => line("Not ready.", " Nothing had to be written.".into()),
                true => line("Failed.", " Nothing was written.".into()),
                false => line(
                    "Failed",
                    format!(
                        ": {} could not complete; this does not count as a pass. Nothing was written.",
                        unchecked.join(", ")
                    ),
                ),
            }
        }
    }
}

/// `3 errors in 2 objects`, counted as they were shown.
fn errors(report: &Report) -> String {
    let is_error = |cause: &&GroupedFinding<'_>| cause.severity() == Severity::Error;
    let objects = ObjectCauses::of(report);
    let counts = objects.iter().map(|object| object.causes.iter().filter(is_error).count());
    let counts: Vec<usize> = counts.filter(|number| *number > 0).collect();
    // Errors that are not findings have no object.
    let errors = text::count(counts.iter().sum::<usize>() + report.errors.len(), "error");
    if counts.len() > 1 { format!("{errors} in {} objects", counts.len()) } else { errors }
}

/// `4 of the 18 errors break nothing (kapp and OLM forbid them all the same). Judged by effect only, 11 are errors and
/// 3 are warnings: --preset semantic.`
/// Nothing if every error breaks something.
fn proven_harmless(report: &Report) -> Option<String> {
    let objects = ObjectCauses::of(report);
    let causes: Vec<&GroupedFinding<'_>> = objects.iter().flat_map(|object| &object.causes).collect();
    let (errors, others): (Vec<&GroupedFinding<'_>>, Vec<&GroupedFinding<'_>>) =
        causes.into_iter().partition(|cause| cause.severity() == Severity::Error);
    let blocks = |cause: &&&GroupedFinding<'_>| {
        let counts = |finding: &Finding| !matches!(finding.severity, Severity::Waived | Severity::Known);
        let by_effect = |finding: &Finding| finding.body.semantic.unwrap_or(finding.severity);
        cause.findings().any(|finding| counts(finding) && by_effect(finding) == Severity::Error)
    };
    let harmless = errors.iter().filter(|cause| cause.breaks_nothing()).count();
    let by_effect = errors.iter().filter(blocks).count();
    let raised = others.iter().filter(blocks).count();
    let lowered = errors.len() - harmless - by_effect;
    let (subject, them) = match (harmless, errors.len()) {
        (0, _) => return None,
        (1, 1) => ("The error breaks".to_owned(), "it"),
        (1, all) => (format!("1 of the {all} errors breaks"), "it"),
        (harmless, all) if harmless == all => (format!("All {all} errors break"), "them"),
        (harmless, all) => (format!("{harmless} of the {all} errors break"), "them"),
    };
    let is = |count: usize, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let rest = [
        is(by_effect, "is an error", "are errors"),
        is(lowered, "is a warning", "are warnings"),
        is(raised, "warning becomes an error", "warnings become errors"),
    ];
    let rest: Vec<String> = rest.into_iter().flatten().collect();
    let rest = if rest.is_empty() { "nothing is an error".to_owned() } else { listed(&rest) };
    Some(format!(
        "{subject} nothing (kapp and OLM forbid {them} all the same). Judged by effect only, {rest}: --preset semantic."
    ))
}

/// `a, b and c`
fn listed(parts: &[String]) -> String {
    match parts {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        parts => parts.concat(),
    }
}

/// `2 updated, 1 created, 3 unchanged`
fn done(report: &Report) -> String {
    let summary = &report.summary;
    let counts = [
        (summary.created, "created"),
        (summary.adopted, "adopted"),
        (summary.updated, "updated"),
        (summary.replaced, "replaced"),
        (summary.deleted, "deleted"),
        (summary.orphaned, "orphaned"),
        (summary.unchanged, "unchanged"),
        (summary.skipped, "skipped"),
        (summary.installed_by_olm, "left to OLM"),
    ];
    let words: Vec<String> =
        counts.into_iter().filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}")).collect();
    if words.is_empty() { "no objects".to_owned() } else { words.join(", ") }
}

/// The results of the objects of a deploy that did not complete.
fn interrupted(report: &Report) -> String {
    let number = |result| report.changes.iter().filter(|change| change.result == Some(result)).count();
    let counts = [
        (ApplyResult::Applied, "applied"),
        (ApplyResult::Deleted, "deleted"),
        (ApplyResult::Deleting, "not gone"),
        (ApplyResult::Unchanged, "unchanged"),
        (ApplyResult::Skipped, "skipped"),
        (ApplyResult::LeftToOlm, "left to OLM"),
        (ApplyResult::Failed, "failed"),
        (ApplyResult::NotReached, "not reached"),
    ];
    let words: Vec<String> = counts
        .into_iter()
        .map(|(result, word)| (number(result), word))
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    format!("of {}, {}.", text::count(report.changes.len(), "object"), words.join(", "))
}
