//! Finds the other objects in deleted namespaces.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt};

use super::rules::NAMESPACE_OBJECTS;
use super::{Deletions, OwnedObjectName, list_some, violation};
use crate::{CouldNotCheck, Notices, Violation, ViolationsFound};
use gantry_core::resource::Resource;
use gantry_core::text::count;
use gantry_deploy::plan::removal::Removal;

/// How many lists are read at the same time.
const AT_ONCE: usize = 8;

/// The objects that Kubernetes creates in every namespace.
const IN_EVERY_NAMESPACE: [(&str, &str); 2] = [("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")];

/// The group and kind of APIServices. Those of the app are deleted before its namespaces.
const API_SERVICES: (&str, &str) = ("apiregistration.k8s.io", "APIService");

/// Whether losing objects of the kind matters. Objects of other kinds are computed, or written about other objects.
fn matters(resource: &Resource) -> bool {
    let is_derived = matches!(
        (resource.group.as_str(), resource.kind.as_str()),
        ("metrics.k8s.io", _)
            | ("" | "events.k8s.io", "Event")
            | ("", "Endpoints")
            | ("discovery.k8s.io", "EndpointSlice")
    );
    resource.namespaced && !is_derived
}

pub async fn check(deletions: &Deletions<'_>, ignores_failing_apis: bool, notices: &Notices) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    let namespaces: Vec<&Removal> = deletions.of_kind("", "Namespace").collect();
    if namespaces.is_empty() {
        return found;
    }
    let mut kinds = match deletions.target.listable_kinds().await {
        Ok(kinds) => kinds,
        Err(error) => {
            found.unchecked.push(deletions.unread(error.problems().first(), "the kinds of the cluster"));
            return found;
        }
    };
    let goes_before = |api_service: &str| deletions.is_deleted(API_SERVICES.0, API_SERVICES.1, None, api_service);
    if !ignores_failing_apis {
        let failing = deletions.failing().await.map(|mut failing| {
            failing.retain(|api_service| !goes_before(api_service));
            failing
        });
        match failing {
            Ok(failing) => found.unchecked.extend(unknown(deletions, &failing)),
            // APIServices are only reported if the user may list them.
            Err(error) => notices.add(error.message),
        }
    }
    // The server no longer serves these when the namespace is deleted.
    kinds.retain(|kind| matters(kind) && !goes_before(&format!("{}.{}", kind.version, kind.group)));
    for removal in namespaces {
        match check_namespace(deletions, removal, kinds.iter()).await {
            Ok(violation) => found.violations.extend(violation),
            Err(error) => found.unchecked.push(error),
        }
    }
    found
}

fn unknown(deletions: &Deletions<'_>, failing: &[String]) -> Option<CouldNotCheck> {
    let [first, others @ ..] = failing else { return None };
    let more = if others.is_empty() { String::new() } else { format!(" (and {} more)", others.len()) };
    let message = format!(
        "it is unknown what else the namespace contains: apiservice.apiregistration.k8s.io/{first}{more} does not \
         answer, and the API server does not finish deleting a namespace until it does"
    );
    let nothing = deletions.without_deleting();
    let help =
        format!("repair or delete the APIService; {nothing}; or ignore such APIs: --ignore-failing-api-services");
    Some(CouldNotCheck { message, help: Some(help) })
}

async fn check_namespace(
    deletions: &Deletions<'_>,
    removal: &Removal,
    kinds: impl Iterator<Item = &Resource>,
) -> Result<Option<Violation>, CouldNotCheck> {
    let namespace = removal.object.name.as_str();
    let of_kind = async |resource: &Resource| {
        let gather = |names: &mut Vec<String>, json: &str| {
            let Ok(OwnedObjectName { metadata }) = serde_json::from_str(json) else { return };
            let is_own = metadata.owner_references.is_some_and(|owners| !owners.is_empty())
                || IN_EVERY_NAMESPACE.contains(&(&resource.kind, &metadata.name))
                || deletions.is_deleted(&resource.group, &resource.kind, Some(namespace), &metadata.name);
            if !is_own {
                names.push(metadata.name);
            }
        };
        let names = deletions.list(resource, Some(namespace), gather).await;
        names.map(|names| (resource.kind.clone(), names.unwrap_or_default()))
    };
    let mut answers = stream::iter(kinds).map(of_kind).buffer_unordered(AT_ONCE);
    let mut others: BTreeMap<String, Vec<String>> = BTreeMap::new();
    while let Some(answer) = answers.next().await {
        let (kind, names) = answer?;
        if !names.is_empty() {
            others.entry(kind).or_default().extend(names);
        }
    }
    let number: usize = others.values().map(Vec::len).sum();
    if number == 0 {
        return Ok(None);
    }
    let kinds: Vec<String> =
        others.iter().map(|(kind, names)| format!("{} {kind} ({})", names.len(), list_some(names))).collect();
    let message = format!(
        "the namespace contains {} that this deploy does not delete explicitly: {}",
        count(number, "object"),
        kinds.join(", ")
    );
    let help = format!("move or delete them first, or keep the namespace ({} on it)", deletions.keeping());
    Ok(Some(violation(&NAMESPACE_OBJECTS, removal, message, help)))
}
