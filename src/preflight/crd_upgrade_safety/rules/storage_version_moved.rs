//! The storage version changes.

use super::storage_version_loses_fields;
use crate::crd::{CrdPair, steps};
use crate::finding::Severity;
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "StorageVersionMoved",
        summary: "the storage version changes (note)",
        reports: "A storage version that differs from the live CRD's.",
        why: "Existing objects stay stored at the old version until they are next written, so `status.storedVersions` \
            names both versions from now on, and the old one cannot be removed before every object has been written \
            once. Reverting the change requires the same.",
        example: Example::Crd {
            live: "\
spec:
  versions:
  - name: v1alpha1
    served: true
    storage: true
  - name: v1beta1
    served: true
    storage: false
",
            desired: "\
spec:
  versions:
  - name: v1alpha1
    served: true
    storage: false
  - name: v1beta1
    served: true
    storage: true
",
        },
        what_to_do: "Nothing now. Before the old version is removed, write every object once (`gantry rules \
            NoStoredVersionRemoved`).",
        breaks: &[],
        severity: Severity::Info,
    },
    weight: Weight::Beyond { semantic: Severity::Info },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let (Some(was), Some(now)) = (pair.live.storage(), pair.desired.storage()) else {
        return Vec::new();
    };
    // If the old version is removed, another rule reports it.
    if was.name == now.name || pair.desired.version(&was.name).is_none() {
        return Vec::new();
    }
    // If fields are lost, `StorageVersionLosesFields` reports more than this rule.
    if !storage_version_loses_fields::judge(pair).is_empty() {
        return Vec::new();
    }
    let diagnosis = Diagnosis {
        message: format!("the storage version changes from {} to {}", was.name, now.name).into(),
        help: format!(
            "existing objects stay stored at {} until they are next written; keep that version until all of them \
                have been written",
            was.name
        )
        .into(),
        at: steps::of_version(now.index, "storage"),
        label: Some(format!("the live CRD stores at {}", was.name)),
        ..Diagnosis::default()
    };
    vec![Found { version: Some(now.name.to_string()), diagnosis }]
}
