//! Writes the plan, one step of its graph after another: by default namespaces, then CRDs, then (once every CRD is
//! served) the rest.
//!
//! What was checked is what is applied: each request has the uid and resourceVersion that the checks saw, and the
//! server refuses it if the object has changed since. A failure or an interrupt stops the deploy between objects. The
//! result of each object is known, and running the same command again continues.

mod applied;
pub mod delete;
mod deletion_watches;
mod events;
mod logs;
mod observe;
mod one;
mod options;
mod ready;
mod schedule;
mod served;
mod stopped;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::plan::graph::ApplyStep;
use crate::plan::{Action, Change, Plan, strategy};
use crate::readiness::Readiness;
pub use applied::Applied;
pub use events::{ApplyEvent, Unready, Waiting};
use gantry_cluster::patience::help_with_webhook;
use gantry_cluster::{IN_FLIGHT, Lacking, Target};
use gantry_core::finding::ApplyResult;
use gantry_core::problem::Problem;
use gantry_core::text;
use observe::Observer;
pub use one::{NotWritten, WrittenObject, apply_one};
pub use options::ApplyOptions;
pub use ready::Reached;
use ready::{AwaitedObject, Waited};
use schedule::Schedule;
use stopped::Stopped;

/// The pause before an object is tried again because a webhook did not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Writes every change of the plan that creates or updates an object.
///
/// When `stop` becomes true, the deploy ends before the next object.
pub async fn run(
    plan: &Plan,
    target: &Target,
    options: &ApplyOptions,
    stop: watch::Receiver<bool>,
    on_event: &(dyn Fn(ApplyEvent<'_>) + Sync),
) -> Applied {
    let outcome = Applied::with_step_started(plan, options.written.as_ref());
    let total = plan.changes_written();
    let halted = AtomicBool::new(false);
    let done = usize::from(options.written.is_some());
    let deadline = deadline(options);
    let observer = &observer(plan, target, options);
    if let Some((index, live)) = options.written.as_ref().filter(|_| deadline.is_some()) {
        observer.record_written(*index, live);
    }
    let mut run =
        ApplyRun { plan, target, options, stop, halted: &halted, deadline, observer, done, total, on_event, outcome };
    run.follow(&plan.graph.changes).await;
    run.end().await
}

/// For a plan without changes: waits for objects that an earlier run wrote and that were not ready when it ended.
pub async fn resume(
    plan: &Plan,
    target: &Target,
    options: &ApplyOptions,
    stop: watch::Receiver<bool>,
    on_event: &(dyn Fn(ApplyEvent<'_>) + Sync),
) -> Applied {
    let (halted, deadline) = (AtomicBool::new(false), deadline(options));
    let outcome = Applied::not_reached(plan);
    let observer = &observer(plan, target, options);
    let (done, total) = (0, 0);
    let run =
        ApplyRun { plan, target, options, stop, halted: &halted, deadline, observer, done, total, on_event, outcome };
    run.end().await
}

/// The objects to watch: those that are written, and those that were not ready when an earlier run ended.
fn observer<'a>(plan: &'a Plan, target: &'a Target, options: &'a ApplyOptions) -> Observer<'a> {
    let may_be_awaited = |index: &usize| {
        let change = &plan.changes[*index];
        let is_awaited = options.ready_timeout.is_some() && (change.is_written() || is_left(change, options));
        is_awaited
            || options.rules_timeout.is_some() && may_hold_back(change, options)
            || served::may_be_awaited(change)
    };
    Observer::new(target, plan, &options.wait_rules, (0..plan.changes.len()).filter(may_be_awaited))
}

/// Whether an object that is not written is awaited.
fn is_left(change: &Change, options: &ApplyOptions) -> bool {
    if change.desired.bundle.is_some() {
        return false;
    }
    change.action == Action::Unchanged && ready::is_unready(change, &options.wait_rules) || strategy::is_missing(change)
}

/// Whether an unchanged object may not be ready, so that what waits for it by a rule is not written yet.
fn may_hold_back(change: &Change, options: &ApplyOptions) -> bool {
    let is_unchanged = change.desired.bundle.is_none() && change.action == Action::Unchanged;
    is_unchanged && ready::may_be_unready(change, &options.wait_rules)
}

/// The names of the CRDs whose custom resources are written.
fn needed_crds(plan: &Plan) -> BTreeSet<String> {
    let written = plan.changes.iter().filter(|change| change.is_written());
    written.map(|Change { resource, .. }| format!("{}.{}", resource.plural, resource.group)).collect()
}

/// The deadline of all waits of a run.
fn deadline(options: &ApplyOptions) -> Option<Instant> {
    options.ready_timeout.map(|timeout| Instant::now() + timeout)
}

struct ApplyRun<'a> {
    plan: &'a Plan,
    target: &'a Target,
    options: &'a ApplyOptions,
    stop: watch::Receiver<bool>,
    /// Something failed: no further request is sent.
    halted: &'a AtomicBool,
    /// `None` without waiting.
    deadline: Option<Instant>,
    observer: &'a Observer<'a>,
    done: usize,
    total: usize,
    on_event: &'a (dyn Fn(ApplyEvent<'_>) + Sync),
    outcome: Applied,
}

