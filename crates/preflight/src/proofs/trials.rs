//! Whole objects on which both CRDs are tried as the API server uses them: read from storage, changed, written back.
//!
//! The prover compares the schemas of one version. What another version does to an object, and what the server drops
//! before it validates, is found by questions that imitate it (`other_versions`, `kept_nulls`). Their answers count only
//! if the whole way of an object shows them.

use serde_json::Value;

use super::question::{ChangeProof, VersionProof};
use gantry_core::finding::{Breaks, Verdict, Witness, WitnessVerdict};
use gantry_proof::{self as proof, ChangeOrigin};
use gantry_schema::ratchet::{self, RatchetingRefusals};
use gantry_schema::typed::{self, Duplicates};
use gantry_schema::{FieldError, FieldErrorKind, RefusedBy, Schema, Step};

/// The maximum number of objects that are tried for one question.
pub(super) const MAX_TRIED: usize = 100;

/// One side of a version: its schema, and that of the version at which its objects are stored, if that is another one.
pub(super) struct StoredSide<'a> {
    pub version: Schema,
    /// The schema of the version, as JSON.
    pub raw: &'a Value,
    pub has_status: bool,
    pub stored: Option<Schema>,
}

impl StoredSide<'_> {
    /// The object as a request reads it.
    pub fn read(&self, stored: &Value) -> Option<Value> {
        let mut object = stored.clone();
        match &self.stored {
            Some(storage) => {
                storage.prepare_stored(&mut object).ok()?;
                self.version.fit(&mut object).ok()?;
            }
            None => drop(self.version.prepare_stored(&mut object).ok()?),
        }
        Some(object)
    }

    /// Why the server refuses to write `sent`, or what was read, in place of a stored object. `None` if that cannot be
    /// decided.
    fn refusals(&self, sent: Option<&Value>, stored: &Value) -> Option<WriteRefusals> {
        let old = self.read(stored)?;
        let mut new = sent.unwrap_or(&old).clone();
        if let Err(error) = self.version.prepare(&mut new) {
            return Some(WriteRefusals { created: vec![*error], updated: Vec::new(), new, old });
        }
        let created = self.version.validate_all(&new, None);
        let updated = self.version.validate_all(&new, Some(&old));
        if !created.undecided.is_empty() || !updated.undecided.is_empty() {
            return None;
        }
        let is_refusal = |error: &FieldError| error.by != RefusedBy::RulesNotEvaluated;
        let created: Vec<FieldError> = created.errors.into_iter().filter(is_refusal).collect();
        let updated = updated.errors.into_iter().filter(|error| is_refusal(error) && !created.contains(error));
        let updated = updated.collect();
        Some(WriteRefusals { created, updated, new, old })
    }

    /// Which updates are refused of an object with this error.
    fn refused_updates(
        &self,
        error: &FieldError,
        WriteRefusals { new, old, .. }: &WriteRefusals,
    ) -> RatchetingRefusals {
        let unreadable = typed::unreadable(self.raw, new, Duplicates::Allowed, self.version.release());
        ratchet::refused_updates(&self.version, self.raw, self.has_status, error, (new, old), &unreadable)
    }
}

/// Why the server refuses to write an object.
struct WriteRefusals {
    /// What a create of it meets.
    created: Vec<FieldError>,
    /// What only the update meets.
    updated: Vec<FieldError>,
    /// The object as it is written, and as it was read, both prepared.
    new: Value,
    old: Value,
}

impl WriteRefusals {
    fn is_accepted(&self) -> bool {
        self.created.is_empty() && self.updated.is_empty()
    }
}

/// An object that is stored today, and what is written in its place: what was read, unless something else is sent.
pub(super) struct Trial {
    pub stored: Value,
    pub sent: Option<Value>,
}

/// A refusal that only desired has.
pub(super) struct NewRefusal {
    pub error: FieldError,
    /// The updates that are refused of an object that is stored so.
    pub updates: RatchetingRefusals,
    pub witness: Witness,
}

