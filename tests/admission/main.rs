//! `gantry admission` with a real API server that calls the webhook. All tests of this binary share the server, and each
//! has a webhook configuration of its own, for CRDs of its own.

// On other systems the crate that starts the servers is empty.
#![cfg(unix)]

#[path = "../support/mod.rs"]
mod support;

mod guard;
mod manifests;
mod policy;
mod serve;
mod verdicts;
