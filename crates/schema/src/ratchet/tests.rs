//! Errors that are tried together have the answers that each of them has alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gantry_k8s_cel::KubernetesRelease;
use serde_json::{Map, Value, json};

use super::*;
use crate::{CompileRules, EvaluateRules, RuleVerdict};

/// What an update is refused for, by one validation for each change of each error.
fn by_direct_validation(
    schema: &Schema,
    raw: &Value,
    has_status: bool,
    error: &FieldError,
    (new, old): (&Value, &Value),
) -> RatchetingRefusals {
    let remains_in = |schema: &Schema, new: &Value, old: &Value| {
        let found = schema.validate_all(new, Some(old)).errors;
        let is_it = |found: &FieldError| {
            found.path == error.path && found.at == error.at && found.kind == error.kind && found.by == error.by
        };
        found.iter().any(is_it)
    };
    let labelled = labelled(old);
    if remains_in(schema, new, &labelled) {
        return RatchetingRefusals::Every;
    }
    if has_status && schema.release() < older_releases::RATCHETS_STATUS && is_validated_with_status(error) {
        let without = schema.clone().without_ratcheting();
        if remains_in(&without, new, &labelled) {
            return RatchetingRefusals::OfStatus;
        }
    }
    let is_refused_around = |depth: &usize| {
        let mut before = labelled.clone();
        change_around(&mut before, &error.at, *depth) && remains_in(schema, new, &before)
    };
    let innermost = error.at.len().checked_sub(1).filter(|depth| *depth > 0 && is_refused_around(depth));
    let outermost = innermost.map(|innermost| (1..innermost).find(is_refused_around).unwrap_or(innermost));
    let is_refused = outermost.is_some() || {
        let is_empty = value_at(new, &error.at).is_some_and(is_empty);
        let mut changed = if is_empty { new.clone() } else { labelled.clone() };
        change_value(&mut changed, &error.at)
            && if is_empty { remains_in(schema, &changed, &labelled) } else { remains_in(schema, new, &changed) }
    };
    match (error.at.first(), outermost) {
        (Some(Step::Key(part)), _)
            if is_content(raw, part) && (outermost == Some(1) || error.at.len() == 1 && is_refused) =>
        {
            RatchetingRefusals::ChangesOfContent(part.clone())
        }
        (_, Some(depth)) => RatchetingRefusals::ChangesAround(FrozenAncestor {
            depth,
            field: pattern(raw, &error.at[..depth]),
            is_list: value_at(new, &error.at[..depth]).is_some_and(Value::is_array),
        }),
        _ if is_refused => RatchetingRefusals::ChangesOfValue,
        _ => RatchetingRefusals::None,
    }
}

/// A deterministic source of choices.
struct Choices(u64);

