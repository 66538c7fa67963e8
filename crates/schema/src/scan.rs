//! Reads JSON text without parsing it: finds a member of an object, and compares values, by their hashes or side by
//! side.
//!
//! Most of a CRD is descriptions, and most CRDs of a deploy do not change. A parser allocates every value that it
//! reads; here, a string costs one search for its closing quote. The text must be valid JSON: of other text the result
//! is meaningless, but nothing panics.

use std::borrow::Cow;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use memchr::memchr2;

use crate::json::Json;

/// The maximum nesting depth of a value that is hashed.
const MAX_DEPTH: usize = 512;

/// A position in a text.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// The number of bytes that were skipped to find members which are in another order.
    skipped: usize,
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str) -> Self {
        Scanner { text, at: 0, skipped: 0 }
    }

    /// The first byte after white space, which is the next one to read.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Whether the next byte after white space is this one, which is then read.
    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// The value of the member `name` of the object that comes next. Reads no further than that.
    fn member(&mut self, name: &str) -> Option<&'t str> {
        if !self.takes(b'{') || self.takes(b'}') {
            return None;
        }
        loop {
            let key = self.string()?;
            if !self.takes(b':') {
                return None;
            }
            self.peek()?;
            let start = self.at;
            self.skip()?;
            if key == name {
                return Some(&self.text[start..self.at]);
            }
            if !self.takes(b',') {
                return None;
            }
        }
    }

    /// Skips a value.
    fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.quoted()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => self.at += 1,
                _ => {
                    self.literal()?;
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// A number, or `true`, `false`, `null`, as it is written.
    fn literal(&mut self) -> Option<&'t str> {
        let rest = &self.text[self.at..];
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let length = rest.bytes().take_while(|byte| is_part(byte)).count();
        self.at += length;
        (length > 0).then(|| &rest[..length])
    }

    /// A string with its quotes, and whether it has escapes.
    fn quoted(&mut self) -> Option<(&'t str, bool)> {
        if !self.takes(b'"') {
            return None;
        }
        let start = self.at - 1;
        let mut has_escapes = false;
        loop {
            self.at += memchr2(b'"', b'\\', self.text.as_bytes().get(self.at..)?)? + 1;
            if self.text.as_bytes()[self.at - 1] == b'"' {
                return Some((&self.text[start..self.at], has_escapes));
            }
            has_escapes = true;
            self.at += 1;
        }
    }

    fn string(&mut self) -> Option<Cow<'t, str>> {
        match self.quoted()? {
            (quoted, false) => Some(Cow::Borrowed(&quoted[1..quoted.len() - 1])),
            (quoted, true) => serde_json::from_str(quoted).ok().map(Cow::Owned),
        }
    }

    /// A hash of the value that comes next. Equal values have equal hashes, whatever the order of keys, the escapes,
    /// the white space and the notation of numbers.
    fn hash(&mut self, state: &RandomState, depth: usize) -> Option<u64> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.peek()? {
            b'"' => Some(state.hash_one(('"', self.string()?))),
            b'{' => {
                self.at += 1;
                // The order of the members must not matter, so their hashes are added.
                let (mut sum, mut count) = (0_u64, 0_u64);
                while !self.takes(b'}') {
                    let key = self.string()?;
                    let value = if self.takes(b':') { self.hash(state, depth + 1)? } else { return None };
                    sum = sum.wrapping_add(state.hash_one((key, value)));
                    count += 1;
                    self.takes(b',');
                }
                Some(state.hash_one(('{', sum, count)))
            }
            b'[' => {
                self.at += 1;
                let (mut all, mut count) = (0, 0_u64);
                while !self.takes(b']') {
                    all = state.hash_one((all, self.hash(state, depth + 1)?));
                    count += 1;
                    self.takes(b',');
                }
                Some(state.hash_one(('[', all, count)))
            }
            _ => {
                let literal = self.literal()?;
                Some(match Json::parse(literal).ok()? {
                    Json::Int(int) => state.hash_one(('0', int)),
                    Json::Float(float) => state.hash_one(('.', float.to_bits())),
                    _ => state.hash_one(('n', literal)),
                })
            }
        }
    }
}

