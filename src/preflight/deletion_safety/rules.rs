//! The rules of this check in words.

use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![
        &CRD_OBJECTS,
        &CRD_NEEDED,
        &CHANGED_BY_OTHER,
        &EXTENSION_OBJECTS,
        &FINALIZER_HANGS,
        &NAMESPACE_OBJECTS,
        &RIGHTS_LOST,
        &VOLUME_DATA,
        &SERVICE_CALLED,
    ]
}

pub static CHANGED_BY_OTHER: RuleDoc = RuleDoc {
    name: "ChangedByOther",
    summary: "an object is deleted that somebody else has changed since the app was deployed",
    reports: "An object that leaves the app, where another field manager has set fields outside of metadata and status since the \
        app's own manager last changed the object. The controllers of Kubernetes itself do not count.",
    why: "What another field manager has set is in no manifest of the app, and is deleted with the object.",
    example: Example::Deletion {
        left: "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {level: info}
",
        other: "\
# kubectl patch configmap settings --type=merge -p '{data: {level: debug}}'
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {level: debug}
",
    },
    what_to_do: "Ask who changed it (kubectl get --show-managed-fields), and keep the object where the change is needed: put it \
        back into the manifests, or annotate it with gantry.dev/prune: keep.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static CRD_OBJECTS: RuleDoc = RuleDoc {
    name: "CRDDeletionLosesObjects",
    summary: "a CRD is deleted, and objects of its kind go with it",
    reports: "A CRD that leaves the app while objects of its kind exist, in any namespace, that the same deploy does not \
        delete by themselves.",
    why: "The API server deletes every object of a kind together with its CRD, and nothing brings them back.",
    example: Example::Deletion {
        left: "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: samples.test.example.com}
spec:
  group: test.example.com
  scope: Namespaced
  names: {plural: samples, kind: Sample}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
",
        other: "\
apiVersion: test.example.com/v1
kind: Sample
metadata: {name: one, namespace: default}
",
    },
    what_to_do: "Keep the CRD: put it back into the manifests, or annotate it with gantry.dev/prune: keep. Delete the \
        objects first where nobody needs them.",
    breaks: &[],
    severity: Severity::Error,
};

pub static CRD_NEEDED: RuleDoc = RuleDoc {
    name: "CRDNeededElsewhere",
    summary: "a CRD is deleted that others still name",
    reports: "A CRD that leaves the app while a webhook configuration, a ValidatingAdmissionPolicy, a Role or a ClusterRole \
        names its kind by group and resource, or another app has members of the kind, and is not deleted by the same \
        deploy. Rules about all groups do not count.",
    why: "What names the kind was made for it: a controller or a user that needs it fails, or finds nothing.",
    example: Example::Deletion {
        left: "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: samples.test.example.com}
spec:
  group: test.example.com
  scope: Namespaced
  names: {plural: samples, kind: Sample}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
",
        other: "\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules:
- {apiGroups: [test.example.com], resources: [samples], verbs: [get]}
",
    },
    what_to_do: "See whether these are still needed, and delete them, too, or keep the CRD with gantry.dev/prune: keep.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static EXTENSION_OBJECTS: RuleDoc = RuleDoc {
    name: "ExtensionDeletionLosesObjects",
    summary: "a ClusterExtension is deleted, and objects of its CRDs go with it",
    reports: "A ClusterExtension that leaves the app, while objects exist of the CRDs that OLM v1 has installed for it (their \
        labels olm.operatorframework.io/owner-kind and owner-name say so) and that the same deploy does not delete by themselves.",
    why: "OLM v1 deletes the operator with all that it has installed for it, its CRDs among that; and the API server deletes \
        every object of a kind together with its CRD.",
    example: Example::Deletion {
        left: "\
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: sample}
spec:
  namespace: default
  serviceAccount: {name: installer}
  source: {sourceType: Catalog, catalog: {packageName: sample}}
",
        other: "\
# The CRD has the labels olm.operatorframework.io/owner-kind: ClusterExtension and owner-name: sample.
apiVersion: test.example.com/v1
kind: Sample
metadata: {name: one, namespace: default}
",
    },
    what_to_do: "Keep the ClusterExtension: put it back into the manifests, or annotate it with gantry.dev/prune: keep. Delete \
        the objects first where nobody needs them.",
    breaks: &[],
    severity: Severity::Error,
};

