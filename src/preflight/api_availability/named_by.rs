//! Who names an API that goes away: objects of the same deploy, admission (webhooks and policies), aggregated roles, and
//! the managers of live objects. What the deploy writes counts as it will be, everything else as it is live.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::leaving::Leaving;
use super::{Found, rules};
use crate::cluster::{ListError, ListRequest};
use crate::finding::Severity;
use crate::plan::Change;
use crate::preflight::{Context, CouldNotCheck, Lookup, Violation};
use crate::problem::Problem;
use crate::rbac;
use crate::resource::{Resource, Step};
use crate::text;

/// Objects on one page of a list.
const PAGE: u32 = 250;
/// Managers that a finding names.
const MANAGERS_SHOWN: usize = 10;

const ADMISSION: &str = "admissionregistration.k8s.io";

/// The kinds whose objects speak of other kinds by group and version.
const NAMING: [(&str, &str, &str); 7] = [
    (ADMISSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    (ADMISSION, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    (ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    (ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    (ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    (rbac::GROUP, "ClusterRole", "clusterroles"),
];

/// The versions of those kinds, newest first: an older server has not all of them.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

pub async fn check(context: &Context<'_>) -> Found {
    let changes = &context.plan.changes;
    let leaving = leaving(changes);
    let mut found = Found::default();
    if leaving.is_empty() {
        return found;
    }
    for (index, change) in changes.iter().enumerate() {
        of_deploy(&leaving, index, change, &mut found.violations);
    }
    for resource in naming_kinds(&leaving) {
        live_naming(context, &leaving, resource, &mut found).await;
    }
    for gone in &leaving {
        managers(context, gone, &mut found).await;
    }
    found
}

/// What is listed to find out who names an API that goes.
pub fn lookups(changes: &[Change]) -> Vec<Lookup> {
    let leaving = leaving(changes);
    let Some(Leaving { change, .. }) = leaving.first() else { return Vec::new() };
    let naming = naming_kinds(&leaving).map(|resource| Lookup::list(*change, resource));
    naming.chain(leaving.iter().map(|gone| Lookup::list(gone.change, gone.resource.clone()))).collect()
}

fn leaving(changes: &[Change]) -> Vec<Leaving> {
    let crds = changes.iter().enumerate().filter(|(_, change)| change.desired.object.is_crd());
    crds.filter_map(|(index, change)| Leaving::of(index, change)).collect()
}

/// The kinds that may name what goes.
fn naming_kinds(leaving: &[Leaving]) -> impl Iterator<Item = Resource> {
    // Versions do not matter to roles.
    let is_gone = leaving.iter().any(Leaving::is_gone);
    NAMING.into_iter().filter(move |(group, ..)| *group != rbac::GROUP || is_gone).map(|(group, kind, plural)| {
        Resource {
            group: group.into(),
            version: VERSIONS[0].into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced: false,
        }
    })
}

/// An object of the deploy that is of a kind that goes, or speaks of one.
fn of_deploy(leaving: &[Leaving], index: usize, change: &Change, violations: &mut Vec<Violation>) {
    let object = &change.desired.object;
    for gone in leaving.iter().filter(|gone| gone.resource.kind == change.resource.kind) {
        if let Some(version) = gone.version_of(&object.api_version) {
            let help = advice(gone);
            let message = format!("this deploy stops serving {version} of {}, which the object uses", name(gone));
            let at = vec![Step::from("apiVersion")];
            let violation = Violation::of(&rules::GOES_AWAY, index, Some(version.to_owned()), message, help, at);
            violations.push(Violation { label: Some("no longer served".to_owned()), ..violation });
        }
    }
    if !NAMING.iter().any(|(group, kind, _)| *group == object.group() && *kind == object.kind) {
        return;
    }
    let value = change.desired.raw.value();
    for gone in leaving {
        for Naming { versions, at, .. } in naming(&object.kind, &value, gone) {
            let message =
                format!("this deploy stops serving {} of {}, which this names", versions.join(", "), name(gone));
            let version = versions.first().cloned();
            violations.push(Violation::of(&rules::GOES_AWAY, index, version, message, advice(gone), at));
        }
    }
}

fn name(gone: &Leaving) -> String {
    format!("{}.{}", gone.resource.plural, gone.resource.group)
}

fn advice(gone: &Leaving) -> String {
    match gone.staying.iter().next_back() {
        Some(version) => format!("change it to {}, or keep serving the old version for now", gone.api_version(version)),
        None => "remove it, or keep serving a version".to_owned(),
    }
}

/// Live objects that speak of a kind that goes and are not part of the deploy.
async fn live_naming(context: &Context<'_>, leaving: &[Leaving], mut resource: Resource, found: &mut Found) {
    let changes = &context.plan.changes;
    let planned: BTreeSet<&str> = changes
        .iter()
        .filter(|change| change.desired.object.group() == resource.group && change.resource.kind == resource.kind)
        .map(|change| change.desired.object.name.as_str())
        .collect();
    let kind = resource.kind.clone();
    let look = |named: &mut Vec<(usize, Naming, String)>, json: &str| {
        let Ok(object) = serde_json::from_str::<Value>(json) else { return };
        let object_name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if planned.contains(object_name) {
            return;
        }
        let shown = text::sanitize(object_name).into_owned();
        for (index, gone) in leaving.iter().enumerate() {
            let mut by_hurt: BTreeMap<Hurt, Naming> = BTreeMap::new();
            for naming in naming(&kind, &object, gone) {
                let all = by_hurt.entry(naming.hurt).or_insert(Naming { versions: Vec::new(), ..naming });
                all.versions.extend(naming.versions);
                all.versions.sort();
                all.versions.dedup();
            }
            named.extend(by_hurt.into_values().map(|naming| (index, naming, shown.clone())));
        }
    };
    let mut versions = VERSIONS.into_iter();
    let named = loop {
        // A server that has none of them has no such objects.
        let Some(version) = versions.next() else { return };
        version.clone_into(&mut resource.version);
        match each(context, &resource, look).await {
            Ok(named) => break named,
            Err(ListError::NotServed(_)) => {}
            Err(error) => return found.unchecked.push(unlisted(&error, &resource.plural)),
        }
    };
    for (index, Naming { versions, hurt, .. }, object) in named {
        let gone = &leaving[index];
        let message = hurt.said(&kind, &object, &versions.join(", "), &name(gone));
        let help = format!("change {} {object} first: {}", kind.to_lowercase(), advice(gone));
        let version = versions[0].clone();
        let at = gone.at(&changes[gone.change], &version);
        let violation = Violation::of(&rules::GOES_AWAY, gone.change, Some(version), message, help, at);
        found.violations.push(Violation { label: Some("no longer served".to_owned()), ..violation });
    }
}

/// A place in an object that names versions that go and none that stays.
struct Naming {
    versions: Vec<String>,
    at: Vec<Step>,
    hurt: Hurt,
}

/// What happens to objects that refer to a removed version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hurt {
    /// A webhook or a policy matches nothing any more.
    NotCalled,
    /// A policy finds no parameters: it refuses what it matches.
    Refuses,
    /// The same, with `failurePolicy: Ignore`.
    NotAsked,
    /// The rules of a role are about nothing.
    Empty,
}

impl Hurt {
    fn said(self, kind: &str, object: &str, versions: &str, crd: &str) -> String {
        let who = match kind {
            "ClusterRole" => "the aggregated ClusterRole",
            kind if kind.ends_with("Policy") => "the policy",
            kind if kind.ends_with("PolicyBinding") => "the policy binding",
            _ => "the webhook configuration",
        };
        let what = match self {
            Hurt::NotCalled | Hurt::Empty => format!("names {versions} of {crd} and no version that is still served"),
            Hurt::Refuses | Hurt::NotAsked => {
                format!("reads its parameters at {versions} of {crd}, where the API server will not find them")
            }
        };
        let hurt = match self {
            Hurt::NotCalled if kind.ends_with("WebhookConfiguration") => "the server will no longer call its webhook",
            Hurt::NotCalled => "the server will no longer evaluate it",
            Hurt::Refuses => "it refuses everything that it matches, from the server's next start at the latest",
            Hurt::NotAsked => "everything that it matches passes unchecked, from the server's next start at the latest",
            Hurt::Empty => "its rules will match nothing",
        };
        format!("{who} {object} {what}: {hurt}")
    }
}

fn naming(kind: &str, object: &Value, gone: &Leaving) -> Vec<Naming> {
    match kind {
        "ClusterRole" => roles(object, gone),
        kind if kind.ends_with("Policy") => policies(object, gone),
        kind if kind.ends_with("PolicyBinding") => resource_rules(&object["spec"], "matchResources", gone),
        _ => webhooks(object, gone),
    }
}

fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = (usize, &'v Value)> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten().enumerate()
}

fn texts<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v str> {
    value[key].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn webhooks(object: &Value, gone: &Leaving) -> Vec<Naming> {
    let mut found = Vec::new();
    for (index, webhook) in list(object, "/webhooks") {
        for (number, rule) in list(webhook, "/rules") {
            let at = [Step::from("webhooks"), Step::from(index), Step::from("rules"), Step::from(number)];
            found.extend(rule_naming(rule, webhook, gone, &at));
        }
    }
    found
}

fn policies(object: &Value, gone: &Leaving) -> Vec<Naming> {
    let mut found = Vec::new();
    let param = &object["spec"]["paramKind"];
    if param["kind"] == gone.resource.kind.as_str()
        && let Some(version) = param["apiVersion"].as_str().and_then(|api_version| gone.version_of(api_version))
    {
        let at = ["spec", "paramKind", "apiVersion"].map(Step::from).to_vec();
        let hurt = if object["spec"]["failurePolicy"] == "Ignore" { Hurt::NotAsked } else { Hurt::Refuses };
        found.push(Naming { versions: vec![version.to_owned()], at, hurt });
    }
    found.extend(resource_rules(&object["spec"], "matchConstraints", gone));
    found
}

fn resource_rules(spec: &Value, key: &str, gone: &Leaving) -> Vec<Naming> {
    let rules = list(&spec[key], "/resourceRules").filter_map(|(index, rule)| {
        let at = [Step::from("spec"), Step::from(key), Step::from("resourceRules"), Step::from(index)];
        rule_naming(rule, &spec[key], gone, &at)
    });
    rules.collect()
}

/// A rule that names one version of a kind matches requests at any of them (`matchPolicy: Equivalent`, the default), as
/// long as the CRD has that version: served or not, objects are converted to it. With `Exact` it matches just the versions
/// that it names. One that names none of either matches nothing.
///
/// Source: `getOrCreateServingInfoFor` in `k8s.io/apiextensions-apiserver/pkg/apiserver` registers every version as equivalent.
fn rule_naming(rule: &Value, matching: &Value, gone: &Leaving, at: &[Step]) -> Option<Naming> {
    let Resource { group, plural, .. } = &gone.resource;
    let is_exact = matching["matchPolicy"] == "Exact";
    let matched = if is_exact || gone.is_gone() { &gone.staying } else { &gone.kept };
    let of_group = texts(rule, "apiGroups").any(|name| name == "*" || name == group);
    let of_kind = texts(rule, "resources").any(|name| {
        let resource = name.split_once('/').map_or(name, |(resource, _)| resource);
        resource == "*" || resource == plural
    });
    let stays = texts(rule, "apiVersions").any(|version| version == "*" || matched.contains(version));
    let versions: Vec<String> = gone
        .versions
        .iter()
        .filter(|version| texts(rule, "apiVersions").any(|name| name == *version))
        .cloned()
        .collect();
    let at = at.iter().cloned().chain([Step::from("apiVersions")]).collect();
    (of_group && of_kind && !stays && !versions.is_empty()).then_some(Naming { versions, at, hurt: Hurt::NotCalled })
}

/// Roles that are part of an aggregated one, and the aggregated ones themselves, that name a kind that goes as a whole.
fn roles(object: &Value, gone: &Leaving) -> Vec<Naming> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let is_part = labels.is_some_and(|labels| labels.keys().any(|key| key.starts_with(AGGREGATE_TO)));
    if !gone.is_gone() || !is_part && object.get("aggregationRule").is_none() {
        return Vec::new();
    }
    let Resource { group, plural, .. } = &gone.resource;
    let names = |rule: &Value| {
        let of_kind = |name: &str| name.split_once('/').map_or(name, |(resource, _)| resource) == plural;
        texts(rule, "apiGroups").any(|name| name == group) && texts(rule, "resources").any(of_kind)
    };
    let rules = list(object, "/rules").filter(|(_, rule)| names(rule));
    rules
        .map(|(index, _)| Naming {
            versions: gone.versions.clone(),
            at: vec![Step::from("rules"), Step::from(index), Step::from("resources")],
            hurt: Hurt::Empty,
        })
        .collect()
}

/// The labels by which a role adds to the ones that every cluster has.
/// Source: <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles>
const AGGREGATE_TO: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// Managers that are on record at a version that goes. The record does not say whether they still write.
async fn managers(context: &Context<'_>, gone: &Leaving, found: &mut Found) {
    #[derive(Deserialize)]
    struct Head {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        #[serde(default)]
        managed_fields: Vec<Entry>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct Entry {
        manager: String,
        api_version: String,
    }
    let look = |by_version: &mut BTreeMap<String, BTreeMap<String, usize>>, json: &str| {
        let Ok(head) = serde_json::from_str::<Head>(json) else { return };
        let entries = head.metadata.managed_fields.into_iter();
        // This deploy's own fields do not count: it writes them again, or gives them up.
        let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
        for entry in entries.filter(|entry| entry.manager != context.field_manager) {
            if let Some(version) = gone.version_of(&entry.api_version) {
                seen.insert((version.to_owned(), text::sanitize(&entry.manager).into_owned()));
            }
        }
        for (version, manager) in seen {
            *by_version.entry(version).or_default().entry(manager).or_default() += 1;
        }
    };
    let by_version = match each(context, &gone.resource, look).await {
        Ok(by_version) => by_version,
        Err(error) => return found.unchecked.push(unlisted(&error, &name(gone))),
    };
    for (version, managers) in by_version {
        let shown = managers.iter().take(MANAGERS_SHOWN);
        let mut who: Vec<String> =
            shown.map(|(manager, objects)| format!("{manager} ({})", text::count(*objects, "object"))).collect();
        if managers.len() > MANAGERS_SHOWN {
            who.push(format!("… and {} more", managers.len() - MANAGERS_SHOWN));
        }
        let message = format!("live objects of {} were written at {version} by {}", name(gone), who.join(", "));
        let help = "move them to a version that is still served if they still write; the record alone does not show \
            whether they do";
        let at = gone.at(&context.plan.changes[gone.change], &version);
        let violation = Violation::of(&rules::GOES_AWAY, gone.change, Some(version), message, help.to_owned(), at);
        found.violations.push(Violation {
            severity: Severity::Warning,
            label: Some("no longer served".to_owned()),
            ..violation
        });
    }
}

/// Shows every object of a resource to `look`, page by page, and answers what it has gathered.
async fn each<T: Default>(
    context: &Context<'_>,
    resource: &Resource,
    look: impl Fn(&mut T, &str),
) -> Result<T, ListError> {
    let request = ListRequest::of(resource, PAGE);
    context.target.list(&request).gather(look).await
}

fn unlisted(error: &ListError, what: &str) -> CouldNotCheck {
    let problem = error.problem().cloned().unwrap_or_else(|| Problem::new("the list expired"));
    CouldNotCheck {
        message: format!("who names an API that is removed: {what} cannot be listed: {}", problem.message),
        help: problem.help,
    }
}
