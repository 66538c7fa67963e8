//! The upgrade graph: which bundles can be updated to which, and the shortest path from one to another.
//!
//! As in OLM v1, an update needs one edge, not a chain: a bundle can be updated to every bundle with an entry that
//! replaces it, skips it, or has its version in `skipRange`.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde::Serialize;

use crate::package::{Channel, Package, PackageBundle};
use crate::skip_range::SkipRange;
use crate::version::{SemanticVersion, VersionRelease};

/// The maximum number of `skipRange` checks: enough for a thousand entries that all have one.
const MOST_LOOKS: usize = 4_000_000;

/// What makes an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum By {
    /// The entry replaces the bundle.
    Replaces,
    /// The entry skips the bundle.
    Skips,
    /// The entry's `skipRange` contains the version.
    SkipRange,
}

/// An edge to a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpgradeEdge<'a> {
    /// The name of the bundle that the edge leads to.
    pub to: &'a str,
    /// The channel whose entry makes the edge.
    pub channel: &'a str,
    /// Which field of the entry makes the edge.
    pub by: By,
    /// The text of the range, for [`By::SkipRange`].
    pub range: &'a str,
}

/// The installed bundle: edges of `replaces` and `skips` match its name, those of `skipRange` its version.
#[derive(Debug, Clone, PartialEq)]
pub struct InstalledBundleRef<'a> {
    /// The name of the bundle; `None` if the catalog does not contain it.
    pub name: Option<&'a str>,
    /// Its version; `None` if it cannot be parsed.
    pub version: Option<SemanticVersion>,
}

/// Searching the graph would take too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the upgrade graph is too large to be searched")]
pub struct TooLarge;

/// The graph of a package, or of some of its channels.
pub struct UpgradeGraph<'a> {
    package: &'a Package,
    /// The edges from the bundle of each name.
    named: HashMap<&'a str, Vec<UpgradeEdge<'a>>>,
    ranges: Vec<(SkipRange, UpgradeEdge<'a>)>,
    versions: HashMap<&'a str, VersionRelease>,
}

impl<'a> UpgradeGraph<'a> {
    /// The graph of these channels, or of all channels if none is named.
    pub fn new(package: &'a Package, channels: &[String]) -> UpgradeGraph<'a> {
        let (mut named, mut ranges): (HashMap<&str, Vec<UpgradeEdge>>, _) = (HashMap::new(), Vec::new());
        let is_asked_for = |channel: &&Channel| channels.is_empty() || channels.contains(&channel.name);
        for channel in package.channels.values().filter(is_asked_for) {
            // A bundle without a blob cannot be installed.
            for entry in channel.entries.iter().filter(|entry| package.bundles.contains_key(&entry.name)) {
                let edge = |by| UpgradeEdge { to: &entry.name, channel: &channel.name, by, range: "" };
                if !entry.replaces.is_empty() {
                    named.entry(&entry.replaces).or_default().push(edge(By::Replaces));
                }
                for skipped in &entry.skips {
                    named.entry(skipped).or_default().push(edge(By::Skips));
                }
                // OLM ignores a range that cannot be parsed.
                if !entry.skip_range.is_empty()
                    && let Ok(range) = SkipRange::parse(&entry.skip_range)
                {
                    ranges.push((range, UpgradeEdge { range: &entry.skip_range, ..edge(By::SkipRange) }));
                }
            }
        }
        let versions = package.bundles.values().filter_map(|bundle| Some((&*bundle.name, bundle.version().ok()?)));
        UpgradeGraph { package, named, ranges, versions: versions.collect() }
    }

    /// The bundle of this name as the installed one.
    pub fn installed(&self, name: &'a str) -> InstalledBundleRef<'a> {
        InstalledBundleRef { name: Some(name), version: self.versions.get(name).map(|found| found.version.clone()) }
    }

    /// The bundles that replace or skip the bundle of this name, whether or not the catalog contains it.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.named.get(name).into_iter().flatten().map(|edge| edge.to)
    }

    /// Whether the entry of the installed bundle replaces or skips itself, or has its version in `skipRange`: then a
    /// bundle that was rebuilt under the same name is a possible update.
    pub fn leads_to_itself(&self, from: &InstalledBundleRef<'a>) -> bool {
        self.all_edges(from).any(|edge| Some(edge.to) == from.name)
    }

    fn all_edges<'s>(&'s self, from: &'s InstalledBundleRef<'a>) -> impl Iterator<Item = &'s UpgradeEdge<'a>> {
        let named = from.name.and_then(|name| self.named.get(name)).into_iter().flatten();
        let is_in = |range: &SkipRange| from.version.as_ref().is_some_and(|version| range.contains(version));
        let ranged = self.ranges.iter().filter(move |(range, _)| is_in(range)).map(|(_, edge)| edge);
        named.chain(ranged)
    }

