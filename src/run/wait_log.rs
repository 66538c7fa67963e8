//! Lines about waits on stderr, if it is not a terminal: what is awaited and why, what changes, and how it ends.
//!
//! A pipeline may stop a job that prints nothing for some minutes, and the reader of its log wants to know where
//! the time went. Short waits print nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gantry_core::resource::ObjectRef;
use gantry_core::text;
use gantry_deploy::apply::Waiting;

/// How long an object is awaited before the first line about it, and the shortest time between two lines about it.
const PAUSE: Duration = Duration::from_secs(1);
/// The most objects that have lines at a time. The others follow when some of these are ready.
const MOST_OBJECTS: usize = 20;
/// After this time without a line, one says that the wait goes on.
const SILENCE: Duration = Duration::from_secs(60);

/// The key of the wait for deletions, after those of all steps.
const DELETIONS: usize = usize::MAX;

/// Prints the lines.
pub struct WaitLog<'o> {
    log: Mutex<WaitLogPrinter<'o>>,
    /// Whether waits have lines.
    is_on: bool,
}

struct WaitLogPrinter<'o> {
    out: &'o mut (dyn Write + Send),
    begun: Instant,
    last_line: Instant,
    /// The awaited objects by the key of the wait and the name of the object.
    awaited: BTreeMap<(usize, String), LoggedWait>,
    /// Why objects were sent again, each printed once.
    retries: BTreeSet<String>,
}

struct LoggedWait {
    since: Instant,
    reason: String,
    printed: Option<Printed>,
}

/// The last line about an object.
struct Printed {
    reason: String,
    at: Instant,
}

/// The state of an awaited object.
struct AwaitedState<'s> {
    object: &'s ObjectRef,
    reason: &'s str,
    has_failed: bool,
}

impl<'o> WaitLog<'o> {
    /// Without `is_on`, only [`WaitLog::print`] prints.
    pub fn new(out: &'o mut (dyn Write + Send), is_on: bool) -> Self {
        WaitLog { log: Mutex::new(WaitLogPrinter::new(out, Instant::now())), is_on }
    }

    /// Takes in the state of a wait for objects to be ready.
    pub fn update(&self, waiting: Waiting<'_>) {
        let states = waiting.unready.iter().map(|unready| AwaitedState {
            object: unready.object,
            reason: &unready.reason,
            has_failed: unready.has_failed,
        });
        self.with(|log| log.update(waiting.step, states, "is ready", Instant::now()));
    }