/// What a look at two JSON texts side by side shows about their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// They are the same.
    Same,
    /// A string has another value, and neither of the two is empty.
    OtherText,
    /// Anything else: they may be the same, for example with the keys in another order.
    Unknown,
}

use Relation::{OtherText, Same, Unknown};

impl Relation {
    /// The relation of two values with these relations of their parts.
    fn and(self, other: Relation) -> Relation {
        match (self, other) {
            (OtherText, _) | (_, OtherText) => OtherText,
            (Unknown, _) | (_, Unknown) => Unknown,
            (Same, Same) => Same,
        }
    }
}

impl<'t> Scanner<'t> {
    /// Reads two values side by side, until a string differs.
    fn relation(&mut self, other: &mut Self, depth: usize) -> Option<Relation> {
        if depth > MAX_DEPTH {
            return None;
        }
        match (self.peek()?, other.peek()?) {
            (b'"', b'"') => {
                let (one, other) = (self.string()?, other.string()?);
                Some(match one == other {
                    true => Same,
                    false if one.is_empty() || other.is_empty() => Unknown,
                    false => OtherText,
                })
            }
            (b'{', b'{') => self.relation_of_members(other, depth + 1),
            (b'[', b'[') => self.relation_of_items(other, depth + 1),
            (b'"' | b'{' | b'[', _) | (_, b'"' | b'{' | b'[') => {
                self.skip()?;
                other.skip()?;
                Some(Unknown)
            }
            _ => Some(if self.literal()? == other.literal()? { Same } else { Unknown }),
        }
    }

    fn relation_of_members(&mut self, other: &mut Self, depth: usize) -> Option<Relation> {
        self.at += 1;
        other.at += 1;
        let mut all = Same;
        loop {
            let (key, other_key) = (self.key()?, other.key()?);
            if key != other_key {
                return self.relation_of_unordered(key, other, other_key, depth).map(|rest| all.and(rest));
            }
            if key.is_none() {
                return Some(all);
            }
            all = all.and(self.relation(other, depth)?);
            if all == OtherText {
                return Some(all);
            }
        }
    }

    /// Compares the rest of two objects, from members with these keys on. The members of `other` are found by skipping
    /// all of them once.
    fn relation_of_unordered(
        &mut self,
        mut key: Option<Cow<'t, str>>,
        other: &mut Self,
        mut other_key: Option<Cow<'t, str>>,
        depth: usize,
    ) -> Option<Relation> {
        let start = other.at;
        let mut members = Vec::new();
        while let Some(key) = other_key {
            members.push((key, Some(other.at)));
            other.skip()?;
            other_key = other.key()?;
        }
        let end = other.at;
        other.skipped += end - start;
        // In a text that is in another order at every level, this would read each part once per level.
        if other.skipped > 2 * other.text.len() {
            return None;
        }
        members.sort_unstable();
        let mut all = Same;
        while let Some(name) = key {
            let found = members.binary_search_by(|(key, _)| key.cmp(&name)).ok().and_then(|at| members[at].1.take());
            all = match found {
                Some(start) => {
                    other.at = start;
                    all.and(self.relation(other, depth)?)
                }
                None => {
                    self.skip()?;
                    all.and(Unknown)
                }
            };
            if all == OtherText {
                return Some(all);
            }
            key = self.key()?;
        }
        other.at = end;
        let has_more = members.iter().any(|(_, start)| start.is_some());
        Some(if has_more { all.and(Unknown) } else { all })
    }

