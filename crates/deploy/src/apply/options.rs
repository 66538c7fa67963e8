//! How a deploy writes, and how long it waits for what.

use std::time::Duration;

use crate::readiness::rules::WaitRule;
use gantry_core::resource::LiveObject;

/// How to write.
#[derive(Debug, Clone)]
pub struct ApplyOptions {
    /// The name that owns the written fields.
    pub field_manager: String,
    /// Whether fields of other managers are taken over instead of refused.
    pub force_conflicts: bool,
    /// Whether marks of written objects are kept for the record of an app: see [`super::WrittenObject::mark`].
    pub marks: bool,
    /// Continues with objects that do not need one that failed: see `stopped`. After a failure nothing is deleted in
    /// any case.
    pub keep_going: bool,
    /// Also waits for CRDs that the plan has no objects of.
    pub awaits_all_crds: bool,
    /// The time limit until the applied CRDs are served.
    pub established_timeout: Duration,
    /// How long to retry writing an object while a webhook does not answer.
    pub apply_timeout: Duration,
    /// The time limit until an object that is replaced is gone.
    pub delete_timeout: Duration,
    /// The time limit until the written objects are ready; `None` not to wait.
    pub ready_timeout: Option<Duration>,
    /// The time limit until unchanged objects that others wait for by a written rule are ready; `None` not to wait.
    pub rules_timeout: Option<Duration>,
    /// The time limit for each single object; `None` for no separate limit.
    pub resource_timeout: Option<Duration>,
    /// Shows the logs of Pods that are not ready.
    pub shows_logs: bool,
    /// APIServices count as ready even if their API does not answer.
    pub ignores_api_services: bool,
    /// Reports what is awaited and why, for progress output.
    pub shows_waits: bool,
    /// Wait rules, which take precedence over the readiness of a kind.
    pub wait_rules: Vec<WaitRule>,
    /// A change that was written before all others: its index and the live object.
    pub written: Option<(usize, LiveObject)>,
}
