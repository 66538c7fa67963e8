//! A schema as rules see it: the type of each value, and the accessible fields.
//!
//! CEL is typed by the structural schema. A string with `format: date-time` is a timestamp, a field without a type is
//! inaccessible, and property names that are not identifiers are escaped.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::estimate::Extent;
use super::release::KubernetesRelease;

/// The type of a schema node in CEL.
#[derive(Debug, Clone)]
pub struct CelType {
    pub(crate) kind: CelTypeKind,
    pub(crate) nullable: bool,
    /// The node's `type`, which the server prints in messages; empty if it has none.
    pub(crate) name: String,
    /// The server's estimate of the size of the values.
    pub(crate) extent: Extent,
}

#[derive(Debug, Clone)]
pub(crate) enum CelTypeKind {
    IntOrString,
    Bool,
    Int,
    Double,
    String,
    Bytes,
    Duration,
    Date,
    DateTime,
    List {
        items: Arc<CelType>,
        kind: ListKind,
    },
    /// An object with declared properties, keyed by unescaped name.
    Object(BTreeMap<String, Arc<CelType>>),
    /// An object with `additionalProperties`.
    Map(Arc<CelType>),
    /// `x-kubernetes-preserve-unknown-fields` without a type: only comparison is possible.
    Unknown,
    /// A node without a CEL type.
    Untyped,
}

/// The semantics of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// Order matters.
    Atomic,
    /// `x-kubernetes-list-type: set`
    Set,
    /// `x-kubernetes-list-type: map`, with its escaped keys.
    Map(Vec<String>),
}

impl CelType {
    /// The type of a schema node. `resource` is whether the node is the root of a custom resource; embedded resources
    /// are detected automatically.
    pub fn compile(schema: &Json, resource: bool) -> Arc<CelType> {
        Self::compile_for(schema, resource, KubernetesRelease::NEWEST_KNOWN)
    }

    /// [`CelType::compile`] with the sizes that a server of this release estimates.
    pub fn compile_for(schema: &Json, resource: bool, release: KubernetesRelease) -> Arc<CelType> {
        let flag = |key: &str| schema.get(key) == Some(&Json::Bool(true));
        let name = schema.get("type").and_then(Json::as_str).unwrap_or_default().to_owned();
        let embedded = flag("x-kubernetes-embedded-resource");
        let implied = match (resource || embedded) && !declares_metadata(schema) {
            true => IMPLIED,
            false => &[],
        };
        let kind = if flag("x-kubernetes-int-or-string") {
            CelTypeKind::IntOrString
        } else {
            match name.as_str() {
                "boolean" => CelTypeKind::Bool,
                "integer" => CelTypeKind::Int,
                "number" => CelTypeKind::Double,
                "string" => string(schema.get("format").and_then(Json::as_str)),
                "array" => list(schema, release),
                "object" => object(schema, resource || embedded, !implied.is_empty(), release),
                _ if flag("x-kubernetes-preserve-unknown-fields") => CelTypeKind::Unknown,
                _ => CelTypeKind::Untyped,
            }
        };
        let extent = Extent::from_schema(&kind, schema, implied, release);
        Arc::new(CelType { kind, nullable: flag("nullable"), name, extent })
    }

    /// A string without further keywords.
    fn text() -> Arc<CelType> {
        CelType::compile(&json!({"type": "string"}), false)
    }

    /// Whether rules can access values of this type. Fields of other types do not exist for them.
    pub fn is_declared(&self) -> bool {
        match &self.kind {
            CelTypeKind::List { items, .. } => items.is_declared(),
            CelTypeKind::Map(values) => values.is_declared(),
            CelTypeKind::Unknown | CelTypeKind::Untyped => false,
            _ => true,
        }
    }

    /// The maximum number of values of this type in an object, by the server's estimate.
    pub fn max_cardinality(&self) -> u64 {
        self.extent.max_cardinality()
    }

    /// The type of the property `name` (unescaped) of an object with declared properties.
    pub fn declared_property(&self, name: &str) -> Option<&Arc<CelType>> {
        let CelTypeKind::Object(properties) = &self.kind else { return None };
        properties.get(name)
    }

    /// The type of the items of a list.
    pub fn items(&self) -> Option<&Arc<CelType>> {
        let CelTypeKind::List { items, .. } = &self.kind else { return None };
        Some(items)
    }

    /// The type of the values of an object with `additionalProperties`.
    pub fn values(&self) -> Option<&Arc<CelType>> {
        let CelTypeKind::Map(values) = &self.kind else { return None };
        Some(values)
    }

    /// The declared property `name` (unescaped).
    pub(crate) fn property(&self, name: &str) -> Option<&CelType> {
        match &self.kind {
            CelTypeKind::Object(properties) => properties.get(name).map(Arc::as_ref),
            CelTypeKind::Map(values) => Some(values),
            _ => None,
        }
    }
}

fn string(format: Option<&str>) -> CelTypeKind {
    match format {
        Some("byte") => CelTypeKind::Bytes,
        Some("duration") => CelTypeKind::Duration,
        Some("date") => CelTypeKind::Date,
        Some("date-time") => CelTypeKind::DateTime,
        _ => CelTypeKind::String,
    }
}

