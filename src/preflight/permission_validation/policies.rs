//! Admission policies with parameters. Whoever writes one makes the API server read them on his behalf, so the server
//! asks for the right to read them: `get` on every object of a policy's `paramKind`; on what a binding's `paramRef` names
//! `get`, or `list` where it selects. What stays as it is live is not asked for again.
//!
//! Source: `k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy/authz.go`, and beside it those
//! of its binding and of mutating policies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::needs::{Need, Occasion, Right, atom};
use crate::plan::{Action, Change, CrdHead, Plan};
use crate::problem::{Error, Problem};
use crate::resource::{ObjectRef, RawObject, Resource};
use crate::target::{Gvk, Target, Wanted};

const GROUP: &str = "admissionregistration.k8s.io";

/// The parameters of one policy or binding.
struct Params {
    change: usize,
    kind: Gvk,
    verb: &'static str,
    namespace: Option<String>,
    name: Option<String>,
}

/// The rights to read parameters that the plan needs.
///
/// # Errors
/// The target cannot be asked which policies and kinds it has.
pub async fn needs(plan: &Plan, target: &Target, occasion: Occasion) -> Result<Vec<Need>, Problem> {
    let first = |error: Error| error.problems().first().cloned().unwrap_or_else(|| Problem::new("it does not answer"));
    let mut params = Vec::new();
    let mut bindings = Vec::new();
    for (index, change) in plan.changes.iter().enumerate() {
        let is_written = occasion == Occasion::Always || change.action != Action::Unchanged;
        if change.resource.group != GROUP || !is_written || change.action == Action::Delete {
            continue;
        }
        let desired = spec(&change.desired.raw);
        let live = change.live.as_ref().filter(|_| occasion == Occasion::Now).map(|live| spec(&live.raw));
        let stays = |key: &str| live.as_ref().is_some_and(|live| live[key] == desired[key]);
        if let Some(kind) = kind_of(&desired["paramKind"]).filter(|_| !stays("paramKind")) {
            params.push(Params { change: index, kind, verb: "get", namespace: None, name: None });
        }
        if desired["paramRef"].is_object() && !(stays("paramRef") && stays("policyName")) {
            bindings.extend(policy(change, &desired).map(|policy| (index, policy, desired["paramRef"].clone())));
        }
    }
    let wanted: BTreeMap<ObjectRef, Wanted> =
        bindings.iter().map(|(_, policy, _)| (policy.object.clone(), policy.clone())).collect();
    let kinds = kinds_of(plan, target, wanted).await.map_err(first)?;
    for (change, policy, param_ref) in bindings {
        // Without its policy nobody can tell what a binding's parameters are.
        let Some(kind) = kinds.get(&policy.object) else { continue };
        let text = |key: &str| param_ref[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let verb = if text("name").is_some() { "get" } else { "list" };
        params.push(Params { change, kind: kind.clone(), verb, namespace: text("namespace"), name: text("name") });
    }
    let served =
        served(plan, target, params.iter().map(|params| params.kind.clone()).collect()).await.map_err(first)?;
    let need = |Params { change, kind, verb, namespace, name }: Params| {
        let (plural, version) = served.get(&kind).map(|plural| (plural, kind.version.clone()))?;
        let atom = atom(&kind.group, plural, name.as_deref(), verb);
        Some(Need { change, namespace, right: Right::Request { atom, version } })
    };
    Ok(params.into_iter().filter_map(need).collect())
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
fn policy(binding: &Change, spec: &Value) -> Option<Wanted> {
    let (kind, plural) = match binding.desired.object.kind.as_str() {
        "ValidatingAdmissionPolicyBinding" => ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        "MutatingAdmissionPolicyBinding" => ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
        _ => return None,
    };
    let resource = Resource { kind: kind.to_owned(), plural: plural.to_owned(), ..binding.resource.clone() };
    let object = ObjectRef {
        api_version: binding.desired.object.api_version.clone(),
        kind: kind.to_owned(),
        namespace: None,
        name: spec["policyName"].as_str()?.to_owned(),
    };
    Some(Wanted { resource, object })
}

/// The kind of parameter of each policy: of the manifests, else of the target. One that nobody has, or that may not be
/// read, is missing.
async fn kinds_of(
    plan: &Plan,
    target: &Target,
    mut wanted: BTreeMap<ObjectRef, Wanted>,
) -> Result<BTreeMap<ObjectRef, Gvk>, Error> {
    let mut kinds = BTreeMap::new();
    for change in &plan.changes {
        let object = &change.desired.object;
        let found: Vec<ObjectRef> =
            wanted.keys().filter(|wanted| wanted.identity() == object.identity()).cloned().collect();
        for policy in found {
            wanted.remove(&policy);
            kinds.extend(kind_of(&spec(&change.desired.raw)["paramKind"]).map(|kind| (policy, kind)));
        }
    }
    let asked: Vec<Wanted> = wanted.into_values().collect();
    let read = target.read_each(&asked, &|_, _| ()).await?;
    for (policy, read) in asked.into_iter().zip(read) {
        let kind = read.ok().flatten().and_then(|live| kind_of(&spec(&live.raw)["paramKind"]));
        kinds.extend(kind.map(|kind| (policy.object, kind)));
    }
    Ok(kinds)
}

/// The plural of each kind: the manifests tell, or the target's discovery.
async fn served(plan: &Plan, target: &Target, mut kinds: BTreeSet<Gvk>) -> Result<BTreeMap<Gvk, String>, Error> {
    let crds = plan.changes.iter().filter(|change| change.desired.object.is_crd());
    let crds: Vec<CrdHead> = crds.filter_map(|crd| CrdHead::of(&crd.desired.raw)).collect();
    let defined = |kind: &Gvk| {
        let crd = crds.iter().find(|crd| (&crd.spec.group, &crd.spec.names.kind) == (&kind.group, &kind.kind))?;
        Some((kind.clone(), crd.spec.names.plural.clone()))
    };
    let mut served: BTreeMap<Gvk, String> = kinds.iter().filter_map(defined).collect();
    kinds.retain(|kind| !served.contains_key(kind));
    if !kinds.is_empty() {
        let found = target.discover(&kinds).await?;
        served.extend(found.into_iter().map(|(kind, resource)| (kind, resource.plural)));
    }
    Ok(served)
}
