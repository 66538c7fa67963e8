//! A bundle of a plan, and the ClusterExtension that installs it.

use gantry_catalog::bundle;

use super::certificates::WebhookCertificates;
use gantry_core::manifest::{Manifest, Spans};
use gantry_core::problem::Location;
use gantry_olm::cluster_extension::{Extension, SafetyOff};

/// A bundle of the plan. Its objects are the changes whose manifest names it.
#[derive(Debug, Clone)]
pub struct PlannedBundle {
    /// The folder.
    pub directory: String,
    /// Its metadata.
    pub content: bundle::Bundle,
    /// The ClusterServiceVersion, for the places of findings.
    pub csv: Option<Manifest>,
    /// The ClusterExtension that installs it, if there is one.
    pub installer: Option<Installer>,
    /// What OLM obtains the certificates of its webhooks from.
    pub certificates: WebhookCertificates,
}

/// The ClusterExtension that installs a bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct Installer {
    /// Its spec.
    pub extension: Extension,
    /// Its place in the manifests, and that of the field that turns off OLM's check of CRDs, if it is set; `None` for a
    /// live one.
    pub at: Option<Location>,
}

impl PlannedBundle {
    /// Its package.
    pub fn package(&self) -> &str {
        &self.content.annotations.package
    }

    /// Its version; empty if it has none.
    pub fn version(&self) -> &str {
        self.content.csv.as_ref().map_or("", |(csv, _)| &csv.version)
    }

    /// The spec of the ClusterExtension that installs it.
    pub fn extension(&self) -> Option<&Extension> {
        self.installer.as_ref().map(|installer| &installer.extension)
    }

    /// The namespace that it is installed into, if its ClusterExtension is known.
    pub fn namespace(&self) -> Option<&str> {
        self.extension()?.install_namespace()
    }

    /// The namespace that its operator watches; `None` for all.
    pub fn watched<'b>(&'b self, install: &'b str) -> Option<&'b str> {
        let config = self.extension().and_then(|extension| extension.config["watchNamespace"].as_str());
        let (csv, _) = self.content.csv.as_ref()?;
        match config.filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => Some(namespace),
            None => (!csv.supports("AllNamespaces") && csv.supports("OwnNamespace")).then_some(install),
        }
    }

    /// Whether a webhook of the bundle converts this CRD.
    pub(super) fn has_conversion(&self, crd: &str) -> bool {
        let webhooks = self.content.csv.iter().flat_map(|(csv, _)| &csv.webhooks);
        webhooks
            .filter(|webhook| webhook.is_conversion())
            .any(|webhook| webhook.conversion_crds.iter().any(|name| name == crd))
    }

    /// `example 1.2.0 (bundles/example)`
    pub fn to_text(&self) -> String {
        let words = [self.package(), self.version()]
            .map(|word| gantry_core::text::sanitize(&gantry_core::text::cut(word, 100)).into_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
        match words.is_empty() {
            true => self.directory.clone(),
            false => format!("{} ({})", words.join(" "), self.directory),
        }
    }
}

impl Installer {
    /// The ClusterExtension of a manifest, if it is one.
    pub(super) fn of_manifest(manifest: &Manifest) -> Option<Installer> {
        let extension = Extension::parse(&manifest.object, &manifest.raw.value())?;
        let steps = extension.safety_off.map(SafetyOff::steps).unwrap_or_default();
        let at = Some(Spans::parse(&manifest.origin).locate(&steps).location);
        Some(Installer { extension, at })
    }
}
