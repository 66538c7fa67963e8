//! Restrictions of the server that no keyword expresses, as keywords that the prover knows.
//!
//! The scale subresource requires certain values of the fields that it reads. A bound that its type or format cannot
//! represent refuses every number. A `set` of objects or lists can be neither read nor written by server-side apply.
//! [`impose`] puts these restrictions into the schemas that are compared, and [`correct`] gives the witnesses the
//! messages of the server.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::question::{ChangeProof, VersionPairQuestion, VersionProof};
use gantry_core::finding::{Breaks, Verdict, WitnessVerdict};
use gantry_k8s_cel::KubernetesRelease;
use gantry_schema::typed::{self, Duplicates, TypedValueError, UnreadableKind, is_set_of_structures};
use gantry_schema::{FieldError, RefusedBy, Schema, can_be_bound};

/// Adds the restrictions to the schemas. Returns whether there are any that only desired has.
pub fn impose(question: &VersionPairQuestion<'_>, live: &mut Value, desired: &mut Value) -> bool {
    let [before, after] = question.scale;
    let both = before.common(after);
    before.restrict_schema(live);
    both.restrict_schema(desired);
    let added = after.without_paths_of(before);
    let mut is_more = !before.is_empty() || !added.is_empty();
    both_sides(live, desired, &mut is_more);
    added.require(desired);
    is_more
}

fn both_sides(live: &mut Value, desired: &mut Value, is_more: &mut bool) {
    let (Some(live), Some(desired)) = (live.as_object_mut(), desired.as_object_mut()) else { return };
    refuse_numbers(live);
    *is_more |= refuse_numbers(desired);
    if !is_set_of_structures(live) && is_set_of_structures(desired) {
        // A set of any items: of these, only objects and lists matter.
        for side in [&mut *live, &mut *desired] {
            if let Some(items) = side.get_mut("items").and_then(Value::as_object_mut)
                && type_of(items).is_none()
            {
                items.insert("type".to_owned(), "object".into());
            }
        }
        desired.insert("maxItems".to_owned(), 0.into());
        *is_more = true;
    }
    for keyword in ["items", "additionalProperties"] {
        if let (Some(live), Some(desired)) = (live.get_mut(keyword), desired.get_mut(keyword)) {
            both_sides(live, desired, is_more);
        }
    }
    let (Some(Value::Object(old)), Some(Value::Object(new))) =
        (live.get_mut("properties"), desired.get_mut("properties"))
    else {
        return;
    };
    for (name, field) in new.iter_mut() {
        if let Some(before) = old.get_mut(name) {
            both_sides(before, field, is_more);
        }
    }
}

/// The paths of the nodes that [`impose`] changed on either side.
pub fn restricted(question: &VersionPairQuestion<'_>, after: [&Value; 2]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (before, after) in [question.live_schema, question.desired_schema].into_iter().zip(after) {
        if let Ok(before) = serde_json::from_str(before) {
            changed_nodes(&before, after, "^", &mut found);
        }
    }
    found
}

fn changed_nodes(before: &Value, after: &Value, path: &str, found: &mut BTreeSet<String>) {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else { return };
    let is_below = |keyword: &str| matches!(keyword, "properties" | "items" | "additionalProperties");
    if after.iter().any(|(keyword, value)| !is_below(keyword) && before.get(keyword) != Some(value))
        || before.keys().any(|keyword| !after.contains_key(keyword))
    {
        found.insert(path.to_owned());
    }
    let fields = after.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        match before.get("properties").and_then(|known| known.get(name)) {
            Some(known) if known == field => {}
            Some(known) => changed_nodes(known, field, &format!("{path}.{name}"), found),
            None => drop(found.insert(format!("{path}.{name}"))),
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let (Some(known), Some(below)) = (before.get(keyword), after.get(keyword))
            && known != below
        {
            changed_nodes(known, below, &format!("{path}.{keyword}"), found);
        }
    }
}

