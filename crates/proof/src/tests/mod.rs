//! One table for each group of keywords: the verdict on a field's change, in both directions.

use serde_json::{Map, Value, json};

use super::*;

mod costs;
mod limits;
mod reach;
mod values;
mod witnesses;

pub fn version(schema: &Value) -> VersionSchema<'_> {
    VersionSchema {
        schema,
        status_subresource: false,
        api_version: "example.com/v1",
        kind: "Sample",
        release: KubernetesRelease::default(),
    }
}

fn whole(field: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}}}})
}

fn proof_of(live: &Value, desired: &Value) -> Proof {
    prove(&version(live), &version(desired), Limits::default())
}

/// Checks the verdicts on a field's change and on the reverse change.
fn both_ways(rows: &[(Value, Value, SchemaRelation, SchemaRelation)]) {
    let mut wrong = Vec::new();
    for (live, desired, there, back) in rows {
        for (from, to, expected) in [(live, desired, there), (desired, live, back)] {
            let proof = proof_of(&whole(from), &whole(to));
            if proof.verdict != *expected {
                wrong.push(format!("{from} → {to}: {:?}, not {expected:?}: {proof:#?}", proof.verdict));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

use SchemaRelation::{DataLoss, Equal, Incomparable, Narrowing, Undecided, Widening};

#[test]
fn required_fields_and_defaults() {
    let object = |required: Value, a: Value| json!({"type": "object", "required": required, "properties": {"a": a, "b": {"type": "string"}}});
    let plain = || json!({"type": "string"});
    both_ways(&[
        (object(json!([]), plain()), object(json!(["a"]), plain()), Narrowing, Widening),
        (
            object(json!([]), json!({"type": "string", "default": "x"})),
            object(json!(["a"]), json!({"type": "string", "default": "x"})),
            Equal,
            Equal,
        ),
        (
            object(json!([]), plain()),
            object(json!([]), json!({"type": "string", "default": "x"})),
            Narrowing,
            Narrowing,
        ),
        (
            object(json!([]), json!({"type": "string", "default": "y"})),
            object(json!([]), json!({"type": "string", "default": "x"})),
            Narrowing,
            Narrowing,
        ),
        // If the field is required, a default changes no object that live accepts.
        (
            object(json!(["a"]), plain()),
            object(json!(["a"]), json!({"type": "string", "default": "x"})),
            Widening,
            Narrowing,
        ),
    ]);
    let with = |field: Value| json!({"type": "object", "properties": {"old": {"type": "string"}, "new": field}});
    let without = json!({"type": "object", "properties": {"old": {"type": "string"}}});
    both_ways(&[
        (without.clone(), with(plain()), Widening, DataLoss),
        (
            without.clone(),
            with(json!({"type": "object", "required": ["x"], "properties": {"x": plain()}})),
            Widening,
            DataLoss,
        ),
        (without.clone(), with(json!({"type": "string", "default": "x"})), Incomparable, DataLoss),
    ]);
    let proof = proof_of(&whole(&without), &whole(&with(json!({"type": "string", "default": "x"}))));
    let node = proof.nodes.iter().find(|node| node.path == "^.spec.f.new").expect("the node");
    assert_eq!(node.breaks, [AffectedParty::Behaviour]);
    assert_eq!(node.witnesses[0].desired, Difference::Defaulted);
    assert_eq!(
        node.witnesses[0].object,
        json!({"apiVersion": "example.com/v1", "kind": "Sample", "metadata": {"name": "x"}, "spec": {"f": {}}})
    );
}

#[test]
fn properties_are_compared_with_additional_properties() {
    let string = || json!({"type": "string"});
    both_ways(&[
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            Widening,
            Narrowing,
        ),
        (
            json!({"type": "object", "properties": {"a": string()}}),
            json!({"type": "object", "additionalProperties": string()}),
            Widening,
            DataLoss,
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 4}}}),
            json!({"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}}),
            Incomparable,
            DataLoss,
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object"}),
            DataLoss,
            Widening,
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": string()}}),
            Narrowing,
            Widening,
        ),
    ]);
}

#[test]
fn list_keywords_and_list_types_are_compared() {
    let list = |more: Value| {
        let mut schema = json!({"type": "array", "items": {"type": "object", "required": ["a", "b"],
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}});
        schema.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        schema
    };
    let of_texts =
        |list_type: &str| json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": list_type});
    let map = |keys: Value| list(json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}));
    both_ways(&[
        (list(json!({})), list(json!({"x-kubernetes-list-type": "atomic"})), Equal, Equal),
        (list(json!({})), map(json!(["a"])), Narrowing, Widening),
        (map(json!(["a", "b"])), map(json!(["a"])), Narrowing, Widening),
        (of_texts("atomic"), of_texts("set"), Narrowing, Widening),
        // An item without a type can be a null, which a default replaces.
        (
            json!({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}}),
            json!({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true, "default": 1}}),
            DataLoss,
            Widening,
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1, "x-kubernetes-list-type": "set"}),
            Equal,
            Equal,
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": {"type": "string", "maxLength": 3}}),
            Narrowing,
            Widening,
        ),
        (json!({"type": "object", "x-kubernetes-map-type": "atomic"}), json!({"type": "object"}), Equal, Equal),
    ]);
}

