//! Tests the examples of the rules, and the needs of plans for a folder, with invented rights.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::missing;
use super::*;
use crate::Violation;
use gantry_cluster::dir::DirTarget;
use gantry_cluster::service::ServiceUrl;
use gantry_core::manifest;
use gantry_core::rbac::PolicyRule;
use gantry_deploy::plan::{self, Plan, PlanOptions};

/// Calls `check` with the plan of these manifests for a folder that contains `cluster`.
fn plan(cluster: &str, manifests: &str, check: impl FnOnce(&Plan, &Target)) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("cluster")).unwrap();
    std::fs::write(folder.path().join("cluster/live.yaml"), cluster).unwrap();
    std::fs::write(folder.path().join("manifests.yaml"), manifests).unwrap();
    let input = folder.path().join("manifests.yaml").to_string_lossy().into_owned();
    let manifests = manifest::load(&[input], &mut None::<std::io::Empty>).expect("manifests").manifests;
    let target = Target::Dir(DirTarget::open(&folder.path().join("cluster")).unwrap());
    let (policy, taken) = Default::default();
    let options = PlanOptions { goes_on_unread: true, ..PlanOptions::new(&policy, &taken) };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let built = runtime.block_on(plan::build(manifests, plan::Prefetch::none(), &target, options, &|_, _| ()));
    check(&built.expect("a plan"), &target);
}

/// The violations for an identity that holds these rules in every namespace.
fn found(cluster: &str, manifests: &str, granted: &str) -> Vec<Violation> {
    let rules: Vec<PolicyRule> = serde_yaml::from_str(granted).expect("rules");
    let mut violations = Vec::new();
    plan(cluster, manifests, |plan, target| {
        let needs = needs::list_needs(plan, &[], RightsOccasion::Now);
        let held = ReviewedRights::of_rules(rules);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let roles = runtime.block_on(roles::look_up(plan, target, missing::undecided_roles(&needs, &held)));
        violations = missing::required(plan, &needs, &held, &roles.expect("roles"));
    });
    violations
}

/// The same, with the violations of a deploy that waits.
fn found_waiting(manifests: &str, granted: &str) -> Vec<Violation> {
    let rules: Vec<PolicyRule> = serde_yaml::from_str(granted).expect("rules");
    let mut violations = found("", manifests, granted);
    plan("", manifests, |plan, _| {
        violations.extend(missing::waiting(
            plan,
            &needs::of_waiting(plan, RightsOccasion::Now),
            &ReviewedRights::of_rules(rules),
        ));
    });
    violations
}

/// The same, with the violations of a deploy that shows logs.
fn found_logging(manifests: &str, granted: &str) -> Vec<Violation> {
    let rules: Vec<PolicyRule> = serde_yaml::from_str(granted).expect("rules");
    let mut violations = found("", manifests, granted);
    plan("", manifests, |plan, _| {
        violations.extend(missing::logs(
            plan,
            &needs::of_logs(plan, RightsOccasion::Now),
            &ReviewedRights::of_rules(rules),
        ));
    });
    violations
}

fn messages(violations: &[Violation]) -> Vec<&str> {
    violations.iter().map(|violation| violation.body.message.as_str()).collect()
}

/// The rules at the end of a finding's help.
fn offered(violation: &Violation) -> Vec<Value> {
    let (_, yaml) = violation.body.help.split_once('\n').expect("the help ends with manifests");
    let documents = serde_yaml::Deserializer::from_str(yaml);
    let documents = documents.map(|document| <Value as serde::Deserialize>::deserialize(document).expect("YAML"));
    documents.flat_map(|document| document["rules"].as_array().cloned().unwrap_or_default()).collect()
}

const VIEW: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: view, uid: u, resourceVersion: '1'}
rules:
- {apiGroups: [''], resources: [pods, pods/log], verbs: [get]}
";

#[test]
fn every_example_shows_its_rule_and_what_to_grant() {
    for doc in rules::docs() {
        let example = doc.example();
        let (granted, object) = (example.part("Granted"), example.part("Object"));
        let found = |granted: &str| match doc.name {
            "WatchNotPermitted" => found_waiting(object, granted),
            "LogNotPermitted" => found_logging(object, granted),
            _ => found(VIEW, object, granted),
        };
        let missing = found(granted);
        let names: Vec<&str> = missing.iter().map(|violation| &*violation.rule).collect();
        assert_eq!(names, [doc.name], "{missing:?}");
        let mut rules: Vec<Value> = serde_yaml::from_str(granted).unwrap();
        rules.extend(offered(&missing[0]));
        assert_eq!(found(&serde_json::to_string(&rules).unwrap()), [], "{}", doc.name);
    }
}

