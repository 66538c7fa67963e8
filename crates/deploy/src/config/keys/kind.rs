//! The types of values of keys: how each is read, checked and described.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::ConfigKey;
use crate::app;
use crate::config::{duration, located, raw};
use gantry_catalog::NamedRelease;
use gantry_core::options::{
    AdmissionMode, ColorChoice, FailOn, KappLines, OutputSpec, PresetFlag, Prune, PruneMax, ReportFormat, TargetSpec,
    UnjudgedChange, WaitPolicy, names_of,
};
use gantry_core::problem::not_one_of;
use gantry_core::render::Render;
use gantry_core::resource::is_dns_label;
use gantry_k8s_cel::{InvalidRelease, KubernetesRelease};

/// What is shown of a credential.
pub(in crate::config) const HIDDEN: &str = "(hidden)";

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    Bool,
    /// A boolean that is true by default, so that its flag names the value.
    Toggle,
    /// A small number.
    Count,
    /// What a deploy waits for: a boolean or a word.
    Wait,
    /// A non-empty string.
    Text,
    /// A credential, which is sent as a header and never shown.
    Secret,
    /// The name of a user, which is sent as a header.
    User,
    FieldManager,
    /// A program and its arguments, in the syntax of [`Render`].
    Command,
    Namespace,
    /// A file; in a config file, relative to that file's folder.
    File,
    /// `kube`, `dir:PATH` (the path as with [`Kind::File`]), `git:REV,…[:PATH]` or a list of these, `chart:CHART`, or
    /// `helm:RELEASE`.
    Target,
    Color,
    /// A list of `FORMAT` or `FORMAT=FILE`.
    Outputs,
    /// A list of patterns of objects, or of other texts.
    Patterns,
    /// A list of files; in a config file, relative to that file's folder.
    Paths,
    /// A list of names of groups, each of which is sent as a header.
    Groups,
    /// One or several releases of Kubernetes.
    Releases,
    Duration,
    /// The name of an app.
    App,
    /// Whether to delete members of an app that are no longer in the manifests.
    Prune,
    /// The maximum number or share of members to delete.
    PruneMax,
    /// The preset of CRDUpgradeSafety.
    Preset,
    /// The release of OLM v1.
    OlmRelease,
    /// Which findings block.
    FailOn,
    /// Whether the lines of kapp and OLM are printed.
    KappLines,
    /// What the admission webhook does with errors.
    AdmissionMode,
    /// What the admission webhook does with a change that it could not judge.
    UnjudgedChange,
    /// The list of checks.
    Rules,
    /// The list of waivers.
    Waivers,
    /// Labels and their values.
    Labels,
    /// Where the metadata of packages comes from; see [`super::catalogs`].
    Catalogs,
    /// A list of rules about objects; the lists of all layers are concatenated. See [`super::lists`].
    Bindings,
}

impl SettingKind {
    /// Parses the text of a variable or a default.
    pub(in crate::config) fn read_text(self, text: &str) -> Result<serde_json::Value, String> {
        let value = match self {
            SettingKind::Bool | SettingKind::Toggle => match text {
                "true" | "1" => true.into(),
                "false" | "0" => false.into(),
                _ => return Err(format!("{text:?} is not true or false")),
            },
            SettingKind::Count => count(&text.into())?.into(),
            SettingKind::Wait => wait_value(text.parse()?),
            SettingKind::Outputs | SettingKind::Patterns | SettingKind::Paths | SettingKind::Groups => {
                text.split(',').map(|item| item.trim().to_owned()).collect::<Vec<_>>().into()
            }
            _ => text.into(),
        };
        self.check(&value)?;
        Ok(value)
    }

