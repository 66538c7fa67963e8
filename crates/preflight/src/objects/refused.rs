//! The effects of what the desired CRD refuses in one object, without what is refused today as well.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cause::{self, CausingKeyword};
use super::compiled::CompiledVersion;
use super::effect::{ObjectEffect, ObjectImpact};
use super::object::ProjectedObject;
use super::place;
use super::today::{RefusedField, Today};
use super::validator::ObjectValidator;
use gantry_core::resource::Step;
use gantry_core::text;
use gantry_schema::FieldError;
use gantry_schema::ratchet::RatchetingRefusals;
use gantry_schema::typed::{self, Duplicates, TypedValueError, UnreadableKind};

/// The maximum number of characters shown of an evaluation error.
const LONGEST_ERROR: usize = 300;

impl ObjectValidator {
    /// Adds the effects of the errors that the object does not have today, or that refuse more updates than today.
    pub(super) fn refused(
        &self,
        errors: &[FieldError],
        version: &CompiledVersion,
        (new, old): (&Value, &Value),
        today: Option<&Today>,
        unreadable: &[TypedValueError],
        effects: &mut Vec<ObjectEffect>,
    ) {
        let asked: Vec<&FieldError> = errors.iter().collect();
        let refused = version.refused_updates(&asked, (new, old), unreadable);
        let refused = errors.iter().zip(refused).map(|(error, refused)| {
            let place = place::find_place(&error.at, &version.raw);
            let keyword = cause::find_cause(error, &place, &version.raw);
            let refused = refused.unwrap_or_else(|| RatchetingRefusals::most_of_changes(&version.raw, error, new));
            RefusedField { error, place, keyword, refused }
        });
        let refused: Vec<RefusedField> = refused.collect();
        let is_known = today.map(|today| today.refuses_as_much(&refused)).unwrap_or_default();
        for (index, RefusedField { error, place, keyword, refused }) in refused.into_iter().enumerate() {
            if is_known.get(index).copied().unwrap_or(false) {
                continue;
            }
            let mut effect = self.effect(ObjectImpact::Refused(refused), version, &place, &error.path, keyword, new);
            if let Some(text) = cause::evaluation_error(error).filter(|_| !self.redact) {
                effect.value = text::cut(text, LONGEST_ERROR).into_owned();
            }
            effects.push(effect);
        }
    }

    /// Adds the effects of lists that server-side apply can no longer parse.
    pub(super) fn unapplied(
        &self,
        item: &ProjectedObject,
        version: &CompiledVersion,
        new: &Value,
        converted: bool,
        effects: &mut Vec<ObjectEffect>,
    ) {
        let unreadable = |version: &CompiledVersion, object: &Value| {
            let found =
                typed::unreadable(&version.raw, object, Duplicates::Allowed, version.schema.release()).into_iter();
            found.filter(|found| found.kind == UnreadableKind::Element).collect::<Vec<_>>()
        };
        let today = self.live_today(version).map(|live| unreadable(live, &self.today(item, version, converted).1));
        let known: BTreeSet<&[Step]> = today.iter().flatten().map(|known| known.at.as_slice()).collect();
        for found in unreadable(version, new) {
            let is_known = known.contains(found.at.as_slice());
            let place = place::find_place(&found.at, &version.raw);
            let node = place::value_at(&version.raw, &place.schema).and_then(Value::as_object);
            if is_known || !node.is_some_and(typed::is_set_of_structures) {
                continue;
            }
            let mut at = place.schema.clone();
            at.push("x-kubernetes-list-type".into());
            let words = "server-side apply cannot parse a set of objects or lists".to_owned();
            let refused = ObjectImpact::Refused(RatchetingRefusals::Applies);
            effects.push(self.effect(refused, version, &place, &found.path, CausingKeyword { at, words }, new));
        }
    }
}
