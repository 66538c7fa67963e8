//! Names, so that tests can share a server.

use std::sync::atomic::{AtomicU32, Ordering};

/// Names that no other test uses.
#[derive(Debug, Clone)]
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
