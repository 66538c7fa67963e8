//! The check's own configuration: which rules apply, and their severities.

use serde_json::{Value, json};
use wildmatch::WildMatch;

use super::presets::PresetTool;
use super::presets::options::{self as crdify, ConversionPolicy, Enforcement, UNHANDLED};
use super::presets::{crdify as crdify_tool, kapp as kapp_tool, validations};
use super::{rules, server};
use gantry_core::finding::Severity;
use gantry_core::problem::{Location, did_you_mean};
use gantry_deploy::config::{AmongManifests, ConfigReader, LocatedData, LocatedValue};

/// The effect of a change whose safety is undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailMode {
    /// It is reported but does not block.
    Open,
    /// It blocks.
    #[default]
    Closed,
}

/// Whose verdict counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// The rules that kapp and OLM document.
    #[default]
    Documented,
    /// The proven effect on all possible objects, whatever is documented.
    Semantic,
    /// The same, limited to the objects of this cluster.
    Evidence,
    /// The verdict of kapp.
    Kapp,
    /// The verdict of OLM v1: crdify with OLM's settings.
    OlmV1,
    /// The verdict of crdify.
    Crdify,
}

/// The enforcement of the rules whose name matches a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enforced {
    /// `*` stands for any number of characters, `?` for one.
    pub pattern: String,
    /// `None` switches the rules off.
    pub enforcement: Enforcement,
    /// Where it is configured.
    pub at: Option<Location>,
}

/// The check's parsed configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CrdUpgradeOptions {
    /// Whose verdict counts.
    pub preset: Preset,
    /// What an undecided change means.
    pub fail_mode: FailMode,
    /// OLM's `enforcement: None`: the check does not run.
    pub off: bool,
    /// Where it is configured.
    pub off_at: Option<Location>,
    /// The rules whose severity is set, in the order of the file; the last match counts.
    pub rules: Vec<Enforced>,
    /// The settings of crdify for `preset: crdify` and `olm-v1`.
    pub crdify: crdify::CrdifyOptions,
    /// The validations of crdify that `validations` and `unhandledEnforcement` switch off, and where.
    pub validations_off: Vec<(&'static str, Option<Location>)>,
}

impl CrdUpgradeOptions {
    /// Reads the check's own keys.
    pub fn read(reader: &mut ConfigReader<'_>) -> Self {
        let presets = [
            ("documented", Preset::Documented),
            ("semantic", Preset::Semantic),
            ("evidence", Preset::Evidence),
            ("kapp", Preset::Kapp),
            ("olm-v1", Preset::OlmV1),
            // The documented rules forbid everything that the documentation of classic OLM forbids.
            ("olm-classic", Preset::Documented),
            ("crdify", Preset::Crdify),
        ];
        let about = "Whose verdict counts: the documented rules of kapp and OLM (documented), what provably breaks \
            objects (semantic), what breaks the objects of this cluster (evidence), or exactly the verdict of kapp, \
            OLM v1 or crdify. olm-classic: the same as documented, which forbids all that classic OLM forbids.";
        let preset = reader.choice("preset", about, &presets, Preset::default());
        let about = "Whether a change that cannot be decided blocks (closed) or is only reported (open).";
        let choices = [("closed", FailMode::Closed), ("open", FailMode::Open)];
        let fail_mode = reader.strictness("failMode", about, &choices, FailMode::default(), AmongManifests::Set);
        let about = "None disables the check, as on an OLM ClusterExtension; the report then shows it as skipped.";
        let choices = [("Strict", false), ("None", true)];
        let off = reader.strictness("enforcement", about, &choices, false, AmongManifests::Tighten);
        let off_at = reader.place("enforcement").cloned();
        let rules = read_enforced(reader, preset);
        let mut options = CrdUpgradeOptions { preset, fail_mode, off, off_at, rules, ..CrdUpgradeOptions::default() };
        if preset == Preset::OlmV1 {
            options.crdify = crdify::CrdifyOptions::olm_v1();
        }
        options.read_crdify(reader);
        options
    }

    /// The tool to reproduce, if any.
    pub fn tool(&self) -> Option<PresetTool> {
        match self.preset {
            Preset::Documented | Preset::Semantic | Preset::Evidence => None,
            Preset::Kapp => Some(PresetTool::Kapp),
            Preset::OlmV1 | Preset::Crdify => Some(PresetTool::Crdify(self.crdify.clone())),
        }
    }

    /// The entry of `rules` for a rule; if several entries match, the last one.
    pub fn find_enforced(&self, rule: &str) -> Option<&Enforced> {
        self.rules.iter().rev().find(|entry| WildMatch::new(&entry.pattern).matches(rule))
    }

    /// Where a validation of crdify is switched off; `None` if that is a setting of the preset itself.
    pub fn validation_off(&self, validation: &str) -> Option<&Option<Location>> {
        let mut entries = self.validations_off.iter().rev();
        entries.find(|(name, _)| *name == validation).map(|(_, at)| at)
    }

