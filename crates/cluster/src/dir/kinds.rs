//! The kinds that are built into every API server: plural, scope and versions.
//!
//! A folder has no discovery API. The CRDs in it describe custom kinds; these are Kubernetes' own kinds, as listed by
//! the discovery of version 1.36 with every API group enabled. Kinds that can be created but never applied (reviews,
//! bindings) are omitted. A version that is no longer served counts as unknown, as on a cluster.

/// One built-in kind.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BuiltIn {
    pub group: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
    pub versions: &'static [&'static str],
}

/// The built-in kind with this name, at any version.
pub(super) fn built_in(group: &str, kind: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.binary_search_by(|known| (known.group, known.kind).cmp(&(group, kind))).ok().map(|found| &BUILT_IN[found])
}

/// The kind of Operator Lifecycle Manager with this name, at any version.
pub(super) fn of_olm(group: &str, kind: &str) -> Option<&'static BuiltIn> {
    OF_OLM.iter().find(|known| (known.group, known.kind) == (group, kind))
}

/// All kinds that are built into the API server.
pub(super) fn all() -> impl Iterator<Item = &'static BuiltIn> {
    BUILT_IN.iter()
}

const CLUSTER: bool = false;
const NAMESPACED: bool = true;

const fn kind(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
    versions: &'static [&'static str],
) -> BuiltIn {
    BuiltIn { group, kind, plural, namespaced, versions }
}

/// The kinds of Operator Lifecycle Manager. A folder need not contain their CRDs: its OLM objects say what is
/// installed, and people rarely commit OLM's own CRDs with them. A CRD in the folder that defines one of these kinds
/// takes precedence over this table.
#[rustfmt::skip]
const OF_OLM: &[BuiltIn] = &[
    kind("olm.operatorframework.io", "ClusterCatalog", "clustercatalogs", CLUSTER, &["v1", "v1alpha1"]),
    kind("olm.operatorframework.io", "ClusterExtension", "clusterextensions", CLUSTER, &["v1", "v1alpha1"]),
    kind("operators.coreos.com", "CatalogSource", "catalogsources", NAMESPACED, &["v1alpha1"]),
    kind("operators.coreos.com", "ClusterServiceVersion", "clusterserviceversions", NAMESPACED, &["v1alpha1"]),
    kind("operators.coreos.com", "OperatorGroup", "operatorgroups", NAMESPACED, &["v1", "v1alpha2"]),
    kind("operators.coreos.com", "Subscription", "subscriptions", NAMESPACED, &["v1alpha1"]),
];

