//! For end-to-end tests: the built `gantry`, a real API server (the crate `gantry-testbed`), and a proxy between the
//! two.
//!
//! Each integration test binary includes this file as its module `support`. The first test that calls [`control_plane`]
//! starts the binary's only pair of servers. Tests share it and avoid conflicts by using [`isolated`] names; a test
//! that harms the servers starts its own with [`ControlPlane::start`]. See the guide in `docs/internals/testing.md`.

// Each test binary compiles this module separately and uses a part of it.
#![allow(dead_code, unused_imports)]

pub mod admission;
mod bed;
mod crd_fixtures;
mod gantry;
pub mod helm;
pub mod https;
mod mock;
pub mod olm;
mod printed;
mod proxy;
mod record;
mod relay;
#[cfg(unix)]
mod releases;
pub mod rights;
mod samples;
mod sentences;
#[cfg(unix)]
mod terminal;
pub mod transcript;
mod webhook;

pub use bed::{Bed, changed, closed_port, create_as, kubeconfig_with, merge, results};
pub use crd_fixtures::{PREDICTED_REFUSALS, crd_fixture_folders};
pub use gantry::{Gantry, Output, Running};
pub use gantry_core::crd::builder::{CrdBuilder, any_fields, crd_yaml, fields, string_fields};
/// The control plane of this test binary, started by the first caller.
pub use gantry_testbed::shared as control_plane;
pub use gantry_testbed::{Api, ControlPlane, Isolated, eventually, isolated};
pub use mock::{Mock, Reply, Request};
pub use printed::{printed_command, printed_commands, run_printed};
pub use proxy::{Held, Proxy, Recorded, When};
pub use relay::Relay;
#[cfg(unix)]
pub use releases::chosen_releases;
pub use samples::{FindingId, Samples, affected, finding_id, finding_ids, findings, names, text};
pub use sentences::{Sentences, sentences, shown};
#[cfg(unix)]
pub use terminal::Terminal;
pub use webhook::Webhook;
