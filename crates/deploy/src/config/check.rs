//! How a check reads its own `config`.
//!
//! A check declares its keys by reading them through a [`ConfigReader`]: one function is the parser, the validator
//! and, run on an empty configuration, the source of the JSON Schema. A key that is never read is an unknown key.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value, json};

use gantry_core::finding::Mode;
use gantry_core::problem::{Location, Problem, did_you_mean, not_one_of};

use super::keys;
use super::located::{self, LocatedData, LocatedValue};

/// A check that can be named in `preflightRules` and by `--preflight`.
#[derive(Debug, Clone, Copy)]
pub struct KnownCheck {
    /// The name in flags, files and reports, in `PascalCase`.
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Reads every key of the check except `mode`, which all checks have.
    pub configure: fn(&mut ConfigReader<'_>),
}

/// A kind of custom check. An entry of `preflightRules` that has the kind's key defines a check of this kind.
#[derive(Debug, Clone, Copy)]
pub struct KnownKind {
    /// The key that an entry has instead of a built-in check's name: `exec`, `cel`.
    pub key: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Whether its checks run programs. If so, a Config document among the manifests cannot define one.
    pub runs_programs: bool,
    /// Reads every key below `key`.
    pub configure: fn(&mut ConfigReader<'_>),
}

/// What an entry of `preflightRules` can be.
#[derive(Debug, Clone, Default)]
pub struct KnownPreflightRules {
    /// The built-in checks, sorted by name.
    pub checks: Vec<KnownCheck>,
    /// The kinds of custom checks.
    pub kinds: Vec<KnownKind>,
    /// The checks of Operator Lifecycle Manager, if gantry was built without them.
    pub left_out: &'static [&'static str],
}

/// The next step if a key or a check needs what gantry was built without.
pub(super) const BUILT_WITHOUT_OLM: &str =
    "this gantry was built without Operator Lifecycle Manager: use a build with the feature olm";

impl KnownPreflightRules {
    /// Whether gantry itself has a check of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.checks.iter().any(|check| check.name == name)
    }
}

/// The merged configuration of one check. Each value keeps its place.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CheckConfig(pub Option<LocatedValue>);

/// What a Config document among the manifests may do with a key of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmongManifests {
    /// Nothing: the key is read from files only.
    Nothing,
    /// Make it stricter.
    Tighten,
    /// Set it, as in kapp, if no file of the team has an entry for the check; otherwise only make it stricter.
    Set,
}

/// A key that a check declared.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyDescription {
    /// The key in the check's `config`.
    pub name: &'static str,
    /// The JSON Schema of the value. If manifests may tighten or set the key, its `enum` is ordered from the strictest
    /// word to the most lenient.
    pub schema: Value,
    /// What a Config document among the manifests may do with it.
    pub among_manifests: AmongManifests,
}

impl KeyDescription {
    /// What the key is for.
    pub fn description(&self) -> &str {
        self.schema["description"].as_str().unwrap_or_default()
    }

    /// The allowed values in short form: `error|warn`, or a type such as `boolean`.
    pub fn values(&self) -> String {
        match self.schema["enum"].as_array() {
            Some(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
            None => self.schema["type"].as_str().unwrap_or("any").to_owned(),
        }
    }

    /// How strict a word is: 0 is the strictest. `None` if it is not one of the allowed words.
    pub(super) fn rank(&self, word: &str) -> Option<usize> {
        self.schema["enum"].as_array()?.iter().position(|known| known == word)
    }

    /// The default of the key, if it has one.
    pub fn default(&self) -> Option<String> {
        match &self.schema["default"] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }
}

/// Reads each key of one check once and collects the problems.
pub struct ConfigReader<'a> {
    check: &'a str,
    /// The key of the entry whose mapping is read.
    section: &'a str,
    config: Option<&'a LocatedValue>,
    keys: Vec<KeyDescription>,
    problems: Vec<Problem>,
}

impl<'a> ConfigReader<'a> {
    /// Reads the keys of the check's `config`.
    pub fn new(check: &'a str, config: &'a CheckConfig) -> Self {
        Self::of_section(check, "config", config)
    }

    /// Reads the mapping `section` of a check's entry instead of its `config`.
    pub fn of_section(check: &'a str, section: &'a str, config: &'a CheckConfig) -> Self {
        ConfigReader { check, section, config: config.0.as_ref(), keys: Vec::new(), problems: Vec::new() }
    }

    /// Reports a problem if a required key is missing.
    pub fn required(&mut self, key: &str, help: &str) {
        if let Some(config) = self.config
            && config.get(key).is_none()
        {
            let message = format!("{}[{}].{} has no {key}", keys::RULES, self.check, self.section);
            self.problems.push(config.key.problem(message).help(help));
        }
    }

