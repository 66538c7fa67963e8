//! Sets of strings: decides whether one set is a subset of another.

use std::collections::HashSet;

pub(crate) use super::automaton::samples_of;
use super::automaton::{self, SearchBudget, StringQuery};
use super::formats;
use super::text::shorten;
use gantry_k8s_cel::re2::Patterns;
use gantry_schema::enforced_format_accepts;

/// The strings that satisfy all of these conditions at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StringSet {
    /// RE2 patterns, unanchored; all must match.
    pub patterns: Vec<String>,
    /// The minimum length in code points.
    pub min_length: Option<u64>,
    /// The maximum length in code points.
    pub max_length: Option<u64>,
    /// If present, the string must be one of these.
    pub enumeration: Option<Vec<String>>,
    /// Names of formats that the server enforces on strings. Unknown names are ignored, as the server does.
    pub formats: Vec<String>,
}

/// The answer of [`subset`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subset {
    /// Every string of the first set is in the second.
    Yes,
    /// A string that is in the first set and not in the second, the shortest that was found.
    No(String),
    /// Not decided, and why.
    Unknown(String),
}

/// Why a question about a set of strings has no answer, such as a pattern that cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UndecidedStringSet(String);

impl From<String> for UndecidedStringSet {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

impl StringSet {
    /// The empty set.
    pub fn empty() -> Self {
        Self { enumeration: Some(Vec::new()), ..Self::default() }
    }

    /// The number of conditions and values: the cost of a copy.
    pub fn size(&self) -> usize {
        self.patterns.len() + self.formats.len() + self.enumeration.as_ref().map_or(0, Vec::len)
    }

    /// Whether `text` is a member.
    ///
    /// # Errors
    /// A pattern that cannot be evaluated.
    pub fn contains(&self, text: &str) -> Result<bool, UndecidedStringSet> {
        Ok(self.contains_by(text, &Patterns::default())?)
    }

