//! What an object becomes when it is written back unchanged: a dry run of a change that changes nothing.

use super::json;
use super::request::ApiRequest;
use super::transport::Transport;
use crate::RewriteError;
use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, RawObject, Resource};

/// Sends an empty patch. The API server reads the object at the resource's version, converts it to the storage version
/// and back, and returns the result. Nothing is stored.
pub async fn rewritten(
    transport: &Transport,
    default_namespace: &str,
    resource: &Resource,
    object: &ObjectRef,
    field_manager: &str,
) -> Result<RawObject, RewriteError> {
    let namespace = resource.namespaced.then(|| object.namespace.as_deref().unwrap_or(default_namespace));
    let call = ApiRequest::dry_run_patch(resource, namespace, &object.name, field_manager, "[]");
    let failure = match transport.send(&call).await {
        Ok(answer) => {
            return match json::is_sound(&answer.body) {
                true => Ok(RawObject::new(answer.body)),
                false => Err(RewriteError::Other(Problem::new(format!("the response for {object} is not valid JSON")))),
            };
        }
        Err(failure) => failure,
    };
    let (code, said) = failure.code_and_words();
    Err(match code {
        404 | 409 => RewriteError::Gone,
        500 if said.contains("conversion webhook for ") => RewriteError::Conversion(said),
        _ => RewriteError::Other(failure.into_problem(&call, transport.peer())),
    })
}
