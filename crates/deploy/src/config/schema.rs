//! `gantry config schema`: the JSON Schema of configuration files, for editors and for CI.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::check::{KnownCheck, KnownKind, KnownPreflightRules};
use super::custom;
use super::keys::{API_VERSION, ConfigKey, KAPP_API_VERSION, KEYS, KIND};

/// The keys that hold other keys of the table.
pub(super) const SECTIONS: [(&str, &str); 2] =
    [("admission", "What the admission webhook does."), ("timeouts", "Time limits, written as 30s, 2m or 1h30m.")];

/// The JSON Schema of a `gantry.dev` Config, with the configuration of each known check and of custom checks.
///
/// The schema does not describe kapp's documents, which have many keys that gantry does not read.
pub fn schema(known: &KnownPreflightRules) -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let mut properties = Map::new();
    properties.insert(
        "apiVersion".into(),
        json!({"const": API_VERSION, "description": format!("Documents of {KAPP_API_VERSION} are also read.")}),
    );
    properties.insert("kind".into(), json!({"const": KIND}));
    properties.insert("metadata".into(), json!({"type": "object", "description": "Not read."}));
    let mut sections = SECTIONS.map(|(name, about)| (name, about, Map::new()));
    for key in KEYS {
        let described = described(key, &mut generator);
        let section = sections.iter_mut().find_map(|(section, _, keys)| {
            let name = key.path.strip_prefix(*section)?.strip_prefix('.')?;
            Some((name, keys))
        });
        match section {
            None => properties.insert(key.path.into(), described),
            Some((name, keys)) => keys.insert(name.into(), described),
        };
    }
    for (name, about, keys) in sections {
        let section = json!({
            "type": ["object", "null"],
            "description": about,
            "properties": keys,
            "additionalProperties": false,
        });
        properties.insert(name.into(), section);
    }
    let mut schema = json!({
        "$schema": generator.settings().meta_schema,
        "title": "gantry Config",
        "description": "Configuration of gantry.",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "$defs": generator.take_definitions(true),
        "required": ["apiVersion", "kind"],
    });
    let names: Vec<&str> = known.checks.iter().map(|check| check.name).collect();
    // An entry may name a custom check that another file defines.
    let own_name = json!({"pattern": custom::NAME, "maxLength": custom::LONGEST_NAME});
    set(&mut schema, "/$defs/PreflightRule/properties/name", "anyOf", json!([{"enum": names}, own_name]));
    let mut configs: Vec<Value> = known.checks.iter().map(config_of).collect();
    configs.push(config_of_own(&names));
    set(&mut schema, "/$defs/PreflightRule", "allOf", Value::Array(configs));
    for kind in &known.kinds {
        set_kind(&mut schema, kind);
    }
    schema
}

/// The schema of the value of `key`, with what editors show beside it.
fn described(key: &ConfigKey, generator: &mut SchemaGenerator) -> Value {
    let mut schema = key.schema(generator);
    schema["description"] = key.description().into();
    if let Some(default) = key.default {
        schema["default"] = key.read_text(default).unwrap_or_default();
    }
    schema
}

/// The names of the properties at the top of a document, `apiVersion` and `kind` included.
#[cfg(test)]
pub(super) fn top_level(schema: &Value) -> Vec<&str> {
    let properties = schema.pointer("/properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

fn set(schema: &mut Value, pointer: &str, key: &str, value: Value) {
    if let Some(Value::Object(object)) = schema.pointer_mut(pointer) {
        object.insert(key.into(), value);
    }
}

/// Sets the schema of the value of a custom check kind's key.
fn set_kind(schema: &mut Value, kind: &KnownKind) {
    // No key is required here, because another file may set it.
    let properties: Map<String, Value> = kind.keys().into_iter().map(|key| (key.name.to_owned(), key.schema)).collect();
    let section = format!("/$defs/PreflightRule/properties/{}", kind.key);
    set(schema, &section, "properties", Value::Object(properties));
    set(schema, &section, "additionalProperties", json!(false));
}

/// A custom check has one definition, not the name of a built-in check, and only `mode` as configuration.
fn config_of_own(names: &[&str]) -> Value {
    let mode = KnownCheck::keys_of_mode_alone();
    let keys: Map<String, Value> = mode.into_iter().map(|key| (key.name.to_owned(), key.schema)).collect();
    json!({
        "if": {"not": {"properties": {"name": {"enum": names}}}},
        "then": {
            "properties": {"config": {"type": ["object", "null"], "properties": keys, "additionalProperties": false}},
            "not": {"required": ["exec", "cel"]},
        },
        "else": {"properties": {"exec": false, "cel": false}},
    })
}

/// The schema of the `config` of one check.
fn config_of(check: &KnownCheck) -> Value {
    let keys: Map<String, Value> = check.keys().into_iter().map(|key| (key.name.to_owned(), key.schema)).collect();
    json!({
        "if": {"properties": {"name": {"const": check.name}}},
        "then": {"properties": {"config": {
            "description": check.about,
            "type": ["object", "null"],
            "properties": keys,
            "additionalProperties": false,
        }}},
    })
}
