//! The maximum size of the values of a schema: from its keywords, or otherwise from the size limit of a request.

use serde_json::Value as Json;

use crate::release::KubernetesRelease;
use crate::types::CelTypeKind;

/// The maximum size of a request, in bytes.
const MAX_REQUEST_BYTES: i64 = 3 * 1024 * 1024;
/// The maximum lengths of durations and times in JSON.
const MAX_TIME_BYTES: i64 = 32;
const DATE_BYTES: i64 = 12;

/// The first releases in which `enum` limits the length of a string, and `maxLength` that of an int-or-string.
const LENGTH_OF_ENUM: KubernetesRelease = KubernetesRelease::minor(29);
const LENGTH_OF_INT_OR_STRING: KubernetesRelease = KubernetesRelease::minor(34);

/// The size limits of the values of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The maximum number of elements, entries, characters or bytes; 0 for values without a size.
    pub(super) max_elements: u64,
    /// The size of the smallest value in JSON, in bytes.
    min_bytes: i64,
}

impl Extent {
    /// `implied` are the properties that exist regardless of the schema.
    pub(crate) fn from_schema(kind: &CelTypeKind, schema: &Json, implied: &[&str], release: KubernetesRelease) -> Self {
        let limit = |keyword: &str| schema.get(keyword).and_then(Json::as_i64).map(|limit| limit.max(0));
        let text = MAX_REQUEST_BYTES - 2;
        // A character can take four bytes.
        let length = || limit("maxLength").map(|limit| limit.wrapping_mul(4));
        let (max_elements, min_bytes) = match kind {
            CelTypeKind::IntOrString if release < LENGTH_OF_INT_OR_STRING => (text, 1),
            CelTypeKind::IntOrString => (length().unwrap_or(text), 1),
            CelTypeKind::String if release < LENGTH_OF_ENUM => (length().unwrap_or(text), 2),
            CelTypeKind::String => (length().or_else(|| longest_enum(schema)).unwrap_or(text), 2),
            CelTypeKind::Bytes => (limit("maxLength").unwrap_or(text), 2),
            CelTypeKind::Duration => (MAX_TIME_BYTES, 3),
            CelTypeKind::Date => (DATE_BYTES, DATE_BYTES),
            CelTypeKind::DateTime => (MAX_TIME_BYTES, 21),
            CelTypeKind::Bool => (0, 4),
            CelTypeKind::Int | CelTypeKind::Double => (0, 1),
            CelTypeKind::List { items, .. } => {
                (limit("maxItems").unwrap_or_else(|| values_per_request(items.extent.min_bytes + 1)), 2)
            }
            // A key, quotes, a colon and a comma.
            CelTypeKind::Map(values) => {
                (limit("maxProperties").unwrap_or_else(|| values_per_request(values.extent.min_bytes + 6)), 2)
            }
            CelTypeKind::Object(properties) => {
                let bytes_of = |name: &str| {
                    let property = properties.get(name).filter(|property| property.is_declared())?;
                    let declared = schema.get("properties").and_then(|properties| properties.get(name));
                    let default = declared.and_then(|declared| declared.get("default"));
                    let has_default = default.is_some_and(|default| !default.is_null()) && !implied.contains(&name);
                    // Quotes, a colon and a comma. A field with a default can be missing from a request.
                    (!has_default).then_some(name.len() as i64 + property.extent.min_bytes + 4)
                };
                let mut required: Vec<&str> = schema
                    .get("required")
                    .and_then(Json::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(Json::as_str)
                    .collect();
                required.sort_unstable();
                required.dedup();
                (0, required.into_iter().filter_map(bytes_of).fold(2, i64::saturating_add))
            }
            CelTypeKind::Unknown | CelTypeKind::Untyped => (0, 0),
        };
        Extent { max_elements: max_elements as u64, min_bytes }
    }

    /// The maximum number of such values in an object, unless a parent limits it.
    pub(crate) fn max_cardinality(self) -> u64 {
        MAX_REQUEST_BYTES.checked_div(self.min_bytes.saturating_add(1)).unwrap_or_default() as u64
    }
}

/// The number of values of this size that fit into a request.
fn values_per_request(bytes: i64) -> i64 {
    (MAX_REQUEST_BYTES - 2).checked_div(bytes).unwrap_or_default()
}

fn longest_enum(schema: &Json) -> Option<i64> {
    let values = schema.get("enum")?.as_array().filter(|values| !values.is_empty())?;
    Some(values.iter().filter_map(Json::as_str).map(str::len).max().unwrap_or_default() as i64)
}
