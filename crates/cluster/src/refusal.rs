//! Refusals of a dry run.

use super::managers::FieldConflict;
use gantry_core::problem::Problem;

/// Why the server would refuse to write an object, as reported by its dry run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DryRunError {
    /// The live object is no longer the one that was read.
    #[error("the live object changed after it was read")]
    Changed,
    /// Other managers own fields that the manifest sets.
    #[error("other field managers own fields that the manifest changes")]
    Conflict(Vec<FieldConflict>),
    /// The apply would be refused.
    #[error("{}", .0.problem)]
    Refused(Refusal),
    /// No verdict: the server could not be reached, or cannot tell in advance.
    #[error("{problem}")]
    Unanswered {
        /// Why there is none.
        problem: Problem,
        /// Every other object would fail in the same way.
        everything: bool,
    },
}

/// The server's reasons for refusing an object. All texts are sanitized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The part of the server that refuses.
    pub by: Refuser,
    /// The refusal as a whole, with the next step.
    pub problem: Problem,
    /// The reasons for single fields, in the server's order; empty if the refusal concerns the whole object.
    pub causes: Vec<RefusalCause>,
    /// The missing object that is referred to, as plural and name, if the server names it.
    pub missing: Option<(String, String)>,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalCause {
    /// As the server writes it: `spec.template.spec.containers[0].image`, `.spec.list[name="a"].x`; empty if it names
    /// no field.
    pub field: String,
    /// What is wrong with the field, sanitized.
    pub message: String,
}

impl RefusalCause {
    /// The field and what is wrong with it: `spec.replicas: Invalid value: -1`.
    pub fn to_text(&self) -> String {
        match self.field.trim_start_matches('.') {
            "" => self.message.clone(),
            field => format!("{field}: {}", self.message),
        }
    }
}

/// Whether the server reports that a field is not in the schema: in server-side apply, or when it decodes strictly.
pub fn is_undeclared(said: &str) -> bool {
    ["field not declared in schema", ": unknown field"].iter().any(|words| said.ends_with(words))
}

/// Whether the server reports that a field of an existing object is immutable, in the words of Kubernetes' update
/// validation.
pub fn is_immutable(said: &str) -> bool {
    ["immutable", "may not change", "may not be changed", "cannot be changed", "cannot change", "updates to "]
        .iter()
        .any(|words| said.contains(words))
}

/// The part of the API server that refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refuser {
    /// The schema of the kind, or the validation of its values.
    Validation,
    /// The schema of a version at which `managedFields` of the live object have an entry, or the lack of that version.
    ManagedFields,
    /// An admission plugin that is built into the server, such as LimitRanger or PodSecurity.
    Admission,
    /// A webhook or a ValidatingAdmissionPolicy.
    Policy,
    /// A webhook could not be called, and its `failurePolicy` is `Fail`.
    FailedWebhook,
    /// A ResourceQuota is exceeded.
    Quota,
    /// The user lacks a permission.
    Authorization,
    /// The object's namespace, or another object that it needs, does not exist.
    Lookup,
    /// Anything else.
    Other,
}

/// Why it is unknown what an object would become if it were written back unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RewriteError {
    /// It could not be converted; the API server's message, sanitized.
    #[error("the object cannot be converted: {0}")]
    Conversion(String),
    /// It was deleted or changed in the meantime.
    #[error("the object was deleted or changed in the meantime")]
    Gone,
    /// The target is not a server.
    #[error("the target is not a server")]
    NotHere,
    /// Anything else: refused, forbidden, unreachable.
    #[error("{0}")]
    Other(Problem),
}