/// What desired refuses of a write that live accepts.
pub(super) fn new_refusals(live: &StoredSide<'_>, desired: &StoredSide<'_>, trial: &Trial) -> Vec<NewRefusal> {
    let Trial { stored, sent } = trial;
    let is_accepted = live.refusals(sent.as_ref(), stored).is_some_and(|refusals| refusals.is_accepted());
    let Some(refusals) = is_accepted.then(|| desired.refusals(sent.as_ref(), stored)).flatten() else {
        return Vec::new();
    };
    let refusal = |error: &FieldError, old_object: Option<&Value>| NewRefusal {
        error: error.clone(),
        updates: match old_object {
            Some(_) => RatchetingRefusals::Every,
            None => desired.refused_updates(error, &refusals),
        },
        witness: Witness {
            live: WitnessVerdict::Accepted,
            desired: WitnessVerdict::Refused,
            object: sent.as_ref().unwrap_or(stored).clone(),
            old_object: old_object.cloned(),
            subresource: None,
            message: error.to_string(),
            refused_updates: None,
        },
    };
    let created = refusals.created.iter().map(|error| refusal(error, None));
    created.chain(refusals.updated.iter().map(|error| refusal(error, Some(stored)))).collect()
}

/// The objects that live accepts among the witnesses of a proof.
pub(super) fn accepted_objects(found: &proof::Proof) -> Vec<Value> {
    let mut objects: Vec<Value> = Vec::new();
    for witness in found.nodes.iter().flat_map(|node| &node.witnesses) {
        for object in [Some(&witness.object), witness.old_object.as_ref()].into_iter().flatten() {
            if objects.len() < MAX_TRIED && !objects.contains(object) {
                objects.push(object.clone());
            }
        }
    }
    objects
}

impl VersionProof {
    /// Adds a refusal that the proof about the version alone does not show. `schemas` are those of both sides, in which
    /// the node of the refusal is looked up.
    pub(super) fn add_refusal(&mut self, schemas: [&Value; 2], refusal: NewRefusal, reason: &str, breaks: &[Breaks]) {
        let NewRefusal { error, witness, .. } = refusal;
        let at = match error.kind {
            FieldErrorKind::Required => error.at.split_last().map_or(&[][..], |(_, around)| around),
            _ => &error.at,
        };
        let (path, nodes) = node_at(schemas, at);
        let origin = match nodes.map(|node| node.map(own_keywords)) {
            [Some(live), Some(desired)] if live == desired => ChangeOrigin::OtherNodes,
            _ => ChangeOrigin::Node,
        };
        self.add(
            path,
            origin,
            ChangeProof {
                verdict: Verdict::Narrowing,
                reason: Some(reason.to_owned()),
                breaks: breaks.to_vec(),
                witnesses: vec![witness],
            },
        );
    }
}

/// The path of the innermost node that describes the value at these steps, and the node in each schema.
pub(super) fn node_at<'s>(schemas: [&'s Value; 2], at: &[Step]) -> (String, [Option<&'s Value>; 2]) {
    let mut path = "^".to_owned();
    let mut nodes = schemas.map(Some);
    for step in at {
        let below = |node: Option<&'s Value>, keyword: &str| node?.get(keyword).filter(|below| below.is_object());
        let field = |name: &str| nodes.map(|node| below(node, "properties")?.get(name));
        let (next, name) = match step {
            Step::Index(_) => (nodes.map(|node| below(node, "items")), "items"),
            Step::Key(name) if field(name).iter().any(Option::is_some) => (field(name), name.as_str()),
            Step::Key(_) => (nodes.map(|node| below(node, "additionalProperties")), "additionalProperties"),
        };
        if next.iter().all(Option::is_none) {
            break;
        }
        path = format!("{path}.{name}");
        nodes = next;
    }
    (path, nodes)
}

/// The keywords of a node that ask something of the value itself.
fn own_keywords(node: &Value) -> Vec<(&String, &Value)> {
    let is_below = |keyword: &str| matches!(keyword, "properties" | "items" | "additionalProperties" | "description");
    let mut own: Vec<_> = node.as_object().into_iter().flatten().filter(|(keyword, _)| !is_below(keyword)).collect();
    own.sort_by_key(|(keyword, _)| *keyword);
    own
}
