//! Waits until the server serves the CRDs of a step.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Event;
use crate::cluster::{Established, IN_FLIGHT, Target};
use crate::plan::{Action, Change};
use crate::problem::Problem;

/// How long to wait, and what ends it.
pub struct Wait<'a> {
    pub target: &'a Target,
    pub timeout: Duration,
    pub stop: watch::Receiver<bool>,
    /// Something else failed.
    pub halted: &'a AtomicBool,
    pub on_event: &'a (dyn Fn(Event<'_>) + Sync),
}

impl Wait<'_> {
    /// Waits until the target serves every CRD that was applied. Answers why it does not.
    pub async fn until_served(&self, crds: impl Iterator<Item = &Change>) -> Vec<Problem> {
        let deadline = Instant::now() + self.timeout;
        // Also one that an earlier run applied and did not wait for.
        let is_awaited = |change: &&Change| match change.action {
            _ if change.desired.bundle.is_some() => false,
            Action::Unchanged => !is_served(change),
            action => !action.leaves_alone(),
        };
        let mut waiting: Vec<&Change> = crds.filter(is_awaited).collect();
        if waiting.is_empty() {
            return Vec::new();
        }
        let total = waiting.len();
        let mut pause = Duration::from_millis(50);
        loop {
            let answers: Vec<(&Change, _)> = stream::iter(std::mem::take(&mut waiting))
                .map(|change| async move { (change, self.target.established(&change.desired.object).await) })
                .buffered(IN_FLIGHT)
                .collect()
                .await;
            let (mut reasons, mut problems) = (Vec::new(), Vec::new());
            for (change, answer) in answers {
                let object = &change.desired.object;
                let at = change.desired.origin.location();
                match answer {
                    Ok(Established::Yes) => {}
                    Ok(Established::NotYet(reason)) => {
                        reasons.push((at, object, reason));
                        waiting.push(change);
                    }
                    Ok(Established::Never(reason)) => problems.push(
                        Problem::new(format!("{object} was applied, but the server will not serve it: {reason}"))
                            .at(at)
                            .help("fix the CRD and run the same command again"),
                    ),
                    Err(error) => problems.extend(error.problems().iter().cloned()),
                }
            }
            (self.on_event)(Event::Established(total - waiting.len(), total));
            if waiting.is_empty() || !problems.is_empty() || self.is_over() {
                return problems;
            }
            if Instant::now() >= deadline {
                let late = reasons.into_iter().map(|(at, object, reason)| {
                    let seconds = self.timeout.as_secs();
                    Problem::new(format!("{object} was applied, but is not served after {seconds}s: {reason}"))
                        .at(at)
                        .help("run the same command again to continue, or raise timeouts.established")
                });
                return late.collect();
            }
            let mut stop = self.stop.clone();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => return Vec::new(),
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    fn is_over(&self) -> bool {
        self.halted.load(Ordering::Relaxed) || *self.stop.borrow()
    }
}

/// Whether the live CRD said, when it was read, that the server serves it.
fn is_served(change: &Change) -> bool {
    let Some(live) = &change.live else { return false };
    let live = live.raw.value();
    let Some(conditions) = live.pointer("/status/conditions").and_then(serde_json::Value::as_array) else {
        return false;
    };
    conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}
