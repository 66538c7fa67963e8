//! A version removed right away that is still served. Nothing is stored at it: that is `NoStoredVersionRemoved`.

use crate::crd::{CrdPair, steps};
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "ServedVersionRemoved",
        summary: "a version is removed right away that is still served",
        forbids: "A version that the live CRD serves, at which no object is stored, and which the desired CRD lacks. OLM \
            forbids it, too: it does not allow a serving version of a CRD to be removed right away.",
        why: "Every client that still reads or writes the version gets a 404 from one moment to the next, and to take \
            the change back one has to define the version again.",
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
            nobody has missed the version, remove it. If the CRD is somebody else's, deploy it once with the old version \
            added and `served: false`, or waive the finding.",
        breaks: &[Breaks::Writers, Breaks::Readers],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let stored = pair.live.stored_versions();
    let removed = pair.live.versions.iter().filter(|version| {
        version.served && !stored.contains(&&*version.name) && pair.desired.version(&version.name).is_none()
    });
    removed
        .map(|version| {
            let name = &version.name;
            let said = Diagnosis {
                message: format!("served version {name} is removed right away").into(),
                documented: None,
                help: format!(
                    "go in two steps: keep {name} with served: false in this upgrade, see that nobody misses it, and remove it in a later one"
                ).into(),
                at: steps::versions(),
                label: Some(format!("the live CRD serves {name}")),
                ..Diagnosis::default()
            };
            Found { version: Some(name.to_string()), said }
        })
        .collect()
}
