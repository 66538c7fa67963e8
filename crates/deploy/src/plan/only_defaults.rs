//! Finds conflicts that change no value: the manifest differs from another manager's field only in values that the
//! server defaulted.
//!
//! A manager that writes with plain updates also owns the values that the server defaulted. A manifest that leaves them
//! out (`protocol: TCP` of a port in a NetworkPolicy) then conflicts over a list that means the same. Only the server
//! knows its defaults, so it is asked with a dry run of a forced apply. If that leaves a field as it is, taking it over
//! changes only its owner.

use futures::stream::{self, StreamExt};
use gantry_schema::json::Json;
use gantry_schema::{Sense, same_schema};
use serde_json::Value;

use super::Plan;
use super::conflicts::ChangeConflicts;
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{FieldConflict, Target};

/// The maximum number of concurrent requests.
const AT_ONCE: usize = 8;
/// The field that holds the schemas of a CRD.
const VERSIONS: &str = ".spec.versions";
/// The maximum number of objects to ask the server about. Messages do not name more objects in conflict.
const MOST_ASKED: usize = 50;

/// Marks the conflicts that concern only defaults of the server. Without an answer, none is marked.
pub async fn mark(plan: &Plan, foreseen: &mut [ChangeConflicts], target: &Target) {
    let Some(server) = target.as_server() else { return };
    let asked = foreseen.iter_mut().take(MOST_ASKED).map(|found| async move {
        let change = &plan.changes[found.change];
        mark_each(change, &mut found.conflicts, server, &plan.policy.field_manager).await;
    });
    stream::iter(asked).buffer_unordered(AT_ONCE).collect::<()>().await;
}

/// The same for the conflicts of one object.
pub async fn mark_each(
    change: &super::Change,
    conflicts: &mut [FieldConflict],
    server: &KubeTarget,
    field_manager: &str,
) {
    let Some(live) = &change.live else { return };
    if conflicts.iter().all(|conflict| conflict.field == VERSIONS) && changes_versions(change) {
        return;
    }
    let Ok(forced) = server.dry_run(&change.request(&change.pin(), field_manager, true)).await else { return };
    let (live, forced) = (live.raw.value(), forced.value());
    for conflict in conflicts {
        conflict.only_defaults = is_same_at(&conflict.field, &live, &forced);
    }
}

/// Whether the manifest of a CRD changes a schema, which the server does not do by itself.
fn changes_versions(change: &super::Change) -> bool {
    let Some(Ok(pair)) = change.crd().map(|crd| crd.pair()) else { return false };
    pair.common_versions().any(|(live, desired)| {
        let [Some(Ok(live)), Some(Ok(desired))] = [live, desired].map(|version| version.schema().map(Json::parse))
        else {
            return false;
        };
        !same_schema(&live, &desired, Sense::Everything) || has_other_text(&live, &desired)
    })
}

/// Whether there is a text in both that is not the same, such as a description.
fn has_other_text(a: &Json<'_>, b: &Json<'_>) -> bool {
    match (a, b) {
        (Json::Map(a), Json::Map(b)) => a.iter().any(|(key, a)| b.get(key).is_some_and(|b| has_other_text(a, b))),
        (Json::Text(a), Json::Text(b)) => a != b && !a.is_empty() && !b.is_empty(),
        _ => false,
    }
}

