//! The effect of a new CRD on one existing object.
//!
//! ```text
//! storage ─► stored version: pruned, defaulted ─► version of the request: pruned
//!                ─► defaulted, validated ─► storage version: pruned
//! ```
//!
//! This is what the API server does with an object when a client reads it and writes it back. [`ObjectValidator`] repeats it
//! with the desired CRD, and, only if that affects the object, with the live one: an effect that already occurs today
//! is not caused by the upgrade.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::cause::{self, CausingKeyword};
use super::compiled::CompiledVersion;
use super::defaults::ChangedDefault;
use super::effect::{Fill, LossMoment, ObjectEffect, ObjectImpact};
use super::leaving::Leaving;
use super::object::{ManagedFieldsDetail, ObjectProjection, ProjectedObject};
use super::place::{self, ObjectPlace};
use super::today::{Today, refused_when_created, validate};
use gantry_core::resource::Step;
use gantry_core::text;
use gantry_schema::ratchet::RatchetingRefusals;
use gantry_schema::typed::{self, Duplicates};
use gantry_schema::{Defaulted, FieldError, PrunedField, RefusedBy, Undecided};

/// Validates the objects of one list.
#[derive(Debug, Default)]
pub struct ObjectValidator {
    /// `g.example.com`
    pub group: String,
    pub live: CompiledVersions,
    pub desired: CompiledVersions,
    /// The version at which objects are stored: the list was read at it, or the objects are relabelled to it.
    pub stored: Option<Arc<str>>,
    /// The versions to validate at; with a webhook only the listed one.
    pub fits: Vec<Arc<str>>,
    /// Those of `fits` that will not be served: objects can only be stored at them.
    pub only_stored: Vec<Arc<str>>,
    /// Those of `fits` that are not served today: every effect there is new.
    pub new: Vec<Arc<str>>,
    /// The new storage version, if it changes.
    pub stores: Option<Arc<str>>,
    pub leaving: Vec<Leaving>,
    pub changed_defaults: Vec<ChangedDefault>,
    /// Whether unknown fields are kept today, and no longer with the desired CRD.
    pub keeps_unknown_fields: bool,
    pub redact: bool,
}

/// The compiled versions of one definition.
#[derive(Debug, Default)]
pub struct CompiledVersions(pub Vec<CompiledVersion>);

impl CompiledVersions {
    pub fn at(&self, version: &str) -> Option<&CompiledVersion> {
        self.0.iter().find(|compiled| &*compiled.name == version)
    }
}

impl ObjectValidator {
    /// The parts of an object that are needed.
    pub fn parts(&self) -> ObjectProjection {
        let managed = match (self.changed_defaults.is_empty(), self.leaving.is_empty()) {
            (false, _) => ManagedFieldsDetail::Fields,
            (true, false) => ManagedFieldsDetail::Writers,
            (true, true) => ManagedFieldsDetail::Nothing,
        };
        let schemas = || self.live.0.iter().chain(&self.desired.0).map(|compiled| &compiled.schema);
        let fields = schemas().flat_map(|schema| schema.fields()).collect::<BTreeSet<&str>>().into_iter();
        ObjectProjection {
            managed,
            only_names: schemas().all(|schema| !schema.looks_at("metadata")),
            without: fields
                .filter(|name| *name != "metadata" && schemas().all(|schema| !schema.looks_at(name)))
                .map(str::to_owned)
                .collect(),
        }
    }

    /// A fast check whether the object is unaffected, which is true for most objects of most upgrades. If this returns
    /// `false`, [`ObjectValidator::effects`] decides.
    pub fn is_unaffected(&self, item: &ProjectedObject) -> bool {
        let [version] = self.fits.as_slice() else { return false };
        if self.only_stored.contains(version) {
            return false;
        }
        let is_plain = self.stored.as_ref() == Some(version)
            && self.stores.is_none()
            && self.leaving.is_empty()
            && self.changed_defaults.is_empty();
        let Some(desired) = self.desired.at(version).filter(|desired| is_plain && !desired.schema.looks_back()) else {
            return false;
        };
        !desired.has_set_of_structures
            && !desired.drops_needed_status
            && desired.schema.is_settled(&item.value)
            && desired.schema.validate(&item.value, None).is_accepted()
    }

