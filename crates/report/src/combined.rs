//! Combines the reports of many clusters into one, for formats that place findings at lines of manifests. A finding in
//! several clusters appears once and names them.

use std::collections::BTreeMap;

use super::view::overview::list_names;
use super::{ClusterReport, ErrorEntry, Report, ReportList};
use gantry_core::finding::{CheckReport, CheckStatus, CouldNotCheck, Finding, Fingerprint};
use gantry_core::text;

/// The maximum number of clusters that a sentence names.
const NAMED: usize = 5;

impl ReportList {
    /// The combined report. Its changes are those of all clusters, for places. The outcome of each cluster is in the
    /// list.
    pub fn combined(&self) -> Report {
        let mut report = Report {
            outcome: self.outcome,
            target: text::count(self.clusters.len(), self.noun()),
            preset: self.common_preset().map(str::to_owned),
            errors: self.errors.clone(),
            ..Report::default()
        };
        let mut changes = GroupedByCluster::default();
        let mut extensions = GroupedByCluster::default();
        let mut subscriptions = GroupedByCluster::default();
        let mut deleted_by_olm = GroupedByCluster::default();
        let [mut errors, mut warnings, mut notices] =
            [GroupedByCluster::default(), GroupedByCluster::default(), GroupedByCluster::default()];
        let mut checks: Vec<(CheckReport, GroupedByCluster<Finding>, GroupedByCluster<CouldNotCheck>)> = Vec::new();
        for ClusterReport { name, report, .. } in &self.clusters {
            report
                .changes
                .iter()
                .for_each(|change| changes.add_to_entry((change.action, &change.object), change, name));
            report.extensions.iter().for_each(|extension| extensions.add_to_entry(&extension.name, extension, name));
            report.deleted_by_olm.iter().for_each(|object| deleted_by_olm.add_to_entry(object, object, name));
            for subscription in &report.subscriptions {
                subscriptions.add_to_entry((&subscription.namespace, &subscription.name), subscription, name);
            }
            report.errors.iter().for_each(|error| errors.add_to_entry(&error.message, error, name));
            report.warnings.iter().for_each(|warning| warnings.add_to_entry(&warning.message, warning, name));
            report.notices.iter().for_each(|notice| notices.add_to_entry(&notice.message, notice, name));
            for check in &report.checks {
                let at = checks.iter().position(|(known, ..)| known.name == check.name).unwrap_or_else(|| {
                    let bare = CheckReport {
                        findings: Vec::new(),
                        unchecked: Vec::new(),
                        status: CheckStatus::Passed,
                        ..check.clone()
                    };
                    checks.push((bare, GroupedByCluster::default(), GroupedByCluster::default()));
                    checks.len() - 1
                });
                let (known, findings, unchecked) = &mut checks[at];
                known.status = worse_status(known.status, check.status);
                let key = |finding: &Finding| (Fingerprint::new(finding), finding.severity);
                check.findings.iter().for_each(|finding| findings.add_to_entry(key(finding), finding, name));
                check.unchecked.iter().for_each(|entry| unchecked.add_to_entry(&entry.message, entry, name));
            }
        }
        let checked = self.clusters.len();
        report.changes = changes.all.into_iter().map(|(change, _)| change).collect();
        report.deleted_by_olm = deleted_by_olm.all.into_iter().map(|(object, _)| object).collect();
        report.extensions = extensions.all.into_iter().map(|(extension, _)| extension).collect();
        report.subscriptions = subscriptions.all.into_iter().map(|(subscription, _)| subscription).collect();
        let named = |entries: GroupedByCluster<ErrorEntry>| {
            let of = |(entry, clusters): (ErrorEntry, Vec<String>)| ErrorEntry {
                message: prefix_clusters(&entry.message, &clusters, checked),
                ..entry
            };
            entries.all.into_iter().map(of).collect::<Vec<_>>()
        };
        report.errors.extend(named(errors));
        report.warnings = named(warnings);
        report.notices = named(notices);
        report.checks = checks
            .into_iter()
            .map(|(check, findings, unchecked)| CheckReport {
                findings: findings.all.into_iter().map(|(finding, clusters)| of_clusters(finding, &clusters)).collect(),
                unchecked: unchecked
                    .all
                    .into_iter()
                    .map(|(entry, clusters)| CouldNotCheck {
                        message: prefix_clusters(&entry.message, &clusters, checked),
                        ..entry
                    })
                    .collect(),
                ..check
            })
            .collect();
        report.update_summary();
        report
    }
}

