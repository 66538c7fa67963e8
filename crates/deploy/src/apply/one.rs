//! Writes one object.

use tokio::sync::watch;

use super::delete;
use super::options::ApplyOptions;
use crate::app::last_applied::Mark;
use crate::plan::owner::{Owner, OwnerMarks};
use crate::plan::pin::{self, Moved};
use crate::plan::{Action, Change, conflicts};
use gantry_cluster::again::{Rewritten, write_again};
use gantry_cluster::patience::Patience;
use gantry_cluster::{ApplyError, FieldConflict, Lacking, Target, Unmark, WritePrecondition};
use gantry_core::finding::ApplyResult;
use gantry_core::problem::Problem;
use gantry_core::resource::LiveObject;

/// How many times an object is pinned again if only parts have changed that no check depends on. A controller that
/// writes status at every step finishes within fewer; one that never stops is reported.
const REPINS: u32 = 5;

/// Why a change was not written.
pub enum NotWritten {
    /// The server lacks this for now.
    NotYet(Lacking, Problem),
    /// It may have been written.
    Unknown(Problem),
    /// The object that it replaces was not gone in time.
    Stuck(Problem),
    /// Anything else: it was not written.
    For(Problem),
}

impl From<Problem> for NotWritten {
    fn from(problem: Problem) -> Self {
        NotWritten::For(problem)
    }
}

impl NotWritten {
    /// The problem, whatever the reason.
    pub fn problem(self) -> Problem {
        match self {
            NotWritten::NotYet(_, problem)
            | NotWritten::Unknown(problem)
            | NotWritten::Stuck(problem)
            | NotWritten::For(problem) => problem,
        }
    }
}

/// An object that was written.
pub struct WrittenObject {
    /// What the write did, for the report.
    pub result: ApplyResult,
    /// The live object.
    pub live: LiveObject,
    /// The mark by which the next run recognizes that it has not changed since; `None` if that is unknown.
    pub mark: Option<Mark>,
    /// Something else created the object after the checks, and the manifest was applied to it.
    pub was_there: bool,
}

/// Applies one change.
///
/// # Errors
/// It was not written.
pub async fn apply_one(
    change: &Change,
    target: &Target,
    options: &ApplyOptions,
    stop: &watch::Receiver<bool>,
) -> Result<WrittenObject, NotWritten> {
    let object = &change.desired.object;
    let at = || change.desired.origin.location();
    if let Some(removal) = &change.replaces {
        let patience = Patience { limit: options.apply_timeout, stop };
        let removed = delete::remove(removal, target, &options.field_manager, patience).await;
        removed.map_err(|problem| NotWritten::For(problem.at(at())))?;
        let gone = delete::gone_to_replace(removal, target, options, stop).await;
        gone.map_err(|problem| NotWritten::Stuck(problem.at(at())))?;
    }
    let refused = |problem: Problem| {
        let how = if change.replaces.is_some() { " was deleted and could not be created again" } else { "" };
        let message = format!("{object}{how}: {}", problem.message);
        Problem { message, at: Some(at()), ..problem }
    };
    let mut pin = change.pin();
    let mut was_there = false;
    for tries_left in (0..=REPINS).rev() {
        match target.apply(&change.request(&pin, &options.field_manager, options.force_conflicts)).await {
            Ok(live) => {
                let applied = match &pin {
                    // The server keeps the resourceVersion when an apply changes nothing.
                    WritePrecondition::At { resource_version, .. } if *resource_version == live.resource_version => {
                        ApplyResult::Unchanged
                    }
                    _ => ApplyResult::Applied,
                };
                // The object was written again, so the response is out of date.
                let is_marked = options.marks && change.owner.is_none();
                let mark = is_marked.then(|| change.mark(&live, &options.field_manager)).flatten();
                let (result, live) = match (change.action, &change.owner) {
                    (Action::Adopt, Some(owner)) => {
                        (ApplyResult::Applied, take_over(change, owner, live, target, options).await?)
                    }
                    _ => (applied, live),
                };
                return Ok(WrittenObject { result, live, mark, was_there });
            }
            Err(ApplyError::Changed) => match pin::look_again(change, target).await? {
                Moved::Aside(renewed) if tries_left > 0 => {
                    was_there = change.live.is_none() && matches!(renewed, WritePrecondition::At { .. });
                    pin = renewed;
                }
                moved => return Err(moved.problem(change).into()),
            },
            Err(ApplyError::Conflict(conflicts)) => return Err(conflict(change, &conflicts).into()),
            Err(ApplyError::NotYet(lacking, problem)) => return Err(NotWritten::NotYet(lacking, refused(problem))),
            Err(ApplyError::Unknown(problem)) => return Err(NotWritten::Unknown(refused(problem))),
            Err(ApplyError::Refused(problem)) => return Err(refused(problem).into()),
        }
    }
    unreachable!("the last try returns")
}

/// Removes the marks of the tool that owned the object, which was just applied. Otherwise that tool would write it
/// again, or delete it.
async fn take_over(
    change: &Change,
    owner: &Owner,
    live: LiveObject,
    target: &Target,
    options: &ApplyOptions,
) -> Result<LiveObject, Problem> {
    let object = &change.desired.object;
    let OwnerMarks { labels, annotations } = owner.marks();
    // Do not remove what was just written: the app's label replaced that of the other ApplySet.
    let written = change.desired.raw.value();
    let is_ours = |kind: &str, key: &str| written["metadata"][kind].get(key).is_some();
    let labels: Vec<&str> = labels.into_iter().filter(|key| !is_ours("labels", key)).collect();
    let annotations: Vec<&str> = annotations.into_iter().filter(|key| !is_ours("annotations", key)).collect();
    if labels.is_empty() && annotations.is_empty() {
        return Ok(live);
    }
    let remains = |why: String| {
        Problem::new(format!("{object} was written, but still carries the marks of {owner}: {why}"))
            .at(change.desired.origin.location())
            .help("run the same command again")
    };
    let (resource, field_manager) = (&change.resource, &options.field_manager);
    let unmark = async |live: &LiveObject| {
        let (labels, annotations) = (&labels[..], &annotations[..]);
        target.unmark(&Unmark { resource, object, live, labels, annotations, field_manager }).await
    };
    let uid = live.uid.clone();
    match write_again(target, (resource, object), Some(live), |live| live.uid == uid, unmark).await {
        Ok(Rewritten::Written(live)) => Ok(live),
        Ok(Rewritten::Refused(problem)) => Err(remains(problem.message)),
        Ok(Rewritten::Left | Rewritten::KeptChanging) => Err(remains("it has changed since".to_owned())),
        Err(error) => Err(remains(error.to_string())),
    }
}

/// A field conflict that arose after the plan was built.
fn conflict(change: &Change, conflicts: &[FieldConflict]) -> Problem {
    let problems = conflicts::explain(&[(change, conflicts)]);
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    let helps: Vec<&str> = problems.iter().filter_map(|problem| problem.help.as_deref()).collect();
    Problem::new(format!("{} was not written: {}", change.desired.object, messages.join("\n")))
        .at(change.desired.origin.location())
        .help(helps.join("\n"))
}
