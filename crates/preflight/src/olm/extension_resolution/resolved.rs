//! Reports what a ClusterExtension resolves to, and what to know before OLM installs it.

use std::collections::BTreeSet;

use gantry_catalog::bundle::{OlmRelease, Profile, Support, Unsupported};
use gantry_catalog::csv::Csv;
use gantry_catalog::resolve::{
    InstalledBundle, ResolvedCatalogBundle, Resolver, ServedCatalog, UpgradeConstraints, is_semver_update, version_of,
};
use gantry_catalog::{Package, PackageBundle, SemanticVersion};

use super::failure::{has_edge, listed};
use super::owners::BundleContent;
use super::rules::{
    AUTOMATIC_UPGRADE, DEPRECATED, DOWNGRADE, FORCED_UPGRADE, MAJOR_UPGRADE, MAJOR_ZERO_UPGRADE, TIED_BUNDLES,
    UNSUPPORTED_BUNDLE,
};
use super::{RequestedExtension, ViolationsFound, bundles, entry, violation};
use crate::{Context, Violation};
use gantry_core::finding::{ExtensionEntry, ResolvedBundle};
use gantry_core::text::sanitize;

/// The maximum number of later updates that are predicted.
const MAX_STEPS: usize = 50;

pub fn report_resolution(
    asked: &RequestedExtension,
    resolved: &ResolvedCatalogBundle<'_>,
    sources: &[ServedCatalog<'_>],
    olm: OlmRelease,
    context: &Context<'_>,
    found: &mut ViolationsFound,
) -> BundleContent {
    let resolution = Resolution { asked, resolved };
    found.violations.extend(resolution.update());
    found.violations.extend(resolution.deprecated());
    found.violations.extend(resolution.tie_violation());
    // A bundle among the manifests is checked by `bundles`.
    let planned = bundles::find(context, &resolved.package.name, &resolved.bundle.version);
    if planned.is_none() {
        found.violations.extend(bundles::report_other_versions(asked, resolved, context));
    }
    let support = match planned {
        Some(_) => Support::default(),
        None => resolution.support(olm),
    };
    found.violations.extend(resolution.unsupported(&support));
    let steps = resolution.steps(sources);
    let leaves_alone = context.plan.changes[asked.change].action.leaves_alone();
    found.violations.extend(resolution.automatic(&steps, leaves_alone));
    let directory = planned.map(|bundle| bundle.directory.as_str());
    context.notices.add_resolution(resolution.entry(steps, directory));
    BundleContent {
        change: asked.change,
        bundle: resolved.bundle.name.clone(),
        crds: resolution.crds(),
        unchecked: support.unchecked,
    }
}

struct Resolution<'a> {
    asked: &'a RequestedExtension,
    resolved: &'a ResolvedCatalogBundle<'a>,
}

