//! Describes changes in words.

use serde_json::Value;

use crate::keywords as kw;

/// The changes of a node's own keywords, in words.
pub fn own_changes(differing: &[&str], a: &Value, b: &Value) -> Option<String> {
    let changed: Vec<String> = differing.iter().map(|keyword| changed_words(keyword, a, b)).collect();
    (!changed.is_empty()).then(|| changed.join("; "))
}

pub fn changed_words(keyword: &str, a: &Value, b: &Value) -> String {
    match (kw::get(a, keyword), kw::get(b, keyword)) {
        (None, Some(after)) => format!("{keyword}: {} added", shown_value(after)),
        (Some(before), None) => format!("{keyword}: {} removed", shown_value(before)),
        (Some(before), Some(after)) => format!("{keyword}: {} → {}", shown_value(before), shown_value(after)),
        (None, None) => keyword.to_owned(),
    }
}

pub fn kind_words(schema: &Value) -> String {
    let own = match kw::flag(schema, "x-kubernetes-int-or-string") {
        true => "int-or-string",
        false => kw::type_name(schema).unwrap_or("any"),
    };
    format!("{own}{}", if kw::flag(schema, "nullable") { " or null" } else { "" })
}

pub fn shown_value(value: &Value) -> String {
    shorten(&value.to_string())
}

/// Shortens text of a schema for use in a sentence.
pub fn shorten(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
