//! Each check from the command line, against a real API server that all tests of this binary share
//! (docs/internals/testing.md).

// On other systems the crate that starts the servers is empty.
#![cfg(unix)]

#[path = "../support/mod.rs"]
mod support;

mod admission;
mod admission_examples;
mod admission_plan;
mod admission_words;
mod availability;
mod before_upgrade;
mod between_versions;
mod beyond_one_version;
mod bundles;
mod conversion;
mod crd_invalid;
mod custom_checks;
mod default_checks;
mod deletions;
mod evidence;
mod fleet;
mod guide;
mod managed_fields;
mod managed_fields_asked;
mod objects;
mod objects_claims;
mod objects_manifests;
mod objects_proven;
mod objects_updates;
mod permissions;
mod permissions_checks;
mod permissions_handed_on;
mod presets;
mod printed_commands;
mod ratcheting;
mod refusals;
mod removed_versions;
mod rules;
mod sentences;
mod server_releases;
mod versions;
