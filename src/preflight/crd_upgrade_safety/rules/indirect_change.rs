//! A node whose own keywords did not change for the worse, but which no longer accepts everything that it accepted.

use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::node::Place;
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

/// The maximum number of causes that the message names.
const NAMED: usize = 3;

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "IndirectChange",
        summary: "a field no longer accepts what it accepted, because of another change",
        reports: "A field that no other rule reports, although the server will or may refuse or change values of it \
            from now on. The cause is a change elsewhere in the schema: for example, a new field with a default counts \
            towards maxProperties of its parent, or an unchanged validation rule sees values of another type.",
        why: "The API server validates a value as a whole, after it has filled in all defaults. A value that was \
            accepted can therefore be refused although the schema of the field itself has not changed.",
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
        what_to_do: "Look at what changed around the field; if the changes are below it, the message names them. Make \
            the new schema accept everything that is accepted today, or make the change in a new version that a \
            webhook converts, or after a migration.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[],
    hides_others: false,
    judge: Judge::Proof,
};

/// The violation at a node, caused by changes of the nodes with these paths; `reason` is the reason that its proof
/// gives.
pub fn diagnosis(place: &Place, causes: Vec<String>, reason: Option<&str>) -> Diagnosis {
    let field = place.field();
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let names: Vec<&str> = causes.iter().map(|path| path.strip_prefix("^.").unwrap_or(path)).collect();
    let because = match names.as_slice() {
        [] => "of another change".to_owned(),
        [one] => format!("{one} changes"),
        [named @ .., last] if names.len() <= NAMED => format!("{} and {last} change", named.join(", ")),
        all => format!("{} and {} other fields below it change", all[..NAMED - 1].join(", "), all.len() - NAMED + 1),
    };
    let what = if names.is_empty() { format!("the changes around {field}") } else { "this change".to_owned() };
    Diagnosis {
        message: wording!(
            "{field} may refuse values in ",
            VERSIONS,
            " that it accepts today, because {because}{reason}"
        ),
        fact: Some("affected by another change".to_owned()),
        help: wording!(
            "make {what} only in a new version that a webhook converts, or after a migration, or keep \
            valid everything that is valid today"
        ),
        at: place.steps.clone(),
        caused_by: causes,
        ..Diagnosis::default()
    }
}
