//! The report as one self-contained page (`-o html`), to be kept as the artifact of a job and opened in a browser.
//!
//! The page makes no requests and runs only its own script: its Content-Security-Policy allows the style and the script
//! by their hashes, and nothing else. Without the script everything can still be read; it filters, and copies
//! witnesses. The templates are checked at compile time, and escape all values.

mod bumps;
mod finding;
mod fleet;
mod header;
mod matrix;
mod parts;
mod presets;
mod rules;
mod shown;
#[cfg(test)]
mod tests;
mod tree;
mod upgrades;

use std::collections::BTreeMap;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

use self::bumps::FoldedBumps;
use self::fleet::write_clusters;
use self::header::write_header;
use self::matrix::{hyphenate_party, write_matrix};
use self::parts::write_scrolling;
use self::presets::write_presets;
use self::rules::Explained;
use self::shown::ShownFindings;
use self::tree::write_trees;
use self::upgrades::write_upgrades;
use super::view::causes::{GroupedFinding, ObjectCauses};
use super::view::counts::action_word;
use super::{ErrorEntry, FormatWriter, Report, ReportContext, words};
use gantry_core::ci_log::OutputSyntax;
use gantry_core::diff::LineKind;
use gantry_core::finding::{CheckReport, CheckStatus, Severity};
use gantry_core::text;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
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
    let shown = ShownFindings::new(&objects);
    let bumps = FoldedBumps::new(&objects);
    let causes: Vec<&GroupedFinding<'_>> = objects.iter().flat_map(|object| &object.causes).collect();
    let rules = Explained::new(shown.iter().map(|shown| shown.cause.finding), around.rules);
    let verdict = around.verdict(report);
    let targets = if around.list.is_some_and(|list| list.noun() == "commit") { "Commits" } else { "Clusters" };
    let sections = [
        ("clusters", targets, around.list.map(|list| write_clusters(list, &shown))),
        ("impact", "Impact", Some(write_matrix(&shown, report, around.list.is_some()))),
        ("presets", "Presets", Some(write_presets(report, &objects))),
        ("checks", "Checks", Some(write_checks(report, &causes))),
        ("upgrades", "Upgrades", Some(write_upgrades(report))),
        ("unchecked", "Unchecked", Some(unchecked(report))),
        ("stopped", "Errors", Some(entries("stopped", "What stopped the run", &report.errors))),
        ("schema", "Schemas", Some(write_trees(&shown))),
        ("findings", "Findings", Some(write_findings(&shown, (causes.len(), &bumps), &rules, around))),
        ("changes", "Changes", Some(changes(report))),
        ("warnings", "Warnings", Some(entries("warnings", "Warnings", &report.warnings))),
        ("notices", "Notices", Some(entries("notices", "Notices", &report.notices))),
        ("rules", "Rules", Some(rules.write())),
    ];
    let sections = sections.into_iter().filter_map(|(id, name, section)| Some((id, name, section?)));
    let sections: Vec<(&str, &str, Markup)> = sections.filter(|(.., section)| !section.0.is_empty()).collect();
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
                (write_header(report, &verdict, around))
                @if sections.len() > 2 {
                    nav aria-label="On this page" { ul { @for (id, name, _) in &sections { li { a href={ "#" (id) } { (name) } } } } }
                }
                main { @for (.., section) in &sections { (section) } }
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

