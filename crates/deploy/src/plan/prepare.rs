//! Makes the plan of a deploy, from the manifests to the owners of its objects.

use std::pin::pin;

use futures::future::{self, Either};

use super::filter::{self, Filter};
use super::{
    Action, Change, DesiredState, Plan, PlanOptions, Prefetch, apps_of_gantry, build, conflicts, outside_commit,
};
use gantry_cluster::{OnRead, Target};
use gantry_core::manifest::Manifest;
use gantry_core::problem::{Problem, Result};
use gantry_k8s_cel::KubernetesRelease;

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
    let may_match = |manifest: &Manifest| filter::may_match(filters, manifest);
    desired.manifests.retain(may_match);
    desired.bundles.iter_mut().for_each(|bundle| bundle.manifests.retain(may_match));
    // A commit does not serve kinds: those that it lacks are left out below, unless a check reports them.
    let keep_unplaced = options.keep_unplaced || target.read_only_name().is_some();
    // Most runs need the release of the server, which waits for nothing. It is not needed if nothing has changed.
    let is_likely_needed = target.is_server() && options.as_applied.is_empty();
    let release = pin!(async { if is_likely_needed { target.release().await } else { None } });
    let building = pin!(build(desired, ahead, target, PlanOptions { keep_unplaced, ..options }, on_read));
    let (mut plan, release) = match future::select(building, release).await {
        Either::Left((plan, release)) => (plan?, Either::Left(release)),
        Either::Right((release, building)) => (building.await?, Either::Right(future::ready(release))),
    };
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
    // Whether an object that does not change is valid is nobody's question. OLM writes what it installs.
    let is_judged = |change: &Change| !matches!(change.action, Action::Unchanged | Action::Skip);
    let needs_release = plan.changes.iter().any(is_judged);
    let release = async {
        match target.is_server() {
            true if needs_release && is_likely_needed => release.await,
            true if needs_release => target.release().await,
            true => None,
            false => Some(target.release().await.unwrap_or_default()),
        }
    };
    let (lost, release) = futures::join!(lost, release);
    plan.notices.extend(lost);
    if needs_release && release.is_none() {
        plan.notices.push(unknown_release());
    }
    plan.server_release = release;
    conflicts::spare_others(&mut plan, target).await;
    apps_of_gantry::name_owning_apps(&mut plan, target).await;
    Ok(plan)
}

fn unknown_release() -> Problem {
    let assumed = KubernetesRelease::default();
    let message = format!(
        "the server does not say its release (/version): it is checked as Kubernetes {assumed}, and an older server \
         refuses more"
    );
    Problem::new(message).help("by default every user can read it: ClusterRole system:public-info-viewer")
}
