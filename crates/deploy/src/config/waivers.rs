//! `waivers`: findings that someone reviewed and accepted, each with a reason.

use serde_json::Value;
use wildmatch::WildMatch;

use gantry_core::date::Date;
use gantry_core::finding::Finding;
use gantry_core::problem::{Location, Problem, did_you_mean};

use super::keys::table;
use super::located::{self, LocatedData, LocatedValue};

const WAIVERS: &str = table::WAIVERS.path;

/// The keys of a waiver.
pub(super) const WAIVER_KEYS: &[&str] = &["object", "version", "path", "rule", "reason", "expires"];

/// Findings that may pass. An absent pattern matches everything; in each pattern, `*` matches any number of characters
/// and `?` matches one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiver {
    /// The object's name, or `kind/name` as reports show it.
    pub object: Option<String>,
    /// The version of the CRD that the finding is about.
    pub version: Option<String>,
    /// The path of the finding, such as `spec.replicas`.
    pub path: Option<String>,
    /// The name of the rule.
    pub rule: Option<String>,
    /// Why the finding is acceptable; reports show it.
    pub reason: String,
    /// The last day on which it is valid.
    pub expires: Option<Date>,
    /// The place of the waiver.
    pub at: Option<Location>,
}

impl Waiver {
    /// Whether the waiver is for this finding.
    pub fn matches(&self, finding: &Finding) -> bool {
        let matches = |pattern: &Option<String>, texts: &[&str]| {
            pattern.as_deref().is_none_or(|pattern| {
                let pattern = WildMatch::new(pattern);
                texts.iter().any(|text| pattern.matches(text))
            })
        };
        let object = finding.object.as_ref().map(|object| [object.name.clone(), object.to_string()]);
        let names: Vec<&str> = object.iter().flatten().map(String::as_str).collect();
        matches(&self.object, &names)
            && matches(&self.version, finding.body.version.as_deref().as_slice())
            && matches(&self.path, finding.body.path.as_deref().as_slice())
            && matches(&self.rule, &[&finding.rule])
    }

    /// Why the waiver does not let the finding pass.
    pub fn unfit_for(&self, finding: &Finding) -> Problem {
        let of = finding.object.as_ref().map(|object| format!(" of {object}")).unwrap_or_default();
        let message = format!(
            "the waiver ({}) does not apply to {}{of}: the API server would refuse the request, whatever is \
             configured here",
            self.reason, finding.rule
        );
        self.problem(message, "do what the finding says, and remove the waiver")
    }

    /// A problem with the waiver, at its place.
    pub fn problem(&self, message: String, help: &str) -> Problem {
        let problem = Problem::new(message).help(help);
        match &self.at {
            Some(at) => problem.at(at.clone()),
            None => problem,
        }
    }
}

/// Reads the merged list. Each problem has its line.
pub(super) fn read(list: Option<&LocatedValue>) -> (Vec<Waiver>, Vec<Problem>) {
    let mut problems = Vec::new();
    let waivers = match list.map(|list| (list, &list.data)) {
        None => Vec::new(),
        Some((_, LocatedData::List(items))) => {
            items.iter().enumerate().filter_map(|(i, item)| waiver(i, item, &mut problems)).collect()
        }
        Some((list, _)) => {
            problems.push(list.place.problem(format!("{WAIVERS} is not a list")));
            Vec::new()
        }
    };
    (waivers, problems)
}

fn waiver(index: usize, item: &LocatedValue, problems: &mut Vec<Problem>) -> Option<Waiver> {
    let path = format!("{WAIVERS}[{index}]");
    let LocatedData::Map(_) = item.data else {
        problems.push(item.place.problem(format!("{path} is not a mapping")));
        return None;
    };
    let found = problems.len();
    for (key, value) in item.entries().filter(|(key, _)| !WAIVER_KEYS.contains(key)) {
        let help = match did_you_mean(key, WAIVER_KEYS.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("known keys: {}", WAIVER_KEYS.join(", ")),
        };
        problems.push(value.key.problem(format!("unknown key \"{path}.{key}\"")).help(help));
    }
    let mut text = |key: &str| match item.get(key).map(|found| (found, found.to_value())) {
        None => None,
        Some((_, Value::String(text))) if !text.trim().is_empty() => Some(text),
        Some((found, value)) => {
            let why = match &value {
                Value::String(_) => "the text is empty".to_owned(),
                _ => located::not_a_string(&value),
            };
            problems.push(found.place.problem(format!("{path}.{key}: {why}")));
            None
        }
    };
    let (object, version, node, rule) = (text("object"), text("version"), text("path"), text("rule"));
    let (reason, expires) = (text("reason"), text("expires"));
    let date = expires.as_deref().and_then(Date::parse);
    if let (Some(expires), None, Some(found)) = (&expires, date, item.get("expires")) {
        problems.push(found.place.problem(format!("{path}.expires: {expires:?} is not a date such as 2026-12-31")));
    }
    if item.get("reason").is_none() {
        let help = "say why these findings may pass; gantry shows the reason with each of them";
        problems.push(item.place.problem(format!("{path} has no reason")).help(help));
    }
    if ["object", "version", "path", "rule"].iter().all(|key| item.get(key).is_none()) {
        let help = "name at least one of object, version, path and rule";
        problems.push(item.place.problem(format!("{path} would waive every finding")).help(help));
    }
    if problems.len() > found {
        return None;
    }
    let at = item.place.location().cloned();
    Some(Waiver { object, version, path: node, rule, reason: reason?, expires: date, at })
}