    /// Like [`Self::contains`], with a shared cache of compiled patterns.
    ///
    /// # Errors
    /// As [`Self::contains`].
    pub(crate) fn contains_by(&self, text: &str, patterns: &Patterns) -> Result<bool, String> {
        let length = text.chars().count() as u64;
        if self.min_length.is_some_and(|min| length < min)
            || self.max_length.is_some_and(|max| length > max)
            || self.enumeration.as_ref().is_some_and(|allowed| !allowed.iter().any(|a| a == text))
            || self.formats.iter().any(|format| enforced_format_accepts(format, text) == Some(false))
        {
            return Ok(false);
        }
        for pattern in &self.patterns {
            let pattern = patterns.get(pattern);
            if !pattern
                .is_match(text)
                .map_err(|reason| format!("the pattern {}: {reason}", shorten(pattern.source())))?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The default number of automaton steps for one question: a few tenths of a second at most.
pub(crate) const STEPS: u64 = 2_000_000;
/// The number of these steps that take as long as one step of [`super::Limits`].
pub(crate) const STEPS_PER_UNIT: u64 = 8;

/// For an `enum` with more values than this, other members are searched before the `enum` is compiled to a pattern.
const MAX_ALTERNATIVES: usize = 100;
/// The number of members of a set that are tried against a format. A format is code, not a pattern.
const MAX_TRIES: usize = 8;

/// Whether every string of `live` is in `desired`.
pub fn subset(live: &StringSet, desired: &StringSet) -> Subset {
    subset_within(live, desired, &mut SearchBudget::new(STEPS))
}

/// Like [`subset`], within a given budget.
pub(crate) fn subset_within(live: &StringSet, desired: &StringSet, budget: &mut SearchBudget) -> Subset {
    decide(live, desired, budget).unwrap_or_else(Subset::Unknown)
}

/// A member, if there is one: the first of an enum, or else one of the shortest unless a format matters.
///
/// # Errors
/// Why that is unknown.
pub fn find_member(set: &StringSet) -> Result<Option<String>, UndecidedStringSet> {
    Ok(find_member_except(set, &[], &mut SearchBudget::new(STEPS))?)
}

/// Like [`find_member`], with a shared cache of compiled patterns.
///
/// # Errors
/// As [`find_member`].
pub(crate) fn find_member_with_patterns(set: &StringSet, patterns: &Patterns) -> Result<Option<String>, String> {
    find_member_except(set, &[], &mut SearchBudget::sharing(STEPS, patterns))
}

/// A member that is not in `others`, if there is one: as [`find_member`].
///
/// # Errors
/// As [`find_member`].
pub(crate) fn find_member_except(
    set: &StringSet,
    others: &[&str],
    budget: &mut SearchBudget,
) -> Result<Option<String>, String> {
    if let Some(allowed) = &set.enumeration {
        let others: HashSet<&str> = others.iter().copied().collect();
        for text in allowed.iter().filter(|text| !others.contains(text.as_str())) {
            if set.contains_by(text, &budget.patterns())? {
                return Ok(Some(text.clone()));
            }
        }
        return Ok(None);
    }
    set.search_member(&set.query(), others, budget, |_| Ok(true))
}

/// A member that is not in `others`, and for each pattern matches it or not, as the flag beside the pattern says.
///
/// Formats are respected only if that is easy: the string returned may violate them.
///
/// # Errors
/// As [`find_member`].
pub(crate) fn member<'p>(
    set: &StringSet,
    patterns: impl Iterator<Item = (&'p str, bool)> + Clone,
    others: &[&str],
    budget: &mut SearchBudget,
) -> Result<Option<String>, String> {
    let shared = budget.patterns();
    let is_apart = |text: &str| -> Result<bool, String> {
        for (pattern, wanted) in patterns.clone() {
            if StringSet::of_pattern(pattern).contains_by(text, &shared)? != wanted {
                return Ok(false);
            }
        }
        Ok(!others.contains(&text))
    };
    if let Some(allowed) = &set.enumeration {
        for text in allowed {
            if set.contains_by(text, &shared)? && is_apart(text)? {
                return Ok(Some(text.clone()));
            }
        }
        return Ok(None);
    }
    let mut query = set.query();
    for (pattern, wanted) in patterns.clone() {
        if wanted { query.all.push(pattern) } else { query.none.push(pattern) }
    }
    match find_but(&query, others, budget)? {
        Some(found) if set.formats.is_empty() || set.contains_by(&found, &shared)? => Ok(Some(found)),
        Some(found) => Ok(Some(set.typical(&shared, is_apart)?.unwrap_or(found))),
        None => Ok(None),
    }
}

/// The maximum number of strings that are excluded from a search.
const MAX_EXCLUDED: usize = 100;

/// A shortest string of the query that is not in `others`.
fn find_but(query: &StringQuery<'_>, others: &[&str], budget: &mut SearchBudget) -> Result<Option<String>, String> {
    // Most of the others are never found, and each exclusion makes the search larger. So only those found are excluded.
    let mut met: Vec<&str> = Vec::new();
    loop {
        let excluded = automaton::alternatives(met.iter().copied());
        let mut query = query.clone();
        if !met.is_empty() {
            query.none.push(&excluded);
        }
        let found = automaton::find(&query, budget)?;
        match (others.iter().find(|other| found.as_deref() == Some(**other)), met.len()) {
            (Some(_), MAX_EXCLUDED..) => return Err("all strings that were found are already used".to_owned()),
            (Some(other), _) => met.push(other),
            (None, _) => return Ok(found),
        }
    }
}

fn decide(live: &StringSet, desired: &StringSet, budget: &mut SearchBudget) -> Result<Subset, String> {
    let patterns = budget.patterns();
    if let Some(allowed) = &live.enumeration {
        // Looked up in a hash set: neither side has to be scanned for each value.
        let (live, desired) = (StringLookup::new(live, true), StringLookup::new(desired, false));
        for text in allowed {
            if live.contains(text, &patterns)? && !desired.contains(text, &patterns)? {
                return Ok(Subset::No(text.clone()));
            }
        }
        return Ok(Subset::Yes);
    }
    let allowed = desired.enumeration.as_ref();
    // The empty set refuses every member, but an empty list of alternatives would match the empty string.
    if allowed.is_some_and(Vec::is_empty)
        && let Some(found) = automaton::find(&live.query(), budget)?
        && (live.formats.is_empty() || live.contains_by(&found, &patterns)?)
    {
        return Ok(Subset::No(found));
    }
    // With many values, the shortest members are tried first: usually one of them is not in the list.
    if let Some(allowed) = allowed.filter(|allowed| allowed.len() > MAX_ALTERNATIVES) {
        let others: Vec<&str> = allowed.iter().map(String::as_str).collect();
        if let Ok(Some(text)) = find_member_except(live, &others, budget)
            && live.contains_by(&text, &patterns)?
        {
            return Ok(Subset::No(text));
        }
    }
    let enumeration = allowed.map(|allowed| automaton::alternatives(allowed.iter().map(String::as_str)));
    for query in refused(live, desired, enumeration.as_deref()) {
        let is_refused = |text: &str| Ok(!desired.contains_by(text, &patterns)?);
        if let Some(found) = live.search_member(&query, &[], budget, is_refused)? {
            return Ok(Subset::No(found));
        }
    }
    let is_implied = |wide: &String| live.formats.iter().any(|narrow| formats::is_within(narrow, wide));
    for format in desired.formats.iter().filter(|format| !is_implied(format)) {
        if let Some(text) = outside_format(live, format, budget)? {
            return Ok(Subset::No(text));
        }
    }
    Ok(Subset::Yes)
}

/// A set prepared for many lookups.
struct StringLookup<'a> {
    set: StringSet,
    allowed: Option<HashSet<&'a str>>,
}

impl<'a> StringLookup<'a> {
    /// `is_own`: the strings to look up are those of the set's own `enumeration`.
    fn new(set: &'a StringSet, is_own: bool) -> Self {
        let allowed = set.enumeration.as_ref().filter(|_| !is_own);
        StringLookup {
            allowed: allowed.map(|allowed| allowed.iter().map(String::as_str).collect()),
            set: StringSet { patterns: set.patterns.clone(), formats: set.formats.clone(), enumeration: None, ..*set },
        }
    }

    fn contains(&self, text: &str, patterns: &Patterns) -> Result<bool, String> {
        let is_allowed = self.allowed.as_ref().is_none_or(|allowed| allowed.contains(text));
        if is_allowed { self.set.contains_by(text, patterns) } else { Ok(false) }
    }
}

/// Queries for strings that are in `live` and each violate one condition of `desired`.
fn refused<'a>(live: &'a StringSet, desired: &'a StringSet, enumeration: Option<&'a str>) -> Vec<StringQuery<'a>> {
    let base = live.query();
    let mut queries = Vec::new();
    if let Some(least) = desired.min_length.filter(|least| *least > 0) {
        let max = Some(base.max.map_or(least - 1, |max| max.min(least - 1)));
        queries.push(StringQuery { max, ..base.clone() });
    }
    if let Some(most) = desired.max_length {
        queries.push(StringQuery { min: base.min.max(most + 1), ..base.clone() });
    }
    let patterns = desired.patterns.iter().filter(|pattern| !live.patterns.contains(pattern)).map(String::as_str);
    queries.extend(patterns.chain(enumeration).map(|pattern| StringQuery { none: vec![pattern], ..base.clone() }));
    queries
}

/// A member of `live` that does not have the format.
fn outside_format(live: &StringSet, format: &str, budget: &mut SearchBudget) -> Result<Option<String>, String> {
    let is_outside = |text: &str| Ok(enforced_format_accepts(format, text) == Some(false));
    if let Some(pattern) = formats::pattern_of(format)
        && live.enumeration.is_none()
    {
        // First, strings that do not even match the format's pattern. If that takes too long, other strings may do.
        let query = StringQuery { none: vec![pattern], ..live.query() };
        match live.search_member(&query, &[], budget, is_outside) {
            Ok(Some(text)) => return Ok(Some(text)),
            Ok(None) if formats::is_exact(format) => return Ok(None),
            Ok(None) | Err(_) => {}
        }
    }
    let mut tried: Vec<String> = Vec::new();
    while tried.len() < MAX_TRIES {
        let others: Vec<&str> = tried.iter().map(String::as_str).collect();
        match find_member_except(live, &others, budget)? {
            None => return Ok(None),
            Some(text) if enforced_format_accepts(format, &text) == Some(false) => return Ok(Some(text)),
            Some(text) => tried.push(text),
        }
    }
    Err(format!("the format {format} is not compared with patterns"))
}

/// Strings of each format that the server enforces, both common and unusual.
const TYPICAL: &[&str] = &[
    "",
    "a",
    "0",
    "a-b",
    "a.b",
    "a@b.co",
    "http://a.b/c?d=e",
    "a:b",
    "/a",
    "127.0.0.1",
    "192.168.0.1",
    "10.0.0.0/8",
    "::1",
    "2001:db8::/32",
    "00:00:5e:00:53:01",
    "2001-02-03",
    "1999-12-31",
    "2001-02-03T04:05:06Z",
    "2001-02-03T04:05:06.789+01:00",
    "1s",
    "2m",
    "1h2m3.5s",
    "5 days",
    "YQ==",
    "123e4567-e89b-32d3-a456-426614174000",
    "123e4567-e89b-42d3-a456-426614174000",
    "123e4567-e89b-52d3-a456-426614174000",
    "507f1f77bcf86cd799439011",
    "#fff",
    "rgb(1,2,3)",
    "0-306-40615-2",
    "978-0-306-40615-7",
    "4111 1111 1111 1111",
    "123-45-6789",
];

impl StringSet {
    fn of_pattern(pattern: &str) -> Self {
        StringSet { patterns: vec![pattern.to_owned()], ..StringSet::default() }
    }

