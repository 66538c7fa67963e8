use proptest::prelude::*;

use super::*;
use gantry_k8s_cel::re2;

fn search(query: &StringQuery<'_>) -> Result<Option<String>, String> {
    find(query, &mut SearchBudget::new(2_000_000))
}

/// A string that `first` matches and `second` does not.
fn differs(first: &str, second: &str) -> Option<String> {
    let found = search(&StringQuery { all: vec![first], none: vec![second], ..StringQuery::default() });
    found.unwrap_or_else(|reason| panic!("{first} against {second}: {reason}"))
}

#[test]
fn a_text_is_found_that_only_the_wider_of_two_patterns_matches() {
    for (narrow, wide, witness) in [
        ("^a$", "^a+$", "aa"),
        ("^a+$", "a", "0a"),
        ("^[a-z]{1,63}$", "^[a-z]{1,64}$", &"a".repeat(64)),
        ("^[0-9]+$", "^[0-9]*$", ""),
        ("^(a|b)$", "^[abc]$", "c"),
        ("^a$", "^(a|)$", ""),
        ("^https://", "^https?://", "http://"),
        ("^.+$", "(?s)^.+$", "\n"),
        (r"^\w+$", r"^[\w-]+$", "-"),
        (r"\bfoo\b", "foo", "0foo"),
        ("^[a-z]([-a-z0-9]*[a-z0-9])?$", "^[a-z]([-a-z0-9.]*[a-z0-9])?$", "a.0"),
        (r"^\p{Lu}$", r"^\p{L}$", "a"),
        ("(?m)^a$", "a", "0a"),
        ("^(ab)*$", "^(a|b)*$", "a"),
        ("^[a-y]$", "^[a-z]$", "z"),
        ("(?i)^k$", "(?i)^[kl]$", "l"),
        ("^.{1,999}$", "^.{1,1000}$", &"a".repeat(1000)),
    ] {
        assert_eq!(differs(narrow, wide), None, "{narrow} is within {wide}");
        let found = differs(wide, narrow).unwrap_or_else(|| panic!("{wide} is not within {narrow}"));
        assert_eq!(found.chars().count(), witness.chars().count(), "{wide} against {narrow}: {found:?}");
        assert!(re2::compile(wide).is_ok_and(|p| p.is_match(found.as_str())), "{wide} matches {found:?}");
        assert!(re2::compile(narrow).is_ok_and(|p| !p.is_match(found.as_str())), "{narrow} refuses {found:?}");
    }
}

#[test]
fn patterns_of_the_same_language_are_equal() {
    for (one, other) in [
        ("^(a|b)*$", "^[ab]*$"),
        ("^a+$", "^aa*$"),
        (r"^\d+$", "^[0-9]+$"),
        ("a*", ""),
        ("^(a(b)?|c)$", "^(?:a|ab|c)$"),
        ("^a{2,4}$", "^aa(a(a)?)?$"),
        (r"\Aa\z", "^a$"),
        ("^[^a]*$", r"^[\x00-`b-\x{10FFFF}]*$"),
        (r"^(\+|-)?[0-9]$", "^[-+]?[0-9]$"),
    ] {
        assert_eq!(differs(one, other), None, "{one} is within {other}");
        assert_eq!(differs(other, one), None, "{other} is within {one}");
    }
}

#[test]
fn lengths_are_bounds_in_code_points() {
    let all = |pattern| StringQuery { all: vec![pattern], ..StringQuery::default() };
    assert_eq!(search(&StringQuery { min: 3, ..all("^é*$") }), Ok(Some("ééé".to_owned())));
    assert_eq!(search(&StringQuery { max: Some(2), ..all("^aaa") }), Ok(None));
    assert_eq!(search(&StringQuery { min: 4, ..all("^a{1,3}$") }), Ok(None));
    assert_eq!(search(&StringQuery { min: 2, max: Some(2), ..all("^(a|bb)$") }), Ok(Some("bb".to_owned())));
    assert_eq!(search(&StringQuery { min: 2, max: Some(1), ..all("") }), Ok(None));
    assert_eq!(search(&StringQuery { min: 1000, ..StringQuery::default() }), Ok(Some("a".repeat(1000))));
}

