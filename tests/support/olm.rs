//! A cluster with the parts of OLM v1 that concern catalogs: the CRDs, ClusterCatalogs as catalogd writes them, and a
//! server behind the Service of catalogd.
//!
//! ClusterCatalogs and ClusterExtensions have no namespace, so only one test at a time can use them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Value, json};

use super::https::{self, Answers};
use super::{ControlPlane, CrdBuilder, Gantry, any_fields, fields};

/// The namespace of catalogd: the one of OpenShift, so that the tests notice code that assumes the usual one.
pub const NAMESPACE: &str = "openshift-catalogd";
/// The name of its Service.
pub const SERVICE: &str = "catalogd-service";
/// The address of its Pod, as the API server sees it.
const ADDRESS: &str = "192.0.2.10";
const PORT: u16 = 8443;

const COLLECTION: &str = "/apis/olm.operatorframework.io/v1/clustercatalogs";
const EXTENSIONS: &str = "/apis/olm.operatorframework.io/v1/clusterextensions";

/// The cluster that all tests of the binary share, locked for one of them.
pub struct Olm {
    cluster: &'static Cluster,
    _alone: MutexGuard<'static, ()>,
}

struct Cluster {
    control_plane: ControlPlane,
    answers: Answers,
    alone: Mutex<()>,
}

impl Olm {
    /// Waits until no other test uses it; it then has no catalogs and no ClusterExtensions.
    pub fn alone() -> Olm {
        static CLUSTER: OnceLock<Cluster> = OnceLock::new();
        let cluster = CLUSTER.get_or_init(Cluster::start);
        let alone = cluster.alone.lock().unwrap_or_else(PoisonError::into_inner);
        Olm { cluster, _alone: alone }
    }

    pub fn control_plane(&self) -> &'static ControlPlane {
        &self.cluster.control_plane
    }

    /// `gantry`, as a user.
    pub fn gantry(&self, user: &str, arguments: &[&str]) -> Gantry {
        Gantry::new().kubeconfig(self.kubeconfig(user)).args(arguments)
    }

    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.control_plane().kubeconfig(user)
    }

    /// Adds a catalog that is served, with this content.
    pub fn serve(&self, name: &str, spec: &Value, content: impl AsRef<[u8]>) {
        let content = content.as_ref();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/jsonl\r\nContent-Length: {}", content.len());
        self.answer(&path_of(name), [format!("{head}\r\nConnection: close\r\n\r\n").as_bytes(), content].concat());
        self.catalog(name, spec, &served_at(SERVICE, name));
    }

    /// Sets the answer to requests for a path, byte for byte.
    pub fn answer(&self, path: &str, answer: impl Into<Vec<u8>>) {
        let mut answers = self.cluster.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(path.to_owned(), (answer.into(), false));
    }

    /// The same, but the connection then stays open without sending anything more.
    pub fn answer_and_wait(&self, path: &str, answer: impl Into<Vec<u8>>) {
        let mut answers = self.cluster.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(path.to_owned(), (answer.into(), true));
    }

    /// Adds a ClusterCatalog with this status.
    pub fn catalog(&self, name: &str, spec: &Value, status: &Value) {
        let mut object = json!({
            "apiVersion": "olm.operatorframework.io/v1",
            "kind": "ClusterCatalog",
            "metadata": {"name": name, "labels": {"olm.operatorframework.io/metadata.name": name}},
            "spec": {"source": {"type": "Image", "image": {"ref": "registry.example.com/catalog:latest"}}},
        });
        let given = spec.as_object().expect("an object").clone();
        object["spec"].as_object_mut().expect("an object").extend(given);
        let (code, answer) = self.control_plane().post(COLLECTION, &object);
        assert_eq!(code, 201, "{answer}");
        let path = format!("{COLLECTION}/{name}/status");
        let (code, answer) = self.control_plane().patch(&path, &json!({"status": status}));
        assert_eq!(code, 200, "{answer}");
    }

    /// A Service in catalogd's namespace with one Pod of this address, or without a Pod.
    pub fn service(&self, name: &str, address: Option<&str>) {
        self.cluster.service(name, address);
    }
}

