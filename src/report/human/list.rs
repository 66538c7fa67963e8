//! The human report of many clusters: findings and errors, each with its clusters, then an overview, and the verdict as
//! the last line.

use std::collections::BTreeMap;
use std::io;

use super::pen::Pen;
use super::{Excerpts, HumanOptions, ReportPurpose, plan, problems, write_outcome, write_review};
use crate::report::{ClusterReport, ErrorEntry, Outcome, Report, ReportList};
use crate::text;
use crate::ui::color::TextRole;

/// The column of the values of the headings.
const INDENT: usize = 9;
/// The maximum number of clusters without problems that are named (unless `verbose`), and of other clusters.
const NAMED: usize = 10;
const NAMED_OTHERS: usize = 50;
/// The maximum number of CRDs that are named for each cluster that differs.
const CRDS: usize = 10;

/// The findings, errors and diffs of each cluster that `fits`.
pub fn write_sections(
    list: &ReportList,
    fits: &dyn Fn(&ClusterReport) -> bool,
    options: &HumanOptions,
    excerpts: &dyn Excerpts,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let has_section = |cluster: &ClusterReport| fits(cluster) && (options.verbose || needs_section(cluster, options));
    for clusters in list.alike(has_section) {
        let [first, ..] = &clusters[..] else { continue };
        heading(&clusters, &mut Pen::new(options, out))?;
        let report = Report { target: String::new(), ..first.report.clone() };
        write_review(&report, options, excerpts, out)?;
        write_outcome(&report, options, excerpts, out)?;
        let mut pen = Pen::new(options, out);
        pen.begun = true;
        pen.blank()?;
    }
    Ok(())
}

/// Whether there is more to show of a cluster than its line in the overview.
fn needs_section(cluster: &ClusterReport, options: &HumanOptions) -> bool {
    let report = &cluster.report;
    match report.outcome {
        Outcome::Blocked => true,
        // The overview shows why it could not be checked.
        Outcome::Failed => has_plan(cluster),
        _ => {
            !options.quiet && (report.summary.warnings > 0 || report.changes.iter().any(|change| change.diff.is_some()))
        }
    }
}

/// Whether the run got far enough that there is something to show.
fn has_plan(cluster: &ClusterReport) -> bool {
    !cluster.report.changes.is_empty()
}

/// `Cluster  prod-1 (https://10.0.0.1:6443)`, `Clusters prod-1, prod-2`
fn heading(clusters: &[&ClusterReport], pen: &mut Pen<'_>) -> io::Result<()> {
    let items: Vec<String> = match clusters {
        [one] => vec![place(one)],
        many => many.iter().map(|cluster| name(&cluster.name)).collect(),
    };
    let word = if clusters.len() == 1 { "Cluster" } else { "Clusters" };
    let word = pen.paint.text(TextRole::Heading, &text::pad(word, INDENT));
    pen.listed(&word, INDENT, &items)
}

fn place(cluster: &ClusterReport) -> String {
    match &cluster.server {
        Some(server) => format!("{} ({})", name(&cluster.name), text::cut(&text::sanitize(server), 200)),
        None => name(&cluster.name),
    }
}

fn name(name: &str) -> String {
    text::cut(&text::sanitize(name), 100).into_owned()
}

/// `a, b and 3 more`, with at most `most` names.
pub fn names<'n>(clusters: impl ExactSizeIterator<Item = &'n str>, most: usize) -> String {
    let number = clusters.len();
    let mut named: Vec<String> = clusters.take(most).map(name).collect();
    match number - named.len() {
        0 => named.join(", "),
        more => {
            let last = named.pop().unwrap_or_default();
            format!("{}, {last} and {more} more", named.join(", ")).trim_start_matches(", ").to_owned()
        }
    }
}

/// The clusters side by side.
pub fn write_overview(list: &ReportList, options: &HumanOptions, out: &mut dyn io::Write) -> io::Result<()> {
    if options.quiet && !matches!(list.outcome, Outcome::Blocked | Outcome::Failed) {
        return Ok(());
    }
    let pen = &mut Pen::new(options, out);
    let heading = pen.paint.text(TextRole::Heading, &text::pad("Overview", INDENT));
    pen.line(&format!("{heading}{}", text::count(list.clusters.len(), "cluster")))?;
    let rows = rows(list);
    let columns = rows.iter().map(|row| text::width(&row.what)).max().unwrap_or(0);
    for OverviewRow { what, role, clusters } in &rows {
        let most = match (options.verbose, role) {
            (true, _) => usize::MAX,
            (false, TextRole::Error) => NAMED_OTHERS,
            (false, _) => NAMED,
        };
        let what = pen.paint.text(*role, &text::pad(what, columns));
        let number = format!("{:>4}", clusters.len());
        let prefix = format!("{}{what} {number}  ", " ".repeat(INDENT));
        let items: Vec<String> = names(clusters.iter().copied(), most).split(", ").map(str::to_owned).collect();
        pen.listed(&prefix, INDENT + columns + 7, &items)?;
    }
    for same in &list.overview.same_server {
        let most = if options.verbose { usize::MAX } else { NAMED };
        let contexts = names(same.clusters.iter().map(String::as_str), most);
        let line =
            format!("{contexts}: contexts of the same server, {}", text::cut(&text::sanitize(&same.server), 200));
        pen.wrapped(&" ".repeat(INDENT), INDENT + 2, &line)?;
    }
    for (why, clusters) in reasons(list) {
        let most = if options.verbose { usize::MAX } else { NAMED_OTHERS };
        let line = format!("{}: {}", names(clusters.iter().copied(), most), first_line(&why.message));
        pen.wrapped(&" ".repeat(INDENT), INDENT, &text::cut(&text::sanitize(&line), 1000))?;
        if let Some(help) = &why.help {
            pen.wrapped(
                &" ".repeat(INDENT + 2),
                INDENT + 2,
                &text::cut_between_commands(&text::sanitize_block(help), 1000),
            )?;
        }
    }
    live(list, options, pen)
}

