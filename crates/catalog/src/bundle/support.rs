//! The inputs and the result of checking whether OLM v1 installs a bundle.

use std::fmt;

use serde_json::Value;

use super::{Bundle, ClusterServiceVersion};
use crate::olm_release::OlmRelease;

/// What the result of the check depends on in addition to the bundle.
#[derive(Debug, Clone, Copy, Default)]
pub struct Profile<'a> {
    /// The OLM that installs it.
    pub olm: OlmRelease,
    /// Whether OLM installs bundles that can watch only one namespace (feature gate
    /// `SingleOwnNamespaceInstallSupport`).
    pub single_own_namespace: bool,
    /// The namespace of the ClusterExtension; empty if it is unknown.
    pub install_namespace: &'a str,
    /// `spec.config.inline` of the ClusterExtension.
    pub config: Option<&'a Value>,
}

/// What is known of a bundle.
#[derive(Debug, Clone, Copy)]
pub enum BundleDetail<'a> {
    /// The whole bundle.
    Bundle(&'a Bundle),
    /// Its ClusterServiceVersion, from an `olm.bundle.object`.
    Csv(&'a ClusterServiceVersion),
    /// The part of its ClusterServiceVersion in an `olm.csv.metadata`.
    Metadata(&'a ClusterServiceVersion),
}

/// The kind of a problem with a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsupportedKind {
    /// OLM does not install it.
    Olm,
    /// OLM installs it, but the ClusterServiceVersion owns a version that the CRD does not serve.
    OwnedVersionMismatch,
}

/// A step to a value in a ClusterServiceVersion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvStep {
    /// The value of a key.
    Key(&'static str),
    /// An item of a list, from 0.
    Index(usize),
}

/// The place of a problem.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundlePlace {
    /// The file that contains the object.
    pub file: String,
    /// The object: kind and name.
    pub object: (String, String),
    /// The steps to the value in the object; empty for the whole object.
    pub steps: Vec<CsvStep>,
}

/// A problem with a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unsupported {
    /// The kind of the problem.
    pub reason: UnsupportedKind,
    /// For [`Reason::Olm`], exactly the text that OLM reports.
    pub text: String,
    /// The place of the problem, if it has one; always `None` if the bundle comes from a catalog.
    pub place: Option<BundlePlace>,
}

/// What cannot be checked because too little of a bundle is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UncheckedBundlePart {
    /// Whether it has webhooks.
    Webhooks,
    /// Whether the deployments and other definitions in its ClusterServiceVersion are valid.
    Install,
    /// Whether the objects of the bundle have supported kinds, and include the CRDs that its ClusterServiceVersion
    /// owns.
    Objects,
    /// Whether this OLM supports `deploymentConfig`, which depends on a feature gate.
    DeploymentConfig,
}

impl fmt::Display for UncheckedBundlePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UncheckedBundlePart::Webhooks => "whether it has webhooks",
            UncheckedBundlePart::Install => "whether its deployments are valid",
            UncheckedBundlePart::Objects => "whether its objects are supported",
            UncheckedBundlePart::DeploymentConfig => "whether this OLM supports deploymentConfig",
        })
    }
}

/// The problems found, and what could not be checked. A bundle is known to be supported only if both are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Support {
    /// The problems. As OLM does, this stops at the first problem, except for problems that the validators find
    /// together.
    pub unsupported: Vec<Unsupported>,
    /// What cannot be checked. Checks that OLM would not reach because of an earlier problem are left out.
    pub unchecked: Vec<UncheckedBundlePart>,
}

pub(super) fn csv_place(csv: &ClusterServiceVersion, file: &str, steps: &[CsvStep]) -> BundlePlace {
    let object = ("ClusterServiceVersion".to_owned(), csv.name.clone());
    BundlePlace { file: file.to_owned(), object, steps: steps.to_vec() }
}
