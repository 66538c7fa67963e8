//! Preflight checks: the interface, the registry, selection and the run.
//!
//! A check says what is wrong ([`Violation`]); the runner decides how loud it is (mode, `--warn-only`) and where it
//! stands in the manifests. A check that could not do its work returns [`CouldNotCheck`], which is never a pass.

pub mod admission_dry_run;
pub mod api_availability;
pub mod crd_upgrade_safety;
pub mod custom_resource_validation;
pub mod explain;
pub mod registry;
pub mod rule;
pub mod run;
pub mod waive;

use std::future::Future;
use std::pin::Pin;

use self::rule::RuleDoc;
use crate::plan::Plan;
use crate::report::{Affected, Breaks, Severity, Verdict, Witness};
use crate::resource::Step;
use crate::target::Target;
use crate::ui::progress::Stage;

/// What a check looks at.
pub struct Context<'a> {
    pub plan: &'a Plan,
    pub target: &'a Target,
    /// The name under which the deploy will apply.
    pub field_manager: &'a str,
    /// Whether the deploy will take fields from other managers.
    pub force_conflicts: bool,
    /// No value of an object may be in what the check says, only its kind (`--redact`).
    pub redact: bool,
    /// Where to tell how far a check is that takes long.
    pub stage: &'a Stage,
}

/// What a rule says of one change, before it is placed and weighed.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// Index into `plan.changes`, and behind its end into `plan.unplaced`: see [`Plan::manifest`].
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

impl Violation {
    /// What a rule says, before anything more is known.
    pub fn of(
        doc: &RuleDoc,
        change: usize,
        version: Option<String>,
        message: String,
        help: String,
        at: Vec<Step>,
    ) -> Self {
        Violation {
            change,
            rule: doc.name,
            severity: doc.severity,
            version,
            path: None,
            message,
            documented: None,
            breaks: doc.breaks.to_vec(),
            verdict: None,
            witnesses: Vec::new(),
            affected: None,
            help: format!("{help}: gantry rules {}", doc.name),
            at,
            label: None,
        }
    }
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

    /// Whether the check tells of manifests whose kind is not served. Without one that does, they end the run.
    fn tells_unplaced(&self) -> bool {
        false
    }
}
