//! The rules of this check in words.

use crate::finding::{Breaks, Severity};
use crate::preflight::rule::{Example, RuleDoc};

pub static DEPRECATED: RuleDoc = RuleDoc {
    name: "ApiDeprecated",
    summary: "an object is written at a version that is deprecated",
    forbids: "A kind at a version that the target serves and has deprecated: one of Kubernetes' own, as its source says, \
        or a version of a CRD that is marked `deprecated`. The message names the release in which it goes, and what takes \
        its place.",
    why: "It works today. After the upgrade of the cluster that removes the version the same manifest is refused.",
    example: Example::Objects {
        live: "",
        desired: "\
apiVersion: v1
kind: Endpoints
metadata: {name: legacy}
",
    },
    what_to_do: "Write the object at the version that is named; the server converts what is stored.",
    breaks: &[Breaks::Writers],
    severity: Severity::Warning,
};

pub static GOES_AWAY: RuleDoc = RuleDoc {
    name: "ApiGoesAway",
    summary: "this deploy takes an API away that others still name",
    forbids: "A CRD version that is served today and no longer after this deploy while it is named by another object of the \
        same deploy, by a webhook configuration, an admission policy or its binding that matches no version that stays, by \
        the `paramKind` of a policy, by an aggregated ClusterRole (of a CRD that serves nothing any more), or, as a \
        warning, by the records of the managers of live objects: those do not tell whether a manager still writes at that \
        version. With `matchPolicy: Equivalent`, the default, a rule goes on to match as long as the CRD has the version, \
        served or not; with `Exact` only while it is served.",
    why: "Anyone who writes at the version gets a 404. A webhook or a policy that matches only versions that are gone is \
        called for nothing any more, without a word: what it enforced is not enforced. A policy that finds no parameters \
        refuses all that it matches.",
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
    what_to_do: "Move whatever is named to a version that stays, deploy that first, then stop serving the old version.",
    breaks: &[Breaks::Writers, Breaks::Readers, Breaks::Behaviour],
    severity: Severity::Error,
};

pub static NOT_SERVED: RuleDoc = RuleDoc {
    name: "ApiNotServed",
    summary: "the kind of an object is neither served by the target nor defined by the manifests",
    forbids: "An object whose group, version and kind neither the target's discovery nor a CRD of the same manifests has \
        as served; and one of a kind that is served, but only to ask or to read: a SubjectAccessReview, a ComponentStatus.",
    why: "No request can be sent for it, and the deploy would end before it writes anything.",
    example: Example::Objects {
        live: "",
        desired: "\
apiVersion: apps/v1
kind: Deploymnet
metadata: {name: web}
",
    },
    what_to_do: "Correct apiVersion and kind as the finding proposes, or add the CRD that defines the kind to the manifests.",
    breaks: &[],
    severity: Severity::Error,
};

pub static REMOVED: RuleDoc = RuleDoc {
    name: "ApiRemoved",
    summary: "the kind of an object was removed from Kubernetes",
    forbids: "An object at a version of one of Kubernetes' own kinds that a release from 1.16 to 1.36 removed and that the \
        target does not serve.",
    why: "The version is gone and does not come back. Objects that were written at it are still there, at its successor.",
    example: Example::Objects {
        live: "",
        desired: "\
apiVersion: extensions/v1beta1
kind: Ingress
metadata: {name: web}
",
    },
    what_to_do: "Use the apiVersion that is named. Fields may have changed with it: `kubectl explain` and AdmissionDryRun \
        say which.",
    breaks: &[],
    severity: Severity::Error,
};

pub static NAMESPACE_ASSUMED: RuleDoc = RuleDoc {
    name: "NamespaceAssumed",
    summary: "a namespaced object names no namespace and nobody chose one",
    forbids: "An object of a namespaced kind without `metadata.namespace`, where neither `--namespace` nor the configuration \
        names one either. A warning where it goes to `default`; information where the kubeconfig's context names another \
        namespace.",
    why: "Where it goes depends on who runs the deploy, from which machine. In another namespace it is another object.",
    example: Example::Objects {
        live: "",
        desired: "\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
",
    },
    what_to_do: "Write the namespace into the manifest, or name it for the run with `--namespace`.",
    breaks: &[],
    severity: Severity::Warning,
};

pub static NAMESPACE_IGNORED: RuleDoc = RuleDoc {
    name: "NamespaceIgnored",
    summary: "an object of a cluster-scoped kind names a namespace",
    forbids: "`metadata.namespace` on an object of a kind that lives in no namespace.",
    why: "The server drops it: the object is there for the whole cluster, and a second one of that name in \"another \
        namespace\" is the same object.",
    example: Example::Objects {
        live: "",
        desired: "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader, namespace: team-a}
",
    },
    what_to_do: "Take the namespace out, or use the namespaced kind (Role for ClusterRole, Issuer for ClusterIssuer, …).",
    breaks: &[],
    severity: Severity::Warning,
};

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![&DEPRECATED, &GOES_AWAY, &NOT_SERVED, &REMOVED, &NAMESPACE_ASSUMED, &NAMESPACE_IGNORED]
}
