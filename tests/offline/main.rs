//! Tests without an API server: folders as clusters, the library in another program, examples and documentation.

// The other parts of this module need an API server.
#[path = "../support/sentences.rs"]
#[allow(dead_code)]
mod sentences;
#[path = "../support/transcript.rs"]
#[allow(dead_code)]
#[cfg(unix)]
mod transcript;

mod baseline;
mod changed_lines;
mod charts;
mod config_examples;
mod crd_rules;
mod default_checks;
mod dir_target;
mod embedded;
mod formats;
mod fuzz_seeds;
mod git;
mod kube_version;
mod library_bumps;
mod links;
mod log_commands;
mod mcp;
mod messages;
#[cfg(feature = "olm")]
mod olm;
mod packaging;
mod page;
mod pictures;
mod preset_verdicts;
// Their scripts are for runners with Linux.
#[cfg(target_os = "linux")]
mod pull_requests;
#[cfg(target_os = "linux")]
mod release;
mod reports;
#[cfg(unix)]
mod transcripts;
mod type_names;
