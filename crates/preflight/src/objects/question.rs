//! Decides whether the change of a CRD can harm any object, and what must be validated.
//!
//! If it cannot, no objects are listed: either nothing changes that affects objects, or the change is proven to harm no
//! object.

use std::sync::Arc;

use serde_json::Value;

use super::compiled::looks_at_status;
use super::unproven;
use gantry_core::crd::lost_fields;
use gantry_core::crd::{ConversionStrategy, Crd, CrdVersion};

/// A property of a version against which objects must be validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionQuestion {
    pub version: Arc<str>,
    pub ask: Ask,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Are objects valid under its schema? It changes, or objects were not read or written at the version before.
    Fits,
    /// It becomes the storage version: does it have every field of the objects?
    Stores,
    /// It is no longer served but still exists: who writes at it?
    Unserved,
    /// It is removed: what is stored at it, and which objects name it in their managedFields?
    Removed,
}

/// The questions that the objects must answer.
#[derive(Debug, Default)]
pub struct Questions {
    /// Empty if the upgrade can harm no object that is not harmed today.
    pub questions: Vec<VersionQuestion>,
    /// Versions whose schema changes, but whose objects need not be read, because the change is proven harmless.
    pub proven: Vec<Arc<str>>,
}

/// Whether it is proven that the second version accepts everything that the first one accepts, keeps it and fills in
/// the same defaults. Both have the same name; the first is live.
pub type InclusionProver<'p> = &'p dyn Fn(&CrdVersion, &CrdVersion) -> bool;

/// Finds the questions that an upgrade raises. Calls `prove` only for versions for which a proof avoids a question.
pub fn can_break(live: &Crd, desired: &Crd, prove: InclusionProver<'_>) -> Questions {
    let mut found = Questions::default();
    let mut ask =
        |version: &CrdVersion, ask| found.questions.push(VersionQuestion { version: version.name.clone(), ask });
    let stored = |version: &CrdVersion| live.is_stored(&version.name);

    // A change in how an object is read from storage affects every version that it is then converted to.
    let prunes_anew = live.preserve_unknown_fields && !desired.preserve_unknown_fields;
    let converts_anew = conversion(desired, live) != conversion(live, live);
    let changes: Vec<SchemaEffect> = desired
        .versions
        .iter()
        .map(|version| match live.version(&version.name) {
            None => SchemaEffect::Open,
            Some(before) if reads_more(version, before) || drops_needed_status(version, before) => SchemaEffect::Open,
            Some(before) if !prunes_anew && before.same_schema(version) => SchemaEffect::None,
            // If unknown fields are kept, the content of objects is unknown. A list is needed anyway if the conversion
            // changes or the version is newly served.
            Some(_) if live.preserve_unknown_fields || converts_anew => SchemaEffect::Open,
            Some(before) if version.served && !before.served => SchemaEffect::Open,
            Some(before) => proven(live, before, version, prove),
        })
        .collect();
    let versions = || desired.versions.iter().zip(&changes);
    let read_changes = versions().any(|(version, change)| stored(version) && *change == SchemaEffect::Open);

    for (version, change) in versions() {
        let was_served = live.served(&version.name).is_some();
        let matters = version.served || stored(version);
        let is_open = match change {
            SchemaEffect::None | SchemaEffect::Proven => false,
            SchemaEffect::ProvenWhereStored | SchemaEffect::Open => true,
        };
        if matters && (is_open || read_changes || converts_anew || version.served && !was_served) {
            ask(version, Ask::Fits);
        }
        if version.storage && live.storage().is_some_and(|before| before.name != version.name) {
            ask(version, Ask::Stores);
        }
    }
    for version in &live.versions {
        match desired.version(&version.name) {
            None => ask(version, Ask::Removed),
            Some(after) if version.served && !after.served => ask(version, Ask::Unserved),
            _ => {}
        }
    }
    let is_asked = |version: &CrdVersion| {
        found.questions.iter().any(|question| question.ask == Ask::Fits && question.version == version.name)
    };
    found.proven = versions()
        .filter(|(version, change)| **change == SchemaEffect::Proven && !is_asked(version))
        // What is written at such a version is not safe, whatever is proven about the change.
        .filter(|(version, _)| {
            conversion(desired, live) == ConversionStrategy::Webhook || lost_fields::is_kept_by_all(desired, version)
        })
        .map(|(version, _)| version.name.clone())
        .collect();
    found
}

