//! A Config before it is validated.
//!
//! figment fills [`RawConfig`] from the merged layers, and schemars generates the JSON Schema of configuration files from it.
//! Editors show its doc comments to users.

mod lists;
mod matchers;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use lists::{RawFieldRule, RawGroupBinding, RawRebaseRule, RawRuleBinding, RawWaitRule};

/// Configuration of gantry.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "gantry Config")]
pub(super) struct RawConfig {
    /// The preflight checks that run, with their configuration. Entries of several files merge by name.
    /// If no file names a built-in check, CRDUpgradeSafety and CustomResourceValidation run, with your own checks.
    #[serde(default)]
    #[schemars(with = "Option<Vec<RawRule>>")]
    pub preflight_rules: Option<BTreeMap<String, RawSwitch>>,
    /// Findings of any check that may pass. Each waiver needs a reason.
    #[serde(default, rename = "waivers")]
    #[schemars(with = "Option<Vec<RawWaiver>>")]
    pub _waivers: Option<Value>,
    /// Where the metadata of packages comes from. Entries of several files merge by name. Not allowed among the
    /// manifests.
    #[serde(default, rename = "catalogs")]
    #[schemars(with = "Option<Vec<RawCatalog>>")]
    pub _catalogs: Option<Value>,
    /// Change groups of the objects that match. The lists of several files are concatenated.
    #[serde(default, rename = "changeGroupBindings")]
    #[schemars(with = "Option<Vec<RawGroupBinding>>")]
    pub _change_group_bindings: Option<Value>,
    /// Change rules of the objects that match. The lists of several files are concatenated.
    #[serde(default, rename = "changeRuleBindings")]
    #[schemars(with = "Option<Vec<RawRuleBinding>>")]
    pub _change_rule_bindings: Option<Value>,
    /// When the objects that match are ready; the first rule that matches decides. The lists of several files are
    /// concatenated.
    #[serde(default, rename = "waitRules")]
    #[schemars(with = "Option<Vec<RawWaitRule>>")]
    pub _wait_rules: Option<Value>,
    /// Fields whose live value is kept when an object is updated. The lists of several files are concatenated.
    #[serde(default, rename = "rebaseRules")]
    #[schemars(with = "Option<Vec<RawRebaseRule>>")]
    pub _rebase_rules: Option<Value>,
    /// Fields whose values are masked in diffs. The lists of several files are concatenated.
    #[serde(default, rename = "diffMaskRules")]
    #[schemars(with = "Option<Vec<RawFieldRule>>")]
    pub _diff_mask_rules: Option<Value>,
    /// Fields that are left out of diffs. The lists of several files are concatenated.
    #[serde(default, rename = "diffAgainstExistingFieldExclusionRules")]
    #[schemars(with = "Option<Vec<RawFieldRule>>")]
    pub _exclusion_rules: Option<Value>,
    /// Labels that are set on every object.
    #[serde(default, rename = "additionalLabels")]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub _additional_labels: Option<Value>,
    /// Whose verdict about the upgrade of a CRD counts: the preset of CRDUpgradeSafety. The check's own config.preset
    /// wins over this key of the same or an earlier layer.
    #[serde(default, rename = "preset")]
    #[schemars(with = "Option<RawPreset>")]
    pub _preset: Option<String>,
    /// Report every finding of the run as a warning. "Could not check" is still an error.
    pub warn_only: Option<bool>,
    /// Where to deploy to: kube, or dir:PATH, a folder of manifests that stands in for a cluster; or what to check
    /// against: git:REV[:PATH], the manifests of a commit.
    #[schemars(regex(pattern = r"^(kube|dir:.+|git:.+)$"))]
    pub target: Option<String>,
    /// The kubeconfig file. A relative path is resolved against the folder of the config file. Not allowed in
    /// gantry.yaml.
    #[schemars(length(min = 1))]
    pub kubeconfig: Option<String>,
    /// The context of the kubeconfig.
    #[schemars(length(min = 1))]
    pub context: Option<String>,
    /// The user or service account to impersonate. Not allowed in gantry.yaml.
    #[serde(rename = "as")]
    #[schemars(length(min = 1))]
    pub user: Option<String>,
    /// The groups to impersonate, together with as. Not allowed in gantry.yaml.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    pub as_groups: Option<Vec<String>>,
    /// The namespace for namespaced objects whose manifest does not name one.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
    /// The field manager that the cluster records as the owner of the applied fields.
    #[schemars(length(min = 1, max = 128))]
    pub field_manager: Option<String>,
    /// Take over fields that other field managers own.
    pub force_conflicts: Option<bool>,
    /// Objects to take over from the tools that own them, as KIND/NAME: deployment.apps/web. * matches any characters
    /// and ? matches one.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    pub take_ownership: Option<Vec<String>>,
    /// The app that the objects belong to.
    #[schemars(length(min = 1, max = 246))]
    pub app: Option<String>,
    /// The namespace that holds the app's record. The default is the namespace of the run.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub app_namespace: Option<String>,
    /// Whether to delete members of the app that are no longer in the manifests: ask (on a terminal), yes or no.
    #[schemars(with = "Option<RawPrune>")]
    pub prune: Option<String>,
    /// The maximum number or share of members that one deploy deletes: 20, 50%.
    #[schemars(regex(pattern = r"^([0-9]+|0*([0-9]{1,2}|100)%)$"))]
    pub prune_max: Option<String>,
    /// What a deploy waits for: true (until the objects it wrote are ready), crds (until its CRDs are served) or false
    /// (only for CRDs whose objects it writes). The default is true for a deploy of an app, and crds otherwise.
    #[schemars(with = "Option<Value>", extend("enum" = [true, "crds", false]))]
    pub wait: Option<Value>,
    /// Whether a deploy shows the last log lines of the container that keeps an awaited object from being ready.
    pub logs: Option<bool>,
    /// Do not wait for APIServices, and delete a namespace even if the API of an APIService does not respond.
    pub ignore_failing_api_services: Option<bool>,
    /// Whether a deploy continues with objects that do not depend on an object that failed.
    pub keep_going: Option<bool>,
    /// Time limits.
    pub timeouts: Option<RawTimeouts>,
    /// A program that renders each folder of -f; {dir} stands for the folder: kustomize build {dir}. Not allowed in
    /// gantry.yaml.
    pub render: Option<String>,
    /// Run the programs (exec) that gantry.yaml names as checks. Not allowed in gantry.yaml.
    pub allow_exec: Option<bool>,
    /// Replace values of objects with their type in every output; paths are still shown.
    pub redact: Option<bool>,
    /// The formats of the report, each as FORMAT or FORMAT=FILE.
    #[schemars(
        length(min = 1),
        inner(regex(pattern = r"^(human|json|sarif|junit|markdown|github|gitlab|html)(=.+)?$"))
    )]
    pub output: Option<Vec<String>>,
    /// When the terminal output is coloured.
    #[schemars(with = "Option<RawColor>")]
    pub color: Option<String>,
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

