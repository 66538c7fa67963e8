//! CRDs for the tests of all crates.

use serde_json::{Map, Value, json};

/// A CRD, version by version. What a test does not set is as in most CRDs.
#[derive(Clone)]
pub struct CrdBuilder(Value);

impl CrdBuilder {
    /// Namespaced and without a version. Its plural is the kind in lower case with an `s`.
    pub fn new(group: &str, kind: &str) -> Self {
        let singular = kind.to_lowercase();
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"singular": singular, "kind": kind, "listKind": format!("{kind}List")},
                "versions": [],
            },
        });
        Self(crd).plural(&format!("{singular}s"))
    }

    /// The kind `Sample`.
    pub fn samples(group: &str) -> Self {
        Self::new(group, "Sample")
    }

    /// Sets the plural name, and with it the name of the CRD. By default, it is the singular with an `s`.
    pub fn plural(mut self, plural: &str) -> Self {
        self.0["spec"]["names"]["plural"] = plural.into();
        self.0["metadata"]["name"] = format!("{plural}.{}", self.0["spec"]["group"].as_str().expect("a group")).into();
        self
    }

    /// Makes the kind cluster-scoped. By default, its objects are in namespaces.
    pub fn cluster_scoped(self) -> Self {
        self.set("scope", "Cluster")
    }

    /// Sets `spec.conversion`.
    pub fn conversion(self, conversion: &Value) -> Self {
        self.set("conversion", conversion.clone())
    }

    /// Sets a field of `spec`.
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0["spec"][key] = value.into();
        self
    }

    /// Adds a served version with this schema. The first version is the storage version.
    pub fn version(mut self, name: &str, schema: Value) -> Self {
        let versions = self.0["spec"]["versions"].as_array_mut().expect("a list");
        let storage = versions.is_empty();
        versions.push(json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}}));
        self
    }

    /// [`Self::version`] whose objects have only the field `spec`, with this schema.
    pub fn version_of_spec(self, name: &str, spec: Value) -> Self {
        self.version(name, fields(json!({"spec": spec})))
    }

    /// Whether the last version is served.
    pub fn served(self, served: bool) -> Self {
        self.set_in_version("served", served)
    }

    /// Whether the last version is the storage version.
    pub fn storage(self, storage: bool) -> Self {
        self.set_in_version("storage", storage)
    }

    /// Gives the last version a status subresource.
    pub fn status_subresource(self) -> Self {
        self.set_in_version("subresources", json!({"status": {}}))
    }

    /// Sets a field of the last version.
    pub(crate) fn set_in_version(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0["spec"]["versions"].as_array_mut().expect("a list").last_mut().expect("a version")[key] = value.into();
        self
    }

    /// The CRD as JSON.
    pub fn build(self) -> Value {
        self.0
    }
}

/// The schema of an object with these fields.
pub fn fields(fields: Value) -> Value {
    json!({"type": "object", "properties": fields})
}

/// The schema of an object whose fields are strings.
pub fn string_fields(names: &[&str]) -> Value {
    fields(names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect::<Map<_, _>>().into())
}

/// The schema of an object that accepts any fields.
pub fn any_fields() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// A CRD as people write it. The properties of its only version are on the last line, in YAML's flow style.
pub fn crd_yaml(group: &str, kind: &str, properties: &str) -> String {
    let singular = kind.to_lowercase();
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {singular}s.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: {singular}s, singular: {singular}, kind: {kind}, listKind: {kind}List}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {{{properties}}}
"
    )
}
