//! Preflight checks: the interface, the registry, selection and the run.
//!
//! A check says what is wrong ([`Violation`]); the runner decides how loud it is (mode, `--warn-only`) and where it
//! is in the manifests. A check that could not do its work returns [`CouldNotCheck`], which is never a pass.

pub mod admission_dry_run;
pub mod api_availability;
pub mod conversion_webhook;
pub mod crd_upgrade_safety;
pub mod custom;
pub mod custom_resource_validation;
pub mod deletion_safety;
pub mod entry;
pub mod explain;
pub mod extension_resolution;
pub mod objects;
pub mod olm;
pub mod operator_dependencies;
mod pair;
pub mod permission_validation;
pub mod proofs;
pub mod registry;
pub mod rule;
pub mod run;
mod superseded;
pub mod waive;

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::join_all;

use self::rule::RuleDoc;
use crate::catalog::Catalogs;
use crate::cluster::Target;
use crate::cluster::service::ServiceUrl;
use crate::date::Date;
use crate::finding::{
    Affected, Breaks, Complaint, Coverage, Evidence, ExtensionEntry, ForVersions, KeywordChange, Severity, Suppressed,
    Verdict, Witness,
};
use crate::parallel::apart;
use crate::plan::{ObjectLookup, Plan};
use crate::problem::Problem;
use crate::resource::{ObjectRef, Resource, Step};
use crate::ui::progress::Stage;

/// What to say where nobody knows all that the checks read.
pub const UNKNOWN_LOOKUPS: &str = "rights to what checks read may be missing, as not all of that is known";

/// What a check looks at.
pub struct Context<'a> {
    pub plan: &'a Plan,
    pub target: &'a Target,
    /// The name under which the deploy will apply.
    pub field_manager: &'a str,
    /// What finds out what all checks of this run look up.
    pub lookups: &'a (dyn Fn() -> Vec<FindLookups> + Sync),
    /// The same where the target has to be asked.
    pub live_lookups: &'a (dyn Fn() -> Vec<LiveLookups<'a>> + Sync),
    /// What they look up because of what is deleted.
    pub deletion_lookups: &'a (dyn Fn() -> Vec<ObjectLookup> + Sync),
    /// Whether the deploy will take fields from other managers.
    pub force_conflicts: bool,
    /// No value of an object may be in what the check says, only its kind (`--redact`).
    pub redact: bool,
    /// What is proven of the plan's CRDs, shared by the checks of one run.
    pub proofs: Arc<proofs::Proofs>,
    /// What becomes of the objects of the plan's CRDs, listed once for all checks of one run.
    pub objects: Arc<objects::Objects>,
    /// The catalogs of the configuration.
    pub catalogs: Catalogs<'a>,
    /// OLM's objects and the catalogs, read once for all checks of one run.
    pub olm: &'a olm::Olm<'a>,
    /// In UTC: what expires is measured by it.
    pub today: Date,
    /// Where to report how far a check is that takes long.
    pub stage: &'a Stage,
    /// What it has to report beside its answer.
    pub notices: &'a Notices,
}

impl Context<'_> {
    /// What all checks of this run look up, as far as this user may know.
    ///
    /// # Errors
    /// The run ends before it is found out.
    pub async fn look_ahead(&self) -> Result<Vec<Lookup>, CouldNotCheck> {
        let work = (self.lookups)();
        let found = apart(move || work.into_iter().flat_map(|find| find()).collect()).await;
        let message = "interrupted while determining what the checks need to read";
        let mut found: Vec<Lookup> = found.ok_or_else(|| CouldNotCheck { message: message.to_owned(), help: None })?;
        for live in join_all((self.live_lookups)()).await {
            match live {
                Ok(live) => found.extend(live),
                Err(problem) => self.notices.add(format!("{}: {}", UNKNOWN_LOOKUPS, problem.message)),
            }
        }
        Ok(found)
    }
}

/// What one check has to say beside its answer.
#[derive(Debug, Default)]
pub struct Notices(Mutex<Told>);

