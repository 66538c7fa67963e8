//! [`gantry_proof`] as the prover, with its answers converted for findings.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::imposed;
use super::question::{ChangePartProof, ChangeProof, Prover, VersionPairQuestion, VersionProof};
use super::unseen::Unseen;
use gantry_core::finding::{Breaks, RefusedUpdates, Verdict, Witness, WitnessVerdict};
use gantry_k8s_cel::KubernetesRelease;
use gantry_proof::{self as proof, Difference, Limits, VersionSchema};
use gantry_schema::ratchet::RatchetingRefusals;

/// The prover that uses [`gantry_proof`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Proven {
    /// The release of the server.
    pub release: KubernetesRelease,
}

impl Prover for Proven {
    fn release(&self) -> KubernetesRelease {
        self.release
    }

    fn prove(&self, question: &VersionPairQuestion<'_>, limits: Limits) -> Option<VersionProof> {
        let mut live: Value = serde_json::from_str(question.live_schema).ok()?;
        let mut desired: Value = serde_json::from_str(question.desired_schema).ok()?;
        for schema in [&mut live, &mut desired] {
            gantry_schema::drop_ignored_formats(schema, self.release);
            gantry_schema::truncate_bounds_of_integers(schema, self.release);
        }
        if !question.served {
            [&mut live, &mut desired].into_iter().for_each(without_validation);
        }
        let (original, unrestricted) = (live.clone(), desired.clone());
        let is_restricted = question.served && imposed::impose(question, &mut live, &mut desired);
        let api_version = format!("{}/{}", question.group, question.version);
        let version = |schema, status_subresource| VersionSchema {
            schema,
            status_subresource,
            api_version: &api_version,
            kind: question.kind,
            release: self.release,
        };
        let found =
            proof::prove(&version(&live, question.live_status), &version(&desired, question.desired_status), limits);
        let whole = ChangeProof {
            verdict: verdict(found.verdict),
            reason: Some(found.reason).filter(|reason| !reason.is_empty()),
            breaks: found.breaks.iter().copied().map(breaks).collect(),
            witnesses: Vec::new(),
        };
        let is_complete = found.is_complete;
        let of_all_below = found.nodes.iter().filter(|node| node.is_of_all_below);
        let of_all_below = of_all_below.map(|node| node.path.clone()).collect();
        let restricted = match is_restricted {
            true => imposed::restricted(question, [&live, &desired]),
            false => BTreeSet::new(),
        };
        let mut parts = BTreeMap::new();
        let mut nodes = BTreeMap::new();
        for node in found.nodes {
            // What the server imposes is a change of the node, but of none of its keywords.
            if !node.parts.is_empty() && !restricted.contains(&node.path) {
                parts.insert(node.path.clone(), node.parts.into_iter().map(part).collect());
            }
            let proof = ChangeProof {
                verdict: verdict(node.verdict),
                reason: Some(node.reason).filter(|reason| !reason.is_empty()),
                breaks: node.breaks.into_iter().map(breaks).collect(),
                witnesses: witnesses(node.witnesses, node.reverse),
            };
            nodes.insert(node.path, proof);
        }
        // Changes that affect no object.
        for (path, note) in found.notes {
            nodes.entry(path).or_insert(ChangeProof {
                verdict: Verdict::Equal,
                reason: Some(note),
                breaks: Vec::new(),
                witnesses: Vec::new(),
            });
        }
        let mut proof = VersionProof { whole, nodes, of_all_below, parts, is_complete, ..VersionProof::harmless() };
        if is_restricted {
            imposed::correct(question, &unrestricted, self.release, &mut proof);
        }
        if question.served {
            let schemas = [&original, &unrestricted];
            Unseen { question, schemas, api_version: &api_version, release: self.release, limits }.add_to(&mut proof);
        }
        Some(proof)
    }
}

fn part(part: proof::PartProof) -> ChangePartProof {
    let proof = ChangeProof {
        verdict: verdict(part.verdict),
        reason: Some(part.reason).filter(|reason| !reason.is_empty()),
        breaks: part.breaks.into_iter().map(breaks).collect(),
        witnesses: witnesses(part.witnesses, part.reverse),
    };
    ChangePartProof { origin: part.origin, proof }
}

