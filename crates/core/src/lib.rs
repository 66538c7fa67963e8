//! What all parts of gantry speak of: objects and their manifests, problems and findings, merges and diffs.

pub mod bounded;
pub mod ci_log;
pub mod crd;
pub mod date;
pub mod diff;
pub mod finding;
pub mod hash;
pub mod managed_fields;
pub mod manifest;
pub mod mask;
pub mod matcher;
pub mod merge;
pub mod next_step;
pub mod options;
pub mod parallel;
pub mod problem;
pub mod program;
pub mod rbac;
pub mod render;
pub mod resource;
pub mod secret;
pub mod text;
pub mod ui;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CoreReadme;