    /// All effects on one object.
    pub fn effects(&self, item: &ProjectedObject) -> Vec<ObjectEffect> {
        let mut effects = Vec::new();
        self.leaves(item, &mut effects);
        // The object as it will be read at its stored version.
        let Some(read) = self.read(item, &mut effects) else { return effects };
        let mut lost_at_storage = None;
        if let Some(storage) = self.stores.as_ref().and_then(|version| self.desired.at(version)) {
            let mut object = self.relabelled(&read, &storage.name);
            match storage.schema.fit_with_nulls(&mut object) {
                Ok(pruned) => self.add_lost_fields(&pruned, storage, LossMoment::OnWrite, &mut effects),
                Err(error) => self.undecodable(&error, storage, &item.value, &mut effects),
            }
            lost_at_storage = Some(&storage.name);
        }
        for version in self.fits.iter().filter_map(|version| self.desired.at(version)) {
            self.request(item, &read, version, lost_at_storage == Some(&version.name), &mut effects);
        }
        effects
    }

    fn relabelled(&self, object: &Value, version: &str) -> Value {
        let mut object = object.clone();
        object["apiVersion"] = format!("{}/{version}", self.group).into();
        object
    }

    /// Reads the object from storage: prunes and defaults it at the stored version. `None` if it can no longer be read.
    fn read(&self, item: &ProjectedObject, effects: &mut Vec<ObjectEffect>) -> Option<Value> {
        let mut object = match &self.stored {
            Some(stored) => self.relabelled(&item.value, stored),
            None => return Some(item.value.clone()),
        };
        let Some(desired) = self.stored.as_ref().and_then(|stored| self.desired.at(stored)) else {
            return Some(object);
        };
        let before = &item.value;
        let (pruned, defaulted) = match desired.schema.prepare_stored_with_nulls(&mut object) {
            Ok(read) => read,
            Err(error) => {
                self.undecodable(&error, desired, before, effects);
                return None;
            }
        };
        if pruned.is_empty() && defaulted.is_empty() && self.changed_defaults.is_empty() {
            return Some(object);
        }
        // An object from the server is usually already pruned and defaulted by the live CRD.
        let live = self.live.at(&desired.name).filter(|live| !live.schema.is_settled(before));
        let mut today = live.map(|_| before.clone());
        let already_today =
            live.zip(today.as_mut()).and_then(|(live, today)| live.schema.prepare_stored_with_nulls(today).ok());
        let already_today = already_today.unwrap_or_default();
        let known: BTreeSet<&str> = already_today.0.iter().map(|known| known.path.as_str()).collect();
        let pruned: Vec<PrunedField> = pruned
            .into_iter()
            .filter(|lost| self.keeps_unknown_fields || !known.contains(lost.path.as_str()))
            .collect();
        self.add_lost_fields(&pruned, desired, LossMoment::OnRead, effects);
        self.add_defaulted_fields(
            &defaulted,
            desired,
            &object,
            today.as_ref().unwrap_or(before),
            Fill::OnRead,
            effects,
        );
        for changed in &self.changed_defaults {
            for place in changed.places_in(before) {
                let names: Option<Vec<&str>> = place
                    .iter()
                    .map(|step| match step {
                        Step::Key(key) => Some(key.as_str()),
                        Step::Index(_) => None,
                    })
                    .collect();
                if names.is_some_and(|names| item.is_owned(&names)) {
                    continue;
                }
                let words = match &changed.desired {
                    Some(value) => {
                        let value = cause::show_value(value, false);
                        format!(
                            "the default becomes {value}; the API does not show whether the value is stored with them"
                        )
                    }
                    None => {
                        "the default is removed; the API does not show whether the value is stored with them".to_owned()
                    }
                };
                effects.push(ObjectEffect {
                    impact: ObjectImpact::Defaulted(Fill::IfNotStored),
                    version: desired.name.clone(),
                    pattern: changed.pattern.clone(),
                    keyword: CausingKeyword { at: changed.at.clone(), words },
                    path: path_beside(&text::field(&place), &changed.pattern),
                    value: cause::show_value(&changed.live, self.redact),
                    steps: place,
                    lost: None,
                });
            }
        }
        Some(object)
    }

