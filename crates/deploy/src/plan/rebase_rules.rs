//! `rebaseRules` of kapp's Config, for server-side apply: fields whose live values are kept.
//!
//! Source: "rebaseRules" in kapp's documentation of its Config. kapp writes the live value again. A field that gantry
//! does not own keeps its value if the apply leaves it out, and its owner may change it later. A field that gantry owns
//! would be removed, so its live value is applied.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Change;
use crate::app::PART_OF;
use gantry_core::managed_fields::ManagerEntry;
use gantry_core::matcher::{self, FieldPathStep, KeyPattern, MatchableObject, Matcher, ObjectScope};
use gantry_core::resource::{ObjectRef, RawObject, SERVER_METADATA, Step};

/// A rule: where the value of a field comes from when an object is updated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebaseRule {
    /// The objects; one that matches is enough.
    pub matchers: Vec<Matcher>,
    /// Each ends with the name of a field.
    pub paths: Vec<Vec<FieldPathStep>>,
    /// The first source that has the field counts; `None` to leave the field out.
    pub sources: Option<Vec<RebaseSource>>,
}

/// An object that a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebaseSource {
    /// The manifest.
    New,
    /// The live object.
    Existing,
}

/// kapp's own rule for Secrets that secretgen-controller fills in. Its other rules are what server-side apply does
/// anyway.
fn filled_in_by_secretgen() -> RebaseRule {
    let annotation = |key: &str| Matcher::Annotations(vec![key.to_owned()]);
    let secret = Matcher::VersionKind { api_version: "v1".to_owned(), kind: "Secret".to_owned() };
    let disabled = annotation("kapp.k14s.io/disable-default-secretgen-rebase-rules");
    let filled_in = annotation("secretgen.carvel.dev/image-pull-secret");
    let path = |keys: &[&str]| keys.iter().map(|key| FieldPathStep::Key((*key).to_owned())).collect();
    RebaseRule {
        matchers: vec![Matcher::And(vec![secret, filled_in, Matcher::Not(Box::new(disabled))])],
        paths: vec![
            path(&["data", ".dockerconfigjson"]),
            path(&["metadata", "annotations", "secretgen.carvel.dev/status"]),
        ],
        sources: Some(vec![RebaseSource::Existing, RebaseSource::New]),
    }
}

/// Applies the rules to all existing objects, after kapp's own, and leaves out the rules of aggregated ClusterRoles,
/// which the cluster fills in.
pub(crate) fn follow(changes: &mut [Change], rules: &[RebaseRule], field_manager: &str) {
    let secretgen = filled_in_by_secretgen();
    for change in changes.iter_mut().filter(|change| change.desired.bundle.is_none()) {
        if is_cluster_role(&change.desired.object) && change.desired.may_contain(&["aggregationRule"]) {
            let mut desired = change.desired.raw.value();
            let is_aggregated = desired.get("aggregationRule").is_some_and(|rule| !rule.is_null());
            if is_aggregated && desired.as_object_mut().is_some_and(|role| role.shift_remove("rules").is_some()) {
                change.desired.raw = RawObject::from_value(&desired);
            }
        }
        let Some(live) = &change.live else { continue };
        let object = &change.desired.object;
        let facts = MatchableObject::of_raw(object, ObjectScope::for_object(object), &change.desired.raw);
        let about: Vec<&RebaseRule> = std::iter::once(&secretgen)
            .chain(rules)
            .filter(|rule| matcher::any_matches(&rule.matchers, &facts) == Some(true))
            .collect();
        if about.is_empty() {
            continue;
        }
        let (new, existing) = (change.desired.raw.value(), live.raw.value());
        let rebased = rebased(&new, &existing, &about, field_manager);
        if rebased != new {
            change.desired.raw = RawObject::from_value(&rebased);
        }
    }
}

fn is_cluster_role(object: &ObjectRef) -> bool {
    object.kind == "ClusterRole" && object.group() == "rbac.authorization.k8s.io"
}

/// A value that was copied from the live object: its place in the manifest, and in the live object.
struct CopiedValue {
    at: Vec<Step>,
    live: Vec<Step>,
}

