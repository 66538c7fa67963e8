//! The documentation of this check's rules.

use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![&BINDING, &LOG, &REQUEST, &ROLE, &WATCH]
}

pub static WATCH: RuleDoc = RuleDoc {
    name: "WatchNotPermitted",
    summary: "the identity may not watch the objects that this deploy waits for (note)",
    reports: "A deploy that waits (of an app, or with `--wait`), if its identity may not list or watch a kind that it \
        waits for. A single object of a kind in its namespace is watched by its name, so a rule with that name \
        suffices.",
    why: "Nothing fails: gantry reads each of the objects again every two seconds instead. This causes more requests, \
        and the deploy may continue up to two seconds later.",
    example: Example::Rights {
        granted: "\
- {apiGroups: [apps], resources: [deployments], verbs: [get, create, patch]}
",
        object: "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod}
",
    },
    what_to_do: "Grant `list` and `watch`, as for `kubectl rollout status`. `gantry permissions -f …` prints them, \
        too.",
    breaks: &[],
    severity: Severity::Info,
};

pub static LOG: RuleDoc = RuleDoc {
    name: "LogNotPermitted",
    summary: "the identity may not read the logs that --logs shows (note)",
    reports: "A deploy with `--logs` (or `logs: true`) that waits for a workload, if its identity may not list the \
        Pods of the workload or read their logs.",
    why: "Nothing fails, but an object that does not become ready is reported without the log of its Pod.",
    example: Example::Rights {
        granted: "\
- {apiGroups: [apps], resources: [deployments], verbs: [get, create, patch]}
- {apiGroups: [apps], resources: [replicasets], verbs: [list]}
- {apiGroups: [\"\"], resources: [pods], verbs: [get, list]}
",
        object: "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod}
",
    },
    what_to_do: "Grant `get` on `pods/log`, or deploy without `--logs`. `gantry permissions -f … --logs` prints all \
        rules that are needed. Logs may contain secrets.",
    breaks: &[],
    severity: Severity::Info,
};

pub static REQUEST: RuleDoc = RuleDoc {
    name: "RequestNotPermitted",
    summary: "the identity may not send a request that this deploy needs",
    reports: "A request that the deploy will send but the identity may not send: `get` for each object that is read, \
        `patch` for each one that is written, `create` for each one that does not exist yet (server-side apply then \
        needs both), `list` for the lists of other checks. Also a right that the server requires in addition: to write \
        an admission policy, the identity must be able to read its parameters.",
    why: "The server would refuse it in the middle of the deploy, after other objects have been written.",
    example: Example::Rights {
        granted: "\
- {apiGroups: [apps], resources: [deployments], verbs: [get, patch]}
",
        object: "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod}
",
    },
    what_to_do: "Grant the rules at the end of the finding. `gantry permissions -f …` prints everything that the whole \
        deploy needs, with the bindings, ready to apply.",
    breaks: &[],
    severity: Severity::Error,
};

pub static ROLE: RuleDoc = RuleDoc {
    name: "RoleNotPermitted",
    summary: "a Role or ClusterRole has rules that this identity neither holds nor may grant",
    reports: "A Role or ClusterRole, if the identity that writes it neither has the verb `escalate` on it nor holds \
        each of its rules in the same scope (with an aggregation rule: every right).",
    why: "The server refuses it to prevent privilege escalation: a user may not grant rights that the user does not \
        hold. Only RBAC rules count, not what another authorizer (a webhook) allows.",
    example: Example::Rights {
        granted: "\
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [get, create, patch]}
- {apiGroups: [\"\"], resources: [configmaps], verbs: [get]}
",
        object: "\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: prod}
rules:
- {apiGroups: [\"\"], resources: [configmaps], verbs: [get, list]}
",
    },
    what_to_do: "Grant the missing rules. Granting `escalate` on the role also works, but lets the identity write any \
        rule into it; for a ClusterRole that aggregates others, it is the smaller grant.",
    breaks: &[],
    severity: Severity::Error,
};

pub static BINDING: RuleDoc = RuleDoc {
    name: "BindingNotPermitted",
    summary: "a binding grants a role that this identity neither holds nor may bind",
    reports: "A RoleBinding or ClusterRoleBinding, if the identity that writes it neither has the verb `bind` on its \
        role nor holds each rule of the role in the same scope. For roles of the same manifests, gantry uses the rules \
        that they will have, including aggregated ones. If the identity may not read the role, its rules are unknown, \
        and the finding says to grant `bind`.",
    why: "The server refuses it to prevent privilege escalation: a user may not grant rights that the user does not \
        hold.",
    example: Example::Rights {
        granted: "\
- {apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: [get, create, patch]}
",
        object: "\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewers, namespace: prod}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: team}]
",
    },
    what_to_do: "Grant `bind` on that one role.",
    breaks: &[],
    severity: Severity::Error,
};

/// The rules whose findings are certain refusals.
pub const REFUSALS: &[&str] = &["BindingNotPermitted", "RequestNotPermitted", "RoleNotPermitted"];
