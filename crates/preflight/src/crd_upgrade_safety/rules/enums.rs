//! An `enum` is added, or loses values.

use std::collections::BTreeSet;

use crate::crd_upgrade_safety::json::Json;
use crate::crd_upgrade_safety::node::{NodePair, Transition};
use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use gantry_core::finding::wording::wording;

pub fn added(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change("enum").filter(|change| change.transition() == Transition::Added)?;
    let (place, field) = (pair.place, pair.place.field());
    let values: Vec<String> = change.desired.and_then(Json::list)?.iter().map(words::value).collect();
    let values = words::listed(&values);
    Some(
        ViolationText::of_field(place, "enum", "enums added when there were no enum restrictions previously")
            .message(wording!("{field} may not be restricted to an enum in ", VERSIONS, ": {values}"))
            .fact(format!("enum added: {values}"))
            .label("the live CRD allows any value")
            .help(words::or_later(wording!("leave the enum out of ", VERSIONS), "add it")),
    )
}

pub fn value_removed(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change("enum")?;
    let kept: BTreeSet<&Json> = change.desired.and_then(Json::list)?.iter().collect();
    let before: BTreeSet<&Json> = change.live.and_then(Json::list)?.iter().collect();
    let removed: Vec<String> = before.difference(&kept).map(|value| words::value(value)).collect();
    if removed.is_empty() {
        return None;
    }
    let (place, field, values) = (pair.place, pair.place.field(), words::listed(&removed));
    Some(
        ViolationText::of_field(place, "enum", &format!("enum values removed: {}", words::bracketed(&removed)))
            .message(wording!("{values} may not be removed from the enum of {field} in ", VERSIONS))
            .label(format!("the live CRD also allows {values}"))
            .help(words::or_later(wording!("keep {values} in ", VERSIONS), "remove it")),
    )
}
