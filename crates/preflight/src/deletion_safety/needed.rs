//! Finds what still refers to deleted CRDs, roles and ServiceAccounts.

use serde_json::Value;

use super::rules::{CRD_NEEDED, RIGHTS_LOST};
use super::{Deletions, PAGE, list_some, violation};
use crate::{CouldNotCheck, Notices, ViolationsFound};
use gantry_cluster::ListRequest;
use gantry_core::resource::Resource;
use gantry_deploy::app::inventory::group_kind;
use gantry_deploy::app::{PART_OF, config_maps, parent};
use gantry_deploy::plan::removal::Removal;

const RBAC: &str = "rbac.authorization.k8s.io";

/// A failed lookup is only a notice here: it could only have led to a warning.
pub async fn check(deletions: &Deletions<'_>, notices: &Notices) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    for part in [crds(deletions).await, roles(deletions).await, accounts(deletions).await] {
        match part {
            Ok(violations) => found.violations.extend(violations),
            Err(error) => notices.add(error.message),
        }
    }
    found
}

/// Objects with their names as shown to the user.
type NamedObjects = Vec<(String, Value)>;

/// All objects of a kind that are not deleted.
async fn remaining(deletions: &Deletions<'_>, resource: &Resource) -> Result<NamedObjects, CouldNotCheck> {
    let gather = |found: &mut NamedObjects, json: &str| {
        let Ok(object) = serde_json::from_str::<Value>(json) else { return };
        let metadata = &object["metadata"];
        let (namespace, name) = (metadata["namespace"].as_str(), metadata["name"].as_str().unwrap_or_default());
        if !deletions.is_deleted(&resource.group, &resource.kind, namespace, name) {
            let place = namespace.map(|namespace| format!(" -n {namespace}")).unwrap_or_default();
            found.push((format!("{}/{name}{place}", resource.kind.to_lowercase()), object));
        }
    };
    Ok(deletions.list(resource, None, gather).await?.unwrap_or_default())
}

