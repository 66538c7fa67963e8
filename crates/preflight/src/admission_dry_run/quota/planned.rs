//! Quotas that this deploy creates or lowers. They are written before the other objects of their namespace, so those
//! have to fit into them. A dry run does not know them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::amount::Amount;
use super::{Measured, Quota, QuotaName, QuotaStatus, Scopes, Stored};
use crate::Violation;
use gantry_deploy::plan::{Action, Change};

/// The parts of a manifest of a quota that matter here.
#[derive(Deserialize)]
struct DesiredQuota {
    metadata: QuotaName,
    #[serde(default)]
    spec: PlannedQuotaSpec,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PlannedQuotaSpec {
    hard: BTreeMap<String, Value>,
    #[serde(flatten)]
    scopes: Scopes,
}

/// Warnings about new objects that do not fit into the quotas as this deploy writes them. It is only a warning, because
/// a new limit applies when a controller has put it into the status of the quota, which can be later than the other
/// writes.
pub fn exceeded(changes: &[Change], admitted: &BTreeMap<usize, Value>) -> Vec<Violation> {
    let is_quota = |change: &&Change| {
        change.resource.plural == "resourcequotas" && change.resource.group.is_empty() && change.is_written()
    };
    let quotas: Vec<&Change> = changes.iter().filter(is_quota).collect();
    let mut created: BTreeMap<&str, Vec<usize>> =
        quotas.iter().filter_map(|quota| Some((quota.desired.object.namespace.as_deref()?, Vec::new()))).collect();
    for (index, change) in changes.iter().enumerate().filter(|(_, change)| change.action == Action::Create) {
        let namespace = change.desired.object.namespace.as_deref().filter(|_| change.is_written());
        if let Some(created) = namespace.and_then(|namespace| created.get_mut(namespace)) {
            created.push(index);
        }
    }
    let mut violations = Vec::new();
    for change in quotas {
        let Some(quota) = quota(change) else { continue };
        let created = change.desired.object.namespace.as_deref().and_then(|namespace| created.get(namespace));
        let created = created.into_iter().flatten().filter(|index| !std::ptr::eq(&changes[**index], change));
        let measured: Vec<Measured<'_>> = created.map(|index| Measured::measure(*index, changes, admitted)).collect();
        let help = "create fewer, or set a higher limit in the manifest of the quota";
        let warn = |violation: Violation| violation.may_be_accepted(help.to_owned());
        violations.extend(super::exceeded(&quota, &measured, Stored::Planned).into_iter().map(warn));
    }
    violations
}

/// The quota with the limits that this deploy adds or lowers.
fn quota(change: &Change) -> Option<Quota> {
    let DesiredQuota { metadata, spec } = serde_json::from_str(&change.desired.raw.json()).ok()?;
    let live = change.live.as_ref().and_then(|live| serde_json::from_str::<Quota>(&live.raw.json()).ok());
    let QuotaStatus { hard: before, used } = live.map(|live| live.status).unwrap_or_default();
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let is_lower = |key: &str, text: &str| {
        let before = before.get(key).and_then(|text| Amount::parse(text));
        before.is_none_or(|before| Amount::parse(text).is_some_and(|now| now < before))
    };
    let mut hard: BTreeMap<String, String> =
        spec.hard.iter().filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect();
    hard.retain(|key, text| is_lower(key, text));
    // Nothing is known about the usage of what no live quota limits.
    let used = hard.keys().map(|key| (key.clone(), used.get(key).cloned().unwrap_or_else(|| "0".to_owned()))).collect();
    Some(Quota { metadata, spec: spec.scopes, status: QuotaStatus { hard, used } })
}
