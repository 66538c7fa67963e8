//! What the comparison of two schemas cannot see of an upgrade: other versions, nulls that live drops, and defaults that
//! rules about updates meet.
//!
//! Each is asked of the prover as a question of its own, with schemas that imitate it, and what the answer shows is tried
//! on whole objects (`trials`). From the answer itself only what it leaves undecided is taken.

use serde_json::Value;

use super::frozen_defaults::{FrozenDefault, frozen_defaults};
use super::kept_nulls::{self, KeptNull};
use super::other_versions;
use super::question::{ChangeProof, VersionPairQuestion, VersionProof};
use super::trials::{MAX_TRIED, NewRefusal, StoredSide, Trial, accepted_objects, new_refusals, node_at};
use gantry_core::finding::{Breaks, Verdict, Witness, WitnessVerdict};
use gantry_k8s_cel::KubernetesRelease;
use gantry_proof::{self as proof, ChangeOrigin, Limits, Proof, SchemaRelation, VersionSchema};
use gantry_schema::Schema;

/// The maximum number of maps with nullable entries for which objects are built.
const MAX_MAPS: usize = 8;
/// The maximum number of nullable fields that are tried one by one.
const MAX_FIELDS: usize = 20;
/// The maximum number of changed defaults for which objects are built.
const MAX_DEFAULTS: usize = 8;

/// The reason of what breaks only who sends a null.
pub(crate) const NULL_IS_KEPT: &str = "a null that was dropped until now is kept";

/// The question about one version, with the schemas as the server reads them.
pub(super) struct Unseen<'a> {
    pub question: &'a VersionPairQuestion<'a>,
    pub schemas: [&'a Value; 2],
    pub api_version: &'a str,
    pub release: KubernetesRelease,
    pub limits: Limits,
}

/// Whether what the version does to objects changes by what another version stores, however its own schema changes.
pub(crate) fn depends_on_storage(question: &VersionPairQuestion<'_>) -> bool {
    if !question.served || question.stored.iter().all(Option::is_none) {
        return false;
    }
    let parsed = [question.live_schema, question.desired_schema].map(serde_json::from_str::<Value>);
    let [Ok(live), Ok(desired)] = parsed else { return false };
    as_stored(question, [&live, &desired]).is_some()
}

/// The schemas of the version as stored objects meet them, if these differ from its own and from each other.
fn as_stored(question: &VersionPairQuestion<'_>, schemas: [&Value; 2]) -> Option<[Value; 2]> {
    let storage = question.stored.map(|stored| serde_json::from_str::<Value>(stored?.schema).ok());
    if storage.iter().all(Option::is_none) || schemas[0] == schemas[1] && storage[0] == storage[1] {
        return None;
    }
    let filled = |side: usize| match &storage[side] {
        Some(storage) => other_versions::with_stored_defaults(schemas[side], storage),
        None => schemas[side].clone(),
    };
    let [mut live, desired] = [filled(0), filled(1)];
    let mut is_other = live != *schemas[0] || desired != *schemas[1];
    if let Some(storage) = &storage[0] {
        is_other |= other_versions::add_gained_fields(&mut live, schemas[1], storage);
    }
    (is_other && live != desired).then_some([live, desired])
}