/// Sorted by group and kind.
#[rustfmt::skip]
const BUILT_IN: &[BuiltIn] = &[
    kind("", "ConfigMap", "configmaps", NAMESPACED, &["v1"]),
    kind("", "Endpoints", "endpoints", NAMESPACED, &["v1"]),
    kind("", "Event", "events", NAMESPACED, &["v1"]),
    kind("", "LimitRange", "limitranges", NAMESPACED, &["v1"]),
    kind("", "Namespace", "namespaces", CLUSTER, &["v1"]),
    kind("", "Node", "nodes", CLUSTER, &["v1"]),
    kind("", "PersistentVolume", "persistentvolumes", CLUSTER, &["v1"]),
    kind("", "PersistentVolumeClaim", "persistentvolumeclaims", NAMESPACED, &["v1"]),
    kind("", "Pod", "pods", NAMESPACED, &["v1"]),
    kind("", "PodTemplate", "podtemplates", NAMESPACED, &["v1"]),
    kind("", "ReplicationController", "replicationcontrollers", NAMESPACED, &["v1"]),
    kind("", "ResourceQuota", "resourcequotas", NAMESPACED, &["v1"]),
    kind("", "Secret", "secrets", NAMESPACED, &["v1"]),
    kind("", "Service", "services", NAMESPACED, &["v1"]),
    kind("", "ServiceAccount", "serviceaccounts", NAMESPACED, &["v1"]),
    kind("admissionregistration.k8s.io", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", CLUSTER, &["v1", "v1beta1", "v1alpha1"]),
    kind("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", CLUSTER, &["v1", "v1beta1", "v1alpha1"]),
    kind("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", CLUSTER, &["v1"]),
    kind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", CLUSTER, &["v1"]),
    kind("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", CLUSTER, &["v1"]),
    kind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", CLUSTER, &["v1"]),
    kind("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", CLUSTER, &["v1"]),
    kind("apiregistration.k8s.io", "APIService", "apiservices", CLUSTER, &["v1"]),
    kind("apps", "ControllerRevision", "controllerrevisions", NAMESPACED, &["v1"]),
    kind("apps", "DaemonSet", "daemonsets", NAMESPACED, &["v1"]),
    kind("apps", "Deployment", "deployments", NAMESPACED, &["v1"]),
    kind("apps", "ReplicaSet", "replicasets", NAMESPACED, &["v1"]),
    kind("apps", "StatefulSet", "statefulsets", NAMESPACED, &["v1"]),
    kind("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", NAMESPACED, &["v2", "v1"]),
    kind("batch", "CronJob", "cronjobs", NAMESPACED, &["v1"]),
    kind("batch", "Job", "jobs", NAMESPACED, &["v1"]),
    kind("certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests", CLUSTER, &["v1"]),
    kind("coordination.k8s.io", "Lease", "leases", NAMESPACED, &["v1"]),
    kind("coordination.k8s.io", "LeaseCandidate", "leasecandidates", NAMESPACED, &["v1beta1", "v1alpha2"]),
    kind("discovery.k8s.io", "EndpointSlice", "endpointslices", NAMESPACED, &["v1"]),
    kind("events.k8s.io", "Event", "events", NAMESPACED, &["v1"]),
    kind("flowcontrol.apiserver.k8s.io", "FlowSchema", "flowschemas", CLUSTER, &["v1"]),
    kind("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", "prioritylevelconfigurations", CLUSTER, &["v1"]),
    kind("networking.k8s.io", "IPAddress", "ipaddresses", CLUSTER, &["v1", "v1beta1"]),
    kind("networking.k8s.io", "Ingress", "ingresses", NAMESPACED, &["v1"]),
    kind("networking.k8s.io", "IngressClass", "ingressclasses", CLUSTER, &["v1"]),
    kind("networking.k8s.io", "NetworkPolicy", "networkpolicies", NAMESPACED, &["v1"]),
    kind("networking.k8s.io", "ServiceCIDR", "servicecidrs", CLUSTER, &["v1", "v1beta1"]),
    kind("node.k8s.io", "RuntimeClass", "runtimeclasses", CLUSTER, &["v1"]),
    kind("policy", "PodDisruptionBudget", "poddisruptionbudgets", NAMESPACED, &["v1"]),
    kind("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", CLUSTER, &["v1"]),
    kind("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", CLUSTER, &["v1"]),
    kind("rbac.authorization.k8s.io", "Role", "roles", NAMESPACED, &["v1"]),
    kind("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", NAMESPACED, &["v1"]),
    kind("resource.k8s.io", "DeviceClass", "deviceclasses", CLUSTER, &["v1", "v1beta2", "v1beta1"]),
    kind("resource.k8s.io", "DeviceTaintRule", "devicetaintrules", CLUSTER, &["v1beta2", "v1alpha3"]),
    kind("resource.k8s.io", "ResourceClaim", "resourceclaims", NAMESPACED, &["v1", "v1beta2", "v1beta1"]),
    kind("resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates", NAMESPACED, &["v1", "v1beta2", "v1beta1"]),
    kind("resource.k8s.io", "ResourcePoolStatusRequest", "resourcepoolstatusrequests", CLUSTER, &["v1alpha3"]),
    kind("resource.k8s.io", "ResourceSlice", "resourceslices", CLUSTER, &["v1", "v1beta2", "v1beta1"]),
    kind("scheduling.k8s.io", "PriorityClass", "priorityclasses", CLUSTER, &["v1"]),
    kind("storage.k8s.io", "CSIDriver", "csidrivers", CLUSTER, &["v1"]),
    kind("storage.k8s.io", "CSINode", "csinodes", CLUSTER, &["v1"]),
    kind("storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities", NAMESPACED, &["v1"]),
    kind("storage.k8s.io", "StorageClass", "storageclasses", CLUSTER, &["v1"]),
    kind("storage.k8s.io", "VolumeAttachment", "volumeattachments", CLUSTER, &["v1"]),
    kind("storage.k8s.io", "VolumeAttributesClass", "volumeattributesclasses", CLUSTER, &["v1", "v1beta1"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_names_each_kind_once() {
        assert!(BUILT_IN.windows(2).all(|pair| (pair[0].group, pair[0].kind) < (pair[1].group, pair[1].kind)));
        assert!(BUILT_IN.iter().all(|known| !known.versions.is_empty() && known.plural == known.plural.to_lowercase()));
    }

    #[test]
    fn every_kind_is_found_and_others_are_not() {
        assert!(BUILT_IN.iter().all(|known| built_in(known.group, known.kind) == Some(known)));
        assert_eq!(built_in("extensions", "Ingress"), None);
        assert_eq!(built_in("apps", "Pod"), None);
    }
}
