//! What classic OLM installs for one Subscription, next and afterwards.

use std::collections::BTreeSet;

use gantry_catalog::classic::{self, Current};
use gantry_catalog::graph::heads;
use gantry_catalog::{Catalog, Channel, ChannelEntry, Package, SkipRange};

use super::nodes::{CSV, LiveOperators, OperatorNode};
use super::rules::SUBSCRIPTION_STUCK;
use super::violation;
use crate::{CouldNotCheck, Violation};
use gantry_core::finding::SubscriptionEntry;
use gantry_core::text::sanitize;
use gantry_olm::subscription::{self, SubscriptionObject};

/// The maximum number of later updates that are predicted.
const MOST_STEPS: usize = 20;

/// Why it is unknown what OLM would install for a Subscription.
pub enum SubscriptionError {
    /// OLM cannot resolve it, with OLM's text.
    Unresolved { package: String, why: String, entry: Box<SubscriptionEntry> },
    /// Something is missing here that OLM has.
    Unknown(CouldNotCheck),
}

/// What classic OLM would install for a Subscription.
pub struct ResolvedSubscription {
    /// The operator after the deploy, if the catalog has its bundle.
    pub node: Option<OperatorNode>,
    /// Its install modes, if the catalog says them.
    pub modes: Option<Vec<String>>,
    pub entry: SubscriptionEntry,
    pub stuck: Option<Violation>,
}

impl LiveOperators<'_> {
    /// What classic OLM would install for a Subscription.
    pub fn subscription(
        &self,
        object: &SubscriptionObject,
        before: &[OperatorNode],
        problems: &mut Vec<String>,
    ) -> Result<ResolvedSubscription, SubscriptionError> {
        let (package, source) = (object.package.as_str(), object.source.as_str());
        let shown = format!("Subscription {}", sanitize(&object.name));
        if package.is_empty() || source.is_empty() {
            let message = format!("{shown} has no spec.name or no spec.source: these name the package and its catalog");
            return Err(SubscriptionError::Unknown(CouldNotCheck { message, help: None }));
        }
        let catalog = match self.contents.get(source) {
            Some(Ok(catalog)) => catalog,
            _ => {
                let message = format!("{shown}: the content of its catalog {} is unknown", sanitize(source));
                let help = format!("provide it: --catalog {}=PATH", sanitize(source));
                return Err(SubscriptionError::Unknown(CouldNotCheck { message, help: Some(help) }));
            }
        };
        if let Some(why) = catalog.packages.get(package).and_then(|of| of.broken.as_deref()) {
            let message = format!(
                "{shown}: package {} of catalog {} cannot be read: {}",
                sanitize(package),
                sanitize(source),
                sanitize(why)
            );
            return Err(SubscriptionError::Unknown(CouldNotCheck { message, help: None }));
        }
        let live = self.subscriptions.iter().find(|live| {
            live["metadata"]["name"] == object.name.as_str()
                && live["metadata"]["namespace"].as_str().unwrap_or_default() == object.namespace
        });
        let installed = live.and_then(|live| live["status"]["installedCSV"].as_str());
        // OLM ignores the status if there is no such ClusterServiceVersion (`Resolve` in
        // `pkg/controller/registry/resolver/resolver.go`).
        let is_here = |node: &&OperatorNode| node.object.1.as_deref().unwrap_or_default() == object.namespace;
        let mut csvs = before.iter().filter(|node| node.object.0 == CSV).filter(is_here);
        let csv = installed.and_then(|name| csvs.find(|node| node.name == name));
        let current = csv.map(|csv| classic::Current { name: &csv.name, version: csv.version.as_ref() });
        let version = csv.map(|csv| csv.version.as_ref().map_or(csv.name.clone(), ToString::to_string));
        let mut entry = entry(object, version.as_deref());
        let next = classic::next(catalog, &object.request(), current).map_err(|why| {
            let why = String::from(why);
            let entry = Box::new(SubscriptionEntry { error: Some(why.clone()), ..entry.clone() });
            SubscriptionError::Unresolved { package: package.to_owned(), why, entry }
        })?;
        let of = catalog.packages.get(package);
        let stuck = match (next, current, of) {
            (None, Some(current), Some(of)) => report_stuck(0, object, of, current.name),
            _ => None,
        };
        let next = next.or(current.map(|current| current.name));
        if let (Some(of), Some(next)) = (of, next) {
            describe(&mut entry, catalog, object, of, next, current);
            // The version of the installed ClusterServiceVersion, which the catalog need not have.
            if Some(next) == current.map(|current| current.name) {
                entry.resolved.clone_from(&entry.installed);
            }
        }
        let bundle = of.zip(next).and_then(|(of, next)| Some((of, of.bundles.get(next)?)));
        let Some((of, bundle)) = bundle else {
            return Ok(ResolvedSubscription { node: None, entry, stuck, modes: None });
        };
        let node = OperatorNode::of_bundle(of, bundle, problems);
        let represented = (subscription::KIND.to_owned(), Some(object.namespace.clone()), object.name.clone());
        Ok(ResolvedSubscription {
            node: Some(OperatorNode { object: represented, ..node }),
            modes: bundle.csv.as_ref().map(|csv| csv.install_modes.clone()),
            entry,
            stuck,
        })
    }
}

