//! Reads parts of JSON text without building a tree.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use gantry_core::resource::{LiveObject, RawObject, Resource};

/// The maximum nesting depth. An API server has no object that it could not read back; the deepest CRDs have 38 levels.
pub const MAX_DEPTH: usize = 256;

/// Whether this is a `Status` document: a response of the API server itself, not of a server behind it.
pub fn is_status(bytes: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct DocumentKind<'a> {
        #[serde(borrow)]
        kind: Cow<'a, str>,
    }
    serde_json::from_slice::<DocumentKind<'_>>(bytes).is_ok_and(|document| document.kind == "Status")
}

/// The members of one JSON object in order, each value as written.
pub struct JsonMembers<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for JsonMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = JsonMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((JsonString(key), value)) = map.next_entry()? {
                    members.push((key, value));
                }
                Ok(JsonMembers(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// A string that is borrowed unless it contains escapes.
#[derive(serde::Deserialize)]
pub struct JsonString<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// The fields that are needed of every live object.
#[derive(serde::Deserialize)]
pub struct LiveObjectHead<'a> {
    #[serde(borrow, rename = "apiVersion")]
    api_version: Option<&'a RawValue>,
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub metadata: HeadMetadata<'a>,
}

#[derive(serde::Deserialize)]
pub struct HeadMetadata<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow, rename = "resourceVersion")]
    pub resource_version: Cow<'a, str>,
}

impl LiveObjectHead<'_> {
    /// The whole object. Items of a typed list have neither apiVersion nor kind; they get those of the list's kind.
    pub fn live(&self, json: &str, resource: &Resource) -> LiveObject {
        let raw = match (self.api_version, self.kind) {
            (Some(_), Some(_)) => RawObject::new(json),
            (api_version, kind) => {
                let own = format!(
                    "{}{}{}",
                    resource.group,
                    if resource.group.is_empty() { "" } else { "/" },
                    resource.version
                );
                let mut whole = String::with_capacity(json.len() + own.len() + resource.kind.len() + 32);
                whole.push('{');
                for (key, value, present) in
                    [("apiVersion", &own, api_version.is_some()), ("kind", &resource.kind, kind.is_some())]
                {
                    if !present {
                        push_member(&mut whole, key, &quote(value));
                    }
                }
                whole.push(',');
                whole.push_str(json.trim_start().trim_start_matches('{'));
                RawObject::new(whole)
            }
        };
        LiveObject {
            raw,
            uid: self.metadata.uid.to_string(),
            resource_version: self.metadata.resource_version.to_string(),
        }
    }
}

/// JSON that a YAML parser reads as a JSON parser does.
///
/// JSON allows characters in strings that YAML treats as line breaks, which it turns into a space (U+0085, U+2028,
/// U+2029), and others that it refuses (most control characters, U+FEFF, U+FFFE, U+FFFF). These are escaped. An escaped
/// surrogate pair is refused too, so the character is written instead.
pub fn readable_as_yaml(json: &str) -> Cow<'_, str> {
    let is_special = |c: char| {
        let is_control = matches!(c, '\u{7f}'..='\u{9f}');
        is_control
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fdd0}'..='\u{fdef}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    if !json.contains(is_special) && !json.contains("\\u") {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 64);
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let (written, length) = match c {
            '\\' => match pair(rest) {
                Some(c) => (Cow::Owned(c.to_string()), 12),
                // The escaped character is copied along, so a second backslash begins no escape.
                None => {
                    let length = 1 + rest[1..].chars().next().map_or(0, char::len_utf8);
                    (Cow::Borrowed(&rest[..length]), length)
                }
            },
            c if is_special(c) => (Cow::Owned(format!("\\u{:04x}", u32::from(c))), c.len_utf8()),
            c => (Cow::Borrowed(&rest[..c.len_utf8()]), c.len_utf8()),
        };
        text.push_str(&written);
        rest = &rest[length..];
    }
    Cow::Owned(text)
}

/// The character of an escaped surrogate pair at the start of a text: `\ud83d\ude00`.
fn pair(text: &str) -> Option<char> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
    };
    char::decode_utf16([unit(0)?, unit(6)?]).next()?.ok().filter(|c| c.len_utf16() == 2)
}

