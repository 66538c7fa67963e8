//! The keys of a `gantry.dev` Config, in one table.
//!
//! The validator, the environment, the flags, `gantry config show` and the documentation's test all read this table.
//! A new key is one row here and one field in [`super::raw::RawConfig`]; a test compares the two.

use std::path::Path;
use std::time::Duration;

use crate::app;
use crate::options::{ColorChoice, OutputSpec, PresetFlag, Prune, PruneMax, TargetSpec, WaitPolicy};
use crate::problem::not_one_of;
use crate::render::Render;
use crate::resource::is_dns_label;

use super::catalogs::CATALOGS;
use super::duration;
use super::located;

/// `apiVersion` of gantry's own documents.
pub const API_VERSION: &str = "gantry.dev/v1alpha1";
/// `apiVersion` of kapp's documents, some of whose keys gantry reads.
pub const KAPP_API_VERSION: &str = "kapp.k14s.io/v1alpha1";
/// `kind` of both.
pub const KIND: &str = "Config";

/// The keys that every document has in addition to those of the table.
pub(super) const ENVELOPE: &[&str] = &["apiVersion", "kind", "metadata"];

/// The key of the preset of CRDUpgradeSafety: of a document, and of the check's own configuration.
pub(super) const PRESET: &str = "preset";

/// The key of the list of waivers.
pub(super) const WAIVERS: &str = "waivers";

/// The keys of an entry of `preflightRules`.
pub(super) const RULE_KEYS: &[&str] = &["name", "enabled", "config", "exec", "cel"];

/// The [`RULE_KEYS`] whose value is a mapping: the configuration of a check, and the definitions of custom checks.
pub(super) const SECTIONS: &[&str] = &["config", "exec", "cel"];

/// The name of the key that holds the checks.
pub(super) const RULES: &str = "preflightRules";

/// The check of CRDs, which a notice names if it does not run although a CRD changes.
pub const CRD_UPGRADE_SAFETY: &str = "CRDUpgradeSafety";

/// The checks that run if no file of the team names a built-in check.
pub const DEFAULT_CHECKS: [&str; 2] = [CRD_UPGRADE_SAFETY, "CustomResourceValidation"];

/// The key in kapp's documents that defines how references to versioned objects are found.
pub(super) const TEMPLATE_RULES: &str = "templateRules";

/// The keys of kapp's `Config` that gantry ignores.
pub(super) const KAPP_KEYS: &[&str] = &[
    "diffAgainstLastAppliedFieldExclusionRules",
    "labelScopingRules",
    "minimumRequiredVersion",
    "ownershipLabelRules",
    TEMPLATE_RULES,
];

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    Bool,
    /// What a deploy waits for: a boolean or a word.
    Wait,
    /// A non-empty string.
    Text,
    /// The name of a user, which is sent as a header.
    User,
    FieldManager,
    /// A program and its arguments, in the syntax of [`Render`].
    Command,
    Namespace,
    /// A file; in a config file, relative to that file's folder.
    File,
    /// `kube`, `dir:PATH` (the path as with [`Kind::File`]) or `git:REV[:PATH]`.
    Target,
    Color,
    /// A list of `FORMAT` or `FORMAT=FILE`.
    Outputs,
    /// A list of non-empty strings.
    Texts,
    /// A list of names of groups, each of which is sent as a header.
    Groups,
    Duration,
    /// The name of an app.
    App,
    /// Whether to delete members of an app that are no longer in the manifests.
    Prune,
    /// The maximum number or share of members to delete.
    PruneMax,
    /// The preset of CRDUpgradeSafety.
    Preset,
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

/// Which config files may set a key. Configuration that others may have written must not redirect a deploy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// All, even Config documents among the manifests, which are data that others may have written.
    Manifests,
    /// Files, but not documents among the manifests.
    Files,
    /// The user's own file and `-c`, but not the project file, which is read from the working directory without being
    /// named.
    OwnFiles,
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub struct ConfigKey {
    /// The dotted path, such as `timeouts.request`.
    pub path: &'static str,
    pub kind: SettingKind,
    pub reach: Reach,
    pub default: Option<&'static str>,
    /// The flag that sets it, if any.
    pub flag: Option<&'static str>,
}