/// A task of a step of the graph.
enum Task {
    /// Write the change with this index.
    Write(usize),
    /// Write it again after a pause, because a webhook did not answer.
    Retry(usize, Duration),
    /// Everything is written: wait until its CRDs are served, and until its objects are ready if other steps wait for
    /// that.
    Wait,
}

enum TaskOutcome {
    Written(usize, Result<WrittenObject, NotWritten>),
    /// The pause is over.
    Paused(usize),
    Ended(Vec<Problem>, Waited),
}

/// An object that the server could not accept yet, and its last message.
struct Hindered {
    lacking: Lacking,
    since: Instant,
    tries: u32,
    problem: Problem,
}

impl<'a> ApplyRun<'a> {
    fn may_go_on(&self) -> bool {
        !self.halted.load(Ordering::Relaxed) && !*self.stop.borrow()
    }

    fn fail(&mut self, problems: impl IntoIterator<Item = Problem>) {
        self.outcome.problems.extend(problems);
        self.halt();
    }

    /// Sends no further requests, unless the user passed `--keep-going`.
    fn halt(&self) {
        if !self.options.keep_going {
            self.halted.store(true, Ordering::Relaxed);
        }
    }

    /// Writes one step after another, several changes at a time. Requests in flight are always awaited, so that it is
    /// known what was written. After a failure or an interrupt no further request is sent.
    async fn follow(&mut self, steps: &[ApplyStep]) {
        let ApplyRun { plan, target, options, halted, on_event, deadline, .. } = *self;
        let rules_deadline = deadline.or_else(|| options.rules_timeout.map(|timeout| Instant::now() + timeout));
        let written = options.written.as_ref().map(|(index, _)| *index);
        let to_write = |index: &usize| plan.changes[*index].is_written() && written != Some(*index);
        let needed = needed_crds(plan);
        let is_needed = |(_, crd): &(usize, &Change)| {
            crd.desired.object.is_crd() && (options.awaits_all_crds || needed.contains(&crd.desired.object.name))
        };
        let (mut schedule, mut started) = Schedule::new(steps);
        let mut stopped = Stopped::new(plan);
        // The number of changes to write in each step.
        let mut left = vec![0; steps.len()];
        let mut ready: VecDeque<(usize, Task)> = VecDeque::new();
        let mut under_way = stream::FuturesUnordered::new();
        let mut hindered: BTreeMap<usize, Hindered> = BTreeMap::new();
        // Only requests in flight count towards the limit, not waits and pauses.
        let mut busy = 0;
        loop {
            let mut at = 0;
            while let Some(step) = started.get(at).copied() {
                at += 1;
                let writes = ready.len();
                let to_write = stopped.start(step, &steps[step], to_write);
                ready.extend(to_write.into_iter().map(|index| (step, Task::Write(index))));
                left[step] = ready.len() - writes;
                if left[step] == 0 {
                    started.extend(schedule.mark_written(step));
                    ready.push_back((step, Task::Wait));
                }
            }
            started.clear();
            while busy < IN_FLIGHT
                && self.may_go_on()
                && let Some((step, task)) = ready.pop_front()
            {
                busy += usize::from(matches!(task, Task::Write(_)));
                let mut stop = self.stop.clone();
                let observer = self.observer;
                let members: Vec<usize> = stopped.remaining_members(&steps[step]);
                let awaited = match (&task, rules_deadline) {
                    (Task::Wait, Some(limit)) => {
                        let is_awaited = |index: &usize| {
                            let change = &plan.changes[*index];
                            let is_missing = strategy::is_missing(change);
                            let is_ours = to_write(index) || is_missing;
                            let waits = deadline.is_some();
                            match steps[step].is_awaited {
                                true => waits && is_ours || may_hold_back(change, options),
                                // Nothing can be written into a namespace that does not exist.
                                false => waits && is_missing && change.desired.object.is_namespace(),
                            }
                        };
                        let awaited = members.iter().copied().filter(is_awaited);
                        Some((self.wait(limit, Some(step)), awaited.map(|index| self.awaited(index)).collect()))
                    }
                    _ => None,
                };
                under_way.push(async move {
                    let answer = match task {
                        Task::Write(index) => {
                            TaskOutcome::Written(index, apply_one(&plan.changes[index], target, options, &stop).await)
                        }
                        Task::Retry(index, pause) => {
                            let _ = tokio::time::timeout(pause, stop.wait_for(|stop| *stop)).await;
                            TaskOutcome::Paused(index)
                        }
                        Task::Wait => {
                            let changes = members.iter().map(|index| (*index, &plan.changes[*index]));
                            let crds = changes.filter(is_needed);
                            let timeout = options.established_timeout;
                            let stop = stop.clone();
                            let wait = served::ServedWaitLimits { target, observer, timeout, stop, halted, on_event };
                            let problems = wait.until_served(crds).await;
                            let waited = match awaited.filter(|_| problems.is_empty()) {
                                Some((wait, objects)) => wait.wait_until_ready(objects).await,
                                None => Waited::default(),
                            };
                            TaskOutcome::Ended(problems, waited)
                        }
                    };
                    (step, answer)
                });
            }
            let Some((step, answer)) = under_way.next().await else { break };
            let is_write = matches!(answer, TaskOutcome::Written(..));
            busy -= usize::from(is_write);
            match answer {
                TaskOutcome::Written(index, Ok(WrittenObject { result, live, mark, was_there })) => {
                    hindered.remove(&index);
                    if was_there {
                        self.outcome.were_there.insert(index);
                        self.outcome.notices.push(strategy::existed(&plan.changes[index]));
                    }
                    self.outcome.marks.extend(mark.map(|mark| (index, mark)));
                    self.outcome.results[index] = result;
                    if self.deadline.is_some() || plan.changes[index].desired.object.is_crd() {
                        self.observer.record_written(index, &live);
                    }
                    self.outcome.uids[index] = Some(live.uid);
                    self.done += 1;
                    (self.on_event)(ApplyEvent::Applied(self.done, self.total));
                    left[step] -= 1;
                }
                TaskOutcome::Written(index, Err(NotWritten::NotYet(lacking, problem))) => {
                    (self.on_event)(ApplyEvent::NotYet(&problem.message));
                    let now = Instant::now();
                    let (since, before) = hindered.get(&index).map_or((now, 0), |other| (other.since, other.tries));
                    hindered.insert(index, Hindered { lacking, since, tries: before + 1, problem });
                    let pause = (FIRST_PAUSE * 2u32.pow(before.min(8))).min(LONGEST_PAUSE);
                    match now + pause > since + options.apply_timeout {
                        true => {
                            self.halt();
                            stopped.mark_lost(step, index);
                            left[step] -= 1;
                        }
                        false => ready.push_front((step, Task::Retry(index, pause))),
                    }
                }
                TaskOutcome::Written(index, Err(error)) => {
                    hindered.remove(&index);
                    self.outcome.results[index] = ApplyResult::Failed;
                    match error {
                        NotWritten::Stuck(problem) => {
                            self.outcome.unready.push(problem);
                            self.halt();
                        }
                        NotWritten::Unknown(problem) => {
                            self.outcome.unknown.insert(index);
                            self.fail([problem]);
                        }
                        other => self.fail([other.problem()]),
                    }
                    stopped.mark_lost(step, index);
                    left[step] -= 1;
                }
                TaskOutcome::Paused(index) => ready.push_back((step, Task::Write(index))),
                TaskOutcome::Ended(problems, waited) => {
                    if !problems.is_empty() {
                        let crds =
                            steps[step].members.iter().filter(|index| plan.changes[**index].desired.object.is_crd());
                        crds.for_each(|index| stopped.mark_lost(step, *index));
                        self.fail(problems);
                    } else {
                        let is_unready =
                            |(_, Reached { state, .. }): &&(usize, Reached)| !matches!(state, Readiness::Ready { .. });
                        let unready = waited.states.iter().filter(is_unready).map(|(index, _)| *index);
                        let missing: Vec<usize> =
                            unready.filter(|index| strategy::is_missing(&plan.changes[*index])).collect();
                        if !self.is_ready(waited) {
                            stopped.mark_ended(step);
                            missing.into_iter().for_each(|index| stopped.mark_lost(step, index));
                        }
                    }
                    started = schedule.mark_ended(step);
                }
            }
            if is_write && left[step] == 0 {
                started = schedule.mark_written(step);
                ready.push_front((step, Task::Wait));
            }
        }
        drop(under_way);
        if *self.stop.borrow() {
            return;
        }
        for (index, Hindered { lacking, tries, problem, .. }) in hindered {
            self.outcome.results[index] = ApplyResult::Failed;
            let message = format!("{}; tried {}", problem.message, text::count(tries as usize, "time"));
            let help = match lacking {
                Lacking::Webhook => help_with_webhook(&problem, target).await,
                Lacking::QuotaUsage => "run the same command again when status.used of the quota has what status.hard \
                    limits; to wait longer: --apply-timeout"
                    .to_owned(),
            };
            self.fail([Problem { message, ..problem }.help(help)]);
        }
    }

