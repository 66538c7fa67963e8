//! Representatives: for each kind of value that rules can tell apart, one value.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::view::View;
use crate::automaton::Budget;
use crate::facts::add_text;
use crate::keywords as kw;
use crate::strings::{self, StringSet};
use gantry_schema::{Schema, as_stored};

/// Kinds of text at one place at most.
const CELLS: usize = 48;
/// Items at most in lists that are made for a size.
pub(super) const ITEMS: u64 = 12;

/// Makes representatives.
pub struct Maker<'a> {
    pub budget: &'a mut Budget,
    /// Texts that the rules mention.
    pub texts: &'a BTreeSet<String>,
    /// Whether a view does not say all, so that these texts are worth a try.
    pub is_guessing: bool,
    /// Values of one place at most; of more combinations some are made, and then nothing is proven.
    pub most: usize,
    /// What all values may still weigh.
    room: u64,
    /// Why there may be values that no representative stands for.
    pub missing: Option<String>,
}

/// What all values of one question may weigh together.
const ROOM: u64 = 96 << 20;
/// Choices of fields at most, in all combinations together.
const CHOSEN: usize = 400_000;
/// Values of an `enum` that are compared with those of another one, at most.
const COMPARED: usize = 1_000_000;

/// Items of a list that has no twins are compared in lists of up to so many.
const DISTINCT: usize = 4;

/// What no two items of a list may have in common, since the list is a set or a map.
enum Twins<'a> {
    /// The items themselves.
    Items,
    /// All of these fields.
    Fields(Vec<&'a str>),
}

impl<'a> Twins<'a> {
    /// `None` where twins are allowed.
    fn of(list: &'a Value) -> Option<Self> {
        let items = kw::get(list, "items")?;
        match list.get("x-kubernetes-list-type").and_then(Value::as_str)? {
            "set" => {
                let is_scalar = matches!(kw::type_name(items), Some("string" | "integer" | "number" | "boolean"));
                (is_scalar && !kw::flag(items, "nullable")).then_some(Twins::Items)
            }
            "map" => {
                let keys: Vec<&str> = kw::names(list, "x-kubernetes-list-map-keys").collect();
                (!keys.is_empty()).then_some(Twins::Fields(keys))
            }
            _ => None,
        }
    }

    /// The view with enough values of each kind for lists of so many items that are alike and no twins.
    fn apart(&self, items: &View, most: usize) -> View {
        let mut view = items.clone();
        let tell = |view: &mut View| view.rivals = view.rivals.max(most.saturating_sub(1));
        match self {
            Twins::Items => tell(&mut view),
            Twins::Fields(keys) => {
                for key in keys {
                    tell(view.fields.entry((*key).to_owned()).or_default());
                }
            }
        }
        view
    }

    fn are_in(&self, list: &Value) -> bool {
        let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
        let are_twins = |a: &Value, b: &Value| match self {
            Twins::Items => a == b,
            Twins::Fields(keys) => keys.iter().all(|key| a.get(*key) == b.get(*key)),
        };
        items.iter().enumerate().any(|(at, a)| items[at + 1..].iter().any(|b| are_twins(a, b)))
    }
}

/// A number of items, properties or characters.
pub(super) fn bound(schema: &Value, keyword: &str) -> Option<u64> {
    kw::count(schema, keyword).and_then(|count| u64::try_from(count).ok())
}

impl<'t> Maker<'t> {
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

    /// Values that stand for all that `schema` takes, as far as `view` tells them apart, the simplest first.
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

