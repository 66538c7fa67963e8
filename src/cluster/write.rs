//! What is written to a target, and why it was not.

use super::managers::FieldConflict;
use crate::problem::Problem;
use crate::resource::{Live, ObjectRef, RawObject, Resource};

/// What the caller knows of the live object. Apply refuses when it no longer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// There was no such object.
    Absent,
    /// The object with this uid at this resourceVersion.
    At { uid: String, resource_version: String },
}

/// One server-side apply.
#[derive(Debug)]
pub struct Apply<'a> {
    pub resource: &'a Resource,
    pub object: &'a ObjectRef,
    pub raw: &'a RawObject,
    /// The object as it was read.
    pub live: Option<&'a RawObject>,
    pub pin: &'a Pin,
    pub field_manager: &'a str,
    pub force_conflicts: bool,
}

/// Labels and annotations to remove from an object.
#[derive(Debug)]
pub struct Unmark<'a> {
    pub resource: &'a Resource,
    pub object: &'a ObjectRef,
    /// The object as it was seen: it is left alone where it is another by now.
    pub live: &'a Live,
    pub labels: &'a [&'a str],
    pub annotations: &'a [&'a str],
    pub field_manager: &'a str,
}

/// A label of ours that gets another value.
#[derive(Debug)]
pub struct Relabel<'a> {
    pub resource: &'a Resource,
    pub object: &'a ObjectRef,
    /// The object as it was seen: it is left alone where it is another by now.
    pub live: &'a Live,
    pub label: &'a str,
    pub value: &'a str,
    pub field_manager: &'a str,
}

/// One object to delete.
#[derive(Debug, Clone, Copy)]
pub struct Delete<'a> {
    pub resource: &'a Resource,
    pub object: &'a ObjectRef,
    /// It is left alone where it is another by now.
    pub uid: &'a str,
    pub resource_version: &'a str,
    /// What it owns goes first (a Deployment's pods), so that its end is the end of all; else it is collected afterwards.
    pub foreground: bool,
}

/// Why the deletion of one object was not begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeleteError {
    /// The live object is no longer the one that was seen.
    Changed,
    Refused(Problem),
}

/// Why one object was not applied. Nothing of that object was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyError {
    /// The live object is no longer the one that was checked.
    Changed,
    /// Other managers own fields that the manifest sets.
    Conflict(Vec<FieldConflict>),
    /// A webhook of admission or conversion does not answer the server. Its Pods may be starting.
    NoWebhook(Problem),
    /// Anything else: refused by the server, forbidden, unreachable.
    Refused(Problem),
}
