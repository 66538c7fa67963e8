//! The registry entry of a check: its name, configuration and documentation, and how to build it.

use super::Check;
use super::rule::RuleDoc;
use gantry_deploy::config::{CheckConfig, ConfigReader, KeyDescription, KnownCheck};

/// The registry entry of a check.
#[derive(Debug, Clone, Copy)]
pub struct CheckEntry {
    /// PascalCase, as in `--preflight` and `preflightRules`.
    pub name: &'static str,
    /// One line, for lists.
    pub summary: &'static str,
    /// The texts of its rules, in the order of the lists.
    pub rules: fn() -> Vec<&'static RuleDoc>,
    /// Every name that a finding of this check can have, if it reproduces other tools; otherwise those of its rules.
    pub names: Option<fn() -> Vec<&'static str>>,
    /// Declares the check's own keys by reading them. They do not include `mode`, which every check has.
    pub configure: fn(&mut ConfigReader<'_>),
    /// Builds the check from a configuration that `configure` has accepted.
    pub build: fn(&CheckConfig) -> Box<dyn Check>,
    /// Findings of other checks that this one reports better.
    pub supersedes: &'static [Superseded],
    /// The rules whose findings predict that the API server refuses a request of the deploy. The runner keeps these
    /// findings errors, whatever the mode, waivers and baseline: accepted, they would end the deploy half way.
    pub refusals: &'static [&'static str],
    /// Runs whenever the deploy may delete something, even if nothing names it.
    pub guards_deletions: bool,
    /// Runs whenever a bundle of OLM is among the manifests, unless the configuration switches it off. What it cannot
    /// check is then a notice.
    pub guards_bundles: bool,
    /// The rule that reports fields owned by another field manager, if the check has one. The plan does not repeat what
    /// it reports.
    pub field_conflicts: Option<&'static str>,
    /// The lines for scripts about one blocked CRD, from the documented texts of its findings.
    pub documented: fn(crd: &str, texts: &[&str]) -> Vec<String>,
}

/// Findings of another check that are left out if this one reports the same with at least the same severity.
#[derive(Debug, Clone, Copy)]
pub struct Superseded {
    /// The name of the other check.
    pub check: &'static str,
    /// The rule of that check. Findings of both checks are compared by their [`Complaint`](gantry_core::finding::Complaint).
    pub rule: &'static str,
}

impl CheckEntry {
    /// A check without keys of its own, and without anything else that is optional.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        rules: fn() -> Vec<&'static RuleDoc>,
        build: fn(&CheckConfig) -> Box<dyn Check>,
    ) -> Self {
        CheckEntry {
            name,
            summary,
            rules,
            names: None,
            configure: |_| {},
            build,
            supersedes: &[],
            refusals: &[],
            guards_deletions: false,
            guards_bundles: false,
            field_conflicts: None,
            documented: |_, _| Vec::new(),
        }
    }

    /// The page of the documentation, relative to the root of the repository.
    pub fn docs(&self) -> String {
        format!("docs/checks/{}.md", self.name)
    }

    /// Every name that a finding of this check can have.
    pub(crate) fn finding_names(&self) -> Vec<&'static str> {
        match self.names {
            Some(names) => names(),
            None => (self.rules)().iter().map(|rule| rule.name).collect(),
        }
    }

    /// The check's entry for the configuration.
    pub fn known(&self) -> KnownCheck {
        KnownCheck { name: self.name, about: self.summary, configure: self.configure }
    }

    /// The keys of the check's `config`, `mode` first.
    pub fn keys(&self) -> Vec<KeyDescription> {
        self.known().keys()
    }
}
