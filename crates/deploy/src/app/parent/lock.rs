//! The lock of an app: a run that has started locks out other runs for a while.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Parent, RunOutcome};
use crate::app::MANAGER;
use crate::app::config_map::ConfigMap;
use gantry_core::problem::Problem;
use gantry_core::text::sanitize;

/// How long a run that has started locks out others.
const LOCKED: SignedDuration = SignedDuration::from_mins(15);

impl Parent {
    /// Checks that no other run is writing this app. Returns a notice if there is a lock that is ignored, because its
    /// start time is too far in the future.
    ///
    /// The run recorded its start by its own clock, and the server recorded when it received that. The earlier of the
    /// two counts, so a clock that is fast does not make the lock last longer.
    ///
    /// # Errors
    /// Another run holds the lock.
    pub fn locked(&self, now: Timestamp) -> std::result::Result<Option<Problem>, Problem> {
        let Some(last) = self.last.as_ref().filter(|last| last.outcome == RunOutcome::Started) else { return Ok(None) };
        let received = ConfigMap::parse(&self.live.raw.json()).ok().and_then(|record| record.applied(MANAGER));
        let began = received.map_or(last.time, |received| received.min(last.time));
        let age = now.duration_since(began);
        if age >= LOCKED || is_gone(&last.holder) {
            return Ok(None);
        }
        let (user, holder) = (sanitize(&last.user), sanitize(last.holder.split('|').next().unwrap_or_default()));
        let (app, at) = (&self.app.name, began.strftime("%Y-%m-%dT%H:%M:%SZ"));
        if age <= -LOCKED {
            let message = format!(
                "the lock of the app {app} is ignored: its record says that {user} on {holder} started a deploy at {at}, more \
                 than {} minutes in the future",
                LOCKED.as_mins(),
            );
            return Ok(Some(Problem::new(message).help(format!("check the clocks of this machine and of {holder}"))));
        }
        let when = match age.as_secs() {
            ..0 => format!("{} s in the future", -age.as_secs()),
            age => format!("{age} s ago"),
        };
        let message =
            format!("another deploy of the app {app} is running: {user} on {holder} started it {when}, at {at}");
        Err(Problem::new(message).help("wait until it ends; if it was killed, continue with --break-lock"))
    }
}

/// Identifies this process: host, PID namespace, process id and start time. A later process on the same machine can
/// tell from it whether this one still runs.
pub fn holder(environment: &BTreeMap<String, String>) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    let host = host.or_else(|| environment.get("HOSTNAME").cloned()).unwrap_or_else(|| "unknown".to_owned());
    let id = std::process::id();
    match process(id) {
        Some((space, start)) => format!("{host}|{space}|{id}|{start}"),
        None => host,
    }
}

/// The PID namespace, and the start time of the process in ticks since boot, from Linux's `/proc`.
fn process(id: u32) -> Option<(String, String)> {
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // Fields after the program's name, which can contain any character; the start is the 22nd field.
    let start = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.to_owned();
    Some((format!("{}:{space}", boot.trim()), start))
}

/// Whether the holder is a process on this machine that has ended.
fn is_gone(holder: &str) -> bool {
    let [_, space, id, start] = holder.split('|').collect::<Vec<_>>()[..] else { return false };
    let (Ok(id), Some((our_space, _))) = (id.parse::<u32>(), process(std::process::id())) else { return false };
    space == our_space && process(id).is_none_or(|(_, now)| now != start)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{last, parent};
    use super::*;
    use gantry_core::resource::RawObject;

    #[test]
    fn the_lock_of_a_run_that_writes_holds_for_a_limited_time() {
        let at =
            |minutes: i64| "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes);
        let elsewhere = parent(last(RunOutcome::Started, "elsewhere|x|1|2".into()));
        let problem = elsewhere.locked(at(14)).unwrap_err();
        assert!(problem.message.contains("ann on elsewhere started it 840 s ago"), "{}", problem.message);
        assert_eq!(elsewhere.locked(at(15)), Ok(None));
        let problem = elsewhere.locked(at(-14)).unwrap_err();
        assert!(problem.message.contains("ann on elsewhere started it 840 s in the future"), "{}", problem.message);
        let notice = elsewhere.locked(at(-15)).unwrap().unwrap();
        assert!(notice.message.starts_with("the lock of the app shop is ignored"), "{}", notice.message);
        assert!(parent(last(RunOutcome::Failed, "elsewhere|x|1|2".into())).locked(at(1)).is_ok());
        let ours = holder(&BTreeMap::new());
        assert!(parent(last(RunOutcome::Started, ours)).locked(at(1)).is_err(), "this process runs");
    }

    /// A clock that is fast does not make a lock last longer than it would by the server's clock.
    #[test]
    fn the_age_of_a_lock_is_that_of_the_earlier_of_two_clocks() {
        let at = |time: &str| time.parse::<Timestamp>().unwrap();
        let mut parent = parent(last(RunOutcome::Started, "elsewhere|x|1|2".into()));
        parent.last.as_mut().unwrap().time = at("2027-01-01T00:00:00Z");
        let mut record = parent.live.raw.value();
        let entry =
            |manager: &str, time: &str| serde_json::json!({"manager": manager, "operation": "Apply", "time": time});
        record["metadata"]["managedFields"] =
            [entry(MANAGER, "2026-01-01T00:00:00Z"), entry("other", "2025-01-01T00:00:00Z")].into();
        parent.live.raw = RawObject::from_value(&record);
        let problem = parent.locked(at("2026-01-01T00:14:00Z")).unwrap_err();
        assert!(problem.message.contains("started it 840 s ago, at 2026-01-01T00:00:00Z"), "{}", problem.message);
        assert_eq!(parent.locked(at("2026-01-01T00:15:00Z")), Ok(None));
        assert!(parent.locked(at("2025-12-31T00:00:00Z")).unwrap().is_some());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_lock_of_an_ended_process_of_this_machine_does_not_hold() {
        let ours = holder(&BTreeMap::new());
        let (rest, _) = ours.rsplit_once('|').unwrap();
        assert!(is_gone(&format!("{rest}|1")), "the id belongs to a later process");
        assert!(!is_gone(&ours));
    }
}
