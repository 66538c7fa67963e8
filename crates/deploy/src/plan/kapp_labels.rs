//! Keeps the label of kapp's app in selectors, which manifests do not have and a deploy cannot remove.
//!
//! kapp adds the label of its app to the selectors of workloads and Services, and to pod templates. The selector of a
//! workload is immutable, the server refuses a pod template that it does not match, and a changed template restarts all
//! Pods. So what the live object has of it is added to what is applied, in every deploy as long as the object exists.

use serde_json::{Map, Value};

use super::{Change, Plan};
use crate::app::kapp::{ASSOCIATION, KAPP_APP};
use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, RawObject};

/// The maximum number of objects that a sentence names.
const NAMED: usize = 10;

const TEMPLATE_LABELS: &str = "/spec/template/metadata/labels";

/// The path of a kind's selector, and whether it is immutable.
fn selector(object: &ObjectRef) -> Option<(&'static str, bool)> {
    match (object.group(), object.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") | ("batch", "Job") => {
            Some(("/spec/selector/matchLabels", true))
        }
        ("", "Service") => Some(("/spec/selector", false)),
        ("policy", "PodDisruptionBudget") => Some(("/spec/selector/matchLabels", false)),
        _ => None,
    }
}

/// Adds the labels to each manifest whose live selector or pod template has them. With `drops_mutable`, selectors that
/// can change lose theirs.
pub(crate) fn keep_kapp_labels(changes: &mut [Change], drops_mutable: bool) {
    for change in changes.iter_mut().filter(|change| change.desired.bundle.is_none()) {
        let Some((path, is_immutable)) =
            selector(&change.desired.object).filter(|(_, is_immutable)| *is_immutable || !drops_mutable)
        else {
            continue;
        };
        let Some(live) = change.live.as_ref().filter(|live| live.raw.json().contains(KAPP_APP)) else { continue };
        let live = live.raw.value();
        let mut desired = change.desired.raw.value();
        if add_kapp_labels(&mut desired, &live, path, is_immutable) {
            change.desired.raw = RawObject::from_value(&desired);
            let label = |labels: &str| live.pointer(labels)?.get(KAPP_APP)?.as_str().map(str::to_owned);
            change.kapp.kept = label(path).or_else(|| label(TEMPLATE_LABELS));
        }
    }
}

/// Adds kapp's labels, where `live` has them, to the selector, the pod template and the volume claim templates of
/// `desired`, unless it sets them itself. Returns whether that changed `desired`.
fn add_kapp_labels(desired: &mut Value, live: &Value, path: &str, is_immutable: bool) -> bool {
    let before = desired.clone();
    let Some(spec) = desired.get_mut("spec").and_then(Value::as_object_mut) else { return false };
    let label = |labels: &str, key: &str| live.pointer(labels).and_then(|labels| labels.get(key)?.as_str());
    // A Service without a selector has manually managed endpoints.
    if let Some(pair) = label(path, KAPP_APP)
        && let Some(labels) = spec.get_mut("selector").and_then(Value::as_object_mut)
    {
        match path.ends_with("matchLabels") {
            true => add(labels, "matchLabels", KAPP_APP, pair),
            false => add_to(labels, KAPP_APP, pair),
        }
    }
    if is_immutable {
        // The server refuses another pod template of a Job, and a controller replaces the Pods of one that changes.
        for key in [KAPP_APP, ASSOCIATION] {
            if let Some(value) = label(TEMPLATE_LABELS, key)
                && let Some(template) = spec.get_mut("template").and_then(Value::as_object_mut)
                && let Some(metadata) = child(template, "metadata")
            {
                add(metadata, "labels", key, value);
            }
        }
        let live = live.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
        let claims = spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut);
        for claim in claims.into_iter().flatten() {
            let is_same = |live: &&Value| live["metadata"]["name"] == claim["metadata"]["name"];
            let Some(live) = live.into_iter().flatten().find(is_same) else { continue };
            let Some(metadata) = claim.get_mut("metadata").and_then(Value::as_object_mut) else { continue };
            for key in [KAPP_APP, ASSOCIATION] {
                if let Some(value) = live["metadata"]["labels"].get(key).and_then(Value::as_str) {
                    add(metadata, "labels", key, value);
                }
            }
        }
    }
    *desired != before
}

