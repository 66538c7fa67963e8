//! A version that is still served is removed in one step. If objects may be stored at it, `NoStoredVersionRemoved`
//! reports it instead.

use crate::crd::{CrdPair, steps};
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "ServedVersionRemoved",
        summary: "a version that is still served is removed in one step",
        reports: "A version that the live CRD serves, at which no object is stored, and which the desired CRD does not \
            have. OLM forbids this too: it does not allow a serving version of a CRD to be removed right away.",
        why: "Clients that still use the version suddenly get a 404, and reverting the change means defining the \
            version again.",
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
        what_to_do: "Use two steps: first set `served: false`, which is easy to revert; in a later upgrade, once no \
            one has missed the version and no `managedFields` name it (`ObjectInRemovedVersion`), remove it. If the \
            CRD is someone else's, deploy it once with the old version added and `served: false`, or waive the finding.",
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
            let diagnosis = Diagnosis {
                message: format!("served version {name} is removed in one step").into(),
                documented: None,
                help: format!(
                    "use two steps: keep {name} with served: false in this upgrade, check that no client misses it, \
                        and remove it in a later upgrade"
                )
                .into(),
                at: steps::versions(),
                label: Some(format!("the live CRD serves {name}")),
                ..Diagnosis::default()
            };
            Found { version: Some(name.to_string()), diagnosis }
        })
        .collect()
}
