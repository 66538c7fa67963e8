//! Compares two releases of a catalog: packages, channels, bundles, edges, heads and deprecations.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::graph::{By, heads};
use crate::index::Catalog;
use crate::package::{Channel, ChannelEntry, Deprecation, Package, PackageBundle};

/// What happened to a part of a catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PartChange {
    /// Only the new catalog has it.
    Added,
    /// Only the old catalog has it.
    Removed,
    /// Both have it, with different content.
    Changed,
}

/// A value that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OldAndNew<T> {
    /// In the old catalog.
    pub old: T,
    /// In the new catalog.
    pub new: T,
}

/// What differs in a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PackageDiff {
    /// Its name.
    pub name: String,
    /// What happened to it.
    pub change: PartChange,
    /// Its default channel, if that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_channel: Option<OldAndNew<String>>,
    /// Its channels that differ, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelDiff>,
    /// Its bundles that differ, from the highest version down.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bundles: Vec<BundleDiff>,
    /// What is deprecated in the new catalog only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deprecated: Vec<DeprecatedPart>,
    /// What is deprecated in the old catalog only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub no_longer_deprecated: Vec<DeprecatedPart>,
    /// Why nothing can be installed from the new package, in OLM's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// What differs in a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ChannelDiff {
    /// Its name.
    pub name: String,
    /// What happened to it.
    pub change: PartChange,
    /// The bundles at its head, if they differ; a valid channel has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<OldAndNew<Vec<String>>>,
    /// The bundles that the channel has in the new catalog only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bundles_added: Vec<String>,
    /// The bundles that the channel has in the old catalog only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bundles_removed: Vec<String>,
    /// The edges of the new catalog only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges_added: Vec<EdgeDiff>,
    /// The edges of the old catalog only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges_removed: Vec<EdgeDiff>,
}

/// An edge: `to` can be installed over `from`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgeDiff {
    /// The name of the bundle that the edge leads to.
    pub to: String,
    /// The field of its entry that makes the edge.
    pub by: By,
    /// The name of the bundle that it starts at; for [`By::SkipRange`] the range of versions.
    pub from: String,
}

/// What differs in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BundleDiff {
    /// Its name.
    pub name: String,
    /// Its version in the new catalog, or in the old one if it is removed.
    pub version: String,
    /// What happened to it.
    pub change: PartChange,
    /// Its version, if both catalogs have the bundle with different ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions: Option<OldAndNew<String>>,
    /// Its image, if both catalogs have the bundle with different ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<OldAndNew<String>>,
    /// The types of its properties that declare dependencies, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<OldAndNew<Vec<String>>>,
}

/// A deprecation of one of the catalogs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeprecatedPart {
    /// What is deprecated: `olm.package`, `olm.channel` or `olm.bundle`.
    pub schema: String,
    /// Its name; empty for the package.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Why, and what to use instead.
    pub message: String,
}

/// Compares two catalogs. Returns the packages that differ, by name. `only` limits the comparison to one package.
pub fn compare(old: &Catalog, new: &Catalog, only: Option<&str>) -> Vec<PackageDiff> {
    let names: BTreeSet<&str> = old.packages.keys().chain(new.packages.keys()).map(String::as_str).collect();
    let names = names.into_iter().filter(|name| only.is_none_or(|only| only == *name));
    names.filter_map(|name| compare_package(old.packages.get(name), new.packages.get(name))).collect()
}

fn compare_package(old: Option<&Package>, new: Option<&Package>) -> Option<PackageDiff> {
    let nothing = Package::default();
    let change = part_change(old, new)?;
    let (old, new) = (old.unwrap_or(&nothing), new.unwrap_or(&nothing));
    let [before, after] = [old, new].map(|of| deprecations(&of.deprecations));
    let pairs = pairs(&old.channels, &new.channels);
    let diff = PackageDiff {
        name: if change == PartChange::Removed { old.name.clone() } else { new.name.clone() },
        change,
        default_channel: (change == PartChange::Changed)
            .then(|| differing(&old.default_channel, &new.default_channel))
            .flatten(),
        channels: pairs.filter_map(|(name, old, new)| compare_channel(name, old, new)).collect(),
        bundles: compare_bundles(old, new),
        deprecated: after.difference(&before).cloned().collect(),
        no_longer_deprecated: before.difference(&after).cloned().collect(),
        unreadable: new.broken.clone().filter(|_| old.broken != new.broken),
    };
    let is_same = diff.default_channel.is_none()
        && diff.channels.is_empty()
        && diff.bundles.is_empty()
        && diff.deprecated.is_empty()
        && diff.no_longer_deprecated.is_empty()
        && diff.unreadable.is_none();
    (change != PartChange::Changed || !is_same).then_some(diff)
}

