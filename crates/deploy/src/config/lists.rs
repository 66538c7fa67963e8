//! Lists of rules about objects: the lists of kapp's Config that gantry reads, in kapp's documents and in its own.
//!
//! Their form follows kapp's documentation of its Config. Unlike other lists, the lists of all layers are concatenated,
//! in the order of the layers.

mod matchers;
mod waits;

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::kapp_defaults;
use super::keys::{self, SettingKind};
use super::layer::LayerData;
use super::located::{self, LocatedData, LocatedValue};
use super::origin::SettingOrigin;
use crate::plan::graph::bindings::{GROUP_BINDINGS, GroupBinding, OrderBindings, RULE_BINDINGS, RuleBinding};
use crate::plan::graph::rule::{OrderRulePattern, check_group};
use crate::plan::rebase_rules::{RebaseRule, RebaseSource};
use crate::readiness::rules::WaitRule;
use gantry_core::matcher::{FieldPathStep, Matcher};
use gantry_core::problem::{Location, Problem, did_you_mean, not_one_of};

const WAIT_RULES: &str = "waitRules";
const REBASE_RULES: &str = "rebaseRules";
const MASK_RULES: &str = "diffMaskRules";
const EXCLUSION_RULES: &str = "diffAgainstExistingFieldExclusionRules";
const LABELS: &str = "additionalLabels";

/// The keys of the lists that are concatenated.
pub(super) fn concatenated_list_keys() -> impl Iterator<Item = &'static str> {
    keys::KEYS.iter().filter(|key| key.kind == SettingKind::Bindings).map(|key| key.path)
}

/// The list of this name with the items of all layers; `None` if no layer has one.
pub(super) fn merge(layers: &[LayerData], name: &str) -> Option<LocatedValue> {
    let mut merged: Option<LocatedValue> = None;
    for list in layers.iter().filter_map(|layer| layer.lists.get(name)) {
        match &mut merged {
            Some(LocatedValue { data: LocatedData::List(all), layer, .. }) => {
                if let LocatedData::List(items) = &list.data {
                    all.extend(items.iter().cloned());
                }
                *layer = list.layer;
            }
            _ => merged = Some(list.clone()),
        }
    }
    merged
}

/// The rules of all lists.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredRules {
    /// What orders the writes: kapp's change groups and change rules.
    pub bindings: OrderBindings,
    /// The first rule that matches an object determines when it is ready.
    pub waits: Vec<WaitRule>,
    /// Which fields of live objects are kept.
    pub rebases: Vec<RebaseRule>,
    /// Fields whose values are masked in diffs.
    pub masks: Vec<FieldRule>,
    /// Fields that are left out of diffs.
    pub unseen: Vec<FieldRule>,
    /// Labels that are set on every object.
    pub labels: BTreeMap<String, String>,
    /// The place of `templateRules` in a document of kapp.
    pub templates: Option<Location>,
}

/// A field of the objects that the matchers match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRule {
    /// The objects; one that matches is enough.
    pub matchers: Vec<Matcher>,
    /// The field.
    pub path: Vec<FieldPathStep>,
}

/// Reads the lists of the merged tree. Each problem has its line.
pub(super) fn read(tree: &LocatedValue, layers: &[LayerData]) -> (ConfiguredRules, Vec<Problem>) {
    let mut reader = RuleListReader { problems: Vec::new() };
    let groups = reader.list(tree, GROUP_BINDINGS, RuleListReader::group_binding);
    let rules = reader.list(tree, RULE_BINDINGS, RuleListReader::rule_binding);
    let waits = reader.list(tree, WAIT_RULES, RuleListReader::wait_rule);
    let rebases = reader.list(tree, REBASE_RULES, RuleListReader::rebase_rule);
    let masks = reader.list(tree, MASK_RULES, RuleListReader::field_rule);
    let unseen = reader.list(tree, EXCLUSION_RULES, RuleListReader::field_rule);
    let label = |(key, value): (&str, &LocatedValue)| match value.to_value() {
        Json::String(value) => Some((key.to_owned(), value)),
        _ => None,
    };
    let labels = tree.get(LABELS).into_iter().flat_map(LocatedValue::entries).filter_map(label).collect();
    let templates = layers.iter().filter_map(|layer| layer.templates.as_ref()?.location().cloned()).next();
    let bindings = OrderBindings { groups, rules };
    (ConfiguredRules { bindings, waits, rebases, masks, unseen, labels, templates }, reader.problems)
}

