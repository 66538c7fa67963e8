//! Finds the bundle that classic OLM installs for a Subscription.
//!
//! Unlike OLM v1 it looks only at the entries on the `replaces` chain from the head of a channel that no other entry
//! skips. Of the entries that an edge leads to, it takes the one nearest to the head. A Subscription without a channel
//! considers all channels, the default channel first.
//!
//! Source of the rules and the texts: `getSubscriptionVariables` and `sortChannel` in
//! `pkg/controller/registry/resolver/resolver.go` of operator-lifecycle-manager.

use std::collections::{BTreeMap, BTreeSet};

use gantry_k8s_cel::gotext::quote;

use crate::error::OlmError;
use crate::index::Catalog;
use crate::package::{Channel, ChannelEntry, Package};
use crate::skip_range::SkipRange;
use crate::version::SemanticVersion;

/// The parts of a Subscription that determine what OLM installs; a part that is not set is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subscription<'a> {
    /// Its name.
    pub name: &'a str,
    /// The package: `spec.name`.
    pub package: &'a str,
    /// The channel; empty for all.
    pub channel: &'a str,
    /// The bundle to install first.
    pub starting_csv: &'a str,
    /// The name of the catalog.
    pub source: &'a str,
    /// The namespace of the catalog.
    pub source_namespace: &'a str,
}

/// The ClusterServiceVersion that a Subscription has installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current<'a> {
    /// Its name, which is that of its bundle.
    pub name: &'a str,
    /// Its own version. OLM compares this one with a `skipRange`, so the catalog need not have the bundle any more.
    /// `None` if it is unknown; then the version in the catalog counts.
    pub version: Option<&'a SemanticVersion>,
}

/// The bundle that a Subscription installs next: an update of the installed bundle, or its `startingCSV` or the head of
/// the channel if none is installed. `None` if there is no update. Requirements of bundles are not looked at.
///
/// # Errors
/// OLM's text: it cannot resolve the Subscription, and installs nothing in its namespace.
pub fn next<'c>(
    catalog: &'c Catalog,
    subscription: &Subscription<'_>,
    current: Option<Current<'_>>,
) -> Result<Option<&'c str>, OlmError> {
    Ok(candidates(catalog, subscription, current)?.first().copied())
}

/// The bundles that a Subscription can install next, the preferred one first: OLM takes the first whose requirements it
/// can meet, and stays at the installed one if there is none.
///
/// # Errors
/// OLM's text: it cannot resolve the Subscription, and installs nothing in its namespace.
pub fn candidates<'c>(
    catalog: &'c Catalog,
    subscription: &Subscription<'_>,
    current: Option<Current<'_>>,
) -> Result<Vec<&'c str>, OlmError> {
    let Subscription { name, package, channel, starting_csv, source, source_namespace } = subscription;
    if !catalog.packages.values().any(has_operators) {
        return Err(format!(
            "no operators found from catalog {source} in namespace {source_namespace} referenced by subscription {name}"
        )
        .into());
    }
    let Some(of) = catalog.packages.get(*package).filter(|package| has_operators(package)) else {
        return Err(format!(
            "no operators found in package {package} in the catalog referenced by subscription {name}"
        )
        .into());
    };
    let mut channels: Vec<(&Channel, Vec<&ChannelEntry>)> = of
        .channels
        .values()
        .filter(|known| channel.is_empty() || known.name == *channel)
        .map(|known| (known, operators(of, known)))
        .filter(|(_, entries)| !entries.is_empty())
        .collect();
    if channels.is_empty() {
        return Err(format!(
            "no operators found in channel {channel} of package {package} in the catalog referenced by subscription \
             {name}"
        )
        .into());
    }
    if current.is_none() && !starting_csv.is_empty() {
        channels.iter_mut().for_each(|(_, entries)| entries.retain(|entry| entry.name == *starting_csv));
        channels.retain(|(_, entries)| !entries.is_empty());
        if channels.is_empty() {
            return Err(format!(
                "no operators found with name {starting_csv} in channel {channel} of package {package} in the catalog \
                 referenced by subscription {name}"
            )
            .into());
        }
    }
    channels.sort_by_key(|(known, _)| known.name != of.default_channel);
    let mut candidates = Vec::new();
    for (channel, entries) in channels {
        candidates.extend(chain(of, channel, &entries)?);
    }
    let Some(Current { name: installed, version }) = current else {
        return Ok(candidates.iter().map(|entry| entry.name.as_str()).collect());
    };
    let of_catalog = || of.bundles.get(installed).and_then(|bundle| bundle.version().ok());
    let version = version.cloned().or_else(|| of_catalog().map(|found| found.version));
    let is_edge = |entry: &&&ChannelEntry| {
        entry.replaces == installed
            || entry.skips.iter().any(|skipped| skipped == installed)
            || version.as_ref().is_some_and(|version: &SemanticVersion| {
                SkipRange::parse(&entry.skip_range)
                    .is_ok_and(|range| !entry.skip_range.is_empty() && range.contains(version))
            })
    };
    let updates = candidates.iter().filter(is_edge).map(|entry| entry.name.as_str());
    // OLM can always stay at the installed one, so it takes none of those after it.
    Ok(updates.take_while(|name| *name != installed).collect())
}

