//! Which values a whole object can contain, and what surrounds them.

use super::*;

/// An unreachable place is decided: a null is not an example of an object, and one impossible field is enough.
#[test]
fn an_unreachable_place_beside_a_null_is_decided() {
    let without = |rest: Value| {
        let mut schema = json!({"type": "object", "nullable": true, "required": ["pruned"], "properties": {
            "a": {"type": "number", "anyOf": [{"minimum": 1.5}, {"minimum": 1, "exclusiveMinimum": true}]}}});
        schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        schema
    };
    let divided = json!({"properties": {"a": {
        "type": "number", "multipleOf": 2, "anyOf": [{"minimum": 1.5}, {"minimum": 1, "exclusiveMinimum": true}]}}});
    let ruled = json!({"x-kubernetes-validations": [{"rule": "!has(self.a)"}]});
    for (change, back) in [(json!({"required": ["pruned", "a"]}), Equal), (ruled, Equal), (divided, Widening)] {
        both_ways(&[(without(json!({})), without(change), Equal, back)]);
    }
}

/// One key represents all others, but a constraint may allow only a specific key.
#[test]
fn keys_that_an_object_has_to_have_are_tried() {
    let map = |text: Value| {
        json!({"type": "object", "maxProperties": 1, "anyOf": [{"required": ["k"]}], "additionalProperties": {
            "type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "s": text}}})
    };
    let (live, desired) = (map(json!({"type": "string"})), map(json!({"type": "string", "maxLength": 6})));
    both_ways(&[(live, desired, Narrowing, Widening)]);
}

/// If the value around the map is impossible, no key makes the entry reachable.
#[test]
fn an_entry_of_an_impossible_object_is_unreachable() {
    let side = |text: Value| {
        let map = json!({"type": "object", "additionalProperties": text});
        json!({"type": "object", "required": ["unknown"], "properties": {"map": map}})
    };
    both_ways(&[(side(json!({"type": "string"})), side(json!({"type": "string", "maxLength": 1})), Equal, Widening)]);
}

/// An entry can have the keys that occur in an `enum`.
#[test]
fn an_entry_may_have_the_key_that_an_enum_gives_it() {
    let side = |most: u32, key: &str| json!({"type": "object", "enum": [{}, {key: 7}], "additionalProperties": {"type": "integer", "maximum": most}});
    both_ways(&[(side(9, "k"), side(5, "k"), Narrowing, Widening), (side(9, "k"), side(8, "k"), Equal, Widening)]);
}

/// A key can come from a schema further up, or from inside an `enum`.
#[test]
fn an_entry_may_have_the_key_that_something_around_its_map_gives_it() {
    let side = |most: u32, around: &Value| {
        let map = json!({"type": "object", "additionalProperties": {"type": "integer", "maximum": most}});
        let mut schema = json!({"type": "object", "properties": {"map": map}});
        schema.as_object_mut().unwrap().extend(around.as_object().unwrap().clone());
        schema
    };
    for around in [
        json!({"enum": [{"map": {"k": 7}}, {}]}),
        json!({"allOf": [{"properties": {"map": {"maxProperties": 1, "anyOf": [{"required": ["k"]}]}}}]}),
        json!({"anyOf": [{"not": {"properties": {"map": {"not": {"required": ["k"], "maxProperties": 1}}}}}]}),
    ] {
        both_ways(&[(side(9, &around), side(5, &around), Narrowing, Widening)]);
    }
}

/// An object with an `enum` has no other values, whatever its fields would allow.
#[test]
fn a_field_has_the_values_of_its_object_s_enum() {
    let side = |least: u32| {
        let fields = json!({"a": {"type": "integer", "minimum": least}, "b": {"type": "integer", "default": 3}});
        json!({"type": "object", "properties": fields, "enum": [{"b": 3}, {"a": 4, "b": 3}]})
    };
    both_ways(&[(side(0), side(4), Equal, Widening), (side(0), side(5), Narrowing, Widening)]);
}

/// A field whose default is refused by its own schema has to be written.
#[test]
fn a_field_whose_default_is_invalid_has_to_be_written() {
    let side = |most: u32| {
        let fields =
            json!({"a": {"type": "string", "maxLength": most}, "b": {"type": "integer", "minimum": 5, "default": 3}});
        json!({"type": "object", "properties": fields})
    };
    both_ways(&[(side(9), side(4), Narrowing, Widening)]);
}

/// The server's constraints on every embedded resource determine what one can contain.
#[test]
fn an_embedded_resource_has_a_kind_and_metadata_that_the_server_accepts() {
    let resource = |meta: Value, most: u32| {
        let mut fields = json!({"d": {"type": "string", "maxLength": most}});
        fields.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": fields})
    };
    let text = |keyword: &str, value: Value| json!({"type": "string", keyword: value});
    let metadata = |field: &str, schema: Value| json!({"metadata": {"type": "object", "properties": {field: schema}}});
    for (meta, expected) in [
        (json!({"kind": text("enum", json!(["Ingress"]))}), Narrowing),
        (json!({"apiVersion": text("pattern", json!("^[a-z]+$"))}), Narrowing),
        (json!({"kind": text("format", json!("uri"))}), Equal),
        (json!({"kind": text("enum", json!(["a b", "1"]))}), Equal),
        (json!({"apiVersion": text("format", json!("cidr")), "kind": text("maxLength", json!(0))}), Equal),
    ] {
        both_ways(&[(resource(meta.clone(), 9), resource(meta, 4), expected, Widening)]);
    }
    for (field, live, desired, expected) in [
        ("deletionTimestamp", json!({"type": "string"}), text("maxLength", json!(20)), Equal),
        ("deletionTimestamp", json!({"type": "string"}), text("maxLength", json!(19)), Narrowing),
        (
            "finalizers",
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
            Equal,
        ),
        ("generation", json!({"type": "integer"}), json!({"type": "integer", "minimum": 0}), Equal),
        ("name", json!({"type": "string"}), text("minLength", json!(2)), Narrowing),
    ] {
        both_ways(&[(resource(metadata(field, live), 9), resource(metadata(field, desired), 9), expected, Widening)]);
    }
}

/// The server truncates a bound before it compares it with an integer: `minimum: 1.5` accepts 1.
#[test]
fn a_rule_meets_the_integers_that_a_fraction_s_bound_lets_through() {
    let side = |rules: Value| {
        let bounded = json!({"type": "number", "minimum": 1.5, "maximum": 1});
        json!({"type": "object", "properties": {"a": bounded}, "x-kubernetes-validations": rules})
    };
    both_ways(&[(side(json!([])), side(json!([{"rule": "!has(self.a)"}])), Narrowing, Widening)]);
}

/// A null is kept if no schema names its field, and dropped if a schema that is not nullable does.
#[test]
fn a_null_is_dropped_by_a_schema_that_only_names_its_field() {
    let side =
        |named: Value| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": named});
    let named = |nullable: bool| json!({"a": {"x-kubernetes-preserve-unknown-fields": true, "nullable": nullable}});
    both_ways(&[
        (side(json!({})), side(named(false)), DataLoss, Widening),
        (side(json!({})), side(named(true)), Equal, Equal),
    ]);
}

/// `int32` bounds integers, but not numbers.
#[test]
fn the_meaning_of_a_format_depends_on_the_type() {
    let side = |kind: &str| json!({"type": kind, "format": "int32", "enum": [1, 2_147_483_648_u64], "minimum": 0});
    both_ways(&[(side("integer"), side("number"), Widening, Narrowing)]);
}

/// Without a type, a format accepts strings but not objects.
#[test]
fn a_format_without_a_type_refuses_objects() {
    let format = json!({"x-kubernetes-preserve-unknown-fields": true, "format": "uri"});
    both_ways(&[(json!({"type": "object"}), format, Incomparable, Incomparable)]);
}

/// The server keeps all fields of metadata, named or not.
#[test]
fn metadata_has_fields_that_no_schema_names() {
    let side = |metadata: Value| json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"metadata": metadata}});
    let metadata = |rest: Value| {
        let mut schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        side(schema)
    };
    let any = side(json!({"type": "object"}));
    let entries = side(json!({"type": "object", "additionalProperties": {"type": "string", "minLength": 3}}));
    for (live, desired) in [(metadata(json!({})), metadata(json!({"maxProperties": 2}))), (any, entries)] {
        let proof = proof_of(&whole(&live), &whole(&desired));
        assert!(!matches!(proof.verdict, Equal | Widening), "{proof:#?}");
    }
}

