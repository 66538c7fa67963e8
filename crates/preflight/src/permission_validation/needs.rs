//! The rights that a deploy needs.
//!
//! Server-side apply is a `patch`; if the object does not exist yet, the server also requires `create`, both for the
//! name of the object. gantry reads each object with `get` before anything else, and a CRD again while it waits for it.
//! Writing a Role or a binding requires more than the right to write it: a user may not grant rights that the user does
//! not hold
//! (<https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping>).

use std::collections::{BTreeMap, BTreeSet};

use super::roles::{RbacRole, RoleRef};
use crate::CheckLookup;
use gantry_core::rbac::{self, Atom};
use gantry_core::resource::Resource;
use gantry_deploy::app::versions;
use gantry_deploy::plan::strategy;
use gantry_deploy::plan::{self, Action, Change, Plan};
use gantry_deploy::readiness;

/// A right that the deploy needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Index into `plan.changes`.
    pub change: usize,
    /// The namespace; `None` means all namespaces, or a cluster-scoped object.
    pub namespace: Option<String>,
    /// What the user must be allowed to do.
    pub right: Right,
}

/// A right that a deploy needs, and what suffices instead of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Right {
    /// The right to send a request.
    Request {
        /// The verb on a resource.
        atom: Atom,
        /// The version at which the request is sent, for the texts only: RBAC knows no versions.
        version: String,
    },
    /// The right to write a Role or ClusterRole.
    WriteRole {
        /// It is enough.
        escalate: Atom,
        /// Without it, the user needs each of these: the rules of the role.
        rules: BTreeSet<Atom>,
        /// The role has an aggregation rule: without `escalate`, the user needs every right.
        aggregates: bool,
    },
    /// The right to write a binding.
    WriteBinding {
        /// It is enough.
        bind: Atom,
        /// Without it, the user needs every rule of this role.
        role: RoleRef,
    },
}

/// When the rights are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RightsOccasion {
    /// For this plan, with the objects that are live now.
    Now,
    /// For every deploy of these manifests, whatever is live.
    Always,
}

impl RightsOccasion {
    /// Whether a change with this action is written on this occasion.
    pub fn writes(self, action: Action) -> bool {
        match self {
            RightsOccasion::Now => !action.leaves_alone(),
            RightsOccasion::Always => action != Action::Skip,
        }
    }
}

/// Every right that the plan needs, in the order of the plan, and then those for the lookups of the checks.
pub fn list_needs(plan: &Plan, lookups: &[CheckLookup], occasion: RightsOccasion) -> Vec<Need> {
    let mut needs = Vec::new();
    for (index, change) in plan.changes.iter().enumerate() {
        let namespace = change.desired.object.authorized_in().map(str::to_owned);
        let need = |right| Need { change: index, namespace: namespace.clone(), right };
        // The next version has another name.
        let is_versioned = occasion == RightsOccasion::Always && versions::is_versioned(&change.desired);
        let name = (!is_versioned).then_some(change.desired.object.name.as_str());
        needs.extend(verbs(change, occasion).iter().map(|verb| need(request(&change.resource, name, verb))));
        let is_written = occasion.writes(change.action);
        if is_written && change.resource.group == rbac::GROUP {
            needs.extend(escalation(change).map(need));
        }
    }
    needs.extend(lookups.iter().map(|CheckLookup { change, resource, namespace, name, verb }| Need {
        change: *change,
        namespace: namespace.clone(),
        right: request(resource, name.as_deref(), verb),
    }));
    needs
}

/// The optional rights of a deploy that waits: to watch the objects that it writes.
pub fn of_waiting(plan: &Plan, occasion: RightsOccasion) -> Vec<Need> {
    type Place<'a> = (&'a Resource, Option<String>);
    let mut places: BTreeMap<Place<'_>, Vec<usize>> = BTreeMap::new();
    for (index, change) in plan.changes.iter().enumerate().filter(|(_, change)| waits_for(change, occasion)) {
        let object = &change.desired.object;
        let is_custom = !plan::is_built_in(object.group());
        if readiness::takes_time(object, is_custom, || change.desired.raw.value()) {
            places
                .entry((&change.resource, change.desired.object.authorized_in().map(str::to_owned)))
                .or_default()
                .push(index);
        }
    }
    let needs = places.into_iter().flat_map(|((resource, namespace), changes)| {
        // A single object is watched by its name. For later deploys, the number of objects is unknown.
        let one = match (&changes[..], occasion) {
            ([one], RightsOccasion::Now) => Some(plan.changes[*one].desired.object.name.as_str()),
            _ => None,
        };
        let rights = ["list", "watch"].map(|verb| request(resource, one, verb));
        rights.map(|right| Need { change: changes[0], namespace: namespace.clone(), right })
    });
    needs.collect()
}

