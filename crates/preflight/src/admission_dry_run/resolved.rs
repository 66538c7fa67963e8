//! Whether this deploy may remove the reason for a refusal before it writes the object: it creates what is missing, or
//! changes the quota, limit, labels or permissions that refuse the object.

use serde::Deserialize;

use gantry_cluster::{Refusal, Refuser};
use gantry_core::rbac::{self, Atom, PolicyRule};
use gantry_deploy::plan::{Action, Change, Plan};

/// The change of the plan that may remove the reason for a refusal before the object is written. Changes that the
/// object does not wait for do not count: they may be written too late.
pub fn resolved_by(plan: &Plan, index: usize, refusal: &Refusal) -> Option<usize> {
    let change = &plan.changes[index];
    let earlier = plan.graph.changes_before(index).into_iter().map(|index| (index, &plan.changes[index]));
    let mut written = earlier.filter(|(_, other)| !other.action.leaves_alone());
    written
        .find(|(_, other)| is_missing_object(other, change, refusal) || may_lift(other, change, refusal))
        .map(|(at, _)| at)
}

/// Whether `other` creates the object that the refusal misses.
fn is_missing_object(other: &Change, change: &Change, refusal: &Refusal) -> bool {
    let object = &other.desired.object;
    if other.action != Action::Create || !is_in_scope_of(other, change) {
        return false;
    }
    if let Some((plural, name)) = &refusal.missing {
        // If a binding refers to a missing role, the server says `rolebindings "reader" not found`.
        let refers = || change.desired.raw.json().contains(&format!("{:?}", object.kind));
        let is_its_kind = *plural == other.resource.plural || *plural == change.resource.plural && refers();
        return is_its_kind && *name == object.name;
    }
    // `no PriorityClass with name high was found`, `serviceaccount "app" not found`
    let said = refusal.problem.message.to_lowercase();
    let is_missing = said.contains("not found") || said.contains("was found");
    is_missing && said.contains(&object.kind.to_lowercase()) && has_word(&said, &object.name.to_lowercase())
}

/// Whether `other` is cluster-scoped or in the same namespace as `change`.
fn is_in_scope_of(other: &Change, change: &Change) -> bool {
    let namespace = other.desired.object.namespace.as_deref();
    namespace.is_none() || namespace == change.desired.object.namespace.as_deref()
}

/// Whether `other` changes the object that causes the refusal.
fn may_lift(other: &Change, change: &Change, refusal: &Refusal) -> bool {
    let object = &other.desired.object;
    let said = refusal.problem.message.as_str();
    let is = |kind: &str| object.group().is_empty() && object.kind == kind && is_in_scope_of(other, change);
    match refusal.by {
        // A limit range sets the defaults that a quota requires.
        Refuser::Quota => {
            is("ResourceQuota") && has_word(said, &object.name) || is("LimitRange") && said.contains("failed quota: ")
        }
        Refuser::Authorization => user_in(said).is_some_and(|user| may_grant(other, change, user)),
        Refuser::Policy => is_its_namespace(other, change) && changes_labels(other),
        Refuser::Admission if said.contains("violates PodSecurity") => {
            is_its_namespace(other, change) && changes_labels(other)
        }
        Refuser::Admission => {
            is("LimitRange")
                && [" per Container", " per Pod", " per PersistentVolumeClaim"].iter().any(|of| said.contains(of))
        }
        _ => false,
    }
}

fn is_its_namespace(other: &Change, change: &Change) -> bool {
    let object = &other.desired.object;
    object.is_namespace() && Some(object.name.as_str()) == change.desired.object.namespace.as_deref()
}

/// Policies, webhooks and the Pod Security level depend on the labels of a namespace.
fn changes_labels(namespace: &Change) -> bool {
    let desired = namespace.desired.raw.value();
    let live = namespace.live.as_ref().map(|live| live.raw.value()).unwrap_or_default();
    let labels = desired.pointer("/metadata/labels").and_then(serde_json::Value::as_object);
    labels.into_iter().flatten().any(|(key, value)| live["metadata"]["labels"].get(key) != Some(value))
}

/// `user "u" may not …`, `user "u" (groups=["a"]) is attempting to grant …`
fn user_in(said: &str) -> Option<&str> {
    Some(said.split_once("user \"")?.1.split_once('"')?.0)
}

/// The parts of a Role or binding that matter here.
#[derive(Deserialize)]
struct Grant {
    #[serde(default, deserialize_with = "rbac::or_default")]
    rules: Vec<PolicyRule>,
    #[serde(default, deserialize_with = "rbac::or_default")]
    subjects: Vec<RawGrantSubject>,
}

#[derive(Deserialize)]
struct RawGrantSubject {
    kind: String,
    name: String,
    #[serde(default)]
    namespace: String,
}

/// Whether the Role or binding may grant the user the right to write the object: a binding to the user, or additional
/// rights in a Role that may already be bound to the user.
fn may_grant(other: &Change, change: &Change, user: &str) -> bool {
    let object = &other.desired.object;
    if object.group() != rbac::GROUP || !is_in_scope_of(other, change) {
        return false;
    }
    let Ok(grant) = serde_json::from_str::<Grant>(&other.desired.raw.json()) else { return true };
    let is_rbac = change.desired.object.group() == rbac::GROUP;
    match object.kind.as_str() {
        "RoleBinding" | "ClusterRoleBinding" => grant.subjects.iter().any(|subject| subject.may_be_user(user)),
        "Role" | "ClusterRole" if other.action.changes_live() => {
            // A user may grant any right that they hold, so every additional right may matter.
            is_rbac || ["patch", "create"].iter().any(|verb| covers(&grant.rules, change, verb))
        }
        _ => false,
    }
}

fn covers(rules: &[PolicyRule], change: &Change, verb: &str) -> bool {
    let right = Atom::Resource {
        group: change.resource.group.clone(),
        resource: change.resource.plural.clone(),
        name: Some(change.desired.object.name.clone()),
        verb: verb.to_owned(),
    };
    rules.iter().any(|rule| rule.covers(&right))
}

impl RawGrantSubject {
    /// Whether the subject may be the user. Only the server knows the groups of a user.
    fn may_be_user(&self, user: &str) -> bool {
        let account = user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
        match self.kind.as_str() {
            "User" => self.name == user,
            "ServiceAccount" => account == Some((&self.namespace, &self.name)),
            "Group" => account.is_some() || !self.name.starts_with("system:serviceaccounts"),
            _ => false,
        }
    }
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.');
    text.split(|c: char| !is_part(c)).any(|part| part.trim_matches('.') == word)
}
