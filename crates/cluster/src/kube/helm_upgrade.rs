//! What the server would respond to an upgrade by Helm 3, which sends a patch and no apply.
//!
//! Source: `createPatch` and `updateResource` in `pkg/kube/client.go` of Helm 3

use serde_json::{Value, json};

use super::apply_request;
use super::dry_run::send;
use super::request::{ApiRequest, Payload, encode};
use super::transport::Transport;
use crate::openapi::{Described, OpenApi};
use crate::{Apply, DryRunError, Refusal, Refuser, WritePrecondition};
use gantry_core::merge::strategic::{self, PatchSchema};
use gantry_core::problem::Problem;
use gantry_core::resource::{RawObject, Resource, is_built_in};

/// An upgrade of one object by Helm.
#[derive(Debug, Clone)]
pub struct HelmUpgrade {
    /// The object in the manifests of the release that is installed.
    pub former: Value,
    /// The object in the new manifests, with what Helm adds to it.
    pub new: Value,
}

/// The patch that Helm sends.
#[derive(Debug, Clone, PartialEq)]
pub enum HelmPatch {
    /// A strategic merge patch, for kinds whose types Helm has.
    Strategic(Value),
    /// A JSON merge patch, for others.
    Merge(Value),
}

impl HelmPatch {
    fn value(&self) -> &Value {
        let (HelmPatch::Strategic(patch) | HelmPatch::Merge(patch)) = self;
        patch
    }

    /// Whether Helm sends nothing.
    pub fn is_empty(&self) -> bool {
        *self.value() == json!({})
    }

    /// What the object becomes, without defaults; `None` if only the server can say.
    pub fn merged(&self, live: &Value) -> Option<Value> {
        let HelmPatch::Merge(patch) = self else { return None };
        let mut next = live.clone();
        strategic::apply_json_merge_patch(&mut next, patch);
        Some(next)
    }
}

/// Whether the types of Helm have this kind, so that it makes a strategic merge patch.
///
/// Source: `kubernetesNativeScheme` in `pkg/kube/converter.go`
fn is_known_to_helm(resource: &Resource) -> bool {
    is_built_in(&resource.group) && resource.group != "apiregistration.k8s.io"
}

impl HelmUpgrade {
    /// The patch for the live object; `None` if the server does not describe the kind.
    ///
    /// # Errors
    /// Helm cannot make one.
    pub fn patch(
        &self,
        live: &Value,
        resource: &Resource,
        document: Option<&OpenApi>,
    ) -> Option<Result<HelmPatch, String>> {
        if !is_known_to_helm(resource) {
            return Some(Ok(HelmPatch::Merge(strategic::json_merge_patch(&self.former, &self.new))));
        }
        let Described { schema, definitions } = document?.of_kind(resource)?;
        let schema = PatchSchema::new(schema, definitions);
        Some(strategic::three_way_patch(&self.former, &self.new, live, schema).map(HelmPatch::Strategic))
    }
}

/// The server's answer to the patch of Helm. `None` if the server does not describe the kind.
pub async fn dry_run(
    transport: &Transport,
    default_namespace: &str,
    apply: &Apply<'_>,
    upgrade: &HelmUpgrade,
    document: Option<&OpenApi>,
) -> Option<Result<RawObject, DryRunError>> {
    let live = apply.live?;
    let patch = match upgrade.patch(&live.value(), apply.resource, document)? {
        Ok(patch) => patch,
        Err(why) => return Some(Err(DryRunError::Refused(without_patch(&why)))),
    };
    if patch.is_empty() {
        return Some(Ok(live.clone()));
    }
    let mut body = patch.value().clone();
    if let WritePrecondition::At { uid, resource_version } = apply.pin {
        if !body["metadata"].is_object() {
            body["metadata"] = json!({});
        }
        body["metadata"]["uid"] = uid.as_str().into();
        body["metadata"]["resourceVersion"] = resource_version.as_str().into();
    }
    let body = body.to_string();
    let namespace = apply_request::namespace_of(apply, default_namespace);
    let get = ApiRequest::get(apply.resource, namespace, &apply.object.name);
    let call = ApiRequest {
        verb: "patch",
        uri: format!("{}?dryRun=All&fieldManager={}", get.uri, encode(apply.field_manager)),
        body: Some(match patch {
            HelmPatch::Strategic(_) => Payload::StrategicMergePatch(&body),
            HelmPatch::Merge(_) => Payload::MergePatch(&body),
        }),
        live: apply.live,
        ..get
    };
    Some(send(transport, &call, apply).await)
}

fn without_patch(why: &str) -> Refusal {
    let problem = Problem::new(format!("Helm cannot make a patch of this change: {why}"));
    Refusal { by: Refuser::Validation, problem, causes: Vec::new(), missing: None }
}
