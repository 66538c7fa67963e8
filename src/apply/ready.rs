//! Waits until what was written does what it is there for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Event;
use crate::cluster::{Target, Wanted};
use crate::plan::{Action, Change};
use crate::problem::Problem;
use crate::readiness::{self, State};
use crate::resource::{Live, ObjectRef, Resource};

/// How long nobody says that a Service has no load balancer.
const LOAD_BALANCER: Duration = Duration::from_secs(60);

/// How long to wait, and what ends it.
pub struct Wait<'a> {
    pub target: &'a Target,
    /// For all waits of a run together.
    pub deadline: Instant,
    /// What is said of the whole limit.
    pub timeout: Duration,
    pub stop: watch::Receiver<bool>,
    /// Something failed elsewhere.
    pub halted: &'a AtomicBool,
    pub on_event: &'a (dyn Fn(Event<'_>) + Sync),
}

/// An object that is awaited.
#[derive(Debug, Clone)]
pub struct Awaited<'a> {
    pub change: &'a Change,
    pub uid: Option<String>,
}

/// What came of a wait.
#[derive(Debug, Default)]
pub struct Waited {
    /// Objects that failed, or were not ready in time.
    pub unready: Vec<Problem>,
    /// What is worth knowing of objects that count as ready.
    pub notices: Vec<Problem>,
}

/// An object that is in progress: why, and since when that is said.
struct Progress<'a> {
    awaited: Awaited<'a>,
    reason: String,
    since: Instant,
}

impl<'a> Wait<'a> {
    /// Waits until all are ready, one has failed, or time is over.
    pub async fn until_ready(&self, objects: Vec<Awaited<'a>>) -> Waited {
        let mut waited = Waited::default();
        let (total, begun) = (objects.len(), Instant::now());
        let mut left: Vec<Progress<'_>> =
            objects.into_iter().map(|awaited| Progress { awaited, reason: String::new(), since: begun }).collect();
        let mut classes = BTreeMap::new();
        let mut pause = Duration::from_millis(50);
        while !left.is_empty() {
            let wanted: Vec<Wanted> = left.iter().map(|one| wanted(one.awaited.change)).collect();
            // A server that does not answer for a moment is asked again.
            let read = self.target.read_each(&wanted, &|_, _| ()).await.unwrap_or_else(|error| {
                let problem = || error.problems().first().cloned().unwrap_or_else(|| Problem::new("no answer"));
                wanted.iter().map(|_| Err(problem())).collect()
            });
            let mut still = Vec::new();
            for (mut one, read) in left.into_iter().zip(read) {
                let change = one.awaited.change;
                let state = match read {
                    Ok(None) if change.action == Action::Skip => State::InProgress("it does not exist yet".to_owned()),
                    Ok(Some(_)) if change.action == Action::Skip => State::Ready { note: None },
                    Ok(Some(live)) => self.judge(&one.awaited, &live, &mut classes).await,
                    Ok(None) => State::Failed("it was deleted meanwhile".to_owned()),
                    Err(problem) => State::InProgress(problem.message),
                };
                match state {
                    State::Ready { .. } => {}
                    State::Failed(reason) => waited.unready.push(failed(change, &reason)),
                    State::InProgress(reason) if is_service(change) && begun.elapsed() >= LOAD_BALANCER => {
                        let message = format!("{}: {reason}", change.desired.object);
                        waited.notices.push(Problem::new(message).at(change.desired.origin.location()));
                    }
                    State::InProgress(reason) => {
                        if reason != one.reason {
                            (one.reason, one.since) = (reason, Instant::now());
                        }
                        still.push(one);
                    }
                }
            }
            left = still;
            (self.on_event)(Event::Ready(total - left.len(), total));
            if !waited.unready.is_empty() || self.is_over() {
                break;
            }
            if Instant::now() >= self.deadline {
                waited.unready.extend(left.iter().map(|one| self.late(one)));
                break;
            }
            let mut stop = self.stop.clone();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => break,
            }
            pause = (pause * 2).min(Duration::from_secs(2));
        }
        waited
    }

    fn is_over(&self) -> bool {
        self.halted.load(Ordering::Relaxed) || *self.stop.borrow()
    }

    async fn judge(&self, awaited: &Awaited<'_>, live: &Live, classes: &mut BTreeMap<String, bool>) -> State {
        if awaited.uid.as_ref().is_some_and(|uid| *uid != live.uid) {
            return State::Failed("it was deleted and created again meanwhile".to_owned());
        }
        let object = &awaited.change.desired.object;
        let value = live.raw.value();
        let state = readiness::judge(object.group(), &object.kind, &value);
        // Such a claim is bound when its first Pod comes, which may wait for this deploy.
        if matches!(state, State::InProgress(_)) && self.binds_late(object, &value, classes).await {
            return State::Ready { note: None };
        }
        state
    }

    /// Whether it is a claim that no Pod uses yet, of a StorageClass that waits for one.
    async fn binds_late(&self, object: &ObjectRef, value: &Value, classes: &mut BTreeMap<String, bool>) -> bool {
        let is_claim = object.group().is_empty() && object.kind == "PersistentVolumeClaim";
        let (true, Some(class)) = (is_claim, value["spec"]["storageClassName"].as_str()) else { return false };
        if let Some(late) = classes.get(class) {
            return *late;
        }
        let resource = Resource::built_in("storage.k8s.io", "StorageClass", "storageclasses", false);
        let name = ObjectRef {
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
            namespace: None,
            name: class.to_owned(),
        };
        let wanted = Wanted { resource: resource.into(), object: name.into() };
        // Where it cannot be read, the claim itself is awaited.
        let read = self.target.read(&[wanted], &|_, _| ()).await.unwrap_or_default();
        let live = read.into_iter().flatten().next();
        let late = live.is_some_and(|live| live.raw.value()["volumeBindingMode"] == "WaitForFirstConsumer");
        classes.insert(class.to_owned(), late);
        late
    }

    fn late(&self, one: &Progress<'_>) -> Problem {
        let object = &one.awaited.change.desired.object;
        let (all, since) = (self.timeout.as_secs(), one.since.elapsed().as_secs());
        Problem::new(format!("{object} is not ready after {all}s: {} (for {since}s)", one.reason))
            .at(one.awaited.change.desired.origin.location())
            .help(format!("kubectl describe {object}; to go on waiting, run the same command again"))
    }
}

fn failed(change: &Change, reason: &str) -> Problem {
    let object = &change.desired.object;
    Problem::new(format!("{object} has failed: {reason}")).at(change.desired.origin.location()).help(format!(
        "kubectl describe {object}; correct the manifest or what it needs, and run the same command again"
    ))
}

fn is_service(change: &Change) -> bool {
    change.desired.object.group().is_empty() && change.desired.object.kind == "Service"
}

fn wanted(change: &Change) -> Wanted {
    Wanted { resource: change.resource.clone(), object: change.desired.object.clone() }
}

/// Whether the live object was not ready when it was read.
pub fn is_unready(change: &Change) -> bool {
    let state = change.live.as_ref().map(|live| readiness::judge_json(&live.raw.json(), &change.resource));
    state.is_some_and(|state| !matches!(state, State::Ready { .. }))
}
