//! Whatever exceeds a limit is undecided, and the reason names the limit.

use std::collections::BTreeSet;

use super::*;
use crate::nodes::MAX_MESSAGE;
use gantry_schema::Schema;

fn lists(depth: usize, least: u64, leaf: Value) -> Value {
    (0..depth).fold(leaf, |items, _| json!({"type": "array", "minItems": least, "items": items}))
}

fn text(longest: u64) -> Value {
    json!({"type": "string", "maxLength": longest})
}

/// The verdict and the reason of the only node that changed.
fn of_node(live: &Value, desired: &Value) -> (SchemaRelation, String) {
    let proof = proof_of(&whole(live), &whole(desired));
    assert_eq!(proof.nodes.len(), 1, "{proof:#?}");
    (proof.nodes[0].verdict, proof.nodes[0].reason.clone())
}

#[test]
fn a_rule_that_is_hard_to_decide_leaves_steps_for_other_nodes() {
    let hard = |rule: &str| {
        json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}], "properties": {"b": text(9),
            "c": {"type": "integer"}, "d": {"type": "integer"},
            "m": {"type": "object", "maxProperties": 4, "additionalProperties": text(9)}}})
    };
    let sides = |rule: &str, fields: Value| {
        whole(&json!({"type": "object", "properties": {"h": hard(rule),
            "z": {"type": "object", "properties": fields}}}))
    };
    let live = sides("self.b != 'a' && !self.m.exists(x, x == 'a')", json!({"q": text(3)}));
    let added = "|| (!has(oldSelf.c) || self.c == oldSelf.c) || self.d > 2";
    for (rule, of_rule) in [
        ("self.b != 'a' && !self.m.exists(y, y == 'a')", Undecided),
        ("self.b != 'a' && !self.m.exists(x, x == 'a')", Widening),
    ] {
        let desired = sides(&format!("({rule}) {added}"), json!({"q": text(4), "r": text(3)}));
        let proof = proof_of(&live, &desired);
        let verdicts: Vec<(&str, SchemaRelation)> =
            proof.nodes.iter().map(|node| (node.path.as_str(), node.verdict)).collect();
        assert!(proof.is_complete);
        let below = "^.spec.f.z.q";
        assert!(verdicts.contains(&("^.spec.f.h", of_rule)), "{verdicts:?}");
        assert!(verdicts.contains(&(below, Widening)), "{verdicts:?}");
        assert!(verdicts.iter().all(|(path, verdict)| *verdict != Undecided || *path == "^.spec.f.h"), "{verdicts:?}");
    }
}

#[test]
fn a_value_has_a_greatest_weight() {
    assert_eq!(of_node(&lists(1, 9999, text(5)), &lists(1, 9999, text(4))).0, Narrowing);
    for (depth, least) in [(2, 9999), (3, 9999), (12, 64)] {
        let (verdict, reason) = of_node(&lists(depth, least, text(5)), &lists(depth, least, text(4)));
        assert_eq!(verdict, Undecided);
        assert!(reason.ends_with("a value too large to build"), "{reason}");
    }
    let long = |least: u64| json!({"type": "string", "minLength": least});
    for least in [5 << 20, 1 << 50] {
        assert_eq!(of_node(&long(least), &long(least + 1)).0, Undecided);
    }
    // A single text is built; a list of ten thousand is not.
    assert_eq!(of_node(&lists(1, 9999, long(1000)), &lists(1, 9999, long(1001))).0, Undecided);
}

#[test]
fn a_witness_that_is_too_large_to_print_is_left_out() {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let mut bounded = list.clone();
    bounded["maxItems"] = json!(90_000);
    let proof = proof_of(&whole(&list), &whole(&bounded));
    let [node] = &proof.nodes[..] else { panic!("{} nodes", proof.nodes.len()) };
    assert_eq!((node.verdict, node.witnesses.len()), (Narrowing, 0));
    assert!(node.reason.ends_with("an object that shows it is too large to print"), "{}", node.reason);
    // What no server can store is no witness.
    let values: Vec<String> = (0..3).map(|n| format!("{}{n}", "x".repeat(3 << 20))).collect();
    let of = |values: &[String]| json!({"type": "string", "enum": values});
    assert_eq!(proof_of(&whole(&of(&values)), &whole(&of(&values[1..]))).verdict, Undecided);
    // A witness that is shown has a message of readable length.
    let values: Vec<String> = (0..3000).map(|n| format!("value{n}")).collect();
    let proof = proof_of(&whole(&of(&values)), &whole(&of(&values[1..])));
    let witness = &proof.nodes[0].witnesses[0];
    assert_eq!(witness.object["spec"]["f"], values[0]);
    assert_eq!(witness.message.chars().count(), MAX_MESSAGE + 1);
}

