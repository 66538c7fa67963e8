//! Many clusters: their outcomes, and each CRD in each cluster.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::super::view::overview::overview_rows;
use super::super::{ClusterReport, LiveGroup, Outcome, ReportList, words};
use super::matrix::shorten_name;
use super::parts::{count_findings, write_name, write_scrolling};
use super::shown::ShownFindings;
use gantry_core::finding::Severity;
use gantry_core::text;

/// The maximum number of rows and columns of the grid.
const CLUSTERS: usize = 500;
const CRDS: usize = 30;

/// The clusters by outcome, the grid, and the clusters with different CRDs.
pub fn write_clusters(list: &ReportList, shown: &ShownFindings<'_>) -> Markup {
    let named = |all: &[&str]| words::line(&all.join(", "), 10_000);
    let title = if list.noun() == "commit" { "Commits" } else { "Clusters" };
    html! {
        section aria-labelledby="clusters" {
            h2 id="clusters" { (title) }
            (write_scrolling(title, &html! {
                table {
                    thead { tr { th scope="col" { "outcome" } th scope="col" class="count" { "number" } th scope="col" { "names" } } }
                    tbody {
                        @for row in overview_rows(list) {
                            tr { td { (row.what) } td class="count" { (row.clusters.len()) } td { (named(&row.clusters)) } }
                        }
                    }
                }
            }))
            (write_grid(list, shown))
            @if list.overview.live.len() > 1 {
                h3 { (title) " whose CRDs differ from most" }
                ul {
                    @for LiveGroup { clusters, differs } in &list.overview.live[1..] {
                        li { b { (words::line(&clusters.join(", "), 10_000)) } ": " (words::line(&differs.join(", "), 10_000)) }
                    }
                }
            }
        }
    }
}

/// A row for each cluster, a column for each CRD with findings or different live states.
fn write_grid(list: &ReportList, shown: &ShownFindings<'_>) -> Markup {
    let grid = FleetGrid::new(list);
    let section = |crd: &str| {
        let object = shown.objects.iter().find(|object| shorten_name(object) == crd);
        object.map(|object| format!("#{}", object.anchor()))
    };
    let links: Vec<Option<String>> = grid.crds.iter().map(|crd| section(&words::line(crd, 300))).collect();
    let has_waves = list.clusters.iter().any(|cluster| cluster.wave.is_some());
    let differs = grid.states.values().any(|states| states.len() > 1);
    html! {
        @if !grid.crds.is_empty() {
            h3 { "CRDs by " (list.noun()) }
            @if differs {
                p class="faint" { "The same letter in a column: the same live CRD. A is what most have." }
            }
            (write_scrolling("CRDs by cluster", &html! {
                table class="fleet" {
                    thead {
                        tr {
                            th scope="col" { (list.noun()) }
                            @if has_waves { th scope="col" class="count" { "wave" } }
                            th scope="col" { "Kubernetes" }
                            @for (crd, link) in grid.crds.iter().zip(&links) {
                                th scope="col" class="crd" {
                                    @match link { Some(link) => { a href=(link) { (write_name(&words::line(crd, 300))) } } None => { (write_name(&words::line(crd, 300))) } }
                                }
                            }
                        }
                    }
                    tbody {
                        @for cluster in list.clusters.iter().take(CLUSTERS) {
                            tr {
                                th scope="row" { (words::line(&cluster.name, 100)) }
                                @if has_waves { td class="count" { @if let Some(wave) = cluster.wave { (wave) } } }
                                td { (words::line(cluster.report.kubernetes_release.as_deref().unwrap_or("–"), 20)) }
                                @let worst = find_worst(cluster);
                                @for crd in &grid.crds { td { (grid.write_cell(cluster, crd, worst.get(crd).copied(), differs)) } }
                            }
                        }
                    }
                }
            }))
            @if list.clusters.len() > CLUSTERS { p class="faint" { (text::count(list.clusters.len() - CLUSTERS, "more row")) " left out here: -o json has all." } }
            @if grid.left_out > 0 { p class="faint" { (text::count(grid.left_out, "more CRD")) " left out here: -o json has all." } }
        }
    }
}

