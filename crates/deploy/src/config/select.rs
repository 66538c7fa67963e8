//! Selects the checks that run.
//!
//! If a flag (or variable) names checks, exactly those run; otherwise the files decide; if those
//! name no built-in check, the default checks run, with the team's own checks. Unknown names and invalid configurations
//! of checks are reported here, before any request, even for checks that are disabled.

use std::collections::BTreeMap;

use gantry_core::problem::{Problem, did_you_mean};

use super::check::{BUILT_WITHOUT_OLM, CheckConfig, KnownCheck, KnownPreflightRules};
use super::custom::{self, CheckDefinition, CustomCheck};
use super::environment::CheckSelection;
use super::keys::{CRD_UPGRADE_SAFETY, DEFAULT_CHECKS, PRESET, RULES};
use super::layer::LayerData;
use super::located::{LocatedData, LocatedValue};
use super::merge::Merged;
use super::origin::{Layer, SettingOrigin};
use super::selected::{SelectedCheck, Switch};
use super::tighten;

#[derive(Debug, Default)]
pub(super) struct ConfiguredChecks {
    /// Every check that is configured or runs.
    pub switches: Vec<Switch>,
    pub checks: Vec<SelectedCheck>,
    /// Every check that the layers define, whether it runs or not.
    pub own: Vec<CustomCheck>,
    /// What decides that CRDUpgradeSafety does not run, if that is so.
    pub without_crd_safety: Option<SettingOrigin>,
    pub problems: Vec<Problem>,
    pub notices: Vec<Problem>,
}

/// Selects checks. `named` holds the names from the flag or, without it, the variable; `came_along` is true if the
/// project file is one of the manifests.
pub(super) fn select(
    named: Option<&CheckSelection>,
    merged: &Merged,
    layers: &[LayerData],
    came_along: bool,
    known: &KnownPreflightRules,
) -> ConfiguredChecks {
    let (own, problems) = custom::read(merged, layers, came_along, known);
    let mut selection = ConfiguredChecks { own, problems, ..ConfiguredChecks::default() };
    selection.check_names_in_files(layers, known);
    selection.switches = match (named, &merged.rules) {
        (Some(named), rules) => {
            selection.check_names(named, known);
            by_name(named, rules.as_deref().unwrap_or_default())
        }
        (None, rules) => {
            let rules = rules.as_deref().unwrap_or_default();
            // Only built-in checks that the team names replace the default: not its own checks, and not what manifests
            // name.
            let names_built_in = |layer: &LayerData| layer.rules.iter().flatten().any(|name| known.has(name));
            let is_chosen = layers.iter().any(|layer| layer.layer.is_of_team() && names_built_in(layer));
            let defaults = DEFAULT_CHECKS.into_iter().filter(|name| !is_chosen && known.has(name));
            let defaults: Vec<&str> = defaults.collect();
            let others = rules.iter().map(String::as_str).filter(|name| !defaults.contains(name));
            let all = defaults.iter().copied().chain(others);
            let is_listed = |name: &str| rules.iter().any(|rule| rule == name);
            all.map(|name| if is_listed(name) { by_files(name, merged, layers) } else { by_default(name) }).collect()
        }
    };
    for check in &known.checks {
        let config = config_of(check.name, merged);
        let mode = match check.read(&config) {
            Ok(mode) => mode,
            Err(problems) => {
                selection.problems.extend(problems);
                continue;
            }
        };
        if selection.runs(check.name) {
            let name = check.name.to_owned();
            let by_default = selection.switches.iter().any(|s| s.name == name && s.layer == Layer::Default);
            let definition = CheckDefinition::BuiltIn;
            selection.checks.push(SelectedCheck { name, mode, by_default, definition, config });
        }
    }
    for check in selection.own.clone() {
        let mode = match KnownCheck::mode_alone(&check.name, &config_of(&check.name, merged)) {
            Ok(mode) => mode,
            Err(problems) => {
                selection.problems.extend(problems);
                continue;
            }
        };
        if selection.runs(&check.name) {
            let CustomCheck { name, definition, config } = check;
            selection.checks.push(SelectedCheck { name, mode, by_default: false, definition, config });
        }
    }
    // Checks run in the order in which they were named.
    let order = |check: &SelectedCheck| selection.switches.iter().position(|switch| switch.name == check.name);
    selection.checks.sort_by_key(order);
    selection.notices.extend(tighten::weakened_checks(&selection.checks, merged, known));
    selection.notice_what_is_off(layers);
    // In a file the preset is a default of the team; a user who names it for this run expects an effect.
    let named = merged.tree.get(PRESET).filter(|preset| preset.layer >= Layer::Environment);
    if let Some(preset) = named.filter(|_| !selection.runs(CRD_UPGRADE_SAFETY)) {
        let message = format!("has no effect, because {CRD_UPGRADE_SAFETY} does not run");
        selection.notices.push(preset.place.problem(message));
    }
    if !selection.runs(CRD_UPGRADE_SAFETY) {
        selection.without_crd_safety = selection.decides_against_crd_safety(known).cloned();
    }
    selection
}

