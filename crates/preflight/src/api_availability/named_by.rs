//! Finds what still names a removed API: objects of the same deploy, admission webhooks and policies, aggregated roles,
//! and field managers of live objects. Objects of the deploy count as the deploy writes them, all others as they are
//! live.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::leaving::RemovedApi;
use super::{ViolationsFound, rules};
use crate::{CheckLookup, Context, CouldNotCheck, Violation};
use gantry_cluster::{ListError, ListRequest};
use gantry_core::finding::Severity;
use gantry_core::problem::Problem;
use gantry_core::rbac;
use gantry_core::resource::{Resource, Step};
use gantry_core::text;
use gantry_deploy::plan::Change;

/// The page size of a list.
const PAGE: u32 = 250;
/// The maximum number of managers that a finding names.
const MANAGERS_SHOWN: usize = 10;

const ADMISSION: &str = "admissionregistration.k8s.io";

/// The kinds whose objects refer to other kinds by group and version.
const REFERRING_KINDS: [(&str, &str, &str); 7] = [
    (ADMISSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    (ADMISSION, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    (ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    (ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    (ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    (ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    (rbac::GROUP, "ClusterRole", "clusterroles"),
];

/// The versions of those kinds, newest first: an older server does not serve all of them.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

pub async fn check(context: &Context<'_>) -> ViolationsFound {
    let changes = &context.plan.changes;
    let removed = removed(changes);
    let mut found = ViolationsFound::default();
    if removed.is_empty() {
        return found;
    }
    for (index, change) in changes.iter().enumerate() {
        of_deploy(&removed, index, change, &mut found.violations);
    }
    for resource in referring_kinds(&removed) {
        live_references(context, &removed, resource, &mut found).await;
    }
    for api in &removed {
        report_managers(context, api, &mut found).await;
    }
    found
}

/// The lists that the search for references needs.
pub fn lookups(changes: &[Change]) -> Vec<CheckLookup> {
    let removed = removed(changes);
    let Some(RemovedApi { change, .. }) = removed.first() else { return Vec::new() };
    let lists = referring_kinds(&removed).map(|resource| CheckLookup::list(*change, resource));
    lists.chain(removed.iter().map(|api| CheckLookup::list(api.change, api.resource.clone()))).collect()
}

fn removed(changes: &[Change]) -> Vec<RemovedApi> {
    let crds = changes.iter().enumerate().filter(|(_, change)| change.desired.object.is_crd());
    crds.filter_map(|(index, change)| RemovedApi::of_change(index, change)).collect()
}

/// The kinds that may refer to a removed API.
fn referring_kinds(removed: &[RemovedApi]) -> impl Iterator<Item = Resource> {
    // Roles do not name versions, so they matter only if the whole kind is removed.
    let is_gone = removed.iter().any(RemovedApi::is_gone);
    REFERRING_KINDS.into_iter().filter(move |(group, ..)| *group != rbac::GROUP || is_gone).map(
        |(group, kind, plural)| Resource {
            group: group.into(),
            version: VERSIONS[0].into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced: false,
        },
    )
}

/// Checks an object of the deploy: whether it is at a removed version, or refers to one.
fn of_deploy(removed: &[RemovedApi], index: usize, change: &Change, violations: &mut Vec<Violation>) {
    let object = &change.desired.object;
    for api in removed.iter().filter(|api| api.resource.kind == change.resource.kind) {
        if let Some(version) = api.removed_version(&object.api_version) {
            let help = advice(api);
            let message = format!("this deploy stops serving {version} of {}, which the object uses", name(api));
            let at = vec![Step::from("apiVersion")];
            let violation = Violation::new(&rules::GOES_AWAY, index, Some(version.to_owned()), message, help, at);
            violations.push(violation.label("no longer served".to_owned()));
        }
    }
    if !REFERRING_KINDS.iter().any(|(group, kind, _)| *group == object.group() && *kind == object.kind) {
        return;
    }
    let value = change.desired.raw.value();
    for api in removed {
        for Reference { versions, at, .. } in references(&object.kind, &value, api) {
            let message =
                format!("this deploy stops serving {} of {}, which this names", versions.join(", "), name(api));
            let version = versions.first().cloned();
            violations.push(Violation::new(&rules::GOES_AWAY, index, version, message, advice(api), at));
        }
    }
}

fn name(api: &RemovedApi) -> String {
    format!("{}.{}", api.resource.plural, api.resource.group)
}

fn advice(api: &RemovedApi) -> String {
    match api.still_served.iter().next_back() {
        Some(version) => format!("change it to {}, or keep serving the old version for now", api.api_version(version)),
        None => "remove it, or keep serving a version".to_owned(),
    }
}

/// Checks live objects that are not part of the deploy: whether they refer to a removed version.
async fn live_references(
    context: &Context<'_>,
    removed: &[RemovedApi],
    mut resource: Resource,
    found: &mut ViolationsFound,
) {
    let changes = &context.plan.changes;
    let planned: BTreeSet<&str> = changes
        .iter()
        .filter(|change| change.desired.object.group() == resource.group && change.resource.kind == resource.kind)
        .map(|change| change.desired.object.name.as_str())
        .collect();
    let kind = resource.kind.clone();
    let look = |named: &mut Vec<(usize, Reference, String)>, json: &str| {
        let Ok(object) = serde_json::from_str::<Value>(json) else { return };
        let object_name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if planned.contains(object_name) {
            return;
        }
        let shown = text::sanitize(object_name).into_owned();
        for (index, api) in removed.iter().enumerate() {
            let mut by_impact: BTreeMap<ReferrerImpact, Reference> = BTreeMap::new();
            for reference in references(&kind, &object, api) {
                let all = by_impact.entry(reference.impact).or_insert(Reference { versions: Vec::new(), ..reference });
                all.versions.extend(reference.versions);
                all.versions.sort();
                all.versions.dedup();
            }
            named.extend(by_impact.into_values().map(|reference| (index, reference, shown.clone())));
        }
    };
    let mut versions = VERSIONS.into_iter();
    let named = loop {
        // A server that serves none of these versions has no such objects.
        let Some(version) = versions.next() else { return };
        version.clone_into(&mut resource.version);
        match visit_objects(context, &resource, look).await {
            Ok(named) => break named,
            Err(ListError::NotServed(_)) => {}
            Err(error) => return found.unchecked.push(unlisted(&error, &resource.plural)),
        }
    };
    for (index, Reference { versions, impact, .. }, object) in named {
        let api = &removed[index];
        let message = impact.message(&kind, &object, &versions.join(", "), &name(api));
        let help = format!("change {} {object} first: {}", kind.to_lowercase(), advice(api));
        let version = versions[0].clone();
        let at = api.steps_to_version(&changes[api.change], &version);
        let violation = Violation::new(&rules::GOES_AWAY, api.change, Some(version), message, help, at);
        found.violations.push(violation.label("no longer served".to_owned()));
    }
}

/// A place in an object that names removed versions and no version that still matches.
struct Reference {
    versions: Vec<String>,
    at: Vec<Step>,
    impact: ReferrerImpact,
}

/// What happens to objects that refer to a removed version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReferrerImpact {
    /// A webhook or policy no longer matches anything.
    NotCalled,
    /// A policy finds no parameters and refuses everything that it matches.
    Refuses,
    /// A policy finds no parameters and, with `failurePolicy: Ignore`, allows everything.
    NotEvaluated,
    /// The rules of a role match nothing.
    Empty,
}

impl ReferrerImpact {
    fn message(self, kind: &str, object: &str, versions: &str, crd: &str) -> String {
        let who = match kind {
            "ClusterRole" => "the aggregated ClusterRole",
            kind if kind.ends_with("Policy") => "the policy",
            kind if kind.ends_with("PolicyBinding") => "the policy binding",
            _ => "the webhook configuration",
        };
        let what = match self {
            ReferrerImpact::NotCalled | ReferrerImpact::Empty => {
                format!("names {versions} of {crd} and no version that is still served")
            }
            ReferrerImpact::Refuses | ReferrerImpact::NotEvaluated => {
                format!("reads its parameters at {versions} of {crd}, where the API server will not find them")
            }
        };
        let impact = match self {
            ReferrerImpact::NotCalled if kind.ends_with("WebhookConfiguration") => {
                "the server will no longer call its webhook"
            }
            ReferrerImpact::NotCalled => "the server will no longer evaluate it",
            ReferrerImpact::Refuses => {
                "it refuses everything that it matches, at the latest after the server's next restart"
            }
            ReferrerImpact::NotEvaluated => {
                "everything that it matches passes unchecked, at the latest after the server's next restart"
            }
            ReferrerImpact::Empty => "its rules will match nothing",
        };
        format!("{who} {object} {what}: {impact}")
    }
}

fn references(kind: &str, object: &Value, api: &RemovedApi) -> Vec<Reference> {
    match kind {
        "ClusterRole" => roles(object, api),
        kind if kind.ends_with("Policy") => policies(object, api),
        kind if kind.ends_with("PolicyBinding") => resource_rules(&object["spec"], "matchResources", api),
        _ => webhooks(object, api),
    }
}

fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = (usize, &'v Value)> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten().enumerate()
}

fn texts<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v str> {
    value[key].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn webhooks(object: &Value, api: &RemovedApi) -> Vec<Reference> {
    let mut found = Vec::new();
    for (index, webhook) in list(object, "/webhooks") {
        for (number, rule) in list(webhook, "/rules") {
            let at = [Step::from("webhooks"), Step::from(index), Step::from("rules"), Step::from(number)];
            found.extend(rule_reference(rule, webhook, api, &at));
        }
    }
    found
}

fn policies(object: &Value, api: &RemovedApi) -> Vec<Reference> {
    let mut found = Vec::new();
    let param = &object["spec"]["paramKind"];
    if param["kind"] == api.resource.kind.as_str()
        && let Some(version) = param["apiVersion"].as_str().and_then(|api_version| api.removed_version(api_version))
    {
        let at = ["spec", "paramKind", "apiVersion"].map(Step::from).to_vec();
        let impact = if object["spec"]["failurePolicy"] == "Ignore" {
            ReferrerImpact::NotEvaluated
        } else {
            ReferrerImpact::Refuses
        };
        found.push(Reference { versions: vec![version.to_owned()], at, impact });
    }
    found.extend(resource_rules(&object["spec"], "matchConstraints", api));
    found
}

fn resource_rules(spec: &Value, key: &str, api: &RemovedApi) -> Vec<Reference> {
    let rules = list(&spec[key], "/resourceRules").filter_map(|(index, rule)| {
        let at = [Step::from("spec"), Step::from(key), Step::from("resourceRules"), Step::from(index)];
        rule_reference(rule, &spec[key], api, &at)
    });
    rules.collect()
}

/// The removed versions that a rule names, if it no longer matches any request. With `matchPolicy: Equivalent` (the
/// default), a rule that names one version of a kind matches requests at all of them, as long as the CRD has the named
/// version, served or not. With `Exact`, it matches only the versions that it names.
///
/// Source: `getOrCreateServingInfoFor` in `k8s.io/apiextensions-apiserver/pkg/apiserver` registers every version as
/// equivalent.
fn rule_reference(rule: &Value, matching: &Value, api: &RemovedApi, at: &[Step]) -> Option<Reference> {
    let Resource { group, plural, .. } = &api.resource;
    let is_exact = matching["matchPolicy"] == "Exact";
    let matched = if is_exact || api.is_gone() { &api.still_served } else { &api.kept };
    let of_group = texts(rule, "apiGroups").any(|name| name == "*" || name == group);
    let of_kind = texts(rule, "resources").any(|name| {
        let resource = name.split_once('/').map_or(name, |(resource, _)| resource);
        resource == "*" || resource == plural
    });
    let stays = texts(rule, "apiVersions").any(|version| version == "*" || matched.contains(version));
    let versions: Vec<String> = api
        .versions
        .iter()
        .filter(|version| texts(rule, "apiVersions").any(|name| name == *version))
        .cloned()
        .collect();
    let at = at.iter().cloned().chain([Step::from("apiVersions")]).collect();
    (of_group && of_kind && !stays && !versions.is_empty()).then_some(Reference {
        versions,
        at,
        impact: ReferrerImpact::NotCalled,
    })
}

/// The rules of an aggregated role, or of a role that is aggregated into one, that name a removed kind.
fn roles(object: &Value, api: &RemovedApi) -> Vec<Reference> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let is_part = labels.is_some_and(|labels| labels.keys().any(|key| key.starts_with(AGGREGATE_TO)));
    if !api.is_gone() || !is_part && object.get("aggregationRule").is_none() {
        return Vec::new();
    }
    let Resource { group, plural, .. } = &api.resource;
    let names = |rule: &Value| {
        let of_kind = |name: &str| name.split_once('/').map_or(name, |(resource, _)| resource) == plural;
        texts(rule, "apiGroups").any(|name| name == group) && texts(rule, "resources").any(of_kind)
    };
    let rules = list(object, "/rules").filter(|(_, rule)| names(rule));
    rules
        .map(|(index, _)| Reference {
            versions: api.versions.clone(),
            at: vec![Step::from("rules"), Step::from(index), Step::from("resources")],
            impact: ReferrerImpact::Empty,
        })
        .collect()
}

/// The prefix of the labels that aggregate a role into one of the default roles of a cluster.
/// Source: <https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles>
const AGGREGATE_TO: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// Field managers that are recorded at a removed version. The record does not show whether they still write.
async fn report_managers(context: &Context<'_>, api: &RemovedApi, found: &mut ViolationsFound) {
    #[derive(Deserialize)]
    struct RemovedApiHead {
        metadata: RemovedApiMetadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct RemovedApiMetadata {
        #[serde(default)]
        managed_fields: Vec<RemovedApiFieldsEntry>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct RemovedApiFieldsEntry {
        manager: String,
        api_version: String,
    }
    let look = |by_version: &mut BTreeMap<String, BTreeMap<String, usize>>, json: &str| {
        let Ok(head) = serde_json::from_str::<RemovedApiHead>(json) else { return };
        let entries = head.metadata.managed_fields.into_iter();
        // The fields of this deploy do not count: it writes them again, or gives up their ownership.
        let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
        for entry in entries.filter(|entry| entry.manager != context.plan.policy.field_manager) {
            if let Some(version) = api.removed_version(&entry.api_version) {
                seen.insert((version.to_owned(), text::sanitize(&entry.manager).into_owned()));
            }
        }
        for (version, manager) in seen {
            *by_version.entry(version).or_default().entry(manager).or_default() += 1;
        }
    };
    let by_version = match visit_objects(context, &api.resource, look).await {
        Ok(by_version) => by_version,
        Err(error) => return found.unchecked.push(unlisted(&error, &name(api))),
    };
    for (version, managers) in by_version {
        let shown = managers.iter().take(MANAGERS_SHOWN);
        let mut who: Vec<String> =
            shown.map(|(manager, objects)| format!("{manager} ({})", text::count(*objects, "object"))).collect();
        if managers.len() > MANAGERS_SHOWN {
            who.push(format!("… and {} more", managers.len() - MANAGERS_SHOWN));
        }
        let message = format!("live objects of {} were written at {version} by {}", name(api), who.join(", "));
        let help = "move them to a version that is still served if they still write; the record alone does not show \
            whether they do";
        let at = api.steps_to_version(&context.plan.changes[api.change], &version);
        let violation = Violation::new(&rules::GOES_AWAY, api.change, Some(version), message, help.to_owned(), at);
        found.violations.push(violation.severity(Severity::Warning).label("no longer served".to_owned()));
    }
}

/// Calls `look` for each object of a resource, page by page, and returns what it has collected.
async fn visit_objects<T: Default>(
    context: &Context<'_>,
    resource: &Resource,
    look: impl Fn(&mut T, &str),
) -> Result<T, ListError> {
    let request = ListRequest::new(resource, PAGE);
    context.target.list(&request).gather(look).await
}

fn unlisted(error: &ListError, what: &str) -> CouldNotCheck {
    let problem = error.problem().cloned().unwrap_or_else(|| Problem::new("the list expired"));
    CouldNotCheck {
        message: format!("whether anything uses a removed API: {what} cannot be listed: {}", problem.message),
        help: problem.help,
    }
}