#[test]
fn the_right_to_watch_is_needed_for_objects_that_take_time_to_become_ready() {
    let workload =
        |name: &str| format!("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: a}}\n");
    let service = |name: &str, kind: &str| {
        format!(
            "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: a}}\nspec: {{type: {kind}}}\n"
        )
    };
    let map = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: a}\n";
    let all = "[{apiGroups: ['*'], resources: ['*'], verbs: [get, create, patch]}]";
    let manifests =
        format!("{}{map}{}{}", workload("web"), service("inside", "ClusterIP"), service("outside", "LoadBalancer"));
    let missing = found_waiting(&manifests, all);
    assert_eq!(
        messages(&missing),
        [
            r#"not permitted to "list" /v1, Resource=services (nor to "watch") in namespace "a""#,
            r#"not permitted to "list" apps/v1, Resource=deployments (nor to "watch") in namespace "a""#,
        ]
    );
    let rule = |names: Value| json!({"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": names, "verbs": ["list", "watch"]});
    assert_eq!(offered(&missing[1]), [rule(json!(["web"]))]);
    let missing = found_waiting(&format!("{}{}", workload("web"), workload("worker")), all);
    let mut all_of_them = rule(Value::Null);
    all_of_them.as_object_mut().unwrap().remove("resourceNames");
    assert_eq!(offered(&missing[0]), [all_of_them]);
}

#[test]
fn missing_rights_have_the_messages_of_kapp_and_are_reported_once() {
    let maps: String = (0..3)
        .map(|n| format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{n}, namespace: a}}\n"))
        .collect();
    let missing = found("", &maps, "[]");
    assert_eq!(
        messages(&missing),
        [r#"not permitted to "create" /v1, Resource=configmaps (nor to "patch") in namespace "a": 3 objects"#]
    );
    assert_eq!(
        offered(&missing[0]),
        [json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["m0", "m1", "m2"],
            "verbs": ["create", "patch"]})]
    );
    assert!(
        missing[0].body.help.contains("kind: Role\nmetadata: {name: gantry-configmaps-201bb1fb, namespace: a}"),
        "{}",
        missing[0].body.help
    );
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: prod}\n";
    let missing = found("", deployment, "[{apiGroups: [apps], resources: ['*'], verbs: [patch]}]");
    assert_eq!(messages(&missing), [r#"not permitted to "create" apps/v1, Resource=deployments in namespace "prod""#]);
}

#[test]
fn a_subresource_of_one_object_is_granted_by_its_name() {
    let url = "https://catalogd-service.olmv1-system.svc/catalogs/a/api/v1/all";
    let service = ServiceUrl::parse(url).unwrap();
    let lookup = CheckLookup::get_content(0, &service);
    let granted = |rules: Value| {
        let mut violations = Vec::new();
        plan("", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: a}\n", |plan, _| {
            let needs = needs::list_needs(plan, std::slice::from_ref(&lookup), RightsOccasion::Now);
            let request = needs.last().expect("what the lookup needs").clone();
            let held = ReviewedRights::of_rules(serde_json::from_value(rules).unwrap());
            violations = missing::required(plan, &[request], &held, &BTreeMap::new());
        });
        violations
    };
    let rule = |resource: &str, names: Value| json!([{"apiGroups": [""], "resources": [resource], "resourceNames": names, "verbs": ["get"]}]);
    let right = rule("services/proxy", json!(["https:catalogd-service:443"]));
    assert_eq!(granted(right.clone()), []);
    assert_eq!(granted(rule("*/proxy", json!([]))), []);
    for other in [
        json!([]),
        rule("services", json!([])),
        rule("services/proxy", json!(["catalogd-service"])),
        rule("services/proxy", json!(["https:catalogd-service:8443"])),
    ] {
        let missing = granted(other);
        assert_eq!(
            messages(&missing),
            [r#"not permitted to "get" /v1, Resource=services/proxy in namespace "olmv1-system""#]
        );
        assert_eq!(json!(offered(&missing[0])), right);
        let role = "kind: Role\nmetadata: {name: gantry-services-proxy-";
        assert!(missing[0].body.help.contains(role), "{}", missing[0].body.help);
    }
}