    /// Checks that `value` is valid for this key. The error says why it is not.
    pub(in crate::config) fn check(self, value: &serde_json::Value) -> Result<(), String> {
        match self {
            SettingKind::Bool | SettingKind::Toggle => {
                value.as_bool().map(drop).ok_or_else(|| format!("{value} is not true or false"))
            }
            SettingKind::Count => count(value).map(drop),
            SettingKind::Wait => wait(value).map(drop),
            SettingKind::Releases => releases(value).map(drop),
            SettingKind::Target => target(value).map(drop),
            SettingKind::Rules
            | SettingKind::Waivers
            | SettingKind::Catalogs
            | SettingKind::Labels
            | SettingKind::Bindings => Ok(()),
            SettingKind::Outputs => {
                let wrong = || format!("{value} is not a list of output formats");
                let items = value.as_array().ok_or_else(wrong)?;
                if items.is_empty() {
                    return Err("the list is empty".into());
                }
                items.iter().try_for_each(|item| check_syntax::<OutputSpec>(item.as_str().ok_or_else(wrong)?))
            }
            SettingKind::Patterns | SettingKind::Paths | SettingKind::Groups => {
                let wrong = || format!("{value} is not a list of names");
                let items = value.as_array().filter(|items| !items.is_empty()).ok_or_else(wrong)?;
                items.iter().try_for_each(|item| {
                    let text = item.as_str().filter(|text| !text.is_empty()).ok_or_else(wrong)?;
                    if self == SettingKind::Groups { check_identity(text) } else { Ok(()) }
                })
            }
            SettingKind::Secret => self.check_text(value.as_str().ok_or("it is not a string; quote it")?),
            kind => kind.check_text(value.as_str().ok_or_else(|| located::not_a_string(value))?),
        }
    }

    /// The JSON Schema of a value of `key`, which is of this type.
    pub(in crate::config) fn schema(self, key: &ConfigKey, generator: &mut SchemaGenerator) -> Value {
        let text = |rules: Value| extend_schema(json!({"type": ["string", "null"]}), rules);
        match self {
            SettingKind::Bool | SettingKind::Toggle => json!({"type": ["boolean", "null"]}),
            SettingKind::Count => json!({"type": ["integer", "null"], "minimum": 0, "maximum": MOST_COUNTED}),
            SettingKind::Wait => json!({"enum": [true, WaitPolicy::Crds.name(), false]}),
            SettingKind::Secret => text(json!({"pattern": "^[!-~]+$"})),
            SettingKind::Text | SettingKind::User | SettingKind::File => text(json!({"minLength": 1})),
            SettingKind::FieldManager => text(json!({"minLength": 1, "maxLength": MAX_FIELD_MANAGER})),
            SettingKind::Command => text(json!({})),
            SettingKind::Namespace => text(json!({"maxLength": 63, "pattern": DNS_LABEL})),
            SettingKind::App => text(json!({"minLength": 1, "maxLength": 246})),
            SettingKind::Target => json!({
                "type": ["string", "array", "null"],
                "pattern": "^(kube|(dir|git|chart|helm):.+)$",
                "items": {"type": "string", "pattern": "^git:.+$"},
                "minItems": 1,
            }),
            SettingKind::PruneMax => text(json!({"pattern": "^([0-9]+|0*([0-9]{1,2}|100)%)$"})),
            SettingKind::Duration => text(json!({"pattern": DURATION})),
            SettingKind::Color => words::<ColorChoice>(),
            SettingKind::Prune => words::<Prune>(),
            SettingKind::Preset => words::<PresetFlag>(),
            SettingKind::OlmRelease => text(json!({"pattern": r"^(auto|current|v?1\.[0-9].*|v?4\.[0-9].*)$"})),
            SettingKind::FailOn => words::<FailOn>(),
            SettingKind::KappLines => words::<KappLines>(),
            SettingKind::AdmissionMode => words::<AdmissionMode>(),
            SettingKind::UnjudgedChange => words::<UnjudgedChange>(),
            SettingKind::Releases => json!({
                "type": ["string", "array", "null"],
                "pattern": format!("^{RELEASE}( *, *{RELEASE})*$"),
                "items": {"type": "string", "pattern": format!("^{RELEASE}$")},
                "minItems": 1,
            }),
            SettingKind::Groups | SettingKind::Patterns | SettingKind::Paths => {
                list(json!({"type": "string", "minLength": 1}))
            }
            SettingKind::Outputs => {
                let pattern = format!("^({})(=.+)?$", names_of::<ReportFormat>().join("|"));
                list(json!({"type": "string", "pattern": pattern}))
            }
            SettingKind::Rules
            | SettingKind::Waivers
            | SettingKind::Catalogs
            | SettingKind::Labels
            | SettingKind::Bindings => raw::schema_of_list(key.path, generator),
        }
    }

