//! Representative strings: one for each combination of patterns that a string can match.

use serde_json::Value;

use super::super::view::RuleView;
use super::{RepresentativeBuilder, allowed, schema_and_all_of};
use crate::constraints::add_text;
use crate::strings::{self, StringSet};

/// The maximum number of kinds of strings at one place.
const CELLS: usize = 48;

impl RepresentativeBuilder<'_> {
    pub(super) fn texts(&mut self, schema: &Value, view: &RuleView) -> Vec<Value> {
        let set = text_set(schema);
        let mut patterns: Vec<String> = view.patterns.iter().cloned().collect();
        for size in &view.sizes {
            // Shorter, of this size, longer.
            patterns.push(no_shorter(*size));
            patterns.push(no_shorter(size + 1));
        }
        let special = ["date", "date-time", "datetime", "duration", "byte"];
        if set.formats.iter().any(|format| special.contains(&format.as_str())) && !patterns.is_empty() {
            self.record_missing("a string that rules see as a time or as bytes");
        }
        let mut found = self.words(&set, view);
        found.extend(self.unreadable(&set));
        found.extend(self.spellings(&set));
        found.extend(self.cells(&set, &patterns, view.compared_with + 1, &found));
        if self.is_guessing {
            let patterns = self.budget.patterns();
            let is_new = |text: &&String| !found.contains(*text) && set.contains_by(text, &patterns) == Ok(true);
            let guesses = self.texts.iter().filter(is_new);
            let guesses: Vec<String> = guesses.cloned().collect();
            found.extend(guesses);
        }
        found.into_iter().map(Value::String).collect()
    }

    /// A string whose format the server accepts but which it cannot convert for a rule: validation and conversion
    /// (`UnstructuredToVal` in apiextensions' `cel/values.go`) use different parsers. A rule that looks at such a
    /// string ends in an error.
    ///
    /// Only one spelling of a format makes a time or bytes of a string for rules, but a string of another spelling may
    /// be compared with a schema that has that one.
    fn unreadable(&mut self, set: &StringSet) -> Option<String> {
        let candidates: &[&str] = match typed_format(set)? {
            // Lower-case letters, an offset of more than a day, text after a second `t`.
            TypedFormat::DateTime => {
                &["2024-01-01t00:00:00Z", "2024-01-01T00:00:00z", "2024-01-01T00:00:00+99:00", "2024-01-01T00:00:00Ztt"]
            }
            // Characters that the URL-safe alphabet lacks.
            TypedFormat::Byte => &["++++", "////", "A+==", "A/=="],
            TypedFormat::Duration => return None,
        };
        let patterns = self.budget.patterns();
        let found = candidates.iter().find(|text| set.contains_by(text, &patterns) == Ok(true));
        if found.is_none() {
            self.record_missing("a string that rules cannot read although it has its format");
        }
        found.map(|text| (*text).to_owned())
    }

    /// Two strings that are one value to a rule which sees them as a time or as bytes, and two as text.
    fn spellings(&self, set: &StringSet) -> Vec<String> {
        let same: &[&str] = match typed_format(set) {
            Some(TypedFormat::DateTime) => &["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.0Z"],
            Some(TypedFormat::Duration) => &["1h", "60m"],
            Some(TypedFormat::Byte) => &["QQ==", "QR=="],
            None => &[],
        };
        let patterns = self.budget.patterns();
        let is_member = |text: &&&str| set.contains_by(text, &patterns) == Ok(true);
        same.iter().filter(is_member).map(|text| (*text).to_owned()).collect()
    }

    /// The members of the set among the strings that whole values are compared with.
    pub(super) fn words(&mut self, set: &StringSet, view: &RuleView) -> Vec<String> {
        let mut found = Vec::new();
        let patterns = self.budget.patterns();
        for word in &view.words {
            match set.contains_by(word, &patterns) {
                Ok(true) => found.push(word.clone()),
                Ok(false) => {}
                Err(why) => self.record_missing(why),
            }
        }
        found
    }

    /// Members of each part of `set` that the patterns distinguish, excluding `but`: up to `each` of every part.
    pub(super) fn cells(&mut self, set: &StringSet, patterns: &[String], each: usize, but: &[String]) -> Vec<String> {
        // A part is identified by the patterns that its members match.
        let mut parts: Vec<(Vec<bool>, String)> = match self.member(set, patterns, &[], but) {
            Ok(Some(text)) => vec![(Vec::new(), text)],
            Ok(None) => return Vec::new(),
            Err(why) => {
                self.record_missing(why);
                return Vec::new();
            }
        };
        // The strings that the rules mention, alone or with something around them, make most searches unnecessary.
        let around = |text: &String| [text.clone(), format!("a{text}"), format!("{text}a"), format!("a.{text}/a")];
        let shared = self.budget.patterns();
        let pool = self.texts.iter().take(64).flat_map(around).filter(|text| !but.contains(text));
        let mut pool: Vec<(String, Vec<bool>)> = match patterns.len() {
            0 => Vec::new(),
            _ => {
                pool.filter(|text| set.contains_by(text, &shared) == Ok(true)).map(|text| (text, Vec::new())).collect()
            }
        };
        for pattern in patterns {
            let one = StringSet { patterns: vec![pattern.clone()], ..StringSet::default() };
            pool.retain_mut(|(text, part)| one.contains_by(text, &shared).map(|matches| part.push(matches)).is_ok());
            let mut split = Vec::with_capacity(parts.len() + 1);
            for (part, text) in parts {
                // The known string is on one side.
                let side = one.contains_by(&text, &shared);
                for matches in [false, true] {
                    let mut part = part.clone();
                    part.push(matches);
                    if side == Ok(matches) {
                        split.push((part, text.clone()));
                        continue;
                    }
                    if let Some((text, _)) = pool.iter().find(|(_, known)| *known == part) {
                        split.push((part, text.clone()));
                        continue;
                    }
                    match self.member(set, patterns, &part, but) {
                        Ok(Some(text)) => split.push((part, text)),
                        Ok(None) => {}
                        Err(why) => self.record_missing(why),
                    }
                }
            }
            if split.len() > CELLS {
                self.record_missing("too many kinds of strings");
                split.truncate(CELLS);
            }
            parts = split;
        }
        let mut found: Vec<String> = Vec::new();
        for (part, text) in parts {
            found.push(text);
            for _ in 1..each {
                let others: Vec<String> = but.iter().chain(&found).cloned().collect();
                match self.member(set, patterns, &part, &others) {
                    Ok(Some(text)) => found.push(text),
                    Ok(None) => break,
                    Err(why) => {
                        self.record_missing(why);
                        break;
                    }
                }
            }
        }
        found.sort_by_key(|text| text.chars().count());
        found
    }

    fn member(
        &mut self,
        set: &StringSet,
        patterns: &[String],
        matches: &[bool],
        others: &[String],
    ) -> Result<Option<String>, String> {
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        strings::member(set, patterns.iter().map(String::as_str).zip(matches.iter().copied()), &others, self.budget)
    }
}

