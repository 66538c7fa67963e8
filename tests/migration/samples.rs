//! A CRD whose storage version moves from v1 to v2 while objects exist.

use serde_json::{Value, json};

use crate::support::{Bed, ControlPlane, CrdBuilder, Gantry, control_plane, string_fields};

/// The CRD `samples.GROUP` of a group of its own, and its objects.
pub struct StoredSamples {
    pub bed: Bed,
    cp: &'static ControlPlane,
    is_cluster_scoped: bool,
}

impl StoredSamples {
    /// Without a CRD yet.
    pub fn new() -> Self {
        Self::on(control_plane())
    }

    /// Whose objects have no namespace.
    pub fn cluster_scoped() -> Self {
        Self { is_cluster_scoped: true, ..Self::new() }
    }

    /// With objects of v1 with the fields `a` and `b`, and a CRD that stores at v2 with these fields.
    pub fn moved(names: &[&str], fields_of_v2: &[&str]) -> Self {
        Self::moved_on(control_plane(), names, fields_of_v2)
    }

    fn on(cp: &'static ControlPlane) -> Self {
        Self { bed: Bed::on(cp), cp, is_cluster_scoped: false }
    }

    /// See [`moved`](Self::moved), on this server.
    pub fn moved_on(cp: &'static ControlPlane, names: &[&str], fields_of_v2: &[&str]) -> Self {
        let samples = Self::on(cp);
        samples.apply(samples.v1());
        for name in names {
            samples.create("v1", name, json!({"a": "1", "b": "2"}));
        }
        samples.apply(samples.v1_and_v2(fields_of_v2));
        samples
    }

    pub fn builder(&self) -> CrdBuilder {
        let builder = CrdBuilder::samples(&self.bed.names.group);
        if self.is_cluster_scoped { builder.cluster_scoped() } else { builder }
    }

    /// Only v1.
    pub fn v1(&self) -> CrdBuilder {
        self.builder().version_of_spec("v1", string_fields(&["a", "b"])).status_subresource()
    }

    /// Both versions; v2 is the storage version.
    pub fn v1_and_v2(&self, fields_of_v2: &[&str]) -> CrdBuilder {
        self.v1().storage(false).version_of_spec("v2", string_fields(fields_of_v2)).storage(true).status_subresource()
    }

    pub fn apply(&self, crd: CrdBuilder) {
        self.cp.apply_yaml(&crd.build().to_string());
    }

    /// Replaces the versions of the live CRD, and keeps its annotations.
    pub fn set_versions(&self, crd: CrdBuilder) {
        let versions = json!({"spec": {"versions": crd.build()["spec"]["versions"]}});
        let (status, answer) = self.cp.patch(&self.bed.crd_path(), &versions);
        assert_eq!(status, 200, "{answer:#}");
    }

    pub fn crd_name(&self) -> String {
        format!("samples.{}", self.bed.names.group)
    }

    /// The live CRD.
    pub fn crd(&self) -> Value {
        self.cp.get(&self.bed.crd_path()).1
    }

    pub fn stored_versions(&self) -> Value {
        self.crd()["status"]["storedVersions"].clone()
    }

    /// The path of the objects at a version.
    pub fn path(&self, version: &str) -> String {
        let group = &self.bed.names.group;
        match self.is_cluster_scoped {
            true => format!("/apis/{group}/{version}/samples"),
            false => format!("/apis/{group}/{version}/namespaces/{}/samples", self.bed.names.namespace),
        }
    }

    pub fn object(&self, version: &str, name: &str, spec: Value) -> Value {
        json!({
            "apiVersion": format!("{}/{version}", self.bed.names.group), "kind": "Sample", "metadata": {"name": name},
            "spec": spec,
        })
    }

    pub fn create(&self, version: &str, name: &str, spec: Value) -> Value {
        let path = format!("{}?fieldManager=owner", self.path(version));
        let (status, created) = self.cp.post(&path, &self.object(version, name, spec));
        assert_eq!(status, 201, "{created:#}");
        created
    }

    pub fn get(&self, version: &str, name: &str) -> Value {
        let (status, object) = self.cp.get(&format!("{}/{name}", self.path(version)));
        assert_eq!(status, 200, "{object:#}");
        object
    }

    /// The key of the object in etcd.
    pub fn key(&self, name: &str) -> String {
        let namespace = if self.is_cluster_scoped { String::new() } else { format!("{}/", self.bed.names.namespace) };
        format!("/registry/{}/samples/{namespace}{name}", self.bed.names.group)
    }

    /// The object as etcd has it.
    pub fn stored(&self, name: &str) -> Value {
        self.cp.stored(&self.key(name))
    }

    /// The version that the object is stored at.
    pub fn version_of(&self, name: &str) -> String {
        let stored = self.stored(name);
        let api_version = stored["apiVersion"].as_str().expect("an apiVersion");
        api_version.rsplit_once('/').expect("a group").1.to_owned()
    }

    /// `gantry migrate` of this CRD.
    pub fn migrate(&self, more: &[&str]) -> Gantry {
        self.migrate_as(self.cp, "admin", more)
    }

    pub fn migrate_as(&self, cp: &ControlPlane, user: &str, more: &[&str]) -> Gantry {
        self.bed.gantry(cp.kubeconfig(user), &["migrate", &self.crd_name()]).args(more)
    }
}
