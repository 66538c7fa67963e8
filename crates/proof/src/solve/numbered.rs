//! Items of a long set or list of type `map`, which must differ.

use serde_json::Value;

/// The maximum number of items that were not generated here.
const COMPARED: usize = 64;

/// Generates items of a set or of a list of type `map` that differ only in a number.
pub(super) struct NumberedItems<'k> {
    like: Value,
    /// The keys that identify the items of a list of type `map`; empty for a set.
    keys: Vec<&'k str>,
    next: u64,
    /// The key that varies, by its index, and how a string is varied: the first ones that were accepted.
    way: Option<(usize, NumberPlace)>,
}

/// Where a string gets a number.
#[derive(Clone, Copy)]
enum NumberPlace {
    After,
    /// In place of this many of the last characters, in this alphabet.
    Instead(usize, &'static [u8]),
}

impl NumberPlace {
    /// All places, those with room for many numbers first.
    fn all() -> impl Iterator<Item = Self> {
        const ALPHABETS: [&[u8]; 3] = [b"0123456789", b"abcdefghijklmnopqrstuvwxyz", b"0123456789abcdef"];
        let instead = |width| ALPHABETS.into_iter().map(move |alphabet| Self::Instead(width, alphabet));
        std::iter::once(Self::After).chain((1..=4).rev().flat_map(instead))
    }

    /// The text with the number; different numbers give different texts.
    fn varied(self, text: &str, mut number: u64) -> Option<String> {
        let Self::Instead(width, alphabet) = self else { return Some(format!("{text}{number}")) };
        let mut bytes = text.as_bytes().to_vec();
        let from = bytes.len().checked_sub(width)?;
        for byte in bytes[from..].iter_mut().rev() {
            if !byte.is_ascii_alphanumeric() {
                return None;
            }
            let base = alphabet.len() as u64;
            *byte = alphabet[usize::try_from(number % base).ok()?];
            number /= base;
        }
        (number == 0).then(|| String::from_utf8(bytes).ok()).flatten()
    }
}

impl<'k> NumberedItems<'k> {
    pub fn new(like: Value, keys: Vec<&'k str>) -> Self {
        NumberedItems { like, keys, next: 1, way: None }
    }

    /// The next item, if it is accepted and differs from the items in `before` that were not generated here.
    pub fn next(&mut self, before: &[Value], is_taken: impl Fn(&Value) -> bool) -> Option<Value> {
        let number = self.next;
        self.next += 1;
        let keys = 0..self.keys.len().max(1);
        let every = || keys.clone().flat_map(|key| NumberPlace::all().map(move |place| (key, place)));
        let ways: Vec<_> = self.way.map_or_else(|| every().collect(), |way| vec![way]);
        ways.into_iter().find_map(|way| {
            let item = self.varied(way, number).filter(|item| self.is_new(item, before) && is_taken(item))?;
            self.way = Some(way);
            Some(item)
        })
    }

    fn varied(&self, (key, place): (usize, NumberPlace), number: u64) -> Option<Value> {
        let varied = |value: &Value| match value {
            Value::String(text) => place.varied(text, number).map(Value::String),
            Value::Number(known) => known.as_i64()?.checked_add(i64::try_from(number).ok()?).map(Value::from),
            _ => None,
        };
        let Some(key) = self.keys.get(key) else { return varied(&self.like) };
        let mut item = self.like.clone();
        *item.get_mut(*key)? = varied(self.like.get(*key)?)?;
        Some(item)
    }

    fn is_new(&self, item: &Value, before: &[Value]) -> bool {
        let is_same = |other: &&Value| match self.keys.is_empty() {
            true => *other == item,
            false => self.keys.iter().all(|key| other.get(*key) == item.get(*key)),
        };
        !before.iter().take(COMPARED).any(|other| is_same(&other))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// All items until none is accepted any more.
    fn items(like: Value, keys: Vec<&str>, is_taken: impl Fn(&Value) -> bool) -> Vec<Value> {
        let first = like.clone();
        let mut numbered = NumberedItems::new(like, keys);
        let mut items = vec![first];
        for _ in 0..500 {
            items.extend(numbered.next(&items, &is_taken));
        }
        items
    }

    #[test]
    fn items_differ_in_the_first_key_and_way_that_are_accepted() {
        let is_word =
            |value: &Value| value.as_str().is_some_and(|text| text.len() == 3 && !text.contains(char::is_numeric));
        let is_port = |item: &Value| item["protocol"] == "TCP" && item["port"].as_i64().is_some_and(|port| port < 300);
        for (found, expected) in [
            (items(json!("a"), Vec::new(), |_| true), 500),
            (items(json!("aaa"), Vec::new(), is_word), 500),
            (items(json!({"protocol": "TCP", "port": 1}), vec!["protocol", "port"], is_port), 299),
        ] {
            let mut apart: Vec<String> = found.iter().map(Value::to_string).collect();
            apart.sort_unstable();
            apart.dedup();
            assert_eq!(apart.len(), found.len());
            assert!(found.len() >= expected, "{} of {expected}", found.len());
        }
    }
}