fn list(schema: &Json, release: KubernetesRelease) -> CelTypeKind {
    let Some(items) = schema.get("items") else { return CelTypeKind::Untyped };
    let kind = match schema.get("x-kubernetes-list-type").and_then(Json::as_str) {
        Some("set") => ListKind::Set,
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Json::as_array);
            let keys = keys.into_iter().flatten().filter_map(Json::as_str);
            ListKind::Map(keys.map(|key| escape(key).unwrap_or_else(|| key.to_owned())).collect())
        }
        _ => ListKind::Atomic,
    };
    CelTypeKind::List { items: CelType::compile_for(items, false, release), kind }
}

fn object(schema: &Json, resource: bool, implied: bool, release: KubernetesRelease) -> CelTypeKind {
    let properties = schema.get("properties").and_then(Json::as_object);
    if !resource
        && properties.is_none_or(|properties| properties.is_empty())
        && let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object())
    {
        return CelTypeKind::Map(CelType::compile_for(values, false, release));
    }
    let mut types: BTreeMap<String, Arc<CelType>> = properties
        .into_iter()
        .flatten()
        .map(|(name, property)| (name.clone(), CelType::compile_for(property, false, release)))
        .collect();
    if implied {
        types.insert("apiVersion".to_owned(), CelType::text());
        types.insert("kind".to_owned(), CelType::text());
        types.insert("metadata".to_owned(), metadata(schema, release));
    }
    CelTypeKind::Object(types)
}

/// The first release in which the longest name of an object bounds the cost of a rule.
const LENGTH_OF_NAMES: KubernetesRelease = KubernetesRelease::minor(37);
/// The longest name of an object: that of a DNS subdomain.
const MAX_NAME_LENGTH: u64 = 253;

/// The metadata that rules see: only these two fields, with the declared `maxLength` if it is shorter.
///
/// Source: `pkg/apiserver/schema/cel/model/schemas.go` of `k8s.io/apiextensions-apiserver`.
fn metadata(resource: &Json, release: KubernetesRelease) -> Arc<CelType> {
    let text = |name: &str, longest: u64| {
        let mut text = json!({"type": "string"});
        if release >= LENGTH_OF_NAMES {
            let pointer = format!("/properties/metadata/properties/{name}/maxLength");
            let declared = resource.pointer(&pointer).and_then(Json::as_u64);
            text["maxLength"] = declared.map_or(longest, |declared| declared.min(longest)).into();
        }
        text
    };
    // The suffix of a generated name has a character or more.
    let properties = json!({
        "name": text("name", MAX_NAME_LENGTH),
        "generateName": text("generateName", MAX_NAME_LENGTH - 1),
    });
    CelType::compile_for(&json!({"type": "object", "properties": properties}), false, release)
}

/// The fields of every resource that rules can access.
const IMPLIED: &[&str] = &["apiVersion", "kind", "metadata"];

/// Whether a resource declares these fields itself: then rules use its own declarations.
fn declares_metadata(schema: &Json) -> bool {
    let is = |pointer: &str, wanted: &str| schema.pointer(pointer).is_some_and(|of| of["type"] == wanted);
    is("/properties/kind", "string")
        && is("/properties/apiVersion", "string")
        && is("/properties/metadata", "object")
        && is("/properties/metadata/properties/name", "string")
        && is("/properties/metadata/properties/generateName", "string")
}

/// Words that can name a field, but neither a variable nor a function.
pub(crate) const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The identifier for the property `name` in rules, if there is one.
pub fn escape(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let mut length = 1;
        match c {
            '_' if rest.starts_with("__") => {
                out.push_str("__underscores__");
                length = 2;
            }
            '.' => out.push_str("__dot__"),
            '-' => out.push_str("__dash__"),
            '/' => out.push_str("__slash__"),
            '_' | 'a'..='z' | 'A'..='Z' | '0'..='9' => out.push(c),
            _ => return None,
        }
        rest = &rest[length..];
    }
    Some(out)
}

/// The property for `identifier`, if [`escape`] could have returned that identifier.
pub fn unescape(identifier: &str) -> Option<String> {
    let mut out = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while !rest.is_empty() {
        // An escape is two underscores, a word without underscores, and two underscores.
        if let Some(tail) = rest.strip_prefix("__")
            && let Some(end) = tail.find('_').filter(|end| *end > 0 && tail[*end..].starts_with("__"))
        {
            match &tail[..end] {
                "underscores" => out.push_str("__"),
                "dot" => out.push('.'),
                "dash" => out.push('-'),
                "slash" => out.push('/'),
                word if RESERVED.contains(&word) && end + 4 == identifier.len() => out.push_str(word),
                _ => return None,
            }
            rest = &tail[end + 2..];
        } else {
            let length = rest.chars().next().map_or(0, char::len_utf8);
            out.push_str(&rest[..length]);
            rest = &rest[length..];
        }
    }
    Some(out)
}