/// Every key, in display order.
#[rustfmt::skip]
pub const KEYS: &[ConfigKey] = &[
    ConfigKey { path: RULES, kind: SettingKind::Rules, reach: Reach::Manifests, default: None, flag: None },
    ConfigKey { path: WAIVERS, kind: SettingKind::Waivers, reach: Reach::Files, default: None, flag: None },
    ConfigKey { path: CATALOGS, kind: SettingKind::Catalogs, reach: Reach::Files, default: None, flag: None },
    ConfigKey { path: "changeGroupBindings", kind: SettingKind::Bindings, reach: Reach::Manifests, default: None, flag: None },
    ConfigKey { path: "changeRuleBindings", kind: SettingKind::Bindings, reach: Reach::Manifests, default: None, flag: None },
    ConfigKey { path: "waitRules", kind: SettingKind::Bindings, reach: Reach::Manifests, default: None, flag: None },
    ConfigKey { path: "rebaseRules", kind: SettingKind::Bindings, reach: Reach::Manifests, default: None, flag: None },
    ConfigKey { path: "diffMaskRules", kind: SettingKind::Bindings, reach: Reach::Manifests, default: None, flag: None },
    ConfigKey { path: "diffAgainstExistingFieldExclusionRules", kind: SettingKind::Bindings, reach: Reach::Manifests, default: None, flag: None },
    ConfigKey { path: "additionalLabels", kind: SettingKind::Labels, reach: Reach::Manifests, default: None, flag: None },
    ConfigKey { path: PRESET, kind: SettingKind::Preset, reach: Reach::Files, default: None, flag: Some("--preset") },
    ConfigKey { path: "warnOnly", kind: SettingKind::Bool, reach: Reach::Files, default: Some("false"), flag: Some("--warn-only") },
    ConfigKey { path: "target", kind: SettingKind::Target, reach: Reach::Files, default: Some("kube"), flag: Some("--target") },
    ConfigKey { path: "render", kind: SettingKind::Command, reach: Reach::OwnFiles, default: None, flag: Some("--render") },
    ConfigKey { path: "kubeconfig", kind: SettingKind::File, reach: Reach::OwnFiles, default: None, flag: Some("--kubeconfig") },
    ConfigKey { path: "context", kind: SettingKind::Text, reach: Reach::Files, default: None, flag: Some("--context") },
    ConfigKey { path: "as", kind: SettingKind::User, reach: Reach::OwnFiles, default: None, flag: Some("--as") },
    ConfigKey { path: "asGroups", kind: SettingKind::Groups, reach: Reach::OwnFiles, default: None, flag: Some("--as-group") },
    ConfigKey { path: "namespace", kind: SettingKind::Namespace, reach: Reach::Files, default: None, flag: Some("--namespace") },
    ConfigKey { path: "fieldManager", kind: SettingKind::FieldManager, reach: Reach::Files, default: Some("gantry"), flag: Some("--field-manager") },
    ConfigKey { path: "forceConflicts", kind: SettingKind::Bool, reach: Reach::Files, default: Some("false"), flag: Some("--force-conflicts") },
    ConfigKey { path: "takeOwnership", kind: SettingKind::Texts, reach: Reach::Files, default: None, flag: Some("--take-ownership") },
    ConfigKey { path: "app", kind: SettingKind::App, reach: Reach::Files, default: None, flag: Some("--app") },
    ConfigKey { path: "appNamespace", kind: SettingKind::Namespace, reach: Reach::Files, default: None, flag: Some("--app-namespace") },
    ConfigKey { path: "prune", kind: SettingKind::Prune, reach: Reach::Files, default: None, flag: Some("--prune") },
    ConfigKey { path: "pruneMax", kind: SettingKind::PruneMax, reach: Reach::Files, default: None, flag: Some("--prune-max") },
    ConfigKey { path: "wait", kind: SettingKind::Wait, reach: Reach::Files, default: None, flag: Some("--wait") },
    ConfigKey { path: "logs", kind: SettingKind::Bool, reach: Reach::Files, default: Some("false"), flag: Some("--logs") },
    ConfigKey { path: "ignoreFailingApiServices", kind: SettingKind::Bool, reach: Reach::Files, default: Some("false"), flag: Some("--ignore-failing-api-services") },
    ConfigKey { path: "keepGoing", kind: SettingKind::Bool, reach: Reach::Files, default: Some("false"), flag: Some("--keep-going") },
    ConfigKey { path: "timeouts.request", kind: SettingKind::Duration, reach: Reach::Files, default: Some("30s"), flag: None },
    ConfigKey { path: "timeouts.established", kind: SettingKind::Duration, reach: Reach::Files, default: Some("1m"), flag: None },
    ConfigKey { path: "timeouts.apply", kind: SettingKind::Duration, reach: Reach::Files, default: Some("2m"), flag: Some("--apply-timeout") },
    ConfigKey { path: "timeouts.ready", kind: SettingKind::Duration, reach: Reach::Files, default: Some("15m"), flag: Some("--wait-timeout") },
    ConfigKey { path: "timeouts.resource", kind: SettingKind::Duration, reach: Reach::Files, default: None, flag: Some("--wait-resource-timeout") },
    ConfigKey { path: "timeouts.delete", kind: SettingKind::Duration, reach: Reach::Files, default: Some("5m"), flag: None },
    ConfigKey { path: "timeouts.credentials", kind: SettingKind::Duration, reach: Reach::Files, default: Some("1m"), flag: None },
    ConfigKey { path: "allowExec", kind: SettingKind::Bool, reach: Reach::OwnFiles, default: Some("false"), flag: Some("--allow-exec") },
    ConfigKey { path: "redact", kind: SettingKind::Bool, reach: Reach::Files, default: Some("false"), flag: Some("--redact") },
    ConfigKey { path: "output", kind: SettingKind::Outputs, reach: Reach::Files, default: Some("human"), flag: Some("--output") },
    ConfigKey { path: "color", kind: SettingKind::Color, reach: Reach::Files, default: Some("auto"), flag: Some("--color") },
];

