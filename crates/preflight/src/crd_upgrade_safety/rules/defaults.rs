//! A `default` is added, changed or removed.

use crate::crd_upgrade_safety::node::{NodePair, Transition};
use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use gantry_core::finding::wording::wording;

pub fn added(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change("default").filter(|change| change.transition() == Transition::Added)?;
    let (place, field, now) = (pair.place, pair.place.field(), words::value(change.desired?));
    let text = format!("new value added as default when previously no default value existed: {now}");
    Some(
        ViolationText::of_field(place, "default", &text)
            .message(wording!("default of {field} may not be added to ", VERSIONS, ": {now}"))
            .fact(format!("default added: {now}"))
            .label("no default in the live CRD")
            .help(words::or_later(wording!("leave the default out of ", VERSIONS), "add it")),
    )
}

pub fn changed(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change("default").filter(|change| change.transition() == Transition::Changed)?;
    let (place, field) = (pair.place, pair.place.field());
    let (was, now) = (words::value(change.live?), words::value(change.desired?));
    Some(
        ViolationText::of_field(place, "default", &format!("default value has been changed from {was} to {now}"))
            .message(wording!("default of {field} may not be changed from {was} to {now} in ", VERSIONS))
            .fact(format!("default changed from {was} to {now}"))
            .label(format!("was {was} in the live CRD"))
            .help(words::or_later(wording!("keep the default {was} in ", VERSIONS), "change it")),
    )
}

pub fn removed(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change("default").filter(|change| change.transition() == Transition::Removed)?;
    let (place, field, was) = (pair.place, pair.place.field(), words::value(change.live?));
    let text = format!("default value has been removed when previously a default value existed: {was}");
    Some(
        ViolationText::of_field(place, "default", &text)
            .message(wording!("default of {field} may not be removed from ", VERSIONS, ": {was}"))
            .fact(format!("default removed: {was}"))
            .label(format!("the live CRD has default {was} here"))
            .help(words::or_later(wording!("keep the default {was} in ", VERSIONS), "remove it")),
    )
}