impl Choices {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % end
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    /// A schema in which much is refused.
    fn schema(&mut self, depth: usize) -> Value {
        let mut schema = match if depth == 0 { self.below(4) } else { self.below(10) } {
            0 => json!({"type": "string", "enum": ["a"]}),
            1 => json!({"type": "integer", "maximum": 1}),
            2 => json!({"type": "number", "maximum": 0}),
            3 => json!({"type": "boolean", "enum": [true]}),
            4 => json!({"type": "object", "minProperties": 2, "additionalProperties": self.schema(depth - 1)}),
            5 => json!({"type": "array", "minItems": 2, "items": self.schema(depth - 1)}),
            6 => json!({"type": "array", "x-kubernetes-list-type": "set", "items": self.schema(0)}),
            7 | 8 => {
                let keys = self.one_of(&[json!(["k"]), json!(["k", "n"])]);
                let item = json!({"type": "object", "required": ["a"], "properties": {
                    "k": self.schema(0), "n": self.schema(0), "a": self.schema(depth - 1),
                    "b": {"type": "string", "default": "b"}}});
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
                    "items": item})
            }
            _ => json!({"type": "object", "required": ["z"], "properties": {
                "a": self.schema(depth - 1), "b": self.schema(depth - 1), "z": self.schema(0)}}),
        };
        if self.below(4) == 0 {
            let rules = [
                json!({"rule": "self != oldSelf"}),
                json!({"rule": "false"}),
                json!({"rule": "self == oldSelf", "fieldPath": ".a"}),
                json!({"rule": "false", "fieldPath": ".a"}),
            ];
            let is_plain = schema["properties"]["a"].is_null();
            let most = if is_plain { 2 } else { rules.len() };
            schema["x-kubernetes-validations"] = json!([rules[self.below(most)]]);
        }
        if self.below(8) == 0 {
            schema["anyOf"] = json!([
                {"minItems": 3, "items": {"maxLength": 0, "minItems": 1}},
                {"properties": {"a": {"minItems": 2}}, "required": ["z", "a"]}
            ]);
        }
        schema
    }

    /// A value that has mostly the type that the schema wants.
    fn value(&mut self, schema: &Value) -> Value {
        let wanted = if self.below(20) == 0 { "none" } else { schema["type"].as_str().unwrap_or_default() };
        match wanted {
            "string" => self.one_of(&["a", "b", "b-", "b--", ""]).into(),
            "integer" => self.one_of(&[1, 2, 3, 4]).into(),
            "number" => self.one_of(&[0.0, 0.5, 0.500_000_000_1, 2.0]).into(),
            "boolean" => self.one_of(&[true, false]).into(),
            "array" => (0..self.below(5)).map(|_| self.value(&schema["items"])).collect(),
            "object" if schema["additionalProperties"].is_object() => {
                let names = ["a", "b", "c.a", "c", MARK];
                let fields =
                    (0..self.below(5)).map(|at| (names[at].to_owned(), self.value(&schema["additionalProperties"])));
                Value::Object(fields.collect())
            }
            "object" => {
                let fields = schema["properties"].as_object().cloned().unwrap_or_default();
                let mut object = Map::new();
                for (name, field) in fields {
                    if self.below(6) > 0 {
                        object.insert(name, self.value(&field));
                    }
                }
                Value::Object(object)
            }
            _ => self.one_of(&[json!(null), json!("b"), json!({}), json!([]), json!(7)]),
        }
    }
}

#[test]
fn errors_tried_together_have_the_answers_that_each_has_alone() {
    let (mut compared, mut kinds) = (0, [0; 6]);
    for seed in 0..600 {
        let choices = &mut Choices(seed);
        let raw = json!({"type": "object", "properties": {
            "spec": choices.schema(3), "status": choices.schema(2)}});
        let release: KubernetesRelease = choices.one_of(&["1.29", "1.32", "1.34"]).parse().expect("a release");
        let schema = Schema::compile(&raw).expect("a schema").with_release(release);
        let mut old = json!({"apiVersion": "g/v1", "kind": "T", "metadata": {"name": "x"},
            "spec": choices.value(&raw["properties"]["spec"]), "status": choices.value(&raw["properties"]["status"])});
        let mut new = old.clone();
        schema.default(&mut new);
        if choices.below(2) == 0 {
            old = new.clone();
        }
        let mut errors = schema.validate_all(&new, None).errors;
        errors.extend(schema.validate_all(&new, Some(&old)).errors);
        let asked: Vec<&FieldError> = errors.iter().collect();
        let each = refused_updates_of_each(&schema, &raw, true, &asked, (&new, &old), &[]);
        for (error, refused) in errors.iter().zip(each) {
            let wanted = by_direct_validation(&schema, &raw, true, error, (&new, &old));
            assert_eq!(refused.as_ref(), Some(&wanted), "{seed}: {error}\n{raw}\n{new}\n{old}");
            assert_eq!(refused_updates(&schema, &raw, true, error, (&new, &old), &[]), wanted, "{seed}: {error}");
            compared += 1;
            kinds[match wanted {
                RatchetingRefusals::Every => 0,
                RatchetingRefusals::OfStatus => 1,
                RatchetingRefusals::ChangesOfContent(_) => 2,
                RatchetingRefusals::ChangesAround(_) => 3,
                RatchetingRefusals::ChangesOfValue => 4,
                RatchetingRefusals::Applies | RatchetingRefusals::None => 5,
            }] += 1;
        }
    }
    assert!(compared > 1000 && kinds.iter().all(|count| *count > 10), "{compared}: {kinds:?}");
}

