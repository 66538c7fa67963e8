//! `DeletionSafety`: which data, objects and services are lost with the objects that a deploy of an app deletes.
//!
//! It runs whenever an app is deployed or deleted, or an object may be replaced, and checks only the objects that are
//! deleted. If it cannot read something, the result is "could not check", and nothing is deleted.

mod changed;
mod crds;
mod finalizers;
mod lookups;
mod namespaces;
mod needed;
mod rules;
mod services;
mod volumes;

pub use self::lookups::of_object as lookups_of;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::entry::CheckEntry;
use super::rule::RuleDoc;
use super::{Check, CheckFuture, CheckResult, Context, CouldNotCheck, Violation, ViolationSubject, ViolationsFound};
use gantry_cluster::{ListError, ListRequest, ObjectToRead, Target};
use gantry_core::finding::Action;
use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, RawObject, Resource};
use gantry_core::text::sanitize;
use gantry_deploy::plan::removal::Removal;
use gantry_deploy::plan::{Deleter, ObjectLookup, Plan};

pub(crate) const NAME: &str = "DeletionSafety";

/// The registry's entry of the check.
pub const ENTRY: CheckEntry = CheckEntry {
    guards_deletions: true,
    ..CheckEntry::new(
        NAME,
        "deleting objects of an app must not delete data or other objects, or break services",
        rules::docs,
        |_| Box::new(DeletionSafety),
    )
};

/// The page size of lists.
const PAGE: u32 = 500;
/// The maximum number of objects that a message names.
const EXAMPLES: usize = 3;

#[derive(Debug, Clone, Copy)]
pub(crate) struct DeletionSafety;

impl Check for DeletionSafety {
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(check(context))
    }

    fn needs_live_objects(&self) -> bool {
        false
    }

    fn deletion_lookups(&self, plan: &Plan) -> Vec<ObjectLookup> {
        lookups::list_lookups(plan)
    }
}

async fn check(context: Context<'_>) -> Result<CheckResult, CouldNotCheck> {
    let Context { plan, target, .. } = context;
    // The contents of an object are lost even if it is created again.
    let deletions = Deletions::new(plan.deleted(), target, plan.policy.deleter);
    let mut found = ViolationsFound::default();
    found.extend(crds::check(&deletions, plan.policy.ignores_failing_apis, context.notices).await);
    found.extend(crds::dropped(&deletions, plan).await);
    found.extend(namespaces::check(&deletions, plan.policy.ignores_failing_apis, context.notices).await);
    found.extend(volumes::check(&deletions).await);
    let removed = plan.removals.iter().filter(|removal| removal.action == Action::Delete);
    let removed = Deletions::new(removed, target, plan.policy.deleter);
    found.violations.extend(changed::check(&removed, &context.plan.policy.field_manager));
    found.extend(services::check(&removed).await);
    found.extend(needed::check(&removed, context.notices).await);
    found.extend(finalizers::check(&removed, plan).await);
    Ok(found.into())
}

/// The objects that a deploy deletes, and the target in which to search for what is lost with them.
struct Deletions<'a> {
    target: &'a Target,
    deleter: Deleter,
    deleted: Vec<&'a Removal>,
    /// Group, kind, namespace and name of all of them.
    identities: BTreeSet<(&'a str, &'a str, Option<&'a str>, &'a str)>,
}

impl<'a> Deletions<'a> {
    fn new(deleted: impl Iterator<Item = &'a Removal>, target: &'a Target, deleter: Deleter) -> Self {
        let deleted: Vec<&Removal> = deleted.collect();
        let identities = deleted.iter().map(|removal| removal.object.identity()).collect();
        Deletions { target, deleter, deleted, identities }
    }

