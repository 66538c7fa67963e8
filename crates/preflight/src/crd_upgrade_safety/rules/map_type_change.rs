//! `x-kubernetes-map-type` added, changed or removed.

use crate::crd_upgrade_safety::json::Json;
use crate::crd_upgrade_safety::keyword_change::{self, KeywordEffect};
use crate::crd_upgrade_safety::node::NodePair;
use crate::crd_upgrade_safety::rule::{BeyondProof, ViolationText};
use gantry_core::finding::{Breaks, Verdict};

const KEYWORD: &str = "x-kubernetes-map-type";

/// The list of owners changes, and no value is refused.
const OWNERS: KeywordEffect = KeywordEffect {
    breaks: &[Breaks::Behaviour],
    verdict: Some(Verdict::Equal),
    so: "no value is refused; under server-side apply the owners of the fields change",
    help: "check managedFields: if several managers apply this object, they will conflict or overwrite each other",
};

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change(KEYWORD)?;
    let becomes_atomic = change.desired.and_then(Json::text) == Some("atomic");
    let beyond_proof = becomes_atomic.then_some(BeyondProof::LostOwners);
    Some(ViolationText { beyond_proof, ..keyword_change::diagnosis(pair, change, &OWNERS) })
}
