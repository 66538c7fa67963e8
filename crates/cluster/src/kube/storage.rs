//! Writes an object without a change, and the two fields of a CRD that a migration of its stored objects needs.

use serde_json::{Value, json};

use super::apply::{is_missing_namespace, is_other_object};
use super::errors;
use super::json;
use super::request::{ApiRequest, Payload, RequestError, ResponseFormat, encode};
use super::transport::Transport;
use crate::ApplyError;
use crate::storage::{RewriteMethod, RewrittenObject, StorageRewrite, StorageRewriteError};
use gantry_core::resource::{LiveObject, ObjectRef, Resource};

/// Writes the object as it is, if it still has the uid and the resourceVersion.
pub async fn rewrite_stored(
    transport: &Transport,
    default_namespace: &str,
    rewrite: &StorageRewrite<'_>,
    is_dry_run: bool,
) -> Result<RewrittenObject, StorageRewriteError> {
    let StorageRewrite { resource, object, method, field_manager, .. } = *rewrite;
    let namespace = resource.namespaced.then(|| object.namespace.as_deref().unwrap_or(default_namespace));
    let read = ApiRequest::get(resource, namespace, &object.name);
    let mut uri = format!("{}?fieldManager={}", read.uri, encode(field_manager));
    if matches!(method, RewriteMethod::EmptyApply) {
        uri.push_str("&force=true");
    }
    if is_dry_run {
        uri.push_str("&dryRun=All");
    }
    let body = body(rewrite, namespace).to_string();
    let payload = match method {
        RewriteMethod::EmptyApply => Payload::Apply(&body),
        RewriteMethod::EmptyPatch | RewriteMethod::PatchManagedFields(_) => Payload::JsonPatch(&body),
    };
    let format = if is_dry_run { ResponseFormat::Json } else { ResponseFormat::MetadataOfObject };
    let call = ApiRequest { verb: "patch", uri, body: Some(payload), format, ..read };
    let failure = match transport.send(&call).await {
        Ok(answer) => {
            let written = json::live(&answer.body, resource).map(|live| live.resource_version);
            return match written {
                Some(resource_version) => Ok(RewrittenObject { resource_version, json: answer.body }),
                None => {
                    let code = answer.code.as_u16();
                    let problem = errors::unexpected_response(transport.peer(), code, "not an object");
                    Err(StorageRewriteError::Unanswered(problem))
                }
            };
        }
        Err(failure) => failure,
    };
    match &failure {
        // An object can outlive its namespace. No write reaches it then, until the namespace exists again.
        RequestError::Refused(status) if status.code == 404 && !is_missing_namespace(status) => {
            return Err(StorageRewriteError::Changed);
        }
        RequestError::Refused(status) if is_other_object(status, resource) => return Err(StorageRewriteError::Changed),
        _ => {}
    }
    let is_refused = match &failure {
        // A server that is shutting down or overloaded says so with these; the next attempt may succeed.
        RequestError::Refused(status) => !matches!(status.code, 429 | 503 | 504),
        RequestError::Misnamed(_) => true,
        _ => false,
    };
    let problem = failure.into_problem(&call, transport.peer());
    Err(match is_refused {
        true => StorageRewriteError::Refused(problem),
        false => StorageRewriteError::Unanswered(problem),
    })
}