#[test]
fn a_null_in_a_list_passes_an_enum_below_all_of() {
    let list = |nullable: bool| {
        let mut item = json!({"type": "boolean", "allOf": [{"enum": [true]}, {"enum": [true]}]});
        if nullable {
            item["nullable"] = json!(true);
        }
        json!({"type": "array", "items": item})
    };
    both_ways(&[(list(true), list(false), Narrowing, Widening)]);
}

#[test]
fn schemas_with_all_of_any_of_one_of_and_not_are_compared() {
    let object = |more: Value| {
        let mut schema = json!({"type": "object", "properties":
            {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"}}});
        schema.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        schema
    };
    let need = |names: &[&str]| Value::Array(names.iter().map(|name| json!({"required": [name]})).collect());
    both_ways(&[
        (
            object(json!({"anyOf": need(&["a", "b"])})),
            object(json!({"anyOf": need(&["a", "b", "c"])})),
            Widening,
            Narrowing,
        ),
        (object(json!({"oneOf": need(&["a", "b"])})), object(json!({"oneOf": need(&["b", "a"])})), Equal, Equal),
        (
            object(json!({"oneOf": need(&["a", "b"])})),
            object(json!({"oneOf": need(&["a", "b", "c"])})),
            Incomparable,
            Incomparable,
        ),
        (object(json!({"oneOf": need(&["a", "b"])})), object(json!({"anyOf": need(&["a", "b"])})), Widening, Narrowing),
        (object(json!({"oneOf": need(&["a", "b"])})), object(json!({})), Widening, Narrowing),
        (object(json!({"not": {"required": ["a"]}})), object(json!({})), Widening, Narrowing),
        (object(json!({"required": ["a"]})), object(json!({"allOf": [{"required": ["a"]}]})), Equal, Equal),
        (
            object(json!({"allOf": [{"properties": {"a": {"maxLength": 3}}}]})),
            json!({"type": "object", "properties":
            {"a": {"type": "string", "maxLength": 3}, "b": {"type": "string"}, "c": {"type": "string"}}}),
            Equal,
            Equal,
        ),
        (
            json!({"type": "string", "anyOf": [{"enum": ["a"]}, {"enum": ["b"]}]}),
            json!({"type": "string", "enum": ["a", "b"]}),
            Equal,
            Equal,
        ),
        (
            json!({"type": "integer", "anyOf": [{"maximum": 3}, {"minimum": 6}]}),
            json!({"type": "integer", "not": {"minimum": 4, "maximum": 5}}),
            Equal,
            Equal,
        ),
    ]);
}

#[test]
fn changed_rules_are_compared_by_meaning() {
    let ruled = |rules: Value| json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": rules});
    both_ways(&[
        (ruled(json!([{"rule": "self.a>1", "message": "x"}])), ruled(json!([{"rule": "self.a > 1"}])), Equal, Equal),
        (ruled(json!([{"rule": "self.a > 1"}])), ruled(json!([])), Widening, Narrowing),
    ]);
}

/// What a function computes does not matter if the rule follows by logic alone.
#[test]
fn rules_with_any_functions_are_weakened() {
    let text = json!({"type": "string", "maxLength": 64});
    let ruled = |schema: &Value, rules: Value| {
        let mut schema = schema.clone();
        schema["x-kubernetes-validations"] = rules;
        schema
    };
    let rules = |texts: &[&str]| texts.iter().map(|text| json!({"rule": text})).collect::<Value>();
    let verdict = |live: Value, desired: Value| proof_of(&whole(&live), &whole(&desired)).verdict;
    let pair = json!({"type": "object", "required": ["a", "b"], "properties": {"a": text, "b": text}});
    for (schema, live, desired) in [
        (&text, vec!["isIP(self) && ip(self).family() == 4"], vec!["isIP(self)"]),
        (&text, vec!["isIP(self)"], vec!["isIP(self) || self == ''"]),
        (&text, vec!["isQuantity(self)"], vec!["isQuantity(self) || self == 'auto'"]),
        (&text, vec!["self == oldSelf"], vec!["self == oldSelf || self.startsWith(oldSelf)"]),
        (&json!({"type": "string"}), vec!["isIP(self)"], vec!["self == '' || isIP(self)"]),
        (&text, vec!["isIP(self)", "isURL(self)"], vec!["isIP(self) || isURL(self)"]),
    ] {
        let (live, desired) = (ruled(schema, rules(&live)), ruled(schema, rules(&desired)));
        assert_eq!(verdict(live.clone(), desired.clone()), Widening, "{live} → {desired}");
        assert!(matches!(verdict(desired, live), Undecided | Narrowing | Incomparable));
    }
    for (schema, live, desired) in [
        (&pair, "self.a.lowerAscii() == self.b", "self.b == self.a.lowerAscii()"),
        (&pair, "!(isIP(self.a) && isURL(self.b))", "!isIP(self.a) || !isURL(self.b)"),
    ] {
        let (live, desired) = (ruled(schema, rules(&[live])), ruled(schema, rules(&[desired])));
        assert_eq!(verdict(live.clone(), desired.clone()), Equal, "{live} → {desired}");
        assert_eq!(verdict(desired, live), Equal);
    }
    let (live, desired) = (rules(&["isIP(self.a)"]), rules(&["isIP(self.a) || ip(self.b).family() == 4"]));
    assert_eq!(verdict(ruled(&pair, live.clone()), ruled(&pair, desired.clone())), Widening);
    let wider = |name: &str, field: Value| {
        let mut schema = pair.clone();
        schema["properties"][name] = field;
        schema
    };
    let after = |schema: Value| verdict(ruled(&pair, live.clone()), ruled(&schema, desired.clone()));
    assert_eq!(after(wider("b", json!({"type": "string", "maxLength": 70}))), Widening);
    assert_eq!(after(wider("c", text.clone())), Widening);
    // A rule that sees other types or values is another rule.
    assert_ne!(after(wider("b", json!({"type": "string", "format": "date-time"}))), Widening);
    assert_ne!(after(wider("c", json!({"type": "string", "default": "x"}))), Widening);
}

/// A name is a DNS subdomain, and every object has one.
#[test]
fn rules_about_names_are_decided() {
    let plain = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    for (rule, expected) in [
        ("size(self.metadata.name) <= 8", Narrowing),
        ("size(self.metadata.name) <= 253", Equal),
        ("self.metadata.name.startsWith('x')", Narrowing),
        ("self.metadata.name == 'default'", Narrowing),
        ("!self.metadata.name.contains('_') && self.metadata.name != ''", Equal),
        ("!has(self.metadata.generateName)", Narrowing),
        ("has(self.metadata.name)", Equal),
        ("has(self.metadata.name) ? size(self.metadata.name) < 5 : true", Narrowing),
    ] {
        let mut ruled = plain.clone();
        ruled["x-kubernetes-validations"] = json!([{"rule": rule}]);
        let proof = proof_of(&plain, &ruled);
        assert_eq!(proof.verdict, expected, "{rule}: {proof:#?}");
    }
}

/// A create drops the status, and with it the default, before it validates.
#[test]
fn the_default_of_a_status_does_not_make_it_present() {
    let status = json!({"type": "object", "properties": {"b": {"type": "string"}}, "default": {"b": "d"}});
    let plain = json!({"type": "object", "properties": {"spec": {"type": "object"}, "status": status}});
    let with = |keyword: &str, value: Value| {
        let mut schema = plain.clone();
        schema[keyword] = value;
        schema
    };
    for desired in
        [with("required", json!(["status"])), with("x-kubernetes-validations", json!([{"rule": "has(self.status)"}]))]
    {
        for (status_subresource, expected) in [(true, Narrowing), (false, Equal)] {
            let of = |schema| VersionSchema { status_subresource, ..version(schema) };
            let proof = prove(&of(&plain), &of(&desired), Limits::default());
            assert_eq!(proof.verdict, expected, "{desired}: {proof:#?}");
        }
    }
}

/// The server cannot convert some strings whose format it accepts: a rule that looks at one ends in an error.
#[test]
fn a_rule_cannot_read_every_text_that_its_format_accepts() {
    let ruled = |field: &Value, rule: &str| {
        json!({"type": "object", "required": ["d"], "properties": {
            "d": field, "l": {"type": "array", "maxItems": 3, "items": field}},
            "x-kubernetes-validations": [{"rule": rule}]})
    };
    let free = |field: &Value| {
        json!({"type": "object", "required": ["d"], "properties": {
        "d": field, "l": {"type": "array", "maxItems": 3, "items": field}}})
    };
    let time = json!({"type": "string", "format": "date-time"});
    let bytes = json!({"type": "string", "format": "byte"});
    let upper = json!({"type": "string", "format": "date-time", "enum": ["2024-01-01T00:00:00Z"]});
    let mut cases = Vec::new();
    for field in [&time, &bytes] {
        for rule in [
            "has(self.d) == has(self.d)",
            "self.d == self.d",
            "has(self.d)",
            "has(self.l) ? self.l.all(x, x == x) : true",
        ] {
            cases.push((free(field), ruled(field, rule), Narrowing, Widening));
        }
        for rule in ["has(self.d) || true", "!has(self.l) || size(self.l) < 4"] {
            cases.push((free(field), ruled(field, rule), Equal, Equal));
        }
    }
    cases.push((free(&upper), ruled(&upper, "has(self.d)"), Equal, Equal));
    for (at, (live, desired, forward, backward)) in cases.iter().enumerate() {
        println!("{at}: {desired}");
        both_ways(&[(live.clone(), desired.clone(), *forward, *backward)]);
    }
}

#[test]
fn a_change_at_an_unreachable_place_breaks_nothing() {
    let impossible = |length: u64| {
        json!({"type": "object", "required": ["x"], "properties": {
        "x": {"type": "integer", "minimum": 3, "maximum": 2}, "y": {"type": "string", "maxLength": length}}})
    };
    let forbidden = |length: u64| {
        json!({"type": "object", "not": {"required": ["y"]}, "properties": {
        "y": {"type": "string", "maxLength": length}}})
    };
    both_ways(&[(impossible(5), impossible(3), Equal, Widening), (forbidden(5), forbidden(3), Equal, Widening)]);
}

#[test]
fn a_status_is_written_through_its_subresource() {
    let schema = |pattern: &str| {
        json!({"type": "object", "properties": {"status": {"type": "object", "properties": {
        "s": {"type": "string", "pattern": pattern}}}}})
    };
    let (live, desired) = (schema("^.*$"), schema("^.+$"));
    let of = |schema| VersionSchema { status_subresource: true, ..version(schema) };
    let proof = prove(&of(&live), &of(&desired), Limits::default());
    assert_eq!(proof.verdict, Narrowing, "{proof:#?}");
    assert!(proof.nodes[0].witnesses[0].via_status);
    assert_eq!(proof.nodes[0].witnesses[0].object["status"], json!({"s": ""}));
    let without = VersionSchema { status_subresource: false, ..of(&live) };
    assert_eq!(prove(&without, &of(&live), Limits::default()).verdict, DataLoss);
}

/// Regressions: each of these was once reported as safe.
#[test]
fn pairs_that_were_wrongly_called_safe_are_not_safe() {
    let filled_in = || json!({"type": "object", "properties": {"b": {"type": "string", "default": "x"}}});
    let anything = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let items = |nullable: bool| {
        json!({"type": "array", "items": {"type": "string", "nullable": nullable},
            "allOf": [{"oneOf": [{"minItems": 1}, {"items": {"pattern": "^a"}}]}]})
    };
    let named = |created: Value| {
        let metadata = json!({"type": "object", "required": ["name"], "properties": {"creationTimestamp": created}});
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"metadata": metadata}})
    };
    let embedded = |rest: Value| {
        let mut schema =
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"d": {"type": "boolean"}}});
        schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        schema
    };
    let spaced = |rest: Value| {
        let mut schema = json!({"format": "ssn", "oneOf": [{"format": "k8s-short-name"}, {}]});
        schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        schema
    };
    both_ways(&[
        // The fields below are kept, but no longer defaulted.
        (json!({"type": "object", "properties": {"a": filled_in()}}), anything(), Incomparable, DataLoss),
        (json!({"type": "object", "additionalProperties": filled_in()}), anything(), Incomparable, DataLoss),
        (json!({"type": "object", "additionalProperties": {"type": "string"}}), anything(), Widening, Narrowing),
        // A null matches every pattern, and the list needs an item that does not.
        (items(true), items(false), Narrowing, Widening),
        // Embedded resources have metadata, whether or not the schema describes it.
        (embedded(json!({})), embedded(json!({"maxProperties": 3})), Narrowing, Widening),
        // The metadata can have the required name.
        (
            named(json!({"type": "string"})),
            named(json!({"type": "string", "default": "2024-01-01T00:00:00Z"})),
            Narrowing,
            Narrowing,
        ),
        // No integer is 1.5, so none is accepted.
        (
            json!({"type": "integer", "minimum": 1.5, "maximum": 1}),
            json!({"type": "number", "minimum": 1.5, "maximum": 1}),
            Widening,
            Narrowing,
        ),
        // The typical strings of the format are all short names.
        (spaced(json!({"type": "string"})), spaced(json!({"type": "string", "pattern": "^x"})), Narrowing, Widening),
    ]);
}

