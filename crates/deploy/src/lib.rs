//! What gantry deploys: configuration, plan, apps, writing and waiting.

pub mod app;
pub mod apply;
pub mod config;
pub mod plan;
pub mod readiness;
