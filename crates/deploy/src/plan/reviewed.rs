//! The plan of an update that somebody else has asked the API server for.

use super::owner::TakeoverPatterns;
use super::{Action, DeployPolicy, Plan, PlanOptions, Prefetch, build};
use gantry_cluster::Target;
use gantry_core::manifest::Manifest;
use gantry_core::problem::Result;
use gantry_core::resource::LiveObject;

/// The plan of a request that replaces the live CRD. The API server has validated it, so that checks need not ask.
///
/// # Errors
/// Those of [`build`].
pub async fn plan_of_crd_update(live: LiveObject, desired: Manifest, target: &Target) -> Result<Plan> {
    let accepted = desired.raw.clone();
    let (policy, taken) = (DeployPolicy::default(), TakeoverPatterns::new(&[]));
    let ahead = Prefetch::of_crd(desired.object.name.clone(), live);
    let options = PlanOptions::new(&policy, &taken);
    let mut plan = build(vec![desired], ahead, target, options, &|_, _| ()).await?;
    plan.server_release = target.release().await;
    for change in &mut plan.changes {
        change.action = Action::Update;
        change.answer.keep(&Ok(accepted.clone()));
    }
    Ok(plan)
}
