//! The report as one self-contained page (`-o html`), to be kept as the artifact of a job and opened in a browser.
//!
//! The page makes no requests and runs only its own script: its Content-Security-Policy allows the style and the script
//! by their hashes, and nothing else. Without the script everything can still be read; it filters, and copies
//! witnesses. The templates are checked at compile time, and escape all values.

mod finding;
mod rules;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

use self::rules::Explained;
use super::view::causes::{GroupedFinding, ObjectCauses};
use super::view::counts::{action_counts, action_word};
use super::view::overview::overview_rows;
use super::{ErrorEntry, FormatWriter, LiveGroup, Outcome, Report, ReportContext, ReportList, words};
use gantry_core::ci_log::OutputSyntax;
use gantry_core::diff::LineKind;
use gantry_core::finding::{CheckReport, CheckStatus, Severity};
use gantry_core::text;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// The maximum number of findings on the page, the worst first. With more, browsers become slow; `-o json` has all.
const MOST: usize = 5000;
const SEVERITIES: [Severity; 5] =
    [Severity::Error, Severity::Warning, Severity::Info, Severity::Waived, Severity::Known];

pub const WRITER: FormatWriter = FormatWriter {
    write,
    write_list: |list, around, out| write(&list.combined(), around, out),
    syntax: OutputSyntax::Xml,
    is_start_of_report: |head| head.starts_with("<!DOCTYPE html>") && head.contains("<title>gantry"),
};

