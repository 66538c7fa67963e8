//! The entries of `preflightRules`.

use std::collections::BTreeMap;

use figment::value::{Dict, Value};

use super::ConfigDocumentReader;
use super::nodes::{entries, entry, is_null, text_of};
use crate::config::custom;
use crate::config::keys::{RULE_KEYS, RULES, SECTIONS};
use crate::config::origin::SettingOrigin;
use gantry_core::problem::Location;
use gantry_yaml::{Data, MappingEntry, Span, YamlNode};

impl ConfigDocumentReader<'_> {
    pub(super) fn read_rules(&mut self, entry: &MappingEntry) {
        let Data::Sequence(items) = &entry.value.data else {
            let help = "write a list: - name: CRDUpgradeSafety".to_owned();
            return self.report_problem(&entry.value.span, format!("{RULES} is not a list"), Some(help));
        };
        let mut seen: BTreeMap<String, Location> = BTreeMap::new();
        let mut order = Vec::new();
        let mut rules = Dict::new();
        for (index, item) in items.iter().enumerate() {
            if let Some((name, span)) = self.rule_name(index, item) {
                if let Some(first) = seen.get(&name) {
                    let help = format!("first defined at {first}; keep one of them");
                    let message = format!("duplicate preflight check in configuration: {name:?}");
                    self.report_problem(&span, message, Some(help));
                    continue;
                }
                if let SettingOrigin::File(location) = self.place(&span) {
                    seen.insert(name.clone(), location);
                }
                let rule = self.rule(&name, item);
                self.remember(&[RULES, &name], &span, &item.span);
                rules.insert(name.clone(), rule.into());
                order.push(name);
            }
        }
        let place = self.place(&entry.key_span);
        self.layer.set(RULES, rules.into(), place);
        self.layer.rules = Some(order);
    }

    fn rule_name(&mut self, index: usize, item: &YamlNode) -> Option<(String, Span)> {
        let path = format!("{RULES}[{index}]");
        if entries(item).is_none() {
            let help = text_of(item).map(|name| format!("write \"- name: {name}\""));
            self.report_problem(&item.span, format!("{path} is not a mapping"), help);
            return None;
        }
        let name = entry(item, "name").filter(|entry| !is_null(&entry.value));
        let Some(name) = name else {
            self.report_problem(
                &item.span,
                format!("{path} has no name"),
                Some("name the check: - name: CRDUpgradeSafety".into()),
            );
            return None;
        };
        match text_of(&name.value) {
            Some(text) if !text.is_empty() => Some((text.to_owned(), name.value.span.clone())),
            _ => {
                self.report_problem(&name.value.span, format!("{path}.name is not a non-empty string"), None);
                None
            }
        }
    }

    /// Reads `enabled` and the sections of one entry.
    fn rule(&mut self, name: &str, item: &YamlNode) -> Dict {
        let mut rule = Dict::new();
        for entry in entries(item).unwrap_or_default() {
            let path = format!("{RULES}[{name}].{}", entry.key);
            let steps = [RULES, name, entry.key.as_str()];
            match (entry.key.as_str(), &entry.value.data) {
                ("name", _) => {}
                (key, Data::Scalar(serde_json::Value::Null)) if RULE_KEYS.contains(&key) => {}
                ("enabled", Data::Scalar(serde_json::Value::Bool(enabled))) => {
                    self.remember(&steps, &entry.key_span, &entry.value.span);
                    rule.insert("enabled".into(), Value::from(*enabled));
                }
                ("enabled", _) => {
                    let value = entry.value.to_value();
                    self.report_problem(&entry.value.span, format!("{path}: {value} is not true or false"), None);
                }
                (section, Data::Mapping(_)) if SECTIONS.contains(&section) => {
                    self.remember(&steps, &entry.key_span, &entry.value.span);
                    let mut value = self.free(&steps.map(str::to_owned), &entry.value);
                    if section == "exec" {
                        custom::start_at_folder(&mut value, self.text.folder);
                    }
                    rule.insert(section.into(), value);
                }
                (section, _) if SECTIONS.contains(&section) => {
                    self.report_problem(&entry.value.span, format!("{path} is not a mapping"), None);
                }
                _ => self.unknown_key(&path, entry, RULE_KEYS),
            }
        }
        rule
    }
}
