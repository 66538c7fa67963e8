//! The rules of this check. Their words are in `rules/NAME.md`.

use crate::rule::rule_docs;

rule_docs! {
    DEPRECATED = "ApiDeprecated",
    GOES_AWAY = "ApiGoesAway",
    NOT_SERVED = "ApiNotServed",
    REMOVED = "ApiRemoved",
    NAMESPACE_ASSUMED = "NamespaceAssumed",
    NAMESPACE_IGNORED = "NamespaceIgnored",
}

/// The rules whose findings are certain refusals.
pub const REFUSALS: &[&str] = &["ApiNotServed", "ApiRemoved"];