/// The switch of a check that runs if no file selects checks.
fn by_default(name: &str) -> Switch {
    Switch { name: name.to_owned(), enabled: true, layer: Layer::Default, place: SettingOrigin::Default }
}

fn config_of(name: &str, merged: &Merged) -> CheckConfig {
    let rules = merged.tree.get(RULES);
    let config = rules.and_then(|rules| rules.get(name)?.get("config")).cloned();
    match merged.tree.get(PRESET).filter(|_| name == CRD_UPGRADE_SAFETY) {
        Some(preset) => CheckConfig(Some(with_preset(config, preset))),
        None => CheckConfig(config),
    }
}

/// The configuration with the preset of the run, unless it has one, which then wins (see [`super::merge`]).
fn with_preset(config: Option<LocatedValue>, preset: &LocatedValue) -> LocatedValue {
    let empty = || LocatedValue { data: LocatedData::Map(BTreeMap::new()), ..preset.clone() };
    let mut config = config.unwrap_or_else(empty);
    if let LocatedData::Map(map) = &mut config.data {
        map.entry(PRESET.to_owned()).or_insert_with(|| preset.clone());
    }
    config
}

/// Exactly the named checks run; other configured checks are listed as disabled.
fn by_name(named: &CheckSelection, configured: &[String]) -> Vec<Switch> {
    let layer = match named.place {
        SettingOrigin::Variable(_) => Layer::Environment,
        _ => Layer::Flag,
    };
    let switch = |name: &String, enabled| Switch { name: name.clone(), enabled, layer, place: named.place.clone() };
    let mut switches: Vec<Switch> = named.names.iter().map(|name| switch(name, true)).collect();
    let off = configured.iter().filter(|name| !named.names.contains(name));
    switches.extend(off.map(|name| switch(name, false)));
    switches
}

fn by_files(name: &str, merged: &Merged, layers: &[LayerData]) -> Switch {
    let rule = merged.tree.get(RULES).and_then(|rules| rules.get(name));
    let enabled = rule.and_then(|rule| rule.get("enabled")?.as_bool()).unwrap_or(true);
    // Without `enabled`, the entry itself enables the check.
    let (layer, place) = match rule {
        Some(rule) => match rule.get("enabled") {
            Some(enabled) => (enabled.layer, enabled.place.clone()),
            // If manifests name a check that a file already enables, the file enabled it.
            None if rule.layer == Layer::Manifests => {
                let of_team = layers.iter().rev().filter(|layer| layer.layer.is_of_team());
                let mut found =
                    of_team.filter(|layer| layer.has(name)).map(|layer| (layer.layer, layer.place(&[RULES, name])));
                found.next().unwrap_or((rule.layer, rule.key.clone()))
            }
            None => (rule.layer, rule.key.clone()),
        },
        None => (Layer::Default, SettingOrigin::Default),
    };
    Switch { name: name.to_owned(), enabled, layer, place }
}

