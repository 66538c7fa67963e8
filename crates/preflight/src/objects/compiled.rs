//! A version of a CRD with its compiled schema, for validating objects.

use std::sync::Arc;

use serde_json::Value;

use gantry_core::crd::CrdVersion;
use gantry_k8s_cel::KubernetesRelease;
use gantry_schema::ratchet::{self, RatchetingRefusals};
use gantry_schema::typed::{self, TypedValueError};
use gantry_schema::{FieldError, Schema};

#[derive(Debug, Clone)]
pub struct CompiledVersion {
    pub name: Arc<str>,
    pub schema: Schema,
    /// `openAPIV3Schema` as it is written, without the formats that the server ignores.
    pub raw: Arc<Value>,
    pub status_subresource: bool,
    /// Whether a create, which drops the status, can be refused because of it.
    pub drops_needed_status: bool,
    /// Whether rules compare the whole object, with its metadata, to the old one.
    pub compares_objects: bool,
    /// Whether there is a list that server-side apply may be unable to parse although its items are valid.
    pub has_set_of_structures: bool,
}

impl CompiledVersion {
    /// Compiles a version as a server of this release does.
    ///
    /// # Errors
    /// The schema is missing or cannot be compiled.
    pub fn compile(version: &CrdVersion, release: KubernetesRelease) -> Result<Self, String> {
        let raw = version.enforced_schema(release)?;
        let schema = Schema::compile(&raw).map_err(|error| error.to_string())?;
        Ok(Self::new(version, raw, schema.with_scale(version.scale_paths()).with_release(release)))
    }

    /// The parts of this version that differ in `other`: see [`Schema::compile_beside`].
    ///
    /// # Errors
    /// As [`CompiledVersion::compile`].
    pub fn compile_difference(
        version: &CrdVersion,
        other: &CrdVersion,
        release: KubernetesRelease,
    ) -> Result<Self, String> {
        let raw = version.enforced_schema(release)?;
        let others = other.enforced_schema(release)?;
        let schema = Schema::compile_beside(&raw, &others).map_err(|error| error.to_string())?;
        let changes = |field: &str| raw["properties"].get(field) != others["properties"].get(field);
        let scale = version.scale_paths().to_check_beside(&other.scale_paths(), changes);
        Ok(Self::new(version, raw, schema.with_scale(scale).with_release(release)))
    }

    fn new(version: &CrdVersion, raw: Value, schema: Schema) -> Self {
        CompiledVersion {
            name: Arc::clone(&version.name),
            schema,
            has_set_of_structures: typed::has_set_of_structures(&raw),
            drops_needed_status: version.status_subresource && looks_at_status(&raw),
            compares_objects: compares_objects(&raw),
            raw: Arc::new(raw),
            status_subresource: version.status_subresource,
        }
    }

    /// Which updates the server refuses of an object that has these errors at this version, for each of them;
    /// `objects` are its new and old form. `unreadable` is what server-side apply cannot parse of it. `None` if the
    /// answer takes too much work.
    pub fn refused_updates(
        &self,
        errors: &[&FieldError],
        objects: (&Value, &Value),
        unreadable: &[TypedValueError],
    ) -> Vec<Option<RatchetingRefusals>> {
        let has_status = self.status_subresource;
        ratchet::refused_updates_of_each(&self.schema, &self.raw, has_status, errors, objects, unreadable)
    }
}

/// Whether the root of a schema can refuse an object because its status is missing.
pub fn looks_at_status(schema: &Value) -> bool {
    const OF_WHOLE: [&str; 6] = ["allOf", "anyOf", "minProperties", "not", "oneOf", "x-kubernetes-validations"];
    let names = schema["required"].as_array();
    names.into_iter().flatten().any(|name| name == "status")
        || OF_WHOLE.iter().any(|keyword| schema.get(keyword).is_some_and(|value| !value.is_null()))
}

fn compares_objects(schema: &Value) -> bool {
    let rules = schema["x-kubernetes-validations"].as_array();
    rules.into_iter().flatten().any(|rule| rule["rule"].as_str().is_some_and(|rule| rule.contains("oldSelf")))
}