fn body(rewrite: &StorageRewrite<'_>, namespace: Option<&str>) -> Value {
    let StorageRewrite { resource, object, uid, resource_version, method, .. } = rewrite;
    let pin = |managed_fields: Option<&Value>| {
        let mut operations = vec![json!({"op": "test", "path": "/metadata/uid", "value": uid})];
        let fields =
            managed_fields.map(|fields| json!({"op": "replace", "path": "/metadata/managedFields", "value": fields}));
        operations.extend(fields);
        // The server compares it when it writes.
        operations.push(json!({"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version}));
        Value::Array(operations)
    };
    match method {
        RewriteMethod::EmptyApply => {
            let mut metadata = json!({"name": object.name, "uid": uid, "resourceVersion": resource_version});
            if let Some(namespace) = namespace {
                metadata["namespace"] = namespace.into();
            }
            json!({"apiVersion": resource.api_version(), "kind": resource.kind, "metadata": metadata})
        }
        RewriteMethod::EmptyPatch => pin(None),
        RewriteMethod::PatchManagedFields(fields) => pin(Some(fields)),
    }
}

/// Sets `status.storedVersions` of a CRD, if it still has the uid and the resourceVersion.
pub async fn set_stored_versions(
    transport: &Transport,
    crd: &LiveObject,
    name: &str,
    versions: &[&str],
    field_manager: &str,
) -> Result<LiveObject, ApplyError> {
    patch_crd(transport, crd, name, "/status", json!({"status": {"storedVersions": versions}}), field_manager).await
}

/// Sets an annotation of a CRD, or removes it, if the CRD still has the uid and the resourceVersion.
pub async fn annotate_crd(
    transport: &Transport,
    crd: &LiveObject,
    name: &str,
    (key, value): (&str, Option<&str>),
    field_manager: &str,
) -> Result<LiveObject, ApplyError> {
    let body = json!({"metadata": {"annotations": {key: value}}});
    patch_crd(transport, crd, name, "", body, field_manager).await
}

async fn patch_crd(
    transport: &Transport,
    crd: &LiveObject,
    name: &str,
    subresource: &str,
    mut body: Value,
    field_manager: &str,
) -> Result<LiveObject, ApplyError> {
    let resource = Resource::crd();
    let object = ObjectRef::crd(name);
    body["metadata"]["uid"] = crd.uid.as_str().into();
    body["metadata"]["resourceVersion"] = crd.resource_version.as_str().into();
    let body = body.to_string();
    let read = ApiRequest::get(&resource, None, &object.name);
    let uri = format!("{}{subresource}?fieldManager={}", read.uri, encode(field_manager));
    let call = ApiRequest { verb: "patch", uri, body: Some(Payload::MergePatch(&body)), ..read };
    match transport.send(&call).await {
        Ok(answer) => json::live(&answer.body, &resource).ok_or_else(|| {
            ApplyError::Unknown(errors::unexpected_response(transport.peer(), answer.code.as_u16(), "not an object"))
        }),
        Err(RequestError::Refused(status)) if status.code == 404 || is_other_object(&status, &resource) => {
            Err(ApplyError::Changed)
        }
        Err(failure @ RequestError::Refused(_)) => {
            Err(ApplyError::Refused(failure.into_problem(&call, transport.peer())))
        }
        Err(failure) => Err(ApplyError::Unknown(failure.into_problem(&call, transport.peer()))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake_server;
    use super::*;

    #[tokio::test]
    async fn each_method_pins_the_object_and_changes_nothing_else() {
        let (target, seen) = fake_server::target(|_| {
            fake_server::json(200, r#"{"metadata":{"name":"one","uid":"u","resourceVersion":"9"}}"#)
        });
        let resource = Resource::built_in("g", "Thing", "things", true);
        let object = ObjectRef {
            api_version: resource.api_version(),
            kind: "Thing".into(),
            namespace: Some("n".into()),
            name: "one".into(),
        };
        let fields = json!([{"manager": "m"}]);
        for method in [RewriteMethod::EmptyApply, RewriteMethod::EmptyPatch, RewriteMethod::PatchManagedFields(&fields)]
        {
            let rewrite = StorageRewrite {
                resource: &resource,
                object: &object,
                uid: "u",
                resource_version: "8",
                method,
                field_manager: "gantry",
            };
            assert_eq!(target.rewrite_stored(&rewrite, false).await.unwrap().resource_version, "9");
        }
        let seen = seen.lock().unwrap();
        let bodies: Vec<&str> = seen.iter().map(|seen| seen.body.as_str()).collect();
        assert_eq!(
            bodies,
            [
                r#"{"apiVersion":"g/v1","kind":"Thing","metadata":{"name":"one","uid":"u","resourceVersion":"8","namespace":"n"}}"#,
                r#"[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"replace","path":"/metadata/resourceVersion","value":"8"}]"#,
                r#"[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"replace","path":"/metadata/managedFields","value":[{"manager":"m"}]},{"op":"replace","path":"/metadata/resourceVersion","value":"8"}]"#,
            ]
        );
        assert!(seen[0].uri.ends_with("/things/one?fieldManager=gantry&force=true"), "{}", seen[0].uri);
        assert!(seen[1].uri.ends_with("/things/one?fieldManager=gantry"), "{}", seen[1].uri);
    }
}
