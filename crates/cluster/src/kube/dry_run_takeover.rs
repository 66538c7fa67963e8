//! What the server would respond to an apply that takes over the fields of former deploy tools, which a dry run cannot do:
//! they are taken over by a request of its own before the apply ([`takeover`]). The server is asked about the object
//! that both leave.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::apply_request;
use super::dry_run::{dry_run_beside_tools, send};
use super::request::ApiRequest;
use super::takeover;
use super::transport::Transport;
use crate::openapi::{Described, OpenApi};
use crate::{Apply, DryRunError, FormerTools, Refusal, Refuser, WritePrecondition};
use gantry_core::merge::{self, MergeSchema};
use gantry_core::resource::{LAST_APPLIED, RawObject, SERVER_METADATA};
use gantry_core::text::json_pointer_step;

/// The server's answer to an apply, once the fields of former deploy tools are taken over. `openapi` requests the
/// document that describes the kind.
pub async fn dry_run(
    transport: &Transport,
    default_namespace: &str,
    apply: &Apply<'_>,
    openapi: impl AsyncFnOnce() -> Option<Arc<OpenApi>>,
) -> Result<RawObject, DryRunError> {
    let refusal = match dry_run_beside_tools(transport, default_namespace, apply).await {
        Ok(answer) => return taken_over(transport, default_namespace, apply, answer).await,
        Err(DryRunError::Refused(refusal)) if may_be_of_former_tools(apply, &refusal) => refusal,
        Err(error) => return Err(error),
    };
    let document = openapi().await;
    let described = document.as_ref().and_then(|document| document.of_kind(apply.resource));
    let Some(Described { schema, definitions }) = described else { return Err(DryRunError::Refused(refusal)) };
    let schema = merge::of_kind(schema, Some(definitions));
    dry_run_handed_over(transport, default_namespace, apply, schema, refusal).await
}

/// What the object becomes if the fields of its former deploy tools are taken over first.
/// The answer to the apply shows which fields the manifest sets. The server is asked about the object without the
/// others, which it may default.
async fn taken_over(
    transport: &Transport,
    default_namespace: &str,
    apply: &Apply<'_>,
    answer: RawObject,
) -> Result<RawObject, DryRunError> {
    let Some(live) = apply.live.filter(|_| apply.former_tools != FormerTools::Keep) else { return Ok(answer) };
    let mut next = answer.value();
    let owners = apply.owners(&next);
    if owners.tools.is_empty() {
        return Ok(answer);
    }
    if !owners.given_up().is_empty() {
        let before = next.clone();
        owners.strip(&mut next);
        if apply.object.is_crd() {
            let mut filled = fill_in_crd(next.clone());
            if is_same_but_last_applied(before, filled.clone()) {
                // The server would only fill them in as well.
                filled["metadata"]["managedFields"] = owners.without_tools().into();
                return Ok(RawObject::from_value(&filled));
            }
        }
        next = send_next(transport, default_namespace, apply, &live.value(), &next).await?.value();
    }
    next["metadata"]["managedFields"] = owners.without_tools().into();
    Ok(RawObject::from_value(&next))
}

/// The server's answer if `live` becomes `next`.
async fn send_next(
    transport: &Transport,
    default_namespace: &str,
    apply: &Apply<'_>,
    live: &Value,
    next: &Value,
) -> Result<RawObject, DryRunError> {
    let patch = patch_to(live, next, apply.pin);
    send_patch(transport, default_namespace, apply, &patch).await
}

async fn send_patch(
    transport: &Transport,
    default_namespace: &str,
    apply: &Apply<'_>,
    patch: &str,
) -> Result<RawObject, DryRunError> {
    let Apply { resource, object, field_manager, .. } = apply;
    let namespace = apply_request::namespace_of(apply, default_namespace);
    let call = ApiRequest::dry_run_patch(resource, namespace, &object.name, field_manager, patch);
    let call = ApiRequest { live: apply.live, ..call };
    send(transport, &call, apply).await
}

