//! A field is removed.

use crate::finding::wording::wording;
use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::json::Json;
use crate::preflight::crd_upgrade_safety::node::RemovedNode;
use crate::preflight::crd_upgrade_safety::rule::{Diagnosis, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};
use gantry_schema::keywords;

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoExistingFieldRemoved",
        summary: "a field is removed from an existing version",
        reports: "A field, a list's items or a map's values that a version of the live CRD has in its schema and the \
            same version of the desired one does not. If a whole branch is removed, only its top is reported.",
        why: "The API server prunes fields that the schema does not have: the field disappears from every object when \
            it is next written, and clients that write it get no error. Readers no longer find it.",
        example: Example::Fields {
            live: "\
pollInterval:
  type: string
",
            desired: "{}\n",
        },
        what_to_do: "Keep the field and say in its description that it is deprecated. To remove it, leave it out of a \
            new version that a webhook converts, or after a migration, and remove the old version when no client uses \
            it any more.",
        breaks: &[Breaks::Data, Breaks::Writers, Breaks::Readers],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    claims: &[],
    hides_others: false,
    judge: Judge::Removed(judge),
};

fn judge(node: &RemovedNode) -> Diagnosis {
    let place = node.place;
    let (field, version) = (place.field(), &place.version);
    let name = field.rsplit('.').next().unwrap_or(field);
    let kind = keywords::get(node.live, "type").and_then(Json::text).map(|kind| format!(" ({kind})"));
    Diagnosis {
        message: wording!("field {field} may not be removed from ", VERSIONS),
        fact: Some("removed".into()),
        documented: Some(format!(
            "\"NoExistingFieldRemoved\" validation failed: crd/{} version/{version} field/{} may not be removed",
            place.crd, place.path
        )),
        help: wording!(
            "keep {field} in ",
            VERSIONS,
            " and mark it as deprecated, or remove it only in a new version \
            that a webhook converts, or after a migration"
        ),
        at: place.steps.clone(),
        label: Some(format!("the live CRD has {name} here{}", kind.unwrap_or_default())),
        ..Diagnosis::default()
    }
}
