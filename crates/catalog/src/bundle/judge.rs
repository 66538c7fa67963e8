//! Whether OLM v1 installs a bundle, in OLM's own words.
//!
//! OLM looks at the ClusterServiceVersion first and ends with the first thing that it does not support; only then all
//! validators run, and everything that they find is reported.

use std::fmt;

use gantry_schema::gotext::quote;
use serde_json::Value;

use super::config;
use super::validators::{self, VALIDATORS};
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

/// What cannot be told of a bundle because too little of it is known.
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
    /// What cannot be told; nothing that OLM would not come to after what it has found already.
    pub unchecked: Vec<Unchecked>,
}

/// What OLM says of a bundle of which everything is known; none where it installs it.
pub fn unsupported(bundle: &Bundle, profile: &Profile<'_>) -> Vec<Unsupported> {
    judge(Known::Bundle(bundle), profile).unsupported
}

/// What OLM says of a bundle.
pub fn judge(known: Known<'_>, profile: &Profile<'_>) -> Judgement {
    let mut judgement = Judgement::default();
    if let Some(first) = refused(known, profile, &mut judgement.unchecked) {
        judgement.unsupported.push(first);
    } else {
        validate(known, &mut judgement);
    }
    if let Known::Bundle(bundle) = known {
        judgement.unsupported.extend(validators::owned_versions(bundle));
    }
    judgement.unchecked.sort();
    judgement
}

/// What OLM ends with before it validates anything.
fn refused(known: Known<'_>, profile: &Profile<'_>, unchecked: &mut Vec<Unchecked>) -> Option<Unsupported> {
    let (csv, file) = match known {
        Known::Bundle(bundle) => {
            if let Some(found) = bundle.subdirectories.first() {
                let text = format!(
                    "subdirectories are not allowed within the \"manifests\" directory of the bundle image filesystem: \
                     found {}",
                    quote(found)
                );
                return Some(Unsupported { reason: Reason::Olm, text, place: None });
            }
            match &bundle.csv {
                Some((csv, file)) => (csv, Some(file)),
                None => {
                    let text = "no ClusterServiceVersion found in \"manifests\"".to_owned();
                    return Some(Unsupported { reason: Reason::Olm, text, place: None });
                }
            }
        }
        Known::Csv(csv) | Known::Metadata(csv) => (csv, None),
    };
    let at = |text: String, steps: &[Step]| {
        let place = file.map(|file| csv_place(csv, file, steps));
        Some(Unsupported { reason: Reason::Olm, text, place })
    };
    let spec = Step::Key("spec");
    if !csv.owned_api_services.is_empty() {
        // Upstream's spelling.
        let text = "unsupported bundle: apiServiceDefintions are not supported".to_owned();
        return at(text, &[spec, Step::Key("apiservicedefinitions"), Step::Key("owned")]);
    }
    if matches!(known, Known::Metadata(_)) {
        unchecked.push(Unchecked::Webhooks);
    } else if !csv.webhooks.is_empty() && profile.olm == Olm::V4_16 {
        let text = "unsupported bundle: webhookDefinitions are not supported".to_owned();
        return at(text, &[spec, Step::Key("webhookdefinitions")]);
    }
    let modes = [spec, Step::Key("installModes")];
    let one_namespace = profile.single_own_namespace && profile.olm == Olm::Current;
    if !csv.supports("AllNamespaces") && !one_namespace {
        return at("unsupported bundle: bundle does not support AllNamespaces install mode".to_owned(), &modes);
    }
    if !["AllNamespaces", "SingleNamespace", "OwnNamespace"].iter().any(|mode| csv.supports(mode)) {
        let text = "unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace \
                    OwnNamespace] install modes";
        return at(text.to_owned(), &modes);
    }
    // The OLM of 4.16 has no `spec.config`.
    if profile.olm == Olm::Current
        && let Some(text) = config::refused(csv, profile, unchecked)
    {
        return Some(Unsupported { reason: Reason::Olm, text, place: None });
    }
    None
}

fn validate(known: Known<'_>, judgement: &mut Judgement) {
    let partial;
    let bundle = match known {
        Known::Bundle(bundle) => bundle,
        Known::Csv(csv) => {
            judgement.unchecked.push(Unchecked::Objects);
            partial = Bundle { csv: Some((csv.clone(), String::new())), ..Bundle::default() };
            &partial
        }
        Known::Metadata(_) => {
            judgement.unchecked.extend([Unchecked::Install, Unchecked::Objects]);
            return;
        }
    };
    let Some((csv, file)) = &bundle.csv else { return };
    let is_whole = matches!(known, Known::Bundle(_));
    for validator in VALIDATORS.iter().filter(|validator| is_whole || !validator.needs_bundle) {
        for validators::Complaint { text, at } in (validator.run)(bundle, csv) {
            let place = at.filter(|_| is_whole).map(|at| match at {
                validators::At::Csv(steps) => csv_place(csv, file, &steps),
                validators::At::Object { file, kind, name } => Place { file, object: (kind, name), steps: Vec::new() },
            });
            judgement.unsupported.push(Unsupported { reason: Reason::Olm, text, place });
        }
    }
}

pub(super) fn csv_place(csv: &ClusterServiceVersion, file: &str, steps: &[Step]) -> Place {
    let object = ("ClusterServiceVersion".to_owned(), csv.name.clone());
    Place { file: file.to_owned(), object, steps: steps.to_vec() }
}