/// What the checks have reported.
#[derive(Debug, Default)]
struct Told {
    /// What the user should hear of and what is no finding.
    notices: Vec<Problem>,
    /// What becomes of the ClusterExtensions of the plan.
    extensions: Vec<ExtensionEntry>,
}

impl Notices {
    pub fn add(&self, message: impl Into<String>) {
        self.lock().notices.push(Problem::new(message));
    }

    /// Says what becomes of a ClusterExtension.
    pub fn resolved(&self, extension: ExtensionEntry) {
        self.lock().extensions.push(extension);
    }

    fn take(&self) -> Told {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        // The lists are whole whatever happened to the one who added to them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a violation is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A change of the plan, by its index in `plan.changes`.
    Change(usize),
    /// A manifest of a kind that nobody serves, by its index in `plan.unplaced`.
    Unplaced(usize),
    /// The ClusterServiceVersion of a bundle, by the index of the bundle in `plan.bundles`.
    Bundle(usize),
    /// An object that the plan does not hold.
    Object(ObjectRef),
    /// No single object.
    Plan,
}

impl From<usize> for Subject {
    fn from(change: usize) -> Self {
        Subject::Change(change)
    }
}

/// What a rule says of one change, before it is placed and weighed.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    pub subject: Subject,
    pub rule: Cow<'static, str>,
    /// How loud the rule is by itself. The runner may turn it down, never up.
    pub severity: Severity,
    pub version: Option<String>,
    /// The schema node, for example `^.spec.pollInterval`.
    pub path: Option<String>,
    pub message: String,
    /// See [`crate::finding::Finding::fact`].
    pub fact: Option<String>,
    /// See [`crate::finding::Finding::schema_changes`].
    pub schema_changes: Vec<KeywordChange>,
    /// See [`crate::finding::Finding::complaint`].
    pub complaint: Option<Complaint>,
    /// See [`crate::finding::Finding::documented`].
    pub documented: Option<String>,
    pub breaks: Vec<Breaks>,
    pub verdict: Option<Verdict>,
    /// See [`crate::finding::Finding::semantic`].
    pub semantic: Option<Severity>,
    pub witnesses: Vec<Witness>,
    /// The objects that exist and are affected, where the check has looked at them.
    pub affected: Option<Affected>,
    /// See [`crate::finding::Finding::evidence`].
    pub evidence: Option<Evidence>,
    pub help: String,
    /// See [`crate::finding::Finding::wording`].
    pub wording: Option<ForVersions>,
    /// See [`crate::finding::Finding::explain`].
    pub explain: Option<Cow<'static, str>>,
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
    /// One object; `None`: any.
    pub name: Option<String>,
    /// What is asked, as RBAC has it: `get`, `list`, or `patch` for a dry run.
    pub verb: &'static str,
}

impl Lookup {
    /// The live object of this name.
    pub fn get(change: usize, resource: Resource, namespace: Option<String>, name: String) -> Self {
        Lookup { change, resource, namespace, name: Some(name), verb: "get" }
    }

    /// What a Service serves, through the API server.
    pub fn get_content(change: usize, url: &ServiceUrl) -> Self {
        Lookup::get(change, ServiceUrl::resource(), Some(url.namespace.clone()), url.resource_name())
    }

    /// Every object, in all namespaces.
    pub fn list(change: usize, resource: Resource) -> Self {
        Lookup { change, resource, namespace: None, name: None, verb: "list" }
    }
}

