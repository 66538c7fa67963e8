//! What changes in the schema of a CRD, short: the same field in each of many places is one change, and a new field with all
//! that is below it is its first fields.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::page::Page;
use super::yaml::{self, Lead};
use super::{Line, LineKind};
use crate::text;

/// The most lines of a field that is new or gone; of a longer one only its fields are shown.
const MOST_LINES: usize = 10;
/// The most fields that are named of one that is new or gone.
const MOST_FIELDS: usize = 8;
/// A field is one line if its schema fits into so many bytes.
const ONE_LINE: usize = 100;
/// How deep in a schema its fields are.
const FIELDS_ONLY: usize = 2;
/// A longer description is cut off.
const LONGEST_DESCRIPTION: usize = 100;
/// Items of items of items are not looked into.
const DEEPEST: usize = 3;
/// How many of the other places of a change are named, and in how many bytes together.
const NAMED: usize = 3;
const NAMED_BYTES: usize = 120;

/// The changes that were shown, and where else they are.
#[derive(Debug, Default)]
pub struct Seen {
    /// The index of each in `shown`.
    known: HashMap<String, usize>,
    shown: Vec<Shown>,
    /// The change that is being shown.
    current: String,
}

#[derive(Debug)]
struct Shown {
    /// The number of lines on the page after the change.
    end: usize,
    depth: usize,
    others: usize,
    named: Vec<String>,
}

impl Seen {
    /// Whether a change was shown already, at another place. `what` is all that makes it the same change.
    pub fn is_again(&mut self, what: String, place: String) -> bool {
        let Some(shown) = self.known.get(&what).and_then(|index| self.shown.get_mut(*index)) else {
            self.current = what;
            return false;
        };
        shown.others += 1;
        if shown.named.len() < NAMED && shown.named.iter().map(String::len).sum::<usize>() + place.len() < NAMED_BYTES {
            shown.named.push(place);
        }
        true
    }

    /// The change that was asked about last is on the page now.
    pub fn shown(&mut self, depth: usize, page: &Page) {
        self.known.insert(std::mem::take(&mut self.current), self.shown.len());
        self.shown.push(Shown { end: page.len(), depth, others: 0, named: Vec::new() });
    }

    /// Adds after the lines of each change where else it is.
    pub fn tell(self, lines: &mut Vec<Line>) {
        // From the last to the first, so that the other indices stay valid.
        for Shown { end, depth, others, named } in self.shown.into_iter().rev().filter(|shown| shown.others > 0) {
            let mut places = named.join(", ");
            if named.len() < others {
                places.push_str(if named.is_empty() { "-v lists them" } else { ", …" });
            }
            let text = format!("{}# the same at {}: {places}", "  ".repeat(depth), text::count(others, "more place"));
            lines.insert(end.min(lines.len()), Line { is: LineKind::Note, text });
        }
    }
}

/// A field that is there on one side only: what it consists of on one line if that is short, else its lines or its fields, and
/// the first line of its description.
pub fn field(page: &mut Page, kind: LineKind, lead: Lead, path: &str, node: &Value) {
    let all = yaml::block(lead, Some(path), node).len();
    let description = match node.get("description") {
        Some(Value::String(text)) => format!("  # {}", first_line(text)),
        _ => String::new(),
    };
    let mut node = node.clone();
    without_descriptions(&mut node);
    if let Some(flow) = yaml::one_line(&node, ONE_LINE, usize::MAX) {
        let line = lead.line(&format!("{}: {flow}{description}", yaml::scalar(path)));
        return page.change_as_it_is(kind, vec![line]);
    }
    let mut lines = yaml::block(lead, Some(path), &node);
    if lines.len() > MOST_LINES {
        lines = match yaml::one_line(&node, ONE_LINE, FIELDS_ONLY) {
            Some(flow) => vec![lead.line(&format!("{}: {flow}", yaml::scalar(path)))],
            None => outline(lead, path, &node, 0),
        };
    }
    if let Some(first) = lines.first_mut() {
        first.push_str(&description);
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
    if cut == first && first.len() < text.trim().len() { format!("{first} …") } else { cut.into_owned() }
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
                let of_field = |(name, node): (&str, &Value)| {
                    let (kind, is_all) = kind_of(node);
                    let line = yaml::summary(inside.inside(), Some(name), &kind);
                    match line.strip_suffix('}').filter(|_| !is_all) {
                        Some(start) => format!("{start}, …}}"),
                        None => line,
                    }
                };
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

/// The type of a node and of its items, and whether that is all there is to it.
fn kind_of(node: &Value) -> (Value, bool) {
    const TELLING: [&str; 4] = ["type", "format", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];
    let Some(map) = node.as_object() else { return (node.clone(), true) };
    let mut kind: Map<String, Value> =
        TELLING.iter().filter_map(|key| Some(((*key).to_owned(), map.get(*key)?.clone()))).collect();
    if let Some(items) = map.get("items").and_then(|items| items.get("type")) {
        kind.insert("items".into(), Value::Object([("type".to_owned(), items.clone())].into_iter().collect()));
    }
    if kind.is_empty() {
        return (node.clone(), true);
    }
    let kind = Value::Object(kind);
    let is_all = kind == *node;
    (kind, is_all)
}
