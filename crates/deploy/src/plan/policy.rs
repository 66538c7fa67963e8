//! How a deploy writes and waits, as far as the plan, its notices and the checks depend on it.

use super::predicted::Writing;

/// The field manager that the configuration has by default.
const DEFAULT_FIELD_MANAGER: &str = "gantry";

/// How a deploy of a plan writes and waits.
#[derive(Debug, Clone)]
pub struct DeployPolicy {
    /// The name that owns the written fields.
    pub field_manager: String,
    /// Takes fields from other field managers.
    pub force_conflicts: bool,
    /// Waits until the written objects are ready.
    pub waits: bool,
    /// Shows logs of Pods that do not become ready.
    pub shows_logs: bool,
    /// An API that does not answer does not prevent deletions.
    pub ignores_failing_apis: bool,
    /// The objects belong to an app.
    pub has_app: bool,
    /// It is a `gantry delete`, which has fewer flags than a deploy: help texts must not name the missing ones.
    pub deletes_app: bool,
}

impl Default for DeployPolicy {
    fn default() -> Self {
        DeployPolicy {
            field_manager: DEFAULT_FIELD_MANAGER.to_owned(),
            force_conflicts: false,
            waits: false,
            shows_logs: false,
            ignores_failing_apis: false,
            has_app: false,
            deletes_app: false,
        }
    }
}

impl DeployPolicy {
    /// What a dry run needs to be the same request as the write.
    pub fn writing(&self) -> Writing<'_> {
        Writing { field_manager: &self.field_manager, force_conflicts: self.force_conflicts }
    }
}
