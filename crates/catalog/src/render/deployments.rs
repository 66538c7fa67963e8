//! Deployments, with the annotations of the ClusterServiceVersion and the volumes for certificates.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::deployment_config::DeploymentConfig;
use super::go::list;
use super::{ParsedCsv, ParsedDeployment, RenamedField, RenderOptions, RenderedObject, WrongType, go, names, object};
use crate::bundle::CsvStep;

const OF_DEPLOYMENT: &[RenamedField] = &[
    RenamedField { rendered: &[CsvStep::Key("metadata"), CsvStep::Key("name")], source: &[CsvStep::Key("name")] },
    RenamedField { rendered: &[CsvStep::Key("metadata"), CsvStep::Key("labels")], source: &[CsvStep::Key("label")] },
];

/// The volumes with a certificate: their name, where they are mounted, and the files of the certificate and its key.
const CERTIFICATE_VOLUMES: [(&str, &str, &str, &str); 2] = [
    ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"),
    ("apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"),
];

pub fn deployments(csv: &ParsedCsv, options: RenderOptions<'_>) -> Result<Vec<RenderedObject>, WrongType> {
    let config = options.deployment_config.map(DeploymentConfig::read).transpose()?;
    Ok(csv.deployments.iter().map(|deployment| render_one(csv, deployment, options, config.as_ref())).collect())
}

fn render_one(
    csv: &ParsedCsv,
    deployment: &ParsedDeployment,
    options: RenderOptions<'_>,
    config: Option<&DeploymentConfig>,
) -> RenderedObject {
    let mut spec = deployment.spec.clone();
    let mut annotations = csv.annotations.clone();
    if let Some(own) = spec["template"]["metadata"]["annotations"].as_object() {
        annotations.extend(own.clone());
    }
    let watched = options.watch_namespace.unwrap_or_default();
    annotations.insert("olm.targetNamespaces".to_owned(), watched.into());
    annotations.insert("olm.operatorNamespace".to_owned(), options.install_namespace.into());
    spec["template"]["metadata"]["annotations"] = annotations.into();
    spec["revisionHistoryLimit"] = 1.into();
    let mut metadata = json!({"name": deployment.name, "namespace": options.install_namespace});
    if !go::is_empty(&deployment.labels) {
        metadata["labels"] = deployment.labels.clone();
    }
    if options.certificates.is_some() && csv.first_webhook(&deployment.name).is_some() {
        let secret = names::certificate_of(&names::service_of(&deployment.name));
        mount_certificate(&mut spec["template"]["spec"], &secret);
    }
    if let Some(config) = config {
        config.apply(&mut metadata, &mut spec["template"]);
    }
    RenderedObject {
        value: object("apps/v1", "Deployment", metadata, &[("spec", spec)]),
        steps: deployment.steps.clone(),
        renamed: OF_DEPLOYMENT,
    }
}

/// Replaces all volumes with one of the names, or mounted at one of the paths, by those of the certificate.
fn mount_certificate(pod: &mut Value, secret: &str) {
    let mut replaced: BTreeSet<String> = CERTIFICATE_VOLUMES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    for mount in containers(pod).iter().flat_map(|container| list(container, "volumeMounts")) {
        let path = mount["mountPath"].as_str().unwrap_or_default();
        if CERTIFICATE_VOLUMES.iter().any(|(_, at, ..)| *at == path) {
            replaced.extend(mount["name"].as_str().map(str::to_owned));
        }
    }
    let stays = |volume: &Value| !replaced.contains(volume["name"].as_str().unwrap_or_default());
    let mut volumes: Vec<Value> = list(pod, "volumes").iter().filter(|volume| stays(volume)).cloned().collect();
    volumes.extend(CERTIFICATE_VOLUMES.iter().map(|(name, _, certificate, key)| {
        let items = json!([{"key": "tls.crt", "path": certificate}, {"key": "tls.key", "path": key}]);
        json!({"name": name, "secret": {"secretName": secret, "items": items}})
    }));
    pod["volumes"] = volumes.into();
    for container in pod["containers"].as_array_mut().into_iter().flatten() {
        let mut mounts: Vec<Value> =
            list(container, "volumeMounts").iter().filter(|mount| stays(mount)).cloned().collect();
        mounts.extend(CERTIFICATE_VOLUMES.iter().map(|(name, at, ..)| json!({"name": name, "mountPath": at})));
        container["volumeMounts"] = mounts.into();
    }
}

fn containers(pod: &Value) -> &[Value] {
    list(pod, "containers")
}