impl ConfiguredChecks {
    fn runs(&self, name: &str) -> bool {
        self.switches.iter().any(|switch| switch.enabled && switch.name == name)
    }

    /// The place that disables CRDUpgradeSafety, or else the first one that names another built-in check.
    fn decides_against_crd_safety(&self, known: &KnownPreflightRules) -> Option<&SettingOrigin> {
        let own = self.switches.iter().find(|switch| switch.name == CRD_UPGRADE_SAFETY);
        own.or_else(|| self.switches.iter().find(|switch| known.has(&switch.name))).map(|switch| &switch.place)
    }

    fn is_known(&self, name: &str, known: &KnownPreflightRules) -> bool {
        known.has(name) || self.own.iter().any(|check| check.name == name)
    }

    fn suggest_check(&self, name: &str, known: &KnownPreflightRules) -> String {
        let names = || {
            let own = self.own.iter().map(|check| check.name.as_str());
            known.checks.iter().map(|check| check.name).chain(own)
        };
        if known.left_out.contains(&name) {
            return BUILT_WITHOUT_OLM.to_owned();
        }
        match did_you_mean(name, names()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("known checks: {}", names().collect::<Vec<_>>().join(", ")),
        }
    }

    fn check_names_in_files(&mut self, layers: &[LayerData], known: &KnownPreflightRules) {
        for layer in layers {
            let names = layer.rules.iter().flatten().filter(|name| !self.is_known(name, known));
            for name in names.cloned().collect::<Vec<_>>() {
                let message = format!("unknown preflight check in configuration: {name:?}");
                let places = layer.places.get([RULES.to_owned(), name.clone()].as_slice());
                let near = self.suggest_check(&name, known);
                let problem = match places {
                    Some(places) => places.key.problem(message),
                    None => Problem::new(message),
                };
                self.problems.push(problem.help(near));
            }
        }
    }

    fn check_names(&mut self, named: &CheckSelection, known: &KnownPreflightRules) {
        let from = match &named.place {
            SettingOrigin::Variable(name) => format!("it is from {name}; "),
            _ => String::new(),
        };
        for (index, name) in named.names.iter().enumerate() {
            if named.names[..index].contains(name) {
                let problem = Problem::new(format!("duplicate preflight check {name:?} specified"));
                self.problems.push(problem.help(format!("{from}name each check once")));
            } else if !self.is_known(name, known) {
                let problem = Problem::new(format!("unknown preflight check {name:?} specified"));
                let help = match name.is_empty() && named.names.len() > 1 {
                    true => "there is a comma without a name before or after it; remove it".to_owned(),
                    false => self.suggest_check(name, known),
                };
                self.problems.push(problem.help(format!("{from}{help}")));
            }
        }
    }

    /// Adds notices if fewer checks run than the user may expect.
    fn notice_what_is_off(&mut self, layers: &[LayerData]) {
        for switch in self.switches.iter().filter(|switch| !switch.enabled && switch.layer == Layer::Manifests) {
            let message = format!("a Config document among the manifests disables the check {:?}", switch.name);
            self.notices.push(switch.place.problem(message).help(format!("--preflight {} still runs it", switch.name)));
        }
        for layer in layers.iter().filter(|layer| layer.rules.as_ref().is_some_and(Vec::is_empty)) {
            let place = layer.places.get([RULES.to_owned()].as_slice());
            let message = format!("an empty {RULES} does not disable the checks that run by default or are inherited");
            let notice = place.map_or(Problem::new(message.clone()), |places| places.key.problem(message));
            self.notices.push(notice.help("write {name: …, enabled: false} for each check to disable"));
        }
        if self.problems.is_empty() && self.checks.is_empty() {
            let message = format!("no preflight check runs: {RULES} enables none");
            self.notices.push(Problem::new(message).help(format!("--preflight {CRD_UPGRADE_SAFETY} still runs one")));
        }
    }
}
