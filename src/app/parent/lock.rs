//! Whether another run is writing an app: who began one keeps others out for a while.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{Outcome, Parent};
use crate::problem::Problem;
use crate::text::sanitize;

/// How long a run that began keeps others out.
const LOCKED: SignedDuration = SignedDuration::from_mins(15);

impl Parent {
    /// Whether another run is writing this app.
    ///
    /// # Errors
    /// Who it is, and what to do.
    pub fn locked(&self, now: Timestamp) -> std::result::Result<(), Problem> {
        let Some(last) = self.last.as_ref().filter(|last| last.outcome == Outcome::Started) else { return Ok(()) };
        let age = now.duration_since(last.time);
        if age >= LOCKED || is_gone(&last.holder) {
            return Ok(());
        }
        let (user, holder) = (sanitize(&last.user), sanitize(last.holder.split('|').next().unwrap_or_default()));
        let message = format!(
            "another deploy of the app {} is running: {user} on {holder} began {} s ago, at {}",
            self.app.name,
            age.as_secs().max(0),
            last.time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        );
        Err(Problem::new(message).help("wait until it has ended; if it was killed, continue with --break-lock"))
    }
}

/// Which process this is, for one that comes later on the same machine: host, namespace of process ids, id and start.
pub fn holder(environment: &BTreeMap<String, String>) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    let host = host.or_else(|| environment.get("HOSTNAME").cloned()).unwrap_or_else(|| "unknown".to_owned());
    let id = std::process::id();
    match process(id) {
        Some((space, start)) => format!("{host}|{space}|{id}|{start}"),
        None => host,
    }
}

/// The namespace of process ids, and when the process was started in ticks since boot, as Linux tells.
fn process(id: u32) -> Option<(String, String)> {
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // After the name of the program, which may hold anything; the start is the 22nd field.
    let start = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.to_owned();
    Some((format!("{}:{space}", boot.trim()), start))
}

/// Whether a process of this machine is certain to have ended.
fn is_gone(holder: &str) -> bool {
    let [_, space, id, start] = holder.split('|').collect::<Vec<_>>()[..] else { return false };
    let (Ok(id), Some((our_space, _))) = (id.parse::<u32>(), process(std::process::id())) else { return false };
    space == our_space && process(id).is_none_or(|(_, now)| now != start)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{last, parent};
    use super::*;

    #[test]
    fn a_run_that_writes_keeps_others_out_for_a_while() {
        let at =
            |minutes: i64| "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes);
        let elsewhere = parent(last(Outcome::Started, "elsewhere|x|1|2".into()));
        let problem = elsewhere.locked(at(14)).unwrap_err();
        assert!(problem.message.contains("ann on elsewhere began 840 s ago"), "{}", problem.message);
        assert!(elsewhere.locked(at(15)).is_ok());
        assert!(parent(last(Outcome::Failed, "elsewhere|x|1|2".into())).locked(at(1)).is_ok());
        let ours = holder(&BTreeMap::new());
        assert!(parent(last(Outcome::Started, ours)).locked(at(1)).is_err(), "this process runs");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_of_this_machine_that_has_ended_keeps_nobody_out() {
        let ours = holder(&BTreeMap::new());
        let (rest, _) = ours.rsplit_once('|').unwrap();
        assert!(is_gone(&format!("{rest}|1")), "the id belongs to a later process");
        assert!(!is_gone(&ours));
    }
}