/// Why clusters could not be checked, each reason once with its clusters.
fn reasons(list: &ReportList) -> Vec<(&ErrorEntry, Vec<&str>)> {
    let mut reasons: Vec<(&ErrorEntry, Vec<&str>)> = Vec::new();
    for cluster in list.clusters.iter().filter(|cluster| cluster.is_unchecked() && !has_plan(cluster)) {
        for error in &cluster.report.errors {
            match reasons.iter_mut().find(|(known, _)| *known == error) {
                Some((_, clusters)) => clusters.push(&cluster.name),
                None => reasons.push((error, vec![&cluster.name])),
            }
        }
    }
    reasons
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A line of the overview.
pub struct OverviewRow<'l> {
    /// The outcome of the clusters.
    pub what: String,
    role: TextRole,
    pub clusters: Vec<&'l str>,
}

/// The outcomes of the clusters, the worst first.
pub fn rows(list: &ReportList) -> Vec<OverviewRow<'_>> {
    let mut rows: BTreeMap<(u8, String), OverviewRow<'_>> = BTreeMap::new();
    for cluster in &list.clusters {
        let counts = || plan::counts(&cluster.report.changes);
        let (rank, role, what) = match cluster.report.outcome {
            Outcome::Blocked => (0, TextRole::Error, "blocked".to_owned()),
            Outcome::Failed if cluster.is_unchecked() => (1, TextRole::Error, "could not check".to_owned()),
            Outcome::Failed if cluster.is_begun() => (2, TextRole::Error, "failed".to_owned()),
            Outcome::Failed => (2, TextRole::Error, "would fail".to_owned()),
            _ if cluster.not_reached => (3, TextRole::Warning, "not reached".to_owned()),
            Outcome::Deployed => (4, TextRole::Good, "deployed".to_owned()),
            Outcome::Planned if cluster.has_changes() => (5, TextRole::Good, counts()),
            Outcome::Planned | Outcome::Unchanged => (6, TextRole::Good, "nothing to do".to_owned()),
        };
        let row = || OverviewRow { what: what.clone(), role, clusters: Vec::new() };
        rows.entry((rank, what.clone())).or_insert_with(row).clusters.push(&cluster.name);
    }
    rows.into_values().collect()
}

/// The clusters whose CRDs differ from most.
fn live(list: &ReportList, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    let [first, others @ ..] = &list.overview.live[..] else { return Ok(()) };
    if others.is_empty() {
        return Ok(());
    }
    let same = match first.clusters.len() {
        1 => format!("the CRDs of {} differ from those of:", name(&first.clusters[0])),
        number => format!("{number} clusters have the same CRDs; these differ:"),
    };
    let heading = pen.paint.text(TextRole::Heading, &text::pad("Live", INDENT));
    pen.line(&format!("{heading}{same}"))?;
    for group in others {
        let most = if options.verbose { (usize::MAX, usize::MAX) } else { (NAMED_OTHERS, CRDS) };
        let clusters = names(group.clusters.iter().map(String::as_str), most.0);
        let crds = names(group.differs.iter().map(String::as_str), most.1);
        pen.wrapped(&" ".repeat(INDENT), INDENT + 2, &format!("{clusters}: {crds}"))?;
    }
    Ok(())
}

/// The errors of the whole run, and a last line with the outcome.
pub fn write_end(
    list: &ReportList,
    options: &HumanOptions,
    excerpts: &dyn Excerpts,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let success = !matches!(list.outcome, Outcome::Blocked | Outcome::Failed);
    if success && options.quiet {
        return Ok(());
    }
    let mut pen = Pen::new(options, out);
    pen.begun = true;
    if !list.errors.is_empty() {
        pen.blank()?;
        problems::write(&list.errors, options, excerpts, &mut pen)?;
    }
    pen.blank()?;
    let (word, rest) = last_line(list, options.purpose);
    let word = pen.paint.text(if success { TextRole::Good } else { TextRole::Error }, &word);
    pen.line(&format!("{word}{rest}"))
}

/// The last line: how the run ended.
pub fn verdict(list: &ReportList, purpose: ReportPurpose) -> String {
    let (word, rest) = last_line(list, purpose);
    format!("{word}{rest}")
}

fn last_line(list: &ReportList, purpose: ReportPurpose) -> (String, String) {
    let overview = &list.overview;
    let counts = &overview.counts;
    let all = text::count(counts.clusters, "cluster");
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
