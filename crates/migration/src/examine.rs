//! What becomes of one object: values that its migration loses, and whether the server may refuse the write.

use std::fmt;

use serde_json::Value;

use gantry_core::crd::{Crd, CrdVersion};
use gantry_core::problem::Problem;
use gantry_core::text;
use gantry_k8s_cel::KubernetesRelease;
use gantry_k8s_cel::re2::Patterns;
use gantry_schema::typed::{self, Duplicates};
use gantry_schema::{PrunedField, Schema};

/// The maximum number of characters of a value that is shown.
const VALUE_SHOWN: usize = 80;

/// A value of a stored object that is gone, or different, after the migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationLoss {
    /// `team-a/batch`, or `batch` for a cluster-scoped object.
    pub object: String,
    /// The version that has the value.
    pub version: String,
    /// The path in the object: `spec.pollInterval`.
    pub path: String,
    /// The value, shortened; not of a Secret, because no CRD defines Secrets.
    pub value: String,
    /// The value afterwards, if there is one: only a webhook changes values.
    pub becomes: Option<String>,
}

/// The text of a value.
pub(crate) fn show_value(value: &Value) -> String {
    text::sanitize(&text::cut(&value.to_string(), VALUE_SHOWN)).into_owned()
}

fn unreadable_schema(version: &CrdVersion, why: &dyn fmt::Display) -> Problem {
    Problem::new(format!("the schema of {} cannot be read: {why}", version.name))
}

/// Finds out whether the server may refuse to write an object as it is.
#[derive(Debug)]
pub struct WriteForecast {
    raw: Value,
    schema: Schema,
}

impl WriteForecast {
    /// For writes at this version.
    pub fn new(version: &CrdVersion, release: KubernetesRelease) -> Result<Self, Problem> {
        let raw = version.enforced_schema(release).map_err(|error| unreadable_schema(version, &error))?;
        let schema = Schema::compile(&raw).map_err(|error| unreadable_schema(version, &error))?;
        Ok(Self { raw, schema: schema.with_scale(version.scale_paths()).with_release(release) })
    }

    /// Whether the server may refuse it. Values that do not change are tolerated where the server tolerates them
    /// (ratcheting).
    pub fn may_be_refused(&self, object: &Value) -> bool {
        let outcome = self.schema.validate(object, Some(object));
        !outcome.is_accepted()
            || !typed::unreadable(&self.raw, object, Duplicates::Allowed, self.schema.release()).is_empty()
    }
}

/// The schemas that an object passes through on its way from an old version to the store, if no webhook converts.
#[derive(Debug)]
pub struct LossForecast {
    old: String,
    /// The version at which it is written, and the storage version.
    through: Vec<(String, Schema)>,
}

impl LossForecast {
    /// From `old` through these versions.
    pub fn new<'v>(
        crd: &Crd,
        old: &CrdVersion,
        through: impl IntoIterator<Item = &'v CrdVersion>,
    ) -> Result<Self, Problem> {
        let mut compiled = Vec::new();
        for version in through {
            let raw = version.schema_value().map_err(|error| unreadable_schema(version, &error))?;
            let schema = Schema::compile_structure(&raw, &Patterns::default())
                .map_err(|error| unreadable_schema(version, &error))?;
            compiled.push((crd.api_version(&version.name), schema));
        }
        Ok(Self { old: old.name.to_string(), through: compiled })
    }

    /// The values that the object, as read at the old version, loses.
    ///
    /// # Errors
    /// The server cannot convert the object.
    pub fn find_losses(&self, object: &mut Value, place: &str) -> Result<Vec<MigrationLoss>, String> {
        let mut lost = Vec::new();
        for (api_version, schema) in &self.through {
            object["apiVersion"] = api_version.as_str().into();
            let pruned = schema.fit_with_nulls(object).map_err(|error| error.to_string())?;
            lost.extend(pruned.iter().map(|PrunedField { path, value, .. }| MigrationLoss {
                object: place.to_owned(),
                version: self.old.clone(),
                path: text::sanitize(path).into_owned(),
                value: show_value(value),
                becomes: None,
            }));
        }
        Ok(lost)
    }
}
