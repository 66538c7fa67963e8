//! Waits until the written objects are ready.

mod explain;

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::events::{ApplyEvent, Unready, Waiting};
use super::observe::{self, ObjectObservation, Observer};
use crate::plan::storage_classes;
use crate::plan::{Action, Change, strategy};
use crate::readiness::rules::{ReadinessVerdict, WaitRule};
use crate::readiness::{self, Readiness};
use explain::owners;
use gantry_cluster::{ListRequest, ObjectToRead, Target};
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, ObjectRef, Resource};
use gantry_core::text;

/// How long a Service may have no load balancer before that is reported.
const LOAD_BALANCER: Duration = Duration::from_secs(60);

/// The pauses between two reads of an object that is not watched.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How often time limits are checked.
const TICK: Duration = Duration::from_secs(1);

/// The maximum number of objects of a kind that are read to find out whether they have a status.
const SIBLINGS: u32 = 20;

/// When their Pods are first read, and the shortest pause before they are read again.
const FIRST_LOOK: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The result of reading Pods, and how long it took.
type Looking<'a> = Pin<Box<dyn Future<Output = (BTreeMap<String, String>, Duration)> + 'a>>;

/// The maximum number of objects that a log is shown for.
const MOST_LOGS: usize = 10;

/// The reason for an object that something else creates.
const MISSING: &str = "it does not exist yet";

/// The limits of a wait.
pub struct ReadyWaitLimits<'a> {
    pub target: &'a Target,
    pub observer: &'a Observer<'a>,
    /// The deadline of all waits of a run.
    pub deadline: Instant,
    /// The limit of the run, for messages.
    pub timeout: Duration,
    /// The limit of all waits for one object.
    pub resource_timeout: Option<Duration>,
    /// See [`super::ApplyOptions::ignores_api_services`].
    pub ignores_api_services: bool,
    /// See [`super::ApplyOptions::shows_logs`].
    pub shows_logs: bool,
    pub stop: watch::Receiver<bool>,
    /// Set when something else failed.
    pub halted: &'a AtomicBool,
    /// Continues to wait for the others when one has failed.
    pub keep_going: bool,
    pub rules: &'a [WaitRule],
    /// Ends the wait for an object as soon as it unblocks those that depend on it.
    pub until_unblocked: bool,
    /// See [`Waiting::step`].
    pub step: usize,
    /// The names of the objects that are written next.
    pub held: Vec<String>,
    /// See [`super::ApplyOptions::shows_waits`].
    pub shows_waits: bool,
    pub on_event: &'a (dyn Fn(ApplyEvent<'_>) + Sync),
}

/// An object that is awaited.
#[derive(Debug, Clone)]
pub struct AwaitedObject<'a> {
    /// The index of the change.
    pub index: usize,
    pub change: &'a Change,
    pub uid: Option<String>,
}

/// The result of a wait.
#[derive(Debug, Default)]
pub struct Waited {
    /// Objects that failed, or were not ready in time.
    pub unready: Vec<Problem>,
    /// The indices of their changes.
    pub reported: Vec<usize>,
    /// Notices about objects that count as ready.
    pub notices: Vec<Problem>,
    /// The state of each object at the end.
    pub states: Vec<(usize, Reached)>,
}

/// The state of an object when the wait for it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// Its last known state.
    pub state: Readiness,
    /// How long it was awaited until then.
    pub after: Duration,
}

/// Cached responses of the server about kinds and classes, so that each is requested once.
#[derive(Default)]
struct ReadinessQueries {
    /// Whether a StorageClass binds at the first Pod, by name.
    classes: BTreeMap<String, ClassOfClaim>,
    /// Whether objects of a custom kind have a status that shows readiness.
    kinds_with_status: BTreeMap<(Arc<Resource>, Option<String>), bool>,
}

/// An awaited object and its progress.
struct ReadinessProgress<'a> {
    awaited: AwaitedObject<'a>,
    /// The start of the first wait for it.
    begun: Instant,
    verdict: ReadinessVerdict,
    reason: String,
    since: Instant,
    /// A condition that makes it failed after a timeout, and since when it holds.
    failing: Option<(String, Instant)>,
    /// Its last known state, and the revision of that.
    live: Option<Arc<Value>>,
    revision: u64,
}