/// The worst severity of the findings about each CRD in a cluster, and their number.
fn find_worst(cluster: &ClusterReport) -> BTreeMap<&str, (Severity, usize)> {
    let mut worst: BTreeMap<&str, (Severity, usize)> = BTreeMap::new();
    for finding in cluster.report.checks.iter().flat_map(|check| &check.findings) {
        let Some(crd) = finding.object.as_ref().filter(|object| object.is_crd()) else { continue };
        let entry = worst.entry(&crd.name).or_insert((finding.severity, 0));
        match finding.severity.cmp(&entry.0) {
            std::cmp::Ordering::Less => *entry = (finding.severity, 1),
            std::cmp::Ordering::Equal => entry.1 += 1,
            std::cmp::Ordering::Greater => {}
        }
    }
    worst
}

/// The CRDs of the columns, and their live states.
struct FleetGrid<'l> {
    crds: Vec<&'l str>,
    left_out: usize,
    /// The live states of each CRD by hash, each with its letter: the most frequent one is A.
    states: BTreeMap<&'l str, BTreeMap<&'l str, String>>,
}

impl<'l> FleetGrid<'l> {
    fn new(list: &'l ReportList) -> Self {
        let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        let (mut all, mut found, mut lacks) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::<&str, usize>::new());
        for cluster in &list.clusters {
            found.extend(find_worst(cluster).into_keys());
            for (crd, hash) in cluster.live_crds.iter().flatten() {
                all.insert(crd.as_str());
                match hash {
                    Some(hash) => *counts.entry(crd).or_default().entry(hash).or_default() += 1,
                    None => *lacks.entry(crd).or_default() += 1,
                }
            }
        }
        let states: BTreeMap<_, _> = counts.into_iter().map(|(crd, hashes)| (crd, assign_letters(hashes))).collect();
        let differs = |crd: &&str| {
            let number = states.get(crd).map_or(0, BTreeMap::len);
            number > 1 || number == 1 && lacks.contains_key(crd)
        };
        let mut crds: Vec<&str> =
            all.iter().copied().filter(differs).chain(found).collect::<BTreeSet<_>>().into_iter().collect();
        if crds.is_empty() {
            crds = all.into_iter().collect();
        }
        let left_out = crds.len().saturating_sub(CRDS);
        crds.truncate(CRDS);
        FleetGrid { crds, left_out, states }
    }

    fn write_cell(
        &self,
        cluster: &ClusterReport,
        crd: &str,
        worst: Option<(Severity, usize)>,
        differs: bool,
    ) -> Markup {
        let live = cluster.live_crds.as_ref().and_then(|live| live.get(crd));
        let letter = live.map(|hash| hash.as_ref().and_then(|hash| self.states.get(crd)?.get(hash.as_str())));
        let is_unread = cluster.is_unchecked() || live.is_none() && cluster.report.outcome == Outcome::Failed;
        html! {
            @match letter {
                Some(Some(letter)) if differs => { span class="chip" { (letter) } " " }
                Some(None) => { span class="faint" { "absent " } }
                _ => {}
            }
            @match worst {
                Some((severity, number)) => { span class=(words::severity(severity)) { (count_findings(number, severity)) } }
                None if is_unread => { span class="warning" { "not checked" } }
                None if live.is_none() => { span class="faint" { "–" } }
                None => { span class="passed" { "no findings" } }
            }
        }
    }
}

/// A letter for each hash: A for the most frequent one, and after Z numbers.
fn assign_letters(counts: BTreeMap<&str, usize>) -> BTreeMap<&str, String> {
    let mut hashes: Vec<(&str, usize)> = counts.into_iter().collect();
    hashes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let letter = |at: usize| match u8::try_from(at) {
        Ok(at @ 0..=25) => char::from(b'A' + at).to_string(),
        _ => (at + 1).to_string(),
    };
    hashes.into_iter().enumerate().map(|(at, (hash, _))| (hash, letter(at))).collect()
}