    /// One of several words, each with its value.
    pub fn choice<T: Clone + PartialEq>(
        &mut self,
        key: &'static str,
        about: &str,
        choices: &[(&'static str, T)],
        default: T,
    ) -> T {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let default_name = choices.iter().find(|(_, value)| *value == default).map(|(name, _)| *name);
        let schema = json!({"description": about, "enum": names, "default": default_name});
        let find = |value: &Value| {
            let text = value.as_str().ok_or_else(|| format!("{value} is not one of {}", names.join(", ")))?;
            let found = choices.iter().find(|(name, _)| *name == text);
            found.map(|(_, value)| value.clone()).ok_or_else(|| not_one_of(text, &names))
        };
        self.read(key, schema, find).unwrap_or(default)
    }

    /// [`ConfigReader::choice`] with the words ordered from the strictest to the most lenient.
    pub fn strictness<T: Clone + PartialEq>(
        &mut self,
        key: &'static str,
        about: &str,
        strictest_first: &[(&'static str, T)],
        default: T,
        among_manifests: AmongManifests,
    ) -> T {
        let value = self.choice(key, about, strictest_first, default);
        if let Some(key) = self.keys.last_mut() {
            key.among_manifests = among_manifests;
        }
        value
    }

    /// A boolean key. `about` describes it in the documentation.
    pub fn bool(&mut self, key: &'static str, about: &str, default: bool) -> bool {
        let schema = json!({"description": about, "type": "boolean", "default": default});
        self.read(key, schema, |value| value.as_bool().ok_or_else(|| format!("{value} is not true or false")))
            .unwrap_or(default)
    }

    /// A non-negative integer.
    pub fn integer(&mut self, key: &'static str, about: &str, default: u64) -> u64 {
        let schema = json!({"description": about, "type": "integer", "minimum": 0, "default": default});
        self.read(key, schema, |value| value.as_u64().ok_or_else(|| format!("{value} is not a non-negative integer")))
            .unwrap_or(default)
    }

    /// An integer in an inclusive range.
    pub fn number(&mut self, key: &'static str, about: &str, range: RangeInclusive<u64>, default: u64) -> u64 {
        let (least, most) = (*range.start(), *range.end());
        let schema =
            json!({"description": about, "type": "integer", "minimum": least, "maximum": most, "default": default});
        let parse = |value: &Value| {
            let number = value.as_u64().filter(|number| range.contains(number));
            number.ok_or_else(|| format!("{value} is not an integer from {least} to {most}"))
        };
        self.read(key, schema, parse).unwrap_or(default)
    }

    /// A string that `parse` accepts. The error of `parse` says why a string is invalid.
    pub fn parsed(
        &mut self,
        key: &'static str,
        about: &str,
        parse: impl Fn(&str) -> Result<(), String>,
    ) -> Option<String> {
        let schema = json!({"description": about, "type": "string"});
        self.read(key, schema, |value| {
            let text = value.as_str().ok_or_else(|| format!("{value} is not a string"))?;
            parse(text).map(|()| text.to_owned())
        })
    }

    /// A list of namespaces.
    pub fn names(&mut self, key: &'static str, about: &str) -> Vec<String> {
        let schema = json!({"description": about, "type": "array", "items": {"type": "string", "maxLength": 63,
            "pattern": keys::DNS_LABEL}});
        self.read(key, schema, |value| {
            let items = value.as_array().ok_or_else(|| format!("{value} is not a list of namespaces"))?;
            items
                .iter()
                .map(|item| {
                    let name = item.as_str().ok_or_else(|| located::not_a_string(item))?;
                    keys::check_namespace(name).map(|()| name.to_owned())
                })
                .collect()
        })
        .unwrap_or_default()
    }

    /// A text key without a default. `about` describes it in the documentation.
    pub fn string(&mut self, key: &'static str, about: &str) -> Option<String> {
        let schema = json!({"description": about, "type": "string"});
        self.read(key, schema, |value| {
            value.as_str().map(str::to_owned).ok_or_else(|| format!("{value} is not a string"))
        })
    }

    /// A list of strings.
    pub fn strings(&mut self, key: &'static str, about: &str) -> Vec<String> {
        let schema = json!({"description": about, "type": "array", "items": {"type": "string"}});
        self.read(key, schema, |value| {
            let items = value.as_array().and_then(|items| {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
            });
            items.ok_or_else(|| format!("{value} is not a list of strings"))
        })
        .unwrap_or_default()
    }

    /// A positive duration in Go's notation (`1h30m`).
    pub fn duration(&mut self, key: &'static str, about: &str, default: Duration) -> Duration {
        let schema = json!({"description": about, "type": "string"});
        self.read(key, schema, |value| match value.as_str() {
            Some(text) => keys::duration(text),
            None => Err(format!("{value} is not a duration such as 30s, 2m or 1h30m")),
        })
        .unwrap_or(default)
    }

    /// Any value, with the place of each part; `schema` describes what is allowed. Report problems with
    /// [`ConfigReader::report_problem`].
    pub fn value(&mut self, key: &'static str, schema: Value) -> Option<&'a LocatedValue> {
        self.keys.push(KeyDescription { name: key, schema, among_manifests: AmongManifests::Nothing });
        self.config?.get(key)
    }

    /// Where a key is configured.
    pub fn place(&self, key: &str) -> Option<&'a Location> {
        self.config?.get(key)?.place.location()
    }

    /// Reports a problem with a value that [`ConfigReader::value`] returned; `path` starts with the key
    /// (`waivers[0].rule`).
    pub fn report_problem(&mut self, path: &str, at: &LocatedValue, message: &str) {
        self.problems.push(at.place.problem(format!("{}: {message}", self.path(path))));
    }

    fn read<T>(&mut self, key: &'static str, schema: Value, parse: impl Fn(&Value) -> Result<T, String>) -> Option<T> {
        let found = self.value(key, schema)?;
        match parse(&found.to_value()) {
            Ok(value) => Some(value),
            Err(why) => {
                self.report_problem(key, found, &why);
                None
            }
        }
    }

    fn path(&self, key: &str) -> String {
        format!("{}[{}].{}.{key}", keys::RULES, self.check, self.section)
    }

    /// The keys that were read, in the order in which they were read.
    pub fn keys(self) -> Vec<KeyDescription> {
        self.keys
    }

    /// Returns the problems: invalid values, and keys that were not read.
    pub fn finish(mut self) -> Result<(), Vec<Problem>> {
        let mut known: Vec<&str> = self.keys.iter().map(|key| key.name).collect();
        if self.section == "config" && !known.contains(&MODE) {
            known.push(MODE);
        }
        known.sort_unstable();
        if let Some(LocatedValue { data: LocatedData::Map(entries), .. }) = self.config {
            for (name, value) in entries.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
                let mut problem = value.key.problem(format!("unknown key {:?}", self.path(name)));
                problem.help = Some(match did_you_mean(name, known.iter().copied()) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => format!("known keys: {}", known.join(", ")),
                });
                self.problems.push(problem);
            }
        }
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems) }
    }
}

