//! What the service account of a ClusterExtension lacks, if the release of OLM v1 installs with it: up to v1.10.
//!
//! Nobody has to act as the account: access reviews tell what it may do.

use std::collections::{BTreeMap, BTreeSet};

use super::held::{ReviewedRights, ScopedRight};
use super::needs::{Need, Right, atom};
use super::roles::{self, Granted, RoleRef};
use super::{installer, missing, requests};
use crate::olm_release::JudgedRelease;
use crate::{Context, Violation};
use gantry_catalog::OlmRelease;
use gantry_core::finding::Severity;
use gantry_core::problem::Problem;
use gantry_core::rbac::{Atom, PolicyRule, rules_for};
use gantry_core::text::{self, sanitize};
use gantry_deploy::plan::planned_bundle::PlannedBundle;

/// The beginning of the help of findings about the identity of the run, which is not the one that lacks these rights.
const OF_IDENTITY: &str = "grant this to the identity that deploys";

/// The rights that the accounts of the bundles lack, except of those bundles that the identity of the run installs.
/// `needs` are all needs of the plan.
pub async fn check(
    context: &Context<'_>,
    needs: &[Need],
    installs: &BTreeMap<usize, String>,
) -> Result<Vec<Violation>, Problem> {
    let (plan, target) = (context.plan, context.target);
    let others = plan.bundles.iter().enumerate().filter(|(index, _)| !installs.contains_key(index));
    let accounts: Vec<(usize, &PlannedBundle, (&str, &str))> =
        others.filter_map(|(index, bundle)| Some((index, bundle, bundle.extension()?.account()?))).collect();
    if accounts.is_empty() {
        return Ok(Vec::new());
    }
    let judged = context.olm_release.get().await;
    if !judged.olm.needs_service_account() && !judged.is_assumed {
        return Ok(Vec::new());
    }
    if !target.access_review(None, &atom("authorization.k8s.io", "subjectaccessreviews", None, "create")).await? {
        let names: BTreeSet<String> = accounts.iter().map(|(.., account)| name_of(*account)).collect();
        context.notices.add(format!(
            "not checked: whether {} may install {}, as OLM v1 up to v1.10 requires: you may not create \
             subjectaccessreviews.authorization.k8s.io; or run the check with --as that service account",
            names.into_iter().collect::<Vec<_>>().join(", "),
            text::count(accounts.len(), "bundle")
        ));
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for (index, bundle, account) in accounts {
        let namespace = bundle.namespace().unwrap_or(account.0);
        let is_role = |need: &&Need| {
            plan.changes[need.change].desired.bundle == Some(index) && !matches!(need.right, Right::Request { .. })
        };
        let mut wanted: Vec<Need> = needs.iter().filter(is_role).cloned().collect();
        wanted.extend(installer::installer_requests(plan, index, namespace)?);
        let (held, roles) = review(context, account, &wanted).await?;
        let violations = missing::required(plan, &wanted, &held, &roles);
        found.extend(reported(violations, bundle, account, judged));
    }
    Ok(found)
}

/// The rights of the account, and those of the roles that are bound.
async fn review(
    context: &Context<'_>,
    account: (&str, &str),
    needs: &[Need],
) -> Result<(ReviewedRights, BTreeMap<RoleRef, Granted>), Problem> {
    let (plan, target) = (context.plan, context.target);
    // The deploy writes these before OLM installs anything.
    let bound = roles::granted_to(plan, account);
    let granting = roles::look_up(plan, target, bound.iter().map(|(_, role)| role.clone()).collect()).await?;
    let mut granted: Vec<(Option<String>, PolicyRule)> = Vec::new();
    for (namespace, role) in &bound {
        if let Some(Ok(Some(rights))) = granting.get(role) {
            granted.extend(rules_for(rights).into_iter().map(|rule| (namespace.clone(), rule)));
        }
    }
    let mut held = ReviewedRights::review_account(target, account, &requests(needs), granted).await?;
    let roles = roles::look_up(plan, target, missing::undecided_roles(needs, &held)).await?;
    let mut of_roles: Vec<ScopedRight> = Vec::new();
    for Need { namespace, right, .. } in needs {
        let rights: Vec<&Atom> = match right {
            Right::WriteRole { escalate, rules, .. } if !held.has(namespace.as_deref(), escalate) => {
                rules.iter().collect()
            }
            Right::WriteBinding { bind, role } if !held.has(namespace.as_deref(), bind) => match roles.get(role) {
                Some(Ok(Some(rights))) => rights.iter().collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        of_roles.extend(rights.into_iter().map(|right| (namespace.clone(), right.clone())));
    }
    held.ask_also(target, &of_roles).await?;
    Ok((held, roles))
}

/// With the account as the one that lacks the rights. If the release is unknown, a single warning.
fn reported(
    violations: Vec<Violation>,
    bundle: &PlannedBundle,
    account: (&str, &str),
    judged: JudgedRelease,
) -> Vec<Violation> {
    let extension = bundle.extension().map_or("", |extension| &extension.name);
    let (account, count) = (name_of(account), violations.len());
    let user = account.clone();
    let to_account = |mut violation: Violation| {
        let (olm, more) = match judged.is_assumed {
            false => (judged.olm.to_string(), String::new()),
            true if count == 1 => ("OLM v1.10 and earlier".to_owned(), String::new()),
            true => ("OLM v1.10 and earlier".to_owned(), format!("; {} more lack", text::count(count - 1, "right"))),
        };
        violation.body.message = format!(
            "{user}, with which {olm} install{} ClusterExtension {}, is {}{more}",
            if judged.is_assumed { "" } else { "s" },
            sanitize(extension),
            violation.body.message
        );
        let instead = format!("grant this to {user}");
        violation.body.help = violation.body.help.replacen(OF_IDENTITY, &instead, 1).replacen(
            "everything that the deploy needs",
            "everything that OLM needs, with -f of the bundle and --as",
            1,
        );
        if judged.is_assumed {
            violation.severity = Severity::Warning;
            violation.may_be_accepted = true;
            violation.body.help = format!(
                "{} ignores the account: say which release the cluster has, with --olm; or {}",
                OlmRelease::NEWEST,
                violation.body.help
            );
        }
        violation
    };
    let shown = if judged.is_assumed { 1 } else { count };
    violations.into_iter().take(shown).map(to_account).collect()
}

fn name_of((namespace, name): (&str, &str)) -> String {
    format!("system:serviceaccount:{}:{}", sanitize(namespace), sanitize(name))
}
