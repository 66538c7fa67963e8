//! Gantry deploys Kubernetes manifests behind preflight checks.
//!
//! ```text
//! args ─► config ─► manifests ─► target (live state) ─► plan ─► checks ─► report ─► confirm ─► apply ─► wait
//! ```
//!
//! Each step takes only its predecessor's output. Nothing after `report` can change a verdict, and nothing before
//! `apply` writes.

mod app;
mod apply;
mod bounded;
mod catalog;
pub mod ci_log;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod crd;
pub mod date;
mod diff;
pub mod finding;
mod hash;
mod managed_fields;
pub mod manifest;
mod mask;
mod matcher;
mod merge;
mod olm;
pub mod options;
pub mod parallel;
mod plan;
pub mod preflight;
pub mod problem;
mod program;
mod rbac;
mod readiness;
mod render;
mod report;
pub mod resource;
pub mod run;
mod secret;
pub mod text;
mod ui;