impl Violation {
    /// What a rule says, before anything more is known.
    pub fn of(
        doc: &RuleDoc,
        subject: impl Into<Subject>,
        version: Option<String>,
        message: String,
        help: String,
        at: Vec<Step>,
    ) -> Self {
        Violation {
            subject: subject.into(),
            rule: doc.name.into(),
            severity: doc.severity,
            version,
            path: None,
            message,
            fact: None,
            schema_changes: Vec::new(),
            complaint: None,
            documented: None,
            breaks: doc.breaks.to_vec(),
            verdict: None,
            semantic: None,
            witnesses: Vec::new(),
            affected: None,
            evidence: None,
            help,
            wording: None,
            explain: Some(doc.name.into()),
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

impl From<Problem> for CouldNotCheck {
    fn from(problem: Problem) -> Self {
        CouldNotCheck { message: problem.message, help: problem.help }
    }
}

/// What a check answers.
#[derive(Debug)]
pub enum Answer {
    /// What it found, and the parts of the plan that it could not check; with any of those it has not passed.
    /// `coverage` is what it looked at, where that is worth telling; `suppressed` is what the configuration switches off.
    Checked {
        violations: Vec<Violation>,
        unchecked: Vec<CouldNotCheck>,
        coverage: Vec<Coverage>,
        suppressed: Vec<Suppressed>,
    },
    /// Not possible on this target, with the reason.
    Skipped(String),
}

impl Answer {
    /// What a check found that has no more to report of what it looked at.
    pub fn checked(violations: Vec<Violation>, unchecked: Vec<CouldNotCheck>) -> Self {
        Answer::Checked { violations, unchecked, coverage: Vec::new(), suppressed: Vec::new() }
    }
}

/// What a check has found so far, and what it could not look at.
#[derive(Default)]
struct Found {
    violations: Vec<Violation>,
    unchecked: Vec<CouldNotCheck>,
}

impl Found {
    fn add(&mut self, found: Result<Violation, CouldNotCheck>) {
        match found {
            Ok(violation) => self.violations.push(violation),
            Err(error) => self.unchecked.push(error),
        }
    }

    fn extend(&mut self, other: Found) {
        self.violations.extend(other.violations);
        self.unchecked.extend(other.unchecked);
    }
}

impl From<Found> for Answer {
    fn from(found: Found) -> Self {
        Answer::checked(found.violations, found.unchecked)
    }
}

pub type CheckFuture<'a> = Pin<Box<dyn Future<Output = Result<Answer, CouldNotCheck>> + Send + 'a>>;

/// Finds out what a check will look up; may take a second of processor time and more.
pub type FindLookups = Box<dyn FnOnce() -> Vec<Lookup> + Send>;

/// Asks the target what a check will look up. The error is why nobody knows.
pub type LiveLookups<'a> = Pin<Box<dyn Future<Output = Result<Vec<Lookup>, Problem>> + Send + 'a>>;

/// A preflight check with its configuration read.
pub trait Check: Send + Sync {
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a>;

    /// What it wants of the objects of CRDs that change, so that one pass over them does for all checks.
    fn wants(&self) -> objects::Wants {
        objects::Wants::default()
    }

    /// Whether it looks at all packages of the catalogs, and not only at those that are asked for.
    fn looks_at_all_packages(&self) -> bool {
        false
    }

    /// What it will look up, so that the right to it can be asked for beforehand. Sends no request. To compare CRDs and to
    /// prove something of them is left to the work that is returned: it is done on a thread of its own.
    fn lookups(&self, _plan: &Plan, _proofs: &Arc<proofs::Proofs>) -> FindLookups {
        Box::new(Vec::new)
    }

    /// What it will look up because of what the plan deletes, and cannot do without.
    fn deletion_lookups(&self, _plan: &Plan) -> Vec<ObjectLookup> {
        Vec::new()
    }

    /// What else it will look up, where what is live says what that is. Asks the target.
    fn live_lookups<'a>(&'a self, _plan: &'a Plan, _olm: &'a olm::Olm<'a>) -> LiveLookups<'a> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Whether it speaks in the words of another tool, which people at a terminal want to see too.
    fn speaks_for_a_tool(&self) -> bool {
        false
    }

    /// Whether it judges what is live. Where some of that cannot be read such a check does not run.
    fn needs_live_objects(&self) -> bool {
        true
    }

    /// Whether the check reports manifests whose kind is not served. Without one that does, they end the run.
    fn tells_unplaced(&self) -> bool {
        false
    }
}
