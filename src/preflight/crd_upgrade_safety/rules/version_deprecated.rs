//! A version is marked as deprecated.

use crate::crd::{CrdPair, steps};
use crate::finding::Severity;
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "VersionDeprecated",
        summary: "a version is marked as deprecated (note)",
        reports: "A version that gets `deprecated: true`.",
        why: "Nothing breaks. The API server warns every client that uses the version from now on, which fills logs.",
        example: Example::Crd {
            live: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
",
            desired: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
    deprecated: true
",
        },
        what_to_do: "Nothing, but tell the users of the version.",
        breaks: &[],
        severity: Severity::Info,
    },
    weight: Weight::Beyond { semantic: Severity::Info },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    pair.common_versions()
        .filter(|(live, desired)| !live.deprecated && desired.deprecated)
        .map(|(live, desired)| {
            let diagnosis = Diagnosis {
                message: format!("version {} is deprecated from now on", live.name).into(),
                help: format!("nothing breaks; the server warns clients that use {}", live.name).into(),
                at: steps::of_version(desired.index, "deprecated"),
                label: Some("not deprecated in the live CRD".into()),
                ..Diagnosis::default()
            };
            Found { version: Some(live.name.to_string()), diagnosis }
        })
        .collect()
}
