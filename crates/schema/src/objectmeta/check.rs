//! The server's validation of metadata that could be decoded.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::super::error::{FieldError, FieldErrorKind, RefusedBy};
use super::super::names;
use super::super::node::SchemaNode;
use super::super::path::LinkedPath;
use super::invalid;
use gantry_k8s_cel::{KubernetesRelease, gotext};

/// Validates the metadata of the object itself. The namespace depends on the request, and the server sets the
/// generation and the managed fields itself.
pub fn check_root(object: &Value, is_update: bool, release: KubernetesRelease) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = LinkedPath::Name(&LinkedPath::Root, "metadata");
    let text = |field: &str| object.pointer(&format!("/metadata/{field}")).and_then(Value::as_str).unwrap_or("");
    let (name, generate_name) = (text("name"), text("generateName"));
    // An update neither changes nor generates the name.
    let complaints = |text: &str, is_prefix: bool| match (is_update, is_prefix) {
        (true, _) => names::path_segment(text, is_prefix),
        (false, true) => names::subdomain(names::without_trailing_dash(text).as_ref()),
        (false, false) => names::subdomain(text),
    };
    if !generate_name.is_empty() {
        for message in complaints(generate_name, true) {
            errors.push(invalid(&LinkedPath::Name(&path, "generateName"), json!(generate_name), &message));
        }
    }
    let name = match (name, generate_name) {
        ("", prefix) if !prefix.is_empty() && !is_update => Cow::Owned(names::generated(prefix)),
        (name, _) => Cow::Borrowed(name),
    };
    if !name.is_empty() {
        for message in complaints(&name, false) {
            errors.push(invalid(&LinkedPath::Name(&path, "name"), json!(name), &message));
        }
    } else {
        let detail = "name or generateName is required".to_owned();
        errors.push(FieldError::object_meta(&LinkedPath::Name(&path, "name"), FieldErrorKind::Required, None, detail));
    }
    if let Some(metadata) = object.get("metadata") {
        check_common(metadata, &path, release, &mut errors);
    }
    errors
}

/// Validates the kind, version and metadata of each embedded resource.
pub fn check_embedded(object: &Value, node: &SchemaNode, release: KubernetesRelease) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(object, node, &LinkedPath::Root, release, &mut errors);
    if release >= SAYS_ONCE {
        let mut said = HashSet::new();
        errors.retain(|error| said.insert(error.to_string()));
    }
    errors
}

/// The first release that gives each error about an embedded resource once.
const SAYS_ONCE: KubernetesRelease = KubernetesRelease::minor(37);

