//! The name of a custom resource, as far as schemas and rules ask something of it.
//!
//! A schema can constrain `metadata.name` and `metadata.generateName`, and rules of the root see both. The server also
//! asks that they are DNS subdomains. If any of this matters, it is written into both schemas, so that a name is a field
//! like any other.

use serde_json::{Map, Value, json};

use crate::VersionSchema;
use crate::keywords as kw;

/// What the server accepts as the name of a custom resource.
const NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// What contains everything that it accepts as the beginning of a generated name.
const PREFIX: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*[-.]*$";
/// The maximum length of either.
const MAX_LENGTH: u64 = 253;

/// Both schemas with the server's constraints on names. None if neither schema asks anything of a name.
///
/// The `apiVersion` and `kind` of an object are always those of the version.
pub fn with_names(live: &VersionSchema, desired: &VersionSchema) -> Option<[Value; 2]> {
    let sides = [live.schema, desired.schema];
    let has_names = sides.into_iter().any(asks_of_names);
    let types = [("apiVersion", live.api_version), ("kind", live.kind)];
    let is_same_type = (live.api_version, live.kind) == (desired.api_version, desired.kind);
    let asked = |name: &str| is_same_type && sides.into_iter().any(|schema| constrains(schema, name));
    let types: Vec<(&str, &str)> = types.into_iter().filter(|(name, _)| asked(name)).collect();
    if !has_names && types.is_empty() {
        return None;
    }
    Some(sides.map(|schema| {
        let mut schema = if has_names { with_server_constraints(schema) } else { schema.clone() };
        if let Some(root) = schema.as_object_mut() {
            types.iter().for_each(|(name, value)| impose(root, name, json!({"enum": [value]})));
        }
        schema
    }))
}

/// Whether the schema describes the field by more than its type.
fn constrains(schema: &Value, name: &str) -> bool {
    let is_plain = |keyword: &str| matches!(keyword, "type" | "description");
    kw::property(schema, name)
        .and_then(Value::as_object)
        .is_some_and(|own| own.keys().any(|keyword| !is_plain(keyword)))
}

/// Adds a required string with the constraint.
fn impose(schema: &mut Map<String, Value>, name: &str, imposed: Value) {
    require(schema, name);
    let fields = schema.entry("properties").or_insert_with(|| json!({}));
    let own = fields.as_object_mut().map(|fields| fields.entry(name).or_insert_with(|| json!({})));
    let Some(own) = own.and_then(Value::as_object_mut) else { return };
    own.entry("type").or_insert_with(|| json!("string"));
    match own.get_mut("allOf").and_then(Value::as_array_mut) {
        Some(all) => all.push(imposed),
        None => drop(own.insert("allOf".to_owned(), json!([imposed]))),
    }
}

fn asks_of_names(schema: &Value) -> bool {
    let of_metadata = |name: &str| kw::property(schema, "metadata").is_some_and(|metadata| constrains(metadata, name));
    let rules = kw::list(schema, "x-kubernetes-validations");
    let reads = |rule: &Value| rule.get("rule").and_then(Value::as_str).is_some_and(|rule| rule.contains("metadata"));
    of_metadata("name") || of_metadata("generateName") || rules.iter().any(reads)
}

fn with_server_constraints(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let Some(root) = schema.as_object_mut() else { return schema };
    require(root, "metadata");
    let fields = root.entry("properties").or_insert_with(|| json!({}));
    let metadata = fields.as_object_mut().map(|fields| fields.entry("metadata").or_insert_with(|| json!({})));
    let Some(metadata) = metadata.and_then(Value::as_object_mut) else { return schema };
    metadata.entry("type").or_insert_with(|| json!("object"));
    impose(metadata, "name", json!({"pattern": NAME, "maxLength": MAX_LENGTH}));
    let is_optional = !kw::names(&Value::Object(metadata.clone()), "required").any(|name| name == "generateName");
    impose(metadata, "generateName", json!({"pattern": PREFIX, "maxLength": MAX_LENGTH}));
    if is_optional && let Some(names) = metadata.get_mut("required").and_then(Value::as_array_mut) {
        names.retain(|name| name != "generateName");
    }
    schema
}

/// Every object that the server validates has this field.
fn require(schema: &mut Map<String, Value>, name: &str) {
    match schema.get_mut("required").and_then(Value::as_array_mut) {
        Some(names) if names.iter().any(|known| known == name) => {}
        Some(names) => names.push(json!(name)),
        None => drop(schema.insert("required".to_owned(), json!([name]))),
    }
}
