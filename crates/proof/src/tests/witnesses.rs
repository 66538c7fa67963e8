//! The witnesses that show a verdict, and how they are found.

use super::*;
use super::{DataLoss, Narrowing, Undecided, Widening};

#[test]
fn a_witness_is_refused_at_the_node_that_it_is_for() {
    let side = |versions: Value, format: Value, rule: &str| {
        json!({"type": "object", "required": ["metadata", "spec"], "properties": {"spec":
            {"type": "object", "required": ["version"], "properties": {
            "version": {"type": "string", "enum": versions},
            "streams": {"type": "array", "items": {"type": "object", "properties": {"size": format}}},
            "labels": {"type": "object", "maxProperties": 9, "additionalProperties": {"type": "string"},
                "x-kubernetes-validations": [{"rule": rule}]},
        }}}})
    };
    let live = side(json!(["13", "14"]), json!({"type": "integer"}), "true");
    let desired = side(json!(["14", "15"]), json!({"type": "integer", "format": "int32"}), "self.all(k, k in ['a'])");
    let proof = proof_of(&live, &desired);
    for (path, text) in [
        ("^.spec.version", "spec.version: Unsupported value"),
        ("^.spec.streams.items.size", "format int32 in spec.streams[0].size"),
        ("^.spec.labels", "spec.labels: Invalid value"),
    ] {
        let node = proof.nodes.iter().find(|node| node.path == path).expect("a node");
        assert!(node.witnesses.iter().any(|witness| witness.message.contains(text)), "{node:#?}");
    }
}

#[test]
fn the_witness_of_a_removed_field_is_refused_nowhere_else() {
    let live = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let desired = json!({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]});
    let proof = proof_of(&whole(&live), &whole(&desired));
    let node = proof.nodes.iter().find(|node| node.path == "^.spec.f.a").expect("a node");
    assert_eq!(node.verdict, DataLoss, "{node:#?}");
}

/// Two rules that undo each other's repairs, defaults that rules require, and an `enum` below `allOf`.
#[test]
fn a_witness_is_built_where_rules_ask_for_much_around_it() {
    let text = |default: &str| json!({"type": "string", "default": default});
    let backend = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1},
        "kind": text("Service"), "group": text(""), "port": {"type": "integer", "minimum": 1}},
        "x-kubernetes-validations": [
            {"rule": "(size(self.group) == 0 && self.kind == 'Service') ? has(self.port) : true"}]});
    let sink = |wait: Value| {
        let kinds = json!({"enum": ["HTTP", "TCP"]});
        json!({"type": "object", "required": ["type"], "properties": {"wait": wait,
            "type": {"type": "string", "allOf": [kinds, kinds]}, "http": {"type": "object"},
            "backends": {"type": "array", "maxItems": 16, "items": backend}},
            "x-kubernetes-validations": [
                {"rule": "self.type == 'HTTP' || !has(self.http)"},
                {"rule": "has(self.backends) && self.backends.size() > 0"},
                {"rule": "has(self.backends) ? self.backends.all(b, b.kind == 'Service') : true"},
                {"rule": "has(self.backends) ? self.backends.all(b, b.group == '') : true"}]})
    };
    let settings = |wait: Value| {
        let sinks = json!({"type": "object", "properties": {"type": {"type": "string", "enum": ["ALS", "File"]},
            "als": sink(wait), "file": {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}}},
            "x-kubernetes-validations": [{"rule": "self.type == 'ALS' ? has(self.als) : !has(self.als)"},
                {"rule": "self.type == 'File' ? has(self.file) : !has(self.file)"}]});
        whole(&json!({"type": "array", "minItems": 1, "items": sinks}))
    };
    let proof =
        proof_of(&settings(json!({"type": "string"})), &settings(json!({"type": "string", "pattern": "^[0-9]+s$"})));
    assert_eq!(proof.verdict, Narrowing, "{proof:#?}");
    assert_eq!(proof.nodes[0].path, "^.spec.f.items.als.wait");
}

