//! Finds cluster-scoped objects with a namespace, and namespaced objects without one.

use serde::Deserialize;

use super::rules;
use crate::Violation;
use gantry_core::finding::Severity;
use gantry_core::resource::Step;
use gantry_deploy::plan::{Change, Plan};

pub fn check(plan: &Plan) -> Vec<Violation> {
    plan.changes.iter().enumerate().filter_map(|(index, change)| violation(plan, index, change)).collect()
}

fn violation(plan: &Plan, index: usize, change: &Change) -> Option<Violation> {
    let written = written_namespace(change);
    let kind = &change.resource.kind;
    match (change.resource.namespaced, written) {
        (false, Some(namespace)) => {
            let message = format!("{kind} is cluster-scoped: the server drops the namespace {namespace:?}");
            let help = "remove the namespace; the object applies to the whole cluster";
            let at = vec![Step::from("metadata"), Step::from("namespace")];
            let violation = Violation::new(&rules::NAMESPACE_IGNORED, index, None, message, help.to_owned(), at);
            Some(violation.label("dropped".to_owned()))
        }
        // OLM installs it into the namespace of the ClusterExtension, whatever it names.
        (true, None) if change.desired.bundle.is_some() => None,
        (true, None) => {
            let namespace = plan.assumed_namespace.as_deref()?;
            let by_context = namespace != "default";
            let why = if by_context { ", the namespace of the kubeconfig's context" } else { "" };
            let message = format!("{kind} has no namespace and is created in {namespace:?}{why}");
            let help = "set metadata.namespace, or pass --namespace";
            let at = vec![Step::from("metadata"), Step::from("name")];
            let violation = Violation::new(&rules::NAMESPACE_ASSUMED, index, None, message, help.to_owned(), at);
            Some(if by_context { violation.severity(Severity::Info) } else { violation })
        }
        _ => None,
    }
}

/// The namespace in the manifest itself. The plan adds or removes the one in the object reference.
fn written_namespace(change: &Change) -> Option<String> {
    #[derive(Deserialize)]
    struct ScopedHead {
        metadata: ScopeMetadata,
    }
    #[derive(Deserialize)]
    struct ScopeMetadata {
        #[serde(default)]
        namespace: Option<String>,
    }
    let head: ScopedHead = serde_json::from_str(&change.desired.raw.json()).ok()?;
    head.metadata.namespace.filter(|namespace| !namespace.is_empty())
}
