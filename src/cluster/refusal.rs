//! Why the API server would not write an object, as it says beforehand.

use super::managers::FieldConflict;
use crate::problem::Problem;
use crate::resource::ObjectRef;

/// Why the server would not write an object, as its dry run says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DryRunError {
    /// The live object is no longer the one that was read.
    Changed,
    /// Other managers own fields that the manifest sets.
    Conflict(Vec<FieldConflict>),
    Refused(Refusal),
    /// No verdict: the server was not reached, or is not able to say beforehand.
    Unanswered {
        problem: Problem,
        /// No other object would fare better.
        everything: bool,
    },
}

/// What the server says of an object that it would refuse. All of it is harmless to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub by: Refuser,
    /// The refusal as a whole, with the next step.
    pub problem: Problem,
    /// What it says of single fields, in the server's order; empty where it speaks of the whole object.
    pub causes: Vec<Cause>,
    /// The object that it misses, as plural and name, where it says so.
    pub missing: Option<(String, String)>,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// As the server writes it: `spec.template.spec.containers[0].image`, `.spec.list[name="a"].x`; empty where it
    /// names none.
    pub field: String,
    pub message: String,
}

/// What to do about a field that cannot change.
pub fn immutable_help(object: &ObjectRef) -> String {
    format!(
        "revert the change, or have the object deleted and created again: kubectl delete {object}, then deploy again, or the \
         annotation gantry.dev/update-strategy: fallback-on-replace"
    )
}

/// Whether the server says of a field that the schema does not have it: in server-side apply, or when it decodes strictly.
pub fn is_undeclared(said: &str) -> bool {
    ["field not declared in schema", ": unknown field"].iter().any(|words| said.ends_with(words))
}

/// Whether the server says of a field that it cannot change once the object is there, in the words of Kubernetes'
/// validations of updates.
pub fn is_immutable(said: &str) -> bool {
    ["immutable", "may not change", "may not be changed", "cannot be changed", "cannot change", "updates to "]
        .iter()
        .any(|words| said.contains(words))
}

/// Which part of the API server refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refuser {
    /// The schema of the kind, or the validation of its values.
    Validation,
    /// A plugin of the server itself, such as LimitRanger or PodSecurity.
    Admission,
    /// A webhook or a ValidatingAdmissionPolicy.
    Policy,
    /// A webhook could not be called, and says that nothing may be written then.
    FailedWebhook,
    Quota,
    /// The user lacks a right.
    Authorization,
    /// The object's namespace, or another object that it needs, is not there.
    Lookup,
    /// Anything else.
    Other,
}

/// Why nobody knows what an object would become when it is written as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewriteError {
    /// It could not be converted; the API server's message, made harmless.
    Conversion(String),
    /// It went away or changed meanwhile.
    Gone,
    /// The target is no server.
    NotHere,
    /// Anything else: refused, forbidden, unreachable.
    Other(Problem),
}