/// The effect of a version's schema change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaEffect {
    /// The meaning of the schema does not change.
    None,
    /// The change harms no object.
    Proven,
    /// The change harms no object that is stored at this version, but may harm objects that are converted to it.
    ProvenWhereStored,
    /// The effect is unknown.
    Open,
}

fn proven(live: &Crd, before: &CrdVersion, after: &CrdVersion, prove: InclusionProver<'_>) -> SchemaEffect {
    let schema = |version: &CrdVersion| version.schema().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let (Some(old), Some(new)) = (schema(before), schema(after)) else { return SchemaEffect::Open };
    let is_beyond_proof = [unproven::accepts_fewer_lists, unproven::pairs_less, unproven::constrains_wholes_anew];
    if is_beyond_proof.into_iter().any(|is_beyond| is_beyond(&old, &new)) || !prove(before, after) {
        return SchemaEffect::Open;
    }
    let mut others = live.stored_versions().into_iter().filter(|name| **name != *before.name);
    let revived = others.any(|name| match conversion(live, live) {
        ConversionStrategy::Webhook => unproven::may_revive(None, &old, &new),
        ConversionStrategy::None => unproven::may_revive(live.version(name).and_then(schema).as_ref(), &old, &new),
    });
    if revived { SchemaEffect::ProvenWhereStored } else { SchemaEffect::Proven }
}

/// The conversion strategy of a CRD. A manifest without one keeps the live strategy.
pub fn conversion(crd: &Crd, live: &Crd) -> ConversionStrategy {
    crd.strategy().or(live.strategy()).unwrap_or(ConversionStrategy::None)
}

/// Whether the scale subresource of a version reads fields that that of `before` does not read.
fn reads_more(version: &CrdVersion, before: &CrdVersion) -> bool {
    !version.scale_paths().without_paths_of(&before.scale_paths()).is_empty()
}

