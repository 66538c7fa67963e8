//! Sets of strings: whether each string that one side allows is allowed by the other.

use std::collections::HashSet;

use super::automaton::{self, Budget, Query};
use super::formats;
use super::product::short;
use gantry_schema::{Patterns, enforced_format_accepts};

/// The strings that satisfy all of these conditions at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
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

    /// How many conditions and values it holds: what a copy costs.
    pub fn size(&self) -> usize {
        self.patterns.len() + self.formats.len() + self.enumeration.as_ref().map_or(0, Vec::len)
    }

    /// Whether `text` is a member; an error says why that is not known.
    pub fn contains(&self, text: &str) -> Result<bool, String> {
        self.contains_by(text, &Patterns::default())
    }

    /// [`Self::contains`] with patterns that are asked often and compiled once.
    pub fn contains_by(&self, text: &str, patterns: &Patterns) -> Result<bool, String> {
        let length = text.chars().count() as u64;
        if self.min_length.is_some_and(|min| length < min)
            || self.max_length.is_some_and(|max| length > max)
            || self.enumeration.as_ref().is_some_and(|allowed| !allowed.iter().any(|a| a == text))
            || self.formats.iter().any(|format| enforced_format_accepts(format, text) == Some(false))
        {
            return Ok(false);
        }
        for pattern in &self.patterns {
            let matches = patterns.get(pattern).is_match(text).map_err(|reason| reason.to_owned());
            if !matches.map_err(|reason| format!("the pattern {}: {reason}", short(pattern)))? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Steps for one question; a few tenths of a second at most.
pub const STEPS: u64 = 2_000_000;
/// How many of them take as long as one of [`super::Limits`].
pub const STEPS_PER_UNIT: u64 = 8;

/// So many values of an `enum` make a pattern; of more, members that are none of them are looked for first.
const ALTERNATIVES: usize = 100;
/// How many members of a set are tried against a format, which is a program and no pattern.
const TRIES: usize = 8;

/// Whether every string of `live` is in `desired`.
pub fn subset(live: &StringSet, desired: &StringSet) -> Subset {
    subset_within(live, desired, &mut Budget::new(STEPS))
}

/// [`subset`] within a budget that is shared with other questions.
pub fn subset_within(live: &StringSet, desired: &StringSet, budget: &mut Budget) -> Subset {
    decide(live, desired, budget).unwrap_or_else(Subset::Unknown)
}

/// A shortest member, where there is one. An error says why that is not known.
pub fn example(set: &StringSet) -> Result<Option<String>, String> {
    example_but(set, &[], &mut Budget::new(STEPS))
}

/// [`example`] with patterns that others have, too.
pub fn example_by(set: &StringSet, patterns: &Patterns) -> Result<Option<String>, String> {
    example_but(set, &[], &mut Budget::sharing(STEPS, patterns))
}

/// A shortest member that is none of `others`.
pub fn example_but(set: &StringSet, others: &[&str], budget: &mut Budget) -> Result<Option<String>, String> {
    if let Some(allowed) = &set.enumeration {
        let others: HashSet<&str> = others.iter().copied().collect();
        for text in allowed.iter().filter(|text| !others.contains(text.as_str())) {
            if set.contains_by(text, &budget.patterns())? {
                return Ok(Some(text.clone()));
            }
        }
        return Ok(None);
    }
    set.among(&set.query(), others, budget, |_| Ok(true))
}

/// A member that matches each pattern, or does not, as said beside it, and that is none of `others`.
///
/// Formats are followed only if that is easy: a member may lack them.
pub fn member<'p>(
    set: &StringSet,
    patterns: impl Iterator<Item = (&'p str, bool)> + Clone,
    others: &[&str],
    budget: &mut Budget,
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

/// So many texts that are in the way are left out of a search.
const MET: usize = 100;

/// A shortest string of the query that is none of `others`.
fn find_but(query: &Query<'_>, others: &[&str], budget: &mut Budget) -> Result<Option<String>, String> {
    // Most of the others are never in the way, and each that is excluded makes the search larger.
    let mut met: Vec<&str> = Vec::new();
    loop {
        let excluded = automaton::alternatives(met.iter().copied());
        let mut query = query.clone();
        if !met.is_empty() {
            query.none.push(&excluded);
        }
        let found = automaton::find(&query, budget)?;
        match (others.iter().find(|other| found.as_deref() == Some(**other)), met.len()) {
            (Some(_), MET..) => return Err("all texts that were found are taken".to_owned()),
            (Some(other), _) => met.push(other),
            (None, _) => return Ok(found),
        }
    }
}

fn decide(live: &StringSet, desired: &StringSet, budget: &mut Budget) -> Result<Subset, String> {
    let patterns = budget.patterns();
    if let Some(allowed) = &live.enumeration {
        // What is allowed of itself: many values are looked up, not gone through for each.
        let (live, desired) = (Footprint::up(live, true), Footprint::up(desired, false));
        for text in allowed {
            if live.contains(text, &patterns)? && !desired.contains(text, &patterns)? {
                return Ok(Subset::No(text.clone()));
            }
        }
        return Ok(Subset::Yes);
    }
    let allowed = desired.enumeration.as_ref();
    // Alternatives of which there are none would match the empty text: the empty set refuses every member.
    if allowed.is_some_and(Vec::is_empty)
        && let Some(found) = automaton::find(&live.query(), budget)?
        && (live.formats.is_empty() || live.contains_by(&found, &patterns)?)
    {
        return Ok(Subset::No(found));
    }
    // Of many values some shortest members are tried: the next one is mostly none of them.
    if let Some(allowed) = allowed.filter(|allowed| allowed.len() > ALTERNATIVES) {
        let others: Vec<&str> = allowed.iter().map(String::as_str).collect();
        if let Ok(Some(text)) = example_but(live, &others, budget)
            && live.contains_by(&text, &patterns)?
        {
            return Ok(Subset::No(text));
        }
    }
    let enumeration = allowed.map(|allowed| automaton::alternatives(allowed.iter().map(String::as_str)));
    for query in refused(live, desired, enumeration.as_deref()) {
        let is_refused = |text: &str| Ok(!desired.contains_by(text, &patterns)?);
        if let Some(found) = live.among(&query, &[], budget, is_refused)? {
            return Ok(Subset::No(found));
        }
    }
    for format in desired.formats.iter().filter(|format| !live.formats.contains(format)) {
        if let Some(text) = outside_format(live, format, budget)? {
            return Ok(Subset::No(text));
        }
    }
    Ok(Subset::Yes)
}

/// A set that many texts are asked about.
struct Footprint<'a> {
    set: StringSet,
    allowed: Option<HashSet<&'a str>>,
}

impl<'a> Footprint<'a> {
    /// `is_own` says that the texts are those of the set's own `enumeration`.
    fn up(set: &'a StringSet, is_own: bool) -> Self {
        let allowed = set.enumeration.as_ref().filter(|_| !is_own);
        Footprint {
            allowed: allowed.map(|allowed| allowed.iter().map(String::as_str).collect()),
            set: StringSet { patterns: set.patterns.clone(), formats: set.formats.clone(), enumeration: None, ..*set },
        }
    }

    fn contains(&self, text: &str, patterns: &Patterns) -> Result<bool, String> {
        let is_allowed = self.allowed.as_ref().is_none_or(|allowed| allowed.contains(text));
        if is_allowed { self.set.contains_by(text, patterns) } else { Ok(false) }
    }
}

/// The queries whose answers are in `live` and break one condition of `desired` each.
fn refused<'a>(live: &'a StringSet, desired: &'a StringSet, enumeration: Option<&'a str>) -> Vec<Query<'a>> {
    let base = live.query();
    let mut queries = Vec::new();
    if let Some(least) = desired.min_length.filter(|least| *least > 0) {
        let max = Some(base.max.map_or(least - 1, |max| max.min(least - 1)));
        queries.push(Query { max, ..base.clone() });
    }
    if let Some(most) = desired.max_length {
        queries.push(Query { min: base.min.max(most + 1), ..base.clone() });
    }
    let patterns = desired.patterns.iter().filter(|pattern| !live.patterns.contains(pattern)).map(String::as_str);
    queries.extend(patterns.chain(enumeration).map(|pattern| Query { none: vec![pattern], ..base.clone() }));
    queries
}

