//! Resource matchers and field paths in a Config.

use schemars::JsonSchema;

/// The objects that a rule applies to: exactly one of the matchers.
#[derive(JsonSchema)]
#[schemars(rename = "ResourceMatcher", extend("minProperties" = 1, "maxProperties" = 1))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawMatcher {
    /// All objects.
    #[schemars(with = "Option<RawNothing>")]
    all_matcher: Option<RawNothing>,
    /// At least one of these matches.
    any_matcher: Option<RawMatchers>,
    /// All of these match.
    and_matcher: Option<RawMatchers>,
    /// The other matcher does not match.
    not_matcher: Option<RawNot>,
    api_group_kind_matcher: Option<RawGroupKind>,
    api_version_kind_matcher: Option<RawVersionKind>,
    /// One object; without namespace, a cluster-scoped one.
    kind_namespace_name_matcher: Option<RawName>,
    /// The object has all of these annotations.
    has_annotation_matcher: Option<RawAnnotations>,
    /// The object is in one of these namespaces, or, without names, in any namespace.
    has_namespace_matcher: Option<RawNamespaces>,
    /// Kinds outside Kubernetes' own API groups.
    custom_resource_matcher: Option<RawNothing>,
    /// A field is absent, null, or an empty list or mapping.
    empty_field_matcher: Option<RawField>,
}

#[derive(JsonSchema)]
#[schemars(rename = "Nothing")]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct RawNothing {}

#[derive(JsonSchema)]
#[schemars(rename = "ResourceMatchers")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawMatchers {
    matchers: Option<Vec<RawMatcher>>,
}

#[derive(JsonSchema)]
#[schemars(rename = "NotMatcher")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawNot {
    matcher: Box<RawMatcher>,
}

#[derive(JsonSchema)]
#[schemars(rename = "ApiGroupKind")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawGroupKind {
    api_group: Option<String>,
    kind: String,
}

#[derive(JsonSchema)]
#[schemars(rename = "ApiVersionKind")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawVersionKind {
    api_version: String,
    kind: String,
}

#[derive(JsonSchema)]
#[schemars(rename = "KindNamespaceName")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawName {
    kind: String,
    namespace: Option<String>,
    name: String,
}

#[derive(JsonSchema)]
#[schemars(rename = "HasAnnotation")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawAnnotations {
    keys: Option<Vec<String>>,
}

#[derive(JsonSchema)]
#[schemars(rename = "HasNamespace")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawNamespaces {
    names: Option<Vec<String>>,
}

#[derive(JsonSchema)]
#[schemars(rename = "EmptyField")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawField {
    path: RawPath,
}

/// A path to a field.
#[derive(JsonSchema)]
#[schemars(rename = "FieldPath", transparent)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawPath(#[schemars(length(min = 1))] Vec<RawPart>);

/// The name of a field, every item of a list, one item, or every field whose name matches.
#[derive(JsonSchema)]
#[schemars(rename = "FieldPathPart")]
#[serde(untagged)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) enum RawPart {
    Key(String),
    All(RawAll),
    Index(RawIndex),
    Regex(RawRegex),
}

#[derive(JsonSchema)]
#[schemars(rename = "AllIndexes")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawAll {
    #[schemars(extend("const" = true))]
    all_indexes: bool,
}

#[derive(JsonSchema)]
#[schemars(rename = "OneIndex")]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawIndex {
    index: u32,
}

#[derive(JsonSchema)]
#[schemars(rename = "KeyPattern")]
#[serde(deny_unknown_fields)]
#[allow(dead_code)] // Only its schema is used.
pub(in crate::config) struct RawRegex {
    /// A regular expression in Go's syntax. It matches anywhere in a name, unless it starts with ^ and ends with $.
    regex: String,
}
