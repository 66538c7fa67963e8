//! A version that is not served and at which no object is stored is removed.

use crate::crd::{CrdPair, steps};
use crate::finding::{Breaks, Severity};
use crate::plan::managed;
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "UnservedVersionRemoved",
        summary: "a version is removed at which objects may still be stored, or that `managedFields` may name (warning)",
        reports: "A version that the live CRD has with `served: false`, which `status.storedVersions` does not name, and \
            which the desired CRD does not have.",
        why: "This is the right last step of removing a version, unless an object is still stored at it: \
            `status.storedVersions` may have been changed by hand before every object was written again. The server \
            cannot read such an object, and then answers every list of the kind with an error. It is also too early if \
            `metadata.managedFields` of an object still \
            name it, because some manager once wrote the object at it. Then the server answers every server-side apply \
            of the object with an error \
            ([kubernetes/kubernetes#111937](https://github.com/kubernetes/kubernetes/issues/111937)). Writing the \
            objects again, as for a storage version migration, does not change these entries.",
        example: Example::Crd {
            live: "\
spec:
  versions:
  - name: v1alpha1
    served: false
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
        what_to_do: "Enable `CustomResourceValidation`: it reads the objects, and reports those that name the version \
            as errors (`ObjectInRemovedVersion`). Or run the command that the finding prints before the deploy: it writes \
            every object again, and moves such entries to another version.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Warning,
    },
    weight: Weight::Beyond { semantic: Severity::Warning },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let CrdPair { live, desired, .. } = pair;
    let removed = live.versions.iter().filter(|version| {
        !version.served && !live.is_stored(&version.name) && desired.version(&version.name).is_none()
    });
    removed
        .map(|version| {
            let name = &version.name;
            let first = format!(
                "make sure that every object was written since {name} was last the storage version: CustomResourceValidation \
                 reports objects whose managedFields name it"
            );
            let command = managed::remaining(live, desired).map(|to| managed::move_all(live, &[name], to));
            let help =
                if command.is_some() { format!("{first}; this command writes all of them again:") } else { first };
            let diagnosis = Diagnosis {
                message: format!(
                    "version {name} is removed: one object that is still stored at it makes this kind unreadable, and an \
                        object whose managedFields name it can no longer be written by server-side apply"
                )
                .into(),
                documented: None,
                help: help.into(),
                steps: command.into_iter().collect(),
                at: steps::versions(),
                label: Some(format!("the live CRD has {name}")),
                ..Diagnosis::default()
            };
            Found { version: Some(name.to_string()), diagnosis }
        })
        .collect()
}
