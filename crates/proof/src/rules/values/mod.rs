//! Representatives: one value for each kind of value that rules can distinguish.

mod lists;
mod numbers;
mod objects;
mod texts;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::view::RuleView;
use crate::automaton::SearchBudget;
use crate::keywords as kw;

/// The maximum number of items in lists that are built for a size.
pub(super) const ITEMS: u64 = 12;

/// The maximum total weight of all values of one question.
const ROOM: u64 = 96 << 20;
/// The maximum number of comparisons between the values of two enums.
const COMPARED: usize = 1_000_000;

/// Builds representatives.
pub struct RepresentativeBuilder<'a> {
    pub budget: &'a mut SearchBudget,
    /// Strings that the rules mention.
    pub texts: &'a BTreeSet<String>,
    /// Whether the view is incomplete, so that these strings are tried too.
    pub is_guessing: bool,
    /// The maximum number of values of one place. If there are more combinations, only some are built and nothing is
    /// proven.
    pub most: usize,
    /// The weight that is left for values.
    room: u64,
    /// Why there may be values without a representative.
    pub missing: Option<String>,
}

/// A number of items, properties or characters.
pub(super) fn bound(schema: &Value, keyword: &str) -> Option<u64> {
    kw::count(schema, keyword).and_then(|count| u64::try_from(count).ok())
}

impl<'t> RepresentativeBuilder<'t> {
    pub fn new(budget: &'t mut SearchBudget, texts: &'t BTreeSet<String>, is_guessing: bool, most: usize) -> Self {
        Self { budget, texts, is_guessing, most, room: ROOM, missing: None }
    }

    /// The values, as many as there is room for.
    fn keep_what_fits(&mut self, values: impl Iterator<Item = Value>) -> Vec<Value> {
        let mut kept = Vec::new();
        for value in values {
            let Some(room) = self.room.checked_sub(kw::weight(&value)) else {
                self.record_missing("values too large to build");
                break;
            };
            self.room = room;
            kept.push(value);
        }
        kept
    }

    fn record_missing(&mut self, why: impl Into<String>) {
        self.missing.get_or_insert_with(|| why.into());
    }

    /// Values that represent all that `schema` accepts, as far as `view` distinguishes them, simplest first.
    ///
    /// Required fields that nothing looks at are left out.
    pub fn values(&mut self, schema: &Value, view: &RuleView) -> Vec<Value> {
        let mut values = allowed(schema).unwrap_or_else(|| self.of_kind(schema, view));
        if kw::flag(schema, "nullable") && !values.contains(&Value::Null) {
            values.push(Value::Null);
        }
        values
    }

    fn of_kind(&mut self, schema: &Value, view: &RuleView) -> Vec<Value> {
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
                self.record_missing("a value without a type");
                vec![json!("a"), json!(1), json!({})]
            }
        }
    }

    /// The minimum and maximum length of the lists or maps that have to be tried.
    fn lengths(&mut self, view: &RuleView, min: Option<u64>, max: Option<u64>) -> (usize, usize) {
        let beyond = view.sizes.last().map_or(0, |size| size + 1);
        let min = min.unwrap_or(0);
        let most = (view.kept as u64).max(beyond).max(min);
        let most = max.map_or(most, |max| most.min(max));
        if most > ITEMS {
            self.record_missing("lists or maps that are too long to try");
        }
        let cut = |n: u64| usize::try_from(n.min(ITEMS)).unwrap_or(0);
        (cut(min), cut(most))
    }
}

/// The schema and those below its `allOf`.
fn schema_and_all_of(schema: &Value) -> Vec<&Value> {
    let mut parts = vec![schema];
    let mut at = 0;
    while at < parts.len() {
        parts.extend(kw::list(parts[at], "allOf"));
        at += 1;
    }
    parts
}

/// The values that all `enum`s allow, if there is one.
fn allowed(schema: &Value) -> Option<Vec<Value>> {
    let mut enums =
        schema_and_all_of(schema).into_iter().map(|part| kw::list(part, "enum")).filter(|list| !list.is_empty());
    let first = enums.next()?.to_vec();
    Some(enums.fold(first, |left, list| {
        if left.iter().chain(list).all(Value::is_string) {
            let allowed: BTreeSet<&str> = list.iter().filter_map(Value::as_str).collect();
            return left
                .into_iter()
                .filter(|value| value.as_str().is_some_and(|text| allowed.contains(text)))
                .collect();
        }
        // Values that another `enum` excludes do no harm.
        match left.len().saturating_mul(list.len()) {
            ..=COMPARED => left.into_iter().filter(|value| list.contains(value)).collect(),
            _ => left,
        }
    }))
}
