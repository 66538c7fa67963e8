//! The documentation of this check's rules.

use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

/// A rule about an object that the server refuses. The API does not change, so nothing else that reads or writes it
/// breaks.
const fn refused(
    name: &'static str,
    summary: &'static str,
    reports: &'static str,
    why: &'static str,
    example: Example,
    what_to_do: &'static str,
) -> RuleDoc {
    RuleDoc { name, summary, reports, why, example, what_to_do, breaks: &[], severity: Severity::Error }
}

const HALF_DONE: &str = "Without this check, the deploy fails when it writes this object, after it has already written \
    the objects before it.";

pub static DENIED: RuleDoc = refused(
    "AdmissionDenied",
    "admission denies the object: a webhook, a policy, a limit, the Pod Security level",
    "An object that is denied by an admission webhook, a ValidatingAdmissionPolicy, or one of the server's own \
     admission plugins (LimitRanger, PodSecurity, a namespace that is being deleted, a priority class that does not \
     exist).",
    HALF_DONE,
    Example::Objects {
        live: "\
kind: LimitRange
metadata: {name: limits, namespace: team-a}
spec: {limits: [{type: Container, max: {cpu: '1'}}]}
",
        desired: "\
kind: Pod
metadata: {name: web, namespace: team-a}
spec: {containers: [{name: web, image: web, resources: {limits: {cpu: '4'}}}]}
",
    },
    "Change the object so that admission accepts it, or ask the owners of the rule that the message names.",
);

pub static WEBHOOK_FAILED: RuleDoc = refused(
    "AdmissionWebhookFailed",
    "an admission webhook that the server must call does not answer",
    "An object for which the server must call a webhook with `failurePolicy: Fail`, and the webhook does not answer.",
    "While the webhook is down, the server refuses every write of such an object.",
    Example::Objects {
        live: "\
kind: ValidatingWebhookConfiguration
metadata: {name: policy}
webhooks: [{name: policy.example.com, failurePolicy: Fail, clientConfig: {service: {name: gone, namespace: policy}}}]
",
        desired: "\
kind: ConfigMap
metadata: {name: settings, namespace: team-a}
",
    },
    "Fix the webhook. If this deploy contains it, deploy it first.",
);

pub static FORBIDDEN: RuleDoc = refused(
    "ApplyForbidden",
    "the user may not write the object",
    "An object that the user of this run may not create or patch, and a role or binding that would grant more rights \
     than that user holds.",
    HALF_DONE,
    Example::Objects {
        live: "",
        desired: "\
kind: ClusterRole
metadata: {name: all}
rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]
",
    },
    "Ask for the permission that the message names.",
);

pub const CONFLICT_NAME: &str = "FieldConflict";

pub static CONFLICT: RuleDoc = refused(
    CONFLICT_NAME,
    "another field manager owns what the manifest changes",
    "A field that server-side apply would change although another manager owns it, unless conflicts are forced.",
    HALF_DONE,
    Example::Objects {
        live: "\
kind: Deployment
metadata:
  name: web
  managedFields: [{manager: autoscaler, operation: Update, apiVersion: apps/v1, fieldsV1: {f:spec: {f:replicas: {}}}}]
spec: {replicas: 5}
",
        desired: "\
kind: Deployment
metadata: {name: web}
spec: {replicas: 2}
",
    },
    "Leave the fields to that manager, or take ownership of them once with `--force-conflicts`.",
);

pub static IMMUTABLE: RuleDoc = refused(
    "ImmutableField",
    "the object changes an immutable field",
    "An update of a field that Kubernetes fixes when the object is created: a selector, the template of a Job, a \
     cluster IP, an immutable ConfigMap, the volumes of a StatefulSet, …",
    "No update can change such a field. The object must be deleted and created again, which a deploy does not do on \
        its own.",
    Example::Objects {
        live: "\
kind: ConfigMap
metadata: {name: settings}
immutable: true
data: {level: info}
",
        desired: "\
kind: ConfigMap
metadata: {name: settings}
immutable: true
data: {level: debug}
",
    },
    "Revert the change or use a new name. The finding says how an object of this kind is recreated with the least loss.",
);

