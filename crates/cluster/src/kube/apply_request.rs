//! The request of one server-side apply, with the pin that the API server compares.
//!
//! The pin is sent in the object itself, as the `metadata.uid` and `metadata.resourceVersion` that were read, so the
//! API server compares it in the same transaction that writes. For an object that did not exist, it is a
//! resourceVersion that no object can have: a create ignores it, and an object that was created in the meantime fails
//! the comparison. The server keeps neither field in managedFields.

use serde_json::value::RawValue;

use super::json::{JsonMembers, push_member, quote};
use super::request::{ApiRequest, Payload, ResponseFormat, encode};
use crate::{Apply, WritePrecondition};
use gantry_core::problem::Problem;
use gantry_core::resource::{RawObject, SERVER_METADATA};

/// Revision 1 of etcd is its empty state; every object is written at a later revision.
const NO_RESOURCE_VERSION: &str = "1";

/// The request for one apply. A dry run sends the same request with one more parameter.
pub(super) struct ApplyRequest<'a> {
    namespace: Option<&'a str>,
    body: String,
    pub uri: String,
}

impl<'a> ApplyRequest<'a> {
    pub fn new(apply: &Apply<'a>, default_namespace: &'a str) -> Result<Self, Problem> {
        let Apply { resource, object, pin, .. } = apply;
        let namespace = namespace_of(apply, default_namespace);
        let body = body(apply, namespace, Some(pin))?;
        let uri = format!(
            "{}?fieldManager={}&force={}&fieldValidation=Strict",
            resource.path(namespace, Some(&object.name)),
            encode(apply.field_manager),
            apply.force_conflicts
        );
        Ok(ApplyRequest { namespace, body, uri })
    }

    pub fn namespace(&self) -> Option<&'a str> {
        self.namespace
    }

    pub fn call<'c>(&'c self, apply: &'c Apply<'_>) -> ApiRequest<'c> {
        ApiRequest {
            verb: "patch",
            resource: Some(apply.resource),
            namespace: self.namespace,
            name: Some(&apply.object.name),
            uri: self.uri.clone(),
            body: Some(Payload::Apply(&self.body)),
            live: apply.live,
            format: ResponseFormat::Json,
        }
    }
}

pub(super) fn namespace_of<'a>(apply: &Apply<'a>, default_namespace: &'a str) -> Option<&'a str> {
    apply.resource.namespaced.then(|| apply.object.namespace.as_deref().unwrap_or(default_namespace))
}

/// The manifest as written, without the fields that the server sets, and with the pin, if any, in its metadata.
pub(super) fn body(
    apply: &Apply<'_>,
    namespace: Option<&str>,
    pin: Option<&WritePrecondition>,
) -> Result<String, Problem> {
    body_of(apply.raw, namespace, pin)
        .ok_or_else(|| Problem::new(format!("{} is not an object with metadata", apply.object)))
}

fn body_of(raw: &RawObject, namespace: Option<&str>, pin: Option<&WritePrecondition>) -> Option<String> {
    let json = raw.json();
    let members: JsonMembers<'_> = serde_json::from_str(&json).ok()?;
    let mut body = String::with_capacity(json.len() + 128);
    body.push('{');
    let mut has_metadata = false;
    for (key, value) in &members.0 {
        if key == "metadata" {
            has_metadata = true;
            push_member(&mut body, key, &metadata(value, namespace, pin)?);
        } else {
            push_member(&mut body, key, value.get());
        }
    }
    body.push('}');
    has_metadata.then_some(body)
}

fn metadata(written: &RawValue, namespace: Option<&str>, pin: Option<&WritePrecondition>) -> Option<String> {
    let members: JsonMembers<'_> = serde_json::from_str(written.get()).ok()?;
    let mut metadata = String::from("{");
    for (key, value) in &members.0 {
        // With managedFields every apply is refused, uid and resourceVersion would override the pin, and with a
        // deletionTimestamp the object would be deleted as soon as it is created.
        if !SERVER_METADATA.contains(&key.as_ref()) {
            push_member(&mut metadata, key, value.get());
        }
    }
    if let Some(namespace) = namespace.filter(|_| !members.0.iter().any(|(key, _)| key == "namespace")) {
        push_member(&mut metadata, "namespace", &quote(namespace));
    }
    match pin {
        None => {}
        Some(WritePrecondition::Absent) => push_member(&mut metadata, "resourceVersion", &quote(NO_RESOURCE_VERSION)),
        Some(WritePrecondition::At { uid, resource_version }) => {
            push_member(&mut metadata, "uid", &quote(uid));
            push_member(&mut metadata, "resourceVersion", &quote(resource_version));
        }
    }
    metadata.push('}');
    Some(metadata)
}