    /// Advice on how to delete nothing.
    fn without_deleting(&self) -> &'static str {
        match self.deleter {
            Deleter::AppDelete => {
                "keep all objects and delete the record alone: gantry apps forget -a APP -n NAMESPACE"
            }
            Deleter::Deploy => "deploy without deleting: --prune=no",
            Deleter::Helm => "leave the objects in the chart",
        }
    }

    /// Advice on how to keep one object.
    fn keeping(&self) -> &'static str {
        match self.deleter {
            Deleter::AppDelete => "the annotation gantry.dev/prune: keep",
            Deleter::Deploy => "--prune=no, or the annotation gantry.dev/prune: keep",
            Deleter::Helm => "in the chart, or the annotation helm.sh/resource-policy: keep",
        }
    }

    fn unread(&self, problem: Option<&Problem>, what: &str) -> CouldNotCheck {
        let message = problem.map_or("the list expired again and again", |problem| problem.message.as_str());
        let message = format!("it is unknown what else the deletion would delete: {what}: {message}");
        let others = problem.and_then(|problem| problem.help.as_ref()).map(|help| format!("{help}; or "));
        CouldNotCheck { message, help: Some(format!("{}{}", others.unwrap_or_default(), self.without_deleting())) }
    }

    /// The APIServices of aggregated APIs that do not answer. What they store is unknown, and no namespace deletion
    /// finishes until they answer.
    async fn failing(&self) -> Result<Vec<String>, CouldNotCheck> {
        let gather = |names: &mut Vec<String>, json: &str| {
            let Ok(object) = serde_json::from_str::<Value>(json) else { return };
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let is_available = conditions
                .filter(|condition| condition["type"] == "Available")
                .any(|condition| condition["status"] == "True");
            if object["spec"]["service"].is_object() && !is_available {
                names.extend(object["metadata"]["name"].as_str().map(|name| sanitize(name).into_owned()));
            }
        };
        let resource = Resource::built_in("apiregistration.k8s.io", "APIService", "apiservices", false);
        Ok(self.list(&resource, None, gather).await?.unwrap_or_default())
    }

    /// The deleted objects of one kind.
    fn of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = &'a Removal> {
        let is_one = |removal: &&&Removal| removal.object.group() == group && removal.object.kind == kind;
        self.deleted.iter().filter(is_one).copied().collect::<Vec<_>>().into_iter()
    }

    fn is_deleted(&self, group: &str, kind: &str, namespace: Option<&str>, name: &str) -> bool {
        self.identities.contains(&(group, kind, namespace, name))
    }

    /// The live object; `None` if it no longer exists.
    async fn read(
        &self,
        resource: &Arc<Resource>,
        object: &Arc<ObjectRef>,
    ) -> Result<Option<RawObject>, CouldNotCheck> {
        let wanted = ObjectToRead { resource: resource.clone(), object: object.clone() };
        let read = self.target.read(&[wanted], &|_, _| ()).await;
        let read = read.map_err(|error| self.unread(error.problems().first(), &object.to_string()))?;
        Ok(read.into_iter().flatten().next().map(|live| live.raw))
    }

    /// All objects of a resource, as collected by `look`; `None` if the resource is not served.
    async fn list<T: Default>(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        look: impl Fn(&mut T, &str),
    ) -> Result<Option<T>, CouldNotCheck> {
        let request = ListRequest { namespace, ..ListRequest::new(resource, PAGE) };
        match self.target.list(&request).gather(look).await {
            Ok(found) => Ok(Some(found)),
            Err(ListError::NotServed(_)) => Ok(None),
            Err(error) => Err(self.unread(error.problem(), &resource.plural)),
        }
    }
}

fn violation(doc: &RuleDoc, removal: &Removal, message: String, help: String) -> Violation {
    Violation::new(doc, ViolationSubject::Object((*removal.object).clone()), None, message, help, Vec::new())
}

/// The name, namespace and owners of an object.
#[derive(Deserialize)]
struct OwnedObjectName {
    metadata: DeletionMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeletionMetadata {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    owner_references: Option<Vec<Value>>,
}

/// `a, b, c and 4 more`
fn list_some(names: &[String]) -> String {
    let shown = names.iter().take(EXAMPLES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(EXAMPLES).filter(|more| *more > 0) {
        Some(more) => format!("{shown} and {more} more"),
        None => shown,
    }
}
