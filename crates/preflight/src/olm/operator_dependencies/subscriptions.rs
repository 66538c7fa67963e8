//! What classic OLM does with the Subscriptions of the manifests, and what keeps it from resolving a namespace.
//!
//! Sources: `pkg/controller/registry/resolver` (`resolver.go`, `step_resolver.go`, `variable_types.go`) and
//! `pkg/controller/operators/olm/operator.go` of operator-lifecycle-manager; `InstallModeSet.Supports` of
//! operator-framework/api.

use std::collections::BTreeMap;

use serde_json::Value;

use super::nodes::{CSV, OperatorNode};
use super::rules::{OPERATOR_GROUP_INVALID, SUBSCRIPTION_NOT_RESOLVED};
use super::violation;
use crate::{Context, CouldNotCheck, Violation, ViolationsFound};
use gantry_core::finding::Action;
use gantry_core::problem::Problem;
use gantry_core::resource::ObjectRef;
use gantry_core::text::sanitize;
use gantry_olm::subscription::{GROUP, SubscriptionObject};

/// The namespaces whose catalogs all namespaces use: upstream's, and that of OpenShift.
const GLOBAL_NAMESPACES: [&str; 2] = ["olm", "openshift-marketplace"];
/// The annotation of an OperatorGroup that excludes the global catalogs.
const EXCLUDES_GLOBAL: &str = "olm.operatorframework.io/exclude-global-namespace-resolution";

/// A Subscription of the manifests with what it resolves to.
#[derive(Debug)]
pub struct PlannedSubscription {
    /// The index of its change.
    pub change: usize,
    pub object: SubscriptionObject,
    /// The name of the bundle and what it provides, if the Subscription resolves.
    pub bundle: Option<OperatorNode>,
    /// The install modes of the bundle, if the catalog says them.
    pub modes: Option<Vec<String>>,
}

/// An OperatorGroup after the deploy.
#[derive(Debug, Clone, PartialEq)]
struct OperatorGroupObject {
    name: String,
    /// `None` if it selects namespaces by labels.
    targets: Option<Vec<String>>,
    excludes_global: bool,
}

impl OperatorGroupObject {
    fn parse(value: &Value) -> OperatorGroupObject {
        let spec = &value["spec"];
        let selects = spec["selector"].as_object().is_some_and(|selector| !selector.is_empty());
        let named: Vec<String> = spec["targetNamespaces"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        OperatorGroupObject {
            name: value["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            targets: match (named.is_empty(), selects) {
                (false, _) => Some(named),
                (true, true) => None,
                // All namespaces.
                (true, false) => Some(vec![String::new()]),
            },
            excludes_global: value["metadata"]["annotations"][EXCLUDES_GLOBAL] == "true",
        }
    }
}

/// Everything that keeps OLM from resolving the namespaces of these Subscriptions.
pub async fn check(
    planned: &[PlannedSubscription],
    before: &[OperatorNode],
    live: &[Value],
    sources: &[Value],
    context: &Context<'_>,
) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    if planned.is_empty() {
        return found;
    }
    let groups = objects_after(context, "OperatorGroup", &["v1", "v1alpha2"]).await;
    let groups = groups.map_err(|error| found.unchecked.push(error)).ok().map(Option::unwrap_or_default);
    let mut unhealthy: BTreeMap<(String, String), CouldNotCheck> = BTreeMap::new();
    for one in planned {
        let namespace = one.object.namespace.as_str();
        let mut excludes_global = false;
        if let Some(groups) = &groups {
            let of: Vec<OperatorGroupObject> =
                in_namespace(groups, namespace).map(OperatorGroupObject::parse).collect();
            found.violations.extend(check_groups(one, &of, context));
            excludes_global = matches!(&of[..], [only] if only.excludes_global);
        }
        found.violations.extend(unreferenced(one, before, live, context));
        let is_visible = |at: &str| at == namespace || !excludes_global && GLOBAL_NAMESPACES.contains(&at);
        for source in sources {
            let text = |path: &str| source.pointer(path).and_then(Value::as_str).unwrap_or_default();
            let (at, name) = (text("/metadata/namespace"), text("/metadata/name"));
            let state = text("/status/connectionState/lastObservedState");
            if is_visible(at) && !state.is_empty() && state != "READY" {
                unhealthy
                    .entry((at.to_owned(), name.to_owned()))
                    .or_insert_with(|| unhealthy_source(one, at, name, state));
            }
        }
    }
    found.unchecked.extend(unhealthy.into_values());
    found.violations.extend(of_one_package(planned, live));
    found
}

fn unhealthy_source(one: &PlannedSubscription, at: &str, name: &str, state: &str) -> CouldNotCheck {
    let (at, name) = (sanitize(at), sanitize(name));
    CouldNotCheck {
        message: format!(
            "error using catalogsource {at}/{name}: its connection is {}; until it is READY, OLM installs and updates no \
             operator in namespace {}, also from other catalogs",
            sanitize(state),
            sanitize(&one.object.namespace)
        ),
        help: Some(format!(
            "see kubectl -n {at} get catalogsource {name} -o yaml and the log of its Pod; or delete the CatalogSource"
        )),
    }
}

