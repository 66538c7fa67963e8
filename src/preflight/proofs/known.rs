//! What was found out on other clusters of the same run.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gantry_proof::Limits;
use ring::digest::{Context, SHA256};
use serde_json::Value;

use super::Slot;
use super::question::{Question, VersionProof};
use crate::preflight::objects::definition::Refused;
use crate::resource::SERVER_METADATA;

/// Questions whose answers are remembered. Of more, which clusters that have little in common have, each is answered by itself.
const MOST: usize = 10_000;

/// Answers by what was asked. A cluster cannot make its schema pass for that of another one: the hash is a cryptographic one.
#[derive(Debug, Default)]
pub struct Known {
    proofs: Mutex<BTreeMap<Key, Slot>>,
    refused: Mutex<BTreeMap<Key, Arc<OnceLock<Vec<Refused>>>>>,
}

type Key = [u8; 32];

/// The slot of a question, which is empty for who asks first.
fn slot<T: Default>(slots: &Mutex<BTreeMap<Key, Arc<T>>>, key: Key) -> Arc<T> {
    let mut slots = slots.lock().unwrap_or_else(PoisonError::into_inner);
    let is_full = slots.len() >= MOST;
    match slots.get(&key) {
        Some(slot) => Arc::clone(slot),
        None if is_full => Arc::default(),
        None => Arc::clone(slots.entry(key).or_default()),
    }
}

impl Known {
    /// The answer to the question: the one that is known, else that of `prove`. Who asks second waits for it.
    pub(super) fn of(
        &self,
        question: &Question<'_>,
        limits: Limits,
        prove: impl FnOnce() -> Option<Arc<VersionProof>>,
    ) -> Option<Arc<VersionProof>> {
        slot(&self.proofs, key(question, limits)).get_or_init(prove).clone()
    }

    /// What the server refuses in a CRD as it would be stored in place of the live one.
    pub fn refused(&self, stored: &Value, live: Option<&Value>, judge: impl FnOnce() -> Vec<Refused>) -> Vec<Refused> {
        let mut hashed = Hashed(Context::new(&SHA256));
        // Texts are always JSON, and a hash takes everything.
        let _ = hashed.add(stored).and_then(|()| live.map_or(Ok(()), |live| hashed.add(live)));
        slot(&self.refused, hashed.key()).get_or_init(judge).clone()
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
    /// Adds a CRD without what is another in each cluster and means nothing for what is refused: who wrote it and when.
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

    /// Adds a part with its length, so that no two lists of parts are the same text.
    fn part(&mut self, part: &str) {
        self.0.update(&part.len().to_le_bytes());
        self.0.update(part.as_bytes());
    }

    fn key(self) -> Key {
        let mut key = [0; 32];
        key.copy_from_slice(self.0.finish().as_ref());
        key
    }
}

/// All that the answer depends on.
fn key(question: &Question<'_>, limits: Limits) -> Key {
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
    let mut hashed = Hashed(Context::new(&SHA256));
    [group, kind, version, live_schema, desired_schema, rest.as_str()].into_iter().for_each(|part| hashed.part(part));
    hashed.key()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_server_is_judged_once_for_clusters_that_are_alike() {
        let known = Known::default();
        let mut asked = 0;
        let live = |uid: &str, stored: &str| {
            let managed = json!([{"manager": uid}]);
            json!({"metadata": {"name": "a", "uid": uid, "managedFields": managed}, "spec": {"group": "g"},
                "status": {"storedVersions": [stored], "conditions": [{"type": "Established", "lastTransitionTime": uid}]}})
        };
        let mut ask = |stored: &Value, live: Option<&Value>| {
            let before = asked;
            known.refused(stored, live, || {
                asked += 1;
                Vec::new()
            });
            asked > before
        };
        let desired = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"group": "g"}});
        assert!(ask(&desired, Some(&live("1", "v1"))));
        assert!(!ask(&desired, Some(&live("2", "v1"))), "another cluster");
        assert!(ask(&desired, Some(&live("2", "v2"))), "other versions are stored");
        assert!(ask(&desired, None), "it is not live");
        let other = json!({"metadata": {"name": "a", "labels": {"x": "z"}}, "spec": {"group": "g"}});
        assert!(ask(&other, Some(&live("1", "v1"))), "a label is another one");
    }
}