#[test]
fn fields_whose_common_witness_is_too_large_are_decided_together() {
    let fields = |required: usize| {
        let fields: Map<String, Value> = (0..500).map(|n| (format!("f{n}"), text(3))).collect();
        let required: Vec<String> = fields.keys().take(required).cloned().collect();
        json!({"type": "object", "properties": fields, "required": required})
    };
    let (live, desired) = (whole(&fields(0)), whole(&fields(500)));
    let proof = proof_of(&live, &desired);
    assert_eq!(proof.verdict, Narrowing);
    assert!(proof.steps < 100_000, "{} steps", proof.steps);
    let absent = json!({"type": "object", "maxProperties": 0, "properties": fields(0)["properties"]});
    let never = json!({"type": "object", "maxProperties": 0, "properties": fields(0)["properties"],
        "required": fields(500)["required"]});
    assert_eq!(of_node(&absent, &never).0, Narrowing);
}

#[test]
fn hundreds_of_alternatives_are_compared_within_the_limit() {
    let patterns: Vec<Value> = (0..300).map(|n| json!({"pattern": format!("^a{n}b$")})).collect();
    let of = |patterns: &[Value]| json!({"type": "string", "oneOf": patterns});
    let limits = Limits { steps: 20_000 };
    let (live, desired) = (whole(&of(&patterns)), whole(&of(&patterns[1..])));
    let proof = prove(&version(&live), &version(&desired), limits);
    assert!(proof.steps <= limits.steps && !matches!(proof.verdict, Equal | Widening), "{proof:?}");
}

#[test]
fn validation_counts_towards_the_same_limit_of_steps() {
    let branches: Vec<Value> = (0..1000).map(|n| json!({"enum": [n]})).collect();
    let schema = Schema::compile(&json!({"type": "integer", "anyOf": branches})).expect("a schema");
    let mut steps = 10_000;
    assert_eq!(schema.accepts_value_within(&json!(999), &mut steps), Some(true));
    assert!((8_000..9_500).contains(&steps), "{steps} are left");
    let mut steps = 500;
    assert_eq!(schema.accepts_value_within(&json!(999), &mut steps), None);
    assert_eq!(steps, 0);
    // An object that is certainly invalid needs no more steps.
    assert_eq!(schema.accepts_value_within(&json!("a"), &mut 500), Some(false));
}

#[test]
fn defaults_that_multiply_are_refused_before_they_are_filled_in() {
    let of = |depth: usize| {
        (0..depth).fold(json!({"type": "object"}), |items, _| {
            let list = json!({"type": "array", "default": vec![json!({}); 100], "items": items});
            json!({"type": "object", "properties": {"d": list}})
        })
    };
    assert!(Schema::compile(&of(2)).is_ok());
    let error = Schema::compile(&of(4)).expect_err("too large").to_string();
    assert!(error.ends_with("default: more than 16 MiB are filled in"), "{error}");
}

#[test]
fn many_rules_are_compared_within_the_limit() {
    let of = |operator: &str| {
        let rule = |n: u32| json!({"rule": format!("self.x {operator} {n}")});
        let rules: Vec<Value> = (0..100).map(rule).collect();
        json!({"type": "object", "properties": {"x": {"type": "integer"}}, "x-kubernetes-validations": rules})
    };
    let proof = proof_of(&whole(&of("!=")), &whole(&of("<")));
    assert!(proof.steps <= Limits::default().steps && !matches!(proof.verdict, Equal | Widening), "{proof:?}");
    let mut more = of("!=");
    more["x-kubernetes-validations"].as_array_mut().expect("a list").reverse();
    assert_eq!(proof_of(&whole(&of("!=")), &whole(&more)).verdict, Equal);
}

