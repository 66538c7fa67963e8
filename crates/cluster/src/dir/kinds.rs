//! The kinds that are built into every API server: plural, scope and versions.
//!
//! A folder has no discovery API. The CRDs in it describe custom kinds; these are Kubernetes' own kinds, as listed by
//! the discovery of version 1.37 with every API group enabled. Kinds that can be created but never applied (reviews,
//! bindings) are omitted. A version that is not served counts as unknown, as on a cluster. For older releases there are
//! tables of what came later and of what left: without alpha versions that left, which no server has by default.

use gantry_k8s_cel::KubernetesRelease;

/// One built-in kind.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BuiltIn {
    pub group: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
    pub versions: &'static [&'static str],
}

impl BuiltIn {
    /// The versions that a server of this release serves.
    pub fn versions_of(&self, release: KubernetesRelease) -> Vec<&'static str> {
        let is_it = |(group, kinds): &(&str, &[&str])| self.group == *group && kinds.contains(&self.kind);
        let came = |version: &&str| {
            CAME.iter().find(|(of, came, _)| is_it(of) && came == version).is_none_or(|(_, _, since)| release >= *since)
        };
        let left = LEFT.iter().filter(|(of, _, before)| is_it(of) && release < *before).map(|(_, version, _)| *version);
        self.versions.iter().copied().chain(left).filter(came).collect()
    }
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
    kind("certificates.k8s.io", "ClusterTrustBundle", "clustertrustbundles", CLUSTER, &["v1", "v1beta1"]),
    kind("certificates.k8s.io", "PodCertificateRequest", "podcertificaterequests", NAMESPACED, &["v1", "v1beta1"]),
    kind("coordination.k8s.io", "Lease", "leases", NAMESPACED, &["v1"]),
    kind("coordination.k8s.io", "LeaseCandidate", "leasecandidates", NAMESPACED, &["v1beta1", "v1alpha2"]),
    kind("discovery.k8s.io", "EndpointSlice", "endpointslices", NAMESPACED, &["v1"]),
    kind("events.k8s.io", "Event", "events", NAMESPACED, &["v1"]),
    kind("flowcontrol.apiserver.k8s.io", "FlowSchema", "flowschemas", CLUSTER, &["v1"]),
    kind("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", "prioritylevelconfigurations", CLUSTER, &["v1"]),
    kind("networking.k8s.io", "IPAddress", "ipaddresses", CLUSTER, &["v1"]),
    kind("networking.k8s.io", "Ingress", "ingresses", NAMESPACED, &["v1"]),
    kind("networking.k8s.io", "IngressClass", "ingressclasses", CLUSTER, &["v1"]),
    kind("networking.k8s.io", "NetworkPolicy", "networkpolicies", NAMESPACED, &["v1"]),
    kind("networking.k8s.io", "ServiceCIDR", "servicecidrs", CLUSTER, &["v1"]),
    kind("node.k8s.io", "RuntimeClass", "runtimeclasses", CLUSTER, &["v1"]),
    kind("policy", "PodDisruptionBudget", "poddisruptionbudgets", NAMESPACED, &["v1"]),
    kind("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", CLUSTER, &["v1"]),
    kind("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", CLUSTER, &["v1"]),
    kind("rbac.authorization.k8s.io", "Role", "roles", NAMESPACED, &["v1"]),
    kind("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", NAMESPACED, &["v1"]),
    kind("resource.k8s.io", "DeviceClass", "deviceclasses", CLUSTER, &["v1", "v1beta2", "v1beta1"]),
    kind("resource.k8s.io", "DeviceTaintRule", "devicetaintrules", CLUSTER, &["v1", "v1beta2", "v1alpha3"]),
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
    kind("storage.k8s.io", "VolumeAttributesClass", "volumeattributesclasses", CLUSTER, &["v1"]),
    kind("storagemigration.k8s.io", "StorageVersionMigration", "storageversionmigrations", CLUSTER, &["v1", "v1beta1"]),
];