impl Unseen<'_> {
    /// Adds to the proof about the version what it does not see.
    pub fn add_to(&self, proof: &mut VersionProof) {
        self.add_other_versions(proof);
        self.add_kept_nulls(proof);
        self.add_frozen_defaults(proof);
        self.find_hidden(proof);
    }

    /// Finds the witnesses that desired refuses only as they are sent: the object that live stores of them has the
    /// defaults that it fills in today.
    fn find_hidden(&self, proof: &mut VersionProof) {
        let refused = proof.nodes.values().flat_map(|node| &node.witnesses);
        let refused = refused.filter(|witness| {
            let is_refused = witness.live == WitnessVerdict::Accepted && witness.desired == WitnessVerdict::Refused;
            is_refused && witness.old_object.is_none()
        });
        let mut refused = refused.map(|witness| &witness.object).peekable();
        if refused.peek().is_none() || !self.question.live_schema.contains("\"default\"") {
            return;
        }
        let Some([live, desired]) = self.sides() else { return };
        let hidden: Vec<Value> =
            refused.filter(|object| is_accepted_once_stored(&live, &desired, object)).cloned().collect();
        proof.hidden = hidden;
    }

    fn prove(&self, [live, desired]: [&Value; 2]) -> Proof {
        let version = |schema, status_subresource| VersionSchema {
            schema,
            status_subresource,
            api_version: self.api_version,
            kind: self.question.kind,
            release: self.release,
        };
        let question = self.question;
        proof::prove(&version(live, question.live_status), &version(desired, question.desired_status), self.limits)
    }

    /// The sides as the server uses them for objects of the version.
    fn sides(&self) -> Option<[StoredSide<'_>; 2]> {
        let compile = |schema: &Value| Some(Schema::compile(schema).ok()?.with_release(self.release));
        let side = |side: usize| {
            let version = compile(self.schemas[side])?.with_scale(self.question.scale[side].clone());
            let stored = match self.question.stored[side] {
                Some(stored) => Some(compile(&serde_json::from_str(stored.schema).ok()?)?),
                None => None,
            };
            let has_status = [self.question.live_status, self.question.desired_status][side];
            Some(StoredSide { version, raw: self.schemas[side], has_status, stored })
        };
        Some([side(0)?, side(1)?])
    }

    fn add_other_versions(&self, proof: &mut VersionProof) {
        let [before, after] = self.question.stored;
        let Some(storage) = after.or(before) else { return };
        let reason = format!("objects are stored at {}, with the fields and defaults of that version", storage.version);
        let mut objects = Vec::new();
        if let Some([live, desired]) = as_stored(self.question, self.schemas) {
            let found = self.prove([&live, &desired]);
            objects = accepted_objects(&found);
            for (path, why) in newly_undecided(&found, proof) {
                proof.add(path, ChangeOrigin::OtherNodes, undecided(format!("{why}; {reason}")));
            }
        }
        // An object that shows a default of the version alone may meet a rule about updates.
        for witness in proof.nodes.values().flat_map(|node| &node.witnesses) {
            if objects.len() < 2 * MAX_TRIED && !objects.contains(&witness.object) {
                objects.push(witness.object.clone());
            }
        }
        // Most upgrades leave nothing to try, and compiling takes longer than that.
        let Some([live_side, desired_side]) = (!objects.is_empty()).then(|| self.sides()).flatten() else { return };
        for stored in objects {
            let refused = new_refusals(&live_side, &desired_side, &Trial { stored, sent: None });
            // That a value of one version is invalid at another one is a difference between the two versions.
            for refusal in refused.into_iter().filter(|refusal| refusal.updates.are_of_stored_objects()) {
                proof.add_refusal(self.schemas, refusal, &reason, &[Breaks::StoredObjects, Breaks::Writers]);
            }
        }
    }

    fn add_kept_nulls(&self, proof: &mut VersionProof) {
        let nulls = kept_nulls::kept_nulls(self.schemas[0], self.schemas[1]);
        if nulls.is_empty() {
            return;
        }
        let Some([live, desired]) = self.sides() else { return };
        let [live, desired] = [live, desired].map(|side| StoredSide { stored: None, ..side });
        let mut refused: Vec<NewRefusal> = Vec::new();
        // Objects can be large, so only the first refusal of each place is kept.
        let mut try_null = |stored: &Value, nulls: &[&KeptNull]| {
            let Some(sent) = kept_nulls::with_nulls(stored, nulls) else { return };
            for refusal in new_refusals(&live, &desired, &Trial { stored: stored.clone(), sent: Some(sent) }) {
                if refused.iter().all(|known| known.error.at != refusal.error.at) {
                    refused.push(refusal);
                }
            }
        };
        let (entries, fields): (Vec<&KeptNull>, Vec<&KeptNull>) = nulls.iter().partition(|null| null.is_entry);
        if !fields.is_empty() {
            let found = self.prove([self.schemas[0], &kept_nulls::filling_fields(self.schemas[1], &nulls)]);
            for stored in accepted_objects(&found) {
                fields.chunks(1).take(MAX_FIELDS).for_each(|field| try_null(&stored, field));
                try_null(&stored, &fields);
            }
            let is_undecided = !newly_undecided(&found, proof).is_empty();
            let open = fields.iter().filter(|null| null.is_seen || is_undecided);
            proof.open_nulls.extend(open.map(|null| null.path.clone()));
        }
        for (number, null) in entries.into_iter().filter(|null| null.is_seen).enumerate() {
            // One object with such a map does not show that all accept the null.
            proof.open_nulls.insert(null.path.clone());
            let refusing = kept_nulls::refusing_entries(self.schemas[0], null).filter(|_| number < MAX_MAPS);
            let found = refusing.map(|refusing| self.prove([self.schemas[0], &refusing]));
            let objects = found.iter().flat_map(accepted_objects);
            objects.for_each(|stored| try_null(&stored, &[null]));
        }
        for refusal in refused {
            proof.add_refusal(self.schemas, refusal, NULL_IS_KEPT, &[Breaks::Writers]);
        }
    }
}