    fn check_text(self, text: &str) -> Result<(), String> {
        if text.is_empty() {
            return Err("the value is empty".into());
        }
        match self {
            SettingKind::Duration => duration(text).map(drop),
            SettingKind::Color => word::<ColorChoice>(text).map(drop),
            SettingKind::User => check_identity(text),
            SettingKind::Secret if text == HIDDEN => {
                Err("this is what gantry config show prints instead of the token".into())
            }
            SettingKind::Secret if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err("a token has only letters, digits and punctuation, without spaces or line breaks".into())
            }
            SettingKind::Command => check_syntax::<Render>(text),
            SettingKind::Namespace => check_namespace(text),
            SettingKind::App => Ok(app::check_name(text)?),
            SettingKind::Preset => word::<PresetFlag>(text).map(drop),
            SettingKind::OlmRelease => NamedRelease::parse(text).map(drop),
            SettingKind::FailOn => word::<FailOn>(text).map(drop),
            SettingKind::KappLines => word::<KappLines>(text).map(drop),
            SettingKind::AdmissionMode => word::<AdmissionMode>(text).map(drop),
            SettingKind::UnjudgedChange => word::<UnjudgedChange>(text).map(drop),
            SettingKind::Prune => word::<Prune>(text).map(drop),
            SettingKind::PruneMax => check_syntax::<PruneMax>(text),
            SettingKind::FieldManager
                if text.chars().count() > MAX_FIELD_MANAGER || text.chars().any(char::is_control) =>
            {
                Err("a field manager has at most 128 printable characters".into())
            }
            _ => Ok(()),
        }
    }

    /// Resolves the relative path in `text` against `folder`, the folder of the config file (relative to the working
    /// directory).
    pub(in crate::config) fn below_folder(self, text: &str, folder: &Path) -> String {
        let join = |path: &str| folder.join(path).to_string_lossy().into_owned();
        match self {
            SettingKind::File => join(text),
            SettingKind::Paths if text.contains("://") => text.to_owned(),
            SettingKind::Paths => join(text),
            SettingKind::Target => match path_of_target(text) {
                Some(path) => format!("{}{}", &text[..text.len() - path.len()], join(path)),
                None => text.to_owned(),
            },
            SettingKind::Outputs => match text.split_once('=') {
                Some((format, file)) => format!("{format}={}", join(file)),
                None => text.to_owned(),
            },
            _ => text.to_owned(),
        }
    }
}

/// The path in the text of a target: of a folder, or of a chart that is not in a registry.
pub(in crate::config) fn path_of_target(text: &str) -> Option<&str> {
    let of_chart = || text.strip_prefix("chart:").filter(|chart| !chart.contains("://"));
    text.strip_prefix("dir:").or_else(of_chart)
}

/// The target that a text or a list of texts names.
pub(in crate::config) fn target(value: &Value) -> Result<TargetSpec, String> {
    let parse = |value: &Value| {
        let text = value.as_str().ok_or_else(|| located::not_a_string(value))?;
        if text.is_empty() { Err("the value is empty".to_owned()) } else { Ok(text.parse::<TargetSpec>()?) }
    };
    match value.as_array() {
        None => parse(value),
        Some(list) if !list.iter().all(|item| item.as_str().is_some_and(|text| text.starts_with("git:"))) => {
            Err("several targets are commits, each git:REV[:PATH]".to_owned())
        }
        Some(list) => Ok(TargetSpec::unite(list.iter().map(parse).collect::<Result<_, _>>()?)?),
    }
}

/// Checks that `text` is a `T`.
fn check_syntax<T: FromStr<Err: Into<String>>>(text: &str) -> Result<(), String> {
    text.parse::<T>().map(drop).map_err(Into::into)
}