#[test]
fn rights_in_a_new_namespace_need_a_cluster_role() {
    let missing = found("", "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n", "[]");
    assert_eq!(messages(&missing), [r#"not permitted to "create" /v1, Resource=namespaces (nor to "patch")"#]);
    assert!(missing[0].body.help.contains("kind: ClusterRole\n"), "{}", missing[0].body.help);
}

const RBAC_WRITER: &str = "[{apiGroups: [rbac.authorization.k8s.io], resources: ['*'], verbs: [get, create, patch]}]";

#[test]
fn a_binding_grants_the_rules_that_the_manifests_give_its_role() {
    let manifests = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: part, labels: {into: whole}}
rules: [{apiGroups: [g.io], resources: [samples], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: whole}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {into: whole}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: ns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: whole}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: c}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gone}
";
    assert_eq!(
        messages(&found("", manifests, RBAC_WRITER)),
        [
            r#"not permitted to "escalate" rbac.authorization.k8s.io/v1, Resource=clusterroles, and does not hold all of its rules: "get" samples.g.io"#,
            r#"not permitted to "escalate" rbac.authorization.k8s.io/v1, Resource=clusterroles: writing a role that aggregates others requires that verb, or every right"#,
            r#"not permitted to "bind" rbac.authorization.k8s.io/v1, Resource=clusterroles "gone", and there is no clusterrole.rbac.authorization.k8s.io/gone whose rules it could hold"#,
        ]
    );
    let holding = "[{apiGroups: [rbac.authorization.k8s.io], resources: ['*'], verbs: [get, create, patch]},
        {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [whole], verbs: [escalate]},
        {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [gone], verbs: [bind]},
        {apiGroups: [g.io], resources: [samples], verbs: ['*']}]";
    assert_eq!(found("", manifests, holding), []);
    assert_eq!(
        found(
            "",
            manifests,
            "[{apiGroups: ['*'], resources: ['*'], verbs: ['*']}, {nonResourceURLs: ['*'], verbs: ['*']}]"
        )
        .iter()
        .map(|v| v.body.message.as_str())
        .collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
}

#[test]
fn the_printed_permissions_are_exactly_those_needed() {
    let manifests = "\
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: Namespace
metadata: {name: empty}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: m, namespace: team}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r, namespace: team}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: r, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: v, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
";
    plan(VIEW, manifests, |plan, _| {
        let needs = needs::list_needs(plan, &[], RightsOccasion::Always);
        let text = Grants::for_all(plan, &needs).yaml("deploy", &[RbacSubject::User("jane".into())]);
        let expected = r#"apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: deploy}
rules:
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [empty]
  verbs: [get, create, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: deploy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: deploy}
subjects:
- {kind: User, apiGroup: rbac.authorization.k8s.io, name: jane}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: deploy, namespace: team}
rules:
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list]
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [m]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [team]
  verbs: [get, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: [view]
  verbs: [bind]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  resourceNames: [r, v]
  verbs: [get, create, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles]
  resourceNames: [r]
  verbs: [get, create, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: deploy, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: deploy}
subjects:
- {kind: User, apiGroup: rbac.authorization.k8s.io, name: jane}
"#;
        assert_eq!(text, expected);
    });
}

#[test]
fn binding_an_unreadable_role_needs_the_right_to_bind() {
    let binding = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: v, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
";
    plan("", binding, |plan, _| {
        let needs = needs::list_needs(plan, &[], RightsOccasion::Now);
        let held = ReviewedRights::of_rules(serde_yaml::from_str(RBAC_WRITER).unwrap());
        let undecided = missing::undecided_roles(&needs, &held);
        let roles: BTreeMap<_, _> =
            undecided.into_iter().map(|role| (role, Err(Problem::new("may not get it")))).collect();
        let [violation] = &missing::required(plan, &needs, &held, &roles)[..] else { panic!("one finding") };
        assert!(
            violation.body.message.ends_with("it is unknown whether it holds all of its rules: may not get it"),
            "{}",
            violation.body.message
        );
        assert!(violation.body.help.contains("resourceNames: [view]\n  verbs: [bind]"), "{}", violation.body.help);
    });
}