/// What is applied.
fn rebased(new: &Value, existing: &Value, rules: &[&RebaseRule], field_manager: &str) -> Value {
    let mut object = new.clone();
    let mut taken = Vec::new();
    for rule in rules {
        for path in &rule.paths {
            match &rule.sources {
                None => remove_unless(&mut object, path, &mut Vec::new(), is_of_server),
                Some(sources) => {
                    let from = Both { new: Some(new), existing: Some(existing), sources };
                    from.copy(&mut object, path, (&mut Vec::new(), &mut Vec::new()), &mut taken);
                }
            }
        }
    }
    for CopiedValue { at, live } in taken {
        if !owns(existing, field_manager, &live) {
            leave_out(&mut object, new, &at);
        }
    }
    // Rules cannot change membership of an app.
    if let (Value::String(id), Some(object)) = (&new["metadata"]["labels"][PART_OF], object.as_object_mut())
        && let Some(metadata) = child(object, "metadata")
        && let Some(labels) = child(metadata, "labels")
    {
        labels.insert(PART_OF.to_owned(), id.as_str().into());
    }
    object
}

fn child<'v>(map: &'v mut Map<String, Value>, key: &str) -> Option<&'v mut Map<String, Value>> {
    let value = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

/// The same place of both objects.
#[derive(Clone, Copy)]
struct Both<'a> {
    new: Option<&'a Value>,
    existing: Option<&'a Value>,
    sources: &'a [RebaseSource],
}

impl<'a> Both<'a> {
    fn child(self, key: &str) -> Self {
        Both {
            new: self.new.and_then(|new| new.get(key)),
            existing: self.existing.and_then(|old| old.get(key)),
            ..self
        }
    }

    /// Copies the field at the path from the first source that has it.
    fn copy(
        self,
        value: &mut Value,
        path: &[FieldPathStep],
        (at, live): (&mut Vec<Step>, &mut Vec<Step>),
        taken: &mut Vec<CopiedValue>,
    ) {
        let Some((part, rest)) = path.split_first() else { return };
        match (part, value) {
            (FieldPathStep::Key(key), Value::Object(map)) => {
                let here = self.child(key);
                at.push(key.as_str().into());
                live.push(key.as_str().into());
                if rest.is_empty() {
                    here.take(map, key, at, live, taken);
                } else if let Some(below) = map.get_mut(key).filter(|below| !below.is_null()) {
                    here.copy(below, rest, (at, live), taken);
                } else if rest.iter().all(|part| matches!(part, FieldPathStep::Key(_) | FieldPathStep::Matching(_))) {
                    // Only if there is a value to add.
                    let mut below = Value::Object(Map::new());
                    here.copy(&mut below, rest, (at, live), taken);
                    if below.as_object().is_some_and(|below| !below.is_empty()) {
                        map.insert(key.clone(), below);
                    }
                }
                at.pop();
                live.pop();
            }
            (FieldPathStep::Matching(pattern), value @ Value::Object(_)) => {
                for key in self.keys(pattern) {
                    let path: Vec<FieldPathStep> =
                        [FieldPathStep::Key(key)].into_iter().chain(rest.iter().cloned()).collect();
                    self.copy(value, &path, (at, live), taken);
                }
            }
            (FieldPathStep::All, Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.copy_item(item, index, rest, (at, live), taken);
                }
            }
            (FieldPathStep::Index(index), Value::Array(items)) => {
                if let Some(item) = items.get_mut(*index) {
                    self.copy_item(item, *index, rest, (at, live), taken);
                }
            }
            _ => {}
        }
    }

    /// The keys of the sources that match.
    fn keys(self, pattern: &KeyPattern) -> BTreeSet<String> {
        let maps = self.sources.iter().filter_map(|side| self.value_from(*side)?.as_object());
        maps.flat_map(|map| pattern.keys(map).cloned()).collect()
    }

    fn value_from(self, side: RebaseSource) -> Option<&'a Value> {
        match side {
            RebaseSource::New => self.new,
            RebaseSource::Existing => self.existing,
        }
    }

    fn copy_item(
        self,
        item: &mut Value,
        index: usize,
        rest: &[FieldPathStep],
        (at, live): (&mut Vec<Step>, &mut Vec<Step>),
        taken: &mut Vec<CopiedValue>,
    ) {
        // By name, if items have one: their positions may differ.
        let name = item.get("name").and_then(Value::as_str).map(str::to_owned);
        let find = |list: Option<&Value>| -> Option<usize> {
            let items = list?.as_array()?;
            match &name {
                Some(name) => items.iter().position(|item| item["name"] == name.as_str()),
                None => (index < items.len()).then_some(index),
            }
        };
        let (of_new, of_live) = (find(self.new), find(self.existing));
        let here = Both {
            new: of_new.and_then(|index| self.new?.get(index)),
            existing: of_live.and_then(|index| self.existing?.get(index)),
            ..self
        };
        at.push(index.into());
        live.push(of_live.unwrap_or(index).into());
        here.copy(item, rest, (at, live), taken);
        at.pop();
        live.pop();
    }

    fn take(self, map: &mut Map<String, Value>, key: &str, at: &[Step], live: &[Step], taken: &mut Vec<CopiedValue>) {
        let found = self.sources.iter().find_map(|side| Some((side, self.value_from(*side)?)));
        let Some((side, value)) = found.filter(|_| !is_of_server(at)) else { return };
        map.insert(key.to_owned(), value.clone());
        taken.retain(|other| other.at != at);
        if *side == RebaseSource::Existing {
            taken.push(CopiedValue { at: at.to_vec(), live: live.to_vec() });
        }
    }
}