/// A node that only one direction reaches within the limit is not reported as safe.
#[test]
fn a_node_that_was_not_reached_is_undecided() {
    let side = |rules: Value| {
        let leaf = |n: usize| json!({"type": "string", "maxLength": 100 - n, "x-kubernetes-validations": rules});
        let group = || (0..9).map(|n| (format!("f{n}"), leaf(n))).collect::<Map<String, Value>>();
        let groups: Map<String, Value> =
            (0..9).map(|n| (format!("g{n}"), json!({"type": "object", "properties": group()}))).collect();
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": groups}}})
    };
    let (live, desired) = (side(json!([])), side(json!([{"rule": "self != ''"}])));
    let mut reached = BTreeSet::new();
    for steps in (1..40).map(|n| n * 10_000) {
        let proof = prove(&version(&live), &version(&desired), Limits { steps });
        let safe = proof.nodes.iter().filter(|node| matches!(node.verdict, Equal | Widening));
        assert_eq!(safe.map(|node| &node.path).collect::<Vec<_>>(), Vec::<&String>::new(), "{steps} steps");
        reached.insert(proof.nodes.iter().filter(|node| node.verdict == Narrowing).count());
    }
    assert!(reached.len() > 2, "{reached:?}");
}

#[test]
fn a_proof_beyond_its_limit_is_undecided() {
    let (live, desired) = (whole(&json!({"type": "string"})), whole(&json!({"type": "string", "maxLength": 3})));
    let proof = prove(&version(&live), &version(&desired), Limits { steps: 20 });
    assert_eq!(proof.verdict, Undecided);
    assert!(proof.reason.contains("limit"), "{}", proof.reason);
}

/// `anyOf` in `anyOf`, patterns that blow up, a hundred rules: on both sides, and different.
fn hostile(step: usize) -> Value {
    let mut nested = json!({"required": ["f0"]});
    for depth in 0..12 {
        let other = json!({"required": [format!("f{depth}"), format!("f{}", depth + step + 1)]});
        nested = json!({"anyOf": [nested.clone(), other, {"not": nested}]});
    }
    let fields: Map<String, Value> = (0..16)
        .map(|n| (format!("f{n}"), json!({"type": "string", "pattern": format!("(a|b)*a(a|b){{{}}}$", 12 + n + step)})))
        .collect();
    let rules: Vec<Value> = (0..100)
        .map(|n| json!({"rule": format!("!has(self.f{}) || self.f{}.size() < {}", n % 16, n % 13, n + step)}))
        .collect();
    json!({"type": "object", "properties": fields, "anyOf": [nested], "x-kubernetes-validations": rules})
}

#[test]
fn schemas_made_to_blow_up_end_and_are_not_called_safe() {
    let (live, desired) = (whole(&hostile(0)), whole(&hostile(1)));
    let limits = Limits { steps: 200_000 };
    let proof = prove(&version(&live), &version(&desired), limits);
    assert!(proof.steps <= limits.steps, "{}", proof.steps);
    assert!(!matches!(proof.verdict, Equal | Widening), "{:?}", proof.verdict);
    assert!(proof.nodes.iter().any(|node| node.verdict == Undecided && !node.reason.is_empty()), "{:#?}", proof.nodes);
}

#[test]
fn the_limit_of_a_crd_depends_on_the_number_of_crds_and_versions() {
    let steps = |crds, versions| Limits::shared(crds, versions).steps;
    assert_eq!(steps(1, 1), Limits::default().steps);
    assert!(steps(10, 1) >= steps(100, 1) && steps(100, 1) >= steps(1_000, 1));
    assert!(steps(100_000, 1) > 0 && steps(1, 10) < steps(1, 1));
    // All versions of a CRD together get no more than its share.
    assert!(steps(1, 1_000) * 1_000 <= steps(1, 3) * 3);
}

