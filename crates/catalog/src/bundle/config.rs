//! Validates `spec.config.inline` of a ClusterExtension; the bundle's install modes determine what is allowed.

use gantry_k8s_cel::gotext::quote;
use serde_json::Value;

use super::ClusterServiceVersion;
use super::support::{Profile, UncheckedBundlePart};

const WATCH_NAMESPACE: &str = "watchNamespace";
const DEPLOYMENT_CONFIG: &str = "deploymentConfig";

/// Why OLM refuses the configuration; `None` if it accepts it.
pub(super) fn refused(
    csv: &ClusterServiceVersion,
    profile: &Profile<'_>,
    unchecked: &mut Vec<UncheckedBundlePart>,
) -> Option<String> {
    let none = Value::Object(serde_json::Map::new());
    let config = profile.config.unwrap_or(&none);
    let said = |what: String| Some(format!("invalid ClusterExtension configuration: invalid configuration: {what}"));
    let Value::Object(fields) = config else {
        return said(format!("invalid type: got {}, want object", type_of(config)));
    };
    let own = csv.supports("OwnNamespace");
    let single = csv.supports("SingleNamespace");
    let is_configurable = own || single;
    let is_required = is_configurable && !csv.supports("AllNamespaces");
    let mut found = Vec::new();
    match fields.get(WATCH_NAMESPACE) {
        None | Some(Value::Null) if is_required => {
            found.push(format!("required field {} is missing", quote(WATCH_NAMESPACE)));
        }
        Some(Value::Null) | None if is_configurable => {}
        Some(Value::String(namespace)) if is_configurable => {
            found.extend(namespace_refused(namespace, own, single, profile))
        }
        Some(other) if is_required => found.push(format!(
            "invalid type for field {}: got {}, want string",
            quote(WATCH_NAMESPACE),
            type_of(other)
        )),
        Some(_) if is_configurable => found.push(format!("invalid value for field {}", quote(WATCH_NAMESPACE))),
        _ => {}
    }
    let is_known = |name: &str| name == DEPLOYMENT_CONFIG || name == WATCH_NAMESPACE && is_configurable;
    for name in fields.keys().filter(|name| !is_known(name)) {
        found.push(format!("unknown field {}", quote(name)));
    }
    if fields.get(DEPLOYMENT_CONFIG).is_some_and(|value| !value.is_null()) {
        unchecked.push(UncheckedBundlePart::DeploymentConfig);
    }
    match found.as_slice() {
        [] => None,
        [one] => said(one.clone()),
        several => said(format!("multiple errors found:\n  - {}", several.join("\n  - "))),
    }
}

fn namespace_refused(namespace: &str, own: bool, single: bool, profile: &Profile<'_>) -> Option<String> {
    let install = profile.install_namespace;
    if install.is_empty() {
        return None;
    }
    if own && !single && namespace != install {
        return Some(format!(
            "invalid value {}: watchNamespace must be {} (the namespace where the operator is installed) because this \
             operator only supports OwnNamespace install mode",
            quote(namespace),
            quote(install)
        ));
    }
    (single && !own && namespace == install).then(|| {
        format!(
            "invalid value {}: watchNamespace must be different from {} (the install namespace) because this operator \
             uses SingleNamespace install mode to watch a different namespace",
            quote(namespace),
            quote(install)
        )
    })
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
