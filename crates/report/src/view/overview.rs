//! Many clusters side by side.

use std::collections::BTreeMap;

use super::counts;
use crate::{Outcome, ReportList};
use gantry_core::text;
use gantry_core::ui::color::TextRole;

/// The name of a cluster as it is shown.
pub fn shown_name(name: &str) -> String {
    text::cut(&text::sanitize(name), 100).into_owned()
}

/// `a, b and 3 more`, with at most `most` names.
pub fn list_names<'n>(clusters: impl ExactSizeIterator<Item = &'n str>, most: usize) -> String {
    let number = clusters.len();
    let mut named: Vec<String> = clusters.take(most).map(shown_name).collect();
    match number - named.len() {
        0 => named.join(", "),
        more => {
            let last = named.pop().unwrap_or_default();
            format!("{}, {last} and {more} more", named.join(", ")).trim_start_matches(", ").to_owned()
        }
    }
}

/// A line of the overview.
pub struct OverviewRow<'l> {
    /// The outcome of the clusters.
    pub what: String,
    pub role: TextRole,
    pub clusters: Vec<&'l str>,
}

/// The outcomes of the clusters, the worst first.
pub fn overview_rows(list: &ReportList) -> Vec<OverviewRow<'_>> {
    let mut rows: BTreeMap<(u8, String), OverviewRow<'_>> = BTreeMap::new();
    for cluster in &list.clusters {
        let counts = || counts::action_counts(&cluster.report.changes);
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
