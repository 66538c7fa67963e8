//! A field that the server kept as an unknown field gets a schema.

use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::json::Json;
use crate::preflight::crd_upgrade_safety::node::AddedNode;
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};
use gantry_schema::keywords;

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "PreservedFieldDescribed",
        summary: "a field that the server kept as an unknown field gets a schema",
        reports: "A field that a version of the desired CRD describes and the same version of the live one does not, \
            in an object that keeps unknown fields in both (`x-kubernetes-preserve-unknown-fields: true`). If a whole \
            branch is new, only its top is reported. If the object no longer keeps unknown fields, \
            `PreserveUnknownFieldsChange` reports that instead.",
        why: "For existing objects the field is not new: the API server accepted and kept any value there. With a \
            schema it refuses values of other types, and drops fields that the schema does not name when an object is \
            next written. The documentation of kapp and OLM allows new optional fields and does not mention this case.",
        example: Example::Fields {
            live: "\
config:
  type: object
  x-kubernetes-preserve-unknown-fields: true
",
            desired: "\
config:
  type: object
  x-kubernetes-preserve-unknown-fields: true
  properties:
    level:
      type: integer
",
        },
        what_to_do: "Describe the field only in a new version that a webhook converts, or after a migration, or \
            describe it so that every value stays valid and is \
            kept: without a type, with `nullable: true` and with `x-kubernetes-preserve-unknown-fields: true`.",
        breaks: &[Breaks::Writers, Breaks::Readers, Breaks::Data],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[],
    hides_others: false,
    judge: Judge::Added(judge),
};

fn judge(node: &AddedNode) -> Diagnosis {
    let place = node.place;
    let field = place.field();
    let name = field.rsplit('.').next().unwrap_or(field);
    let kind = keywords::get(node.desired, "type").and_then(Json::text).map(|kind| format!(" ({kind})"));
    let kind = kind.unwrap_or_default();
    Diagnosis {
        message: wording!("field {field} gets a schema{kind} in ", VERSIONS, ", which kept any value there until now"),
        fact: Some(format!("described{kind}")),
        help: wording!(
            "describe {field} only in a new version that a webhook converts, or after a migration, and \
            leave it out of the schema of ",
            VERSIONS
        ),
        at: place.steps.clone(),
        label: Some(format!("the live CRD keeps {name} as an unknown field")),
        ..Diagnosis::default()
    }
}
