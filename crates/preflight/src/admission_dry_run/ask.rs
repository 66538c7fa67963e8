//! Sends the requests of the deploy to the server as dry runs, several objects at a time.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::stream::StreamExt;
use serde_json::Value;

use super::depend::Dependence;
use super::{ViolationsFound, quota, refusal};
use crate::{Context, CouldNotCheck, dry_runs};
use gantry_cluster::DryRunError;
use gantry_cluster::kube::KubeTarget;
use gantry_core::problem::Problem;
use gantry_core::resource::RawObject;
use gantry_core::text;
use gantry_deploy::plan::{Action, Change, only_defaults, pin};

/// The maximum number of objects that one "could not check" names.
const OBJECTS_SHOWN: usize = 5;

/// The server's answers.
#[derive(Default)]
pub struct DryRunAnswers {
    pub found: ViolationsFound,
    /// New objects whose contents a quota may measure, as the server would store them; by their index in the plan.
    pub admitted: BTreeMap<usize, Value>,
}

pub async fn request_dry_runs(context: &Context<'_>, server: &KubeTarget, dependence: &[Dependence]) -> DryRunAnswers {
    let changes = &context.plan.changes;
    let is_asked = |index: &usize| {
        let is_written = changes[*index].action.applies();
        is_written && !matches!(dependence[*index], Dependence::Created(_))
    };
    let indices: Vec<usize> = (0..changes.len()).filter(is_asked).collect();
    let total = indices.len();
    let mut answers = pin!(dry_runs::request_each(indices, |index| async move {
        let answer = dry_run(context, server, &changes[index]).await;
        if context.plan.keeps_answers {
            changes[index].answer.keep(&answer);
        }
        answer
    }));
    let DryRunAnswers { mut found, mut admitted } = DryRunAnswers::default();
    let mut unanswered: BTreeMap<Problem, Vec<usize>> = BTreeMap::new();
    let (mut done, mut unsent) = (0, 0);
    while let Some((index, answer)) = answers.next().await {
        done += 1;
        context.stage.set(done, Some(total));
        match answer {
            Some(Err(DryRunError::Unanswered { problem, .. })) => unanswered.entry(problem).or_default().push(index),
            Some(Err(error)) => {
                refusal::report_refusal(context.plan, index, &error, dependence[index], &mut found.violations)
            }
            Some(Ok(object)) => {
                let change = &changes[index];
                if change.action == Action::Create && quota::is_measured(&change.resource) {
                    admitted.insert(index, object.value());
                }
            }
            None => unsent += 1,
        }
    }
    found
        .unchecked
        .extend(unanswered.into_iter().map(|(problem, indices)| could_not_check(changes, problem, &indices)));
    if unsent > 0 {
        let verb = if unsent == 1 { "was" } else { "were" };
        let message = format!("{} {verb} not sent to the server", text::count(unsent, "object"));
        found.unchecked.push(CouldNotCheck { message, help: None });
    }
    DryRunAnswers { found, admitted }
}

async fn dry_run(context: &Context<'_>, server: &KubeTarget, change: &Change) -> Result<RawObject, DryRunError> {
    if change.action == Action::Replace {
        let pin = change.pin();
        // What the server adds matters only for quotas, and the live object counts there already.
        let request = change.request(&pin, &context.plan.policy.field_manager, context.plan.policy.force_conflicts);
        return server.dry_run_create(&request).await.map(|()| change.desired.raw.clone());
    }
    let writing = context.plan.policy.writing();
    let mut answer = pin::dry_run(change, writing, server, context.target).await;
    if let Err(DryRunError::Conflict(conflicts)) = &mut answer {
        only_defaults::mark_each(change, conflicts, &context.plan.policy.field_manager, server, context.target).await;
    }
    answer
}

/// One entry for a reason, however many objects it affects.
fn could_not_check(changes: &[Change], problem: Problem, indices: &[usize]) -> CouldNotCheck {
    let shown = indices.iter().take(OBJECTS_SHOWN).map(|index| {
        let desired = &changes[*index].desired;
        format!("{} ({})", desired.object, desired.origin.location())
    });
    let mut objects: Vec<String> = shown.collect();
    if indices.len() > OBJECTS_SHOWN {
        objects.push(format!("… and {} more", indices.len() - OBJECTS_SHOWN));
    }
    CouldNotCheck { message: format!("{}: {}", objects.join(", "), problem.message), help: problem.help }
}