    fn integers(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        if schema.get("multipleOf").is_some() {
            self.miss("multipleOf");
        }
        let reach = i64::try_from(view.rivals).unwrap_or(8).clamp(0, 8) + 1;
        let bounds = bounds(schema).into_iter().map(|bound| bound as i64);
        let near = |n: i64| (-reach..=reach).map(move |by| n.saturating_add(by));
        let wide = if schema.get("format") == Some(&json!("int32")) {
            (i64::from(i32::MIN), i64::from(i32::MAX))
        } else {
            (i64::MIN, i64::MAX)
        };
        let takes = self.takes(schema);
        let mut numbers: Vec<i64> = [0, 1, wide.0, wide.1]
            .into_iter()
            .chain(bounds)
            .chain(view.integers.iter().copied())
            .flat_map(near)
            .collect();
        numbers.retain(|n| takes(&json!(n)));
        // The small ones first, and positive ones before negative ones.
        numbers.sort_by_key(|n| (n.unsigned_abs(), *n < 0));
        numbers.dedup();
        if view.integers.is_empty() {
            // Nothing looks at the value itself; so many can differ.
            numbers.truncate(view.rivals + 1);
        }
        numbers.into_iter().map(Value::from).collect()
    }

    fn fractions(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        if schema.get("multipleOf").is_some() {
            self.miss("multipleOf");
        }
        let mut marks: Vec<f64> = view.fractions.clone();
        // For an integer a bound is cut to one.
        marks.extend(bounds(schema).into_iter().flat_map(|bound| [bound, bound.trunc()]));
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
        numbers.sort_by(|a, b| a.abs().total_cmp(&b.abs()).then(b.total_cmp(a)));
        numbers.dedup();
        let takes = self.takes(schema);
        let written = |n: &f64| {
            let mut integer = json!(n);
            as_stored(&mut integer);
            [json!(n), integer].into_iter().find(|value| takes(value))
        };
        let most = if view.fractions.is_empty() && view.rivals == 0 { 1 } else { usize::MAX };
        numbers.iter().filter_map(written).take(most).collect()
    }

    /// Whether the server takes a value without regard to rules; what cannot be asked may be taken.
    fn takes(&self, schema: &Value) -> impl Fn(&Value) -> bool + use<> {
        let schema = Schema::compile_structure(schema, &self.budget.patterns()).ok();
        move |value| schema.as_ref().is_none_or(|schema| schema.accepts_value(value) != Some(false))
    }

    fn texts(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        let set = text_set(schema);
        let mut patterns: Vec<String> = view.patterns.iter().cloned().collect();
        for size in &view.sizes {
            // Below the size, at it, above it.
            patterns.push(no_shorter(*size));
            patterns.push(no_shorter(size + 1));
        }
        let special = ["date", "date-time", "datetime", "duration", "byte"];
        if set.formats.iter().any(|format| special.contains(&format.as_str())) && !patterns.is_empty() {
            self.miss("a text that rules see as a time or as bytes");
        }
        let mut found = self.words(&set, view);
        found.extend(self.unreadable(schema, &set));
        found.extend(self.cells(&set, &patterns, view.rivals + 1, &found));
        if self.is_guessing {
            let patterns = self.budget.patterns();
            let is_new = |text: &&String| !found.contains(*text) && set.contains_by(text, &patterns) == Ok(true);
            let guesses = self.texts.iter().filter(is_new);
            let guesses: Vec<String> = guesses.cloned().collect();
            found.extend(guesses);
        }
        found.into_iter().map(Value::String).collect()
    }

    /// A text whose format the server accepts, and which it fails to read for a rule: it checks the format in one way and
    /// converts the text in another (`UnstructuredToVal` of apiextensions' `cel/values.go`). A rule that looks at it ends
    /// in an error.
    fn unreadable(&mut self, schema: &Value, set: &StringSet) -> Option<String> {
        let candidates: &[&str] = match kw::get(schema, "format").and_then(Value::as_str)? {
            // The letters in lower case, an offset of more than a day, something behind a second `t`.
            "date-time" => {
                &["2024-01-01t00:00:00Z", "2024-01-01T00:00:00z", "2024-01-01T00:00:00+99:00", "2024-01-01T00:00:00Ztt"]
            }
            // What the alphabet for URLs does not have.
            "byte" => &["++++", "////", "A+==", "A/=="],
            _ => return None,
        };
        let patterns = self.budget.patterns();
        let found = candidates.iter().find(|text| set.contains_by(text, &patterns) == Ok(true));
        if found.is_none() {
            self.miss("a text that rules cannot read, though it has its format");
        }
        found.map(|text| (*text).to_owned())
    }

