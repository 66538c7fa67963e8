//! A short diff of the schema of a CRD: the same change at many places is shown once, and of a large new field only the
//! first fields are shown.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::page::DiffPage;
use super::yaml::{self, Lead};
use super::{Line, LineKind};
use crate::text;

/// The maximum number of lines of an added or removed field. Of a longer one only its fields are shown.
const MOST_LINES: usize = 10;
/// The maximum number of fields shown of an added or removed field.
const MOST_FIELDS: usize = 8;
/// The maximum length in bytes of a schema that is shown on one line.
const ONE_LINE: usize = 100;
/// The maximum length of a description. A longer one is truncated.
const LONGEST_DESCRIPTION: usize = 100;
/// The maximum depth of nested items in an outline.
const DEEPEST: usize = 3;
/// The maximum number of other places of a change that are listed, and their maximum length together.
const NAMED: usize = 3;
const NAMED_BYTES: usize = 120;

/// The changes that were shown, and the other places with the same change.
#[derive(Debug, Default)]
pub struct ShownChanges {
    /// The index of each change in `shown`.
    known: HashMap<String, usize>,
    shown: Vec<ShownDefinitionChange>,
    /// The change that is currently shown.
    current: String,
}

#[derive(Debug)]
struct ShownDefinitionChange {
    /// The number of lines on the page after the change.
    end: usize,
    depth: usize,
    others: usize,
    named: Vec<String>,
}

impl ShownChanges {
    /// Whether the change was already shown at another place. Two changes with the same `what` are the same change.
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

    /// Records that the change last passed to [`ShownChanges::is_again`] is now on the page.
    pub fn record_shown(&mut self, depth: usize, page: &DiffPage) {
        self.known.insert(std::mem::take(&mut self.current), self.shown.len());
        self.shown.push(ShownDefinitionChange { end: page.len(), depth, others: 0, named: Vec::new() });
    }

    /// Adds a note with the other places after the lines of each change.
    pub fn add_notes(self, lines: &mut Vec<Line>) {
        // From the last to the first, so that the other indices stay valid.
        for ShownDefinitionChange { end, depth, others, named } in
            self.shown.into_iter().rev().filter(|shown| shown.others > 0)
        {
            let mut places = named.join(", ");
            if named.len() < others {
                places.push_str(if named.is_empty() { "-v lists them" } else { ", …" });
            }
            let text = format!("{}# the same at {}: {places}", "  ".repeat(depth), text::count(others, "more place"));
            lines.insert(end.min(lines.len()), Line { is: LineKind::Note, text });
        }
    }
}

/// A field that exists on one side only: its schema on one line if that is short, else its lines or an outline, and the
/// first line of its description.
pub fn write_field(page: &mut DiffPage, kind: LineKind, lead: Lead, path: &str, node: &Value) {
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
        lines = match yaml::one_line(&node, ONE_LINE, depth_of_fields(&node)) {
            Some(flow) => vec![lead.line(&format!("{}: {flow}", yaml::scalar(path)))],
            None => outline(lead, path, &node, 0),
        };
    }
    if let Some(first) = lines.first_mut() {
        first.push_str(&description);
    }
    if lines.len() < all {
        let more = text::count(all - lines.len(), "more line");
        lines.push(lead.for_members().line(&format!("# … {more}")));
    }
    page.change_as_it_is(kind, lines);
}

/// The depth at which the fields of a schema, or of its items, are.
fn depth_of_fields(node: &Value) -> usize {
    ["items", "additionalProperties"].iter().find_map(|key| node.get(key)).map_or(2, |node| 1 + depth_of_fields(node))
}

/// Removes the descriptions from a schema, but not a field named `description`, nor data in a default.
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

/// The keywords of a node and the types of its fields.
fn outline(lead: Lead, key: &str, node: &Value, depth: usize) -> Vec<String> {
    let Some(map) = node.as_object().filter(|map| depth < DEEPEST && !map.is_empty()) else {
        return vec![yaml::summary(lead, Some(key), node)];
    };
    let head = |lead: Lead, key: &str| lead.line(&format!("{}:", yaml::scalar(key)));
    let mut lines = vec![head(lead, key)];
    let inside = lead.for_members();
    for (key, value) in yaml::ordered(map) {
        match (key, value) {
            ("properties", Value::Object(fields)) if !fields.is_empty() => {
                lines.push(head(inside, key));
                let of_field = |(name, node): (&str, &Value)| {
                    let (kind, is_all) = kind_of(node);
                    let line = yaml::summary(inside.for_members(), Some(name), &kind);
                    match line.strip_suffix('}').filter(|_| !is_all) {
                        Some(start) => format!("{start}, …}}"),
                        None => line,
                    }
                };
                lines.extend(yaml::ordered(fields).into_iter().take(MOST_FIELDS).map(of_field));
                if fields.len() > MOST_FIELDS {
                    let more = text::count(fields.len() - MOST_FIELDS, "more field");
                    lines.push(inside.for_members().line(&format!("# … {more}")));
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

/// The type of a node and of its items, and whether the node has no other keywords.
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
