//! The types that sending requests and explaining their failures share: a request, its subject, and its outcome.

use std::borrow::Cow;

use http::{Method, StatusCode};
use kube::core::Status;
use percent_encoding::percent_decode_str;

use super::json;
use crate::Impersonate;
use gantry_core::problem::Problem;
pub use gantry_core::resource::percent_encode as encode;
use gantry_core::resource::{RawObject, Resource, is_path_segment};

/// The server, as described to users. Never contains a credential.
#[derive(Debug, Clone, Default)]
pub struct Peer {
    /// The context's name, or `in-cluster`.
    pub context: String,
    /// The server's URL without user information.
    pub server: String,
    /// Its host and port.
    pub address: String,
    /// The kubeconfig's name for the user.
    pub user: Option<String>,
    /// The identity that is impersonated.
    pub acts_as: Option<Impersonate>,
    /// The host and port of the proxy, if one is used.
    pub proxy: Option<String>,
}

/// A request, with its subject in the API server's own terms.
#[derive(Debug, Clone, Default)]
pub struct ApiRequest<'a> {
    /// `get`, `list`, `patch`, `create`, or empty for discovery.
    pub verb: &'static str,
    pub resource: Option<&'a Resource>,
    pub namespace: Option<&'a str>,
    pub name: Option<&'a str>,
    /// Path and query.
    pub uri: String,
    pub body: Option<Payload<'a>>,
    /// The live object, if known: for a Secret, neither its values nor the new ones are shown.
    pub live: Option<&'a RawObject>,
    pub format: ResponseFormat,
}

/// The form of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResponseFormat {
    #[default]
    Json,
    /// For a list: only the metadata of each object.
    MetadataOnly,
    /// For one object: only its metadata.
    MetadataOfObject,
    /// For a list of CRDs: Protocol Buffers, or JSON from a server that does not offer them.
    Protobuf,
}

