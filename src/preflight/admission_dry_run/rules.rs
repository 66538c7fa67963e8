//! The rules of this check in words.

use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

/// Every rule speaks of an object that the server would not write: no change of an API, so that no other reader or writer of
/// one is hurt.
const fn refused(
    name: &'static str,
    summary: &'static str,
    forbids: &'static str,
    why: &'static str,
    example: Example,
    what_to_do: &'static str,
) -> RuleDoc {
    RuleDoc { name, summary, forbids, why, example, what_to_do, breaks: &[], severity: Severity::Error }
}

const HALF_DONE: &str = "A deploy learns of it when it writes the object, with everything before it written already.";

pub static DENIED: RuleDoc = refused(
    "AdmissionDenied",
    "admission denies the object: a webhook, a policy, a limit, the Pod Security level",
    "An object that an admission webhook, a ValidatingAdmissionPolicy, or one of the server's own admission plugins \
     (LimitRanger, PodSecurity, a namespace that is being deleted, a priority class that does not exist) denies.",
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
    "Change the object so that it is admitted, or talk to the owners of the rule that the message names.",
);

pub static WEBHOOK_FAILED: RuleDoc = refused(
    "AdmissionWebhookFailed",
    "an admission webhook that must be asked cannot be called",
    "An object for which the server has to call a webhook with `failurePolicy: Fail` that does not answer.",
    "As long as the webhook is down, every write of such an object is refused.",
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
    "Bring the webhook back. If it is part of this very deploy, deploy it first.",
);

pub static FORBIDDEN: RuleDoc = refused(
    "ApplyForbidden",
    "the user may not write the object",
    "An object that the user of this run may not create or patch, and a role or binding that would grant more than that \
     user holds.",
    HALF_DONE,
    Example::Objects {
        live: "",
        desired: "\
kind: ClusterRole
metadata: {name: all}
rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]
",
    },
    "Ask for the right that the message names.",
);

pub const CONFLICT_NAME: &str = "FieldConflict";

pub static CONFLICT: RuleDoc = refused(
    CONFLICT_NAME,
    "another field manager owns what the manifest changes",
    "A field that server-side apply would change while another manager is on record for it, unless conflicts are forced.",
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
    "Leave the fields to that manager, or take them over once with `--force-conflicts`.",
);

pub static IMMUTABLE: RuleDoc = refused(
    "ImmutableField",
    "the object changes a field that cannot change",
    "An update of a field that Kubernetes fixes when the object is created: a selector, the template of a Job, a \
     cluster IP, an immutable ConfigMap, the volumes of a StatefulSet, …",
    "No update will ever do it. The object has to be deleted and created again, which a deploy does not do by itself.",
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
    "Take the change back, use a new name, or delete the object yourself and deploy again.",
);

pub static UNASKED: RuleDoc = RuleDoc {
    name: "JudgedWithoutServer",
    summary: "the server cannot judge some objects before others of this deploy are written",
    forbids: "Nothing: a note at each namespace and each CRD that this deploy brings or changes, saying how many objects \
        wait for it; and where the user may not read quotas. Custom resources are judged by their CRD as it will be, objects of built-in kinds by the server's \
        own schema as far as unknown fields and wrong types go.",
    why: "What admission would say of these objects, and of the values in built-in ones, is not known before the deploy.",
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
    what_to_do: "Nothing has to be done. For the server's verdict on the rest, deploy namespaces and CRDs first.",
    breaks: &[],
    severity: Severity::Info,
};

pub static NAMESPACE: RuleDoc = refused(
    "NamespaceMissing",
    "the object's namespace is neither there nor among the manifests",
    "An object in a namespace that does not exist and that this deploy does not create.",
    HALF_DONE,
    Example::Objects {
        live: "",
        desired: "\
kind: ConfigMap
metadata: {name: settings, namespace: no-such-team}
",
    },
    "Correct the name, or put the namespace among the manifests.",
);

pub static INVALID: RuleDoc = refused(
    "ObjectInvalid",
    "the server refuses the object as invalid",
    "An object that the server's schema or validation refuses: an unknown field, a wrong type, a value out of range, an \
     invalid or non-structural CRD, one that drops a stored version, a custom resource that its CRD refuses. Where the \
     server cannot be asked yet, gantry's own validator says so.",
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
    "Correct the manifest at the line that is shown.",
);

pub static QUOTA: RuleDoc = refused(
    "QuotaExceeded",
    "the object does not fit into a quota of its namespace",
    "An object that a ResourceQuota has no room for, and several that fit one by one and not together: what this deploy \
     creates is added up, by number and by what Pods, claims and Services take. What controllers make of an object (the \
     Pods of a Deployment) is not.",
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
    "Ask for less, free something, or have the quota raised.",
);

pub static REFUSED: RuleDoc = refused(
    "RefusedByServer",
    "the server refuses the object for another reason",
    "An object that the server refuses with an answer that no other rule speaks of; the message has its words.",
    HALF_DONE,
    Example::Objects {
        live: "",
        desired: "\
kind: RoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: no-such-role}
",
    },
    "Look at the server's words.",
);

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![&DENIED, &WEBHOOK_FAILED, &FORBIDDEN, &CONFLICT, &IMMUTABLE, &UNASKED, &NAMESPACE, &INVALID, &QUOTA, &REFUSED]
}