/// The environment variable that names the checks to run, like `--preflight`.
pub const PREFLIGHT_VARIABLE: &str = "GANTRY_PREFLIGHT";

/// The key at `path`.
pub(super) fn find(path: &str) -> Option<&'static ConfigKey> {
    KEYS.iter().find(|key| key.path == path)
}

/// Whether gantry also reads this key in kapp's documents.
pub(super) fn is_of_kapp(path: &str) -> bool {
    find(path).is_some_and(|key| matches!(key.kind, SettingKind::Rules | SettingKind::Labels | SettingKind::Bindings))
}

/// The names that are allowed below `parent` (`""` for the document itself).
pub(super) fn below(parent: &str) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = KEYS
        .iter()
        .filter_map(|key| match parent {
            "" => Some(key.path),
            _ => key.path.strip_prefix(parent)?.strip_prefix('.'),
        })
        .map(|rest| rest.split('.').next().unwrap_or(rest))
        .collect();
    names.dedup();
    names
}

impl ConfigKey {
    /// The environment variable, such as `GANTRY_TIMEOUTS__REQUEST`; `None` if one variable cannot hold the value.
    pub fn variable(&self) -> Option<String> {
        if matches!(
            self.kind,
            SettingKind::Rules
                | SettingKind::Waivers
                | SettingKind::Catalogs
                | SettingKind::Labels
                | SettingKind::Bindings
        ) {
            return None;
        }
        let mut name = String::from("GANTRY_");
        for character in self.path.chars() {
            match character {
                '.' => name.push_str("__"),
                upper if upper.is_ascii_uppercase() => {
                    name.push('_');
                    name.push(upper);
                }
                lower => name.push(lower.to_ascii_uppercase()),
            }
        }
        Some(name)
    }

