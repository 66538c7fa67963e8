//! What server-side apply cannot parse according to a schema.
//!
//! Before the server merges a manifest into the live object, it parses both by the types of the schema
//! (structured-merge-diff calls the result a typed value). This happens before validation, and on the whole object:
//! nothing is ratcheted, and the status counts even if the write drops it.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::gotext;
use super::num::Num;
use crate::Step;

/// A value that cannot be parsed. Its `Display` is the server's text: `.spec.list: element 0: associative list …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
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

impl Unreadable {
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

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "{}: {}", self.path, self.message) }
    }
}

/// Whether a list can contain an element twice: a live object can, a manifest cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// Duplicates are allowed.
    Allowed,
    /// Duplicates cannot be parsed.
    Refused,
}

/// The values of a custom resource that cannot be parsed by its `openAPIV3Schema`, in the order of the object.
pub fn unreadable(schema: &Value, object: &Value, duplicates: Duplicates) -> Vec<Unreadable> {
    let mut walk = Walk { duplicates, place: Vec::new(), found: Vec::new() };
    walk.value(schema, object, Inherited { is_resource: true, keeps_unknown: false });
    walk.found
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

/// The server's own schema of every resource, including embedded ones.
/// Source: `ObjectMeta` of `k8s.io/apimachinery/pkg/apis/meta/v1`
static RESOURCE: LazyLock<Value> = LazyLock::new(|| {
    let fields = |texts: &[&str], others: Value| {
        let mut properties: Map<String, Value> =
            texts.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        properties.extend(others.as_object().cloned().unwrap_or_default());
        json!({"type": "object", "properties": properties})
    };
    let (flag, integer) = (json!({"type": "boolean"}), json!({"type": "integer"}));
    let time = json!({"type": "string", "format": "date-time"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let owner = fields(
        &["apiVersion", "kind", "name"],
        json!({"blockOwnerDeletion": flag, "controller": flag, "uid": {"type": "string", "default": ""}}),
    );
    let managed = fields(
        &["apiVersion", "fieldsType", "manager", "operation", "subresource"],
        json!({"fieldsV1": {"type": "object"}, "time": time}),
    );
    let metadata = fields(
        &["generateName", "name", "namespace", "resourceVersion", "selfLink", "uid"],
        json!({
            "annotations": texts,
            "creationTimestamp": time,
            "deletionGracePeriodSeconds": integer,
            "deletionTimestamp": time,
            "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "generation": integer,
            "labels": texts,
            "managedFields": {"type": "array", "items": managed},
            "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"], "items": owner},
        }),
    );
    fields(&["apiVersion", "kind"], json!({"metadata": metadata}))
});

/// The context that a node inherits from its ancestors.
#[derive(Clone, Copy)]
struct Inherited {
    /// Whether the metadata is that of a resource.
    is_resource: bool,
    /// Whether a node above keeps unknown fields.
    keeps_unknown: bool,
}

enum Element<'o> {
    Field(&'o str),
    Index(usize),
    /// An item of a set.
    Value(&'o Value),
    /// The keys of an item in a list with keys, in order.
    Keys(Vec<(&'o str, &'o Value)>),
}

struct Walk<'o> {
    duplicates: Duplicates,
    place: Vec<(Element<'o>, Step)>,
    found: Vec<Unreadable>,
}

impl<'o> Walk<'o> {
    fn value(&mut self, schema: &'o Value, value: &'o Value, inherited: Inherited) {
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
                other => format!("expected map, got &{{{}}}", gotext::plain(other)),
            },
            Some("array") => match value {
                Value::Array(items) => return self.list(schema, items, inherited),
                other => format!("expected list, got &{{{}}}", gotext::plain(other)),
            },
            Some("boolean") if !value.is_boolean() => format!("expected boolean, got &{{{}}}", gotext::plain(value)),
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
                    format!("expected any scalar, got &{{{}}}", gotext::plain(value))
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
            self.place.push((Element::Field(key), Step::from(key.as_str())));
            let of_resource = inherited.is_resource.then(|| RESOURCE["properties"].get(key)).flatten();
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
                Some("map") => keys_of(schema, item).map(Element::Keys),
                Some("set") => match item {
                    Value::Object(_) => Err("associative list without keys has an element that's a map type".into()),
                    Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                    Value::Null => Err("associative list without keys has an element that's an explicit null".into()),
                    item => Ok(Element::Value(item)),
                },
                _ => Ok(Element::Index(index)),
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
        self.found.push(Unreadable { at, element, kind, path, message });
    }
}

/// The keys of an item, sorted by name, with defaults for the missing ones.
fn keys_of<'o>(schema: &'o Value, item: &'o Value) -> Result<Vec<(&'o str, &'o Value)>, String> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let names = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    let names: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
    let of_items = schema.get("items").and_then(|items| items.get("properties"));
    let default = |name: &str| of_items.and_then(|fields| fields.get(name)?.get("default")).filter(|v| !v.is_null());
    let mut keys: Vec<(&str, &Value)> =
        names.iter().filter_map(|name| Some((*name, map.get(*name).or_else(|| default(name))?))).collect();
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

impl Element<'_> {
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
            Value::Number(number) => match Num::of(number) {
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
        scalar => gotext::plain(scalar),
    }
}

/// `%T`
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if matches!(Num::of(number), Num::Int(_)) => "int64",
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
        scalar => gotext::plain(scalar),
    }
}