#[test]
fn several_patterns_hold_at_once() {
    let query = StringQuery { all: vec!["^[a-z]+$", "b", "c$"], none: vec!["^b", "bc"], min: 0, max: None };
    let found = search(&query).expect("decided").expect("a string");
    assert_eq!(found.chars().count(), 4, "{found}");
    assert_eq!(search(&StringQuery { all: vec!["^a", "^b"], ..StringQuery::default() }), Ok(None));
}

#[test]
fn a_list_of_strings_is_a_pattern() {
    let list = alternatives(["a.b", "c|d", ""]);
    assert_eq!(differs(&list, r"^(a\.b|c\|d)?$"), None);
    assert_eq!(differs(r"^(a\.b|c\|d)?$", &list), None);
    let within = StringQuery { all: vec!["^[a-c]$"], none: vec![&list], ..StringQuery::default() };
    assert!(search(&within).is_ok_and(|found| found.is_some()));
}

#[test]
fn patterns_that_are_too_large_or_not_supported_are_undecided() {
    let exponential = "^(a|b)*a(a|b){30}$";
    let query = StringQuery { all: vec![exponential], none: vec!["^(a|b)*a(a|b){31}$"], ..StringQuery::default() };
    assert!(find(&StringQuery { min: 40, ..query }, &mut SearchBudget::new(100_000)).is_err());
    for pattern in ["(?=a)", "((a{1000}){1000}){1000}", &"(".repeat(200), r"\Z"] {
        assert!(search(&StringQuery { all: vec![pattern], ..StringQuery::default() }).is_err(), "{pattern}");
    }
}

/// Patterns of letters that matter to each other, deep enough to mix all operators.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "[ab]", "[^a]", ".", "é", "-", r"\w", r"\W", r"\n"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["^", "$", r"\b", r"\B", "(?m:^)", "(?m:$)", ""]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            (inner.clone(), prop::sample::select(vec!["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{1,}"]))
                .prop_map(|(part, times)| format!("(?:{part}){times}")),
            inner.prop_map(|part| format!("^(?:{part})$")),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!['a', 'b', 'é', '-', '\n', '0']), 0..6)
        .prop_map(|letters| letters.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// The automaton and the `regex` crate agree on whether a text matches.
    #[test]
    fn a_text_matches_the_automaton_if_it_matches_the_regex(pattern in pattern(), text in text()) {
        let exactly = alternatives([text.as_str()]);
        let here = search(&StringQuery { all: vec![&pattern, &exactly], ..StringQuery::default() }).expect("decided");
        let there = re2::compile(&pattern).expect("a pattern").is_match(&text);
        prop_assert_eq!(here.is_some(), there);
        let outside = search(&StringQuery { all: vec![&exactly], none: vec![&pattern], ..StringQuery::default() }).expect("decided");
        prop_assert_eq!(outside.is_some(), !there);
    }

    /// A string that is found matches one pattern and not the other; if none is found, no random text does.
    #[test]
    fn a_text_that_a_search_finds_matches_one_pattern_and_not_the_other(one in pattern(), other in pattern(), texts in prop::collection::vec(text(), 20)) {
        let compile = |pattern: &str| re2::compile(pattern).expect("a pattern");
        let (matches_one, matches_other) = (compile(&one), compile(&other));
        match search(&StringQuery { all: vec![&one], none: vec![&other], ..StringQuery::default() }) {
            Ok(Some(text)) => {
                prop_assert!(matches_one.is_match(&text), "{:?}", text);
                prop_assert!(!matches_other.is_match(&text), "{:?}", text);
            }
            Ok(None) => for text in texts {
                prop_assert!(!matches_one.is_match(&text) || matches_other.is_match(&text), "{:?}", text);
            },
            Err(_) => {}
        }
    }
}