    /// The texts that values are compared with as a whole, as far as the set has them.
    fn words(&mut self, set: &StringSet, view: &View) -> Vec<String> {
        let mut found = Vec::new();
        let patterns = self.budget.patterns();
        for word in &view.words {
            match set.contains_by(word, &patterns) {
                Ok(true) => found.push(word.clone()),
                Ok(false) => {}
                Err(why) => self.miss(why),
            }
        }
        found
    }

    /// Members of each part of `set` that the patterns tell apart, and that are none of `but`: `each` of them, or all
    /// there are.
    fn cells(&mut self, set: &StringSet, patterns: &[String], each: usize, but: &[String]) -> Vec<String> {
        // A part is told by the patterns that it matches; the rest of them it does not match.
        let mut parts: Vec<(Vec<bool>, String)> = match self.member(set, patterns, &[], but) {
            Ok(Some(text)) => vec![(Vec::new(), text)],
            Ok(None) => return Vec::new(),
            Err(why) => {
                self.miss(why);
                return Vec::new();
            }
        };
        // What the rules mention, alone and with something around it, spares most searches.
        let around = |text: &String| [text.clone(), format!("a{text}"), format!("{text}a"), format!("a.{text}/a")];
        let shared = self.budget.patterns();
        let pool = self.texts.iter().take(64).flat_map(around).filter(|text| !but.contains(text));
        let mut pool: Vec<(String, Vec<bool>)> = match patterns.len() {
            0 => Vec::new(),
            _ => {
                pool.filter(|text| set.contains_by(text, &shared) == Ok(true)).map(|text| (text, Vec::new())).collect()
            }
        };
        for pattern in patterns {
            let one = StringSet { patterns: vec![pattern.clone()], ..StringSet::default() };
            pool.retain_mut(|(text, part)| one.contains_by(text, &shared).map(|matches| part.push(matches)).is_ok());
            let mut split = Vec::with_capacity(parts.len() + 1);
            for (part, text) in parts {
                // The text that is known is on one side.
                let side = one.contains_by(&text, &shared);
                for matches in [false, true] {
                    let mut part = part.clone();
                    part.push(matches);
                    if side == Ok(matches) {
                        split.push((part, text.clone()));
                        continue;
                    }
                    if let Some((text, _)) = pool.iter().find(|(_, known)| *known == part) {
                        split.push((part, text.clone()));
                        continue;
                    }
                    match self.member(set, patterns, &part, but) {
                        Ok(Some(text)) => split.push((part, text)),
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
        for (part, text) in parts {
            found.push(text);
            for _ in 1..each {
                let others: Vec<String> = but.iter().chain(&found).cloned().collect();
                match self.member(set, patterns, &part, &others) {
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
        others: &[String],
    ) -> Result<Option<String>, String> {
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        strings::member(set, patterns.iter().map(String::as_str).zip(matches.iter().copied()), &others, self.budget)
    }

    fn objects(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        if view.keys.is_some() || view.items.is_some() {
            self.miss("an object that is looked at as a map");
        }
        // For each field that is looked at: absence, or one of its values.
        let mut choices: Vec<(&String, Vec<Option<Value>>)> = Vec::new();
        for (name, view) in &view.fields {
            let Some(field) = properties.and_then(|properties| properties.get(name)) else { continue };
            let is_given = required.contains(&name.as_str()) && field.get("default").is_none();
            let mut options: Vec<Option<Value>> = if is_given { Vec::new() } else { vec![None] };
            options.extend(self.values(field, view).into_iter().map(Some));
            choices.push((name, options));
        }
        let counts: Vec<usize> = choices.iter().map(|(_, options)| options.len()).collect();
        let made = |chosen: Vec<usize>| {
            let fields = choices.iter().zip(chosen);
            Value::Object(fields.filter_map(|((name, all), at)| Some(((*name).clone(), all[at].clone()?))).collect())
        };
        // An object with very many fields has fewer combinations of them made.
        let chosen = combinations(&counts, self.most.min(CHOSEN / counts.len().max(1)));
        if chosen.len() < counts.iter().fold(1, |all, count| all.saturating_mul(*count)) {
            self.miss("too many combinations of values");
        }
        self.kept(chosen.into_iter().map(made))
    }

    fn lists(&mut self, schema: &Value, view: &View) -> Vec<Value> {
        let (least, most) = self.lengths(view, bound(schema, "minItems"), bound(schema, "maxItems"));
        let nothing = View::default();
        let item_view = view.items.as_deref().unwrap_or(&nothing);
        let mut items_of = |view: &View| match schema.get("items") {
            Some(items) => self.values(items, view),
            None => Vec::new(),
        };
        let twins = Twins::of(schema).filter(|_| (2..=DISTINCT).contains(&most));
        let apart = twins.as_ref().map(|twins| twins.apart(item_view, most));
        let item_view = apart.as_ref().unwrap_or(item_view);
        let items = items_of(item_view);
        let is_list = |list: &Value| twins.as_ref().is_none_or(|twins| !twins.are_in(list));
        if view.is_paired && most == 2 {
            // Fields are compared with the same field of the other item: the first item may have the first of each kind.
            let first = items_of(&item_view.without_rivals());
            let mut lists = self.pairs(&first, &items, least);
            lists.retain(is_list);
            return lists;
        }
        if view.is_paired {
            self.miss("items that are compared with each other in long lists");
        }
        let once = matches!(twins, Some(Twins::Items));
        let chosen = self.selections(items.len(), least, most, once).into_iter();
        let lists =
            chosen.map(|chosen| Value::Array(chosen.into_iter().map(|index| items[index].clone()).collect::<Vec<_>>()));
        self.kept(lists.filter(is_list))
    }

    /// Lists of up to two items.
    fn pairs(&mut self, first: &[Value], second: &[Value], least: usize) -> Vec<Value> {
        let mut lists = Vec::new();
        if least == 0 {
            lists.push(json!([]));
        }
        if least <= 1 {
            lists.extend(first.iter().map(|item| json!([item])));
        }
        if first.len().saturating_mul(second.len()) > self.most {
            self.miss("too many combinations of items");
        }
        // Twins first: what compares items mostly wants them to differ.
        let twins = first.iter().map(|item| (item, item));
        let others = first.iter().flat_map(|one| second.iter().map(move |other| (one, other)));
        let both = twins.chain(others.take(self.most)).map(|(one, other)| json!([one, other]));
        lists.extend(self.kept(both));
        lists
    }

    fn maps(&mut self, schema: &Value, of: &Value, view: &View) -> Vec<Value> {
        let nothing = View::default();
        let keys_view = view.keys.as_deref().unwrap_or(&nothing);
        // Of the keys that are looked for one each will do; the rest are examples for macros, which may have other keys.
        let asked = view.kept.saturating_sub(view.sought);
        let counted = View { kept: asked + view.sought_keys.len(), sizes: view.sizes.clone(), ..View::default() };
        let (least, most) = self.lengths(&counted, bound(schema, "minProperties"), bound(schema, "maxProperties"));
        let mut values = self.values(of, view.values.as_deref().unwrap_or(&nothing));
        if !view.sees_values {
            values.truncate(1);
        }
        let others = if view.sizes.is_empty() { asked.max(least) } else { most.max(1) };
        let lengths = keys_view.sizes.iter().flat_map(|size| [*size, size + 1]);
        let patterns = keys_view.patterns.iter().cloned().chain(lengths.map(no_shorter));
        let patterns: Vec<String> = patterns.collect();
        let any = StringSet::default();
        let mut keys = self.words(&any, keys_view);
        if others > 0 {
            keys.extend(self.cells(&any, &patterns, others, &keys));
        }
        if self.is_guessing {
            keys.extend(self.texts.iter().filter(|text| !keys.contains(text)).cloned().collect::<Vec<_>>());
        }
        let entries: Vec<(&String, &Value)> =
            keys.iter().flat_map(|key| values.iter().map(move |value| (key, value))).collect();
        let chosen = self.selections(entries.len(), least, most, true).into_iter();
        let maps = chosen.filter_map(|chosen| {
            let map: Map<String, Value> =
                chosen.iter().map(|index| (entries[*index].0.clone(), entries[*index].1.clone())).collect();
            // Two values under one key are no map.
            (map.len() == chosen.len()).then_some(Value::Object(map))
        });
        self.kept(maps)
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
            if length == most {
                break;
            }
            let mut next = Vec::new();
            for chosen in &layer {
                let from = chosen.last().map_or(0, |last| last + usize::from(once));
                let left = self.most.saturating_sub(next.len());
                next.extend((from..count).take(left).map(|index| [&chosen[..], &[index]].concat()));
            }
            if next.len() >= self.most {
                self.miss("too many combinations of items");
                // Some of each: the same thing several times, and otherwise few of the many.
                if !once {
                    all.extend((0..count).map(|index| vec![index; most.max(2)]));
                }
                thin(&mut next, self.most / 10);
            }
            layer = next;
        }
        all
    }
}

/// Ways to choose one of each of so many options, by index: all of them, or where these are more than `most` those in
/// which one or two are not the first, as many as there may be.
fn combinations(counts: &[usize], most: usize) -> Vec<Vec<usize>> {
    if counts.contains(&0) {
        return Vec::new();
    }
    if counts.iter().fold(1, |all: usize, count| all.saturating_mul(*count)) <= most {
        let mut all = vec![Vec::with_capacity(counts.len())];
        for count in counts {
            all = all.iter().flat_map(|chosen| (0..*count).map(|at| [&chosen[..], &[at]].concat())).collect();
        }
        return all;
    }
    let first = vec![0; counts.len()];
    let with = |chosen: &[usize], place: usize, at: usize| {
        let mut chosen = chosen.to_vec();
        chosen[place] = at;
        chosen
    };
    let places = || (0..counts.len()).flat_map(|place| (1..counts[place]).map(move |at| (place, at)));
    let singles = places().map(|(place, at)| with(&first, place, at));
    let pairs = places().flat_map(|(place, at)| {
        places().filter(move |(other, _)| *other > place).map(move |(other, with_at)| (place, at, other, with_at))
    });
    let pairs = pairs.map(|(place, at, other, with_at)| with(&with(&first, place, at), other, with_at));
    [first.clone()].into_iter().chain(singles).chain(pairs).take(most).collect()
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
    let mut set = StringSet::default();
    parts(schema).into_iter().for_each(|part| add_text(part, &mut set));
    if let Some(allowed) = allowed(schema) {
        set.enumeration = Some(allowed.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    }
    set
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

/// The bounds of a number, those below `allOf` among them.
fn bounds(schema: &Value) -> Vec<f64> {
    let of = |part| ["minimum", "maximum"].map(|key| kw::get(part, key).and_then(Value::as_f64));
    parts(schema).into_iter().flat_map(of).flatten().collect()
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

/// A pattern of texts of that length or more. Nothing may be repeated more than a thousand times at once; what would be
/// repeated too often for any machine is left to be found too large.
fn no_shorter(length: u64) -> String {
    const ONCE: u64 = 1_000;
    let (times, rest) = match length {
        0..=1_000_000 => (length / ONCE, length % ONCE),
        _ => (0, length),
    };
    let many = format!(".{{{ONCE}}}").repeat(usize::try_from(times).unwrap_or_default());
    format!(r"(?s)\A{many}.{{{rest},}}\z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_schema::re2;

    #[test]
    fn a_length_of_thousands_is_still_one() {
        for length in [0, 1, 999, 1_000, 1_001, 2_500] {
            let pattern = re2::compile(&no_shorter(length)).expect("a pattern");
            let text = |length: u64| "é".repeat(length as usize);
            assert!(pattern.is_match(&text(length)), "{length}");
            assert!(length == 0 || !pattern.is_match(&text(length - 1)), "{length}");
        }
    }
}
