//! One delete, which succeeds only if the live object has not changed since it was read.
//!
//! Source: `DeleteOptions.preconditions`
//! (<https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/delete-options/>).

use serde_json::json;

use super::apply::what_server_lacks;
use super::request::{ApiRequest, Payload, RequestError};
use super::transport::Transport;
use crate::{Delete, DeleteError, Lacking};

/// Requests the deletion. The object can remain for a while because of finalizers and, in the foreground, its
/// dependents.
pub async fn delete(transport: &Transport, default_namespace: &str, delete: &Delete<'_>) -> Result<(), DeleteError> {
    let Delete { resource, object, uid, resource_version, foreground } = *delete;
    let namespace = resource.namespaced.then(|| object.namespace.as_deref().unwrap_or(default_namespace));
    let body = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid, "resourceVersion": resource_version},
        "propagationPolicy": if foreground { "Foreground" } else { "Background" },
    })
    .to_string();
    let read = ApiRequest::get(resource, namespace, &object.name);
    let call = ApiRequest { verb: "delete", body: Some(Payload::Delete(&body)), ..read };
    match transport.send(&call).await {
        Ok(_) => Ok(()),
        Err(RequestError::Refused(status)) if status.code == 404 => Ok(()),
        Err(RequestError::Refused(status)) if status.code == 409 && is_precondition(&status.message) => {
            Err(DeleteError::Changed)
        }
        Err(RequestError::Refused(status)) if what_server_lacks(&status) == Some(Lacking::Webhook) => {
            Err(DeleteError::NotYet(RequestError::Refused(status).into_problem(&call, transport.peer())))
        }
        Err(failure) => Err(DeleteError::Refused(failure.into_problem(&call, transport.peer()))),
    }
}

/// The server's message for an object with another uid or resourceVersion. (A namespace that is being deleted is a
/// conflict, too.) The server compares when it reads the object ("in the precondition (770) does not match") and again
/// when it writes ("Precondition failed").
fn is_precondition(said: &str) -> bool {
    ["in the precondition (", "Precondition failed", "the object has been modified"]
        .iter()
        .any(|part| said.contains(part))
}