impl Drop for Olm {
    fn drop(&mut self) {
        // Deletes all of them, however far the test got.
        self.control_plane().delete(COLLECTION);
        self.control_plane().delete(EXTENSIONS);
        self.cluster.answers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The path of a catalog's whole content.
pub fn path_of(name: &str) -> String {
    format!("/catalogs/{name}/api/v1/all")
}

/// The status of a catalog that this Service serves.
pub fn served_at(service: &str, name: &str) -> Value {
    let time = "2026-08-21T10:00:00Z";
    json!({
        "conditions": [
            {"type": "Progressing", "status": "True", "reason": "Succeeded", "lastTransitionTime": time,
                "message": "Successfully unpacked and stored content from resolved source"},
            {"type": "Serving", "status": "True", "reason": "Available", "lastTransitionTime": time,
                "message": "Serving desired content from resolved source"},
        ],
        "urls": {"base": format!("https://{service}.{NAMESPACE}.svc/catalogs/{name}")},
    })
}

/// A package with one bundle.
pub fn package(name: &str, version: &str) -> String {
    let bundle = format!("{name}.v{version}");
    let blobs = [
        json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": [{"name": bundle}]}),
        json!({"schema": "olm.bundle", "package": name, "name": bundle, "properties": [
            {"type": "olm.package", "value": {"packageName": name, "version": version}},
        ]}),
    ];
    blobs.map(|blob| format!("{blob}\n")).concat()
}

impl Cluster {
    fn start() -> Cluster {
        let control_plane = ControlPlane::start_with_network();
        let catalogs = crd("ClusterCatalog");
        let extensions = crd("ClusterExtension");
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        control_plane.apply_yaml(&format!("{namespace}\n---\n{catalogs}\n---\n{extensions}"));
        let answers = Answers::default();
        let cluster = Cluster { control_plane, answers, alone: Mutex::new(()) };
        cluster.service(SERVICE, Some(ADDRESS));
        let port = https::listen(&format!("{SERVICE}.{NAMESPACE}.svc"), Arc::clone(&cluster.answers));
        cluster.control_plane.route(&format!("{ADDRESS}:{PORT}"), port);
        cluster
    }

    fn service(&self, name: &str, address: Option<&str>) {
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": PORT, "protocol": "TCP"}]}});
        self.control_plane.apply_yaml(&service.to_string());
        let Some(address) = address else {
            // What the Service's controller creates if no Pod is ready.
            let none = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata});
            self.control_plane.apply_yaml(&none.to_string());
            return;
        };
        // The API server proxies only to Pods, and only to a Pod whose status has this address.
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"containers": [{"name": "catalogd", "image": "registry.example.com/catalogd"}]}});
        let pod = self.control_plane.apply_yaml(&pod.to_string()).remove(0);
        let status = format!("{}/status", self.control_plane.path_of(&pod));
        let status = self
            .control_plane
            .patch(&status, &json!({"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}}));
        assert_eq!(status.0, 200, "{}", status.1);
        let target = json!({"kind": "Pod", "name": name, "namespace": NAMESPACE});
        let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata,
            "subsets": [{"addresses": [{"ip": address, "targetRef": target}],
                "ports": [{"name": "https", "port": PORT, "protocol": "TCP"}]}]});
        self.control_plane.apply_yaml(&endpoints.to_string());
    }
}

/// A CRD of OLM v1 that accepts any object.
fn crd(kind: &str) -> Value {
    let schema = fields(json!({"spec": any_fields(), "status": any_fields()}));
    let crd = CrdBuilder::new("olm.operatorframework.io", kind).cluster_scoped();
    crd.version("v1", schema.clone()).status_subresource().version("v1alpha1", schema).status_subresource().build()
}
