//! The parts of a ClusterServiceVersion that a catalog keeps.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gantry_yaml::explain_json;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::bundle::{BundleDetail, ClusterServiceVersion, Profile, Support, UncheckedBundlePart, check_support};
use crate::json::RawFields;

/// The parts of a ClusterServiceVersion that determine how a bundle can be installed.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Csv {
    /// Its version; empty if the catalog has only its metadata.
    pub version: String,
    /// Its display name.
    pub display_name: String,
    /// The install modes that it supports.
    pub install_modes: Vec<String>,
    /// The number of webhooks that it defines; `None` if the catalog has only its metadata, which does not say.
    pub webhooks: Option<usize>,
    /// The oldest Kubernetes version that it runs on; empty if it does not say.
    pub min_kube_version: String,
    /// The whole ClusterServiceVersion, or the part of it that its metadata contains. Only if the properties of the
    /// bundle are kept and all fields have the right types.
    pub whole: Option<Box<ClusterServiceVersion>>,
}

impl Csv {
    /// Whether OLM v1 installs the bundle, as far as the ClusterServiceVersion in the catalog shows.
    pub fn support(&self, profile: &Profile<'_>) -> Support {
        match (&self.whole, self.webhooks) {
            (Some(csv), Some(_)) => check_support(BundleDetail::Csv(csv), profile),
            (Some(csv), None) => check_support(BundleDetail::Metadata(csv), profile),
            (None, _) => {
                let unchecked =
                    vec![UncheckedBundlePart::Webhooks, UncheckedBundlePart::Install, UncheckedBundlePart::Objects];
                Support { unchecked, ..Support::default() }
            }
        }
    }

    /// Whether it can watch all namespaces, which is how OLM v1 installs it.
    pub fn supports_all_namespaces(&self) -> bool {
        self.install_modes.iter().any(|mode| mode == "AllNamespaces")
    }

    /// Reads a ClusterServiceVersion from the value of an `olm.bundle.object`; `None` for another object.
    pub(crate) fn of_object(value: &RawValue, keeps_whole: bool) -> Result<Option<Csv>, String> {
        let fields: RawFields = serde_json::from_str(value.get()).map_err(|error| explain_json(&error))?;
        let data = fields.text("data")?;
        let bytes = STANDARD.decode(data.as_bytes()).map_err(|error| format!("data is not base64: {error}"))?;
        let text = String::from_utf8(bytes).map_err(|_| "data is not UTF-8".to_owned())?;
        // Nearly all objects are JSON, but YAML is allowed.
        match text.trim_start().starts_with('{') {
            true => Self::of_text(&text, keeps_whole),
            false => match gantry_yaml::to_json(&text) {
                Ok(Some(json)) => Self::of_text(&json.text, keeps_whole),
                Ok(None) => Ok(None),
                Err(error) => Err(error.message),
            },
        }
    }

    fn of_text(text: &str, keeps_whole: bool) -> Result<Option<Csv>, String> {
        let object: CatalogCsvObject = serde_json::from_str(text).map_err(|error| explain_json(&error))?;
        if object.kind != "ClusterServiceVersion" {
            return Ok(None);
        }
        let spec = object.spec.unwrap_or_default();
        let webhooks = Some(spec.webhooks.map_or(0, |webhooks| webhooks.len()));
        let whole = keeps_whole.then(|| ClusterServiceVersion::read(text).ok().map(Box::new)).flatten();
        Ok(Some(Csv { version: spec.version, webhooks, whole, ..Csv::from_metadata(spec.metadata) }))
    }

    /// Reads the value of an `olm.csv.metadata`.
    pub(crate) fn of_metadata(value: &RawValue, keeps_whole: bool) -> Result<Csv, String> {
        let metadata = serde_json::from_str::<CatalogCsvMetadata>(value.get()).map_err(|error| explain_json(&error))?;
        let whole = || ClusterServiceVersion::read_metadata(value.get()).ok().map(Box::new);
        Ok(Csv { whole: keeps_whole.then(whole).flatten(), ..Csv::from_metadata(metadata) })
    }

    fn from_metadata(metadata: CatalogCsvMetadata) -> Csv {
        let supported = metadata.install_modes.unwrap_or_default().into_iter().filter(|mode| mode.supported);
        Csv {
            version: String::new(),
            display_name: metadata.display_name.unwrap_or_default(),
            install_modes: supported.map(|mode| mode.kind).collect(),
            webhooks: None,
            min_kube_version: metadata.min_kube_version.unwrap_or_default(),
            whole: None,
        }
    }
}

#[derive(Deserialize)]
struct CatalogCsvObject {
    #[serde(default)]
    kind: String,
    spec: Option<CatalogCsvSpec>,
}

#[derive(Deserialize, Default)]
struct CatalogCsvSpec {
    #[serde(default)]
    version: String,
    #[serde(rename = "webhookdefinitions")]
    webhooks: Option<Vec<serde::de::IgnoredAny>>,
    #[serde(flatten)]
    metadata: CatalogCsvMetadata,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct CatalogCsvMetadata {
    display_name: Option<String>,
    install_modes: Option<Vec<CsvInstallMode>>,
    min_kube_version: Option<String>,
}

#[derive(Deserialize)]
struct CsvInstallMode {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    supported: bool,
}
