//! What classic OLM installs for one Subscription, next and afterwards.

use std::collections::{BTreeMap, BTreeSet};

use gantry_catalog::classic::{self, Current};
use gantry_catalog::dependency::{BundleRequirement, InstalledOperator, provided};
use gantry_catalog::graph::heads;
use gantry_catalog::{Catalog, Channel, ChannelEntry, Package, PackageBundle, SkipRange};

use super::nodes::{CSV, LiveOperators, OperatorNode};
use super::rules::SUBSCRIPTION_STUCK;
use super::violation;
use crate::olm::catalogs::Contents;
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
        if !source.is_empty() && self.lacks_source(object) {
            let why = format!(
                "no operators found from catalog {source} in namespace {} referenced by subscription {}",
                object.source_namespace, object.name
            );
            let entry = Box::new(SubscriptionEntry { error: Some(why.clone()), ..entry(object, None) });
            return Err(SubscriptionError::Unresolved { package: package.to_owned(), why, entry });
        }
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
        let satisfiable = SatisfiableRequirements { contents: self.contents, before, namespace: &object.namespace };
        let choice = choose(catalog, object, current, &satisfiable).map_err(|why| {
            let entry = Box::new(SubscriptionEntry { error: Some(why.clone()), ..entry.clone() });
            SubscriptionError::Unresolved { package: package.to_owned(), why, entry }
        })?;
        let (of, next) = (catalog.packages.get(package), choice.next);
        let stuck = match (next, current, of) {
            _ if choice.unmet.is_some() => report_passed_over(object, &choice, version.as_deref()),
            (None, Some(current), Some(of)) => {
                report_stuck(object, of, current.name, version.as_deref().unwrap_or(current.name))
            }
            _ => None,
        };
        let next = next.or(current.map(|current| current.name));
        if let (Some(of), Some(next)) = (of, next) {
            describe(&mut entry, catalog, object, of, next, current, &satisfiable);
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

/// What OLM installs of the candidates of a Subscription.
struct SubscriptionChoice<'c> {
    /// `None` if it stays at what is installed.
    next: Option<&'c str>,
    /// The preferred candidate that it passes over, and the requirement that it cannot meet.
    unmet: Option<(&'c str, String)>,
}

/// The first candidate whose requirements OLM can meet; without one, what is installed. If nothing is installed, OLM
/// cannot resolve the Subscription; then it is the preferred one, whose requirements are reported.
fn choose<'c>(
    catalog: &'c Catalog,
    object: &SubscriptionObject,
    current: Option<Current<'_>>,
    satisfiable: &SatisfiableRequirements<'_>,
) -> Result<SubscriptionChoice<'c>, String> {
    let candidates = classic::candidates(catalog, &object.request(), current).map_err(String::from)?;
    let of = catalog.packages.get(&object.package);
    let mut unmet = None;
    for name in &candidates {
        let bundle = of.and_then(|of| Some((of, of.bundles.get(*name)?)));
        match bundle.and_then(|(of, bundle)| satisfiable.unmet(of, bundle, &mut AskedBundles::new())) {
            None => return Ok(SubscriptionChoice { next: Some(name), unmet }),
            Some(requirement) if unmet.is_none() => unmet = Some((*name, requirement)),
            Some(_) => {}
        }
    }
    Ok(match current {
        Some(_) => SubscriptionChoice { next: None, unmet },
        None => SubscriptionChoice { next: candidates.first().copied(), unmet: None },
    })
}

/// The bundles, by package and name, whose requirements were looked at, with the first that cannot be met.
type AskedBundles<'p> = BTreeMap<(&'p str, &'p str), Option<String>>;

/// Whether OLM can meet the requirements of bundles, from what is installed in the namespace and from the catalogs.
struct SatisfiableRequirements<'a> {
    contents: &'a Contents,
    before: &'a [OperatorNode],
    namespace: &'a str,
}