/// Removes what only validates: what remains prunes and defaults.
fn without_validation(schema: &mut Value) {
    const STRUCTURE: [&str; 9] = [
        "type",
        "properties",
        "items",
        "additionalProperties",
        "nullable",
        "default",
        "x-kubernetes-int-or-string",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-preserve-unknown-fields",
    ];
    let Some(keywords) = schema.as_object_mut() else { return };
    keywords.retain(|keyword, _| STRUCTURE.contains(&keyword.as_str()));
    for keyword in ["items", "additionalProperties"] {
        keywords.get_mut(keyword).into_iter().for_each(without_validation);
    }
    let fields = keywords.get_mut("properties").and_then(Value::as_object_mut);
    fields.into_iter().flat_map(|fields| fields.values_mut()).for_each(without_validation);
}

fn verdict(verdict: proof::SchemaRelation) -> Verdict {
    match verdict {
        proof::SchemaRelation::Equal => Verdict::Equal,
        proof::SchemaRelation::Widening => Verdict::Widening,
        proof::SchemaRelation::Narrowing => Verdict::Narrowing,
        proof::SchemaRelation::Incomparable => Verdict::Incomparable,
        proof::SchemaRelation::DataLoss => Verdict::DataLoss,
        proof::SchemaRelation::Undecided => Verdict::Undecided,
    }
}

fn breaks(breaks: proof::AffectedParty) -> Breaks {
    match breaks {
        proof::AffectedParty::StoredObjects => Breaks::StoredObjects,
        proof::AffectedParty::Writers => Breaks::Writers,
        proof::AffectedParty::Readers => Breaks::Readers,
        proof::AffectedParty::Data => Breaks::Data,
        proof::AffectedParty::Behaviour => Breaks::Behaviour,
    }
}

fn met(difference: Difference) -> WitnessVerdict {
    match difference {
        Difference::Refused => WitnessVerdict::Refused,
        Difference::Pruned => WitnessVerdict::Pruned,
        Difference::Defaulted => WitnessVerdict::Defaulted,
    }
}

fn to_refused_updates(refused: RatchetingRefusals) -> Option<RefusedUpdates> {
    Some(match refused {
        RatchetingRefusals::Every => RefusedUpdates::Every,
        RatchetingRefusals::OfStatus => RefusedUpdates::OfStatus,
        RatchetingRefusals::ChangesOfContent(part) => RefusedUpdates::ChangesOf(part),
        RatchetingRefusals::Applies => RefusedUpdates::Applies,
        RatchetingRefusals::ChangesAround(around) if around.is_list => RefusedUpdates::ChangesOfList(around.field),
        RatchetingRefusals::ChangesAround(around) => RefusedUpdates::ChangesOf(around.field),
        RatchetingRefusals::ChangesOfValue | RatchetingRefusals::None => return None,
    })
}

