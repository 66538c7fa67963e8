//! Writes that leave an object as it is, so that the server stores it at the storage version of its kind.

use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, Resource};
use serde_json::Value;

/// One such write.
#[derive(Debug, Clone, Copy)]
pub struct StorageRewrite<'a> {
    /// Where the object is served. The server reads the object at this version, and stores what it has read.
    pub resource: &'a Resource,
    /// Its kind, namespace and name.
    pub object: &'a ObjectRef,
    /// Nothing is written if the object of this name has another uid.
    pub uid: &'a str,
    /// Nothing is written if the object is at another resourceVersion.
    pub resource_version: &'a str,
    /// How it is written.
    pub method: RewriteMethod<'a>,
    /// The name of the writer. An empty apply does not make it an owner of fields.
    pub field_manager: &'a str,
}

/// The request that writes an object without a change.
///
/// Tried on the server with an object whose storage version has a new field with a default: an update stores the
/// default, increases `metadata.generation`, and loses all of `metadata.managedFields` if an entry of it is at a
/// version without that field. An apply does none of this. But it gives an object without `managedFields` an entry
/// `before-first-apply`, and it fails if an entry names a version that the CRD does not have.
#[derive(Debug, Clone, Copy)]
pub enum RewriteMethod<'a> {
    /// A server-side apply that sets nothing, as in KEP-4192.
    EmptyApply,
    /// A JSON patch without operations.
    EmptyPatch,
    /// A JSON patch that gives the object these `managedFields`.
    PatchManagedFields(&'a Value),
}

/// The object after the write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrittenObject {
    /// The same as before if the server found that nothing changes, not even the version at which it is stored.
    pub resource_version: String,
    /// The whole object of a dry run; otherwise its metadata.
    pub json: String,
}

/// Why an object was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageRewriteError {
    /// It is at another resourceVersion, or it no longer exists.
    #[error("it has changed")]
    Changed,
    /// The server refuses the write.
    #[error("{0}")]
    Refused(Problem),
    /// There was no response. The object may have been written, which does no harm.
    #[error("{0}")]
    Unanswered(Problem),
}
