//! What server-side apply cannot parse according to a schema.
//!
//! Before the server merges a manifest into the live object, it parses both by the types of the schema
//! (structured-merge-diff calls the result a typed value). This happens before validation, and on the whole object:
//! nothing is ratcheted, and the status counts even if the write drops it.

mod tables;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::{Step, older_releases};
use gantry_k8s_cel::gotext;
use gantry_k8s_cel::{KubernetesRelease, Num};

/// The maximum length of a chain of `$ref`s.
const MOST_REFERENCES: usize = 8;

/// A value that cannot be parsed. Its `Display` is the server's text: `.spec.list: element 0: associative list …`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypedValueError {
    /// The path in the object.
    pub at: Vec<Step>,
    /// The index of the faulty element, if the error is about an element of the list at `at`.
    pub element: Option<usize>,
    /// The kind of error.
    pub kind: UnreadableKind,
    /// The path as the server writes it: `.spec.list[name="a"].x`.
    pub path: String,
    /// The server's message.
    pub message: String,
}

/// The reason a value cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnreadableKind {
    /// The schema does not declare the field.
    Undeclared,
    /// The value has the wrong type.
    Type,
    /// The element cannot be identified within its list: its keys are missing, or it is null.
    Element,
    /// The element occurs twice in a set or in a list of type `map`.
    Duplicate,
}

impl TypedValueError {
    /// The path to the faulty element or, if there is none, to the faulty value.
    pub fn steps(&self) -> Vec<Step> {
        self.at.iter().cloned().chain(self.element.map(Step::Index)).collect()
    }

    /// The error without any value of the object.
    pub fn words(&self) -> &str {
        match self.kind {
            UnreadableKind::Undeclared | UnreadableKind::Element => &self.message,
            UnreadableKind::Type => self.message.split_once(", got ").map_or(&*self.message, |(expected, _)| expected),
            UnreadableKind::Duplicate => "duplicate entries",
        }
    }
}

impl std::error::Error for TypedValueError {}

impl std::fmt::Display for TypedValueError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

/// Whether a list can contain an element twice: a live object can, except before 1.29, a manifest cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// Duplicates are allowed.
    Allowed,
    /// Duplicates cannot be parsed.
    Refused,
}

/// The values of a custom resource that cannot be parsed by its `openAPIV3Schema`, in the order of the object.
pub fn unreadable(
    schema: &Value,
    object: &Value,
    duplicates: Duplicates,
    release: KubernetesRelease,
) -> Vec<TypedValueError> {
    let inherited = Inherited { is_resource: true, keeps_unknown: false };
    TypedWalk::find_errors(schema, None, object, duplicates, release, inherited)
}

/// The values of an object of a built-in kind that cannot be parsed by the schema of its kind in an OpenAPI v3
/// document, in the order of the object. `definitions` is `components.schemas` of the document, which `$ref`s lead to.
pub fn unreadable_by(
    schema: &Value,
    definitions: &Value,
    object: &Value,
    duplicates: Duplicates,
    release: KubernetesRelease,
) -> Vec<TypedValueError> {
    // Such a document describes the metadata too.
    let inherited = Inherited { is_resource: false, keeps_unknown: false };
    TypedWalk::find_errors(schema, Some(definitions), object, duplicates, release, inherited)
}

/// The fields that the schema declares beside the one at `at`, which it does not declare: see [`unreadable_by`].
pub fn declared_beside<'s>(schema: &'s Value, definitions: &'s Value, at: &[Step]) -> Vec<&'s str> {
    let Some((_, above)) = at.split_last() else { return Vec::new() };
    let below = |schema: &'s Value, step: &Step| match step {
        Step::Index(_) => &schema["items"],
        Step::Key(name) => schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]),
    };
    let start = resolve(Some(definitions), schema);
    let map = above.iter().fold(start, |schema, step| resolve(Some(definitions), below(schema, step)));
    map["properties"].as_object().into_iter().flat_map(|fields| fields.keys().map(String::as_str)).collect()
}