/// Writes the report.
fn write(report: &Report, around: ReportContext<'_>, out: &mut dyn Write) -> io::Result<()> {
    let objects = ObjectCauses::group_findings(report);
    let mut causes: Vec<&GroupedFinding<'_>> = objects.iter().flat_map(|object| &object.causes).collect();
    causes.sort_by_key(|cause| cause.severity());
    let rules = Explained::new(causes.iter().take(MOST).map(|cause| cause.finding), around.rules);
    let verdict = around.verdict(report);
    let tone = match report.outcome {
        Outcome::Blocked | Outcome::Failed => "error",
        _ if report.summary.warnings > 0 => "warning",
        _ => "passed",
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { "gantry: " (verdict) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 class=(tone) { (verdict) }
                    @if around.list.is_none() && !report.target.is_empty() {
                        div { "Target " code { (words::line(&report.target, 300)) } }
                    }
                    @if around.list.is_none() && !report.changes.is_empty() { div { "Plan: " (action_counts(&report.changes)) } }
                    @if let Some(line) = words::harm(report) { div { b { "Objects: " (line) } } }
                    @if let Some(line) = words::baseline(report) { div { (line) } }
                }
                main {
                    @if let Some(list) = around.list { (clusters(list)) }
                    (overview(report, &causes))
                    (unchecked(report))
                    (entries("What stopped the run", &report.errors))
                    @if !causes.is_empty() {
                        h2 { "Findings" }
                        (filter(&causes[..causes.len().min(MOST)]))
                        p role="status" class="faint" { span id="shown" { (text::count(causes.len(), "finding")) } " " span id="copied" {} }
                        @for (number, cause) in causes.iter().take(MOST).enumerate() { (finding::write(number, cause, &rules, around)) }
                        @if causes.len() > MOST {
                            p { (text::count(causes.len() - MOST, "more finding")) " left out here: -o json has all." }
                        }
                    }
                    (changes(report))
                    (entries("Warnings", &report.warnings))
                    (entries("Notices", &report.notices))
                    (rules.write())
                }
                footer {
                    "gantry " (env!("CARGO_PKG_VERSION")) ". Keys: " kbd { "/" } " filter, " kbd { "j" } " and " kbd { "k" }
                    " next and previous finding, " kbd { "Enter" } " open or close, " kbd { "Esc" } " clear the filter."
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    out.write_all(page.into_string().as_bytes())?;
    out.write_all(b"\n")
}

/// The Content-Security-Policy: only this style and this script.
fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(digest(&SHA256, text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// The clusters by outcome, and those with different CRDs.
fn clusters(list: &ReportList) -> Markup {
    let named = |all: &[&str]| words::line(&all.join(", "), 10_000);
    html! {
        h2 { "Clusters" }
        div class="scroll" {
            table {
                tbody {
                    @for row in overview_rows(list) {
                        tr { td { (row.what) } td class="number" { (row.clusters.len()) } td { (named(&row.clusters)) } }
                    }
                }
            }
        }
        @if list.overview.live.len() > 1 {
            h2 { "Clusters whose CRDs differ from most" }
            ul {
                @for LiveGroup { clusters, differs } in &list.overview.live[1..] {
                    li { b { (words::line(&clusters.join(", "), 10_000)) } ": " (words::line(&differs.join(", "), 10_000)) }
                }
            }
        }
    }
}

/// The checks, one line each.
fn overview(report: &Report, causes: &[&GroupedFinding<'_>]) -> Markup {
    let number = |check: &CheckReport, severity| {
        causes.iter().filter(|cause| cause.check == check.name && cause.severity() == severity).count()
    };
    html! {
        @if !report.checks.is_empty() {
            h2 { "Checks" }
            div class="scroll" {
                table {
                    thead { tr { th { "check" } th { "verdict" } @for severity in SEVERITIES { th { (words::severity(severity)) } } th { "more" } } }
                    tbody {
                        @for check in &report.checks {
                            tr {
                                td { (words::line(&check.name, 100)) }
                                td { span class=(class(check.status)) { (words::status(check)) } }
                                @for severity in SEVERITIES { td class="number" { (number(check, severity)) } }
                                td { (words::line(check.message.as_deref().unwrap_or_default(), 1000)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn class(status: CheckStatus) -> &'static str {
    match status {
        CheckStatus::Passed => "word passed",
        CheckStatus::Warned => "word warned",
        CheckStatus::Blocked => "word blocked",
        CheckStatus::Skipped => "word skipped",
        CheckStatus::Failed => "word failed",
    }
}

/// What could not be checked, which does not count as a pass.
fn unchecked(report: &Report) -> Markup {
    html! {
        @if words::unchecked(report).next().is_some() {
            h2 class="error" { "Could not be checked" }
            ul {
                @for (check, message, help) in words::unchecked(report) {
                    li { b { (words::line(&check.name, 100)) } ": " (message) @if let Some(help) = help { pre class="text" { (help) } } }
                }
            }
        }
    }
}

/// Errors, warnings and notices that are not findings.
fn entries(title: &str, entries: &[ErrorEntry]) -> Markup {
    html! {
        @if !entries.is_empty() {
            h2 { (title) }
            ul {
                @for entry in entries {
                    li {
                        @if let Some(source) = &entry.source { code { (words::place(source)) } " " }
                        (text::sanitize_block(&entry.message))
                        @if let Some(help) = &entry.help { div class="faint" { (text::sanitize_block(help)) } }
                        @if let Some(log) = &entry.log {
                            div class="faint" { "log of " (words::line(&format!("{}/{}", log.pod, log.container), 300)) }
                            pre { @for line in &log.lines { (text::sanitize(line)) "\n" } }
                        }
                    }
                }
            }
        }
    }
}

/// The filter controls; hidden without the script.
fn filter(causes: &[&GroupedFinding<'_>]) -> Markup {
    let number = |severity| causes.iter().filter(|cause| cause.severity() == severity).count();
    html! {
        form {
            input type="search" name="search" placeholder="Filter ( / )" aria-label="Filter findings by text";
            @for severity in SEVERITIES {
                @if number(severity) > 0 {
                    label {
                        input type="checkbox" name="severity" value=(words::severity(severity)) checked;
                        " " (words::severity(severity)) " (" (number(severity)) ")"
                    }
                }
            }
            (choice("rule", "All rules", causes.iter().map(|cause| words::line(&cause.finding.rule, 100))))
            (choice("object", "All objects", causes.iter().map(|cause| words::object(cause.finding))))
            button type="button" id="open" { "Open or close all" }
            button type="reset" { "Reset" }
        }
    }
}

/// A list to choose a value from, each with the number of its findings.
fn choice(name: &str, all: &str, values: impl Iterator<Item = String>) -> Markup {
    let mut counts = std::collections::BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_insert(0) += 1);
    html! {
        select name=(name) aria-label=(format!("Filter findings by {name}")) {
            option value="" { (all) }
            @for (value, count) in counts { option value=(value) { (value) " (" (count) ")" } }
        }
    }
}

/// What changes in each object, with `--diff`.
fn changes(report: &Report) -> Markup {
    let changes: Vec<_> = report.changes.iter().filter_map(|change| Some((change, change.diff.as_ref()?))).collect();
    let class = |is| match is {
        LineKind::Removed => "removed",
        LineKind::Added => "added",
        LineKind::Context | LineKind::Note => "faint",
    };
    let sign = |is| match is {
        LineKind::Removed => "- ",
        LineKind::Added => "+ ",
        LineKind::Context => "  ",
        LineKind::Note => "# ",
    };
    html! {
        @if !changes.is_empty() {
            h2 { "Changes" }
            @for (change, diff) in changes {
                details {
                    summary { (action_word(change.action)) " " code { (words::line(&change.object.to_string(), 300)) } }
                    div class="body" {
                        @if let Some(why) = &diff.approximate { p class="faint" { "Computed without the server: " (words::line(why, 500)) } }
                        pre { @for line in &diff.lines { span class=(class(line.is)) { (sign(line.is)) (text::sanitize(&line.text)) "\n" } } }
                        @if diff.omitted > 0 { p class="faint" { (text::count(diff.omitted, "more line")) } }
                    }
                }
            }
        }
    }
}