/// Whether a refusal may be about fields of former deploy tools that are gone once they are taken over, such as the
/// `rollingUpdate` that the server filled in for another strategy.
fn may_be_of_former_tools(apply: &Apply<'_>, refusal: &Refusal) -> bool {
    let is_of_content = matches!(refusal.by, Refuser::Validation | Refuser::Policy | Refuser::Admission);
    is_of_content
        && apply.former_tools != FormerTools::Keep
        && apply.live.is_some_and(|live| !apply.owners(&live.value()).tools.is_empty())
}

/// What the server says to the object that an apply leaves once the fields of former deploy tools are taken over, for an
/// apply that it refuses beside them. `schema` is that of the kind, by which the two are merged.
async fn dry_run_handed_over(
    transport: &Transport,
    default_namespace: &str,
    apply: &Apply<'_>,
    schema: MergeSchema<'_, Value>,
    refusal: Refusal,
) -> Result<RawObject, DryRunError> {
    let (Some(live), WritePrecondition::At { uid, resource_version }) = (apply.live, apply.pin) else {
        return Err(DryRunError::Refused(refusal));
    };
    let live = live.value();
    let owners = apply.owners(&live);
    // Helm writes once. A deploy hands the fields over first, and if the server refuses that, it applies beside them.
    if apply.former_tools != FormerTools::AsHelm {
        let entries = owners.handed_over(apply.field_manager, &apply.object.api_version).unwrap_or_default();
        let patch = takeover::patch_of(uid, resource_version, entries.into());
        match send_patch(transport, default_namespace, apply, &patch).await {
            Err(DryRunError::Refused(_)) => return Err(DryRunError::Refused(refusal)),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
    }
    let entries = owners.without_tools();
    let next = merge::merge_owned(&live, &merge::intent(apply.raw.value(), true), schema, owners);
    let mut next = send_next(transport, default_namespace, apply, &live, &next).await?.value();
    next["metadata"]["managedFields"] = entries.into();
    Ok(RawObject::from_value(&next))
}

/// Fills in the names and the conversion of a CRD that lacks them, as the server does.
///
/// Source: `SetDefaults_CustomResourceDefinition` and `SetDefaults_CustomResourceDefinitionSpec` in
/// `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/defaults.go`
fn fill_in_crd(mut crd: Value) -> Value {
    let Some(spec) = crd["spec"].as_object_mut() else { return crd };
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut)
        && let Some(kind) = names.get("kind").and_then(Value::as_str).map(str::to_owned)
    {
        names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
        names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
    }
    crd
}

/// Whether two objects are the same, apart from the annotation of `kubectl apply`.
fn is_same_but_last_applied(mut a: Value, mut b: Value) -> bool {
    for metadata in [&mut a, &mut b].into_iter().filter_map(|object| object["metadata"].as_object_mut()) {
        let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
        let is_empty = annotations.is_some_and(|annotations| {
            annotations.shift_remove(LAST_APPLIED);
            annotations.is_empty()
        });
        if is_empty {
            metadata.shift_remove("annotations");
        }
    }
    a == b
}

/// The JSON patch that makes `live` to `next`, apart from the status and what the server maintains.
fn patch_to(live: &Value, next: &Value, pin: &WritePrecondition) -> String {
    let mut patch = Vec::new();
    if let WritePrecondition::At { uid, resource_version } = pin {
        patch.push(json!({"op": "test", "path": "/metadata/uid", "value": uid}));
        patch.push(json!({"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version}));
    }
    let mut change = |parent: &str, live: &Value, next: &Value, is_kept: &dyn Fn(&str) -> bool| {
        let keys = |object: &Value| object.as_object().map(|map| map.keys().cloned().collect::<BTreeSet<_>>());
        let [of_live, of_next] = [live, next].map(|object| keys(object).unwrap_or_default());
        for key in of_live.union(&of_next).filter(|key| !is_kept(key)) {
            let path = format!("{parent}/{}", json_pointer_step(key));
            match next.get(key) {
                Some(value) if live.get(key) != Some(value) => {
                    patch.push(json!({"op": "add", "path": path, "value": value}));
                }
                Some(_) => {}
                None => patch.push(json!({"op": "remove", "path": path})),
            }
        }
    };
    change("", live, next, &|key| matches!(key, "apiVersion" | "kind" | "metadata" | "status"));
    change("/metadata", &live["metadata"], &next["metadata"], &|key| SERVER_METADATA.contains(&key));
    Value::from(patch).to_string()
}
