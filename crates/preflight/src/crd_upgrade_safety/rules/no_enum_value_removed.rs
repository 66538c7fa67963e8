//! Values are removed from an `enum`.

use std::collections::BTreeSet;

use crate::crd_upgrade_safety::json::Json;
use crate::crd_upgrade_safety::node::NodePair;
use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use gantry_core::finding::wording::wording;

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change("enum")?;
    let kept: BTreeSet<&Json> = change.desired.and_then(Json::list)?.iter().collect();
    let before: BTreeSet<&Json> = change.live.and_then(Json::list)?.iter().collect();
    let removed: Vec<String> = before.difference(&kept).map(|value| words::value(value)).collect();
    if removed.is_empty() {
        return None;
    }
    let (place, field) = (pair.place, pair.place.field());
    let values = words::listed(&removed);
    Some(
        ViolationText::of_field(place, "enum", &format!("enum values removed: {}", words::bracketed(&removed)))
            .message(wording!("{values} may not be removed from the enum of {field} in ", VERSIONS))
            .label(format!("the live CRD also allows {values}"))
            .help(wording!(
                "keep {values} in ",
                VERSIONS,
                ", or remove it only in a new version that a webhook \
                converts, or after a migration"
            )),
    )
}