/// The body of a request, which determines its method and content type.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// An object to write by server-side apply (`PATCH`).
    Apply(&'a str),
    /// An object to create in a collection (`POST`).
    Create(&'a str),
    /// A JSON patch (`PATCH`).
    JsonPatch(&'a str),
    /// A JSON merge patch (`PATCH`).
    MergePatch(&'a str),
    /// A strategic merge patch (`PATCH`).
    StrategicMergePatch(&'a str),
    /// `DeleteOptions` (`DELETE`).
    Delete(&'a str),
}

impl<'a> Payload<'a> {
    /// The text of the body.
    pub fn text(self) -> &'a str {
        let (Payload::Apply(text)
        | Payload::Create(text)
        | Payload::JsonPatch(text)
        | Payload::MergePatch(text)
        | Payload::StrategicMergePatch(text)
        | Payload::Delete(text)) = self;
        text
    }

    /// The bytes of the body as they are sent.
    pub fn bytes(self) -> Vec<u8> {
        match self {
            // The server parses it as YAML, whatever it looks like.
            Payload::Apply(json) => json::readable_as_yaml(json).into_owned().into_bytes(),
            other => other.text().as_bytes().to_vec(),
        }
    }

    pub fn method(self) -> Method {
        match self {
            Payload::Apply(_) | Payload::JsonPatch(_) | Payload::MergePatch(_) | Payload::StrategicMergePatch(_) => {
                Method::PATCH
            }
            Payload::Create(_) => Method::POST,
            Payload::Delete(_) => Method::DELETE,
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Payload::Apply(_) => "application/apply-patch+yaml",
            Payload::Create(_) | Payload::Delete(_) => "application/json",
            Payload::MergePatch(_) => "application/merge-patch+json",
            Payload::StrategicMergePatch(_) => "application/strategic-merge-patch+json",
            Payload::JsonPatch(_) => "application/json-patch+json",
        }
    }
}

impl<'a> ApiRequest<'a> {
    /// `GET` of one object.
    pub fn get(resource: &'a Resource, namespace: Option<&'a str>, name: &'a str) -> Self {
        let uri = resource.path(namespace, Some(name));
        ApiRequest { verb: "get", resource: Some(resource), namespace, name: Some(name), uri, ..ApiRequest::default() }
    }

    /// A JSON patch of one object, as a dry run.
    pub fn dry_run_patch(
        resource: &'a Resource,
        namespace: Option<&'a str>,
        name: &'a str,
        field_manager: &str,
        patch: &'a str,
    ) -> Self {
        let get = Self::get(resource, namespace, name);
        let uri = format!("{}?dryRun=All&fieldManager={}", get.uri, encode(field_manager));
        ApiRequest { verb: "patch", uri, body: Some(Payload::JsonPatch(patch)), ..get }
    }

    pub fn accept(&self) -> &'static str {
        match self.uri.as_str() {
            "/api" | "/apis" => WHOLE_DISCOVERY,
            _ => match self.format {
                ResponseFormat::Json => "application/json",
                ResponseFormat::MetadataOnly => METADATA_ONLY,
                ResponseFormat::MetadataOfObject => METADATA_OF_OBJECT,
                ResponseFormat::Protobuf => PROTOBUF,
            },
        }
    }
}

/// All groups with all their kinds in one document (servers since 1.26). Older servers return the traditional list of
/// groups.
/// Source: <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery>
const WHOLE_DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// A list of metadata, or whole objects from a server that does not offer it.
/// Source: <https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches>
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// The same for one object.
const METADATA_OF_OBJECT: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json";

/// Checks that the path of a request leads to what its parts name. The server decodes the path before it routes the
/// request, so no segment may contain an encoded slash, or be empty or dots.
///
/// # Errors
/// The segment that would lead elsewhere.
pub fn check_path(uri: &str) -> Result<(), String> {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let mut segments = path
        .strip_prefix('/')
        .unwrap_or(path)
        .split('/')
        .map(|segment| percent_decode_str(segment).decode_utf8().unwrap_or(Cow::Borrowed(segment)));
    match segments.find(|segment| !is_path_segment(segment)) {
        Some(segment) => Err(segment.into_owned()),
        None => Ok(()),
    }
}

/// A successful response.
pub struct ApiResponse {
    pub code: StatusCode,
    pub body: String,
}

/// Why there is no successful response.
#[derive(Debug)]
pub enum RequestError {
    /// The API server refused the request. `code` is set from the HTTP status if the status document has none.
    Refused(Box<Status>),
    /// No response, or not one of an API server. The next request would fail in the same way.
    Lost {
        problem: Problem,
        /// The request may have reached the server, and a write may have been carried out.
        sent: bool,
    },
    /// No response within the time limit. The request may have been carried out, or may still be.
    TimedOut(Problem),
    /// No request was sent: its path would lead to something else than it names.
    Misnamed(Problem),
    /// A response that is longer than the limit. It was not read to its end; a list with fewer objects can be shorter.
    TooLong(Problem),
}

impl RequestError {
    /// A missing or invalid response to a request that may have reached the server.
    pub fn sent(problem: Problem) -> Self {
        RequestError::Lost { problem, sent: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_path_that_leads_elsewhere_is_refused() {
        for uri in [
            "/api/v1",
            "/apis/g/v1/namespaces/a/things/system%3Anode?fieldManager=a/b",
            "/api/v1/namespaces/n/services/https:c:443/proxy/catalogs/a/api/v1/all",
        ] {
            assert_eq!(check_path(uri), Ok(()), "{uri}");
        }
        for (uri, segment) in [
            ("/api/v1/namespaces/n/configmaps/a%2Fb", "a/b"),
            ("/api/v1/namespaces/n/pods/%2E%2E", ".."),
            ("/api/v1/namespaces/../secrets", ".."),
            ("/api/v1/namespaces//secrets", ""),
            ("/api/v1/namespaces/n/services/x%252Fproxy", "x%2Fproxy"),
            ("/api/v1/namespaces/n/pods/", ""),
        ] {
            assert_eq!(check_path(uri).unwrap_err(), segment, "{uri}");
        }
    }
}
