//! Selects the checks that run.
//!
//! If a flag (or variable) names checks, exactly those run; otherwise the files decide; without files, the default
//! check runs. Unknown names and invalid configurations of checks are reported here, before any request, even for
//! checks that are disabled.

use crate::problem::{Problem, did_you_mean};

use super::check::{ConfigMap, Known, KnownCheck};
use super::custom::{self, CustomCheck, Definition};
use super::environment::Named;
use super::keys::{DEFAULT_CHECK, RULES};
use super::layer::LayerData;
use super::merge::Merged;
use super::origin::{Layer, Place};
use super::selected::{SelectedCheck, Switch};
use super::tighten;

#[derive(Debug, Default)]
pub(super) struct Selection {
    /// Every check that is configured or runs.
    pub switches: Vec<Switch>,
    pub checks: Vec<SelectedCheck>,
    /// Every check that the layers define, whether it runs or not.
    pub own: Vec<CustomCheck>,
    pub problems: Vec<Problem>,
    pub notices: Vec<Problem>,
}

/// Selects checks. `named` holds the names from the flag or, without it, the variable; `came_along` is true if the
/// project file is one of the manifests.
pub(super) fn select(
    named: Option<&Named>,
    merged: &Merged,
    layers: &[LayerData],
    came_along: bool,
    known: &Known,
) -> Selection {
    let (own, problems) = custom::read(merged, layers, came_along, known);
    let mut selection = Selection { own, problems, ..Selection::default() };
    selection.check_names_in_files(layers, known);
    selection.switches = match (named, &merged.rules) {
        (Some(named), rules) => {
            selection.check_names(named, known);
            by_name(named, rules.as_deref().unwrap_or_default())
        }
        (None, rules) => {
            let rules = rules.as_deref().unwrap_or_default();
            // Manifests that name another check do not replace the default check.
            let of_team = layers.iter().any(|layer| layer.layer.is_of_team() && layer.rules.is_some());
            let default = (!of_team && !rules.iter().any(|name| name == DEFAULT_CHECK)).then(default_check);
            default.into_iter().chain(rules.iter().map(|name| by_files(name, merged, layers))).collect()
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
            selection.checks.push(SelectedCheck { name, mode, definition: Definition::BuiltIn, config });
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
            selection.checks.push(SelectedCheck { name, mode, definition, config });
        }
    }
    // Checks run in the order in which they were named.
    let order = |check: &SelectedCheck| selection.switches.iter().position(|switch| switch.name == check.name);
    selection.checks.sort_by_key(order);
    selection.notices.extend(tighten::weakened(&selection.checks, merged, known));
    selection.notice_what_is_off(layers);
    selection
}

/// The check that runs if no file selects checks.
fn default_check() -> Switch {
    Switch { name: DEFAULT_CHECK.to_owned(), enabled: true, layer: Layer::Default, place: Place::Default }
}

fn config_of(name: &str, merged: &Merged) -> ConfigMap {
    let rules = merged.tree.get(RULES);
    ConfigMap(rules.and_then(|rules| rules.get(name)?.get("config")).cloned())
}

/// Exactly the named checks run; other configured checks are listed as disabled.
fn by_name(named: &Named, configured: &[String]) -> Vec<Switch> {
    let layer = match named.place {
        Place::Variable(_) => Layer::Environment,
        _ => Layer::Flag,
    };
    let switch = |name: &String, enabled| Switch { name: name.clone(), enabled, layer, place: named.place.clone() };
    let mut switches: Vec<Switch> = named.names.iter().map(|name| switch(name, true)).collect();
    let off = configured.iter().filter(|name| !named.names.contains(name));
    switches.extend(off.map(|name| switch(name, false)));
    switches
}

fn by_files(name: &str, merged: &Merged, layers: &[LayerData]) -> Switch {
    let raw = merged.raw.preflight_rules.as_ref().and_then(|rules| rules.get(name));
    let enabled = raw.and_then(|rule| rule.enabled).unwrap_or(true);
    let rule = merged.tree.get(RULES).and_then(|rules| rules.get(name));
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
        None => (Layer::Default, Place::Default),
    };
    Switch { name: name.to_owned(), enabled, layer, place }
}

impl Selection {
    fn runs(&self, name: &str) -> bool {
        self.switches.iter().any(|switch| switch.enabled && switch.name == name)
    }

    fn is_known(&self, name: &str, known: &Known) -> bool {
        known.has(name) || self.own.iter().any(|check| check.name == name)
    }

    fn near(&self, name: &str, known: &Known) -> String {
        let names = || {
            let own = self.own.iter().map(|check| check.name.as_str());
            known.checks.iter().map(|check| check.name).chain(own)
        };
        match did_you_mean(name, names()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("known checks: {}", names().collect::<Vec<_>>().join(", ")),
        }
    }

    fn check_names_in_files(&mut self, layers: &[LayerData], known: &Known) {
        for layer in layers {
            let names = layer.rules.iter().flatten().filter(|name| !self.is_known(name, known));
            for name in names.cloned().collect::<Vec<_>>() {
                let message = format!("unknown preflight check in configuration: {name:?}");
                let places = layer.places.get([RULES.to_owned(), name.clone()].as_slice());
                let near = self.near(&name, known);
                let problem = match places {
                    Some(places) => places.key.problem(message),
                    None => Problem::new(message),
                };
                self.problems.push(problem.help(near));
            }
        }
    }

    fn check_names(&mut self, named: &Named, known: &Known) {
        let from = match &named.place {
            Place::Variable(name) => format!("it is from {name}; "),
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
                    false => self.near(name, known),
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
        let mut inherited = false;
        for layer in layers {
            inherited |= layer.layer == Layer::Manifests;
            match &layer.rules {
                Some(names) if names.is_empty() && inherited => {
                    let place = layer.places.get([RULES.to_owned()].as_slice());
                    let message = format!("an empty {RULES} does not disable inherited checks");
                    let notice = place.map_or(Problem::new(message.clone()), |places| places.key.problem(message));
                    self.notices.push(notice.help("write {name: …, enabled: false} for each check to disable"));
                }
                Some(names) => inherited |= !names.is_empty(),
                None => {}
            }
        }
        if self.problems.is_empty() && self.checks.is_empty() {
            let message = format!("no preflight check runs: {RULES} enables none");
            self.notices.push(Problem::new(message).help(format!("--preflight {DEFAULT_CHECK} still runs one")));
        }
    }
}
