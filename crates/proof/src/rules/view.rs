//! The footprint of rules: for each place below a node, what about its value can affect them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What rules look at in the value of one place.
#[derive(Clone, Debug, Default)]
pub struct RuleView {
    pub fields: BTreeMap<String, RuleView>,
    pub items: Option<Box<RuleView>>,
    /// The keys of a map and its values.
    pub keys: Option<Box<RuleView>>,
    pub values: Option<Box<RuleView>>,
    /// How many items or entries are enough to decide every question about the list or map as a whole: an example for
    /// each `exists`, a counterexample for each `all`.
    pub kept: usize,
    /// How many of them are lookups of map entries by key, and the keys: one entry for each key is enough, regardless
    /// of the number of lookups.
    pub sought: usize,
    pub sought_keys: BTreeSet<String>,
    /// Whether the values of a map are looked at, and not only its keys.
    pub sees_values: bool,
    /// The sizes that the number of items, entries or characters is compared with.
    pub sizes: BTreeSet<u64>,
    /// Strings that the whole value is compared with.
    pub words: BTreeSet<String>,
    /// Patterns that distinguish strings.
    pub patterns: BTreeSet<String>,
    /// Numbers that the value is compared with.
    pub integers: BTreeSet<i64>,
    pub fractions: Vec<f64>,
    /// The number of other places that the value is compared with.
    pub compared_with: usize,
    /// For a list: two items decide, and fields of one are compared with the same fields of the other.
    pub is_paired: bool,
}

/// The maximum number of pairs of places that are compared with each other.
const PAIRS: usize = 64;

/// What one rule looks at.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    pub view: RuleView,
    /// What the rule looks at beyond the view. If empty, the rule cannot distinguish values that agree in the view.
    pub unsupported: BTreeSet<String>,
    /// String literals of the rule, for guesses if something is unsupported.
    pub texts: BTreeSet<String>,
    /// The names of the functions that the rule calls.
    pub functions: BTreeSet<String>,
    /// Whether every part of a list passes if the whole list does. If `is_paired`, that holds only if each item passes
    /// alone.
    pub is_hereditary: bool,
    /// Whether the rule compares the items of its list with each other.
    pub is_paired: bool,
    /// Places whose values are compared with each other.
    pub pairs: Vec<(Vec<ViewStep>, Vec<ViewStep>)>,
}

impl Footprint {
    /// Adds what another rule of the same node looks at.
    pub fn merge(&mut self, other: &Footprint) {
        self.view.merge(&other.view);
        self.unsupported.extend(other.unsupported.iter().cloned());
        self.texts.extend(other.texts.iter().cloned());
        self.pairs.extend(other.pairs.iter().cloned());
    }

    /// Gives places that are compared with each other the same bounds, and makes room for enough values of each kind to
    /// be equal and to differ.
    pub fn level(&mut self) {
        let mut pairs = std::mem::take(&mut self.pairs);
        if pairs.len() > PAIRS {
            self.unsupported.insert("too many comparisons between values".to_owned());
            pairs.truncate(PAIRS);
        }
        // Each round propagates the bounds across one more pair.
        for _ in 0..pairs.len() {
            for (left, right) in pairs.iter().flat_map(|(left, right)| [(left, right), (right, left)]) {
                let theirs = self.view.at(right).clone();
                let mine = self.view.at(left);
                // The same field of two items: each is compared with one other place.
                mine.compared_with = mine.compared_with.max(if left == right { 1 } else { pairs.len() });
                mine.words.extend(theirs.words);
                mine.patterns.extend(theirs.patterns);
                mine.sizes.extend(theirs.sizes);
                mine.integers.extend(theirs.integers);
                mine.fractions.extend(theirs.fractions);
                mine.fractions.sort_by(f64::total_cmp);
                mine.fractions.dedup();
            }
        }
        self.pairs = pairs;
    }
}

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ViewStep {
    Field(String),
    Item,
    /// The value of a map entry.
    Value,
    /// The key of a map entry.
    Name,
}

