//! Objects that fit into a quota one by one and not together. The server is asked about each alone, so that what this
//! deploy creates is added up here: against quotas that count objects, which is the part that needs no server.
//!
//! Source: <https://kubernetes.io/docs/concepts/policy/resource-quotas/#object-count-quota>

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Found, rules};
use crate::plan::{Action, Change};
use crate::preflight::{Context, Violation};
use crate::report::Severity;
use crate::resource::{Resource, Step};
use crate::target::{ListError, ListRequest};
use crate::text;

/// Quotas on one page; a namespace has a few.
const PAGE: u32 = 100;

/// Kinds that a quota may also count without `count/`.
const BY_PLURAL: [&str; 7] =
    ["configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets", "services"];

/// What is counted of a ResourceQuota.
#[derive(Deserialize)]
struct Quota {
    metadata: Named,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    scopes: Vec<String>,
    scope_selector: Option<serde_json::Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    hard: BTreeMap<String, String>,
    used: BTreeMap<String, String>,
}

/// The objects that a deploy creates of one resource, as indices into the plan.
type Created<'p> = BTreeMap<(&'p str, &'p str), Vec<usize>>;

/// Looks at the quotas of each namespace in which several objects of one kind are created.
pub async fn check(context: &Context<'_>) -> Found {
    let mut found = Found::default();
    for (namespace, created) in created(&context.plan.changes) {
        let is_changed = context.plan.changes.iter().any(|change| {
            let object = &change.desired.object;
            let is_quota = change.resource.plural == "resourcequotas" && change.resource.group.is_empty();
            is_quota && change.action != Action::Unchanged && object.namespace.as_deref() == Some(namespace)
        });
        match quotas(context, namespace).await {
            Ok(quotas) => {
                for quota in &quotas {
                    found.violations.extend(judge(quota, &created, &context.plan.changes, is_changed));
                }
            }
            Err(ListError::NotServed(_)) => {}
            Err(error) => found.violations.extend(unknown(&error, namespace, &created)),
        }
    }
    found
}

fn created(changes: &[Change]) -> BTreeMap<&str, Created<'_>> {
    let mut namespaces: BTreeMap<&str, Created<'_>> = BTreeMap::new();
    for (index, change) in changes.iter().enumerate().filter(|(_, change)| change.action == Action::Create) {
        if let Some(namespace) = change.desired.object.namespace.as_deref().filter(|_| change.resource.namespaced) {
            let resource = (change.resource.group.as_str(), change.resource.plural.as_str());
            namespaces.entry(namespace).or_default().entry(resource).or_default().push(index);
        }
    }
    // A new namespace has no quota but what comes with it, and a single object is the server's to judge.
    let is_new = |namespace: &str| {
        let is_it = |change: &&Change| change.desired.object.is_namespace() && change.desired.object.name == namespace;
        changes.iter().find(is_it).is_some_and(|change| change.action == Action::Create)
    };
    namespaces.retain(|namespace, created| {
        created.retain(|_, indices| indices.len() > 1);
        !created.is_empty() && !is_new(namespace)
    });
    namespaces
}

async fn quotas(context: &Context<'_>, namespace: &str) -> Result<Vec<Quota>, ListError> {
    let resource = Resource {
        group: String::new(),
        version: "v1".into(),
        kind: "ResourceQuota".into(),
        plural: "resourcequotas".into(),
        namespaced: true,
    };
    let request =
        ListRequest { resource: &resource, namespace: Some(namespace), label_selector: None, page_size: PAGE };
    let mut pages = context.target.list(&request);
    let mut quotas = Vec::new();
    loop {
        match pages.next().await {
            Ok(Some(page)) => quotas.extend(page.items().filter_map(|json| serde_json::from_str(json).ok())),
            Ok(None) => return Ok(quotas),
            Err(ListError::Expired) => quotas.clear(),
            Err(error) => return Err(error),
        }
    }
}

/// The first object of each kind that has no room any more; it is the one that the deploy would stop at.
fn judge(quota: &Quota, created: &Created<'_>, changes: &[Change], is_changed: bool) -> Vec<Violation> {
    // Scopes choose among pods by what the server makes of them.
    if !quota.spec.scopes.is_empty() || quota.spec.scope_selector.is_some() {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for ((group, plural), indices) in created {
        let dot = if group.is_empty() { "" } else { "." };
        let counted = format!("count/{plural}{dot}{group}");
        let plain = group.is_empty() && BY_PLURAL.contains(plural);
        for key in [Some(counted.as_str()), plain.then_some(*plural)].into_iter().flatten() {
            // Written as a number of objects; a quota in thousands (`2k`) is not added up.
            let number = |of: &BTreeMap<String, String>| of.get(key).and_then(|text| text.parse::<u64>().ok());
            let (Some(hard), Some(used)) = (number(&quota.status.hard), number(&quota.status.used)) else { continue };
            let room = hard.saturating_sub(used);
            let count = indices.len() as u64;
            // Where there is no room at all the server says so of each.
            let Some(first) = usize::try_from(room).ok().filter(|room| *room > 0 && count > *room as u64) else {
                continue;
            };
            let index = indices[first];
            let message = format!(
                "the quota {:?} has room for {room} more of {key}, and this deploy creates {}",
                text::sanitize(&quota.metadata.name),
                text::count(indices.len(), "object")
            );
            let at = vec![Step::from("metadata"), Step::from("name")];
            let help = "create fewer, free some, or have the quota raised";
            let mut violation = Violation::of(&rules::QUOTA, index, None, message, help.to_owned(), at);
            if is_changed {
                violation.severity = Severity::Warning;
                violation.help =
                    format!("this deploy changes the quota of namespace {:?} first", namespace(changes, index));
            }
            violations.push(violation);
        }
    }
    violations
}

fn namespace(changes: &[Change], index: usize) -> &str {
    changes[index].desired.object.namespace.as_deref().unwrap_or_default()
}

/// Whoever deploys need not be allowed to read quotas: a note, and no failure.
fn unknown(error: &ListError, namespace: &str, created: &Created<'_>) -> Option<Violation> {
    let index = *created.values().flatten().min()?;
    let reason = error.problem().map_or_else(|| "the list expired".to_owned(), |problem| problem.message.clone());
    let message = format!(
        "whether all that this deploy creates in namespace {namespace:?} fits into its quotas together is not known: {reason}"
    );
    let help = "the right to list resourcequotas there would tell";
    let at = vec![Step::from("metadata"), Step::from("name")];
    Some(Violation::of(&rules::UNASKED, index, None, message, help.to_owned(), at))
}
