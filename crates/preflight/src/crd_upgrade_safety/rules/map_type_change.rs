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

const OWNERS_OF_FIELDS: KeywordEffect = KeywordEffect {
    so: "no value is refused; under server-side apply the manager of the whole does not own its fields: a field that \
        leaves the manifest stays, and another manager changes one without a conflict",
    help: "after the change, look for fields that manifests no longer have, and remove them by hand",
    ..OWNERS
};

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change(KEYWORD)?;
    let is_atomic = |side: Option<&Json<'_>>| side.and_then(Json::text) == Some("atomic");
    let was_atomic = is_atomic(change.live);
    let beyond_proof = (was_atomic != is_atomic(change.desired)).then_some(BeyondProof::LostOwners);
    let effect = if was_atomic { OWNERS_OF_FIELDS } else { OWNERS };
    Some(ViolationText { beyond_proof, ..keyword_change::diagnosis(pair, change, &effect) })
}