/// One of the words of `E`.
pub(in crate::config) fn word<E: ValueEnum>(text: &str) -> Result<E, String> {
    let names = names_of::<E>();
    E::from_str(text, false).map_err(|_| not_one_of(text, &names.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// Parses a number: as a file writes it, or as the text of a flag.
pub(in crate::config) fn count(value: &Value) -> Result<u32, String> {
    let number = match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_u64(),
    };
    let most = u64::from(MOST_COUNTED);
    let wrong = || format!("{value} is not a number from 0 to {most}");
    number.filter(|number| *number <= most).and_then(|number| u32::try_from(number).ok()).ok_or_else(wrong)
}

/// Parses the value of `wait` in a file.
pub(in crate::config) fn wait(value: &serde_json::Value) -> Result<WaitPolicy, String> {
    match value {
        serde_json::Value::Bool(true) => Ok(WaitPolicy::True),
        serde_json::Value::Bool(false) => Ok(WaitPolicy::False),
        serde_json::Value::String(word) if word == WaitPolicy::Crds.name() => Ok(WaitPolicy::Crds),
        _ => Err(format!("{value} is not true, crds or false")),
    }
}

/// Parses releases of Kubernetes: a list, or a string in which commas separate them. They are in ascending order.
pub(in crate::config) fn releases(value: &Value) -> Result<BTreeSet<KubernetesRelease>, String> {
    let release = |text: &str| {
        let release: KubernetesRelease = text.trim().parse().map_err(|error: InvalidRelease| error.to_string())?;
        match release < KubernetesRelease::OLDEST_KNOWN {
            true => Err(format!(
                "{release} is older than {}, the oldest release that gantry knows",
                KubernetesRelease::OLDEST_KNOWN
            )),
            false => Ok(release),
        }
    };
    match value {
        Value::String(text) => text.split(',').map(release).collect(),
        Value::Array(items) if !items.is_empty() => {
            items.iter().map(|item| release(item.as_str().ok_or_else(|| unquoted_release(item))?)).collect()
        }
        value => Err(unquoted_release(value)),
    }
}

fn unquoted_release(value: &Value) -> String {
    match value {
        Value::Number(number) => format!("{number} is a number; write the release in quotes: \"1.30\""),
        value => format!("{value} is not a release of Kubernetes, or a list of them"),
    }
}

/// The value that a file would have for `wait`.
pub(in crate::config) fn wait_value(wait: WaitPolicy) -> serde_json::Value {
    match wait {
        WaitPolicy::True => true.into(),
        WaitPolicy::Crds => wait.name().into(),
        WaitPolicy::False => false.into(),
    }
}

/// Parses a positive duration.
pub(in crate::config) fn duration(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Some(duration) if duration.is_zero() => Err(format!("{text:?} must be longer than zero")),
        Some(duration) => Ok(duration),
        None => Err(format!("{text:?} is not a duration such as 30s, 2m or 1h30m")),
    }
}

/// Checks that `text` can be sent as the name of a user or group.
fn check_identity(text: &str) -> Result<(), String> {
    match text.chars().find(|c| c.is_control()) {
        None => Ok(()),
        Some(character) => {
            let character = character.escape_default();
            Err(format!("the name contains the control character {character}, which cannot be sent"))
        }
    }
}

/// The pattern that [`check_namespace`] accepts, without the length limit.
pub(in crate::config) const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// Checks that `text` is a valid name for a namespace. The error says why it is not.
pub(in crate::config) fn check_namespace(text: &str) -> Result<(), String> {
    if is_dns_label(text) {
        return Ok(());
    }
    Err(format!(
        "{text:?} is not a namespace: at most 63 lower case letters, digits and -, starting and ending with a letter \
         or digit"
    ))
}

/// The longest name of a field manager, in characters.
/// <https://kubernetes.io/docs/reference/using-api/server-side-apply/#managers>
const MAX_FIELD_MANAGER: usize = 128;

/// The largest value of a number.
const MOST_COUNTED: u32 = 100;

/// The pattern of releases such as 1.30, which can have a patch version.
const RELEASE: &str = r"v?[0-9]+\.[0-9]+(\.[0-9].*)?";

/// The pattern of durations such as 1h30m.
const DURATION: &str = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$";

/// The schema of a list that is not empty.
fn list(item: Value) -> Value {
    json!({"type": ["array", "null"], "items": item, "minItems": 1})
}

/// The schema of one of the words of `E`.
fn words<E: ValueEnum>() -> Value {
    let words = names_of::<E>().into_iter().map(Value::from);
    json!({"enum": words.chain([Value::Null]).collect::<Vec<_>>()})
}

fn extend_schema(mut schema: Value, rules: Value) -> Value {
    if let (Value::Object(schema), Value::Object(rules)) = (&mut schema, rules) {
        schema.extend(rules);
    }
    schema
}
