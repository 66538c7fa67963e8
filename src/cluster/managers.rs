//! Field managers: who wrote which field of an object, and how.

/// How a field manager wrote.
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
    /// The manifest differs in nothing but what the server fills in or writes in another way: to take the field over changes
    /// no value. `false` where nobody asked.
    pub only_defaults: bool,
}

impl FieldConflict {
    pub fn new(manager: impl Into<String>, operation: Operation, field: impl Into<String>) -> Self {
        Self { manager: manager.into(), operation, field: field.into(), only_defaults: false }
    }
}

/// Tools that write with plain updates what they deploy, and leave it alone until they are run again.
const CLIENT_SIDE_TOOLS: &[(&str, &str)] = &[
    // The server's name for the writer of an object that has no record.
    ("before-first-apply", "a tool that left no record"),
    ("helm", "helm"),
    ("kapp", "kapp deploy"),
    ("kubectl-client-side-apply", "kubectl apply"),
    ("kubectl-create", "kubectl create"),
    ("kubectl-replace", "kubectl replace"),
];

/// The deploy tool behind a field manager, as people know it; `None` for controllers, people and everything unknown.
pub fn client_side_tool(manager: &str, operation: Operation) -> Option<&'static str> {
    let known = CLIENT_SIDE_TOOLS.iter().find(|(name, _)| *name == manager && operation == Operation::Update);
    known.map(|(_, tool)| *tool)
}