/// The witnesses for what breaks, then those for what only desired accepts.
fn witnesses(forward: Vec<proof::ProofWitness>, reverse: Vec<proof::ProofWitness>) -> Vec<Witness> {
    let forward = forward.into_iter().map(|witness| Witness {
        live: WitnessVerdict::Accepted,
        desired: met(witness.desired),
        object: witness.object,
        old_object: witness.old_object,
        subresource: witness.via_status.then(|| "status".to_owned()),
        message: witness.message,
        refused_updates: witness.refused_updates.and_then(to_refused_updates),
    });
    let reverse = reverse.into_iter().map(|witness| Witness {
        live: met(witness.desired),
        desired: WitnessVerdict::Accepted,
        object: witness.object,
        old_object: witness.old_object,
        subresource: witness.via_status.then(|| "status".to_owned()),
        message: witness.message,
        refused_updates: None,
    });
    forward.chain(reverse).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use gantry_schema::ScalePaths;

    #[test]
    fn an_object_that_the_scale_subresource_refuses_is_no_witness() {
        let schema = |replicas: Value| {
            let part = json!({"type": "object", "properties": {"replicas": replicas}});
            json!({"type": "object", "properties": {"spec": part}}).to_string()
        };
        let (live, desired) = (schema(json!({"type": "integer"})), schema(json!({"type": "integer", "minimum": 0})));
        let verdict = |scale: &ScalePaths| {
            let question = VersionPairQuestion {
                group: "example.com",
                kind: "Sample",
                version: "v1",
                namespaced: false,
                served: true,
                live_schema: &live,
                desired_schema: &desired,
                live_status: false,
                desired_status: false,
                scale: [scale; 2],
                versions: 1,
                stored: [None; 2],
            };
            Proven::default().prove(&question, Limits::default()).map(|proof| proof.whole.verdict)
        };
        assert_eq!(verdict(&ScalePaths::default()), Some(Verdict::Narrowing));
        let scale = ScalePaths::from_subresource(
            &json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}),
        );
        assert_eq!(verdict(&scale), Some(Verdict::Equal));
    }

    #[test]
    fn a_witness_says_through_which_subresource_it_is_written() {
        let schema = |part: &str, bound: u32| {
            let replicas = json!({"type": "integer", "maximum": bound});
            let part_of = json!({"type": "object", "properties": {"replicas": replicas}});
            json!({"type": "object", "properties": {part: part_of}}).to_string()
        };
        let scale = ScalePaths::default();
        let subresources = |part: &str| {
            let (live, desired) = (schema(part, 9), schema(part, 5));
            let question = VersionPairQuestion {
                group: "example.com",
                kind: "Sample",
                version: "v1",
                namespaced: false,
                served: true,
                live_schema: &live,
                desired_schema: &desired,
                live_status: true,
                desired_status: true,
                scale: [&scale; 2],
                versions: 1,
                stored: [None; 2],
            };
            let proof = Proven::default().prove(&question, Limits::default()).expect("a proof");
            let node = &proof.nodes[&format!("^.{part}.replicas")];
            node.witnesses.iter().map(|witness| witness.subresource.clone()).collect::<Vec<_>>()
        };
        assert_eq!(subresources("spec"), [None]);
        assert_eq!(subresources("status"), [Some("status".to_owned())]);
    }

    #[test]
    fn a_version_that_is_not_served_loses_data_but_refuses_none() {
        let schema = |fields: Value| {
            let required: Vec<&String> = fields.as_object().into_iter().flatten().map(|(name, _)| name).collect();
            json!({"type": "object", "required": required, "properties": fields}).to_string()
        };
        let verdict = |served, live: Value, desired: Value| {
            let question = VersionPairQuestion {
                group: "example.com",
                kind: "Sample",
                version: "v1",
                namespaced: false,
                served,
                live_schema: &schema(live),
                desired_schema: &schema(desired),
                live_status: false,
                desired_status: false,
                scale: [&ScalePaths::default(), &ScalePaths::default()],
                versions: 1,
                stored: [None; 2],
            };
            Proven::default().prove(&question, Limits::default()).map(|proof| (proof.whole.verdict, proof.whole.breaks))
        };
        let list =
            |item: Value| json!({"list": {"type": "array", "items": {"type": "object", "properties": {"a": item}}}});
        let (text, short) = (list(json!({"type": "string"})), list(json!({"type": "string", "maxLength": 3})));
        let filled = list(json!({"type": "string", "default": "x"}));
        assert_eq!(verdict(true, text.clone(), short.clone()), {
            Some((Verdict::Narrowing, vec![Breaks::StoredObjects, Breaks::Writers]))
        });
        assert_eq!(verdict(false, text.clone(), short), Some((Verdict::Equal, vec![])));
        let lost = verdict(false, text.clone(), json!({})).expect("a proof");
        assert_eq!(lost.0, Verdict::DataLoss);
        assert_eq!(verdict(false, text, filled), Some((Verdict::Narrowing, vec![Breaks::Behaviour])));
    }
}
