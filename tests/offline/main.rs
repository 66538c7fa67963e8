//! What needs no API server: folders that stand in for a cluster, the library in another program, examples and documents.

// Its other parts need an API server.
#[path = "../support/sentences.rs"]
#[allow(dead_code)]
mod sentences;

mod baseline;
mod catalog;
mod config_examples;
mod crd_rules;
mod dir_target;
mod embedded;
mod extensions;
mod formats;
mod fuzz_seeds;
mod git;
mod messages;
mod packaging;
mod pictures;
mod preset_verdicts;
mod reports;
#[cfg(unix)]
mod transcripts;
