//! The default order: which objects wait for which other objects, unless rules say otherwise.
//!
//! Objects that wait for the same objects form a set. So the time and the size of the graph grow with the number of
//! namespaces, and not with the number of pairs of objects. An object does not wait for objects in other namespaces,
//! except for the workloads behind a Service that the server calls, and for bindings that grant permissions to a
//! service account of its namespace.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Deserialize;

use super::acyclic::Until;
use super::backing_workloads::{BackingWorkloads, Caller, CustomResourceNeeds, is_about};
use super::bound::{self, BindingReach};
use super::steps::{Set, SetWait};
use crate::plan::Change;
use crate::plan::order::{self, DeployStage};
use crate::plan::strategy;
use gantry_core::resource::Resource;

/// The sets, and the set of each change.
#[derive(Debug, Default)]
pub struct DefaultSets {
    pub sets: Vec<Set>,
    pub of: Vec<usize>,
}

/// What the objects of a set have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum OrderSetKey<'a> {
    /// Not written.
    Rest,
    Namespace(&'a str),
    /// A CRD whose objects are also written.
    Crd(usize),
    OtherCrds,
    /// All CRDs. Has no members.
    Crds,
    /// Cluster-scoped, or in a namespace.
    Stage(DeployStage, Option<&'a str>),
    StorageClass(&'a str),
    /// With the name of a StorageClass.
    Storage(DeployStage, Option<&'a str>, Option<String>),
    /// The role of these sets of bindings.
    ClusterRole(Vec<usize>),
    /// With the namespaces of its accounts.
    Binding(DeployStage, Option<&'a str>, bool, Vec<String>),
    /// Selected by these Services.
    Workload(Option<&'a str>, Vec<usize>),
    /// Custom resources in a namespace, with their CRD if it is among the manifests, and the index into
    /// `Building::asked`.
    Other(Option<&'a str>, Option<usize>, usize),
    /// An admission object or an APIService: the kinds that it applies to, its Services, and whether it is trusted.
    Caller(DeployStage, Vec<usize>, Vec<usize>, bool),
    /// All objects of these kinds. Has no members.
    Kinds(Vec<usize>),
    /// What several sets of custom resources wait for. Has no members.
    Asked(usize),
}

/// The rank of sets without members.
const HUB: u8 = 0;

/// The stages that a stage waits for in its own namespace, in addition to the Namespace.
fn stages_before(stage: DeployStage) -> &'static [DeployStage] {
    use DeployStage::{Account, Binding, Claim, Config, Front, Guard, Limit, Other, Role, Service, Workload};
    match stage {
        Account | Role | Claim => &[Limit],
        Config => &[Limit, Account],
        Binding => &[Limit, Role],
        // A binding may grant the permission to write it.
        Service => &[Limit, Role, Binding],
        Workload => &[Limit, Guard, Account, Config, Claim, Role, Binding, Service],
        Front => &[Limit, Service, Workload],
        Other => &[Limit, Account, Config, Claim, Role, Binding, Service],
        _ => &[],
    }
}

/// The default order of a plan. `waits`: whether the deploy waits until everything is ready.
pub fn default_order(changes: &[Change], waits: bool) -> DefaultSets {
    Building::new(changes, waits).build()
}

/// The order of deletions: each stage is gone before the next one starts.
pub fn of_stages(stages: impl Iterator<Item = u8>) -> DefaultSets {
    let of: Vec<u8> = stages.collect();
    let known: BTreeSet<u8> = of.iter().copied().collect();
    let known: Vec<u8> = known.into_iter().collect();
    let set = |(index, rank): (usize, &u8)| Set {
        rank: *rank,
        after: (0..index).map(|set| SetWait { set, until: Until::Served, is_general: true }).collect(),
    };
    let place = |rank: &u8| known.binary_search(rank).unwrap_or_default();
    DefaultSets { sets: known.iter().enumerate().map(set).collect(), of: of.iter().map(place).collect() }
}

/// Sets of custom resources, and the sets of callers that are written before them.
struct CallerPrecedence {
    callers: BTreeSet<usize>,
    sets: BTreeSet<usize>,
}

struct Building<'a> {
    changes: &'a [Change],
    /// The stage of each change.
    stage: Vec<DeployStage>,
    backing: BackingWorkloads,
    keys: HashMap<OrderSetKey<'a>, usize>,
    sets: Vec<Set>,
    of: Vec<usize>,
    /// The sets of a stage in a namespace, or of a cluster-scoped stage.
    stages: HashMap<(DeployStage, Option<&'a str>), Vec<usize>>,
    /// The sets of bindings that grant permissions to service accounts of a namespace; `None` is every namespace.
    bound: HashMap<Option<String>, BTreeSet<usize>>,
    /// The sets that contain objects of a kind.
    kinds: BTreeMap<(&'a str, &'a str), BTreeSet<usize>>,
    /// What custom resources wait for, without duplicates.
    asked: Vec<CustomResourceNeeds>,
}

impl<'a> Building<'a> {
    fn new(changes: &'a [Change], waits: bool) -> Self {
        let stages: Vec<DeployStage> = changes.iter().map(|change| order::stage(&change.desired.object)).collect();
        Building {
            changes,
            backing: BackingWorkloads::find(changes, &stages, waits),
            stage: stages,
            keys: HashMap::new(),
            sets: Vec::new(),
            of: vec![0; changes.len()],
            stages: HashMap::new(),
            bound: HashMap::new(),
            asked: Vec::new(),
            kinds: BTreeMap::new(),
        }
    }

    fn build(mut self) -> DefaultSets {
        let mut crds: HashMap<(String, String), usize> = HashMap::new();
        for (index, change) in self.changes.iter().enumerate().filter(|(_, change)| is_awaited_crd(change)) {
            // The name of a CRD is its plural and its group.
            if let Some((plural, group)) = change.desired.object.name.split_once('.') {
                crds.insert((group.to_owned(), plural.to_owned()), index);
            }
        }
        let crd_of = |change: &Change| {
            let resource = &change.resource;
            match crds.is_empty() {
                true => None,
                false => crds.get(&(resource.group.clone(), resource.plural.clone())).copied(),
            }
        };
        let written = self.changes.iter().filter(|change| change.is_written());
        let needed: BTreeSet<usize> = written.filter_map(crd_of).collect();
        let bindings = self.bindings();
        let mut asked: HashMap<&Resource, usize> = HashMap::new();
        let mut callers = Vec::new();
        for (index, change) in self.changes.iter().enumerate() {
            let object = &*change.desired.object;
            let (stage, namespace) = (self.stage[index], object.namespace.as_deref());
            let crd = crd_of(change);
            let key = match stage {
                _ if is_awaited_crd(change) && needed.contains(&index) => OrderSetKey::Crd(index),
                _ if is_awaited_crd(change) => OrderSetKey::OtherCrds,
                _ if !change.is_written() && !is_absent_namespace(change) => OrderSetKey::Rest,
                _ if crd.is_some() => OrderSetKey::Other(namespace, crd, self.backing_index(&mut asked, change)),
                DeployStage::Namespace => OrderSetKey::Namespace(&object.name),
                DeployStage::StorageClass => OrderSetKey::StorageClass(&object.name),
                DeployStage::Volume | DeployStage::Claim => OrderSetKey::Storage(stage, namespace, class(change)),
                DeployStage::ClusterRole => {
                    OrderSetKey::ClusterRole(bindings.get(object.name.as_str()).cloned().unwrap_or_default())
                }
                // `bindings` has added these.
                DeployStage::ClusterBinding | DeployStage::Binding => continue,
                DeployStage::Workload => {
                    OrderSetKey::Workload(namespace, self.backing.workloads.get(&index).cloned().unwrap_or_default())
                }
                DeployStage::Other => OrderSetKey::Other(namespace, None, self.backing_index(&mut asked, change)),
                DeployStage::ApiService | DeployStage::Policy | DeployStage::PolicyBinding | DeployStage::Webhooks => {
                    callers.push(index);
                    continue;
                }
                _ => OrderSetKey::Stage(stage, namespace),
            };
            self.put(index, key);
        }
        self.group_callers(&callers);
        self.connect();
        // The result must not depend on the order of hash maps.
        self.sets.iter_mut().for_each(|set| set.after.sort_unstable_by_key(|wait| (wait.set, wait.until)));
        DefaultSets { sets: self.sets, of: self.of }
    }

    /// What a custom resource waits for, as an index into `self.asked`.
    fn backing_index(&mut self, known: &mut HashMap<&'a Resource, usize>, change: &'a Change) -> usize {
        *known.entry(&change.resource).or_insert_with(|| {
            let asked = self.backing.asked_about(&change.resource);
            self.asked.iter().position(|known| *known == asked).unwrap_or_else(|| {
                self.asked.push(asked);
                self.asked.len() - 1
            })
        })
    }

    /// The set with this key. If it does not exist, it is created with this rank.
    fn set(&mut self, key: OrderSetKey<'a>, rank: u8) -> usize {
        *self.keys.entry(key).or_insert_with(|| {
            self.sets.push(Set { rank, after: Vec::new() });
            self.sets.len() - 1
        })
    }

    /// Puts a change into the set with this key.
    fn put(&mut self, index: usize, key: OrderSetKey<'a>) -> usize {
        let change = &self.changes[index];
        let (is_new, is_rest) = (!self.keys.contains_key(&key), key == OrderSetKey::Rest);
        let stage = match &key {
            OrderSetKey::Other(..) => DeployStage::Other,
            _ => self.stage[index],
        };
        let set = match self.keys.get(&key) {
            Some(set) => *set,
            None => self.set(key, change.rank()),
        };
        self.of[index] = set;
        if is_new && !is_rest {
            let namespace = change.desired.object.namespace.as_deref();
            let place = if stage == DeployStage::Namespace { Some(&*change.desired.object.name) } else { namespace };
            self.stages.entry((stage, place)).or_default().push(set);
        }
        if change.is_written() {
            self.kinds.entry((&change.resource.group, &change.resource.plural)).or_default().insert(set);
        }
        set
    }

    /// Puts all bindings into sets. Returns the sets that bind each ClusterRole.
    fn bindings(&mut self) -> HashMap<String, Vec<usize>> {
        let mut of_roles: HashMap<String, BTreeSet<usize>> = HashMap::new();
        for (index, change) in self.changes.iter().enumerate().filter(|(_, change)| change.is_written()) {
            let stage = self.stage[index];
            if !matches!(stage, DeployStage::ClusterBinding | DeployStage::Binding) {
                continue;
            }
            let BindingReach { cluster_role, namespaces, is_everywhere } = bound::read(change);
            let namespace = change.desired.object.namespace.as_deref();
            let names: Vec<String> = namespaces.into_iter().collect();
            let set = self.put(index, OrderSetKey::Binding(stage, namespace, is_everywhere, names.clone()));
            for name in names.into_iter().map(Some).chain(is_everywhere.then_some(None)) {
                self.bound.entry(name).or_default().insert(set);
            }
            if let Some(role) = cluster_role {
                of_roles.entry(role).or_default().insert(set);
            }
        }
        of_roles.into_iter().map(|(role, sets)| (role, sets.into_iter().collect())).collect()
    }

    /// Puts admission objects and APIServices into sets, and connects them with the objects that they apply to.
    fn group_callers(&mut self, indices: &[usize]) {
        let all: Vec<((&str, &str), Vec<usize>)> =
            self.kinds.iter().map(|(kind, sets)| (*kind, sets.iter().copied().collect())).collect();
        let about = |caller: &Caller| -> Vec<usize> {
            let kinds = all.iter().enumerate();
            kinds
                .filter(|(_, ((group, plural), _))| is_about(&caller.kinds, group, plural))
                .map(|(kind, _)| kind)
                .collect()
        };
        let mut of_policies: HashMap<&str, usize> = HashMap::new();
        let mut users: BTreeMap<Vec<usize>, BTreeSet<usize>> = BTreeMap::new();
        let backing = std::mem::take(&mut self.backing);
        for &index in indices {
            let Some(caller) = backing.callers.get(&index) else { continue };
            let stage = self.stage[index];
            let policy = caller.policy.as_deref().filter(|_| stage == DeployStage::PolicyBinding);
            let policy = policy.map(|name| of_policies.get(name).copied());
            let kinds = match (stage, policy) {
                (DeployStage::PolicyBinding, Some(Some(_))) => Vec::new(),
                // The kinds that a live policy applies to are unknown.
                (DeployStage::PolicyBinding, _) => (0..all.len()).collect(),
                _ => about(caller),
            };
            let of_policy: Vec<usize> = policy.flatten().into_iter().collect();
            let services =
                if stage == DeployStage::PolicyBinding { of_policy.clone() } else { caller.services.clone() };
            let set = self.put_caller(index, OrderSetKey::Caller(stage, kinds.clone(), services, caller.is_trusted));
            if stage == DeployStage::Policy {
                of_policies.insert(&self.changes[index].desired.object.name, set);
            }
            if self.sets[set].after.is_empty() {
                self.wait(set, &of_policy, Until::Written, false);
            }
            users.entry(kinds).or_default().insert(set);
        }
        self.backing = backing;
        let asking = self.connect_callers(indices);
        for (kinds, sets) in users.into_iter().filter(|(kinds, _)| !kinds.is_empty()) {
            let mut about: BTreeSet<usize> = kinds.iter().flat_map(|kind| all[*kind].1.iter().copied()).collect();
            // Custom resources that wait for the caller are written after it.
            for asking in asking.iter().filter(|asking| !asking.callers.is_disjoint(&sets)) {
                about.retain(|set| !asking.sets.contains(set));
            }
            let about: Vec<usize> = about.into_iter().collect();
            let hub = (sets.len() > 1 && about.len() > 1).then(|| self.set(OrderSetKey::Kinds(kinds), HUB));
            if let Some(hub) = hub {
                self.wait(hub, &about, Until::Written, true);
            }
            let after = hub.as_ref().map_or(&about[..], std::slice::from_ref);
            sets.iter().for_each(|set| self.wait(*set, after, Until::Written, true));
        }
    }

    fn put_caller(&mut self, index: usize, key: OrderSetKey<'a>) -> usize {
        let set = self.set(key, self.changes[index].rank());
        self.of[index] = set;
        set
    }

    /// Makes callers wait for the workloads behind their Services, and custom resources for both.
    fn connect_callers(&mut self, indices: &[usize]) -> Vec<CallerPrecedence> {
        let workloads = self.keys.iter().filter_map(|(key, set)| match key {
            OrderSetKey::Workload(_, services) => Some((services.clone(), *set)),
            _ => None,
        });
        let mut of_services: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (services, set) in workloads {
            for service in services {
                of_services.entry(service).or_default().insert(set);
            }
        }
        let of = |services: &[usize]| -> Vec<usize> {
            services.iter().filter_map(|service| of_services.get(service)).flatten().copied().collect()
        };
        let mut done = BTreeSet::new();
        for &index in indices {
            let set = self.of[index];
            let Some(Caller { services, is_trusted, .. }) = self.backing.callers.get(&index) else { continue };
            let until = if *is_trusted { Until::Ready } else { Until::Written };
            let behind = of(services);
            if done.insert(set) {
                self.wait(set, &behind, until, false);
            }
        }
        let mut others: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (key, set) in &self.keys {
            if let OrderSetKey::Other(_, _, asked) = key {
                others.entry(*asked).or_default().insert(*set);
            }
        }
        let mut all = Vec::new();
        for (number, sets) in others {
            let asked = &self.asked[number];
            let services = of(&asked.services);
            let callers: BTreeSet<usize> = asked.callers.iter().map(|caller| self.of[*caller]).collect();
            let hub = (sets.len() > 1 && services.len() + callers.len() > 2)
                .then(|| self.set(OrderSetKey::Asked(number), HUB));
            if let Some(hub) = hub {
                sets.iter().for_each(|set| self.wait(*set, &[hub], Until::Written, false));
            }
            let ends: Vec<usize> = hub.map_or_else(|| sets.iter().copied().collect(), |hub| vec![hub]);
            let after: Vec<usize> = callers.iter().copied().collect();
            for set in ends {
                self.wait(set, &services, Until::Ready, false);
                self.wait(set, &after, Until::Written, false);
            }
            all.push(CallerPrecedence { callers, sets });
        }
        all
    }

    /// Adds the waits of all other sets.
    fn connect(&mut self) {
        let crds: Vec<usize> = self.stages.get(&(DeployStage::Crd, None)).cloned().unwrap_or_default();
        let crds = match &crds[..] {
            [] | [_] => crds,
            _ => {
                let hub = self.set(OrderSetKey::Crds, HUB);
                self.wait(hub, &crds, Until::Written, false);
                vec![hub]
            }
        };
        let defaults: Vec<usize> = self
            .changes
            .iter()
            .zip(&self.of)
            .filter(|(change, _)| is_default_class(change))
            .map(|(_, set)| *set)
            .collect();
        let roles: Vec<(Vec<usize>, usize)> = self
            .keys
            .iter()
            .filter_map(|(key, set)| match key {
                OrderSetKey::ClusterRole(bindings) => Some((bindings.clone(), *set)),
                _ => None,
            })
            .collect();
        for (bindings, role) in roles {
            bindings.into_iter().for_each(|binding| self.wait(binding, &[role], Until::Written, false));
        }
        let storage: Vec<(Option<usize>, usize)> = self
            .keys
            .iter()
            .filter_map(|(key, set)| match key {
                OrderSetKey::Storage(_, _, None) => Some((None, *set)),
                OrderSetKey::Storage(_, _, Some(class)) => {
                    Some((Some(*self.keys.get(&OrderSetKey::StorageClass(class))?), *set))
                }
                _ => None,
            })
            .collect();
        for (class, set) in storage {
            self.wait(set, class.as_ref().map_or(&defaults[..], std::slice::from_ref), Until::Written, false);
        }
        let of_crds: Vec<(usize, usize)> = self
            .keys
            .iter()
            .filter_map(|(key, set)| match key {
                OrderSetKey::Other(_, Some(crd), _) => Some((*set, self.of[*crd])),
                _ => None,
            })
            .collect();
        for (set, crd) in of_crds {
            self.wait(set, &[crd], Until::Served, false);
        }
        let places: Vec<(DeployStage, Option<&str>)> = self.stages.keys().copied().collect();
        for (stage, namespace) in places {
            if stage == DeployStage::Namespace {
                continue;
            }
            let sets = self.stages[&(stage, namespace)].clone();
            let of = |stage: &DeployStage, namespace: Option<&'a str>| {
                self.stages.get(&(*stage, namespace)).cloned().unwrap_or_default()
            };
            let (mut specific, mut general) = (Vec::new(), Vec::new());
            if namespace.is_some() {
                specific.extend(of(&DeployStage::Namespace, namespace));
                general.extend(stages_before(stage).iter().flat_map(|stage| of(stage, namespace)));
            }
            if matches!(stage, DeployStage::Workload | DeployStage::Front | DeployStage::Other) {
                general.extend(of(&DeployStage::Class, None));
                general.extend(crds.iter().filter(|_| stage == DeployStage::Workload));
            }
            if matches!(stage, DeployStage::Workload | DeployStage::Other) && namespace.is_some() {
                let of_accounts =
                    [None, namespace.map(str::to_owned)].into_iter().filter_map(|name| self.bound.get(&name));
                general.extend(of_accounts.flatten());
            }
            general.sort_unstable();
            general.dedup();
            let is_general = matches!(stage, DeployStage::Workload | DeployStage::Front | DeployStage::Other);
            for set in sets {
                // A Namespace that something else creates (`kapp.k14s.io/exists`) is not written, but it is awaited.
                self.wait(set, &specific, Until::Served, false);
                self.wait(set, &general, Until::Written, is_general);
            }
        }
    }

    fn wait(&mut self, set: usize, after: &[usize], until: Until, is_general: bool) {
        let waits = after.iter().filter(|other| **other != set).map(|other| SetWait { set: *other, until, is_general });
        self.sets[set].after.extend(waits);
    }
}

/// Whether something else has to create the Namespace before objects can be written into it.
fn is_absent_namespace(change: &Change) -> bool {
    change.desired.object.is_namespace() && strategy::is_missing(change)
}

/// Whether the object is a CRD that may have to be served before its objects are written. It need not change itself.
fn is_awaited_crd(change: &Change) -> bool {
    change.desired.object.is_crd() && change.desired.bundle.is_none()
}

fn is_default_class(change: &Change) -> bool {
    let is_class = order::stage(&change.desired.object) == DeployStage::StorageClass && change.is_written();
    is_class && change.desired.may_contain(&["is-default-class"])
}

/// The StorageClass of a volume or a claim.
fn class(change: &Change) -> Option<String> {
    #[derive(Deserialize)]
    struct StorageClassUser {
        spec: StorageClassSpec,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct StorageClassSpec {
        #[serde(default)]
        storage_class_name: Option<String>,
    }
    serde_json::from_str::<StorageClassUser>(&change.desired.raw.json()).ok()?.spec.storage_class_name
}
