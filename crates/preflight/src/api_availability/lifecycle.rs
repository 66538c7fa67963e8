//! In which releases of Kubernetes its built-in kinds are deprecated and removed.
//!
//! `crates/testbed/control-plane/api-lifecycle` generates the table from the API's own source, at the newest release
//! that is known, and documents its columns.
use gantry_k8s_cel::KubernetesRelease;

/// Of [`KubernetesRelease::NEWEST_KNOWN`]. Later deprecations are only announced, so they are not reported yet.
const TABLE: &str = include_str!("lifecycle.txt");

/// The deprecation and removal of one kind at one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifecycle {
    /// `extensions/v1beta1`
    pub api_version: &'static str,
    pub kind: &'static str,
    pub deprecated: Option<KubernetesRelease>,
    /// The first release that does not serve it.
    pub removed: Option<KubernetesRelease>,
    /// The apiVersion and kind of the replacement.
    pub successor: Option<(&'static str, &'static str)>,
}

impl Lifecycle {
    /// `None` if the kind is neither deprecated nor removed at this version.
    pub fn find(api_version: &str, kind: &str) -> Option<Self> {
        all().find(|entry| entry.api_version == api_version && entry.kind == kind)
    }

    /// Whether a server of this release no longer serves it.
    pub fn is_removed_in(&self, release: KubernetesRelease) -> bool {
        self.removed.is_some_and(|removed| removed <= release)
    }

    /// Whether a server of this release warns of it.
    pub fn is_deprecated_in(&self, release: KubernetesRelease) -> bool {
        self.deprecated.is_some_and(|deprecated| deprecated <= release)
    }

    /// The replacement: `networking.k8s.io/v1`, or `EndpointSlice of discovery.k8s.io/v1` if the kind differs.
    pub fn replacement(&self) -> Option<String> {
        let (api_version, kind) = self.successor?;
        Some(if kind == self.kind { api_version.to_owned() } else { format!("{kind} of {api_version}") })
    }
}

fn all() -> impl Iterator<Item = Lifecycle> {
    TABLE.lines().filter_map(read)
}

fn read(line: &'static str) -> Option<Lifecycle> {
    let mut words = line.split(' ');
    let (api_version, kind, deprecated, removed) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let successor = words.next().zip(words.next());
    Some(Lifecycle { api_version, kind, deprecated: deprecated.parse().ok(), removed: removed.parse().ok(), successor })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minor: u32) -> KubernetesRelease {
        KubernetesRelease::minor(minor)
    }

    #[test]
    fn every_line_of_the_table_is_read_and_names_an_end() {
        assert_eq!(all().count(), TABLE.lines().count());
        assert!(all().count() > 70);
        for entry in all() {
            assert!(entry.deprecated.is_some() || entry.removed.is_some(), "{entry:?}");
            assert_ne!(entry.successor, Some((entry.api_version, entry.kind)));
        }
    }

    #[test]
    fn a_successor_in_the_table_is_never_a_removed_api() {
        for entry in all().filter(|entry| entry.is_removed_in(KubernetesRelease::NEWEST_KNOWN)) {
            let Some((api_version, kind)) = entry.successor else { continue };
            let next = Lifecycle::find(api_version, kind);
            assert!(next.is_none_or(|next| !next.is_removed_in(KubernetesRelease::NEWEST_KNOWN)), "{entry:?}");
        }
    }

    #[test]
    fn releases_and_successors_are_those_of_the_deprecation_guide() {
        let ingress = Lifecycle::find("extensions/v1beta1", "Ingress").unwrap();
        assert_eq!((ingress.deprecated, ingress.removed), (Some(at(14)), Some(at(22))));
        assert_eq!(ingress.replacement().as_deref(), Some("networking.k8s.io/v1"));
        assert!(ingress.is_removed_in(at(22)) && !ingress.is_removed_in(at(21)) && ingress.is_deprecated_in(at(21)));
        let endpoints = Lifecycle::find("v1", "Endpoints").unwrap();
        assert_eq!(
            (endpoints.removed, endpoints.replacement().unwrap().as_str()),
            (None, "EndpointSlice of discovery.k8s.io/v1")
        );
        assert_eq!(Lifecycle::find("policy/v1beta1", "PodSecurityPolicy").unwrap().successor, None);
        assert_eq!(Lifecycle::find("apps/v1", "Deployment"), None);
    }
}
