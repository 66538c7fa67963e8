//! Preflight checks: the interface, the registry, selection and the run.
//!
//! A check reports violations ([`Violation`]); the runner decides their severity (mode, `--warn-only`) and finds their
//! place in the manifests. A check that could not do its work returns [`CouldNotCheck`], which is never a pass.

mod admission_dry_run;
mod api_availability;
mod change_place;
#[cfg(test)]
mod context_for_tests;
mod conversion_webhook;
pub mod crd_upgrade_safety;
pub mod custom;
mod custom_resource_validation;
pub mod deletion_safety;
mod dry_runs;
pub mod entry;
pub mod explain;
mod objects;
#[cfg(feature = "olm")]
pub mod olm;
#[cfg(not(feature = "olm"))]
#[path = "without_olm.rs"]
pub mod olm;
mod olm_release;
mod pair;
pub mod parts_hash;
pub mod permission_validation;
pub mod proofs;
pub mod registry;
mod rule;
pub mod run;
mod server_field;
mod superseded;
mod violation;
pub mod waive;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::join_all;

pub use self::olm_release::OlmReleaseOfRun;
pub use self::violation::{Violation, ViolationSubject};
use gantry_catalog::NamedRelease;
use gantry_cluster::Target;
use gantry_cluster::service::ServiceUrl;
use gantry_core::date::Date;
pub use gantry_core::finding::CouldNotCheck;
use gantry_core::finding::{Coverage, ExtensionEntry, SubscriptionEntry, Suppressed};
use gantry_core::parallel::on_cpu_thread;
use gantry_core::problem::Problem;
use gantry_core::resource::Resource;
use gantry_core::ui::progress::ProgressStage;
use gantry_deploy::plan::refusals::ReportedRefusals;
use gantry_deploy::plan::{ObjectLookup, Plan};
use gantry_olm::content::Catalogs;

/// The beginning of the notice if it is not known what all checks read.
pub const UNKNOWN_LOOKUPS: &str = "rights to what checks read may be missing, as not all of that is known";

/// The input of a check.
pub struct Context<'a> {
    /// What the deploy would do.
    pub plan: &'a Plan,
    /// Where live state is read from. Checks never write to it.
    pub target: &'a Target,
    /// Determines the lookups of all checks of this run.
    pub lookups: &'a (dyn Fn() -> Vec<FindLookups> + Sync),
    /// Determines the lookups that depend on the target.
    pub live_lookups: &'a (dyn Fn() -> Vec<LiveLookups<'a>> + Sync),
    /// Determines the lookups that deletions need.
    pub deletion_lookups: &'a (dyn Fn() -> Vec<ObjectLookup> + Sync),
    /// Whether messages must not contain values of objects, only their types (`--redact`).
    pub redact: bool,
    /// The proofs about the plan's CRDs, shared by the checks of one run.
    pub proofs: Arc<proofs::Proofs>,
    /// The effects on the objects of the plan's CRDs, which are listed once for all checks of one run.
    pub objects: Arc<objects::ObjectSurvey>,
    /// The catalogs of the configuration.
    pub catalogs: Catalogs<'a>,
    /// OLM's objects and the catalogs, read once for all checks of one run.
    pub olm: &'a olm::OlmState<'a>,
    /// The release of OLM v1 that the checks judge for.
    pub olm_release: &'a olm_release::OlmReleaseOfRun<'a>,
    /// The current date in UTC, for expiry dates.
    pub today: Date,
    /// Whether the check runs only because nothing else is configured. What the user may not read for it is then a
    /// notice: a deploy that worked without the check still works.
    pub by_default: bool,
    /// The progress of checks that take long.
    pub stage: &'a ProgressStage,
    /// What the check reports besides its answer.
    pub notices: &'a Notices,
}

