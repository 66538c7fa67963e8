//! The forms of the lists of a Config.
//!
//! schemars generates their JSON Schemas from them. Editors show the doc comments to users.

mod lists;
mod matchers;

use std::collections::BTreeMap;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use lists::{RawFieldRule, RawGroupBinding, RawRebaseRule, RawRuleBinding, RawWaitRule};

/// The JSON Schema of the value of the key at `path`, which is a list or mapping.
pub(super) fn schema_of_list(path: &str, generator: &mut SchemaGenerator) -> Value {
    let schema = match path {
        "preflightRules" => generator.subschema_for::<Option<Vec<RawRule>>>(),
        "waivers" => generator.subschema_for::<Option<Vec<RawWaiver>>>(),
        "catalogs" => generator.subschema_for::<Option<Vec<RawCatalog>>>(),
        "changeGroupBindings" => generator.subschema_for::<Option<Vec<RawGroupBinding>>>(),
        "changeRuleBindings" => generator.subschema_for::<Option<Vec<RawRuleBinding>>>(),
        "waitRules" => generator.subschema_for::<Option<Vec<RawWaitRule>>>(),
        "rebaseRules" => generator.subschema_for::<Option<Vec<RawRebaseRule>>>(),
        "additionalLabels" => generator.subschema_for::<Option<BTreeMap<String, String>>>(),
        _ => generator.subschema_for::<Option<Vec<RawFieldRule>>>(),
    };
    schema.to_value()
}

/// A catalog, with either path or url.
#[derive(JsonSchema)]
#[schemars(rename = "Catalog", extend("not" = {"required": ["path", "url"]}))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawCatalog {
    /// The name of its ClusterCatalog.
    #[schemars(length(min = 1))]
    name: String,
    /// A file-based catalog: a file, or a folder of files. A relative path is resolved against the folder of the config
    /// file.
    #[schemars(length(min = 1))]
    path: Option<String>,
    /// The address of a catalog. Not allowed in gantry.yaml.
    #[schemars(regex(pattern = r"^https?://"))]
    url: Option<String>,
    /// The CA certificates (PEM) that the server of url is verified with.
    #[schemars(length(min = 1))]
    ca_file: Option<String>,
    /// If several catalogs have a package, the one with the highest priority is used.
    priority: Option<i32>,
    /// The labels that selectors of ClusterExtensions match.
    labels: Option<BTreeMap<String, String>>,
    /// Whether packages can be installed from it.
    available: Option<bool>,
}

/// Findings that may pass. In object, version, path and rule, * matches any characters and ? matches one.
#[derive(JsonSchema)]
#[schemars(rename = "Waiver", extend("anyOf" = [
    {"required": ["object"]}, {"required": ["version"]}, {"required": ["path"]}, {"required": ["rule"]}
]))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawWaiver {
    /// The name of the object, or kind/name.
    #[schemars(length(min = 1))]
    object: Option<String>,
    /// The version of the CRD.
    #[schemars(length(min = 1))]
    version: Option<String>,
    /// The field, as findings show it: ^.spec.pollInterval.
    #[schemars(length(min = 1))]
    path: Option<String>,
    /// The rule.
    #[schemars(length(min = 1))]
    rule: Option<String>,
    /// Why the findings may pass; shown with each of them.
    #[schemars(length(min = 1))]
    reason: String,
    /// The last day on which the waiver is valid, as 2026-12-31 (UTC).
    #[schemars(regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
    expires: Option<String>,
}

/// One preflight check.
#[derive(JsonSchema)]
#[schemars(rename = "PreflightRule")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawRule {
    /// The name of the check.
    name: String,
    /// false disables a check that another file enabled; true enables it again.
    enabled: Option<bool>,
    /// The configuration of the check.
    config: Option<Map<String, Value>>,
    /// Defines a custom check that runs a program. Not run from a Config document among the manifests.
    exec: Option<Map<String, Value>>,
    /// Defines a custom check that evaluates a CEL expression.
    cel: Option<Map<String, Value>>,
}
