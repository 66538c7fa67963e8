//! The registry of all built-in checks, for the configuration, help and documentation.
//!
//! It is a plain sorted list; the tests below check that it is consistent.

use super::entry::CheckEntry;
use super::{
    admission_dry_run, api_availability, conversion_webhook, crd_upgrade_safety, custom, custom_resource_validation,
    deletion_safety, olm, permission_validation,
};
use gantry_deploy::config::KnownPreflightRules;

/// Every check, sorted by name.
pub static CHECKS: &[CheckEntry] = &[
    api_availability::ENTRY,
    admission_dry_run::ENTRY,
    crd_upgrade_safety::ENTRY,
    conversion_webhook::ENTRY,
    custom_resource_validation::ENTRY,
    deletion_safety::ENTRY,
    #[cfg(feature = "olm")]
    olm::extension_resolution::ENTRY,
    #[cfg(feature = "olm")]
    olm::operator_dependencies::ENTRY,
    permission_validation::ENTRY,
];

/// The check with this name.
pub fn find(name: &str) -> Option<&'static CheckEntry> {
    CHECKS.iter().find(|check| check.name == name)
}

/// The names of all checks.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|check| check.name)
}

/// All checks and kinds of custom checks, for the configuration.
pub fn known() -> KnownPreflightRules {
    KnownPreflightRules {
        checks: CHECKS.iter().map(CheckEntry::known).collect(),
        left_out: olm::LEFT_OUT,
        kinds: custom::KINDS.iter().map(custom::KindEntry::known).collect(),
    }
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
    fn rules_that_a_check_supersedes_exist() {
        let superseded = CHECKS.iter().flat_map(|check| check.supersedes);
        for theirs in superseded {
            let check = find(theirs.check).unwrap_or_else(|| panic!("{}", theirs.check));
            assert!((check.rules)().iter().any(|rule| rule.name == theirs.rule), "{}: {}", theirs.check, theirs.rule);
        }
    }

    #[test]
    fn rules_that_predict_refusals_exist() {
        for check in CHECKS {
            let names = check.finding_names();
            assert!(check.refusals.iter().all(|rule| names.contains(rule)), "{}", check.name);
        }
    }

    #[test]
    fn every_check_has_a_page_that_names_its_rules_and_keys() {
        for check in CHECKS {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(check.docs());
            let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", check.docs()));
            let rules = (check.rules)();
            let keys = check.keys();
            let words = rules.iter().map(|rule| rule.name).chain(keys.iter().map(|key| key.name));
            for word in words {
                assert!(page.contains(word), "{} does not mention {word}", check.docs());
            }
        }
    }
}
