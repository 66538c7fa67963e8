//! Representatives: for each kind of value that rules can tell apart, one value.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::super::automaton::Budget;
use super::super::strings::{self, StringSet};
use super::view::View;

/// Values of one place at most; products beyond it are cut, and then nothing is proven.
const MOST: usize = 20_000;
/// Kinds of text at one place at most.
const CELLS: usize = 48;
/// Items at most in lists that are made for a size.
const ITEMS: u64 = 12;

/// Makes representatives.
pub struct Maker<'a> {
    pub budget: &'a mut Budget,
    /// Further texts to try where a view does not say all.
    pub texts: &'a BTreeSet<String>,
    /// Why there may be values that no representative stands for.
    pub missing: Option<String>,
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

fn bound(schema: &Value, key: &str) -> Option<u64> {
    schema.get(key).and_then(Value::as_u64)
}

impl Maker<'_> {
    fn miss(&mut self, why: impl Into<String>) {
        self.missing.get_or_insert_with(|| why.into());
    }

    /// Values that stand for all that `schema` takes, as far as `view` tells them apart, the simplest first.
    ///
    /// What the schema demands of fields that nothing looks at is left out.
    pub fn values(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        let mut values = self.of_kind(schema, view);
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
            values = allowed.clone();
        }
        if flag(schema, "nullable") && !values.contains(&Value::Null) {
            values.push(Value::Null);
        }
        values
    }

    fn of_kind(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        if flag(schema, "x-kubernetes-int-or-string") {
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

    fn integers(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        if schema.get("multipleOf").is_some() {
            self.miss("multipleOf");
        }
        let reach = i64::try_from(view.rivals).unwrap_or(8).clamp(0, 8) + 1;
        let bounds = ["minimum", "maximum"].into_iter().filter_map(|key| schema.get(key).and_then(Value::as_i64));
        let near = |n: i64| (-reach..=reach).map(move |by| n.saturating_add(by));
        let wide = if schema.get("format") == Some(&json!("int32")) {
            (i64::from(i32::MIN), i64::from(i32::MAX))
        } else {
            (i64::MIN, i64::MAX)
        };
        let fits = |n: &i64| {
            let (min, max) = (schema.get("minimum"), schema.get("maximum"));
            #[allow(clippy::cast_precision_loss)]
            // A bound beyond the integers that a double holds is not missed by much.
            let above = min
                .and_then(Value::as_f64)
                .is_none_or(|min| *n as f64 > min || (*n as f64 >= min && !flag(schema, "exclusiveMinimum")));
            #[allow(clippy::cast_precision_loss)]
            let below = max
                .and_then(Value::as_f64)
                .is_none_or(|max| (*n as f64) < max || (*n as f64 <= max && !flag(schema, "exclusiveMaximum")));
            above && below && (wide.0..=wide.1).contains(n)
        };
        let mut numbers: Vec<i64> = [0, 1, wide.0, wide.1]
            .into_iter()
            .chain(bounds)
            .chain(view.integers.iter().copied())
            .flat_map(near)
            .collect();
        numbers.retain(fits);
        // The small ones first, and positive ones before negative ones.
        numbers.sort_by_key(|n| (n.unsigned_abs(), *n < 0));
        numbers.dedup();
        if view.integers.is_empty() && view.rivals == 0 {
            // Nothing looks at the value.
            numbers.truncate(1);
        }
        numbers.into_iter().map(Value::from).collect()
    }

    fn fractions(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        if schema.get("multipleOf").is_some() {
            self.miss("multipleOf");
        }
        let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
        let mut marks: Vec<f64> = view.fractions.clone();
        marks.extend(["minimum", "maximum"].into_iter().filter_map(limit));
        marks.push(0.0);
        marks.sort_by(f64::total_cmp);
        marks.dedup();
        let between = view.rivals.min(8) + 1;
        let mut numbers = marks.clone();
        #[allow(clippy::cast_precision_loss)] // Small counts.
        for step in 1..=between {
            numbers.extend(
                marks.windows(2).map(|pair| pair[0] + (pair[1] - pair[0]) * step as f64 / (between + 1) as f64),
            );
            numbers.extend(marks.first().map(|least| least - step as f64));
            numbers.extend(marks.last().map(|most| most + step as f64));
        }
        numbers.retain(|n| {
            limit("minimum").is_none_or(|min| *n > min || (*n >= min && !flag(schema, "exclusiveMinimum")))
                && limit("maximum").is_none_or(|max| *n < max || (*n <= max && !flag(schema, "exclusiveMaximum")))
        });
        numbers.sort_by(|a, b| a.abs().total_cmp(&b.abs()).then(b.total_cmp(a)));
        if view.fractions.is_empty() && view.rivals == 0 {
            numbers.truncate(1);
        }
        numbers.into_iter().map(Value::from).collect()
    }

    fn texts(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        let set = text_set(schema);
        let mut patterns: Vec<String> = view.patterns.iter().cloned().collect();
        for size in &view.sizes {
            // Below the size, at it, above it.
            patterns.push(format!(r"(?s)\A.{{{size},}}\z"));
            patterns.push(format!(r"(?s)\A.{{{},}}\z", size + 1));
        }
        let special = ["date", "date-time", "datetime", "duration", "byte"];
        if set.formats.iter().any(|format| special.contains(&format.as_str())) && !patterns.is_empty() {
            self.miss("a text that rules see as a time or as bytes");
        }
        let mut found = self.cells(&set, &patterns, view.rivals + 1);
        let guesses = self.texts.iter().filter(|text| !found.contains(text) && set.contains(text) == Ok(true));
        let guesses: Vec<String> = guesses.cloned().collect();
        found.extend(guesses);
        found.into_iter().map(Value::String).collect()
    }

    /// Members of each part of `set` that the patterns tell apart: `each` of them, or all there are.
    fn cells(&mut self, set: &StringSet, patterns: &[String], each: usize) -> Vec<String> {
        // A part is told by the patterns that it matches; the rest of them it does not match.
        let mut parts: Vec<Vec<bool>> = vec![Vec::new()];
        for _ in patterns {
            let mut split = Vec::with_capacity(parts.len() + 1);
            for part in parts {
                for matches in [false, true] {
                    let mut part = part.clone();
                    part.push(matches);
                    match self.member(set, patterns, &part, &[]) {
                        Ok(Some(_)) => split.push(part),
                        Ok(None) => {}
                        Err(why) => self.miss(why),
                    }
                }
            }
            if split.len() > CELLS {
                self.miss("too many kinds of text");
                split.truncate(CELLS);
            }
            parts = split;
        }
        let mut found: Vec<String> = Vec::new();
        for part in &parts {
            for _ in 0..each {
                let others: Vec<&str> = found.iter().map(String::as_str).collect();
                match self.member(set, patterns, part, &others) {
                    Ok(Some(text)) => found.push(text),
                    Ok(None) => break,
                    Err(why) => {
                        self.miss(why);
                        break;
                    }
                }
            }
        }
        found.sort_by_key(|text| text.chars().count());
        found
    }

    fn member(
        &mut self,
        set: &StringSet,
        patterns: &[String],
        matches: &[bool],
        others: &[&str],
    ) -> Result<Option<String>, String> {
        strings::member(set, patterns.iter().map(String::as_str).zip(matches.iter().copied()), others, self.budget)
    }

    fn objects(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        if view.keys.is_some() || view.items.is_some() {
            self.miss("an object that is looked at as a map");
        }
        let mut all = vec![Map::new()];
        for (name, view) in &view.fields {
            let Some(field) = properties.and_then(|properties| properties.get(name)) else { continue };
            let values = self.values(field, view);
            let absent = !required.contains(&name.as_str()) || field.get("default").is_some();
            let mut next = Vec::with_capacity(all.len() * (values.len() + 1));
            for object in &all {
                if absent {
                    next.push(object.clone());
                }
                for value in &values {
                    if next.len() >= MOST {
                        break;
                    }
                    let mut object = object.clone();
                    object.insert(name.clone(), value.clone());
                    next.push(object);
                }
            }
            if next.len() >= MOST {
                self.miss("too many combinations of values");
                thin(&mut next, MOST / 10);
            }
            all = next;
        }
        all.into_iter().map(Value::Object).collect()
    }

    fn lists(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        let (least, most) = self.lengths(view, bound(schema, "minItems"), bound(schema, "maxItems"));
        let nothing = View::default();
        let item_view = view.items.as_deref().unwrap_or(&nothing);
        let items = match schema.get("items") {
            Some(items) => self.values(items, item_view),
            None => Vec::new(),
        };
        self.selections(items.len(), least, most, false)
            .into_iter()
            .map(|chosen| Value::Array(chosen.into_iter().map(|index| items[index].clone()).collect()))
            .collect()
    }

    fn maps(&mut self, schema: &Value, of: &Value, view: &View) -> Vec<Value> {
        let (least, most) = self.lengths(view, bound(schema, "minProperties"), bound(schema, "maxProperties"));
        let nothing = View::default();
        let values = self.values(of, view.values.as_deref().unwrap_or(&nothing));
        let keys_view = view.keys.as_deref().unwrap_or(&nothing);
        let patterns: Vec<String> = keys_view
            .patterns
            .iter()
            .cloned()
            .chain(keys_view.sizes.iter().flat_map(|size| [*size, size + 1]).map(|n| format!(r"(?s)\A.{{{n},}}\z")))
            .collect();
        let mut keys = self.cells(&StringSet::default(), &patterns, most.max(1));
        keys.extend(self.texts.iter().filter(|text| !keys.contains(text)).cloned().collect::<Vec<_>>());
        let entries: Vec<(&String, &Value)> =
            keys.iter().flat_map(|key| values.iter().map(move |value| (key, value))).collect();
        let mut maps = Vec::new();
        for chosen in self.selections(entries.len(), least, most, true) {
            let map: Map<String, Value> =
                chosen.iter().map(|index| (entries[*index].0.clone(), entries[*index].1.clone())).collect();
            // Two values under one key are no map.
            if map.len() == chosen.len() {
                maps.push(Value::Object(map));
            }
        }
        maps
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

    /// Choices of `least` to `most` out of `count` things, the order without meaning; each at most once if `once`.
    fn selections(&mut self, count: usize, least: usize, most: usize, once: bool) -> Vec<Vec<usize>> {
        let mut all: Vec<Vec<usize>> = Vec::new();
        let mut layer: Vec<Vec<usize>> = vec![Vec::new()];
        for length in 0..=most {
            if length >= least {
                all.extend(layer.iter().cloned());
            }
            if length == most || all.len() > MOST {
                break;
            }
            let mut next = Vec::new();
            for chosen in &layer {
                let from = chosen.last().map_or(0, |last| last + usize::from(once));
                for index in from..count {
                    if next.len() >= MOST {
                        break;
                    }
                    next.push([&chosen[..], &[index]].concat());
                }
            }
            if next.len() >= MOST {
                self.miss("too many combinations of items");
                thin(&mut next, MOST / 10);
            }
            layer = next;
        }
        all
    }
}

/// Keeps `count` of the things, spread over all of them.
fn thin<T>(things: &mut Vec<T>, count: usize) {
    let every = things.len().div_ceil(count.max(1)).max(1);
    let mut index = 0;
    things.retain(|_| {
        index += 1;
        (index - 1) % every == 0
    });
}

/// The strings that a schema of a text takes.
pub fn text_set(schema: &Value) -> StringSet {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
    StringSet {
        patterns: text("pattern").into_iter().collect(),
        min_length: bound(schema, "minLength"),
        max_length: bound(schema, "maxLength"),
        enumeration: schema
            .get("enum")
            .and_then(Value::as_array)
            .map(|allowed| allowed.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        formats: text("format").into_iter().collect(),
    }
}

/// Adds what the schema demands of a value and nothing has given yet.
pub fn fill(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
            {
                let of = properties.and_then(|properties| properties.get(name));
                if let Some(of) = of.filter(|of| of.get("default").is_none())
                    && !map.contains_key(name)
                {
                    map.insert(name.to_owned(), simplest(of));
                }
            }
            for (name, value) in map.iter_mut() {
                let of = properties
                    .and_then(|properties| properties.get(name))
                    .or_else(|| schema.get("additionalProperties"));
                if let Some(of) = of {
                    fill(value, of);
                }
            }
        }
        Value::Array(items) => {
            if let Some(of) = schema.get("items") {
                items.iter_mut().for_each(|item| fill(item, of));
            }
        }
        _ => {}
    }
}

fn simplest(schema: &Value) -> Value {
    let mut budget = Budget::new(100_000);
    let nothing = BTreeSet::new();
    let mut maker = Maker { budget: &mut budget, texts: &nothing, missing: None };
    let mut value = maker.values(schema, &View::default()).into_iter().next().unwrap_or(Value::Null);
    if let (Value::Array(items), Some(least)) = (&value, bound(schema, "minItems"))
        && items.is_empty()
        && least > 0
    {
        let item = schema.get("items").map_or(Value::Null, simplest);
        value = Value::Array(vec![item; usize::try_from(least.min(ITEMS)).unwrap_or(0)]);
    }
    fill(&mut value, schema);
    value
}
