//! What remains of a value that Go reads into a struct and writes again: fields that the struct does not have are
//! dropped, fields without `omitempty` are filled in, and quantities are written in their canonical form.
//!
//! `go_types.txt` describes the structs. It is generated from the types of the Kubernetes API: see
//! `crates/testbed/control-plane/go-types`.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::quantity::canonical_quantity;
use super::{SourceStep, WrongType};
use crate::bundle::CsvStep;

/// A type of Go, as far as it determines what is read and written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GoType {
    Text,
    Flag,
    Integer,
    Float,
    Quantity,
    IntOrString,
    /// A time, or bytes in base64: a text, and absent if empty.
    Encoded,
    Pointer(Box<GoType>),
    List(Box<GoType>),
    Map(Box<GoType>),
    Struct(&'static str),
}

struct StructField {
    name: &'static str,
    omits_empty: bool,
    of: GoType,
}

static STRUCTS: LazyLock<HashMap<&'static str, Vec<StructField>>> = LazyLock::new(|| {
    let line = |line: &'static str| {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let field = |word: &'static str| {
            let (name, of) = word.split_once('=').unwrap_or((word, "s"));
            let omits_empty = name.ends_with('?');
            StructField { name: name.trim_end_matches('?'), omits_empty, of: GoType::parse(of) }
        };
        (name, words.map(field).collect())
    };
    include_str!("go_types.txt").lines().map(line).collect()
});

impl GoType {
    fn parse(word: &'static str) -> GoType {
        let inner = || Box::new(GoType::parse(&word[1..]));
        match word {
            "s" => GoType::Text,
            "b" => GoType::Flag,
            "i" => GoType::Integer,
            "f" => GoType::Float,
            "q" => GoType::Quantity,
            "x" => GoType::IntOrString,
            "t" | "y" => GoType::Encoded,
            _ if word.starts_with('*') => GoType::Pointer(inner()),
            _ if word.starts_with('[') => GoType::List(inner()),
            _ if word.starts_with('{') => GoType::Map(inner()),
            name => GoType::Struct(name),
        }
    }

    fn zero(&self) -> Value {
        match self {
            GoType::Text => "".into(),
            GoType::Flag => false.into(),
            GoType::Integer | GoType::Float | GoType::IntOrString => 0.into(),
            GoType::Quantity => "0".into(),
            GoType::Encoded | GoType::Pointer(_) | GoType::List(_) | GoType::Map(_) => Value::Null,
            GoType::Struct(name) => read_struct(name, &Map::new()).unwrap_or_default(),
        }
    }

    fn noun(&self) -> &'static str {
        match self {
            GoType::Text | GoType::Encoded => "a string",
            GoType::Flag => "a boolean",
            GoType::Integer => "an integer",
            GoType::Float => "a number",
            GoType::Quantity => "a quantity",
            GoType::IntOrString => "an integer or a string",
            GoType::Pointer(of) => of.noun(),
            GoType::List(_) => "a list",
            GoType::Map(_) | GoType::Struct(_) => "a mapping",
        }
    }

    fn convert(&self, value: &Value) -> Result<Value, WrongType> {
        if value.is_null() {
            return Ok(self.zero());
        }
        let converted = match (self, value) {
            (GoType::Text | GoType::Encoded, Value::String(_)) | (GoType::Flag, Value::Bool(_)) => Some(value.clone()),
            (GoType::Float, Value::Number(_)) | (GoType::IntOrString, Value::String(_)) => Some(value.clone()),
            (GoType::Integer | GoType::IntOrString, Value::Number(number)) => integer(number).map(Value::from),
            (GoType::Quantity, Value::String(text)) => canonical_quantity(text).map(Value::from),
            (GoType::Quantity, Value::Number(number)) => canonical_quantity(&number.to_string()).map(Value::from),
            (GoType::Pointer(of), _) => return of.convert(value),
            (GoType::List(of), Value::Array(items)) => {
                let item = |(index, item): (usize, &Value)| {
                    of.convert(item).map_err(|error| at(SourceStep::Index(index), error))
                };
                return items.iter().enumerate().map(item).collect();
            }
            (GoType::Map(of), Value::Object(entries)) => {
                let entry = |(key, value): (&String, &Value)| {
                    let value = of.convert(value).map_err(|error| at(SourceStep::Key(key.clone()), error))?;
                    Ok((key.clone(), value))
                };
                return entries.iter().map(entry).collect::<Result<Map<_, _>, _>>().map(Value::Object);
            }
            (GoType::Struct(name), Value::Object(fields)) => return read_struct(name, fields),
            _ => None,
        };
        converted.ok_or_else(|| mismatch(self.noun(), value))
    }
}

fn at(step: SourceStep, mut error: WrongType) -> WrongType {
    error.steps.insert(0, step);
    error
}

fn integer(number: &serde_json::Number) -> Option<i64> {
    let whole = |float: f64| (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64);
    number.as_i64().or_else(|| number.as_f64().and_then(whole))
}

fn read_struct(name: &str, fields: &Map<String, Value>) -> Result<Value, WrongType> {
    let mut read = Map::new();
    for StructField { name, omits_empty, of } in STRUCTS.get(name).into_iter().flatten() {
        let value = of.convert(fields.get(*name).unwrap_or(&Value::Null));
        let value = value.map_err(|error| at(SourceStep::Key((*name).to_owned()), error))?;
        // A pointer to an empty value is not empty.
        let is_omitted =
            *omits_empty && if matches!(of, GoType::Pointer(_)) { value.is_null() } else { is_empty(&value) };
        if !is_omitted {
            read.insert((*name).to_owned(), value);
        }
    }
    Ok(Value::Object(read))
}

/// The items of a list; none if there is no such list.
pub fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether `omitempty` leaves a value out.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_so) => !is_so,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// What remains of a value of this type.
pub fn round_trip(of: &'static str, value: &Value) -> Result<Value, WrongType> {
    GoType::parse(of).convert(value)
}

/// The value at these steps.
pub fn find<'a>(value: &'a Value, steps: &[CsvStep]) -> Option<&'a Value> {
    steps.iter().try_fold(value, |value, step| match step {
        CsvStep::Key(key) => value.get(key),
        CsvStep::Index(index) => value.get(index),
    })
}

/// What remains of a member of the object at these steps.
pub fn member(value: &Value, steps: &[CsvStep], name: &'static str, of: &'static str) -> Result<Value, WrongType> {
    let step = [CsvStep::Key(name)];
    let value = find(value, steps).and_then(|value| value.get(name)).unwrap_or(&Value::Null);
    round_trip(of, value).map_err(|error| error.below(&step).below(steps))
}

/// An error about a value of another type.
pub fn mismatch(expected: &str, value: &Value) -> WrongType {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    };
    WrongType::new(match (expected, value) {
        ("a quantity", Value::String(text)) => format!("{text:?} is not a quantity"),
        _ => format!("must be {expected}, but is {found}"),
    })
}

/// With sorted keys, as Go writes maps.
pub fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            fields.into_iter().map(|(key, value)| (key, sorted(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}
