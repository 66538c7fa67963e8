use proptest::prelude::*;
use serde_json::json;

use super::*;
use gantry_k8s_cel::{CelBudget, CelRuleResult, compile_rules};

fn text() -> Value {
    json!({"type": "string"})
}

/// Whether `desired` follows from `live`, rules of a node with this schema.
fn follows_at(schema: &Value, live: &[Value], desired: &Value) -> bool {
    let compiled = |rules: &[Value]| compile_rules(schema, rules, false);
    let asked = &compiled(std::slice::from_ref(desired))[0];
    assert_eq!(asked.problem(), None, "{desired}");
    let mut logic = Logic::from_rules(schema, live.iter().zip(compiled(live))).expect("no set of objects");
    logic.implies(desired, asked, &|_| true)
}

fn follows(schema: &Value, live: &[&str], desired: &str) -> bool {
    let live: Vec<Value> = live.iter().map(|rule| json!({"rule": rule})).collect();
    follows_at(schema, &live, &json!({"rule": desired}))
}

#[test]
fn a_weaker_rule_follows_whatever_its_functions_compute() {
    let pair = json!({"type": "object", "properties": {"a": text(), "b": text(), "on": {"type": "boolean"}}});
    for (schema, live, desired) in [
        (text(), "isIP(self) && ip(self).family() == 4", "isIP(self)"),
        (text(), "isIP(self)", "isIP(self) || self == ''"),
        (text(), "isIP(self)", "self == '' || isIP(self)"),
        (text(), "isQuantity(self)", "isQuantity(self) || self == 'auto'"),
        (text(), "self == oldSelf", "self == oldSelf || self.startsWith(oldSelf)"),
        (text(), "isIP(self)", "isIP(self) || self == oldSelf"),
        (text(), "self.trim() == 'a'", "!(self.trim() != 'a')"),
        (text(), "isIP(self) ? isCIDR(self) : isURL(self)", "isCIDR(self) || isURL(self)"),
        (pair.clone(), "self.a.lowerAscii() == self.b", "self.b == self.a.lowerAscii()"),
        (pair.clone(), "self.a.lowerAscii() != 'x'", "'x' != self.a.lowerAscii()"),
        (pair.clone(), "!(isIP(self.a) && isURL(self.b))", "!isIP(self.a) || !isURL(self.b)"),
        (pair.clone(), "!isIP(self.a) || !isURL(self.b)", "!(isIP(self.a) && isURL(self.b))"),
        (pair.clone(), "!(isIP(self.a) || isURL(self.b))", "!isURL(self.b) && !isIP(self.a)"),
        (pair.clone(), "self.on ? isIP(self.a) : isURL(self.a)", "self.on && isIP(self.a) || isURL(self.a)"),
        (pair, "isIP(self.a) && true", "false || isIP(self.a)"),
    ] {
        assert!(follows(&schema, &[live], desired), "{live} → {desired}");
    }
    assert!(follows(&text(), &["isIP(self)", "isURL(self)"], "isURL(self) && isIP(self)"));
    assert!(follows(&text(), &["isIP(self) || isURL(self)", "isIP(self) || !isURL(self)"], "isIP(self)"));
    assert!(follows(&text(), &[], "true || isIP(self)"));
    // Each atom needs only two results here, and an operand that is true decides.
    let all = |count: usize| (0..count).map(|n| format!("self.trim() == '{n}'")).collect::<Vec<_>>().join(" || ");
    assert!(follows(&text(), &[&all(60)], &all(61)));
    assert!(!follows(&text(), &[&all(61)], &all(60)));
}

