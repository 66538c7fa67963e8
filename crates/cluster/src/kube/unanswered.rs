//! An apply without a response: a slow server may have written the object all the same, or may still write it.
//!
//! A server-side apply can be sent again, but only while the object is still the one that was checked.

use serde_json::Value;

use super::apply_request::ApplyRequest;
use super::json;
use super::request::{ApiRequest, RequestError};
use super::transport::Transport;
use crate::{Apply, WritePrecondition};
use gantry_core::resource::{LiveObject, RawObject};

/// The state of an object after an apply without a response.
pub enum Unanswered {
    /// It is still as the pin says.
    AsBefore,
    /// It has everything that the apply sets, and no other change of it was seen.
    Written(LiveObject),
    /// It is another object, or at another version, and the apply would change it.
    Changed,
    /// It cannot be read.
    Unknown,
}

/// Reads the object again. If it is no longer at its pin, a dry run of the same apply shows whether it has the content.
pub async fn check_if_applied(transport: &Transport, apply: &Apply<'_>, request: &ApplyRequest<'_>) -> Unanswered {
    let Apply { resource, object, pin, .. } = apply;
    let read = ApiRequest::get(resource, request.namespace(), &object.name);
    let live = match transport.send(&read).await {
        Ok(answer) => json::live(&answer.body, resource),
        Err(RequestError::Refused(status)) if status.code == 404 => {
            return if **pin == WritePrecondition::Absent { Unanswered::AsBefore } else { Unanswered::Changed };
        }
        Err(_) => None,
    };
    let Some(live) = live else { return Unanswered::Unknown };
    match pin {
        WritePrecondition::At { uid, resource_version }
            if *uid == live.uid && *resource_version == live.resource_version =>
        {
            return Unanswered::AsBefore;
        }
        WritePrecondition::At { uid, .. } if *uid != live.uid => return Unanswered::Changed,
        _ => {}
    }
    let now = WritePrecondition::At { uid: live.uid.clone(), resource_version: live.resource_version.clone() };
    let again = Apply { pin: &now, live: Some(&live.raw), ..*apply };
    let Ok(request) = ApplyRequest::new(&again, request.namespace().unwrap_or_default()) else {
        return Unanswered::Unknown;
    };
    let call = request.call(&again);
    let dry_run = ApiRequest { uri: format!("{}&dryRun=All", request.uri), ..call };
    match transport.send(&dry_run).await {
        Ok(answer) if has_same_content(&live.raw, &answer.body) => Unanswered::Written(live),
        Ok(_) | Err(RequestError::Refused(_)) => Unanswered::Changed,
        Err(_) => Unanswered::Unknown,
    }
}

/// Whether only the status differs, which controllers write all the time.
fn has_same_content(live: &RawObject, dry_run: &str) -> bool {
    let content = |mut object: Value| {
        let members = object.as_object_mut()?;
        for key in ["status", "apiVersion", "kind"] {
            members.shift_remove(key);
        }
        let metadata = members.get_mut("metadata")?.as_object_mut()?;
        for key in ["resourceVersion", "generation"] {
            metadata.shift_remove(key);
        }
        if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
            entries.retain(|entry| entry.get("subresource").is_none());
        }
        Some(object)
    };
    let dry_run = serde_json::from_str(dry_run).ok().and_then(content);
    dry_run.is_some() && content(live.value()) == dry_run
}