pub static FINALIZER_HANGS: RuleDoc = RuleDoc {
    name: "FinalizerWillHang",
    summary: "an object with a finalizer is deleted, and no workload of the app runs that could finish it",
    reports: "An object that leaves the app with a finalizer of a controller, while the app has workloads (Deployments, \
        StatefulSets, DaemonSets) and none of them is ready, or all are deleted before the object is. Finalizers of \
        Kubernetes itself do not count, nor does an app without workloads, whose controllers are elsewhere. It is a warning \
        where the app has no CRD of the object's group or of the finalizer's domain: then its controller may be elsewhere, too.",
    why: "An object with a finalizer is gone only when the controller of the finalizer has done its work. Without the \
        controller it stays for ever, and so do its namespace and its CRD.",
    example: Example::Deletion {
        left: "\
apiVersion: v1
kind: ConfigMap
metadata: {name: held, namespace: default, finalizers: [test.example.com/held]}
",
        other: "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator, namespace: default}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec: {containers: [{name: operator, image: does-not-exist}]}
",
    },
    what_to_do: "Make the controller run first: see why it is not ready. Or delete the object while the controller is still \
        there, in a deploy of its own.",
    breaks: &[],
    severity: Severity::Error,
};

pub static RIGHTS_LOST: RuleDoc = RuleDoc {
    name: "RightsLost",
    summary: "a role or a ServiceAccount is deleted that is still used",
    reports: "A Role or ClusterRole that leaves the app while a binding that stays refers to it; a ServiceAccount that leaves \
        while Pods run as it that the same deploy does not delete.",
    why: "The users and Pods that have these rights lose them.",
    example: Example::Deletion {
        left: "\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules:
- {apiGroups: [''], resources: [configmaps], verbs: [get]}
",
        other: "\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: theirs, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: somebody}
",
    },
    what_to_do: "Delete the bindings, too, let the Pods run as another account, or keep the object with gantry.dev/prune: keep.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static NAMESPACE_OBJECTS: RuleDoc = RuleDoc {
    name: "NamespaceDeletionTakesOthers",
    summary: "a namespace is deleted, and objects go with it that do not belong to the app",
    reports: "A Namespace that leaves the app while it holds objects that the same deploy does not delete by themselves. \
        Objects that others own (ownerReferences), events, endpoints, and what every namespace has do not count.",
    why: "Deleting a namespace deletes everything in it, including what belongs to others.",
    example: Example::Deletion {
        left: "\
apiVersion: v1
kind: Namespace
metadata: {name: test-left}
",
        other: "\
apiVersion: v1
kind: ConfigMap
metadata: {name: theirs, namespace: test-left}
",
    },
    what_to_do: "Move or delete these objects first, or keep the namespace: put it back into the manifests, or annotate \
        it with gantry.dev/prune: keep.",
    breaks: &[],
    severity: Severity::Error,
};

pub static VOLUME_DATA: RuleDoc = RuleDoc {
    name: "VolumeDeletionLosesData",
    summary: "a volume or a claim is deleted together with its data",
    reports: "A PersistentVolumeClaim that leaves the app and is bound to a volume with the reclaim policy Delete; a bound \
        PersistentVolume with that policy.",
    why: "The storage behind the volume is deleted, with all that is on it.",
    example: Example::Deletion {
        left: "\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec:
  accessModes: [ReadWriteOnce]
  volumeName: data
  storageClassName: ''
  resources: {requests: {storage: 1Gi}}
",
        other: "\
apiVersion: v1
kind: PersistentVolume
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  persistentVolumeReclaimPolicy: Delete
  hostPath: {path: /tmp/data}
",
    },
    what_to_do: "Keep the claim (gantry.dev/prune: keep), or set the volume's reclaim policy to Retain before.",
    breaks: &[],
    severity: Severity::Error,
};

pub static SERVICE_CALLED: RuleDoc = RuleDoc {
    name: "WebhookLosesService",
    summary: "a Service is deleted that webhooks or an aggregated API still call",
    reports: "A Service that leaves the app while a webhook configuration (with failurePolicy Fail), an APIService or the \
        conversion webhook of a CRD calls it, and is not deleted by the same deploy.",
    why: "Every request that the webhook is called for is refused from then on; objects of the CRD can no longer be read at \
        other versions.",
    example: Example::Deletion {
        left: "\
apiVersion: v1
kind: Service
metadata: {name: hook, namespace: default}
spec: {ports: [{port: 443}]}
",
        other: "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook}
webhooks:
- name: hook.test.example.com
  clientConfig: {service: {name: hook, namespace: default}}
  rules: [{apiGroups: [test.example.com], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]
  sideEffects: None
  admissionReviewVersions: [v1]
",
    },
    what_to_do: "Delete what calls the Service first, or let it call another one.",
    breaks: &[],
    severity: Severity::Error,
};
