//! A `default` is added.

use crate::crd_upgrade_safety::node::{NodePair, Transition};
use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use gantry_core::finding::wording::wording;

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change("default").filter(|change| change.transition() == Transition::Added)?;
    let (place, field) = (pair.place, pair.place.field());
    let now = words::value(change.desired?);
    let text = format!("new value added as default when previously no default value existed: {now}");
    Some(
        ViolationText::of_field(place, "default", &text)
            .message(wording!("default of {field} may not be added to ", VERSIONS, ": {now}"))
            .fact(format!("default added: {now}"))
            .label("no default in the live CRD".into())
            .help(wording!(
                "leave the default out of ",
                VERSIONS,
                ", or add it only in a new version that a webhook \
                converts, or after a migration"
            )),
    )
}
