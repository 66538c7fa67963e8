//! What the API server adds to objects of its own kinds, and how it rewrites their values.

use std::borrow::Cow;

use base64::Engine;

use gantry_k8s_cel::golang::{Timestamp, duration};
use gantry_k8s_cel::quantity::Quantity;
use gantry_schema::json::Json;
use gantry_schema::keywords;

/// Defaults that the API server adds inside atomic lists and maps of its own kinds. Leaving such a key out and writing
/// its default mean the same, so treating them as equal is always correct.
const BUILT_IN_DEFAULTS: &[(&str, &str)] = &[
    ("apiGroup", "\"\""),                                                   // RoleBinding: subjects
    ("apiGroup", "\"rbac.authorization.k8s.io\""),                          // RoleBinding: subjects, roleRef
    ("apiVersion", "\"v1\""),                                               // fieldRef, volumeClaimTemplates
    ("conditions", "{}"),                                                   // EndpointSlice: endpoints
    ("conversion", "{\"strategy\":\"None\"}"),                              // CustomResourceDefinition
    ("defaultMode", "420"),                                                 // projected volumes
    ("divisor", "\"0\""),                                                   // resourceFieldRef
    ("expirationSeconds", "3600"),                                          // projected service account tokens
    ("finalizers", "[\"kubernetes\"]"),                                     // Namespace: spec
    ("kind", "\"PersistentVolumeClaim\""),                                  // volumeClaimTemplates
    ("matchPolicy", "\"Equivalent\""),                                      // admission policies
    ("name", "\"\""),                                                       // EndpointSlice: ports
    ("protocol", "\"TCP\""),                                                // NetworkPolicy, EndpointSlice: ports
    ("rollingUpdate", "{\"maxSurge\":\"25%\",\"maxUnavailable\":\"25%\"}"), // Deployment: strategy
    ("rollingUpdate", "{\"maxSurge\":0,\"maxUnavailable\":1}"),             // DaemonSet: updateStrategy
    ("rollingUpdate", "{\"partition\":0}"),                                 // StatefulSet: updateStrategy
    ("scope", "\"*\""),                                                     // webhook and policy rules
    ("status", "{\"phase\":\"Pending\"}"),                                  // volumeClaimTemplates
    ("type", "\"RollingUpdate\""),                                          // Deployment, DaemonSet, StatefulSet
    ("volumeMode", "\"Filesystem\""),                                       // volumeClaimTemplates
];

/// The same for admission kinds. In other kinds, no selector and an empty selector differ: a peer of a NetworkPolicy
/// without `namespaceSelector` is in the policy's own namespace, and with an empty one in any.
const ADMISSION_DEFAULTS: &[(&str, &str)] = &[("namespaceSelector", "{}"), ("objectSelector", "{}")];

/// Whether the server adds `live` under this key if a manifest of a kind of `group` does not have it.
pub fn is_default(group: &str, key: &str, live: &Json<'_>) -> bool {
    let is_live = |text| Json::parse(text).is_ok_and(|default| default == *live);
    let admission = if group == "admissionregistration.k8s.io" { ADMISSION_DEFAULTS } else { &[] };
    BUILT_IN_DEFAULTS.iter().chain(admission).any(|(name, text)| *name == key && is_live(text))
}

/// Fields of the server's own kinds whose empty value the server drops. They have `omitempty`, and are pointers in no
/// spec, or mean the same empty and absent (`apiGroup`, `readOnly`). For a pointer, an empty value is a value
/// (`namespaceSelector: {}`, `tolerationSeconds: 0`, `storageClassName: ""`), so a field that is not in this list
/// counts as kept. Source: the types of `k8s.io/api` and `k8s.io/apimachinery/pkg/apis/meta/v1`
mod dropped {
    pub const FLAGS: &str = "\
        globalDefault hostIPC hostNetwork hostPID insecureSkipTLSVerify paused publishNotReadyAddresses \
        readOnly stdin stdinOnce tty unschedulable";
    pub const NUMBERS: &str = "healthCheckNodePort hostPort initialDelaySeconds minReadySeconds nodePort";
    pub const TEXTS: &str = "\
        apiGroup description effect externalName generateName group host hostIP hostname image key \
        loadBalancerIP medium messageExpression namespace nodeName operator policyName prefix priorityClassName \
        schedulerName secretName serviceAccount serviceAccountName serviceName subPath subPathExpr subdomain \
        user value volumeName workingDir";
    pub const LISTS: &str = "\
        accessModes add allowedTopologies apiGroups args auditAnnotations claims clusterRoleSelectors command \
        drop egress env envFrom ephemeralContainers except excludeResourceRules externalIPs finalizers from \
        group hostAliases hostnames hosts httpHeaders imagePullSecrets ingress initContainers items \
        loadBalancerSourceRanges matchConditions matchExpressions matchFields matchLabelExpressions \
        matchLabelKeys metrics mismatchLabelKeys mountOptions nameservers namespaces nonResourceRules \
        nonResourceURLs notReadyAddresses options ownerReferences policies policyTypes ports \
        preferredDuringSchedulingIgnoredDuringExecution readinessGates \
        requiredDuringSchedulingIgnoredDuringExecution resizePolicy resourceClaims resourceNames resourceRules \
        resources rules schedulingGates scopes searches secrets subjects subsets supplementalGroups sysctls \
        taints tls to tokenRequests tolerations topologySpreadConstraints validations values variables verbs \
        volumeClaimTemplates volumeDevices volumeMounts volumes webhooks";
    pub const MAPS: &str = "\
        annotations binaryData data defaultRequest hard labels limits matchLabels maxLimitRequestRatio \
        nodeSelector podFixed requests stringData volumeAttributes";
}

