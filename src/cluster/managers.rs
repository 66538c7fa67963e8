//! Field managers: who wrote which field of an object, and how.

/// How a field manager wrote a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By anything else: create, replace, patch.
    Update,
}

/// One field that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldConflict {
    pub manager: String,
    pub operation: Operation,
    /// As the API server writes it: `.spec.template.spec.containers[name="a"].image`.
    pub field: String,
    /// The manifest's value differs from the live one only in what the server defaults or normalizes, so taking the
    /// field over changes no value. `false` if this was not checked.
    pub only_defaults: bool,
}

impl FieldConflict {
    pub fn new(manager: impl Into<String>, operation: Operation, field: impl Into<String>) -> Self {
        Self { manager: manager.into(), operation, field: field.into(), only_defaults: false }
    }
}

/// Tools that deploy with plain updates, and touch the objects only when they are run again.
const CLIENT_SIDE_TOOLS: &[(&str, &str)] = &[
    // The name that the server uses when an object has no record of who wrote it.
    ("before-first-apply", "a tool that left no record"),
    ("helm", "helm"),
    ("kapp", "kapp deploy"),
    ("kubectl-client-side-apply", "kubectl apply"),
    ("kubectl-create", "kubectl create"),
    ("kubectl-replace", "kubectl replace"),
];

/// The deploy tool behind a field manager, as people know it; `None` for controllers, people and unknown managers.
pub fn client_side_tool(manager: &str, operation: Operation) -> Option<&'static str> {
    let known = CLIENT_SIDE_TOOLS.iter().find(|(name, _)| *name == manager && operation == Operation::Update);
    known.map(|(_, tool)| *tool)
}