impl ReportList {
    /// The preset of all clusters that were checked, if it is the same.
    fn common_preset(&self) -> Option<&str> {
        let mut presets = self.clusters.iter().filter_map(|cluster| cluster.report.preset.as_deref());
        let first = presets.next()?;
        presets.all(|preset| preset == first).then_some(first)
    }
}

/// Groups equal values of clusters, in the order of their first occurrence, each with its clusters.
struct GroupedByCluster<T> {
    all: Vec<(T, Vec<String>)>,
    by_key: BTreeMap<String, Vec<usize>>,
}

impl<T> Default for GroupedByCluster<T> {
    fn default() -> Self {
        GroupedByCluster { all: Vec::new(), by_key: BTreeMap::new() }
    }
}

impl<T: Clone + PartialEq> GroupedByCluster<T> {
    /// Adds the cluster to the equal entry, or else appends the entry. Equal entries have the same key.
    fn add_to_entry(&mut self, key: impl std::fmt::Debug, entry: &T, cluster: &str) {
        let alike = self.by_key.entry(format!("{key:?}")).or_default();
        // A cluster may have it twice.
        let known = alike.iter().find(|at| {
            let (known, clusters) = &self.all[**at];
            known == entry && clusters.last().is_none_or(|last| last != cluster)
        });
        match known {
            Some(at) => self.all[*at].1.push(cluster.to_owned()),
            None => {
                alike.push(self.all.len());
                self.all.push((entry.clone(), vec![cluster.to_owned()]));
            }
        }
    }
}

/// The rank of a status: not checked is worse than passed, and blocked is worst.
fn worse_status(one: CheckStatus, other: CheckStatus) -> CheckStatus {
    let weight = |status: CheckStatus| match status {
        CheckStatus::Passed => 0,
        CheckStatus::Skipped => 1,
        CheckStatus::Warned => 2,
        CheckStatus::Failed => 3,
        CheckStatus::Blocked => 4,
    };
    if weight(other) > weight(one) { other } else { one }
}

fn list_clusters(clusters: &[String]) -> String {
    list_names(clusters.iter().map(String::as_str), NAMED)
}

fn prefix_clusters(message: &str, clusters: &[String], all: usize) -> String {
    if clusters.len() == all { message.to_owned() } else { format!("{}: {message}", list_clusters(clusters)) }
}

/// The finding, with the clusters in its message. Its fingerprint stays the same.
fn of_clusters(mut finding: Finding, clusters: &[String]) -> Finding {
    let place = format!(" [{}]", list_clusters(clusters));
    finding.body.message.push_str(&place);
    if let Some(wording) = &mut finding.body.wording {
        wording.message = wording.message.clone().then(place);
    }
    finding
}

#[cfg(test)]
mod tests {
    use crate::samples;

    #[test]
    fn a_preset_that_all_clusters_share_is_that_of_the_combined_report() {
        let preset = |presets: &[Option<&str>]| {
            let mut list = samples::list();
            for (cluster, preset) in list.clusters.iter_mut().zip(presets) {
                cluster.report.preset = preset.map(str::to_owned);
            }
            list.combined().preset
        };
        assert_eq!(preset(&[Some("kapp"), Some("kapp"), None]), Some("kapp".to_owned()));
        assert_eq!(preset(&[Some("kapp"), Some("semantic")]), None);
        assert_eq!(preset(&[]), None);
    }
}
