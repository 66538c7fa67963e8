//! Writes the plan, in its order: namespaces, then CRDs, then (once every CRD is served) the rest.
//!
//! What was checked is what is applied: each request carries the uid and resourceVersion that the checks saw, and the
//! server refuses it when the object has changed since. A failure or an interrupt stops the deploy between objects;
//! what was applied, what was not and why is known for each of them, and running again continues.

pub mod delete;

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cluster::{ApplyError, Established, FieldConflict, IN_FLIGHT, Pin, Target, Unmark};
use crate::finding::ApplyResult;
use crate::plan::owner::{Marks, Owner};
use crate::plan::pin::{self, Moved};
use crate::plan::{Action, Change, Plan, conflicts};
use crate::problem::Problem;
use crate::resource::Live;

/// How to write.
#[derive(Debug, Clone)]
pub struct ApplyOptions {
    pub field_manager: String,
    pub force_conflicts: bool,
    /// How long to wait until the applied CRDs are served.
    pub established_timeout: Duration,
    /// A change that was written before all others, by its index, with its uid.
    pub written: Option<(usize, String)>,
}

/// What happens while the plan is written, for a progress line.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// So many of so many objects are written.
    Applied(usize, usize),
    /// So many of so many CRDs are served.
    Established(usize, usize),
}

/// How far a deploy came.
#[derive(Debug, Default)]
pub struct Applied {
    /// One for each change of the plan, in its order.
    pub results: Vec<ApplyResult>,
    /// The uids of the objects that were written, likewise.
    pub uids: Vec<Option<String>>,
    /// Why the deploy stopped; empty when it did not.
    pub problems: Vec<Problem>,
    /// Stopped by the user between two objects.
    pub interrupted: bool,
}

impl Applied {
    /// A deploy that has written nothing.
    pub fn not_reached(plan: &Plan) -> Self {
        let result = |change: &Change| match change.action {
            Action::Unchanged => ApplyResult::Unchanged,
            Action::Skip => ApplyResult::Skipped,
            _ => ApplyResult::NotReached,
        };
        let results: Vec<ApplyResult> = plan.changes.iter().map(result).collect();
        Applied { uids: vec![None; results.len()], results, ..Applied::default() }
    }
}

/// How often an object is pinned again that changed in nothing the checks looked at. A controller that writes status at
/// every step settles within fewer; one that never does is reported.
const REPINS: u32 = 5;

/// Writes every change of the plan that creates or updates.
///
/// `stop` becoming true ends the deploy before the next object.
pub async fn run(
    plan: &Plan,
    target: &Target,
    options: &ApplyOptions,
    stop: watch::Receiver<bool>,
    on_event: &(dyn Fn(Event) + Sync),
) -> Applied {
    let mut run =
        Run { target, options, stop, failed: false, done: 0, total: 0, on_event, outcome: Applied::default() };
    run.outcome = Applied::not_reached(plan);
    if let Some((index, uid)) = &options.written {
        run.outcome.results[*index] = ApplyResult::Applied;
        run.outcome.uids[*index] = Some(uid.clone());
    }
    run.total = plan.changes.iter().filter(|change| !change.action.leaves_alone()).count();

    let mut start = 0;
    while start < plan.changes.len() && run.may_go_on() {
        let rank = plan.changes[start].rank();
        let end = start + plan.changes[start..].iter().take_while(|change| change.rank() == rank).count();
        run.stage(&plan.changes, start..end).await;
        if plan.changes[start].desired.object.is_crd() && run.may_go_on() {
            run.wait_established(&plan.changes[start..end]).await;
        }
        start = end;
    }
    run.outcome.interrupted = run.outcome.problems.is_empty() && *run.stop.borrow() && {
        run.outcome.results.contains(&ApplyResult::NotReached)
    };
    run.outcome
}

struct Run<'a> {
    target: &'a Target,
    options: &'a ApplyOptions,
    stop: watch::Receiver<bool>,
    failed: bool,
    done: usize,
    total: usize,
    on_event: &'a (dyn Fn(Event) + Sync),
    outcome: Applied,
}

