//! The tools that deploy manifests, by the field managers that they write as. A tool that no longer deploys an object
//! does not use its fields, unlike a controller or a person.
//!
//! Sources: the tools' documentation and code; for kubectl, `k8s.io/client-go/util/csaupgrade`, which finds the manager
//! of a client-side apply by the annotation that it owns.

use std::borrow::Cow;

use crate::managed_fields::{FieldSet, ManagerEntry, ManagerOperation};
use crate::resource::{HELM_RELEASE, LAST_APPLIED};

/// The name that the server uses when an object has no record of who wrote it.
pub const UNRECORDED: &str = "before-first-apply";

/// Whether a tool writes by server-side apply, by plain updates, or by either.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolWriteMethod {
    Applies,
    Updates,
    Both,
}

use ToolWriteMethod::{Applies, Both, Updates};

/// Field manager, how it writes, and the tool as people know it. `kubectl` with updates is not among them: it scales
/// and patches.
const TOOLS: &[(&str, ToolWriteMethod, &str)] = &[
    ("HashiCorp", Updates, "Terraform"),
    ("Terraform", Both, "Terraform"),
    ("argocd-controller", Both, "Argo CD"),
    (UNRECORDED, Updates, "a tool that left no record"),
    ("configsync", Both, "Config Sync"),
    ("configsync.gke.io", Both, "Config Sync"),
    ("fleetagent", Both, "Fleet"),
    ("flux", Applies, "flux"),
    ("flux-client-side-apply", Updates, "flux"),
    ("helm", Both, "helm"),
    ("helm-controller", Both, "Flux's helm-controller"),
    ("kapp", Both, "kapp deploy"),
    ("kluctl", Both, "kluctl"),
    ("kpt", Applies, "kpt live apply"),
    ("kubectl", Applies, "kubectl apply --server-side"),
    ("kubectl-client-side-apply", Updates, "kubectl apply"),
    ("kubectl-create", Updates, "kubectl create"),
    ("kubectl-last-applied", Both, "kubectl apply"),
    ("kubectl-replace", Updates, "kubectl replace"),
    ("kubectl-run", Updates, "kubectl run"),
    ("kustomize-controller", Both, "Flux's kustomize-controller"),
    ("pulumi-kubernetes", Both, "Pulumi"),
    ("pulumi-resource-kubernetes", Both, "Pulumi"),
    ("skaffold", Both, "skaffold"),
    ("terraform-provider-kubectl", Both, "Terraform"),
    ("terraform-provider-kubernetes", Both, "Terraform"),
    ("tilt", Both, "tilt"),
    ("timoni", Both, "timoni"),
    ("werf", Both, "werf"),
];

/// The commands of kubectl with which people change single fields. Each also writes the annotation of `kubectl apply`
/// if it is asked to (`--save-config`).
const BY_HAND: &[&str] = &[
    "kubectl",
    "kubectl-annotate",
    "kubectl-autoscale",
    "kubectl-edit",
    "kubectl-label",
    "kubectl-patch",
    "kubectl-rollout",
    "kubectl-scale",
    "kubectl-set",
    "kubectl-taint",
];

/// The deploy tool behind a field manager, as people know it; `None` for controllers, people and unknown managers.
pub fn deploy_tool(manager: &str, is_apply: bool) -> Option<&'static str> {
    // With server-side apply, Pulumi adds a random suffix for each resource.
    let manager = match manager.strip_prefix("pulumi-kubernetes-") {
        Some(_) => "pulumi-kubernetes",
        None => manager,
    };
    let known = TOOLS
        .iter()
        .find(|(name, writes, _)| *name == manager && (*writes == Both || (*writes == Applies) == is_apply));
    known.map(|(.., tool)| *tool)
}

/// The deploy tool that an entry of `managedFields` belongs to. Entries of a subresource belong to none: they are about
/// the status or the scale.
pub fn tool_of(entry: ManagerEntry<'_>, fields: &FieldSet) -> Option<&'static str> {
    let is_apply = entry.operation() == ManagerOperation::Apply;
    entry.subresource().is_empty().then(|| of_manager(entry.manager(), is_apply, fields)).flatten()
}

/// The same for the fields of a manager.
pub fn of_manager(manager: &str, is_apply: bool, fields: &FieldSet) -> Option<&'static str> {
    let by_annotation = || {
        let is_client_side = !is_apply && !BY_HAND.contains(&manager) && owns_last_applied(fields);
        is_client_side.then_some("kubectl apply")
    };
    deploy_tool(manager, is_apply).or_else(by_annotation)
}

fn owns_last_applied(fields: &FieldSet) -> bool {
    fields.below(&["metadata", "annotations", LAST_APPLIED]).is_some()
}

/// Whether a manager has set the annotation by which Helm recognizes the objects of a release.
pub fn owns_helm_release(fields: &FieldSet) -> bool {
    fields.below(&["metadata", "annotations", HELM_RELEASE]).is_some()
}

/// The tools of a list, each once: `kubectl apply and helm`.
pub fn listed(mut tools: Vec<&'static str>) -> Cow<'static, str> {
    tools.sort_unstable();
    tools.dedup();
    match tools[..] {
        [] => "another tool".into(),
        [one] => one.into(),
        [ref first @ .., last] => format!("{} and {last}", first.join(", ")).into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tool(manager: &str, operation: &str, rest: Value) -> Option<&'static str> {
        let mut entry = json!({"manager": manager, "operation": operation, "fieldsV1": {}});
        entry.as_object_mut().unwrap().extend(rest.as_object().cloned().unwrap_or_default());
        let entry = ManagerEntry::new(&entry);
        tool_of(entry, &entry.fields())
    }

    #[test]
    fn deploy_tools_are_distinguished_from_controllers_and_people() {
        for (manager, operation) in [
            ("kubectl", "Apply"),
            ("kubectl-client-side-apply", "Update"),
            ("helm", "Apply"),
            ("helm", "Update"),
            ("argocd-controller", "Update"),
            ("pulumi-kubernetes-3f2a91bc", "Apply"),
        ] {
            assert!(tool(manager, operation, json!({})).is_some(), "{manager}");
        }
        for (manager, operation) in
            [("kubectl", "Update"), ("kubectl-edit", "Update"), ("kube-controller-manager", "Update"), ("x", "Apply")]
        {
            assert_eq!(tool(manager, operation, json!({})), None, "{manager}");
        }
        assert_eq!(tool("helm", "Update", json!({"subresource": "status"})), None);
    }

    #[test]
    fn a_client_side_apply_is_known_by_its_annotation_under_any_name() {
        let fields = json!({"fieldsV1": {"f:metadata": {"f:annotations": {
            "f:kubectl.kubernetes.io/last-applied-configuration": {}}}}});
        assert_eq!(tool("ci", "Update", fields.clone()), Some("kubectl apply"));
        assert_eq!(tool("kubectl-edit", "Update", fields.clone()), None);
        assert_eq!(tool("ci", "Apply", fields), None);
    }

    #[test]
    fn the_names_of_tools_are_sorted() {
        assert!(TOOLS.is_sorted_by_key(|(name, ..)| *name) && BY_HAND.is_sorted());
    }
}
