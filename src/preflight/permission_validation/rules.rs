//! The rules of this check in words.

use crate::finding::Severity;
use crate::preflight::rule::{Example, RuleDoc};

/// Every rule, sorted by name.
pub fn docs() -> Vec<&'static RuleDoc> {
    vec![&BINDING, &REQUEST, &ROLE]
}

pub static REQUEST: RuleDoc = RuleDoc {
    name: "RequestNotPermitted",
    summary: "the API server would refuse a request of this deploy to this identity",
    forbids: "A request that the deploy will send and that the identity may not send: get for each object that is read, \
        patch for each one that is written, create where it is not there yet (server-side apply needs both then), list \
        for what other checks look at. And a right that the server asks for beside those: to read the parameters of an \
        admission policy, for whoever writes one.",
    why: "The server would refuse it in the middle of the deploy, when other objects have been written.",
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
    what_to_do: "Grant the rules that the finding ends with. gantry permissions -f … prints everything that the whole \
        deploy needs, with the bindings, ready to apply.",
    breaks: &[],
    severity: Severity::Error,
};

pub static ROLE: RuleDoc = RuleDoc {
    name: "RoleNotPermitted",
    summary: "a Role or ClusterRole has rules that this identity neither holds nor may hand on",
    forbids: "Writing a Role or ClusterRole without the verb escalate on it and without holding each of its rules in the \
        same place; with an aggregation rule, without holding every right there is.",
    why: "The server refuses it, so that nobody gets more rights by writing a role than he has. It looks at RBAC rules \
        alone: what another authorizer (a webhook) allows does not count.",
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
    what_to_do: "Grant the rules that are missing. escalate on the role does as well, but lets its holder write any rule \
        into it; for a ClusterRole that aggregates others it is the lesser right.",
    breaks: &[],
    severity: Severity::Error,
};

pub static BINDING: RuleDoc = RuleDoc {
    name: "BindingNotPermitted",
    summary: "a binding hands out a role that this identity neither holds nor may bind",
    forbids: "Writing a RoleBinding or ClusterRoleBinding without the verb bind on the role that it refers to and without \
        holding each rule of it in the same place. Roles of the same manifests are known by what the deploy makes of \
        them, with all that they aggregate. Where the identity may not read the role either, nobody can tell what it \
        would have to hold, and bind is asked for.",
    why: "The server refuses it, so that nobody gets more rights by binding a role than he has.",
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
    what_to_do: "Grant bind on that one role.",
    breaks: &[],
    severity: Severity::Error,
};