/// Changes of many fields of one object share the object and its validation.
#[test]
fn defaults_of_many_fields_take_steps_in_proportion_to_the_fields() {
    let steps = |count: usize, default: [Option<&str>; 2]| {
        let [live, desired] = default.map(|default| {
            let field = default.map_or_else(|| json!({"type": "string"}), |x| json!({"type": "string", "default": x}));
            let fields: Map<String, Value> = (0..count).map(|n| (format!("f{n}"), field.clone())).collect();
            whole(&json!({"type": "object", "properties": fields}))
        });
        let proof = proof_of(&live, &desired);
        assert_eq!((proof.verdict, proof.nodes.len()), (Narrowing, count));
        assert!(proof.nodes.iter().all(|node| node.verdict == Narrowing), "{count}");
        proof.steps
    };
    for default in [[None, Some("x")], [Some("x"), None], [Some("x"), Some("y")]] {
        let (few, many) = (steps(100, default), steps(800, default));
        assert!(many < 10 * few, "{few} and {many} steps");
    }
}

/// The smallest value of nested lists doubles with each level.
#[test]
fn a_value_of_nested_lists_is_built_a_few_times_only() {
    let nested = |levels: usize, leaf: Value| {
        (0..levels).fold(leaf, |items, _| json!({"type": "array", "minItems": 2, "items": items}))
    };
    let proof = |levels: usize| {
        let (live, desired) = (nested(levels, json!({"type": "string"})), nested(levels, text(3)));
        proof_of(&whole(&live), &whole(&desired))
    };
    let (small, large) = (proof(8), proof(12));
    assert_eq!((small.verdict, large.verdict), (Narrowing, Narrowing));
    assert!(large.steps < 30 * small.steps, "{} and {} steps", small.steps, large.steps);
}

/// A witness of one field lacks the others, and the server would name each of them.
#[test]
fn bounds_of_fields_that_become_required_take_steps_in_proportion_to_the_fields() {
    let steps = |count: usize| {
        let fields =
            |field: Value| (0..count).map(|n| (format!("f{n}"), field.clone())).collect::<Map<String, Value>>();
        let required: Vec<String> = (0..count).step_by(2).map(|n| format!("f{n}")).collect();
        let live = json!({"type": "object", "properties": fields(json!({"type": "string"}))});
        let bounded = fields(json!({"type": "string", "minLength": 1}));
        let desired = json!({"type": "object", "required": required, "properties": bounded});
        let proof = proof_of(&whole(&live), &whole(&desired));
        assert!(proof.nodes.iter().all(|node| node.verdict == Narrowing), "{count}");
        assert_eq!(proof.nodes.len(), count + 1);
        proof.steps
    };
    let (few, many) = (steps(200), steps(1600));
    assert!(many < 10 * few, "{few} and {many} steps");
}

/// The smallest value of these lists has a million leaves, around each of the fields that change.
#[test]
fn values_too_large_to_build_are_not_begun() {
    let nested = |levels: usize, leaf: Value| {
        (0..levels).fold(leaf, |inner, _| {
            let fields = json!({"a": inner, "b": {"type": "string", "maxLength": 5}});
            let item = json!({"type": "object", "required": ["a"], "properties": fields});
            json!({"type": "array", "minItems": 2, "items": item})
        })
    };
    let shorter = |schema: &Value| {
        let text = schema.to_string().replace("\"maxLength\":5", "\"maxLength\":4");
        serde_json::from_str(&text).expect("JSON")
    };
    for leaf in [text(5), lists(20, 2, text(5))] {
        let live = nested(20, leaf);
        let proof = proof_of(&whole(&live), &whole(&shorter(&live)));
        assert_eq!((proof.verdict, proof.nodes.len()), (Undecided, 21));
        let is_too_large = |node: &NodeProof| node.reason.ends_with("a value too large to build");
        assert!(proof.nodes.iter().all(is_too_large), "{:#?}", proof.nodes);
        assert!(proof.steps < 5_000, "{} steps", proof.steps);
    }
    // Without an item there is no list: what is impossible is still proven.
    let never = |most: u64| lists(20, 2, json!({"type": "string", "minLength": 3, "maxLength": most}));
    assert_eq!(proof_of(&whole(&never(2)), &whole(&never(1))).verdict, Equal);
}