pub static NOT_DRY_RUN: RuleDoc = RuleDoc {
    name: "JudgedWithoutServer",
    summary: "the server cannot validate some objects before others of this deploy are written",
    reports: "A note at each namespace and each CRD that this deploy creates or changes: how many objects can only be \
        validated once it is written. Also a note if the user may not read quotas. gantry validates these custom \
        resources against their CRD as it will be, and objects of built-in kinds against the server's own schema \
        (unknown fields and wrong types only).",
    why: "Whether admission accepts these objects, and whether values in built-in objects are valid, is unknown before \
        the deploy.",
    example: Example::Objects {
        live: "",
        desired: "\
kind: Namespace
metadata: {name: team-b}
---
kind: ConfigMap
metadata: {name: settings, namespace: team-b}
",
    },
    what_to_do: "Nothing. To have the server validate all objects, deploy namespaces and CRDs first.",
    breaks: &[],
    severity: Severity::Info,
};

pub static NAMESPACE: RuleDoc = refused(
    "NamespaceMissing",
    "the object's namespace does not exist and is not among the manifests",
    "An object in a namespace that does not exist and that this deploy does not create.",
    HALF_DONE,
    Example::Objects {
        live: "",
        desired: "\
kind: ConfigMap
metadata: {name: settings, namespace: no-such-team}
",
    },
    "Fix the name, or add the namespace to the manifests.",
);

pub static INVALID: RuleDoc = refused(
    "ObjectInvalid",
    "the server refuses the object as invalid",
    "An object that the server's schema or validation refuses: an unknown field, a wrong type, a value out of range, \
     an invalid or non-structural CRD, a CRD that drops a stored version, a custom resource that does not match its \
     CRD. If the server cannot validate an object yet, gantry does, and the message says so.",
    HALF_DONE,
    Example::Objects {
        live: "",
        desired: "\
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: wbe}}
    spec: {containers: [{name: web, image: web}]}
",
    },
    "Fix the manifest at the reported line.",
);

pub static QUOTA: RuleDoc = refused(
    "QuotaExceeded",
    "the object exceeds a quota of its namespace",
    "An object that exceeds a ResourceQuota, and several objects that exceed it together: gantry adds up what this \
     deploy creates, by number of objects and by what Pods, claims and Services use. It does not count what \
     controllers create from an object (the Pods of a Deployment).",
    HALF_DONE,
    Example::Objects {
        live: "\
kind: ResourceQuota
metadata: {name: small, namespace: team-a}
spec: {hard: {configmaps: '0'}}
",
        desired: "\
kind: ConfigMap
metadata: {name: settings, namespace: team-a}
",
    },
    "Request less, delete something, or ask for a higher quota.",
);

pub static REFUSED: RuleDoc = refused(
    "RefusedByServer",
    "the server refuses the object for another reason",
    "An object that the server refuses with an answer that no other rule covers; the message quotes the server.",
    HALF_DONE,
    Example::Objects {
        live: "",
        desired: "\
kind: RoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: no-such-role}
",
    },
    "Follow the server's message.",
);

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![
        &DENIED,
        &WEBHOOK_FAILED,
        &FORBIDDEN,
        &CONFLICT,
        &IMMUTABLE,
        &NOT_DRY_RUN,
        &NAMESPACE,
        &INVALID,
        &QUOTA,
        &REFUSED,
    ]
}

/// The rules whose findings are certain refusals. A webhook that does not answer may answer later, and a deploy waits
/// for it.
pub const REFUSALS: &[&str] = &[
    "AdmissionDenied",
    "ApplyForbidden",
    CONFLICT_NAME,
    "ImmutableField",
    "NamespaceMissing",
    "ObjectInvalid",
    "QuotaExceeded",
    "RefusedByServer",
];