/// The findings by object, with the filter.
fn write_findings<'a>(
    shown: &ShownFindings<'a>,
    (all, bumps): (usize, &FoldedBumps<'a>),
    rules: &Explained<'a>,
    around: ReportContext<'_>,
) -> Markup {
    html! {
        @if !shown.objects.is_empty() {
            section aria-labelledby="findings" {
                h2 id="findings" { "Findings" }
                (filter(shown))
                p role="status" class="faint" { span id="shown" { (text::count(all, "finding")) } " " span id="copied" {} }
                @for sentence in bumps.sentences() { p { (sentence) } }
                @for object in &shown.objects {
                    section id=(object.anchor()) class="object" data-object=(object.name) {
                        h3 { (object.name) " " span class="faint" { (text::count(object.findings.len(), "finding")) } }
                        @for finding in &object.findings {
                            @if bumps.bump_of(finding).is_none() { (finding::write(finding, rules, around)) }
                        }
                        @for (summary, folded) in bumps.of_object(object) {
                            details class="bump" {
                                summary { (summary) }
                                @for finding in folded { (finding::write(finding, rules, around)) }
                            }
                        }
                    }
                }
                @if shown.left_out > 0 { p { (text::count(shown.left_out, "more finding")) " left out here: -o json has all." } }
            }
        }
    }
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

/// The checks, one line each.
fn write_checks(report: &Report, causes: &[&GroupedFinding<'_>]) -> Markup {
    let mut numbers: BTreeMap<(&str, Severity), usize> = BTreeMap::new();
    causes.iter().for_each(|cause| *numbers.entry((cause.check, cause.severity())).or_default() += 1);
    let number = |check: &CheckReport, severity| numbers.get(&(check.name.as_str(), severity)).copied().unwrap_or(0);
    let says_more = report.checks.iter().any(|check| check.message.is_some());
    html! {
        @if !report.checks.is_empty() {
            section aria-labelledby="checks" {
                h2 id="checks" { "Checks" }
                (write_scrolling("Checks", &html! {
                    table {
                        thead {
                            tr {
                                th scope="col" { "check" } th scope="col" { "verdict" }
                                @for severity in SEVERITIES { th scope="col" class="count" { (words::severity(severity)) } }
                                @if says_more { th scope="col" { "more" } }
                            }
                        }
                        tbody {
                            @for check in &report.checks {
                                tr {
                                    th scope="row" { (words::line(&check.name, 100)) }
                                    td { span class=(class(check.status)) { (words::status(check)) } }
                                    @for severity in SEVERITIES {
                                        @let number = number(check, severity);
                                        td class={ "count" @if number == 0 { " faint" } } { (parts::format_number(number)) }
                                    }
                                    @if says_more { td { (words::line(check.message.as_deref().unwrap_or_default(), 1000)) } }
                                }
                            }
                        }
                    }
                }))
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
            section aria-labelledby="unchecked" {
                h2 id="unchecked" class="error" { "Could not be checked" }
                ul {
                    @for (check, message, help) in words::unchecked(report) {
                        li { b { (words::line(&check.name, 100)) } ": " (message) @if let Some(help) = help { pre class="text" { (help) } } }
                    }
                }
            }
        }
    }
}

/// Errors, warnings and notices that are not findings.
fn entries(id: &str, title: &str, entries: &[ErrorEntry]) -> Markup {
    html! {
        @if !entries.is_empty() {
            section aria-labelledby=(id) {
            h2 id=(id) { (title) }
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
}

/// The filter controls; hidden without the script.
fn filter(shown: &ShownFindings<'_>) -> Markup {
    let severities: Vec<Severity> = shown.iter().map(|shown| shown.cause.severity()).collect();
    let number = |severity| severities.iter().filter(|one| **one == severity).count();
    let objects = || shown.objects.iter().flat_map(|object| object.findings.iter().map(|_| object.name.clone()));
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
            (choice("rule", "All rules", shown.iter().map(|shown| words::line(&shown.cause.finding.rule, 100))))
            (choice("object", "All objects", objects()))
            (choice("breaks", "Whoever is affected", shown.iter().flat_map(|shown| shown.cause.breaks()).map(hyphenate_party)))
            button type="button" id="open" { "Open or close all" }
            button type="reset" { "Reset" }
        }
    }
}

/// A list to choose a value from, each with the number of its findings.
fn choice(name: &str, all: &str, values: impl Iterator<Item = String>) -> Markup {
    let mut counts = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_insert(0) += 1);
    html! {
        select name=(name) aria-label=(format!("Filter findings by {name}")) {
            option value="" { (all) }
            @for (value, count) in counts {
                option value=(value) { (value.strip_prefix("customresourcedefinition/").unwrap_or(&value)) " (" (count) ")" }
            }
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
            section aria-labelledby="changes" {
            h2 id="changes" { "Changes" }
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
}
