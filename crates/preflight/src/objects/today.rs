//! The errors that the server reports for an object, and which of them it reports today as well: only the rest is
//! caused by the upgrade.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;

use serde_json::Value;

use super::cause::{self, CausingKeyword};
use super::compiled::CompiledVersion;
use super::place::{self, ObjectPlace};
use gantry_core::resource::Step;
use gantry_schema::ratchet::{self, RatchetingRefusals};
use gantry_schema::typed::{self, Duplicates, TypedValueError};
use gantry_schema::{FieldError, FieldErrorKind, ObjectValidationResult, is_path_of_rule};

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

    /// Whether the object has the same error today, which refuses at least the same writes; for each of these errors.
    pub fn refuses_as_much(&self, errors: &[RefusedField<'_>]) -> Vec<bool> {
        let places: HashSet<ErrorPlace> = errors.iter().map(|refused| error_place(refused.error)).collect();
        let mut known: HashMap<(ErrorPlace, ErrorLikeness), Vec<usize>> = HashMap::new();
        for (number, error) in self.outcome.errors.iter().enumerate() {
            let here = error_place(error);
            if places.contains(&here) {
                let cause = cause::find_cause(error, &place::find_place(&error.at, &self.live.raw), &self.live.raw);
                let keyword = ErrorLikeness::Keyword(cause.at.last().cloned());
                for likeness in [keyword, ErrorLikeness::Words(cause.words)] {
                    known.entry((here, likeness)).or_default().push(number);
                }
            }
        }
        let same = errors.iter().map(|refused| {
            let likeness = match is_path_of_rule(&refused.keyword.at) {
                true => ErrorLikeness::Words(refused.keyword.words.clone()),
                false => ErrorLikeness::Keyword(refused.keyword.at.last().cloned()),
            };
            known.get(&(error_place(refused.error), likeness)).map(Vec::as_slice).unwrap_or_default()
        });
        let same: Vec<&[usize]> = same.collect();
        let asked: BTreeSet<usize> = same.iter().copied().flatten().copied().collect();
        let asked_errors: Vec<&FieldError> = asked.iter().map(|number| &self.outcome.errors[*number]).collect();
        let refused = self.live.refused_updates(&asked_errors, (&self.new, &self.old), &self.unreadable());
        // What takes too much work counts as the least, so that nothing new is taken for known.
        let refused = refused.into_iter().map(|refused| refused.unwrap_or(RatchetingRefusals::None));
        let refused: HashMap<usize, RatchetingRefusals> = asked.into_iter().zip(refused).collect();
        let is_known = |(error, same): (&RefusedField, &[usize])| {
            same.iter().filter_map(|number| refused.get(number)).any(|refused| *refused <= error.refused)
        };
        errors.iter().zip(same).map(is_known).collect()
    }
}

/// An error of the desired CRD, its cause, and the updates that it refuses.
pub struct RefusedField<'e> {
    pub error: &'e FieldError,
    pub place: ObjectPlace,
    pub keyword: CausingKeyword,
    pub refused: RatchetingRefusals,
}

/// Where an error is, and its kind.
type ErrorPlace<'e> = (&'e [Step], &'e str, FieldErrorKind);

fn error_place(error: &FieldError) -> ErrorPlace<'_> {
    (&error.at, &error.path, error.kind)
}

/// What makes two errors at one place the same one: the words of a rule, or the name of another keyword.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ErrorLikeness {
    Words(String),
    Keyword(Option<Step>),
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
    without_known(version.schema.validate_all(&created, None).errors, &outcome.errors)
}

/// The errors of the object when it is created, and, if transition rules exist, those that only an update has: of
/// nothing, or, if rules compare whole objects, of a label.
pub fn validate(version: &CompiledVersion, new: &Value, old: &Value) -> ObjectValidationResult {
    let mut outcome = version.schema.validate_all(new, None);
    let labelled = version.compares_objects.then(|| ratchet::labelled(old));
    for old in version.schema.looks_back().then_some(old).into_iter().chain(&labelled) {
        let update = version.schema.validate_all(new, Some(old));
        outcome.errors.extend(without_known(update.errors, &outcome.errors));
        outcome.undecided.extend(without_known(update.undecided, &outcome.undecided));
    }
    outcome
}

fn without_known<T: Eq + Hash>(mut found: Vec<T>, known: &[T]) -> Vec<T> {
    let known: HashSet<&T> = known.iter().collect();
    found.retain(|one| !known.contains(one));
    found
}
