//! Inputs, servers and surroundings that would do harm, and kills at any moment: every run ends by itself, in bounded
//! memory, with nothing lost.

#[cfg(unix)]
#[path = "../support/mod.rs"]
mod support;

#[cfg(unix)]
mod changes;
#[cfg(unix)]
mod connection;
mod dir_target_kill;
#[cfg(unix)]
mod endurance;
mod manifests;
#[cfg(unix)]
mod server;
#[cfg(unix)]
mod surroundings;
