//! The names of the objects that OLM v1 creates from a ClusterServiceVersion when it installs a bundle.
//!
//! Only the names are computed, not the objects: the names are needed to grant OLM the permissions for these objects.

use std::collections::BTreeSet;

use serde::Serialize;
use sha2::{Digest, Sha224};

use super::{BundlePolicyRule, ClusterServiceVersion, CsvWebhook, Permissions};

/// The maximum length of a name that OLM creates, in bytes.
const MAX_NAME: usize = 63;

/// The objects that OLM creates in addition to those of the bundle. Unless noted otherwise, they are in the namespace
/// of the ClusterExtension.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OlmCreatedObjects {
    /// The service accounts of its permissions.
    pub service_accounts: BTreeSet<String>,
    /// The roles, each with a binding of the same name.
    pub roles: Vec<InstalledRole>,
    /// The Deployments.
    pub deployments: BTreeSet<String>,
    /// The Services of its webhooks.
    pub services: BTreeSet<String>,
    /// The ValidatingWebhookConfigurations, which are cluster-scoped.
    pub validating: BTreeSet<String>,
    /// The MutatingWebhookConfigurations, which are cluster-scoped.
    pub mutating: BTreeSet<String>,
    /// The cert-manager Certificates for webhooks, if OLM uses cert-manager.
    pub certificates: BTreeSet<String>,
    /// The cert-manager Issuers for webhooks, if OLM uses cert-manager.
    pub issuers: BTreeSet<String>,
}

/// A Role or ClusterRole that OLM creates from permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledRole {
    /// Its possible names. If namespaced permissions become a ClusterRole, earlier releases of OLM v1 do not add the
    /// permission to read namespaces, which gives the role another name.
    pub names: Vec<String>,
    /// The namespace of a Role; `None` for a ClusterRole.
    pub namespace: Option<String>,
    /// What it grants.
    pub rules: Vec<BundlePolicyRule>,
}

/// The objects that OLM creates from a ClusterServiceVersion if the operator watches the namespace `watched`, or all
/// namespaces if that is `None`.
pub fn installed(csv: &ClusterServiceVersion, watched: Option<&str>) -> OlmCreatedObjects {
    let mut installed = OlmCreatedObjects::default();
    for permissions in &csv.cluster_permissions {
        let names = vec![role_name(csv, permissions)];
        installed.roles.push(InstalledRole { names, namespace: None, rules: permissions.rules.clone() });
    }
    for permissions in &csv.permissions {
        installed.roles.push(match watched {
            Some(namespace) => InstalledRole {
                names: vec![role_name(csv, permissions)],
                namespace: Some(namespace.to_owned()),
                rules: permissions.rules.clone(),
            },
            None => {
                let mut with = permissions.clone();
                with.rules.push(reads_namespaces());
                let names = vec![role_name(csv, &with), role_name(csv, permissions)];
                InstalledRole { names, namespace: None, rules: with.rules }
            }
        });
    }
    let accounts = csv.permissions.iter().chain(&csv.cluster_permissions).map(account);
    // Every namespace already has the service account `default`.
    installed.service_accounts = accounts.filter(|name| *name != "default").map(str::to_owned).collect();
    installed.deployments = csv.deployments.iter().map(|deployment| deployment.name.clone()).collect();
    for webhook in &csv.webhooks {
        let name = webhook.generate_name.strip_suffix('-').unwrap_or(&webhook.generate_name).to_owned();
        match webhook.kind.as_str() {
            "ValidatingAdmissionWebhook" => drop(installed.validating.insert(name)),
            "MutatingAdmissionWebhook" => drop(installed.mutating.insert(name)),
            _ => {}
        }
        let service = service_of(webhook);
        let certificate = named(&service, "cert");
        installed.issuers.insert(named(&certificate, "selfsigned-issuer"));
        installed.certificates.insert(certificate);
        installed.services.insert(service);
    }
    installed
}

/// What OLM adds to a CRD for which the bundle has a conversion webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledConversion {
    /// `spec.conversion`, as JSON.
    pub spec: String,
    /// The value of cert-manager's annotation that injects the CA of a Certificate: `NAMESPACE/NAME`.
    pub inject_ca_from: String,
}

