//! The one place that says whether a CRD that changes can harm any object.
//!
//! Where it cannot, nothing is listed: where nothing changes that an object could meet, and where it is proven that what
//! changes harms no object at all. The rest of the check takes the questions as they come.

use std::sync::Arc;

use serde_json::Value;

use super::unproven;
use crate::crd::{Crd, Strategy, Version};

/// Something about a version that no object has been validated against yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionQuestion {
    pub version: Arc<str>,
    pub ask: Ask,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Do objects fit its schema? It is not what it was, or objects were not read or written at it before.
    Fits,
    /// It becomes the storage version: does everything find a place in it?
    Stores,
    /// It is not served any more, but still there: who writes at it?
    Unserved,
    /// It goes altogether: who writes at it, and what is stored at it?
    Removed,
}

/// What has to be asked of the objects.
#[derive(Debug, Default)]
pub struct Questions {
    /// Empty if no object can meet anything that harms it and does not today.
    pub questions: Vec<VersionQuestion>,
    /// Versions whose schema changes and whose objects need not be asked: it is proven that the change harms none.
    pub proven: Vec<Arc<str>>,
}

/// Whether it is proven that all that the first version takes is taken by the second, kept as it is and filled in
/// alike. Both are of one name; the first is live.
pub type Prove<'p> = &'p dyn Fn(&Version, &Version) -> bool;

/// Asks `prove` only about versions of which the answer spares something.
pub fn can_break(live: &Crd, desired: &Crd, prove: Prove<'_>) -> Questions {
    let mut found = Questions::default();
    let mut ask = |version: &Version, ask| found.questions.push(VersionQuestion { version: version.name.clone(), ask });
    let stored = |version: &Version| live.is_stored(&version.name);

    // What an object becomes when it is read from storage reaches every version that it is then converted to.
    let prunes_anew = live.preserve_unknown_fields && !desired.preserve_unknown_fields;
    let converts_anew = conversion(desired, live) != conversion(live, live);
    let changes: Vec<Change> = desired
        .versions
        .iter()
        .map(|version| match live.version(&version.name) {
            None => Change::Open,
            Some(before) if reads_more(version, before) => Change::Open,
            Some(before) if !prunes_anew && before.same_schema(version) => Change::None,
            // Nobody knows what objects hold whose unknown fields are kept, and a list is needed anyway where objects
            // come another way or for the first time.
            Some(_) if live.preserve_unknown_fields || converts_anew => Change::Open,
            Some(before) if version.served && !before.served => Change::Open,
            Some(before) => proven(live, before, version, prove),
        })
        .collect();
    let versions = || desired.versions.iter().zip(&changes);
    let read_changes = versions().any(|(version, change)| stored(version) && *change == Change::Open);

    for (version, change) in versions() {
        let was_served = live.served(&version.name).is_some();
        let matters = version.served || stored(version);
        let is_open = match change {
            Change::None | Change::Proven => false,
            Change::ProvenWhereStored | Change::Open => true,
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
            None if version.served || stored(version) => ask(version, Ask::Removed),
            Some(after) if version.served && !after.served => ask(version, Ask::Unserved),
            _ => {}
        }
    }
    let is_asked = |version: &Version| {
        found.questions.iter().any(|question| question.ask == Ask::Fits && question.version == version.name)
    };
    found.proven = versions()
        .filter(|(version, change)| **change == Change::Proven && !is_asked(version))
        .map(|(version, _)| version.name.clone())
        .collect();
    found
}

/// What becomes of the schema of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// It means what it meant.
    None,
    /// It harms no object.
    Proven,
    /// It harms no object that is stored at this version. Those that are converted to it are another question.
    ProvenWhereStored,
    Open,
}

fn proven(live: &Crd, before: &Version, after: &Version, prove: Prove<'_>) -> Change {
    let schema = |version: &Version| version.schema().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let (Some(old), Some(new)) = (schema(before), schema(after)) else { return Change::Open };
    if unproven::takes_fewer_lists(&old, &new) || !prove(before, after) {
        return Change::Open;
    }
    let mut others = live.stored_versions().into_iter().filter(|name| **name != *before.name);
    let revived = others.any(|name| match conversion(live, live) {
        Strategy::Webhook => unproven::revives(None, &old, &new),
        Strategy::None => unproven::revives(live.version(name).and_then(schema).as_ref(), &old, &new),
    });
    if revived { Change::ProvenWhereStored } else { Change::Proven }
}

