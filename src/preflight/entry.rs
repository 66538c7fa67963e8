//! What a check is to the rest of the program: its name, configuration and documentation, and how it is made.

use super::Check;
use super::rule::RuleDoc;
use crate::config::{ConfigMap, ConfigReader, KeyDescription, KnownCheck};

/// A check as the rest of the program knows it.
#[derive(Debug, Clone, Copy)]
pub struct CheckEntry {
    /// PascalCase, as in `--preflight` and `preflightRules`.
    pub name: &'static str,
    /// One line, for lists.
    pub summary: &'static str,
    /// The page of the documentation, from the root of the repository.
    pub docs: &'static str,
    pub rules: fn() -> Vec<&'static RuleDoc>,
    /// Every name that a finding of this check may have; more than its rules where it reproduces other tools.
    pub names: fn() -> Vec<&'static str>,
    /// Declares the check's own keys by reading them. `mode` is not among them: every check has it.
    pub configure: fn(&mut ConfigReader<'_>),
    /// Makes the check from a configuration that `configure` has found good.
    pub build: fn(&ConfigMap) -> Box<dyn Check>,
    /// What other checks find and this one reports better.
    pub supersedes: &'static [Superseded],
    /// The rule that reports fields that another field manager owns, where the check has one: what it reports, the plan
    /// need not say as well.
    pub field_conflicts: Option<&'static str>,
    /// The lines for scripts about one blocked CRD, from the documented texts of its findings.
    pub documented: fn(crd: &str, texts: &[&str]) -> Vec<String>,
}

/// Findings of another check that are left out where this one reports the same with the same severity.
#[derive(Debug, Clone, Copy)]
pub struct Superseded {
    pub check: &'static str,
    /// The rule of that check. Its findings and ours are compared by their [`Complaint`](crate::finding::Complaint).
    pub rule: &'static str,
}

impl CheckEntry {
    /// The check as the configuration knows it.
    pub fn known(&self) -> KnownCheck {
        KnownCheck { name: self.name, about: self.summary, configure: self.configure }
    }

    /// The keys of the check's `config`, `mode` first.
    pub fn keys(&self) -> Vec<KeyDescription> {
        self.known().keys()
    }
}