#[test]
fn a_comparison_follows_from_one_with_another_constant() {
    let pair = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"},
        "n": {"type": "number"}, "m": {"type": "integer", "nullable": true}, "t": text()}});
    for (live, desired, forth, back) in [
        ("self.a + self.b <= 10", "self.a + self.b <= 15", true, false),
        ("self.a + self.b <= 10", "!(self.a + self.b > 15)", true, false),
        ("self.a + self.b <= 10", "11 > self.a + self.b", true, true),
        ("self.a * 2 > 3 && self.a * 2 < 5", "self.a * 2 == 4", true, true),
        ("self.a * 2 != 3", "self.a * 2 > 3 || self.a * 2 < 3", true, true),
        ("self.a < self.b", "self.a + 1 <= self.b", true, true),
        ("self.a < self.b", "self.b - self.a > 0", false, false),
        ("self.a >= self.b", "self.a + 1 > self.b", false, true),
        ("self.a == self.b", "self.b >= self.a", true, false),
        ("self.a + 1 == self.b", "self.a < self.b", true, false),
        ("self.t.split('/').size() <= 2", "self.t.split('/').size() <= 3", true, false),
        ("duration(self.t) >= duration('60s')", "duration(self.t) >= duration('1m')", true, true),
        ("duration(self.t) >= duration('60s')", "duration(self.t) > duration('59s')", true, false),
        (
            "quantity(self.t).compareTo(quantity('1Gi')) >= 0",
            "!quantity(self.t).isLessThan(quantity('1024Mi'))",
            true,
            true,
        ),
        ("quantity(self.t).isGreaterThan(quantity('2'))", "quantity(self.t).isGreaterThan(quantity('1'))", true, false),
        // Something that is no integer, or can be null.
        ("self.n / 0.0 > 3.0", "self.n / 0.0 > 2.0", false, false),
        ("self.m != 3", "self.m > 3 || self.m < 3", false, false),
        (
            "self.a + self.b <= 10",
            "self.a + self.b <= 15 && (self.b + self.a <= 9 || self.b + self.a > 9)",
            false,
            false,
        ),
    ] {
        assert_eq!(follows(&pair, &[live], desired), forth, "{live} → {desired}");
        assert_eq!(follows(&pair, &[desired], live), back, "{desired} → {live}");
    }
}

#[test]
fn a_part_of_an_equal_value_is_equal() {
    let pair = json!({"type": "object", "required": ["a"], "properties": {"a": text(), "b": text(),
        "l": {"type": "array", "items": text()}, "m": {"type": "string", "nullable": true},
        "o": {"type": "object", "properties": {"n": {"type": "integer"}}}}});
    let whole = "self == oldSelf";
    for (live, desired, expected) in [
        (whole, "has(self.b) == has(oldSelf.b)", true),
        (whole, "!has(self.b) || !has(oldSelf.b) || self.b == oldSelf.b", true),
        (whole, "!has(self.o) || has(self.o.n) == has(oldSelf.o.n)", true),
        (whole, "!has(self.o) || !has(self.o.n) || self.o.n == oldSelf.o.n", true),
        (whole, "!has(self.o) || !has(self.o.n) || self.o.n >= oldSelf.o.n", true),
        ("self.o == oldSelf.o", "!has(self.o.n) || self.o.n == oldSelf.o.n", true),
        ("oldSelf == self && has(self.b)", "self.b == oldSelf.b", true),
        // It may be absent, the equation may be false, or the part is another one.
        (whole, "self.b == oldSelf.b", false),
        ("self == oldSelf || has(self.b)", "has(self.b) == has(oldSelf.b)", false),
        ("self.a == oldSelf.a", "has(self.b) == has(oldSelf.b)", false),
        ("self.o == oldSelf.o", "has(self.b) == has(oldSelf.b)", false),
        (whole, "has(self.m) == has(oldSelf.m)", false),
        (whole, "!has(self.a) || !has(self.b) || self.a == oldSelf.b", false),
        (whole, "!has(self.b) || self.b != oldSelf.b", false),
    ] {
        assert_eq!(follows(&pair, &[live], desired), expected, "{live} → {desired}");
    }
}

