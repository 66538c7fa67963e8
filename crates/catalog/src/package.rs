//! What a catalog says of one package.

use std::collections::BTreeMap;

use crate::csv::Csv;
use crate::property::Property;
use crate::version::VersionRelease;

/// The type of the property that names a bundle's package and version.
pub const PACKAGE: &str = "olm.package";
/// The types of properties that declare what a bundle depends on.
pub const REQUIRED: [&str; 3] = ["olm.gvk.required", "olm.package.required", "olm.constraint"];

/// A package: what can be installed, and on which ways to get from one version to another.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Whether there is an `olm.package` for it.
    pub is_declared: bool,
    /// The channel that is taken where none is asked for; empty where the catalog names none.
    pub default_channel: String,
    /// One or more sentences for people; empty where there are none.
    pub description: String,
    /// The media type of the icon; empty where there is no icon.
    pub icon: String,
    /// The channels by their names.
    pub channels: BTreeMap<String, Channel>,
    /// The bundles by their names.
    pub bundles: BTreeMap<String, Bundle>,
    /// What is deprecated.
    pub deprecations: Vec<Deprecation>,
    /// How many blobs say what is deprecated: of several the last one counts.
    pub deprecation_blobs: usize,
    /// The blobs that were replaced by a later one of the same schema and name.
    pub replaced: Vec<(String, String)>,
    /// Why the package cannot be read; a cluster says so for this package alone.
    pub broken: Option<String>,
}

/// A channel: the bundles in it and the edges between them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// The bundles, in the order of the catalog.
    pub entries: Vec<Entry>,
}

/// A bundle in a channel, and which bundles can be updated to it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// The bundle.
    pub name: String,
    /// The bundle of this name can.
    pub replaces: String,
    /// The bundles of these names can.
    pub skips: Vec<String>,
    /// All versions in this range can.
    pub skip_range: String,
}

/// One version of a package.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bundle {
    /// Its name.
    pub name: String,
    /// Where its content is.
    pub image: String,
    /// The text of its version; empty where there is none.
    pub version: String,
    /// The packages that its `olm.package` properties name: should be one, its own.
    pub packages: Vec<String>,
    /// Its properties but for the objects, and but for the metadata of the ClusterServiceVersion; only where they were
    /// asked for.
    pub properties: Vec<Property>,
    /// What its ClusterServiceVersion says; only where that was asked for.
    pub csv: Option<Csv>,
    /// The types of the properties with which it declares that it depends on something, in their order.
    pub required: Vec<String>,
    /// How many objects are part of the blob.
    pub objects: usize,
}

/// Something that should not be used any more.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deprecation {
    /// What it is: `olm.package`, `olm.channel` or `olm.bundle`.
    pub schema: String,
    /// Its name; empty for the package.
    pub name: String,
    /// Why, and what to use instead.
    pub message: String,
}

impl Bundle {
    /// Its version with its release; the error is the library's.
    pub fn version(&self) -> Result<VersionRelease, String> {
        VersionRelease::parse(&self.version)
    }

    /// The properties of a type.
    pub fn properties_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Property> {
        self.properties.iter().filter(move |property| property.kind == kind)
    }
}

impl Package {
    /// What the catalog says of something that is deprecated: `("olm.channel", "alpha")`.
    pub fn deprecation(&self, schema: &str, name: &str) -> Option<&Deprecation> {
        self.deprecations.iter().find(|found| found.schema == schema && found.name == name)
    }

    /// The bundles from the highest version down; those whose version cannot be read come last. Equal ones come in the
    /// order of their names.
    pub fn by_version(&self) -> Vec<&Bundle> {
        let mut bundles: Vec<(Option<VersionRelease>, &Bundle)> =
            self.bundles.values().map(|bundle| (bundle.version().ok(), bundle)).collect();
        bundles.sort_by(|(one, _), (other, _)| match (one, other) {
            (Some(one), Some(other)) => other.precedence(one),
            (one, other) => other.is_some().cmp(&one.is_some()),
        });
        bundles.into_iter().map(|(_, bundle)| bundle).collect()
    }

    /// The channels that have the bundle, by name.
    pub fn channels_of<'a>(&'a self, bundle: &'a str) -> impl Iterator<Item = &'a Channel> {
        self.channels.values().filter(move |channel| channel.entries.iter().any(|entry| entry.name == bundle))
    }
}
