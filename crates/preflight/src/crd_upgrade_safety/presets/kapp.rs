//! kapp's verdict: its preflight check `CRDUpgradeSafety`.
//!
//! kapp compares the keywords of a node with `reflect.DeepEqual`, so a changed description or order is a change that
//! none of its validations handles: an unknown change. A removed field ends the comparison of its version. kapp decodes
//! the manifest itself, where `allOf: []` is not absent, and the live CRD, where the server has dropped it.

use super::flatten::{Flat, Naming, flatten};
use super::typed;
use super::{Flagged, SchemasByVersion};
use crate::crd_upgrade_safety::json::{Json, JsonMap};
use crate::crd_upgrade_safety::words;
use gantry_core::crd::{CrdPair, steps};
use gantry_k8s_cel::gotext;
use gantry_schema::keywords::{self, KeywordShape};

pub const NO_SCOPE_CHANGE: &str = "NoScopeChange";
pub const NO_STORED_VERSION_REMOVED: &str = "NoStoredVersionRemoved";
pub const NO_EXISTING_FIELD_REMOVED: &str = "NoExistingFieldRemoved";
pub const CHANGE_VALIDATOR: &str = "ChangeValidator";

/// The keywords that kapp validates; any other difference is unknown.
const VALIDATED: &[&str] = &[
    "default",
    "enum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "required",
];
const UNKNOWN: &str = "has unknown change, refusing to determine that change is safe";
const OF_CHILDREN: &[&str] = &["items", "properties"];

/// Every finding of kapp.
pub fn judge(pair: &CrdPair, schemas: &SchemasByVersion) -> Vec<Flagged> {
    let mut found = Vec::new();
    let mut flag = |validation: &'static str, version: Option<&str>, text: String, step: &str| {
        let flagged = Flagged::new(validation, version.map(str::to_owned), None, text);
        found.push(Flagged { at: steps::spec(step), ..flagged });
    };
    let (was, now) = (&pair.live.scope, &pair.desired.scope);
    if was != now {
        let text = format!("scope changed from {} to {}", gotext::quote(was), gotext::quote(now));
        flag(NO_SCOPE_CHANGE, None, text, "scope");
    }
    // kapp stops at the first removed version.
    let removed = pair.live.status_stored_versions.iter().find(|name| pair.desired.version(name).is_none());
    if let Some(name) = removed {
        flag(
            NO_STORED_VERSION_REMOVED,
            Some(name),
            format!("stored version {} removed", gotext::quote(name)),
            "versions",
        );
    }
    for (version, successor) in pair.common_versions() {
        let live = flatten(schemas.live(&version.name), Naming::Kapp);
        let desired = flatten(schemas.desired(&version.name), Naming::Kapp);
        fields(&pair.desired.name, &version.name, successor.index, &live, &desired, &mut found);
    }
    for flagged in &mut found {
        flagged.documented = format!("\"{}\" validation failed: {}", flagged.validation, flagged.text);
    }
    found
}

fn fields(crd: &str, version: &str, index: usize, live: &Flat, desired: &Flat, found: &mut Vec<Flagged>) {
    let removed: Vec<&String> = live.keys().filter(|path| !desired.contains_key(*path)).collect();
    for path in &removed {
        let text = format!("crd/{crd} version/{version} field/{path} may not be removed");
        let flagged = Flagged::new(NO_EXISTING_FIELD_REMOVED, Some(version.into()), Some((*path).clone()), text);
        found.push(Flagged { at: parent(desired, path).steps(index), ..flagged });
    }
    if !removed.is_empty() {
        let text = format!("calculating schema diff for CRD version {}", gotext::quote(version));
        found.push(Flagged::new(CHANGE_VALIDATOR, Some(version.into()), None, text));
        return;
    }
    for (path, node) in live {
        let other = &desired[path];
        for text in of_node(node.schema, other.schema) {
            let place = format!("version {}, field {}", gotext::quote(version), gotext::quote(path));
            // The text of an unknown change continues the sentence that begins with the place.
            let unknown = text == UNKNOWN;
            let text = if unknown { format!("{place} {text}") } else { format!("{place}: {text}") };
            let flagged = Flagged::new(CHANGE_VALIDATOR, Some(version.into()), Some(path.clone()), text);
            found.push(Flagged { at: other.steps(index), unknown, ..flagged });
        }
    }
}

fn parent<'f, 'n, 'a>(flat: &'f Flat<'n, 'a>, path: &str) -> &'f super::flatten::FlatNode<'n, 'a> {
    let mut path = path;
    loop {
        if let Some(node) = flat.get(path) {
            return node;
        }
        path = path.rfind(['.', '[']).map_or("^", |at| &path[..at]);
    }
}

