//! The rules of this check. Their words are in `rules/NAME.md`.

use crate::rule::rule_docs;

rule_docs! {
    BINDING = "BindingNotPermitted",
    LOG = "LogNotPermitted",
    REQUEST = "RequestNotPermitted",
    ROLE = "RoleNotPermitted",
    WATCH = "WatchNotPermitted",
}

/// The rules whose findings are certain refusals.
pub const REFUSALS: &[&str] = &["BindingNotPermitted", "RequestNotPermitted", "RoleNotPermitted"];
