//! The documentation of this check's rules.

use crate::finding::{Breaks, Severity};
use crate::preflight::rule::{Example, RuleDoc};

pub static DEPRECATED: RuleDoc = RuleDoc {
    name: "ApiDeprecated",
    summary: "an object uses a deprecated version",
    reports: "An object at a version that the target still serves but has deprecated: a version of one of Kubernetes' \
        own kinds that its source marks as deprecated, or a version of a CRD with `deprecated: true`. The message \
        names the release that removes the version, and its replacement.",
    why: "The manifest works today. The server refuses it once the cluster is upgraded to a release without this \
        version.",
    example: Example::Objects {
        live: "",
        desired: "\
apiVersion: v1
kind: Endpoints
metadata: {name: legacy}
",
    },
    what_to_do: "Change the manifest to the version that the message names; the server converts stored objects.",
    breaks: &[Breaks::Writers],
    severity: Severity::Warning,
};

pub static GOES_AWAY: RuleDoc = RuleDoc {
    name: "ApiGoesAway",
    summary: "this deploy stops serving an API that others still use",
    reports: "A CRD version that is served today and not after this deploy, while something still uses it: another \
        object of the same deploy; a webhook configuration, an admission policy or its binding that matches no \
        remaining version; the `paramKind` of a policy; an aggregated ClusterRole (if the CRD no longer serves any \
        version); or, as a warning, the `managedFields` of live objects, which do not show whether a manager still \
        writes at that version. With `matchPolicy: Equivalent`, the default, a webhook or policy still matches as long \
        as the CRD has the version, served or not; with `Exact`, only while it is served.",
    why: "Clients that use the version get a 404. A webhook or a policy that matches only removed versions is never \
        called again, without any error: what it enforced is no longer enforced. A policy that finds no parameters \
        refuses everything that it matches.",
    example: Example::Objects {
        live: "\
# samples.test.example.com serves v1alpha1 and v1
",
        desired: "\
kind: CustomResourceDefinition
metadata: {name: samples.test.example.com}
spec:
  versions:
  - {name: v1alpha1, served: false, storage: false}
  - {name: v1, served: true, storage: true}
---
apiVersion: test.example.com/v1alpha1
kind: Sample
metadata: {name: nightly}
",
    },
    what_to_do: "Change everything that the finding names to a version that is still served, deploy that first, then \
        stop serving the old version.",
    breaks: &[Breaks::Writers, Breaks::Readers, Breaks::Behaviour],
    severity: Severity::Error,
};

pub static NOT_SERVED: RuleDoc = RuleDoc {
    name: "ApiNotServed",
    summary: "the kind of an object is neither served by the target nor defined by the manifests",
    reports: "An object whose group, version and kind is neither in the target's discovery nor served by a CRD of the \
        same manifests; and an object of a request-only or read-only kind, such as SubjectAccessReview or \
        ComponentStatus.",
    why: "gantry cannot send a request for it, so the deploy ends before it writes anything.",
    example: Example::Objects {
        live: "",
        desired: "\
apiVersion: apps/v1
kind: Deploymnet
metadata: {name: web}
",
    },
    what_to_do: "Fix `apiVersion` and `kind` as the finding suggests, or add the CRD that defines the kind to the \
        manifests.",
    breaks: &[],
    severity: Severity::Error,
};

pub static REMOVED: RuleDoc = RuleDoc {
    name: "ApiRemoved",
    summary: "the kind of an object was removed from Kubernetes",
    reports: "An object at a version of one of Kubernetes' own kinds that a release from 1.16 to 1.36 removed, and \
        that the target does not serve.",
    why: "The version will not return. Objects that were written at it still exist and can be read at its successor.",
    example: Example::Objects {
        live: "",
        desired: "\
apiVersion: extensions/v1beta1
kind: Ingress
metadata: {name: web}
",
    },
    what_to_do: "Use the apiVersion that the message names. Its fields may differ: `kubectl explain` and \
        AdmissionDryRun show where.",
    breaks: &[],
    severity: Severity::Error,
};

pub static NAMESPACE_ASSUMED: RuleDoc = RuleDoc {
    name: "NamespaceAssumed",
    summary: "a namespaced object has no namespace, and none was configured",
    reports: "An object of a namespaced kind without `metadata.namespace`, if neither `--namespace` nor the \
        configuration names a namespace. It is a warning if the object is created in `default`, and information if the \
        kubeconfig's context names another namespace.",
    why: "The namespace then depends on who runs the deploy and with which kubeconfig. In another namespace it is a \
        different object.",
    example: Example::Objects {
        live: "",
        desired: "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
",
    },
    what_to_do: "Add the namespace to the manifest, or pass `--namespace`.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static NAMESPACE_IGNORED: RuleDoc = RuleDoc {
    name: "NamespaceIgnored",
    summary: "an object of a cluster-scoped kind names a namespace",
    reports: "`metadata.namespace` on an object of a cluster-scoped kind.",
    why: "The server drops the namespace: the object applies to the whole cluster, and an object with the same name \
        in \"another namespace\" is the same object.",
    example: Example::Objects {
        live: "",
        desired: "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader, namespace: team-a}
",
    },
    what_to_do: "Remove the namespace, or use the namespaced kind (Role instead of ClusterRole, Issuer instead of \
        ClusterIssuer, …).",
    breaks: &[],
    severity: Severity::Warning,
};

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![&DEPRECATED, &GOES_AWAY, &NOT_SERVED, &REMOVED, &NAMESPACE_ASSUMED, &NAMESPACE_IGNORED]
}

/// The rules whose findings are certain refusals.
pub const REFUSALS: &[&str] = &["ApiNotServed", "ApiRemoved"];