/// Rules that hold, and count how often they are evaluated.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<AtomicUsize>);

impl EvaluateRules for Counted {
    fn evaluate(&self, _: &Value, _: Option<&Value>, _: KubernetesRelease, _: &mut u64) -> Vec<(&str, RuleVerdict)> {
        self.0.fetch_add(1, Ordering::Relaxed);
        vec![("true", RuleVerdict::Holds)]
    }
}

impl CompileRules for Counted {
    fn compile(&self, _: &Value, _: bool, _: &[Value]) -> Box<dyn EvaluateRules> {
        Box::new(self.clone())
    }
}

/// The number of validations that it takes to answer for all errors of this `spec`, and the number of errors.
fn count_validations(spec: &Value, value: Value) -> (usize, usize) {
    let counted = Counted::default();
    let raw = json!({"type": "object", "properties": {"spec": spec}, "x-kubernetes-validations": [{"rule": "true"}]});
    let schema = Schema::compile_with(&raw, &counted).expect("a schema");
    let object = json!({"metadata": {"name": "x"}, "spec": value});
    let errors = schema.validate_all(&object, None).errors;
    let asked: Vec<&FieldError> = errors.iter().collect();
    counted.0.store(0, Ordering::Relaxed);
    let refused = refused_updates_of_each(&schema, &raw, false, &asked, (&object, &object), &[]);
    assert!(refused.iter().all(Option::is_some));
    (counted.0.load(Ordering::Relaxed), errors.len())
}

#[test]
fn the_number_of_validations_depends_on_the_schema_and_not_on_the_number_of_errors() {
    let text = json!({"type": "string", "enum": ["a"]});
    let entries = |items: &Value| {
        json!({"type": "object", "properties": {
            "l": {"type": "array", "items": items}, "m": {"type": "object", "additionalProperties": items}}})
    };
    let item = json!({"type": "object", "properties": {"k": text, "p": {"type": "integer", "maximum": 0}}});
    let keyed = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"],
        "items": item});
    let nested = json!({"type": "array", "items": {"type": "array", "items": {"type": "array", "items": text}}});
    let least = json!({"type": "array", "minItems": 2, "items": {"type": "string"}});
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let every = |count: usize, value: &dyn Fn(usize) -> Value| {
        let map: Map<String, Value> = (0..count).map(|at| (format!("k{at}"), value(at))).collect();
        json!({"l": (0..count).map(value).collect::<Vec<_>>(), "m": map})
    };
    type Build<'b> = &'b dyn Fn(usize) -> Value;
    let cases: [(&str, &Value, Build, usize); 7] = [
        ("texts", &entries(&text), &|count| every(count, &|at| json!(format!("x{at}"))), 2),
        ("objects", &entries(&item), &|count| every(count, &|_| json!({"k": "x", "p": 1})), 4),
        ("a value in each map", &entries(&entries(&text)), &|count| every(count, &|_| json!({"l": ["x"]})), 2),
        // The changed key of each item is the key of the next.
        ("keys", &keyed, &|count| (0..count).map(|at| json!({"k": "a", "p": at + 1})).collect(), 1),
        ("nested lists", &nested, &|count| (0..count).map(|_| json!([["x"]])).collect(), 1),
        ("empty lists", &entries(&least), &|count| every(count, &|_| json!([])), 2),
        ("duplicates", &set, &|count| (0..2 * count).map(|at| json!(format!("x{}", at / 2))).collect(), 1),
    ];
    for (name, spec, build, each) in cases {
        let (few, many) = (count_validations(spec, build(20)), count_validations(spec, build(200)));
        assert_eq!((few.1, many.1), (20 * each, 200 * each), "{name}");
        assert!(few.0 == many.0 && many.0 <= 12, "{name}: {few:?} {many:?}");
    }
}

