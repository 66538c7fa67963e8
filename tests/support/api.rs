//! Requests to the API server for preparing and asserting, on blocking calls and without any of gantry's own code.

use std::path::Path;

use http::Request;
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{eventually, within_a_minute};

/// A blocking JSON client of one user. Every method fails the test where the server cannot be reached; what the server
/// answers is for the test to judge, as `(status, body)`.
pub struct Api {
    runtime: Runtime,
    client: Client,
}

impl Api {
    pub fn new(url: &str, ca_file: Option<&Path>, token: Option<&str>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime for the test's requests");
        let _inside = runtime.enter();
        let client = client(url, ca_file, token);
        drop(_inside);
        Self { runtime, client }
    }

    pub fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, None)
    }

    /// As [`get`](Self::get), for a server that may not answer.
    pub fn try_get(&self, path: &str) -> Result<(u16, Value), String> {
        self.try_send("GET", path, None).map_err(|e| e.to_string())
    }

    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("POST", path, Some(("application/json", body)))
    }

    /// As [`post`](Self::post), for a server that may not answer.
    pub fn try_post(&self, path: &str, body: &Value) -> Result<(u16, Value), String> {
        self.try_send("POST", path, Some(("application/json", body))).map_err(|e| e.to_string())
    }

    /// As [`put`](Self::put), for a server that may not answer.
    pub fn try_put(&self, path: &str, body: &Value) -> Result<(u16, Value), String> {
        self.try_send("PUT", path, Some(("application/json", body))).map_err(|e| e.to_string())
    }

    pub fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("PUT", path, Some(("application/json", body)))
    }

    /// A JSON merge patch.
    pub fn patch(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("PATCH", path, Some(("application/merge-patch+json", body)))
    }

    /// A server-side apply by a field manager of the test's choice, without force.
    pub fn server_side_apply(&self, path: &str, field_manager: &str, body: &Value) -> (u16, Value) {
        self.apply_to(&format!("{path}?fieldManager={field_manager}"), body)
    }

    /// A server-side apply with parameters of the test's choice in the path.
    pub fn apply_to(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("PATCH", path, Some(("application/apply-patch+yaml", body)))
    }

    pub fn delete(&self, path: &str) -> (u16, Value) {
        self.send("DELETE", path, None)
    }

    /// Whether the server answers at all and calls itself ready.
    pub fn is_ready(&self) -> bool {
        self.try_send("GET", "/readyz", None).is_ok_and(|(status, _)| status == 200)
    }

    /// The sum of a counter of `/metrics` over all series that have these labels.
    ///
    /// The server is shared by the tests of a binary: filter by something of the test's own, such as the API group. It
    /// counts a request after it has answered it, so wait for a number with [`eventually`]; that something was *not*
    /// requested is better asked of a [`super::Proxy`].
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

    /// Creates, or else replaces, the objects of a YAML stream, in its order, and returns them as the server answered.
    ///
    /// A CRD is waited for: on return it is Established and each served version of it answers.
    pub fn apply_yaml(&self, text: &str) -> Vec<Value> {
        serde_yaml::Deserializer::from_str(text)
            .map(|document| Value::deserialize(document).unwrap_or_else(|e| panic!("the test's YAML: {e}\n{text}")))
            .filter(|object| !object.is_null())
            .map(|object| self.create_or_replace(object))
            .collect()
    }

    /// The path of an object, for requests of one's own. Needs its apiVersion, kind and metadata only.
    pub fn path_of(&self, object: &Value) -> String {
        let name = object["metadata"]["name"].as_str().expect("the object has a name");
        format!("{}/{name}", self.collection_of(object))
    }

    fn create_or_replace(&self, mut object: Value) -> Value {
        let path = self.path_of(&object);
        let (collection, _) = path.rsplit_once('/').expect("a path has slashes");
        let (mut status, mut answer) = self.post(collection, &object);
        if status == 409 {
            let (_, live) = self.get(&path);
            object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
            (status, answer) = self.put(&path, &object);
        }
        assert!(status < 300, "cannot apply {path}: {answer:#}");
        if answer["kind"] == "CustomResourceDefinition" { self.served(&path) } else { answer }
    }

    /// Waits until a CRD is Established and its resource can be used; returns it as it is then.
    fn served(&self, path: &str) -> Value {
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
        }
        live
    }

    fn collection_of(&self, object: &Value) -> String {
        let api_version = object["apiVersion"].as_str().expect("the object has an apiVersion");
        let base = if api_version.contains('/') { "/apis" } else { "/api" };
        let base = format!("{base}/{api_version}");
        // Discovery lags a little behind a CRD that is served already.
        let resource = within_a_minute(|| {
            let (_, list) = self.get(&base);
            let resources = list["resources"].as_array()?;
            resources
                .iter()
                .find(|r| r["kind"] == object["kind"] && !r["name"].as_str().is_some_and(|name| name.contains('/')))
                .cloned()
        });
        let resource = resource.unwrap_or_else(|| panic!("the server has no kind {} in {api_version}", object["kind"]));
        let plural = resource["name"].as_str().unwrap_or_default();
        if resource["namespaced"] == true {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
            format!("{base}/namespaces/{namespace}/{plural}")
        } else {
            format!("{base}/{plural}")
        }
    }

    fn send(&self, method: &str, path: &str, body: Option<(&str, &Value)>) -> (u16, Value) {
        self.try_send(method, path, body).unwrap_or_else(|e| panic!("{method} {path}: {e}"))
    }

    fn try_send(&self, method: &str, path: &str, body: Option<(&str, &Value)>) -> kube::Result<(u16, Value)> {
        let mut request = Request::builder().method(method).uri(path);
        let mut bytes = Vec::new();
        if let Some((content_type, body)) = body {
            request = request.header("Content-Type", content_type);
            bytes = body.to_string().into_bytes();
        }
        let request = request.body(Body::from(bytes)).expect("a well-formed request");
        self.runtime.block_on(async {
            let response = self.client.send(request).await?;
            let status = response.status().as_u16();
            let bytes = response.into_body().collect_bytes().await?;
            let text = String::from_utf8_lossy(&bytes);
            Ok((status, serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(text))))
        })
    }
}

/// A client that sends each request once, as it is. To be called inside of a runtime.
pub fn client(url: &str, ca_file: Option<&Path>, token: Option<&str>) -> Client {
    let mut config = Config::new(url.parse().expect("a URL"));
    config.root_cert_file = ca_file.map(Path::to_owned);
    config.auth_info.token = token.map(|token| token.to_owned().into());
    config.default_retry = false;
    config.disable_compression = true;
    ClientBuilder::try_from(config).expect("a client of the API server").build()
}

/// Whether the comma-separated labels of a series hold this one.
fn has_label(series: &str, label: &str) -> bool {
    series.match_indices(label).any(|(at, _)| at == 0 || series.as_bytes()[at - 1] == b',')
}
