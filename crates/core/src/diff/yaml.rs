//! Values as block YAML in the style of `kubectl`: list items are not indented, and multi-line texts are block scalars.

use serde_json::{Map, Value};

use crate::text;
use gantry_yaml::write;

/// The approximate maximum length of the line for an unchanged value.
const SHORT: usize = 60;
/// An added or removed list item is written on one line if that has at most this many bytes.
const WIDE: usize = 230;

/// The start of a line: its depth, and the number of list dashes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lead {
    pub depth: usize,
    pub dashes: usize,
}

impl Lead {
    pub fn line(self, text: &str) -> String {
        format!("{}{}{text}", "  ".repeat(self.depth.saturating_sub(self.dashes)), "- ".repeat(self.dashes))
    }

    /// For the lines after the one with the dashes.
    pub fn without_dashes(self) -> Self {
        Lead { dashes: 0, ..self }
    }

    /// For the members of a map.
    pub fn for_members(self) -> Self {
        Lead { depth: self.depth + 1, dashes: 0 }
    }
}

/// The lines of a map member, or of a list item (without a key).
pub fn block(lead: Lead, key: Option<&str>, value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    push(&mut out, lead, key, value);
    out
}

fn push(out: &mut Vec<String>, lead: Lead, key: Option<&str>, value: &Value) {
    let key_text = key.map(|key| format!("{}:", scalar(key)));
    match (value, key_text) {
        (Value::Object(map), None) if !map.is_empty() => {
            let mut lead = lead;
            for (key, value) in ordered(map) {
                push(out, lead, Some(key), value);
                lead = lead.without_dashes();
            }
        }
        (Value::Array(items), None) if !items.is_empty() => {
            let mut lead = Lead { depth: lead.depth + 1, dashes: lead.dashes + 1 };
            for item in items {
                push(out, lead, None, item);
                lead = Lead { dashes: 1, ..lead };
            }
        }
        (Value::Object(map), Some(key)) if !map.is_empty() => {
            out.push(lead.line(&key));
            ordered(map).into_iter().for_each(|(key, value)| push(out, lead.for_members(), Some(key), value));
        }
        (Value::Array(items), Some(key)) if !items.is_empty() => {
            out.push(lead.line(&key));
            let lead = Lead { depth: lead.depth + 1, dashes: 1 };
            items.iter().for_each(|item| push(out, lead, None, item));
        }
        (Value::String(text), key) if text.contains('\n') => {
            out.push(lead.line(&with_key(key, block_mark(text))));
            out.extend(text.lines().map(|line| lead.for_members().line(line)));
        }
        (value, key) => out.push(lead.line(&with_key(key, &shorten(value, usize::MAX)))),
    }
}

/// `key: value`
pub fn with_key(key: Option<String>, value: &str) -> String {
    key.map_or_else(|| value.to_owned(), |key| format!("{key} {value}"))
}

/// The header of a block scalar, which defines whether trailing line breaks belong to the text.
pub fn block_mark(text: &str) -> &'static str {
    match (text.ends_with('\n'), text.ends_with("\n\n")) {
        (_, true) => "|+",
        (true, _) => "|",
        _ => "|-",
    }
}

/// The lines of an added or removed list item: one line if it fits, leaving out deeply nested values if necessary.
pub fn item(lead: Lead, value: &Value) -> Vec<String> {
    if !value.is_object() && !value.is_array() {
        return block(lead, None, value);
    }
    let one_line = [usize::MAX, 3, 2].into_iter().find_map(|deepest| one_line(value, WIDE, deepest));
    one_line.map_or_else(|| block(lead, None, value), |flow| vec![lead.line(&flow)])
}

/// The value in flow style, if it has at most `max` bytes. Values nested deeper than `deepest` are replaced by a mark.
pub fn one_line(value: &Value, max: usize, deepest: usize) -> Option<String> {
    let mut flow = String::new();
    push_flow(&mut flow, value, max, deepest);
    (flow.len() <= max && !flow.contains('\n')).then_some(flow)
}

/// One line that represents a whole value.
pub fn summary(lead: Lead, key: Option<&str>, value: &Value) -> String {
    let value = match value {
        Value::Object(map) if key.is_none() && map.len() > 1 && shorten(value, SHORT).len() > SHORT => {
            // The name identifies the item.
            let name = map.get("name").and_then(Value::as_str).filter(|name| name.len() <= SHORT);
            let name = name.map(|name| format!("name: {}, ", in_flow(name))).unwrap_or_default();
            format!("{{{name}…}} # {}", text::count(map.len(), "field"))
        }
        Value::Object(map) if !map.is_empty() && shorten(value, SHORT).len() > SHORT => {
            format!("{{…}} # {}", text::count(map.len(), "field"))
        }
        Value::Array(items) if !items.is_empty() && shorten(value, SHORT).len() > SHORT => {
            format!("[…] # {}", text::count(items.len(), "item"))
        }
        Value::String(text) if text.contains('\n') => {
            format!("{} # {}", block_mark(text), text::count(text.lines().count(), "line"))
        }
        value => shorten(value, usize::MAX),
    };
    lead.line(&with_key(key.map(|key| format!("{}:", scalar(key))), &value))
}

/// Flow YAML; ends soon after `max` bytes.
fn shorten(value: &Value, max: usize) -> String {
    let mut out = String::new();
    push_flow(&mut out, value, max, usize::MAX);
    out
}

/// Appends flow style. Values nested deeper than `deepest` are replaced by a mark.
fn push_flow(out: &mut String, value: &Value, max: usize, deepest: usize) {
    if out.len() > max {
        return;
    }
    match value {
        Value::Object(map) if deepest == 0 && !map.is_empty() => out.push_str("{…}"),
        Value::Array(items) if deepest == 0 && !items.is_empty() => out.push_str("[…]"),
        Value::Object(map) => {
            out.push('{');
            for (index, (key, value)) in ordered(map).into_iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                out.push_str(&in_flow(key));
                out.push_str(": ");
                push_flow(out, value, max, deepest - 1);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, value) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                push_flow(out, value, max, deepest - 1);
            }
            out.push(']');
        }
        // A top-level value is not in a flow collection.
        Value::String(text) if out.is_empty() => out.push_str(&scalar(text)),
        Value::String(text) => out.push_str(&in_flow(text)),
        value => out.push_str(&value.to_string()),
    }
}

/// The members in a fixed order, which does not depend on the writer of the object: those that identify it come first.
pub fn ordered(map: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut members: Vec<(&str, &Value)> = map.iter().map(|(key, value)| (key.as_str(), value)).collect();
    members.sort_by_key(|(key, _)| order(key));
    members
}

/// The sort key of a map member.
pub fn order(key: &str) -> (usize, &str) {
    const FIRST: [&str; 4] = ["apiVersion", "kind", "metadata", "name"];
    (FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len()), key)
}

/// A string, quoted if some parser would not read it as a string.
pub fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { text::yaml_quoted(text.chars()) }
}

fn in_flow(text: &str) -> String {
    let ends = |c: char| matches!(c, ',' | '[' | ']' | '{' | '}');
    if is_plain(text) && !text.contains(ends) { text.to_owned() } else { text::yaml_quoted(text.chars()) }
}

fn is_plain(text: &str) -> bool {
    write::is_plain(text, |c| {
        c.is_alphanumeric() && !text::is_hostile(c) || " _./-:,=@+()%;!?'*<>$~|[]{}\"\\&".contains(c)
    })
}
