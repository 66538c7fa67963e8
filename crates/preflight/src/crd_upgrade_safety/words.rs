//! Values in messages: short enough to read, and in the notation of the documented texts.

use super::json::Json;

/// The maximum number of characters shown of a value.
const SHOWN: usize = 100;
/// The maximum number of items shown of a list.
const LISTED: usize = 10;

/// A value as compact JSON, cut if it is long.
pub fn value(json: &Json) -> String {
    cut(&json.to_string())
}

pub fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `[a b]`, as the documented texts write a list.
pub fn bracketed<S: AsRef<str>>(items: &[S]) -> String {
    format!("[{}]", joined(items, " "))
}

/// `a, b`
pub fn listed<S: AsRef<str>>(items: &[S]) -> String {
    joined(items, ", ")
}

fn joined<S: AsRef<str>>(items: &[S], separator: &str) -> String {
    let mut shown: Vec<String> = items.iter().take(LISTED).map(|item| cut(item.as_ref())).collect();
    if items.len() > LISTED {
        shown.push(format!("… {} more", items.len() - LISTED));
    }
    shown.join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_between_characters() {
        assert_eq!(cut(&"ä".repeat(SHOWN)), "ä".repeat(SHOWN));
        assert_eq!(cut(&"ä".repeat(SHOWN + 1)), format!("{}…", "ä".repeat(SHOWN)));
        let items: Vec<String> = (0..12).map(|i| i.to_string()).collect();
        assert_eq!(bracketed(&items), "[0 1 2 3 4 5 6 7 8 9 … 2 more]");
        assert_eq!(bracketed(&["a", "b"]), "[a b]");
    }
}
