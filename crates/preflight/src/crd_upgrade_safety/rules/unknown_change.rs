//! Any change that no other rule is responsible for.

use crate::crd_upgrade_safety::keyword_change::{self, KeywordEffect};
use crate::crd_upgrade_safety::node::NodePair;
use crate::crd_upgrade_safety::rule::ViolationText;
use gantry_core::finding::wording::wording;

const EFFECT: KeywordEffect = KeywordEffect {
    breaks: &[],
    verdict: None,
    so: "",
    help: "if you know that all objects that are valid today stay valid, set failMode: open for CRDUpgradeSafety; \
        otherwise keep the field as it is",
};

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let first = pair.unclaimed.first()?;
    let changes: Vec<String> = pair.unclaimed.iter().map(|change| keyword_change::describe(change)).collect();
    let changes = changes.join("; ");
    let field = pair.place.field();
    let diagnosis = keyword_change::unknown(pair, first, &changes, &EFFECT);
    Some(diagnosis.message(wording!(
        "unable to determine if the change of {field} in ",
        VERSIONS,
        " is safe: {changes}"
    )))
}