/// What OLM adds to the CRD `crd` when the bundle is installed into `namespace`; `None` if no webhook converts it.
pub fn conversion(csv: &ClusterServiceVersion, crd: &str, namespace: &str) -> Option<InstalledConversion> {
    let is_its =
        |webhook: &&CsvWebhook| webhook.is_conversion() && webhook.conversion_crds.iter().any(|name| name == crd);
    let webhook = csv.webhooks.iter().find(is_its)?;
    let service = service_of(webhook);
    let certificate = named(&service, "cert");
    let port = if webhook.container_port > 0 { webhook.container_port } else { 443 };
    let path = webhook.webhook_path.as_deref().unwrap_or("/");
    let spec = serde_json::json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"service": {"namespace": namespace, "name": service, "path": path, "port": port}},
        "conversionReviewVersions": webhook.admission_review_versions,
    }});
    Some(InstalledConversion { spec: spec.to_string(), inject_ca_from: format!("{namespace}/{certificate}") })
}

fn service_of(webhook: &CsvWebhook) -> String {
    named(&webhook.deployment_name.replace('.', "-"), "service")
}

fn account(permissions: &Permissions) -> &str {
    if permissions.service_account_name.is_empty() { "default" } else { &permissions.service_account_name }
}

/// The rule that OLM adds to namespaced permissions that become a ClusterRole, as classic OLM does.
fn reads_namespaces() -> BundlePolicyRule {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    BundlePolicyRule {
        verbs: texts(&["get", "list", "watch"]),
        api_groups: texts(&[""]),
        resources: texts(&["namespaces"]),
        ..BundlePolicyRule::default()
    }
}

/// The names of the bundle and the service account, and a hash of the permissions as Go serializes them.
fn role_name(csv: &ClusterServiceVersion, permissions: &Permissions) -> String {
    named(&format!("{}-{}", csv.name, account(permissions)), &hash(permissions))
}

/// `base-suffix`, with the base truncated if necessary.
fn named(base: &str, suffix: &str) -> String {
    let mut end = base.len();
    if base.len() + suffix.len() > MAX_NAME {
        end = MAX_NAME.saturating_sub(suffix.len() + 1).min(end);
    }
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{suffix}", &base[..end])
}

/// SHA-224 over the JSON, in base 36.
fn hash(permissions: &Permissions) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Go<'a> {
        service_account_name: &'a str,
        rules: Option<Vec<InstalledPolicyRule<'a>>>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct InstalledPolicyRule<'a> {
        verbs: Option<&'a [String]>,
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        api_groups: &'a [String],
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        resources: &'a [String],
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        resource_names: &'a [String],
        #[serde(rename = "nonResourceURLs", skip_serializing_if = "<[String]>::is_empty")]
        non_resource_urls: &'a [String],
    }
    fn rule(rule: &BundlePolicyRule) -> InstalledPolicyRule<'_> {
        // Go writes a nil slice as null.
        let verbs = (!rule.verbs.is_empty()).then_some(rule.verbs.as_slice());
        let BundlePolicyRule { api_groups, resources, resource_names, non_resource_urls, .. } = rule;
        InstalledPolicyRule { verbs, api_groups, resources, resource_names, non_resource_urls }
    }
    let rules = (!permissions.rules.is_empty()).then(|| permissions.rules.iter().map(rule).collect());
    let go = Go { service_account_name: &permissions.service_account_name, rules };
    let mut json = serde_json::to_string(&go).unwrap_or_default();
    // Go escapes these characters to make the text safe in HTML.
    for (plain, escaped) in
        [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")]
    {
        if json.contains(plain) {
            json = json.replace(plain, escaped);
        }
    }
    json.push('\n');
    base_36(Sha224::digest(json.as_bytes()).to_vec())
}

/// A big-endian number in base 36.
fn base_36(mut number: Vec<u8>) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut digits = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0u32;
        for byte in &mut number {
            let value = rest << 8 | u32::from(*byte);
            *byte = (value / 36) as u8;
            rest = value % 36;
        }
        digits.push(char::from(DIGITS[rest as usize]));
    }
    if digits.is_empty() { "0".to_owned() } else { digits.into_iter().rev().collect() }
}

#[cfg(test)]
mod tests {
    use super::super::DeploymentSpec;
    use super::*;

    fn rule(verbs: &[&str], group: &str, resource: &str) -> BundlePolicyRule {
        BundlePolicyRule {
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            api_groups: vec![group.to_owned()],
            resources: vec![resource.to_owned()],
            ..BundlePolicyRule::default()
        }
    }

