//! A version removed at once that was still served. Nothing is stored at it: that is `NoStoredVersionRemoved`.

use super::{Found, Judge, Rule, Said, Weight};
use crate::preflight::crd_upgrade_safety::model::CrdPair;
use crate::preflight::rule::{Example, RuleDoc};
use crate::report::{Breaks, Severity};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "ServedVersionRemoved",
        summary: "a version is removed at once that was still served (warning)",
        forbids: "Nothing: it warns of a version that the live CRD serves, at which no object is stored, and which the \
            desired CRD lacks.",
        why: "Every client that still reads or writes the version gets a 404 from one moment to the next, and taking \
            the change back means to define the version anew.",
        example: Example::Crd {
            live: "\
spec:
  versions:
  - name: v1alpha1
    served: true
    storage: false
  - name: v1beta1
    served: true
    storage: true
status:
  storedVersions: [v1beta1]
",
            desired: "\
spec:
  versions:
  - name: v1beta1
    served: true
    storage: true
",
        },
        what_to_do: "Go in two steps: first set `served: false`, which can be taken back; in a later upgrade, once \
            nobody has missed the version, remove it.",
        breaks: &[Breaks::Writers, Breaks::Readers],
        severity: Severity::Warning,
    },
    weight: Weight::Beyond { semantic: Severity::Error },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let stored = pair.live.stored_versions();
    let removed = pair.live.spec.versions.iter().filter(|version| {
        version.served && !stored.contains(&version.name.as_str()) && pair.desired.version(&version.name).is_none()
    });
    removed
        .map(|version| {
            let name = &version.name;
            let said = Said {
                message: format!("served version {name} is removed at once"),
                documented: None,
                help: format!(
                    "go in two steps: keep {name} with served: false in this upgrade, see that nobody misses it, and remove it in a later one"
                ),
                at: vec!["spec".into(), "versions".into()],
                label: Some(format!("the live CRD serves {name}")),
                ..Said::default()
            };
            Found { version: Some(name.clone()), said }
        })
        .collect()
}