    /// Adds the effect that the server can neither read nor write the object at the version.
    fn undecodable(
        &self,
        error: &FieldError,
        version: &CompiledVersion,
        object: &Value,
        effects: &mut Vec<ObjectEffect>,
    ) {
        let place = place::find_place(&error.at, &version.raw);
        let keyword = cause::find_cause(error, &place, &version.raw);
        effects.push(self.effect(
            ObjectImpact::Refused(RatchetingRefusals::Every),
            version,
            &place,
            &error.path,
            keyword,
            object,
        ));
    }

    /// Adds the effects if a client reads the object at a version and writes it back.
    fn request(
        &self,
        item: &ProjectedObject,
        read: &Value,
        version: &CompiledVersion,
        prunes_known: bool,
        effects: &mut Vec<ObjectEffect>,
    ) {
        let only_stored = self.only_stored.contains(&version.name);
        let converted = self.stored.as_ref().is_none_or(|stored| *stored != version.name);
        let mut old = Cow::Borrowed(read);
        if converted {
            old = Cow::Owned(self.relabelled(read, &version.name));
            let pruned = match version.schema.fit_with_nulls(old.to_mut()) {
                Ok(pruned) => pruned,
                Err(error) => {
                    let mut today = self.relabelled(&item.value, &version.name);
                    let already_today =
                        self.live.at(&version.name).is_some_and(|live| live.schema.fit(&mut today).is_err());
                    if !already_today && !only_stored {
                        self.undecodable(&error, version, &item.value, effects);
                    }
                    return;
                }
            };
            if !pruned.is_empty() && !prunes_known {
                let already_today = self.live_today(version).map(|live| {
                    let mut today = self.relabelled(&item.value, &version.name);
                    live.schema.fit_with_nulls(&mut today).unwrap_or_default()
                });
                let known: BTreeSet<&str> =
                    already_today.iter().flatten().map(|known: &PrunedField| known.path.as_str()).collect();
                let pruned: Vec<PrunedField> = pruned
                    .into_iter()
                    .filter(|lost| self.keeps_unknown_fields || !known.contains(lost.path.as_str()))
                    .collect();
                let loss = if only_stored { LossMoment::IfStored } else { LossMoment::AtVersion };
                self.add_lost_fields(&pruned, version, loss, effects);
            }
        }
        if only_stored {
            return;
        }
        let mut new = Cow::Borrowed(&*old);
        let defaulted = if converted { version.schema.default(new.to_mut()) } else { Vec::new() };
        if !defaulted.is_empty() {
            let (_, today) = self.today(item, version, converted);
            self.add_defaulted_fields(&defaulted, version, &new, &today, Fill::OnWrite, effects);
        }
        let outcome = validate(version, &new, &old);
        if version.has_set_of_structures {
            self.unapplied(item, version, &new, converted, effects);
        }
        let created = refused_when_created(version, &new, &outcome);
        if outcome.is_accepted() && created.is_empty() {
            return;
        }
        let today = self.live_today(version).map(|live| {
            let (old, new) = self.today(item, version, converted);
            let outcome = validate(live, &new, &old);
            Today { live, old, new, outcome }
        });
        let unreadable_today = today.as_ref().map(Today::unreadable).unwrap_or_default();
        let known: BTreeSet<_> = unreadable_today.iter().map(|known| (&known.at, known.kind)).collect();
        let mut unreadable = typed::unreadable(&version.raw, &new, Duplicates::Allowed, version.schema.release());
        unreadable.retain(|found| !known.contains(&(&found.at, found.kind)));
        self.refused(&outcome.errors, version, (&new, &old), today.as_ref(), &unreadable, effects);
        let known = today.as_ref().filter(|_| !created.is_empty()).map(Today::refused_when_created).unwrap_or_default();
        let known: BTreeSet<_> = known.iter().map(|known| (&known.at, known.kind)).collect();
        for error in created.iter().filter(|error| !known.contains(&(&error.at, error.kind))) {
            let place = place::find_place(&error.at, &version.raw);
            let keyword = cause::find_cause(error, &place, &version.raw);
            effects.push(self.effect(
                ObjectImpact::Refused(RatchetingRefusals::None),
                version,
                &place,
                &error.path,
                keyword,
                &new,
            ));
        }
        let known = today.iter().flat_map(|today| &today.outcome.undecided);
        let known: BTreeSet<_> = known.map(|known| (&known.at, &known.rule)).collect();
        for Undecided { path, at, rule, reason } in &outcome.undecided {
            if known.contains(&(at, rule)) {
                continue;
            }
            let place = place::find_place(at, &version.raw);
            let keyword = CausingKeyword { at: place.schema.clone(), words: rule.clone() };
            effects.push(self.effect(ObjectImpact::Undecided(reason.clone()), version, &place, path, keyword, &new));
        }
    }

