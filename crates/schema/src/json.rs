//! JSON values for comparison: strings borrowed from the text, sorted keys, numbers by value.
//!
//! A CRD is long and consists mostly of strings, and most compared pairs are equal. Therefore strings stay slices of
//! the source text. Values with the same meaning are equal: `1` and `1.0`, `{a, b}` and `{b, a}`.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value whose strings are borrowed where possible.
#[derive(Debug, Clone)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer, within the range of `i64`.
    Int(i64),
    /// A number with a fraction, or one outside the range in which integers are exact.
    Float(f64),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Json<'a>>),
    /// An object.
    Map(JsonMap<'a>),
}

/// An object: entries sorted by key, each key once.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct JsonMap<'a>(Vec<(JsonKey<'a>, Json<'a>)>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct JsonKey<'a>(Cow<'a, str>);

impl<'a> Json<'a> {
    /// Parses a text.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Parses a text whose nesting depth is already bounded, such as a manifest.
    pub fn parse_bounded(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.disable_recursion_limit();
        let json = Json::deserialize(&mut reader)?;
        reader.end().map(|()| json)
    }

    /// The string, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items, if it is an array.
    pub fn list(&self) -> Option<&[Json<'a>]> {
        match self {
            Json::List(list) => Some(list),
            _ => None,
        }
    }

    /// The members, if it is an object.
    pub fn map(&self) -> Option<&JsonMap<'a>> {
        match self {
            Json::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Whether both are the same string, integer or boolean.
    pub fn is_same_scalar(&self, other: &Json) -> bool {
        match (self, other) {
            (Json::Text(one), Json::Text(other)) => one == other,
            (Json::Bool(one), Json::Bool(other)) => one == other,
            (Json::Int(one), Json::Int(other)) => one == other,
            _ => false,
        }
    }

    /// Whether both are numbers and this one is the greater.
    pub fn exceeds(&self, other: &Json) -> bool {
        match (self, other) {
            (Json::Int(a), Json::Int(b)) => a > b,
            _ => matches!((self.number(), other.number()), (Some(a), Some(b)) if a > b),
        }
    }

    /// The number, if it is one.
    #[expect(clippy::cast_precision_loss, reason = "the API itself holds bounds as float64")]
    pub fn number(&self) -> Option<f64> {
        match self {
            Json::Int(int) => Some(*int as f64),
            Json::Float(float) => Some(*float),
            _ => None,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Json::Null => 0,
            Json::Bool(_) => 1,
            Json::Int(_) => 2,
            Json::Float(_) => 3,
            Json::Text(_) => 4,
            Json::List(_) => 5,
            Json::Map(_) => 6,
        }
    }
}

impl<'a> JsonMap<'a> {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Json<'a>> {
        // Most objects are small, and most keys differ in their length.
        let at = match self.0.len() {
            0..=8 => self.0.iter().position(|(k, _)| k.0.as_ref() == key)?,
            _ => self.0.binary_search_by(|(k, _)| k.0.as_ref().cmp(key)).ok()?,
        };
        Some(&self.0[at].1)
    }

    /// The keys of both, sorted, each with the values of the one and of the other.
    pub fn side_by_side<'m>(
        &'m self,
        other: &'m Self,
    ) -> impl Iterator<Item = (&'m str, Option<&'m Json<'a>>, Option<&'m Json<'a>>)> {
        let (mut these, mut those) = (self.iter().peekable(), other.iter().peekable());
        std::iter::from_fn(move || {
            let order = match (these.peek(), those.peek()) {
                (None, None) => return None,
                (Some((one, _)), Some((other, _))) => one.cmp(other),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
            };
            let this = if order.is_le() { these.next() } else { None };
            let that = if order.is_ge() { those.next() } else { None };
            let (key, _) = this.or(that)?;
            Some((key, this.map(|(_, value)| value), that.map(|(_, value)| value)))
        })
    }

    /// The entries, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json<'a>)> {
        self.0.iter().map(|(key, value)| (key.0.as_ref(), value))
    }

    /// The entries whose keys satisfy `keep`.
    pub fn filtered(&self, keep: impl Fn(&str) -> bool) -> Self {
        JsonMap(self.0.iter().filter(|(key, _)| keep(&key.0)).cloned().collect())
    }

    /// Whether the object is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// A total order, so that lists with set semantics can be sorted and compared.
