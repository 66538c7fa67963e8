//! A Config as it is written, before it is validated.
//!
//! figment fills [`Raw`] from the merged layers and schemars makes the JSON Schema of configuration files from it, so
//! its comments are what a user's editor shows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Configuration of gantry.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "gantry Config")]
pub(super) struct Raw {
    /// The preflight checks that run, with their configuration. Entries of several files merge by name.
    /// Without this key in any file, CRDUpgradeSafety runs.
    #[serde(default)]
    #[schemars(with = "Option<Vec<RawRule>>")]
    pub preflight_rules: Option<BTreeMap<String, RawSwitch>>,
    /// Findings that may pass, whichever check has them. Each needs a reason.
    #[serde(default, rename = "waivers")]
    #[schemars(with = "Option<Vec<RawWaiver>>")]
    pub _waivers: Option<Value>,
    /// Where the metadata of packages comes from. Entries of several files merge by name. Not allowed among the manifests.
    #[serde(default, rename = "catalogs")]
    #[schemars(with = "Option<Vec<RawCatalog>>")]
    pub _catalogs: Option<Value>,
    /// Change groups of all objects that the matchers fit. The lists of several files add up.
    #[serde(default, rename = "changeGroupBindings")]
    #[schemars(with = "Option<Vec<RawGroupBinding>>")]
    pub _change_group_bindings: Option<Value>,
    /// Change rules of all objects that the matchers fit. The lists of several files add up.
    #[serde(default, rename = "changeRuleBindings")]
    #[schemars(with = "Option<Vec<RawRuleBinding>>")]
    pub _change_rule_bindings: Option<Value>,
    /// When objects are ready that the matchers fit; the first rule that fits decides. The lists of several files add up.
    #[serde(default, rename = "waitRules")]
    #[schemars(with = "Option<Vec<RawWaitRule>>")]
    pub _wait_rules: Option<Value>,
    /// Fields that the cluster decides about when an object is updated. The lists of several files add up.
    #[serde(default, rename = "rebaseRules")]
    #[schemars(with = "Option<Vec<RawRebaseRule>>")]
    pub _rebase_rules: Option<Value>,
    /// Fields whose values no diff shows. The lists of several files add up.
    #[serde(default, rename = "diffMaskRules")]
    #[schemars(with = "Option<Vec<RawFieldRule>>")]
    pub _diff_mask_rules: Option<Value>,
    /// Fields that no diff is about. The lists of several files add up.
    #[serde(default, rename = "diffAgainstExistingFieldExclusionRules")]
    #[schemars(with = "Option<Vec<RawFieldRule>>")]
    pub _exclusion_rules: Option<Value>,
    /// Labels that every object gets.
    #[serde(default, rename = "additionalLabels")]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub _additional_labels: Option<Value>,
    /// Every finding of the run is a warning. "Could not check" stays an error.
    pub warn_only: Option<bool>,
    /// Where to deploy to: kube, or dir:PATH, a folder of manifests that stands in for a cluster; or what to check
    /// against: git:REV[:PATH], the manifests of a commit.
    #[schemars(regex(pattern = r"^(kube|dir:.+)$"))]
    pub target: Option<String>,
    /// The kubeconfig file. A relative path starts at the folder of the config file. Not allowed in gantry.yaml.
    #[schemars(length(min = 1))]
    pub kubeconfig: Option<String>,
    /// The context of the kubeconfig.
    #[schemars(length(min = 1))]
    pub context: Option<String>,
    /// The user or service account that the requests are made as (impersonation). Not allowed in gantry.yaml.
    #[serde(rename = "as")]
    #[schemars(length(min = 1))]
    pub user: Option<String>,
    /// The groups that the requests are made as, together with as. Not allowed in gantry.yaml.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    pub as_groups: Option<Vec<String>>,
    /// The namespace of namespaced objects whose manifest names none.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
    /// The name under which the cluster records who owns the applied fields.
    #[schemars(length(min = 1, max = 128))]
    pub field_manager: Option<String>,
    /// Take over fields that other field managers own.
    pub force_conflicts: Option<bool>,
    /// Objects that are taken over from the tools that own them, as KIND/NAME: deployment.apps/web. * stands for any
    /// characters and ? for one.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    pub take_ownership: Option<Vec<String>>,
    /// The app that the objects belong to.
    #[schemars(length(min = 1, max = 246))]
    pub app: Option<String>,
    /// The namespace that keeps the app's record; without it that of the run.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub app_namespace: Option<String>,
    /// Whether members of the app that the manifests no longer have are deleted: ask (on a terminal), yes or no.
    #[schemars(with = "Option<RawPrune>")]
    pub prune: Option<String>,
    /// The most members that one deploy deletes, as a number or a share: 20, 50%.
    #[schemars(regex(pattern = r"^[0-9]+%?$"))]
    pub prune_max: Option<String>,
    /// What a deploy waits for: true (until what it wrote is ready), crds (until its CRDs are served) or false (not at all,
    /// but for CRDs whose objects it writes). Without it, true for a deploy of an app, else crds.
    #[schemars(with = "Option<Value>", extend("enum" = [true, "crds", false]))]
    pub wait: Option<Value>,
    /// Whether a deploy shows what the container wrote last that keeps an awaited object from being ready.
    pub logs: Option<bool>,
    /// Whether APIServices are not awaited, and those whose API does not answer keep no namespace from being deleted.
    pub ignore_failing_api_services: Option<bool>,
    /// Whether a deploy goes on with what does not depend on an object that failed.
    pub keep_going: Option<bool>,
    /// Time limits.
    pub timeouts: Option<RawTimeouts>,
    /// A program that makes manifests of each folder of -f, with {dir} for the folder: kustomize build {dir}. Not allowed in
    /// gantry.yaml.
    pub render: Option<String>,
    /// Run the programs (exec) that gantry.yaml names as checks. Not allowed in gantry.yaml.
    pub allow_exec: Option<bool>,
    /// Paths and kinds of value instead of values of objects, in every output.
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

/// A catalog: one of path and url.
#[derive(JsonSchema)]
#[schemars(rename = "Catalog", extend("not" = {"required": ["path", "url"]}))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawCatalog {
    /// The name of its ClusterCatalog.
    #[schemars(length(min = 1))]
    name: String,
    /// A file-based catalog: a file, or a folder of files. A relative path starts at the folder of the config file.
    #[schemars(length(min = 1))]
    path: Option<String>,
    /// The address of a catalog. Not allowed in gantry.yaml.
    #[schemars(regex(pattern = r"^https?://"))]
    url: Option<String>,
    /// Certificates (PEM) of those that may vouch for the server of url.
    #[schemars(length(min = 1))]
    ca_file: Option<String>,
    /// Of several catalogs that have a package, the one of the highest priority is taken.
    priority: Option<i32>,
    /// What selectors of ClusterExtensions are about.
    labels: Option<BTreeMap<String, String>>,
    /// false: nothing can be installed from it.
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
    /// How long to wait until an applied CRD is Established.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    pub established: Option<String>,
    /// How long an object is tried again while a webhook does not answer.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    pub apply: Option<String>,
    /// How long to wait until what was written is ready.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    pub ready: Option<String>,
    /// How long to wait until one object is ready; without it, as long as for all.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    pub resource: Option<String>,
    /// How long to wait until what was deleted is gone.
    #[schemars(regex(pattern = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"))]
    pub delete: Option<String>,
    /// How long a credential plugin that asks nobody may take.
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

/// What figment leaves of an entry: the name is its key.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSwitch {
    pub enabled: Option<bool>,
    /// Read with the places of its values from the merged tree instead, and so are the other two.
    #[serde(default, rename = "config")]
    pub _config: Map<String, Value>,
    #[serde(default, rename = "exec")]
    pub _exec: Map<String, Value>,
    #[serde(default, rename = "cel")]
    pub _cel: Map<String, Value>,
}

