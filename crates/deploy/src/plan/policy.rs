//! How a deploy writes and waits, as far as the plan, its notices and the checks depend on it.

use super::predicted::Writing;

/// The field manager that the configuration has by default.
const DEFAULT_FIELD_MANAGER: &str = "gantry";

/// What deletes objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleter {
    /// `gantry deploy`, and `gantry rollback`.
    Deploy,
    /// `gantry delete`.
    AppDelete,
    /// Helm, whose upgrade is foretold.
    Helm,
}

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
    /// What deletes objects, because help texts must name only flags that it has.
    pub deleter: Deleter,
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
            deleter: Deleter::Deploy,
        }
    }
}

impl DeployPolicy {
    /// What a dry run needs to be the same request as the write.
    pub fn writing(&self) -> Writing<'_> {
        Writing { field_manager: &self.field_manager, force_conflicts: self.force_conflicts }
    }
}