impl RuleView {
    /// Adds what another view looks at.
    pub fn merge(&mut self, other: &RuleView) {
        for (name, view) in &other.fields {
            self.fields.entry(name.clone()).or_default().merge(view);
        }
        for (mine, theirs) in
            [(&mut self.items, &other.items), (&mut self.keys, &other.keys), (&mut self.values, &other.values)]
        {
            if let Some(theirs) = theirs {
                mine.get_or_insert_default().merge(theirs);
            }
        }
        self.kept += other.kept;
        self.sought += other.sought;
        self.sought_keys.extend(other.sought_keys.iter().cloned());
        self.sees_values |= other.sees_values;
        self.is_paired |= other.is_paired;
        self.sizes.extend(&other.sizes);
        self.words.extend(other.words.iter().cloned());
        self.patterns.extend(other.patterns.iter().cloned());
        self.integers.extend(&other.integers);
        self.fractions.extend(&other.fractions);
    }

    /// The view without comparisons of places with each other.
    pub fn without_compared(&self) -> RuleView {
        let below = |view: &Option<Box<RuleView>>| view.as_ref().map(|view| Box::new(view.without_compared()));
        RuleView {
            fields: self.fields.iter().map(|(name, view)| (name.clone(), view.without_compared())).collect(),
            items: below(&self.items),
            keys: below(&self.keys),
            values: below(&self.values),
            compared_with: 0,
            ..self.clone()
        }
    }

    /// Whether this view distinguishes all values that the other one distinguishes.
    pub fn covers(&self, other: &RuleView) -> bool {
        let below = |mine: &Option<Box<RuleView>>, theirs: &Option<Box<RuleView>>| match (mine, theirs) {
            (_, None) => true,
            (Some(mine), Some(theirs)) => mine.covers(theirs),
            (None, Some(_)) => false,
        };
        other.fields.iter().all(|(name, theirs)| self.fields.get(name).is_some_and(|mine| mine.covers(theirs)))
            && below(&self.items, &other.items)
            && below(&self.keys, &other.keys)
            && below(&self.values, &other.values)
            && other.sizes.is_subset(&self.sizes)
            && other.words.is_subset(&self.words)
            && other.patterns.is_subset(&self.patterns)
            && other.integers.is_subset(&self.integers)
            && other.fractions.iter().all(|fraction| self.fractions.contains(fraction))
            && (self.is_paired || !other.is_paired)
            && (self.sees_values || !other.sees_values)
    }

    /// Whether the two views look at a common place below their root.
    pub fn meets(&self, other: &RuleView) -> bool {
        let below = |view: &RuleView| {
            view.fields.is_empty() && view.items.is_none() && view.values.is_none() && view.keys.is_none()
        };
        if below(self) || below(other) {
            return true;
        }
        let both =
            |a: &Option<Box<RuleView>>, b: &Option<Box<RuleView>>| matches!((a, b), (Some(a), Some(b)) if a.meets(b));
        self.fields.iter().any(|(name, view)| other.fields.get(name).is_some_and(|theirs| view.meets(theirs)))
            || both(&self.items, &other.items)
            || both(&self.keys, &other.keys)
            || both(&self.values, &other.values)
    }

    /// Adds a value that the place can have.
    pub fn add_value(&mut self, value: &Value) {
        match value {
            Value::String(text) => drop(self.words.insert(text.clone())),
            Value::Number(number) => {
                self.integers.extend(number.as_i64());
                self.fractions.extend(number.as_f64());
            }
            _ => {}
        }
    }

    pub fn at(&mut self, path: &[ViewStep]) -> &mut RuleView {
        let Some((first, rest)) = path.split_first() else { return self };
        let next = match first {
            ViewStep::Field(name) => self.fields.entry(name.clone()).or_default(),
            ViewStep::Item => self.items.get_or_insert_default(),
            ViewStep::Value => {
                self.keys.get_or_insert_default();
                self.sees_values = true;
                self.values.get_or_insert_default()
            }
            ViewStep::Name => {
                self.values.get_or_insert_default();
                self.keys.get_or_insert_default()
            }
        };
        next.at(rest)
    }
}
