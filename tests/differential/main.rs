//! What gantry works out for itself against the API server: generated schemas, objects and CRDs, and the same answer
//! (docs/testing.md).

// Elsewhere the crate that starts the servers is empty.
#![cfg(unix)]

#[path = "../generator/mod.rs"]
mod generator;
#[path = "../support/mod.rs"]
mod support;

mod comparison;
mod judges;

mod crd;
mod crd_keywords;
mod proof;
mod ranges;
mod upgrade;
mod validator;
mod validator_changes;