    /// Every edge from `from` to another bundle, highest version first.
    pub fn edges(&self, from: &InstalledBundleRef<'a>) -> Vec<UpgradeEdge<'a>> {
        let mut edges: Vec<UpgradeEdge> =
            self.all_edges(from).filter(|edge| Some(edge.to) != from.name).cloned().collect();
        edges.sort_by(|one, other| {
            let [a, b] = [one, other].map(|edge| self.versions.get(edge.to));
            let order = match (a, b) {
                (Some(a), Some(b)) => b.precedence(a),
                (a, b) => b.is_some().cmp(&a.is_some()),
            };
            order.then_with(|| (one.to, one.by, one.channel).cmp(&(other.to, other.by, other.channel)))
        });
        edges
    }

    /// The bundles that `from` can be updated to in one step, highest version first.
    pub fn successors(&self, from: &InstalledBundleRef<'a>) -> Vec<&'a PackageBundle> {
        let mut seen = BTreeSet::new();
        let edges = self.edges(from).into_iter().filter(|edge| seen.insert(edge.to));
        edges.filter_map(|edge| self.package.bundles.get(edge.to)).collect()
    }

    /// The shortest path from `from` to each bundle. Of several paths of the same length, the one through the highest
    /// versions is chosen.
    ///
    /// # Errors
    /// The search would take too long.
    pub fn find_ways(&self, from: &InstalledBundleRef<'a>) -> Result<Ways<'a>, TooLarge> {
        let mut last: BTreeMap<&str, (Option<&str>, UpgradeEdge)> = BTreeMap::new();
        let mut order = Vec::new();
        let mut next = VecDeque::from([(None, from.clone(), 0)]);
        let mut looks = 0;
        while let Some((here, installed, steps)) = next.pop_front() {
            looks += self.ranges.len();
            if looks > MOST_LOOKS {
                return Err(TooLarge);
            }
            for edge in self.edges(&installed) {
                if Some(edge.to) == from.name || last.contains_key(edge.to) {
                    continue;
                }
                next.push_back((Some(edge.to), self.installed(edge.to), steps + 1));
                order.push((edge.to, steps + 1));
                last.insert(edge.to, (here, edge));
            }
        }
        Ok(Ways { last, order })
    }
}

/// The shortest paths from one bundle to all that it can be updated to.
pub struct Ways<'a> {
    /// For each bundle, the last edge of its path and the bundle where that edge starts; `None` is the beginning.
    last: BTreeMap<&'a str, (Option<&'a str>, UpgradeEdge<'a>)>,
    order: Vec<(&'a str, usize)>,
}

impl<'a> Ways<'a> {
    /// The edges from the beginning to this bundle; `None` if there is no path.
    pub fn edges_to(&self, bundle: &str) -> Option<Vec<UpgradeEdge<'a>>> {
        let mut edges = Vec::new();
        let mut at = Some(bundle);
        while let Some(name) = at {
            let (before, edge) = self.last.get(name)?;
            edges.push(edge.clone());
            at = *before;
        }
        edges.reverse();
        Some(edges)
    }

    /// Every reachable bundle and the length of its path in edges, nearest first.
    pub fn reachable_bundles(&self) -> &[(&'a str, usize)] {
        &self.order
    }
}

/// The bundles of a channel that no entry in it replaces or skips. A valid channel has exactly one, its head.
pub fn heads(channel: &Channel) -> Vec<&str> {
    let mut below: BTreeSet<&str> = BTreeSet::new();
    for entry in &channel.entries {
        below.extend(entry.skips.iter().map(String::as_str));
        if !entry.replaces.is_empty() {
            below.insert(&entry.replaces);
        }
    }
    let names: BTreeSet<&str> = channel.entries.iter().map(|entry| &*entry.name).collect();
    names.difference(&below).copied().collect()
}