/// A list with too many items to solve one by one is built if the items are equal or differ only in a number.
#[test]
fn a_bound_on_a_long_list_is_shown() {
    let list = |more: Value| {
        let mut list = json!({"type": "array", "items": {"type": "string"}});
        list.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        list
    };
    let item = json!({"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}});
    let keyed = json!({"items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]});
    for of in [json!({}), json!({"x-kubernetes-list-type": "set"}), keyed] {
        let (open, mut bounded) = (list(of.clone()), list(of));
        bounded["maxItems"] = json!(2000);
        both_ways(&[(open, bounded, Narrowing, Widening)]);
    }
    let set = |max: u64| list(json!({"x-kubernetes-list-type": "set", "maxItems": max, "items": {"type": "integer"}}));
    both_ways(&[(set(1000), set(100), Narrowing, Widening)]);
    let huge = json!({"type": "array", "items": {"type": "string"}, "maxItems": 1_000_000});
    both_ways(&[(list(json!({})), huge, Undecided, Widening)]);
}

#[test]
fn a_rule_about_a_sum_that_list_bounds_keep_small_breaks_nothing() {
    let side = |most: usize, rules: Value| {
        let matches = json!({"type": "array", "maxItems": most, "items": {"type": "string"}});
        json!({"type": "object", "properties": {"routes": {"type": "array", "maxItems": 16,
            "items": {"type": "object", "properties": {"m": matches}}, "x-kubernetes-validations": rules}}})
    };
    let of = |n: usize| format!("(self.size() > {n} ? (has(self[{n}].m) ? self[{n}].m.size() : 0) : 0)");
    let rule = format!("{} <= 128", (0..16).map(of).collect::<Vec<_>>().join(" + "));
    let desired = side(64, json!([{"rule": rule}]));
    assert_eq!(proof_of(&side(8, json!([])), &desired).verdict, Widening);
    assert_ne!(proof_of(&side(9, json!([])), &desired).verdict, Widening);
}

#[test]
fn a_large_schema_that_differs_everywhere_is_decided_in_few_steps() {
    let leaf = |n: usize, step: usize| match n % 4 {
        0 => json!({"type": "string", "maxLength": 100 - step}),
        1 => json!({"type": "integer", "minimum": step}),
        2 => json!({"type": "string", "enum": ["a", "b", if step == 0 { "c" } else { "d" }]}),
        _ => json!({"type": "array", "maxItems": 20 - step, "items": {"type": "string"}}),
    };
    let side = |step: usize| -> Value {
        let group = || (0..50).map(|n| (format!("f{n}"), leaf(n, step))).collect::<Map<String, Value>>();
        let groups: Map<String, Value> =
            (0..20).map(|n| (format!("g{n}"), json!({"type": "object", "properties": group()}))).collect();
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": groups}}})
    };
    const LEAVES: usize = 1000;
    let limits = Limits { steps: 200 * LEAVES as u64 };
    let (live, desired) = (side(0), side(1));
    let proof = prove(&version(&live), &version(&desired), limits);
    assert_eq!(proof.nodes.len(), LEAVES);
    assert!(proof.nodes.iter().all(|node| !node.witnesses.is_empty()), "within {} steps", limits.steps);
}

/// A refusal of something else shows nothing about a default, even if the message happens to contain the field's name.
#[test]
fn a_refusal_beside_a_default_is_no_witness_of_it() {
    let side = |least: u32, field: Value| {
        let spec = json!({"type": "object", "properties": {"a": field}});
        let other = json!({"type": "string", "minLength": least});
        json!({"type": "object", "required": ["other"], "properties": {"spec": spec, "other": other}})
    };
    let live = side(1, json!({"type": "string", "default": "x"}));
    let desired = side(3, json!({"type": "string"}));
    let proof = proof_of(&live, &desired);
    let node = proof.nodes.iter().find(|node| node.path == "^.spec.a").expect("a node");
    let shown: Vec<Difference> = node.witnesses.iter().map(|witness| witness.desired).collect();
    assert_eq!(shown, [Difference::Defaulted], "{node:#?}");
}

/// An update changes one value; both sides accept what surrounds it, whatever their rules require.
#[test]
fn a_field_that_may_not_change_any_more_is_shown_by_an_update_of_it_alone() {
    let text = |rules: Value| json!({"type": "string", "x-kubernetes-validations": rules});
    let side = |name: Value, reference: Value, budget: Value| {
        let class = json!({"type": "object", "required": ["group", "kind"],
            "properties": {"group": text(name.clone()), "kind": text(name)}, "x-kubernetes-validations": reference});
        let spec = json!({"type": "object", "required": ["class", "after"], "properties": {"class": class,
            "after": {"type": "string", "enum": ["", "Never", "1s"]}, "budgets": {"type": "array",
                "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}}},
            "x-kubernetes-validations": budget});
        whole(&spec)
    };
    let live = side(json!([]), json!([]), json!([{"rule": "has(self.budgets) && self.budgets.size() > 0"}]));
    let desired = side(
        json!([{"rule": "self != ''"}]),
        json!([{"rule": "self.group == oldSelf.group"}, {"rule": "self.kind == oldSelf.kind"}]),
        json!([{"rule": "has(self.budgets) && self.budgets.all(x, has(x.a) == has(x.b))"},
            {"rule": "self.after != ''"}]),
    );
    let proof = proof_of(&live, &desired);
    let node = proof.nodes.iter().find(|node| node.path == "^.spec.f.class").expect("a node");
    assert_eq!(node.verdict, Narrowing, "{node:#?}");
    let witness = &node.witnesses[0];
    let (mut before, after) = (witness.old_object.clone().expect("an update"), &witness.object);
    before["spec"]["f"]["class"] = after["spec"]["f"]["class"].clone();
    assert_eq!(&before, after, "nothing else changes");
}

#[test]
fn an_object_of_one_optional_field_may_not_change_any_more() {
    let reference = |rules: Value| {
        let name = json!({"type": "string", "default": ""});
        let cluster = json!({"type": "object", "properties": {"name": name}, "x-kubernetes-map-type": "atomic",
            "x-kubernetes-validations": rules});
        let target = json!({"type": "object", "properties": {"all": {"type": "boolean"}, "objects": {"type": "array", "items": {"type": "string"}}},
            "x-kubernetes-validations": [{"rule": "(has(self.all) && !has(self.objects)) || (!has(self.all) && has(self.objects))"}]});
        whole(
            &json!({"type": "object", "required": ["cluster", "target"], "properties": {"cluster": cluster, "target": target}}),
        )
    };
    let proof = proof_of(&reference(json!([])), &reference(json!([{"rule": "self == oldSelf"}])));
    assert_eq!(proof.verdict, Narrowing, "{proof:#?}");
    assert!(proof.nodes[0].witnesses[0].old_object.is_some());
}

/// Inside a map too, a refusal of something else is not a witness.
#[test]
fn a_witness_in_a_map_is_refused_at_the_node_that_it_is_for() {
    let side = |least: u32, most: u32| {
        let text = |keyword: &str, bound: u32| json!({"type": "string", keyword: bound});
        let entry = json!({"type": "object", "required": ["first"],
            "properties": {"later": text("maxLength", most), "first": text("minLength", least)}});
        json!({"type": "object", "additionalProperties": entry})
    };
    let proof = proof_of(&whole(&side(1, 9)), &whole(&side(3, 5)));
    for field in ["first", "later"] {
        let path = format!("^.spec.f.additionalProperties.{field}");
        let node = proof.nodes.iter().find(|node| node.path == path).expect("a node");
        assert!(!node.witnesses.is_empty(), "{node:#?}");
        for witness in &node.witnesses {
            assert!(witness.message.contains(&format!(".{field}: ")), "{node:#?}");
        }
    }
}

/// A refusal by a branch of `allOf`, `anyOf` or `oneOf` has no path in the server's message, but it has a place.
#[test]
fn a_refusal_by_a_branch_is_a_witness_of_its_node_alone() {
    let side = |most: u32, branch: Value| {
        json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "not": branch}, "b": {"type": "string", "maxLength": most}}})
    };
    let live = side(9, json!({"maxLength": 0}));
    let desired = side(5, json!({"maxLength": 2}));
    let proof = proof_of(&whole(&live), &whole(&desired));
    let node = |path: &str| proof.nodes.iter().find(|node| node.path == path).expect("a node");
    for (path, text) in [("^.spec.f.b", "spec.f.b: Too long"), ("^.spec.f.a", "\"spec.f.a\" must not validate")] {
        let node = node(path);
        assert!(!node.witnesses.is_empty(), "{node:#?}");
        assert!(node.witnesses.iter().all(|witness| witness.message.contains(text)), "{node:#?}");
    }
}

#[test]
fn the_witness_of_a_node_is_refused_by_that_node_and_not_by_one_below_it() {
    let fields = |name: Value| json!({"name": name, "least": {"type": "integer"}, "most": {"type": "integer"}});
    let text = json!({"type": "string"});
    let live = json!({"type": "object", "properties": fields(text.clone()), "required": ["name"]});
    let mut desired = live.clone();
    desired["properties"]["name"] = json!({"type": "string", "minLength": 1});
    desired["x-kubernetes-validations"] =
        json!([{"rule": "!has(self.least) || !has(self.most) || self.least <= self.most", "message": "upside down"}]);
    let found = proof_of(&whole(&live), &whole(&desired));
    for (path, message) in [("^.spec.f", "upside down"), ("^.spec.f.name", "at least 1 chars")] {
        let node = found.nodes.iter().find(|node| node.path == path).expect("a node that changed");
        assert!(node.witnesses[0].message.contains(message), "{path}: {:?}", node.witnesses);
    }
}

/// A default is read from a stored object, whatever else makes desired refuse to write it.
#[test]
fn a_default_is_read_from_stored_objects_that_desired_refuses() {
    let spec = |fields: Value, required: &[&str]| json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields, "required": required}}});
    let text = || json!({"type": "string"});
    let filled = || json!({"type": "string", "default": "x"});
    for (live, desired) in [
        // `z` becomes required, gets another type, or a value that it must have.
        (
            spec(json!({"p": text(), "z": text()}), &["z"]),
            spec(json!({"p": filled(), "z": {"type": "integer"}}), &["z"]),
        ),
        (
            spec(json!({"p": {"type": "object", "properties": {"p": text()}}}), &[]),
            spec(json!({"p": {"type": "object", "required": ["r"], "properties": {"p": filled(), "r": text()}}}), &[]),
        ),
        (
            spec(json!({"p": text(), "z": {"type": "string", "maxLength": 3}}), &["z"]),
            spec(json!({"p": filled(), "z": {"type": "string", "minLength": 4}}), &["z"]),
        ),
    ] {
        let proof = proof_of(&live, &desired);
        let node = proof.nodes.iter().find(|node| node.reason.starts_with("default: ")).expect("a node");
        assert_eq!((node.verdict, &node.breaks[..]), (Narrowing, &[AffectedParty::Behaviour][..]), "{proof:#?}");
        let witness = &node.witnesses[0];
        assert!(witness.is_read_only && witness.desired == Difference::Defaulted, "{witness:?}");
        assert!(witness.message.contains(" when a stored object is read; writing it is refused: "), "{witness:?}");
    }
    // If desired accepts an object without the field, that one is the witness.
    let (live, desired) =
        (spec(json!({"p": text(), "z": text()}), &[]), spec(json!({"p": filled(), "z": text()}), &["z"]));
    let proof = proof_of(&live, &desired);
    let node = proof.nodes.iter().find(|node| node.path == "^.spec.p").expect("a node");
    assert!(!node.witnesses[0].is_read_only, "{node:#?}");
}
