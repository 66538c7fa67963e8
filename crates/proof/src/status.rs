//! A status that is a subresource: a write of the object itself drops it.

use serde_json::Value;

use crate::VersionSchema;
use crate::product::{self, Walked};
use crate::solve::Solver;

/// The schemas without the default of the status, if it is the same in both and the status is a subresource: a create
/// drops the default with the status, and validates the object without it.
pub fn without_default(live: &VersionSchema, desired: &VersionSchema) -> Option<[Value; 2]> {
    const DEFAULT: &str = "/properties/status/default";
    let [before, after] = [live, desired].map(|version| version.schema.pointer(DEFAULT));
    if !(live.status_subresource && desired.status_subresource && before.is_some() && before == after) {
        return None;
    }
    let without = |version: &VersionSchema| {
        let mut schema = version.schema.clone();
        if let Some(status) = schema.pointer_mut("/properties/status").and_then(Value::as_object_mut) {
            status.shift_remove("default");
        }
        schema
    };
    Some([live, desired].map(without))
}

/// Adds the obligation for a status that any write could set and that only its subresource can set now.
pub fn add_obligation<'s>(
    solver: &Solver<'s>,
    source: &VersionSchema<'s>,
    target: &VersionSchema<'s>,
    walked: &mut Walked<'s>,
) {
    if !source.status_subresource && target.status_subresource {
        walked.obligations.extend(product::status_obligation(solver, source.schema, target.schema));
    }
}