/// Removes what is at the path.
pub fn remove(value: &mut Value, path: &[FieldPathStep]) {
    remove_unless(value, path, &mut Vec::new(), |_| false);
}

fn remove_unless(value: &mut Value, path: &[FieldPathStep], at: &mut Vec<Step>, stays: fn(&[Step]) -> bool) {
    let Some((part, rest)) = path.split_first() else { return };
    let mut remove_key = |map: &mut Map<String, Value>, key: &str| {
        at.push(key.into());
        if !rest.is_empty() {
            if let Some(below) = map.get_mut(key) {
                remove_unless(below, rest, at, stays);
            }
        } else if !stays(at) {
            map.shift_remove(key);
        }
        at.pop();
    };
    match (part, value) {
        (FieldPathStep::Key(key), Value::Object(map)) => remove_key(map, key),
        (FieldPathStep::Matching(pattern), Value::Object(map)) => {
            let keys: Vec<String> = pattern.keys(map).cloned().collect();
            keys.iter().for_each(|key| remove_key(map, key));
        }
        (FieldPathStep::All, Value::Array(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                at.push(index.into());
                remove_unless(item, rest, at, stays);
                at.pop();
            }
        }
        (FieldPathStep::Index(index), Value::Array(items)) => {
            if let Some(item) = items.get_mut(*index) {
                at.push((*index).into());
                remove_unless(item, rest, at, stays);
                at.pop();
            }
        }
        _ => {}
    }
}

/// Whether a field is one that server-side apply does not write: the identity of the object, or metadata that the
/// server maintains.
fn is_of_server(steps: &[Step]) -> bool {
    match steps {
        [Step::Key(key)] => matches!(&**key, "apiVersion" | "kind" | "metadata"),
        [Step::Key(first), Step::Key(key), ..] if **first == *"metadata" => {
            matches!(&**key, "name" | "namespace") || SERVER_METADATA.contains(&&**key)
        }
        _ => false,
    }
}

/// Removes the field, and its parents that are then empty and did not exist before.
fn leave_out(object: &mut Value, new: &Value, at: &[Step]) {
    for length in (1..=at.len()).rev() {
        let (parent, Some(Step::Key(key))) = (at_steps_mut(object, &at[..length - 1]), at.get(length - 1)) else {
            return;
        };
        let Some(map) = parent.and_then(Value::as_object_mut) else { return };
        let is_left_out = length == at.len()
            || map.get(key).and_then(Value::as_object).is_some_and(Map::is_empty)
                && at_steps(new, &at[..length]).is_none();
        if !is_left_out {
            return;
        }
        map.shift_remove(key);
    }
}

fn at_steps<'v>(value: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

fn at_steps_mut<'v>(value: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    })
}

