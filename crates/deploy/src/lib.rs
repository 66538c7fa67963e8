//! What gantry deploys: configuration, plan, apps, writing and waiting.

pub mod app;
pub mod apply;
pub mod config;
pub mod plan;
pub mod readiness;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct DeployReadme;
