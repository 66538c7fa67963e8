//! Which objects are not written because an object that they need failed.
//!
//! This matters only with `--keep-going`; without it, a failure ends the deploy. An object needs the objects that
//! change rules put before it, its namespace, the CRD of its kind, and the role that it binds. It does not need an
//! object that only the default order puts before it.

use std::collections::BTreeSet;

use crate::plan::graph::ApplyStep;
use crate::plan::{Change, Plan};

/// The kind, namespace and name of a role.
type RoleKey = (String, Option<String>, String);

/// What failed, and what is not written because of that.
pub struct Stopped<'a> {
    plan: &'a Plan,
    /// The steps that contain such objects.
    steps: BTreeSet<usize>,
    /// Their changes, as indices into the plan.
    changes: BTreeSet<usize>,
    namespaces: BTreeSet<&'a str>,
    crds: BTreeSet<&'a str>,
    roles: BTreeSet<RoleKey>,
}

impl<'a> Stopped<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let (steps, changes) = Default::default();
        let (namespaces, crds, roles) = Default::default();
        Stopped { plan, steps, changes, namespaces, crds, roles }
    }

    /// The members of a step to write now: those that `to_write` selects and whose needs are met.
    pub fn start(&mut self, index: usize, step: &ApplyStep, to_write: impl Fn(&usize) -> bool) -> Vec<usize> {
        let is_stopped = step.needs.iter().any(|needed| self.steps.contains(needed));
        if is_stopped {
            // Steps that wait for this one do not start either.
            self.mark_ended(index);
        }
        let (stopped, started): (Vec<usize>, Vec<usize>) = step
            .members
            .iter()
            .copied()
            .filter(to_write)
            .partition(|member| is_stopped || self.is_needed_missing(&self.plan.changes[*member]));
        stopped.into_iter().for_each(|member| self.mark_lost(index, member));
        started
    }

    /// Records that an object of a step failed or is not written.
    pub fn mark_lost(&mut self, step: usize, member: usize) {
        self.steps.insert(step);
        self.changes.insert(member);
        let object = &self.plan.changes[member].desired.object;
        match (object.group(), object.kind.as_str()) {
            _ if object.is_namespace() => drop(self.namespaces.insert(&object.name)),
            _ if object.is_crd() => drop(self.crds.insert(&object.name)),
            (RBAC, "Role" | "ClusterRole") => {
                self.roles.insert((object.kind.clone(), object.namespace.clone(), object.name.clone()));
            }
            _ => {}
        }
    }

    /// Records that a step is not ready, so the steps that wait for it by a change rule do not start.
    pub fn mark_ended(&mut self, step: usize) {
        self.steps.insert(step);
    }

    /// The members of a step that neither failed nor were stopped.
    pub fn remaining_members(&self, step: &ApplyStep) -> Vec<usize> {
        step.members.iter().copied().filter(|member| !self.changes.contains(member)).collect()
    }

    /// Whether something that the object needs failed.
    fn is_needed_missing(&self, change: &Change) -> bool {
        let object = &change.desired.object;
        let crd = || format!("{}.{}", change.resource.plural, change.resource.group);
        object.namespace.as_deref().is_some_and(|namespace| self.namespaces.contains(namespace))
            || !self.crds.is_empty() && self.crds.contains(crd().as_str())
            || !self.roles.is_empty() && bound(change).is_some_and(|role| self.roles.contains(&role))
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// The role that an object binds.
fn bound(change: &Change) -> Option<RoleKey> {
    let object = &change.desired.object;
    if object.group() != RBAC || !object.kind.ends_with("Binding") {
        return None;
    }
    let manifest = change.desired.raw.value();
    let text = |key: &str| manifest["roleRef"][key].as_str().map(str::to_owned);
    let (kind, name) = (text("kind")?, text("name")?);
    let namespace = object.namespace.clone().filter(|_| kind == "Role");
    Some((kind, namespace, name))
}
