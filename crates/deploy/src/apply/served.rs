//! Waits until the server serves the CRDs of a step.
//!
//! A watch reports when the conditions say that a CRD is served (see [`Observer`]). Discovery lists it slightly later,
//! and has to be polled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::events::ApplyEvent;
use super::observe::{ObjectObservation, Observer};
use crate::plan::{Action, Change};
use crate::readiness::{self, Readiness};
use gantry_cluster::{Established, IN_FLIGHT, Target};
use gantry_core::problem::{Problem, Result};

/// The pause between two requests about a CRD.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The limits of a wait.
pub struct ServedWaitLimits<'a> {
    pub target: &'a Target,
    pub observer: &'a Observer<'a>,
    /// The most time between two CRDs that are served.
    pub timeout: Duration,
    pub stop: watch::Receiver<bool>,
    /// Set when something else failed.
    pub halted: &'a AtomicBool,
    pub on_event: &'a (dyn Fn(ApplyEvent<'_>) + Sync),
}

/// A CRD that is awaited.
struct CrdServingProgress<'a> {
    index: usize,
    change: &'a Change,
    /// The revision of its last known state.
    revision: u64,
    reason: String,
    /// Whether discovery has to be requested: its conditions say that it is served, or it is not watched.
    asks: bool,
    next: Instant,
    pause: Duration,
}

impl ServedWaitLimits<'_> {
    /// Waits until the target serves every applied CRD. Returns the problems of those that it does not serve.
    ///
    /// The time limit starts again with each CRD that is served: the server takes a while for hundreds of new CRDs.
    pub async fn until_served(&self, crds: impl Iterator<Item = (usize, &Change)>) -> Vec<Problem> {
        let begun = Instant::now();
        let mut deadline = begun + self.timeout;
        let progress = |(index, change)| CrdServingProgress {
            index,
            change,
            revision: 0,
            reason: "the server has not accepted it yet".to_owned(),
            asks: false,
            next: begun,
            pause: FIRST_PAUSE,
        };
        let mut waiting: Vec<CrdServingProgress<'_>> =
            crds.filter(|(_, change)| may_be_awaited(change)).map(progress).collect();
        let total = waiting.len();
        let mut news = self.observer.subscribe();
        while !waiting.is_empty() {
            news.borrow_and_update();
            waiting.iter_mut().for_each(|one| self.check_progress(one));
            let now = Instant::now();
            // At the deadline all are requested once more, in case an event was missed.
            let is_late = now >= deadline;
            let (due, parked): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|one| is_late || one.asks && now >= one.next);
            waiting = parked;
            let answers: Vec<_> =
                stream::iter(due).map(|one| self.read_established(one)).buffered(IN_FLIGHT).collect().await;
            let mut problems = Vec::new();
            for (mut one, answer) in answers {
                let Change { desired, .. } = one.change;
                match answer {
                    Ok(Established::Yes) => deadline = Instant::now() + self.timeout,
                    Ok(Established::NotYet(reason)) => {
                        one.reason = reason;
                        one.next = Instant::now() + one.pause;
                        one.pause = (one.pause * 2).min(LONGEST_PAUSE);
                        waiting.push(one);
                    }
                    Ok(Established::Never(reason)) => {
                        let object = &desired.object;
                        let message = format!("{object} was applied, but the server will not serve it: {reason}");
                        let help = "fix the CRD and run the same command again";
                        problems.push(Problem::new(message).at(desired.origin.location()).help(help));
                    }
                    Err(error) => problems.extend(error.problems().iter().cloned()),
                }
            }
            (self.on_event)(ApplyEvent::Established(total - waiting.len(), total));
            if !problems.is_empty() || self.is_over() {
                return problems;
            }
            if is_late && now >= deadline {
                return waiting.iter().map(|one| not_served_in_time(one, now - begun)).collect();
            }
            let next = waiting.iter().filter(|one| one.asks).map(|one| one.next).min().unwrap_or(deadline);
            // Failures elsewhere are noticed soon.
            let next = next.min(deadline).min(Instant::now() + LONGEST_PAUSE);
            let mut stop = self.stop.clone();
            if !waiting.is_empty() {
                tokio::select! {
                    _ = news.changed() => {}
                    () = tokio::time::sleep_until(next) => {}
                    _ = stop.wait_for(|stop| *stop) => return Vec::new(),
                }
            }
        }
        Vec::new()
    }

    async fn read_established<'c>(&self, one: CrdServingProgress<'c>) -> (CrdServingProgress<'c>, Result<Established>) {
        let crd = one.change.crd().and_then(|sides| sides.defined());
        let versions: Vec<&str> = crd.iter().flat_map(|crd| crd.served_versions()).map(|found| &*found.name).collect();
        let answer = self.target.established(&one.change.desired.object, &versions).await;
        (one, answer)
    }

    /// Updates a CRD from its watch.
    fn check_progress(&self, one: &mut CrdServingProgress<'_>) {
        match self.observer.observe(one.index, one.revision) {
            ObjectObservation::Same => {}
            ObjectObservation::At(live, revision) => {
                one.revision = revision;
                match pending(one.change, &live) {
                    Some(reason) => {
                        (one.reason, one.asks) = (reason, false);
                        self.observer.follow(one.index);
                    }
                    None => (one.asks, one.next, one.pause) = (true, Instant::now(), FIRST_PAUSE),
                }
            }
            // Served before this deploy, or deleted.
            ObjectObservation::Ready(_) | ObjectObservation::Absent(_) => one.asks = true,
            ObjectObservation::Unseen => {
                self.observer.follow(one.index);
                one.asks |= matches!(self.observer.observe(one.index, one.revision), ObjectObservation::Unseen);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.halted.load(Ordering::Relaxed) || *self.stop.borrow()
    }
}

fn not_served_in_time(one: &CrdServingProgress<'_>, waited: Duration) -> Problem {
    let (object, seconds) = (&one.change.desired.object, waited.as_secs());
    Problem::new(format!("{object} was applied, but is not served after {seconds}s: {}", one.reason))
        .at(one.change.desired.origin.location())
        .help("run the same command again to continue, or raise timeouts.established")
}

/// Why a CRD is not served yet, from its conditions; `None` if it is, or never will be.
fn pending(change: &Change, live: &Value) -> Option<String> {
    if !live["metadata"]["deletionTimestamp"].is_null() {
        return None;
    }
    match readiness::evaluate_by(&[], &change.desired.object, live).state {
        Readiness::InProgress(reason) => Some(reason),
        Readiness::Ready { .. } | Readiness::Failed(_) => None,
    }
}

/// Whether the change is a CRD that a deploy may have to wait for, including one that an earlier run applied without
/// waiting.
pub fn may_be_awaited(change: &Change) -> bool {
    let is_awaited = || match change.action {
        // The last run waited for it.
        Action::Unchanged => !change.is_as_applied && !is_served(change),
        action => !action.leaves_alone(),
    };
    change.desired.object.is_crd() && change.desired.bundle.is_none() && is_awaited()
}

/// Whether the live CRD had the condition that it is served when it was read.
fn is_served(change: &Change) -> bool {
    #[derive(Deserialize)]
    struct CrdWithStatus {
        #[serde(default)]
        status: Value,
    }
    let Some(live) = &change.live else { return false };
    let Ok(CrdWithStatus { status }) = serde_json::from_str(&live.raw.json()) else { return false };
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}