/// The key that every check has.
const MODE: &str = "mode";

/// Reads `mode`.
pub(super) fn mode(reader: &mut ConfigReader<'_>) -> Mode {
    let about = "error: findings of severity error block the deploy. warn: every finding is a warning.";
    let choices = [("error", Mode::Error), ("warn", Mode::Warn)];
    reader.strictness(MODE, about, &choices, Mode::Error, AmongManifests::Set)
}

impl KnownCheck {
    /// Reads the whole configuration and returns the mode.
    pub(super) fn read(&self, config: &CheckConfig) -> Result<Mode, Vec<Problem>> {
        let mut reader = ConfigReader::new(self.name, config);
        let mode = mode(&mut reader);
        (self.configure)(&mut reader);
        reader.finish().map(|()| mode)
    }

    /// Reads the mode of a check that has no other key.
    pub(super) fn mode_alone(name: &str, config: &CheckConfig) -> Result<Mode, Vec<Problem>> {
        let mut reader = ConfigReader::new(name, config);
        let mode = mode(&mut reader);
        reader.finish().map(|()| mode)
    }

    /// The keys of a check that has no key but `mode`.
    pub(super) fn keys_of_mode_alone() -> Vec<KeyDescription> {
        KnownCheck { name: "", about: "", configure: |_| () }.keys()
    }

    /// Every key that the check's `config` can have, `mode` first.
    pub fn keys(&self) -> Vec<KeyDescription> {
        let nothing = CheckConfig::default();
        let mut reader = ConfigReader::new(self.name, &nothing);
        mode(&mut reader);
        (self.configure)(&mut reader);
        reader.keys()
    }
}

impl KnownKind {
    /// Reads the section that defines the check `name`.
    pub(super) fn read(&self, name: &str, section: &CheckConfig) -> Result<(), Vec<Problem>> {
        let mut reader = ConfigReader::of_section(name, self.key, section);
        (self.configure)(&mut reader);
        reader.finish()
    }

    /// Every key that is allowed below `key`.
    pub fn keys(&self) -> Vec<KeyDescription> {
        let nothing = CheckConfig::default();
        let mut reader = ConfigReader::of_section("", self.key, &nothing);
        (self.configure)(&mut reader);
        reader.keys()
    }
}
