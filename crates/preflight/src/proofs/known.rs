//! Results that all clusters of one run share.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gantry_k8s_cel::KubernetesRelease;
use gantry_proof::Limits;
use ring::digest::{Context, SHA256};
use serde_json::Value;

use super::Slot;
use super::question::{VersionPairQuestion, VersionProof};
use crate::objects::definition::ForetoldAnswer;
use crate::parts_hash::PartsHash;
use gantry_core::resource::SERVER_METADATA;

/// The maximum number of results kept, which only very different clusters exceed. Further results are not shared.
const MOST: usize = 10_000;

/// Results by a hash of their input. The hash is cryptographic, so no cluster can construct a schema that gets the
/// result of a different one.
#[derive(Debug, Default)]
pub struct ProofCache {
    proofs: Mutex<BTreeMap<ProofKey, Slot>>,
    foretold: Mutex<BTreeMap<ProofKey, Arc<OnceLock<ForetoldAnswer>>>>,
}

type ProofKey = [u8; 32];

/// The slot of a question, which is empty for the first caller.
fn slot<T: Default>(slots: &Mutex<BTreeMap<ProofKey, Arc<T>>>, key: ProofKey) -> Arc<T> {
    let mut slots = slots.lock().unwrap_or_else(PoisonError::into_inner);
    let is_full = slots.len() >= MOST;
    match slots.get(&key) {
        Some(slot) => Arc::clone(slot),
        None if is_full => Arc::default(),
        None => Arc::clone(slots.entry(key).or_default()),
    }
}

impl ProofCache {
    /// The known answer to a question, or that of `prove`. Concurrent callers wait for the first one.
    pub(super) fn answer_or(
        &self,
        question: &VersionPairQuestion<'_>,
        limits: Limits,
        release: KubernetesRelease,
        prove: impl FnOnce() -> Option<Arc<VersionProof>>,
    ) -> Option<Arc<VersionProof>> {
        slot(&self.proofs, key(question, limits, release)).get_or_init(prove).clone()
    }

    /// How a server of this release answers to a CRD that would be stored in place of the live one: the known result, or
    /// that of `validate`. `live_versions` is the text of the live CRD's versions if `live` lacks them.
    pub fn foretell_once(
        &self,
        stored: &Value,
        live: Option<&Value>,
        live_versions: Option<&str>,
        release: KubernetesRelease,
        validate: impl FnOnce() -> ForetoldAnswer,
    ) -> ForetoldAnswer {
        let mut hashed = Hashed(Context::new(&SHA256));
        // Neither formatting the JSON nor writing to a hash fails.
        let _ = hashed.add(stored).and_then(|()| live.map_or(Ok(()), |live| hashed.add(live)));
        let _ = live_versions.map_or(Ok(()), |versions| write!(hashed, "versions:{versions}"));
        let _ = write!(hashed, "release:{release}");
        slot(&self.foretold, hashed.key()).get_or_init(validate).clone()
    }
}

struct Hashed(Context);

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Hashed {
    /// Adds a CRD without the metadata and timestamps that differ between clusters and do not affect what is refused.
    fn add(&mut self, crd: &Value) -> io::Result<()> {
        for (key, value) in crd.as_object().into_iter().flatten() {
            write!(self, "{key:?}:")?;
            match (key.as_str(), value) {
                ("metadata", Value::Object(metadata)) => {
                    for (key, value) in metadata.iter().filter(|(key, _)| !SERVER_METADATA.contains(&key.as_str())) {
                        write!(self, "{key:?}:{value},")?;
                    }
                }
                ("status", status) => {
                    let mut status = status.clone();
                    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
                    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
                        condition.remove("lastTransitionTime");
                    }
                    write!(self, "{status}")?;
                }
                (_, value) => serde_json::to_writer(&mut *self, value)?,
            }
            self.write_all(b";")?;
        }
        self.write_all(b"|")
    }

    fn key(self) -> ProofKey {
        let mut key = [0; 32];
        key.copy_from_slice(self.0.finish().as_ref());
        key
    }
}

/// The hash of everything that the answer depends on.
fn key(question: &VersionPairQuestion<'_>, limits: Limits, release: KubernetesRelease) -> ProofKey {
    let VersionPairQuestion {
        group,
        kind,
        version,
        namespaced,
        served,
        live_schema,
        desired_schema,
        live_status,
        desired_status,
        scale,
        versions,
        stored,
    } = question;
    let rest =
        format!("{namespaced} {served} {live_status} {desired_status} {scale:?} {versions} {release} {}", limits.steps);
    let mut hash = PartsHash::default();
    [group, kind, version, live_schema, desired_schema, rest.as_str()].into_iter().for_each(|part| hash.add(part));
    let of_storage = stored.iter().flat_map(|stored| stored.map_or([""; 2], |stored| [stored.version, stored.schema]));
    of_storage.for_each(|part| hash.add(part));
    hash.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_crds_of_several_clusters_are_validated_once() {
        let known = ProofCache::default();
        let mut asked = 0;
        let live = |uid: &str, stored: &str| {
            let managed = json!([{"manager": uid}]);
            json!({"metadata": {"name": "a", "uid": uid, "managedFields": managed}, "spec": {"group": "g"},
                "status": {"storedVersions": [stored], "conditions": [{"type": "Established", "lastTransitionTime": uid}]}})
        };
        let mut ask = |stored: &Value, live: Option<&Value>| {
            let before = asked;
            known.foretell_once(stored, live, None, KubernetesRelease::default(), || {
                asked += 1;
                ForetoldAnswer::default()
            });
            asked > before
        };
        let desired = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"group": "g"}});
        assert!(ask(&desired, Some(&live("1", "v1"))));
        assert!(!ask(&desired, Some(&live("2", "v1"))), "another cluster");
        assert!(ask(&desired, Some(&live("2", "v2"))), "different stored versions");
        assert!(ask(&desired, None), "it is not live");
        let other = json!({"metadata": {"name": "a", "labels": {"x": "z"}}, "spec": {"group": "g"}});
        assert!(ask(&other, Some(&live("1", "v1"))), "a different label");
    }
}
