//! Preflight checks: the interface, the registry, selection and the run.
//!
//! A check says what is wrong ([`Violation`]); the runner decides how loud it is (mode, `--warn-only`) and where it
//! stands in the manifests. A check that could not do its work returns [`CouldNotCheck`], which is never a pass.

pub mod crd_upgrade_safety;
pub mod custom_resource_validation;
pub mod explain;
pub mod permission_validation;
pub mod registry;
pub mod rule;
pub mod run;
pub mod waive;

use std::future::Future;
use std::pin::Pin;

use crate::plan::Plan;
use crate::report::{Affected, Breaks, Severity, Verdict, Witness};
use crate::resource::{Resource, Step};
use crate::target::Target;
use crate::ui::progress::Stage;

/// What a check looks at.
pub struct Context<'a> {
    pub plan: &'a Plan,
    pub target: &'a Target,
    /// The name under which the deploy will apply.
    pub field_manager: &'a str,
    /// What all checks of this run look up.
    pub lookups: &'a (dyn Fn() -> Vec<Lookup> + Sync),
    /// No value of an object may be in what the check says, only its kind (`--redact`).
    pub redact: bool,
    /// Where to tell how far a check is that takes long.
    pub stage: &'a Stage,
}

/// What a rule says of one change, before it is placed and weighed.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// Index into `plan.changes`.
    pub change: usize,
    pub rule: &'static str,
    /// How loud the rule is by itself. The runner may turn it down, never up.
    pub severity: Severity,
    pub version: Option<String>,
    /// The schema node, for example `^.spec.pollInterval`.
    pub path: Option<String>,
    pub message: String,
    /// See [`crate::report::Finding::documented`].
    pub documented: Option<String>,
    pub breaks: Vec<Breaks>,
    pub verdict: Option<Verdict>,
    pub witnesses: Vec<Witness>,
    /// The objects that exist and are affected, where the check has looked at them.
    pub affected: Option<Affected>,
    pub help: String,
    /// Where in the desired object to point: the deepest of these steps that is there is marked.
    pub at: Vec<Step>,
    /// What the mark says.
    pub label: Option<String>,
}

/// What a check asks the target for beside the live objects of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// Index into `plan.changes`: what it is done for.
    pub change: usize,
    pub resource: Resource,
    /// `None`: in all namespaces, or of a kind that has none.
    pub namespace: Option<String>,
    /// One object by name; `None`: a list of all.
    pub name: Option<String>,
}

/// Could not check, with the reason: never a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CouldNotCheck {
    pub message: String,
    pub help: Option<String>,
}

/// What a check answers.
#[derive(Debug)]
pub enum Answer {
    /// What it found, and the parts of the plan that it could not check; with any of those it has not passed.
    Checked { violations: Vec<Violation>, unchecked: Vec<CouldNotCheck> },
    /// Not possible on this target, with the reason.
    Skipped(String),
}

pub type CheckFuture<'a> = Pin<Box<dyn Future<Output = Result<Answer, CouldNotCheck>> + Send + 'a>>;

/// A preflight check with its configuration read.
pub trait Check: Send + Sync {
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a>;

    /// What it will look up, so that the right to it can be asked for beforehand. Sends no request.
    fn lookups(&self, _plan: &Plan) -> Vec<Lookup> {
        Vec::new()
    }

    /// Whether it judges what is live. Where some of that cannot be read such a check does not run.
    fn needs_live_objects(&self) -> bool {
        true
    }
}
