//! An `enum` is added.

use crate::crd_upgrade_safety::json::Json;
use crate::crd_upgrade_safety::node::{NodePair, Transition};
use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use gantry_core::finding::wording::wording;

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change("enum").filter(|change| change.transition() == Transition::Added)?;
    let (place, field) = (pair.place, pair.place.field());
    let values: Vec<String> = change.desired.and_then(Json::list)?.iter().map(words::value).collect();
    let values = words::listed(&values);
    Some(
        ViolationText::of_field(place, "enum", "enums added when there were no enum restrictions previously")
            .message(wording!("{field} may not be restricted to an enum in ", VERSIONS, ": {values}"))
            .fact(format!("enum added: {values}"))
            .label("the live CRD allows any value".into())
            .help(wording!(
                "leave the enum out of ",
                VERSIONS,
                ", or add it only in a new version that a webhook \
                converts, or after a migration"
            )),
    )
}
