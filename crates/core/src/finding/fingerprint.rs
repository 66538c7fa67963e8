//! Identifies the same finding in two runs, even if lines moved between them.
//!
//! The formats that other programs compare (SARIF, GitLab's) contain the fingerprint, and `--baseline` compares it.
//! `docs/output.md` describes how to compute it from the JSON report.

use std::fmt;

use super::Finding;
use crate::hash::fnv128;

/// A hash of what identifies a finding: its rule, its object, the version and path in the object, and what changed
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// The fingerprint of a finding.
    pub fn new(finding: &Finding) -> Self {
        Self::hash_parts(finding, finding.body.fact.as_deref())
    }

    /// A fingerprint without the fact: equal for all findings of the rule at this place.
    pub fn of_place(finding: &Finding) -> Self {
        Self::hash_parts(finding, None)
    }

    /// The fingerprint of the `number`th finding (from 0) with this fingerprint, for formats that need unique ones.
    #[must_use]
    pub fn numbered(self, number: usize) -> Self {
        if number == 0 { self } else { Fingerprint(fnv128(format!("{self} {number}").as_bytes())) }
    }

    fn hash_parts(finding: &Finding, fact: Option<&str>) -> Self {
        // The API version of an object does not identify it.
        let (group, kind, namespace, name) = match &finding.object {
            Some(object) => {
                (Some(object.group()), Some(object.kind.as_str()), object.namespace.as_deref(), Some(&object.name))
            }
            None => (None, None, None, None),
        };
        let name = name.map(String::as_str);
        let (version, path) = (finding.body.version.as_deref(), finding.body.path.as_deref());
        let parts = [Some(finding.rule.as_str()), group, kind, namespace, name, version, path, fact];
        // Serializing strings never fails.
        Fingerprint(fnv128(&serde_json::to_vec(&parts).unwrap_or_default()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Severity, samples};

    #[test]
    fn only_the_subject_of_a_finding_changes_its_fingerprint() {
        let finding = samples::removed_field("v1", 24);
        let same = |change: fn(&mut Finding)| {
            let mut other = finding.clone();
            change(&mut other);
            Fingerprint::new(&other) == Fingerprint::new(&finding)
        };
        let about: [fn(&mut Finding); 6] = [
            |f| f.rule = "Other".into(),
            |f| f.object.as_mut().unwrap().name = "other".into(),
            |f| f.object = None,
            |f| f.body.version = Some("v2".into()),
            |f| f.body.path = None,
            |f| f.body.fact = Some("other".into()),
        ];
        assert!(about.into_iter().all(|change| !same(change)));
        let beside: [fn(&mut Finding); 6] = [
            |f| f.source = None,
            |f| f.severity = Severity::Info,
            |f| f.body.message = "in other words".into(),
            |f| f.body.witnesses.clear(),
            |f| f.body.breaks.clear(),
            |f| f.object.as_mut().unwrap().api_version = "apiextensions.k8s.io/v2".into(),
        ];
        assert!(beside.into_iter().all(same));
    }

    /// Other programs store fingerprints, so they must not change.
    #[test]
    fn the_fingerprint_is_the_documented_one() {
        let finding = samples::removed_field("v1", 24);
        let text = r#"["NoExistingFieldRemoved","apiextensions.k8s.io","CustomResourceDefinition",null,"samples.test.example.com","v1","^.spec.pollInterval","removed"]"#;
        let hash = format!("{:032x}", fnv128(text.as_bytes()));
        assert_eq!(Fingerprint::new(&finding).to_string(), hash);
        assert_eq!(Fingerprint::new(&finding).numbered(0).to_string(), hash);
        assert_ne!(Fingerprint::new(&finding).numbered(1), Fingerprint::new(&finding));
    }
}