/// Whether a create newly drops the status and can be refused because of it.
fn drops_needed_status(version: &CrdVersion, before: &CrdVersion) -> bool {
    version.status_subresource
        && !before.status_subresource
        && version.schema_value().is_ok_and(|schema| looks_at_status(&schema))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use gantry_core::crd::builder::CrdBuilder;

    /// A CRD with these versions (name, whether it is the storage version, and schema) and further fields of its spec.
    fn crd(versions: &[(&str, bool, Value)], more: Value) -> Crd {
        let add = |crd: CrdBuilder, (name, storage, schema): &(&str, bool, Value)| {
            crd.version(name, schema.clone()).storage(*storage)
        };
        let crd = versions.iter().fold(CrdBuilder::new("g", "K").cluster_scoped(), add);
        let mut crd = crd.build();
        crd["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Crd::parse(&crd.to_string()).unwrap()
    }

    fn one(schema: Value) -> Crd {
        crd(&[("v1", true, schema)], json!({}))
    }

    fn fields(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    /// The questions, and the versions without one, if everything is proven.
    fn asked(live: &Crd, desired: &Crd) -> (Vec<String>, Vec<String>) {
        let Questions { questions, proven } = can_break(live, desired, &|_, _| true);
        let questions = questions.iter().map(|question| format!("{:?} {}", question.ask, question.version)).collect();
        (questions, proven.iter().map(ToString::to_string).collect())
    }

    fn ask<const Q: usize, const P: usize>(questions: [&str; Q], proven: [&str; P]) -> (Vec<String>, Vec<String>) {
        (questions.map(str::to_owned).to_vec(), proven.map(str::to_owned).to_vec())
    }

    #[test]
    fn only_changes_without_a_proof_are_asked_of_the_objects() {
        let (live, desired) = (one(fields(json!({}))), one(fields(json!({"a": {"type": "string"}}))));
        assert_eq!(asked(&live, &desired), ask([], ["v1"]));
        assert_eq!(asked(&live, &live), ask([], []), "nothing changes, nothing has to be proven");
        let open = can_break(&live, &desired, &|_, _| false);
        assert_eq!((open.questions.len(), open.proven.len()), (1, 0));
    }

    #[test]
    fn a_proof_about_schemas_answers_nothing_else() {
        let (small, large) = (|| fields(json!({})), || fields(json!({"a": {"type": "string"}})));
        let two = |first: Value| crd(&[("v1", true, first), ("v2", false, small())], json!({}));
        // Only the objects show who wrote at a removed version, and what a new storage version loses.
        assert_eq!(asked(&two(small()), &one(large())), ask(["Removed v2"], ["v1"]));
        let moved = crd(&[("v1", false, large()), ("v2", true, small())], json!({}));
        // What is written at v1 loses the field that the storage version lacks, so v1 is not called safe.
        assert_eq!(asked(&two(small()), &moved), ask(["Stores v2"], []));
        // No object has been read at a new version.
        let alike = crd(&[("v1", true, large()), ("v2", false, large())], json!({}));
        assert_eq!(asked(&one(small()), &alike), ask(["Fits v2"], ["v1"]));
        // A write at v2 drops the new field, so v1 is not called safe.
        assert_eq!(asked(&one(small()), &two(large())), ask(["Fits v2"], []));
        let webhook = json!({"conversion": {"strategy": "Webhook"}});
        assert_eq!(asked(&one(small()), &crd(&[("v1", true, large())], webhook)), ask(["Fits v1"], []));
        // Objects that were never pruned can contain anything.
        let keeps = || json!({"preserveUnknownFields": true});
        for after in [keeps(), json!({})] {
            let (live, desired) = (crd(&[("v1", true, small())], keeps()), crd(&[("v1", true, large())], after));
            assert_eq!(asked(&live, &desired), ask(["Fits v1"], []));
        }
        let date = one(fields(json!({"a": {"type": "string", "format": "date"}})));
        assert_eq!(asked(&date, &one(large())), ask(["Fits v1"], []), "lists passed");
        // Updates pair the items of a list by its keys, and tolerate what was invalid.
        let list = |keys: Value| {
            let mut list = json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-map-keys": keys});
            if !keys.is_null() {
                list["x-kubernetes-list-type"] = "map".into();
            }
            one(fields(json!({"l": list})))
        };
        assert_eq!(asked(&list(json!(["a"])), &list(Value::Null)), ask(["Fits v1"], []));
        assert_eq!(asked(&list(json!(["a", "b"])), &list(json!(["a"]))), ask(["Fits v1"], []));
        assert_eq!(asked(&list(Value::Null), &list(json!(["a"]))), ask([], ["v1"]));
        // A create drops the status, so a schema that requires it refuses every create.
        let needs = |status: bool| {
            let schema =
                json!({"type": "object", "required": ["status"], "properties": {"status": {"type": "object"}}});
            let mut version =
                json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
            if status {
                version["subresources"] = json!({"status": {}});
            }
            crd(&[], json!({"versions": [version]}))
        };
        assert_eq!(asked(&needs(false), &needs(true)), ask(["Fits v1"], []));
        assert_eq!(asked(&needs(true), &needs(true)), ask([], []));
    }

    #[test]
    fn objects_are_read_for_fields_that_another_version_adds_to_them() {
        let (a, ab) =
            (|| json!({"a": {"type": "string"}}), || json!({"a": {"type": "string"}, "b": {"type": "string"}}));
        let two = |first: Value, second: Value, more: Value| {
            crd(&[("v1", true, fields(first)), ("v2", false, fields(second))], more)
        };
        let none = || json!({});
        // Until now v2 dropped the b of v1.
        assert_eq!(asked(&two(ab(), a(), none()), &two(ab(), ab(), none())), ask(["Fits v2"], []));
        assert_eq!(asked(&two(a(), a(), none()), &two(ab(), ab(), none())), ask([], ["v1", "v2"]));
        let webhook = || json!({"conversion": {"strategy": "Webhook"}});
        assert_eq!(asked(&two(a(), a(), webhook()), &two(ab(), ab(), webhook())), ask(["Fits v2"], ["v1"]));
    }
}