/// Findings that may pass. In object, version, path and rule, * stands for any characters and ? for one.
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
    /// The field, as findings name it: ^.spec.pollInterval.
    #[schemars(length(min = 1))]
    path: Option<String>,
    /// The rule.
    #[schemars(length(min = 1))]
    rule: Option<String>,
    /// Why the findings may pass; shown with each of them.
    #[schemars(length(min = 1))]
    reason: String,
    /// The last day on which the waiver holds, as 2026-12-31 (UTC).
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
    /// false switches a check off that another file switched on, true on again.
    enabled: Option<bool>,
    /// The configuration of the check.
    config: Option<Map<String, Value>>,
    /// Makes it a check of one's own: a program. Not run from a Config document among the manifests.
    exec: Option<Map<String, Value>>,
    /// Makes it a check of one's own: a CEL expression.
    cel: Option<Map<String, Value>>,
}

/// A change group of all objects that one of the matchers fits.
#[derive(JsonSchema)]
#[schemars(rename = "ChangeGroupBinding")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawGroupBinding {
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
struct RawRuleBinding {
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
struct RawWaitRule {
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
struct RawRebaseRule {
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
enum RawRebase {
    Copy,
    Remove,
}

#[derive(JsonSchema)]
#[schemars(rename = "RebaseSource")]
#[serde(rename_all = "lowercase")]
#[allow(dead_code)] // Only its schema is used.
enum RawSide {
    New,
    Existing,
}

/// A field of all objects that one of the matchers fits.
#[derive(JsonSchema)]
#[schemars(rename = "FieldRule")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawFieldRule {
    path: RawPath,
    resource_matchers: Vec<RawMatcher>,
}

/// What a condition of status.conditions means. Failure comes before success, and success before unblockChanges.
#[derive(JsonSchema)]
#[schemars(rename = "ConditionMatcher")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawConditionMatcher {
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
struct RawExpressions {
    /// The object is ready.
    success: String,
    /// The object has failed.
    failure: Option<String>,
    /// What waits for the object may be written, though it is not ready.
    unblock_changes: Option<String>,
}

/// Which objects a rule is about: one of the matchers.
#[derive(JsonSchema)]
#[schemars(rename = "ResourceMatcher", extend("minProperties" = 1, "maxProperties" = 1))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawMatcher {
    /// All objects.
    #[schemars(with = "Option<RawNothing>")]
    all_matcher: Option<RawNothing>,
    /// One of several fits.
    any_matcher: Option<RawMatchers>,
    /// All of several fit.
    and_matcher: Option<RawMatchers>,
    /// Another one does not fit.
    not_matcher: Option<RawNot>,
    api_group_kind_matcher: Option<RawGroupKind>,
    api_version_kind_matcher: Option<RawVersionKind>,
    /// One object; without namespace a cluster-scoped one.
    kind_namespace_name_matcher: Option<RawName>,
    /// The object has all of these annotations.
    has_annotation_matcher: Option<RawAnnotations>,
    /// The object is in one of these namespaces, or in any where none is named.
    has_namespace_matcher: Option<RawNamespaces>,
    /// Kinds that are not of Kubernetes' own API groups.
    custom_resource_matcher: Option<RawNothing>,
    /// A field is absent, null, or an empty list or mapping.
    empty_field_matcher: Option<RawField>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Nothing")]
#[serde(deny_unknown_fields)]
struct RawNothing {}

#[derive(JsonSchema)]
#[schemars(rename = "ResourceMatchers")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawMatchers {
    matchers: Option<Vec<RawMatcher>>,
}

#[derive(JsonSchema)]
#[schemars(rename = "NotMatcher")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawNot {
    matcher: Box<RawMatcher>,
}