/// Whether JSON nests deeper than any object that a server accepts. Its parsers recurse once per level.
pub fn is_too_deep(json: &str) -> bool {
    let json = json.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => at += text_length(&json[at..]),
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// The length of the rest of a JSON string, with its closing quote.
fn text_length(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = rest.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        match rest[at - 1] {
            b'"' => return at,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Whether every part of a text is valid. serde_json does not check numbers and escapes in a value that it keeps as
/// text, and nothing checks them later.
pub fn is_sound(json: &str) -> bool {
    struct All;
    impl<'de> Deserialize<'de> for All {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(All)
        }
    }
    impl<'de> Visitor<'de> for All {
        type Value = All;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("JSON")
        }

        fn visit_bool<E>(self, _: bool) -> Result<All, E> {
            Ok(All)
        }

        fn visit_i64<E>(self, _: i64) -> Result<All, E> {
            Ok(All)
        }

        fn visit_u64<E>(self, _: u64) -> Result<All, E> {
            Ok(All)
        }

        fn visit_f64<E>(self, _: f64) -> Result<All, E> {
            Ok(All)
        }

        fn visit_str<E>(self, _: &str) -> Result<All, E> {
            Ok(All)
        }

        fn visit_unit<E>(self) -> Result<All, E> {
            Ok(All)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<All, A::Error> {
            while items.next_element::<All>()?.is_some() {}
            Ok(All)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<All, A::Error> {
            while map.next_entry::<All, All>()?.is_some() {}
            Ok(All)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(json);
    // The depth is checked separately.
    reader.disable_recursion_limit();
    !is_too_deep(json) && All::deserialize(&mut reader).is_ok() && reader.end().is_ok()
}

/// The live object in the API server's response to a `GET` or an apply.
pub fn live(json: &str, resource: &Resource) -> Option<LiveObject> {
    let json = json.trim_ascii();
    if !is_sound(json) {
        return None;
    }
    Some(serde_json::from_str::<LiveObjectHead<'_>>(json).ok()?.live(json, resource))
}

/// A string as a JSON literal.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Appends `"key":value` to an object under construction, with a comma if needed.
pub fn push_member(object: &mut String, key: &str, value: &str) {
    if !object.ends_with('{') {
        object.push(',');
    }
    object.push_str(&quote(key));
    object.push(':');
    object.push_str(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_brackets_outside_of_strings_nest() {
        let nested = |depth: usize| "[".repeat(depth);
        assert!(!is_too_deep(&nested(MAX_DEPTH)));
        assert!(is_too_deep(&nested(MAX_DEPTH + 1)));
        assert!(is_too_deep(&"{\"a\":".repeat(MAX_DEPTH + 1)));
        assert!(!is_too_deep(&"[]".repeat(MAX_DEPTH + 1)));
        let texts = [r#""a""#, r#""\\""#, r#""\"""#, r#""\\\"""#, r#""ä\u0022""#];
        for text in texts {
            assert!(is_too_deep(&format!("[{text},{}", nested(MAX_DEPTH))), "{text}");
            let within = format!("{}{}\"", &text[..text.len() - 1], nested(MAX_DEPTH + 1));
            assert!(!is_too_deep(&within), "{within}");
        }
        // What ends in a string or after a backslash ends there.
        for text in ["\"", "\"a", "\"\\", ""] {
            assert!(!is_too_deep(text), "{text:?}");
        }
    }

    #[test]
    fn a_list_item_becomes_a_whole_object() {
        let item = r#"{"metadata":{"name":"x","uid":"u","resourceVersion":"7"},"spec":{"a":[1, 2.50]}}"#;
        let live = live(item, &Resource::crd()).unwrap();
        assert_eq!((live.uid.as_str(), live.resource_version.as_str()), ("u", "7"));
        assert_eq!(
            live.raw.json(),
            r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"x","uid":"u","resourceVersion":"7"},"spec":{"a":[1, 2.50]}}"#
        );
    }

    #[test]
    fn a_whole_object_stays_as_it_is() {
        let json = r#"{"kind":"X","metadata":{"resourceVersion":"7","name":"x","uid":"u","managedFields":[]},"apiVersion":"v1"}"#;
        assert_eq!(live(&format!(" {json}\n"), &Resource::crd()).unwrap().raw.json(), json);
    }

    #[test]
    fn json_that_is_not_an_object_of_the_api_is_refused() {
        for json in [
            "",
            "[]",
            "null",
            "{}",
            r#"{"metadata":{"name":"x"}}"#,
            r#"{"metadata":{"name":"x","uid":"u","resourceVersion":"7"}"#,
            r#"{"metadata":{"name":"x","uid":"u","resourceVersion":"7"},"spec":1e999}"#,
            r#"{"metadata":{"name":"x","uid":"u","resourceVersion":"7"},"spec":"\ud800"}"#,
            &format!(
                r#"{{"metadata":{{"name":"x","uid":"u","resourceVersion":"7"}},"spec":{0}1{1}}}"#,
                "[".repeat(257),
                "]".repeat(257)
            ),
        ] {
            assert!(live(json, &Resource::crd()).is_none(), "{json}");
        }
    }

    #[test]
    fn characters_that_yaml_reads_differently_are_escaped() {
        for (json, expected) in [
            ("{\"a\":\"b\\u0001é😀\\\\\"}", "{\"a\":\"b\\u0001é😀\\\\\"}"),
            ("\"a\u{85}b\"", r#""a\u0085b""#),
            ("\"\u{7f}\u{80}\u{2028}\u{2029}\u{feff}\u{ffff}\"", r#""\u007f\u0080\u2028\u2029\ufeff\uffff""#),
            ("{\"\\\\\u{85}\":1}", r#"{"\\\u0085":1}"#),
            (r#""\ud83d\uDE00 \\ud83d\ude00""#, "\"😀 \\\\ud83d\\ude00\""),
        ] {
            assert_eq!(readable_as_yaml(json), expected);
            let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
            assert_eq!(parsed(json), parsed(expected), "{json}");
        }
    }

    #[test]
    fn members_keep_order_and_spelling() {
        let members: JsonMembers<'_> = serde_json::from_str(r#"{"b":1.0,"a\n":{"x": null},"b":[]}"#).unwrap();
        let members: Vec<_> = members.0.iter().map(|(key, value)| (key.as_ref(), value.get())).collect();
        assert_eq!(members, [("b", "1.0"), ("a\n", r#"{"x": null}"#), ("b", "[]")]);
    }
}
