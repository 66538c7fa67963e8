//! Leaves out witnesses that lose their values today already.
//!
//! The prover knows one version. What is written at a version other than the storage version is also pruned by the
//! schema of the storage version, unless a webhook converts it.

use std::sync::Arc;

use serde_json::Value;

use crate::proofs::VersionProof;
use gantry_core::crd::{CrdPair, CrdVersion};
use gantry_core::finding::{Witness, WitnessVerdict};
use gantry_k8s_cel::re2::Patterns;
use gantry_schema::Schema;

/// The proof about the version, without such witnesses.
pub fn drop_witnesses_not_stored(
    pair: &CrdPair,
    [live, desired]: [&CrdVersion; 2],
    proof: Arc<VersionProof>,
) -> Arc<VersionProof> {
    let loses =
        |witness: &Witness| witness.live == WitnessVerdict::Accepted && witness.desired == WitnessVerdict::Pruned;
    let mut witnesses = proof.nodes.values().flat_map(|node| &node.witnesses);
    if live.storage || pair.live.converts_by_webhook() || !witnesses.any(loses) {
        return proof;
    }
    let schemas = [Some(live), Some(desired), pair.live.storage()].map(|version| version.and_then(structure));
    let [Some(live), Some(desired), Some(storage)] = schemas else { return proof };
    let stored = |object: &Value, written_at: &Schema| {
        let mut object = object.clone();
        written_at.prepare(&mut object).and_then(|_| storage.fit(&mut object)).ok().map(|_| object)
    };
    let mut proof = Arc::unwrap_or_clone(proof);
    for proof in proof.proofs_mut() {
        proof
            .witnesses
            .retain(|witness| !loses(witness) || stored(&witness.object, &live) != stored(&witness.object, &desired));
    }
    Arc::new(proof)
}

fn structure(version: &CrdVersion) -> Option<Schema> {
    let schema = serde_json::from_str(version.schema()?).ok()?;
    Schema::compile_structure(&schema, &Patterns::default()).ok()
}
