//! The last line of a report: how the run ended.

use super::ReportPurpose;
use super::causes::{GroupedFinding, ObjectCauses};
use super::counts;
use crate::{ClusterReport, Outcome, Report, ReportList, WaitState};
use gantry_core::finding::{ApplyResult, CheckStatus, Severity};
use gantry_core::text;

/// The last line: how the run ended.
pub fn verdict(report: &Report, purpose: ReportPurpose) -> String {
    let began = report.changes.iter().any(|change| change.result.is_some());
    let (word, rest) = last_line(report, purpose, began);
    format!("{word}{rest}")
}

/// The last line: the coloured word, and the rest.
pub fn last_line(report: &Report, purpose: ReportPurpose, began: bool) -> (String, String) {
    let summary = &report.summary;
    let done = count_done(report);
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
            line(word, format!(": {}. Nothing was written.", count_errors(report)))
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
            line(
                "Planned",
                format!("{warnings}: {}; nothing was written ({why})", counts::action_counts(&report.changes)),
            )
        }
        Outcome::Failed if began => line("Failed", format!(": {}", count_results(report))),
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
fn count_errors(report: &Report) -> String {
    let is_error = |cause: &&GroupedFinding<'_>| cause.severity() == Severity::Error;
    let objects = ObjectCauses::group_findings(report);
    let counts = objects.iter().map(|object| object.causes.iter().filter(is_error).count());
    let counts: Vec<usize> = counts.filter(|number| *number > 0).collect();
    // Errors that are not findings have no object.
    let errors = text::count(counts.iter().sum::<usize>() + report.errors.len(), "error");
    if counts.len() > 1 { format!("{errors} in {} objects", counts.len()) } else { errors }
}

/// `2 updated, 1 created, 3 unchanged`
fn count_done(report: &Report) -> String {
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
fn count_results(report: &Report) -> String {
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

/// The last line of the report of many clusters.
pub fn verdict_of_list(list: &ReportList, purpose: ReportPurpose) -> String {
    let (word, rest) = summarize_clusters(list, purpose);
    format!("{word}{rest}")
}

/// The last line of the report of many clusters: the coloured word, and the rest.
pub fn summarize_clusters(list: &ReportList, purpose: ReportPurpose) -> (String, String) {
    let overview = &list.overview;
    let counts = &overview.counts;
    let all = text::count(counts.clusters, list.noun());
    let written = list.clusters.iter().any(ClusterReport::is_begun);
    let changed = list.clusters.iter().filter(|cluster| cluster.has_changes() && !cluster.is_unchecked()).count();
    let warned = list.clusters.iter().any(|cluster| cluster.report.summary.warnings > 0);
    let warnings = if warned { " with warnings" } else { "" };
    let end = match (written, list.errors.is_empty()) {
        (false, _) => " Nothing was written.",
        (true, true) => " What was written stays.",
        (true, false) => " What was written stays. Run the same command again to continue.",
    };
    let failed = if written { "failed" } else { "would fail" };
    let parts = [
        (overview.unchecked.len(), "could not be checked"),
        (overview.failed.len(), failed),
        (counts.deployed, "deployed"),
        (overview.not_reached.len(), "not reached"),
    ];
    let others = |without: &str| -> String {
        let shown = parts.iter().filter(|(number, what)| *number > 0 && *what != without);
        shown.map(|(number, what)| format!(", {number} {what}")).collect()
    };
    match list.outcome {
        Outcome::Blocked => {
            let word = if purpose == ReportPurpose::Deploy { "Blocked" } else { "Would be blocked" };
            (word.into(), format!(": {} of {all}{}.{end}", overview.blocked.len(), others("")))
        }
        Outcome::Failed => {
            let rest = match (overview.failed.len(), overview.unchecked.len()) {
                (0, 0) => format!(": {all}{}.{end}", others("")),
                (0, number) => {
                    let what = "could not be checked";
                    format!(": {number} of {all} {what}; this does not count as a pass{}.{end}", others(what))
                }
                (number, _) => format!(": {number} of {all}{}.{end}", others(failed)),
            };
            ("Failed".into(), rest)
        }
        Outcome::Deployed => {
            let rest = match counts.clusters - counts.deployed {
                0 => String::new(),
                others => format!(", {others} unchanged"),
            };
            ("Deployed".into(), format!("{warnings}: {}{rest}", text::count(counts.deployed, "cluster")))
        }
        Outcome::Planned | Outcome::Unchanged if changed == 0 => ("Nothing to do".into(), format!("{warnings}: {all}")),
        Outcome::Planned | Outcome::Unchanged => {
            let why = match purpose {
                ReportPurpose::Check => "check only",
                ReportPurpose::Diff => "diff only",
                ReportPurpose::Deploy | ReportPurpose::Delete | ReportPurpose::DryRun => "dry run",
            };
            ("Planned".into(), format!("{warnings}: {changed} of {all} would change; nothing was written ({why})"))
        }
    }
}