    /// Parses the text of a variable or a default.
    pub(super) fn read_text(&self, text: &str) -> Result<serde_json::Value, String> {
        let value = match self.kind {
            SettingKind::Bool => match text {
                "true" | "1" => true.into(),
                "false" | "0" => false.into(),
                _ => return Err(format!("{text:?} is not true or false")),
            },
            SettingKind::Wait => wait_value(text.parse()?),
            SettingKind::Outputs | SettingKind::Texts | SettingKind::Groups => {
                text.split(',').map(|item| item.trim().to_owned()).collect::<Vec<_>>().into()
            }
            _ => text.into(),
        };
        self.check(&value)?;
        Ok(value)
    }

    /// Checks that `value` is valid for this key. The error says why it is not.
    pub(super) fn check(&self, value: &serde_json::Value) -> Result<(), String> {
        match self.kind {
            SettingKind::Bool => value.as_bool().map(drop).ok_or_else(|| format!("{value} is not true or false")),
            SettingKind::Wait => wait(value).map(drop),
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
                items.iter().try_for_each(|item| item.as_str().ok_or_else(wrong)?.parse::<OutputSpec>().map(drop))
            }
            SettingKind::Texts | SettingKind::Groups => {
                let wrong = || format!("{value} is not a list of names");
                let items = value.as_array().filter(|items| !items.is_empty()).ok_or_else(wrong)?;
                items.iter().try_for_each(|item| {
                    let text = item.as_str().filter(|text| !text.is_empty()).ok_or_else(wrong)?;
                    if self.kind == SettingKind::Groups { identity(text) } else { Ok(()) }
                })
            }
            kind => kind.check_text(value.as_str().ok_or_else(|| located::not_a_string(value))?),
        }
    }
}

impl SettingKind {
    fn check_text(self, text: &str) -> Result<(), String> {
        if text.is_empty() {
            return Err("the value is empty".into());
        }
        match self {
            SettingKind::Duration => duration(text).map(drop),
            SettingKind::Color => color(text).map(drop),
            SettingKind::Target => text.parse::<TargetSpec>().map(drop),
            SettingKind::User => identity(text),
            SettingKind::Command => text.parse::<Render>().map(drop),
            SettingKind::Namespace => namespace(text),
            SettingKind::App => app::check_name(text),
            SettingKind::Preset => preset(text),
            SettingKind::Prune => prune(text).map(drop),
            SettingKind::PruneMax => text.parse::<PruneMax>().map(drop),
            SettingKind::FieldManager if text.chars().count() > 128 || text.chars().any(char::is_control) => {
                Err("a field manager has at most 128 printable characters".into())
            }
            _ => Ok(()),
        }
    }

    /// Resolves the relative path in `text` against `folder`, the folder of the config file (relative to the working
    /// directory).
    pub(super) fn below_folder(self, text: &str, folder: &Path) -> String {
        let join = |path: &str| folder.join(path).to_string_lossy().into_owned();
        match self {
            SettingKind::File => join(text),
            SettingKind::Target => {
                text.strip_prefix("dir:").map_or_else(|| text.to_owned(), |path| format!("dir:{}", join(path)))
            }
            SettingKind::Outputs => match text.split_once('=') {
                Some((format, file)) => format!("{format}={}", join(file)),
                None => text.to_owned(),
            },
            _ => text.to_owned(),
        }
    }
}

/// When to colour.
pub(super) fn color(text: &str) -> Result<ColorChoice, String> {
    <ColorChoice as clap::ValueEnum>::from_str(text, false).map_err(|_| {
        let choices = ["auto", "always", "never"];
        not_one_of(text, &choices)
    })
}

/// Checks the name of a preset.
fn preset(text: &str) -> Result<(), String> {
    let names = PresetFlag::names();
    match names.iter().any(|name| name == text) {
        true => Ok(()),
        false => Err(not_one_of(text, &names.iter().map(String::as_str).collect::<Vec<_>>())),
    }
}

/// When to prune.
pub(super) fn prune(text: &str) -> Result<Prune, String> {
    <Prune as clap::ValueEnum>::from_str(text, false).map_err(|_| not_one_of(text, &["ask", "yes", "no"]))
}