/// The objects of a kind after the deploy; `None` if the target does not serve it and the deploy writes none.
pub async fn objects_after(
    context: &Context<'_>,
    kind: &str,
    versions: &[&str],
) -> Result<Option<Vec<Value>>, CouldNotCheck> {
    let add = |all: &mut Vec<Value>, json: &str| all.extend(serde_json::from_str::<Value>(json).ok());
    let listed = gantry_olm::gather(context.target, (GROUP, kind), versions, add).await;
    let live = listed.map_err(|Problem { message, help, .. }| CouldNotCheck {
        message: format!("the live {kind}s are unknown: {message}"),
        help,
    })?;
    let is_removed = |value: &Value| {
        let deleted = context.plan.removals.iter().filter(|removal| removal.action == Action::Delete);
        deleted.map(|removal| &removal.object).any(|object| is_same(object, kind, value))
    };
    let is_served = live.is_some();
    let mut all: Vec<Value> = live.unwrap_or_default().into_iter().filter(|value| !is_removed(value)).collect();
    for change in &context.plan.changes {
        let object = &change.desired.object;
        if object.group() != GROUP || object.kind != kind {
            continue;
        }
        all.retain(|value| !is_same(object, kind, value));
        let mut value = context.olm.object_after(change);
        if let Some(namespace) = &object.namespace {
            value["metadata"]["namespace"] = namespace.as_str().into();
        }
        all.push(value);
    }
    Ok((is_served || !all.is_empty()).then_some(all))
}

fn is_same(object: &ObjectRef, kind: &str, value: &Value) -> bool {
    object.kind == kind
        && value["metadata"]["name"] == object.name.as_str()
        && value["metadata"]["namespace"].as_str() == object.namespace.as_deref()
}

fn in_namespace<'v>(objects: &'v [Value], namespace: &str) -> impl Iterator<Item = &'v Value> {
    objects.iter().filter(move |value| value["metadata"]["namespace"] == namespace)
}

/// OLM needs exactly one OperatorGroup, whose namespaces the operator can watch.
fn check_groups(one: &PlannedSubscription, groups: &[OperatorGroupObject], context: &Context<'_>) -> Option<Violation> {
    let namespace = one.object.namespace.as_str();
    let [group] = groups else {
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        if groups.is_empty() && !context.target.is_server() {
            context.notices.add(format!(
                "there is no OperatorGroup in namespace {} of the target or the manifests; OLM resolves no Subscription without \
                 one",
                sanitize(namespace)
            ));
            return None;
        }
        let message = format!(
            "expected 1 OperatorGroup in the namespace, found {}: OLM installs and updates no operator in namespace {}",
            groups.len(),
            sanitize(namespace)
        );
        let help = match groups.is_empty() {
            true => "add one; without targetNamespaces, its operators watch all namespaces".to_owned(),
            false => format!("keep one of {}, and delete the others", sanitize(&names.join(", "))),
        };
        return Some(violation(&OPERATOR_GROUP_INVALID, one.change, message, help));
    };
    let (modes, targets) = (one.modes.as_ref()?, group.targets.as_ref()?);
    let why = unsupported_targets(modes, namespace, targets)?;
    let bundle = one.bundle.as_ref().map_or("", |bundle| &bundle.name);
    let message = format!("bundle {} fails in OperatorGroup {}: {why}", sanitize(bundle), sanitize(&group.name));
    let help = format!(
        "it supports {}: change spec.targetNamespaces of the OperatorGroup, or subscribe in another namespace",
        sanitize(&modes.join(", "))
    );
    Some(violation(&OPERATOR_GROUP_INVALID, one.change, message, help))
}

/// Why an operator with these install modes cannot watch these namespaces, in OLM's words.
fn unsupported_targets(modes: &[String], own: &str, targets: &[String]) -> Option<String> {
    let lacks = |mode: &str| !modes.iter().any(|known| known == mode);
    let refuse = |mode: &str, what: &str| {
        Some(format!("{mode} InstallModeType not supported, cannot configure to watch {what}"))
    };
    match targets {
        [only] if only == own => lacks("OwnNamespace").then(|| refuse("OwnNamespace", "own namespace"))?,
        [all] if all.is_empty() => lacks("AllNamespaces").then(|| refuse("AllNamespaces", "all namespaces"))?,
        [_] => lacks("SingleNamespace").then(|| refuse("SingleNamespace", "one namespace"))?,
        several if lacks("MultiNamespace") => refuse("MultiNamespace", &format!("{} namespaces", several.len())),
        several if several.iter().any(|one| one == own) && lacks("OwnNamespace") => {
            refuse("OwnNamespace", "own namespace")
        }
        _ => None,
    }
}

