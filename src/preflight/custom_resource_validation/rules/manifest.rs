//! The rules about custom resources among the manifests.

use crate::finding::{Breaks, Severity};
use crate::preflight::objects::manifests::Wrong;
use crate::preflight::rule::{Example, RuleDoc};

pub static MANIFEST_REFUSED: RuleDoc = RuleDoc {
    name: "ManifestObjectRefused",
    summary: "the CRD refuses a custom resource among the manifests",
    reports: "A custom resource that its CRD will refuse: the CRD among the manifests if there is one, otherwise the \
        live one; and a custom resource at a version that this CRD does not serve. If the object is already live, \
        gantry validates the update: the manifest is merged with the live object, and invalid values that do not \
        change are tolerated. Values that server-side apply cannot parse (a wrong type in the manifest or in the live \
        object, and a duplicate) are not tolerated, and a null is refused if the schema does not allow it. Nor is an \
        object whose `managedFields` name another version that the CRD does not have, or whose schema the live or the \
        merged object does not fit: the server converts both to each of these versions.",
    why: "The server would refuse it in the middle of the deploy, after other objects have been written.",
    example: Example::Manifest {
        desired: "\
size: {type: integer, maximum: 5}
",
        object: "\
spec: {size: 7}
",
    },
    what_to_do: "Fix the manifest at the reported line.",
    breaks: Wrong::Refused.breaks(),
    severity: Severity::Error,
};

pub static MANIFEST_UNKNOWN_FIELD: RuleDoc = RuleDoc {
    name: "ManifestUnknownField",
    summary: "a custom resource among the manifests has a field that its CRD does not have",
    reports: "A field of a custom resource, or of its metadata, that the CRD does not have. The CRD among the \
        manifests counts if there is one, otherwise the live one.",
    why: "Server-side apply refuses it, and a plain create silently drops it, so the value is not set. Usually the \
        field is misspelt or its indentation is wrong.",
    example: Example::Manifest {
        desired: "\
replicas: {type: integer}
",
        object: "\
spec: {replcas: 3}
",
    },
    what_to_do: "Fix the name or the indentation, or add the field to the CRD first.",
    breaks: Wrong::UnknownField.breaks(),
    severity: Severity::Error,
};

pub static MANIFEST_VALUE_LOST: RuleDoc = RuleDoc {
    name: "ManifestValueLost",
    summary: "the server accepts a custom resource among the manifests, and a value is lost between versions",
    reports: "Where no webhook converts: a value of a manifest that the storage version lacks; a value of the live \
        object that the version of the manifest lacks; and a value of a manifest that another served version lacks \
        because of this upgrade.",
    why: "The server stores every object at the storage version, reads it at the version of each request, and drops what \
        the version lacks both times. It refuses nothing: a value that the storage version lacks is gone although the \
        request succeeds, and a write at a version with fewer fields, even of a label, drops the other fields.",
    example: Example::Objects {
        live: "",
        desired: "\
apiVersion: test.example.com/v2
kind: Sample
metadata: {name: one, namespace: default}
spec: {host: a, port: 80}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: samples.test.example.com}
spec:
  group: test.example.com
  scope: Namespaced
  names: {kind: Sample, listKind: SampleList, plural: samples, singular: sample}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {host: {type: string}}}
  - name: v2
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {host: {type: string}, port: {type: integer}}}
",
    },
    what_to_do: "Add the field to both versions, or convert with a webhook. If the CRD is somebody else's, write the \
        manifest at the storage version, and leave out what that version lacks.",
    breaks: &[Breaks::Writers, Breaks::Data],
    severity: Severity::Error,
};