impl Context<'_> {
    /// The lookups of all checks of this run, as far as this user's rights allow to determine them.
    ///
    /// # Errors
    /// The run is interrupted.
    pub async fn look_ahead(&self) -> Result<Vec<CheckLookup>, CouldNotCheck> {
        let work = (self.lookups)();
        let found = on_cpu_thread(move || work.into_iter().flat_map(|find| find()).collect()).await;
        let message = "interrupted while determining what the checks need to read";
        let mut found: Vec<CheckLookup> =
            found.ok_or_else(|| CouldNotCheck { message: message.to_owned(), help: None })?;
        for live in join_all((self.live_lookups)()).await {
            match live {
                Ok(live) => found.extend(live),
                Err(problem) => self.notices.add(format!("{}: {}", UNKNOWN_LOOKUPS, problem.message)),
            }
        }
        Ok(found)
    }
}

/// What one check reports besides its answer.
#[derive(Debug, Default)]
pub struct Notices(Mutex<Noticed>);

#[derive(Debug, Default)]
struct Noticed {
    /// Messages for the user that are not findings.
    notices: Vec<Problem>,
    /// The resolution of the plan's ClusterExtensions.
    extensions: Vec<ExtensionEntry>,
    /// What classic OLM installs for the plan's Subscriptions.
    subscriptions: Vec<SubscriptionEntry>,
}

impl Notices {
    /// A message for the user that is no finding and changes no verdict.
    pub fn add(&self, message: impl Into<String>) {
        self.lock().notices.push(Problem::new(message));
    }

    /// Adds what a check that runs by default could not check, because the user may not read it or the target cannot
    /// answer.
    pub(crate) fn not_checked(&self, check: &str, left_out: CouldNotCheck) {
        let problem = Problem::new(format!("{check} did not check everything: {}", left_out.message));
        let problem = left_out.help.into_iter().fold(problem, Problem::help);
        self.lock().notices.push(problem);
    }

    /// Adds the resolution of a ClusterExtension.
    pub fn add_resolution(&self, extension: ExtensionEntry) {
        self.lock().extensions.push(extension);
    }

    /// Adds what classic OLM installs for a Subscription.
    pub fn add_subscription(&self, subscription: SubscriptionEntry) {
        self.lock().subscriptions.push(subscription);
    }

