//! The default order of a deploy: objects that others need come first.
//!
//! Namespaces and CRDs are needed by everything else. Then come objects that workloads need when they start
//! (accounts, configuration, volumes, rights), then workloads, then objects that refer to workloads. Objects that can
//! make other requests fail while nothing serves them yet (APIServices, admission) come last.
//!
//! The order only avoids errors and retries: Kubernetes converges in any order. Objects of one rank keep the order of
//! the manifests.

use gantry_core::resource::ObjectRef;

/// All kinds that the table does not name, mostly custom resources.
const OTHER: (u8, DeployStage) = (100, DeployStage::Other);

/// What an object is for. The graph derives from it which objects wait for which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeployStage {
    Namespace,
    Crd,
    Class,
    StorageClass,
    /// It decides which objects its namespace takes.
    Limit,
    /// It is about Pods that run.
    Guard,
    Account,
    Config,
    Volume,
    Claim,
    ClusterRole,
    ClusterBinding,
    Role,
    Binding,
    Service,
    Workload,
    /// It refers to workloads and Services.
    Front,
    Other,
    ApiService,
    Policy,
    PolicyBinding,
    Webhooks,
}

/// Ranks and stages of built-in kinds by group and kind. A kind of the same name in another group is a different kind.
const RANKS: &[(u8, DeployStage, &str, &[&str])] = &[
    (0, DeployStage::Namespace, "", &["Namespace"]),
    (1, DeployStage::Crd, "apiextensions.k8s.io", &["CustomResourceDefinition"]),
    // Classes and limits: looked up when an object of another kind is admitted.
    (10, DeployStage::Class, "scheduling.k8s.io", &["PriorityClass"]),
    (10, DeployStage::Class, "node.k8s.io", &["RuntimeClass"]),
    (10, DeployStage::Class, "storage.k8s.io", &["CSIDriver", "VolumeAttributesClass"]),
    (10, DeployStage::StorageClass, "storage.k8s.io", &["StorageClass"]),
    (10, DeployStage::Class, "networking.k8s.io", &["IngressClass"]),
    (10, DeployStage::Class, "resource.k8s.io", &["DeviceClass"]),
    (10, DeployStage::Class, "gateway.networking.k8s.io", &["GatewayClass"]),
    (11, DeployStage::Limit, "", &["ResourceQuota", "LimitRange"]),
    (11, DeployStage::Guard, "networking.k8s.io", &["NetworkPolicy"]),
    // Before Pods that somebody could evict.
    (11, DeployStage::Guard, "policy", &["PodDisruptionBudget"]),
    (20, DeployStage::Account, "", &["ServiceAccount"]),
    (21, DeployStage::Config, "", &["Secret"]),
    (22, DeployStage::Config, "", &["ConfigMap"]),
    (23, DeployStage::Volume, "", &["PersistentVolume"]),
    (24, DeployStage::Claim, "", &["PersistentVolumeClaim"]),
    (24, DeployStage::Config, "resource.k8s.io", &["ResourceClaim", "ResourceClaimTemplate"]),
    (30, DeployStage::ClusterRole, "rbac.authorization.k8s.io", &["ClusterRole"]),
    (31, DeployStage::ClusterBinding, "rbac.authorization.k8s.io", &["ClusterRoleBinding"]),
    (32, DeployStage::Role, "rbac.authorization.k8s.io", &["Role"]),
    (33, DeployStage::Binding, "rbac.authorization.k8s.io", &["RoleBinding"]),
    // Before Pods, which get the Services that exist when they start as environment variables.
    (40, DeployStage::Service, "", &["Service"]),
    (50, DeployStage::Workload, "apps", &["DaemonSet"]),
    (51, DeployStage::Workload, "", &["Pod", "ReplicationController"]),
    (51, DeployStage::Workload, "apps", &["ReplicaSet", "Deployment", "StatefulSet"]),
    (52, DeployStage::Workload, "batch", &["Job", "CronJob"]),
    (60, DeployStage::Front, "autoscaling", &["HorizontalPodAutoscaler"]),
    (61, DeployStage::Front, "networking.k8s.io", &["Ingress"]),
    (200, DeployStage::ApiService, "apiregistration.k8s.io", &["APIService"]),
    (
        201,
        DeployStage::Policy,
        "admissionregistration.k8s.io",
        &["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"],
    ),
    (
        202,
        DeployStage::PolicyBinding,
        "admissionregistration.k8s.io",
        &["ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"],
    ),
    (
        203,
        DeployStage::Webhooks,
        "admissionregistration.k8s.io",
        &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
    ),
];

