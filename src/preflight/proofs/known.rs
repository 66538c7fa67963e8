//! What was proven on other clusters of the same run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use gantry_proof::Limits;
use ring::digest::{Context, SHA256};

use super::Slot;
use super::question::{Question, VersionProof};

/// Pairs of schemas that are remembered. Of more, which clusters that have little in common have, each is proven by itself.
const MOST: usize = 10_000;

/// Proofs by what was asked. A cluster cannot make its schema pass for that of another one: the hash is a cryptographic one.
#[derive(Debug, Default)]
pub struct Known(Mutex<BTreeMap<[u8; 32], Slot>>);

impl Known {
    /// The answer to the question: the one that is known, else that of `prove`. Who asks second waits for it.
    pub(super) fn of(
        &self,
        question: &Question<'_>,
        limits: Limits,
        prove: impl FnOnce() -> Option<Arc<VersionProof>>,
    ) -> Option<Arc<VersionProof>> {
        let key = key(question, limits);
        let slot = {
            let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let is_full = slots.len() >= MOST;
            match slots.get(&key) {
                Some(slot) => Arc::clone(slot),
                None if is_full => Slot::default(),
                None => Arc::clone(slots.entry(key).or_default()),
            }
        };
        slot.get_or_init(prove).clone()
    }
}

/// All that the answer depends on.
fn key(question: &Question<'_>, limits: Limits) -> [u8; 32] {
    let Question {
        group,
        kind,
        version,
        namespaced,
        live_schema,
        desired_schema,
        live_status,
        desired_status,
        scale,
        versions,
    } = question;
    let rest = format!("{namespaced} {live_status} {desired_status} {scale:?} {versions} {}", limits.steps);
    let mut context = Context::new(&SHA256);
    for part in [group, kind, version, live_schema, desired_schema, rest.as_str()] {
        // With its length, so that no two lists of parts are the same text.
        context.update(&part.len().to_le_bytes());
        context.update(part.as_bytes());
    }
    let mut key = [0; 32];
    key.copy_from_slice(context.finish().as_ref());
    key
}
