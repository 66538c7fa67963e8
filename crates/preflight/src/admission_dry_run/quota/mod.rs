//! Finds objects that fit into a quota one by one, but not together. A dry run checks each object alone, so the usage
//! of everything that this deploy creates is added up here: the number of objects, and what Pods, claims and Services
//! use according to the server's answer.
//!
//! Source: <https://kubernetes.io/docs/concepts/policy/resource-quotas/>

mod amount;
mod planned;
mod scope;
mod usage;

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt};
use serde::Deserialize;
use serde_json::Value;

use self::amount::Amount;
use self::scope::Scopes;
pub use self::usage::is_measured;
use super::{ViolationsFound, rules};
use crate::{Context, Violation};
use gantry_cluster::{ListError, ListRequest};
use gantry_core::resource::{Resource, Step};
use gantry_core::text;
use gantry_deploy::plan::{Action, Change};

/// The page size when quotas are listed; a namespace has only a few.
const PAGE: u32 = 100;
/// How many namespaces are listed at the same time.
const AT_ONCE: usize = 4;

/// The parts of a ResourceQuota that matter here.
#[derive(Deserialize)]
struct Quota {
    metadata: QuotaName,
    #[serde(default)]
    spec: Scopes,
    #[serde(default)]
    status: QuotaStatus,
}

#[derive(Deserialize)]
struct QuotaName {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct QuotaStatus {
    hard: BTreeMap<String, String>,
    used: BTreeMap<String, String>,
}

/// The objects that the deploy creates in one namespace, as indices into the plan, and the quotas of that namespace.
pub struct Limited<'p> {
    namespace: &'p str,
    created: Vec<usize>,
    quotas: Result<Vec<Quota>, ListError>,
}

/// Reads the quotas of each namespace in which several objects of one kind are created.
pub async fn read_quotas<'p>(context: &Context<'p>) -> Vec<Limited<'p>> {
    let reads = created(&context.plan.changes).into_iter().map(|(namespace, created)| async move {
        Limited { namespace, created, quotas: quotas(context, namespace).await }
    });
    stream::iter(reads.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await
}

/// Adds up the new objects. `admitted` holds objects as the server would store them, by their index in the plan.
pub fn judge_quotas(
    context: &Context<'_>,
    limited: Vec<Limited<'_>>,
    admitted: &BTreeMap<usize, Value>,
) -> ViolationsFound {
    let changes = &context.plan.changes;
    let mut found = ViolationsFound { violations: planned::exceeded(changes, admitted), ..ViolationsFound::default() };
    for Limited { namespace, created, quotas } in limited {
        match quotas {
            Ok(quotas) => {
                let measured: Vec<Measured<'_>> =
                    created.iter().map(|index| Measured::measure(*index, changes, admitted)).collect();
                for quota in &quotas {
                    let is_changed = is_changed(changes, namespace, &quota.metadata.name);
                    let exceeded = exceeded(quota, &measured, Stored::Live).into_iter();
                    found.violations.extend(exceeded.map(|violation| with_severity(violation, is_changed)));
                }
            }
            Err(ListError::NotServed(_)) => {}
            Err(error) => found.violations.extend(unknown(&error, namespace, &created)),
        }
    }
    found
}

/// The objects that the deploy creates in each existing namespace, if it creates several of one kind.
fn created(changes: &[Change]) -> BTreeMap<&str, Vec<usize>> {
    let mut namespaces: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, change) in changes.iter().enumerate().filter(|(_, change)| change.action == Action::Create) {
        if let Some(namespace) = change.desired.object.namespace.as_deref().filter(|_| change.resource.namespaced) {
            namespaces.entry(namespace).or_default().push(index);
        }
    }
    // A new namespace has no live quota, and the dry run checks a single object.
    let is_new = |namespace: &str| {
        let is_it = |change: &&Change| change.desired.object.is_namespace() && change.desired.object.name == namespace;
        changes.iter().find(is_it).is_some_and(|change| change.action == Action::Create)
    };
    namespaces.retain(|namespace, created| {
        let mut kinds: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for index in created.iter() {
            let resource = &changes[*index].resource;
            *kinds.entry((&resource.group, &resource.plural)).or_default() += 1;
        }
        created.retain(|index| {
            let resource = &changes[*index].resource;
            kinds[&(resource.group.as_str(), resource.plural.as_str())] > 1
        });
        !created.is_empty() && !is_new(namespace)
    });
    namespaces
}

fn is_changed(changes: &[Change], namespace: &str, quota: &str) -> bool {
    changes.iter().filter(|change| !change.action.leaves_alone()).any(|change| {
        let object = &change.desired.object;
        let is_quota = change.resource.plural == "resourcequotas" && change.resource.group.is_empty();
        is_quota && object.namespace.as_deref() == Some(namespace) && object.name == quota
    })
}

