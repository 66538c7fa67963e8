//! Manifests in their own folder, for tests of `deploy` and `check`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ControlPlane, Gantry, Isolated, control_plane, crd_yaml, isolated};
use gantry_testbed::kubeconfig;

/// A folder for manifests, and the names that they use.
pub struct Bed {
    pub folder: TempDir,
    pub names: Isolated,
}

impl Bed {
    pub fn new() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder"), names: isolated() }
    }

    /// With its namespace on the server that the tests share.
    pub fn with_namespace() -> Self {
        Self::on(control_plane())
    }

    /// With its namespace on this server.
    pub fn on(control_plane: &ControlPlane) -> Self {
        let bed = Self::new();
        control_plane.apply_yaml(&bed.namespace());
        bed
    }

    pub fn write(&self, file: &str, text: &str) {
        std::fs::write(self.folder.path().join(file), text).expect("write a file");
    }

    /// `gantry` with this folder as its working directory.
    pub fn gantry(&self, kubeconfig: PathBuf, arguments: &[&str]) -> Gantry {
        Gantry::new().kubeconfig(kubeconfig).cwd(self.folder.path()).args(arguments)
    }

    pub fn deploy(&self, kubeconfig: PathBuf, more: &[&str]) -> Gantry {
        self.gantry(kubeconfig, &["deploy", "-f", "manifests.yaml"]).args(more)
    }

    /// Writes the objects to `manifests.yaml`, each as a document.
    pub fn write_objects<'v>(&self, objects: impl IntoIterator<Item = &'v Value>) {
        let texts: Vec<String> = objects.into_iter().map(ToString::to_string).collect();
        self.write("manifests.yaml", &texts.join("\n---\n"));
    }

    /// An object of the namespace with these other fields, which can include metadata.
    pub fn object(&self, api_version: &str, kind: &str, name: &str, rest: Value) -> Value {
        let metadata = json!({"name": name, "namespace": self.names.namespace});
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        merge(&mut object, rest);
        object
    }

    pub fn namespace(&self) -> String {
        format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {}}}\n", self.names.namespace)
    }

    /// A CRD of the kind Sample with these properties (YAML flow).
    pub fn crd(&self, fields: &str) -> String {
        crd_yaml(&self.names.group, "Sample", fields)
    }

    pub fn config_map(&self, name: &str, value: &str) -> String {
        let namespace = &self.names.namespace;
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{key: {value}}}\n"
        )
    }

    pub fn sample(&self) -> String {
        let Isolated { group, namespace } = &self.names;
        format!("apiVersion: {group}/v1\nkind: Sample\nmetadata: {{name: one, namespace: {namespace}}}\nfirst: x\n")
    }

    pub fn crd_path(&self) -> String {
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/samples.{}", self.names.group)
    }

    pub fn config_map_path(&self, name: &str) -> String {
        format!("/api/v1/namespaces/{}/configmaps/{name}", self.names.namespace)
    }

    pub fn sample_path(&self) -> String {
        format!("/apis/{}/v1/namespaces/{}/samples/one", self.names.group, self.names.namespace)
    }
}

/// A recursive merge: values of `rest` win.
pub fn merge(into: &mut Value, rest: Value) {
    match (into, rest) {
        (Value::Object(into), Value::Object(rest)) => {
            for (key, value) in rest {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, rest) => *into = rest,
    }
}

/// Creates an object like a tool that does not use server-side apply.
pub fn create_as(control_plane: &ControlPlane, manager: &str, object: &Value) {
    let path = control_plane.path_of(object);
    let (collection, _) = path.rsplit_once('/').expect("a path");
    let (status, answer) = control_plane.post(&format!("{collection}?fieldManager={manager}"), object);
    assert_eq!(status, 201, "{answer:#}");
}

/// A kubeconfig with a port that nothing listens on.
pub fn closed_port(folder: &Path) -> PathBuf {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let server = format!("http://{}", listener.local_addr().expect("its address"));
    let path = folder.join("closed.kubeconfig");
    std::fs::write(&path, kubeconfig(&server, None, "test", "unused")).expect("write a kubeconfig");
    path
}

/// The admin's kubeconfig with changes to its cluster and user.
///
/// Each call writes a new file.
pub fn kubeconfig_with(folder: &Path, change: impl Fn(&mut Value, &mut Value)) -> PathBuf {
    changed(folder, &control_plane().kubeconfig("admin"), change)
}

/// A kubeconfig with changes to its cluster and user, as a new file.
pub fn changed(folder: &Path, kubeconfig: &Path, change: impl Fn(&mut Value, &mut Value)) -> PathBuf {
    let text = std::fs::read_to_string(kubeconfig).expect("a kubeconfig");
    let mut config: Value = serde_yaml::from_str(&text).expect("YAML");
    let (mut cluster, mut user) = (config["clusters"][0]["cluster"].take(), config["users"][0]["user"].take());
    change(&mut cluster, &mut user);
    config["clusters"][0]["cluster"] = cluster;
    config["users"][0]["user"] = user;
    let file = tempfile::Builder::new().suffix(".kubeconfig").tempfile_in(folder).expect("a file");
    let (_, path) = file.keep().expect("a file that stays");
    std::fs::write(&path, config.to_string()).expect("write a kubeconfig");
    path
}

/// For each change of a report: the object's kind and name, and its result.
pub fn results(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let changes = report["changes"].as_array().expect("a list of changes");
    let entry = |change: &Value| {
        let object = &change["object"];
        (format!("{} {}", text(&object["kind"]), text(&object["name"])), text(&change["result"]))
    };
    changes.iter().map(entry).collect()
}