/// Whether two objects have the same value at a field, as the server writes it:
/// `.spec.ports[port=80,protocol="TCP"].name`. A field that is not found in both counts as different.
fn is_same_at(field: &str, a: &Value, b: &Value) -> bool {
    if field.is_empty() {
        return a == b;
    }
    if let Some(rest) = field.strip_prefix('.') {
        let (Some(of_a), Some(of_b)) = (a.as_object(), b.as_object()) else { return false };
        // A name may contain dots and brackets: try every possible prefix of the path, the longest first.
        let fits = |name: &&String| {
            rest.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let name = of_a.keys().filter(|name| of_b.contains_key(*name)).filter(fits).max_by_key(|name| name.len());
        return name.is_some_and(|name| is_same_at(&rest[name.len()..], &of_a[name], &of_b[name]));
    }
    let (Some((selector, rest)), Some(of_a), Some(of_b)) = (selector(field), a.as_array(), b.as_array()) else {
        return false;
    };
    let find = |list: &[Value]| list.iter().position(|item| selector.fits(item));
    match (&selector, find(of_a), find(of_b)) {
        (ItemSelector::Index(index), ..) => {
            of_a.get(*index).zip(of_b.get(*index)).is_some_and(|(a, b)| is_same_at(rest, a, b))
        }
        (_, Some(a), Some(b)) => is_same_at(rest, &of_a[a], &of_b[b]),
        _ => false,
    }
}

/// How a path selects an item of a list.
enum ItemSelector {
    Index(usize),
    /// `="x"`
    Value(Value),
    /// `port=80,protocol="TCP"`
    Keys(Vec<(String, Value)>),
}

impl ItemSelector {
    fn fits(&self, item: &Value) -> bool {
        match self {
            Self::Index(_) => false,
            Self::Value(value) => item == value,
            Self::Keys(keys) => keys.iter().all(|(key, value)| item.get(key) == Some(value)),
        }
    }
}

/// The selector at the start of the path, and the rest.
fn selector(path: &str) -> Option<(ItemSelector, &str)> {
    let mut rest = path.strip_prefix('[')?;
    if let Some((index, behind)) = rest.split_once(']')
        && let Ok(index) = index.parse()
    {
        return Some((ItemSelector::Index(index), behind));
    }
    let mut keys = Vec::new();
    loop {
        let (key, text) = rest.split_once('=')?;
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = values.next()?.ok()?;
        rest = &text[values.byte_offset()..];
        if key.is_empty() {
            return Some((ItemSelector::Value(value), rest.strip_prefix(']')?));
        }
        keys.push((key.to_owned(), value));
        match rest.strip_prefix(']') {
            Some(behind) => return Some((ItemSelector::Keys(keys), behind)),
            None => rest = rest.strip_prefix(',')?,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_found_by_names_and_keys_that_hold_anything() {
        let a = json!({"metadata": {"annotations": {"a.b/c": "x", "a": {"b/c": 1}, "x[y]": 1}}, "spec": {
            "ports": [{"port": 80, "protocol": "TCP", "name": "a"}, {"port": 80, "protocol": "UDP", "name": "u"}],
            "names": [{"name": "a]b\"c.d", "v": 1}], "set": ["x", 7], "list": [1, 2]}});
        let mut b = a.clone();
        for field in [
            ".metadata.annotations.a.b/c",
            ".metadata.annotations.x[y]",
            ".spec.ports[port=80,protocol=\"UDP\"].name",
            ".spec.names[name=\"a]b\\\"c.d\"].v",
            ".spec.set[=\"x\"]",
            ".spec.set[=7]",
            ".spec.list[1]",
            ".spec.list",
        ] {
            assert!(is_same_at(field, &a, &b), "{field}");
        }
        for field in
            [".spec.none", ".spec.ports[port=81].name", ".spec.list[2]", ".spec.list.x", ".spec.set[=8]", "spec"]
        {
            assert!(!is_same_at(field, &a, &b), "{field}");
        }
        b["metadata"]["annotations"]["a.b/c"] = json!("y");
        b["spec"]["ports"][1]["name"] = json!("v");
        b["spec"]["names"][0]["v"] = json!(2);
        b["spec"]["list"] = json!([1, 3]);
        for (field, is_same) in [
            (".metadata.annotations.a.b/c", false),
            (".spec.ports[port=80,protocol=\"TCP\"].name", true),
            (".spec.ports[port=80,protocol=\"UDP\"].name", false),
            (".spec.names[name=\"a]b\\\"c.d\"].v", false),
            (".spec.list[0]", true),
            (".spec.list[1]", false),
            (".spec.list", false),
        ] {
            assert_eq!(is_same_at(field, &a, &b), is_same, "{field}");
        }
    }
}