#[test]
fn a_rule_that_may_fail_does_not_follow() {
    let pair = json!({"type": "object", "properties": {"a": text(), "b": text(), "on": {"type": "boolean"},
        "list": {"type": "array", "items": text()}}});
    for (schema, live, desired) in [
        (text(), "isIP(self) || self == ''", "isIP(self)"),
        (text(), "isIP(self) || isURL(self)", "isURL(self) || isCIDR(self)"),
        (text(), "isIP(self)", "!isIP(self)"),
        (text(), "self.trim() == 'a'", "self.trim() != 'a'"),
        (text(), "ip(self).family() == 4 || isIP(self)", "ip(self).family() == 4 || !isIP(self)"),
        (pair.clone(), "self.a == 'x' && isIP(self.a)", "isIP(self.b)"),
        // An error is neither true nor false.
        (text(), "isIP(self)", "isIP(self) && (isURL(self) || !isURL(self))"),
        (text(), "isIP(self)", "isURL(self) ? isIP(self) : isIP(self)"),
        (text(), "isIP(self)", "ip(self).family() == 4 || ip(self).family() != 4"),
        // An item is not its list, and the variable of a macro is nothing else.
        (pair.clone(), "self.list.all(k, isIP(k))", "self.list.exists(k, isIP(k))"),
        (pair.clone(), "self.list.all(k, isIP(k) || isURL(k))", "self.list.all(k, isIP(k))"),
        // If these cannot be compared, they are unequal, but `==` is an error.
        (pair.clone(), "dyn(quantity(self.a)) != dyn(self.b)", "!(dyn(quantity(self.a)) == dyn(self.b))"),
        // Only equations of scalars are symmetric.
        (pair.clone(), "dyn(self.a) == dyn(self.list)", "dyn(self.list) == dyn(self.a)"),
        (pair, "self.list == ['a']", "['a'] == self.list"),
    ] {
        assert!(!follows(&schema, &[live], desired), "{live} → {desired}");
    }
    assert!(!follows(&text(), &["isIP(self) || isURL(self)", "isCIDR(self)"], "isURL(self)"));
    assert!(!follows(&text(), &["false || isIP(self)"], "false"));
    // The reverse of an inequality that follows.
    let (equal, unequal) = ("!(ip(self) == ip('::1'))", "ip(self) != ip('::1')");
    assert!(follows(&text(), &[equal], unequal));
    assert!(!follows(&text(), &[unequal], equal));
}

#[test]
fn a_transition_rule_implies_nothing_where_it_is_not_evaluated() {
    let rule = |text: &str| json!({"rule": text});
    let optional = |text: &str| json!({"rule": text, "optionalOldSelf": true});
    let holds = |live: Value, desired: Value| follows_at(&text(), &[live], &desired);
    let old = "isIP(self) && isIP(oldSelf)";
    let maybe = "isIP(self) && oldSelf.hasValue()";
    assert!(holds(rule(old), rule("isIP(self) || self == oldSelf")));
    assert!(holds(optional(maybe), optional("oldSelf.hasValue()")));
    assert!(holds(rule("isIP(self)"), optional("isIP(self) || !oldSelf.hasValue()")));
    // Without an old value a transition rule is not evaluated.
    assert!(!holds(rule(old), rule("isIP(self)")));
    assert!(holds(rule(old), optional("isIP(self) || !oldSelf.hasValue()")));
    assert!(!holds(rule(old), optional("isIP(self)")));
    // If there is an old value, the optional has it.
    assert!(holds(optional(maybe), rule("isIP(self) || self == oldSelf")));
    let same = "!oldSelf.hasValue() || self == oldSelf.value()";
    assert!(holds(rule("self == oldSelf"), optional(same)));
    assert!(holds(optional(same), rule("self == oldSelf")));
    assert!(!holds(rule("self == oldSelf"), optional("oldSelf.hasValue() && self == oldSelf.value()")));
    assert!(!holds(rule("self == oldSelf"), optional("self == oldSelf.orValue('')")));
    // An old value in an optional is not the value.
    assert!(!holds(rule("dyn(self) == dyn(oldSelf)"), optional("dyn(self) == dyn(oldSelf)")));
    // The setting means nothing to a rule that does not read the old value.
    assert!(holds(optional("isIP(self)"), rule("isIP(self) || isURL(self)")));

    // An update that only reorders a list of type `map` changes nothing for the server: then it tolerates the failures
    // of other rules.
    let item = json!({"type": "object", "required": ["name"], "properties": {"name": text()}});
    let list = |list_type: &str| {
        json!({"type": "array", "items": item, "x-kubernetes-list-type": list_type,
        "x-kubernetes-list-map-keys": ["name"]})
    };
    for (list_type, expected) in [("atomic", true), ("map", false)] {
        let first = "isIP(self[0].name)";
        assert_eq!(follows(&list(list_type), &[first], &format!("{first} || size(oldSelf) == 0")), expected);
        assert!(follows(&list(list_type), &[first], &format!("{first} || size(self) == 0")));
    }
}

