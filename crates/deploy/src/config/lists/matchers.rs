//! Reads resource matchers and paths to fields.

use serde_json::Value as Json;

use super::{RuleListReader, items};
use crate::config::located::LocatedValue;
use gantry_core::matcher::{FieldPathStep, KeyPattern, Matcher};

impl RuleListReader {
    pub(super) fn matchers(&mut self, item: &LocatedValue, path: &str) -> Vec<Matcher> {
        if item.get("resourceMatchers").is_none() {
            let help =
                "without matchers, the rule matches no object; to match all: resourceMatchers: [{allMatcher: {}}]";
            self.report_missing_key(item, path, "resourceMatchers", help);
        }
        let below = self.items_below(item, path, "resourceMatchers");
        below.into_iter().filter_map(|(path, item)| self.matcher(item, &path)).collect()
    }

    pub(super) fn matcher(&mut self, item: &LocatedValue, path: &str) -> Option<Matcher> {
        const MATCHERS: &[&str] = &[
            "allMatcher",
            "anyMatcher",
            "notMatcher",
            "andMatcher",
            "apiGroupKindMatcher",
            "apiVersionKindMatcher",
            "kindNamespaceNameMatcher",
            "hasAnnotationMatcher",
            "hasNamespaceMatcher",
            "customResourceMatcher",
            "emptyFieldMatcher",
        ];
        self.check_mapping(item, path, MATCHERS)?;
        let mut entries = item.entries();
        let (Some((name, value)), None) = (entries.next(), entries.next()) else {
            let problem = item.place.problem(format!("{path} must have exactly one matcher"));
            self.problems.push(problem.help("write one matcher in each item of the list"));
            return None;
        };
        let path = &format!("{path}.{name}");
        let known: &[&str] = match name {
            "anyMatcher" | "andMatcher" => &["matchers"],
            "notMatcher" => &["matcher"],
            "apiGroupKindMatcher" => &["apiGroup", "kind"],
            "apiVersionKindMatcher" => &["apiVersion", "kind"],
            "kindNamespaceNameMatcher" => &["kind", "namespace", "name"],
            "hasAnnotationMatcher" => &["keys"],
            "hasNamespaceMatcher" => &["names"],
            "emptyFieldMatcher" => &["path"],
            _ => &[],
        };
        self.check_mapping(value, path, known)?;
        Some(match name {
            "allMatcher" => Matcher::All,
            "anyMatcher" | "andMatcher" => {
                let below = self.items_below(value, path, "matchers");
                let count = below.len();
                let matchers: Vec<Matcher> =
                    below.into_iter().filter_map(|(path, item)| self.matcher(item, &path)).collect();
                if matchers.len() < count {
                    return None;
                }
                if name == "anyMatcher" { Matcher::Any(matchers) } else { Matcher::And(matchers) }
            }
            "notMatcher" => match value.get("matcher") {
                Some(matcher) => Matcher::Not(Box::new(self.matcher(matcher, &format!("{path}.matcher"))?)),
                None => {
                    self.report_problem(&value.place, format!("{path} has no matcher"));
                    return None;
                }
            },
            "apiGroupKindMatcher" => Matcher::GroupKind {
                group: self.text(value, path, "apiGroup").unwrap_or_default(),
                kind: self.required_text(value, path, "kind")?,
            },
            "apiVersionKindMatcher" => Matcher::VersionKind {
                api_version: self.required_text(value, path, "apiVersion")?,
                kind: self.required_text(value, path, "kind")?,
            },
            "kindNamespaceNameMatcher" => Matcher::Name {
                kind: self.required_text(value, path, "kind")?,
                namespace: self.text(value, path, "namespace").unwrap_or_default(),
                name: self.required_text(value, path, "name")?,
            },
            "hasAnnotationMatcher" => Matcher::Annotations(self.texts(value, path, "keys")),
            "hasNamespaceMatcher" => Matcher::Namespaces(self.texts(value, path, "names")),
            "customResourceMatcher" => Matcher::CustomResource,
            _ => Matcher::EmptyField(self.path(value, path, "path")?),
        })
    }

    /// A path to a field, from keys, `{allIndexes: true}`, `{index: 0}` and `{regex: ^a}`.
    pub(super) fn path(&mut self, item: &LocatedValue, path: &str, key: &str) -> Option<Vec<FieldPathStep>> {
        let Some(found) = item.get(key) else {
            self.report_problem(&item.place, format!("{path} has no {key}"));
            return None;
        };
        self.steps(found, &format!("{path}.{key}"))
    }

    pub(super) fn steps(&mut self, found: &LocatedValue, path: &str) -> Option<Vec<FieldPathStep>> {
        let items = items(found);
        let named = items.iter().enumerate().map(|(index, item)| (item, format!("{path}[{index}]")));
        let parts: Vec<FieldPathStep> = named.filter_map(|(item, path)| self.part(item, &path)).collect();
        if items.is_empty() {
            self.report_problem(&found.place, format!("{path} is not a non-empty list of steps to a field"));
        }
        (!items.is_empty() && parts.len() == items.len()).then_some(parts)
    }

    pub(super) fn part(&mut self, item: &LocatedValue, path: &str) -> Option<FieldPathStep> {
        let value = item.to_value();
        if let Some(found) = item.get("regex").filter(|_| item.entries().count() == 1)
            && let Json::String(source) = found.to_value()
        {
            return match KeyPattern::new(&source) {
                Ok(pattern) => Some(FieldPathStep::Matching(pattern)),
                Err(why) => {
                    self.report_problem(
                        &found.place,
                        format!("{path}.regex: {source:?} is not a regular expression: {why}"),
                    );
                    None
                }
            };
        }
        let part = match &value {
            Json::String(key) => Some(FieldPathStep::Key(key.clone())),
            Json::Object(map) if map.len() == 1 => match (map.get("allIndexes"), map.get("index")) {
                (Some(Json::Bool(true)), _) => Some(FieldPathStep::All),
                (_, Some(index)) => {
                    index.as_u64().and_then(|index| usize::try_from(index).ok()).map(FieldPathStep::Index)
                }
                _ => None,
            },
            _ => None,
        };
        if part.is_none() {
            let message = format!("{path}: {value} is not a step of a path");
            let help = "a step is the name of a field, {allIndexes: true}, {index: 0} or {regex: ^prefix}";
            self.problems.push(item.place.problem(message).help(help));
        }
        part
    }
}
