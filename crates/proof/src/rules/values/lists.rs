//! Representative lists, including sets and lists of type `map`, which have no twins.

use serde_json::{Value, json};

use super::super::view::RuleView;
use super::{RepresentativeBuilder, bound};
use crate::keywords as kw;

/// The maximum length of lists whose items are checked for twins.
const DISTINCT: usize = 4;

/// What no two items of a set or of a list of type `map` may have in common.
enum Twins<'a> {
    /// The items themselves.
    Items,
    /// All of these fields.
    Fields(Vec<&'a str>),
}

impl<'a> Twins<'a> {
    /// `None` if twins are allowed.
    fn forbidden_in(list: &'a Value) -> Option<Self> {
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

    /// The view with enough values of each kind for lists of `most` items that are of the same kind but not twins.
    fn view_with_distinct_items(&self, items: &RuleView, most: usize) -> RuleView {
        let mut view = items.clone();
        let add_value = |view: &mut RuleView| view.compared_with = view.compared_with.max(most.saturating_sub(1));
        match self {
            Twins::Items => add_value(&mut view),
            Twins::Fields(keys) => {
                for key in keys {
                    add_value(view.fields.entry((*key).to_owned()).or_default());
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

impl RepresentativeBuilder<'_> {
    pub(super) fn lists(&mut self, schema: &Value, view: &RuleView) -> Vec<Value> {
        let (least, most) = self.lengths(view, bound(schema, "minItems"), bound(schema, "maxItems"));
        let nothing = RuleView::default();
        let item_view = view.items.as_deref().unwrap_or(&nothing);
        let mut items_of = |view: &RuleView| match schema.get("items") {
            Some(items) => self.values(items, view),
            None => Vec::new(),
        };
        let twins = Twins::forbidden_in(schema).filter(|_| (2..=DISTINCT).contains(&most));
        let apart = twins.as_ref().map(|twins| twins.view_with_distinct_items(item_view, most));
        let item_view = apart.as_ref().unwrap_or(item_view);
        let items = items_of(item_view);
        let is_list = |list: &Value| twins.as_ref().is_none_or(|twins| !twins.are_in(list));
        if view.is_paired && most == 2 {
            // Fields are compared with the same field of the other item, so the first item needs only the first value
            // of each kind.
            let first = items_of(&item_view.without_compared());
            let mut lists = self.pairs(&first, &items, least);
            lists.retain(is_list);
            return lists;
        }
        if view.is_paired {
            self.record_missing("comparisons between the items of long lists");
        }
        let once = matches!(twins, Some(Twins::Items));
        let chosen = self.selections(items.len(), least, most, once).into_iter();
        let lists =
            chosen.map(|chosen| Value::Array(chosen.into_iter().map(|index| items[index].clone()).collect::<Vec<_>>()));
        self.keep_what_fits(lists.filter(is_list))
    }

    /// All lists of up to two items.
    fn pairs(&mut self, first: &[Value], second: &[Value], least: usize) -> Vec<Value> {
        let mut lists = Vec::new();
        if least == 0 {
            lists.push(json!([]));
        }
        if least <= 1 {
            lists.extend(first.iter().map(|item| json!([item])));
        }
        if first.len().saturating_mul(second.len()) > self.most {
            self.record_missing("too many combinations of items");
        }
        // Twins first: most rules that compare items require them to differ.
        let twins = first.iter().map(|item| (item, item));
        let others = first.iter().flat_map(|one| second.iter().map(move |other| (one, other)));
        let both = twins.chain(others.take(self.most)).map(|(one, other)| json!([one, other]));
        lists.extend(self.keep_what_fits(both));
        lists
    }

    /// Selections of `least` to `most` out of `count` things, regardless of order; each at most once if `once`.
    pub(super) fn selections(&mut self, count: usize, least: usize, most: usize, once: bool) -> Vec<Vec<usize>> {
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
                self.record_missing("too many combinations of items");
                // Keep some of each: the same thing several times, and a sample of the others.
                if !once {
                    all.extend((0..count).map(|index| vec![index; most.max(2)]));
                }
                keep_evenly(&mut next, self.most / 10);
            }
            layer = next;
        }
        all
    }
}

/// Keeps about `count` of the things, evenly spread.
fn keep_evenly<T>(things: &mut Vec<T>, count: usize) {
    let every = things.len().div_ceil(count.max(1)).max(1);
    let mut index = 0;
    things.retain(|_| {
        index += 1;
        (index - 1) % every == 0
    });
}
