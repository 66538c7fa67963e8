//! `OperatorDependencies`: what operators require of each other, before and after the deploy.
//!
//! Classic OLM guarantees two things: it does not install an operator whose requirements are not met, and it does not
//! install an update that breaks the requirements of another operator. OLM v1 does not resolve dependencies at all.
//! This check covers every known operator: ClusterServiceVersions, Subscriptions and ClusterExtensions, live and among
//! the manifests.
//!
//! ```text
//! nodes before ─┬─► requirements (are all requirements met?)  ─► findings
//! nodes after  ─┘   shared (CRDs with several owners)  ─►
//! ```

mod foretold;
mod nodes;
mod requirements;
mod rules;
mod shared;
mod subscriptions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gantry_catalog::dependency::Api;

use self::nodes::OperatorChanges;
use crate::entry::CheckEntry;
use crate::objects::Wants;
use crate::proofs::Proofs;
use crate::rule::RuleDoc;
use crate::{
    Check, CheckFuture, CheckLookup, CheckResult, Context, CouldNotCheck, FindLookups, Violation, ViolationSubject,
    ViolationsFound,
};
use gantry_cluster::Gvk;
use gantry_core::crd::Crd;
use gantry_core::resource::Resource;
use gantry_deploy::plan::Plan;
use gantry_olm::{cluster_extension, subscription};

pub(crate) const NAME: &str = "OperatorDependencies";

/// The registry's entry of the check.
pub const ENTRY: CheckEntry = CheckEntry::new(
    NAME,
    "the requirements of all operators on each other must be met, before and after the deploy",
    rules::docs,
    |_| Box::new(OperatorDependencies),
);

#[derive(Debug, Clone, Copy)]
struct OperatorDependencies;

impl Check for OperatorDependencies {
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(check(context))
    }

    fn needs_all_packages(&self) -> bool {
        true
    }

    fn object_data(&self) -> Wants {
        Wants { named: true, ..Wants::default() }
    }

    fn lookups(&self, plan: &Plan, _: &Arc<Proofs>) -> FindLookups {
        let found = lookups(plan);
        Box::new(move || found)
    }
}

fn lookups(plan: &Plan) -> Vec<CheckLookup> {
    if plan.changes.is_empty() {
        return Vec::new();
    }
    let of = |group: &str, version: &str, kind: &str, plural: &str, namespaced| Resource {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: plural.into(),
        namespaced,
    };
    let classic = |kind, plural| of("operators.coreos.com", "v1alpha1", kind, plural, true);
    let is_asked = plan.changes.iter().any(|change| cluster_extension::is_one(&change.desired.object));
    let mut found = vec![
        CheckLookup::list(0, classic("ClusterServiceVersion", "clusterserviceversions")),
        CheckLookup::list(0, classic("Subscription", "subscriptions")),
    ];
    if plan.changes.iter().any(|change| subscription::is_one(&change.desired.object)) {
        found.push(CheckLookup::list(0, classic("CatalogSource", "catalogsources")));
        found.push(CheckLookup::list(0, of("operators.coreos.com", "v1", "OperatorGroup", "operatorgroups", true)));
    }
    found.extend(is_asked.then(|| CheckLookup::list(0, cluster_extension::resource("v1"))));
    found
}

async fn check(context: Context<'_>) -> Result<CheckResult, CouldNotCheck> {
    let contents = context.olm.contents(&context).await?;
    let mut nodes = nodes::collect(&context, contents).await?;
    let mut found = ViolationsFound {
        violations: std::mem::take(&mut nodes.unresolved),
        unchecked: std::mem::take(&mut nodes.unchecked),
    };
    let sources = nodes.sources.as_deref().unwrap_or_default();
    found.extend(subscriptions::check(&nodes.planned, &nodes.before, &nodes.subscriptions, sources, &context).await);
    if nodes.after.is_empty() {
        return Ok(found.into());
    }
    let served = ServedApis::look_up(&nodes, &context).await?;
    found.extend(requirements::check(&nodes, &served, contents));
    found.extend(shared::check(&nodes, &context).await);
    Ok(found.into())
}

/// The required APIs that are served after the deploy.
#[derive(Debug, Default)]
pub(crate) struct ServedApis {
    apis: BTreeSet<Api>,
    /// The APIs that a CRD of the manifests stops serving, with the index of its change.
    dropped: BTreeMap<Api, usize>,
}

impl ServedApis {
    async fn look_up(nodes: &OperatorChanges, context: &Context<'_>) -> Result<ServedApis, CouldNotCheck> {
        let required = nodes.after.iter().flat_map(|node| &node.requires).flat_map(|requirement| requirement.apis());
        let required: BTreeSet<&Api> = required.collect();
        let kind = |api: &&Api| Gvk { group: api.group.clone(), version: api.version.clone(), kind: api.kind.clone() };
        let kinds: BTreeSet<Gvk> = required.iter().map(kind).collect();
        let discovered = context.target.discover(&kinds).await.map_err(|error| {
            let problem = error.problems().first();
            let message = problem.map_or("no reason given", |problem| problem.message.as_str());
            CouldNotCheck {
                message: format!("it is unknown which APIs the target serves: {message}"),
                help: problem.and_then(|problem| problem.help.clone()),
            }
        })?;
        let api =
            |kind: &Gvk| Api { group: kind.group.clone(), version: kind.version.clone(), kind: kind.kind.clone() };
        let mut served = ServedApis { apis: discovered.served.keys().map(api).collect(), ..ServedApis::default() };
        for (index, change) in context.plan.changes.iter().enumerate() {
            let Some(sides) = change.crd() else { continue };
            let Some(desired) = sides.defined() else { continue };
            let desired = apis(desired);
            let live = sides.readable_live().map(|live| apis(live)).unwrap_or_default();
            for api in live.difference(&desired) {
                served.apis.remove(api);
                served.dropped.insert(api.clone(), index);
            }
            served.apis.extend(desired);
        }
        Ok(served)
    }

    fn has(&self, api: &Api) -> bool {
        self.apis.contains(api)
    }

    /// The index of the change that stops serving the API.
    fn drops(&self, api: &Api) -> Option<usize> {
        self.dropped.get(api).copied()
    }
}

/// The APIs that a CRD serves.
fn apis(crd: &Crd) -> BTreeSet<Api> {
    let of = |resource: Resource| Api { group: resource.group, version: resource.version, kind: resource.kind };
    crd.served_versions().map(|version| of(crd.resource(&version.name))).collect()
}

fn violation(doc: &RuleDoc, subject: impl Into<ViolationSubject>, message: String, help: String) -> Violation {
    Violation::new(doc, subject, None, message, help, Vec::new())
}
