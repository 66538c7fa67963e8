//! `metadata.managedFields`: the record of which field manager set which fields of an object. This is its only reader.
//!
//! ```text
//! entry      an entry: the manager, how it wrote, and its fields
//! field_set  a set of fields, in the format of `fieldsV1`
//! ```
//!
//! Source: <https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management>, and the format of
//! `sigs.k8s.io/structured-merge-diff`.

mod entry;
mod field_set;

pub use entry::{ManagerEntry, ManagerEntryHead, ManagerOperation};
pub use field_set::{FieldSet, ListItemKey, MergePathStep};