fn part_change<T>(old: Option<T>, new: Option<T>) -> Option<PartChange> {
    match (old, new) {
        (Some(_), Some(_)) => Some(PartChange::Changed),
        (None, Some(_)) => Some(PartChange::Added),
        (Some(_), None) => Some(PartChange::Removed),
        (None, None) => None,
    }
}

fn differing<T: PartialEq + Clone>(old: &T, new: &T) -> Option<OldAndNew<T>> {
    (old != new).then(|| OldAndNew { old: old.clone(), new: new.clone() })
}

/// The values of both maps, by key.
fn pairs<'a, T>(
    old: &'a BTreeMap<String, T>,
    new: &'a BTreeMap<String, T>,
) -> impl Iterator<Item = (&'a str, Option<&'a T>, Option<&'a T>)> {
    let names: BTreeSet<&str> = old.keys().chain(new.keys()).map(String::as_str).collect();
    names.into_iter().map(|name| (name, old.get(name), new.get(name)))
}

fn compare_channel(name: &str, old: Option<&Channel>, new: Option<&Channel>) -> Option<ChannelDiff> {
    let change = part_change(old, new)?;
    let nothing = Channel::default();
    let (old, new) = (old.unwrap_or(&nothing), new.unwrap_or(&nothing));
    if old == new {
        return None;
    }
    let [before, after] = [old, new].map(|of| of.entries.iter().map(|entry| &entry.name).collect::<BTreeSet<_>>());
    let [edges_before, edges_after] = [old, new].map(|of| of.entries.iter().flat_map(edges).collect::<BTreeSet<_>>());
    let [old_heads, new_heads] = [old, new].map(|of| heads(of).into_iter().map(str::to_owned).collect::<Vec<String>>());
    let diff = ChannelDiff {
        name: name.to_owned(),
        change,
        heads: differing(&old_heads, &new_heads),
        bundles_added: after.difference(&before).map(|name| (*name).clone()).collect(),
        bundles_removed: before.difference(&after).map(|name| (*name).clone()).collect(),
        edges_added: edges_after.difference(&edges_before).cloned().collect(),
        edges_removed: edges_before.difference(&edges_after).cloned().collect(),
    };
    // Another order of the same entries is no difference.
    let is_same = diff.bundles_added.is_empty()
        && diff.bundles_removed.is_empty()
        && diff.edges_added.is_empty()
        && diff.edges_removed.is_empty();
    (change != PartChange::Changed || !is_same).then_some(diff)
}

/// The edges that an entry makes.
fn edges(entry: &ChannelEntry) -> impl Iterator<Item = EdgeDiff> {
    let edge = |by, from: &String| EdgeDiff { to: entry.name.clone(), by, from: from.clone() };
    let named = |text: &&String| !text.is_empty();
    let replaces = Some(&entry.replaces).filter(named).map(|from| edge(By::Replaces, from));
    let range = Some(&entry.skip_range).filter(named).map(|from| edge(By::SkipRange, from));
    let skips = entry.skips.iter().map(move |from| edge(By::Skips, from));
    replaces.into_iter().chain(skips).chain(range)
}

fn compare_bundles(old: &Package, new: &Package) -> Vec<BundleDiff> {
    let removed = old.by_version().into_iter().filter(|bundle| !new.bundles.contains_key(&bundle.name));
    let present =
        new.by_version().into_iter().filter_map(|bundle| compare_bundle(old.bundles.get(&bundle.name), bundle));
    present.chain(removed.map(|bundle| bundle_diff(bundle, PartChange::Removed))).collect()
}

fn compare_bundle(old: Option<&PackageBundle>, new: &PackageBundle) -> Option<BundleDiff> {
    let Some(old) = old else { return Some(bundle_diff(new, PartChange::Added)) };
    let diff = BundleDiff {
        versions: differing(&old.version, &new.version),
        images: differing(&old.image, &new.image),
        required: differing(&old.required, &new.required),
        ..bundle_diff(new, PartChange::Changed)
    };
    (diff.versions.is_some() || diff.images.is_some() || diff.required.is_some()).then_some(diff)
}

fn bundle_diff(bundle: &PackageBundle, change: PartChange) -> BundleDiff {
    let (name, version) = (bundle.name.clone(), bundle.version.clone());
    BundleDiff { name, version, change, versions: None, images: None, required: None }
}

fn deprecations(of: &[Deprecation]) -> BTreeSet<DeprecatedPart> {
    let part = |found: &Deprecation| DeprecatedPart {
        schema: found.schema.clone(),
        name: found.name.clone(),
        message: found.message.clone(),
    };
    of.iter().map(part).collect()
}
