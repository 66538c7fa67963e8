//! What the reader of the block style (`crates/yaml/src/block`) brings: CRDs in the plain block style, and the same ones with
//! an anchor in their first line, which that reader leaves to libyaml.
//!
//! Both are read in turns, and the shortest times are compared: what else the machine does only makes a run longer.

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

const SEED: u64 = 7;
const CRDS: usize = 60;
const BYTES: usize = 25_000;
const TURNS: usize = 25;

fn main() {
    let block: Vec<String> = (0..CRDS)
        .map(|number| serde_yaml::to_string(&support::crd(SEED, number, "bench.example.com", BYTES)))
        .collect::<Result<_, _>>()
        .expect("a CRD is valid YAML");
    let anchored: Vec<String> =
        block.iter().map(|text| text.replacen("apiVersion: ", "apiVersion: &version ", 1)).collect();
    for (block, anchored) in block.iter().zip(&anchored) {
        assert_ne!(block, anchored);
        assert_eq!(gantry_yaml::to_json(block), gantry_yaml::to_json(anchored), "both readers read the same");
    }

    let (mut fast, mut general) = (Duration::MAX, Duration::MAX);
    for _ in 0..TURNS {
        fast = fast.min(time(&block));
        general = general.min(time(&anchored));
    }
    let bytes: usize = block.iter().map(String::len).sum();
    let speed = |time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    println!("{CRDS} CRDs, {:.1} MB of YAML into JSON, the shortest of {TURNS} turns", bytes as f64 / 1e6);
    println!("block reader {:>7.2} ms {:>6.0} MB/s", fast.as_secs_f64() * 1e3, speed(fast));
    println!("libyaml      {:>7.2} ms {:>6.0} MB/s", general.as_secs_f64() * 1e3, speed(general));
    println!("ratio        {:>7.1}", general.as_secs_f64() / fast.as_secs_f64());
}

fn time(texts: &[String]) -> Duration {
    let start = Instant::now();
    for text in texts {
        black_box(gantry_yaml::to_json(black_box(text))).expect("a CRD is valid YAML");
    }
    start.elapsed()
}
