//! Waiting for conditions.

use std::thread;
use std::time::{Duration, Instant};

/// Far longer than anything takes: on a machine that is busy with other work, the server has needed more than a minute
/// to remove a CRD. This limit only ends a test that would never end by itself.
const LIMIT_MINUTES: u64 = 4;

/// Waits until `probe` returns a value, and returns it.
///
/// # Panics
///
/// If there is no value after a few minutes; the message includes `what`.
#[track_caller]
pub fn eventually<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    within_limit(probe).unwrap_or_else(|| panic!("timed out after {LIMIT_MINUTES} minutes waiting for: {what}"))
}

pub(crate) fn within_limit<T>(mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + Duration::from_secs(60 * LIMIT_MINUTES);
    loop {
        let found = probe();
        if found.is_some() || Instant::now() > deadline {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
