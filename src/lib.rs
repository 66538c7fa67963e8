//! Gantry deploys Kubernetes manifests behind preflight checks.
//!
//! ```text
//! args ─► config ─► manifests ─► target (live state) ─► plan ─► checks ─► report ─► confirm ─► apply ─► wait
//! ```
//!
//! Each step takes only its predecessor's output. Nothing after `report` can change a verdict, and nothing before
//! `apply` writes.

#[expect(missing_docs, reason = "the documentation of an argument is its help")]
pub mod cli;
pub mod run;
