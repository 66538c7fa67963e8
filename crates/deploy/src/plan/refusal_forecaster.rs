//! Asks the server what it would answer to the requests of a plan.

use super::predicted::Writing;
use super::{Change, Plan, pin};
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{DryRunError, Target};
use gantry_core::resource::RawObject;

pub(super) struct RefusalForecaster<'a> {
    pub plan: &'a Plan,
    pub target: &'a Target,
    pub server: &'a KubeTarget,
    pub writing: Writing<'a>,
}

impl RefusalForecaster<'_> {
    /// What the server answers to the request that writes the change.
    pub async fn dry_run(&self, change: &Change) -> Result<RawObject, DryRunError> {
        pin::dry_run_once(change, self.plan, self.server, self.target).await
    }
}
