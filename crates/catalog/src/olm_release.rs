//! The releases of OLM v1, as upstream names them, and what each supports.
//!
//! Source: `internal/operator-controller/features/features.go` and `api/v1/clusterextension_types.go` of
//! operator-controller 1.2.0, 1.5.1, 1.10.0 and 1.11.0.

use std::fmt;

/// The minor number of the newest known release.
const NEWEST_MINOR: u8 = 11;

/// A release of OLM v1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OlmRelease {
    /// The technology preview in OpenShift 4.16, with `v1alpha1` of ClusterExtension.
    V4_16,
    /// A minor release of operator-controller: `V1(11)` is 1.11.
    V1(u8),
}

impl Default for OlmRelease {
    fn default() -> Self {
        OlmRelease::NEWEST
    }
}

impl OlmRelease {
    /// The newest known release.
    pub const NEWEST: OlmRelease = OlmRelease::V1(NEWEST_MINOR);

    /// Every known upstream release.
    pub fn all() -> impl Iterator<Item = OlmRelease> {
        (0..=NEWEST_MINOR).map(OlmRelease::V1)
    }

    /// The upstream release with this name: `v1.11`, `1.11`, `v1.11.2`. A release that is newer than all known ones
    /// counts as the newest.
    pub fn parse(name: &str) -> Option<OlmRelease> {
        match NamedRelease::minor_of(name)? {
            ("1", minor) => Some(OlmRelease::V1(minor).min(OlmRelease::NEWEST)),
            _ => None,
        }
    }

    /// Whether it installs bundles with webhooks without a feature gate.
    pub fn supports_webhooks(self) -> bool {
        self >= OlmRelease::V1(6)
    }

    /// Whether a ClusterExtension has `spec.config`.
    pub fn has_config(self) -> bool {
        self >= OlmRelease::V1(5)
    }

    /// Whether it writes the objects of a bundle as the ServiceAccount of the ClusterExtension. Later releases ignore
    /// that field.
    pub fn needs_service_account(self) -> bool {
        self <= OlmRelease::V1(10)
    }

    /// Whether it has the feature gate `SingleOwnNamespaceInstallSupport`.
    pub fn can_watch_one_namespace(self) -> bool {
        self >= OlmRelease::V1(2)
    }
}

/// A release that a user names: one of upstream's, or the release of OpenShift that ships it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedRelease {
    /// What is judged for.
    pub olm: OlmRelease,
    /// The minor release of OpenShift 4, if that was named.
    pub openshift: Option<u8>,
}

/// The first release of OpenShift 4 with OLM v1, as a technology preview.
const FIRST_OPENSHIFT: u8 = 16;

impl NamedRelease {
    /// What the value of the setting `olm` names: `None` for `auto`, the release of the cluster.
    ///
    /// # Errors
    /// The text names no release; the error says which there are.
    pub fn parse(text: &str) -> Result<Option<NamedRelease>, String> {
        match text {
            "auto" => return Ok(None),
            "current" => return Ok(Some(NamedRelease { olm: OlmRelease::NEWEST, openshift: None })),
            _ => {}
        }
        let named = match NamedRelease::minor_of(text) {
            Some(("4", minor)) => of_openshift(minor).map(|olm| NamedRelease { olm, openshift: Some(minor) }),
            _ => OlmRelease::parse(text).map(|olm| NamedRelease { olm, openshift: None }),
        };
        let unknown = || {
            format!(
                "{text:?} is not a release of OLM v1: those of upstream are v1.0, v1.1 and so on; 4.{FIRST_OPENSHIFT} and later \
                 are those of OpenShift; auto is that of the cluster, current the newest"
            )
        };
        named.map(Some).ok_or_else(unknown)
    }

    /// Major and minor number of a name.
    fn minor_of(name: &str) -> Option<(&str, u8)> {
        let mut parts = name.strip_prefix('v').unwrap_or(name).split(['.', '-', '+']);
        Some((parts.next()?, parts.next()?.parse().ok()?))
    }

    /// What to know about the release of OpenShift that was named.
    pub fn note(&self) -> Option<String> {
        let minor = self.openshift.filter(|minor| *minor > FIRST_OPENSHIFT)?;
        Some(format!(
            "OpenShift 4.{minor} is judged as {}, the oldest release that it can contain: it does not say which upstream \
             release it is built from; if you know that, name it instead",
            self.olm
        ))
    }
}

/// What a release of OpenShift 4 has at least. 4.16 and 4.17 have a technology preview with `v1alpha1`; `v1` is from 4.18
/// on; bundles with webhooks from 4.21 on.
fn of_openshift(minor: u8) -> Option<OlmRelease> {
    match minor {
        ..FIRST_OPENSHIFT => None,
        FIRST_OPENSHIFT | 17 => Some(OlmRelease::V4_16),
        18 => Some(OlmRelease::V1(1)),
        19 => Some(OlmRelease::V1(2)),
        20 => Some(OlmRelease::V1(5)),
        21.. => Some(OlmRelease::V1(6)),
    }
}

impl fmt::Display for OlmRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OlmRelease::V4_16 => f.write_str("OLM v1 of OpenShift 4.16"),
            OlmRelease::V1(minor) => write!(f, "OLM v1.{minor}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_have_the_names_of_upstream_and_of_openshift() {
        let parse = |text: &str| NamedRelease::parse(text).map(|named| named.map(|named| named.olm));
        for (text, olm) in [
            ("v1.11", OlmRelease::V1(11)),
            ("v1.11.0", OlmRelease::V1(11)),
            ("1.5", OlmRelease::V1(5)),
            ("v1.10.0-rc1", OlmRelease::V1(10)),
            ("v1.99", OlmRelease::NEWEST),
            ("current", OlmRelease::NEWEST),
            ("4.16", OlmRelease::V4_16),
            ("4.17", OlmRelease::V4_16),
            ("4.18", OlmRelease::V1(1)),
            ("4.20.3", OlmRelease::V1(5)),
            ("4.25", OlmRelease::V1(6)),
        ] {
            assert_eq!(parse(text), Ok(Some(olm)), "{text}");
        }
        assert_eq!(parse("auto"), Ok(None));
        for text in ["4.15", "2.0", "v1", "newest", ""] {
            assert!(parse(text).is_err(), "{text}");
        }
        let note = |text: &str| NamedRelease::parse(text).unwrap().unwrap().note();
        assert!(note("4.19").unwrap().contains("OLM v1.2"));
        assert_eq!((note("4.16"), note("v1.2")), (None, None));
    }
}
