//! Unique names, so that tests can share a server.

use std::sync::atomic::{AtomicU32, Ordering};

/// Names that no other test uses.
#[derive(Debug, Clone)]
pub struct Isolated {
    /// An API group, such as `t3-4711.example.com`.
    pub group: String,
    /// The name of a namespace, which the test must create.
    pub namespace: String,
}

/// Returns names that are unique among all tests and test processes on this machine. They have the same length, so that
/// tables and wrapped lines of an output are the same in each run.
pub fn isolated() -> Isolated {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let name = format!("t{:03}-{:07}", COUNTER.fetch_add(1, Ordering::Relaxed), std::process::id());
    Isolated { group: format!("{name}.example.com"), namespace: name }
}