/// The values of a CustomResourceDefinition (`apiextensions.k8s.io/v1`) in a manifest that cannot be parsed, in the
/// order of the manifest. For a release that came after the newest one that is known here, fields that no known release
/// has are not reported: [`crate::crd::validate`] reports them as undecided.
pub fn unreadable_crd(crd: &Value, release: KubernetesRelease) -> Vec<TypedValueError> {
    let mut found = parse_crd(crd, release);
    found.retain(|found| found.kind != UnreadableKind::Undeclared || !release.is_unknown());
    found
}

/// The fields of a CustomResourceDefinition that no known release has.
pub(crate) fn undeclared_crd_fields(crd: &Value) -> impl Iterator<Item = TypedValueError> {
    parse_crd(crd, KubernetesRelease::NEWEST_KNOWN).into_iter().filter(|found| found.kind == UnreadableKind::Undeclared)
}

fn parse_crd(crd: &Value, release: KubernetesRelease) -> Vec<TypedValueError> {
    let definitions = tables::crd(release);
    let root = &definitions["CustomResourceDefinition"];
    let inherited = Inherited { is_resource: true, keeps_unknown: false };
    TypedWalk::find_errors(root, Some(definitions), crd, Duplicates::Refused, release, inherited)
}

/// Whether a node is a list of type `set` whose items can be objects or lists. The server accepts such a schema, but
/// server-side apply cannot parse such an item.
pub fn is_set_of_structures(node: &Map<String, Value>) -> bool {
    let items = node.get("items").and_then(Value::as_object);
    node.get("x-kubernetes-list-type").and_then(Value::as_str) == Some("set")
        && items.is_some_and(|items| match items.get("type").and_then(Value::as_str) {
            None | Some("") => items.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)),
            Some(name) => matches!(name, "object" | "array"),
        })
}

/// Whether a schema has a node for which [`is_set_of_structures`] holds.
pub fn has_set_of_structures(schema: &Value) -> bool {
    let Some(node) = schema.as_object() else { return false };
    let below = ["items", "additionalProperties"].into_iter().filter_map(|keyword| node.get(keyword));
    let fields = node.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    is_set_of_structures(node) || below.chain(fields).any(has_set_of_structures)
}

/// The context that a node inherits from its ancestors.
#[derive(Clone, Copy)]
struct Inherited {
    /// Whether the metadata is that of a resource.
    is_resource: bool,
    /// Whether a node above keeps unknown fields.
    keeps_unknown: bool,
}

