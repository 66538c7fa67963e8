//! `PermissionValidation`: may the deploying identity send every request of this deploy? It is checked before the first
//! request is sent.
//!
//! ```text
//! plan ─► needs ─► held (the rights of the user, from the server) ─► missing ─► findings
//!           └─► roles (the rights that bindings grant)                   └─► grant (as manifests)
//! ```
//!
//! `gantry permissions` prints the same needs as the minimal RBAC rules for the whole deploy.

mod account;
mod grant;
mod held;
mod installer;
mod missing;
mod needs;
mod policies;
mod roles;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use self::grant::{Grants, RbacSubject, scalar};
use self::held::{ReviewedRights, ScopedRight};
pub use self::installer::{InstallerRights, installer_rights};
pub use self::needs::{Need, Right, RightsOccasion, of_logs, of_waiting};
use super::entry::CheckEntry;
use super::{Check, CheckFuture, CheckLookup, CheckResult, Context, CouldNotCheck};
use gantry_cluster::Target;
use gantry_core::problem::Problem;
use gantry_core::rbac::Atom;
use gantry_deploy::plan::planned_bundle::PlannedBundle;
use gantry_deploy::plan::{ObjectLookup, Plan};
use gantry_olm::cluster_extension::{self, Extension};

/// The name of the check.
pub const NAME: &str = "PermissionValidation";

pub(crate) const ENTRY: CheckEntry = CheckEntry {
    configure: |reader| {
        // The same rights are found with either, and which requests are cheaper depends on the deploy.
        let about = "as in kapp, and without effect: gantry itself chooses which of the two it sends";
        let known = [("SelfSubjectAccessReview", ()), ("SelfSubjectRulesReview", ())];
        reader.choice("permissionValidatorResource", about, &known, ());
    },
    refusals: rules::REFUSALS,
    ..CheckEntry::new(
        NAME,
        "the deploying identity must be allowed to make every request of the deploy",
        rules::docs,
        |_| Box::new(PermissionValidation),
    )
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct PermissionValidation;

impl Check for PermissionValidation {
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(check(context))
    }

    fn needs_live_objects(&self) -> bool {
        false
    }
}

/// Every right that the plan needs, and that the checks need for these lookups.
///
/// # Errors
/// The target does not answer which parameters a policy has.
pub async fn needs_of(
    plan: &Plan,
    target: &Target,
    lookups: &[CheckLookup],
    occasion: RightsOccasion,
) -> Result<Vec<Need>, Problem> {
    let mut needs = needs::list_needs(plan, lookups, occasion);
    needs.extend(policies::parameter_needs(plan, target, occasion).await?);
    Ok(needs)
}

async fn check(context: Context<'_>) -> Result<CheckResult, CouldNotCheck> {
    let (plan, target) = (context.plan, context.target);
    if !target.is_server() {
        let reason = format!("a {} has no users, so there are no permissions to check", target.noun());
        return Ok(CheckResult::Skipped(reason));
    }
    let lookups = context.look_ahead().await?;
    let mut needs = needs_of(plan, target, &lookups, RightsOccasion::Now).await.map_err(not_reviewed)?;
    let installs = installs(plan, target).await;
    let of_accounts = account::check(&context, &needs, &installs).await.map_err(not_reviewed)?;
    needs.retain(|need| !is_left_to_olm(plan, need, &installs) && !is_extension_of_installer(plan, need, &installs));
    // The list of what OLM needs contains the requests of the plan, and more.
    let is_listed = |need: &Need| {
        let bundle = plan.changes[need.change].desired.bundle;
        matches!(need.right, Right::Request { .. }) && bundle.is_some_and(|bundle| installs.contains_key(&bundle))
    };
    needs.retain(|need| !is_listed(need));
    for (bundle, namespace) in &installs {
        needs.extend(installer::installer_requests(plan, *bundle, namespace).map_err(not_reviewed)?);
    }
    let waiting = if plan.policy.waits { of_waiting(plan, RightsOccasion::Now) } else { Vec::new() };
    let logs = if plan.policy.shows_logs { of_logs(plan, RightsOccasion::Now) } else { Vec::new() };
    let others: Vec<ObjectLookup> = [(context.deletion_lookups)(), plan.lookups.clone()].concat();
    let of_others = others.iter().map(|lookup| (lookup.namespace.clone(), atom_of(lookup))).collect();
    let asked = [requests(&needs), requests(&waiting), requests(&logs), of_others].concat();
    let held = ReviewedRights::review(target, &asked).await.map_err(not_reviewed)?;
    let roles = roles::look_up(plan, target, missing::undecided_roles(&needs, &held)).await;
    let roles = roles.map_err(not_reviewed)?;

    let mut violations = missing::required(plan, &needs, &held, &roles);
    violations.extend(missing::waiting(plan, &waiting, &held));
    violations.extend(missing::logs(plan, &logs, &held));
    violations.extend(missing::violations_of_lookups(plan, &others, &held));
    violations.extend(of_accounts);
    Ok(CheckResult::checked(violations, Vec::new()))
}

