//! RBAC for tests: grants what `gantry permissions` prints and what findings suggest, and waits until it is in force.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Bed, ControlPlane, eventually};

/// The path for reviews of the user's own permissions, without `rulesreviews` or `accessreviews`.
pub const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubject";

pub fn binding(bed: &Bed, kind: &str, name: &str, role_kind: &str, role: &str) -> String {
    let namespace = match kind {
        "RoleBinding" => format!(", namespace: {}", bed.names.namespace),
        _ => String::new(),
    };
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: {name}{namespace}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {role_kind}, name: {role}}}\n\
         subjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: nobody-{}}}]\n",
        bed.names.namespace
    )
}

/// The output of `gantry permissions` for a user, run as the admin.
pub fn printed(bed: &Bed, cp: &ControlPlane, user: &str) -> String {
    printed_with(bed, cp, user, &[])
}

/// The same with additional flags.
pub fn printed_with(bed: &Bed, cp: &ControlPlane, user: &str, flags: &[&str]) -> String {
    let arguments = ["permissions", "-f", "manifests.yaml", "--name", &bed.names.namespace, "--as", user];
    let run = bed.gantry(cp.kubeconfig("admin"), &arguments).args(flags).run();
    run.code(0);
    run.stdout.clone()
}

/// Waits until the authorizer knows exactly these rules of a Role or ClusterRole for a user.
pub fn in_force(cp: &ControlPlane, user: &str, namespace: &str, holds: impl Fn(&[Value]) -> bool) {
    let api = cp.api_as(user);
    eventually(&format!("the rights of {user} are in force"), || {
        let review = json!({"spec": {"namespace": namespace}});
        let (_, answer) = api.post(&format!("{REVIEWS}rulesreviews"), &review);
        let rules = [&answer["status"]["resourceRules"], &answer["status"]["nonResourceRules"]];
        let rules: Vec<Value> = rules.iter().filter_map(|rules| rules.as_array()).flatten().cloned().collect();
        holds(&rules).then_some(())
    });
}

/// Grants the printed rules and waits until they are in force. Returns the roles as they were created.
pub fn grant(cp: &ControlPlane, user: &str, printed: &str) -> Vec<Value> {
    let objects = cp.apply_yaml(printed);
    let roles: Vec<Value> = objects.into_iter().filter(|object| object["rules"].is_array()).collect();
    for role in &roles {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or("default");
        in_force(cp, user, namespace, |found| {
            role["rules"].as_array().unwrap().iter().all(|rule| found.contains(rule))
        });
    }
    roles
}

/// The subjects of a rule: resource and name, or URL.
pub fn subjects_of(rule: &Value) -> BTreeSet<String> {
    let texts = |key: &str| -> Vec<String> {
        let list = rule[key].as_array().into_iter().flatten();
        list.map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
    };
    let names = if rule["resourceNames"].is_array() { texts("resourceNames") } else { vec!["*".to_owned()] };
    let resources = texts("resources")
        .into_iter()
        .flat_map(|resource| names.iter().map(move |name| format!("{resource} {name}")).collect::<Vec<_>>());
    resources.chain(texts("nonResourceURLs")).collect()
}

/// The rules that the findings of a report suggest.
pub fn offered(report: &Value) -> Vec<Value> {
    let findings = report["checks"][0]["findings"].as_array().unwrap();
    let helps = findings.iter().map(|finding| finding["help"].as_str().unwrap().split_once('\n').unwrap().1);
    let documents = helps.flat_map(|yaml| {
        serde_yaml::Deserializer::from_str(yaml)
            .map(|document| Value::deserialize(document).unwrap())
            .collect::<Vec<_>>()
    });
    documents.flat_map(|document| document["rules"].as_array().cloned().unwrap_or_default()).collect()
}

/// Replaces a role, and waits until its rules are in force and the removed rule is not.
pub fn replace(cp: &ControlPlane, user: &str, role: &Value, gone: &Value) {
    let path = cp.path_of(role);
    let mut role = role.clone();
    role["metadata"]["resourceVersion"] = cp.get(&path).1["metadata"]["resourceVersion"].clone();
    assert_eq!(cp.put(&path, &role).0, 200);
    let namespace = role["metadata"]["namespace"].as_str().unwrap_or("default");
    let rules = role["rules"].as_array().unwrap();
    in_force(cp, user, namespace, |found| !found.contains(gone) && rules.iter().all(|rule| found.contains(rule)));
}