impl Resolution<'_> {
    fn is_installed(&self, installed: &InstalledBundle) -> bool {
        version_of(installed).is_ok_and(|installed| installed.precedence(&self.resolved.version).is_eq())
    }

    /// A violation if the update from the installed version is unusual.
    fn update(&self) -> Option<Violation> {
        let installed = self.asked.installed.as_ref().filter(|installed| !self.is_installed(installed))?;
        let ResolvedCatalogBundle { package, bundle, version, .. } = self.resolved;
        let extension = &self.asked.extension;
        let before = version_of(installed).ok()?;
        let (from, to) = (sanitize(&installed.version), sanitize(&bundle.version));
        let package_name = sanitize(&extension.wanted.package);
        let is_older = version.precedence(&before).is_lt();
        let moved = if is_older { "downgraded" } else { "upgraded" };
        let step = format!("package {package_name} is {moved} from {from} to {to}");
        let violation_at =
            |doc, message: String, help: &str, at| violation(doc, self.asked.change, message, help.into(), at);
        let at = match extension.wanted.version.is_empty() {
            true => extension.places.package(),
            false => extension.places.version(),
        };
        if is_older {
            let help = "an older release may not be able to read what the newer one has written (CRDs, objects, data): \
                make sure that this is intended";
            return Some(violation_at(&DOWNGRADE, format!("{step}, an older version"), help, at));
        }
        let is_compatible = is_semver_update(&before.version, &version.version);
        // With `upgradeConstraints: semver`, OLM needs no edge.
        let needs_edge = extension.wanted.constraints != UpgradeConstraints::Semver;
        if needs_edge && has_edge(package, &extension.wanted.channels, installed, &bundle.name).is_none() {
            let what = if is_compatible { "" } else { ", to a version that may be incompatible" };
            let message = format!("{step} without an upgrade edge in the catalog{what}");
            let help = format!(
                "the publisher does not support this update; to see the path along the edges: gantry catalog \
                 {package_name} --from {from} --to {to}"
            );
            return Some(violation_at(&FORCED_UPGRADE, message, &help, extension.places.policy()));
        }
        if is_compatible {
            return None;
        }
        let is_zero = before.version.major == 0 && version.version.major == 0;
        let (doc, what) = match is_zero {
            true => (&MAJOR_ZERO_UPGRADE, "which may be incompatible, as any minor version below 1.0.0"),
            false => (&MAJOR_UPGRADE, "a different major version"),
        };
        let help = format!(
            "read the release notes; to stay on compatible versions, set version to \"{}\"",
            compatible_with(&before.version)
        );
        Some(violation_at(doc, format!("{step}, {what}"), &help, at))
    }

    fn deprecated(&self) -> Vec<Violation> {
        let (package, bundle) = (self.resolved.package, self.resolved.bundle);
        let (wanted, places) = (&self.asked.extension.wanted, self.asked.extension.places);
        let mut found = Vec::new();
        let mut tell = |schema: &str, name: &str, what: String, at, help: String| {
            if let Some(deprecation) = package.deprecation(schema, name) {
                let said = sanitize(deprecation.message.trim());
                let message = format!("{what} is deprecated: {said}");
                found.push(violation(&DEPRECATED, self.asked.change, message, help, at));
            }
        };
        let help =
            || "follow the catalog's message; a deprecated package, channel or bundle gets no new versions".to_owned();
        tell("olm.package", "", format!("package {}", sanitize(&package.name)), places.package(), help());
        for channel in self.channels() {
            let others = package.channels.keys().filter(|name| package.deprecation("olm.channel", name).is_none());
            let others = listed(others.map(String::as_str));
            let help = if others.is_empty() { help() } else { format!("channels that are not deprecated: {others}") };
            let at = if wanted.channels.is_empty() { places.package() } else { places.channels() };
            tell("olm.channel", channel, format!("channel {}", sanitize(channel)), at, help);
        }
        tell("olm.bundle", &bundle.name, format!("bundle {}", sanitize(&bundle.name)), places.version(), help());
        found
    }

    /// The channels that OLM checks for deprecation: the named ones, or all channels of the package.
    fn channels(&self) -> Vec<&str> {
        let named = &self.asked.extension.wanted.channels;
        let all = self.resolved.package.channels.keys().map(String::as_str);
        all.filter(|name| named.is_empty() || named.iter().any(|named| named == name)).collect()
    }

    fn tie_violation(&self) -> Option<Violation> {
        let ResolvedCatalogBundle { tied, bundle, version, catalog, .. } = self.resolved;
        if tied.is_empty() {
            return None;
        }
        let others = listed(tied.iter().copied());
        let message = format!(
            "catalog {catalog} has several bundles of version {version}: {}, {others}; OLM installs an arbitrary one",
            sanitize(&bundle.name)
        );
        let help = "ask the publisher of the catalog to give one of them another version or release";
        Some(violation(&TIED_BUNDLES, self.asked.change, message, help.into(), self.asked.extension.places.version()))
    }

    /// The reasons why OLM v1 does not install the bundle, as far as the catalog shows them.
    fn unsupported(&self, support: &Support) -> Vec<Violation> {
        let (bundle, at) = (self.resolved.bundle, self.asked.extension.places.package());
        let of = |unsupported: &Unsupported| {
            let message = format!("bundle {}: {}", sanitize(&bundle.name), sanitize(&unsupported.text));
            let help = "OLM v1 does not try another bundle; gantry catalog PACKAGE --supported lists versions that it \
                can install";
            violation(&UNSUPPORTED_BUNDLE, self.asked.change, message, help.into(), at.clone())
        };
        support.unsupported.iter().map(of).collect()
    }

    fn support(&self, olm: OlmRelease) -> Support {
        let extension = &self.asked.extension;
        let profile = Profile {
            olm,
            install_namespace: &extension.namespace,
            config: Some(&extension.config).filter(|config| !config.is_null()),
            ..Profile::default()
        };
        // Without any part of the ClusterServiceVersion, everything is unchecked.
        let nothing = Csv::default();
        self.resolved.bundle.csv.as_ref().unwrap_or(&nothing).support(&profile)
    }

    /// The CRDs of the bundle, as far as the catalog shows them.
    fn crds(&self) -> Vec<String> {
        let whole = self.resolved.bundle.csv.as_ref().and_then(|csv| csv.whole.as_ref());
        let mut crds: Vec<String> =
            whole.into_iter().flat_map(|csv| &csv.owned_crds).map(|owned| owned.name.clone()).collect();
        crds.sort();
        crds.dedup();
        crds
    }

    /// The resolved version, and those to which OLM updates automatically afterwards.
    fn steps(&self, sources: &[ServedCatalog<'_>]) -> Vec<String> {
        let mut steps = Vec::new();
        let mut at = InstalledBundle {
            name: self.resolved.bundle.name.clone(),
            version: self.resolved.bundle.version.clone(),
            release: None,
        };
        if !self.asked.installed.as_ref().is_some_and(|installed| self.is_installed(installed)) {
            steps.push(at.version.clone());
        }
        let mut seen = BTreeSet::from([at.name.clone()]);
        let Ok(resolver) = Resolver::new(&self.asked.extension.wanted, sources) else { return steps };
        while steps.len() < MAX_STEPS {
            let Ok(next) = resolver.resolve(Some(&at)) else { break };
            if !seen.insert(next.bundle.name.clone()) {
                break;
            }
            at.name.clone_from(&next.bundle.name);
            at.version.clone_from(&next.bundle.version);
            steps.push(at.version.clone());
        }
        steps.iter().map(|version| sanitize(version).into_owned()).collect()
    }

    fn automatic(&self, steps: &[String], leaves_alone: bool) -> Option<Violation> {
        let then = if leaves_alone { steps } else { steps.get(1..)? };
        if then.is_empty() {
            return None;
        }
        let wanted = &self.asked.extension.wanted;
        let package = sanitize(&wanted.package);
        let message = match leaves_alone {
            true => format!("OLM updates package {package} automatically: {}", then.join(" -> ")),
            false => format!("after {}, OLM updates automatically: {}", steps[0], then.join(" -> ")),
        };
        let help = format!(
            "to prevent that, pin it: version: \"{}\"",
            if leaves_alone { self.installed_version() } else { steps[0].clone() }
        );
        let at = if wanted.version.is_empty() {
            self.asked.extension.places.package()
        } else {
            self.asked.extension.places.version()
        };
        Some(violation(&AUTOMATIC_UPGRADE, self.asked.change, message, help, at))
    }

    fn installed_version(&self) -> String {
        self.asked.installed.as_ref().map_or(String::new(), |installed| sanitize(&installed.version).into_owned())
    }

    fn entry(&self, path: Vec<String>, directory: Option<&str>) -> ExtensionEntry {
        let ResolvedCatalogBundle { catalog, package, bundle, .. } = self.resolved;
        ExtensionEntry {
            resolved: Some(ResolvedBundle {
                bundle: bundle.name.clone(),
                version: bundle.version.clone(),
                catalog: (*catalog).to_owned(),
                channels: channels_of(package, bundle, &self.asked.extension.wanted.channels),
                image: Some(bundle.image.clone()).filter(|image| !image.is_empty()),
                directory: directory.map(str::to_owned),
            }),
            ..entry(self.asked, Ok(()), path)
        }
    }
}

/// The channels that have the bundle: of the named ones, or of all if none is named.
fn channels_of(package: &Package, bundle: &PackageBundle, named: &[String]) -> Vec<String> {
    let all = package.channels_of(&bundle.name).map(|channel| channel.name.clone());
    all.filter(|name| named.is_empty() || named.contains(name)).collect()
}

/// The range of compatible versions in semantic versioning: `^1.2.3`, `^0.2.3`.
fn compatible_with(version: &SemanticVersion) -> String {
    format!("^{}.{}.{}", version.major, version.minor, version.patch)
}
