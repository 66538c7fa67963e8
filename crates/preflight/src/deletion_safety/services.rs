//! Finds what still calls deleted Services: webhooks, aggregated APIs, and conversion webhooks of CRDs.

use serde_json::Value;

use super::rules::SERVICE_CALLED;
use super::{Deletions, violation};
use crate::{CouldNotCheck, ViolationsFound};
use gantry_core::resource::{ObjectRef, Resource};
use gantry_deploy::plan::removal::Removal;

/// A call of a Service: the caller, as shown to the user, and the namespace and name of the Service.
type ServiceCall = (String, String, String);

pub async fn check(deletions: &Deletions<'_>) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    let services: Vec<&Removal> = deletions.of_kind("", "Service").collect();
    if services.is_empty() {
        return found;
    }
    let calls = match calls(deletions).await {
        Ok(calls) => calls,
        Err(error) => {
            found.unchecked.push(error);
            return found;
        }
    };
    for removal in services {
        let ObjectRef { namespace, name, .. } = &*removal.object;
        let callers = calls.iter().filter(|(_, of, called)| Some(of) == namespace.as_ref() && called == name);
        let callers: Vec<&str> = callers.map(|(caller, ..)| caller.as_str()).collect();
        if !callers.is_empty() {
            let callers = callers.join(", ");
            let message = format!("{callers} would call a Service that no longer exists, and requests would fail");
            let help = format!("delete these first, or point them to another Service: {callers}");
            found.violations.push(violation(&SERVICE_CALLED, removal, message, help));
        }
    }
    found
}

async fn calls(deletions: &Deletions<'_>) -> Result<Vec<ServiceCall>, CouldNotCheck> {
    let admission = "admissionregistration.k8s.io";
    let mut calls = Vec::new();
    for (resource, read) in [
        (
            Resource::built_in(admission, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false),
            of_webhooks as fn(&Value) -> Vec<(String, String)>,
        ),
        (
            Resource::built_in(admission, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false),
            of_webhooks,
        ),
        (Resource::built_in("apiregistration.k8s.io", "APIService", "apiservices", false), of_api_service),
        (Resource::crd(), of_crd),
    ] {
        let gather = |found: &mut Vec<ServiceCall>, json: &str| {
            // Most CRDs are large and have no webhook: they are not parsed.
            let Some(object) = json.contains("\"service\"").then(|| serde_json::from_str::<Value>(json).ok()).flatten()
            else {
                return;
            };
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if deletions.is_deleted(&resource.group, &resource.kind, None, name) {
                return;
            }
            let caller = format!("{}/{name}", resource.kind.to_lowercase());
            found.extend(read(&object).into_iter().map(|(namespace, service)| (caller.clone(), namespace, service)));
        };
        calls.extend(deletions.list(&resource, None, gather).await?.unwrap_or_default());
    }
    Ok(calls)
}

fn service(client: &Value) -> Option<(String, String)> {
    let text = |key: &str| client["service"][key].as_str().map(str::to_owned);
    Some((text("namespace")?, text("name")?))
}

/// The Services of webhooks whose failure makes requests fail.
fn of_webhooks(object: &Value) -> Vec<(String, String)> {
    let webhooks = object["webhooks"].as_array().into_iter().flatten();
    let calls = webhooks.filter(|webhook| webhook["failurePolicy"] != "Ignore");
    calls.filter_map(|webhook| service(&webhook["clientConfig"])).collect()
}

fn of_api_service(object: &Value) -> Vec<(String, String)> {
    service(&object["spec"]).into_iter().collect()
}

fn of_crd(object: &Value) -> Vec<(String, String)> {
    service(&object["spec"]["conversion"]["webhook"]["clientConfig"]).into_iter().collect()
}