/// A group and some of its kinds.
type GroupKinds = (&'static str, &'static [&'static str]);

const POLICIES: GroupKinds =
    ("admissionregistration.k8s.io", &["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]);
const MUTATING_POLICIES: GroupKinds =
    ("admissionregistration.k8s.io", &["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]);
const FLOW_CONTROL: GroupKinds = ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]);
const ADDRESSES: GroupKinds = ("networking.k8s.io", &["IPAddress", "ServiceCIDR"]);
const CLAIMS: GroupKinds =
    ("resource.k8s.io", &["DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"]);
const DEVICE_TAINT_RULES: GroupKinds = ("resource.k8s.io", &["DeviceTaintRule"]);
const LEASE_CANDIDATES: GroupKinds = ("coordination.k8s.io", &["LeaseCandidate"]);
const CERTIFICATES: GroupKinds = ("certificates.k8s.io", &["ClusterTrustBundle", "PodCertificateRequest"]);
const STORAGE_MIGRATIONS: GroupKinds = ("storagemigration.k8s.io", &["StorageVersionMigration"]);
const VOLUME_ATTRIBUTES: GroupKinds = ("storage.k8s.io", &["VolumeAttributesClass"]);

/// The versions that came after 1.28, each with the first release that serves it. From the discovery of servers of 1.28,
/// 1.30, 1.32, 1.34, 1.36 and 1.37, and the comments on lifecycles in `k8s.io/api`.
const CAME: &[(GroupKinds, &str, KubernetesRelease)] = &[
    (POLICIES, "v1", KubernetesRelease::minor(30)),
    (MUTATING_POLICIES, "v1", KubernetesRelease::minor(36)),
    (MUTATING_POLICIES, "v1beta1", KubernetesRelease::minor(34)),
    (MUTATING_POLICIES, "v1alpha1", KubernetesRelease::minor(32)),
    (LEASE_CANDIDATES, "v1beta1", KubernetesRelease::minor(33)),
    (LEASE_CANDIDATES, "v1alpha2", KubernetesRelease::minor(32)),
    (FLOW_CONTROL, "v1", KubernetesRelease::minor(29)),
    (ADDRESSES, "v1", KubernetesRelease::minor(33)),
    (ADDRESSES, "v1beta1", KubernetesRelease::minor(31)),
    (CLAIMS, "v1", KubernetesRelease::minor(34)),
    (CLAIMS, "v1beta2", KubernetesRelease::minor(33)),
    (CLAIMS, "v1beta1", KubernetesRelease::minor(32)),
    (CERTIFICATES, "v1", KubernetesRelease::minor(37)),
    (CERTIFICATES, "v1beta1", KubernetesRelease::minor(37)),
    (DEVICE_TAINT_RULES, "v1", KubernetesRelease::minor(37)),
    (DEVICE_TAINT_RULES, "v1beta2", KubernetesRelease::minor(36)),
    (DEVICE_TAINT_RULES, "v1alpha3", KubernetesRelease::minor(33)),
    (("resource.k8s.io", &["ResourcePoolStatusRequest"]), "v1alpha3", KubernetesRelease::minor(36)),
    (STORAGE_MIGRATIONS, "v1", KubernetesRelease::minor(37)),
    (STORAGE_MIGRATIONS, "v1beta1", KubernetesRelease::minor(37)),
    (VOLUME_ATTRIBUTES, "v1", KubernetesRelease::minor(34)),
    (VOLUME_ATTRIBUTES, "v1beta1", KubernetesRelease::minor(31)),
];

/// The versions that the table lacks, each with the first release that no longer serves it.
const LEFT: &[(GroupKinds, &str, KubernetesRelease)] = &[
    (POLICIES, "v1beta1", KubernetesRelease::minor(34)),
    (ADDRESSES, "v1beta1", KubernetesRelease::minor(37)),
    (VOLUME_ATTRIBUTES, "v1beta1", KubernetesRelease::minor(37)),
    (FLOW_CONTROL, "v1beta3", KubernetesRelease::minor(32)),
    (FLOW_CONTROL, "v1beta2", KubernetesRelease::minor(29)),
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
    fn versions_come_and_leave_with_releases() {
        let versions = |group: &str, kind: &str, minor| {
            let known = built_in(group, kind).expect("a kind");
            known.versions_of(KubernetesRelease::minor(minor))
        };
        let flow = |minor| versions("flowcontrol.apiserver.k8s.io", "FlowSchema", minor);
        assert_eq!([flow(28), flow(30), flow(32)], [vec!["v1beta3", "v1beta2"], vec!["v1", "v1beta3"], vec!["v1"]]);
        let policies = |minor| versions("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", minor);
        assert_eq!([policies(28), policies(33), policies(34)], [vec!["v1beta1"], vec!["v1", "v1beta1"], vec!["v1"]]);
        assert_eq!(versions("resource.k8s.io", "ResourceClaim", 31), Vec::<&str>::new());
        assert_eq!(versions("apps", "Deployment", 28), ["v1"]);
        let addresses = |minor| versions("networking.k8s.io", "IPAddress", minor);
        assert_eq!(addresses(30), Vec::<&str>::new());
        assert_eq!([addresses(31), addresses(36), addresses(37)], [vec!["v1beta1"], vec!["v1", "v1beta1"], vec!["v1"]]);
        // Every entry names a version of the table, or one that left.
        for ((group, kinds), version, _) in CAME {
            let has_left = |kind: &str| {
                LEFT.iter().any(|((of, left), gone, _)| of == group && left.contains(&kind) && gone == version)
            };
            let is_known = |kind: &str| built_in(group, kind).expect("a kind").versions.contains(version);
            assert!(kinds.iter().all(|kind| is_known(kind) || has_left(kind)), "{version}");
        }
        for known in BUILT_IN {
            assert_eq!(known.versions_of(KubernetesRelease::NEWEST_KNOWN), known.versions, "{known:?}");
        }
    }

    #[test]
    fn every_kind_is_found_and_others_are_not() {
        assert!(BUILT_IN.iter().all(|known| built_in(known.group, known.kind) == Some(known)));
        assert_eq!(built_in("extensions", "Ingress"), None);
        assert_eq!(built_in("apps", "Pod"), None);
    }
}
