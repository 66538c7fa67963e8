//! What a new release of a catalog changes for ClusterExtensions and Subscriptions.
//!
//! Each is resolved twice, with the old catalog and with the new one, as OLM does. Other catalogs are not considered.

use std::collections::BTreeMap;

use gantry_catalog::classic::{self, Current};
use gantry_catalog::resolve::{ServedCatalog, range_of, resolve};
use gantry_catalog::{Catalog, PACKAGE, Package, PackageBundle};
use serde::Serialize;

use crate::cluster_extension::{self, LiveExtension};
use crate::subscription::{self, SubscriptionObject};
use gantry_cluster::selector::ParsedLabelSelector;

/// The catalog in both releases.
#[derive(Debug, Clone, Copy)]
pub struct CatalogReleases<'a> {
    /// The old release.
    pub old: &'a Catalog,
    /// The new release.
    pub new: &'a Catalog,
    /// The name and the labels of the catalog; `None` if they are unknown, and everything may use it.
    pub identity: Option<(&'a str, &'a BTreeMap<String, String>)>,
}

/// What the new catalog changes for an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum InstallationEffect {
    /// It resolved, and cannot any more.
    NoLongerResolves,
    /// The package cannot be read in the new catalog.
    PackageUnreadable,
    /// The one version that it names is not in the new catalog.
    PinnedVersionGone,
    /// A channel that it names is not in the new catalog.
    ChannelGone,
    /// The package is not in the new catalog.
    PackageGone,
    /// The installed bundle is not in the new catalog.
    InstalledBundleGone,
    /// It resolves to another version.
    ResolvesElsewhere,
    /// It could not be resolved, and can now.
    ResolvesNow,
    /// Something that it uses is newly deprecated: its package, a channel that it names, or its bundle.
    Deprecated,
}

impl InstallationEffect {
    /// The effect as text.
    pub fn to_text(self) -> &'static str {
        match self {
            InstallationEffect::NoLongerResolves => "can no longer be resolved",
            InstallationEffect::PackageUnreadable => "the package cannot be read",
            InstallationEffect::PinnedVersionGone => "the pinned version is gone",
            InstallationEffect::ChannelGone => "the channel is gone",
            InstallationEffect::PackageGone => "the package is gone",
            InstallationEffect::InstalledBundleGone => "the installed bundle is gone",
            InstallationEffect::ResolvesElsewhere => "resolves to another version",
            InstallationEffect::ResolvesNow => "can be resolved now",
            InstallationEffect::Deprecated => "newly deprecated",
        }
    }
}

/// What OLM installs from one of the catalogs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum InstallationResult {
    /// This bundle, which may be the installed one.
    Bundle {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
    },
    /// Nothing, with OLM's text.
    Error(String),
}

impl InstallationResult {
    fn of_bundle(bundle: &PackageBundle) -> InstallationResult {
        InstallationResult::Bundle { name: bundle.name.clone(), version: bundle.version.clone() }
    }

    /// The name of the bundle, if there is one.
    fn bundle(&self) -> Option<&str> {
        match self {
            InstallationResult::Bundle { name, .. } => Some(name),
            InstallationResult::Error(_) => None,
        }
    }

    /// The version, or the error.
    pub fn to_text(&self) -> &str {
        match self {
            InstallationResult::Bundle { version, .. } => version,
            InstallationResult::Error(text) => text,
        }
    }
}

/// A ClusterExtension or a Subscription for which the new catalog changes something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AffectedInstallation {
    /// `ClusterExtension` or `Subscription`.
    pub kind: &'static str,
    /// The namespace of a Subscription.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The package that it installs.
    pub package: String,
    /// The installed version, or the installed bundle if its version is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<String>,
    /// What changes, the worst first.
    pub effects: Vec<InstallationEffect>,
    /// What OLM installs from the old catalog.
    pub old: InstallationResult,
    /// What OLM installs from the new catalog.
    pub new: InstallationResult,
    /// Whether somebody has to approve an update (`installPlanApproval: Manual`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_approval: bool,
}

/// The ClusterExtensions that the new catalog affects.
pub fn affected_extensions(releases: CatalogReleases<'_>, extensions: &[LiveExtension]) -> Vec<AffectedInstallation> {
    let selects = |live: &&LiveExtension| {
        let Some((_, labels)) = releases.identity else { return true };
        // OLM refuses an invalid selector, so no catalog affects the extension.
        ParsedLabelSelector::of_object(&live.extension.selector)
            .is_ok_and(|selector| selector.selects(|key| labels.get(key).map(String::as_str)))
    };
    extensions.iter().filter(selects).filter_map(|live| affected_extension(releases, live)).collect()
}

fn affected_extension(releases: CatalogReleases<'_>, live: &LiveExtension) -> Option<AffectedInstallation> {
    let wanted = &live.extension.wanted;
    let installed = live.installed.as_ref();
    let resolved = |catalog: &Catalog| {
        let name = releases.identity.map_or("catalog", |(name, _)| name);
        let source = ServedCatalog { name, priority: 0, package: catalog.packages.get(&wanted.package) };
        match resolve(wanted, installed, &[source]) {
            Ok(resolved) => InstallationResult::of_bundle(resolved.bundle),
            Err(failure) => InstallationResult::Error(failure.text),
        }
    };
    let (old, new) = (resolved(releases.old), resolved(releases.new));
    let is_pinned = range_of(&wanted.version).is_ok_and(|range| range.is_some_and(|range| range.is_one_version()));
    let used = UsedParts {
        package: &wanted.package,
        channels: wanted.channels.iter().map(String::as_str).collect(),
        installed: installed.map(|installed| installed.name.as_str()),
        pinned: old.bundle().filter(|_| is_pinned),
    };
    let effects = used.effects(releases, &old, &new);
    (!effects.is_empty()).then(|| AffectedInstallation {
        kind: cluster_extension::KIND,
        namespace: String::new(),
        name: live.extension.name.clone(),
        package: wanted.package.clone(),
        installed: installed.map(|installed| installed.version.clone()),
        effects,
        old,
        new,
        needs_approval: false,
    })
}