async fn quotas(context: &Context<'_>, namespace: &str) -> Result<Vec<Quota>, ListError> {
    let resource = Resource {
        group: String::new(),
        version: "v1".into(),
        kind: "ResourceQuota".into(),
        plural: "resourcequotas".into(),
        namespaced: true,
    };
    let request = ListRequest { namespace: Some(namespace), ..ListRequest::new(&resource, PAGE) };
    let quota_of = |quotas: &mut Vec<Quota>, json: &str| quotas.extend(serde_json::from_str::<Quota>(json).ok());
    context.target.list(&request).gather(quota_of).await
}

/// One new object and its usage.
struct Measured<'p> {
    index: usize,
    resource: &'p Resource,
    admitted: Option<&'p Value>,
    usage: usage::Usage,
}

impl<'p> Measured<'p> {
    fn measure(index: usize, changes: &'p [Change], admitted: &'p BTreeMap<usize, Value>) -> Self {
        let (resource, admitted) = (&changes[index].resource, admitted.get(&index));
        Measured { index, resource, admitted, usage: usage::measure_usage(resource, admitted) }
    }
}

/// Whether a quota is the live one, or the one that this deploy writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Live,
    Planned,
}

impl Quota {
    /// Whether the quota counts the object; `None` if that is unknown.
    fn counts(&self, measured: &Measured<'_>) -> Option<bool> {
        if self.spec.is_none() {
            return Some(true);
        }
        // Scopes select Pods; one of them selects claims.
        match measured.resource.plural.as_str() {
            "pods" if measured.resource.group.is_empty() => self.spec.fit(measured.admitted?),
            "persistentvolumeclaims" if self.spec.select_claims() => None,
            _ => Some(false),
        }
    }
}

/// For each exceeded limit, a violation at the first object that no longer fits: the deploy would stop there.
fn exceeded(quota: &Quota, measured: &[Measured<'_>], stored: Stored) -> Vec<Violation> {
    let mut counted = Vec::new();
    for measured in measured {
        match quota.counts(measured) {
            Some(true) => counted.push(measured),
            Some(false) => {}
            None => return Vec::new(),
        }
    }
    let read = |of: &BTreeMap<String, String>, key: &str| of.get(key).and_then(|text| Amount::parse(text));
    let mut violations = Vec::new();
    for key in quota.status.hard.keys() {
        let (Some(hard), Some(used)) = (read(&quota.status.hard, key), read(&quota.status.used, key)) else {
            continue;
        };
        let room = hard - used;
        let (mut sum, mut objects, mut first) = (Amount::default(), 0, None);
        for measured in &counted {
            // An object that does not fit into a live quota even alone is reported by the dry run.
            let counts = |own: &&Amount| **own > Amount::default() && (**own <= room || stored == Stored::Planned);
            let Some(own) = measured.usage.get(key).filter(counts) else { continue };
            sum = sum + *own;
            objects += 1;
            first = first.or((sum > room).then_some(measured.index));
        }
        let Some(index) = first else { continue };
        let is_bytes = !is_count(key) && ["memory", "storage", "hugepages-"].iter().any(|word| key.contains(word));
        let (name, room) = (text::sanitize(&quota.metadata.name), room.to_text(is_bytes));
        let needs = match is_count(key) && sum == Amount::of_count(objects) {
            true => String::new(),
            false => format!(" that use {}", sum.to_text(is_bytes)),
        };
        let written = if stored == Stored::Planned { ", as this deploy writes it," } else { "" };
        let message = format!(
            "the quota {name:?}{written} has room for {room} more of {}, and this deploy creates {}{needs}",
            text::sanitize(key),
            text::count(objects, "object")
        );
        let at = vec![Step::from("metadata"), Step::from("name")];
        let help = "create fewer, delete some, or ask for a higher quota";
        violations.push(Violation::new(&rules::QUOTA, index, None, message, help.to_owned(), at));
    }
    violations
}

/// Whether this key of a quota limits a number of objects.
fn is_count(key: &str) -> bool {
    let is_amount = ["requests.", "limits.", "hugepages-"].iter().any(|part| key.contains(part));
    !is_amount && !matches!(key, "cpu" | "memory" | "ephemeral-storage")
}

/// A violation of a quota that this deploy changes is only a warning.
fn with_severity(violation: Violation, is_changed: bool) -> Violation {
    match is_changed {
        true => violation.may_be_accepted("this deploy changes the quota first".to_owned()),
        false => violation,
    }
}

/// A deploy does not need the right to read quotas: a note, not a failure.
fn unknown(error: &ListError, namespace: &str, created: &[usize]) -> Option<Violation> {
    let index = *created.iter().min()?;
    let reason = error.problem().map_or_else(|| "the list expired".to_owned(), |problem| problem.message.clone());
    let message = format!(
        "it is unknown whether everything that this deploy creates in namespace {namespace:?} fits into its quotas: {reason}"
    );
    let help = "grant `list` on resourcequotas in this namespace to check this";
    let at = vec![Step::from("metadata"), Step::from("name")];
    Some(Violation::new(&rules::NOT_DRY_RUN, index, None, message, help.to_owned(), at))
}
