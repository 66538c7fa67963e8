//! What changes in the schema of a CRD, short: the same field in each of many places is one change, and a new field with all
//! that is below it is its first fields.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::page::Page;
use super::yaml::{self, Lead};
use super::{Line, LineKind};
use crate::text;

/// So many lines of a field that is new or gone are shown; of a longer one the fields.
const MOST_LINES: usize = 10;
/// So many fields of one that is new or gone are named.
const MOST_FIELDS: usize = 8;
/// A longer description is cut off.
const LONGEST_DESCRIPTION: usize = 100;
/// Items of items of items are no longer looked into.
const DEEPEST: usize = 3;
/// So many of the other places of a change are named.
const NAMED: usize = 3;

/// The changes that were shown, and where else they are.
#[derive(Debug, Default)]
pub struct Seen {
    /// The index of each in `shown`.
    known: HashMap<String, usize>,
    shown: Vec<Shown>,
}

#[derive(Debug)]
struct Shown {
    /// How many lines the page had behind it.
    end: usize,
    depth: usize,
    others: usize,
    named: Vec<String>,
}

impl Seen {
    /// Whether a change was shown already, at another place. `what` is all that makes it the same change.
    pub fn is_again(&mut self, what: &str, place: impl FnOnce() -> String) -> bool {
        let Some(shown) = self.known.get(what).and_then(|index| self.shown.get_mut(*index)) else { return false };
        shown.others += 1;
        if shown.named.len() < NAMED {
            shown.named.push(place());
        }
        true
    }

    /// A change was shown for the first time, and nothing but it since.
    pub fn shown(&mut self, what: String, depth: usize, page: &Page) {
        self.known.insert(what, self.shown.len());
        self.shown.push(Shown { end: page.len(), depth, others: 0, named: Vec::new() });
    }

    /// Says of each change where else it is, behind its lines.
    pub fn tell(self, lines: &mut Vec<Line>) {
        // From the last to the first, so that the places of the others stay what they are.
        for Shown { end, depth, others, named } in self.shown.into_iter().rev().filter(|shown| shown.others > 0) {
            let named = text::cut(&named.join(", "), 120).into_owned();
            let more = if others > NAMED { ", …" } else { "" };
            let text =
                format!("{}# the same at {}: {named}{more}", "  ".repeat(depth), text::count(others, "more place"));
            lines.insert(end.min(lines.len()), Line { is: LineKind::Note, text });
        }
    }
}

/// A field that is there on one side only, as lines: what describes it and what it consists of, as far as that is short.
pub fn field(page: &mut Page, kind: LineKind, lead: Lead, key: &str, node: &Value) {
    let all = yaml::block(lead, Some(key), node).len();
    let mut described = node.clone();
    without_descriptions(&mut described);
    if let (Some(Value::String(text)), Some(map)) = (node.get("description"), described.as_object_mut()) {
        map.insert("description".into(), first_line(text).into());
    }
    let mut lines = yaml::block(lead, Some(key), &described);
    if lines.len() > MOST_LINES {
        lines = outline(lead, key, &described, 0);
    }
    if lines.len() < all {
        let more = text::count(all - lines.len(), "more line");
        lines.push(lead.inside().line(&format!("# … {more}")));
    }
    page.change_as_it_is(kind, lines);
}

/// Takes the descriptions out of a schema. A field that is called `description` is a field, and a default is data.
fn without_descriptions(node: &mut Value) {
    let Some(map) = node.as_object_mut() else { return };
    if map.get("description").is_some_and(Value::is_string) {
        map.shift_remove("description");
    }
    for (key, value) in map {
        match (key.as_str(), value) {
            ("properties" | "patternProperties" | "definitions", Value::Object(fields)) => {
                fields.values_mut().for_each(without_descriptions);
            }
            ("items" | "additionalProperties" | "not", value) => without_descriptions(value),
            ("allOf" | "anyOf" | "oneOf", Value::Array(nodes)) => nodes.iter_mut().for_each(without_descriptions),
            _ => {}
        }
    }
}

fn first_line(text: &str) -> String {
    let first = text.trim_start().lines().next().unwrap_or_default().trim_end();
    let cut = text::cut(first, LONGEST_DESCRIPTION);
    // Not the one character, which a text has to be quoted for.
    match cut.strip_suffix('…').filter(|_| cut != first) {
        Some(start) => format!("{start}..."),
        None if first.len() < text.trim().len() => format!("{first} ..."),
        None => first.to_owned(),
    }
}

/// What a node is and which fields it has, without what is in these.
fn outline(lead: Lead, key: &str, node: &Value, depth: usize) -> Vec<String> {
    let Some(map) = node.as_object().filter(|map| depth < DEEPEST && !map.is_empty()) else {
        return vec![yaml::summary(lead, Some(key), node)];
    };
    let head = |lead: Lead, key: &str| lead.line(&format!("{}:", yaml::scalar(key)));
    let mut lines = vec![head(lead, key)];
    let inside = lead.inside();
    for (key, value) in yaml::ordered(map) {
        match (key, value) {
            ("properties", Value::Object(fields)) if !fields.is_empty() => {
                lines.push(head(inside, key));
                let of_field =
                    |(name, node): (&str, &Value)| yaml::summary(inside.inside(), Some(name), &kind_of(node));
                lines.extend(yaml::ordered(fields).into_iter().take(MOST_FIELDS).map(of_field));
                if fields.len() > MOST_FIELDS {
                    let more = text::count(fields.len() - MOST_FIELDS, "more field");
                    lines.push(inside.inside().line(&format!("# … {more}")));
                }
            }
            ("items" | "additionalProperties", Value::Object(_)) => {
                lines.extend(outline(inside, key, value, depth + 1));
            }
            (key, value) => lines.push(yaml::summary(inside, Some(key), value)),
        }
    }
    lines
}

/// The type of a node alone, and of its items.
fn kind_of(node: &Value) -> Value {
    const TELLING: [&str; 4] = ["type", "format", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];
    let Some(map) = node.as_object() else { return node.clone() };
    let mut kind: Map<String, Value> =
        TELLING.iter().filter_map(|key| Some(((*key).to_owned(), map.get(*key)?.clone()))).collect();
    if let Some(items) = map.get("items").and_then(|items| items.get("type")) {
        kind.insert("items".into(), Value::Object([("type".to_owned(), items.clone())].into_iter().collect()));
    }
    if kind.is_empty() { node.clone() } else { Value::Object(kind) }
}