    fn relation_of_items(&mut self, other: &mut Self, depth: usize) -> Option<Relation> {
        self.at += 1;
        other.at += 1;
        let mut all = Same;
        loop {
            match (self.takes(b']'), other.takes(b']')) {
                (true, true) => return Some(all),
                (false, false) => all = all.and(self.relation(other, depth)?),
                (is_end, _) => {
                    let longer = if is_end { other } else { self };
                    while !longer.takes(b']') {
                        longer.skip()?;
                        longer.takes(b',');
                    }
                    return Some(Unknown);
                }
            }
            if all == OtherText {
                return Some(all);
            }
            self.takes(b',');
            other.takes(b',');
        }
    }

    /// The next key of an object, with the comma before it and the colon after it; `Some(None)` after the last.
    fn key(&mut self) -> Option<Option<Cow<'t, str>>> {
        self.takes(b',');
        if self.takes(b'}') {
            return Some(None);
        }
        let key = self.string()?;
        self.takes(b':').then_some(Some(key))
    }
}

/// Compares two valid JSON texts side by side. It ends at the first string that differs, which in two versions of a
/// long object is often near the beginning. It is fast if most keys are in the same order, and gives up otherwise. Of
/// texts in which an object has a key twice, `OtherText` does not mean that they differ.
pub fn relation(one: &str, other: &str) -> Relation {
    Scanner::new(one).relation(&mut Scanner::new(other), 0).unwrap_or(Unknown)
}

/// The source text of a member of a JSON object. Reading stops after it: `metadata` is near the beginning of an object
/// that can be long. The text must be valid JSON; what comes before the member is skipped and not checked.
pub fn member<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    Scanner::new(object).member(name)
}