/// Reports a ClusterServiceVersion without a Subscription that conflicts with the bundle.
fn unreferenced(
    one: &PlannedSubscription,
    before: &[OperatorNode],
    live: &[Value],
    context: &Context<'_>,
) -> Vec<Violation> {
    let Some(bundle) = &one.bundle else { return Vec::new() };
    let namespace = one.object.namespace.as_str();
    let is_referenced = |csv: &str| in_namespace(live, namespace).any(|object| object["status"]["installedCSV"] == csv);
    let is_deleted = |csv: &str| {
        let mut removals = context.plan.removals.iter().filter(|removal| removal.action == Action::Delete);
        removals.any(|removal| {
            removal.object.kind == CSV
                && removal.object.name == csv
                && removal.object.namespace.as_deref() == Some(namespace)
        })
    };
    let csvs = before.iter().filter(|node| node.object.0 == CSV && node.object.1.as_deref() == Some(namespace));
    let free = csvs.filter(|node| !is_referenced(&node.name) && !is_deleted(&node.name));
    let conflicting = free.filter_map(|node| {
        // OLM knows the package of a ClusterServiceVersion only from its property.
        let is_of_package = node.package_version.is_some() && node.package == bundle.package;
        let api = node.provides.intersection(&bundle.provides).next();
        let why = match (is_of_package, api) {
            (true, _) => format!("there can be only one operator from package {}", sanitize(&bundle.package)),
            (false, Some(api)) => format!(
                "there can be only one provider of {} ({}/{})",
                sanitize(&api.kind),
                sanitize(&api.group),
                sanitize(&api.version)
            ),
            (false, None) => return None,
        };
        let csv = sanitize(&node.name);
        let message = format!(
            "clusterserviceversion {csv} exists and is not referenced by a subscription, and {why}: OLM cannot install {} for \
             Subscription {}, and installs and updates no operator in namespace {}",
            sanitize(&bundle.name),
            sanitize(&one.object.name),
            sanitize(namespace)
        );
        let help = format!(
            "delete it, so that the Subscription installs the operator again: kubectl -n {} delete clusterserviceversion {csv} \
             (the operator stops until then; CRDs and custom resources stay)",
            sanitize(namespace)
        );
        Some(violation(&SUBSCRIPTION_NOT_RESOLVED, one.change, message, help))
    });
    conflicting.collect()
}

/// Reports Subscriptions of one package in a namespace that no bundle satisfies together.
fn of_one_package(planned: &[PlannedSubscription], live: &[Value]) -> Vec<Violation> {
    let is_planned = |object: &SubscriptionObject| {
        planned.iter().any(|one| (&one.object.name, &one.object.namespace) == (&object.name, &object.namespace))
    };
    let others: Vec<SubscriptionObject> =
        live.iter().filter_map(SubscriptionObject::parse).filter(|object| !is_planned(object)).collect();
    let mut found = Vec::new();
    for (at, one) in planned.iter().enumerate() {
        let mut rest = others.iter().chain(planned[..at].iter().map(|other| &other.object));
        let conflicts = |other: &&SubscriptionObject| {
            let (one, other) = (&one.object, *other);
            let is_same_place = (&one.namespace, &one.package) == (&other.namespace, &other.package);
            let is_other_source = (&one.source, &one.source_namespace) != (&other.source, &other.source_namespace);
            let is_other_channel = !one.channel.is_empty() && !other.channel.is_empty() && one.channel != other.channel;
            is_same_place && (is_other_source || is_other_channel)
        };
        let Some(other) = rest.find(conflicts) else { continue };
        let message = format!(
            "there can be only one operator from package {}: Subscription {} of channel {} and Subscription {} of channel {} \
             cannot both be satisfied in namespace {}",
            sanitize(&one.object.package),
            sanitize(&other.name),
            sanitize(&other.channel),
            sanitize(&one.object.name),
            sanitize(&one.object.channel),
            sanitize(&one.object.namespace)
        );
        let help =
            "keep one Subscription for each package; deleting a Subscription leaves its operator installed".to_owned();
        found.push(violation(&SUBSCRIPTION_NOT_RESOLVED, one.change, message, help));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_namespaces_must_fit_the_install_modes() {
        let modes = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let all = ["AllNamespaces", "OwnNamespace", "SingleNamespace", "MultiNamespace"];
        for (without, targets, text) in [
            ("OwnNamespace", &["own"][..], "cannot configure to watch own namespace"),
            ("AllNamespaces", &[""], "cannot configure to watch all namespaces"),
            ("SingleNamespace", &["other"], "cannot configure to watch one namespace"),
            ("MultiNamespace", &["own", "other"], "cannot configure to watch 2 namespaces"),
            ("OwnNamespace", &["own", "other"], "cannot configure to watch own namespace"),
        ] {
            let rest: Vec<&str> = all.iter().copied().filter(|mode| *mode != without).collect();
            let expected = format!("{without} InstallModeType not supported, {text}");
            assert_eq!(unsupported_targets(&modes(&rest), "own", &modes(targets)), Some(expected));
            assert_eq!(unsupported_targets(&modes(&all), "own", &modes(targets)), None);
        }
    }
}