#[test]
fn rules_that_the_server_may_abort_imply_nothing() {
    let list = json!({"type": "array", "items": text()});
    assert!(follows(&list, &["self.isSorted()"], "size(self) == 7 || self.isSorted()"));
    for aborted in ["self.distinct() == self", "self.sortBy(x, x.trim()) == self", "{bytes(self[0]): 1}.size() == 1"] {
        assert!(!follows(&list, &[aborted], &format!("{aborted} || size(self) == 7")), "{aborted}");
    }
    let set = json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"});
    assert!(Logic::from_rules(&set, std::iter::empty()).is_none());
}

#[test]
fn the_work_is_bounded() {
    let some: Vec<String> = (0..40).map(|n| format!("(ip(self).family() == {n} ? isIP(self) : isURL(self))")).collect();
    assert!(!follows(&text(), &["isIP(self) || isURL(self)"], &some.join(" || ")));
}

/// The leaves of random formulas: fields that are true, false or missing; values that cannot be compared; no booleans.
const LEAVES: [&str; 9] = [
    "self.a",
    "self.b",
    "self.c",
    "true",
    "false",
    "dyn(self.count) == dyn(self.count) && self.a",
    "dyn(quantity('1')) == dyn('1')",
    "dyn(quantity('1')) != dyn('1')",
    "dyn(self.count)",
];

fn any_formula() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(&LEAVES[..]).prop_map(|leaf| format!("({leaf})"));
    leaf.prop_recursive(4, 24, 3, |inner| {
        let some = || proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            inner.clone().prop_map(|operand| format!("!{operand}")),
            some().prop_map(|operands| format!("({})", operands.join(" && "))),
            some().prop_map(|operands| format!("({})", operands.join(" || "))),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
        ]
    })
}

/// The values of an object in which each of three fields is true, false or missing.
fn objects() -> impl Iterator<Item = Value> {
    (0..27).map(|number: usize| {
        let mut object = json!({"count": 1});
        for (name, digit) in [("a", number % 3), ("b", number / 3 % 3), ("c", number / 9)] {
            match digit {
                0 => object[name] = json!(true),
                1 => object[name] = json!(false),
                _ => {}
            }
        }
        object
    })
}

fn fields() -> Value {
    let flag = json!({"type": "boolean"});
    json!({"type": "object", "properties": {"a": flag, "b": flag, "c": flag, "count": {"type": "integer"}}})
}

/// The evaluator's result. None: the rule does not compile, such as a bare `dyn`.
fn evaluated(rule: &str, object: &Value) -> Option<FormulaTruth> {
    let rule = &compile_rules(&fields(), &[json!({"rule": rule})], false)[0];
    match rule.evaluate(object, None, &mut CelBudget::default()) {
        CelRuleResult::Holds => Some(FormulaTruth::True),
        CelRuleResult::Fails(failure) if failure.is_error => Some(FormulaTruth::Error),
        CelRuleResult::Fails(_) => Some(FormulaTruth::False),
        _ => None,
    }
}

fn any_comparison() -> impl Strategy<Value = String> {
    let operand = prop_oneof![
        Just("self.a"),
        Just("self.b"),
        Just("self.a + self.b"),
        Just("self.a + 1"),
        Just("self.b - 1"),
        Just("self.b + 2"),
        Just("self.a * 2"),
        Just("1"),
        Just("2"),
        Just("-1"),
    ];
    let operator = prop_oneof![Just("<"), Just("<="), Just(">"), Just(">="), Just("=="), Just("!=")];
    let comparison = (operand.clone(), operator, operand)
        .prop_filter("constants", |(a, _, b)| a.contains("self") || b.contains("self"))
        .prop_map(|(a, operator, b)| format!("({a} {operator} {b})"));
    comparison.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} == {b})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            inner.prop_map(|a| format!("!{a}")),
        ]
    })
}

