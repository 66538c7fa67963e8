//! The head of the page: who suffers, the verdict, and what was compared.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::super::view::counts::action_counts;
use super::super::view::harm::HarmSummary;
use super::super::{ClusterReport, Outcome, Report, ReportContext, ReportList, words};
use gantry_core::text;

/// The maximum number of files that are named.
const FILES: usize = 3;
/// The maximum number of targets that are named.
const TARGETS: usize = 3;

/// The sentence about objects first, if objects were read, then the verdict and the facts of the run.
pub fn write_header(report: &Report, verdict: &str, around: ReportContext<'_>) -> Markup {
    let tone = match report.outcome {
        Outcome::Blocked | Outcome::Failed => "error",
        _ if report.summary.warnings > 0 => "warning",
        _ => "passed",
    };
    let harm = HarmSummary::new(report, around.list);
    html! {
        header {
            @match &harm {
                Some(harm) => {
                    h1 class=(if harm.is_harmless() { "passed" } else { "error" }) { (harm.headline()) }
                    p class={ "verdict " (tone) } { (verdict) }
                    p { (words::line(&capitalize(&harm.sentence()), 2000)) }
                }
                None => { h1 class=(tone) { (verdict) } }
            }
            @if let Some(line) = words::baseline(report) { p { (line) } }
            (write_facts(report, around))
        }
    }
}

/// When, how and with what the report was made.
fn write_facts(report: &Report, around: ReportContext<'_>) -> Markup {
    let is_one = around.list.is_none();
    let files = name_files(report);
    html! {
        dl class="facts" {
            @if let Some(command) = &around.run.command { dt { "Command" } dd { code { (words::line(command, 2000)) } } }
            @if is_one && !report.target.is_empty() { dt { "Target" } dd { code { (words::line(&report.target, 300)) } } }
            @if let Some(list) = around.list { dt { "Targets" } dd { (text::count(list.clusters.len(), list.noun())) ": " code { (name_targets(list)) } } }
            @if !files.is_empty() { dt { "Manifests" } dd { code { (files) } } }
            @if is_one && !report.changes.is_empty() { dt { "Plan" } dd { (action_counts(&report.changes)) } }
            @if let Some(release) = report.kubernetes_release.as_ref().filter(|_| is_one) {
                dt { "Kubernetes" } dd { (words::line(release, 20)) }
            }
            @if let Some(started) = &around.run.started { dt { "Time" } dd { (words::line(started, 100)) } }
            dt { "Version" } dd { "gantry " (env!("CARGO_PKG_VERSION")) }
        }
    }
}

/// The sentence with a capital at its start.
fn capitalize(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The first targets of many.
fn name_targets(list: &ReportList) -> String {
    let target = |cluster: &ClusterReport| match cluster.report.target.as_str() {
        "" => words::line(&cluster.name, 100),
        target => words::line(target, 200),
    };
    let named = list.clusters.iter().take(TARGETS).map(target).collect::<Vec<_>>().join(", ");
    let more = list.clusters.len().saturating_sub(TARGETS);
    if more > 0 { format!("{named} and {more} more") } else { named }
}

/// The files of the manifests.
fn name_files(report: &Report) -> String {
    let mut known = BTreeSet::new();
    let all = report.changes.iter().filter_map(|change| change.source.as_ref());
    let files: Vec<&str> = all.map(|source| &*source.file).filter(|file| known.insert(*file)).collect();
    let name = |file: &&str| if *file == "-" { "<stdin>".to_owned() } else { words::line(file, 300) };
    let named = files.iter().take(FILES).map(name).collect::<Vec<_>>().join(", ");
    if files.len() > FILES { format!("{named} and {} more", files.len() - FILES) } else { named }
}
