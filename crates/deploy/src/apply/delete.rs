//! Deletes objects that leave an app, step by step, and waits until they are gone.

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use tokio::sync::watch;
use tokio::time::Instant;

use super::deletion_watches::DeletionWatches;
use super::options::ApplyOptions;
use crate::app::PART_OF;
use crate::plan::graph::ApplyStep;
use crate::plan::removal::Removal;
use gantry_cluster::patience::{Patience, help_with_webhook};
use gantry_cluster::{ApplyError, Delete, DeleteError, IN_FLIGHT, ObjectToRead, Target, Unmark};
use gantry_core::finding::{Action, ApplyResult};
use gantry_core::problem::Problem;
use gantry_core::resource::LiveObject;

/// The result of the deletions.
#[derive(Debug, Default)]
pub struct DeletionResults {
    /// The result of each removal, in their order.
    pub results: Vec<ApplyResult>,
    /// Why some did not begin.
    pub problems: Vec<Problem>,
    /// Deletions that did not finish in time: see [`ApplyResult::Deleting`].
    pub stuck: Vec<Problem>,
}

impl DeletionResults {
    /// All problems of the deletions.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().chain(&self.stuck)
    }
}

/// How often progress is reported while nothing changes.
const TICK: Duration = Duration::from_secs(1);

/// The number of attempts to delete an object that keeps changing after it was checked.
const TRIES: u32 = 5;

/// An event while objects are removed, for progress output.
#[derive(Debug, Clone, Copy)]
pub enum RemovalEvent<'a> {
    /// The number of objects that were removed so far.
    Removed(usize),
    /// The objects that are being deleted and still exist.
    Deleting(&'a [(usize, &'a Removal)]),
}

