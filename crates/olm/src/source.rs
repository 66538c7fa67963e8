//! Where the content of a catalog comes from that the configuration names.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gantry_core::problem::Location;

/// A catalog of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogSource {
    /// The name of its ClusterCatalog.
    pub name: String,
    /// Where its content is.
    pub content: CatalogContent,
    /// If several catalogs have a package, the one with the highest priority is used.
    pub priority: i32,
    /// The labels that selectors of ClusterExtensions match.
    pub labels: BTreeMap<String, String>,
    /// Whether packages can be installed from it.
    pub available: bool,
    /// Where the file names its content; `None` for a flag.
    pub at: Option<Location>,
}

/// Where the content of a catalog is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogContent {
    /// In a file or a folder.
    Path(PathBuf),
    /// Behind a URL.
    Url {
        /// The address, http or https.
        url: String,
        /// The CA certificates that the server is verified with, as PEM.
        ca_file: Option<PathBuf>,
    },
}
