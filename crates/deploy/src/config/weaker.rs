//! How one configuration lets more pass than another.

use serde_json::Value;

use super::keys::{KEYS, PRESET, RULES, table};
use super::located::LocatedValue;
use super::settings::Settings;
use super::waivers::Waiver;
use gantry_core::finding::Mode;
use gantry_core::options::FailOn;
use gantry_core::problem::{Location, Problem};

/// What `now` lets pass and `before` did not, each at its place in `now`.
pub fn weaker(before: &Settings, now: &Settings) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut report = |at: Option<&Location>, message: String| {
        let problem = Problem::new(message);
        found.push(match at {
            Some(at) => problem.at(at.clone()),
            None => problem,
        });
    };
    let place = |path: &str| now.tree.at(path).and_then(|found| found.key.location().or(found.place.location()));
    let rules = place(RULES);
    if now.is_on(&table::WARN_ONLY) && !before.is_on(&table::WARN_ONLY) {
        report(place(table::WARN_ONLY.path), "no finding is an error any more".to_owned());
    }
    if now.fail_on == FailOn::Error && before.fail_on == FailOn::Warning {
        report(place(table::FAIL_ON.path), "warnings do not block any more".to_owned());
    }
    let value = |settings: &Settings, key: &str| settings.tree.at(key).map(LocatedValue::to_value);
    for (key, what) in KEYS.iter().filter_map(|key| Some((key.path, key.weakens?))) {
        let is_on = !matches!(value(now, key), None | Some(Value::Bool(false)));
        if is_on && value(now, key) != value(before, key) {
            report(place(key), what.to_owned());
        }
    }
    if value(now, PRESET) != value(before, PRESET) {
        report(place(PRESET).or(rules), "the preset of CRDUpgradeSafety is different".to_owned());
    }
    for check in &before.checks {
        let name = &check.name;
        let own = place(&format!("{RULES}.{name}")).or(rules);
        let Some(same) = now.checks.iter().find(|same| same.name == *name) else {
            report(own, format!("the check {name} does not run any more"));
            continue;
        };
        if same.mode == Mode::Warn && check.mode != Mode::Warn {
            report(own, format!("findings of the check {name} are no errors any more"));
        }
        let [now, before] = [same, check].map(|check| check.config.0.as_ref().map(LocatedValue::to_value));
        if now != before {
            report(own, format!("the settings of the check {name} are different"));
        }
    }
    for waiver in now.waivers.iter().filter(|waiver| !before.waivers.iter().any(|known| is_same(known, waiver))) {
        report(waiver.at.as_ref(), format!("a waiver is added or changed: {}", described(waiver)));
    }
    found
}

fn is_same(one: &Waiver, other: &Waiver) -> bool {
    Waiver { at: None, ..one.clone() } == Waiver { at: None, ..other.clone() }
}

fn described(waiver: &Waiver) -> String {
    let parts =
        [("rule", &waiver.rule), ("object", &waiver.object), ("version", &waiver.version), ("path", &waiver.path)];
    let parts: Vec<String> =
        parts.iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?))).collect();
    if parts.is_empty() { "it accepts every finding".to_owned() } else { parts.join(", ") }
}