/// The entries of a channel that have a bundle. OLM does not see the others: it asks the catalog for bundles.
fn operators<'a>(package: &Package, channel: &'a Channel) -> Vec<&'a ChannelEntry> {
    channel.entries.iter().filter(|entry| package.bundles.contains_key(&entry.name)).collect()
}

fn has_operators(package: &Package) -> bool {
    package.channels.values().any(|channel| !operators(package, channel).is_empty())
}

/// The entries on the `replaces` chain, from the head down, without those that another entry skips.
fn chain<'a>(
    package: &Package,
    channel: &Channel,
    entries: &[&'a ChannelEntry],
) -> Result<Vec<&'a ChannelEntry>, String> {
    let by_name: BTreeMap<&str, &ChannelEntry> = entries.iter().map(|entry| (entry.name.as_str(), *entry)).collect();
    let replaced: BTreeSet<&str> = entries.iter().map(|entry| entry.replaces.as_str()).collect();
    let skipped: BTreeSet<&str> = entries.iter().flat_map(|entry| entry.skips.iter().map(String::as_str)).collect();
    let place = format!("channel {} of package {}", quote(&channel.name), quote(&package.name));
    let is_head = |entry: &&&ChannelEntry| !replaced.contains(&*entry.name) && !skipped.contains(&*entry.name);
    let mut chains = Vec::new();
    for head in entries.iter().filter(is_head) {
        let (mut chain, mut visited) = (Vec::new(), BTreeSet::new());
        let mut next = Some(*head);
        while let Some(entry) = next {
            if !visited.insert(&entry.name) {
                let head = quote(&head.name);
                return Err(format!("a cycle exists in the chain of replacement beginning with {head} in {place}"));
            }
            if !skipped.contains(&*entry.name) {
                chain.push(entry);
            }
            next = by_name.get(&*entry.replaces).copied();
        }
        chains.push(chain);
    }
    match chains.len() {
        0 => Err(format!("no channel heads (entries not replaced by another entry) found in {place}")),
        1 => Ok(chains.remove(0)),
        count => {
            let shown: Vec<String> = chains.iter().map(|chain| name_both_ends(chain)).collect();
            Err(format!(
                "a unique replacement chain within a channel is required to determine the relative order between \
                 channel entries, but {count} replacement chains were found in {place}: {}",
                shown.join(", ")
            ))
        }
    }
}

/// The names at both ends of a chain: `p.v2.0.0...p.v1.0.0`.
fn name_both_ends(chain: &[&ChannelEntry]) -> String {
    match chain {
        [] => String::new(),
        [one] => one.name.clone(),
        [first, .., last] => format!("{}...{}", first.name, last.name),
    }
}
