//! `type` changed.

use crate::crd_upgrade_safety::json::Json;
use crate::crd_upgrade_safety::node::NodePair;
use crate::crd_upgrade_safety::rule::ViolationText;
use gantry_core::finding::wording::wording;

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change("type")?;
    let was = change.live.and_then(Json::text).unwrap_or_default();
    let now = change.desired.and_then(Json::text).unwrap_or_default();
    // Such a field still accepts every integer or every string, unless its other keywords, which have rules of their
    // own, narrow it.
    let int_or_string = pair.desired("x-kubernetes-int-or-string").is_some();
    if now.is_empty() && int_or_string && matches!(was, "integer" | "string") {
        return None;
    }
    let (place, field) = (pair.place, pair.place.field());
    let name = |kind: &str| if kind.is_empty() { "any".to_owned() } else { kind.to_owned() };
    let (from, to) = (name(was), name(now));
    Some(
        ViolationText::of_field(place, "type", &format!("type changed from \"{was}\" to \"{now}\""))
            .message(wording!("type of {field} may not be changed from {from} to {to} in ", VERSIONS))
            .label(format!("was {from} in the live CRD"))
            .help(wording!(
                "keep {field} as it is in ",
                VERSIONS,
                " and add a field with another name, or change it in a new version that a webhook converts, or after \
                    a migration"
            )),
    )
}
