//! Pairs of schemas, and the obligations that remain for them.

use gantry_k8s_cel::KubernetesRelease;
use serde_json::{Value, json};

use super::{ExpectedEffect, status_obligation, walk};
use crate::solve::Solver;
use gantry_k8s_cel::re2::Patterns;
use gantry_schema::Schema;

/// A field `f` of a custom resource.
fn whole(field: &Value) -> Value {
    json!({"type": "object", "properties": {"f": field}})
}

/// Path, effect and reason of each obligation and whether it has values, and the notes on what is proven.
#[derive(Debug, Default, PartialEq)]
struct Found {
    obligations: Vec<(String, ExpectedEffect, String, bool)>,
    notes: Vec<String>,
}

fn found(source: &Value, target: &Value) -> Found {
    let solver = Solver::new(100_000, &Patterns::default(), KubernetesRelease::default());
    let walked = walk(&solver, source, target);
    assert!(!walked.is_cut);
    for open in &walked.obligations {
        // The validator must confirm every value that is found to be refused.
        let Some(refused) = &open.refused else { continue };
        let refused = Schema::compile_structure(refused, &Patterns::default()).unwrap();
        for counter in &open.values {
            assert_eq!(refused.accepts_value(&counter.value), Some(false), "{open:#?}");
        }
    }
    let obligations = walked.obligations.into_iter();
    Found {
        obligations: obligations.map(|open| (open.path, open.effect, open.reason, !open.values.is_empty())).collect(),
        notes: walked.notes.into_iter().map(|(path, note)| format!("{path}: {note}")).collect(),
    }
}

/// Both schemas of a field, and the obligations: path, effect and reason.
type Row<'r> = (Value, Value, &'r [(&'r str, ExpectedEffect, &'r str)]);

#[test]
fn each_keyword_that_differs_is_a_question_of_its_own() {
    use ExpectedEffect::{Defaulted, Pruned, Refused};
    let text = json!({"type": "string"});
    let object = json!({"type": "object", "properties": {"a": text, "b": text}});
    let with = |schema: &Value, keyword: &str, value: Value| {
        let mut schema = schema.clone();
        schema[keyword] = value;
        schema
    };
    let list = |items: &Value| json!({"type": "array", "items": items});
    let map = |entry: &Value| json!({"type": "object", "additionalProperties": entry});
    let short = with(&text, "maxLength", json!(3));
    let any = json!({"type": "object", "additionalProperties": true});
    let open = json!({"x-kubernetes-preserve-unknown-fields": true});
    let null = with(&text, "nullable", json!(true));
    let rows: [Row<'_>; 20] = [
        (text.clone(), with(&text, "description", json!("x")), &[]),
        (text.clone(), json!({"type": "integer"}), &[("^.f", Refused, "type: string → integer")]),
        (with(&text, "nullable", json!(true)), text.clone(), &[("^.f", Pruned, "nullable: true → false")]),
        (text.clone(), with(&text, "nullable", json!(true)), &[]),
        // `additionalProperties: true` keeps nulls.
        (any.clone(), map(&open), &[("^.f", Pruned, "nullable: true → false")]),
        (any.clone(), map(&with(&open, "nullable", json!(true))), &[]),
        (map(&null), any, &[]),
        (short.clone(), text.clone(), &[]),
        (text.clone(), short.clone(), &[("^.f", Refused, "maxLength: 3 added")]),
        (with(&text, "enum", json!(["a", "b"])), short.clone(), &[]),
        (with(&text, "pattern", json!("^a{0,3}$")), short.clone(), &[]),
        (with(&text, "pattern", json!("^a{0,4}$")), short.clone(), &[("^.f", Refused, "maxLength: 3 added")]),
        (object.clone(), with(&object, "required", json!(["a"])), &[("^.f", Refused, "required: a added")]),
        (with(&object, "required", json!(["a", "b"])), with(&object, "required", json!(["a"])), &[]),
        (object.clone(), json!({"type": "object", "properties": {"a": text}}), &[("^.f.b", Pruned, "removed")]),
        (
            with(&text, "default", json!("x")),
            with(&text, "default", json!("y")),
            &[("^.f", Defaulted, "default: \"x\" → \"y\"")],
        ),
        (list(&text), list(&short), &[("^.f.items", Refused, "maxLength: 3 added")]),
        (map(&text), map(&short), &[("^.f.additionalProperties", Refused, "maxLength: 3 added")]),
        (
            list(&text),
            with(&list(&text), "x-kubernetes-list-type", json!("set")),
            &[("^.f", Refused, "x-kubernetes-list-type: atomic → set")],
        ),
        (
            text.clone(),
            with(&text, "not", json!({"enum": ["x"]})),
            &[("^.f", Refused, "not: {\"enum\":[\"x\"]} added")],
        ),
    ];
    let mut wrong = Vec::new();
    for (source, target, obligations) in rows {
        let obligations =
            obligations.iter().map(|(path, effect, reason)| ((*path).to_owned(), *effect, (*reason).to_owned(), true));
        let expected = Found { obligations: obligations.collect(), notes: Vec::new() };
        let found = found(&whole(&source), &whole(&target));
        if found != expected {
            wrong.push(format!("{source} → {target}: {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_required_field_with_a_default_is_a_note_and_no_break() {
    let a = |default: Value| json!({"type": "object", "properties": {"a": default}});
    let source = a(json!({"type": "string", "default": "x"}));
    let mut target = source.clone();
    target["required"] = json!(["a"]);
    let expected = Found { notes: vec!["^.f: required a: the default sets it".to_owned()], ..Found::default() };
    assert_eq!(found(&whole(&source), &whole(&target)), expected);
}

#[test]
fn without_steps_nothing_is_proven() {
    let (source, target) = (whole(&json!({"type": "string"})), whole(&json!({"type": "string", "maxLength": 3})));
    let solver = Solver::new(0, &Patterns::default(), KubernetesRelease::default());
    let walked = walk(&solver, &source, &target);
    assert!(walked.is_cut);
    assert!(walked.obligations.iter().all(|one| one.open.is_some()) && !walked.obligations.is_empty());
}

#[test]
fn a_new_status_subresource_loses_a_status_if_the_schema_allows_one() {
    let status = |status: Value| json!({"type": "object", "properties": {"status": status}});
    for (source, lost) in [
        (status(json!({"type": "object"})), true),
        (status(json!({"type": "string", "enum": ["a"], "maxLength": 0})), false),
        (whole(&json!({"type": "string"})), false),
    ] {
        let solver = Solver::new(100_000, &Patterns::default(), KubernetesRelease::default());
        let found = status_obligation(&solver, &source, &source);
        assert_eq!(
            found.map(|found| (found.effect, found.path)),
            lost.then(|| (ExpectedEffect::Pruned, "^.status".to_owned()))
        );
    }
}
