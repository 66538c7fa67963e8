//! What OLM obtains the certificates of webhooks from.

use std::collections::BTreeSet;

use gantry_catalog::render::CertificateProvider;

use gantry_cluster::{Gvk, Target};
use gantry_olm::cluster_extension;

/// The group of cert-manager.
pub const CERT_MANAGER: &str = "cert-manager.io";

/// What OLM obtains certificates of webhooks from, according to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookCertificates {
    /// The provider.
    pub provider: CertificateProvider,
    /// Whether the kinds of cert-manager are left out: they are not served, and the target may lack them although the
    /// cluster will have them, because it is no server, or a server without OLM.
    pub are_left_out: bool,
}

impl Default for WebhookCertificates {
    fn default() -> Self {
        WebhookCertificates { provider: CertificateProvider::CertManager, are_left_out: false }
    }
}

impl WebhookCertificates {
    /// Asks the target what it serves.
    pub(super) async fn find(target: &Target) -> WebhookCertificates {
        let gvk = |group: &str, version: &str, kind: &str| Gvk {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        };
        let service_ca = gvk("operator.openshift.io", "v1", "ServiceCA");
        let issuers = gvk(CERT_MANAGER, "v1", "Issuer");
        let extensions = gvk(gantry_olm::cluster_catalog::GROUP, "v1", cluster_extension::KIND);
        let wanted = BTreeSet::from([service_ca.clone(), issuers.clone(), extensions.clone()]);
        // Without an answer, the plan reports that the kinds are unknown.
        let Ok(found) = target.discover(&wanted).await else { return WebhookCertificates::default() };
        if found.served.contains_key(&service_ca) {
            return WebhookCertificates { provider: CertificateProvider::ServiceCa, are_left_out: false };
        }
        let is_absent = |kind: &Gvk| !found.served.contains_key(kind) && !found.unanswered.contains_key(kind);
        let are_left_out = is_absent(&issuers) && (!target.is_server() || is_absent(&extensions));
        WebhookCertificates { are_left_out, ..WebhookCertificates::default() }
    }
}