    /// Takes in the objects that are being deleted.
    pub fn update_deletions<'s>(&self, objects: impl Iterator<Item = &'s ObjectRef>) {
        let states = objects.map(|object| AwaitedState { object, reason: "it is being deleted", has_failed: false });
        self.with(|log| log.update(DELETIONS, states, "is gone", Instant::now()));
    }

    /// Reports that an object could not be written yet.
    pub fn retry(&self, why: &str) {
        self.with(|log| {
            if log.retries.insert(why.to_owned()) {
                log.print(&format!("trying again: {why}"), Instant::now());
            }
        });
    }

    /// Prints a line that is not about a wait.
    pub fn print(&self, line: &str) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).print(line, Instant::now());
    }

    fn with(&self, act: impl FnOnce(&mut WaitLogPrinter<'o>)) {
        if self.is_on {
            act(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl<'o> WaitLogPrinter<'o> {
    fn new(out: &'o mut (dyn Write + Send), now: Instant) -> Self {
        WaitLogPrinter { out, begun: now, last_line: now, awaited: BTreeMap::new(), retries: BTreeSet::new() }
    }

    fn update<'s>(&mut self, wait: usize, states: impl Iterator<Item = AwaitedState<'s>>, end: &str, now: Instant) {
        let mut left = BTreeSet::new();
        for AwaitedState { object, reason, has_failed } in states {
            let key = (wait, object.to_string());
            left.insert(key.clone());
            let one = self.awaited.entry(key.clone()).or_insert_with(|| LoggedWait {
                since: now,
                reason: String::new(),
                printed: None,
            });
            if one.reason != reason {
                reason.clone_into(&mut one.reason);
            }
            if has_failed && one.printed.as_ref().is_some_and(|printed| printed.reason != reason) {
                self.print_reason(&key, "failed", now);
            }
        }
        let ended = self.awaited.keys().filter(|key| key.0 == wait && !left.contains(key));
        for key in ended.cloned().collect::<Vec<_>>() {
            let Some(LoggedWait { since, printed: Some(_), .. }) = self.awaited.remove(&key) else { continue };
            self.print(&format!("{} {end} after {}", key.1, seconds(now - since)), now);
        }
        self.print_new(now);
        if now - self.last_line >= SILENCE && !self.awaited.is_empty() {
            let count = text::count(self.awaited.len(), "object");
            self.print(&format!("still waiting for {count} after {}", seconds(now - self.begun)), now);
        }
    }

    /// Prints the reasons that are not printed yet.
    fn print_new(&mut self, now: Instant) {
        let mut free = MOST_OBJECTS.saturating_sub(self.awaited.values().filter(|one| one.printed.is_some()).count());
        let mut due = Vec::new();
        for (key, one) in &self.awaited {
            let is_due = match &one.printed {
                Some(printed) => printed.reason != one.reason && now - printed.at >= PAUSE,
                None if now - one.since >= PAUSE && free > 0 => {
                    free -= 1;
                    true
                }
                None => false,
            };
            if is_due {
                due.push(key.clone());
            }
        }
        for key in due {
            self.print_reason(&key, "waiting for", now);
        }
    }

    fn print_reason(&mut self, key: &(usize, String), what: &str, now: Instant) {
        let Some(one) = self.awaited.get_mut(key) else { return };
        let reason = one.reason.clone();
        one.printed = Some(Printed { reason: reason.clone(), at: now });
        self.print(&format!("{what} {}: {reason}", key.1), now);
    }

    fn print(&mut self, line: &str, now: Instant) {
        // Nobody may read the log; that does not end a deploy.
        let _ = writeln!(self.out, "{}", text::sanitize_line(line));
        self.last_line = now;
    }
}

/// A duration in minutes and seconds.
fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {} s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> ObjectRef {
        ObjectRef { api_version: "v1".into(), kind: "Pod".into(), namespace: None, name: name.into() }
    }

    /// The lines after updates at these seconds, each with the objects that are not ready and why.
    fn lines(updates: &[(u64, &[(&str, &str)])]) -> String {
        let (mut out, begun) = (Vec::new(), Instant::now());
        let mut log = WaitLogPrinter::new(&mut out, begun);
        for (at, objects) in updates {
            let objects: Vec<_> = objects.iter().map(|(name, reason)| (object(name), *reason)).collect();
            let states = objects.iter().map(|(object, reason)| AwaitedState {
                object,
                reason,
                has_failed: reason.starts_with("failed"),
            });
            log.update(0, states, "is ready", begun + Duration::from_secs(*at));
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_short_wait_prints_nothing() {
        assert_eq!(lines(&[(0, &[("a", "starting")]), (0, &[])]), "");
    }

    #[test]
    fn start_change_and_end_of_a_wait_have_a_line_each() {
        let updates: &[(u64, &[(&str, &str)])] = &[
            (0, &[("a", "starting")]),
            (1, &[("a", "starting")]),
            (2, &[("a", "starting")]),
            (3, &[("a", "pulling\nthe image")]),
            (75, &[]),
        ];
        let expected =
            "waiting for pod/a: starting\nwaiting for pod/a: pulling\\nthe image\npod/a is ready after 1 min 15 s\n";
        assert_eq!(lines(updates), expected);
    }

    #[test]
    fn a_reason_that_keeps_changing_is_printed_once_a_second() {
        let updates: Vec<(u64, Vec<(&str, &str)>)> =
            [0, 1, 1, 1, 2].iter().zip(["a", "b", "c", "d", "e"]).map(|(at, why)| (*at, vec![("x", why)])).collect();
        let updates: Vec<(u64, &[(&str, &str)])> = updates.iter().map(|(at, states)| (*at, &states[..])).collect();
        assert_eq!(lines(&updates), "waiting for pod/x: b\nwaiting for pod/x: e\n");
    }

    #[test]
    fn a_failed_object_is_not_called_ready() {
        let updates: &[(u64, &[(&str, &str)])] =
            &[(0, &[("a", "starting")]), (1, &[("a", "starting")]), (1, &[("a", "failed: no image")])];
        assert_eq!(lines(updates), "waiting for pod/a: starting\nfailed pod/a: failed: no image\n");
    }

    #[test]
    fn some_of_many_objects_are_named_and_their_number_is_printed_each_minute() {
        let names: Vec<String> = (10..60).map(|number| format!("p{number}")).collect();
        let states: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "starting")).collect();
        let text = lines(&[(0, &states), (1, &states), (30, &states), (61, &states), (62, &states)]);
        assert_eq!(text.lines().count(), MOST_OBJECTS + 1, "{text}");
        assert!(text.ends_with("still waiting for 50 objects after 1 min 1 s\n"), "{text}");
    }
}
