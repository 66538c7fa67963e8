//! Admission policies with parameters. The API server will read the parameters, so it requires that the user
//! who writes the policy may read them, too: `get` on every object of a policy's `paramKind`; for a binding's
//! `paramRef`, `get` on the object that it names, or `list` if it has a selector. If the server cannot resolve the
//! kind, it requires the right for every possible kind.
//!
//! The server does not check a policy again if its `paramKind` does not change. It checks a binding on every write,
//! because it compares the `paramRef` by address, which always differs.
//!
//! Source: `k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy/authz.go`, and the files
//! next to it for bindings and mutating policies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::needs::{Need, Right, RightsOccasion, atom};
use gantry_cluster::{Gvk, ObjectToRead, Target};
use gantry_core::problem::{Error, Problem};
use gantry_core::rbac::ALL;
use gantry_core::resource::{ObjectRef, RawObject, Resource};
use gantry_deploy::plan::{Change, Plan};

const GROUP: &str = "admissionregistration.k8s.io";

/// The parameters of one policy or binding.
struct Params {
    change: usize,
    /// `None` if unknown.
    kind: Option<Gvk>,
    verb: &'static str,
    namespace: Option<String>,
    name: Option<String>,
}

/// The rights to read parameters that the plan needs.
///
/// # Errors
/// The target cannot be asked which policies and kinds it has.
pub async fn parameter_needs(plan: &Plan, target: &Target, occasion: RightsOccasion) -> Result<Vec<Need>, Problem> {
    let first = |error: Error| error.first_problem();
    let mut params = Vec::new();
    let mut bindings = Vec::new();
    for (index, change) in plan.changes.iter().enumerate() {
        let is_written = occasion.writes(change.action);
        if change.resource.group != GROUP || !is_written {
            continue;
        }
        let desired = spec(&change.desired.raw);
        let live = change.live.as_ref().filter(|_| occasion == RightsOccasion::Now).map(|live| spec(&live.raw));
        let is_unchanged = live.is_some_and(|live| live["paramKind"] == desired["paramKind"]);
        if desired["paramKind"].is_object() && !is_unchanged {
            let kind = kind_of(&desired["paramKind"]);
            params.push(Params { change: index, kind, verb: "get", namespace: None, name: None });
        }
        if desired["paramRef"].is_object() {
            bindings.extend(policy(change, &desired).map(|policy| (index, policy, desired["paramRef"].clone())));
        }
    }
    let wanted: BTreeMap<Arc<ObjectRef>, ObjectToRead> =
        bindings.iter().map(|(_, policy, _)| (policy.object.clone(), policy.clone())).collect();
    let policies = kinds_of(plan, target, wanted).await.map_err(first)?;
    let mut unread = Vec::new();
    for (change, policy, param_ref) in bindings {
        let Some(kind) = policies.get(&policy.object) else {
            unread.push(read_policy(change, &policy));
            continue;
        };
        let text = |key: &str| param_ref[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let verb = if text("name").is_some() { "get" } else { "list" };
        params.push(Params { change, kind: kind.clone(), verb, namespace: text("namespace"), name: text("name") });
    }
    let kinds = params.iter().filter_map(|params| params.kind.clone()).collect();
    let served = served(plan, target, kinds).await.map_err(first)?;
    let need = |Params { change, kind, verb, namespace, name }: Params| {
        let plural = kind.as_ref().and_then(|kind| served.get(kind)).map_or(ALL, String::as_str);
        let (group, version) = kind.as_ref().map_or((ALL, ALL), |kind| (kind.group.as_str(), kind.version.as_str()));
        let atom = atom(group, plural, name.as_deref(), verb);
        Need { change, namespace, right: Right::Request { atom, version: version.to_owned() } }
    };
    Ok(unread.into_iter().chain(params.into_iter().map(need)).collect())
}

/// The right to read a binding's policy. Without it, the parameters are unknown, and so are the rights that the server
/// requires.
fn read_policy(change: usize, ObjectToRead { resource, object }: &ObjectToRead) -> Need {
    let atom = atom(&resource.group, &resource.plural, Some(&object.name), "get");
    Need { change, namespace: None, right: Right::Request { atom, version: resource.version.clone() } }
}

fn spec(raw: &RawObject) -> Value {
    raw.value()["spec"].take()
}

fn kind_of(param_kind: &Value) -> Option<Gvk> {
    let (api_version, kind) = (param_kind["apiVersion"].as_str()?, param_kind["kind"].as_str()?);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Some(Gvk { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() })
}

/// The policy of a binding.
fn policy(binding: &Change, spec: &Value) -> Option<ObjectToRead> {
    let (kind, plural) = match binding.desired.object.kind.as_str() {
        "ValidatingAdmissionPolicyBinding" => ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        "MutatingAdmissionPolicyBinding" => ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
        _ => return None,
    };
    let resource = Resource { kind: kind.to_owned(), plural: plural.to_owned(), ..Resource::clone(&binding.resource) };
    let object = ObjectRef {
        api_version: binding.desired.object.api_version.clone(),
        kind: kind.to_owned(),
        namespace: None,
        name: spec["policyName"].as_str()?.to_owned(),
    };
    Some(ObjectToRead { resource: resource.into(), object: object.into() })
}

/// The parameter kind of each policy, of the manifests or else of the target; `None` if there is no such policy, or it
/// has no parameters. The result has no entry for a policy that the user may not read.
async fn kinds_of(
    plan: &Plan,
    target: &Target,
    mut wanted: BTreeMap<Arc<ObjectRef>, ObjectToRead>,
) -> Result<BTreeMap<Arc<ObjectRef>, Option<Gvk>>, Error> {
    let mut kinds = BTreeMap::new();
    for change in &plan.changes {
        let object = &change.desired.object;
        let found: Vec<Arc<ObjectRef>> =
            wanted.keys().filter(|wanted| wanted.identity() == object.identity()).cloned().collect();
        for policy in found {
            wanted.remove(&policy);
            kinds.insert(policy, kind_of(&spec(&change.desired.raw)["paramKind"]));
        }
    }
    let asked: Vec<ObjectToRead> = wanted.into_values().collect();
    let read = target.read_each(&asked, &|_, _| ()).await?;
    for (policy, read) in asked.into_iter().zip(read) {
        if let Ok(live) = read {
            kinds.insert(policy.object, live.and_then(|live| kind_of(&spec(&live.raw)["paramKind"])));
        }
    }
    Ok(kinds)
}

/// The plural name of each kind, from the manifests or the target's discovery.
async fn served(plan: &Plan, target: &Target, mut kinds: BTreeSet<Gvk>) -> Result<BTreeMap<Gvk, String>, Error> {
    let defined = |kind: &Gvk| {
        let mut crds = plan.changes.iter().filter_map(|change| change.crd()?.defined());
        let crd = crds.find(|crd| (&crd.group, &crd.names.kind) == (&kind.group, &kind.kind))?;
        Some((kind.clone(), crd.names.plural.clone()))
    };
    let mut served: BTreeMap<Gvk, String> = kinds.iter().filter_map(defined).collect();
    kinds.retain(|kind| !served.contains_key(kind));
    if !kinds.is_empty() {
        let found = target.discover(&kinds).await?;
        served.extend(found.served.into_iter().map(|(kind, resource)| (kind, resource.plural)));
    }
    Ok(served)
}
