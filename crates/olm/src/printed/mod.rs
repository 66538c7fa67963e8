//! The output of `gantry catalog`: tables, and upgrade graphs as pictures.

mod diff;
mod human;
pub mod picture;
mod ways;

pub use diff::{CatalogComparison, ComparedCatalog, comparison_json, comparison_markdown, comparison_text};
pub use human::{bundle, bundle_source, channel, package, packages, supported};
pub use ways::{Way, render_ways};

use gantry_catalog::graph::{By, UpgradeEdge};

/// The field of the catalog that defines an edge.
fn edge_field(edge: &UpgradeEdge<'_>) -> String {
    match edge.by {
        By::Replaces => "replaces".to_owned(),
        By::Skips => "skips".to_owned(),
        By::SkipRange => format!("skipRange {}", edge.range),
    }
}
