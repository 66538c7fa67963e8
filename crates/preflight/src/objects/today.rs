//! The errors that the server reports for an object, and which of them it reports today as well: only the rest is
//! caused by the upgrade.

use serde_json::Value;

use super::cause::{self, CausingKeyword};
use super::compiled::CompiledVersion;
use super::place;
use gantry_schema::ratchet::{self, RatchetingRefusals};
use gantry_schema::typed::{self, Duplicates, TypedValueError};
use gantry_schema::{FieldError, ObjectValidationResult, Undecided, is_path_of_rule};

/// The object at one version of the live CRD, and its validation.
pub struct Today<'v> {
    pub live: &'v CompiledVersion,
    pub old: Value,
    pub new: Value,
    pub outcome: ObjectValidationResult,
}

impl Today<'_> {
    /// What server-side apply cannot parse.
    pub fn unreadable(&self) -> Vec<TypedValueError> {
        typed::unreadable(&self.live.raw, &self.new, Duplicates::Allowed, self.live.schema.release())
    }

    /// Why the object cannot be created again today: see [`refused_when_created`].
    pub fn refused_when_created(&self) -> Vec<FieldError> {
        refused_when_created(self.live, &self.new, &self.outcome)
    }

    /// Whether the object has the same error today, which refuses at least the same writes.
    pub fn refuses_as_much(&self, error: &FieldError, keyword: &CausingKeyword, refused: &RatchetingRefusals) -> bool {
        let unreadable = self.unreadable();
        self.outcome
            .errors
            .iter()
            .filter(|known| known.at == error.at && known.path == error.path && known.kind == error.kind)
            .any(|known| {
                let place = place::find_place(&known.at, &self.live.raw);
                let cause = cause::find_cause(known, &place, &self.live.raw);
                let same_words = is_path_of_rule(&keyword.at) && cause.words == keyword.words;
                let is_same = same_words || !is_path_of_rule(&keyword.at) && cause.at.last() == keyword.at.last();
                is_same && self.live.refused_updates(known, (&self.new, &self.old), &unreadable) <= *refused
            })
    }
}

/// The errors of the object when it is created again without its status, beside those that it has with it.
pub fn refused_when_created(
    version: &CompiledVersion,
    new: &Value,
    outcome: &ObjectValidationResult,
) -> Vec<FieldError> {
    if !version.drops_needed_status {
        return Vec::new();
    }
    let mut created = new.clone();
    if let Some(object) = created.as_object_mut() {
        object.shift_remove("status");
    }
    let errors = version.schema.validate_all(&created, None).errors;
    errors.into_iter().filter(|error| !outcome.errors.contains(error)).collect()
}

/// The errors of the object when it is created, and, if transition rules exist, those that only an update has: of
/// nothing, or, if rules compare whole objects, of a label.
pub fn validate(version: &CompiledVersion, new: &Value, old: &Value) -> ObjectValidationResult {
    let mut outcome = version.schema.validate_all(new, None);
    let labelled = version.compares_objects.then(|| ratchet::labelled(old));
    for old in version.schema.looks_back().then_some(old).into_iter().chain(&labelled) {
        let update = version.schema.validate_all(new, Some(old));
        let more: Vec<FieldError> = update.errors.into_iter().filter(|error| !outcome.errors.contains(error)).collect();
        outcome.errors.extend(more);
        let more: Vec<Undecided> =
            update.undecided.into_iter().filter(|undecided| !outcome.undecided.contains(undecided)).collect();
        outcome.undecided.extend(more);
    }
    outcome
}
