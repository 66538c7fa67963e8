//! Metadata: of the object itself, and of the resources embedded in it.
//!
//! The server decodes metadata into a fixed structure: what does not fit is an error, what it does not know is dropped.

use serde_json::{Map, Value, json};

use super::error::{FieldError, Kind};
use super::names;
use super::node::Node;
use super::number::Num;
use super::path::Path;
use super::prune::Pruned;

/// What a field of metadata must be.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Integer,
    Flag,
    Time,
    /// Anything: field sets are not looked into.
    Opaque,
    Texts,
    TextMap,
    List(&'static [(&'static str, Shape)]),
}

const OWNER: &[(&str, Shape)] = &[
    ("apiVersion", Shape::Text),
    ("blockOwnerDeletion", Shape::Flag),
    ("controller", Shape::Flag),
    ("kind", Shape::Text),
    ("name", Shape::Text),
    ("uid", Shape::Text),
];

const MANAGED: &[(&str, Shape)] = &[
    ("apiVersion", Shape::Text),
    ("fieldsType", Shape::Text),
    ("fieldsV1", Shape::Opaque),
    ("manager", Shape::Text),
    ("operation", Shape::Text),
    ("subresource", Shape::Text),
    ("time", Shape::Time),
];

const METADATA: &[(&str, Shape)] = &[
    ("annotations", Shape::TextMap),
    ("creationTimestamp", Shape::Time),
    ("deletionGracePeriodSeconds", Shape::Integer),
    ("deletionTimestamp", Shape::Time),
    ("finalizers", Shape::Texts),
    ("generateName", Shape::Text),
    ("generation", Shape::Integer),
    ("labels", Shape::TextMap),
    ("managedFields", Shape::List(MANAGED)),
    ("name", Shape::Text),
    ("namespace", Shape::Text),
    ("ownerReferences", Shape::List(OWNER)),
    ("resourceVersion", Shape::Text),
    ("selfLink", Shape::Text),
    ("uid", Shape::Text),
];

/// Brings the metadata of the object and of embedded resources into its fixed form.
///
/// That of the object itself only with `own`. Returns the unknown fields that were dropped; an error means that the
/// server cannot decode the object at all.
pub fn coerce(object: &mut Value, node: &Node, own: bool) -> Result<Vec<Pruned>, Box<FieldError>> {
    let mut dropped = Vec::new();
    if let Some(map) = object.as_object_mut().filter(|_| own) {
        coerce_resource(map, &Path::Root, &mut dropped)?;
    }
    coerce_embedded(object, node, &Path::Root, &mut dropped)?;
    Ok(dropped)
}

/// The same for a value that is not the whole object, such as a default. What does not fit is left as it is.
pub fn coerce_part(value: &mut Value, node: &Node) {
    // A default that does not fit was refused with the CRD.
    let _ = coerce_embedded(value, node, &Path::Root, &mut Vec::new());
}

