//! `DeletionSafety`: what a deploy of an app deletes, and what goes or breaks with it.
//!
//! It runs whenever an app is deployed or deleted, or an object may be replaced, and looks only at what is deleted. What cannot be looked at is "could
//! not check", and nothing is deleted then.

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
use super::{Answer, Check, CheckFuture, Context, CouldNotCheck, Found, Subject, Violation};
use crate::cluster::{ListError, ListRequest, Target, Wanted};
use crate::finding::Action;
use crate::plan::removal::Removal;
use crate::plan::{ObjectLookup, Plan};
use crate::problem::Problem;
use crate::resource::{ObjectRef, RawObject, Resource};

pub const NAME: &str = "DeletionSafety";

pub const ENTRY: CheckEntry = CheckEntry {
    name: NAME,
    summary: "what leaves an app must not take data, other objects or services with it",
    docs: "docs/checks/DeletionSafety.md",
    rules: rules::docs,
    names: || rules::docs().into_iter().map(|rule| rule.name).collect(),
    configure: |_| {},
    build: |_| Box::new(DeletionSafety),
    supersedes: &[],
    field_conflicts: None,
    documented: |_, _| Vec::new(),
};

/// Objects on one page.
const PAGE: u32 = 500;
/// So many objects are named as examples.
const EXAMPLES: usize = 3;

#[derive(Debug, Clone, Copy)]
pub struct DeletionSafety;

impl Check for DeletionSafety {
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(check(context))
    }

    fn needs_live_objects(&self) -> bool {
        false
    }

    fn deletion_lookups(&self, plan: &Plan) -> Vec<ObjectLookup> {
        lookups::of(plan)
    }
}

async fn check(context: Context<'_>) -> Result<Answer, CouldNotCheck> {
    let Context { plan, target, .. } = context;
    // What an object holds is lost also where it is created again.
    let looking = Looking::new(plan.deleted(), target, plan.deletes_app);
    let mut found = Found::default();
    found.extend(crds::check(&looking).await);
    found.extend(namespaces::check(&looking, plan.ignores_failing_apis, context.notices).await);
    found.extend(volumes::check(&looking).await);
    let leaving = plan.removals.iter().filter(|removal| removal.action == Action::Delete);
    let leaving = Looking::new(leaving, target, plan.deletes_app);
    found.violations.extend(changed::check(&leaving, context.field_manager));
    found.extend(services::check(&leaving).await);
    found.extend(needed::check(&leaving, context.notices).await);
    found.extend(finalizers::check(&leaving, plan).await);
    Ok(found.into())
}

/// What is deleted, and where to look for what goes with it.
struct Looking<'a> {
    target: &'a Target,
    /// See [`Plan::deletes_app`].
    deletes_app: bool,
    deleted: Vec<&'a Removal>,
    /// Group, kind, namespace and name of all of these.
    identities: BTreeSet<(&'a str, &'a str, Option<&'a str>, &'a str)>,
}

impl<'a> Looking<'a> {
    fn new(deleted: impl Iterator<Item = &'a Removal>, target: &'a Target, deletes_app: bool) -> Self {
        let deleted: Vec<&Removal> = deleted.collect();
        let identities = deleted.iter().map(|removal| removal.object.identity()).collect();
        Looking { target, deletes_app, deleted, identities }
    }

    /// How to delete nothing.
    fn without_deleting(&self) -> &'static str {
        match self.deletes_app {
            true => "keep all objects and delete the record alone: gantry apps forget",
            false => "deploy without deleting: --prune=no",
        }
    }

    /// How to keep one object.
    fn keeping(&self) -> &'static str {
        match self.deletes_app {
            true => "the annotation gantry.dev/prune: keep",
            false => "--prune=no, or the annotation gantry.dev/prune: keep",
        }
    }

    fn unread(&self, problem: Option<&Problem>, what: &str) -> CouldNotCheck {
        let message = problem.map_or("the list expired again and again", |problem| problem.message.as_str());
        let message = format!("what else the deletion would delete is not known: {what}: {message}");
        let others = problem.and_then(|problem| problem.help.as_ref()).map(|help| format!("{help}; or "));
        CouldNotCheck { message, help: Some(format!("{}{}", others.unwrap_or_default(), self.without_deleting())) }
    }

    /// Those of a built-in kind.
    fn of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = &'a Removal> {
        let is_one = |removal: &&&Removal| removal.object.group() == group && removal.object.kind == kind;
        self.deleted.iter().filter(is_one).copied().collect::<Vec<_>>().into_iter()
    }

    fn is_deleted(&self, group: &str, kind: &str, namespace: Option<&str>, name: &str) -> bool {
        self.identities.contains(&(group, kind, namespace, name))
    }

    /// The live object; `None` where it is gone.
    async fn read(
        &self,
        resource: &Arc<Resource>,
        object: &Arc<ObjectRef>,
    ) -> Result<Option<RawObject>, CouldNotCheck> {
        let wanted = Wanted { resource: resource.clone(), object: object.clone() };
        let read = self.target.read(&[wanted], &|_, _| ()).await;
        let read = read.map_err(|error| self.unread(error.problems().first(), &object.to_string()))?;
        Ok(read.into_iter().flatten().next().map(|live| live.raw))
    }

    /// All objects of a resource, as `look` gathers them; `None` where it is not served.
    async fn list<T: Default>(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        look: impl Fn(&mut T, &str),
    ) -> Result<Option<T>, CouldNotCheck> {
        let request = ListRequest { namespace, ..ListRequest::of(resource, PAGE) };
        match self.target.list(&request).gather(look).await {
            Ok(found) => Ok(Some(found)),
            Err(ListError::NotServed(_)) => Ok(None),
            Err(error) => Err(self.unread(error.problem(), &resource.plural)),
        }
    }
}

fn violation(doc: &RuleDoc, removal: &Removal, message: String, help: String) -> Violation {
    Violation::of(doc, Subject::Object((*removal.object).clone()), None, message, help, Vec::new())
}

/// The name of an object, its namespace and what owns it.
#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    owner_references: Option<Vec<Value>>,
}

/// `a, b, c and 4 more`
fn some(names: &[String]) -> String {
    let shown = names.iter().take(EXAMPLES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(EXAMPLES).filter(|more| *more > 0) {
        Some(more) => format!("{shown} and {more} more"),
        None => shown,
    }
}
