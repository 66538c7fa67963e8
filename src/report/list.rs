//! The reports of many clusters in one: what `check`, `diff` and `deploy` make of several contexts, and `gantry report merge`
//! of several reports.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{API_VERSION, ErrorEntry, Outcome, Report};
use crate::finding::CheckStatus;
use crate::hash::fnv128;

/// The `kind` of a [`ReportList`].
pub const LIST_KIND: &str = "ReportList";

/// The reports of many clusters, and how they compare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportList {
    /// The version of this format. Reports of one version stay readable: fields and values may be added to it, none is
    /// renamed or removed.
    pub api_version: String,
    /// Always `ReportList`.
    pub kind: String,
    /// The worst outcome of a cluster: blocked, failed, deployed, planned, unchanged.
    pub outcome: Outcome,
    /// The clusters side by side.
    pub overview: Overview,
    /// What stopped the run as a whole, and not on one cluster: it was interrupted, or not confirmed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorEntry>,
    /// Each cluster, in the order in which they were named: on the command line, in the file, in the kubeconfig.
    pub clusters: Vec<ClusterReport>,
}

/// One cluster and its report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReport {
    /// The context of the kubeconfig.
    pub name: String,
    /// The address of its API server. Absent where the kubeconfig leads to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The wave of the deploy that it belongs to, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<usize>,
    /// The deploy ended before its wave: `report` is what was found before the first wave, and nothing was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_reached: bool,
    /// A hash of the `spec` of each CRD of the manifests as it is live, and null where there is none: equal hashes, equal CRDs. CA
    /// bundles do not count. Absent where nothing live could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_crds: Option<LiveCrds>,
    /// What a run on this cluster alone reports.
    pub report: Report,
}

/// CRDs by name, and what each is live.
pub type LiveCrds = BTreeMap<String, Option<String>>;

/// The clusters side by side, each named by its context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// How many clusters there are of each outcome.
    pub counts: Counts,
    /// The clusters that a check blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// The clusters that could not be checked, to which nothing was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<UncheckedCluster>,
    /// The clusters where a deploy fails: not all of it was written, not all of it is ready, or it is known beforehand that
    /// the server would refuse some of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// The clusters of waves that were not begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reached: Vec<String>,
    /// The clusters by what is live in them, of the CRDs of the manifests: the largest group first. Without such CRDs there is
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<LiveGroup>,
}

/// How many clusters there are of each outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// All clusters.
    pub clusters: usize,
    /// Every change was applied.
    pub deployed: usize,
    /// Nothing to do.
    pub unchanged: usize,
    /// Nothing was written and nothing would have been blocked.
    pub planned: usize,
    /// A check refused the deploy.
    pub blocked: usize,
    /// Could not go on, or could not check.
    pub failed: usize,
}

/// A cluster that could not be checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UncheckedCluster {
    /// The context of the kubeconfig.
    pub cluster: String,
    /// Why. Where there are several reasons, the first.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Clusters in which the same CRDs are live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveGroup {
    /// The contexts of the kubeconfig.
    pub clusters: Vec<String>,
    /// The CRDs that are others than in the first group, or are only in one of the two. Empty in the first group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

impl ReportList {
    /// Of these clusters, in their order.
    pub fn new(clusters: Vec<ClusterReport>) -> Self {
        // Blocked weighs more than failed, as in a run on one cluster.
        let worst = |outcome: &Outcome| match outcome {
            Outcome::Blocked => 4,
            Outcome::Failed => 3,
            Outcome::Deployed => 2,
            Outcome::Planned => 1,
            Outcome::Unchanged => 0,
        };
        let outcome = clusters.iter().map(|cluster| cluster.report.outcome).max_by_key(worst);
        ReportList {
            api_version: API_VERSION.into(),
            kind: LIST_KIND.into(),
            outcome: outcome.unwrap_or(Outcome::Unchanged),
            overview: Overview::of(&clusters),
            errors: Vec::new(),
            clusters,
        }
    }

    /// The run did not come to its end.
    pub fn stop(&mut self, errors: impl IntoIterator<Item = ErrorEntry>) {
        self.errors.extend(errors);
        if !self.errors.is_empty() && self.outcome != Outcome::Blocked {
            self.outcome = Outcome::Failed;
        }
    }

    /// The clusters that fit, those together of which the same is to be said: all but where they are. In the order of the
    /// first of each.
    pub fn alike(&self, fits: impl Fn(&ClusterReport) -> bool) -> Vec<Vec<&ClusterReport>> {
        let mut groups: Vec<Vec<&ClusterReport>> = Vec::new();
        let mut group_of: BTreeMap<u128, usize> = BTreeMap::new();
        for cluster in self.clusters.iter().filter(|cluster| fits(cluster)) {
            let Report { outcome, changes, checks, errors, warnings, extensions, waits, .. } = &cluster.report;
            let said = (outcome, changes, checks, errors, warnings, extensions, waits);
            // What cannot be written as JSON is like nothing else.
            let hash = serde_json::to_vec(&said).map_or(groups.len() as u128, |json| fnv128(&json));
            let at = *group_of.entry(hash).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[at].push(cluster);
        }
        groups
    }
}

impl ClusterReport {
    /// Whether a deploy has written to it, or waited for what an earlier one wrote.
    pub fn is_begun(&self) -> bool {
        !self.report.waits.is_empty() || self.report.changes.iter().any(|change| change.result.is_some())
    }

    /// Whether nobody knows what a deploy to it would come to.
    pub fn is_unchecked(&self) -> bool {
        let checks = &self.report.checks;
        let is_incomplete = checks.is_empty() || checks.iter().any(|check| check.status == CheckStatus::Failed);
        self.report.outcome == Outcome::Failed && !self.is_begun() && is_incomplete
    }

