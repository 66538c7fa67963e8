//! Validates CustomResourceDefinitions like the API server, without an API server: new ones, and updates of existing
//! ones.
//!
//! ```text
//! JSON ─► decode ─► model, props      the structures of the API, with defaults; common parts moved to the top
//! old ──► options                     the requirements: an update can keep most errors that the old CRD has
//! spec                                group, scope, names, versions, columns, subresources
//!  ├─► conversion, selectable         webhooks; paths into a schema
//!  └─► schema                         every keyword
//!       ├─► structural                fields are declared outside of value validations
//!       ├─► defaults                  valid and pruned
//!       └─► rules, cost               CEL compiles, within the cost limits
//! ```
//!
//! The messages are the server's, with these differences:
//!
//! - The order of errors is stable here and random in the server.
//! - The description of an error in a CEL expression, after "compilation failed: ", is worded differently.
//! - So is the reason why a certificate cannot be parsed.
//!
//! Whatever cannot be decided here is in [`CrdValidationResult::undecided`], never among the refusals.

mod api_value;
mod approval;
mod conversion;
mod cost;
mod decode;
mod defaults;
mod disabled;
mod found;
mod model;
mod options;
mod props;
mod rules;
mod schema;
mod selectable;
mod show;
mod spec;
mod structural;

use std::fmt;

use serde_json::Value;

use self::api_value::show_list;
use self::found::Errors;
use self::model::CrdModel;
use self::options::CrdRequirements;
use super::error::{FieldError, Undecided};
use super::objectmeta;
use super::path::LinkedPath;
use crate::Step;
use gantry_k8s_cel::KubernetesRelease;

/// A CRD that the server cannot decode.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndecodableCrd {
    /// The path of the faulty value, such as `spec.versions[0].schema.openAPIV3Schema.maximum`.
    pub path: String,
    /// The reason, with the server's text.
    pub reason: String,
}

impl fmt::Display for UndecodableCrd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.path.is_empty() { "the CRD" } else { &self.path }, self.reason)
    }
}

impl std::error::Error for UndecodableCrd {}

/// The result of validating a CRD.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CrdValidationResult {
    /// The errors in a stable order; the server's order varies between responses. Their steps begin at the root of the
    /// CRD and follow the server's model: parts common to all versions are at the top level.
    pub refusals: Vec<FieldError>,
    /// Questions that could not be decided. If there are any, an empty list of refusals does not mean that the server
    /// accepts the CRD.
    pub undecided: Vec<Undecided>,
    /// The fields that the server knows but removes before it validates and stores the CRD, because the feature is not
    /// enabled by default in its release. They have no effect, and a comparison with the live CRD always shows them.
    pub dropped: Vec<DroppedField>,
}

/// A field of a CRD that the server removes silently.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedField {
    /// The path in the CRD as written: `spec.versions[0].selectableFields`.
    pub path: String,
    /// The same path as steps.
    pub at: Vec<Step>,
}

