//! The documentation of a rule, from which `gantry rules` and `docs/rules/` are generated.

use crate::finding::{Breaks, Severity};

/// The documentation of a rule. The code that evaluates it belongs to the check; see `crd_upgrade_safety::Rule`.
#[derive(Debug, Clone, Copy)]
pub struct RuleDoc {
    /// `NoExistingFieldRemoved`
    pub name: &'static str,
    /// One line, for lists.
    pub summary: &'static str,
    /// What exactly is reported.
    pub reports: &'static str,
    /// What happens, and to whom, if the change is deployed anyway.
    pub why: &'static str,
    pub example: Example,
    pub what_to_do: &'static str,
    pub breaks: &'static [Breaks],
    /// The default severity.
    pub severity: Severity,
}

/// A minimal example that triggers this rule and no other, which tests verify.
#[derive(Debug, Clone, Copy)]
pub enum Example {
    /// Parts of a whole CRD, as YAML.
    Crd { live: &'static str, desired: &'static str },
    /// Fields of `spec` in the schema of one version, as YAML.
    Fields { live: &'static str, desired: &'static str },
    /// Parts of a whole CRD, and of an existing object.
    Stored { live: &'static str, desired: &'static str, object: &'static str },
    /// Fields of `spec` in the schema of one version, and part of an object among the manifests.
    Manifest { desired: &'static str, object: &'static str },
    /// The RBAC rules of the deploying user, and an object among the manifests.
    Rights { granted: &'static str, object: &'static str },
    /// Live objects and manifests; either can be empty.
    Objects { live: &'static str, desired: &'static str },
    /// An object that is removed from an app, and another live object.
    Deletion { left: &'static str, other: &'static str },
    /// Live objects and manifests of Operator Lifecycle Manager, and file-based catalogs.
    Extension { live: &'static str, desired: &'static str, catalogs: &'static [&'static str] },
}

impl Example {
    /// The live part; empty if it does not matter.
    pub fn live(&self) -> &'static str {
        match self {
            Example::Crd { live, .. }
            | Example::Fields { live, .. }
            | Example::Stored { live, .. }
            | Example::Objects { live, .. }
            | Example::Extension { live, .. } => live,
            Example::Manifest { .. } | Example::Rights { .. } | Example::Deletion { .. } => "",
        }
    }

    pub fn desired(&self) -> &'static str {
        match self {
            Example::Crd { desired, .. }
            | Example::Fields { desired, .. }
            | Example::Stored { desired, .. }
            | Example::Manifest { desired, .. }
            | Example::Objects { desired, .. }
            | Example::Extension { desired, .. } => desired,
            Example::Rights { .. } | Example::Deletion { .. } => "",
        }
    }

    /// All parts of the example, each with its title.
    pub fn parts(&self) -> Vec<(&'static str, &'static str)> {
        let granted = if let Example::Rights { granted, .. } = self { granted } else { "" };
        let object = self.object().unwrap_or_default();
        let (left, other) = if let Example::Deletion { left, other } = self { (*left, *other) } else { ("", "") };
        let catalogs: &[&str] = if let Example::Extension { catalogs, .. } = self { catalogs } else { &[] };
        let catalog = |index: usize| catalogs.get(index).copied().unwrap_or_default();
        let first = if catalogs.len() > 1 { "the first catalog" } else { "the catalog" };
        let parts = [
            ("live", self.live()),
            ("desired", self.desired()),
            ("granted", granted),
            ("object", object),
            ("deleted", left),
            ("live beside it", other),
            (first, catalog(0)),
            ("the second catalog", catalog(1)),
        ];
        parts.into_iter().filter(|(_, part)| !part.is_empty()).collect()
    }

    /// The object of the example, if it has one.
    pub fn object(&self) -> Option<&'static str> {
        match self {
            Example::Crd { .. }
            | Example::Fields { .. }
            | Example::Objects { .. }
            | Example::Deletion { .. }
            | Example::Extension { .. } => None,
            Example::Stored { object, .. } | Example::Manifest { object, .. } | Example::Rights { object, .. } => {
                Some(object)
            }
        }
    }
}
