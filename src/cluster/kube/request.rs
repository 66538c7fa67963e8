//! The types that sending requests and explaining their failures share: a request, its subject, and its outcome.

use http::{Method, StatusCode};
use kube::core::Status;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::json;
use crate::cluster::Impersonate;
use crate::problem::Problem;
use crate::resource::{RawObject, Resource};

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
pub struct Call<'a> {
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
    pub format: Format,
}

/// The form of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Json,
    /// For a list: only the metadata of each object.
    MetadataOnly,
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
            Payload::Apply(_) | Payload::JsonPatch(_) | Payload::MergePatch(_) => Method::PATCH,
            Payload::Create(_) => Method::POST,
            Payload::Delete(_) => Method::DELETE,
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Payload::Apply(_) => "application/apply-patch+yaml",
            Payload::Create(_) | Payload::Delete(_) => "application/json",
            Payload::MergePatch(_) => "application/merge-patch+json",
            Payload::JsonPatch(_) => "application/json-patch+json",
        }
    }
}

impl<'a> Call<'a> {
    /// `GET` of one object.
    pub fn get(resource: &'a Resource, namespace: Option<&'a str>, name: &'a str) -> Self {
        let uri = object_path(resource, namespace, name);
        Call { verb: "get", resource: Some(resource), namespace, name: Some(name), uri, ..Call::default() }
    }

    pub fn accept(&self) -> &'static str {
        match self.uri.as_str() {
            "/api" | "/apis" => WHOLE_DISCOVERY,
            _ => match self.format {
                Format::Json => "application/json",
                Format::MetadataOnly => METADATA_ONLY,
                Format::Protobuf => PROTOBUF,
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

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json";

/// The URL path of an object. Names come from manifests, so they are encoded to stay within their path segment.
pub fn object_path(resource: &Resource, namespace: Option<&str>, name: &str) -> String {
    resource.path(namespace.map(encode).as_deref(), Some(&encode(name)))
}

/// Percent-encodes everything except unreserved characters; dots too if there is nothing else.
pub fn encode(text: &str) -> String {
    const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');
    const WITH_DOTS: AsciiSet = UNRESERVED.remove(b'.');
    let is_dots = text.bytes().all(|byte| byte == b'.');
    utf8_percent_encode(text, if is_dots { &UNRESERVED } else { &WITH_DOTS }).to_string()
}

/// A successful response.
pub struct Answer {
    pub code: StatusCode,
    pub body: String,
}

/// Why there is no successful response.
#[derive(Debug)]
pub enum Failure {
    /// The API server refused the request. `code` is set from the HTTP status if the status document has none.
    Refused(Box<Status>),
    /// No response, or not one of an API server. The next request would fail in the same way.
    Lost {
        problem: Problem,
        /// The request may have reached the server, and a write may have been carried out.
        sent: bool,
    },
    /// A response that is longer than the limit. It was not read to its end; a list with fewer objects can be shorter.
    TooLong(Problem),
}

impl Failure {
    /// A missing or invalid response to a request that may have reached the server.
    pub fn sent(problem: Problem) -> Self {
        Failure::Lost { problem, sent: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_place_in_the_path() {
        assert_eq!(encode("system:node"), "system%3Anode");
        assert_eq!(encode("a.b-c_1~"), "a.b-c_1~");
        assert_eq!(encode(".."), "%2E%2E");
        assert_eq!(encode("x/../y?z#ä"), "x%2F..%2Fy%3Fz%23%C3%A4");
        assert_eq!(
            object_path(&Resource::crd(), None, "a/b"),
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a%2Fb"
        );
    }
}