/// Whether the server drops this empty value from objects of its own kinds, CRDs aside.
pub fn is_dropped(key: &str, value: &Json<'_>) -> bool {
    let (is_empty, keys) = match value {
        Json::Null => return true,
        Json::Bool(value) => (!value, dropped::FLAGS),
        Json::Int(number) => (*number == 0, dropped::NUMBERS),
        Json::Float(_) => return false,
        Json::Text(text) => (text.is_empty(), dropped::TEXTS),
        Json::List(items) => (items.is_empty(), dropped::LISTS),
        Json::Map(map) => (map.is_empty(), dropped::MAPS),
    };
    is_empty && keys.split_whitespace().any(|name| name == key)
}

/// Fields of the server's own kinds whose map is one field (`x-kubernetes-map-type: atomic`): an apply replaces it, and
/// removes the keys that the manifest does not have.
/// Source: the server's own OpenAPI description. A name that another kind has for a map of separate fields is included.
const ATOMIC_MAPS: &str = "\
    claimRef configMapKeyRef controllerExpandSecretRef controllerPublishSecretRef dataSource fieldRef fileKeyRef \
    involvedObject labelSelector matchConstraints matchResources namespaceSelector nodeExpandSecretRef \
    nodePublishSecretRef nodeSelector nodeStageSecretRef nodeTopology objectSelector paramKind paramRef podSelector port \
    preference regarding related required requiredDuringSchedulingIgnoredDuringExecution resource resourceFieldRef \
    roleRef scaleTargetRef scopeSelector secretKeyRef secretRef selector target targetRef";

/// Whether the map under this key may be one field.
pub fn is_atomic_map(key: &str) -> bool {
    ATOMIC_MAPS.split_whitespace().any(|name| name == key)
}

/// Whether a scalar of the API server's own kinds is a Kubernetes quantity, which the server rewrites. `key` is its key
/// and `parent` the key of the map around it. A text that only looks like a quantity (`1.10` as a label) does not
/// count. Source: the types of `k8s.io/api`
pub fn is_quantity(parent: &str, key: &str) -> bool {
    matches!(
        parent,
        "allocatable"
            | "capacity"
            | "default"
            | "defaultRequest"
            | "hard"
            | "limits"
            | "max"
            | "maxLimitRequestRatio"
            | "min"
            | "overhead"
            | "podFixed"
            | "requests"
    ) || matches!(
        (parent, key),
        ("emptyDir", "sizeLimit")
            | ("resourceFieldRef", "divisor")
            | ("target", "value" | "averageValue")
            | ("", "capacity" | "maximumVolumeSize")
    )
}

/// Whether the server drops this zero value from a CRD: fields of its Go types that have `omitempty` and are not
/// pointers. Everywhere else a zero means something (`minimum: 0`, `subresources: {status: {}}`). Source:
/// `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go` and `types_jsonschema.go`
pub fn is_dropped_from_crd(key: &str, value: &Json<'_>) -> bool {
    // The table of keywords covers schemas. This one is a pointer: `false` means the same as absent, but is kept.
    if keywords::is_dropped(key, value) && key != "x-kubernetes-preserve-unknown-fields" {
        return true;
    }
    match value {
        Json::Null => true,
        Json::Bool(value) => !value && matches!(key, "deprecated" | "preserveUnknownFields"),
        Json::Int(number) => *number == 0 && key == "priority",
        Json::Float(_) => false,
        Json::Text(text) => {
            text.is_empty() && matches!(key, "fieldPath" | "listKind" | "message" | "messageExpression" | "singular")
        }
        Json::List(items) => items.is_empty() && key != "default" && key != "example",
        Json::Map(map) => map.is_empty() && matches!(key, "annotations" | "dependencies" | "labels"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers beyond 2^53 are compared as JSON's readers compare them")]
pub fn number(value: &Json<'_>) -> Option<f64> {
    match value {
        Json::Int(int) => Some(*int as f64),
        Json::Float(float) => Some(*float),
        _ => None,
    }
}

/// Whether two scalars are the same Kubernetes quantity (`1000m` and `1`, `0.5` and `500m`), as the server rewrites
/// them in its own types. Source: `k8s.io/apimachinery/pkg/api/resource`.
pub fn same_quantity(a: &Json<'_>, b: &Json<'_>) -> bool {
    let nanos = |value: &Json<'_>| {
        let text = match value {
            Json::Text(text) => Cow::Borrowed(text.as_ref()),
            // Written out, without an exponent.
            Json::Int(number) => Cow::Owned(number.to_string()),
            Json::Float(number) => Cow::Owned(number.to_string()),
            _ => return None,
        };
        Quantity::parse(&text).ok().map(|quantity| quantity.nanos())
    };
    nanos(a).is_some_and(|a| nanos(b) == Some(a))
}

/// Whether the server may have rewritten one of two different scalars as the other: the same quantity, duration, point
/// in time, or bytes in base64. A text that only looks like one is harmless, because the server is asked.
pub fn may_mean_the_same(a: &Json<'_>, b: &Json<'_>) -> bool {
    if same_quantity(a, b) {
        return true;
    }
    let (Json::Text(a), Json::Text(b)) = (a, b) else { return false };
    let bytes = |text: &str| {
        let compact: String = text.split_ascii_whitespace().collect();
        base64::engine::general_purpose::STANDARD.decode(compact).ok()
    };
    let time = |text: &str| Some(Timestamp::from_rfc3339(text)?.total_nanos());
    fn are_equal<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
        a.is_some() && a == b
    }
    are_equal(time(a), time(b)) || are_equal(duration::parse(a), duration::parse(b)) || are_equal(bytes(a), bytes(b))
}
