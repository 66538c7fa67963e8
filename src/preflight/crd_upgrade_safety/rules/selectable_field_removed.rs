//! Objects can no longer be selected by a field.

use crate::crd::{CrdPair, steps};
use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Found, Judge, Rule, Weight};
use crate::preflight::crd_upgrade_safety::words;
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "SelectableFieldRemoved",
        summary: "objects can no longer be selected by a field (warning)",
        reports: "A `selectableFields` entry that a version of the live CRD has and the same version of the desired \
            one does not.",
        why: "The server refuses requests that select by the field (`--field-selector`, a controller's watch) from now \
            on.",
        example: Example::Crd {
            live: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields:
    - jsonPath: .spec.color
",
            desired: "\
spec:
  versions:
  - name: v1
    served: true
    storage: true
",
        },
        what_to_do: "Keep the entry in this version.",
        breaks: &[Breaks::Readers],
        severity: Severity::Warning,
    },
    weight: Weight::Beyond { semantic: Severity::Error },
    claims: &[],
    hides_others: false,
    judge: Judge::Crd(judge),
};

fn judge(pair: &CrdPair) -> Vec<Found> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        let kept = &desired.selectable_fields;
        let gone = live.selectable_fields.iter().filter(|field| !kept.contains(field));
        let gone: Vec<&str> = gone.map(String::as_str).collect();
        if gone.is_empty() {
            continue;
        }
        let fields = words::listed(&gone);
        let diagnosis = Diagnosis {
            message: wording!("objects of ", VERSIONS, " can no longer be selected by {fields}"),
            help: wording!("keep {fields} in selectableFields of ", VERSIONS),
            at: steps::of_version(desired.index, "selectableFields"),
            label: Some(format!("the live CRD has {fields}")),
            ..Diagnosis::default()
        };
        found.push(Found { version: Some(live.name.to_string()), diagnosis });
    }
    found
}
