//! Releases of Kubernetes.

use std::fmt;
use std::str::FromStr;

/// A release of Kubernetes, without its patch version: `1.36`.
///
/// The default is [the newest one that is known](Self::NEWEST_KNOWN).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KubernetesRelease {
    /// The number before the point.
    pub major: u32,
    /// The number after it.
    pub minor: u32,
}

impl KubernetesRelease {
    /// The newest release whose behavior is known. The tables of these crates are generated from it.
    pub const NEWEST_KNOWN: Self = Self::minor(37);
    /// The oldest release whose behavior is known.
    pub const OLDEST_KNOWN: Self = Self::minor(28);

    /// Release 1.`minor`.
    pub const fn minor(minor: u32) -> Self {
        KubernetesRelease { major: 1, minor }
    }

    /// Whether this release came after the newest one that is known, so it may accept more than the tables say.
    pub fn is_unknown(self) -> bool {
        self > Self::NEWEST_KNOWN
    }
}

impl Default for KubernetesRelease {
    fn default() -> Self {
        Self::NEWEST_KNOWN
    }
}

impl fmt::Display for KubernetesRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A text that is not a release of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a release of Kubernetes, such as \"1.30\"")]
pub struct InvalidRelease(String);

impl FromStr for KubernetesRelease {
    type Err = InvalidRelease;

    /// Reads `1.30`, and also `v1.30` and `1.30.14`: what a patch version changes is not told apart.
    fn from_str(text: &str) -> Result<Self, InvalidRelease> {
        let invalid = || InvalidRelease(text.to_owned());
        let number = |part: Option<&str>| {
            let part = part.filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?;
            part.parse::<u32>().ok()
        };
        let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
        let (major, minor) = (number(parts.next()), number(parts.next()));
        let is_patch = |patch: &str| patch.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
        match (major, minor, parts.next()) {
            (Some(major), Some(minor), patch) if major > 0 && patch.is_none_or(is_patch) => {
                Ok(KubernetesRelease { major, minor })
            }
            _ => Err(invalid()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_with_and_without_its_patch_version() {
        for text in ["1.30", "v1.30", "1.30.14", "v1.30.14-eks-1b2c3d4"] {
            assert_eq!(text.parse(), Ok(KubernetesRelease::minor(30)), "{text}");
        }
        for text in ["", "1", "1.", "latest", "1.x", "0.3", "1.30.", "1.-3", "+1.30", "1.30,1.32"] {
            assert!(text.parse::<KubernetesRelease>().is_err(), "{text}");
        }
    }
}