/// How objects get from one version to another. A manifest that does not say leaves it as it is.
pub fn conversion(crd: &Crd, live: &Crd) -> Strategy {
    crd.strategy().or(live.strategy()).unwrap_or(Strategy::None)
}

/// Whether the scale subresource of a version reads what that of `before` does not.
fn reads_more(version: &Version, before: &Version) -> bool {
    !version.scale_paths().beside(&before.scale_paths()).is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Versions by name, whether they are the storage version, and schema; and what else the spec says.
    fn crd(versions: &[(&str, bool, Value)], more: Value) -> Crd {
        let version = |(name, storage, schema): &(&str, bool, Value)| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}});
        let mut spec = json!({"group": "g", "names": {"kind": "K", "plural": "ks"}, "scope": "Cluster",
            "versions": versions.iter().map(version).collect::<Vec<_>>()});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Crd::parse(&json!({"apiVersion": "apiextensions.k8s.io/v1", "spec": spec}).to_string()).unwrap()
    }

    fn one(schema: Value) -> Crd {
        crd(&[("v1", true, schema)], json!({}))
    }

    fn fields(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    /// What is asked, and what need not be, where everything is proven.
    fn asked(live: &Crd, desired: &Crd) -> (Vec<String>, Vec<String>) {
        let Questions { questions, proven } = can_break(live, desired, &|_, _| true);
        let questions = questions.iter().map(|question| format!("{:?} {}", question.ask, question.version)).collect();
        (questions, proven.iter().map(ToString::to_string).collect())
    }

    fn ask<const Q: usize, const P: usize>(questions: [&str; Q], proven: [&str; P]) -> (Vec<String>, Vec<String>) {
        (questions.map(str::to_owned).to_vec(), proven.map(str::to_owned).to_vec())
    }

    #[test]
    fn what_is_proven_is_not_asked_and_what_is_not_is() {
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
        // Who wrote at a version that goes stands in the objects, and so does what is lost in another storage version.
        assert_eq!(asked(&two(small()), &one(large())), ask(["Removed v2"], ["v1"]));
        let moved = crd(&[("v1", false, large()), ("v2", true, small())], json!({}));
        assert_eq!(asked(&two(small()), &moved), ask(["Stores v2"], ["v1"]));
        // A version that is new was never met.
        assert_eq!(asked(&one(small()), &two(large())), ask(["Fits v2"], ["v1"]));
        let webhook = json!({"conversion": {"strategy": "Webhook"}});
        assert_eq!(asked(&one(small()), &crd(&[("v1", true, large())], webhook)), ask(["Fits v1"], []));
        // Of what was never pruned nobody knows what is in it.
        let keeps = || json!({"preserveUnknownFields": true});
        for after in [keeps(), json!({})] {
            let (live, desired) = (crd(&[("v1", true, small())], keeps()), crd(&[("v1", true, large())], after));
            assert_eq!(asked(&live, &desired), ask(["Fits v1"], []));
        }
        let date = one(fields(json!({"a": {"type": "string", "format": "date"}})));
        assert_eq!(asked(&date, &one(large())), ask(["Fits v1"], []), "lists passed");
    }

    #[test]
    fn objects_that_come_from_another_version_are_asked_about_what_they_bring() {
        let (a, ab) =
            (|| json!({"a": {"type": "string"}}), || json!({"a": {"type": "string"}, "b": {"type": "string"}}));
        let two = |first: Value, second: Value, more: Value| {
            crd(&[("v1", true, fields(first)), ("v2", false, fields(second))], more)
        };
        let none = || json!({});
        // v2 dropped the b of v1 so far.
        assert_eq!(asked(&two(ab(), a(), none()), &two(ab(), ab(), none())), ask(["Fits v2"], []));
        assert_eq!(asked(&two(a(), a(), none()), &two(ab(), ab(), none())), ask([], ["v1", "v2"]));
        let webhook = || json!({"conversion": {"strategy": "Webhook"}});
        assert_eq!(asked(&two(a(), a(), webhook()), &two(ab(), ab(), webhook())), ask(["Fits v2"], ["v1"]));
    }
}