async fn crds(deletions: &Deletions<'_>) -> Result<Vec<super::Violation>, CouldNotCheck> {
    let removals: Vec<&Removal> = deletions.deleted.iter().copied().filter(|removal| removal.object.is_crd()).collect();
    if removals.is_empty() {
        return Ok(Vec::new());
    }
    let admission = "admissionregistration.k8s.io";
    let mut others: NamedObjects = Vec::new();
    for resource in [
        Resource::built_in(admission, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false),
        Resource::built_in(admission, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false),
        Resource::built_in(admission, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", false),
        Resource::built_in(admission, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", false),
        Resource::built_in(admission, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", false),
        Resource::built_in(admission, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", false),
        Resource::built_in(RBAC, "ClusterRole", "clusterroles", false),
        Resource::built_in(RBAC, "Role", "roles", true),
    ] {
        others.extend(remaining(deletions, &resource).await?);
    }
    others.retain(|(shown, object)| {
        let is_of_kubernetes = shown.starts_with("clusterrole/") && is_built_in_role(object);
        !is_of_kubernetes && !is_aggregated(object)
    });
    let resource = config_maps();
    let request = ListRequest { label_selector: Some(parent::ID_LABEL), ..ListRequest::new(&resource, PAGE) };
    let gather = |found: &mut Vec<Value>, json: &str| found.extend(serde_json::from_str::<Value>(json));
    let apps = deletions.target.list(&request).gather(gather).await;
    let apps = apps.map_err(|error| deletions.unread(error.problem(), "records of other apps"))?;
    let mut violations = Vec::new();
    for removal in removals {
        // A CRD is named PLURAL.GROUP.
        let Some((plural, group)) = removal.object.name.split_once('.') else { continue };
        let live = deletions.read(&removal.resource, &removal.object).await?;
        let crd = live.map(|live| live.value()).unwrap_or_default();
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap_or_default();
        let refers = |object: &Value| names(object, group, plural) || has_parameters_of(object, group, kind);
        let mut names: Vec<String> =
            others.iter().filter(|(_, object)| refers(object)).map(|(name, _)| name.clone()).collect();
        let kind = group_kind(group, kind);
        for app in &apps {
            let metadata = &app["metadata"];
            let kinds = metadata["annotations"][parent::KINDS].as_str().unwrap_or_default();
            let id = metadata["labels"][parent::ID_LABEL].as_str();
            let is_own = id == removal.facts.labels.get(PART_OF).map(String::as_str);
            if !is_own && kinds.split(',').any(|other| other == kind) {
                let text = |key: &str| metadata[key].as_str().unwrap_or_default();
                names.push(format!("the app of configmap/{} -n {}", text("name"), text("namespace")));
            }
        }
        if !names.is_empty() {
            let message = format!("{} still refers to its kind", list_some(&names));
            let help = "delete these, too, if they are no longer needed, or keep the CRD with gantry.dev/prune: keep";
            violations.push(violation(&CRD_NEEDED, removal, message, help.to_owned()));
        }
    }
    Ok(violations)
}

/// Whether the rules of a ClusterRole are those of others, without which they go by themselves.
fn is_aggregated(object: &Value) -> bool {
    object["aggregationRule"].is_object()
}

/// Whether the API server itself creates the ClusterRole, and creates it again when it is deleted.
fn is_built_in_role(object: &Value) -> bool {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    object["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        || name.starts_with("system:")
        || ["admin", "cluster-admin", "edit", "view"].contains(&name)
}

/// Whether rules of an object name the kind. Wildcards do not count.
fn names(object: &Value, group: &str, plural: &str) -> bool {
    let webhooks = object["webhooks"].as_array().into_iter().flatten().flat_map(|hook| hook["rules"].as_array());
    let rules = webhooks
        .chain(object["rules"].as_array())
        .chain(object["spec"]["matchConstraints"]["resourceRules"].as_array())
        .chain(object["spec"]["matchResources"]["resourceRules"].as_array());
    rules.flatten().any(|rule| {
        let has = |key: &str, fits: &dyn Fn(&str) -> bool| {
            rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).any(fits)
        };
        has("apiGroups", &|name| name == group)
            && has("resources", &|name| name == "*" || name.split('/').next() == Some(plural))
    })
}

/// Whether the parameters of an admission policy are objects of the kind.
fn has_parameters_of(policy: &Value, group: &str, kind: &str) -> bool {
    let parameters = &policy["spec"]["paramKind"];
    let group_of = |api_version: &str| api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
    parameters["kind"] == kind && parameters["apiVersion"].as_str().map(group_of).as_deref() == Some(group)
}

async fn roles(deletions: &Deletions<'_>) -> Result<Vec<super::Violation>, CouldNotCheck> {
    let is_role = |removal: &&Removal| {
        removal.object.group() == RBAC && matches!(removal.object.kind.as_str(), "Role" | "ClusterRole")
    };
    let removals: Vec<&Removal> = deletions.deleted.iter().copied().filter(is_role).collect();
    if removals.is_empty() {
        return Ok(Vec::new());
    }
    let mut bindings = remaining(deletions, &Resource::built_in(RBAC, "RoleBinding", "rolebindings", true)).await?;
    bindings.extend(
        remaining(deletions, &Resource::built_in(RBAC, "ClusterRoleBinding", "clusterrolebindings", false)).await?,
    );
    let mut violations = Vec::new();
    for removal in removals {
        let object = &removal.object;
        let binds = |binding: &&(String, Value)| {
            let role = &binding.1["roleRef"];
            role["kind"] == *object.kind
                && role["name"] == *object.name
                && (object.namespace.is_none()
                    || binding.1["metadata"]["namespace"].as_str() == object.namespace.as_deref())
        };
        let names: Vec<String> = bindings.iter().filter(binds).map(|(name, _)| name.clone()).collect();
        if !names.is_empty() {
            let message = format!("{} still grants its rights, which would be lost", list_some(&names));
            let help = "delete the bindings, too, or keep the role with gantry.dev/prune: keep";
            violations.push(violation(&RIGHTS_LOST, removal, message, help.to_owned()));
        }
    }
    Ok(violations)
}

/// ServiceAccounts that are used by Pods which the deploy does not delete.
async fn accounts(deletions: &Deletions<'_>) -> Result<Vec<super::Violation>, CouldNotCheck> {
    let mut violations = Vec::new();
    for removal in deletions.of_kind("", "ServiceAccount") {
        let object = &removal.object;
        let namespace = object.namespace.as_deref();
        let gather = |found: &mut Vec<String>, json: &str| {
            let Ok(pod) = serde_json::from_str::<Value>(json) else { return };
            if pod["spec"]["serviceAccountName"] == *object.name && !is_pod_deleted(deletions, &pod, namespace) {
                found.push(format!("pod/{}", pod["metadata"]["name"].as_str().unwrap_or_default()));
            }
        };
        let pods = Resource::built_in("", "Pod", "pods", true);
        let names = deletions.list(&pods, namespace, gather).await?.unwrap_or_default();
        if !names.is_empty() {
            let message = format!("{} still runs as this account and would lose its rights", list_some(&names));
            let help = "change these to another account first, or keep it with gantry.dev/prune: keep";
            violations.push(violation(&RIGHTS_LOST, removal, message, help.to_owned()));
        }
    }
    Ok(violations)
}

/// Whether the deploy deletes the Pod, or the workload that owns it.
fn is_pod_deleted(deletions: &Deletions<'_>, pod: &Value, namespace: Option<&str>) -> bool {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    if deletions.is_deleted("", "Pod", namespace, name) {
        return true;
    }
    pod["metadata"]["ownerReferences"].as_array().into_iter().flatten().any(|owner| {
        let text = |key: &str| owner[key].as_str().unwrap_or_default();
        let (kind, name) = (text("kind"), text("name"));
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        // The name of a ReplicaSet is that of its Deployment with a hash, the name of a Job that of its CronJob with a
        // time.
        let parent = name.rsplit_once('-').map_or("", |(parent, _)| parent);
        deletions.is_deleted(group, kind, namespace, name)
            || kind == "ReplicaSet" && deletions.is_deleted("apps", "Deployment", namespace, parent)
            || kind == "Job" && deletions.is_deleted("batch", "CronJob", namespace, parent)
    })
}
