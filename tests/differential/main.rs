//! Compares what gantry computes itself with the API server, on generated schemas, objects and CRDs
//! (docs/internals/testing.md).
//!
//! The server is the one that the test bed pins; with `GANTRY_RELEASES=1.28,1.30`, those of these releases.

// On other systems the crate that starts the servers is empty.
#![cfg(unix)]

#[path = "../generator/mod.rs"]
mod generator;
#[path = "../support/mod.rs"]
mod support;

mod comparison;
mod judges;

mod crd;
mod crd_keywords;
mod library_types;
mod proof;
mod ranges;
mod servers;
mod typed;
mod upgrade;
mod validator;
mod validator_changes;

/// The size of a run and its seed: `NAME=<count>[,<seed>]`, or the given default.
fn run_length(name: &str, default: usize) -> (usize, u64) {
    let Ok(setting) = std::env::var(name) else { return (default, 1) };
    let (count, seed) = setting.split_once(',').unwrap_or((&setting, "1"));
    match (count.parse(), seed.parse()) {
        (Ok(count), Ok(seed)) => (count, seed),
        _ => panic!("{name} is <count>[,<seed>]"),
    }
}
