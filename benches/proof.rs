//! The cost of a proof: two megabytes that differ everywhere, and schemas that are crafted to be hard.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use gantry_proof::{Limits, VersionSchema, prove};
use serde_json::{Map, Value, json};

/// A schema of about `bytes` bytes; with `step` 1 every leaf differs from the schema with `step` 0.
fn large(bytes: usize, step: usize) -> Value {
    const LEAF: usize = 420;
    let leaves = bytes / LEAF;
    let text = "What the field is for, in the words of the type's author. ".repeat(5);
    let leaf = |number: usize| match number % 4 {
        0 => json!({"type": "string", "description": text, "maxLength": 100 - step}),
        1 => json!({"type": "integer", "description": text, "minimum": step}),
        2 => json!({"type": "string", "description": text, "enum": ["a", "b", if step == 0 { "c" } else { "d" }]}),
        _ => json!({"type": "array", "description": text, "maxItems": 9 - step, "items": {"type": "string"}}),
    };
    let group = |from: usize| -> Value {
        let fields: Map<String, Value> = (from..from + 20).map(|n| (format!("field{n}"), leaf(n))).collect();
        json!({"type": "object", "properties": fields})
    };
    let groups: Map<String, Value> = (0..leaves / 20).map(|n| (format!("group{n}"), group(n * 20))).collect();
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": groups}}})
}

/// Nested `anyOf`, exploding patterns, a hundred rules.
fn hostile(step: usize) -> Value {
    let mut nested = json!({"required": ["f0"]});
    for depth in 0..12 {
        let other = json!({"required": [format!("f{depth}"), format!("f{}", depth + step + 1)]});
        nested = json!({"anyOf": [nested.clone(), other, {"not": nested}]});
    }
    let fields: Map<String, Value> = (0..16)
        .map(|n| (format!("f{n}"), json!({"type": "string", "pattern": format!("(a|b)*a(a|b){{{}}}$", 12 + n + step)})))
        .collect();
    let rules: Vec<Value> = (0..100)
        .map(|n| json!({"rule": format!("!has(self.f{}) || self.f{}.size() < {}", n % 16, n % 13, n + step)}))
        .collect();
    json!({"type": "object", "properties": {"spec":
        {"type": "object", "properties": fields, "anyOf": [nested], "x-kubernetes-validations": rules}}})
}

fn proofs(c: &mut Criterion) {
    let version = |schema| VersionSchema {
        schema,
        status_subresource: true,
        api_version: "bench.example.com/v1",
        kind: "Bench",
        release: Default::default(),
    };
    let mut group = c.benchmark_group("proof");
    group.sample_size(10);
    let pairs = [
        ("2 MB that differ everywhere", large(2_000_000, 0), large(2_000_000, 1)),
        ("2 MB, descriptions only", large(2_000_000, 0), large(2_000_000, 0)),
        ("hostile", hostile(0), hostile(1)),
    ];
    for (name, live, desired) in &pairs {
        group.bench_function(*name, |b| {
            b.iter(|| prove(black_box(&version(live)), black_box(&version(desired)), Limits::default()));
        });
    }
    group.finish();
}

criterion_group!(benches, proofs);
criterion_main!(benches);
