//! The objects that OLM v1 writes when it installs a bundle: a pure function of the bundle and the configuration of its
//! ClusterExtension.
//!
//! Source: `internal/operator-controller/rukpak/render` of operator-controller. OLM reads the ClusterServiceVersion into
//! Go's structs before it copies parts of it, so fields that those do not have are dropped ([`go`]).

mod access;
mod deployment_config;
mod deployments;
mod go;
mod names;
mod quantity;
#[cfg(test)]
mod tests;
mod webhooks;

use std::fmt;

use serde_json::{Map, Value, json};

use crate::bundle::CsvStep;
use crate::property::Property;

pub use webhooks::{CertificateProvider, RenderedConversion, crd_conversion};

/// The parts of a bundle that determine what OLM writes.
#[derive(Debug, Clone, Copy)]
pub struct RenderInput<'a> {
    /// The ClusterServiceVersion.
    pub csv: &'a Value,
    /// The properties in `metadata/properties.yaml`; `None` if there is no such file, or if it is empty.
    pub properties: Option<&'a [Property]>,
}

/// How a bundle is installed.
#[derive(Debug, Clone, Copy, Default)]
pub struct RenderOptions<'a> {
    /// `spec.namespace` of the ClusterExtension.
    pub install_namespace: &'a str,
    /// The namespace that the operator watches; `None` for all.
    pub watch_namespace: Option<&'a str>,
    /// What OLM obtains certificates for webhooks from; `None` for nothing.
    pub certificates: Option<CertificateProvider>,
    /// `deploymentConfig` of `spec.config.inline`.
    pub deployment_config: Option<&'a Value>,
}

/// An object that OLM creates from a ClusterServiceVersion.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedObject {
    /// The object.
    pub value: Value,
    /// The steps from the root of the ClusterServiceVersion to what the object is made from.
    pub steps: Vec<CsvStep>,
    /// The fields that have another name there.
    pub renamed: &'static [RenamedField],
}

/// A field of a rendered object whose value is at another place in the ClusterServiceVersion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenamedField {
    /// The steps from the root of the rendered object.
    pub rendered: &'static [CsvStep],
    /// The steps from the part of the ClusterServiceVersion that the object is made from.
    pub source: &'static [CsvStep],
}

/// A step to a value that OLM cannot read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceStep {
    /// The value of a key.
    Key(String),
    /// An item of a list, from 0.
    Index(usize),
}

impl fmt::Display for SourceStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceStep::Key(key) => write!(f, ".{key}"),
            SourceStep::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A value of the ClusterServiceVersion that has the wrong type, so that OLM cannot read the bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongType {
    /// The steps to the value.
    pub steps: Vec<SourceStep>,
    /// What is wrong.
    pub message: String,
}

impl WrongType {
    fn new(message: String) -> WrongType {
        WrongType { steps: Vec::new(), message }
    }

    fn below(mut self, steps: &[CsvStep]) -> WrongType {
        let step = |step: &CsvStep| match step {
            CsvStep::Key(key) => SourceStep::Key((*key).to_owned()),
            CsvStep::Index(index) => SourceStep::Index(*index),
        };
        self.steps.splice(..0, steps.iter().map(step));
        self
    }
}

const SPEC: CsvStep = CsvStep::Key("spec");

/// The objects that OLM creates from the ClusterServiceVersion, in the order in which OLM renders them. The CRDs and the
/// other objects of the bundle are not among them.
///
/// # Errors
/// A value has a type with which OLM cannot read the bundle.
pub fn render(input: RenderInput<'_>, options: RenderOptions<'_>) -> Result<Vec<RenderedObject>, WrongType> {
    let csv = ParsedCsv::read(input)?;
    let mut objects = access::service_accounts(&csv, options);
    objects.extend(access::roles(&csv, options));
    objects.extend(deployments::deployments(&csv, options)?);
    objects.extend(webhooks::configurations(&csv, options));
    objects.extend(webhooks::services(&csv, options));
    objects.extend(webhooks::certificates(&csv, options));
    Ok(objects)
}

/// The names that earlier releases of OLM v1 give to the ClusterRoles of `permissions`, if the operator watches all
/// namespaces: they do not add the rule about namespaces, which gives the roles other names.
///
/// # Errors
/// As [`render`].
pub fn earlier_role_names(input: RenderInput<'_>) -> Result<Vec<String>, WrongType> {
    Ok(access::earlier_role_names(&ParsedCsv::read(input)?))
}

/// Whether OLM sets the namespace of an object of this kind that is part of a bundle.
pub fn is_moved(kind: &str) -> bool {
    const NAMESPACED: [&str; 11] = [
        "ConfigMap",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "PodMonitor",
        "PrometheusRule",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
    ];
    NAMESPACED.contains(&kind)
}

/// The parts of a ClusterServiceVersion, as Go reads them.
struct ParsedCsv {
    name: String,
    annotations: Map<String, Value>,
    deployments: Vec<ParsedDeployment>,
    permissions: Vec<ParsedPermissions>,
    cluster_permissions: Vec<ParsedPermissions>,
    webhooks: Vec<ParsedWebhook>,
}

struct ParsedDeployment {
    name: String,
    labels: Value,
    spec: Value,
    steps: Vec<CsvStep>,
}

struct ParsedPermissions {
    account: String,
    /// A list, or null.
    rules: Value,
    steps: Vec<CsvStep>,
}

struct ParsedWebhook {
    kind: String,
    name: String,
    deployment: String,
    container_port: i64,
    /// Null if it is not set.
    target_port: Value,
    path: Value,
    /// The fields that the webhook of a configuration has under the same name.
    same: Map<String, Value>,
    /// Only mutating webhooks have it.
    reinvocation_policy: Value,
    steps: Vec<CsvStep>,
}

