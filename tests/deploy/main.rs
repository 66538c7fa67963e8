//! `gantry deploy` and `gantry check` as a whole, and what they read from a cluster, with a real API server that all
//! tests of this binary share (docs/internals/testing.md).

#[path = "../support/mod.rs"]
mod support;

mod addresses;
mod apply;
mod apply_conflicts;
mod apps;
mod ca_injection;
mod causes;
mod characters;
mod charts;
mod check_as_deploy;
mod check_watch;
mod command;
mod controllers;
mod diff;
mod down_api;
mod errors;
mod extension_deletion;
mod failures;
mod first_install;
mod gitops;
mod harness;
mod helm_releases;
mod hooks;
mod immutable_advice;
mod job;
mod kapp;
mod kapp_built_in;
mod kapp_claims;
mod kapp_config;
mod kapp_controller;
mod kapp_copies;
mod kube_list;
mod kube_target;
mod label_advice;
mod list_order;
mod live_items;
mod logs;
mod manifests_config;
#[cfg(feature = "olm")]
mod olm;
mod order;
mod order_conflicts;
mod other_tools;
mod owners;
mod read_ahead;
mod report;
mod round_trips;
mod server_metadata;
mod slow_server;
mod snapshot;
mod snapshot_redeploy;
mod strategies;
mod takeover;
#[cfg(unix)]
mod terminal;
mod unmanaged;
mod usage;
mod versions;
mod wait_rules;
mod waiting;
mod watching;
mod webhooks;
