//! Rules that would exhaust time, memory or the stack: they must terminate and be undecided.

use serde_json::{Value, json};

use super::{ObjectValidationResult, Schema};

/// Validates an object that contains a list of 500 strings of 20 bytes and a string of 2,000 bytes.
fn validate(rules: &[&str]) -> ObjectValidationResult {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    let schema = json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
        "list": {"type": "array", "items": {"type": "string"}}, "text": {"type": "string"}}});
    let list = vec!["abcdefghijklmnopqrst"; 500];
    let mut object = json!({"metadata": {"name": "x"}, "list": list, "text": "a".repeat(2000)});
    Schema::compile(&schema).expect("a schema").process(&mut object, None).outcome
}

#[test]
fn a_rule_that_takes_too_many_steps_is_undecided() {
    for rule in [
        // 500 to the power of four and of eight.
        "self.list.all(a, self.list.all(b, self.list.all(c, self.list.all(d, a == b || c == d || a < d))))",
        "self.list.map(a, self.list.map(b, self.list.map(c, self.list))).size() > 0",
        "[self.list].map(l, l + l).map(l, l + l).map(l, l + l).map(l, l + l).map(l, l + l).map(l, l + l).map(l, l + l)\
         .map(l, l + l).map(l, l + l).map(l, l + l).map(l, l + l).map(l, l + l).map(l, l + l).all(l, l.size() > 0)",
        "[self.list.map(a, self.list)].map(l, l.flatten().map(a, l)).all(l, l.flatten().size() > 0)",
        "lists.range(9223372036854775807).size() > 0",
        "lists.range(100000).distinct().size() > 0",
        "lists.range(100000).map(i, 100000 - i).sort().size() > 0",
        // Strings whose length is squared repeatedly.
        "[self.text].map(a, a.replace('a', a)).map(a, a.replace('a', a)).all(a, a.size() > 0)",
        "[self.text].map(a, a.replace('', a)).map(a, a.replace('', a)).all(a, a.size() > 0)",
        "[self.text].map(a, a.split('').map(i, a).join(a)).map(a, a.split('').map(i, a).join(a)).all(a, a.size() > 0)",
        "[self.text].map(a, a + a).map(a, '%s%s%s%s'.format([a, a, a, a])).map(a, a.split('')).map(l, l.map(i, l.map(j, l)))\
         .all(l, l.size() > 0)",
        "'%.2000000000f'.format([1.5]).size() > 0",
        // Patterns with large automata.
        "self.list.all(a, a.matches('((((a{100}){100}){100}){100}){100}'))",
        "self.text.matches('(((((a*)*)*)*)*)*(((((b?){50}){50}){50}){50})$')",
    ] {
        let outcome = validate(&[rule]);
        // An error that the server reports must not count as accepted either.
        assert!(!outcome.is_accepted(), "{rule}");
        if outcome.errors.is_empty() {
            assert_eq!(outcome.undecided[0].rule, rule);
        }
    }
}

#[test]
fn a_rule_that_takes_too_many_steps_is_undecided_for_an_unchanged_value() {
    let rules = json!([{"rule": "self.all(a, self.exists_one(b, a == b))"}]);
    let list = json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": rules});
    let schema = Schema::compile(&json!({"type": "object", "properties": {"list": list}})).expect("a schema");
    let list: Vec<String> = (0..1000).map(|at| at.to_string()).collect();
    let object = json!({"metadata": {"name": "x"}, "list": list});
    assert_eq!(schema.validate(&object, Some(&object)).undecided.len(), 1);
}

#[test]
fn all_rules_of_an_object_share_a_budget_and_no_rule_hides_that_it_is_spent() {
    let endless = "self.list.all(a, self.list.all(b, self.list.all(c, a != '')))";
    // Neither a decisive operand nor another branch may hide that the budget is exhausted.
    for rule in [format!("({endless}) || true"), format!("!({endless} && false)"), format!("[{endless}].size() == 1")] {
        assert_eq!(validate(&[&rule]).undecided.len(), 1, "{rule}");
    }
    let mut rules = vec![endless; 12];
    rules.push("self.list.size() == 500");
    assert_eq!(validate(&rules).undecided.len(), 13);
    assert_eq!(validate(&rules[11..]).undecided.len(), 1);
}

#[test]
fn deeply_nested_and_very_long_rules_do_not_exhaust_the_stack() {
    let nested =
        |open: &str, inner: &str, close: &str| format!("{}{inner}{} == 1", open.repeat(100_000), close.repeat(100_000));
    for rule in [nested("(", "1", ")"), nested("[", "1", "]"), nested("size(", "'a'", ")"), nested("-(", "1", ")")] {
        assert_eq!(validate(&[&rule]).undecided.len(), 1, "{}", &rule[..20]);
    }
    for (rule, holds) in [
        (format!("{}true", "!".repeat(100_000)), true),
        (format!("{}1 == 1", "-".repeat(100_000)), true),
        (format!("1{} == 0", " + 1".repeat(100_000)), false),
        (format!("true{}", " && true".repeat(100_000)), true),
        (format!("false{}", " || false".repeat(100_000)), false),
        (format!("{}false", "false ? true : ".repeat(100_000)), false),
        (format!("self{} == 1", ".a".repeat(100_000)), false),
    ] {
        let outcome = validate(&[&rule]);
        assert!(outcome.undecided.len() == 1 || outcome.errors.is_empty() == holds, "{}", &rule[..20]);
    }
}
