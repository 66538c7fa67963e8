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

/// Checks that the string of a `No` is in `live` and not in `desired`.
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
        assert_eq!(find_member(&empty), Ok(None));
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
    assert_eq!(holds(&format("date-time"), &format("datetime")), Some(true));
    assert_eq!(holds(&format("k8s-short-name"), &format("k8s-long-name")), Some(true));
    assert_eq!(holds(&format("isbn13"), &format("isbn")), Some(true));
    assert_eq!(holds(&format("date"), &lengths(None, Some(5))), Some(false));
    assert_eq!(holds(&pattern(&[r"^\d{4}-01-01$"]), &format("date")), None);
    assert_eq!(holds(&format("date"), &pattern(&[r"^\d"])), Some(true));
    assert_eq!(holds(&format("ipv4"), &pattern(&[r"\.[1-9]{2}$"])), Some(false));
    assert_eq!(holds(&format("uri"), &lengths(Some(2), None)), Some(false));
    assert_eq!(holds(&format("ssn"), &one_of(&["123-45-6789"])), Some(false));
    assert_eq!(holds(&pattern(&["^#[0-9a-f]{6}$"]), &format("hexcolor")), Some(true));
    let both = StringSet { formats: vec!["date-time".to_owned(), "uri".to_owned()], ..StringSet::default() };
    assert_eq!(holds(&both, &StringSet::empty()), Some(true), "no text has both formats");
    // A string that matches the pattern of a date need not be a date.
    assert_eq!(holds(&pattern(&["^[0-9]{4}-01-0[1-9]$"]), &format("date")), None);
    assert_eq!(find_member(&format("uuid")).map(|found| found.is_some()), Ok(true));
}

/// Common patterns for addresses accept zones and other strings that the server does not accept as addresses.
#[test]
fn a_pattern_that_is_wider_than_the_format_is_shown_to_be() {
    let octet = "(25[0-5]|2[0-4][0-9]|[01]?[0-9][0-9]?)";
    let v4 = format!(r"^({octet}\.){{3}}{octet}/([0-9]|[1-2][0-9]|3[0-2])$");
    let v6 = "^s*((([0-9A-Fa-f]{1,4}:){7}(:|([0-9A-Fa-f]{1,4})))|(:(:|((:[0-9A-Fa-f]{1,4}){1,7}))))(%.+)?s*/([0-9]|[1-9][0-9])$";
    assert_eq!(holds(&pattern(&[&format!("{v4}|{v6}")]), &self::format("cidr")), Some(false));
}

#[test]
fn an_example_avoids_what_it_must_not_be() {
    let mut budget = SearchBudget::new(10_000);
    assert_eq!(find_member_except(&pattern(&["^[ab]$"]), &["a"], &mut budget), Ok(Some("b".to_owned())));
    assert_eq!(find_member_except(&pattern(&["^[ab]$"]), &["a", "b"], &mut budget), Ok(None));
    assert_eq!(find_member_except(&one_of(&["x", "y"]), &["x"], &mut budget), Ok(Some("y".to_owned())));
}