/// Deletes and releases objects. A step begins when the objects of the previous step are gone.
pub async fn run(
    removals: &[Removal],
    steps: &[ApplyStep],
    target: &Target,
    field_manager: &str,
    timeout: Duration,
    stop: &watch::Receiver<bool>,
    on_event: &(dyn Fn(RemovalEvent<'_>) + Sync),
) -> DeletionResults {
    let mut removed =
        DeletionResults { results: vec![ApplyResult::NotReached; removals.len()], ..DeletionResults::default() };
    let deadline = Instant::now() + timeout;
    let patience = Patience { limit: timeout, stop };
    let mut done = 0;
    for ApplyStep { members, .. } in steps {
        if *stop.borrow() || !removed.problems.is_empty() || !removed.stuck.is_empty() {
            break;
        }
        let one = async |index: usize| (index, remove(&removals[index], target, field_manager, patience).await);
        let mut answers = stream::iter(members.iter().copied()).map(one).buffer_unordered(IN_FLIGHT);
        while let Some((index, answer)) = answers.next().await {
            done += usize::from(answer.is_ok() && !removals[index].is_done);
            on_event(RemovalEvent::Removed(done));
            match answer {
                Ok(()) if removals[index].action == Action::Delete => removed.results[index] = ApplyResult::Deleted,
                Ok(()) => removed.results[index] = ApplyResult::Applied,
                Err(problem) => {
                    removed.results[index] = ApplyResult::Failed;
                    removed.problems.push(problem);
                }
            }
        }
        drop(answers);
        let going = members.iter().filter(|index| removed.results[**index] == ApplyResult::Deleted);
        let going = going.map(|index| (*index, &removals[*index])).collect();
        for (index, problem) in wait_until_gone(going, target, deadline, stop, on_event).await {
            removed.results[index] = ApplyResult::Deleting;
            removed.stuck.push(problem);
        }
    }
    removed
}

/// Waits until an object that is then created again is gone.
pub(crate) async fn gone_to_replace(
    removal: &Removal,
    target: &Target,
    options: &ApplyOptions,
    stop: &watch::Receiver<bool>,
) -> Result<(), Problem> {
    let deadline = Instant::now() + options.delete_timeout;
    match wait_until_gone(vec![(0, removal)], target, deadline, stop, &|_| ()).await.pop() {
        Some((_, problem)) => Err(problem),
        None => Ok(()),
    }
}

/// Deletes an object, or removes the label of the app from it.
pub async fn remove(
    removal: &Removal,
    target: &Target,
    field_manager: &str,
    patience: Patience<'_>,
) -> Result<(), Problem> {
    let Removal { object, resource, facts, action, is_done } = removal;
    if *is_done {
        return Ok(());
    }
    let mut resource_version = facts.resource_version.clone();
    for _ in 0..TRIES {
        match action {
            Action::Delete => {
                let foreground = matches!(object.group(), "apps" | "batch");
                let uid = &facts.uid;
                let delete = Delete { resource, object, uid, resource_version: &resource_version, foreground };
                match patience.delete(&delete, target).await {
                    Ok(()) => return Ok(()),
                    Err(DeleteError::Changed) => {}
                    Err(DeleteError::NotYet(problem)) => {
                        let help = help_with_webhook(&problem, target).await;
                        return Err(not_removed(removal, "deleted", problem.help(help)));
                    }
                    Err(DeleteError::Refused(problem)) => return Err(not_removed(removal, "deleted", problem)),
                }
            }
            _ => {
                let Some(live) = as_checked(removal, target).await? else { return Ok(()) };
                let unmark =
                    Unmark { resource, object, live: &live, labels: &[PART_OF], annotations: &[], field_manager };
                match target.unmark(&unmark).await {
                    Ok(_) => return Ok(()),
                    Err(
                        ApplyError::Refused(problem) | ApplyError::Unknown(problem) | ApplyError::NotYet(_, problem),
                    ) => {
                        return Err(not_removed(removal, "let go", problem));
                    }
                    Err(_) => continue,
                }
            }
        }
        match as_checked(removal, target).await? {
            None => return Ok(()),
            Some(live) => resource_version = live.resource_version,
        }
    }
    Err(changed_since(removal, "kept changing"))
}

/// Reads the live object; `None` if it is gone.
///
/// # Errors
/// It is not the one that was checked, or something that the decision depends on has changed.
async fn as_checked(removal: &Removal, target: &Target) -> Result<Option<LiveObject>, Problem> {
    match read_now(removal, target).await? {
        Some(live) if live.uid != removal.facts.uid => {
            Err(changed_since(removal, "was deleted and created again after it was checked"))
        }
        Some(live) if !is_as_checked(&live, removal) => Err(changed_since(removal, "changed after it was checked")),
        live => Ok(live),
    }
}

/// Whether what the decision depends on is unchanged: labels, annotations and owners, and for a deletion also the
/// content and the finalizers. Only the status may change, and finalizers may go.
fn is_as_checked(live: &LiveObject, removal: &Removal) -> bool {
    let found = crate::app::members::read(&live.raw.json(), &removal.resource);
    found.is_some_and(|found| {
        let (now, then) = (&found.facts, &removal.facts);
        let is_content_same =
            || now.writers == then.writers && now.finalizers.iter().all(|now| then.finalizers.contains(now));
        (&now.labels, &now.annotations, &now.owners) == (&then.labels, &then.annotations, &then.owners)
            && (removal.action != Action::Delete || is_content_same())
    })
}

async fn read_now(removal: &Removal, target: &Target) -> Result<Option<LiveObject>, Problem> {
    let wanted = ObjectToRead { resource: removal.resource.clone(), object: removal.object.clone() };
    let read = target.read(&[wanted], &|_, _| ()).await;
    let read = read.map_err(|error| not_removed(removal, "read again", Problem::new(error.to_string())))?;
    Ok(read.into_iter().flatten().next())
}

fn changed_since(removal: &Removal, what: &str) -> Problem {
    let left = if removal.action == Action::Delete { "was not deleted" } else { "keeps the label of the app" };
    Problem::new(format!("{} {what}; it {left}", removal.object))
        .help("run the same command again: it checks what is live now")
}

fn not_removed(removal: &Removal, what: &str, problem: Problem) -> Problem {
    let message = format!("{} could not be {what}: {}", removal.object, problem.message);
    Problem { message, ..problem }
}

/// Waits until the objects are gone. Returns why some of them still exist.
///
/// Most are gone at the first read. The remaining ones are watched, or polled if they cannot be watched.
async fn wait_until_gone(
    mut going: Vec<(usize, &Removal)>,
    target: &Target,
    deadline: Instant,
    stop: &watch::Receiver<bool>,
    on_event: &(dyn Fn(RemovalEvent<'_>) + Sync),
) -> Vec<(usize, Problem)> {
    let mut pause = Duration::from_millis(50);
    // Objects that could not be read are not read again. Whether they are gone is unknown.
    let mut unread = Vec::new();
    let mut following: Option<DeletionWatches> = None;
    let mut stop = stop.clone();
    loop {
        // At the end all are read once more, to report why they still exist.
        let is_over = Instant::now() >= deadline || *stop.borrow();
        let is_there = |removal: &Removal| following.as_ref().is_some_and(|following| following.is_there(removal));
        let (there, asked): (Vec<_>, Vec<_>) =
            going.into_iter().partition(|(_, removal)| !is_over && is_there(removal));
        let wanted: Vec<ObjectToRead> = asked
            .iter()
            .map(|(_, removal)| ObjectToRead { resource: removal.resource.clone(), object: removal.object.clone() })
            .collect();
        let read = match target.read_each(&wanted, &|_, _| ()).await {
            Ok(read) => read,
            Err(error) => {
                let why = |(index, removal): (usize, &Removal)| {
                    (index, not_removed(removal, "seen to go", Problem::new(error.to_string())))
                };
                return unread.into_iter().chain(asked.into_iter().chain(there).map(why)).collect();
            }
        };
        let mut still = Vec::new();
        for ((index, removal), read) in asked.into_iter().zip(read) {
            match read {
                Ok(Some(live)) if live.uid == removal.facts.uid => still.push((index, removal, live)),
                // Gone, or replaced by another object of that name.
                Ok(_) => {}
                Err(problem) => unread.push((index, not_removed(removal, "seen to go", problem))),
            }
        }
        if is_over || still.is_empty() && there.is_empty() {
            going = still.iter().map(|(index, removal, _)| (*index, *removal)).chain(there).collect();
            on_event(RemovalEvent::Deleting(&going));
            let stuck = still.iter().map(|(index, removal, live)| (*index, deletion_stuck(removal, live)));
            return unread.into_iter().chain(stuck).collect();
        }
        going = still.into_iter().map(|(index, removal, _)| (index, removal)).chain(there).collect();
        on_event(RemovalEvent::Deleting(&going));
        tokio::select! {
            () = tokio::time::sleep_until(deadline.min(Instant::now() + pause)) => {}
            _ = stop.wait_for(|stop| *stop) => continue,
        }
        pause = (pause * 2).min(Duration::from_secs(1));
        let removals = going.iter().map(|(_, removal)| *removal);
        let following = following.get_or_insert_with(|| DeletionWatches::start(removals.clone(), target));
        // As long as a watch reports each of them as existing, nothing is read.
        tokio::select! {
            () = following.wait_for_news(removals) => {}
            // Progress output is updated although nothing happens.
            () = tokio::time::sleep_until(deadline.min(Instant::now() + TICK)) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }
}

/// Why an object that is being deleted still exists.
fn deletion_stuck(removal: &Removal, live: &LiveObject) -> Problem {
    let value = live.raw.value();
    let object = &removal.object;
    let since = value["metadata"]["deletionTimestamp"].as_str().unwrap_or("a moment ago");
    let finalizers: Vec<&str> = value["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(serde_json::Value::as_str)
        .collect();
    let said: Vec<&str> = value["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|condition| condition["status"] == "True")
        .filter_map(|condition| condition["message"].as_str())
        .collect();
    let mut message = format!("{object} is still being deleted (since {since})");
    if !finalizers.is_empty() {
        message.push_str(&format!("; it waits for {}", finalizers.join(", ")));
    }
    if object.is_namespace() && !said.is_empty() {
        message.push_str(&format!(": {}", said.join("; ")));
    }
    let help = match finalizers.first() {
        Some(finalizer) => format!(
            "the controller of {finalizer} must finish the deletion: check that it is running; run the same command \
             again to keep waiting"
        ),
        None => {
            format!("check what blocks it: kubectl get {object} -o yaml; run the same command again to wait longer")
        }
    };
    Problem::new(gantry_core::text::sanitize(&message).into_owned()).help(help)
}
