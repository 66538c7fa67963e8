//! JSON without a tree: the keys of an object and the text of each value.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;

/// The keys and values of an object, in the order of the text. The last value of a duplicate key counts.
#[derive(Debug)]
pub(crate) struct RawFields<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> RawFields<'a> {
    /// The value of a field. Like Go, this ignores the case of its name.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().rev().find(|(key, _)| key.eq_ignore_ascii_case(name));
        // Go leaves a field unchanged if the value is null.
        found.map(|(_, value)| *value).filter(|value| value.get() != "null")
    }

    /// A string; empty if there is none.
    pub fn text(&self, name: &str) -> Result<Cow<'a, str>, String> {
        self.parse::<BorrowedString>(name).map(|text| text.map_or(Cow::Borrowed(""), |text| text.0))
    }

    /// The value of a field as `T`.
    pub fn parse<T: Deserialize<'a>>(&self, name: &str) -> Result<Option<T>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        serde_json::from_str(value.get())
            .map(Some)
            .map_err(|error| format!("{name}: {}", gantry_yaml::explain_json(&error)))
    }

    /// A list; empty if there is none.
    pub fn list<T: Deserialize<'a>>(&self, name: &str) -> Result<Vec<T>, String> {
        // An absent list, like null, is the zero value.
        self.parse(name).map(Option::unwrap_or_default)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = RawFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawFields<'de>, A::Error> {
                let mut fields: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::new();
                while let Some(BorrowedString(key)) = map.next_key()? {
                    let value = map.next_value()?;
                    match fields.iter_mut().find(|(known, _)| *known == key) {
                        Some(field) => field.1 = value,
                        None => fields.push((key, value)),
                    }
                    if fields.len() > MOST_FIELDS {
                        return Err(A::Error::custom("an object with more than 10000 fields"));
                    }
                }
                Ok(RawFields(fields))
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// The maximum number of fields in an object: each field is searched among all others, which is quadratic.
const MOST_FIELDS: usize = 10_000;

/// A string, borrowed if nothing in it is escaped.
#[derive(Debug)]
pub(crate) struct BorrowedString<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for BorrowedString<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = BorrowedString<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<BorrowedString<'de>, E> {
                Ok(BorrowedString(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<BorrowedString<'de>, E> {
                Ok(BorrowedString(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Either)
    }
}

/// JSON without whitespace between its tokens; the tokens stay unchanged.
pub(crate) fn compact(json: &str) -> Cow<'_, str> {
    let (mut out, mut copied) = (String::new(), 0);
    let (mut inside, mut escaped) = (false, false);
    for (at, byte) in json.bytes().enumerate() {
        if inside {
            inside = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte == b'"' {
            inside = true;
        } else if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            out.push_str(&json[copied..at]);
            copied = at + 1;
        }
    }
    match copied {
        0 => Cow::Borrowed(json),
        _ => {
            out.push_str(&json[copied..]);
            Cow::Owned(out)
        }
    }
}
