//! A short diff of the schema of a CRD: the same change in many places is shown once, and a large new field is shown
//! with its first fields only.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::page::Page;
use super::yaml::{self, Lead};
use super::{Line, LineKind};
use crate::text;

/// The maximum number of lines for an added or removed field. A longer one is shown as an outline.
const MOST_LINES: usize = 10;
/// The maximum number of fields in an outline.
const MOST_FIELDS: usize = 8;
/// The maximum length of a description in characters; a longer one is truncated.
const LONGEST_DESCRIPTION: usize = 100;
/// The maximum nesting of items in an outline.
const DEEPEST: usize = 3;
/// The maximum number of other places of a change that are named.
const NAMED: usize = 3;

/// The changes that were shown, and the other places where they occur.
#[derive(Debug, Default)]
pub struct Seen {
    /// The index of each in `shown`.
    known: HashMap<String, usize>,
    shown: Vec<Shown>,
}

#[derive(Debug)]
struct Shown {
    /// The number of lines on the page after the change was shown.
    end: usize,
    depth: usize,
    others: usize,
    named: Vec<String>,
}

impl Seen {
    /// Whether a change was already shown at another place; if so, records this place. `what` identifies the change.
    pub fn is_again(&mut self, what: &str, place: impl FnOnce() -> String) -> bool {
        let Some(shown) = self.known.get(what).and_then(|index| self.shown.get_mut(*index)) else { return false };
        shown.others += 1;
        if shown.named.len() < NAMED {
            shown.named.push(place());
        }
        true
    }

    /// Records a change that was just shown for the first time. Its lines must be the last ones on the page.
    pub fn shown(&mut self, what: String, depth: usize, page: &Page) {
        self.known.insert(what, self.shown.len());
        self.shown.push(Shown { end: page.len(), depth, others: 0, named: Vec::new() });
    }

    /// Adds a note with the other places after the lines of each change.
    pub fn add_notes(self, lines: &mut Vec<Line>) {
        // Insert from the last to the first, so the earlier positions stay valid.
        for Shown { end, depth, others, named } in self.shown.into_iter().rev().filter(|shown| shown.others > 0) {
            let named = text::cut(&named.join(", "), 120).into_owned();
            let more = if others > NAMED { ", …" } else { "" };
            let text =
                format!("{}# the same at {}: {named}{more}", "  ".repeat(depth), text::count(others, "more place"));
            lines.insert(end.min(lines.len()), Line { is: LineKind::Note, text });
        }
    }
}

/// Writes a field that exists on one side only: its lines or, if there are too many, an outline.
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

/// Removes the descriptions from a schema, but not a field named `description`, and nothing in a default.
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
    // Use three dots instead of '…', which would require quotes.
    match cut.strip_suffix('…').filter(|_| cut != first) {
        Some(start) => format!("{start}..."),
        None if first.len() < text.trim().len() => format!("{first} ..."),
        None => first.to_owned(),
    }
}

/// The keywords of a node and the types of its fields, without what is below the fields.
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

/// Only the type of a node and of its items.
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