impl ParsedCsv {
    fn read(RenderInput { csv, properties }: RenderInput<'_>) -> Result<ParsedCsv, WrongType> {
        let metadata = [CsvStep::Key("metadata")];
        let name = text(go::member(csv, &metadata, "name", "s")?);
        let annotations = go::member(csv, &metadata, "annotations", "{s")?;
        let mut annotations = annotations.as_object().cloned().unwrap_or_default();
        if let Some(properties) = properties {
            let merged = merged_properties(annotations.get(PROPERTIES).and_then(Value::as_str), properties)
                .map_err(|error| error.below(&[metadata[0], CsvStep::Key("annotations")]))?;
            annotations.insert(PROPERTIES.to_owned(), merged.into());
        }
        let install = [SPEC, CsvStep::Key("install"), SPEC];
        let list = |name: &'static str| items(csv, &[&install[..], &[CsvStep::Key(name)]].concat());
        let permissions = |name| -> Result<Vec<_>, WrongType> {
            list(name)?.into_iter().map(|steps| ParsedPermissions::read(csv, steps)).collect()
        };
        Ok(ParsedCsv {
            name,
            annotations,
            deployments: list("deployments")?
                .into_iter()
                .map(|steps| ParsedDeployment::read(csv, steps))
                .collect::<Result<_, _>>()?,
            permissions: permissions("permissions")?,
            cluster_permissions: permissions("clusterPermissions")?,
            webhooks: items(csv, &[SPEC, CsvStep::Key("webhookdefinitions")])?
                .into_iter()
                .map(|steps| ParsedWebhook::read(csv, steps))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The first webhook that a Deployment serves.
    fn first_webhook(&self, deployment: &str) -> Option<&ParsedWebhook> {
        self.webhooks.iter().find(|webhook| webhook.deployment == deployment)
    }
}

impl ParsedDeployment {
    fn read(csv: &Value, steps: Vec<CsvStep>) -> Result<ParsedDeployment, WrongType> {
        Ok(ParsedDeployment {
            name: text(go::member(csv, &steps, "name", "s")?),
            labels: go::member(csv, &steps, "label", "{s")?,
            spec: go::member(csv, &steps, "spec", "DeploymentSpec")?,
            steps,
        })
    }
}

impl ParsedPermissions {
    fn read(csv: &Value, steps: Vec<CsvStep>) -> Result<ParsedPermissions, WrongType> {
        Ok(ParsedPermissions {
            account: text(go::member(csv, &steps, "serviceAccountName", "s")?),
            rules: go::member(csv, &steps, "rules", "[PolicyRule")?,
            steps,
        })
    }
}

impl ParsedWebhook {
    fn read(csv: &Value, steps: Vec<CsvStep>) -> Result<ParsedWebhook, WrongType> {
        let member = |name, of| go::member(csv, &steps, name, of);
        let mut same = Map::new();
        for (name, of, is_optional) in [
            ("rules", "[RuleWithOperations", true),
            ("failurePolicy", "*s", true),
            ("matchPolicy", "*s", true),
            ("objectSelector", "*LabelSelector", true),
            ("sideEffects", "*s", false),
            ("timeoutSeconds", "*i", true),
            ("admissionReviewVersions", "[s", false),
        ] {
            let value = member(name, of)?;
            // Go also omits an empty list, but not what a pointer points to.
            if !(is_optional && (value.is_null() || value.as_array().is_some_and(Vec::is_empty))) {
                same.insert(name.to_owned(), value);
            }
        }
        Ok(ParsedWebhook {
            kind: text(member("type", "s")?),
            name: text(member("generateName", "s")?),
            deployment: text(member("deploymentName", "s")?),
            container_port: member("containerPort", "i")?.as_i64().unwrap_or_default(),
            target_port: member("targetPort", "*x")?,
            path: member("webhookPath", "*s")?,
            reinvocation_policy: member("reinvocationPolicy", "*s")?,
            same,
            steps,
        })
    }
}

/// The steps to each item of a list.
fn items(csv: &Value, steps: &[CsvStep]) -> Result<Vec<Vec<CsvStep>>, WrongType> {
    let number = match go::find(csv, steps) {
        None | Some(Value::Null) => 0,
        Some(Value::Array(items)) => items.len(),
        Some(other) => return Err(go::mismatch("a list", other).below(steps)),
    };
    Ok((0..number).map(|index| [steps, &[CsvStep::Index(index)]].concat()).collect())
}

fn text(value: Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The annotation with the properties of a bundle.
const PROPERTIES: &str = "olm.properties";

/// The properties of the annotation and those of the file, as Go writes them.
fn merged_properties(annotation: Option<&str>, more: &[Property]) -> Result<String, WrongType> {
    let mut all: Vec<Value> = match annotation.map(serde_json::from_str::<Value>) {
        None | Some(Ok(Value::Null)) => Vec::new(),
        Some(Ok(Value::Array(all))) => {
            all.into_iter().map(|one| json!({"type": one["type"], "value": one["value"]})).collect()
        }
        Some(_) => {
            let message = "the annotation olm.properties must be a list of properties, as JSON";
            return Err(WrongType::new(message.to_owned()));
        }
    };
    for Property { kind, value } in more {
        let value: Value = serde_json::from_str(value).unwrap_or_default();
        all.push(json!({"type": kind, "value": go::sorted(value)}));
    }
    let all = if all.is_empty() { Value::Null } else { Value::Array(all) };
    Ok(names::go_json(&all))
}

/// An object with these metadata, and the fields of `more`.
fn object(api_version: &str, kind: &str, metadata: Value, more: &[(&str, Value)]) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    for (key, value) in more {
        object[*key] = value.clone();
    }
    object
}
