//! The rules of this check. Their words are in `rules/NAME.md`.

use crate::rule::rule_docs;

rule_docs! {
    CA_BUNDLE = "ConversionCABundleInvalid",
    FAILS = "ConversionFails",
    LOSES_DATA = "ConversionLosesData",
    REVIEW_VERSIONS = "ConversionReviewVersionUnknown",
    SERVICE_MISSING = "ConversionServiceMissing",
    SERVICE_NOT_READY = "ConversionServiceNotReady",
    WORKLOAD_REPLACED = "ConversionWorkloadReplaced",
}
