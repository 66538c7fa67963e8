//! Waits until what was written does what it is there for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Event;
use crate::app::children::{self, Children};
use crate::app::members::{self, Found};
use crate::cluster::{Target, Wanted};
use crate::plan::{Action, Change};
use crate::problem::Problem;
use crate::readiness::rules::{Verdict, WaitRule};
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
    /// Waits for the others, too, when one has failed.
    pub keep_going: bool,
    pub rules: &'a [WaitRule],
    /// An object that lets go on what waits for it is not awaited any longer.
    pub until_unblocked: bool,
    pub on_event: &'a (dyn Fn(Event<'_>) + Sync),
}

/// An object that is awaited.
#[derive(Debug, Clone)]
pub struct Awaited<'a> {
    /// Of the change.
    pub index: usize,
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
    /// Each object with how far it was at the end.
    pub states: Vec<(usize, Reached)>,
}

/// How far an object was when the wait for it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    pub state: State,
    pub after: Duration,
}

/// An object that is in progress or has failed: why, and since when that is said.
struct Progress<'a> {
    awaited: Awaited<'a>,
    reason: String,
    since: Instant,
    /// What makes it failed when it lasts, and since when it is so.
    failing: Option<(String, Instant)>,
    /// As it was read last.
    live: Option<Live>,
}