/// Whether two valid JSON texts have the same value. Of texts in which an object has a key twice, `false` does not mean
/// that they differ.
///
/// The values are compared by hashes of 64 bits with a random key that changes with every call, so nobody can make up
/// two different values with the same hash.
pub fn is_same(one: &str, other: &str) -> bool {
    let state = RandomState::default();
    let hash = |text| Scanner::new(text).hash(&state, 0);
    one == other || hash(one).is_some_and(|one| hash(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_found_without_parsing_what_follows() {
        let object = r#"{"kind":"X","a":{"metadata":1},"metadata":{"n":[1, 2]},"spec":"never read"#;
        assert_eq!(member(object, "metadata"), Some(r#"{"n":[1, 2]}"#));
        assert_eq!((member(object, "spec"), member("[]", "a"), member("{}", "a")), (None, None, None));
    }

    #[test]
    fn values_are_equal_regardless_of_their_notation() {
        for (one, other) in [
            (r#"{"a":1,"b":[true,null,"x"]}"#, "{ \"b\": [true, null,\"\\u0078\"],\n\"a\":1 }"),
            (r#"{"a":{"c":"","b":{}},"d":[]}"#, r#"{"d":[],"a":{"b":{},"c":""}}"#),
            (r#""\"\\ä""#, r#""\u0022\u005c\u00e4""#),
            ("[1, 1e3, -0.0, 0.5]", "[1.0,1000,0,5e-1]"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn different_values_are_not_the_same() {
        let texts = [
            "{}",
            "[]",
            "null",
            r#""""#,
            "0",
            "1",
            "-1",
            "1.5",
            "true",
            "false",
            r#""null""#,
            r#""1""#,
            "[1,2]",
            "[2,1]",
            "[[1],2]",
            "[[1,2]]",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":null}"#,
            r#"{"b":1}"#,
            r#"{"a":1,"b":2}"#,
            r#"{"a":2,"b":1}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":[{"b":1}]}"#,
            r#"["a"]"#,
            r#"["a",""]"#,
            r#"["","a"]"#,
            "[[]]",
            "[{}]",
            r#"{"a":{}}"#,
            r#"{"a":[]}"#,
            r#""a\"b""#,
            r#""a\\b""#,
            r#""ab""#,
        ];
        for (at, one) in texts.iter().enumerate() {
            for (beside, other) in texts.iter().enumerate() {
                assert_eq!(is_same(one, other), at == beside, "{one} {other}");
            }
        }
    }

    #[test]
    fn json_texts_are_compared_member_by_member() {
        for (one, other, expected) in [
            (r#"{"a":1,"b":[true,"x",{}]}"#, "{ \"a\": 1,\n\"b\": [true, \"x\", {}]}", Same),
            (r#"{"a":{"b":"x"}}"#, r#"{"a":{"b":"y"}}"#, OtherText),
            // With other members between.
            (r#"{"b":{"c":[1,"]"]},"d":"x"}"#, r#"{"a":[{}],"d":"y"}"#, OtherText),
            (r#"{"a":[1],"d":"y"}"#, r#"{"b":{"c":[1,"]"]},"d":"x","e":2}"#, OtherText),
            (r#"["a","b"]"#, r#"["a","c","d"]"#, OtherText),
            (r#"[1,2,{"a":[3]}]"#, "[1]", Unknown),
            (r#"[[1],{"b":"x"}]"#, r#"["a",{"b":"y"}]"#, OtherText),
            // Another order.
            (r#"{"a":"x","b":[1],"c":{}}"#, r#"{"b":[1],"c":{},"a":"x"}"#, Same),
            (r#"{"a":{"c":"x"},"b":1}"#, r#"{"b":1,"a":{"c":"y"}}"#, OtherText),
            (r#"{"a":1,"a":1}"#, r#"{"b":2,"a":1}"#, Unknown),
            // The same value, written in another way.
            (r#"["\u0061"]"#, r#"["a"]"#, Same),
            ("[1]", "[1.0]", Unknown),
            // The API server drops empty texts.
            (r#"{"a":""}"#, r#"{"a":"x"}"#, Unknown),
            (r#"{"a":"x"}"#, r#"{"a":""}"#, Unknown),
            (r#"{"a":"x"}"#, "{}", Unknown),
            (r#"{"a":"x"}"#, r#"{"a":null}"#, Unknown),
        ] {
            assert_eq!((relation(one, other), relation(other, one)), (expected, expected), "{one} {other}");
        }
        // In another order at every level: it gives up.
        let nested = |keys: [&str; 2]| {
            let member = |key, value: &str| if key == "a" { format!("\"a\":{value}") } else { "\"b\":1".to_owned() };
            (0..200)
                .fold("1".to_owned(), |inner, _| format!("{{{},{}}}", member(keys[0], &inner), member(keys[1], &inner)))
        };
        assert_eq!(relation(&nested(["a", "b"]), &nested(["b", "a"])), Unknown);
    }

    #[test]
    fn text_that_is_not_json_is_scanned_without_a_panic() {
        let deep = "[".repeat(100_000);
        for text in [
            "",
            "{",
            "[",
            "\"",
            "\"\\",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{1:2}",
            "[1",
            "{\"a\":\"\\",
            "]",
            "}",
            ",",
            "é",
            &deep,
        ] {
            assert!(!is_same(text, "{}"), "{text}");
            assert_ne!(relation(text, "{}"), Same, "{text}");
            assert_eq!(relation(&format!("{{\"a\":{text}"), &format!("{{\"a\":{text}")), Unknown, "{text}");
            let _ = member(text, "a");
            let _ = member(&format!("{{\"a\":{text}"), "b");
        }
    }

    proptest::proptest! {
        /// Two texts with the same hash, or whose values are the same side by side, are the same to the parser.
        #[test]
        fn the_scan_finds_the_same_members_as_the_parser(one in "[\\[{]([0-2a\",:\\[\\]{} ]|\\\\u0061|\"a\":|\"b\":1,){0,12}[\\]}]", other in "[\\[{]([0-2a\",:\\[\\]{} ]|\"a\":){0,12}[\\]}]") {
            if let (Ok(parsed), Ok(beside)) = (Json::parse(&one), Json::parse(&other))
                && (is_same(&one, &other) || relation(&one, &other) == Same)
            {
                proptest::prop_assert_eq!(parsed, beside);
            }
        }
    }
}