impl Ord for Json<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Json::Bool(a), Json::Bool(b)) => a.cmp(b),
            (Json::Int(a), Json::Int(b)) => a.cmp(b),
            (Json::Float(a), Json::Float(b)) => a.total_cmp(b),
            (Json::Text(a), Json::Text(b)) => a.cmp(b),
            (Json::List(a), Json::List(b)) => a.cmp(b),
            (Json::Map(a), Json::Map(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Json<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Json<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Json<'_> {}

/// Compact JSON.
impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(bool) => write!(f, "{bool}"),
            Json::Int(int) => write!(f, "{int}"),
            Json::Float(float) => write!(f, "{float}"),
            Json::Text(text) => quote(text, f),
            Json::List(list) => {
                f.write_str("[")?;
                for (i, item) in list.iter().enumerate() {
                    write!(f, "{}{item}", if i == 0 { "" } else { "," })?;
                }
                f.write_str("]")
            }
            Json::Map(map) => {
                f.write_str("{")?;
                for (i, (key, value)) in map.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "," })?;
                    quote(key, f)?;
                    write!(f, ":{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quote(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
}

impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Self::Value, E> {
        Ok(Json::Bool(bool))
    }

    fn visit_i64<E>(self, int: i64) -> Result<Self::Value, E> {
        Ok(Json::Int(int))
    }

    #[expect(clippy::cast_precision_loss, reason = "the API server reads integers beyond int64 as float64, too")]
    fn visit_u64<E>(self, int: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(int).map_or(Json::Float(int as f64), Json::Int))
    }

    #[expect(clippy::cast_possible_truncation, reason = "only where the value is a small whole number")]
    fn visit_f64<E>(self, float: f64) -> Result<Self::Value, E> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let whole = float.fract() == 0.0 && float.abs() <= EXACT;
        Ok(if whole { Json::Int(float as i64) } else { Json::Float(float) })
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut entries: Vec<(JsonKey, Json)> = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        // The last of several equal keys wins, as in every JSON parser of this ecosystem.
        entries.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(later, kept);
            }
            same
        });
        Ok(Json::Map(JsonMap(entries)))
    }
}

impl<'de> Deserialize<'de> for JsonKey<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = JsonKey<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(JsonKey(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(JsonKey(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json<'_> {
        Json::parse(text).unwrap()
    }

    #[test]
    fn values_with_the_same_meaning_are_equal() {
        for (a, b) in [("1", "1.0"), ("1000", "1e3"), (r#"{"a":1,"b":[2.0]}"#, r#"{"b":[2],"a":1}"#), ("-0.0", "0")] {
            assert_eq!(json(a), json(b), "{a} {b}");
        }
        for (a, b) in [("1", "1.5"), ("1", r#""1""#), ("[1,2]", "[2,1]"), ("null", "false"), ("{}", r#"{"a":null}"#)] {
            assert_ne!(json(a), json(b), "{a} {b}");
        }
    }

    #[test]
    fn the_last_of_equal_keys_wins() {
        assert_eq!(json(r#"{"a":1,"b":0,"a":2,"a":3}"#), json(r#"{"b":0,"a":3}"#));
    }

    #[test]
    fn a_value_is_written_as_it_was_read() {
        let text = r#"{"a":"tab\tquote\"","b":[1,-2.5,true,null],"ä":{}}"#;
        assert_eq!(json(text).to_string(), text);
    }

    #[test]
    fn bounds_compare_as_numbers() {
        assert!(json("2").exceeds(&json("1.5")));
        assert!(json("9007199254740993").exceeds(&json("9007199254740992")));
        assert!(!json("1.0").exceeds(&json("1")));
        assert!(!json(r#""2""#).exceeds(&json("1")));
    }

    #[test]
    fn nesting_that_is_too_deep_is_an_error() {
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
    }
}