fn walk(value: &Value, node: &SchemaNode, path: &LinkedPath, release: KubernetesRelease, errors: &mut Vec<FieldError>) {
    if !node.has_embedded {
        return;
    }
    match value {
        Value::Object(map) => {
            if node.embedded {
                check_resource(map, path, release, errors);
            }
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            for key in keys {
                let Some(value) = map.get(key) else { continue };
                if let Some(child) = node.properties.get(key) {
                    walk(value, child, &LinkedPath::Name(path, key), release, errors);
                } else if let Some(entry) = node.additional.schema() {
                    walk(value, entry, &LinkedPath::Key(path, key), release, errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_node) = node.items.as_deref() {
                for (at, item) in items.iter().enumerate() {
                    walk(item, item_node, &LinkedPath::Index(path, at), release, errors);
                }
            }
        }
        _ => {}
    }
}

fn check_resource(
    map: &Map<String, Value>,
    path: &LinkedPath,
    release: KubernetesRelease,
    errors: &mut Vec<FieldError>,
) {
    for key in ["apiVersion", "kind"] {
        let path = LinkedPath::Name(path, key);
        match map.get(key) {
            None => errors.push(FieldError::object_meta(&path, FieldErrorKind::Required, None, String::new())),
            Some(Value::String(text)) if text.is_empty() => errors.push(invalid(&path, json!(""), "must not be empty")),
            Some(Value::String(text)) if key == "apiVersion" => {
                if text.matches('/').count() > 1 {
                    let error = invalid(&path, json!(text), &format!("unexpected GroupVersion string: {text}"));
                    errors.push(without_values(error, "unexpected GroupVersion string"));
                }
            }
            Some(Value::String(text)) => {
                let messages = names::dns_1035_label(&gotext::lower(text));
                if !messages.is_empty() {
                    let detail = format!("may have mixed case, but should otherwise match: {}", messages.join(","));
                    errors.push(invalid(&path, json!(text), &detail));
                }
            }
            Some(other) => errors.push(invalid(&path, other.clone(), "must be a string")),
        }
    }
    let Some(metadata) = map.get("metadata") else { return };
    let path = LinkedPath::Name(path, "metadata");
    for (field, is_prefix) in [("generateName", true), ("name", false)] {
        let text = metadata.get(field).and_then(Value::as_str).unwrap_or("");
        for message in names::path_segment(text, is_prefix) {
            errors.push(invalid(&LinkedPath::Name(&path, field), json!(text), &message));
        }
    }
    if let Some(namespace) = metadata.get("namespace").and_then(Value::as_str) {
        for message in names::dns_1123_label(namespace) {
            errors.push(invalid(&LinkedPath::Name(&path, "namespace"), json!(namespace), &message));
        }
    }
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64).filter(|g| *g < 0) {
        errors.push(invalid(
            &LinkedPath::Name(&path, "generation"),
            json!(generation),
            "must be greater than or equal to 0",
        ));
    }
    check_common(metadata, &path, release, errors);
    managed_fields(metadata, &LinkedPath::Name(&path, "managedFields"), release, errors);
}

/// Validates labels, annotations, owners and finalizers.
fn check_common(metadata: &Value, path: &LinkedPath, release: KubernetesRelease, errors: &mut Vec<FieldError>) {
    let entries = |field: &str| {
        let map = metadata.get(field).and_then(Value::as_object);
        let mut entries: Vec<(&str, &str)> =
            map.into_iter().flatten().map(|(k, v)| (k.as_str(), v.as_str().unwrap_or(""))).collect();
        entries.sort_unstable();
        entries
    };
    let labels = LinkedPath::Name(path, "labels");
    for (key, value) in entries("labels") {
        for message in names::qualified(key) {
            errors.push(invalid(&labels, json!(key), &message));
        }
        for message in names::label_value(value) {
            errors.push(invalid(&labels, json!(value), &message));
        }
    }
    let annotations = LinkedPath::Name(path, "annotations");
    let mut size = 0;
    for (key, value) in entries("annotations") {
        size += key.len() + value.len();
        for message in names::qualified(&gotext::lower(key)) {
            errors.push(invalid(&annotations, json!(key), &message));
        }
    }
    const LARGEST: usize = 256 << 10;
    if size > LARGEST {
        let detail = format!("may not be more than {LARGEST} bytes");
        errors.push(FieldError::object_meta(&annotations, FieldErrorKind::TooLong, None, detail));
    }
    check_owners(metadata, &LinkedPath::Name(path, "ownerReferences"), release, errors);
    check_finalizers(metadata, &LinkedPath::Name(path, "finalizers"), errors);
}

fn check_finalizers(metadata: &Value, path: &LinkedPath, errors: &mut Vec<FieldError>) {
    let all = metadata.get("finalizers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for finalizer in all {
        for message in names::qualified(finalizer.as_str().unwrap_or("")) {
            errors.push(invalid(path, finalizer.clone(), &message));
        }
    }
    let (orphan, foreground) = ("orphan", "foregroundDeletion");
    if [orphan, foreground].iter().all(|wanted| all.iter().any(|finalizer| finalizer == wanted)) {
        let detail = format!("finalizer {orphan} and {foreground} cannot be both set");
        errors.push(invalid(path, json!(all), &detail));
    }
}

/// The first release that names the item in an error about an owner, and has errors of their own for missing values.
const NAMES_OWNERS: KubernetesRelease = KubernetesRelease::minor(37);

fn check_owners(metadata: &Value, path: &LinkedPath, release: KubernetesRelease, errors: &mut Vec<FieldError>) {
    let is_named = release >= NAMES_OWNERS;
    let owners = metadata.get("ownerReferences").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut controller: Option<String> = None;
    for (at, owner) in owners.iter().enumerate() {
        let item = LinkedPath::Index(path, at);
        let at = if is_named { &item } else { path };
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or("");
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = match api_version.split_once('/') {
            None => ("", api_version),
            // A version with more than one slash cannot be parsed.
            Some((_, version)) if version.contains('/') => ("", ""),
            Some((group, version)) => (group, version),
        };
        if version.is_empty() && !(is_named && api_version.is_empty()) {
            let detail = if is_named { "must be <group>/<version> or <version>" } else { "version must not be empty" };
            errors.push(invalid(&LinkedPath::Name(at, "apiVersion"), json!(api_version), detail));
        }
        for field in ["apiVersion", "kind", "name", "uid"] {
            let path = LinkedPath::Name(at, field);
            let detail = "must not be empty";
            match text(field) {
                "" if is_named => errors.push(required(&path, detail)),
                "" if field != "apiVersion" => errors.push(invalid(&path, json!(""), detail)),
                _ => {}
            }
        }
        if (group, version, kind) == ("", "v1", "Event") {
            let detail = format!("{}: /v1, Kind=Event is disallowed from being an owner", owner_text(owner));
            let error = FieldError::object_meta(at, FieldErrorKind::Invalid, None, detail);
            errors.push(without_values(error, "an Event is disallowed from being an owner"));
        }
        if owner.get("controller") == Some(&json!(true)) {
            let name = format!("{kind}/{}", text("name"));
            let Some(first) = &controller else {
                controller = Some(name);
                continue;
            };
            let all: Vec<String> = owners.iter().map(owner_text).collect();
            let detail = format!(
                "[{}]: Only one reference can have Controller set to true. Found \"true\" in references for {first} and \
                 {name}",
                all.join(",")
            );
            let error = FieldError::object_meta(path, FieldErrorKind::Invalid, None, detail);
            errors.push(without_values(error, "Only one reference can have Controller set to true"));
        }
    }
}

/// The error with words that contain no value of the object, in place of the server's words.
fn without_values(error: FieldError, words: &str) -> FieldError {
    FieldError { by: RefusedBy::ObjectMeta(words.to_owned()), ..error }
}

/// An owner as the server prints it: the fields are in declaration order, not sorted.
fn owner_text(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let parts: Vec<String> =
        fields.iter().filter_map(|field| Some(format!("\"{field}\":{}", gotext::json(owner.get(field)?)))).collect();
    format!("{{{}}}", parts.join(","))
}

fn required(path: &LinkedPath, detail: &str) -> FieldError {
    FieldError::object_meta(path, FieldErrorKind::Required, None, detail.to_owned())
}

/// The first release that has errors of their own for missing and unsupported operations.
const NAMES_OPERATIONS: KubernetesRelease = KubernetesRelease::minor(37);

fn managed_fields(metadata: &Value, path: &LinkedPath, release: KubernetesRelease, errors: &mut Vec<FieldError>) {
    let too_long = |path: &LinkedPath, max: usize| {
        FieldError::object_meta(path, FieldErrorKind::TooLong, None, format!("may not be more than {max} bytes"))
    };
    let entries = metadata.get("managedFields").and_then(Value::as_array);
    for (at, entry) in entries.into_iter().flatten().enumerate() {
        let path = LinkedPath::Index(path, at);
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or("");
        let operation = text("operation");
        let of_operation = LinkedPath::Name(&path, "operation");
        match operation {
            "Apply" | "Update" => {}
            "" if release >= NAMES_OPERATIONS => errors.push(required(&of_operation, "must not be empty")),
            _ if release >= NAMES_OPERATIONS => errors.push(FieldError::object_meta(
                &of_operation,
                FieldErrorKind::NotSupported,
                Some(json!(operation)),
                "supported values: \"Apply\", \"Update\"".to_owned(),
            )),
            _ => errors.push(invalid(&of_operation, json!(operation), "must be `Apply` or `Update`")),
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            errors.push(invalid(
                &LinkedPath::Name(&path, "fieldsType"),
                json!(text("fieldsType")),
                "must be `FieldsV1`",
            ));
        }
        let manager = text("manager");
        let manager_path = LinkedPath::Name(&path, "manager");
        if manager.len() > 128 {
            errors.push(too_long(&manager_path, 128));
        }
        for (position, c) in manager.char_indices().filter(|(_, c)| !gotext::is_printable(*c)) {
            let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(c));
            errors.push(without_values(invalid(&manager_path, json!(manager), &detail), "invalid character"));
        }
        if text("subresource").len() > 256 {
            errors.push(too_long(&LinkedPath::Name(&path, "subresource"), 256));
        }
    }
}