impl Unseen<'_> {
    fn add_frozen_defaults(&self, proof: &mut VersionProof) {
        let frozen = frozen_defaults(self.schemas[0], self.schemas[1]);
        if frozen.is_empty() {
            return;
        }
        let Some([live, desired]) = self.sides() else { return };
        let [live, desired] = [live, desired].map(|side| StoredSide { stored: None, ..side });
        // A default that no object shows is in no update.
        let is_shown = |default: &&FrozenDefault| proof.of_node(&default.path).is_none_or(|known| !known.is_harmless());
        let shown: Vec<&FrozenDefault> = frozen.iter().filter(is_shown).collect();
        for (number, default) in shown.into_iter().enumerate() {
            let mut objects: Vec<Value> = proof
                .of_node(&default.path)
                .map_or(Vec::new(), |known| known.witnesses.iter().map(|witness| witness.object.clone()).collect());
            if number < MAX_DEFAULTS {
                let others = default.refusing_others(self.schemas[0]);
                for refusing in others.into_iter().chain(default.refusing_updates(self.schemas[0])) {
                    objects.extend(accepted_objects(&self.prove([self.schemas[0], &refusing])));
                }
            }
            let trials = default.trials(&live, self.schemas[1], &objects);
            let refused = trials.iter().find_map(|trial| {
                let refused = new_refusals(&live, &desired, trial).into_iter();
                let mut of_updates = refused.filter(|refusal| refusal.witness.old_object.is_some());
                of_updates.find(|refusal| default.rules_at.contains(&node_at(self.schemas, &refusal.error.at).0))
            });
            let of_default = match refused {
                Some(refusal) => {
                    let is_status = default.path.starts_with("^.status") && self.question.live_status;
                    let subresource = is_status.then(|| "status".to_owned());
                    narrowing(FROZEN.to_owned(), Witness { subresource, ..refusal.witness })
                }
                None if default.is_beyond_trials || number >= MAX_DEFAULTS || trials.is_empty() => ChangeProof {
                    breaks: vec![Breaks::Writers],
                    ..undecided(format!("{FROZEN}; no update was found that it refuses"))
                },
                None => continue,
            };
            proof.add_of_keyword(&default.path, "default", of_default);
        }
    }
}

/// Whether live fills in defaults with which desired accepts the object.
fn is_accepted_once_stored(live: &StoredSide<'_>, desired: &StoredSide<'_>, object: &Value) -> bool {
    let mut stored = object.clone();
    if live.version.prepare(&mut stored).is_err() || stored == *object {
        return false;
    }
    desired.version.prepare(&mut stored).is_ok() && desired.version.validate_all(&stored, None).errors.is_empty()
}

/// The reason of a changed default that a rule about updates sees.
pub(crate) const FROZEN: &str = "a rule about updates sees the default in place of the value that is stored or sent";

fn narrowing(reason: String, witness: Witness) -> ChangeProof {
    let breaks = vec![Breaks::Writers, Breaks::Behaviour];
    ChangeProof { verdict: Verdict::Narrowing, reason: Some(reason), breaks, witnesses: vec![witness] }
}

/// The paths of the nodes that are undecided, and decided in the proof about the version alone, each with the reason.
fn newly_undecided(found: &Proof, known: &VersionProof) -> Vec<(String, String)> {
    let is_open = |path: &str| known.of_node(path).is_none_or(|known| known.verdict == Verdict::Undecided);
    let undecided = found.nodes.iter().filter(|node| node.verdict == SchemaRelation::Undecided);
    undecided.filter(|node| !is_open(&node.path)).map(|node| (node.path.clone(), node.reason.clone())).collect()
}

fn undecided(reason: String) -> ChangeProof {
    let breaks = vec![Breaks::StoredObjects, Breaks::Writers];
    ChangeProof { verdict: Verdict::Undecided, reason: Some(reason), breaks, witnesses: Vec::new() }
}