impl SatisfiableRequirements<'_> {
    /// A requirement of the bundle that no operator can meet whose own requirements can be met.
    fn unmet<'p>(
        &'p self,
        package: &'p Package,
        bundle: &'p PackageBundle,
        asked: &mut AskedBundles<'p>,
    ) -> Option<String> {
        let key = (package.name.as_str(), bundle.name.as_str());
        if let Some(known) = asked.get(&key) {
            return known.clone();
        }
        // Bundles that require each other are installed together.
        asked.insert(key, None);
        let node = OperatorNode::of_bundle(package, bundle, &mut Vec::new());
        let unmet = node.requires.iter().find(|requirement| !self.can_meet(requirement, asked));
        let unmet = unmet.map(ToString::to_string);
        asked.insert(key, unmet.clone());
        unmet
    }

    fn can_meet<'p>(&'p self, requirement: &BundleRequirement, asked: &mut AskedBundles<'p>) -> bool {
        // What an expression would say is unknown: it is reported elsewhere.
        let holds = |node: &OperatorNode| requirement.holds([node as &dyn InstalledOperator]) != Some(false);
        let is_here = |node: &&OperatorNode| node.object.0 == CSV && node.object.1.as_deref() == Some(self.namespace);
        if self.before.iter().filter(is_here).any(holds) {
            return true;
        }
        let named = match requirement {
            BundleRequirement::Package { name, .. } => Some(name),
            _ => None,
        };
        let packages = self.contents.values().filter_map(|read| read.as_ref().ok()).flat_map(|read| &read.packages);
        for (_, package) in packages.filter(|(name, _)| named.is_none_or(|named| named == *name)) {
            for bundle in package.by_version() {
                let is_in_channel = package.channels_of(&bundle.name).next().is_some();
                let may_provide = match requirement {
                    BundleRequirement::Api(api) => provided(&bundle.properties).into_iter().any(|one| one == *api),
                    _ => holds(&OperatorNode::of_bundle(package, bundle, &mut Vec::new())),
                };
                if is_in_channel && may_provide && self.unmet(package, bundle, asked).is_none() {
                    return true;
                }
            }
        }
        false
    }
}

/// Reports that OLM does not take the candidate that it prefers, because it cannot meet its requirements.
fn report_passed_over(
    object: &SubscriptionObject,
    choice: &SubscriptionChoice<'_>,
    installed: Option<&str>,
) -> Option<Violation> {
    let (bundle, requirement) = choice.unmet.as_ref()?;
    let does = match (choice.next, installed) {
        (Some(next), _) => format!("gets {}", sanitize(next)),
        (None, Some(installed)) => format!("stays at {}", sanitize(installed)),
        (None, None) => return None,
    };
    let message = format!(
        "Subscription {} {does}: bundle {} requires an operator {}, which nothing in the catalogs or the namespace meets",
        sanitize(&object.name),
        sanitize(bundle),
        sanitize(requirement)
    );
    let help = format!("to get {}, add a catalog with such an operator", sanitize(bundle));
    Some(violation(&SUBSCRIPTION_STUCK, 0, message, help))
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
    satisfiable: &SatisfiableRequirements<'_>,
) {
    let version = |name: &str| package.bundles.get(name).map_or(name, |bundle| &bundle.version).to_owned();
    entry.resolved = Some(version(bundle));
    entry.bundle = Some(bundle.to_owned());
    entry.starting_csv = current.is_none() && object.starting_csv == bundle;
    // Without a channel, an edge of another one may lead on.
    let at_bundle = Some(Current { name: bundle, version: None });
    entry.is_at_head = channels(package, &object.channel).any(|channel| heads(channel).contains(&bundle))
        && (!object.channel.is_empty()
            || classic::next(catalog, &object.request(), at_bundle).is_ok_and(|next| next.is_none()));
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
        let choice = choose(catalog, object, Some(Current { name: at, version: None }), satisfiable);
        let Ok(SubscriptionChoice { next: Some(next), .. }) = choice else { break };
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
fn report_stuck(object: &SubscriptionObject, package: &Package, current: &str, version: &str) -> Option<Violation> {
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
        sanitize(version)
    );
    Some(violation(&SUBSCRIPTION_STUCK, 0, message, help))
}
