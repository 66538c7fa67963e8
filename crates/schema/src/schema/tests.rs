use serde_json::json;

use super::*;

fn schema(spec: Value) -> Schema {
    Schema::compile(&json!({"type": "object", "properties": {"spec": spec}})).expect("a schema")
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "x"}, "spec": spec})
}

fn errors(processed: &Processed) -> Vec<String> {
    processed.outcome.errors.iter().map(ToString::to_string).collect()
}

#[test]
fn an_object_is_pruned_then_defaulted_then_validated() {
    let schema = schema(json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string", "default": "d"}, "n": {"type": "integer"}, "m": {"type": "string", "nullable": true}}}));
    let mut written = object(json!({"a": null, "n": null, "m": null, "list": [{"x": 1}]}));
    let processed = schema.process(&mut written, None);
    assert_eq!(written["spec"], json!({"a": "d", "m": null}));
    let spec = LinkedPath::Name(&LinkedPath::Root, "spec");
    assert_eq!(processed.pruned, [PrunedField::new(&LinkedPath::Name(&spec, "list"), json!([{"x": 1}]))]);
    assert_eq!(processed.defaulted, [Defaulted { path: "spec.a".to_owned(), at: vec!["spec".into(), "a".into()] }]);
    assert!(processed.outcome.is_accepted());
}

#[test]
fn an_unchanged_invalid_value_is_tolerated_but_not_a_missing_field_of_a_changed_parent() {
    let schema = schema(json!({"type": "object", "required": ["r"], "properties": {
        "s": {"type": "string", "maxLength": 2}, "t": {"type": "string"}, "r": {"type": "string"},
        "l": {"type": "array", "items": {"type": "integer"}}}}));
    let old = object(json!({"s": "long", "l": ["x"]}));
    let after = |spec: Value| errors(&schema.process(&mut object(spec), Some(&old)));
    assert!(after(json!({"s": "long", "l": ["x"]})).is_empty());
    assert_eq!(after(json!({"s": "long", "l": ["x"], "t": "y"})), ["spec.r: Required value"]);
    assert!(after(json!({"s": "long", "l": ["x"], "r": "y"})).is_empty());
    assert_eq!(
        after(json!({"s": "longer", "l": ["x", 1], "r": "y"})),
        [
            "spec.l[0]: Invalid value: \"string\": spec.l[0] in body must be of type integer: \"string\"",
            "spec.s: Too long: may not be more than 2 bytes"
        ]
    );
}

#[test]
fn a_null_that_is_not_allowed_is_dropped_from_fields_and_entries() {
    let text = json!({"type": "string"});
    let schema = schema(json!({"type": "object", "properties": {
        "a": text, "n": {"type": "string", "nullable": true}, "d": {"type": "string", "default": "x"},
        "map": {"type": "object", "additionalProperties": text},
        "any": {"type": "object", "additionalProperties": true},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": text}}}}}));
    let mut stored = object(json!({"a": null, "n": null, "d": null, "map": {"k": null, "l": "y"}, "any": {"k": null},
        "list": [null, {"a": null}]}));
    assert_eq!(schema.fit(&mut stored.clone()), Ok(Vec::new()), "only pruned fields");
    let (dropped, _) = schema.prepare_stored_with_nulls(&mut stored).expect("it can be read");
    let dropped: Vec<String> = dropped.into_iter().map(|lost| lost.path).collect();
    assert_eq!(dropped, ["spec.a", "spec.map.k", "spec.list[1].a"]);
    let kept = json!({"n": null, "d": "x", "map": {"l": "y"}, "any": {"k": null}, "list": [null, {}]});
    assert_eq!(stored["spec"], kept);
}

#[test]
fn a_null_in_a_default_satisfies_required_and_is_dropped() {
    let schema = schema(json!({"type": "object", "default": {"x": null}, "required": ["x"],
        "properties": {"x": {"x-kubernetes-preserve-unknown-fields": true}}}));
    let mut written = json!({"metadata": {"name": "x"}});
    assert!(schema.process(&mut written, None).outcome.is_accepted());
    assert_eq!(written["spec"], json!({}));
}

#[test]
fn a_write_of_the_object_cannot_set_the_status_behind_a_subresource() {
    let schema = Schema::compile(&json!({"type": "object", "properties": {"status": {"type": "object",
        "properties": {"n": {"type": "integer"}}}}}));
    let schema = schema.expect("a schema").with_status_subresource(true);
    let written = || json!({"metadata": {"name": "x"}, "status": {"n": "x"}});
    let mut created = written();
    assert!(errors(&schema.process(&mut created, None)).is_empty());
    assert_eq!(created.get("status"), None);
    let mut updated = written();
    let old = json!({"metadata": {"name": "x"}, "status": {"n": 1}});
    assert!(errors(&schema.process(&mut updated, Some(&old))).is_empty());
    assert_eq!(updated["status"], json!({"n": 1}));
}

#[test]
fn a_value_with_an_undecided_pattern_is_not_accepted() {
    let schema = schema(json!({"type": "string", "pattern": "(?!a)"}));
    let outcome = schema.process(&mut object(json!("b")), None).outcome;
    assert!(outcome.errors.is_empty() && !outcome.is_accepted());
    assert_eq!((outcome.undecided[0].path.as_str(), outcome.undecided[0].rule.as_str()), ("spec", "pattern: (?!a)"));
}

#[test]
fn a_combination_is_undecided_only_if_its_undecided_branch_matters() {
    // `(?!a)` is undecided for any text; `^b$` matches `b` and `^c$` does not.
    let (open, yes, no) = (json!({"pattern": "(?!a)"}), json!({"pattern": "^b$"}), json!({"pattern": "^c$"}));
    let also_no = json!({"pattern": "(?!a)", "maxLength": 0});
    let accepted = (true, 0);
    let (refused, undecided) = ((false, 0), (true, 1));
    for (combined, wanted) in [
        (json!({"anyOf": [open, no]}), undecided),
        (json!({"anyOf": [open, yes]}), accepted),
        (json!({"anyOf": [also_no, no]}), refused),
        (json!({"oneOf": [open, no]}), undecided),
        (json!({"oneOf": [open, yes]}), undecided),
        (json!({"oneOf": [yes, open, yes]}), refused),
        (json!({"oneOf": [also_no, yes]}), accepted),
        (json!({"not": open}), undecided),
        (json!({"not": also_no}), accepted),
        (json!({"not": yes}), refused),
        (json!({"allOf": [open, no]}), (false, 1)),
        (json!({"anyOf": [{"not": open}, no]}), undecided),
    ] {
        let mut spec = combined.clone();
        spec["type"] = json!("string");
        let outcome = schema(spec).process(&mut object(json!("b")), None).outcome;
        assert_eq!((outcome.errors.is_empty(), outcome.undecided.len()), wanted, "{combined}");
    }
}

#[test]
fn rules_are_skipped_beside_a_value_that_is_not_in_its_enum_since_1_29() {
    let schema = schema(json!({"type": "object", "properties": {
        "a": {"type": "string", "enum": ["x"]},
        "b": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1", "message": "too small"}]}}}));
    let errors_of = |minor| {
        let schema = schema.clone().with_release(KubernetesRelease::minor(minor));
        errors(&schema.process(&mut object(json!({"a": "y", "b": 0})), None))
    };
    assert!(errors_of(28).iter().any(|error| error.ends_with("too small")), "{:?}", errors_of(28));
    assert!(!errors_of(29).iter().any(|error| error.ends_with("too small")), "{:?}", errors_of(29));
}

#[test]
fn an_integer_can_be_bounded_by_a_fraction_until_1_35() {
    let schema = schema(json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 0.5}}}));
    let accepts = |minor, value: i64| {
        let schema = schema.clone().with_release(KubernetesRelease::minor(minor));
        schema.process(&mut object(json!({"a": value})), None).outcome.is_accepted()
    };
    // The bound is truncated to 0.
    assert_eq!([-1, 0, 1].map(|value| accepts(35, value)), [false, true, true]);
    assert_eq!([-1, 0, 1].map(|value| accepts(36, value)), [false; 3]);
}

#[test]
fn rules_are_evaluated_as_in_the_release() {
    let holds = |minor, rule: &str, value: &str| {
        let field = json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
        let schema = schema(json!({"type": "object", "properties": {"a": field}}));
        let schema = schema.with_release(KubernetesRelease::minor(minor));
        schema.process(&mut object(json!({"a": value})), None).outcome.is_accepted()
    };
    for (rule, value, since) in [
        ("self.indexOf('b') == -1", "", 32),
        ("self.indexOf('b', 3) == -1", "b", 32),
        ("self.lastIndexOf('b') == -1", "", 34),
        ("cidr('10.0.0.0/8').containsCIDR(self)", "10.1.0.0/16", 32),
        ("'%e'.format([1.0]) != self", "1.000000\u{202f}×\u{202f}10⁰⁰", 33),
    ] {
        assert_eq!([since - 1, since].map(|minor| holds(minor, rule, value)), [false, true], "{rule}");
    }
    assert!(holds(31, "cidr('10.0.0.0/8').containsCIDR(self)", "10.0.0.0/16"));
}

#[test]
fn the_path_of_a_failing_rule_is_that_of_later_ones_until_1_29() {
    let rules = json!([
        {"rule": "has(self.b)", "fieldPath": ".b"},
        {"rule": "has(self.c)", "fieldPath": ".c"},
        {"rule": "has(self.d)"},
    ]);
    let text = || json!({"type": "string"});
    let fields = json!({"b": text(), "c": text(), "d": text()});
    let schema = schema(json!({"type": "object", "properties": fields, "x-kubernetes-validations": rules}));
    let paths = |minor| {
        let schema = schema.clone().with_release(KubernetesRelease::minor(minor));
        let outcome = schema.process(&mut object(json!({})), None).outcome;
        outcome.errors.into_iter().map(|error| error.path).collect::<Vec<_>>()
    };
    assert_eq!(paths(29), ["spec.b", "spec.b.c", "spec.b.c"]);
    assert_eq!(paths(30), ["spec.b", "spec.c", "spec"]);
}

#[test]
fn an_object_with_a_null_field_is_not_equal_to_itself_until_1_33() {
    let nullable = json!({"type": "string", "nullable": true});
    let schema = schema(json!({"type": "object", "properties": {"a": nullable, "b": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}));
    let keeps = |minor, spec: Value| {
        let schema = schema.clone().with_release(KubernetesRelease::minor(minor));
        let old = object(spec);
        schema.process(&mut old.clone(), Some(&old)).outcome.is_accepted()
    };
    assert_eq!([33, 34].map(|minor| keeps(minor, json!({"a": null, "b": "x"}))), [false, true]);
    assert!(keeps(33, json!({"a": "x", "b": "x"})));
}