/// The mapping under a key, created if there is none.
fn child<'v>(parent: &'v mut Map<String, Value>, key: &str) -> Option<&'v mut Map<String, Value>> {
    let child = parent.entry(key).or_insert(Value::Null);
    if child.is_null() {
        *child = Value::Object(Map::new());
    }
    child.as_object_mut()
}

fn add(parent: &mut Map<String, Value>, labels: &str, key: &str, value: &str) {
    if let Some(labels) = child(parent, labels) {
        add_to(labels, key, value);
    }
}

/// Adds the label, unless the manifest sets it.
fn add_to(labels: &mut Map<String, Value>, key: &str, value: &str) {
    labels.entry(key).or_insert_with(|| value.into());
}

/// Notices about objects that are written differently from their manifests.
pub fn notice(plan: &Plan) -> Option<Problem> {
    let is_told = |change: &&Change| change.kapp.kept.is_some() && change.action.changes_live();
    let kept: Vec<&Change> = plan.changes.iter().filter(is_told).collect();
    let first = kept.first()?;
    let mut names: Vec<String> = kept.iter().take(NAMED).map(|change| change.desired.object.to_string()).collect();
    if let Some(more) = kept.len().checked_sub(NAMED).filter(|more| *more > 0) {
        names.push(format!("{more} more"));
    }
    let keep = if kept.len() == 1 { "keeps" } else { "keep" };
    let message = format!(
        "rebase: {} {keep} the label {KAPP_APP} in the selector and the pod template, where kapp put it",
        names.join(", ")
    );
    let is_service = |change: &&Change| selector(&change.desired.object).is_some_and(|(_, is_immutable)| !is_immutable);
    let problem = Problem::new(message).at(first.desired.origin.location());
    let fixed = "the selector of a workload is immutable, and a changed pod template would restart all Pods";
    Some(match kept.iter().any(is_service) {
        true => problem
            .help(format!("{fixed}; Services and PodDisruptionBudgets select without it with --drop-kapp-selector")),
        false => problem.help(fixed),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rebased(path: &str, live: Value, desired: Value) -> Option<Value> {
        let (live, mut desired) = (json!({ "spec": live }), json!({ "spec": desired }));
        add_kapp_labels(&mut desired, &live, path, path.ends_with("matchLabels")).then(|| desired["spec"].take())
    }

    #[test]
    fn selector_template_and_claims_have_the_pair_and_nothing_else_changes() {
        let labels = json!({KAPP_APP: "17", ASSOCIATION: "v1.a"});
        let live = json!({
            "selector": {"matchLabels": {"app": "db", KAPP_APP: "17"}},
            "template": {"metadata": {"labels": {"app": "db", KAPP_APP: "17", ASSOCIATION: "v1.a"}}},
            "volumeClaimTemplates": [{"metadata": {"name": "data", "labels": labels}}],
        });
        let desired = json!({
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}}, {"metadata": {"name": "new"}}],
        });
        let expected = json!({
            "selector": {"matchLabels": {"app": "db", KAPP_APP: "17"}},
            "template": {"metadata": {"labels": {"app": "db", KAPP_APP: "17", ASSOCIATION: "v1.a"}}, "spec": {}},
            "volumeClaimTemplates": [{"metadata": {"name": "data", "labels": labels}}, {"metadata": {"name": "new"}}],
        });
        assert_eq!(rebased("/spec/selector/matchLabels", live.clone(), desired), Some(expected.clone()));
        assert_eq!(rebased("/spec/selector/matchLabels", live, expected), None);
    }

    #[test]
    fn the_template_of_a_job_keeps_the_labels_without_a_selector() {
        let labels = json!({KAPP_APP: "17", ASSOCIATION: "v1.a"});
        let live = json!({"selector": {"matchLabels": {"uid": "u"}}, "template": {"metadata": {"labels": labels}}});
        let expected = json!({"template": {"metadata": {"labels": labels}}});
        assert_eq!(rebased("/spec/selector/matchLabels", live, json!({"template": {}})), Some(expected));
    }

    #[test]
    fn a_service_without_a_selector_gets_none() {
        let live = json!({"selector": {KAPP_APP: "17"}});
        assert_eq!(rebased("/spec/selector", live.clone(), json!({"ports": []})), None);
        assert_eq!(rebased("/spec/selector", live.clone(), json!({"selector": null})), None);
        let own = json!({"selector": {KAPP_APP: "18"}});
        assert_eq!(rebased("/spec/selector", live, own), None);
    }
}
