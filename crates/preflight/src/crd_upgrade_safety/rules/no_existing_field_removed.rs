//! A field is removed.

use crate::crd_upgrade_safety::json::Json;
use crate::crd_upgrade_safety::node::RemovedNode;
use crate::crd_upgrade_safety::rule::ViolationText;
use gantry_core::finding::wording::wording;
use gantry_schema::keywords;

pub fn judge(node: &RemovedNode) -> ViolationText {
    let place = node.place;
    let (field, version) = (place.field(), &place.version);
    let name = node.name;
    let kind = keywords::get(node.live, "type").and_then(Json::text).map(|kind| format!(" ({kind})"));
    ViolationText {
        message: wording!("field {field} may not be removed from ", VERSIONS),
        help: wording!(
            "keep {field} in ",
            VERSIONS,
            " and mark it as deprecated, or remove it only in a new version \
            that a webhook converts, or after a migration"
        ),
        at: place.steps.clone(),
        ..ViolationText::default()
    }
    .fact("removed".into())
    .documented(format!(
        "\"NoExistingFieldRemoved\" validation failed: crd/{} version/{version} field/{} may not be removed",
        place.crd, place.path
    ))
    .label(format!("the live CRD has {name} here{}", kind.unwrap_or_default()))
}
