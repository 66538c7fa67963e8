//! Hostile inputs, servers and environments, and kills at any moment: every run ends by itself, in bounded memory, and
//! nothing is lost.

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
mod objects;
#[cfg(unix)]
mod server;
#[cfg(unix)]
mod surroundings;
