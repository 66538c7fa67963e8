//! ServiceAccounts, roles and their bindings.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{ParsedCsv, ParsedPermissions, RenamedField, RenderOptions, RenderedObject, names, object};
use crate::bundle::CsvStep;

const RBAC: &str = "rbac.authorization.k8s.io";

const ACCOUNT: &[CsvStep] = &[CsvStep::Key("serviceAccountName")];
const OF_ACCOUNT: &[RenamedField] =
    &[RenamedField { rendered: &[CsvStep::Key("metadata"), CsvStep::Key("name")], source: ACCOUNT }];
const OF_BINDING: &[RenamedField] = &[RenamedField { rendered: &[CsvStep::Key("subjects")], source: ACCOUNT }];

fn account(permissions: &ParsedPermissions) -> &str {
    if permissions.account.is_empty() { "default" } else { &permissions.account }
}

/// One for each account of the permissions. Every namespace already has the account `default`.
pub fn service_accounts(csv: &ParsedCsv, options: RenderOptions<'_>) -> Vec<RenderedObject> {
    let mut seen = BTreeSet::from(["default"]);
    let all = csv.permissions.iter().chain(&csv.cluster_permissions);
    all.filter(|permissions| seen.insert(account(permissions)))
        .map(|permissions| RenderedObject {
            value: object(
                "v1",
                "ServiceAccount",
                json!({"name": account(permissions), "namespace": options.install_namespace}),
                &[],
            ),
            steps: permissions.steps.clone(),
            renamed: OF_ACCOUNT,
        })
        .collect()
}

/// A role with its binding for each of the permissions. If the operator watches all namespaces, all are ClusterRoles.
pub fn roles(csv: &ParsedCsv, options: RenderOptions<'_>) -> Vec<RenderedObject> {
    let mut objects = Vec::new();
    if let Some(watched) = options.watch_namespace {
        for permissions in &csv.permissions {
            objects.extend(role(csv, permissions, permissions.rules.clone(), Some(watched), options));
        }
    }
    for permissions in &csv.cluster_permissions {
        objects.extend(role(csv, permissions, permissions.rules.clone(), None, options));
    }
    if options.watch_namespace.is_none() {
        for permissions in &csv.permissions {
            objects.extend(role(csv, permissions, with_namespaces(&permissions.rules), None, options));
        }
    }
    objects
}

/// With the rule that OLM adds to permissions that become a ClusterRole, as classic OLM does.
fn with_namespaces(rules: &Value) -> Value {
    let mut rules = rules.as_array().cloned().unwrap_or_default();
    rules.push(json!({"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["namespaces"]}));
    rules.into()
}

fn role(
    csv: &ParsedCsv,
    permissions: &ParsedPermissions,
    rules: Value,
    namespace: Option<&str>,
    options: RenderOptions<'_>,
) -> [RenderedObject; 2] {
    let name = names::role(&csv.name, &permissions.account, &rules);
    let (kind, metadata) = match namespace {
        Some(namespace) => ("Role", json!({"name": name, "namespace": namespace})),
        None => ("ClusterRole", json!({"name": name})),
    };
    let api_version = format!("{RBAC}/v1");
    let subject =
        json!({"kind": "ServiceAccount", "name": account(permissions), "namespace": options.install_namespace});
    let reference = json!({"apiGroup": RBAC, "kind": kind, "name": name});
    let rendered = |value, renamed| RenderedObject { value, steps: permissions.steps.clone(), renamed };
    let binding = object(
        &api_version,
        &format!("{kind}Binding"),
        metadata.clone(),
        &[("subjects", json!([subject])), ("roleRef", reference)],
    );
    [rendered(object(&api_version, kind, metadata, &[("rules", rules)]), &[]), rendered(binding, OF_BINDING)]
}

/// The names that earlier releases of OLM v1 give to the ClusterRoles of permissions: they do not add the rule about
/// namespaces.
pub fn earlier_role_names(csv: &ParsedCsv) -> Vec<String> {
    csv.permissions.iter().map(|permissions| names::role(&csv.name, &permissions.account, &permissions.rules)).collect()
}