/// Replaces bounds that refuse every number by bounds that the prover knows to do so.
fn refuse_numbers(node: &mut Map<String, Value>) -> bool {
    let is_wrong = unrepresentable(|keyword| node.get(keyword)).is_some();
    if is_wrong {
        node.shift_remove("multipleOf");
        node.insert("minimum".to_owned(), 1.into());
        node.insert("maximum".to_owned(), 0.into());
    }
    is_wrong
}

/// The keyword of a node whose number its type or format cannot represent.
fn unrepresentable<'v>(get: impl Fn(&str) -> Option<&'v Value>) -> Option<&'static str> {
    let text = |keyword| get(keyword).and_then(Value::as_str);
    let is_wrong = |keyword: &&&str| {
        let bound = get(keyword).and_then(Value::as_f64);
        bound.is_some_and(|bound| !can_be_bound(text("type"), text("format"), bound))
    };
    ["minimum", "maximum", "multipleOf"].iter().find(is_wrong).copied()
}

fn type_of(node: &Map<String, Value>) -> Option<&str> {
    node.get("type").and_then(Value::as_str).filter(|name| !name.is_empty())
}

/// Gives the witnesses of restrictions that no keyword expresses the messages of the server.
pub fn correct(
    question: &VersionPairQuestion<'_>,
    desired: &Value,
    release: KubernetesRelease,
    proof: &mut VersionProof,
) {
    let Ok(schema) = Schema::compile(desired) else { return };
    let schema = schema.with_scale(question.scale[1].clone()).with_release(release);
    for proof in proof.proofs_mut() {
        correct_node(&schema, desired, proof);
    }
}

fn correct_node(schema: &Schema, desired: &Value, node: &mut ChangeProof) {
    let (mut is_never_forgiven, mut is_pruned, mut is_narrower) = (false, false, false);
    node.witnesses.retain_mut(|witness| {
        let is_update = witness.old_object.is_some();
        let mut object = witness.object.clone();
        if is_update || schema.prepare(&mut object).is_err() {
            return true;
        }
        let errors = schema.validate_all(&object, None).errors;
        // What only desired accepts, it has to accept without the restriction too.
        if witness.live != WitnessVerdict::Accepted {
            return errors.is_empty();
        }
        is_narrower = true;
        let is_of_scale = |error: &&FieldError| matches!(error.by, RefusedBy::Scale(_));
        let is_said = || errors.iter().any(|error| error.to_string() == witness.message);
        if let Some(error) = errors.iter().find(is_of_scale) {
            (witness.desired, witness.message) = (WitnessVerdict::Refused, error.to_string());
            is_never_forgiven = true;
        } else if let Some(error) = errors.first() {
            if witness.desired == WitnessVerdict::Refused && !is_said() {
                witness.message = error.to_string();
            }
        } else if let Some(found) = unreadable(desired, &object, schema.release()) {
            witness.message = format!("server-side apply fails: failed to create typed live object: {found}");
            is_never_forgiven = true;
        }
        is_pruned |= witness.desired == WitnessVerdict::Pruned;
        true
    });
    let is_wider = node.witnesses.iter().any(|witness| witness.live != WitnessVerdict::Accepted);
    if node.verdict == Verdict::Incomparable && is_narrower && !is_wider {
        node.verdict = Verdict::Narrowing;
    }
    if !is_never_forgiven {
        return;
    }
    if node.verdict == Verdict::DataLoss && !is_pruned {
        node.verdict = Verdict::Narrowing;
        node.breaks.retain(|breaks| !matches!(breaks, Breaks::Readers | Breaks::Data));
    }
    node.breaks.extend([Breaks::StoredObjects, Breaks::Writers]);
    node.breaks.sort_unstable();
    node.breaks.dedup();
}

/// The first item that server-side apply cannot identify within its list.
fn unreadable(schema: &Value, object: &Value, release: KubernetesRelease) -> Option<TypedValueError> {
    let mut found = typed::unreadable(schema, object, Duplicates::Allowed, release).into_iter();
    found.find(|found| found.kind == UnreadableKind::Element)
}
