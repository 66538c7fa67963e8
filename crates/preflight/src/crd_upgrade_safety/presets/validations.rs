//! crdify's validations of one schema node, live and desired.

use std::collections::BTreeSet;

use super::gostring::{self, Memory};
use super::options::{CrdifyOptions, UNHANDLED};
use super::typed::{self, TypedDifference};
use crate::crd_upgrade_safety::json::{Json, JsonMap};
use crate::crd_upgrade_safety::words;
use gantry_k8s_cel::gotext;

/// The validations of a node. Each has the name of the keyword that it handles.
pub const OF_NODES: &[&str] = &[
    "default",
    "description",
    "enum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "nullable",
    "oneOf",
    "pattern",
    "required",
    "type",
];

/// Keywords that are not compared as part of a node: each child is a node of its own.
const OF_CHILDREN: &[&str] = &["items", "properties"];

/// A failed validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedValidation {
    pub validation: &'static str,
    pub text: String,
    /// The complete difference, of which `text` can be a short form. Two failures are equal if this is.
    pub whole: String,
}

/// Compares a node. If desired lacks it, it is compared with an empty schema.
pub fn of_node(live: &JsonMap, desired: &JsonMap, options: &CrdifyOptions) -> Vec<FailedValidation> {
    let own = typed::differences(live, desired, OF_CHILDREN);
    let mut failures = Vec::new();
    for name in OF_NODES {
        let difference = own.iter().find(|difference| difference.keyword == *name);
        let text = match (*name, difference) {
            // If anything else differs, even equal alternatives can differ for crdify: see `gostring`.
            ("oneOf", _) if !own.is_empty() => one_of(live, desired, options),
            (_, None) => continue,
            (name, Some(difference)) => judge(name, difference, options),
        };
        if let Some(text) = text {
            failures.push(FailedValidation { validation: name, whole: text.clone(), text });
        }
    }
    let rest: Vec<&TypedDifference> = own.iter().filter(|difference| !OF_NODES.contains(&difference.keyword)).collect();
    if !rest.is_empty() {
        let changes: Vec<String> = rest.iter().map(|difference| typed::short_form(difference)).collect();
        let text = format!("unhandled changes found ({})", changes.join("; "));
        failures.push(FailedValidation { validation: UNHANDLED, text, whole: list_differences(&rest) });
    }
    failures
}

fn list_differences(rest: &[&TypedDifference]) -> String {
    let json = |value: Option<&Json>| value.map(Json::to_string).unwrap_or_default();
    rest.iter().map(|d| format!("{} {} -> {}\n", d.keyword, json(d.live), json(d.desired))).collect()
}

/// The text of a failed validation of one keyword, as crdify words it and with uncut values.
fn judge(name: &'static str, difference: &TypedDifference, options: &CrdifyOptions) -> Option<String> {
    let (live, desired) = (difference.live, difference.desired);
    let said = |what: &str, value: String| Some(format!("{what} : {value}"));
    let quoted = |json: &Json| gotext::quote(&json.to_string());
    match name {
        "default" => match (live, desired) {
            (None, Some(now)) => said("default added when there was none previously", quoted(now)),
            (Some(was), None) => said("default value removed", quoted(was)),
            (Some(was), Some(now)) => said("default value changed", format!("{} -> {}", quoted(was), quoted(now))),
            (None, None) => None,
        },
        "description" => said("description changed", texts(live, desired)),
        "type" => said("type changed", texts(live, desired)),
        "pattern" => match (live, desired) {
            (None, _) => said("pattern added", texts(live, desired)),
            (_, None) if options.pattern_removal => None,
            (_, None) => said("pattern removed", texts(live, desired)),
            _ => said("pattern changed", texts(live, desired)),
        },
        "nullable" => match (live, options.nullable_addition, options.nullable_removal) {
            (None, false, _) => said("nullable added", "false -> true".into()),
            (Some(_), _, false) => said("nullable removed", "true -> false".into()),
            _ => None,
        },
        "required" => {
            let added = missing(desired, live);
            let names: Vec<&str> = added.iter().filter_map(|name| name.text()).collect();
            (!names.is_empty()).then(|| format!("new required fields: [{}]", names.join(" ")))
        }
        "enum" => {
            let (added, removed) = (missing(desired, live), missing(live, desired));
            let list = |values: &[&Json]| {
                let mut values: Vec<String> = values.iter().map(|value| value.to_string()).collect();
                values.sort_unstable();
                format!("[{}]", values.join(" "))
            };
            if live.is_none() {
                said("enum constraint added when there was none previously", list(&added))
            } else if !removed.is_empty() {
                said("allowed enum values removed", list(&removed))
            } else if !added.is_empty() && !options.enum_addition {
                said("allowed enum values added", list(&added))
            } else {
                None
            }
        }
        _ => bound(name, live, desired),
    }
}

