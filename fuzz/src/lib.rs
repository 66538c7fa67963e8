//! The code of the fuzz targets: one module for each, with a function `run` that panics if something is wrong.
//!
//! The stable tests compile these modules too (`tests/offline/fuzz_seeds.rs`) and run them on `fuzz/seeds`.

pub mod catalog;
pub mod cel;
pub mod configuration;
pub mod manifest;
pub mod pattern;
pub mod proof;
pub mod range;
pub mod review;
pub mod schema;

#[path = "../../tests/generator/mod.rs"]
mod generator;

use generator::Random;
use serde_json::Value;

/// The meaning of the fuzzer's bytes.
enum Input {
    /// The elements of a JSON or YAML list.
    Written(Vec<Value>),
    /// The decisions of the generator.
    Generated(Random),
}

/// Bytes that start with `[` are a list of values; all others are decisions of the generator.
fn input(data: &[u8]) -> Option<Input> {
    if data.first() != Some(&b'[') {
        return Some(Input::Generated(Random::deciding(data)));
    }
    let text = std::str::from_utf8(data).ok()?;
    match gantry_yaml::parse(text).ok()??.to_value() {
        Value::Array(values) => Some(Input::Written(values)),
        _ => None,
    }
}

/// The schema of a custom resource with this schema of `spec`.
fn of_spec(schema: &Value) -> Value {
    serde_json::json!({"type": "object", "properties": {"spec": schema}})
}

/// A custom resource with this `spec`.
fn object(spec: Value) -> Value {
    serde_json::json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec})
}
