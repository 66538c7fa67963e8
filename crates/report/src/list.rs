//! The reports of many clusters in one: from `check`, `diff` and `deploy` on several contexts, and from
//! `gantry report merge`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    API_VERSION, ChangeEntry, CheckReport, ErrorEntry, ExtensionEntry, Outcome, Report, SubscriptionEntry, WaitEntry,
};
use gantry_core::finding::CheckStatus;
use gantry_core::hash::fnv128;

/// The `kind` of a [`ReportList`].
pub const LIST_KIND: &str = "ReportList";

/// The reports of many clusters, and how they compare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportList {
    /// The version of this format. Within a version, fields and values may be added, but none is renamed or removed.
    pub api_version: String,
    /// Always `ReportList`.
    pub kind: String,
    /// The worst outcome of a cluster: blocked, failed, deployed, planned, unchanged.
    pub outcome: Outcome,
    /// The clusters side by side.
    pub overview: Overview,
    /// The errors of the whole run, not of one cluster: it was interrupted, or not confirmed.
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
    /// The address of its API server. Absent if the kubeconfig has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The wave of the deploy that it belongs to, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<usize>,
    /// The deploy ended before its wave: `report` is the result of the checks before the first wave, and nothing was
    /// written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_reached: bool,
    /// A hash of the live `spec` of each CRD of the manifests, or null if it does not exist: equal hashes mean equal
    /// CRDs. CA bundles do not count. Absent if the live objects could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_crds: Option<LiveCrds>,
    /// The report of this cluster.
    pub report: Report,
}

/// CRDs by name, with a hash of their live spec.
pub type LiveCrds = BTreeMap<String, Option<String>>;

/// The clusters side by side, each named by its context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// The number of clusters with each outcome.
    pub counts: Counts,
    /// The clusters that a check blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// The clusters that could not be checked and to which nothing was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<UncheckedCluster>,
    /// The clusters where a deploy fails: something was not written, is not ready, or would be refused by the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// The clusters of waves that did not begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reached: Vec<String>,
    /// Contexts that are the same API server, by its address. Each counts as a cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_server: Vec<SameServer>,
    /// Groups of clusters with the same live state of the CRDs of the manifests, the largest first. Empty without such
    /// CRDs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<LiveGroup>,
}

/// The number of clusters with each outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// All clusters.
    pub clusters: usize,
    /// Every change was applied.
    pub deployed: usize,
    /// Nothing to do.
    pub unchanged: usize,
    /// Nothing was written, and nothing would be blocked.
    pub planned: usize,
    /// A check refused the deploy.
    pub blocked: usize,
    /// An error stopped the run, or a check could not complete.
    pub failed: usize,
}

/// A cluster that could not be checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UncheckedCluster {
    /// The context of the kubeconfig.
    pub cluster: String,
    /// The reason, or the first of several.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Contexts of one API server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SameServer {
    /// The address of the API server.
    pub server: String,
    /// The contexts of the kubeconfig, at least two.
    pub clusters: Vec<String>,
}

/// Clusters with the same live CRDs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveGroup {
    /// The contexts of the kubeconfig.
    pub clusters: Vec<String>,
    /// The CRDs that differ from the first group or exist in only one of the two. Empty in the first group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<String>,
}

impl ReportList {
    /// The word for what was checked.
    pub fn noun(&self) -> &'static str {
        let are_commits = !self.clusters.is_empty() && self.clusters.iter().all(ClusterReport::is_commit);
        if are_commits { "commit" } else { "cluster" }
    }

    /// The list of these clusters, in their order.
    pub fn new(clusters: Vec<ClusterReport>) -> Self {
        // Blocked takes precedence over failed, as in a run on one cluster.
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
            overview: Overview::new(&clusters),
            errors: Vec::new(),
            clusters,
        }
    }

    /// Adds the errors of a run that did not complete.
    pub fn stop(&mut self, errors: impl IntoIterator<Item = ErrorEntry>) {
        self.errors.extend(errors);
        if !self.errors.is_empty() && self.outcome != Outcome::Blocked {
            self.outcome = Outcome::Failed;
        }
    }

    /// Groups the clusters that fit by equal reports, apart from the target. In the order of the first of each.
    pub fn group_equal(&self, fits: impl Fn(&ClusterReport) -> bool) -> Vec<Vec<&ClusterReport>> {
        let mut groups: Vec<Vec<&ClusterReport>> = Vec::new();
        let mut group_of: BTreeMap<u128, usize> = BTreeMap::new();
        for cluster in self.clusters.iter().filter(|cluster| fits(cluster)) {
            let section = cluster.section();
            // A report that cannot be serialised equals no other.
            let hash = serde_json::to_vec(&section).map_or(groups.len() as u128, |json| fnv128(&json));
            let at = *group_of.entry(hash).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[at].push(cluster);
        }
        groups
    }
}

