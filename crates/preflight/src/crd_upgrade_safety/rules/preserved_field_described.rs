//! A field that the server kept as an unknown field gets a schema.

use crate::crd_upgrade_safety::json::Json;
use crate::crd_upgrade_safety::node::AddedNode;
use crate::crd_upgrade_safety::rule::ViolationText;
use gantry_core::finding::wording::wording;
use gantry_schema::keywords;

pub fn judge(node: &AddedNode) -> ViolationText {
    let place = node.place;
    let field = place.field();
    let name = node.name;
    let kind = keywords::get(node.desired, "type").and_then(Json::text).map(|kind| format!(" ({kind})"));
    let kind = kind.unwrap_or_default();
    ViolationText {
        message: wording!("field {field} gets a schema{kind} in ", VERSIONS, ", which kept any value there until now"),
        help: wording!(
            "describe {field} only in a new version that a webhook converts, or after a migration, and \
            leave it out of the schema of ",
            VERSIONS
        ),
        at: place.steps.clone(),
        ..ViolationText::default()
    }
    .fact(format!("described{kind}"))
    .label(format!("the live CRD keeps {name} as an unknown field"))
}