impl DroppedField {
    fn new(at: Vec<Step>) -> Self {
        let mut path = String::new();
        for step in &at {
            match step {
                Step::Key(key) if path.is_empty() => path.push_str(key),
                Step::Key(key) => path.extend([".", key]),
                Step::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        Self { path, at }
    }
}

/// Validates a CRD (`apiextensions.k8s.io/v1`) like a server of this release: a create, or, with `old`, an update of
/// that live CRD.
///
/// # Errors
/// The server cannot decode the CRD.
pub fn validate(
    new: &Value,
    old: Option<&Value>,
    release: KubernetesRelease,
) -> Result<CrdValidationResult, UndecodableCrd> {
    // The server could decode the live CRD.
    check(new, old.map(CrdModel::decode).transpose()?, release)
}

/// Validates an update that does not change `spec.versions`, which is most of a CRD: `old` can omit that field.
///
/// # Errors
/// The server cannot decode the CRD.
pub fn validate_same_versions(
    new: &Value,
    old: &Value,
    release: KubernetesRelease,
) -> Result<CrdValidationResult, UndecodableCrd> {
    check(new, Some(CrdModel::decode_with(old, new["spec"].get("versions"))?), release)
}

/// Validates an update without the versions of the old CRD, which `old` can omit. Returns `None` if this decides
/// nothing: then only [`validate`] with the whole old CRD does.
///
/// An update is exempt from some requirements if the old CRD does not meet them. Here, no schema of the old CRD exempts
/// the new one, so if nothing is refused, [`validate`] refuses nothing either.
///
/// # Errors
/// The server cannot decode the CRD.
pub fn validate_without_old_versions(
    new: &Value,
    old: &Value,
    release: KubernetesRelease,
) -> Result<Option<CrdValidationResult>, UndecodableCrd> {
    let old = CrdModel::decode_with(old, None)?;
    // Without them, the stored versions would be derived from the missing versions.
    if old.status.stored_versions.is_empty() {
        return Ok(None);
    }
    let outcome = check(new, Some(old), release)?;
    let CrdValidationResult { refusals, undecided, dropped } = &outcome;
    Ok((refusals.is_empty() && undecided.is_empty() && dropped.is_empty()).then_some(outcome))
}

/// Validates an update that does not change `spec`, such as one of labels or annotations. Both sides can have an empty
/// list in place of `spec.versions`.
///
/// Only the metadata is validated, so `old` must be a CRD that a server accepted: then it accepts the same spec again,
/// because what `ValidateCustomResourceDefinitionUpdate` requires of a CRD depends on whether the old one already meets
/// it.
///
/// # Errors
/// The server cannot decode the CRD.
pub fn validate_same_spec(
    new: &Value,
    old: &Value,
    release: KubernetesRelease,
) -> Result<CrdValidationResult, UndecodableCrd> {
    let old = CrdModel::decode(old)?;
    let mut crd = CrdModel::decode(new)?;
    crd.take_status(Some(&old));
    let mut errors = Errors::default();
    check_metadata(new, &crd, true, release, &mut errors);
    approval::check(&crd, Some(&old), &mut errors);
    Ok(errors.into_result())
}

fn check(
    new: &Value,
    old_crd: Option<CrdModel<'_>>,
    release: KubernetesRelease,
) -> Result<CrdValidationResult, UndecodableCrd> {
    let (new, dropped) = disabled::without_disabled(new, old_crd.as_ref(), release);
    let new = &*new;
    let mut crd = CrdModel::decode(new)?;
    crd.take_status(old_crd.as_ref());
    let options = match &old_crd {
        None => CrdRequirements::of_create(release),
        Some(old) => CrdRequirements::of_update(&crd, old, release),
    };
    let mut errors = Errors { dropped, ..Errors::default() };
    if release.is_unknown() {
        errors.open_unknown_fields(new, release);
    }
    check_metadata(new, &crd, old_crd.is_some(), release, &mut errors);
    spec::check(&crd, &options, &mut errors);
    if let Some(old) = &old_crd {
        check_immutable_fields(&crd, old, &options, &mut errors);
    }
    let status = &LinkedPath::Name(&LinkedPath::Root, "status");
    spec::check_names(&crd.status.accepted, &LinkedPath::Name(status, "acceptedNames"), &mut errors);
    check_stored_versions(&crd, &LinkedPath::Name(status, "storedVersions"), &mut errors);
    approval::check(&crd, old_crd.as_ref(), &mut errors);
    if crd.preserve_unknown && !old_crd.as_ref().is_some_and(|old| old.preserve_unknown) {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        let spec = LinkedPath::Name(&LinkedPath::Root, "spec");
        errors.invalid(&LinkedPath::Name(&spec, "preserveUnknownFields"), true, detail);
    }
    Ok(errors.into_result())
}

fn check_metadata(new: &Value, crd: &CrdModel, is_update: bool, release: KubernetesRelease, errors: &mut Errors) {
    let path = LinkedPath::Name(&LinkedPath::Root, "metadata");
    for error in objectmeta::check_root(new, is_update, release) {
        errors.add(&path, error);
    }
    let wanted = format!("{}.{}", crd.names.plural, crd.group);
    if !is_update && !crd.name.is_empty() && crd.name != wanted {
        errors.invalid(&LinkedPath::Name(&path, "name"), crd.name, "must be spec.names.plural+\".\"+spec.group");
    }
}

/// Checks the fields that an update must not change.
fn check_immutable_fields(new: &CrdModel, old: &CrdModel, options: &CrdRequirements, errors: &mut Errors) {
    let spec = &LinkedPath::Name(&LinkedPath::Root, "spec");
    let names = &LinkedPath::Name(spec, "names");
    let mut same = |path: LinkedPath, new: &str, old: &str| {
        if new != old {
            errors.invalid(&path, new, "field is immutable");
        }
    };
    if options.require_immutable_names {
        same(LinkedPath::Name(spec, "scope"), new.scope, old.scope);
        same(LinkedPath::Name(names, "kind"), new.names.kind, old.names.kind);
    }
    same(LinkedPath::Name(spec, "group"), new.group, old.group);
    same(LinkedPath::Name(names, "plural"), new.names.plural, old.names.plural);
}

/// Checks that the versions in which objects might be stored are still declared.
fn check_stored_versions(crd: &CrdModel, path: &LinkedPath, errors: &mut Errors) {
    let stored = &crd.status.stored_versions;
    if stored.is_empty() {
        return errors.invalid_as(path, "null", "must have at least one stored version");
    }
    for (at, version) in crd.versions.iter().enumerate().filter(|(_, version)| version.storage) {
        // A name that two versions share counts once.
        let is_repeated = crd.versions[..at].iter().any(|before| before.name == version.name);
        if is_repeated || !stored.contains(&version.name) {
            let detail = format!("must have the storage version {}", version.name);
            errors.invalid_as(path, &show_list(stored), &detail);
        }
    }
    for (at, name) in stored.iter().enumerate() {
        let is_there = crd.versions.iter().any(|version| version.name == *name);
        if is_there || stored[at + 1..].contains(name) {
            continue;
        }
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
             until a storage migration ensures no data remains persisted in {name} and removes {name} from \
             status.storedVersions"
        );
        errors.invalid(&LinkedPath::Index(path, at), *name, detail);
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_releases;
