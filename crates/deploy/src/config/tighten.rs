//! Limits what a Config document among the manifests may do: add checks and make them stricter.
//!
//! Manifests are data that others may have written. If a file of the team has an entry for a check, a document among
//! the manifests cannot weaken the check. If no file has one, the document may set the keys that kapp would read. Other
//! settings are removed from the layer before the layers are merged, so the merged configuration is the effective one.
//! A notice names each removed setting.

use std::collections::BTreeMap;

use figment::value::{Dict, Value};

use super::check::{AmongManifests, KeyDescription, KnownCheck, KnownPreflightRules};
use super::custom;
use super::environment::CheckSelection;
use super::keys::RULES;
use super::layer::{self, LayerData};
use super::located::LocatedData;
use super::merge::Merged;
use super::origin::{Layer, SettingOrigin};
use super::selected::SelectedCheck;
use gantry_core::problem::Problem;
use gantry_core::text;

const FROM_FILES: &str = "set it in a configuration file (gantry.yaml, or -c FILE)";

/// Removes settings that would weaken a check from the layers of the manifests. Returns a notice for each. `named` are
/// the checks that the flag or the variable names.
pub(super) fn remove_weaker_settings(
    layers: &mut [LayerData],
    named: Option<&CheckSelection>,
    known: &KnownPreflightRules,
) -> Vec<Problem> {
    let mut checks = of_team(layers, known);
    let mut notices = Vec::new();
    for layer in layers.iter_mut().filter(|layer| layer.layer == Layer::Manifests) {
        for name in layer.rules.clone().unwrap_or_default() {
            let is_own = !known.has(&name);
            let check = checks.entry(name.clone()).or_default();
            // Manifests may configure a check that only they define.
            if is_own && check.team.is_none() {
                continue;
            }
            let mut entry = DocumentRuleEntry { name: &name, layer: &mut *layer, notices: &mut notices };
            entry.check_enabled(check, named);
            let keys = match known.checks.iter().find(|known| known.name == name) {
                Some(known) => known.keys(),
                None => KnownCheck::keys_of_mode_alone(),
            };
            entry.check_config(check, &keys);
        }
    }
    notices
}

/// The configuration of a check in the layers so far.
#[derive(Default)]
struct CheckState {
    /// The place of the last entry for the check in a file of the team, if any.
    team: Option<SettingOrigin>,
    enabled: Option<bool>,
    config: Dict,
    runs_program: bool,
}

fn of_team(layers: &[LayerData], known: &KnownPreflightRules) -> BTreeMap<String, CheckState> {
    let mut checks: BTreeMap<String, CheckState> = BTreeMap::new();
    for layer in layers.iter().filter(|layer| layer.layer.is_of_team()) {
        for name in layer.rules.iter().flatten() {
            let check = checks.entry(name.clone()).or_default();
            check.team = Some(layer.place(&[RULES, name]));
            let Some(rule) = custom::rule(layer, name) else { continue };
            check.enabled = rule.get("enabled").and_then(Value::to_bool).or(check.enabled);
            check.config.extend(rule.get("config").and_then(Value::as_dict).cloned().unwrap_or_default());
            check.runs_program |= known.kinds.iter().any(|kind| kind.runs_programs && rule.contains_key(kind.key));
        }
    }
    checks
}

/// One entry of `preflightRules` of a document among the manifests.
struct DocumentRuleEntry<'a> {
    name: &'a str,
    layer: &'a mut LayerData,
    notices: &'a mut Vec<Problem>,
}