proptest! {
    /// The results of a formula are those of the evaluator if its atoms have the evaluator's results.
    #[test]
    fn formulas_have_the_results_of_the_evaluator(rule in any_formula()) {
        let schema = fields();
        let mut logic = Logic::from_rules(&schema, std::iter::empty()).expect("no set");
        let expr = parse_rule(&rule).expect("a rule").expect("an expression");
        let mut reader = FormulaReader { logic: &mut logic, atoms: BTreeSet::new(), size: 0, when: When::Always };
        let formula = reader.formula(&expr, WantedTruth::True);
        let mut index = |leaf: &str| match reader.formula(&parse_rule(leaf).expect("a leaf").expect("a leaf"), WantedTruth::Both) {
            Formula::Atom(atom) | Formula::Unequal(atom) => atom,
            other => panic!("{leaf}: {other:?}"),
        };
        let equal = index("dyn(self.count) == dyn(self.count)");
        let [incomparable, number] = [LEAVES[6], LEAVES[8]].map(&mut index);
        let flags = ["a", "b", "c"].map(|name| (name, index(&format!("self.{name}"))));
        for object in objects() {
            let mut results = vec![None; logic.asked.len()];
            results[equal] = Some(FormulaTruth::True);
            results[incomparable] = Some(FormulaTruth::Incomparable);
            results[number] = Some(FormulaTruth::Error);
            for (name, atom) in flags {
                results[atom] = Some(object.get(name).map_or(FormulaTruth::Error, |value| FormulaTruth::from(value == true)));
            }
            if let Some(expected) = evaluated(&rule, &object) {
                prop_assert_eq!(truth(&formula, &results, &BTreeMap::new()), Ok(expected), "{} for {}", rule, object);
            }
        }
    }

    /// The same for comparisons of integers, also where a sum overflows or an operand is absent.
    #[test]
    fn a_comparison_that_follows_from_others_holds_wherever_they_hold(
        live in proptest::collection::vec(any_comparison(), 1..3), desired in any_comparison()
    ) {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
        let live: Vec<&str> = live.iter().map(String::as_str).collect();
        if follows(&schema, &live, &desired) {
            let holds = |rule: &str, object: &Value| {
                let rule = &compile_rules(&schema, &[json!({"rule": rule})], false)[0];
                assert_eq!(rule.problem(), None);
                rule.evaluate(object, None, &mut CelBudget::default()) == CelRuleResult::Holds
            };
            let numbers = [i64::MIN, i64::MIN + 1, i64::MIN + 2, -3, -2, -1, 0, 1, 2, 3, 4, i64::MAX - 2, i64::MAX - 1, i64::MAX];
            let values: Vec<Option<i64>> = numbers.into_iter().map(Some).chain([None]).collect();
            for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
                let fields = [("a", a), ("b", b)].into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!((*value)?))));
                let object = Value::Object(fields.collect());
                let is_shown = live.iter().all(|rule| holds(rule, &object)) && !holds(&desired, &object);
                prop_assert!(!is_shown, "{:?} → {} for {}", live, desired, object);
            }
        }
    }

    /// What follows is true wherever the premises are true.
    #[test]
    fn a_rule_that_follows_from_others_holds_wherever_they_hold(live in proptest::collection::vec(any_formula(), 1..3), desired in any_formula()) {
        let compiles = |rule: &String| evaluated(rule, &json!({})).is_some();
        prop_assume!(live.iter().all(compiles) && compiles(&desired));
        let live: Vec<&str> = live.iter().map(String::as_str).collect();
        let follows = follows(&fields(), &live, &desired);
        for object in objects() {
            let holds = |rule: &str| evaluated(rule, &object) == Some(FormulaTruth::True);
            let is_shown = live.iter().all(|rule| holds(rule)) && !holds(&desired);
            prop_assert!(!(follows && is_shown), "{:?} → {} for {}", live, desired, object);
        }
    }
}