struct RuleListReader {
    problems: Vec<Problem>,
}

impl RuleListReader {
    fn report_problem(&mut self, place: &SettingOrigin, message: String) {
        self.problems.push(place.problem(message));
    }

    /// The valid items of the list of this name.
    fn list<T>(
        &mut self,
        tree: &LocatedValue,
        name: &str,
        read: impl Fn(&mut Self, &LocatedValue, &str) -> Option<T>,
    ) -> Vec<T> {
        let items = tree.get(name).map(items).unwrap_or_default();
        let named = items.iter().enumerate().map(|(index, item)| (item, format!("{name}[{index}]")));
        named.filter_map(|(item, path)| read(self, item, &path)).collect()
    }

    /// Reports a problem if the item is not a mapping or has an unknown key.
    fn check_mapping(&mut self, item: &LocatedValue, path: &str, known: &[&str]) -> Option<()> {
        let LocatedData::Map(_) = item.data else {
            self.report_problem(&item.place, format!("{path} is not a mapping"));
            return None;
        };
        let mut is_known = Some(());
        for (key, value) in item.entries().filter(|(key, _)| !known.contains(key)) {
            let help = match did_you_mean(key, known.iter().copied()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("known keys: {}", known.join(", ")),
            };
            self.problems.push(value.key.problem(format!("unknown key \"{path}.{key}\"")).help(help));
            is_known = None;
        }
        is_known
    }

    fn report_missing_key(&mut self, item: &LocatedValue, path: &str, key: &str, help: &str) {
        self.problems.push(item.place.problem(format!("{path} has no {key}")).help(help));
    }

    /// A string, which may be empty; `None` if the key is absent or its value is not a string.
    fn text(&mut self, item: &LocatedValue, path: &str, key: &str) -> Option<String> {
        let found = item.get(key)?;
        match found.to_value() {
            Json::String(text) => Some(text),
            value => {
                self.report_problem(&found.place, format!("{path}.{key}: {}", located::not_a_string(&value)));
                None
            }
        }
    }

    /// A required string.
    fn required_text(&mut self, item: &LocatedValue, path: &str, key: &str) -> Option<String> {
        if item.get(key).is_none() {
            self.report_problem(&item.place, format!("{path} has no {key}"));
        }
        self.text(item, path, key)
    }

    fn bool(&mut self, item: &LocatedValue, path: &str, key: &str) -> bool {
        match item.get(key).map(|found| (found, found.to_value())) {
            None => false,
            Some((_, Json::Bool(value))) => value,
            Some((found, value)) => {
                self.report_problem(&found.place, format!("{path}.{key}: {value} is not true or false"));
                false
            }
        }
    }

    /// The list below a key, with the path of each item; empty if there is none.
    fn items_below<'a>(&mut self, item: &'a LocatedValue, path: &str, key: &str) -> Vec<(String, &'a LocatedValue)> {
        match item.get(key) {
            None => Vec::new(),
            Some(LocatedValue { data: LocatedData::List(items), .. }) => {
                items.iter().enumerate().map(|(index, item)| (format!("{path}.{key}[{index}]"), item)).collect()
            }
            Some(found) => {
                self.report_problem(&found.place, format!("{path}.{key} is not a list"));
                Vec::new()
            }
        }
    }

    fn texts(&mut self, item: &LocatedValue, path: &str, key: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for (path, item) in self.items_below(item, path, key) {
            match item.to_value() {
                Json::String(text) => texts.push(text),
                value => self.report_problem(&item.place, format!("{path}: {}", located::not_a_string(&value))),
            }
        }
        texts
    }

    fn group_binding(&mut self, item: &LocatedValue, path: &str) -> Option<GroupBinding> {
        self.check_mapping(item, path, &["name", "resourceMatchers"])?;
        let matchers = self.matchers(item, path);
        let name = self.required_text(item, path, "name")?;
        let found = item.get("name")?;
        if let Err(why) = check_group(&name) {
            self.report_problem(&found.place, format!("{path}.name: {why}"));
            return None;
        }
        Some(GroupBinding { name, matchers, at: found.place.location().cloned() })
    }

    fn rule_binding(&mut self, item: &LocatedValue, path: &str) -> Option<RuleBinding> {
        self.check_mapping(item, path, &["rules", "ignoreIfCyclical", "resourceMatchers"])?;
        if item.get("rules").is_none() {
            self.report_missing_key(
                item,
                path,
                "rules",
                "example: \"upsert after upserting apps.example.com/database\"",
            );
        }
        let mut rules = Vec::new();
        for (path, item) in self.items_below(item, path, "rules") {
            match item.to_value() {
                Json::String(text) => match OrderRulePattern::parse(&text) {
                    Ok(pattern) => rules.push((pattern, item.place.location().cloned())),
                    Err(why) => self.report_problem(&item.place, format!("{path}: {why}")),
                },
                value => self.report_problem(&item.place, format!("{path}: {}", located::not_a_string(&value))),
            }
        }
        let ignore_if_cyclical = self.bool(item, path, "ignoreIfCyclical");
        Some(RuleBinding { rules, ignore_if_cyclical, matchers: self.matchers(item, path) })
    }
}

