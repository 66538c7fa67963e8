//! The texts of this check's rules. `validator` and `manifests` in [`crate::preflight::objects`] evaluate them.

mod existing;
mod manifest;
mod versions;

pub use existing::{DATA_PRUNED, DEFAULTED, REFUSED, REFUSED_ON_UPDATE, REFUSED_WHEN_TOUCHED};
pub use manifest::{MANIFEST_REFUSED, MANIFEST_UNKNOWN_FIELD, MANIFEST_VALUE_LOST};
pub use versions::{NOT_CONVERTED, NOT_VALIDATED, REMOVED_VERSION};

use crate::preflight::rule::RuleDoc;

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![
        &DATA_PRUNED,
        &DEFAULTED,
        &REFUSED,
        &REFUSED_ON_UPDATE,
        &REFUSED_WHEN_TOUCHED,
        &MANIFEST_REFUSED,
        &MANIFEST_UNKNOWN_FIELD,
        &MANIFEST_VALUE_LOST,
        &REMOVED_VERSION,
        &NOT_CONVERTED,
        &NOT_VALIDATED,
    ]
}

/// The rules whose findings are certain refusals.
pub const REFUSALS: &[&str] = &["ManifestObjectRefused", "ManifestUnknownField"];
