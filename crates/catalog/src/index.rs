//! Collects the contents of a catalog while it is read.

use std::collections::{BTreeMap, BTreeSet};

use gantry_yaml::explain_json;
use serde_json::value::RawValue;

use crate::blob::{Blob, BlobSchema};
use crate::bundle::Profile;
use crate::csv::Csv;
use crate::error::OlmError;
use crate::json::{RawFields, compact};
use crate::olm_release::OlmRelease;
use crate::package::{Channel, ChannelEntry, Deprecation, PACKAGE, Package, PackageBundle, REQUIRED};
use crate::property::Property;

/// The type of the property that holds an object of the bundle.
const OBJECT: &str = "olm.bundle.object";
/// The type of the property that holds a part of the ClusterServiceVersion in place of the whole object.
const METADATA: &str = "olm.csv.metadata";

/// What to keep in addition to names, versions and edges, which are a few MB of a catalog of 250 MB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptCatalogParts {
    /// The packages whose images, properties and whole ClusterServiceVersions are kept.
    pub properties_of: BTreeSet<String>,
    /// Whether the properties of all packages are kept. Whole ClusterServiceVersions are kept only for the packages in
    /// `properties_of`.
    pub all_properties: bool,
    /// Whether the images of all bundles are kept.
    pub all_images: bool,
    /// The packages whose ClusterServiceVersions are read.
    pub csv: Csvs,
    /// The release of OLM v1 for which each bundle whose ClusterServiceVersion is read is judged.
    pub judged_for: Option<OlmRelease>,
}

/// The packages whose ClusterServiceVersions are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Csvs {
    /// None: the objects of bundles are not even decoded.
    #[default]
    None,
    /// The packages in [`KeptCatalogParts::properties_of`].
    Kept,
    /// All packages.
    All,
}

/// The contents of a catalog.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    /// The packages by name, including those without an `olm.package` blob.
    pub packages: BTreeMap<String, Package>,
    /// The number of blobs, entries of channels and properties that were added.
    parts: usize,
}

/// The maximum number of blobs, entries of channels, skips, properties and deprecations that are kept in memory. The
/// largest public catalogs have about a hundred thousand.
pub const MOST_PARTS: usize = 3_000_000;

impl Catalog {
    /// Adds a blob. If two blobs have the same package, schema and name, the later one counts, as on a cluster. An
    /// error in a blob makes its package broken.
    ///
    /// # Errors
    /// An error in a blob without a package: then the whole catalog cannot be read.
    pub fn add(&mut self, blob: &Blob<'_>, keep: &KeptCatalogParts) -> Result<(), OlmError> {
        let name = blob.of_package();
        if blob.schema.is_empty() {
            let shown: String = blob.json().chars().take(200).collect();
            let rest = if shown.len() < blob.json().len() { "…" } else { "" };
            return self.mark_broken(name, format!("object '{shown}{rest}' is missing root schema field"));
        }
        if blob.kind() == BlobSchema::Other {
            return Ok(());
        }
        if name.is_empty() {
            let why = match blob.kind() {
                BlobSchema::Package => "config contains package with no name".to_owned(),
                _ => format!("package name must be set for {} {:?}", blob.schema, blob.name),
            };
            return Err(why.into());
        }
        let package = self.packages.entry(name.to_owned()).or_default();
        package.name = name.to_owned();
        let added = match blob.kind() {
            BlobSchema::Package => add_package(package, blob).map_err(|why| format!("parse package: {why}")),
            BlobSchema::Channel => add_channel(package, blob).map_err(|why| format!("parse channel: {why}")),
            BlobSchema::Bundle => add_bundle(package, blob, keep).map_err(|why| format!("parse bundle: {why}")),
            _ => add_deprecations(package, blob).map_err(|why| format!("parse deprecation: {why}")),
        };
        let name = name.to_owned();
        // A short text can stand for an entry that needs a hundred bytes.
        self.parts += 1 + added.as_ref().copied().unwrap_or_default();
        if self.parts > MOST_PARTS {
            return Err(format!("the catalog has more than {MOST_PARTS} entries and properties").into());
        }
        added.map(drop).or_else(|why| self.mark_broken(&name, why))
    }

    fn mark_broken(&mut self, package: &str, why: String) -> Result<(), OlmError> {
        if package.is_empty() {
            return Err(why.into());
        }
        let package = self
            .packages
            .entry(package.to_owned())
            .or_insert_with_key(|name| Package { name: name.clone(), ..Package::default() });
        package.broken.get_or_insert(why);
        Ok(())
    }
}

fn record_replaced(package: &mut Package, blob: &Blob<'_>, was_there: bool) {
    if was_there {
        package.replaced.push((blob.schema.to_string(), blob.name.to_string()));
    }
}

