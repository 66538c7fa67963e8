//! The test bed: a real kube-apiserver and etcd, the built `gantry`, and a proxy to put between the two.
//!
//! Each integration test binary has it as its module `support`. The first test that calls [`control_plane`] starts the
//! one pair of servers of that binary, so tests share it and keep out of each other's way by [`isolated`] names; a test
//! that has to harm the servers starts its own with [`ControlPlane::start`]. `docs/testing.md` is the guide.

// Each test binary compiles this module for itself and uses its own part of it.
#![allow(dead_code, unused_imports)]

pub mod admission;
mod api;
mod bed;
mod binaries;
mod control_plane;
mod gantry;
mod mock;
mod proxy;
pub mod rights;
mod samples;
mod supervisor;
#[cfg(unix)]
mod terminal;
mod webhook;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub use api::Api;
pub use bed::{Bed, changed, closed_port, kubeconfig_with, results};
pub use control_plane::{ControlPlane, SPARE_USERS};
pub use gantry::{Gantry, Output, Running};
pub use mock::{Asked, Does, Mock};
pub use proxy::{Held, Proxy, Recorded, When};
pub use samples::{Said, Samples, affected, fields, findings, names, said, sample_crd, say, text};
#[cfg(unix)]
pub use terminal::Terminal;
pub use webhook::Webhook;

/// The control plane of this test binary, started by the first caller.
///
/// A failed start is not tried again by the next test: with a missing toolchain each test fails at once.
pub fn control_plane() -> &'static ControlPlane {
    static SHARED: OnceLock<Option<ControlPlane>> = OnceLock::new();
    let mut failure = None;
    let shared = SHARED.get_or_init(|| match std::panic::catch_unwind(ControlPlane::start) {
        Ok(started) => Some(started),
        Err(panic) => {
            failure = Some(panic);
            None
        }
    });
    if let Some(panic) = failure {
        std::panic::resume_unwind(panic);
    }
    shared.as_ref().expect("the control plane did not start; the first failed test says why")
}

/// Names that no other test uses.
pub struct Isolated {
    /// An API group, such as `t3-4711.example.com`.
    pub group: String,
    /// A namespace name. The namespace itself is the test's to create.
    pub namespace: String,
}

/// Names for one test, unique among all tests and all test processes on this machine.
pub fn isolated() -> Isolated {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let name = format!("t{}-{}", COUNTER.fetch_add(1, Ordering::Relaxed), std::process::id());
    Isolated { group: format!("{name}.example.com"), namespace: name }
}

/// Waits until `probe` finds something, and fails the test with `what` when a minute has passed without.
#[track_caller]
pub fn eventually<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    within_a_minute(probe).unwrap_or_else(|| panic!("waited a minute in vain: {what}"))
}

fn within_a_minute<T>(probe: impl FnMut() -> Option<T>) -> Option<T> {
    within_minutes(1, probe)
}

fn within_minutes<T>(minutes: u64, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + Duration::from_secs(60 * minutes);
    loop {
        let found = probe();
        if found.is_some() || Instant::now() > deadline {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
