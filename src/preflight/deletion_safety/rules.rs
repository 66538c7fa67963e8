//! The documentation of this check's rules.

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
    summary: "a deleted object was changed by another field manager after the app was deployed",
    reports: "An object that leaves the app, if another field manager has set fields outside of `metadata` and \
        `status` since the app's own manager last changed the object. The controllers of Kubernetes itself do not \
        count.",
    why: "The changes of the other field manager are not in any manifest of the app, and are deleted with the object.",
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
    what_to_do: "Find out who changed it (`kubectl get --show-managed-fields`). If the change is needed, keep the \
        object: put it back into the manifests, or annotate it with `gantry.dev/prune: keep`.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static CRD_OBJECTS: RuleDoc = RuleDoc {
    name: "CRDDeletionLosesObjects",
    summary: "deleting a CRD deletes the objects of its kind",
    reports: "A CRD that leaves the app while objects of its kind exist, in any namespace, that the same deploy does \
        not delete explicitly.",
    why: "When a CRD is deleted, the API server deletes every object of its kind. They cannot be restored.",
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
    what_to_do: "Keep the CRD: put it back into the manifests, or annotate it with `gantry.dev/prune: keep`. If nobody \
        needs the objects, delete them first.",
    breaks: &[],
    severity: Severity::Error,
};

pub static CRD_NEEDED: RuleDoc = RuleDoc {
    name: "CRDNeededElsewhere",
    summary: "other objects or apps still use a deleted CRD",
    reports: "A CRD that leaves the app while something that the same deploy does not delete uses its kind: a webhook \
        configuration, an admission policy or its binding, a Role or a ClusterRole that names its group and resource, or \
        another app with objects of the kind. Rules for all groups do not count, nor do the ClusterRoles of Kubernetes \
        itself and those that aggregate the rules of others, which follow by themselves.",
    why: "The references suggest that a controller or a user still needs the kind. Their requests will fail.",
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
    what_to_do: "Delete the references, too, if they are no longer needed, or keep the CRD with \
        `gantry.dev/prune: keep`.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static EXTENSION_OBJECTS: RuleDoc = RuleDoc {
    name: "ExtensionDeletionLosesObjects",
    summary: "deleting a ClusterExtension deletes the objects of its CRDs",
    reports: "A ClusterExtension that leaves the app while objects of its CRDs exist that the same deploy does not \
        delete explicitly. Its CRDs are those that OLM v1 has installed for it, according to their labels \
        `olm.operatorframework.io/owner-kind` and `owner-name`.",
    why: "OLM v1 deletes everything that it has installed for the operator, including its CRDs. When a CRD is deleted, \
        the API server deletes every object of its kind.",
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
    what_to_do: "Keep the ClusterExtension: put it back into the manifests, or annotate it with \
        `gantry.dev/prune: keep`. If nobody needs the objects, delete them first.",
    breaks: &[],
    severity: Severity::Error,
};

pub static FINALIZER_HANGS: RuleDoc = RuleDoc {
    name: "FinalizerWillHang",
    summary: "a deleted object has a finalizer that no running workload of the app can remove",
    reports: "An object that leaves the app with a finalizer of a controller, while none of the app's workloads \
        (Deployments, StatefulSets, DaemonSets) is ready, or all of them are deleted before the object. Finalizers of \
        Kubernetes itself do not count, nor does an app without workloads, because its controllers run elsewhere. It \
        is a warning if the app has no CRD of the object's group or of the finalizer's domain: then the controller may \
        run elsewhere, too.",
    why: "An object with a finalizer is deleted only after the controller removes the finalizer. Without the \
        controller, the deletion never finishes, and neither does that of its namespace or CRD.",
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
    what_to_do: "Find out why the controller is not ready and fix it first. If this deploy deletes the controller, \
        too, delete the object in an earlier deploy.",
    breaks: &[],
    severity: Severity::Error,
};

pub static RIGHTS_LOST: RuleDoc = RuleDoc {
    name: "RightsLost",
    summary: "a deleted role or ServiceAccount is still used",
    reports: "A Role or ClusterRole that leaves the app while a remaining binding refers to it; and a ServiceAccount \
        that leaves the app while it is used by Pods that the same deploy does not delete.",
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
    what_to_do: "Delete the bindings, too, change the Pods to another account, or keep the object with \
        `gantry.dev/prune: keep`.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static NAMESPACE_OBJECTS: RuleDoc = RuleDoc {
    name: "NamespaceDeletionTakesOthers",
    summary: "deleting a namespace deletes objects that do not belong to the app",
    reports: "A Namespace that leaves the app while it contains objects that the same deploy does not delete \
        explicitly. Objects with `ownerReferences`, events, endpoints, and the objects that Kubernetes creates in \
        every namespace do not count.",
    why: "Deleting a namespace deletes everything in it, including objects of other apps and users.",
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
    what_to_do: "Move or delete these objects first, or keep the namespace: put it back into the manifests, or \
        annotate it with `gantry.dev/prune: keep`.",
    breaks: &[],
    severity: Severity::Error,
};

pub static VOLUME_DATA: RuleDoc = RuleDoc {
    name: "VolumeDeletionLosesData",
    summary: "deleting a volume or a claim deletes its data",
    reports: "A PersistentVolumeClaim that leaves the app and is bound to a volume with the reclaim policy `Delete`; \
        and a bound PersistentVolume with that policy that leaves the app.",
    why: "The storage behind the volume is deleted with all of its data.",
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
    what_to_do: "Keep the claim (`gantry.dev/prune: keep`), or set the volume's reclaim policy to `Retain` first.",
    breaks: &[],
    severity: Severity::Error,
};

pub static SERVICE_CALLED: RuleDoc = RuleDoc {
    name: "WebhookLosesService",
    summary: "webhooks or an aggregated API still call a deleted Service",
    reports: "A Service that leaves the app while it is called by a webhook configuration (with `failurePolicy: \
        Fail`), an APIService or the conversion webhook of a CRD that the same deploy does not delete.",
    why: "The API server refuses every request for which it must call the webhook. Requests to the aggregated API \
        fail, and objects of the CRD can no longer be read at other versions.",
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
    what_to_do: "Delete the objects that call the Service first, or change them to call another Service.",
    breaks: &[],
    severity: Severity::Error,
};
