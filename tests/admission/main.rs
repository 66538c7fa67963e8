//! `gantry admission` with a real API server that calls the webhook. All tests of this binary share the server, and each
//! has a webhook configuration of its own, for CRDs of its own.

#[path = "../support/mod.rs"]
mod support;

mod guard;
mod serve;
mod verdicts;