impl Run<'_> {
    fn may_go_on(&self) -> bool {
        !self.failed && !*self.stop.borrow()
    }

    /// Applies the changes of one rank, several at a time. Requests under way are always awaited, so that what was
    /// written is known; after a failure or an interrupt no further one is sent.
    async fn stage(&mut self, changes: &[Change], range: std::ops::Range<usize>) {
        let (target, options) = (self.target, self.options);
        let is_written = |index: usize| options.written.as_ref().is_some_and(|(written, _)| *written == index);
        let mut waiting = range.filter(|index| !changes[*index].action.leaves_alone() && !is_written(*index));
        let mut under_way = stream::FuturesUnordered::new();
        loop {
            while under_way.len() < IN_FLIGHT
                && self.may_go_on()
                && let Some(index) = waiting.next()
            {
                let change = &changes[index];
                under_way.push(async move { (index, apply_one(change, target, options).await) });
            }
            let Some((index, result)) = under_way.next().await else { break };
            match result {
                Ok((result, uid)) => {
                    self.outcome.results[index] = result;
                    self.outcome.uids[index] = Some(uid);
                    self.done += 1;
                    (self.on_event)(Event::Applied(self.done, self.total));
                }
                Err(problem) => {
                    self.outcome.results[index] = ApplyResult::Failed;
                    self.outcome.problems.push(problem);
                    self.failed = true;
                }
            }
        }
        self.outcome.problems.sort();
    }

    /// Waits until the target serves every CRD that was applied, or says why it does not.
    async fn wait_established(&mut self, crds: &[Change]) {
        let deadline = Instant::now() + self.options.established_timeout;
        // Also one that an earlier run applied and did not wait for.
        let is_awaited = |change: &&Change| match change.action {
            Action::Unchanged => !is_served(change),
            action => !action.leaves_alone(),
        };
        let mut waiting: Vec<&Change> = crds.iter().filter(is_awaited).collect();
        let total = waiting.len();
        let mut pause = Duration::from_millis(50);
        loop {
            let target = self.target;
            let answers: Vec<(&Change, _)> = stream::iter(std::mem::take(&mut waiting))
                .map(|change| async move { (change, target.established(&change.desired.object).await) })
                .buffered(IN_FLIGHT)
                .collect()
                .await;
            let mut reasons = Vec::new();
            for (change, answer) in answers {
                let object = &change.desired.object;
                let at = change.desired.origin.location();
                match answer {
                    Ok(Established::Yes) => {}
                    Ok(Established::NotYet(reason)) => {
                        reasons.push((at, object, reason));
                        waiting.push(change);
                    }
                    Ok(Established::Never(reason)) => self.fail(
                        Problem::new(format!("{object} was applied, but the server will not serve it: {reason}"))
                            .at(at)
                            .help("fix the CRD and run the same command again"),
                    ),
                    Err(error) => error.problems().iter().cloned().for_each(|problem| self.fail(problem)),
                }
            }
            (self.on_event)(Event::Established(total - waiting.len(), total));
            if waiting.is_empty() || !self.may_go_on() {
                return;
            }
            if Instant::now() >= deadline {
                for (at, object, reason) in reasons {
                    let seconds = self.options.established_timeout.as_secs();
                    self.fail(
                        Problem::new(format!("{object} was applied, but is not served after {seconds}s: {reason}"))
                            .at(at)
                            .help("run the same command again to continue, or raise timeouts.established"),
                    );
                }
                return;
            }
            let mut stop = self.stop.clone();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    fn fail(&mut self, problem: Problem) {
        self.outcome.problems.push(problem);
        self.failed = true;
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

/// Applies one change. Answers what became of it, and the object's uid.
///
/// # Errors
/// It was not written.
pub async fn apply_one(
    change: &Change,
    target: &Target,
    options: &ApplyOptions,
) -> Result<(ApplyResult, String), Problem> {
    let object = &change.desired.object;
    let at = change.desired.origin.location();
    let mut pin = change.pin();
    for tries_left in (0..=REPINS).rev() {
        match target.apply(&change.request(&pin, &options.field_manager, options.force_conflicts)).await {
            // The server keeps the resourceVersion when an apply changes nothing.
            Ok(live) => {
                let applied = match &pin {
                    // The server keeps the resourceVersion when an apply changes nothing.
                    Pin::At { resource_version, .. } if *resource_version == live.resource_version => {
                        ApplyResult::Unchanged
                    }
                    _ => ApplyResult::Applied,
                };
                let applied = match (change.action, &change.owner) {
                    (Action::Adopt, Some(owner)) => take_over(change, owner, &live, target, options).await?,
                    _ => applied,
                };
                return Ok((applied, live.uid));
            }
            Err(ApplyError::Changed) => match pin::look_again(change, target).await? {
                Moved::Aside(renewed) if tries_left > 0 => pin = renewed,
                moved => return Err(moved.problem(change)),
            },
            Err(ApplyError::Conflict(conflicts)) => return Err(conflict(change, &conflicts)),
            Err(ApplyError::Refused(problem)) => {
                let message = format!("{object}: {}", problem.message);
                return Err(Problem { at: Some(at), message, help: problem.help });
            }
        }
    }
    unreachable!("the last try returns")
}

/// Removes the marks of the tool that owned the object, which was just applied to: it would write the object again, or
/// delete it.
async fn take_over(
    change: &Change,
    owner: &Owner,
    live: &Live,
    target: &Target,
    options: &ApplyOptions,
) -> Result<ApplyResult, Problem> {
    let object = &change.desired.object;
    let Marks { labels, annotations } = owner.marks();
    // What was written is not taken out again: the label of another ApplySet has made room for that of the app.
    let written = change.desired.raw.value();
    let is_ours = |kind: &str, key: &str| written["metadata"][kind].get(key).is_some();
    let labels: Vec<&str> = labels.into_iter().filter(|key| !is_ours("labels", key)).collect();
    let annotations: Vec<&str> = annotations.into_iter().filter(|key| !is_ours("annotations", key)).collect();
    let field_manager = &options.field_manager;
    let unmark =
        Unmark { resource: &change.resource, object, live, labels: &labels, annotations: &annotations, field_manager };
    let why = match target.unmark(&unmark).await {
        Ok(_) => return Ok(ApplyResult::Applied),
        Err(ApplyError::Refused(problem)) => problem.message,
        Err(_) => "it has changed since".to_owned(),
    };
    Err(Problem::new(format!("{object} was written, but still carries the marks of {owner}: {why}"))
        .at(change.desired.origin.location())
        .help("run the same command again"))
}

/// A conflict that came up after the plan was made.
fn conflict(change: &Change, conflicts: &[FieldConflict]) -> Problem {
    let problems = conflicts::explain(&[(change, conflicts)]);
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    let helps: Vec<&str> = problems.iter().filter_map(|problem| problem.help.as_deref()).collect();
    Problem::new(format!("{} was not written: {}", change.desired.object, messages.join("\n")))
        .at(change.desired.origin.location())
        .help(helps.join("\n"))
}
