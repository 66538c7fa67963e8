//! The flags of keys: those that rows of the table make, and the values of the others.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum, value_parser};
use serde_json::Value;

use super::keys::{ConfigKey, KEYS, MadeFlag, SettingKind, wait_value};
use gantry_core::options::{ColorChoice, KappLines, OutputSpec, PresetFlag, Prune, PruneMax, TargetSpec, WaitPolicy};

/// The flags that are made from rows of the table, for `deploy`, `check` and `diff`: those that were given.
#[derive(Debug, Clone, Default)]
pub struct SettingFlags(BTreeMap<&'static str, Value>);

impl SettingFlags {
    /// With the boolean of a row, if it is true.
    pub fn with(mut self, key: &ConfigKey, is_on: bool) -> Self {
        self.0.extend(is_on.then(|| (key.path, true.into())));
        self
    }

    /// The text of a row, if its flag was given.
    pub fn text(&self, key: &ConfigKey) -> Option<&str> {
        self.0.get(key.path)?.as_str()
    }

    /// The values, by the path of their key.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(path, value)| (*path, value))
    }

    #[cfg(test)]
    pub(super) fn parse(flags: &[&str]) -> Self {
        let command = Self::augment_args(Command::new("gantry").no_binary_name(true));
        Self::from_arg_matches(&command.get_matches_from(flags)).unwrap()
    }
}

/// The rows that make a flag: the key, the name of the flag without its dashes, and what its help says.
fn made_flags() -> impl Iterator<Item = (&'static ConfigKey, &'static str, MadeFlag)> {
    KEYS.iter().filter_map(|key| Some((key, key.flag?.trim_start_matches('-'), key.made_flag?)))
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        command.args(made_flags().map(|(key, name, flag)| {
            let arg = Arg::new(key.path).long(name).help(flag.help);
            if key.kind == SettingKind::Bool {
                return arg.action(ArgAction::SetTrue);
            }
            let arg = arg.value_name(flag.value_name);
            match key.kind {
                SettingKind::Wait => arg
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true")
                    .value_parser(value_parser!(WaitPolicy)),
                SettingKind::Toggle => arg
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true")
                    .value_parser(value_parser!(bool)),
                SettingKind::Patterns => arg
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("*")
                    .value_delimiter(',')
                    .action(ArgAction::Append),
                // With the values, shells complete them.
                SettingKind::KappLines => {
                    let values = KappLines::value_variants().iter().filter_map(ValueEnum::to_possible_value);
                    arg.value_parser(PossibleValuesParser::new(values))
                }
                _ => arg,
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = made_flags().filter_map(|(key, _, _)| {
            let value = match key.kind {
                SettingKind::Bool => matches.get_flag(key.path).then(|| true.into()),
                SettingKind::Toggle => matches.get_one::<bool>(key.path).map(|is_on| (*is_on).into()),
                SettingKind::Wait => matches.get_one::<WaitPolicy>(key.path).copied().map(wait_value),
                SettingKind::Patterns => {
                    let items = matches.get_many::<String>(key.path)?;
                    Some(items.map(|item| Value::from(item.as_str())).collect())
                }
                _ => matches.get_one::<String>(key.path).map(|text| text.as_str().into()),
            };
            Some((key.path, value?))
        });
        Ok(SettingFlags(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(Self::from_arg_matches(matches)?.0);
        Ok(())
    }
}

/// The value of a flag, as a configuration file would have it.
pub trait FlagValue {
    /// `None` if the flag was not given; `Some(None)` if its value is not UTF-8.
    fn given_value(&self) -> Option<Option<Value>>;
}

impl<T: FlagValue> FlagValue for Option<T> {
    fn given_value(&self) -> Option<Option<Value>> {
        self.as_ref()?.given_value()
    }
}

impl FlagValue for bool {
    fn given_value(&self) -> Option<Option<Value>> {
        self.then(|| Some(true.into()))
    }
}

impl FlagValue for String {
    fn given_value(&self) -> Option<Option<Value>> {
        Some(Some(self.as_str().into()))
    }
}

impl FlagValue for PathBuf {
    fn given_value(&self) -> Option<Option<Value>> {
        Some(self.to_str().map(Value::from))
    }
}

impl FlagValue for Vec<String> {
    fn given_value(&self) -> Option<Option<Value>> {
        (!self.is_empty()).then(|| Some(self.clone().into()))
    }
}

impl FlagValue for Vec<OutputSpec> {
    fn given_value(&self) -> Option<Option<Value>> {
        let text = |output: &OutputSpec| {
            let format = output.format.to_possible_value()?.get_name().to_owned();
            match &output.file {
                None => Some(format),
                Some(file) => file.to_str().map(|file| format!("{format}={file}")),
            }
        };
        (!self.is_empty()).then(|| self.iter().map(text).collect())
    }
}

impl FlagValue for TargetSpec {
    fn given_value(&self) -> Option<Option<Value>> {
        Some(self.texts().map(one_or_list))
    }
}

impl FlagValue for Vec<TargetSpec> {
    fn given_value(&self) -> Option<Option<Value>> {
        if self.is_empty() {
            return None;
        }
        let texts: Option<Vec<Vec<String>>> = self.iter().map(TargetSpec::texts).collect();
        Some(texts.map(|texts| one_or_list(texts.concat())))
    }
}

/// One text as it is, and several as a list.
fn one_or_list(mut texts: Vec<String>) -> Value {
    if texts.len() == 1 { texts.remove(0).into() } else { texts.into() }
}

impl FlagValue for PruneMax {
    fn given_value(&self) -> Option<Option<Value>> {
        Some(Some(self.to_string().into()))
    }
}

impl FlagValue for Prune {
    fn given_value(&self) -> Option<Option<Value>> {
        word(self)
    }
}

impl FlagValue for PresetFlag {
    fn given_value(&self) -> Option<Option<Value>> {
        word(self)
    }
}

impl FlagValue for ColorChoice {
    fn given_value(&self) -> Option<Option<Value>> {
        word(self)
    }
}

/// The word of a value of an enumeration.
fn word(value: &impl ValueEnum) -> Option<Option<Value>> {
    value.to_possible_value().map(|value| Some(value.get_name().into()))
}