impl<'a> Wait<'a> {
    /// Waits until all are ready, one has failed, or time is over.
    pub async fn until_ready(&self, objects: Vec<Awaited<'a>>) -> Waited {
        let mut waited = Waited::default();
        let (total, begun) = (objects.len(), Instant::now());
        let mut left: Vec<Progress<'_>> = objects
            .into_iter()
            .map(|awaited| Progress { awaited, reason: String::new(), since: begun, failing: None, live: None })
            .collect();
        let mut failed = Vec::new();
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
                    Ok(Some(live)) => {
                        let verdict = self.judge(&one.awaited, &live, &mut classes).await;
                        one.live = Some(live);
                        self.in_time(verdict, &mut one.failing)
                    }
                    Ok(None) => State::Failed("it was deleted meanwhile".to_owned()),
                    Err(problem) => State::InProgress(problem.message),
                };
                let index = one.awaited.index;
                let reached = |state| (index, Reached { state, after: begun.elapsed() });
                match state {
                    State::Ready { .. } => waited.states.push(reached(state)),
                    State::Failed(reason) => failed.push(Progress { reason, ..one }),
                    State::InProgress(reason) if is_service(change) && begun.elapsed() >= LOAD_BALANCER => {
                        let message = format!("{}: {reason}", change.desired.object);
                        waited.notices.push(Problem::new(message).at(change.desired.origin.location()));
                        waited.states.push(reached(State::InProgress(reason)));
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
            let is_late = Instant::now() >= self.deadline;
            let is_ended = !failed.is_empty() && (!self.keep_going || left.is_empty());
            if is_ended || is_late || self.is_over() {
                let late: &[Progress<'_>] = if is_late && (failed.is_empty() || self.keep_going) { &left } else { &[] };
                waited.unready = self.explain(&failed, late).await;
                break;
            }
            let mut stop = self.stop.clone();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => {
                    waited.unready = self.explain(&failed, &[]).await;
                    break;
                }
            }
            pause = (pause * 2).min(Duration::from_secs(2));
        }
        let ended = |one: Progress<'_>, state: fn(String) -> State| {
            (one.awaited.index, Reached { state: state(one.reason), after: begun.elapsed() })
        };
        waited.states.extend(failed.into_iter().map(|one| ended(one, State::Failed)));
        waited.states.extend(left.into_iter().map(|one| ended(one, State::InProgress)));
        waited
    }

    fn is_over(&self) -> bool {
        self.halted.load(Ordering::Relaxed) || *self.stop.borrow()
    }

    async fn judge(&self, awaited: &Awaited<'_>, live: &Live, classes: &mut BTreeMap<String, bool>) -> Verdict {
        if awaited.uid.as_ref().is_some_and(|uid| *uid != live.uid) {
            return State::Failed("it was deleted and created again meanwhile".to_owned()).into();
        }
        let object = &awaited.change.desired.object;
        let value = live.raw.value();
        let verdict = readiness::judge_by(self.rules, object, &value);
        // Such a claim is bound when its first Pod comes, which may wait for this deploy.
        if matches!(verdict.state, State::InProgress(_)) && self.binds_late(object, &value, classes).await {
            return State::Ready { note: None }.into();
        }
        verdict
    }

    /// What a verdict comes to for this wait at this time.
    fn in_time(&self, verdict: Verdict, failing: &mut Option<(String, Instant)>) -> State {
        let Verdict { state, unblocks, fails_after } = verdict;
        let Some((what, limit)) = fails_after else {
            *failing = None;
            return if unblocks && self.until_unblocked { State::Ready { note: None } } else { state };
        };
        match failing {
            Some((name, since)) if *name == what => match (since.elapsed() >= limit, state) {
                (true, State::InProgress(reason)) => State::Failed(format!("{reason} (for {}s)", limit.as_secs())),
                (_, state) => state,
            },
            _ => {
                *failing = Some((what, Instant::now()));
                state
            }
        }
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

    /// Says of objects what they wait for, and of workloads what their Pods wait for.
    async fn explain(&self, failed: &[Progress<'_>], late: &[Progress<'_>]) -> Vec<Problem> {
        let live = |one: &Progress<'_>| {
            let live = one.live.as_ref().filter(|_| owns_pods(one.awaited.change))?;
            members::read(&live.raw.json(), &one.awaited.change.resource)
        };
        let owners: Vec<Found> = failed.iter().chain(late).filter_map(live).collect();
        // What cannot be listed is not explained.
        let children = if owners.is_empty() {
            Children::default()
        } else {
            children::find(&owners, self.target, self.rules).await
        };
        let pods = |one: &Progress<'_>| {
            let worst = children.worst_pod(&one.live.as_ref()?.uid)?;
            let reason = worst.facts.readiness.as_ref()?.reason()?;
            Some(format!("; pod/{}: {reason}", worst.object.name))
        };
        let failed = failed.iter().map(|one| {
            let reason = format!("{}{}", one.reason, pods(one).unwrap_or_default());
            failed_for(one.awaited.change, &reason)
        });
        let late = late.iter().map(|one| self.late(one, &pods(one).unwrap_or_default()));
        failed.chain(late).collect()
    }

    fn late(&self, one: &Progress<'_>, pods: &str) -> Problem {
        let object = &one.awaited.change.desired.object;
        let (all, since) = (self.timeout.as_secs(), one.since.elapsed().as_secs());
        Problem::new(format!("{object} is not ready after {all}s: {} (for {since}s){pods}", one.reason))
            .at(one.awaited.change.desired.origin.location())
            .help(format!("kubectl describe {object}; to go on waiting, run the same command again"))
    }
}

fn failed_for(change: &Change, reason: &str) -> Problem {
    let object = &change.desired.object;
    Problem::new(format!("{object} has failed: {reason}")).at(change.desired.origin.location()).help(format!(
        "kubectl describe {object}; correct the manifest or what it needs, and run the same command again"
    ))
}

/// Kinds whose Pods say why they are not ready.
fn owns_pods(change: &Change) -> bool {
    matches!(change.desired.object.group(), "apps" | "batch") || change.desired.object.kind == "ReplicationController"
}

fn is_service(change: &Change) -> bool {
    change.desired.object.group().is_empty() && change.desired.object.kind == "Service"
}

fn wanted(change: &Change) -> Wanted {
    Wanted { resource: change.resource.clone(), object: change.desired.object.clone() }
}

/// Whether the live object was not ready when it was read.
pub fn is_unready(change: &Change, rules: &[WaitRule]) -> bool {
    let Change { desired, resource, .. } = change;
    if change.is_as_applied {
        return false;
    }
    let judge = |live: &Live| readiness::judge_json(&live.raw.json(), &desired.object, resource, rules);
    let state = change.live.as_ref().map(judge);
    state.is_some_and(|state| !matches!(state, State::Ready { .. }))
}