enum TypedPathElement<'o> {
    Field(&'o str),
    Index(usize),
    /// An item of a set.
    Value(&'o Value),
    /// The keys of an item in a list with keys, in order.
    Keys(Vec<(&'o str, &'o Value)>),
}

struct TypedWalk<'o> {
    /// What `$ref`s lead to. The schema of a custom resource has none.
    definitions: Option<&'o Value>,
    duplicates: Duplicates,
    release: KubernetesRelease,
    place: Vec<(TypedPathElement<'o>, Step)>,
    found: Vec<TypedValueError>,
}

impl<'o> TypedWalk<'o> {
    fn find_errors(
        schema: &'o Value,
        definitions: Option<&'o Value>,
        object: &'o Value,
        duplicates: Duplicates,
        release: KubernetesRelease,
        inherited: Inherited,
    ) -> Vec<TypedValueError> {
        let duplicates = match release >= older_releases::DUPLICATES_IN_LIVE {
            true => duplicates,
            false => Duplicates::Refused,
        };
        let mut walk = TypedWalk { definitions, duplicates, release, place: Vec::new(), found: Vec::new() };
        walk.value(schema, object, inherited);
        walk.found
    }

    fn value(&mut self, schema: &'o Value, value: &'o Value, inherited: Inherited) {
        let schema = resolve(self.definitions, schema);
        let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
        let inherited = Inherited {
            is_resource: inherited.is_resource || flag("x-kubernetes-embedded-resource"),
            keeps_unknown: inherited.keeps_unknown || flag("x-kubernetes-preserve-unknown-fields"),
        };
        // A null is valid for any type.
        if value.is_null() {
            return;
        }
        let expected = match schema.get("type").and_then(Value::as_str) {
            // Any type is valid.
            None | Some("") => match value {
                Value::Object(map) => return self.map(schema, map, inherited),
                _ => return,
            },
            Some("object") => match value {
                Value::Object(map) => return self.map(schema, map, inherited),
                other => format!("expected map, got &{{{}}}", gotext::format_v(other)),
            },
            Some("array") => match value {
                Value::Array(items) => return self.list(schema, items, inherited),
                other => format!("expected list, got &{{{}}}", gotext::format_v(other)),
            },
            Some("boolean") if !value.is_boolean() => format!("expected boolean, got &{{{}}}", gotext::format_v(value)),
            Some("integer" | "number") if !value.is_number() => {
                format!("expected numeric (int or float), got {}", go_type(value))
            }
            // A string with a format can be any scalar.
            Some("string") => match (schema.get("format").and_then(Value::as_str), value) {
                (_, Value::String(_)) => return,
                (None | Some("" | "byte"), other) => {
                    format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(other))
                }
                (Some(_), Value::Array(_) | Value::Object(_)) => {
                    format!("expected any scalar, got &{{{}}}", gotext::format_v(value))
                }
                _ => return,
            },
            _ => return,
        };
        self.refuse(UnreadableKind::Type, None, expected);
    }

    fn map(&mut self, schema: &'o Value, map: &'o Map<String, Value>, inherited: Inherited) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let entries = schema.get("additionalProperties");
        let below = Inherited { is_resource: false, ..inherited };
        for (key, value) in map {
            self.place.push((TypedPathElement::Field(key), Step::from(key.as_str())));
            let of_resource = inherited.is_resource.then(|| tables::RESOURCE["properties"].get(key)).flatten();
            if let Some(property) = of_resource {
                self.value(property, value, Inherited { is_resource: false, keeps_unknown: false });
            } else if let Some(property) = properties.and_then(|properties| properties.get(key)) {
                self.value(property, value, below);
            } else {
                match entries {
                    Some(entry @ Value::Object(_)) => self.value(entry, value, below),
                    Some(Value::Bool(true)) => {}
                    None | Some(Value::Null)
                        if inherited.keeps_unknown
                            || properties.is_none_or(Map::is_empty) && !inherited.is_resource => {}
                    _ => self.refuse(UnreadableKind::Undeclared, None, "field not declared in schema".to_owned()),
                }
            }
            self.place.pop();
        }
    }

    fn list(&mut self, schema: &'o Value, items: &'o [Value], inherited: Inherited) {
        let below = Inherited { is_resource: false, ..inherited };
        let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
        let mut seen = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = match list_type {
                Some("map") => {
                    let of_items = resolve(self.definitions, &schema["items"]);
                    keys_of(schema, of_items, item, self.release).map(TypedPathElement::Keys)
                }
                Some("set") => match item {
                    Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
                    Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                    Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
                    item => Ok(TypedPathElement::Value(item)),
                },
                _ => Ok(TypedPathElement::Index(index)),
            };
            let element = match element {
                Ok(element) => element,
                // The server checks no further elements of the list.
                Err(reason) => {
                    let message = format!("element {index}: {reason}");
                    return self.refuse(UnreadableKind::Element, Some(index), message);
                }
            };
            if self.duplicates == Duplicates::Refused && element.identity().is_some_and(|known| !seen.insert(known)) {
                let message = format!("duplicate entries for key {}", element.text());
                self.refuse(UnreadableKind::Duplicate, Some(index), message);
            }
            if let Some(of_item) = schema.get("items") {
                self.place.push((element, Step::Index(index)));
                self.value(of_item, item, below);
                self.place.pop();
            }
        }
    }

    fn refuse(&mut self, kind: UnreadableKind, element: Option<usize>, message: String) {
        let path = self.place.iter().map(|(element, _)| element.text()).collect();
        let at = self.place.iter().map(|(_, step)| step.clone()).collect();
        self.found.push(TypedValueError { at, element, kind, path, message });
    }
}

/// Follows `$ref`s to a schema. The result allows every value if the schema does, or if it is missing.
fn resolve<'s>(definitions: Option<&'s Value>, mut schema: &'s Value) -> &'s Value {
    let Some(definitions) = definitions else { return schema };
    for _ in 0..MOST_REFERENCES {
        // OpenAPI v3 allows no other keyword beside `$ref`, such as a default.
        let wrapped = schema["allOf"].as_array().filter(|all| all.len() == 1).map(|all| &all[0]["$ref"]);
        let Some(reference) = schema["$ref"].as_str().or(wrapped.and_then(Value::as_str)) else { return schema };
        let name = reference.rsplit('/').next().unwrap_or_default();
        schema = if tables::ANY_SCALAR.contains(&name) { &Value::Null } else { &definitions[name] };
    }
    &Value::Null
}

