//! The rules of this check in words.

use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![&CRD_OBJECTS, &NAMESPACE_OBJECTS, &VOLUME_DATA, &SERVICE_CALLED]
}

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
    summary: "a volume or a claim is deleted, and its data goes with it",
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
