//! Proofs of pairs stay within their limits, and each witness behaves as the proof claims.
//!
//! The input is a list of two schemas, or decisions of the generator.

use gantry_proof::{self as proof, Difference, Limits, Proof, ProofWitness, SchemaRelation, VersionSchema};
use gantry_schema::{Processed, Schema};
use serde_json::{Value, json};

use super::Input;
use super::generator::{self, Random};

const STEPS: u64 = 500_000;

pub fn run(data: &[u8]) {
    match super::input(data) {
        Some(Input::Written(values)) => {
            if let [live, desired] = &values[..] {
                judge(live, desired);
            }
        }
        Some(Input::Generated(mut random)) => generated(&mut random),
        None => {}
    }
}

fn generated(random: &mut Random) {
    let mut live = generator::schema(random);
    if random.chance(20)
        && let Some(rule) = generator::rule(random, &live)
    {
        live["x-kubernetes-validations"] = json!([{"rule": rule}]);
    }
    let desired = generator::edited(random, &live);
    let (there, here) = (super::of_spec(&live), super::of_spec(&desired));
    let proof = judge(&there, &here);
    if !matches!(proof.verdict, SchemaRelation::Equal | SchemaRelation::Widening) {
        return;
    }
    let (Ok(there), Ok(here)) = (Schema::compile(&there), Schema::compile(&here)) else { return };
    for _ in 0..4 {
        let object = super::object(generator::value(random, &live));
        let (taken, kept) = written(&there, &object, None);
        if taken.outcome.is_accepted() {
            let (answer, here) = written(&here, &kept, None);
            assert!(answer.outcome.errors.is_empty(), "{proof:?} {kept} {answer:?}");
            assert_eq!(kept, here, "{proof:?}");
        }
    }
}

fn judge(live: &Value, desired: &Value) -> Proof {
    let version = |schema| VersionSchema {
        schema,
        status_subresource: false,
        api_version: "a/v1",
        kind: "A",
        release: Default::default(),
    };
    let proof = proof::prove(&version(live), &version(desired), Limits { steps: STEPS });
    assert!(proof.steps <= STEPS, "{} steps", proof.steps);
    if let (Ok(there), Ok(here)) = (Schema::compile(live), Schema::compile(desired)) {
        for node in &proof.nodes {
            for witness in &node.witnesses {
                confirm(&there, &here, witness);
            }
            for witness in &node.reverse {
                confirm(&here, &there, witness);
            }
        }
    }
    proof
}

/// Checks that `source` accepts and keeps the witness, and that `target` refuses, prunes or defaults it as claimed.
fn confirm(source: &Schema, target: &Schema, witness: &ProofWitness) {
    let old = witness.old_object.as_ref();
    let (taken, kept) = written(source, &witness.object, old);
    assert!(taken.outcome.is_accepted(), "{witness:?}: {taken:?}");
    assert!(taken.pruned.is_empty(), "{witness:?}: {taken:?}");
    let (answer, here) = written(target, &witness.object, old);
    match witness.desired {
        Difference::Refused => assert!(!answer.outcome.errors.is_empty(), "{witness:?}: {answer:?}"),
        // A null that the schema does not allow is dropped without being reported as pruned.
        Difference::Pruned | Difference::Defaulted => assert_ne!(kept, here, "{witness:?}"),
    }
}

fn written(schema: &Schema, object: &Value, old: Option<&Value>) -> (Processed, Value) {
    let mut object = object.clone();
    let processed = schema.process(&mut object, old);
    (processed, object)
}