/// The report entry of a Subscription, before OLM resolves it.
fn entry(object: &SubscriptionObject, installed: Option<&str>) -> SubscriptionEntry {
    SubscriptionEntry {
        name: object.name.clone(),
        namespace: Some(object.namespace.clone()).filter(|namespace| !namespace.is_empty()),
        package: object.package.clone(),
        channel: object.channel.clone(),
        catalog: object.source.clone(),
        installed: installed.map(str::to_owned),
        needs_approval: object.needs_approval,
        ..SubscriptionEntry::default()
    }
}

/// Fills in what OLM installs next and afterwards.
fn describe(
    entry: &mut SubscriptionEntry,
    catalog: &Catalog,
    object: &SubscriptionObject,
    package: &Package,
    bundle: &str,
    current: Option<Current<'_>>,
) {
    let version = |name: &str| package.bundles.get(name).map_or(name, |bundle| &bundle.version).to_owned();
    entry.resolved = Some(version(bundle));
    entry.bundle = Some(bundle.to_owned());
    entry.starting_csv = current.is_none() && object.starting_csv == bundle;
    entry.is_at_head = channels(package, &object.channel).any(|channel| heads(channel).contains(&bundle));
    if let Some(current) = current.filter(|current| current.name != bundle) {
        let mut edges: Vec<String> = channels(package, &object.channel)
            .flat_map(|channel| channel.entries.iter().filter(|entry| entry.name == bundle))
            .filter_map(|entry| edge(entry, current, package))
            .collect();
        edges.sort();
        edges.dedup();
        entry.edges = edges;
    }
    // Every further step waits for its own approval.
    if entry.needs_approval {
        return;
    }
    let mut seen = BTreeSet::from([bundle.to_owned()]);
    let mut at = bundle;
    while entry.then.len() < MOST_STEPS {
        let next = classic::next(catalog, &object.request(), Some(Current { name: at, version: None }));
        let Ok(Some(next)) = next else { break };
        if !seen.insert(next.to_owned()) {
            break;
        }
        entry.then.push(version(next));
        at = next;
    }
}

fn channels<'p>(package: &'p Package, channel: &str) -> impl Iterator<Item = &'p Channel> {
    package.channels.values().filter(move |known| channel.is_empty() || known.name == channel)
}

/// What makes the edge from the installed bundle to this entry.
fn edge(entry: &ChannelEntry, current: Current<'_>, package: &Package) -> Option<String> {
    if entry.replaces == current.name {
        return Some("replaces".to_owned());
    }
    if entry.skips.iter().any(|skipped| skipped == current.name) {
        return Some("skips".to_owned());
    }
    let of_catalog = || package.bundles.get(current.name)?.version().ok().map(|found| found.version);
    let version = current.version.cloned().or_else(of_catalog)?;
    let range = SkipRange::parse(&entry.skip_range).ok().filter(|_| !entry.skip_range.is_empty())?;
    range.contains(&version).then(|| format!("skipRange {}", entry.skip_range))
}

/// Reports a Subscription that never updates what is installed: its channel has newer bundles, but no edge to them.
fn report_stuck(change: usize, object: &SubscriptionObject, package: &Package, current: &str) -> Option<Violation> {
    let mut of: Vec<(&str, &str)> = channels(package, &object.channel)
        .flat_map(|channel| heads(channel).into_iter().map(|head| (channel.name.as_str(), head)))
        .filter(|(_, head)| package.bundles.contains_key(*head))
        .collect();
    if of.is_empty() || of.iter().any(|(_, head)| *head == current) {
        return None;
    }
    of.sort();
    let (channel, head) = of[0];
    let message = format!(
        "Subscription {} stays at {}: no bundle of channel {} replaces it, skips it or has its version in skipRange; the head \
         of the channel is {}",
        sanitize(&object.name),
        sanitize(current),
        sanitize(channel),
        sanitize(head)
    );
    let help = format!(
        "OLM reports no error and installs no update; choose a channel that leads on from the installed version: gantry catalog \
         {} --from {}",
        sanitize(&object.package),
        sanitize(current)
    );
    Some(violation(&SUBSCRIPTION_STUCK, change, message, help))
}
