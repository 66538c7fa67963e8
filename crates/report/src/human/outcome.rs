//! How the run ended: its errors, the result of each object, and a last line.

use std::io;

use super::pen::Pen;
use super::{Excerpts, HumanOptions, problems};
use crate::view::causes::{GroupedFinding, ObjectCauses};
use crate::view::verdict::last_line;
use crate::{Outcome, Report};
use gantry_core::finding::{ApplyResult, CheckStatus, Finding, Severity};
use gantry_core::text;
use gantry_core::ui::color::TextRole;

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
        write_results(report, options, pen)?;
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

/// The result of each object, and the outcome.
pub fn write_results_and_outcome(report: &Report, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    write_results(report, options, pen)?;
    let (word, rest) = last_line(report, options.purpose, true);
    pen.line(&format!("{word}{rest}"))
}

fn write_results(report: &Report, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    write_result(report, ApplyResult::Applied, "Applied", TextRole::Good, options, pen)?;
    write_result(report, ApplyResult::Deleted, "Deleted", TextRole::Good, options, pen)?;
    write_result(report, ApplyResult::Deleting, "Not gone", TextRole::Error, options, pen)?;
    write_result(report, ApplyResult::Failed, "Failed", TextRole::Error, options, pen)?;
    write_result(report, ApplyResult::NotReached, "Not reached", TextRole::Warning, options, pen)
}

/// Whether the review above printed anything.
fn review_said_something(report: &Report, options: &HumanOptions) -> bool {
    match options.quiet {
        true => report.checks.iter().any(|check| check.status != CheckStatus::Passed),
        false => !(report.target.is_empty() && report.changes.is_empty() && report.checks.is_empty()),
    }
}

/// The objects with this result, one on each line.
fn write_result(
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

/// `4 of the 18 errors break nothing (kapp and OLM forbid them all the same). Judged by effect only, 11 are errors and
/// 3 are warnings: --preset semantic.`
/// Nothing if every error breaks something.
fn proven_harmless(report: &Report) -> Option<String> {
    let objects = ObjectCauses::group_findings(report);
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