/// The bundles of the plan that the identity of this run installs, with the namespace. It is the service account that
/// their ClusterExtension names. If there is no such name, it is any service account that the run was told to act as.
async fn installs(plan: &Plan, target: &Target) -> BTreeMap<usize, String> {
    if plan.bundles.is_empty() {
        return BTreeMap::new();
    }
    let Some(Ok(user)) = target.user().await else { return BTreeMap::new() };
    let Ok(RbacSubject::ServiceAccount { namespace, name }) = RbacSubject::user(&user) else { return BTreeMap::new() };
    let is_user = |bundle: &PlannedBundle| match bundle.extension().and_then(Extension::account) {
        Some(account) => account == (&*namespace, &*name),
        None => target.impersonated() == Some(&user),
    };
    let bundles = plan.bundles.iter().enumerate().filter(|(_, bundle)| is_user(bundle));
    bundles.map(|(index, bundle)| (index, bundle.namespace().unwrap_or(&namespace).to_owned())).collect()
}

/// Whether it is a right to write an object that OLM writes with its own rights.
fn is_left_to_olm(plan: &Plan, need: &Need, installs: &BTreeMap<usize, String>) -> bool {
    let of_olm = |bundle: usize| !installs.contains_key(&bundle);
    let reads = match &need.right {
        Right::Request { atom: Atom::Resource { verb, .. }, .. } => matches!(verb.as_str(), "get" | "list" | "watch"),
        Right::Request { .. } => true,
        Right::WriteRole { .. } | Right::WriteBinding { .. } => false,
    };
    !reads && plan.changes[need.change].desired.bundle.is_some_and(of_olm)
}

/// Whether it is a right to the ClusterExtension that names the account of this run: somebody else deploys it.
fn is_extension_of_installer(plan: &Plan, need: &Need, installs: &BTreeMap<usize, String>) -> bool {
    let object = &plan.changes[need.change].desired.object;
    let is_its = |extension: &Extension| extension.name == object.name && extension.account().is_some();
    cluster_extension::is_one(object)
        && installs.keys().any(|bundle| plan.bundles[*bundle].extension().is_some_and(is_its))
}

/// The rights to check first: those of each request, and `escalate` and `bind`, which suffice for any role or binding.
fn requests(needs: &[Need]) -> Vec<ScopedRight> {
    let atom = |need: &Need| match &need.right {
        Right::Request { atom, .. }
        | Right::WriteRole { escalate: atom, .. }
        | Right::WriteBinding { bind: atom, .. } => atom.clone(),
    };
    needs.iter().map(|need| (need.namespace.clone(), atom(need))).collect()
}

fn atom_of(lookup: &ObjectLookup) -> Atom {
    needs::atom(&lookup.resource.group, &lookup.resource.plural, lookup.name.as_deref(), lookup.verb)
}

fn not_reviewed(problem: Problem) -> CouldNotCheck {
    let Problem { message, help, .. } = problem;
    CouldNotCheck { message: format!("the API server does not report what is permitted: {message}"), help }
}
