//! Representatives: for each kind of value that rules can distinguish, one value.

mod lists;
mod numbers;
mod objects;
mod texts;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::view::View;
use crate::automaton::Budget;
use crate::keywords as kw;

/// Items at most in lists that are made for a size.
pub(super) const ITEMS: u64 = 12;

/// What all values of one question may weigh together.
const ROOM: u64 = 96 << 20;
/// Values of an `enum` that are compared with those of another one, at most.
const COMPARED: usize = 1_000_000;

/// Makes representatives.
pub struct Representatives<'a> {
    pub budget: &'a mut Budget,
    /// Texts that the rules mention.
    pub texts: &'a BTreeSet<String>,
    /// Whether a view does not say all, so that these texts are worth a try.
    pub is_guessing: bool,
    /// Values of one place at most; of more combinations some are made, and then nothing is proven.
    pub most: usize,
    /// What all values may still weigh.
    room: u64,
    /// Why there may be values without a representative.
    pub missing: Option<String>,
}

/// A number of items, properties or characters.
pub(super) fn bound(schema: &Value, keyword: &str) -> Option<u64> {
    kw::count(schema, keyword).and_then(|count| u64::try_from(count).ok())
}

impl<'t> Representatives<'t> {
    pub fn new(budget: &'t mut Budget, texts: &'t BTreeSet<String>, is_guessing: bool, most: usize) -> Self {
        Self { budget, texts, is_guessing, most, room: ROOM, missing: None }
    }

    /// The values, as many as there is room for.
    fn kept(&mut self, values: impl Iterator<Item = Value>) -> Vec<Value> {
        let mut kept = Vec::new();
        for value in values {
            let Some(room) = self.room.checked_sub(kw::weight(&value)) else {
                self.miss("values too large to build");
                break;
            };
            self.room = room;
            kept.push(value);
        }
        kept
    }

    fn miss(&mut self, why: impl Into<String>) {
        self.missing.get_or_insert_with(|| why.into());
    }

    /// Values that represent all that `schema` accepts, as far as `view` distinguishes them, the simplest first.
    ///
    /// What the schema demands of fields that nothing looks at is left out.
    pub fn values(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        let mut values = allowed(schema).unwrap_or_else(|| self.of_kind(schema, view));
        if kw::flag(schema, "nullable") && !values.contains(&Value::Null) {
            values.push(Value::Null);
        }
        values
    }

    fn of_kind(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        if kw::flag(schema, "x-kubernetes-int-or-string") {
            let mut values = self.integers(schema, view);
            values.extend(self.texts(schema, view));
            return values;
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("boolean") => vec![json!(false), json!(true)],
            Some("integer") => self.integers(schema, view),
            Some("number") => self.fractions(schema, view),
            Some("string") => self.texts(schema, view),
            Some("array") => self.lists(schema, view),
            Some("object") => match schema.get("additionalProperties").filter(|values| values.is_object()) {
                Some(of) if schema.get("properties").is_none() => self.maps(schema, of, view),
                _ => self.objects(schema, view),
            },
            _ => {
                self.miss("a value without a type");
                vec![json!("a"), json!(1), json!({})]
            }
        }
    }

    /// The lengths of lists and maps that have to be tried.
    fn lengths(&mut self, view: &View, min: Option<u64>, max: Option<u64>) -> (usize, usize) {
        let beyond = view.sizes.last().map_or(0, |size| size + 1);
        let min = min.unwrap_or(0);
        let most = (view.kept as u64).max(beyond).max(min);
        let most = max.map_or(most, |max| most.min(max));
        if most > ITEMS {
            self.miss("long lists");
        }
        let cut = |n: u64| usize::try_from(n.min(ITEMS)).unwrap_or(0);
        (cut(min), cut(most))
    }
}

/// The schema and those below its `allOf`, which ask for more.
fn parts(schema: &Value) -> Vec<&Value> {
    let mut parts = vec![schema];
    let mut at = 0;
    while at < parts.len() {
        parts.extend(kw::list(parts[at], "allOf"));
        at += 1;
    }
    parts
}

/// The values that an `enum` leaves, if there is one.
fn allowed(schema: &Value) -> Option<Vec<Value>> {
    let mut enums = parts(schema).into_iter().map(|part| kw::list(part, "enum")).filter(|list| !list.is_empty());
    let first = enums.next()?.to_vec();
    Some(enums.fold(first, |left, list| {
        if left.iter().chain(list).all(Value::is_string) {
            let allowed: BTreeSet<&str> = list.iter().filter_map(Value::as_str).collect();
            return left
                .into_iter()
                .filter(|value| value.as_str().is_some_and(|text| allowed.contains(text)))
                .collect();
        }
        // More values than there are do no harm.
        match left.len().saturating_mul(list.len()) {
            ..=COMPARED => left.into_iter().filter(|value| list.contains(value)).collect(),
            _ => left,
        }
    }))
}
