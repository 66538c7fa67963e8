//! A node whose keywords are unchanged or harmless, and which no longer accepts what it accepted.

use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::node::Place;
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "IndirectChange",
        summary: "a field no longer accepts what it accepted, because of another change",
        reports: "A field that no other rule reports, and of which a value is refused or changed from now on, or may be. The \
            change is elsewhere in the schema: for example, a new field with a default counts towards maxProperties of its \
            parent, and an unchanged validation rule sees values of another type.",
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
        message: wording!(
            "{field} may no longer accept in ",
            VERSIONS,
            " all that it accepts today, because of another change{reason}"
        ),
        fact: Some("affected by another change".to_owned()),
        help: wording!(
            "make the changes around {field} in a new version, or so that all that is accepted today still is"
        ),
        at: place.steps.clone(),
        ..Diagnosis::default()
    }
}