/// The Subscriptions that the new catalog affects.
pub fn affected_subscriptions(
    releases: CatalogReleases<'_>,
    subscriptions: &[SubscriptionObject],
) -> Vec<AffectedInstallation> {
    let selects = |object: &&SubscriptionObject| releases.identity.is_none_or(|(name, _)| object.source == name);
    subscriptions.iter().filter(selects).filter_map(|object| affected_subscription(releases, object)).collect()
}

fn affected_subscription(releases: CatalogReleases<'_>, object: &SubscriptionObject) -> Option<AffectedInstallation> {
    let installed = Some(object.installed_csv.as_str()).filter(|name| !name.is_empty());
    let bundle_of = |catalog: &Catalog, name: &str| {
        catalog.packages.get(&object.package).and_then(|package| package.bundles.get(name)).cloned()
    };
    // OLM compares the version of the ClusterServiceVersion itself, which the new catalog need not have any more.
    let known = installed.and_then(|name| bundle_of(releases.old, name).or_else(|| bundle_of(releases.new, name)));
    let version = known.as_ref().and_then(|bundle| bundle.version().ok()).map(|found| found.version);
    let resolved = |catalog: &Catalog| {
        if let Some(why) = catalog.packages.get(&object.package).and_then(|package| package.broken.as_ref()) {
            return InstallationResult::Error(format!("package {} cannot be read: {why}", object.package));
        }
        let current = installed.map(|name| Current { name, version: version.as_ref() });
        match classic::next(catalog, &object.request(), current) {
            Err(error) => InstallationResult::Error(error.into()),
            Ok(next) => match next.or(installed) {
                Some(name) => match bundle_of(catalog, name).or_else(|| known.clone()) {
                    Some(bundle) => InstallationResult::of_bundle(&bundle),
                    None => InstallationResult::Bundle { name: name.to_owned(), version: name.to_owned() },
                },
                None => InstallationResult::Error("nothing to install".to_owned()),
            },
        }
    };
    let (old, new) = (resolved(releases.old), resolved(releases.new));
    let pinned = Some(object.starting_csv.as_str()).filter(|name| installed.is_none() && !name.is_empty());
    let channels = Some(object.channel.as_str()).filter(|channel| !channel.is_empty());
    let used = UsedParts { package: &object.package, channels: channels.into_iter().collect(), installed, pinned };
    let effects = used.effects(releases, &old, &new);
    (!effects.is_empty()).then(|| AffectedInstallation {
        kind: subscription::KIND,
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        package: object.package.clone(),
        installed: installed.map(|name| known.as_ref().map_or(name, |bundle| &bundle.version).to_owned()),
        effects,
        old,
        new,
        needs_approval: object.needs_approval,
    })
}

/// The parts of an installation that are looked up in both catalogs.
struct UsedParts<'a> {
    package: &'a str,
    /// The named channels.
    channels: Vec<&'a str>,
    /// The name of the installed bundle.
    installed: Option<&'a str>,
    /// The name of the only bundle that may be installed.
    pinned: Option<&'a str>,
}

impl UsedParts<'_> {
    /// What changes, the worst first.
    fn effects(
        &self,
        releases: CatalogReleases<'_>,
        old: &InstallationResult,
        new: &InstallationResult,
    ) -> Vec<InstallationEffect> {
        let nothing = Package::default();
        let [before, after] = [releases.old, releases.new].map(|catalog| catalog.packages.get(self.package));
        if before.is_none() && after.is_none() {
            // The package comes from another catalog.
            return Vec::new();
        }
        let (before_part, after_part) = (before.unwrap_or(&nothing), after.unwrap_or(&nothing));
        let is_bundle_gone =
            |name: &str| before_part.bundles.contains_key(name) && !after_part.bundles.contains_key(name);
        let is_channel_gone =
            |name: &&str| before_part.channels.contains_key(*name) && !after_part.channels.contains_key(*name);
        let is_deprecated = |schema: &str, name: &str| {
            before_part.deprecation(schema, name).is_none() && after_part.deprecation(schema, name).is_some()
        };
        let bundles = self.installed.into_iter().chain(new.bundle());
        let is_any_deprecated = is_deprecated(PACKAGE, "")
            || self.channels.iter().any(|name| is_deprecated("olm.channel", name))
            || bundles.into_iter().any(|name| is_deprecated("olm.bundle", name));
        let found = [
            (old.bundle().is_some() && new.bundle().is_none(), InstallationEffect::NoLongerResolves),
            (before_part.broken.is_none() && after_part.broken.is_some(), InstallationEffect::PackageUnreadable),
            (self.pinned.is_some_and(is_bundle_gone), InstallationEffect::PinnedVersionGone),
            (self.channels.iter().any(is_channel_gone), InstallationEffect::ChannelGone),
            (before.is_some() && after.is_none(), InstallationEffect::PackageGone),
            (self.installed.is_some_and(is_bundle_gone), InstallationEffect::InstalledBundleGone),
            (old.bundle().is_some() && new.bundle().is_some() && old != new, InstallationEffect::ResolvesElsewhere),
            (old.bundle().is_none() && new.bundle().is_some(), InstallationEffect::ResolvesNow),
            (is_any_deprecated, InstallationEffect::Deprecated),
        ];
        found.into_iter().filter(|(is_so, _)| *is_so).map(|(_, effect)| effect).collect()
    }
}