/// The rank of the object: lower ranks come first, and equal ranks keep the order of the manifests (use a stable sort).
pub fn rank(object: &ObjectRef) -> u8 {
    place(object).0
}

pub fn stage(object: &ObjectRef) -> DeployStage {
    place(object).1
}

fn place(object: &ObjectRef) -> (u8, DeployStage) {
    RANKS
        .iter()
        .find(|(_, _, group, kinds)| *group == object.group() && kinds.contains(&object.kind.as_str()))
        .map_or(OTHER, |(rank, stage, _, _)| (*rank, *stage))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(api_version: &str, kind: &str, name: &str) -> ObjectRef {
        ObjectRef { api_version: api_version.into(), kind: kind.into(), namespace: None, name: name.into() }
    }

    #[test]
    fn objects_that_others_need_are_written_first() {
        let mut objects = [
            object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "a"),
            object("apiregistration.k8s.io/v1", "APIService", "a"),
            object("test.example.com/v1", "Sample", "a"),
            object("networking.k8s.io/v1", "Ingress", "a"),
            object("autoscaling/v2", "HorizontalPodAutoscaler", "a"),
            object("batch/v1", "Job", "a"),
            object("apps/v1", "Deployment", "a"),
            object("v1", "Service", "a"),
            object("rbac.authorization.k8s.io/v1", "RoleBinding", "a"),
            object("rbac.authorization.k8s.io/v1", "Role", "a"),
            object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "a"),
            object("rbac.authorization.k8s.io/v1", "ClusterRole", "a"),
            object("v1", "PersistentVolumeClaim", "a"),
            object("v1", "PersistentVolume", "a"),
            object("v1", "ConfigMap", "a"),
            object("v1", "Secret", "a"),
            object("v1", "ServiceAccount", "a"),
            object("storage.k8s.io/v1", "StorageClass", "a"),
            object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "a"),
            object("v1", "Namespace", "a"),
        ];
        let mut expected = objects.clone();
        expected.reverse();
        objects.sort_by_key(rank);
        assert_eq!(objects, expected);
    }

    #[test]
    fn equal_ranks_keep_the_order_of_the_manifests() {
        let mut objects = [
            object("test.example.com/v1", "Zebra", "1"),
            object("test.example.com/v1", "Ape", "2"),
            object("v1", "Secret", "3"),
            object("test.example.com/v1", "Zebra", "0"),
        ];
        objects.sort_by_key(rank);
        assert_eq!(objects.map(|object| object.name), ["3", "1", "2", "0"]);
    }

    #[test]
    fn a_custom_kind_with_a_built_in_name_is_a_custom_kind() {
        assert_eq!(rank(&object("serving.knative.dev/v1", "Service", "a")), OTHER.0);
        assert_eq!(rank(&object("example.com/v1", "Namespace", "a")), OTHER.0);
        assert_eq!(rank(&object("apps/v2", "Deployment", "a")), rank(&object("apps/v1", "Deployment", "a")));
    }

    #[test]
    fn the_table_ascends_and_names_each_kind_once() {
        assert!(RANKS.is_sorted_by_key(|(rank, ..)| rank));
        let mut kinds: Vec<_> =
            RANKS.iter().flat_map(|(_, _, group, kinds)| kinds.iter().map(move |k| (group, k))).collect();
        let count = kinds.len();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), count);
    }
}
