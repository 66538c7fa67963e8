//! Sets of strings: whether each string that one side allows is allowed by the other.

use crate::validation::{enforced_format_accepts, re2};

/// The strings that satisfy all of these conditions at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringSet {
    /// RE2 patterns, unanchored: each must occur.
    pub patterns: Vec<String>,
    /// In code points.
    pub min_length: Option<u64>,
    /// In code points.
    pub max_length: Option<u64>,
    /// Where present, the string must be one of these.
    pub enumeration: Option<Vec<String>>,
    /// Names of formats that the server enforces on strings; unknown names are ignored, as there.
    pub formats: Vec<String>,
}

/// The answer of [`subset`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subset {
    /// Every string of the first set is in the second.
    Yes,
    /// A string that is in the first set and not in the second, as short as could be found.
    No(String),
    /// Not decided, and why.
    Unknown(String),
}

impl StringSet {
    /// The set without members.
    pub fn empty() -> Self {
        Self { enumeration: Some(Vec::new()), ..Self::default() }
    }

    /// Whether `text` is a member; an error says why that is not known.
    pub fn contains(&self, text: &str) -> Result<bool, String> {
        let length = text.chars().count() as u64;
        if self.min_length.is_some_and(|min| length < min)
            || self.max_length.is_some_and(|max| length > max)
            || self.enumeration.as_ref().is_some_and(|allowed| !allowed.iter().any(|a| a == text))
            || self.formats.iter().any(|format| enforced_format_accepts(format, text) == Some(false))
        {
            return Ok(false);
        }
        for pattern in &self.patterns {
            let compiled = re2::compile(pattern).map_err(|reason| format!("the pattern {pattern}: {reason}"))?;
            if !compiled.is_match(text.as_bytes()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether every string of `live` is in `desired`.
pub fn subset(live: &StringSet, desired: &StringSet) -> Subset {
    let mut unknown = None;
    let differing = |text: &String| match (live.contains(text), desired.contains(text)) {
        (Ok(true), Ok(false)) => Ok(true),
        (Ok(false), _) | (_, Ok(true)) => Ok(false),
        (Err(reason), _) | (_, Err(reason)) => Err(reason),
    };
    let tried = candidates(live, desired);
    for text in &tried {
        match differing(text) {
            Ok(true) => return Subset::No(text.clone()),
            Ok(false) => {}
            Err(reason) => unknown = Some(reason),
        }
    }
    let longest = live.max_length;
    let is_empty = live.min_length.zip(longest).is_some_and(|(min, max)| min > max);
    let in_full = live.enumeration.is_some() && unknown.is_none();
    let implied = desired.patterns.iter().all(|pattern| live.patterns.contains(pattern))
        && desired.formats.iter().all(|format| live.formats.contains(format))
        && desired.min_length.is_none_or(|min| live.min_length.is_some_and(|known| known >= min) || min == 0)
        && desired.max_length.is_none_or(|max| longest.is_some_and(|known| known <= max))
        && desired.enumeration.is_none();
    if is_empty || in_full || implied {
        return Subset::Yes;
    }
    Subset::Unknown(unknown.unwrap_or_else(|| "patterns and formats that are not compared".to_owned()))
}

/// Texts on which the sets may differ.
fn candidates(live: &StringSet, desired: &StringSet) -> Vec<String> {
    if let Some(allowed) = &live.enumeration {
        return allowed.clone();
    }
    const TEXTS: [&str; 24] = [
        "",
        "a",
        "A",
        "0",
        "-",
        ".",
        "*",
        "/",
        " ",
        "é",
        "a-b",
        "a.b",
        "a/b",
        "1s",
        "1Gi",
        "10.0.0.1",
        "10.0.0.0/8",
        "::1",
        "a@b.c",
        "http://a",
        "2024-01-01",
        "2024-01-01T00:00:00Z",
        "YQ==",
        "123e4567-e89b-42d3-a456-426614174000",
    ];
    let mut texts: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
    texts.extend(desired.enumeration.iter().flatten().cloned());
    let lengths = [live.min_length, live.max_length, desired.min_length, desired.max_length];
    for length in lengths.into_iter().flatten().filter(|length| *length < 5000) {
        for length in [length.saturating_sub(1), length, length + 1] {
            texts.extend(["a", "0"].map(|c| c.repeat(length as usize)));
        }
    }
    texts.sort_by_key(|text| text.len());
    texts.dedup();
    texts
}