impl<'a> ReadyWaitLimits<'a> {
    /// Waits until all are ready, one has failed, or the limit is reached.
    ///
    /// Watched objects are evaluated at each event. The others are polled.
    pub async fn wait_until_ready(&self, objects: Vec<AwaitedObject<'a>>) -> Waited {
        let mut waited = Waited::default();
        let (total, begun) = (objects.len(), Instant::now());
        let mut left: Vec<ReadinessProgress<'_>> = objects.into_iter().map(|awaited| self.progress(awaited)).collect();
        let mut failed: Vec<ReadinessProgress<'_>> = Vec::new();
        // Those whose own limit has passed.
        let mut overdue: Vec<ReadinessProgress<'_>> = Vec::new();
        let mut asked = ReadinessQueries::default();
        let (mut pause, mut next_read) = (FIRST_PAUSE, begun);
        let mut news = self.observer.subscribe();
        // Why Pods are not ready, by the uid of the workload. Read in parallel with the wait.
        let mut pods: BTreeMap<String, String> = BTreeMap::new();
        let mut looking: Looking<'_> = Box::pin(pending());
        let mut next_look = self.shows_waits.then(|| begun + FIRST_LOOK);
        while !left.is_empty() {
            news.borrow_and_update();
            let mut unseen = Vec::new();
            for (number, one) in left.iter_mut().enumerate() {
                if self.check_progress(one, &mut asked).await {
                    unseen.push(number);
                }
            }
            if !unseen.is_empty() && Instant::now() >= next_read {
                self.read(&mut left, &unseen, &mut asked).await;
                next_read = Instant::now() + pause;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            let mut still = Vec::new();
            for mut one in left {
                let change = one.awaited.change;
                let index = one.awaited.index;
                let reached = |state| (index, Reached { state, after: begun.elapsed() });
                match self.in_time(&one.verdict, &mut one.failing, one.begun) {
                    state @ Readiness::Ready { .. } => {
                        if let Readiness::Ready { note: Some(note) } = &state
                            && is_noted(change)
                        {
                            waited.notices.push(notice(change, note));
                        }
                        waited.states.push(reached(state));
                    }
                    Readiness::InProgress(reason) if self.ignores_api_services && is_api_service(change) => {
                        waited.notices.push(notice(change, &reason));
                        waited.states.push(reached(Readiness::InProgress(reason)));
                    }
                    Readiness::Failed(reason) => failed.push(ReadinessProgress { reason, ..one }),
                    Readiness::InProgress(reason) if is_service(change) && one.begun.elapsed() >= LOAD_BALANCER => {
                        waited.notices.push(notice(change, &reason));
                        waited.states.push(reached(Readiness::InProgress(reason)));
                    }
                    Readiness::InProgress(reason) => {
                        if reason != one.reason {
                            (one.reason, one.since) = (reason, Instant::now());
                        }
                        let is_overdue = self.resource_timeout.is_some_and(|limit| one.begun.elapsed() >= limit);
                        if is_overdue { overdue.push(one) } else { still.push(one) }
                    }
                }
            }
            left = still;
            self.show(&left, &overdue, &failed, total, &pods);
            let is_late = Instant::now() >= self.deadline;
            let has_failed = !failed.is_empty() || !overdue.is_empty();
            let is_ended = has_failed && (!self.keep_going || left.is_empty());
            if is_ended || is_late || self.is_over() {
                let late: &[ReadinessProgress<'_>] =
                    if is_late && (!has_failed || self.keep_going) { &left } else { &[] };
                self.explain(&failed, &overdue, late, &mut waited).await;
                break;
            }
            if left.is_empty() {
                break;
            }
            let reads =
                if unseen.is_empty() { LONGEST_PAUSE } else { next_read.saturating_duration_since(Instant::now()) };
            if next_look.is_some_and(|next| Instant::now() >= next) {
                (looking, next_look) = (Box::pin(self.look_at_pods(owners(left.iter()))), None);
            }
            let mut stop = self.stop.clone();
            tokio::select! {
                _ = news.changed() => {}
                (found, took) = &mut looking => {
                    pods = found;
                    looking = Box::pin(pending());
                    next_look = Some(Instant::now() + LOOK_AGAIN.max(took * 10));
                }
                // Time limits and failures elsewhere cause no event.
                () = tokio::time::sleep_until(self.deadline.min(Instant::now() + reads.min(TICK))) => {}
                _ = stop.wait_for(|stop| *stop) => {
                    self.explain(&failed, &overdue, &[], &mut waited).await;
                    break;
                }
            }
        }
        let ended = |one: ReadinessProgress<'_>, state: fn(String) -> Readiness| {
            (one.awaited.index, Reached { state: state(one.reason), after: begun.elapsed() })
        };
        waited.states.extend(failed.into_iter().map(|one| ended(one, Readiness::Failed)));
        waited.states.extend(overdue.into_iter().chain(left).map(|one| ended(one, Readiness::InProgress)));
        waited
    }

    /// The progress of an object before the first event.
    fn progress(&self, awaited: AwaitedObject<'a>) -> ReadinessProgress<'a> {
        let change = awaited.change;
        let state = match &change.live {
            _ if strategy::is_missing(change) => Readiness::InProgress(MISSING.to_owned()),
            Some(live) if change.action == Action::Unchanged => {
                readiness::evaluate_json(&live.raw.json(), &change.desired.object, &change.resource, self.rules)
            }
            _ => Readiness::InProgress("its state is not known yet".to_owned()),
        };
        // It is evaluated again even if it was ready when it was read for the plan.
        let state = match state {
            Readiness::Ready { .. } => Readiness::InProgress("its state is not known yet".to_owned()),
            state => state,
        };
        let (begun, since) = (self.observer.observed_since(awaited.index), Instant::now());
        let (verdict, live) = (state.into(), None);
        ReadinessProgress { awaited, begun, verdict, reason: String::new(), since, failing: None, live, revision: 0 }
    }

    /// Updates an object from its watch. Returns whether it has to be read.
    async fn check_progress(&self, one: &mut ReadinessProgress<'a>, asked: &mut ReadinessQueries) -> bool {
        let index = one.awaited.index;
        let is_skipped = one.awaited.change.action == Action::Skip;
        match self.observer.observe(index, one.revision) {
            ObjectObservation::Same => return false,
            ObjectObservation::Ready(state) => one.verdict = state.into(),
            ObjectObservation::At(_, revision) if is_skipped => {
                (one.verdict, one.revision) = (Readiness::Ready { note: None }.into(), revision);
            }
            ObjectObservation::At(live, revision) => {
                one.revision = revision;
                one.verdict = self.evaluate(&one.awaited, &live, asked).await;
                one.live = Some(live);
            }
            ObjectObservation::Absent(revision) if is_skipped => {
                (one.verdict, one.revision) = (Readiness::InProgress(MISSING.to_owned()).into(), revision);
                return false;
            }
            // It may only have lost the label that the watch selects by.
            ObjectObservation::Absent(_) => return true,
            ObjectObservation::Unseen => {
                self.observer.follow(index);
                return matches!(self.observer.observe(index, one.revision), ObjectObservation::Unseen);
            }
        }
        if !matches!(one.verdict.state, Readiness::Ready { .. }) {
            self.observer.follow(index);
        }
        false
    }

    /// Reads the objects that are not watched.
    async fn read(&self, left: &mut [ReadinessProgress<'a>], unseen: &[usize], asked: &mut ReadinessQueries) {
        let wanted: Vec<ObjectToRead> =
            unseen.iter().map(|number| object_to_read(left[*number].awaited.change)).collect();
        // If the server does not answer, the next read may succeed.
        let read = self.target.read_each(&wanted, &|_, _| ()).await.unwrap_or_else(|error| {
            let problem = || error.first_problem();
            wanted.iter().map(|_| Err(problem())).collect()
        });
        for (number, read) in unseen.iter().zip(read) {
            let one = &mut left[*number];
            let is_skipped = one.awaited.change.action == Action::Skip;
            one.verdict = match read {
                Ok(None) if is_skipped => Readiness::InProgress(MISSING.to_owned()).into(),
                Ok(Some(_)) if is_skipped => Readiness::Ready { note: None }.into(),
                Ok(Some(live)) => {
                    let live = observe::parts(&live);
                    let verdict = self.evaluate(&one.awaited, &live, asked).await;
                    one.live = Some(live);
                    verdict
                }
                Ok(None) => Readiness::Failed("it was deleted in the meantime".to_owned()).into(),
                Err(problem) => Readiness::InProgress(problem.message).into(),
            };
        }
    }

    fn is_over(&self) -> bool {
        self.halted.load(Ordering::Relaxed) || *self.stop.borrow()
    }

    async fn evaluate(
        &self,
        awaited: &AwaitedObject<'_>,
        live: &Value,
        asked: &mut ReadinessQueries,
    ) -> ReadinessVerdict {
        if awaited.uid.as_ref().is_some_and(|uid| live["metadata"]["uid"] != **uid) {
            return Readiness::Failed("it was deleted and created again in the meantime".to_owned()).into();
        }
        let object = &awaited.change.desired.object;
        let verdict = readiness::evaluate_by(self.rules, object, live);
        // Such a claim is bound at its first Pod, which may be written later in this deploy.
        if let Readiness::InProgress(reason) = &verdict.state {
            match self.class_of(object, live, asked).await {
                ClassOfClaim::BindsLate => return Readiness::Ready { note: None }.into(),
                ClassOfClaim::Missing => {
                    let name = live["spec"]["storageClassName"].as_str().unwrap_or_default();
                    let reason = format!("{reason}; there is no StorageClass {:?}", text::sanitize(name));
                    return ReadinessVerdict { state: Readiness::InProgress(reason), ..verdict };
                }
                ClassOfClaim::Other => {}
            }
        }
        let lacks_status = observe::is_new(awaited.change) && readiness::lacks_status(self.rules, object, live);
        if lacks_status && self.others_have_status(awaited.change, asked).await {
            return readiness::without_status();
        }
        verdict
    }

    /// Whether other objects of the kind have a status that shows readiness, so that this one will get one.
    async fn others_have_status(&self, change: &Change, asked: &mut ReadinessQueries) -> bool {
        let namespace = change.desired.object.namespace.clone().filter(|_| change.resource.namespaced);
        let place = (Arc::clone(&change.resource), namespace);
        if let Some(tell) = asked.kinds_with_status.get(&place) {
            return *tell;
        }
        let request = ListRequest { namespace: place.1.as_deref(), ..ListRequest::new(&change.resource, SIBLINGS) };
        // One page is enough. If they cannot be listed, the kind counts as having no status.
        let page = self.target.list(&request).next().await.ok().flatten();
        let tell = page.is_some_and(|page| page.items().any(readiness::tells_ready));
        asked.kinds_with_status.insert(place, tell);
        tell
    }

    /// Applies the limits of this wait to a verdict.
    fn in_time(
        &self,
        verdict: &ReadinessVerdict,
        failing: &mut Option<(String, Instant)>,
        begun: Instant,
    ) -> Readiness {
        let ReadinessVerdict { state, unblocks, fails_after, ready_after } = verdict;
        if ready_after.is_some_and(|limit| begun.elapsed() >= limit) {
            return Readiness::Ready { note: None };
        }
        let Some((what, limit)) = fails_after else {
            *failing = None;
            return if *unblocks && self.until_unblocked { Readiness::Ready { note: None } } else { state.clone() };
        };
        match failing {
            Some((name, since)) if name == what => match (since.elapsed() >= *limit, state) {
                (true, Readiness::InProgress(reason)) => {
                    Readiness::Failed(format!("{reason} (for {}s)", limit.as_secs()))
                }
                (_, state) => state.clone(),
            },
            _ => {
                *failing = Some((what.clone(), Instant::now()));
                state.clone()
            }
        }
    }

    /// The StorageClass of a claim, as far as it matters for the wait. If it cannot be read, wait for the claim.
    async fn class_of(&self, object: &ObjectRef, value: &Value, asked: &mut ReadinessQueries) -> ClassOfClaim {
        let is_claim = object.group().is_empty() && object.kind == "PersistentVolumeClaim";
        let name = value["spec"]["storageClassName"].as_str().filter(|name| is_claim && !name.is_empty());
        let Some(name) = name else { return ClassOfClaim::Other };
        if let Some(class) = asked.classes.get(name) {
            return *class;
        }
        let read = self.target.read(&[storage_classes::object_to_read(name)], &|_, _| ()).await;
        let class = match read.map(|read| read.into_iter().next()) {
            Ok(Some(Some(live))) if live.raw.value()["volumeBindingMode"] == "WaitForFirstConsumer" => {
                ClassOfClaim::BindsLate
            }
            Ok(Some(None)) => ClassOfClaim::Missing,
            _ => ClassOfClaim::Other,
        };
        asked.classes.insert(name.to_owned(), class);
        class
    }

    /// Reports the objects that are not ready to the progress output.
    fn show(
        &self,
        left: &[ReadinessProgress<'_>],
        overdue: &[ReadinessProgress<'_>],
        failed: &[ReadinessProgress<'_>],
        total: usize,
        pods: &BTreeMap<String, String>,
    ) {
        let reason = |one: &ReadinessProgress<'_>| {
            let uid = one.live.as_ref().and_then(|live| live["metadata"]["uid"].as_str());
            let pod = uid.and_then(|uid| pods.get(uid)).map(|pod| format!("; {pod}")).unwrap_or_default();
            format!("{}{pod}", one.reason)
        };
        let mut shown = Vec::new();
        if self.shows_waits {
            let unready =
                left.iter().chain(overdue).map(|one| (one, false)).chain(failed.iter().map(|one| (one, true)));
            shown.extend(unready.map(|(one, has_failed)| Unready {
                object: &one.awaited.change.desired.object,
                reason: reason(one),
                has_failed,
            }));
        }
        let ready = total - left.len() - overdue.len() - failed.len();
        (self.on_event)(ApplyEvent::Ready(Waiting {
            step: self.step,
            ready,
            total,
            unready: &shown,
            held: &self.held,
        }));
    }
}

/// What is known of the StorageClass of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClassOfClaim {
    /// It binds a claim at its first Pod, which may be written later in this deploy.
    BindsLate,
    Missing,
    /// It binds at once, there is none, or it is unknown.
    Other,
}

fn is_api_service(change: &Change) -> bool {
    change.desired.object.group() == "apiregistration.k8s.io" && change.desired.object.kind == "APIService"
}

/// Kinds that count as ready at once, but whose status may show that they do not work.
fn is_noted(change: &Change) -> bool {
    let object = &change.desired.object;
    matches!(
        (object.group(), object.kind.as_str()),
        ("autoscaling", "HorizontalPodAutoscaler") | ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")
    )
}

/// A notice about an object that is no longer awaited.
fn notice(change: &Change, reason: &str) -> Problem {
    Problem::new(format!("{}: {reason}", change.desired.object)).at(change.desired.origin.location())
}

fn is_service(change: &Change) -> bool {
    change.desired.object.group().is_empty() && change.desired.object.kind == "Service"
}

fn object_to_read(change: &Change) -> ObjectToRead {
    ObjectToRead { resource: change.resource.clone(), object: change.desired.object.clone() }
}

/// Whether the live object was not ready when it was read.
pub fn is_unready(change: &Change, rules: &[WaitRule]) -> bool {
    !change.is_as_applied && may_be_unready(change, rules)
}

/// The same, also if the object was ready at the end of the last run and its present state was not read.
pub fn may_be_unready(change: &Change, rules: &[WaitRule]) -> bool {
    let Change { desired, resource, .. } = change;
    let evaluate = |live: &LiveObject| readiness::evaluate_json(&live.raw.json(), &desired.object, resource, rules);
    let state = change.live.as_ref().map(evaluate);
    state.is_some_and(|state| !matches!(state, Readiness::Ready { .. }))
}