    /// The name in operator-controller's guide, from a real cluster: argocd-operator v0.6.0, installed by OLM v1 in
    /// September 2024.
    #[test]
    fn roles_are_named_as_olm_names_them() {
        let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
        let permissions = Permissions {
            service_account_name: "argocd-operator-controller-manager".into(),
            rules: vec![
                rule(&all, "", "configmaps"),
                rule(&all, "coordination.k8s.io", "leases"),
                rule(&["create", "patch"], "", "events"),
            ],
        };
        let csv = ClusterServiceVersion {
            name: "argocd-operator.v0.6.0".into(),
            permissions: vec![permissions],
            ..ClusterServiceVersion::default()
        };
        let OlmCreatedObjects { roles, service_accounts, .. } = installed(&csv, None);
        assert_eq!(roles[0].names[1], "argocd-operator.v0-22gmilmgp91wu25is5i2ec598hni8owq3l71bbkl7iz3");
        assert_ne!(roles[0].names[0], roles[0].names[1]);
        assert_eq!(roles[0].rules.last(), Some(&reads_namespaces()));
        assert_eq!(service_accounts.into_iter().collect::<Vec<_>>(), ["argocd-operator-controller-manager"]);
        // Nothing is added for a single namespace.
        let OlmCreatedObjects { roles, .. } = installed(&csv, Some("watched"));
        assert_eq!(roles[0].names, ["argocd-operator.v0-22gmilmgp91wu25is5i2ec598hni8owq3l71bbkl7iz3"]);
        assert_eq!((roles[0].namespace.as_deref(), roles[0].rules.len()), (Some("watched"), 3));
    }

    #[test]
    fn hashes_of_permissions_use_the_json_that_go_writes() {
        let of = |rules: Vec<BundlePolicyRule>| hash(&Permissions { service_account_name: "a".into(), rules });
        // echo '{"serviceAccountName":"a","rules":[{"verbs":["\u003c\u003e\u0026"],"apiGroups":[""],"resources":["x"]}]}'
        assert_eq!(of(vec![rule(&["<>&"], "", "x")]), "1wh0ue9l1hm2ha8w0wmmib7h02x0lrjap5c47pan362q");
        assert_eq!(of(Vec::new()), "1mg0y6k63wxinew10sjnvq6ns2xttt0ngmh2h1wdpwhu");
        assert_eq!(
            (base_36(vec![0, 0]), base_36(vec![1, 0]), base_36(vec![35])),
            ("0".into(), "74".into(), "z".into())
        );
    }

    #[test]
    fn webhooks_bring_services_and_certificates() {
        let webhook = |kind: &str, name: &str| CsvWebhook {
            kind: kind.into(),
            generate_name: name.into(),
            deployment_name: "controller.manager".into(),
            ..CsvWebhook::default()
        };
        let csv = ClusterServiceVersion {
            webhooks: vec![
                webhook("ValidatingAdmissionWebhook", "v.kb.io-"),
                webhook("MutatingAdmissionWebhook", "m.kb.io"),
                webhook("ConversionWebhook", "c"),
            ],
            deployments: vec![DeploymentSpec { name: "controller.manager".into(), ..DeploymentSpec::default() }],
            cluster_permissions: vec![Permissions::default()],
            ..ClusterServiceVersion::default()
        };
        let installed = installed(&csv, None);
        let all = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!((all(&installed.validating), all(&installed.mutating)), ("v.kb.io".into(), "m.kb.io".into()));
        assert_eq!(all(&installed.services), "controller-manager-service");
        assert_eq!(all(&installed.certificates), "controller-manager-service-cert");
        assert_eq!(all(&installed.issuers), "controller-manager-service-cert-selfsigned-issuer");
        assert_eq!(
            (all(&installed.deployments), all(&installed.service_accounts)),
            ("controller.manager".into(), "".into())
        );
        let of_webhook = |path: Option<&str>, port| {
            let conversion_crds = vec!["a.b".into()];
            let path = path.map(str::to_owned);
            let versions = vec!["v1".into()];
            let webhook = CsvWebhook {
                conversion_crds,
                webhook_path: path,
                container_port: port,
                admission_review_versions: versions,
                ..webhook("ConversionWebhook", "c")
            };
            let csv = ClusterServiceVersion { webhooks: vec![webhook], ..ClusterServiceVersion::default() };
            assert_eq!(conversion(&csv, "other.b", "ns"), None);
            conversion(&csv, "a.b", "ns").unwrap()
        };
        let InstalledConversion { spec, inject_ca_from } = of_webhook(None, 0);
        assert_eq!(inject_ca_from, "ns/controller-manager-service-cert");
        assert_eq!(
            spec,
            r#"{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"namespace":"ns","name":"controller-manager-service","path":"/","port":443}},"conversionReviewVersions":["v1"]}}"#
        );
        assert!(of_webhook(Some("/convert"), 9443).spec.contains(r#""path":"/convert","port":9443"#));
        // A long name is truncated before its suffix.
        assert_eq!(named(&"a".repeat(80), "service").len(), MAX_NAME);
        assert_eq!(named("é", &"x".repeat(62)), format!("-{}", "x".repeat(62)));
    }
}
