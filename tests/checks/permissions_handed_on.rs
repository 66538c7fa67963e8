//! `PermissionValidation`: the permissions that the API server requires to write roles, bindings and admission
//! policies.

use crate::support::rights::{REVIEWS, grant, printed, replace};
use crate::support::{Bed, Proxy, When, control_plane};
use serde_json::{Value, json};

const CHECK: [&str; 2] = ["--preflight", "PermissionValidation"];
const POLICIES: &str = "apiVersion: admissionregistration.k8s.io/v1";

/// A policy that never matches, with parameters of this kind.
fn policy(bed: &Bed, param_kind: &str) -> String {
    let (group, ns) = (&bed.names.group, &bed.names.namespace);
    format!(
        "{POLICIES}\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: {ns}}}\n\
         spec: {{{param_kind}validations: [{{expression: 'true'}}], \
         matchConstraints: {{resourceRules: [{{apiGroups: [{group}], apiVersions: ['*'], operations: [CREATE], \
         resources: ['*']}}]}}}}\n"
    )
}

/// Its binding, to a ConfigMap.
fn policy_binding(bed: &Bed, action: &str) -> String {
    let ns = &bed.names.namespace;
    format!(
        "{POLICIES}\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: {ns}}}\n\
         spec: {{policyName: {ns}, validationActions: [{action}], \
         paramRef: {{name: limits, namespace: {ns}, parameterNotFoundAction: Allow}}}}\n"
    )
}

const OF_CONFIG_MAPS: &str = "paramKind: {apiVersion: v1, kind: ConfigMap}, ";

/// May write admission policies, and nothing else.
fn writer_of_policies() -> String {
    control_plane().user(&json!([
        {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["get", "create", "patch"]}
    ]))
}

#[test]
fn parameters_of_policies_must_be_readable_as_the_server_has_it() {
    let (cp, bed) = (control_plane(), Bed::new());
    bed.write("manifests.yaml", &[policy(&bed, OF_CONFIG_MAPS), policy_binding(&bed, "Deny")].join("---\n"));
    let user = cp.user(&json!([]));
    let roles = grant(cp, &user, &printed(&bed, cp, &user));
    let [role] = &roles[..] else { panic!("one role: {roles:#?}") };
    let deploy = |check: &str| bed.deploy(cp.kubeconfig(&user), &["--preflight", check]).run();

    let params = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]});
    let mut without = role.clone();
    without["rules"].as_array_mut().unwrap().retain(|rule| *rule != params);
    assert_ne!(without, *role, "the parameters are granted for all names: {role:#}");
    replace(cp, &user, &without, &params);
    deploy("PermissionValidation")
        .code(3)
        .stdout_contains("not permitted to \"get\" /v1, Resource=configmaps at the cluster scope");
    deploy("CRDUpgradeSafety").code(1).stdout_contains("must have \"get\" permission on all objects");
    replace(cp, &user, role, &Value::Null);
    deploy("PermissionValidation").code(0);
}

#[test]
fn a_changed_policy_binding_needs_rights_to_its_parameters_again() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&[policy(&bed, OF_CONFIG_MAPS), policy_binding(&bed, "Deny")].join("---\n"));
    bed.write("manifests.yaml", &policy_binding(&bed, "Audit"));
    let user = writer_of_policies();
    let said = "not permitted to \"get\" /v1, Resource=configmaps";
    bed.deploy(cp.kubeconfig(&user), &CHECK).run().code(3).stdout_contains(said);
    // The server refuses it, too.
    let forced = ["--force-conflicts", "--preflight", "CRDUpgradeSafety"];
    let output = bed.deploy(cp.kubeconfig(&user), &forced).run();
    output.code(1).stdout_contains("does not have \"get\" permission on the object referenced by paramRef");
}

#[test]
fn parameters_of_an_unknown_kind_need_the_right_to_read_everything() {
    let cp = control_plane();
    let said = "not permitted to \"get\"";
    // No such policy, a policy without parameters, a kind that is not served.
    let no_policy = |bed: &Bed| policy_binding(bed, "Deny");
    let no_kind = |bed: &Bed| [policy(bed, ""), policy_binding(bed, "Deny")].join("---\n");
    let unserved = |bed: &Bed| policy(bed, "paramKind: {apiVersion: nobody.example.com/v1, kind: Limit}, ");
    let beds = [Bed::new(), Bed::new(), Bed::new()];
    let manifests = [no_policy(&beds[0]), no_kind(&beds[1]), unserved(&beds[2])];
    let server_says = ["unable to get policy", "referenced by paramRef", "paramKind"];
    for ((bed, manifests), server_says) in beds.iter().zip(manifests).zip(server_says) {
        bed.write("manifests.yaml", &manifests);
        let user = writer_of_policies();
        assert!(printed(bed, cp, &user).contains("requires read access to everything"), "no one grants that unawares");
        let output = bed.deploy(cp.kubeconfig(&user), &CHECK).run();
        output.code(3).stdout_contains(said).stdout_contains("does not know the kind of the parameters");
        let output = bed.deploy(cp.kubeconfig(&user), &["--preflight", "CRDUpgradeSafety"]).run();
        output.code(1).stdout_contains(server_says);
        // These permissions are sufficient.
        let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "create", "patch"]}]);
        bed.deploy(cp.kubeconfig(&cp.user(&everything)), &CHECK).run().code(0);
    }
}

#[test]
fn a_binding_to_a_role_outside_of_the_manifests_grants_its_live_rules() {
    let (cp, bed) = (control_plane(), Bed::new());
    let ns = &bed.names.namespace;
    let name =
        format!("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: b, namespace: {ns}");
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(&format!(
        "{name}}}\nroleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}\n"
    ));
    bed.write("manifests.yaml", &format!("{name}, labels: {{a: b}}}}\n"));
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["get", "patch"]}]);
    let user = cp.user(&rules);
    let said = "not permitted to \"bind\" rbac.authorization.k8s.io/v1, Resource=clusterroles \"cluster-admin\"";
    bed.deploy(cp.kubeconfig(&user), &CHECK).run().code(3).stdout_contains(said);
    let output = bed.deploy(cp.kubeconfig(&user), &["--preflight", "CRDUpgradeSafety"]).run();
    output.code(1).stdout_contains("attempting to grant RBAC permissions not currently held");
}

/// The group `system:masters` may do everything without any rule.
#[test]
fn system_masters_need_no_rule_to_grant_rights() {
    let (cp, bed) = (control_plane(), Bed::new());
    let roles = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {}}}\n\
         rules: [{{apiGroups: ['*'], resources: ['*'], verbs: ['*']}}]\n",
        bed.names.namespace
    );
    bed.write("manifests.yaml", &[bed.namespace(), bed.config_map("m", "x"), roles].join("---\n"));
    let proxy = Proxy::start(cp);
    let nothing = json!({"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "spec": {},
        "status": {"incomplete": false, "resourceRules": [], "nonResourceRules": []}});
    proxy.answer(When::new("POST", "selfsubjectrulesreviews"), 201, nothing);
    let check = |user: &str| bed.deploy(proxy.kubeconfig(user), &CHECK).arg("--dry-run").run();
    check("admin").code(0);
    let reviews = proxy.requests().iter().filter(|request| request.path.starts_with(REVIEWS)).count();
    assert_eq!(reviews, 3, "everywhere, in the namespace, and whether everything is allowed");
    check(&cp.user(&json!([]))).code(3);
}