/// Time limits, written as 30s, 2m or 1h30m.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "Timeouts")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawTimeouts {
    /// The limit of one request to the API server.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    pub request: Option<String>,
    /// How long to wait until the next applied CRD is Established.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    pub established: Option<String>,
    /// How long to retry an object while a webhook does not answer.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    pub apply: Option<String>,
    /// How long to wait until the written objects are ready.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    pub ready: Option<String>,
    /// How long to wait until one object is ready. The default is the limit for all objects.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    pub resource: Option<String>,
    /// How long to wait until the deleted objects are gone.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    pub delete: Option<String>,
    /// How long a non-interactive credential plugin may run.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    pub credentials: Option<String>,
}

/// When to prune.
#[derive(JsonSchema)]
#[schemars(rename = "Prune")]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)] // Only its schema is used.
enum RawPrune {
    Ask,
    Yes,
    No,
}

/// Whose verdict about the upgrade of a CRD counts.
#[derive(JsonSchema)]
#[schemars(rename = "Preset")]
#[serde(rename_all = "kebab-case")]
#[allow(dead_code)] // Only its schema is used.
enum RawPreset {
    Documented,
    Semantic,
    Evidence,
    Kapp,
    #[serde(rename = "olm-v1")]
    OlmV1,
    OlmClassic,
    Crdify,
}

/// When to colour.
#[derive(JsonSchema)]
#[schemars(rename = "Color")]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)] // Only its schema is used.
enum RawColor {
    Auto,
    Always,
    Never,
}

/// An entry of `preflightRules` after figment merged it; its name is the key of the map.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSwitch {
    pub enabled: Option<bool>,
    /// Not used: this and the next two are read from the merged tree, which has the places of the values.
    #[serde(default, rename = "config")]
    pub _config: Map<String, Value>,
    #[serde(default, rename = "exec")]
    pub _exec: Map<String, Value>,
    #[serde(default, rename = "cel")]
    pub _cel: Map<String, Value>,
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
