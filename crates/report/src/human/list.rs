//! The human report of many clusters: findings and errors, each with its clusters, then an overview, and the verdict as
//! the last line.

use std::io;

use super::pen::Pen;
use super::{Excerpts, HumanOptions, problems, write_outcome, write_review};
use crate::view::overview::{OverviewRow, list_names, overview_rows, shown_name};
use crate::view::verdict::summarize_clusters;
use crate::{ClusterReport, ErrorEntry, Outcome, Report, ReportList};
use gantry_core::text;
use gantry_core::ui::color::TextRole;

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
    for clusters in list.group_equal(has_section) {
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
        [one] => vec![cluster_label(one)],
        many => many.iter().map(|cluster| shown_name(&cluster.name)).collect(),
    };
    let word = match (clusters.len(), clusters.iter().all(|cluster| cluster.is_commit())) {
        (1, true) => "Commit",
        (1, false) => "Cluster",
        (_, true) => "Commits",
        (_, false) => "Clusters",
    };
    let word = pen.paint.text(TextRole::Heading, &text::pad(word, INDENT));
    pen.listed(&word, INDENT, &items)
}

fn cluster_label(cluster: &ClusterReport) -> String {
    match &cluster.server {
        Some(server) => format!("{} ({})", shown_name(&cluster.name), text::cut(&text::sanitize(server), 200)),
        None => shown_name(&cluster.name),
    }
}

/// The clusters side by side.
pub fn write_overview(list: &ReportList, options: &HumanOptions, out: &mut dyn io::Write) -> io::Result<()> {
    if options.quiet && !matches!(list.outcome, Outcome::Blocked | Outcome::Failed) {
        return Ok(());
    }
    let pen = &mut Pen::new(options, out);
    let heading = pen.paint.text(TextRole::Heading, &text::pad("Overview", INDENT));
    pen.line(&format!("{heading}{}", text::count(list.clusters.len(), list.noun())))?;
    let rows = overview_rows(list);
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
        let items: Vec<String> = list_names(clusters.iter().copied(), most).split(", ").map(str::to_owned).collect();
        pen.listed(&prefix, INDENT + columns + 7, &items)?;
    }
    for same in &list.overview.same_server {
        let most = if options.verbose { usize::MAX } else { NAMED };
        let contexts = list_names(same.clusters.iter().map(String::as_str), most);
        let line =
            format!("{contexts}: contexts of the same server, {}", text::cut(&text::sanitize(&same.server), 200));
        pen.wrapped(&" ".repeat(INDENT), INDENT + 2, &line)?;
    }
    for (why, clusters) in reasons(list) {
        let most = if options.verbose { usize::MAX } else { NAMED_OTHERS };
        let line = format!("{}: {}", list_names(clusters.iter().copied(), most), first_line(&why.message));
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

/// The clusters whose CRDs differ from most.
fn live(list: &ReportList, options: &HumanOptions, pen: &mut Pen<'_>) -> io::Result<()> {
    let [first, others @ ..] = &list.overview.live[..] else { return Ok(()) };
    if others.is_empty() {
        return Ok(());
    }
    let same = match first.clusters.len() {
        1 => format!("the CRDs of {} differ from those of:", shown_name(&first.clusters[0])),
        number => format!("{number} {}s have the same CRDs; these differ:", list.noun()),
    };
    let heading = pen.paint.text(TextRole::Heading, &text::pad("Live", INDENT));
    pen.line(&format!("{heading}{same}"))?;
    for group in others {
        let most = if options.verbose { (usize::MAX, usize::MAX) } else { (NAMED_OTHERS, CRDS) };
        let clusters = list_names(group.clusters.iter().map(String::as_str), most.0);
        let crds = list_names(group.differs.iter().map(String::as_str), most.1);
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
    let (word, rest) = summarize_clusters(list, options.purpose);
    let word = pen.paint.text(if success { TextRole::Good } else { TextRole::Error }, &word);
    pen.line(&format!("{word}{rest}"))
}