/// The parts of a report that its section shows.
type Section<'r> = (
    &'r Outcome,
    &'r [ChangeEntry],
    &'r [CheckReport],
    &'r [ErrorEntry],
    &'r [ErrorEntry],
    &'r [ExtensionEntry],
    &'r [SubscriptionEntry],
    &'r [WaitEntry],
);

impl ClusterReport {
    /// Whether a commit stands for the cluster.
    pub fn is_commit(&self) -> bool {
        self.report.target.starts_with("git: ")
    }

    fn section(&self) -> Section<'_> {
        let Report { outcome, changes, checks, errors, warnings, extensions, subscriptions, waits, .. } = &self.report;
        (outcome, changes, checks, errors, warnings, extensions, subscriptions, waits)
    }

    /// Whether both reports have the same section.
    pub fn has_same_section(&self, other: &ClusterReport) -> bool {
        self.section() == other.section()
    }

    /// Whether a deploy wrote to it, or waited for objects of an earlier one.
    pub fn is_begun(&self) -> bool {
        !self.report.waits.is_empty() || self.report.changes.iter().any(|change| change.result.is_some())
    }

    /// Whether the outcome of a deploy to it is unknown.
    pub fn is_unchecked(&self) -> bool {
        let checks = &self.report.checks;
        let is_incomplete = checks.is_empty() || checks.iter().any(|check| check.status == CheckStatus::Failed);
        self.report.outcome == Outcome::Failed && !self.is_begun() && is_incomplete
    }

    /// Whether a deploy would write to it.
    pub fn has_changes(&self) -> bool {
        self.report.changes.iter().any(|change| !change.action.leaves_alone())
    }

    /// Why it could not be checked, and the next step.
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
    fn new(clusters: &[ClusterReport]) -> Self {
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
            same_server: same_servers(clusters),
            live: live_groups(clusters),
        }
    }
}

/// The servers of several contexts, in the order of their first contexts.
fn same_servers(clusters: &[ClusterReport]) -> Vec<SameServer> {
    let mut servers: Vec<SameServer> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for cluster in clusters {
        let Some(server) = &cluster.server else { continue };
        let at = *known.entry(server.trim_end_matches('/')).or_insert_with(|| {
            servers.push(SameServer { server: server.clone(), clusters: Vec::new() });
            servers.len() - 1
        });
        servers[at].clusters.push(cluster.name.clone());
    }
    servers.retain(|server| server.clusters.len() > 1);
    servers
}

/// Groups of clusters with the same live CRDs, the largest first, then in the order of their first clusters.
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
    use crate::samples;

    fn live(crds: &[(&str, Option<&str>)]) -> Option<LiveCrds> {
        Some(crds.iter().map(|(name, hash)| ((*name).to_owned(), hash.map(str::to_owned))).collect())
    }

    #[test]
    fn clusters_are_compared_by_their_live_objects() {
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
    fn contexts_of_one_server_are_named() {
        let of = |name: &str, server: &str| ClusterReport {
            server: Some(server.to_owned()),
            ..samples::cluster(name, samples::planned())
        };
        let clusters = [("a", "https://x:6443"), ("b", "https://y:6443"), ("c", "https://x:6443/"), ("d", "https://z")];
        let list = ReportList::new(clusters.map(|(name, server)| of(name, server)).into());
        let same = [SameServer { server: "https://x:6443".into(), clusters: vec!["a".into(), "c".into()] }];
        assert_eq!(list.overview.same_server, same);
    }

    #[test]
    fn the_outcome_of_a_list_is_the_worst_of_its_reports() {
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
    fn reports_that_differ_only_in_their_target_are_grouped() {
        let list = samples::list();
        let groups: Vec<Vec<&str>> = list
            .group_equal(|_| true)
            .into_iter()
            .map(|group| group.into_iter().map(|cluster| cluster.name.as_str()).collect())
            .collect();
        assert_eq!(groups, [vec!["prod-1", "prod-2"], vec!["dead"], vec!["dev", "test"]]);
    }
}