    /// Reads crdify's own keys, so its configuration file can be used unchanged.
    fn read_crdify(&mut self, reader: &mut ConfigReader<'_>) {
        let applies = matches!(self.preset, Preset::OlmV1 | Preset::Crdify);
        let about = "crdify: the severity of a change that no validation handles. For preset crdify and olm-v1.";
        if let Some(found) =
            reader.value("unhandledEnforcement", json!({"description": about, "enum": ["Error", "Warn", "None"]}))
        {
            crdify_only(reader, "unhandledEnforcement", found, applies);
            if let Some(enforcement) = word(reader, "unhandledEnforcement", found, ENFORCEMENTS) {
                self.crdify.unhandled = enforcement;
                if enforcement.is_none() {
                    self.validations_off.push((UNHANDLED, found.place.location().cloned()));
                }
            }
        }
        let about = "crdify: whether served versions are compared (None), or not where a webhook converts (Ignore). \
            For preset crdify and olm-v1.";
        if let Some(found) = reader.value("conversion", json!({"description": about, "enum": ["None", "Ignore"]})) {
            crdify_only(reader, "conversion", found, applies);
            let choices = &[("None", ConversionPolicy::None), ("Ignore", ConversionPolicy::Ignore)];
            if let Some(conversion) = word(reader, "conversion", found, choices) {
                self.crdify.conversion = conversion;
            }
        }
        if let Some(found) = reader.value("validations", validations_schema()) {
            crdify_only(reader, "validations", found, applies);
            for (index, entry) in items(reader, "validations", found).iter().enumerate() {
                self.read_validation(reader, &format!("validations[{index}]"), entry);
            }
        }
    }

    fn read_validation(&mut self, reader: &mut ConfigReader<'_>, path: &str, entry: &LocatedValue) {
        let known = crdify_names();
        refuse_unknown_keys(reader, path, entry, &["name", "enforcement", "configuration"]);
        let Some(name) = name(reader, path, entry) else { return };
        let Some(name) = known.iter().find(|known| **known == name).copied() else {
            let hint = suggest(&name, &known);
            return reader.report_problem(
                &format!("{path}.name"),
                entry.get("name").unwrap_or(entry),
                &format!("crdify has no validation {name:?}; {hint}"),
            );
        };
        match entry.get("enforcement") {
            None => reader.report_problem(path, entry, "has no enforcement; write Error, Warn or None"),
            Some(found) => {
                if let Some(enforcement) = word(reader, &format!("{path}.enforcement"), found, ENFORCEMENTS) {
                    self.crdify.enforcement.push((name, enforcement));
                    if enforcement.is_none() {
                        self.validations_off.push((name, found.place.location().cloned()));
                    }
                }
            }
        }
        // As in crdify, naming a validation gives it a configuration of its own: what is absent is Disallow.
        let (addition, removal) = match name {
            "enum" => (Some(&mut self.crdify.enum_addition), None),
            "nullable" => (Some(&mut self.crdify.nullable_addition), Some(&mut self.crdify.nullable_removal)),
            "oneOf" => (Some(&mut self.crdify.one_of_addition), Some(&mut self.crdify.one_of_removal)),
            "pattern" => (None, Some(&mut self.crdify.pattern_removal)),
            _ => (None, None),
        };
        let policies = [("additionPolicy", addition), ("removalPolicy", removal)];
        let allowed: Vec<&str> = policies.iter().filter(|(_, to)| to.is_some()).map(|(key, _)| *key).collect();
        let configuration = entry.get("configuration");
        if let Some(found) = configuration {
            refuse_unknown_keys(reader, &format!("{path}.configuration"), found, &allowed);
        }
        for (key, to) in policies {
            let Some(to) = to else { continue };
            let found = configuration.and_then(|configuration| configuration.get(key));
            let choices = &[("Allow", true), ("Disallow", false)];
            *to = found
                .and_then(|found| word(reader, &format!("{path}.configuration.{key}"), found, choices))
                .unwrap_or(false);
        }
    }
}

const ENFORCEMENTS: &[(&str, Enforcement)] =
    &[("Error", Some(Severity::Error)), ("Warn", Some(Severity::Warning)), ("None", None)];

/// Every name that a finding may have, whatever the preset.
pub fn finding_names() -> Vec<&'static str> {
    [Preset::Documented, Preset::Kapp, Preset::Crdify].into_iter().flat_map(rule_names).collect()
}

/// Every name that a finding may have under a preset.
fn rule_names(preset: Preset) -> Vec<&'static str> {
    match preset {
        Preset::Documented | Preset::Semantic | Preset::Evidence => {
            rules::RULES.iter().map(|rule| rule.doc.name).collect()
        }
        Preset::Kapp => vec![
            kapp_tool::CHANGE_VALIDATOR,
            kapp_tool::NO_EXISTING_FIELD_REMOVED,
            kapp_tool::NO_SCOPE_CHANGE,
            kapp_tool::NO_STORED_VERSION_REMOVED,
            server::NAME,
        ],
        Preset::OlmV1 | Preset::Crdify => {
            let mut names = crdify_names();
            names.push(UNHANDLED);
            names.push(server::NAME);
            names
        }
    }
}

