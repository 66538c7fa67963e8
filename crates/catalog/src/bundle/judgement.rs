//! What is asked about a bundle, and what the answer is.

use std::fmt;

use serde_json::Value;

use super::{Bundle, ClusterServiceVersion};

/// The OLM that installs the bundle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Olm {
    /// Upstream's of today: webhooks are supported.
    #[default]
    Current,
    /// The one of OpenShift 4.16: bundles with webhooks are refused.
    V4_16,
}

/// What the judgement depends on beside the bundle.
#[derive(Debug, Clone, Copy, Default)]
pub struct Profile<'a> {
    /// The OLM that installs it.
    pub olm: Olm,
    /// Whether bundles are installed that can watch one namespace only (the feature gate `SingleOwnNamespaceInstallSupport`).
    pub single_own_namespace: bool,
    /// The namespace of the ClusterExtension; empty where it is not known.
    pub install_namespace: &'a str,
    /// `spec.config.inline` of the ClusterExtension.
    pub config: Option<&'a Value>,
}

/// What is known of a bundle.
#[derive(Debug, Clone, Copy)]
pub enum Known<'a> {
    /// All of it.
    Bundle(&'a Bundle),
    /// Its ClusterServiceVersion, as `olm.bundle.object` has it.
    Csv(&'a ClusterServiceVersion),
    /// What `olm.csv.metadata` has of its ClusterServiceVersion.
    Metadata(&'a ClusterServiceVersion),
}

/// Who says that the bundle is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// OLM does not install it.
    Olm,
    /// OLM installs it, but the ClusterServiceVersion says of a CRD what is not so.
    OwnedVersionMismatch,
}

/// A step to a value in a ClusterServiceVersion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The value of a key.
    Key(&'static str),
    /// An item of a list, from 0.
    Index(usize),
}

/// Where the reason is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file that holds the object.
    pub file: String,
    /// The object: kind and name.
    pub object: (String, String),
    /// The steps in it; none for the object as a whole.
    pub steps: Vec<Step>,
}

/// Why a bundle is not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Who says so.
    pub reason: Reason,
    /// What OLM says, to the letter.
    pub text: String,
    /// Where that is written, if it is written somewhere; never known where the bundle comes from a catalog.
    pub place: Option<Place>,
}

/// What cannot be checked of a bundle because too little of it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unchecked {
    /// Whether it has webhooks.
    Webhooks,
    /// Whether what its ClusterServiceVersion installs is valid.
    Install,
    /// Whether the objects of the bundle are of supported kinds, and those that its ClusterServiceVersion owns.
    Objects,
    /// Whether this OLM takes `deploymentConfig`, which a feature gate decides.
    DeploymentConfig,
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unchecked::Webhooks => "whether it has webhooks",
            Unchecked::Install => "whether its deployments are valid",
            Unchecked::Objects => "whether its objects are supported",
            Unchecked::DeploymentConfig => "whether this OLM supports deploymentConfig",
        })
    }
}

/// What is found, and what could not be looked at. A bundle is known to be supported only if both are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Why it is not installed. OLM ends with the first one of its own unless the validators find them.
    pub unsupported: Vec<Unsupported>,
    /// What cannot be checked; nothing that OLM would not come to after what it has found already.
    pub unchecked: Vec<Unchecked>,
}

pub(super) fn csv_place(csv: &ClusterServiceVersion, file: &str, steps: &[Step]) -> Place {
    let object = ("ClusterServiceVersion".to_owned(), csv.name.clone());
    Place { file: file.to_owned(), object, steps: steps.to_vec() }
}
