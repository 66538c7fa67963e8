//! Webhook configurations, the Services that they call, certificates, and the conversion of CRDs.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{ParsedCsv, ParsedWebhook, RenamedField, RenderOptions, RenderedObject, names, object};
use crate::bundle::CsvStep;

/// What OLM obtains the certificates of webhooks from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateProvider {
    /// cert-manager, as upstream releases do.
    CertManager,
    /// The service CA of OpenShift.
    ServiceCa,
}

impl CertificateProvider {
    /// The annotation that makes the provider fill in the CA of a webhook that this Service serves.
    fn ca_annotation(self, namespace: &str, service: &str) -> (&'static str, String) {
        match self {
            CertificateProvider::CertManager => {
                ("cert-manager.io/inject-ca-from", format!("{namespace}/{}", names::certificate_of(service)))
            }
            CertificateProvider::ServiceCa => ("service.beta.openshift.io/inject-cabundle", "true".to_owned()),
        }
    }
}

const NAME: &[CsvStep] = &[CsvStep::Key("generateName")];
const WEBHOOKS: CsvStep = CsvStep::Key("webhooks");
const CLIENT: CsvStep = CsvStep::Key("clientConfig");
const SERVICE: CsvStep = CsvStep::Key("service");
/// The longer paths first.
const OF_CONFIGURATION: &[RenamedField] = &[
    RenamedField {
        rendered: &[WEBHOOKS, CsvStep::Index(0), CLIENT, SERVICE, CsvStep::Key("port")],
        source: &[CsvStep::Key("containerPort")],
    },
    RenamedField {
        rendered: &[WEBHOOKS, CsvStep::Index(0), CLIENT, SERVICE, CsvStep::Key("path")],
        source: &[CsvStep::Key("webhookPath")],
    },
    RenamedField {
        rendered: &[WEBHOOKS, CsvStep::Index(0), CLIENT, SERVICE, CsvStep::Key("name")],
        source: &[CsvStep::Key("deploymentName")],
    },
    RenamedField { rendered: &[WEBHOOKS, CsvStep::Index(0), CsvStep::Key("name")], source: NAME },
    RenamedField { rendered: &[WEBHOOKS, CsvStep::Index(0)], source: &[] },
    RenamedField { rendered: &[CsvStep::Key("metadata"), CsvStep::Key("name")], source: NAME },
];
const OF_SERVICE: &[RenamedField] = &[
    RenamedField { rendered: &[CsvStep::Key("spec"), CsvStep::Key("ports")], source: &[CsvStep::Key("containerPort")] },
    RenamedField {
        rendered: &[CsvStep::Key("metadata"), CsvStep::Key("name")],
        source: &[CsvStep::Key("deploymentName")],
    },
];

/// The validating configurations, and then the mutating ones.
pub fn configurations(csv: &ParsedCsv, options: RenderOptions<'_>) -> Vec<RenderedObject> {
    let of_type = |kind: &'static str, of: &'static str| {
        let webhooks = csv.webhooks.iter().filter(move |webhook| webhook.kind == of);
        webhooks.map(move |webhook| configuration(kind, webhook, options))
    };
    let validating = of_type("ValidatingWebhookConfiguration", "ValidatingAdmissionWebhook");
    validating.chain(of_type("MutatingWebhookConfiguration", "MutatingAdmissionWebhook")).collect()
}

fn configuration(kind: &str, webhook: &ParsedWebhook, options: RenderOptions<'_>) -> RenderedObject {
    let name = webhook.name.strip_suffix('-').unwrap_or(&webhook.name);
    let service = names::service_of(&webhook.deployment);
    let mut reference = json!({"namespace": options.install_namespace, "name": service});
    if !webhook.path.is_null() {
        reference["path"] = webhook.path.clone();
    }
    // OLM writes 0 if the bundle names no port, and the API server refuses it.
    reference["port"] = webhook.container_port.into();
    let mut one = Map::new();
    one.insert("name".to_owned(), name.into());
    one.insert("clientConfig".to_owned(), json!({"service": reference}));
    one.extend(webhook.same.clone());
    if kind == "MutatingWebhookConfiguration" && !webhook.reinvocation_policy.is_null() {
        one.insert("reinvocationPolicy".to_owned(), webhook.reinvocation_policy.clone());
    }
    if let Some(watched) = options.watch_namespace {
        let watched = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": [watched]});
        one.insert("namespaceSelector".to_owned(), json!({"matchExpressions": [watched]}));
    }
    // OLM sets a namespace although the kind has none; the API server ignores it.
    let mut metadata = json!({"name": name, "namespace": options.install_namespace});
    if let Some(provider) = options.certificates {
        let (key, value) = provider.ca_annotation(options.install_namespace, &service);
        metadata["annotations"] = json!({key: value});
    }
    RenderedObject {
        value: object("admissionregistration.k8s.io/v1", kind, metadata, &[("webhooks", json!([one]))]),
        steps: webhook.steps.clone(),
        renamed: OF_CONFIGURATION,
    }
}