/// A format that gives a string another type in rules, of which several strings are the same value.
#[derive(Clone, Copy)]
enum TypedFormat {
    DateTime,
    Duration,
    Byte,
}

fn typed_format(set: &StringSet) -> Option<TypedFormat> {
    set.formats.iter().find_map(|format| match format.replace('-', "").as_str() {
        "datetime" => Some(TypedFormat::DateTime),
        "duration" => Some(TypedFormat::Duration),
        "byte" => Some(TypedFormat::Byte),
        _ => None,
    })
}

/// The strings that a schema accepts.
fn text_set(schema: &Value) -> StringSet {
    let mut set = StringSet::default();
    schema_and_all_of(schema).into_iter().for_each(|part| add_text(part, &mut set));
    if let Some(allowed) = allowed(schema) {
        set.enumeration = Some(allowed.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    }
    set
}

/// A pattern that matches strings of at least this length. RE2 allows at most 1000 repetitions at once, so longer
/// lengths are split. A length that no automaton can handle is left as it is and is rejected as too large later.
pub(super) fn no_shorter(length: u64) -> String {
    const ONCE: u64 = 1_000;
    let (times, rest) = match length {
        0..=1_000_000 => (length / ONCE, length % ONCE),
        _ => (0, length),
    };
    let many = format!(".{{{ONCE}}}").repeat(usize::try_from(times).unwrap_or_default());
    format!(r"(?s)\A{many}.{{{rest},}}\z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_k8s_cel::re2;

    #[test]
    fn a_length_of_thousands_is_still_one() {
        for length in [0, 1, 999, 1_000, 1_001, 2_500] {
            let pattern = re2::compile(&no_shorter(length)).expect("a pattern");
            let text = |length: u64| "é".repeat(length as usize);
            assert!(pattern.is_match(&text(length)), "{length}");
            assert!(length == 0 || !pattern.is_match(&text(length - 1)), "{length}");
        }
    }
}