/// Adds a package. As each of these functions, returns the number of parts that it keeps.
fn add_package(package: &mut Package, blob: &Blob<'_>) -> Result<usize, String> {
    record_replaced(package, blob, package.is_declared);
    package.is_declared = true;
    package.default_channel = blob.fields.text("defaultChannel")?.into_owned();
    package.description = blob.fields.text("description")?.into_owned();
    let icon: Option<RawFields> = blob.fields.parse("icon")?;
    package.icon = icon.map(|icon| icon.text("mediatype")).transpose()?.unwrap_or_default().into_owned();
    Ok(0)
}

fn add_channel(package: &mut Package, blob: &Blob<'_>) -> Result<usize, String> {
    let entries = blob.fields.list::<Option<RawFields>>("entries")?.into_iter().map(|fields| {
        let Some(fields) = fields else { return Ok(ChannelEntry::default()) };
        Ok(ChannelEntry {
            name: fields.text("name")?.into_owned(),
            replaces: fields.text("replaces")?.into_owned(),
            skips: fields.list("skips")?,
            skip_range: fields.text("skipRange")?.into_owned(),
        })
    });
    let channel = Channel { name: blob.name.to_string(), entries: entries.collect::<Result<_, String>>()? };
    let parts = channel.entries.iter().map(|entry| 1 + entry.skips.len()).sum();
    let before = package.channels.insert(channel.name.clone(), channel);
    record_replaced(package, blob, before.is_some());
    Ok(parts)
}

fn add_bundle(package: &mut Package, blob: &Blob<'_>, keep: &KeptCatalogParts) -> Result<usize, String> {
    let is_kept = keep.properties_of.contains(&package.name);
    let keeps_whole = is_kept || keep.judged_for.is_some();
    let looks_at_csv = keep.csv == Csvs::All || keep.csv == Csvs::Kept && is_kept;
    let mut bundle = PackageBundle {
        name: blob.name.to_string(),
        image: if is_kept || keep.all_images { blob.fields.text("image")?.into_owned() } else { String::new() },
        ..PackageBundle::default()
    };
    for property in blob.fields.list::<Option<RawFields>>("properties")?.into_iter().flatten() {
        let kind = property.text("type")?;
        if REQUIRED.contains(&&*kind) {
            bundle.required.push(kind.to_string());
        }
        let Some(value) = property.get("value") else { continue };
        match &*kind {
            OBJECT => {
                bundle.objects += 1;
                if looks_at_csv && bundle.csv.as_ref().is_none_or(|csv| csv.webhooks.is_none()) {
                    let found = Csv::of_object(value, keeps_whole).map_err(|why| format!("{OBJECT}: {why}"))?;
                    bundle.csv = found.or(bundle.csv);
                }
            }
            METADATA if looks_at_csv => {
                let found = Csv::of_metadata(value, keeps_whole).map_err(|why| format!("{METADATA}: {why}"))?;
                bundle.csv.get_or_insert(found);
            }
            METADATA => {}
            PACKAGE => add_version(&mut bundle, value)?,
            _ => {}
        }
        if (is_kept || keep.all_properties) && kind != OBJECT && kind != METADATA {
            bundle.properties.push(Property { kind: kind.into_owned(), value: compact(value.get()).into_owned() });
        }
    }
    if let (Some(csv), Some(olm)) = (&mut bundle.csv, keep.judged_for) {
        bundle.support = Some(csv.support(&Profile { olm, ..Profile::default() }));
        if !is_kept {
            csv.whole = None;
        }
    }
    let parts = bundle.properties.len() + bundle.required.len() + bundle.packages.len();
    let before = package.bundles.insert(bundle.name.clone(), bundle);
    record_replaced(package, blob, before.is_some());
    Ok(parts)
}

fn add_version(bundle: &mut PackageBundle, value: &RawValue) -> Result<(), String> {
    let fields: RawFields =
        serde_json::from_str(value.get()).map_err(|error| format!("{PACKAGE}: {}", explain_json(&error)))?;
    // Several of these are an error; the first one counts.
    if bundle.packages.is_empty() {
        bundle.version = fields.text("version")?.into_owned();
    }
    bundle.packages.push(fields.text("packageName")?.into_owned());
    Ok(())
}

fn add_deprecations(package: &mut Package, blob: &Blob<'_>) -> Result<usize, String> {
    let entries = blob.fields.list::<Option<RawFields>>("entries")?.into_iter().flatten().map(|fields| {
        let reference: Option<RawFields> = fields.parse("reference")?;
        let part = |name| reference.as_ref().map_or(Ok("".into()), |reference| reference.text(name));
        Ok(Deprecation {
            schema: part("schema")?.into_owned(),
            name: part("name")?.into_owned(),
            message: fields.text("message")?.into_owned(),
        })
    });
    package.deprecations = entries.collect::<Result<_, String>>()?;
    package.deprecation_blobs += 1;
    Ok(package.deprecations.len())
}