    /// Whether a deploy would write to it.
    pub fn has_changes(&self) -> bool {
        self.report.changes.iter().any(|change| !change.action.leaves_alone())
    }

    /// Why it could not be checked, and what to do.
    fn reason(&self) -> UncheckedCluster {
        let error = self.report.errors.first().map(|error| (&error.message, &error.help));
        let unchecked = self.report.checks.iter().flat_map(|check| &check.unchecked).next();
        let (message, help) = match error.or(unchecked.map(|unchecked| (&unchecked.message, &unchecked.help))) {
            Some((message, help)) => (message.clone(), help.clone()),
            None => ("no reason is given".to_owned(), None),
        };
        UncheckedCluster { cluster: self.name.clone(), message, help }
    }
}

impl Overview {
    fn of(clusters: &[ClusterReport]) -> Self {
        let named = |fits: &dyn Fn(&ClusterReport) -> bool| -> Vec<String> {
            clusters.iter().filter(|cluster| fits(cluster)).map(|cluster| cluster.name.clone()).collect()
        };
        let count = |outcome| clusters.iter().filter(|cluster| cluster.report.outcome == outcome).count();
        Overview {
            counts: Counts {
                clusters: clusters.len(),
                deployed: count(Outcome::Deployed),
                unchanged: count(Outcome::Unchanged),
                planned: count(Outcome::Planned),
                blocked: count(Outcome::Blocked),
                failed: count(Outcome::Failed),
            },
            blocked: named(&|cluster| cluster.report.outcome == Outcome::Blocked),
            unchecked: clusters.iter().filter(|cluster| cluster.is_unchecked()).map(ClusterReport::reason).collect(),
            failed: named(&|cluster| cluster.report.outcome == Outcome::Failed && !cluster.is_unchecked()),
            not_reached: named(&|cluster| cluster.not_reached),
            live: live_groups(clusters),
        }
    }
}

/// Clusters in which the same is live, the largest group first, else in the order of their first clusters.
fn live_groups(clusters: &[ClusterReport]) -> Vec<LiveGroup> {
    let mut groups: Vec<(&LiveCrds, Vec<&str>)> = Vec::new();
    let mut group_of: BTreeMap<&LiveCrds, usize> = BTreeMap::new();
    for cluster in clusters {
        let Some(live) = cluster.live_crds.as_ref().filter(|live| !live.is_empty()) else { continue };
        let at = *group_of.entry(live).or_insert_with(|| {
            groups.push((live, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(&cluster.name);
    }
    groups.sort_by_key(|(_, clusters)| std::cmp::Reverse(clusters.len()));
    let first = groups.first().map(|(live, _)| *live);
    let group = |(live, clusters): &(&LiveCrds, Vec<&str>)| {
        let others = first.unwrap_or(live);
        let all: BTreeSet<&String> = live.keys().chain(others.keys()).collect();
        let differs = all.into_iter().filter(|name| live.get(*name) != others.get(*name));
        LiveGroup {
            clusters: clusters.iter().map(|name| (*name).to_owned()).collect(),
            differs: differs.cloned().collect(),
        }
    };
    groups.iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn live(crds: &[(&str, Option<&str>)]) -> Option<LiveCrds> {
        Some(crds.iter().map(|(name, hash)| ((*name).to_owned(), hash.map(str::to_owned))).collect())
    }

    #[test]
    fn clusters_are_compared_by_what_is_live() {
        let of = |name: &str, live_crds| ClusterReport { live_crds, ..samples::cluster(name, samples::planned()) };
        let list = ReportList::new(vec![
            of("odd", live(&[("a", Some("2")), ("b", None)])),
            of("c1", live(&[("a", Some("1")), ("b", Some("1"))])),
            of("dead", None),
            of("c2", live(&[("a", Some("1")), ("b", Some("1"))])),
            of("half", live(&[("a", Some("1"))])),
        ]);
        let groups: Vec<(String, String)> =
            list.overview.live.iter().map(|group| (group.clusters.join(" "), group.differs.join(" "))).collect();
        let expected = [("c1 c2", ""), ("odd", "a b"), ("half", "b")];
        assert_eq!(groups, expected.map(|(clusters, crds)| (clusters.to_owned(), crds.to_owned())));
        let none = ReportList::new(vec![of("a", live(&[])), of("b", live(&[]))]);
        assert_eq!(none.overview.live, [], "manifests without CRDs");
    }

    #[test]
    fn the_worst_outcome_is_that_of_the_list() {
        let list = samples::list();
        assert_eq!(list.outcome, Outcome::Blocked);
        let overview = &list.overview;
        assert_eq!((overview.counts.clusters, overview.counts.failed, overview.counts.planned), (5, 1, 2));
        assert_eq!(overview.blocked, ["prod-1", "prod-2"]);
        assert_eq!(overview.unchecked[0].cluster, "dead");
        assert_eq!(overview.failed, Vec::<String>::new());
        assert_eq!(ReportList::new(list.clusters[2..].to_vec()).outcome, Outcome::Failed);
        assert_eq!(ReportList::new(list.clusters[3..].to_vec()).outcome, Outcome::Planned);
        assert_eq!(ReportList::new(Vec::new()).outcome, Outcome::Unchanged);
    }

    #[test]
    fn only_where_it_is_tells_alike_reports_apart() {
        let list = samples::list();
        let groups: Vec<Vec<&str>> = list
            .alike(|_| true)
            .into_iter()
            .map(|group| group.into_iter().map(|cluster| cluster.name.as_str()).collect())
            .collect();
        assert_eq!(groups, [vec!["prod-1", "prod-2"], vec!["dead"], vec!["dev", "test"]]);
    }
}
