//! `gantry migrate` against a real API server. What is stored is read from etcd.

// On other systems the crate that starts the servers is empty.
#![cfg(unix)]

#[path = "../support/mod.rs"]
mod support;

mod deploys;
mod every_request;
mod faults;
mod json;
mod losses;
mod moves;
mod permissions;
mod refusals;
mod samples;
mod server_migrator;
mod usage;
mod webhooks;
