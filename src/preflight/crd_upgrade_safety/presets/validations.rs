//! crdify's validations of one schema node: what each of them says of a live node and the desired one.

use std::collections::BTreeSet;

use super::options::Options;
use super::typed::{self, Difference};
use crate::preflight::crd_upgrade_safety::json::{Json, Map};
use crate::preflight::crd_upgrade_safety::words;
use crate::validation::gotext;

/// What remains when all validations have taken their keyword out.
pub const UNHANDLED: &str = "unhandled";

/// The validations of a node and the keyword that each takes out; the names are the same.
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
    "pattern",
    "required",
    "type",
];

/// Left out of a node's own content: each node below is a node of its own.
const OF_CHILDREN: &[&str] = &["items", "properties"];

/// A validation that does not hold, and its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub validation: &'static str,
    pub text: String,
    /// The whole of what differs, where `text` is cut short: two failures are the same if this is.
    pub whole: String,
}

/// Compares a node. One that desired lacks is compared with an empty schema.
pub fn of_node(live: &Map, desired: &Map, options: &Options) -> Vec<Failure> {
    let own = typed::differences(live, desired, OF_CHILDREN);
    let mut failures = Vec::new();
    for name in OF_NODES {
        let Some(difference) = own.iter().find(|difference| difference.keyword == *name) else { continue };
        if let Some((text, whole)) = judge(name, difference, options) {
            failures.push(Failure { validation: name, text, whole });
        }
    }
    let rest: Vec<&Difference> = own.iter().filter(|difference| !OF_NODES.contains(&difference.keyword)).collect();
    if !rest.is_empty() {
        let told: Vec<String> = rest.iter().map(|difference| typed::told(difference)).collect();
        let text = format!("unhandled changes found ({})", told.join("; "));
        failures.push(Failure { validation: UNHANDLED, text, whole: whole(&rest) });
    }
    failures
}

fn whole(rest: &[&Difference]) -> String {
    let json = |value: Option<&Json>| value.map(Json::to_string).unwrap_or_default();
    rest.iter().map(|d| format!("{} {} -> {}\n", d.keyword, json(d.live), json(d.desired))).collect()
}

/// How much of a value is shown: all of it, or a part.
type Cut<'c> = &'c dyn Fn(&str) -> String;

/// The short text and the whole one.
fn judge(name: &'static str, difference: &Difference, options: &Options) -> Option<(String, String)> {
    let (live, desired) = (difference.live, difference.desired);
    let said = |what: &str, value: &dyn Fn(Cut<'_>) -> String| {
        Some((format!("{what} : {}", value(&words::cut)), format!("{what} : {}", value(&str::to_owned))))
    };
    let quoted = |json: &Json, cut: Cut<'_>| gotext::quote(&cut(&json.to_string()));
    match name {
        "default" => match (live, desired) {
            (None, Some(now)) => said("default added when there was none previously", &|cut| quoted(now, cut)),
            (Some(was), None) => said("default value removed", &|cut| quoted(was, cut)),
            (Some(was), Some(now)) => {
                said("default value changed", &|cut| format!("{} -> {}", quoted(was, cut), quoted(now, cut)))
            }
            (None, None) => None,
        },
        "description" => said("description changed", &|cut| texts(live, desired, cut)),
        "type" => said("type changed", &|cut| texts(live, desired, cut)),
        "pattern" => match (live, desired) {
            (None, _) => said("pattern added", &|cut| texts(live, desired, cut)),
            (_, None) if options.pattern_removal => None,
            (_, None) => said("pattern removed", &|cut| texts(live, desired, cut)),
            _ => said("pattern changed", &|cut| texts(live, desired, cut)),
        },
        "nullable" => match (live, options.nullable_addition, options.nullable_removal) {
            (None, false, _) => said("nullable added", &|_| "false -> true".into()),
            (Some(_), _, false) => said("nullable removed", &|_| "true -> false".into()),
            _ => None,
        },
        "required" => {
            let added = missing(desired, live);
            let names: Vec<&str> = added.iter().filter_map(|name| name.text()).collect();
            (!names.is_empty()).then(|| {
                let whole = format!("new required fields: [{}]", names.join(" "));
                (format!("new required fields: {}", words::bracketed(&names)), whole)
            })
        }
        "enum" => {
            let (added, removed) = (missing(desired, live), missing(live, desired));
            let list = |values: &[&Json], cut: Cut<'_>| {
                let mut values: Vec<String> = values.iter().map(|value| value.to_string()).collect();
                values.sort_unstable();
                cut(&format!("[{}]", values.join(" ")))
            };
            if live.is_none() {
                said("enum constraint added when there was none previously", &|cut| list(&added, cut))
            } else if !removed.is_empty() {
                said("allowed enum values removed", &|cut| list(&removed, cut))
            } else if !added.is_empty() && !options.enum_addition {
                said("allowed enum values added", &|cut| list(&added, cut))
            } else {
                None
            }
        }
        _ => bound(name, live, desired),
    }
}

/// `"integer" -> "string"`; what is not there is the empty text.
fn texts(live: Option<&Json>, desired: Option<&Json>, cut: Cut<'_>) -> String {
    let text = |json: Option<&Json>| gotext::quote(&cut(json.and_then(Json::text).unwrap_or_default()));
    format!("{} -> {}", text(live), text(desired))
}

/// What `of` holds and `other` does not, each value once.
fn missing<'n, 'a>(of: Option<&'n Json<'a>>, other: Option<&'n Json<'a>>) -> Vec<&'n Json<'a>> {
    fn set<'n, 'a>(json: Option<&'n Json<'a>>) -> BTreeSet<&'n Json<'a>> {
        json.and_then(Json::list).unwrap_or_default().iter().collect()
    }
    set(of).difference(&set(other)).copied().collect()
}

fn bound(name: &str, live: Option<&Json>, desired: Option<&Json>) -> Option<(String, String)> {
    let (kind, moved, lower) =
        if name.starts_with("max") { ("maximum", "decreased", true) } else { ("minimum", "increased", false) };
    let text = match (live, desired?) {
        (None, now) => format!("{kind} constraint added when there was none previously : {}", number(name, now)),
        (Some(was), now) if (lower && was.exceeds(now)) || (!lower && now.exceeds(was)) => {
            format!("{kind} {moved} : {} -> {}", number(name, was), number(name, now))
        }
        _ => return None,
    };
    Some((text.clone(), text))
}

/// As Go prints it: `maximum` and `minimum` are float64s, the other bounds integers.
#[expect(clippy::cast_precision_loss, reason = "the tool holds these bounds as float64")]
fn number(name: &str, json: &Json) -> String {
    match json {
        Json::Int(int) if matches!(name, "maximum" | "minimum") => gotext::float(*int as f64),
        Json::Int(int) => int.to_string(),
        Json::Float(float) => gotext::float(*float),
        other => words::value(other),
    }
}
