//! Field managers: who wrote which field of an object, and how.

pub use gantry_core::managed_fields::ManagerOperation;
use gantry_core::merge::{self, Owners};
use serde_json::Value;

/// One field that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldConflict {
    /// The name of the other manager.
    pub manager: String,
    /// How the other manager wrote the field.
    pub operation: ManagerOperation,
    /// As the API server writes it: `.spec.template.spec.containers[name="a"].image`.
    pub field: String,
    /// The manifest's value differs from the live one only in what the server defaults or normalizes, so taking the
    /// field over changes no value. `false` if this was not checked.
    pub only_defaults: bool,
}

impl FieldConflict {
    /// A conflict of which it is not known whether it is only about defaults.
    pub fn new(manager: impl Into<String>, operation: ManagerOperation, field: impl Into<String>) -> Self {
        Self { manager: manager.into(), operation, field: field.into(), only_defaults: false }
    }

    /// The deploy tool behind the manager: see [`deploy_tool`].
    pub fn tool(&self) -> Option<&'static str> {
        deploy_tool(&self.manager, self.operation)
    }
}

/// The deploy tool behind a field manager, as people know it; `None` for controllers, people and unknown managers.
pub fn deploy_tool(manager: &str, operation: ManagerOperation) -> Option<&'static str> {
    merge::deploy_tool(manager, operation == ManagerOperation::Apply)
}

/// What an apply does with the fields of deploy tools that wrote the object before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormerTools {
    /// They keep their fields.
    Keep,
    /// Their fields are taken over, unless the apply changes values of them and is not forced.
    TakeUnlessConflict,
    /// Their fields are taken over without a conflict.
    Take,
    /// The apply stands for an upgrade by Helm whose record cannot be read: see [`Owners::of_helm`]. Only for dry runs.
    AsHelm,
}

impl FormerTools {
    /// Whose the fields of the live object are for an apply by `manager`.
    pub fn owners(self, live: &Value, manager: &str, api_version: &str) -> Owners {
        match self {
            FormerTools::AsHelm => Owners::of_helm(live, manager, api_version),
            FormerTools::Keep | FormerTools::TakeUnlessConflict | FormerTools::Take => {
                Owners::of_object(live, manager, api_version)
            }
        }
    }
}
