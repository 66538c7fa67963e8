//! Finds manifests that set `spec.replicas` of an object that a HorizontalPodAutoscaler scales: the first deploy sets
//! the number, and a later one is in conflict with the autoscaler.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Change, Plan};
use gantry_cluster::{ListRequest, Target};
use gantry_core::managed_fields::ManagerEntry;
use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, Resource};

/// The number of autoscalers on one page of a list.
const PAGE: u32 = 100;

/// What an autoscaler scales: namespace, API group, kind, name.
type Scaled = (String, String, String, String);

/// A notice for each object whose number of replicas is set by its manifest and by an autoscaler.
pub async fn notices(plan: &Plan, target: &Target) -> Vec<Problem> {
    let sets_replicas = |change: &&Change| {
        let object = &change.desired.object;
        change.desired.bundle.is_none()
            && !object.is_crd()
            && change.desired.may_contain(&["replicas"])
            && change.desired.raw.value()["spec"]["replicas"].is_number()
    };
    let changes: Vec<&Change> = plan.changes.iter().filter(sets_replicas).collect();
    if changes.is_empty() {
        return Vec::new();
    }
    let mut autoscalers: BTreeMap<Scaled, String> = BTreeMap::new();
    for change in &plan.changes {
        let object = &change.desired.object;
        if object.group() == "autoscaling" && object.kind == "HorizontalPodAutoscaler" {
            autoscalers.extend(scaled_by(
                object.namespace.as_deref(),
                object.name.as_str(),
                &change.desired.raw.value(),
            ));
        }
    }
    // The autoscalers of others are listed only where one has scaled an object.
    let unnamed = changes.iter().filter(|change| was_scaled(change) && !autoscalers.contains_key(&key(change)));
    let namespaces: BTreeSet<String> = unnamed.filter_map(|change| change.desired.object.namespace.clone()).collect();
    let resource = Resource::built_in("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true);
    for namespace in &namespaces {
        let request = ListRequest { namespace: Some(namespace), ..ListRequest::new(&resource, PAGE) };
        let gather = |found: &mut Vec<(Scaled, String)>, json: &str| {
            let Ok(object) = serde_json::from_str::<Value>(json) else { return };
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            found.extend(scaled_by(Some(namespace), name, &object));
        };
        // Without the right to list them, only the conflict is reported.
        autoscalers.extend(target.list(&request).gather(gather).await.unwrap_or_default());
    }
    changes.into_iter().filter_map(|change| Some(notice(change, autoscalers.get(&key(change))?))).collect()
}

fn key(change: &Change) -> Scaled {
    let object = &change.desired.object;
    let namespace = object.namespace.clone().unwrap_or_default();
    (namespace, object.group().to_owned(), object.kind.clone(), object.name.clone())
}

/// What an autoscaler scales, with its name as shown to the user.
fn scaled_by(namespace: Option<&str>, name: &str, autoscaler: &Value) -> Option<(Scaled, String)> {
    let target = &autoscaler["spec"]["scaleTargetRef"];
    let text = |key: &str| target[key].as_str().unwrap_or_default().to_owned();
    let group = text("apiVersion").split_once('/').map_or(String::new(), |(group, _)| group.to_owned());
    let shown = ObjectRef {
        api_version: "autoscaling/v2".into(),
        kind: "HorizontalPodAutoscaler".into(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    };
    let scaled = (namespace.unwrap_or_default().to_owned(), group, text("kind"), text("name"));
    (!scaled.3.is_empty()).then(|| (scaled, shown.to_string()))
}

/// Whether a controller has set the replicas through the subresource `scale`.
fn was_scaled(change: &Change) -> bool {
    let Some(live) = &change.live else { return false };
    let has_scale = live.raw.json().contains("\"scale\"");
    has_scale
        && ManagerEntry::all(&live.raw.value())
            .any(|entry| entry.subresource() == "scale" && entry.fields().below(&["spec", "replicas"]).is_some())
}

fn notice(change: &Change, autoscaler: &str) -> Problem {
    let object = &change.desired.object;
    let message = format!(
        "{object}: the manifest sets spec.replicas, and {autoscaler} scales it: as soon as the autoscaler changes the number, \
         a deploy is in conflict with it"
    );
    let help = match was_scaled(change) {
        true => "remove spec.replicas from the manifest: the number stays as it is, and the autoscaler alone sets it",
        false => {
            "remove spec.replicas from the manifest once the autoscaler has set a number: before that, the server would set 1"
        }
    };
    Problem::new(message).at(change.desired.origin.location()).help(help)
}