#[derive(JsonSchema)]
#[schemars(rename = "ApiGroupKind")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawGroupKind {
    api_group: Option<String>,
    kind: String,
}

#[derive(JsonSchema)]
#[schemars(rename = "ApiVersionKind")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawVersionKind {
    api_version: String,
    kind: String,
}

#[derive(JsonSchema)]
#[schemars(rename = "KindNamespaceName")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawName {
    kind: String,
    namespace: Option<String>,
    name: String,
}

#[derive(JsonSchema)]
#[schemars(rename = "HasAnnotation")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawAnnotations {
    keys: Option<Vec<String>>,
}

#[derive(JsonSchema)]
#[schemars(rename = "HasNamespace")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawNamespaces {
    names: Option<Vec<String>>,
}

#[derive(JsonSchema)]
#[schemars(rename = "EmptyField")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawField {
    path: RawPath,
}

/// A path to a field.
#[derive(JsonSchema)]
#[schemars(rename = "FieldPath", transparent)]
#[allow(dead_code)] // Only its schema is used.
struct RawPath(#[schemars(length(min = 1))] Vec<RawPart>);

/// The name of a field, every item of a list, or one item.
#[derive(JsonSchema)]
#[schemars(rename = "FieldPathPart")]
#[serde(untagged)]
#[allow(dead_code)] // Only its schema is used.
enum RawPart {
    Key(String),
    All(RawAll),
    Index(RawIndex),
}

#[derive(JsonSchema)]
#[schemars(rename = "AllIndexes")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawAll {
    #[schemars(extend("const" = true))]
    all_indexes: bool,
}

#[derive(JsonSchema)]
#[schemars(rename = "OneIndex")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
struct RawIndex {
    index: u32,
}
