//! The entries of lists of rules about objects.

use schemars::JsonSchema;

use super::matchers::{RawMatcher, RawPath};

/// A change group of all objects that one of the matchers fits.
#[derive(JsonSchema)]
#[schemars(rename = "ChangeGroupBinding")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawGroupBinding {
    /// The name of the group: apps.example.com/database. May have {api-group}, {kind}, {name}, {namespace}, {crd-group} and
    /// {crd-kind}.
    #[schemars(length(min = 1))]
    name: String,
    resource_matchers: Vec<RawMatcher>,
}

/// Change rules of all objects that one of the matchers fits.
#[derive(JsonSchema)]
#[schemars(rename = "ChangeRuleBinding")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawRuleBinding {
    /// Rules like: upsert after upserting apps.example.com/database
    #[schemars(inner(regex(pattern = r"^\s*(upsert|delete)\s+(before|after)\s+(upserting|deleting)\s+\S+\s*$")))]
    rules: Vec<String>,
    /// A rule does not count where it would close a cycle.
    ignore_if_cyclical: Option<bool>,
    resource_matchers: Vec<RawMatcher>,
}

/// When all objects are ready that one of the matchers fits: by conditions, or by expressions.
#[derive(JsonSchema)]
#[schemars(rename = "WaitRule", extend("oneOf" = [{"required": ["conditionMatchers"]}, {"required": ["cel"]}]))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawWaitRule {
    /// Nothing counts before status.observedGeneration is the latest.
    supports_observed_generation: Option<bool>,
    condition_matchers: Option<Vec<RawConditionMatcher>>,
    cel: Option<RawExpressions>,
    resource_matchers: Vec<RawMatcher>,
}

/// Where the values of fields come from when an object is updated that one of the matchers fits.
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
    /// The first that has the field counts.
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

/// A field of all objects that one of the matchers fits.
#[derive(JsonSchema)]
#[schemars(rename = "FieldRule")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawFieldRule {
    path: RawPath,
    resource_matchers: Vec<RawMatcher>,
}

/// What a condition of status.conditions means. Failure comes before success, and success before unblockChanges.
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
    /// What waits for the object may be written, though it is not ready.
    unblock_changes: Option<bool>,
    /// The condition has an observedGeneration and counts only for the latest one.
    supports_observed_generation: Option<bool>,
    /// A failure counts only when it has lasted so long.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    timeout: Option<String>,
}

/// CEL expressions over object, the live object. One that cannot be evaluated does not hold.
#[derive(JsonSchema)]
#[schemars(rename = "WaitExpressions")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawExpressions {
    /// The object is ready.
    success: String,
    /// The object has failed.
    failure: Option<String>,
    /// What waits for the object may be written, though it is not ready.
    unblock_changes: Option<String>,
}