/// Whether our field manager owns the field of the live object, or a part of it. Without managedFields, everything
/// counts as ours.
fn owns(live: &Value, field_manager: &str, steps: &[Step]) -> bool {
    let mut entries = ManagerEntry::all(live).peekable();
    let is_unrecorded = entries.peek().is_none();
    is_unrecorded || entries.any(|entry| entry.is_apply_of(field_manager) && entry.fields().owns(steps, Some(live)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> Vec<FieldPathStep> {
        let part = |text: &str| match text {
            "*" => FieldPathStep::All,
            text if text.starts_with('^') => FieldPathStep::Matching(KeyPattern::new(text).unwrap()),
            text => text.parse().map_or_else(|_| FieldPathStep::Key(text.to_owned()), FieldPathStep::Index),
        };
        text.split('.').map(part).collect()
    }

    fn rule(text: &str, sources: Option<&[RebaseSource]>) -> RebaseRule {
        RebaseRule {
            matchers: vec![Matcher::All],
            paths: vec![path(text)],
            sources: sources.map(<[RebaseSource]>::to_vec),
        }
    }

    fn live(spec: Value, ours: Value) -> Value {
        json!({"metadata": {"managedFields": [
            {"manager": "gantry", "operation": "Apply", "fieldsV1": ours},
            {"manager": "other", "operation": "Update", "fieldsV1": {"f:spec": {}}},
        ]}, "spec": spec})
    }

    /// What is applied of `spec`.
    fn applied(rules: &[RebaseRule], new: Value, live: &Value) -> Value {
        let rules: Vec<&RebaseRule> = rules.iter().collect();
        rebased(&json!({"metadata": {}, "spec": new}), live, &rules, "gantry")["spec"].take()
    }

    const EXISTING: Option<&[RebaseSource]> = Some(&[RebaseSource::Existing, RebaseSource::New]);

    #[test]
    fn a_rebase_leaves_out_foreign_fields_and_keeps_live_values_of_our_own() {
        let rules = [rule("spec.replicas", EXISTING)];
        let foreign = live(json!({"replicas": 5}), json!({"f:spec": {"f:image": {}}}));
        assert_eq!(applied(&rules, json!({"replicas": 2, "image": "a"}), &foreign), json!({"image": "a"}));
        let own = live(json!({"replicas": 5}), json!({"f:spec": {"f:replicas": {}}}));
        assert_eq!(applied(&rules, json!({"replicas": 2}), &own), json!({"replicas": 5}));
        assert_eq!(applied(&rules, json!({}), &own), json!({"replicas": 5}));
        let absent = live(json!({}), json!({}));
        assert_eq!(applied(&rules, json!({"replicas": 2}), &absent), json!({"replicas": 2}));
        let unrecorded = json!({"metadata": {}, "spec": {"replicas": 5}});
        assert_eq!(applied(&rules, json!({"replicas": 2}), &unrecorded), json!({"replicas": 5}));
    }

    #[test]
    fn the_first_source_of_a_rebase_rule_that_has_a_value_wins() {
        let own = live(json!({"a": {"b": 1}}), json!({"f:spec": {"f:a": {"f:b": {}}}}));
        let both: &[RebaseSource] = &[RebaseSource::New, RebaseSource::Existing];
        assert_eq!(applied(&[rule("spec.a.b", Some(both))], json!({"a": {"b": 2}}), &own), json!({"a": {"b": 2}}));
        assert_eq!(applied(&[rule("spec.a.b", Some(both))], json!({}), &own), json!({"a": {"b": 1}}));
        assert_eq!(applied(&[rule("spec.a.b", Some(&[RebaseSource::New]))], json!({}), &own), json!({}));
        // A field that is not ours leaves no empty parents.
        let foreign = live(json!({"a": {"b": 1}}), json!({"f:spec": {"f:c": {}}}));
        assert_eq!(applied(&[rule("spec.a.b", EXISTING)], json!({}), &foreign), json!({}));
        assert_eq!(applied(&[rule("spec.a.b", EXISTING)], json!({"a": {"b": 2}}), &foreign), json!({"a": {}}));
    }

    #[test]
    fn rules_follow_each_other() {
        let own = live(json!({"a": 1}), json!({"f:spec": {"f:a": {}}}));
        let rules = [rule("spec.a", EXISTING), rule("spec.a", None)];
        assert_eq!(applied(&rules, json!({"a": 2}), &own), json!({}));
        let rules = [rule("spec.a", None), rule("spec.a", Some(&[RebaseSource::New]))];
        assert_eq!(applied(&rules, json!({"a": 2}), &own), json!({"a": 2}));
    }

    #[test]
    fn items_are_found_by_their_names() {
        let rules = [rule("spec.hooks.*.bundle", EXISTING)];
        let own = live(
            json!({"hooks": [{"name": "b", "bundle": "B"}, {"name": "a", "bundle": "A"}]}),
            json!({"f:spec": {"f:hooks": {"k:{\"name\":\"a\"}": {"f:bundle": {}}}}}),
        );
        let new = json!({"hooks": [{"name": "new", "bundle": ""}, {"name": "a", "bundle": ""}, {"name": "b"}]});
        let expected = json!({"hooks": [{"name": "new", "bundle": ""}, {"name": "a", "bundle": "A"}, {"name": "b"}]});
        assert_eq!(applied(&rules, new, &own), expected);
        let rules = [rule("spec.list.0.x", EXISTING), rule("spec.list.7.x", EXISTING)];
        let whole = live(json!({"list": [{"x": 1}]}), json!({"f:spec": {"f:list": {}}}));
        assert_eq!(applied(&rules, json!({"list": [{"x": 2}]}), &whole), json!({"list": [{"x": 1}]}));
    }

    #[test]
    fn a_pattern_names_the_keys_of_its_sources() {
        let own = live(json!({"a": {"x1": 1, "x2": 2, "y": 3}}), json!({"f:spec": {"f:a": {}}}));
        let new = || json!({"a": {"x2": 0, "x3": 4, "y": 0}});
        let expected = json!({"a": {"x2": 2, "x3": 4, "y": 0, "x1": 1}});
        assert_eq!(applied(&[rule("spec.a.^x", EXISTING)], new(), &own), expected);
        assert_eq!(applied(&[rule("spec.a.^x", EXISTING)], json!({}), &own), json!({"a": {"x1": 1, "x2": 2}}));
        assert_eq!(applied(&[rule("spec.a.^x", EXISTING)], json!({"a": null}), &own), json!({"a": {"x1": 1, "x2": 2}}));
        assert_eq!(applied(&[rule("spec.a.^x", Some(&[RebaseSource::New]))], json!({}), &own), json!({}));
        assert_eq!(applied(&[rule("spec.a.^x", None)], new(), &own), json!({"a": {"y": 0}}));
        assert_eq!(applied(&[rule("spec.^a.y", EXISTING)], new(), &own), json!({"a": {"x2": 0, "x3": 4, "y": 3}}));
    }

    #[test]
    fn the_identity_and_what_the_server_maintains_stay() {
        let new = json!({"kind": "A", "metadata": {"name": "new", "labels": {"a": "new"}}, "spec": 1});
        let mut existing = live(json!(2), json!({"f:metadata": {"f:labels": {}}, "f:spec": {}}));
        (existing["kind"], existing["metadata"]["name"]) = ("B".into(), "live".into());
        (existing["metadata"]["uid"], existing["metadata"]["labels"]) = ("u".into(), json!({"a": "live"}));
        let expected = json!({"kind": "A", "metadata": {"name": "new", "labels": {"a": "live"}}, "spec": 2});
        for paths in [&["^"][..], &["kind", "metadata", "metadata.uid"]] {
            let rules =
                paths.iter().map(|path| rule(path, EXISTING)).chain([rule("^.^", EXISTING), rule("spec", EXISTING)]);
            let rules: Vec<RebaseRule> = rules.collect();
            assert_eq!(rebased(&new, &existing, &rules.iter().collect::<Vec<_>>(), "gantry"), expected);
        }
        let removed = rebased(&new, &existing, &[&rule("^", None), &rule("^.^", None)], "gantry");
        assert_eq!(removed, json!({"kind": "A", "metadata": {"name": "new"}}), "and nothing else");
    }

    #[test]
    fn the_label_of_an_app_stays() {
        let labels = rule("metadata.labels", EXISTING);
        let new = json!({"metadata": {"labels": {PART_OF: "set", "a": "new"}}});
        let mut existing = live(json!({}), json!({"f:metadata": {"f:labels": {"f:a": {}}}}));
        existing["metadata"]["labels"] = json!({"a": "live"});
        let applied = rebased(&new, &existing, &[&labels], "gantry");
        assert_eq!(applied["metadata"]["labels"], json!({"a": "live", PART_OF: "set"}));
    }
}
