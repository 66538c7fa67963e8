//! Validates custom resources like the API server, without an API server.
//!
//! A structural schema is compiled once. Each object is then processed in the server's order: unknown fields are
//! pruned, disallowed nulls are dropped, metadata is normalized, defaults are applied, and the result is validated:
//! metadata, the schema's keywords, the fields read by the scale subresource, embedded resources, uniqueness in lists,
//! and finally CEL rules. On an update, values that were invalid before and are unchanged are tolerated (ratcheting).
//!
//! ```text
//! compile ─► node                  the schema tree
//! prune, objectmeta                how the server changes an object
//! check, listtype, scale, rules    validation; correlate finds the values that an update left unchanged
//! delta                            the parts of all this that differ from another schema
//! typed                            what server-side apply cannot parse, before any of the above
//! formats, number                  single keywords
//! ```
//!
//! Known differences from the server, of which only the last can affect whether an object is accepted:
//!
//! - The order of errors is stable here and random in the server.
//! - The text differs for metadata that cannot be decoded, for data that a rule reads although it does not match its
//!   format, for a quantity or version that the server cannot read from an optional, and for an invalid generated
//!   name, which contains random characters.
//! - Errors in labels, annotations or owners of an updated object are reported once here and three times by the
//!   server. For two single-valued enums with the same message, both errors are reported here.
//! - If a rule compares two objects that differ in one field and are unreadable in another, the server's result
//!   depends on the field that it visits first, which is random: it can even reject in one request what it accepts in
//!   the next. Here the first field in the order of the object decides.
//!
//! Bounds on integers beyond int64 are truncated as on amd64 servers. A CEL rule is undecided if the server rejects it
//! at compile time or stops it because of its cost; hexadecimal doubles, map keys that are not scalars, quantities
//! beyond 10^29 and time zones by name are undecided as well. The approximate value of a sum of quantities can be off
//! by the last bit beyond 2^53 billionths.
//!
//! This crate does no I/O. Whatever cannot be decided (a pattern or rule beyond this implementation) is listed in
//! [`ObjectValidationResult::undecided`] and never passes silently.

mod by_name;
mod check;
mod compile;
mod correlate;
pub mod crd;
mod delta;
mod engine;
mod enumeration;
mod error;
mod formats;
mod found;
mod ignored_keywords;
pub mod json;
pub mod keywords;
mod listtype;
pub mod names;
mod node;
mod number;
mod objectmeta;
mod older_releases;
mod path;
mod prune;
pub mod ratchet;
mod rules;
mod same;
mod scale;
pub mod scan;
mod schema;
mod step;
#[cfg(test)]
mod tests;
mod tree;
pub mod typed;

pub use compile::CompileError;
pub use error::{FieldError, FieldErrorKind, RefusedBy, Undecided, is_path_of_rule};
pub use ignored_keywords::{drop_ignored_formats, truncate_bounds_of_integers};
pub use number::{as_stored, can_be_bound, is_maximum_beyond_integers};
pub use objectmeta::fields as object_meta;
pub use prune::{Defaulted, PrunedField};
pub use rules::{CompileRules, EvaluateRules, NoEngine, RuleVerdict};
pub use same::{Sense, is_left_out, is_same_keyword, meaning_of_rule, same_schema, without_spaces};
pub use scale::ScalePaths;
pub use schema::{ObjectValidationResult, Processed, Schema};
pub use step::Step;
pub use tree::{Tree, ValueView, get as get_member, same_value};

/// Whether `format`, on a schema of type string, accepts `text`. `None` if the server does not enforce the format
/// there.
pub fn enforced_format_accepts(format: &str, text: &str) -> Option<bool> {
    formats::EnforcedFormat::find(format, node::Types::One(node::JsonType::String)).map(|format| format.accepts(text))
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct SchemaReadme;