#[test]
fn a_set_has_at_most_as_many_items_as_there_are_values() {
    let set = |rest: Value| {
        let mut schema = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "boolean"}});
        schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        schema
    };
    both_ways(&[
        (set(json!({})), set(json!({"maxItems": 2})), Equal, Equal),
        (set(json!({})), set(json!({"maxItems": 1})), Narrowing, Widening),
    ]);
}

/// Neither side describes the contents, at any depth.
#[test]
fn a_comparison_of_contents_that_neither_side_describes_ends() {
    let kept = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let emptied = json!({"type": "object", "additionalProperties": true});
    both_ways(&[(kept, emptied, DataLoss, Widening)]);
}

#[test]
fn rules_are_proven_for_the_release() {
    let text = json!({"type": "string", "maxLength": 9});
    let mut ruled = text.clone();
    // An error for an empty text before 1.32, and true otherwise.
    ruled["x-kubernetes-validations"] = json!([{"rule": "self.indexOf('b') < 10"}]);
    let (live, desired) = (whole(&text), whole(&ruled));
    let verdict = |minor| {
        let of_release = |schema| VersionSchema { release: KubernetesRelease::minor(minor), ..version(schema) };
        let proof = prove(&of_release(&live), &of_release(&desired), Limits::default());
        (proof.verdict, proof.nodes.iter().any(|node| !node.witnesses.is_empty()))
    };
    assert_eq!(verdict(31), (Narrowing, true));
    assert!(!verdict(32).1);
}
