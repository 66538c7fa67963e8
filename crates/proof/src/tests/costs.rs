//! Rules that hold for every object, but can cost more than the server allows when one is written.

use super::*;

fn list(most: Option<u64>, rules: &[&str]) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    let item = json!({"type": "string", "maxLength": 8});
    let mut list = json!({"type": "array", "x-kubernetes-list-type": "set", "items": item});
    if let Some(most) = most {
        list["maxItems"] = json!(most);
    }
    if !rules.is_empty() {
        list["x-kubernetes-validations"] = json!(rules);
    }
    list
}

const UNIQUE: &str = "self.all(x, self.exists_one(y, x == y))";

#[test]
fn a_rule_that_may_exceed_the_limit_is_not_proven() {
    both_ways(&[
        (list(Some(50), &[]), list(Some(50), &[UNIQUE]), Equal, Equal),
        (list(Some(600), &[]), list(Some(600), &[UNIQUE]), Undecided, Widening),
        (list(None, &[]), list(None, &[UNIQUE]), Undecided, Widening),
        // Live's bound counts, until it is gone.
        (list(Some(50), &[]), list(Some(600), &[UNIQUE]), Widening, Narrowing),
        // A rule that live has too costs what it did before.
        (list(Some(600), &[UNIQUE]), list(Some(600), &[UNIQUE, "self.size() <= 600"]), Equal, Equal),
    ]);
}

#[test]
fn all_rules_of_an_object_share_a_limit() {
    let rules: Vec<String> = (0..30).map(|at| format!("self.all(x, self.all(y, {at} == {at}))")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    both_ways(&[
        (list(Some(100), &[]), list(Some(100), &rules[..3]), Equal, Equal),
        (list(Some(300), &[]), list(Some(300), &rules), Undecided, Widening),
    ]);
    let proof = proof_of(&whole(&list(Some(300), &[])), &whole(&list(Some(300), &rules)));
    assert!(proof.reason.contains("together"), "{}", proof.reason);
}

#[test]
fn a_rule_on_a_field_that_no_live_object_can_have_adds_no_cost() {
    let object = |fields: Value| json!({"type": "object", "properties": fields});
    let text = json!({"type": "string"});
    let costly = list(Some(600), &[UNIQUE]);
    let of_both = json!({"type": "object", "properties": {"a": text, "b": list(Some(600), &[])},
        "x-kubernetes-validations": [{"rule": "!has(self.b) || self.b.all(x, self.b.exists_one(y, x == y))"}]});
    both_ways(&[
        (object(json!({"a": text})), object(json!({"a": text, "b": costly})), Widening, DataLoss),
        (object(json!({"a": text})), of_both, Widening, DataLoss),
    ]);
}

/// Each item of the list costs little, and a request has room for so many.
#[test]
fn a_request_limits_what_has_no_bound() {
    let of = |rules: Value| {
        let fields = json!({"name": {"type": "string", "maxLength": 63}, "port": {"type": "integer"}});
        let item = json!({"type": "object", "required": ["name", "port"], "properties": fields,
            "x-kubernetes-validations": rules});
        let lists =
            ["a", "b", "c", "d", "e", "f"].map(|name| (name.to_owned(), json!({"type": "array", "items": item})));
        json!({"type": "object", "properties": Map::from_iter(lists)})
    };
    let rule = json!([{"rule": "!has(self.name) || self.name.size() <= 63"}]);
    both_ways(&[(of(json!([])), of(rule), Equal, Equal)]);
}
