//! A node that says what it said, and no longer takes what it took.

use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::node::Place;
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "IndirectChange",
        summary: "a field no longer takes what it took, because of a change elsewhere",
        reports: "A field of which no other rule reports anything, and for which an object is refused or changed from now on, \
            or for which that can be neither proven nor ruled out. The change is elsewhere: a new field with a default is one \
            more property, and an unchanged validation rule sees values of another type.",
        why: "The API server judges a value as a whole, with all defaults filled in. What was accepted is refused though the \
            schema of the field itself is the same.",
        example: Example::Fields {
            live: "\
source:
  type: object
  maxProperties: 1
  properties:
    image:
      type: string
",
            desired: "\
source:
  type: object
  maxProperties: 1
  properties:
    image:
      type: string
    policy:
      type: string
      default: Always
",
        },
        what_to_do: "Look at what changed around the field, and make it accept everything that is accepted today; or change it \
            in a new version.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[],
    hides_others: false,
    judge: Judge::Proof,
};

/// What is said of a node; `reason` is that of its proof.
pub fn told(place: &Place, reason: Option<&str>) -> Diagnosis {
    let field = place.field();
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    Diagnosis {
        message: wording!("{field} may not take in ", VERSIONS, " what it took, because of a change elsewhere{reason}"),
        fact: Some("changed by another change".to_owned()),
        help: wording!(
            "change what is around {field} only in a version that is new, or so that all that it took passes"
        ),
        at: place.steps.clone(),
        ..Diagnosis::default()
    }
}