/// The validations that crdify's configuration may name.
fn crdify_names() -> Vec<&'static str> {
    let mut names = validations::OF_NODES.to_vec();
    names.extend([crdify_tool::EXISTING_FIELD_REMOVAL, crdify_tool::SCOPE, crdify_tool::STORED_VERSION_REMOVAL]);
    names
}

fn read_enforced(reader: &mut ConfigReader<'_>, preset: Preset) -> Vec<Enforced> {
    let schema = json!({
        "description": "The severity of single rules. A name may contain * and ?; if several entries match, the last \
            one counts.",
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name", "enforcement"],
            "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "description": "The name of a rule, or a pattern of names."},
                "enforcement": {"enum": ["error", "warn", "none"]},
            },
        },
    });
    let Some(found) = reader.value("rules", schema) else { return Vec::new() };
    let names = rule_names(preset);
    let mut entries = Vec::new();
    for (index, entry) in items(reader, "rules", found).iter().enumerate() {
        let path = format!("rules[{index}]");
        refuse_unknown_keys(reader, &path, entry, &["name", "enforcement"]);
        let Some(pattern) = name(reader, &path, entry) else { continue };
        let matcher = WildMatch::new(&pattern);
        if !names.iter().any(|name| matcher.matches(name)) {
            let message = format!("no rule of this preset matches {pattern:?}; {}", suggest(&pattern, &names));
            reader.report_problem(&format!("{path}.name"), entry.get("name").unwrap_or(entry), &message);
            continue;
        }
        let Some(found) = entry.get("enforcement") else {
            reader.report_problem(&path, entry, "has no enforcement; write error, warn or none");
            continue;
        };
        let choices = &[("error", Some(Severity::Error)), ("warn", Some(Severity::Warning)), ("none", None)];
        if let Some(enforcement) = word(reader, &format!("{path}.enforcement"), found, choices) {
            entries.push(Enforced { pattern, enforcement, at: found.place.location().cloned() });
        }
    }
    entries
}

fn validations_schema() -> Value {
    let policy = json!({"enum": ["Allow", "Disallow"]});
    json!({
        "description": "crdify: its validations, as its own configuration file has them. For preset crdify and olm-v1.",
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name", "enforcement"],
            "additionalProperties": false,
            "properties": {
                "name": {"enum": crdify_names()},
                "enforcement": {"enum": ["Error", "Warn", "None"]},
                "configuration": {
                    "type": "object",
                    "additionalProperties": false,
                    "properties": {"additionPolicy": policy, "removalPolicy": policy},
                },
            },
        },
    })
}

/// Reports a key of crdify that the preset does not use.
fn crdify_only(reader: &mut ConfigReader<'_>, key: &str, found: &LocatedValue, applies: bool) {
    if !applies {
        reader.report_problem(key, found, "is only read under preset: crdify and preset: olm-v1; use rules here");
    }
}

fn items<'l>(reader: &mut ConfigReader<'_>, path: &str, found: &'l LocatedValue) -> &'l [LocatedValue] {
    match &found.data {
        LocatedData::List(items) => items,
        _ => {
            reader.report_problem(path, found, "is not a list");
            &[]
        }
    }
}

fn name(reader: &mut ConfigReader<'_>, path: &str, entry: &LocatedValue) -> Option<String> {
    let found = entry.get("name").map(|found| (found, found.to_value()));
    match found {
        Some((_, Value::String(name))) if !name.is_empty() => Some(name),
        Some((found, _)) => {
            reader.report_problem(&format!("{path}.name"), found, "is not a name");
            None
        }
        None => {
            reader.report_problem(path, entry, "has no name");
            None
        }
    }
}

fn word<T: Copy>(reader: &mut ConfigReader<'_>, path: &str, found: &LocatedValue, choices: &[(&str, T)]) -> Option<T> {
    let value = found.to_value();
    let text = value.as_str().unwrap_or_default();
    // crdify refuses these words in another case.
    let choice = choices.iter().find(|(name, _)| *name == text);
    if choice.is_none() {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let same = names.iter().find(|name| name.eq_ignore_ascii_case(text));
        let hint = same.map(|name| format!(" (did you mean {name:?}?)")).unwrap_or_default();
        reader.report_problem(path, found, &format!("{value} is not one of {}{hint}", names.join(", ")));
    }
    choice.map(|(_, value)| *value)
}

fn refuse_unknown_keys(reader: &mut ConfigReader<'_>, path: &str, entry: &LocatedValue, known: &[&str]) {
    for (key, value) in entry.entries().filter(|(key, _)| !known.contains(key)) {
        let hint = if known.is_empty() { "it has no options".to_owned() } else { suggest(key, known) };
        reader.report_problem(&format!("{path}.{key}"), value, &format!("unknown key; {hint}"));
    }
}

fn suggest(name: &str, known: &[&str]) -> String {
    match did_you_mean(name, known.iter().copied()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("known: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ENTRY;
    use gantry_core::options;

    #[test]
    fn the_flag_has_the_presets_of_the_check() {
        let keys = ENTRY.keys();
        let key = keys.iter().find(|key| key.name == "preset").expect("the check has presets");
        assert_eq!(key.schema["enum"], serde_json::json!(options::names_of::<options::PresetFlag>()));
    }
}
