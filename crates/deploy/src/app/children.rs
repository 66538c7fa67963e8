//! The objects that an app's workloads own: ReplicaSets, Jobs, revisions and Pods.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use super::inventory::group_kind;
use super::members::{AppObject, read_with_readiness};
use crate::readiness::Readiness;
use crate::readiness::rules::WaitRule;
use gantry_cluster::{ListError, ListRequest, Target};
use gantry_core::problem::Problem;
use gantry_core::resource::Resource;

const AT_ONCE: usize = 8;
const PAGE: u32 = 500;

/// A kind of children: its group, kind and plural name, and the kind of its owners.
type ChildKind = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// Kinds that members own, then the kind that members and these own.
const LEVELS: [&[ChildKind]; 2] = [
    &[
        ("apps", "ReplicaSet", "replicasets", &["Deployment.apps"]),
        ("batch", "Job", "jobs", &["CronJob.batch"]),
        ("apps", "ControllerRevision", "controllerrevisions", &["StatefulSet.apps", "DaemonSet.apps"]),
    ],
    &[(
        "",
        "Pod",
        "pods",
        &["ReplicaSet.apps", "ReplicationController", "StatefulSet.apps", "DaemonSet.apps", "Job.batch"],
    )],
];

/// Owned objects, by the uid of the owner.
#[derive(Debug, Default)]
pub struct Children {
    by_owner: BTreeMap<String, Vec<AppObject>>,
    /// Kinds and namespaces that cannot be listed.
    pub unread: Vec<Problem>,
}

/// Finds what the members own: one list for each kind of children and namespace of their owners, regardless of the
/// number of owners.
pub async fn find(members: &[AppObject], target: &Target, rules: &[WaitRule]) -> Children {
    let mut children = Children::default();
    let mut uids: BTreeSet<String> = members.iter().map(|member| member.facts.uid.clone()).collect();
    let mut owners: BTreeSet<(String, String)> = members.iter().filter_map(place).collect();
    for kinds in LEVELS {
        let lists = kinds.iter().flat_map(|kind| {
            let (group, name, plural, owned_by) = *kind;
            let resource = Arc::new(Resource::built_in(group, name, plural, true));
            let of_kind = |(owner, _): &&(String, String)| owned_by.contains(&owner.as_str());
            let namespaces: BTreeSet<&str> =
                owners.iter().filter(of_kind).map(|(_, namespace)| namespace.as_str()).collect();
            namespaces.into_iter().map(move |namespace| (resource.clone(), namespace))
        });
        let list = async |(resource, namespace): (Arc<Resource>, &str)| {
            let request = ListRequest { namespace: Some(namespace), ..ListRequest::new(&resource, PAGE) };
            let gather = |all: &mut Vec<AppObject>, json: &str| {
                let found = read_with_readiness(json, &resource, rules);
                let is_owned = |found: &AppObject| {
                    let facts = &found.facts;
                    !uids.contains(&facts.uid) && facts.owners.iter().any(|owner| uids.contains(&owner.uid))
                };
                all.extend(found.filter(is_owned));
            };
            (resource.plural.clone(), namespace.to_owned(), target.list(&request).gather(gather).await)
        };
        let answers: Vec<_> = stream::iter(lists).map(list).buffer_unordered(AT_ONCE).collect().await;
        let mut found: Vec<AppObject> = Vec::new();
        for (plural, namespace, answer) in answers {
            match answer {
                Ok(all) => found.extend(all),
                Err(ListError::NotServed(_)) => {}
                Err(error) => {
                    let what = error.problem().cloned().unwrap_or_else(|| Problem::new("the list kept expiring"));
                    let message = format!("could not list {plural} of the app in {namespace}: {}", what.message);
                    children.unread.push(Problem { message, ..what });
                }
            }
        }
        for child in &found {
            let known = child.facts.owners.iter().map(|owner| &owner.uid).filter(|uid| uids.contains(*uid));
            for owner in known.collect::<BTreeSet<_>>() {
                children.by_owner.entry(owner.clone()).or_default().push(child.clone());
            }
        }
        owners.extend(found.iter().filter_map(place));
        uids.extend(found.into_iter().map(|child| child.facts.uid));
    }
    children.by_owner.values_mut().for_each(|all| all.sort_by(|a, b| a.object.cmp(&b.object)));
    children.unread.sort();
    children
}

/// Kind and namespace of possible owners.
fn place(found: &AppObject) -> Option<(String, String)> {
    let kind = group_kind(&found.resource.group, &found.resource.kind);
    found.object.namespace.clone().map(|namespace| (kind, namespace))
}

impl Children {
    fn owned_by(&self, uid: &str) -> &[AppObject] {
        self.by_owner.get(uid).map_or(&[], Vec::as_slice)
    }

    /// The objects that the object with this uid owns, each followed by what it owns itself.
    pub fn each_below(&self, uid: &str, depth: usize, visit: &mut impl FnMut(usize, &AppObject)) {
        for child in self.owned_by(uid) {
            visit(depth, child);
            // Objects found on the last level own nothing, so there are no cycles.
            self.each_below(&child.facts.uid, depth + 1, visit);
        }
    }

    /// The Pod below the object with this uid that is furthest from being ready; `None` if all are ready.
    pub(crate) fn worst_pod(&self, uid: &str) -> Option<&AppObject> {
        let mut pods: Vec<&AppObject> = Vec::new();
        self.each_found_below(uid, &mut pods);
        let rank = |pod: &&AppObject| match &pod.facts.readiness {
            Some(Readiness::Failed(_)) => Some(0),
            Some(Readiness::InProgress(_)) => Some(1),
            _ => None,
        };
        pods.retain(|found| found.resource.kind == "Pod" && rank(found).is_some());
        // Only Pods of the newest template: older ones are removed anyway.
        pods.into_iter().min_by_key(|pod| (rank(pod), Reverse(pod.facts.created.clone())))
    }

    fn each_found_below<'a>(&'a self, uid: &str, all: &mut Vec<&'a AppObject>) {
        for child in self.owned_by(uid) {
            all.push(child);
            self.each_found_below(&child.facts.uid, all);
        }
    }

    /// The same as JSON.
    pub fn json(&self, uid: &str) -> Value {
        let entry = |child: &AppObject| {
            json!({"object": child.object, "uid": child.facts.uid, "created": child.facts.created,
                "readiness": child.facts.readiness.as_ref().map(Readiness::json), "owned": self.json(&child.facts.uid)})
        };
        self.owned_by(uid).iter().map(entry).collect()
    }
}