/// A live schema that takes anything, and a desired one that describes it in thousands of nodes.
#[test]
fn breakage_of_unknown_fields_is_reported_once_at_the_node_that_accepted_them() {
    let text = || json!({"type": "string"});
    let fields = |field: &dyn Fn() -> Value| -> Value { (0..30).map(|n| (format!("f{n}"), field())).collect() };
    let leaf = || json!({"type": "object", "properties": fields(&text)});
    let middle = || json!({"type": "object", "properties": fields(&leaf)});
    let spec = |spec: Value| json!({"type": "object", "properties": {"spec": spec}});
    let live = spec(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    let desired = spec(json!({"type": "object", "properties": fields(&middle)}));
    let proof = prove(&version(&live), &version(&desired), Limits::default());
    assert_eq!((proof.verdict, proof.is_complete), (DataLoss, true), "{}", proof.reason);
    let open: Vec<&NodeProof> = proof.nodes.iter().filter(|node| node.is_of_all_below).collect();
    assert_eq!(open.len(), 30);
    assert!(open.iter().all(|node| node.verdict == DataLoss && !node.witnesses.is_empty()));
    // The nodes below, 27,900 of them, have no proof of their own, in either direction, and cost next to nothing.
    assert_eq!(proof.nodes.len(), 31);
    assert!(proof.steps < 10_000, "{}", proof.steps);
}

/// If an open node still accepts what it accepted, that does not decide the nodes below.
#[test]
fn nodes_below_a_node_with_unknown_fields_are_judged_if_it_breaks_nothing_itself() {
    let anything =
        |named: Value| json!({"nullable": true, "x-kubernetes-preserve-unknown-fields": true, "properties": named});
    let spec = |spec: Value| json!({"type": "object", "properties": {"spec": spec}});
    let live = spec(anything(json!({})));
    let desired = spec(anything(json!({"a": anything(json!({"b": anything(json!({"c": {"type": "integer"}}))}))})));
    let proof = prove(&version(&live), &version(&desired), Limits::default());
    // Live knows no node below `spec.a`.
    let nodes: Vec<(&str, SchemaRelation)> =
        proof.nodes.iter().map(|node| (node.path.as_str(), node.verdict)).collect();
    assert_eq!((nodes, proof.verdict), (vec![("^.spec.a", Narrowing)], Narrowing));
}

/// Breaks are reported where live has a node: a map that it does not describe is not one, and a default hides nothing.
#[test]
fn described_fields_below_a_node_with_unknown_fields_are_judged_themselves() {
    let open = |rest: Value| {
        let mut schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!({"type": "object", "properties": {"m": schema}})
    };
    let closed = |entry: Value| json!({"type": "object", "properties": {"m": {"type": "object", "additionalProperties": entry}}});
    let inner = || json!({"type": "object", "properties": {"k": {"type": "string"}}});
    let any = || json!({"x-kubernetes-preserve-unknown-fields": true, "nullable": true});
    for (desired, path, verdict) in [
        (closed(inner()), "^.m", DataLoss),
        (closed(json!({"type": "integer"})), "^.m", Narrowing),
        (closed(any()), "^.m", Equal),
        (open(json!({"properties": {"a": inner()}})), "^.m.a", DataLoss),
        (open(json!({"properties": {"a": {"type": "integer"}}})), "^.m.a", Narrowing),
        (open(json!({"properties": {"a": any()}})), "^.m.a", Equal),
        (open(json!({"default": {"z": 1}, "properties": {"a": inner()}})), "^.m.a", DataLoss),
        (
            open(json!({"properties": {"a": {"x-kubernetes-preserve-unknown-fields": true, "nullable": true,
                "default": {}, "properties": {"b": {"type": "integer"}}}}})),
            "^.m.a",
            Narrowing,
        ),
    ] {
        let live = open(json!({}));
        let proof = prove(&version(&live), &version(&desired), Limits::default());
        let found = proof.nodes.iter().find(|node| node.path == path).map(|node| node.verdict);
        println!("{desired}: {:?}", proof.nodes);
        assert_eq!(found.unwrap_or(Equal), verdict, "{desired}");
    }
}

/// A default is more than a different value: it can make the enclosing object invalid, or change what its rules see.
#[test]
fn a_default_that_has_the_object_refused_breaks_more_than_behaviour() {
    let object = |rest: Value, b: Option<Value>| {
        let mut schema = json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}});
        schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        if let Some(b) = b {
            schema["properties"]["b"] = b;
        }
        json!({"type": "object", "properties": {"s": schema}})
    };
    let text = || Some(json!({"type": "string", "maxLength": 9}));
    let filled = || Some(json!({"type": "string", "maxLength": 9, "default": "x"}));
    let rule = |rule: &str| json!({"x-kubernetes-validations": [{"rule": rule}]});
    let one_of = || json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
    let at_most = || json!({"maxProperties": 1});
    let not_both = || json!({"not": {"required": ["a", "b"]}});
    let either = || rule("!(has(self.a) && has(self.b))");
    let not_equal = || rule("!has(self.a) || !has(self.b) || self.a != self.b");
    let mut failed = Vec::new();
    for (live, desired) in [
        (object(at_most(), None), object(at_most(), filled())),
        (object(at_most(), text()), object(at_most(), filled())),
        (object(one_of(), text()), object(one_of(), filled())),
        (object(not_both(), text()), object(not_both(), filled())),
        (object(json!({}), None), object(either(), filled())),
        (object(either(), text()), object(either(), filled())),
        (object(not_equal(), text()), object(not_equal(), filled())),
    ] {
        let proof = prove(&version(&live), &version(&desired), Limits::default());
        if !proof.breaks.contains(&AffectedParty::StoredObjects) {
            failed.push(format!("{desired}: {:?}", proof.nodes));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// A default can make an item equal to one that has the value of its own.
#[test]
fn a_default_that_makes_items_duplicates_has_the_object_refused() {
    let list = |kind: &str, item: Value| json!({"type": "array", "x-kubernetes-list-type": kind, "items": item});
    let map = |v: Value| {
        let fields = json!({"k": {"type": "string"}, "v": v});
        let mut list = list("map", json!({"type": "object", "required": ["k"], "properties": fields}));
        list["x-kubernetes-list-map-keys"] = json!(["k", "v"]);
        list
    };
    let set = |v: Value| {
        list(
            "set",
            json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"k": {"type": "string"}, "v": v}}),
        )
    };
    let filled = |default: &str| json!({"type": "string", "default": default});
    let text = || json!({"type": "string"});
    let mut short = map(filled("U"));
    short["maxItems"] = json!(1);
    let inner = |v: Value| json!({"type": "object", "properties": {"w": v}});
    let other =
        |v: Value| list("map", json!({"type": "object", "required": ["k"], "properties": {"k": text(), "v": v}}));
    let mut keyed = [other(filled("T")), other(filled("U"))];
    keyed.iter_mut().for_each(|list| list["x-kubernetes-list-map-keys"] = json!(["k"]));
    let [keyed, keyed_after] = keyed;
    let only = |default: &str, options: Value| map(json!({"type": "string", "default": default, "enum": options}));
    for (live, desired, verdict, breaks) in [
        (map(filled("T")), map(filled("U")), Incomparable, vec![AffectedParty::Writers, AffectedParty::Behaviour]),
        (set(text()), set(filled("U")), Narrowing, vec![AffectedParty::Writers, AffectedParty::Behaviour]),
        (set(filled("T")), set(filled("U")), Incomparable, vec![AffectedParty::Writers, AffectedParty::Behaviour]),
        (set(inner(text())), set(inner(filled("U"))), Undecided, vec![AffectedParty::Behaviour]),
        // No key, and no list of two items.
        (keyed, keyed_after, Narrowing, vec![AffectedParty::Behaviour]),
        (
            {
                let mut one = map(filled("T"));
                one["maxItems"] = json!(1);
                one
            },
            short,
            Narrowing,
            vec![AffectedParty::Behaviour],
        ),
        // No item has had the new default.
        (only("T", json!(["T"])), only("U", json!(["T", "U"])), Incomparable, vec![AffectedParty::Behaviour]),
    ] {
        let proof = proof_of(&whole(&live), &whole(&desired));
        assert_eq!((proof.verdict, proof.breaks), (verdict, breaks), "{live} → {desired}: {:#?}", proof.nodes);
    }
}

/// A changed default does not decide what else changed at the same node.
#[test]
fn a_default_hides_no_change_beside_it() {
    let of = |x: Value| json!({"type": "object", "properties": {"s": x}});
    let live = of(json!({"type": "object", "properties": {"f": {"type": "boolean", "default": false}}}));
    let desired = of(json!({"type": "object", "properties": {"f": {"type": "boolean"}}, "enum": [{}]}));
    let proof = prove(&version(&live), &version(&desired), Limits::default());
    let found = proof.nodes.iter().find(|node| node.path == "^.s").expect("the enum");
    assert!(found.verdict == Undecided || found.breaks.contains(&AffectedParty::Writers), "{found:#?}");
}