/// Parses the value of `wait` in a file.
pub(super) fn wait(value: &serde_json::Value) -> Result<WaitPolicy, String> {
    match value {
        serde_json::Value::Bool(true) => Ok(WaitPolicy::True),
        serde_json::Value::Bool(false) => Ok(WaitPolicy::False),
        serde_json::Value::String(word) if word == WaitPolicy::Crds.name() => Ok(WaitPolicy::Crds),
        _ => Err(format!("{value} is not true, crds or false")),
    }
}

/// The value that a file would have for `wait`.
pub(super) fn wait_value(wait: WaitPolicy) -> serde_json::Value {
    match wait {
        WaitPolicy::True => true.into(),
        WaitPolicy::Crds => wait.name().into(),
        WaitPolicy::False => false.into(),
    }
}

/// Parses a positive duration.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Some(duration) if duration.is_zero() => Err(format!("{text:?} must be longer than zero")),
        Some(duration) => Ok(duration),
        None => Err(format!("{text:?} is not a duration such as 30s, 2m or 1h30m")),
    }
}

/// Checks that `text` can be sent as the name of a user or group.
fn identity(text: &str) -> Result<(), String> {
    match text.chars().find(|c| c.is_control()) {
        None => Ok(()),
        Some(character) => {
            let character = character.escape_default();
            Err(format!("the name contains the control character {character}, which cannot be sent"))
        }
    }
}

/// The pattern that [`namespace`] accepts, without the length limit.
pub(super) const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// Checks that `text` is a valid name for a namespace. The error says why it is not.
pub(super) fn namespace(text: &str) -> Result<(), String> {
    if is_dns_label(text) {
        return Ok(());
    }
    Err(format!(
        "{text:?} is not a namespace: at most 63 lower case letters, digits and -, starting and ending with a letter \
         or digit"
    ))
}

/// The text form of a target; `None` if its path is not UTF-8.
pub(super) fn target_text(target: &TargetSpec) -> Option<String> {
    match target {
        TargetSpec::Kube => Some("kube".into()),
        TargetSpec::Dir(path) => path.to_str().map(|path| format!("dir:{path}")),
        TargetSpec::Git(spec) => Some(spec.to_string()),
    }
}

/// The text form of an output; `None` if its path is not UTF-8.
pub(super) fn output_text(output: &OutputSpec) -> Option<String> {
    let format = clap::ValueEnum::to_possible_value(&output.format)?.get_name().to_owned();
    match &output.file {
        None => Some(format),
        Some(file) => file.to_str().map(|file| format!("{format}={file}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_valid_value() {
        for key in KEYS {
            if let Some(default) = key.default {
                assert_eq!(key.read_text(default).map(drop), Ok(()), "{}", key.path);
            }
        }
    }

    #[test]
    fn variables_are_named_after_their_keys() {
        assert_eq!(find("warnOnly").unwrap().variable().as_deref(), Some("GANTRY_WARN_ONLY"));
        assert_eq!(find("timeouts.request").unwrap().variable().as_deref(), Some("GANTRY_TIMEOUTS__REQUEST"));
        assert_eq!(find(RULES).unwrap().variable(), None);
        assert!(!KEYS.iter().any(|key| key.variable().as_deref() == Some(PREFLIGHT_VARIABLE)));
    }

    #[test]
    fn names_below_a_parent_are_found_once() {
        assert_eq!(
            below("timeouts"),
            ["request", "established", "apply", "ready", "resource", "delete", "credentials"]
        );
        assert_eq!(below("").iter().filter(|name| **name == "timeouts").count(), 1);
    }

    #[test]
    fn paths_in_a_file_start_at_its_folder() {
        let folder = Path::new("../config");
        assert_eq!(
            SettingKind::Target.below_folder("dir:live", folder),
            folder.join("live").to_str().map(|p| format!("dir:{p}")).unwrap()
        );
        assert_eq!(SettingKind::Target.below_folder("kube", folder), "kube");
        assert_eq!(SettingKind::Outputs.below_folder("json", folder), "json");
        assert_eq!(SettingKind::Text.below_folder("live", folder), "live");
    }
}