#[test]
fn a_status_is_refused_by_the_rules_as_the_release_evaluates_them() {
    let text = || json!({"type": "string"});
    let rules = json!([
        {"rule": "has(self.b)", "fieldPath": ".b"},
        {"rule": "has(self.c)", "fieldPath": ".c"},
        {"rule": "self.a.indexOf('b') != -1"},
    ]);
    let fields = json!({"a": text(), "b": text(), "c": text()});
    let spec = json!({"type": "object", "properties": fields, "x-kubernetes-validations": rules});
    let raw = json!({"type": "object", "properties": {"spec": spec}});
    let schema = Schema::compile(&raw).expect("a schema").with_release(KubernetesRelease::minor(32));
    let object = json!({"metadata": {"name": "x"}, "spec": {"a": ""}});
    let errors = schema.validate_all(&object, None).errors;
    let asked: Vec<&FieldError> = errors.iter().collect();
    let refused = refused_updates_of_each(&schema, &raw, true, &asked, (&object, &object), &[]);
    assert!(refused.len() == 3 && refused.iter().all(|answer| *answer == Some(RatchetingRefusals::OfStatus)));
}

/// What cannot be tried together is answered as long as it takes a limited amount of work.
#[test]
fn items_whose_keys_are_filled_in_are_tried_alone_within_a_limit() {
    let item = json!({"type": "object", "properties": {
        "k": {"type": "string", "default": "d"}, "p": {"type": "integer", "maximum": 0}}});
    let spec =
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item});
    let raw = json!({"type": "object", "properties": {"spec": spec}});
    let schema = Schema::compile(&raw).expect("a schema");
    let unknown = |count: usize| {
        let mut old = json!({"metadata": {"name": "x"}, "spec": vec![json!({"p": 1}); count]});
        old["spec"][0]["k"] = "d".into();
        let mut new = old.clone();
        schema.default(&mut new);
        let errors = schema.validate_all(&new, None).errors;
        let asked: Vec<&FieldError> = errors.iter().collect();
        let refused = refused_updates_of_each(&schema, &raw, false, &asked, (&new, &old), &[]);
        (errors.len(), refused.iter().filter(|refused| refused.is_none()).count())
    };
    assert_eq!(unknown(50), (51, 0));
    let (errors, unknown) = unknown(800);
    assert!(errors == 801 && unknown > 200 && unknown < errors, "{unknown} of {errors}");
}

/// A rule of a value sees what changes for another rule of the same value, so rules that blame fields are tried one by
/// one.
#[test]
fn transition_rules_that_blame_fields_are_not_tried_together() {
    let rule = |kept: &str, blamed: &str| {
        let rule = format!("oldSelf.hasValue() && self.{kept} == oldSelf.value().{kept}");
        json!({"rule": rule, "optionalOldSelf": true, "fieldPath": format!(".{blamed}")})
    };
    let text = json!({"type": "string"});
    let raw = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": {"a": text, "b": text}, "x-kubernetes-validations": [rule("b", "a"), rule("a", "b")]}}});
    let schema = Schema::compile(&raw).expect("a schema");
    let object = json!({"metadata": {"name": "x"}, "spec": {"a": "", "b": ""}});
    let errors = schema.validate_all(&object, None).errors;
    let blamed: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(blamed, ["spec.a", "spec.b"]);
    let asked: Vec<&FieldError> = errors.iter().collect();
    let each = refused_updates_of_each(&schema, &raw, false, &asked, (&object, &object), &[]);
    // An update that changes only the blamed field is accepted.
    assert_eq!(each, [Some(RatchetingRefusals::None), Some(RatchetingRefusals::None)]);
}