    /// The set as a query, with the patterns of its formats in place of the formats.
    fn query(&self) -> StringQuery<'_> {
        let formats = self.formats.iter().filter_map(|format| formats::pattern_of(format));
        StringQuery {
            all: self.patterns.iter().map(String::as_str).chain(formats).collect(),
            none: Vec::new(),
            min: self.min_length.unwrap_or(0),
            max: self.max_length,
        }
    }

    /// A member that matches `query`, satisfies `fits` and is not in `others`. `query` must be at least as strict as
    /// the set, apart from the set's formats. An error means that there may be such a member.
    ///
    /// Formats are code, not patterns: some answers of the query are tried, then typical strings of formats.
    fn search_member(
        &self,
        query: &StringQuery<'_>,
        others: &[&str],
        budget: &mut SearchBudget,
        fits: impl Fn(&str) -> Result<bool, String>,
    ) -> Result<Option<String>, String> {
        let patterns = budget.patterns();
        let mut tried: Vec<String> = Vec::new();
        while tried.len() < MAX_TRIES {
            let excluded: Vec<&str> = others.iter().copied().chain(tried.iter().map(String::as_str)).collect();
            match find_but(query, &excluded, budget)? {
                None => return Ok(None),
                Some(found) if self.formats.is_empty() || self.contains_by(&found, &patterns)? && fits(&found)? => {
                    return Ok(Some(found));
                }
                Some(found) => tried.push(found),
            }
        }
        match self.typical(&patterns, |text| Ok(!others.contains(&text) && fits(text)?))? {
            Some(text) => Ok(Some(text)),
            None => Err(format!("the format {} is not compared with patterns", self.formats.join(", "))),
        }
    }

    /// A typical string of some format, possibly with a suffix, that is a member and satisfies `fits`.
    fn typical(
        &self,
        patterns: &Patterns,
        fits: impl Fn(&str) -> Result<bool, String>,
    ) -> Result<Option<String>, String> {
        for more in ["", "1", "A", "a", ".1", "-1", "/1"] {
            for text in TYPICAL {
                let text = format!("{text}{more}");
                if self.contains_by(&text, patterns)? && fits(&text)? {
                    return Ok(Some(text));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