/// A member of `live` that does not have the format.
fn outside_format(live: &StringSet, format: &str, budget: &mut Budget) -> Result<Option<String>, String> {
    let is_outside = |text: &str| Ok(enforced_format_accepts(format, text) == Some(false));
    if let Some(pattern) = formats::pattern_of(format)
        && live.enumeration.is_none()
    {
        // What does not even look like the format; where this takes too long, other texts may do.
        let query = Query { none: vec![pattern], ..live.query() };
        match live.among(&query, &[], budget, is_outside) {
            Ok(Some(text)) => return Ok(Some(text)),
            Ok(None) if formats::is_exact(format) => return Ok(None),
            Ok(None) | Err(_) => {}
        }
    }
    let mut tried: Vec<String> = Vec::new();
    while tried.len() < TRIES {
        let others: Vec<&str> = tried.iter().map(String::as_str).collect();
        match example_but(live, &others, budget)? {
            None => return Ok(None),
            Some(text) if enforced_format_accepts(format, &text) == Some(false) => return Ok(Some(text)),
            Some(text) => tried.push(text),
        }
    }
    Err(format!("the format {format} is not compared with patterns"))
}

/// Texts of each format that the server enforces, plain and unusual ones.
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

    /// The set as a query; of its formats, what their texts look like.
    fn query(&self) -> Query<'_> {
        let formats = self.formats.iter().filter_map(|format| formats::pattern_of(format));
        Query {
            all: self.patterns.iter().map(String::as_str).chain(formats).collect(),
            none: Vec::new(),
            min: self.min_length.unwrap_or(0),
            max: self.max_length,
        }
    }

    /// A member that answers `query`, which asks for no less than the set does but for its formats, that `fits` and is
    /// none of `others`. An error says that there may be one.
    ///
    /// Formats are programs and no patterns: some answers are tried, then texts that are typical of formats.
    fn among(
        &self,
        query: &Query<'_>,
        others: &[&str],
        budget: &mut Budget,
        fits: impl Fn(&str) -> Result<bool, String>,
    ) -> Result<Option<String>, String> {
        let patterns = budget.patterns();
        let mut tried: Vec<String> = Vec::new();
        while tried.len() < TRIES {
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

    /// A typical text of some format, perhaps with a little more at its end, that is a member and that `fits`.
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
mod tests {
    use super::*;

    fn pattern(patterns: &[&str]) -> StringSet {
        StringSet { patterns: patterns.iter().map(|p| (*p).to_owned()).collect(), ..StringSet::default() }
    }

    fn lengths(min_length: Option<u64>, max_length: Option<u64>) -> StringSet {
        StringSet { min_length, max_length, ..StringSet::default() }
    }

    fn one_of(values: &[&str]) -> StringSet {
        StringSet { enumeration: Some(values.iter().map(|v| (*v).to_owned()).collect()), ..StringSet::default() }
    }

    fn format(name: &str) -> StringSet {
        StringSet { formats: vec![name.to_owned()], ..StringSet::default() }
    }

    /// A `No` is only an answer when its string is in the one and not in the other.
    fn holds(live: &StringSet, desired: &StringSet) -> Option<bool> {
        match subset(live, desired) {
            Subset::Yes => Some(true),
            Subset::No(text) => {
                assert_eq!(live.contains(&text), Ok(true), "{text:?}");
                assert_eq!(desired.contains(&text), Ok(false), "{text:?}");
                Some(false)
            }
            Subset::Unknown(_) => None,
        }
    }

    #[test]
    fn conditions_of_different_kinds_are_compared() {
        let any = StringSet::default();
        for (narrow, wide) in [
            (one_of(&["a", "b"]), one_of(&["b", "c", "a"])),
            (one_of(&["a", "b"]), pattern(&["^[a-z]$"])),
            (one_of(&["a", "b"]), lengths(Some(1), Some(1))),
            (pattern(&["^[ab]$"]), one_of(&["a", "b", "c"])),
            (pattern(&["^[a-z]{1,63}$"]), lengths(Some(1), Some(63))),
            (lengths(Some(2), Some(3)), lengths(Some(1), Some(4))),
            (lengths(Some(2), None), pattern(&["(?s)^.+$"])),
            (pattern(&["^a", "b$"]), pattern(&["^a.*b$|^a[^b]*b|b"])),
            (StringSet { max_length: Some(3), ..pattern(&["^a+$"]) }, one_of(&["a", "aa", "aaa", "b"])),
            (StringSet { min_length: Some(3), ..pattern(&["^a+$"]) }, pattern(&["^aaa"])),
            (one_of(&["2001-02-03"]), format("date")),
            (format("date"), any.clone()),
            (format("ipv4"), any.clone()),
        ] {
            assert_eq!(holds(&narrow, &wide), Some(true), "{narrow:?} in {wide:?}");
            assert_eq!(holds(&wide, &narrow), Some(false), "{wide:?} in {narrow:?}");
        }
    }

    #[test]
    fn a_set_without_members_is_in_every_other() {
        for empty in [StringSet::empty(), lengths(Some(2), Some(1)), pattern(&["^a$", "^b$"])] {
            assert_eq!(holds(&empty, &StringSet::empty()), Some(true), "{empty:?}");
            assert_eq!(example(&empty), Ok(None));
        }
    }

    #[test]
    fn the_empty_text_is_no_member_of_the_empty_set() {
        assert_eq!(subset(&lengths(None, Some(0)), &StringSet::empty()), Subset::No(String::new()));
    }

    #[test]
    fn formats_are_tried_and_never_guessed() {
        assert_eq!(holds(&format("date"), &format("date")), Some(true));
        assert_eq!(holds(&format("date"), &format("date-time")), Some(false));
        assert_eq!(holds(&format("date"), &lengths(None, Some(5))), Some(false));
        assert_eq!(holds(&pattern(&[r"^\d{4}-01-01$"]), &format("date")), None);
        assert_eq!(holds(&format("date"), &pattern(&[r"^\d"])), Some(true));
        assert_eq!(holds(&format("ipv4"), &pattern(&[r"\.[1-9]{2}$"])), Some(false));
        assert_eq!(holds(&format("uri"), &lengths(Some(2), None)), Some(false));
        assert_eq!(holds(&format("ssn"), &one_of(&["123-45-6789"])), Some(false));
        assert_eq!(holds(&pattern(&["^#[0-9a-f]{6}$"]), &format("hexcolor")), Some(true));
        let both = StringSet { formats: vec!["date-time".to_owned(), "uri".to_owned()], ..StringSet::default() };
        assert_eq!(holds(&both, &StringSet::empty()), Some(true), "no text has both formats");
        // A text of the pattern of a date may be none.
        assert_eq!(holds(&pattern(&["^[0-9]{4}-01-0[1-9]$"]), &format("date")), None);
        assert_eq!(example(&format("uuid")).map(|found| found.is_some()), Ok(true));
    }

    /// Patterns for addresses let zones and other things through that are none to the server.
    #[test]
    fn a_pattern_that_is_wider_than_the_format_is_shown_to_be() {
        let octet = "(25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)";
        let v4 = format!(r"^({octet}\.){{3}}{octet}/([0-9]|[1-2][0-9]|3[0-2])$");
        let v6 = "^s*((([0-9A-Fa-f]{1,4}:){7}(:|([0-9A-Fa-f]{1,4})))|(:(:|((:[0-9A-Fa-f]{1,4}){1,7}))))(%.+)?s*/([0-9]|[1-9][0-9])$";
        assert_eq!(holds(&pattern(&[&format!("{v4}|{v6}")]), &self::format("cidr")), Some(false));
    }

    #[test]
    fn an_example_avoids_what_it_must_not_be() {
        let mut budget = Budget::new(10_000);
        assert_eq!(example_but(&pattern(&["^[ab]$"]), &["a"], &mut budget), Ok(Some("b".to_owned())));
        assert_eq!(example_but(&pattern(&["^[ab]$"]), &["a", "b"], &mut budget), Ok(None));
        assert_eq!(example_but(&one_of(&["x", "y"]), &["x"], &mut budget), Ok(Some("y".to_owned())));
    }
}
