//! The speed-up of the readers of the block style and of JSON (`crates/yaml/src/{block,flow}`): CRDs in the plain block
//! style and as JSON, and the same CRDs with an anchor or a comment, which these readers leave to libyaml.
//!
//! Both are read alternately, and the shortest times are compared, because other load only makes a run longer.

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

const SEED: u64 = 7;
const CRDS: usize = 60;
const BYTES: usize = 25_000;
const TURNS: usize = 25;

fn main() {
    let crds: Vec<_> = (0..CRDS).map(|number| support::crd(SEED, number, "bench.example.com", BYTES)).collect();
    let block: Vec<String> = crds.iter().map(support::yaml).collect();
    let anchored: Vec<String> =
        block.iter().map(|text| text.replacen("apiVersion: ", "apiVersion: &version ", 1)).collect();
    let flow: Vec<String> = crds.iter().map(|crd| serde_json::to_string(crd).expect("a CRD is valid JSON")).collect();
    // Only the comment makes it invalid JSON.
    let commented: Vec<String> = flow.iter().map(|text| format!("{text} # YAML")).collect();
    for (fast, general) in block.iter().zip(&anchored).chain(flow.iter().zip(&commented)) {
        assert_ne!(fast, general);
        assert_eq!(gantry_yaml::to_json(fast), gantry_yaml::to_json(general), "both readers give the same result");
    }
    println!("{CRDS} CRDs to JSON, the shortest of {TURNS} runs");
    compare("block style", &block, &anchored);
    compare("JSON", &flow, &commented);
}

fn compare(style: &str, fast: &[String], general: &[String]) {
    let (mut of_fast, mut of_general) = (Duration::MAX, Duration::MAX);
    for _ in 0..TURNS {
        of_fast = of_fast.min(time(fast));
        of_general = of_general.min(time(general));
    }
    let bytes: usize = fast.iter().map(String::len).sum();
    let speed = |time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    println!("{style}, {:.1} MB", bytes as f64 / 1e6);
    println!("  own reader     {:>7.2} ms {:>6.0} MB/s", of_fast.as_secs_f64() * 1e3, speed(of_fast));
    println!("  libyaml        {:>7.2} ms {:>6.0} MB/s", of_general.as_secs_f64() * 1e3, speed(of_general));
    println!("  ratio          {:>7.1}", of_general.as_secs_f64() / of_fast.as_secs_f64());
}

fn time(texts: &[String]) -> Duration {
    let start = Instant::now();
    for text in texts {
        black_box(gantry_yaml::to_json(black_box(text))).expect("a CRD is valid YAML");
    }
    start.elapsed()
}
