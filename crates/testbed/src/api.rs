//! Blocking requests to the API server, for test setup and assertions.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use http::request::Builder;
use http::{HeaderMap, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::wait::{eventually, within_limit};

/// A blocking JSON client for one user. Responses are returned as `(status, body)` for the test to check; a body that
/// is not JSON is returned as a string.
///
/// # Panics
///
/// Every method whose name does not begin with `try_` panics if the server cannot be reached. Do not call these
/// methods in an async runtime.
pub struct Api {
    runtime: Runtime,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: String,
    authorization: Option<String>,
}

impl Api {
    /// Creates a client for the server at `url`. `ca_file` is required for `https`; without `token`, requests are
    /// anonymous.
    pub fn new(url: &str, ca_file: Option<&Path>, token: Option<&str>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime for the test's requests");
        let client = Client::builder(TokioExecutor::new()).build(connector(ca_file));
        let authorization = token.map(|token| format!("Bearer {token}"));
        Self { runtime, client, url: url.trim_end_matches('/').to_owned(), authorization }
    }

    /// GET of a path with an optional query.
    pub fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, None)
    }

    /// [`get`](Self::get) with this value of the header `Accept`, for other representations than JSON.
    pub fn get_accepting(&self, path: &str, media_type: &str) -> (u16, Value) {
        let request = Request::builder().method("GET").header(header::ACCEPT, media_type);
        self.request(request, path, Vec::new()).unwrap_or_else(|e| panic!("GET {path}: {e}"))
    }

    /// The headers of the response to a GET.
    pub fn headers(&self, path: &str) -> HeaderMap {
        let response = self.respond(Request::builder().method("GET"), path, Vec::new());
        response.unwrap_or_else(|e| panic!("GET {path}: {e}")).headers().clone()
    }

    /// [`get`](Self::get) for a server that might be unreachable.
    pub fn try_get(&self, path: &str) -> Result<(u16, Value), ApiUnreachable> {
        self.try_send("GET", path, None)
    }

    /// POST, which creates an object in the collection at `path`.
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("POST", path, Some(("application/json", body)))
    }

    /// [`post`](Self::post) for a server that might be unreachable.
    pub fn try_post(&self, path: &str, body: &Value) -> Result<(u16, Value), ApiUnreachable> {
        self.try_send("POST", path, Some(("application/json", body)))
    }

    /// [`put`](Self::put) for a server that might be unreachable.
    pub fn try_put(&self, path: &str, body: &Value) -> Result<(u16, Value), ApiUnreachable> {
        self.try_send("PUT", path, Some(("application/json", body)))
    }

    /// PUT, which replaces the object at `path`.
    pub fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("PUT", path, Some(("application/json", body)))
    }

    /// A JSON merge patch.
    pub fn patch(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("PATCH", path, Some(("application/merge-patch+json", body)))
    }

    /// Server-side apply with the given field manager, without force.
    pub fn server_side_apply(&self, path: &str, field_manager: &str, body: &Value) -> (u16, Value) {
        self.apply_to(&format!("{path}?fieldManager={field_manager}"), body)
    }

    /// Server-side apply with the query parameters in `path`.
    pub fn apply_to(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("PATCH", path, Some(("application/apply-patch+yaml", body)))
    }

    /// DELETE of the object or collection at `path`.
    pub fn delete(&self, path: &str) -> (u16, Value) {
        self.send("DELETE", path, None)
    }

    /// Whether the server responds and is ready.
    pub fn is_ready(&self) -> bool {
        self.try_send("GET", "/readyz", None).is_ok_and(|(status, _)| status == 200)
    }

    /// The sum of a counter in `/metrics` over all series with these labels.
    ///
    /// If tests share a server, filter by a label value that is unique to the test, such as its API group. The server
    /// counts a request after responding to it, so wait for the value with [`eventually`]; it is not possible to prove
    /// that something was *not* requested.
    pub fn metrics(&self, counter: &str, labels: &[(&str, &str)]) -> f64 {
        let (status, text) = self.get("/metrics");
        assert_eq!(status, 200, "{text}");
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        text.as_str()
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.strip_prefix(counter)?.strip_prefix('{')?.rsplit_once("} "))
            .filter(|(found, _)| labels.iter().all(|label| has_label(found, label)))
            .map(|(_, value)| value.parse::<f64>().expect("a metric's value"))
            .sum()
    }

    /// Creates or replaces the objects of a YAML stream, in order, and returns them as the server responded.
    ///
    /// For a CRD this waits until it is Established and each served version is available.
    pub fn apply_yaml(&self, text: &str) -> Vec<Value> {
        serde_yaml::Deserializer::from_str(text)
            .map(|document| Value::deserialize(document).unwrap_or_else(|e| panic!("the test's YAML: {e}\n{text}")))
            .filter(|object| !object.is_null())
            .map(|object| self.create_or_replace(object))
            .collect()
    }

    /// The path of an object, for custom requests. Requires only apiVersion, kind and metadata.
    pub fn path_of(&self, object: &Value) -> String {
        let name = object["metadata"]["name"].as_str().expect("the object has a name");
        format!("{}/{name}", self.collection_of(object))
    }

    fn create_or_replace(&self, mut object: Value) -> Value {
        let path = self.path_of(&object);
        let (collection, _) = path.rsplit_once('/').expect("a path has slashes");
        let (mut status, mut answer) = self.post(collection, &object);
        // Others may write the object at the same time.
        let mut tries = 0;
        while status == 409 && tries < 20 {
            let (_, live) = self.get(&path);
            object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
            (status, answer) = self.put(&path, &object);
            tries += 1;
        }
        assert!(status < 300, "cannot apply {path}: {answer:#}");
        if answer["kind"] == "CustomResourceDefinition" { self.wait_until_served(&path) } else { answer }
    }

    /// Waits until a CRD is Established and its resource is available and listed, and returns the live CRD.
    ///
    /// # Panics
    ///
    /// If that takes too long.
    pub fn wait_until_served(&self, path: &str) -> Value {
        let live = eventually(&format!("{path} is Established"), || {
            let (_, live) = self.get(path);
            let conditions = live["status"]["conditions"].as_array()?;
            let established = conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True");
            established.then_some(live)
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let versions = live["spec"]["versions"].as_array().expect("a CRD has versions");
        for version in versions.iter().filter(|version| version["served"] == true) {
            let (group, version) = (text(&live["spec"]["group"]), text(&version["name"]));
            let resource = format!("/apis/{group}/{version}/{}", text(&live["spec"]["names"]["plural"]));
            eventually(&format!("{resource} is served"), || (self.get(&resource).0 != 404).then_some(()));
            // The list of the version lags behind, most of all for the second CRD of a group.
            let (list, kind) = (format!("/apis/{group}/{version}"), &live["spec"]["names"]["kind"]);
            eventually(&format!("{resource} is listed"), || self.listed(&list, kind));
        }
        live
    }

    fn collection_of(&self, object: &Value) -> String {
        let api_version = object["apiVersion"].as_str().expect("the object has an apiVersion");
        let base = if api_version.contains('/') { "/apis" } else { "/api" };
        let base = format!("{base}/{api_version}");
        // Discovery lags slightly behind a CRD that is already served.
        let resource = within_limit(|| self.listed(&base, &object["kind"]));
        let resource = resource.unwrap_or_else(|| panic!("the server has no kind {} in {api_version}", object["kind"]));
        let plural = resource["name"].as_str().unwrap_or_default();
        if resource["namespaced"] == true {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
            format!("{base}/namespaces/{namespace}/{plural}")
        } else {
            format!("{base}/{plural}")
        }
    }

    /// The resource of a kind in the list of the version at `base`.
    fn listed(&self, base: &str, kind: &Value) -> Option<Value> {
        let (_, list) = self.get(base);
        let is_subresource = |resource: &Value| resource["name"].as_str().is_some_and(|name| name.contains('/'));
        let resources = list["resources"].as_array()?;
        resources.iter().find(|resource| resource["kind"] == *kind && !is_subresource(resource)).cloned()
    }

    fn send(&self, method: &str, path: &str, body: Option<(&str, &Value)>) -> (u16, Value) {
        // While the server replaces the handler of a CRD that has changed, it answers like this for a moment.
        let is_replacing =
            |status: u16, answer: &Value| status == 503 && answer["message"] == "apiserver is shutting down";
        eventually(&format!("{method} {path} is handled"), || {
            let answer = self.try_send(method, path, body).unwrap_or_else(|e| panic!("{method} {path}: {e}"));
            (!is_replacing(answer.0, &answer.1)).then_some(answer)
        })
    }

    fn try_send(&self, method: &str, path: &str, body: Option<(&str, &Value)>) -> Result<(u16, Value), ApiUnreachable> {
        let mut request = Request::builder().method(method);
        let mut bytes = Vec::new();
        if let Some((content_type, body)) = body {
            request = request.header(header::CONTENT_TYPE, content_type);
            bytes = body.to_string().into_bytes();
        }
        self.request(request, path, bytes)
    }

    fn request(&self, request: Builder, path: &str, body: Vec<u8>) -> Result<(u16, Value), ApiUnreachable> {
        let response = self.respond(request, path, body)?;
        let (status, bytes) = (response.status().as_u16(), response.body());
        let text = || json!(String::from_utf8_lossy(bytes));
        Ok((status, serde_json::from_slice(bytes).unwrap_or_else(|_| text())))
    }

    fn respond(&self, request: Builder, path: &str, body: Vec<u8>) -> Result<Response<Bytes>, ApiUnreachable> {
        let mut request = request.uri(format!("{}{path}", self.url));
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(Full::from(body)).expect("a well-formed request");
        self.runtime.block_on(async {
            let response = self.client.request(request).await.map_err(|e| ApiUnreachable(with_sources(&e)))?;
            let (parts, body) = response.into_parts();
            let bytes = body.collect().await.map_err(|e| ApiUnreachable(with_sources(&e)))?.to_bytes();
            Ok(Response::from_parts(parts, bytes))
        })
    }
}

/// A request that got no response. Displays the error with its sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiUnreachable(String);

impl fmt::Display for ApiUnreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ApiUnreachable {}

/// A connector for `https` servers with a certificate from `ca_file`, and for plain `http`.
fn connector(ca_file: Option<&Path>) -> HttpsConnector<HttpConnector> {
    let mut roots = RootCertStore::empty();
    for certificate in ca_file.into_iter().flat_map(|file| CertificateDer::pem_file_iter(file).expect("a CA file")) {
        roots.add(certificate.expect("a certificate")).expect("a certificate that can be trusted");
    }
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("TLS versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build()
}

/// An error with its sources, on one line.
fn with_sources(error: &dyn Error) -> String {
    let sources = std::iter::successors(error.source(), |&error| error.source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}

/// Whether the comma-separated labels of a series include `label`.
fn has_label(series: &str, label: &str) -> bool {
    series.match_indices(label).any(|(at, _)| at == 0 || series.as_bytes()[at - 1] == b',')
}
