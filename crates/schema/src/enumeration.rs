//! The values of an `enum`.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::number;
use gantry_k8s_cel::{Num, gotext};

/// Up to this many values are searched linearly.
const FEW: usize = 16;

/// The values of an `enum`. Many strings or many integers are indexed, so that checking all values of one `enum`
/// against another is not quadratic.
#[derive(Debug, Default)]
pub struct Enumeration {
    values: Vec<Value>,
    known: EnumerationIndex,
    /// The text of the error, written once: an object can have a hundred thousand values that are not allowed.
    supported: OnceLock<Arc<str>>,
}

#[derive(Debug, Default)]
enum EnumerationIndex {
    #[default]
    Few,
    /// The indices of the strings, sorted by string; there can be other values as well.
    Texts(Vec<u32>),
    /// All values are integers; these are they, sorted.
    Integers(Vec<i64>),
}

impl Enumeration {
    pub fn new(values: Vec<Value>) -> Self {
        if values.len() <= FEW {
            return Self { values, ..Self::default() };
        }
        let integer = |value: &Value| match value {
            Value::Number(number) => match Num::from(number) {
                Num::Int(int) => Some(int),
                Num::Float(_) => None,
            },
            _ => None,
        };
        if let Some(mut integers) = values.iter().map(integer).collect::<Option<Vec<i64>>>() {
            integers.sort_unstable();
            return Self { values, known: EnumerationIndex::Integers(integers), supported: OnceLock::new() };
        }
        let places = (0u32..).zip(&values).filter(|(_, value)| value.is_string());
        let mut places: Vec<u32> = places.map(|(place, _)| place).collect();
        places.sort_by_key(|place| values[*place as usize].as_str());
        Self { values, known: EnumerationIndex::Texts(places), supported: OnceLock::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The values as the server lists them for a value that is not among them.
    pub fn supported_values(&self) -> Arc<str> {
        let text = self.supported.get_or_init(|| {
            let value = |allowed: &Value| allowed.as_str().map_or_else(|| gotext::json(allowed), str::to_owned);
            let values: Vec<String> = self.values.iter().map(|allowed| gotext::quote(&value(allowed))).collect();
            format!("supported values: {}", values.join(", ")).into()
        });
        Arc::clone(text)
    }

    /// Whether `value` is in the `enum`, and the number of values compared.
    pub fn has(&self, value: &Value) -> (bool, usize) {
        match (&self.known, value) {
            (EnumerationIndex::Texts(places), Value::String(text)) => {
                let of = |place: &u32| self.values[*place as usize].as_str().unwrap_or_default();
                (places.binary_search_by(|place| of(place).cmp(text)).is_ok(), 1)
            }
            (EnumerationIndex::Integers(integers), Value::Number(number)) => {
                let wanted = match Num::from(number) {
                    Num::Int(int) => int,
                    Num::Float(float) => number::to_int(float),
                };
                (integers.binary_search(&wanted).is_ok(), 1)
            }
            _ => (self.values.iter().any(|allowed| matches_enum_value(value, allowed)), self.values.len()),
        }
    }
}

/// Enum equality: the value is first converted to the type of the enum's value as Go converts numbers, so 1.5 becomes
/// 1, and 65 becomes the string "A". Null equals nothing.
fn matches_enum_value(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(a), Value::Number(b)) => match (Num::from(a), Num::from(b)) {
            (Num::Int(a), Num::Int(b)) => a == b,
            (Num::Float(a), Num::Float(b)) => a == b,
            (Num::Int(a), Num::Float(b)) => a as f64 == b,
            (Num::Float(a), Num::Int(b)) => number::to_int(a) == b,
        },
        (Value::Number(a), Value::String(b)) => match Num::from(a) {
            Num::Int(i) => {
                let c = u32::try_from(i).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                b.chars().eq([c])
            }
            Num::Float(_) => false,
        },
        _ => super::correlate::is_equal(value, allowed),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lookups_in_long_and_short_enums_agree() {
        let texts: Vec<Value> = (0..40).map(|n| json!(format!("v{}", n * 7 % 40))).collect();
        let mixed: Vec<Value> = texts.iter().cloned().chain([json!(3), json!(65), json!(2.5), Value::Null]).collect();
        let integers: Vec<Value> = (0..40).map(|n| json!(n * 7 % 40)).chain([json!(i64::MIN)]).collect();
        let numbers: Vec<Value> = integers.iter().cloned().chain([json!(3.5)]).collect();
        for values in [texts, mixed, integers, numbers] {
            let many = Enumeration::new(values.clone());
            for value in [
                json!("v3"),
                json!("v40"),
                json!(""),
                json!("A"),
                json!(3),
                json!(3.7),
                json!(65),
                json!(40),
                json!(-1),
                json!(1e300),
                json!(2.5),
                json!(i64::MIN),
                Value::Null,
                json!([]),
                json!({}),
                json!(true),
            ] {
                let wanted = values.iter().any(|allowed| matches_enum_value(&value, allowed));
                assert_eq!(many.has(&value).0, wanted, "{value} among {values:?}");
            }
        }
    }
    #[test]
    fn the_supported_values_are_written_once_for_all_errors() {
        let values: Vec<Value> = (0..100).map(|n| json!(format!("v{n}"))).collect();
        let map: serde_json::Map<String, Value> = (0..100).map(|n| (format!("k{n}"), json!("x"))).collect();
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "additionalProperties": {"type": "string", "enum": values}}}});
        let schema = crate::Schema::compile(&schema).expect("a schema");
        let found = schema.validate(&json!({"metadata": {"name": "x"}, "spec": map}), None).errors;
        assert_eq!(found.len(), 100);
        assert!(found.iter().all(|error| Arc::ptr_eq(&error.detail, &found[0].detail)), "{}", found[0]);
        assert!(found[0].detail.starts_with("supported values: \"v0\", \"v1\", "), "{}", found[0]);
    }
}
