//! The cost of the check inside the process: reading manifests, and comparing pairs of CRDs.
//!
//! `cargo bench` measures 60 CRDs of 25 KB generated from one seed; times are for all of them.

mod support;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gantry_core::crd::CrdPair;
use gantry_core::manifest::{self, ManifestSource};
use gantry_preflight::crd_upgrade_safety::compare;
use serde_json::Value;

const SEED: u64 = 7;
const CRDS: usize = 60;
const BYTES: usize = 25_000;

fn live() -> Vec<Value> {
    (0..CRDS).map(|number| support::crd(SEED, number, "bench.example.com", BYTES)).collect()
}

fn read(c: &mut Criterion) {
    let documents: Vec<String> = live().iter().map(support::yaml).collect();
    let text = documents.join("---\n");
    let mut group = c.benchmark_group("read");
    group.throughput(Throughput::Bytes(text.len() as u64));
    let source = Arc::new(ManifestSource::new("bench.yaml", text));
    group.bench_function("60 CRDs of 25 KB", |b| {
        b.iter(|| manifest::read(black_box(&source)).expect("the generator makes valid manifests"));
    });
    group.finish();
}

fn compare(c: &mut Criterion) {
    let pairs: Vec<(String, String)> = live()
        .iter()
        .enumerate()
        .map(|(number, crd)| (crd.to_string(), support::upgraded(crd, number).to_string()))
        .collect();
    let mut group = c.benchmark_group("compare");
    group.throughput(Throughput::Elements(CRDS as u64));
    group.bench_function("60 changed pairs of 25 KB", |b| {
        b.iter(|| {
            for (live, desired) in &pairs {
                let pair = CrdPair::parse(live, desired).expect("both sides are CRDs");
                black_box(compare::compare_crds(&pair).expect("their schemas can be read"));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, read, compare);
criterion_main!(benches);