/// The Services of the Deployments that serve webhooks.
pub fn services(csv: &ParsedCsv, options: RenderOptions<'_>) -> Vec<RenderedObject> {
    let mut services = Vec::new();
    for deployment in &csv.deployments {
        let Some(first) = csv.first_webhook(&deployment.name) else { continue };
        let ports = csv.webhooks.iter().filter(|webhook| webhook.deployment == deployment.name).map(port);
        let ports: BTreeSet<(i64, i64, String)> = ports.collect();
        let port = |(port, _, target): (i64, i64, String)| {
            let target: Value = serde_json::from_str(&target).unwrap_or_default();
            json!({"name": port.to_string(), "port": port, "targetPort": target})
        };
        let mut spec = json!({"ports": ports.into_iter().map(port).collect::<Vec<_>>()});
        let labels = &deployment.spec["selector"]["matchLabels"];
        if labels.is_object() {
            spec["selector"] = labels.clone();
        }
        let service = names::service_of(&deployment.name);
        let mut metadata = json!({"name": service, "namespace": options.install_namespace});
        if options.certificates == Some(CertificateProvider::ServiceCa) {
            let secret = names::certificate_of(&service);
            metadata["annotations"] = json!({"service.beta.openshift.io/serving-cert-secret-name": secret});
        }
        services.push(RenderedObject {
            value: object("v1", "Service", metadata, &[("spec", spec)]),
            steps: first.steps.clone(),
            renamed: OF_SERVICE,
        });
    }
    services
}

/// The port of a webhook, its target as a number for the order, and the target as JSON.
fn port(webhook: &ParsedWebhook) -> (i64, i64, String) {
    let port = if webhook.container_port > 0 { webhook.container_port } else { 443 };
    let target = if webhook.target_port.is_null() { Value::from(port) } else { webhook.target_port.clone() };
    let number = target.as_i64().or_else(|| target.as_str()?.parse().ok()).unwrap_or_default();
    (port, number, target.to_string())
}

/// The Issuer and the Certificate of each Service, if cert-manager provides them.
pub fn certificates(csv: &ParsedCsv, options: RenderOptions<'_>) -> Vec<RenderedObject> {
    if options.certificates != Some(CertificateProvider::CertManager) {
        return Vec::new();
    }
    let mut seen = BTreeSet::new();
    let first = csv.webhooks.iter().filter(|webhook| seen.insert(&webhook.deployment));
    first.flat_map(|webhook| certificate(webhook, options.install_namespace)).collect()
}

fn certificate(webhook: &ParsedWebhook, namespace: &str) -> [RenderedObject; 2] {
    let service = names::service_of(&webhook.deployment);
    let name = names::certificate_of(&service);
    let issuer = names::named(&name, "selfsigned-issuer");
    let host = format!("{service}.{namespace}");
    let spec = json!({
        "secretName": name, "commonName": host, "usages": ["server auth"],
        "dnsNames": [host, format!("{host}.svc"), format!("{host}.svc.cluster.local")],
        "issuerRef": {"name": issuer}, "duration": "17520h0m0s", "renewBefore": "24h0m0s",
    });
    let rendered = |kind, name: &str, spec| RenderedObject {
        value: object("cert-manager.io/v1", kind, json!({"name": name, "namespace": namespace}), &[("spec", spec)]),
        steps: webhook.steps.clone(),
        renamed: &[],
    };
    [rendered("Issuer", &issuer, json!({"selfSigned": {}})), rendered("Certificate", &name, spec)]
}

/// What OLM changes in a CRD that a webhook of the bundle converts.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedConversion {
    /// `spec.conversion`.
    pub conversion: Value,
    /// The annotation that makes the provider of certificates fill in the CA.
    pub annotation: Option<(&'static str, String)>,
}

/// What OLM changes in the CRD of this name; `None` if no webhook of the ClusterServiceVersion converts it.
pub fn crd_conversion(csv: &Value, crd: &str, options: RenderOptions<'_>) -> Option<RenderedConversion> {
    let webhooks = csv["spec"]["webhookdefinitions"].as_array()?;
    let converts = |webhook: &&Value| {
        let crds = webhook["conversionCRDs"].as_array();
        webhook["type"] == "ConversionWebhook" && crds.is_some_and(|crds| crds.iter().any(|name| name == crd))
    };
    let webhook = webhooks.iter().find(converts)?;
    let service = names::service_of(webhook["deploymentName"].as_str().unwrap_or_default());
    let reference = json!({
        "namespace": options.install_namespace, "name": service,
        "path": webhook["webhookPath"].as_str().unwrap_or("/"),
        "port": webhook["containerPort"].as_i64().unwrap_or_default(),
    });
    let versions = webhook.get("admissionReviewVersions").cloned().unwrap_or_default();
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"service": reference}, "conversionReviewVersions": versions,
    }});
    let annotation = options.certificates.map(|provider| provider.ca_annotation(options.install_namespace, &service));
    Some(RenderedConversion { conversion, annotation })
}
