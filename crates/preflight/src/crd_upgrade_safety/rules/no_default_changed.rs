//! A `default` changes.

use crate::crd_upgrade_safety::node::{NodePair, Transition};
use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use gantry_core::finding::wording::wording;

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change("default").filter(|change| change.transition() == Transition::Changed)?;
    let (place, field) = (pair.place, pair.place.field());
    let (was, now) = (words::value(change.live?), words::value(change.desired?));
    Some(
        ViolationText::of_field(place, "default", &format!("default value has been changed from {was} to {now}"))
            .message(wording!("default of {field} may not be changed from {was} to {now} in ", VERSIONS))
            .fact(format!("default changed from {was} to {now}"))
            .label(format!("was {was} in the live CRD"))
            .help(wording!(
                "keep the default {was} in ",
                VERSIONS,
                ", or change it only in a new version that a \
                webhook converts, or after a migration"
            )),
    )
}