    fn take(&self) -> Noticed {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Noticed> {
        // A panic cannot leave the lists half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request of a check to the target, besides the live objects of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckLookup {
    /// The index in `plan.changes` of the change that needs the lookup.
    pub change: usize,
    /// The resource that is requested.
    pub resource: Resource,
    /// `None` means all namespaces, or a cluster-scoped kind.
    pub namespace: Option<String>,
    /// The name of an object; `None` means any.
    pub name: Option<String>,
    /// The RBAC verb: `get`, `list`, or `patch` for a dry run.
    pub verb: &'static str,
}

impl CheckLookup {
    /// The live object of this name.
    pub fn get(change: usize, resource: Resource, namespace: Option<String>, name: String) -> Self {
        CheckLookup { change, resource, namespace, name: Some(name), verb: "get" }
    }

    /// The content that a Service serves, through the API server's proxy.
    pub(crate) fn get_content(change: usize, url: &ServiceUrl) -> Self {
        CheckLookup::get(change, ServiceUrl::resource(), Some(url.namespace.clone()), url.resource_name())
    }

    /// Every object, in all namespaces.
    pub fn list(change: usize, resource: Resource) -> Self {
        CheckLookup { change, resource, namespace: None, name: None, verb: "list" }
    }
}

/// The result of a check.
#[derive(Debug)]
pub enum CheckResult {
    /// The check did its work.
    Checked {
        /// The violations found, in any order.
        violations: Vec<Violation>,
        /// The parts of the plan that could not be checked. With any of them, the check has not passed.
        unchecked: Vec<CouldNotCheck>,
        /// What was examined, if that is worth reporting.
        coverage: Vec<Coverage>,
        /// How many violations the configuration switches off.
        suppressed: Vec<Suppressed>,
    },
    /// The check did not run, for this reason.
    Skipped(String),
}

impl CheckResult {
    /// The answer of a check without coverage or suppressed violations.
    pub fn checked(violations: Vec<Violation>, unchecked: Vec<CouldNotCheck>) -> Self {
        CheckResult::Checked { violations, unchecked, coverage: Vec::new(), suppressed: Vec::new() }
    }
}

/// The violations that a check has found so far, and what it could not check.
#[derive(Default)]
struct ViolationsFound {
    violations: Vec<Violation>,
    unchecked: Vec<CouldNotCheck>,
}

impl ViolationsFound {
    fn add(&mut self, found: Result<Violation, CouldNotCheck>) {
        match found {
            Ok(violation) => self.violations.push(violation),
            Err(error) => self.unchecked.push(error),
        }
    }

    fn extend(&mut self, other: ViolationsFound) {
        self.violations.extend(other.violations);
        self.unchecked.extend(other.unchecked);
    }
}

impl From<ViolationsFound> for CheckResult {
    fn from(found: ViolationsFound) -> Self {
        CheckResult::checked(found.violations, found.unchecked)
    }
}

/// The answer of [`Check::run`].
pub type CheckFuture<'a> = Pin<Box<dyn Future<Output = Result<CheckResult, CouldNotCheck>> + Send + 'a>>;

/// Determines the lookups of a check; can take more than a second of processor time.
pub type FindLookups = Box<dyn FnOnce() -> Vec<CheckLookup> + Send>;

/// Determines the lookups of a check by asking the target. The error is the reason why they are unknown.
pub type LiveLookups<'a> = Pin<Box<dyn Future<Output = Result<Vec<CheckLookup>, Problem>> + Send + 'a>>;

/// A configured preflight check.
pub trait Check: Send + Sync {
    /// Looks at the plan and reports all violations. The error says that the check could not do its work.
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a>;

    /// The data that the check needs about the objects of changed CRDs, so one pass over them serves all checks.
    fn object_data(&self) -> objects::Wants {
        objects::Wants::default()
    }

    /// Whether the check needs all packages of the catalogs, not only those that ClusterExtensions request.
    fn needs_all_packages(&self) -> bool {
        false
    }

    /// The lookups of the check, so that the rights to them can be checked in advance. Sends no request. CRDs are
    /// compared and proofs are made only by the returned closure, which runs on its own thread.
    fn lookups(&self, _plan: &Plan, _proofs: &Arc<proofs::Proofs>) -> FindLookups {
        Box::new(Vec::new)
    }

    /// The lookups that the check cannot do without because of what the plan deletes.
    fn deletion_lookups(&self, _plan: &Plan) -> Vec<ObjectLookup> {
        Vec::new()
    }

    /// Further lookups of the check, which depend on live objects. Asks the target.
    fn live_lookups<'a>(&'a self, _plan: &'a Plan, _olm: &'a olm::OlmState<'a>) -> LiveLookups<'a> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Whether the check reproduces the output of another tool, which the human report shows too.
    fn reproduces_a_tool(&self) -> bool {
        false
    }

    /// Whether the check needs the live objects. Such a check does not run if some of them cannot be read.
    fn needs_live_objects(&self) -> bool {
        true
    }

    /// What the check reports of what the server will refuse, so that it is not reported twice.
    fn reported_refusals(&self) -> ReportedRefusals {
        ReportedRefusals::default()
    }

    /// The release of OLM v1 that the configuration of the check names.
    fn olm_release(&self) -> Option<NamedRelease> {
        None
    }

    /// Whether the check reads the catalogs of the configuration.
    fn reads_catalogs(&self) -> bool {
        false
    }

    /// Whether the check reports manifests whose kind is not served. If no check does, such manifests end the run.
    fn reports_unserved_kinds(&self) -> bool {
        false
    }
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct PreflightReadme;