/// The optional rights to find the Pods of workloads and to read their logs.
pub fn of_logs(plan: &Plan, occasion: RightsOccasion) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    // The deploy also waits for unchanged objects that an earlier run did not see ready.
    let is_awaited = |change: &Change| {
        change.desired.bundle.is_none() && (occasion.writes(change.action) || change.action == Action::Unchanged)
    };
    for (index, change) in plan.changes.iter().enumerate().filter(|(_, change)| is_awaited(change)) {
        let object = &change.desired.object;
        let lists: &[(&str, &str)] = match (object.group(), object.kind.as_str()) {
            ("apps", "Deployment") => &[("apps", "replicasets"), ("", "pods")],
            ("apps", "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => &[("", "pods")],
            ("", "ReplicationController") => &[("", "pods")],
            ("", "Pod") => &[],
            _ => continue,
        };
        let lists = lists.iter().map(|(group, plural)| (*group, *plural, "list"));
        for (group, plural, verb) in lists.chain([("", "pods", "get"), ("", "pods/log", "get")]) {
            let right = Right::Request { atom: atom(group, plural, None, verb), version: "v1".to_owned() };
            let need =
                Need { change: index, namespace: change.desired.object.authorized_in().map(str::to_owned), right };
            let is_known = |known: &Need| (&known.namespace, &known.right) == (&need.namespace, &need.right);
            if !needs.iter().any(is_known) {
                needs.push(need);
            }
        }
    }
    needs
}

/// Whether a deploy may wait for an object. OLM waits for the objects of a bundle.
fn waits_for(change: &Change, occasion: RightsOccasion) -> bool {
    change.desired.bundle.is_none() && occasion.writes(change.action)
}

fn request(resource: &Resource, name: Option<&str>, verb: &str) -> Right {
    Right::Request { atom: atom(&resource.group, &resource.plural, name, verb), version: resource.version.clone() }
}

fn verbs(change: &Change, occasion: RightsOccasion) -> &'static [&'static str] {
    match (occasion, change.action) {
        (_, Action::Skip) | (RightsOccasion::Now, Action::Unchanged) => &["get"],
        (RightsOccasion::Now, Action::Update | Action::Adopt) => &["get", "patch"],
        (RightsOccasion::Now, Action::Replace) => &["get", "delete", "create", "patch"],
        // The object has already been read, or its kind is not served yet.
        (RightsOccasion::Now, Action::Create) if !change.desired.object.is_crd() => &["create", "patch"],
        _ if strategy::may_replace(&change.desired) => &["get", "delete", "create", "patch"],
        _ => &["get", "create", "patch"],
    }
}

/// The additional right that the server requires for writing a role or a binding.
pub fn escalation(change: &Change) -> Option<Right> {
    let object = &change.desired.object;
    match object.kind.as_str() {
        "Role" | "ClusterRole" => {
            let role = RbacRole::after_deploy(change)?;
            let escalate = atom(rbac::GROUP, &change.resource.plural, Some(&object.name), "escalate");
            // The server also requires every right if the change removes the aggregation rule of the role.
            let aggregates = role.aggregates() || RbacRole::live_role(change).is_some_and(|live| live.aggregates());
            Some(Right::WriteRole { escalate, rules: role.atoms(), aggregates })
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            let role = RoleRef::of_binding(change)?;
            Some(Right::WriteBinding { bind: atom(rbac::GROUP, role.plural(), Some(&role.name), "bind"), role })
        }
        _ => None,
    }
}

pub fn atom(group: &str, resource: &str, name: Option<&str>, verb: &str) -> Atom {
    Atom::Resource {
        group: group.to_owned(),
        resource: resource.to_owned(),
        name: name.map(str::to_owned),
        verb: verb.to_owned(),
    }
}

/// Whether the right is about Namespace objects.
pub fn is_about_namespaces(atom: &Atom) -> bool {
    matches!(atom, Atom::Resource { group, resource, .. } if group.is_empty() && resource == "namespaces")
}

/// `apps/v1, Resource=deployments`: a resource in the format of Go, as kapp prints it.
pub fn go_format(group: &str, version: &str, plural: &str) -> String {
    format!("{group}/{version}, Resource={plural}")
}
