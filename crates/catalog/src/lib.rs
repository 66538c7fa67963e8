#![doc = include_str!("../README.md")]

mod blob;
pub mod bundle;
pub mod classic;
pub mod constraint;
pub mod crd_rule;
pub mod csv;
pub mod dependency;
pub mod diff;
mod error;
mod files;
pub mod graph;
mod index;
mod json;
pub mod mistakes;
mod olm_release;
mod package;
mod property;
pub mod render;
pub mod resolve;
pub mod skip_range;
mod stream;
#[cfg(test)]
mod tests;
pub mod version;

pub use blob::{Blob, BlobSchema};
pub use constraint::Constraint;
pub use error::OlmError;
pub use files::{FileReadError, list_catalog_files};
pub use index::{Catalog, Csvs, KeptCatalogParts};
pub use olm_release::{NamedRelease, OlmRelease};
pub use package::{Channel, ChannelEntry, Deprecation, PACKAGE, Package, PackageBundle, REQUIRED};
pub use property::Property;
pub use skip_range::SkipRange;
pub use stream::{CatalogReadError, MOST_BYTES, MOST_BYTES_OF_BLOB, read};
pub use version::{SemanticVersion, VersionRelease};
