//! Representative objects and maps.

use serde_json::{Map, Value};

use super::super::view::RuleView;
use super::texts::no_shorter;
use super::{RepresentativeBuilder, bound};
use crate::strings::StringSet;

/// The maximum number of field choices in all combinations together.
const CHOSEN: usize = 400_000;

impl RepresentativeBuilder<'_> {
    pub(super) fn objects(&mut self, schema: &Value, view: &RuleView) -> Vec<Value> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        if view.keys.is_some() || view.items.is_some() {
            self.record_missing("an object that a rule uses as a map");
        }
        // For each field in the view: absent, or one of its values.
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
        // The more fields an object has, the fewer combinations are built.
        let chosen = combinations(&counts, self.most.min(CHOSEN / counts.len().max(1)));
        if chosen.len() < counts.iter().fold(1, |all, count| all.saturating_mul(*count)) {
            self.record_missing("too many combinations of values");
        }
        self.keep_what_fits(chosen.into_iter().map(made))
    }

    pub(super) fn maps(&mut self, schema: &Value, of: &Value, view: &RuleView) -> Vec<Value> {
        let nothing = RuleView::default();
        let keys_view = view.keys.as_deref().unwrap_or(&nothing);
        // One entry is enough for each key that is looked up; the rest are examples for macros and can have other keys.
        let asked = view.kept.saturating_sub(view.sought);
        let counted =
            RuleView { kept: asked + view.sought_keys.len(), sizes: view.sizes.clone(), ..RuleView::default() };
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
            // A map cannot have two values under one key.
            (map.len() == chosen.len()).then_some(Value::Object(map))
        });
        self.keep_what_fits(maps)
    }
}

/// Combinations of one option each, by index: all of them, or if there are more than `most`, the first `most` of those
/// in which at most two options are not the first.
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
