//! The warnings of an API server.

use std::sync::{Mutex, PoisonError};

/// The maximum number of warnings: a server that sends a different one for each of ten thousand objects is not worth
/// the memory.
const MAX_WARNINGS: usize = 1000;

/// Warnings without duplicates.
#[derive(Default)]
pub struct Warnings(Mutex<CollectedWarnings>);

#[derive(Default)]
struct CollectedWarnings {
    texts: Vec<String>,
    /// How many of them have been taken.
    taken: usize,
}

impl Warnings {
    /// Keeps a warning.
    pub fn add(&self, warning: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.texts.len() < MAX_WARNINGS && !kept.texts.contains(&warning) {
            kept.texts.push(warning);
        }
    }

    /// The warnings that have not been taken before.
    pub fn take(&self) -> Vec<String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = kept.texts[kept.taken..].to_vec();
        kept.taken = kept.texts.len();
        new
    }
}

/// The text of a `Warning` header: `299 - "v1 Endpoints is deprecated"`.
pub fn text(value: &str) -> Option<String> {
    let quoted = value.strip_prefix("299 ")?.split_once('"')?.1;
    let mut words = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return Some(words),
            '\\' => words.extend(characters.next()),
            character => words.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_unquoted() {
        assert_eq!(text(r#"299 - "say \"no\" \\ now""#).as_deref(), Some(r#"say "no" \ now"#));
        assert_eq!(text("299 - \"a\u{1b}[2J\" \"Sat\"").as_deref(), Some("a\u{1b}[2J"));
        assert_eq!(text("299 - unquoted"), None);
        assert_eq!(text("110 - \"stale\""), None);
        assert_eq!(text("299 - \"open"), None);
    }
}
