//! Finds the bundle that classic OLM installs for a Subscription.
//!
//! Unlike OLM v1 it looks at a single channel, and only at the entries on the `replaces` chain from its head that no other
//! entry skips (`sortChannel` in `pkg/controller/registry/resolver/resolver.go` of operator-lifecycle-manager). Of the
//! entries that an edge leads to, it takes the one nearest to the head.

use std::collections::BTreeSet;

use crate::graph::heads;
use crate::package::{Channel, Entry, Package};
use crate::skip_range::SkipRange;
use crate::version::Version;

/// The entries on the `replaces` chain, from the head down, without those that another entry skips.
pub fn chain(channel: &Channel) -> Vec<&Entry> {
    let skipped: BTreeSet<&str> =
        channel.entries.iter().flat_map(|entry| entry.skips.iter().map(String::as_str)).collect();
    let mut found: Vec<&Entry> = Vec::new();
    let mut seen = BTreeSet::new();
    let heads = heads(channel);
    let mut next = heads.first().copied();
    while let Some(name) = next {
        let Some(entry) = channel.entries.iter().find(|entry| entry.name == name).filter(|_| seen.insert(name)) else {
            break;
        };
        if !skipped.contains(name) {
            found.push(entry);
        }
        next = Some(entry.replaces.as_str()).filter(|name| !name.is_empty());
    }
    found
}

/// The ClusterServiceVersion that a Subscription has installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current<'a> {
    /// Its name, which is that of its bundle.
    pub name: &'a str,
    /// Its own version. OLM compares this one with a `skipRange`, so the catalog need not have the bundle any more.
    /// `None` if it is unknown; then the version in the catalog counts.
    pub version: Option<&'a Version>,
}

/// The bundle that a Subscription to a channel installs next: an update of the installed bundle, or the head if none is
/// installed. `None` if there is no update or nothing to install.
pub fn next<'a>(package: &'a Package, channel: &'a Channel, installed: Option<Current<'_>>) -> Option<&'a str> {
    let chain = chain(channel);
    let Some(Current { name: installed, version }) = installed else {
        return chain.first().map(|head| head.name.as_str());
    };
    let of_catalog = || package.bundles.get(installed).and_then(|bundle| bundle.version().ok());
    let version = version.cloned().or_else(|| of_catalog().map(|found| found.version));
    let is_edge = |entry: &&&Entry| {
        entry.replaces == installed
            || entry.skips.iter().any(|skipped| skipped == installed)
            || version.as_ref().is_some_and(|version: &Version| {
                SkipRange::parse(&entry.skip_range)
                    .is_ok_and(|range| !entry.skip_range.is_empty() && range.contains(version))
            })
    };
    chain.iter().find(is_edge).map(|entry| entry.name.as_str()).filter(|name| *name != installed)
}
