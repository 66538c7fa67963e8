//! Waiting for conditions.

use std::thread;
use std::time::{Duration, Instant};

/// Waits until `probe` finds something and returns it.
///
/// # Panics
///
/// When a minute has passed without: fails the test with `what` was awaited.
#[track_caller]
pub fn eventually<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    within_a_minute(probe).unwrap_or_else(|| panic!("waited a minute in vain: {what}"))
}

pub(crate) fn within_a_minute<T>(probe: impl FnMut() -> Option<T>) -> Option<T> {
    within_minutes(1, probe)
}

pub(crate) fn within_minutes<T>(minutes: u64, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + Duration::from_secs(60 * minutes);
    loop {
        let found = probe();
        if found.is_some() || Instant::now() > deadline {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
