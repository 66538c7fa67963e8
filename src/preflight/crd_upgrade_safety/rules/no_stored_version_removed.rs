//! A version that may still hold stored objects is removed.

use crate::crd::{CrdPair, steps};
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::migration;
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoStoredVersionRemoved",
        summary: "a version that may still hold stored objects is removed",
        reports: "A version that `status.storedVersions` of the live CRD names and `spec.versions` of the desired one \
            does not have.",
        why: "Objects may still be stored at that version, and without its definition the API server could not read \
            them. It therefore refuses the change.",
        example: Example::Crd {
            live: "\
spec:
  versions:
  - name: v1alpha1
    served: true
    storage: true
status:
  storedVersions: [v1alpha1]
",
            desired: "\
spec:
  versions:
  - name: v1beta1
    served: true
    storage: true
",
        },
        what_to_do: "Without a conversion webhook, first add the fields that the stored versions have to the version \
            that stays: a write drops all others. Then add the new version as the storage version and keep the old \
            one, with `served: false` once no client uses it. Write every object once (`kubectl get \
            PLURAL.VERSION.GROUP -A -o yaml | kubectl replace -f -`, at the version that stays), remove the old version from `status.storedVersions`, move the entries of \
            `metadata.managedFields` that name it, and only then remove it from the CRD. The finding prints the \
            commands.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Readers, Breaks::Data],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let removed = pair.live.stored_versions().into_iter().filter(|name| pair.desired.version(name).is_none());
    removed
        .map(|name| {
            let diagnosis = Diagnosis {
                message: format!("stored version {name} may not be removed").into(),
                documented: Some(format!(
                    "\"NoStoredVersionRemoved\" validation failed: stored version \"{name}\" removed"
                )),
                help: format!(
                    "objects may be stored at {name}, and the server does not report which, so migrate all of them \
                        first"
                )
                .into(),
                steps: migration::plan(pair),
                at: steps::versions(),
                label: Some(format!("the cluster may have objects that are stored at {name}")),
                ..Diagnosis::default()
            };
            Found { version: Some(name.to_owned()), diagnosis }
        })
        .collect()
}
