//! Which objects are not written because one that they need failed.
//!
//! Without `--keep-going` a failure ends the deploy, so this matters only with it. An object needs those that a rule puts
//! before it, its namespace, the CRD of its kind, and the role that it binds. The default order alone is no need.

use std::collections::BTreeSet;

use crate::plan::graph::Step;
use crate::plan::{Change, Plan};

/// Kind, namespace and name of a role.
type Role = (String, Option<String>, String);

/// What failed, and what was not written because of that.
pub struct Stopped<'a> {
    plan: &'a Plan,
    /// Steps with such objects.
    steps: BTreeSet<usize>,
    /// Indices of the changes.
    changes: BTreeSet<usize>,
    namespaces: BTreeSet<&'a str>,
    crds: BTreeSet<&'a str>,
    roles: BTreeSet<Role>,
}

impl<'a> Stopped<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let (steps, changes) = Default::default();
        let (namespaces, crds, roles) = Default::default();
        Stopped { plan, steps, changes, namespaces, crds, roles }
    }

    /// The members of a step that are to be written and can be.
    pub fn start(&mut self, index: usize, step: &Step, to_write: impl Fn(&usize) -> bool) -> Vec<usize> {
        let is_stopped = step.needs.iter().any(|needed| self.steps.contains(needed));
        if is_stopped {
            // Also what waits for this step does not start.
            self.end(index);
        }
        let (stopped, started): (Vec<usize>, Vec<usize>) = step
            .members
            .iter()
            .copied()
            .filter(to_write)
            .partition(|member| is_stopped || self.is_needed_missing(&self.plan.changes[*member]));
        stopped.into_iter().for_each(|member| self.lose(index, member));
        started
    }

    /// An object of a step failed or is not written.
    pub fn lose(&mut self, step: usize, member: usize) {
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

    /// A step is not ready, so what rules put behind it is not written.
    pub fn end(&mut self, step: usize) {
        self.steps.insert(step);
    }

    /// The other members of a step.
    pub fn rest(&self, step: &Step) -> Vec<usize> {
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
fn bound(change: &Change) -> Option<Role> {
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
