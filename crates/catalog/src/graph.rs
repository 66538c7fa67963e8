//! The upgrade graph: which bundles can be updated to which, and the shortest way from one to another.
//!
//! As in OLM v1 an update needs one edge and no chain: a bundle can be updated to every bundle of which an entry replaces
//! it, skips it, or has its version in `skipRange`.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::package::{Bundle, Channel, Package};
use crate::skip_range::SkipRange;
use crate::version::{Version, VersionRelease};

/// How often at most a version is looked for in a `skipRange`: enough for a thousand entries that all have one.
const MOST_LOOKS: usize = 4_000_000;

/// What makes an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The entry replaces the bundle.
    Replaces,
    /// The entry skips the bundle.
    Skips,
    /// The entry's `skipRange` has the version in it.
    SkipRange,
}

/// An edge to a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge<'a> {
    /// The name of the bundle that one comes to.
    pub to: &'a str,
    /// The channel whose entry makes the edge.
    pub channel: &'a str,
    /// What in it does.
    pub by: By,
    /// The text of the range, for [`By::SkipRange`].
    pub range: &'a str,
}

/// What is installed: edges of `replaces` and `skips` go by the name, those of `skipRange` by the version.
#[derive(Debug, Clone, PartialEq)]
pub struct Installed<'a> {
    /// The name of the bundle; `None` where the catalog has no bundle of the version.
    pub name: Option<&'a str>,
    /// Its version; `None` where it cannot be read.
    pub version: Option<Version>,
}

/// The graph would take too long to look through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

/// The graph of a package, or of some of its channels.
pub struct Graph<'a> {
    package: &'a Package,
    /// The edges that begin at the bundle of a name.
    named: HashMap<&'a str, Vec<Edge<'a>>>,
    ranges: Vec<(SkipRange, Edge<'a>)>,
    versions: HashMap<&'a str, VersionRelease>,
}

impl<'a> Graph<'a> {
    /// The edges of these channels; of all where none is named.
    pub fn new(package: &'a Package, channels: &[String]) -> Graph<'a> {
        let (mut named, mut ranges): (HashMap<&str, Vec<Edge>>, _) = (HashMap::new(), Vec::new());
        let is_asked_for = |channel: &&Channel| channels.is_empty() || channels.contains(&channel.name);
        for channel in package.channels.values().filter(is_asked_for) {
            // What is in no blob cannot be installed.
            for entry in channel.entries.iter().filter(|entry| package.bundles.contains_key(&entry.name)) {
                let edge = |by| Edge { to: &entry.name, channel: &channel.name, by, range: "" };
                if !entry.replaces.is_empty() {
                    named.entry(&entry.replaces).or_default().push(edge(By::Replaces));
                }
                for skipped in &entry.skips {
                    named.entry(skipped).or_default().push(edge(By::Skips));
                }
                // A range that cannot be read is no edge and no error.
                if !entry.skip_range.is_empty()
                    && let Ok(range) = SkipRange::parse(&entry.skip_range)
                {
                    ranges.push((range, Edge { range: &entry.skip_range, ..edge(By::SkipRange) }));
                }
            }
        }
        let versions = package.bundles.values().filter_map(|bundle| Some((&*bundle.name, bundle.version().ok()?)));
        Graph { package, named, ranges, versions: versions.collect() }
    }

    /// The bundle of this name as what is installed.
    pub fn installed(&self, name: &'a str) -> Installed<'a> {
        Installed { name: Some(name), version: self.versions.get(name).map(|found| found.version.clone()) }
    }

    /// The bundles that replace or skip the bundle of this name, whether the catalog has that one or not.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.named.get(name).into_iter().flatten().map(|edge| edge.to)
    }

    /// Whether an entry replaces or skips itself, or has the version of what is installed in its `skipRange`: a bundle that
    /// was rebuilt under its name may be updated to.
    pub fn leads_to_itself(&self, from: &Installed<'a>) -> bool {
        self.all_edges(from).any(|edge| Some(edge.to) == from.name)
    }

    fn all_edges<'s>(&'s self, from: &'s Installed<'a>) -> impl Iterator<Item = &'s Edge<'a>> {
        let named = from.name.and_then(|name| self.named.get(name)).into_iter().flatten();
        let is_in = |range: &SkipRange| from.version.as_ref().is_some_and(|version| range.contains(version));
        let ranged = self.ranges.iter().filter(move |(range, _)| is_in(range)).map(|(_, edge)| edge);
        named.chain(ranged)
    }

    /// Every edge that begins here and leads to another bundle, the highest version first.
    pub fn edges(&self, from: &Installed<'a>) -> Vec<Edge<'a>> {
        let mut edges: Vec<Edge> = self.all_edges(from).filter(|edge| Some(edge.to) != from.name).cloned().collect();
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

    /// The bundles that can be updated to from here in one step, the highest version first.
    pub fn successors(&self, from: &Installed<'a>) -> Vec<&'a Bundle> {
        let mut seen = BTreeSet::new();
        let edges = self.edges(from).into_iter().filter(|edge| seen.insert(edge.to));
        edges.filter_map(|edge| self.package.bundles.get(edge.to)).collect()
    }

    /// The fewest edges from here to each bundle, as the last edge of the way and what it begins at (`None`: here). Of several
    /// ways of the same length it is the one over the highest versions.
    pub fn ways(&self, from: &Installed<'a>) -> Result<Ways<'a>, TooLarge> {
        let mut last: BTreeMap<&str, (Option<&str>, Edge)> = BTreeMap::new();
        let mut order = Vec::new();
        let mut next = VecDeque::from([(None, from.clone())]);
        let mut looks = 0;
        while let Some((here, installed)) = next.pop_front() {
            looks += self.ranges.len();
            if looks > MOST_LOOKS {
                return Err(TooLarge);
            }
            for edge in self.edges(&installed) {
                if Some(edge.to) == from.name || last.contains_key(edge.to) {
                    continue;
                }
                next.push_back((Some(edge.to), self.installed(edge.to)));
                order.push(edge.to);
                last.insert(edge.to, (here, edge));
            }
        }
        Ok(Ways { last, order })
    }
}

/// The shortest ways from one bundle to all that it can be updated to.
pub struct Ways<'a> {
    last: BTreeMap<&'a str, (Option<&'a str>, Edge<'a>)>,
    order: Vec<&'a str>,
}

impl<'a> Ways<'a> {
    /// The edges from the beginning to this bundle; `None` where there is no way.
    pub fn to(&self, bundle: &str) -> Option<Vec<Edge<'a>>> {
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

    /// Every bundle that there is a way to, the nearest first.
    pub fn reached(&self) -> &[&'a str] {
        &self.order
    }
}

/// The bundles of a channel that nothing in it replaces or skips: should be one, from which an installation starts.
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