fn coerce_embedded(
    value: &mut Value,
    node: &Node,
    path: &Path,
    dropped: &mut Vec<Pruned>,
) -> Result<(), Box<FieldError>> {
    if !node.has_embedded {
        return Ok(());
    }
    match value {
        Value::Object(map) => {
            if node.embedded {
                coerce_resource(map, path, dropped)?;
            }
            for (key, value) in map.iter_mut() {
                if let Some(child) = node.properties.get(key) {
                    coerce_embedded(value, child, &Path::Name(path, key), dropped)?;
                } else if let Some(entry) = node.additional.schema() {
                    coerce_embedded(value, entry, &Path::Key(path, key), dropped)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_node) = node.items.as_deref() {
                for (at, item) in items.iter_mut().enumerate() {
                    coerce_embedded(item, item_node, &Path::Index(path, at), dropped)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_resource(
    map: &mut Map<String, Value>,
    path: &Path,
    dropped: &mut Vec<Pruned>,
) -> Result<(), Box<FieldError>> {
    for key in ["apiVersion", "kind"] {
        if let Some(value) = map.get(key)
            && !value.is_string()
        {
            return Err(Box::new(invalid(&Path::Name(path, key), value.clone(), "must be a string")));
        }
    }
    let Some(metadata) = map.get_mut("metadata") else { return Ok(()) };
    let path = Path::Name(path, "metadata");
    if metadata.is_null() {
        *metadata = json!({});
    }
    coerce_fields(metadata, METADATA, &path, dropped)
}

fn coerce_fields(
    value: &mut Value,
    shapes: &[(&str, Shape)],
    path: &Path,
    dropped: &mut Vec<Pruned>,
) -> Result<(), Box<FieldError>> {
    let Value::Object(map) = value else {
        return Err(Box::new(invalid(path, value.clone(), "must be an object")));
    };
    let mut failure = None;
    map.retain(|key, value| {
        let path = Path::Name(path, key);
        let Some((_, shape)) = shapes.iter().find(|(name, _)| name == key) else {
            dropped.push(Pruned { path: path.openapi(), value: value.take() });
            return false;
        };
        match coerce_field(value, *shape, &path, dropped) {
            Ok(keep) => keep,
            Err(error) => {
                failure.get_or_insert(error);
                true
            }
        }
    });
    failure.map_or(Ok(()), Err)
}

/// Whether the field stays: what is empty is as good as absent.
fn coerce_field(
    value: &mut Value,
    shape: Shape,
    path: &Path,
    dropped: &mut Vec<Pruned>,
) -> Result<bool, Box<FieldError>> {
    if value.is_null() {
        return Ok(false);
    }
    let wrong = |value: &Value, wanted: &str| Err(Box::new(invalid(path, value.clone(), &format!("must be {wanted}"))));
    match (shape, &mut *value) {
        (Shape::Opaque, _) => Ok(true),
        (Shape::Text, Value::String(text)) => Ok(!text.is_empty()),
        (Shape::Flag, Value::Bool(_)) => Ok(true),
        (Shape::Integer, Value::Number(n)) if matches!(Num::of(n), Num::Int(_)) => Ok(Num::of(n) != Num::Int(0)),
        (Shape::Time, Value::String(text)) if super::formats::is_timestamp(text) => Ok(true),
        (Shape::Texts, Value::Array(items)) => {
            for item in items.iter_mut() {
                match item {
                    Value::String(_) => {}
                    Value::Null => *item = json!(""),
                    _ => return wrong(value, "a list of strings"),
                }
            }
            Ok(!items.is_empty())
        }
        (Shape::TextMap, Value::Object(entries)) => {
            for entry in entries.values_mut() {
                match entry {
                    Value::String(_) => {}
                    Value::Null => *entry = json!(""),
                    _ => return wrong(value, "a map of strings"),
                }
            }
            Ok(!entries.is_empty())
        }
        (Shape::List(shapes), Value::Array(items)) => {
            for (at, item) in items.iter_mut().enumerate() {
                if item.is_null() {
                    *item = json!({});
                }
                coerce_fields(item, shapes, &Path::Index(path, at), dropped)?;
            }
            Ok(!items.is_empty())
        }
        (Shape::Text, value) => wrong(value, "a string"),
        (Shape::Flag, value) => wrong(value, "true or false"),
        (Shape::Integer, value) => wrong(value, "an integer"),
        (Shape::Time, value) => wrong(value, "an RFC 3339 time"),
        (Shape::Texts, value) => wrong(value, "a list of strings"),
        (Shape::TextMap, value) => wrong(value, "a map of strings"),
        (Shape::List(_), value) => wrong(value, "a list"),
    }
}

fn invalid(path: &Path, value: Value, detail: &str) -> FieldError {
    FieldError { path: path.field(), kind: Kind::Invalid, bad_value: Some(value), detail: detail.to_owned() }
}

/// The metadata of the object itself. The namespace is the request's affair.
pub fn check_root(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = Path::Name(&Path::Root, "metadata");
    let text = |field: &str| object.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).unwrap_or("");
    let (name, generate_name) = (text("name"), text("generateName"));
    if !generate_name.is_empty() {
        for message in names::subdomain(names::without_trailing_dash(generate_name).as_ref()) {
            errors.push(invalid(&Path::Name(&path, "generateName"), json!(generate_name), &message));
        }
    }
    if !name.is_empty() {
        for message in names::subdomain(name) {
            errors.push(invalid(&Path::Name(&path, "name"), json!(name), &message));
        }
    } else if generate_name.is_empty() {
        errors.push(FieldError {
            path: Path::Name(&path, "name").field(),
            kind: Kind::Required,
            bad_value: None,
            detail: "name or generateName is required".to_owned(),
        });
    }
    if let Some(metadata) = object.get("metadata") {
        common(metadata, &path, &mut errors);
    }
    errors
}

/// The kind, version and metadata of each embedded resource.
pub fn check_embedded(object: &Value, node: &Node) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(object, node, &Path::Root, &mut errors);
    errors
}

fn walk(value: &Value, node: &Node, path: &Path, errors: &mut Vec<FieldError>) {
    if !node.has_embedded {
        return;
    }
    match value {
        Value::Object(map) => {
            if node.embedded {
                resource(map, path, errors);
            }
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            for key in keys {
                let Some(value) = map.get(key) else { continue };
                if let Some(child) = node.properties.get(key) {
                    walk(value, child, &Path::Name(path, key), errors);
                } else if let Some(entry) = node.additional.schema() {
                    walk(value, entry, &Path::Key(path, key), errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_node) = node.items.as_deref() {
                for (at, item) in items.iter().enumerate() {
                    walk(item, item_node, &Path::Index(path, at), errors);
                }
            }
        }
        _ => {}
    }
}

fn resource(map: &Map<String, Value>, path: &Path, errors: &mut Vec<FieldError>) {
    for key in ["apiVersion", "kind"] {
        let path = Path::Name(path, key);
        match map.get(key) {
            None => errors.push(FieldError {
                path: path.field(),
                kind: Kind::Required,
                bad_value: None,
                detail: String::new(),
            }),
            Some(Value::String(text)) if text.is_empty() => errors.push(invalid(&path, json!(""), "must not be empty")),
            Some(Value::String(text)) if key == "apiVersion" => {
                if text.matches('/').count() > 1 {
                    errors.push(invalid(&path, json!(text), &format!("unexpected GroupVersion string: {text}")));
                }
            }
            Some(Value::String(text)) => {
                let messages = names::dns_1035_label(&text.to_lowercase());
                if !messages.is_empty() {
                    let detail = format!("may have mixed case, but should otherwise match: {}", messages.join(","));
                    errors.push(invalid(&path, json!(text), &detail));
                }
            }
            Some(other) => errors.push(invalid(&path, other.clone(), "must be a string")),
        }
    }
    let Some(metadata) = map.get("metadata") else { return };
    let path = Path::Name(path, "metadata");
    for (field, is_prefix) in [("generateName", true), ("name", false)] {
        let text = metadata.get(field).and_then(Value::as_str).unwrap_or("");
        for message in names::path_segment(text, is_prefix) {
            errors.push(invalid(&Path::Name(&path, field), json!(text), &message));
        }
    }
    if let Some(namespace) = metadata.get("namespace").and_then(Value::as_str) {
        for message in names::dns_1123_label(namespace) {
            errors.push(invalid(&Path::Name(&path, "namespace"), json!(namespace), &message));
        }
    }
    common(metadata, &path, errors);
}

/// Generation, labels, annotations, owners and finalizers.
fn common(metadata: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64).filter(|g| *g < 0) {
        errors.push(invalid(&Path::Name(path, "generation"), json!(generation), "must be greater than or equal to 0"));
    }
    let entries = |field: &str| {
        let map = metadata.get(field).and_then(Value::as_object);
        let mut entries: Vec<(&str, &str)> =
            map.into_iter().flatten().map(|(k, v)| (k.as_str(), v.as_str().unwrap_or(""))).collect();
        entries.sort_unstable();
        entries
    };
    let labels = Path::Name(path, "labels");
    for (key, value) in entries("labels") {
        for message in names::qualified(key) {
            errors.push(invalid(&labels, json!(key), &message));
        }
        for message in names::label_value(value) {
            errors.push(invalid(&labels, json!(value), &message));
        }
    }
    let annotations = Path::Name(path, "annotations");
    let mut size = 0;
    for (key, value) in entries("annotations") {
        size += key.len() + value.len();
        for message in names::qualified(&key.to_lowercase()) {
            errors.push(invalid(&annotations, json!(key), &message));
        }
    }
    const LARGEST: usize = 256 << 10;
    if size > LARGEST {
        let detail = format!("may not be more than {LARGEST} bytes");
        errors.push(FieldError { path: annotations.field(), kind: Kind::TooLong, bad_value: None, detail });
    }
    owners(metadata, &Path::Name(path, "ownerReferences"), errors);
    let finalizers = Path::Name(path, "finalizers");
    for finalizer in metadata.get("finalizers").and_then(Value::as_array).into_iter().flatten() {
        for message in names::qualified(finalizer.as_str().unwrap_or("")) {
            errors.push(invalid(&finalizers, finalizer.clone(), &message));
        }
    }
}

fn owners(metadata: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    for owner in metadata.get("ownerReferences").and_then(Value::as_array).into_iter().flatten() {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or("");
        let version = text("apiVersion").rsplit('/').next().unwrap_or("");
        if version.is_empty() {
            errors.push(invalid(
                &Path::Name(path, "apiVersion"),
                json!(text("apiVersion")),
                "version must not be empty",
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                errors.push(invalid(&Path::Name(path, field), json!(""), "must not be empty"));
            }
        }
    }
}
