//! The rules of this check. `validator` and `manifests` in [`crate::objects`] evaluate them, and their words
//! are in `rules/NAME.md`.

use crate::rule::rule_docs;

rule_docs! {
    DATA_PRUNED = "ExistingDataPruned",
    DEFAULTED = "ExistingObjectDefaultedDifferently",
    REFUSED = "ExistingObjectRefused",
    REFUSED_ON_UPDATE = "ExistingObjectRefusedOnUpdate",
    REFUSED_WHEN_TOUCHED = "ExistingObjectRefusedWhenTouched",
    MANIFEST_REFUSED = "ManifestObjectRefused",
    MANIFEST_UNKNOWN_FIELD = "ManifestUnknownField",
    MANIFEST_VALUE_LOST = "ManifestValueLost",
    REMOVED_VERSION = "ObjectInRemovedVersion",
    NOT_CONVERTED = "ObjectNotConverted",
    NOT_VALIDATED = "VersionNotJudged",
}

/// The rules whose findings are certain refusals.
pub const REFUSALS: &[&str] = &["ManifestObjectRefused", "ManifestUnknownField"];
