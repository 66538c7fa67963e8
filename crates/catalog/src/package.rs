//! The contents of a catalog for one package.

use std::collections::BTreeMap;

use crate::bundle::Support;
use crate::csv::Csv;
use crate::error::OlmError;
use crate::property::Property;
use crate::version::VersionRelease;

/// The type of the property that names a bundle's package and version.
pub const PACKAGE: &str = "olm.package";
/// The types of the properties that declare dependencies of a bundle.
pub const REQUIRED: [&str; 3] = ["olm.gvk.required", "olm.package.required", "olm.constraint"];

/// A package: its bundles, and the channels with the edges between them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Whether the catalog has an `olm.package` blob for it.
    pub is_declared: bool,
    /// The channel to use if none is requested; empty if the catalog names none.
    pub default_channel: String,
    /// A description for people; empty if there is none.
    pub description: String,
    /// The media type of the icon; empty if there is no icon.
    pub icon: String,
    /// The channels by name.
    pub channels: BTreeMap<String, Channel>,
    /// The bundles by name.
    pub bundles: BTreeMap<String, PackageBundle>,
    /// The deprecations of the package, its channels and its bundles.
    pub deprecations: Vec<Deprecation>,
    /// The number of `olm.deprecations` blobs; if there are several, the last one counts.
    pub deprecation_blobs: usize,
    /// Schema and name of the blobs that a later blob of the same schema and name replaced.
    pub replaced: Vec<(String, String)>,
    /// Why the package cannot be read; on a cluster the error affects only this package.
    pub broken: Option<String>,
}

/// A channel: the bundles in it and the edges between them.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// The bundles, in the order of the catalog.
    pub entries: Vec<ChannelEntry>,
}

/// A bundle in a channel, and the bundles that can be updated to it.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ChannelEntry {
    /// The name of the bundle.
    pub name: String,
    /// The name of the bundle that it replaces; empty if there is none.
    pub replaces: String,
    /// The names of the bundles that it skips.
    pub skips: Vec<String>,
    /// The range of versions that can be updated to it; empty if there is none.
    pub skip_range: String,
}

/// One version of a package.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct PackageBundle {
    /// Its name.
    pub name: String,
    /// The image with its content; only if the properties of the package were requested.
    pub image: String,
    /// The text of its version; empty if there is none.
    pub version: String,
    /// The packages that its `olm.package` properties name. A valid bundle names only its own.
    pub packages: Vec<String>,
    /// Its properties, except for the objects and the metadata of the ClusterServiceVersion; only if they were
    /// requested.
    pub properties: Vec<Property>,
    /// Its ClusterServiceVersion; only if that was requested.
    pub csv: Option<Csv>,
    /// Whether OLM v1 installs it, as far as its ClusterServiceVersion shows; only if that was requested.
    pub support: Option<Support>,
    /// The types of the properties that declare its dependencies, in order.
    pub required: Vec<String>,
    /// The number of objects in the blob.
    pub objects: usize,
}

/// A deprecated package, channel or bundle.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Deprecation {
    /// What is deprecated: `olm.package`, `olm.channel` or `olm.bundle`.
    pub schema: String,
    /// Its name; empty for the package.
    pub name: String,
    /// Why it is deprecated, and what to use instead.
    pub message: String,
}

impl PackageBundle {
    /// Its version with its release.
    ///
    /// # Errors
    /// The library's text.
    pub fn version(&self) -> Result<VersionRelease, OlmError> {
        VersionRelease::parse(&self.version)
    }

    /// The properties of a type.
    pub fn properties_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Property> {
        self.properties.iter().filter(move |property| property.kind == kind)
    }
}

impl Package {
    /// The deprecation of a package, channel or bundle, such as `("olm.channel", "alpha")`.
    pub fn deprecation(&self, schema: &str, name: &str) -> Option<&Deprecation> {
        self.deprecations.iter().find(|found| found.schema == schema && found.name == name)
    }

    /// The bundles from the highest version down. Bundles whose version cannot be parsed come last, and bundles of
    /// equal versions are in the order of their names.
    pub fn by_version(&self) -> Vec<&PackageBundle> {
        let mut bundles: Vec<(Option<VersionRelease>, &PackageBundle)> =
            self.bundles.values().map(|bundle| (bundle.version().ok(), bundle)).collect();
        bundles.sort_by(|(one, _), (other, _)| match (one, other) {
            (Some(one), Some(other)) => other.precedence(one),
            (one, other) => other.is_some().cmp(&one.is_some()),
        });
        bundles.into_iter().map(|(_, bundle)| bundle).collect()
    }

    /// The channels that contain the bundle, by name.
    pub fn channels_of<'a>(&'a self, bundle: &'a str) -> impl Iterator<Item = &'a Channel> {
        self.channels.values().filter(move |channel| channel.entries.iter().any(|entry| entry.name == bundle))
    }
}