    /// The live schema of a version, if objects are read or written at it today.
    pub(super) fn live_today(&self, version: &CompiledVersion) -> Option<&CompiledVersion> {
        self.live.at(&version.name).filter(|live| !self.new.contains(&live.name))
    }

    /// The object as it is read today at this version, and as it is written back.
    pub(super) fn today(&self, item: &ProjectedObject, version: &CompiledVersion, converted: bool) -> (Value, Value) {
        let mut old = self.relabelled(&item.value, &version.name);
        let Some(live) = self.live_today(version).filter(|live| live.schema.fit(&mut old).is_ok()) else {
            return (old.clone(), old);
        };
        let mut new = old.clone();
        live.schema.default(&mut new);
        // At the stored version, defaults are filled in on read.
        if converted { (old, new) } else { (new.clone(), new) }
    }

    fn add_lost_fields(
        &self,
        pruned: &[PrunedField],
        version: &CompiledVersion,
        loss: LossMoment,
        effects: &mut Vec<ObjectEffect>,
    ) {
        for lost in pruned {
            let place = place::find_place(&lost.at, &version.raw);
            let mut at = place.schema.clone();
            let words = match lost.value {
                Value::Null if place.is_described => "it is null, which is not allowed".to_owned(),
                _ => {
                    at.push("properties".into());
                    String::new()
                }
            };
            let keyword = CausingKeyword { at, words };
            let value = cause::show_value(&lost.value, self.redact);
            let node = self.live.at(&version.name).and_then(|live| place::value_at(&live.raw, &place.schema));
            let was_described = |name: &&String| node.is_some_and(|node| node["properties"].get(*name).is_some());
            let name = place.steps.last().and_then(|step| match step {
                Step::Key(name) => Some(name),
                Step::Index(_) => None,
            });
            effects.push(ObjectEffect {
                value,
                lost: name.filter(was_described).cloned(),
                ..self.effect(ObjectImpact::Pruned(loss), version, &place, &lost.path, keyword, &Value::Null)
            });
        }
    }

    /// Adds the defaults that differ from the value that the live CRD gives the field.
    fn add_defaulted_fields(
        &self,
        defaulted: &[Defaulted],
        version: &CompiledVersion,
        object: &Value,
        today: &Value,
        fill: Fill,
        effects: &mut Vec<ObjectEffect>,
    ) {
        for filled in defaulted {
            let place = place::find_place(&filled.at, &version.raw);
            let value = place::value_at(object, &place.steps);
            if value == place::value_at(today, &place.steps) {
                continue;
            }
            let mut at = place.schema.clone();
            at.push("default".into());
            let keyword = CausingKeyword {
                at,
                words: format!("default {}", cause::show_value(value.unwrap_or(&Value::Null), false)),
            };
            effects.push(self.effect(ObjectImpact::Defaulted(fill), version, &place, &filled.path, keyword, object));
        }
    }

    pub(super) fn effect(
        &self,
        impact: ObjectImpact,
        version: &CompiledVersion,
        place: &ObjectPlace,
        path: &str,
        keyword: CausingKeyword,
        object: &Value,
    ) -> ObjectEffect {
        let value = match place::value_at(object, &place.steps) {
            // The value of the whole object would not show what is wrong in it.
            Some(value) if !place.steps.is_empty() => cause::show_value(value, self.redact),
            _ => String::new(),
        };
        ObjectEffect {
            impact,
            version: version.name.clone(),
            path: path_beside(path, &place.pattern),
            pattern: place.pattern.clone(),
            keyword,
            value,
            steps: place.steps.clone(),
            lost: None,
        }
    }
}

/// Whether the server adds this error only to report that it did not evaluate rules. On its own it refuses nothing.
pub fn is_notice(error: &FieldError) -> bool {
    error.by == RefusedBy::RulesNotEvaluated
}

fn path_beside(path: &str, pattern: &str) -> Option<String> {
    // Paths from the scale subresource begin with a dot.
    let path = path.strip_prefix('.').unwrap_or(path);
    (path != pattern && path != "<nil>").then(|| path.to_owned())
}
