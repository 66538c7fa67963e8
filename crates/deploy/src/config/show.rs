//! `gantry config show`: the merged configuration, each value with its origin.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use gantry_core::text::{sanitize, yaml_quoted};
use gantry_yaml::{self as yaml, Data};

use super::keys::{API_VERSION, ConfigKey, HIDDEN, KEYS, KIND, RULES, SECTIONS, SettingKind};
use super::located::{LocatedData, LocatedValue};
use super::origin::{Layer, SettingOrigin};
use super::selected::Switch;
use super::settings::Settings;

/// One value of the merged configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// The path, such as `preflightRules[CRDUpgradeSafety].config.mode`.
    pub path: String,
    /// The value as a file would have it.
    pub value: Value,
    /// The layer, such as `project file`.
    pub layer: String,
    /// The place, such as `gantry.yaml:4:11`, `GANTRY_COLOR` or `--color`; empty for a default.
    pub source: String,
}

/// The maximum column at which comments are aligned. Longer lines have their comment directly after them.
const MAX_COMMENT_COLUMN: usize = 56;

/// A line of YAML and the comment after it.
struct CommentedYamlLine {
    yaml: String,
    comment: Option<String>,
}

impl Settings {
    /// Every value as data, in the order of the documentation.
    pub fn list(&self) -> Vec<Setting> {
        let mut list = Vec::new();
        for switch in &self.switches {
            let path = format!("{RULES}[{}]", switch.name);
            list.push(Setting {
                path: format!("{path}.enabled"),
                value: switch.enabled.into(),
                layer: switch.layer.to_string(),
                source: switch.place.to_string(),
            });
            for (section, found) in self.sections(switch) {
                leaves(&format!("{path}.{section}"), found, &mut list);
            }
        }
        for key in KEYS.iter().filter(|key| key.path != RULES) {
            if let Some(found) = self.tree.at(key.path) {
                leaves(key.path, &hide_secret(key, found), &mut list);
            }
        }
        list
    }

    /// The merged configuration as a Config that can be loaded again, with the origin of each value in a comment.
    pub fn show(&self) -> String {
        let plain = |yaml: String| CommentedYamlLine { yaml, comment: None };
        let mut lines = vec![plain(format!("apiVersion: {API_VERSION}")), plain(format!("kind: {KIND}"))];
        let open = if self.switches.is_empty() { " []" } else { "" };
        lines.push(plain(format!("{RULES}:{open}")));
        for switch in &self.switches {
            lines.push(plain(format!("- name: {}", scalar(&switch.name.as_str().into()))));
            let comment = Some(origin(switch.layer, &switch.place));
            lines.push(CommentedYamlLine { yaml: format!("  enabled: {}", switch.enabled), comment });
            for (section, found) in self.sections(switch) {
                write(&format!("  {section}:"), 4, found, &mut lines);
            }
        }
        let mut parent = "";
        for key in KEYS.iter().filter(|key| key.path != RULES) {
            let Some(found) = self.tree.at(key.path) else { continue };
            let found = &*hide_secret(key, found);
            match key.path.split_once('.') {
                None => write(&format!("{}:", key.path), 2, found, &mut lines),
                Some((above, name)) => {
                    if parent != above {
                        lines.push(plain(format!("{above}:")));
                        parent = above;
                    }
                    write(&format!("  {name}:"), 4, found, &mut lines);
                }
            }
        }
        align(&lines)
    }

    /// The sections of a check's entry: everything but `name` and `enabled`.
    fn sections(&self, switch: &Switch) -> impl Iterator<Item = (&'static str, &LocatedValue)> {
        let rule = self.tree.get(RULES).and_then(|rules| rules.get(&switch.name));
        SECTIONS.iter().filter_map(move |section| Some((*section, rule?.get(section)?)))
    }
}

/// The value of a key without what must not be shown.
fn hide_secret<'a>(key: &ConfigKey, found: &'a LocatedValue) -> Cow<'a, LocatedValue> {
    match key.kind {
        SettingKind::Secret => Cow::Owned(LocatedValue { data: LocatedData::Scalar(HIDDEN.into()), ..found.clone() }),
        _ => Cow::Borrowed(found),
    }
}

fn leaves(path: &str, node: &LocatedValue, list: &mut Vec<Setting>) {
    match &node.data {
        LocatedData::Map(map) if !map.is_empty() => {
            map.iter().for_each(|(key, value)| leaves(&format!("{path}.{key}"), value, list));
        }
        _ => list.push(Setting {
            path: path.to_owned(),
            value: node.to_value(),
            layer: node.layer.to_string(),
            source: node.place.to_string(),
        }),
    }
}

/// Writes `node` after `head` (`key:` or `-`), with its children at `indent`.
fn write(head: &str, indent: usize, node: &LocatedValue, lines: &mut Vec<CommentedYamlLine>) {
    let comment = Some(origin(node.layer, &node.place));
    let margin = " ".repeat(indent);
    match &node.data {
        LocatedData::Scalar(value) => {
            lines.push(CommentedYamlLine { yaml: format!("{head} {}", scalar(value)), comment })
        }
        LocatedData::List(items) if items.is_empty() => {
            lines.push(CommentedYamlLine { yaml: format!("{head} []"), comment })
        }
        LocatedData::Map(map) if map.is_empty() => {
            lines.push(CommentedYamlLine { yaml: format!("{head} {{}}"), comment })
        }
        LocatedData::List(items) => {
            lines.push(CommentedYamlLine { yaml: head.to_owned(), comment: None });
            items.iter().for_each(|item| write(&format!("{margin}-"), indent + 2, item, lines));
        }
        LocatedData::Map(map) => {
            lines.push(CommentedYamlLine { yaml: head.to_owned(), comment: None });
            for (key, value) in map {
                write(&format!("{margin}{}:", scalar(&key.as_str().into())), indent + 2, value, lines);
            }
        }
    }
}

fn origin(layer: Layer, place: &SettingOrigin) -> String {
    let place = match place {
        SettingOrigin::File(location) => format!("{}:{}", location.file, location.line),
        other => other.to_string(),
    };
    // A file name can contain any character, but a line feed would end the comment.
    sanitize(format!("{layer} {place}").trim_end()).into_owned()
}

/// A scalar as YAML: plain if a plain scalar parses to the same value, otherwise quoted with control characters
/// escaped.
fn scalar(value: &Value) -> String {
    if let Value::String(text) = value {
        let simple = |c: char| c.is_alphanumeric() || "-_./=+".contains(c);
        let reads_as_itself =
            || yaml::parse(text).is_ok_and(|node| node.is_some_and(|node| node.data == Data::Scalar(value.clone())));
        if text.chars().all(simple) && !text.starts_with(['-', '.', '=']) && reads_as_itself() {
            return text.clone();
        }
        return yaml_quoted(text.chars());
    }
    value.to_string()
}

fn align(lines: &[CommentedYamlLine]) -> String {
    let width = |line: &CommentedYamlLine| line.yaml.chars().count();
    let commented = lines.iter().filter(|line| line.comment.is_some());
    let column = commented.map(width).filter(|width| *width <= MAX_COMMENT_COLUMN).max().unwrap_or(0);
    let mut out = String::new();
    for line in lines {
        out.push_str(&line.yaml);
        if let Some(comment) = &line.comment {
            out.push_str(&" ".repeat(column.saturating_sub(width(line))));
            out.push_str("  # ");
            out.push_str(comment);
        }
        out.push('\n');
    }
    out
}