    /// Waits for all objects that were written, and for those that were not ready when an earlier run ended.
    async fn end(mut self) -> Applied {
        if let Some(deadline) = self.deadline.filter(|_| self.may_go_on()) {
            let is_written = |index: &usize| self.outcome.uids[*index].is_some();
            let is_left = |index: &usize| is_left(&self.plan.changes[*index], self.options);
            let indices = (0..self.plan.changes.len()).filter(|index| is_written(index) || is_left(index));
            let indices = indices.filter(|index| !self.outcome.reported.contains(index));
            let objects = indices.map(|index| self.awaited(index)).collect();
            let wait = self.wait(deadline, None);
            let waited = wait.wait_until_ready(objects).await;
            self.is_ready(waited);
        }
        let mut outcome = self.outcome;
        outcome.problems.sort();
        outcome.unready.sort();
        let is_cut = outcome.results.contains(&ApplyResult::NotReached) || self.deadline.is_some();
        outcome.interrupted =
            outcome.problems.is_empty() && outcome.unready.is_empty() && *self.stop.borrow() && is_cut;
        outcome
    }

    /// A wait for the objects of a step that others wait for, or for all remaining objects.
    fn wait(&self, deadline: Instant, step: Option<usize>) -> ready::ReadyWaitLimits<'a> {
        let ApplyRun { plan, target, options, halted, on_event, observer, .. } = *self;
        let steps = &plan.graph.changes;
        let held = step.filter(|_| options.shows_waits).into_iter().flat_map(|step| {
            let later = steps.iter().filter(move |later| later.ready.contains(&step));
            later.flat_map(|later| &later.members).filter(|index| plan.changes[**index].is_written())
        });
        ready::ReadyWaitLimits {
            target,
            observer,
            deadline,
            timeout: options.ready_timeout.or(options.rules_timeout).unwrap_or_default(),
            resource_timeout: options.resource_timeout,
            shows_logs: options.shows_logs,
            ignores_api_services: options.ignores_api_services,
            stop: self.stop.clone(),
            halted,
            keep_going: options.keep_going,
            rules: &options.wait_rules,
            until_unblocked: step.is_some(),
            step: step.unwrap_or(steps.len()),
            held: held.map(|index| plan.changes[*index].desired.object.to_string()).collect(),
            shows_waits: options.shows_waits,
            on_event,
        }
    }

    fn awaited(&self, index: usize) -> AwaitedObject<'a> {
        AwaitedObject { index, change: &self.plan.changes[index], uid: self.outcome.uids[index].clone() }
    }

    /// Adds the result of a wait. Returns whether everything is ready.
    fn is_ready(&mut self, Waited { unready, reported, notices, states }: Waited) -> bool {
        let is_ready = unready.is_empty();
        if !is_ready {
            self.halt();
        }
        self.outcome.unready.extend(unready);
        self.outcome.reported.extend(reported);
        // An object that others waited for is awaited again at the end.
        for notice in notices {
            if !self.outcome.notices.contains(&notice) {
                self.outcome.notices.push(notice);
            }
        }
        for (index, Reached { state, after }) in states {
            let before = self.outcome.waits.get(&index).map_or(Duration::ZERO, |before| before.after);
            self.outcome.waits.insert(index, Reached { state, after: before + after });
        }
        is_ready && !*self.stop.borrow()
    }
}
