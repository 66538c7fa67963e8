//! A request, what it is about, and what may come of it: what sends requests and what explains their failure share.

use http::{Method, StatusCode};
use kube::core::Status;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::cluster::Impersonate;
use crate::problem::Problem;
use crate::resource::{RawObject, Resource};

/// Whom we talk to, as people know it. Never holds a credential.
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
    /// Whom we impersonate.
    pub acts_as: Option<Impersonate>,
    /// Host and port of the proxy on the way.
    pub proxy: Option<String>,
}

/// A request, with what it is about in the API server's own terms.
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
    /// The object as it is live, where that is known: neither its values nor the new ones are shown for a Secret.
    pub live: Option<&'a RawObject>,
    /// Of a list: only the metadata of each object is wanted.
    pub metadata_only: bool,
}

/// What a request carries, which decides its method and its content type.
#[derive(Debug, Clone, Copy)]
pub enum Payload<'a> {
    /// An object, written by server-side apply (`PATCH`).
    Apply(&'a str),
    /// An object for a collection (`POST`).
    Create(&'a str),
    /// A JSON patch (`PATCH`).
    JsonPatch(&'a str),
    /// A JSON merge patch (`PATCH`).
    MergePatch(&'a str),
    /// `DeleteOptions` (`DELETE`).
    Delete(&'a str),
}

impl<'a> Payload<'a> {
    /// The body as it is sent.
    pub fn text(self) -> &'a str {
        let (Payload::Apply(text)
        | Payload::Create(text)
        | Payload::JsonPatch(text)
        | Payload::MergePatch(text)
        | Payload::Delete(text)) = self;
        text
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
            _ if self.metadata_only => METADATA_ONLY,
            _ => "application/json",
        }
    }
}

/// All groups with all their kinds in one document, where the server has such a thing (1.26 and newer); else it answers
/// the list of groups that it always answered.
/// Source: <https://kubernetes.io/docs/concepts/overview/kubernetes-api/#aggregated-discovery>
const WHOLE_DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// A list of metadata, or whole objects from a server that does not offer it.
/// Source: <https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches>
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// The URL path of an object. Names come from manifests: none may leave its place in the path.
pub fn object_path(resource: &Resource, namespace: Option<&str>, name: &str) -> String {
    resource.path(namespace.map(encode).as_deref(), Some(&encode(name)))
}

/// Percent-encodes all but the unreserved characters, and dots where there is nothing else.
pub fn encode(text: &str) -> String {
    const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');
    const WITH_DOTS: AsciiSet = UNRESERVED.remove(b'.');
    let is_dots = text.bytes().all(|byte| byte == b'.');
    utf8_percent_encode(text, if is_dots { &UNRESERVED } else { &WITH_DOTS }).to_string()
}

/// A good answer.
pub struct Answer {
    pub code: StatusCode,
    pub body: String,
}

/// Why there is no good answer.
#[derive(Debug)]
pub enum Failure {
    /// The API server said no. `code` is set from the answer itself where the status document has none.
    Refused(Box<Status>),
    /// No answer, or not one of an API server: whatever was asked, the next question would fare no better.
    Lost {
        problem: Problem,
        /// The request may have reached the server, and a write may have been carried out.
        sent: bool,
    },
    /// An answer that was longer than it can be. It was not read to its end; a list of fewer objects may be shorter.
    TooLong(Problem),
}

impl Failure {
    /// An answer that did not come or makes no sense, to a request that may have arrived.
    pub fn sent(problem: Problem) -> Self {
        Failure::Lost { problem, sent: true }
    }
}