/// The keys of an item, sorted by name, with defaults for the missing ones.
fn keys_of<'o>(
    schema: &'o Value,
    of_items: &'o Value,
    item: &'o Value,
    release: KubernetesRelease,
) -> Result<Vec<(&'o str, &'o Value)>, String> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let names = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    let names: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = &of_items["properties"];
    let default = |name: &str| fields.get(name)?.get("default").filter(|value| !value.is_null());
    let key = |name: &&'o str| Some((*name, map.get(*name).or_else(|| default(name))?));
    if release < older_releases::INCOMPLETE_KEYS
        && let Some(missing) = names.iter().find(|name| key(name).is_none())
    {
        return Err(format!(
            "associative list with keys has an element that omits key field {} (and doesn't have default value)",
            gotext::quote(missing)
        ));
    }
    let mut keys: Vec<(&str, &Value)> = names.iter().filter_map(key).collect();
    if keys.is_empty() && !names.is_empty() {
        let names: Vec<String> = names.iter().map(|name| gotext::quote(name)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values \
             for any key fields)",
            names.join(" ")
        ));
    }
    keys.sort_by_key(|(name, _)| *name);
    Ok(keys)
}

impl TypedPathElement<'_> {
    fn text(&self) -> String {
        match self {
            Self::Field(name) => format!(".{name}"),
            Self::Index(index) => format!("[{index}]"),
            Self::Value(value) => format!("[={}]", key_text(value)),
            Self::Keys(keys) => {
                let keys: Vec<String> =
                    keys.iter().map(|(name, value)| format!("{name}={}", key_text(value))).collect();
                format!("[{}]", keys.join(","))
            }
        }
    }

    /// A text that is equal for elements that the server considers the same: an integer equals the same float.
    fn identity(&self) -> Option<String> {
        let of_value = |value: &Value| match value {
            Value::Number(number) => match Num::from(number) {
                Num::Float(float) if float.fract() == 0.0 && float.abs() < 1e15 => format!("{}", float as i64),
                _ => number.to_string(),
            },
            other => key_text(other),
        };
        match self {
            Self::Field(_) | Self::Index(_) => None,
            Self::Value(value) => Some(of_value(value)),
            Self::Keys(keys) => {
                Some(keys.iter().map(|(name, value)| format!("{}={},", gotext::quote(name), of_value(value))).collect())
            }
        }
    }
}

/// A value as it appears in a path.
fn key_text(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => gotext::quote(text),
        Value::Array(items) => format!("[{}]", items.iter().map(key_text).collect::<Vec<_>>().join(",")),
        Value::Object(map) => map.iter().map(|(key, value)| format!("{key}={}", key_text(value))).collect(),
        scalar => gotext::format_v(scalar),
    }
}