impl DocumentRuleEntry<'_> {
    /// Checks `enabled`.
    fn check_enabled(&mut self, check: &mut CheckState, named: Option<&CheckSelection>) {
        let rule = custom::rule(self.layer, self.name);
        let Some(enabled) = rule.and_then(|rule| rule.get("enabled")).and_then(Value::to_bool) else { return };
        let runs = check.enabled.unwrap_or(true);
        if let Some(team) = &check.team {
            match enabled {
                _ if enabled == runs => self.remove(&["enabled"]),
                // The team does not want the program to run.
                true if !check.runs_program => check.enabled = Some(true),
                _ => {
                    let help = configured_at(team);
                    self.report_ignored(&["enabled"], &format!("enabled: {enabled}"), &help);
                }
            }
        } else if !enabled && let Some(named) = named.filter(|named| named.names.iter().any(|name| name == self.name)) {
            self.report_ignored(&["enabled"], "enabled: false", &format!("{} names the check", named.place));
        } else {
            check.enabled = Some(enabled);
        }
    }

    /// Checks `config`.
    fn check_config(&mut self, check: &mut CheckState, keys: &[KeyDescription]) {
        let rule = custom::rule(self.layer, self.name);
        let config = rule.and_then(|rule| rule.get("config")).and_then(Value::as_dict).cloned().unwrap_or_default();
        for (key, value) in config {
            // Unknown keys and words are reported when the configuration is read.
            let Some(known) = keys.iter().find(|known| known.name == key) else { continue };
            let steps = ["config", key.as_str()];
            let default = || known.default().map(Value::from);
            let now = check.config.get(&key).cloned();
            if now.as_ref() == Some(&value) {
                self.remove(&steps);
                continue;
            }
            let word = value.as_str().map(str::to_owned);
            let shown = match &word {
                Some(word) => format!("{key}: {}", text::cut(&text::sanitize(word), 60)),
                None => key.clone(),
            };
            if known.among_manifests == AmongManifests::Nothing {
                if now.or_else(|| schema_default(known)).as_ref() == Some(&value) {
                    self.remove(&steps);
                } else {
                    self.report_ignored(&steps, &shown, FROM_FILES);
                }
                continue;
            }
            let rank = |value: &Value| value.as_str().and_then(|word| known.rank(word));
            let Some(rank_of_new) = rank(&value) else { continue };
            if now.as_ref().is_some_and(|now| rank(now).is_none()) {
                // The team's own value is invalid. Do not override it, so it is reported.
                self.remove(&steps);
                continue;
            }
            let weaker = now.or_else(default).as_ref().and_then(rank).is_some_and(|now| now < rank_of_new);
            match (&check.team, known.among_manifests) {
                (Some(team), _) if weaker => {
                    let help = configured_at(team);
                    self.report_ignored(&steps, &shown, &help);
                }
                (None, AmongManifests::Tighten) if weaker => self.report_ignored(&steps, &shown, FROM_FILES),
                _ => {
                    check.config.insert(key, value);
                }
            }
        }
    }

    fn report_ignored(&mut self, steps: &[&str], what: &str, help: &str) {
        let mut path = vec![RULES, self.name];
        path.extend(steps);
        let message = format!(
            "ignored: {what} of the check {:?}; a Config document among the manifests may only make a check stricter",
            self.name
        );
        self.notices.push(self.layer.place(&path).problem(message).help(help));
        self.remove(steps);
    }

    fn remove(&mut self, steps: &[&str]) {
        let Some(Value::Dict(_, rules)) = self.layer.values.get_mut(RULES) else { return };
        let Some((last, parents)) = steps.split_last() else { return };
        let mut dict = match rules.get_mut(self.name) {
            Some(Value::Dict(_, rule)) => rule,
            _ => return,
        };
        for step in parents {
            dict = match dict.get_mut(*step) {
                Some(Value::Dict(_, below)) => below,
                _ => return,
            };
        }
        dict.remove(*last);
    }
}

fn schema_default(key: &KeyDescription) -> Option<Value> {
    let default = &key.schema["default"];
    (!default.is_null()).then(|| layer::value(default))
}

fn configured_at(team: &SettingOrigin) -> String {
    match team.location() {
        Some(at) => format!("the check is configured at {}:{}; change it there, or with -c FILE", at.file, at.line),
        None => FROM_FILES.to_owned(),
    }
}

/// Notices about checks that the manifests make weaker than the default. This is allowed only if no file of the team
/// configures the check.
pub(super) fn weakened_checks(checks: &[SelectedCheck], merged: &Merged, known: &KnownPreflightRules) -> Vec<Problem> {
    let mut notices = Vec::new();
    for check in checks {
        let Some(entry) = known.checks.iter().find(|known| known.name == check.name) else { continue };
        let rule = merged.tree.get(RULES).and_then(|rules| rules.get(&check.name));
        let Some(config) = rule.and_then(|rule| rule.get("config")) else { continue };
        for key in entry.keys() {
            let Some(found) = config.get(key.name).filter(|found| found.layer == Layer::Manifests) else { continue };
            let LocatedData::Scalar(serde_json::Value::String(word)) = &found.data else { continue };
            let default = key.default().and_then(|default| key.rank(&default));
            if key.rank(word).zip(default).is_some_and(|(rank, default)| rank > default) {
                let message = format!(
                    "a Config document among the manifests sets {}: {word} for the check {:?}",
                    key.name, check.name
                );
                let help = "to keep it, add an entry for the check to a configuration file (gantry.yaml, or -c FILE)";
                notices.push(found.key.problem(message).help(help));
            }
        }
    }
    notices
}
