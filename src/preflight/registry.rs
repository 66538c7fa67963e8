//! Every check that there is, with what configuration, help and documentation need to know of it.
//!
//! A plain sorted list; the tests below hold it to its promises.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Check;
use super::crd_upgrade_safety;
use super::rule::RuleDoc;

/// A check as the rest of the program knows it.
#[derive(Debug, Clone, Copy)]
pub struct CheckEntry {
    /// PascalCase, as in `--preflight` and `preflightRules`.
    pub name: &'static str,
    /// One line, for lists.
    pub summary: &'static str,
    /// The page of the documentation, from the root of the repository.
    pub docs: &'static str,
    /// What `config` takes for this check, sorted by name. `mode` is not here: every check has it.
    pub keys: &'static [ConfigKey],
    pub rules: fn() -> Vec<&'static RuleDoc>,
    /// Makes the check from its `config`, whose keys and values have been held against `keys` already.
    pub build: fn(&BTreeMap<String, Value>) -> Box<dyn Check>,
}

/// A key that takes one of a few words.
#[derive(Debug, Clone, Copy)]
pub struct ConfigKey {
    pub name: &'static str,
    /// The allowed values, sorted.
    pub values: &'static [&'static str],
    pub default: &'static str,
    pub doc: &'static str,
}

/// Every check, sorted by name.
pub static CHECKS: &[CheckEntry] = &[crd_upgrade_safety::ENTRY];

/// The check of that name.
pub fn find(name: &str) -> Option<&'static CheckEntry> {
    CHECKS.iter().find(|check| check.name == name)
}

/// The names of all checks.
pub fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|check| check.name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn is_pascal_case(name: &str) -> bool {
        name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(|c| c.is_ascii_alphanumeric())
    }

    fn is_sorted<'a>(names: impl IntoIterator<Item = &'a str>) -> bool {
        names.into_iter().is_sorted_by(|a, b| a < b)
    }

    #[test]
    fn names_are_sorted_unique_and_pascal_case() {
        assert!(is_sorted(names()));
        for check in CHECKS {
            assert!(is_pascal_case(check.name), "{}", check.name);
            let rules: Vec<&str> = (check.rules)().iter().map(|rule| rule.name).collect();
            assert!(is_sorted(rules.iter().copied()), "{rules:?}");
            assert!(rules.iter().all(|name| is_pascal_case(name)), "{rules:?}");
            assert!(is_sorted(check.keys.iter().map(|key| key.name)), "{}", check.name);
        }
    }

    #[test]
    fn no_rule_or_check_shares_its_name() {
        let mut all: Vec<&str> = names().collect();
        all.extend(CHECKS.iter().flat_map(|check| (check.rules)()).map(|rule| rule.name));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "gantry rules NAME would be ambiguous");
    }

    #[test]
    fn every_check_has_a_page_that_names_its_rules_and_keys() {
        for check in CHECKS {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(check.docs);
            let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", check.docs));
            let rules = (check.rules)();
            let words = rules.iter().map(|rule| rule.name).chain(check.keys.iter().map(|key| key.name));
            for word in words {
                assert!(page.contains(word), "{} does not mention {word}", check.docs);
            }
        }
    }

    #[test]
    fn defaults_are_among_the_allowed_values() {
        for key in CHECKS.iter().flat_map(|check| check.keys) {
            assert!(key.values.contains(&key.default), "{}", key.name);
            assert!(is_sorted(key.values.iter().copied()), "{}", key.name);
            assert!(!key.doc.is_empty());
        }
    }
}
