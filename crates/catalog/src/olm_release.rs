//! The releases of OLM v1, as upstream names them, and what each supports.
//!
//! Source: `internal/operator-controller/features/features.go` and `api/v1/clusterextension_types.go` of
//! operator-controller 1.2.0, 1.5.1, 1.10.0 and 1.11.0.

use std::fmt;

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
    pub const NEWEST: OlmRelease = OlmRelease::V1(11);

    /// The release with this name: `v1.11`, `1.11`, or an upstream version like `v1.11.2`; `4.16` for OpenShift.
    /// A release that is newer than all known ones counts as the newest.
    pub fn parse(name: &str) -> Option<OlmRelease> {
        let mut parts = name.strip_prefix('v').unwrap_or(name).split(['.', '-', '+']);
        match (parts.next()?, parts.next()?.parse::<u8>().ok()?) {
            ("1", minor) => Some(OlmRelease::V1(minor).min(OlmRelease::NEWEST)),
            ("4", 16) => Some(OlmRelease::V4_16),
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

impl fmt::Display for OlmRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OlmRelease::V4_16 => f.write_str("OLM v1 of OpenShift 4.16"),
            OlmRelease::V1(minor) => write!(f, "OLM v1.{minor}"),
        }
    }
}
