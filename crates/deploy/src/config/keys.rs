//! The keys of a `gantry.dev` Config, in one table.
//!
//! The validator, the environment, the flags, the JSON Schema, `gantry config show` and the documentation's test all
//! read the table. A new key is one row of [`table`]; [`super::Settings::is_on`] reads a boolean by its row.

mod kind;
pub mod table;

use super::located::LocatedValue;
pub use kind::SettingKind;
pub(super) use kind::{
    DNS_LABEL, HIDDEN, check_namespace, count, duration, path_of_target, releases, target, wait, wait_value, word,
};
pub use table::KEYS;

/// `apiVersion` of gantry's own documents.
pub const API_VERSION: &str = "gantry.dev/v1alpha1";
/// `apiVersion` of kapp's documents, some of whose keys gantry reads.
pub const KAPP_API_VERSION: &str = "kapp.k14s.io/v1alpha1";
/// `kind` of both.
pub const KIND: &str = "Config";

/// The keys that every document has in addition to those of the table.
pub(super) const ENVELOPE: &[&str] = &["apiVersion", "kind", "metadata"];

/// The key of the preset of CRDUpgradeSafety: of a document, and of the check's own configuration.
pub(super) const PRESET: &str = table::PRESET.path;

/// The keys of an entry of `preflightRules`.
pub(super) const RULE_KEYS: &[&str] = &["name", "enabled", "config", "exec", "cel"];

/// The [`RULE_KEYS`] whose value is a mapping: the configuration of a check, and the definitions of custom checks.
pub(super) const SECTIONS: &[&str] = &["config", "exec", "cel"];

/// The name of the key that holds the checks.
pub(super) const RULES: &str = table::PREFLIGHT_RULES.path;

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
    /// The type of the value, and how flags and variables write it.
    pub kind: SettingKind,
    /// The layers that may set it.
    pub reach: Reach,
    /// The text of the default; `None` if there is none, or if it depends on other settings.
    pub default: Option<&'static str>,
    /// The flag that sets it, if any.
    pub flag: Option<&'static str>,
    /// How `deploy`, `check` and `diff` get the flag from this row; `None` if `cli` declares it, because several
    /// commands have it or need it before they read the configuration.
    pub made_flag: Option<MadeFlag>,
    /// What more a deploy writes or deletes if the key is set; `None` if it does not.
    pub weakens: Option<&'static str>,
    about: &'static str,
}

/// A flag that is made from the row of its key.
#[derive(Debug, Clone, Copy)]
pub struct MadeFlag {
    /// The placeholder for the value in the help; not used for a boolean.
    pub value_name: &'static str,
    pub help: &'static str,
}

impl ConfigKey {
    /// Whether its boolean is true in a configuration.
    pub(super) fn is_on(&self, configuration: &LocatedValue) -> bool {
        configuration.at(self.path).and_then(LocatedValue::as_bool).unwrap_or(false)
    }

    const fn new(path: &'static str, kind: SettingKind, reach: Reach) -> Self {
        ConfigKey { path, kind, reach, default: None, flag: None, made_flag: None, weakens: None, about: "" }
    }

    const fn default(self, text: &'static str) -> Self {
        ConfigKey { default: Some(text), ..self }
    }

    /// `cli` declares the flag.
    const fn flag(self, flag: &'static str) -> Self {
        ConfigKey { flag: Some(flag), ..self }
    }

    /// The row makes the flag.
    const fn makes_flag(self, flag: &'static str, value_name: &'static str, help: &'static str) -> Self {
        ConfigKey { flag: Some(flag), made_flag: Some(MadeFlag { value_name, help }), ..self }
    }

    const fn weakens(self, what: &'static str) -> Self {
        ConfigKey { weakens: Some(what), ..self }
    }

    const fn about(self, about: &'static str) -> Self {
        ConfigKey { about, ..self }
    }

    /// What the key is for, as editors show it.
    pub fn description(&self) -> &'static str {
        self.about.trim_start()
    }

    /// The JSON Schema of its value, without its description.
    pub(super) fn schema(&self, generator: &mut schemars::SchemaGenerator) -> serde_json::Value {
        self.kind.schema(self, generator)
    }

    /// Parses the text of a variable or a default.
    pub(super) fn read_text(&self, text: &str) -> Result<serde_json::Value, String> {
        self.kind.read_text(text)
    }

    /// Checks that `value` is valid for this key. The error says why it is not.
    pub(super) fn check(&self, value: &serde_json::Value) -> Result<(), String> {
        self.kind.check(value)
    }

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
}

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
pub(super) fn names_below(parent: &str) -> Vec<&'static str> {
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

#[cfg(test)]
mod tests {
    use std::path::Path;

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
            names_below("timeouts"),
            ["request", "established", "apply", "ready", "resource", "delete", "credentials"]
        );
        assert_eq!(names_below("").iter().filter(|name| **name == "timeouts").count(), 1);
    }

    #[test]
    fn paths_in_a_file_start_at_its_folder() {
        let folder = Path::new("../config");
        assert_eq!(
            SettingKind::Target.below_folder("dir:live", folder),
            folder.join("live").to_str().map(|p| format!("dir:{p}")).unwrap()
        );
        assert_eq!(
            SettingKind::Target.below_folder("chart:old", folder),
            folder.join("old").to_str().map(|p| format!("chart:{p}")).unwrap()
        );
        for elsewhere in ["kube", "chart:oci://h/web", "helm:prod/web"] {
            assert_eq!(SettingKind::Target.below_folder(elsewhere, folder), elsewhere);
        }
        assert_eq!(SettingKind::Outputs.below_folder("json", folder), "json");
        assert_eq!(SettingKind::Text.below_folder("live", folder), "live");
    }
}