/// `%T`
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if matches!(Num::from(number), Num::Int(_)) => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// `%#v`
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => gotext::quote(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let entry = |(key, value): (&String, &Value)| format!("{}:{}", gotext::quote(key), go_syntax(value));
            let entries: Vec<String> = entries.into_iter().map(entry).collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        scalar => gotext::format_v(scalar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(found: Vec<TypedValueError>) -> Vec<String> {
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_built_in_kind_is_parsed_by_the_definitions_of_a_document() {
        let definitions = serde_json::json!({
            "Kind": {"type": "object", "properties": {
                "spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}},
                "kind": {"type": "string"}}},
            "Spec": {"type": "object", "required": ["missing"], "properties": {
                "ports": {"type": "array", "items": {"allOf": [{"$ref": "#/components/schemas/Port"}], "default": {}},
                    "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"]},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object"},
                "loop": {"$ref": "#/components/schemas/Loop"},
                "size": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"}}},
            "Port": {"type": "object", "properties": {"port": {"type": "integer"},
                "protocol": {"type": "string", "default": "TCP"}}},
            "Loop": {"$ref": "#/components/schemas/Loop"},
            "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
        });
        let parsed = |spec: Value| {
            let object = serde_json::json!({"kind": "Kind", "spec": spec});
            said(unreadable_by(
                &definitions["Kind"],
                &definitions,
                &object,
                Duplicates::Refused,
                KubernetesRelease::default(),
            ))
        };
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let fine = r#"{"ports": [{"port": 1}, {"port": 2, "protocol": null}], "labels": {"a": "b"}, "size": 1.5,
            "free": {"x": {}}, "loop": {"x": 1}}"#;
        assert_eq!(parsed(json(fine)), [""; 0]);
        assert_eq!(parsed(json(r#"{"prts": []}"#)), [".spec.prts: field not declared in schema"]);
        let beside = |at: &[Step]| declared_beside(&definitions["Kind"], &definitions, at);
        assert_eq!(beside(&["spec".into(), "ports".into(), 0.into(), "prt".into()]), ["port", "protocol"]);
        assert_eq!(beside(&["spec".into(), "free".into(), "x".into()]), [""; 0]);
        assert_eq!(
            parsed(json(r#"{"ports": [{"port": "1"}, {"port": 1}, {"port": 1, "protocol": "TCP"}], "free": []}"#)),
            [
                r#".spec.ports[port="1",protocol="TCP"].port: expected numeric (int or float), got string"#,
                r#".spec.ports: duplicate entries for key [port=1,protocol="TCP"]"#,
                ".spec.free: expected map, got &{[]}",
            ]
        );
    }

    #[test]
    fn an_item_needs_all_keys_before_1_34_and_live_lists_may_repeat_items_from_1_29() {
        let schema = serde_json::json!({"type": "object", "properties": {"l": {"type": "array",
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
            "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}}}});
        let parsed = |object: Value, minor| {
            said(unreadable(&schema, &object, Duplicates::Allowed, KubernetesRelease::minor(minor)))
        };
        let incomplete = serde_json::json!({"l": [{"a": "x"}]});
        let omitted = "associative list with keys has an element that omits key field \"b\" (and doesn't have default \
                       value)";
        assert_eq!(parsed(incomplete.clone(), 33), [format!(".l: element 0: {omitted}")]);
        assert_eq!(parsed(incomplete, 34), [""; 0]);
        let repeated = serde_json::json!({"l": [{"a": "x", "b": "y"}, {"a": "x", "b": "y"}]});
        assert_eq!(parsed(repeated.clone(), 28), [r#".l: duplicate entries for key [a="x",b="y"]"#]);
        assert_eq!(parsed(repeated, 29), [""; 0]);
    }

    #[test]
    fn fields_of_a_crd_are_parsed_down_to_those_of_every_schema() {
        let crd = serde_json::json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "x", "labels": {"a": 1}, "clusterName": "c", "finalizers": ["f", "f"]},
            "spec": {"version": "v1", "names": {"kind": "X", "singluar": "x"}, "versions": [{
                "name": "v1", "served": "yes", "subresources": {"status": {"any": 1}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-foo": 1, "properties": {
                    "a": {"maximum": "1", "allOf": [{"typ": "string"}]},
                    "b": {"type": "array", "items": {"x-bar": 1}, "default": {"any": 1}},
                    "c": {"x-kubernetes-validations": [{"rule": "r"}, {"rule": "s", "why": "?"}, {"rule": "r"}]},
                }}}}]},
        });
        let schema = ".spec.versions[0].schema.openAPIV3Schema";
        let rules = format!("{schema}.properties.c.x-kubernetes-validations");
        assert_eq!(
            said(unreadable_crd(&crd, KubernetesRelease::default())),
            [
                ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}".to_owned(),
                ".metadata.clusterName: field not declared in schema".to_owned(),
                r#".metadata.finalizers: duplicate entries for key [="f"]"#.to_owned(),
                ".spec.version: field not declared in schema".to_owned(),
                ".spec.names.singluar: field not declared in schema".to_owned(),
                ".spec.versions[0].served: expected boolean, got &{yes}".to_owned(),
                format!("{schema}.x-foo: field not declared in schema"),
                format!("{schema}.properties.a.maximum: expected numeric (int or float), got string"),
                format!("{schema}.properties.a.allOf[0].typ: field not declared in schema"),
                format!(r#"{rules}[rule="s"].why: field not declared in schema"#),
                format!(r#"{rules}: duplicate entries for key [rule="r"]"#),
            ]
        );
    }
}
