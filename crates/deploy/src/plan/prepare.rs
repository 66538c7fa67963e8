//! Makes the plan of a deploy, from the manifests to the owners of its objects.

use super::filter::{self, Filter};
use super::{Change, DesiredState, Plan, PlanOptions, Prefetch, apps_of_gantry, build, conflicts, outside_commit};
use gantry_cluster::{OnRead, Target};
use gantry_core::manifest::Manifest;
use gantry_core::problem::Result;

/// The plan of a deploy of the objects that the filters select. Members of an app that leave it and the order come
/// later. Only reads.
///
/// # Errors
/// Those of [`build`].
pub async fn prepare(
    mut desired: DesiredState,
    ahead: Prefetch,
    target: &Target,
    filters: &[Filter],
    options: PlanOptions<'_>,
    on_read: OnRead<'_>,
) -> Result<Plan> {
    let may_match = |manifest: &Manifest| filter::may_match(filters, &manifest.object);
    desired.manifests.retain(may_match);
    desired.bundles.iter_mut().for_each(|bundle| bundle.manifests.retain(may_match));
    // A commit does not serve kinds: those that it lacks are left out below, unless a check reports them.
    let keep_unplaced = options.keep_unplaced || matches!(target, Target::Git(_));
    let mut plan = build(desired, ahead, target, PlanOptions { keep_unplaced, ..options }, on_read).await?;
    filter::apply(filters, &mut plan);
    if !options.keep_unplaced {
        let unknown = outside_commit::leave_out_unknown_kinds(&mut plan, target);
        plan.notices.extend(unknown);
    }
    let lost = async {
        match filters.is_empty() {
            true => outside_commit::lost_crds(&plan, target).await,
            false => None,
        }
    };
    // Whether an object that does not change is valid is nobody's question.
    let needs_release = !target.is_server() || plan.changes.iter().any(Change::is_written);
    let release = async {
        match needs_release {
            true => Some(target.release().await.unwrap_or_default()),
            false => None,
        }
    };
    let (lost, release) = futures::join!(lost, release);
    plan.notices.extend(lost);
    plan.server_release = release;
    conflicts::spare_others(&mut plan, target).await;
    apps_of_gantry::name_owning_apps(&mut plan, target).await;
    Ok(plan)
}