/// The `oneOf` validation, which compares the alternatives by the text that Go prints for them ([`gostring`]).
fn one_of(live: &JsonMap, desired: &JsonMap, options: &CrdifyOptions) -> Option<String> {
    let set = |schema, memory| -> BTreeSet<String> {
        gostring::of_alternatives(typed::get(schema, "oneOf"), memory).into_iter().collect()
    };
    let (was, now) = (set(live, Memory::Live), set(desired, Memory::Desired));
    let said = |what: &str, of: &BTreeSet<String>, without: &BTreeSet<String>| {
        let texts: Vec<&str> = of.difference(without).map(String::as_str).collect();
        (!texts.is_empty()).then(|| format!("{what}: [{}]", texts.join(" ")))
    };
    if was.is_empty() {
        let what = match options.one_of_addition {
            false => "oneOf constraint added when there was none previously",
            true if now.contains(&gostring::as_alternative(live, Memory::Live)) => return None,
            true => "oneOf constraint added and pre-existing property schema is not preserved in the new oneOf entries",
        };
        return said(what, &now, &was);
    }
    let removed = (!options.one_of_removal).then(|| said("allowed oneOf schemas removed", &was, &now)).flatten();
    let added = || (!options.one_of_addition).then(|| said("allowed oneOf schemas added", &now, &was)).flatten();
    removed.or_else(added)
}

/// `"integer" -> "string"`; an absent value is the empty string.
fn texts(live: Option<&Json>, desired: Option<&Json>) -> String {
    let text = |json: Option<&Json>| gotext::quote(json.and_then(Json::text).unwrap_or_default());
    format!("{} -> {}", text(live), text(desired))
}

/// The values in `of` that are not in `other`, each once.
fn missing<'n, 'a>(of: Option<&'n Json<'a>>, other: Option<&'n Json<'a>>) -> Vec<&'n Json<'a>> {
    fn set<'n, 'a>(json: Option<&'n Json<'a>>) -> BTreeSet<&'n Json<'a>> {
        json.and_then(Json::list).unwrap_or_default().iter().collect()
    }
    set(of).difference(&set(other)).copied().collect()
}

fn bound(name: &str, live: Option<&Json>, desired: Option<&Json>) -> Option<String> {
    let (kind, moved, lower) =
        if name.starts_with("max") { ("maximum", "decreased", true) } else { ("minimum", "increased", false) };
    match (live, desired?) {
        (None, now) => Some(format!("{kind} constraint added when there was none previously : {}", number(name, now))),
        (Some(was), now) if (lower && was.exceeds(now)) || (!lower && now.exceeds(was)) => {
            Some(format!("{kind} {moved} : {} -> {}", number(name, was), number(name, now)))
        }
        _ => None,
    }
}

/// A bound as Go prints it: `maximum` and `minimum` are float64s, the other bounds are integers.
#[expect(clippy::cast_precision_loss, reason = "the tool holds these bounds as float64")]
fn number(name: &str, json: &Json) -> String {
    match json {
        Json::Int(int) if matches!(name, "maximum" | "minimum") => gotext::float(*int as f64),
        Json::Int(int) => int.to_string(),
        Json::Float(float) => gotext::float(*float),
        other => words::value(other),
    }
}
