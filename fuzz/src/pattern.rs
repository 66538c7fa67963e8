//! Patterns: every pattern that RE2 accepts is translated, and the automaton and the matcher agree on it.
//!
//! The first two lines are patterns, the rest is a text to match.

use gantry_k8s_cel::re2;
use gantry_proof::strings::{self, StringSet, Subset};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = text.splitn(3, '\n');
    let [one, other, text] = [(); 3].map(|()| parts.next().unwrap_or_default());
    for pattern in [one, other] {
        if re2::check(pattern).is_ok() {
            assert!(re2::translate(pattern).is_ok(), "{pattern:?}");
        }
    }
    let of = |pattern: &str| StringSet { patterns: vec![pattern.to_owned()], ..StringSet::default() };
    let [set, other_set] = [one, other].map(of);
    if let Ok(Some(example)) = strings::find_member(&set) {
        assert_ne!(set.contains(&example), Ok(false), "{one:?} {example:?}");
    }
    match strings::subset(&set, &other_set) {
        Subset::Yes => {
            let counterexample = set.contains(text) == Ok(true) && other_set.contains(text) == Ok(false);
            assert!(!counterexample, "{one:?} {other:?} {text:?}");
        }
        Subset::No(example) => {
            assert_ne!(set.contains(&example), Ok(false), "{one:?} {example:?}");
            assert_ne!(other_set.contains(&example), Ok(true), "{other:?} {example:?}");
        }
        Subset::Unknown(reason) => assert!(!reason.is_empty()),
    }
}
