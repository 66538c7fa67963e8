//! A `default` is removed.

use crate::crd_upgrade_safety::node::{NodePair, Transition};
use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use gantry_core::finding::wording::wording;

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change("default").filter(|change| change.transition() == Transition::Removed)?;
    let (place, field) = (pair.place, pair.place.field());
    let was = words::value(change.live?);
    let text = format!("default value has been removed when previously a default value existed: {was}");
    Some(
        ViolationText::of_field(place, "default", &text)
            .message(wording!("default of {field} may not be removed from ", VERSIONS, ": {was}"))
            .fact(format!("default removed: {was}"))
            .label(format!("the live CRD has default {was} here"))
            .help(wording!(
                "keep the default {was} in ",
                VERSIONS,
                ", or remove it only in a new version that a \
                webhook converts, or after a migration"
            )),
    )
}