fn of_node(live: &JsonMap, desired: &JsonMap) -> Vec<String> {
    let own = typed::differences(live, desired, OF_CHILDREN);
    let mut texts: Vec<String> = own
        .iter()
        .filter_map(|difference| judge_keyword(difference.keyword, difference.live, difference.desired))
        .collect();
    let is_reset = |keyword: &str| VALIDATED.contains(&keyword) || OF_CHILDREN.contains(&keyword);
    if own.iter().any(|difference| !VALIDATED.contains(&difference.keyword)) || has_empty(desired, &is_reset) {
        texts.push(UNKNOWN.to_owned());
    }
    texts
}

/// Whether a keyword of a manifest's schema or of a schema inside it has an empty list or map, which no live CRD has.
/// Some keywords of the node itself are not compared.
fn has_empty(schema: &JsonMap, is_reset: &dyn Fn(&str) -> bool) -> bool {
    let inside = |json: &Json| json.map().is_some_and(|schema| has_empty(schema, &|_| false));
    schema.iter().filter(|(keyword, _)| !is_reset(keyword)).any(|(keyword, value)| {
        match (keywords::shape(keyword), value) {
            (Some(KeywordShape::Set | KeywordShape::Rules), Json::List(items)) => items.is_empty(),
            (Some(KeywordShape::Schemas | KeywordShape::Choice), Json::List(items)) => {
                items.is_empty() || items.iter().any(inside)
            }
            (Some(KeywordShape::Named), Json::Map(entries)) => {
                entries.is_empty() || entries.iter().any(|(_, json)| inside(json))
            }
            (_, Json::Map(entries)) if keyword == typed::DEPENDENCIES => entries.is_empty(),
            (Some(KeywordShape::SchemaOrSchemas), Json::List(items)) => items.iter().any(inside),
            (Some(KeywordShape::Schema | KeywordShape::SchemaOrFlag | KeywordShape::SchemaOrSchemas), json) => {
                inside(json)
            }
            _ => false,
        }
    })
}

fn judge_keyword(keyword: &str, live: Option<&Json>, desired: Option<&Json>) -> Option<String> {
    let list = |json: Option<&Json>| -> Vec<String> {
        json.and_then(Json::list)
            .unwrap_or_default()
            .iter()
            .map(|item| match item.text() {
                Some(text) if keyword == "required" => text.to_owned(),
                _ => item.to_string(),
            })
            .collect()
    };
    let missing = |of: &[String], other: &[String]| -> Vec<String> {
        let mut missing: Vec<String> = of.iter().filter(|item| !other.contains(item)).cloned().collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    };
    match keyword {
        "enum" => {
            let (before, after) = (list(live), list(desired));
            let removed = missing(&before, &after);
            if before.is_empty() && !after.is_empty() {
                return Some("enums added when there were no enum restrictions previously".to_owned());
            }
            (!removed.is_empty()).then(|| format!("enum values removed: {}", words::bracketed(&removed)))
        }
        "required" => {
            let (before, after) = (list(live), list(desired));
            let added = missing(&after, &before);
            let names = words::bracketed(&added);
            match (added.is_empty(), before.is_empty()) {
                (true, _) => None,
                (false, true) => {
                    Some(format!("new values added as required when previously no required fields existed: {names}"))
                }
                (false, false) => Some(format!("new required fields added: {names}")),
            }
        }
        "default" => {
            let shown = |json: &Json| words::value(json);
            match (live, desired) {
                (None, Some(now)) => {
                    Some(format!("new value added as default when previously no default value existed: {}", shown(now)))
                }
                (Some(was), None) => Some(format!(
                    "default value has been removed when previously a default value existed: {}",
                    shown(was)
                )),
                (Some(was), Some(now)) => {
                    Some(format!("default value has been changed from {} to {}", shown(was), shown(now)))
                }
                (None, None) => None,
            }
        }
        _ => bound(keyword, live, desired),
    }
}

/// `minimum length constraint increased from 1 to 2`
fn bound(keyword: &str, live: Option<&Json>, desired: Option<&Json>) -> Option<String> {
    let (name, lower) = match keyword {
        "minimum" => ("minimum", false),
        "maximum" => ("maximum", true),
        _ => {
            let (side, lower) = if keyword.starts_with("max") { ("maximum", true) } else { ("minimum", false) };
            let of = keyword.get(3..)?.to_lowercase();
            let what = ["items", "length", "properties"].into_iter().find(|what| *what == of)?;
            return describe_tightened_limit(&format!("{side} {what}"), lower, live, desired);
        }
    };
    describe_tightened_limit(name, lower, live, desired)
}

fn describe_tightened_limit(name: &str, lower: bool, live: Option<&Json>, desired: Option<&Json>) -> Option<String> {
    match (live, desired?) {
        (None, now) => Some(format!("{name} constraint added when one did not exist previously: {now}")),
        (Some(was), now) if lower && was.exceeds(now) => {
            Some(format!("{name} constraint decreased from {was} to {now}"))
        }
        (Some(was), now) if !lower && now.exceeds(was) => {
            Some(format!("{name} constraint increased from {was} to {now}"))
        }
        _ => None,
    }
}