impl RuleListReader {
    fn rebase_rule(&mut self, item: &LocatedValue, path: &str) -> Option<RebaseRule> {
        self.check_mapping(item, path, &["path", "paths", "type", "sources", "ytt", "resourceMatchers"])?;
        if let Some(ytt) = item.get("ytt") {
            if kapp_defaults::keeps_secrets_of_service_accounts(&item.to_value()) {
                return None;
            }
            let problem = ytt.key.problem(format!("{path}.ytt: gantry does not run ytt overlays"));
            self.problems.push(problem.help("use path and type: copy to keep the live value of a field"));
            return None;
        }
        let matchers = self.matchers(item, path);
        let mut paths = Vec::new();
        match (item.get("path"), item.get("paths")) {
            (Some(_), None) => paths.extend(self.path(item, path, "path").map(|steps| (path.to_owned(), item, steps))),
            (None, Some(_)) => {
                for (path, found) in self.items_below(item, path, "paths") {
                    paths.extend(self.steps(found, &path).map(|steps| (path, found, steps)));
                }
            }
            (Some(_), Some(both)) => {
                self.report_problem(&both.key, format!("{path} has both path and paths; keep one of them"))
            }
            (None, None) => self.report_problem(&item.place, format!("{path} has no path")),
        }
        for (path, found, _) in paths
            .iter()
            .filter(|(_, _, steps)| !matches!(steps.last(), Some(FieldPathStep::Key(_) | FieldPathStep::Matching(_))))
        {
            self.report_problem(
                &found.place,
                format!("{path}: the last step of the path must be a field name or a regex"),
            );
        }
        let sources = match self.required_text(item, path, "type")?.as_str() {
            "remove" => None,
            "copy" => Some(self.sources(item, path)?),
            other => {
                let place = item.get("type").map_or(&item.place, |found| &found.place);
                self.report_problem(place, format!("{path}.type: {}", not_one_of(other, &["copy", "remove"])));
                return None;
            }
        };
        let paths = paths.into_iter().map(|(.., steps)| steps).collect();
        Some(RebaseRule { matchers, paths, sources })
    }

    fn sources(&mut self, item: &LocatedValue, path: &str) -> Option<Vec<RebaseSource>> {
        let below = self.items_below(item, path, "sources");
        if below.is_empty() {
            self.report_missing_key(
                item,
                path,
                "sources",
                "write sources: [existing, new] to prefer the value of the live object",
            );
            return None;
        }
        let mut sources = Vec::new();
        for (path, item) in below {
            match item.to_value().as_str() {
                Some("new") => sources.push(RebaseSource::New),
                Some("existing") => sources.push(RebaseSource::Existing),
                Some(other) => {
                    self.report_problem(&item.place, format!("{path}: {}", not_one_of(other, &["existing", "new"])))
                }
                None => {
                    self.report_problem(&item.place, format!("{path}: {}", located::not_a_string(&item.to_value())))
                }
            }
        }
        Some(sources)
    }

    fn field_rule(&mut self, item: &LocatedValue, path: &str) -> Option<FieldRule> {
        self.check_mapping(item, path, &["path", "resourceMatchers"])?;
        let matchers = self.matchers(item, path);
        Some(FieldRule { matchers, path: self.path(item, path, "path")? })
    }
}

fn items(list: &LocatedValue) -> &[LocatedValue] {
    match &list.data {
        LocatedData::List(items) => items,
        _ => &[],
    }
}
