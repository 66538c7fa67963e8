//! A version that is no longer served.

use crate::crd::{CrdPair, steps};
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "VersionUnserved",
        summary: "a version is no longer served (warning)",
        reports: "A version that the live CRD serves and the desired CRD has with `served: false`.",
        why: "This is the right first step towards removing a version, but clients that still use it get a 404 from \
            then on.",
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
  - name: v1alpha1
    served: false
    storage: false
  - name: v1beta1
    served: true
    storage: true
",
        },
        what_to_do: "Make sure that no client uses the version any more: `managedFields` of the objects name the \
            version at which each manager writes. If you missed one, `served: true` brings the version back. \
            Before the version is removed, no `managedFields` may name it any more: see `ObjectInRemovedVersion`.",
        breaks: &[Breaks::Writers, Breaks::Readers],
        severity: Severity::Warning,
    },
    weight: Weight::Beyond { semantic: Severity::Warning },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let served = pair.live.served_versions();
    served
        .filter_map(|live| {
            let name = &live.name;
            let desired = pair.desired.version(name).filter(|desired| !desired.served)?;
            let diagnosis = Diagnosis {
                message: format!("version {name} is no longer served").into(),
                documented: None,
                help: format!("make sure that no client uses {name} any more; served: true brings it back").into(),
                at: steps::of_version(desired.index, "served"),
                label: Some(format!("the live CRD serves {name}")),
                ..Diagnosis::default()
            };
            Some(Found { version: Some(name.to_string()), diagnosis })
        })
        .collect()
}
