//! A field that was kept as an unknown one, and gets a schema.

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
        summary: "a field that was kept as an unknown one gets a schema",
        reports: "A field that a version of the desired CRD describes, below a node where the same version of the live one keeps \
            unknown fields (`x-kubernetes-preserve-unknown-fields: true`) and does not describe it. Of a whole branch only the \
            top is reported. Where the node no longer keeps unknown fields, `PreserveUnknownFieldsChange` reports it.",
        why: "It is no new field: whatever objects have there was accepted and kept. With a schema the API server \
            refuses values of other types, and drops what the schema does not name when an object is next written. The \
            documentation of kapp and OLM allows new optional fields and does not speak of this.",
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
        what_to_do: "Describe the field only in a new version, or so that everything passes: without a type, nullable and \
            with `x-kubernetes-preserve-unknown-fields: true`.",
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
        message: wording!("field {field} gets a schema{kind} in ", VERSIONS, ", which kept whatever it held"),
        fact: Some(format!("described{kind}")),
        help: wording!("describe {field} only in a version that is new, or leave it undescribed in ", VERSIONS),
        at: place.steps.clone(),
        label: Some(format!("the live CRD keeps {name} as an unknown field")),
        ..Diagnosis::default()
    }
}
