//! The entries of lists of rules about objects.

use schemars::JsonSchema;

use super::matchers::{RawMatcher, RawPath};

/// A change group of the objects that one of the matchers matches.
#[derive(JsonSchema)]
#[schemars(rename = "ChangeGroupBinding")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawGroupBinding {
    /// The name of the group: apps.example.com/database. It can contain {api-group}, {kind}, {name}, {namespace},
    /// {crd-group} and {crd-kind}.
    #[schemars(length(min = 1))]
    name: String,
    resource_matchers: Vec<RawMatcher>,
}

/// Change rules of the objects that one of the matchers matches.
#[derive(JsonSchema)]
#[schemars(rename = "ChangeRuleBinding")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawRuleBinding {
    /// Rules like: upsert after upserting apps.example.com/database
    #[schemars(inner(regex(pattern = r"^\s*(upsert|delete)\s+(before|after)\s+(upserting|deleting)\s+\S+\s*$")))]
    rules: Vec<String>,
    /// Ignore a rule that would close a cycle.
    ignore_if_cyclical: Option<bool>,
    resource_matchers: Vec<RawMatcher>,
}

/// When the objects that one of the matchers matches are ready, by conditions or by expressions.
#[derive(JsonSchema)]
#[schemars(rename = "WaitRule", extend("oneOf" = [{"required": ["conditionMatchers"]}, {"required": ["cel"]}]))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawWaitRule {
    /// Evaluate the rule only when status.observedGeneration is the latest generation.
    supports_observed_generation: Option<bool>,
    condition_matchers: Option<Vec<RawConditionMatcher>>,
    cel: Option<RawExpressions>,
    resource_matchers: Vec<RawMatcher>,
}

/// Where the values of fields come from when an object that one of the matchers matches is updated.
#[derive(JsonSchema)]
#[schemars(rename = "RebaseRule", extend(
    "oneOf" = [{"required": ["path"]}, {"required": ["paths"]}],
    "if" = {"properties": {"type": {"const": "copy"}}},
    "then" = {"required": ["sources"]}
))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawRebaseRule {
    path: Option<RawPath>,
    paths: Option<Vec<RawPath>>,
    r#type: RawRebase,
    /// The first source that has the field is used.
    #[schemars(length(min = 1))]
    sources: Option<Vec<RawSide>>,
    resource_matchers: Vec<RawMatcher>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Rebase")]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) enum RawRebase {
    Copy,
    Remove,
}

#[derive(JsonSchema)]
#[schemars(rename = "RebaseSource")]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) enum RawSide {
    New,
    Existing,
}

/// A field of the objects that one of the matchers matches.
#[derive(JsonSchema)]
#[schemars(rename = "FieldRule")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawFieldRule {
    path: RawPath,
    resource_matchers: Vec<RawMatcher>,
}

/// The meaning of a condition of status.conditions. Failure takes precedence over success, and success over
/// unblockChanges.
#[derive(JsonSchema)]
#[schemars(rename = "ConditionMatcher")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawConditionMatcher {
    r#type: String,
    /// Quoted: "True".
    status: String,
    /// The object has failed.
    failure: Option<bool>,
    /// The object is ready.
    success: Option<bool>,
    /// Objects that wait for this object can be written, although it is not ready.
    unblock_changes: Option<bool>,
    /// The condition has an observedGeneration and is ignored unless that is the latest generation.
    supports_observed_generation: Option<bool>,
    /// A failure is ignored until it has lasted this long.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    timeout: Option<String>,
}

/// CEL expressions over object, the live object. An expression that cannot be evaluated counts as false.
#[derive(JsonSchema)]
#[schemars(rename = "WaitExpressions")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawExpressions {
    /// The object is ready.
    success: String,
    /// The object has failed.
    failure: Option<String>,
    /// Objects that wait for this object can be written, although it is not ready.
    unblock_changes: Option<String>,
}
