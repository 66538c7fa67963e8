use gantry_k8s_cel::KubernetesRelease;
use serde_json::{Value, json};

use super::*;

/// The answer of [`decide`] as one word.
fn decided(schema: &Value, live: &[&str], desired: &str) -> &'static str {
    let rules: Vec<Value> = live.iter().map(|rule| json!({"rule": rule})).collect();
    let rule = json!({"rule": desired});
    let mut ruled = schema.clone();
    ruled["x-kubernetes-validations"] = Value::Array(rules.clone());
    let live_set = RuleSet { schema: &ruled, rules: &rules, is_root: false, keeps: false };
    let desired_set = RuleSet { schema, rules: std::slice::from_ref(&rule), is_root: false, keeps: false };
    let patterns = Patterns::default();
    match RuleNode::new(live_set, desired_set, &endless(&patterns)).expect("schemas").decide(&rule, &endless(&patterns))
    {
        Implied::Yes => "holds",
        Implied::No(found) => {
            for example in &found {
                assert_shows(schema, live, desired, example);
            }
            "fails"
        }
        Implied::Unknown(_) => "unknown",
    }
}

fn endless(patterns: &Patterns) -> RuleProofResources<'_> {
    RuleProofResources { spend: &|_| true, patterns, release: KubernetesRelease::default() }
}

/// Checks that a counterexample passes all of live's rules and fails the desired one.
fn assert_shows(schema: &Value, live: &[&str], desired: &str, example: &Counterexample) {
    let holds = |rule: &str| {
        let rule = json!({"rule": rule});
        let compiled = compile_rules_sharing(schema, std::slice::from_ref(&rule), false, &Patterns::default());
        compiled[0].evaluate(&example.value, example.old.as_ref(), &mut CelBudget::default())
    };
    for rule in live {
        assert!(matches!(holds(rule), CelRuleResult::Holds | CelRuleResult::NotApplicable), "{rule} on {example:?}");
    }
    assert!(matches!(holds(desired), CelRuleResult::Fails(_)), "{desired} on {example:?}");
}

fn object(fields: Value) -> Value {
    json!({"type": "object", "properties": fields})
}

fn text() -> Value {
    json!({"type": "string"})
}

#[test]
fn rewritten_rules_are_compared_by_what_they_allow() {
    let names = object(json!({"name": text(), "matchLabels": object(json!({}))}));
    let either = "(has(self.name) && !has(self.matchLabels)) || (!has(self.name) && has(self.matchLabels))";
    let not_both = "!(has(self.name) && has(self.matchLabels))";
    assert_eq!(decided(&names, &[either], not_both), "holds");
    assert_eq!(decided(&names, &[not_both], either), "fails");

    let group = object(json!({"group": text(), "kind": text()}));
    let only_core = "self.kind == 'Service' && self.group == ''";
    assert_eq!(
        decided(&group, &[only_core], "self.kind == 'Service' && (self.group == 'v1' || self.group == '')"),
        "holds"
    );
    assert_eq!(decided(&group, &["!has(self.group) || self.group == ''"], "self.group == ''"), "fails");

    let filters = json!({"type": "array", "items": object(json!({"kind": text()}))});
    let narrow = "self.all(f, f.kind == 'Service')";
    let wide = "self.all(f, f.kind == 'Service' || f.kind == 'Backend')";
    assert_eq!(decided(&filters, &[narrow], wide), "holds");
    assert_eq!(decided(&filters, &[wide], narrow), "fails");
    assert_eq!(decided(&filters, &[wide], "self.exists(f, f.kind == 'Service')"), "fails");
    assert_eq!(decided(&filters, &["self.exists_one(f, f.kind == 'a')"], "self.exists(f, f.kind == 'a')"), "holds");
    assert_eq!(decided(&filters, &["self.exists(f, f.kind == 'a')"], "self.exists_one(f, f.kind == 'a')"), "fails");
    assert_eq!(decided(&filters, &["self.exists(f, f.kind == 'a')"], "size(self) > 0"), "holds");
    assert_eq!(decided(&filters, &["size(self) > 2"], "self.size() >= 3"), "holds");
    assert_eq!(decided(&filters, &["size(self) > 2"], "self.size() > 3"), "fails");
}

#[test]
fn sums_over_conditions_are_decided() {
    let fields = object(json!({"a": text(), "b": text(), "c": text()}));
    let one = "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) + (has(self.c) ? 1 : 0) == 1";
    let most_one = "[has(self.a), has(self.b), has(self.c)].filter(x, x == true).size() <= 1";
    let at_most = "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) + (has(self.c) ? 1 : 0) <= 1";
    assert_eq!(decided(&fields, &[one], at_most), "holds");
    assert_eq!(decided(&fields, &[at_most], one), "fails");
    assert_eq!(decided(&fields, &[one], "has(self.a) || has(self.b) || has(self.c)"), "holds");
    assert_eq!(decided(&fields, &[one], most_one), "holds");
    let one_in_list = "[has(self.a), has(self.b), has(self.c)].filter(x, x == true).size() == 1";
    assert_eq!(decided(&fields, &[one_in_list], one), "holds");
    assert_eq!(decided(&fields, &[one_in_list], "[has(self.a), has(self.b)].exists_one(x, x)"), "fails");
    assert_eq!(decided(&fields, &[at_most], "[has(self.a) ? 1 : 0, has(self.b) ? 1 : 0].sum() < 2"), "holds");
    assert_eq!(
        decided(&fields, &[one], "[has(self.a), has(self.b), has(self.c)].map(x, x ? 1 : 0).sum() == 1"),
        "holds"
    );
    assert_eq!(decided(&fields, &[one], "size([self.?a, self.?b].map(x, x)) == 2"), "holds");
}

/// What a list literal in a macro mentions must not become a variable of a macro inside.
#[test]
fn list_literals_are_unrolled_only_where_their_items_mean_the_same() {
    let item = object(json!({"a": text(), "b": text()}));
    let fields = object(json!({"l": {"type": "array", "maxItems": 3, "items": item}, "a": text()}));
    let one = "self.l.all(x, [has(x.a), has(x.b)].filter(y, y).size() == 1)";
    assert_eq!(decided(&fields, &[one], "self.l.all(x, has(x.a) != has(x.b))"), "holds");
    assert_eq!(decided(&fields, &[one], "self.l.all(x, has(x.a))"), "fails");
    let captured = "self.l.all(x, [has(x.a)].all(y, self.l.all(x, has(x.b) || y)))";
    assert_ne!(decided(&fields, &[captured], "self.l.all(x, has(x.b) || has(x.a))"), "holds");
}

#[test]
fn tuples_in_a_list_are_alternatives_of_equations() {
    let pair = json!({"type": "object", "required": ["g", "k"], "properties": {"g": text(), "k": text()}});
    let few = "[self.g, self.k] in [['a', 'b'], ['c', 'd']]";
    let more = "[self.g, self.k] in [['a', 'b'], ['c', 'd'], ['e', 'f']]";
    assert_eq!(decided(&pair, &[few], more), "holds");
    assert_eq!(decided(&pair, &[more], few), "fails");
    assert_eq!(decided(&pair, &[few], "self.g != 'a' || self.k == 'b'"), "holds");
    assert_eq!(decided(&pair, &[few], "self.g != 'a' || self.k == 'd'"), "fails");
    assert_eq!(decided(&pair, &["[self.g, self.k] == ['a', 'b']"], "self.g == 'a'"), "holds");
    assert_eq!(decided(&pair, &["self.g == 'a'"], "[self.g, self.k] != ['c', 'd']"), "holds");
}

#[test]
fn keywords_of_the_schema_count_as_premises_of_rules() {
    let bounded = json!({"type": "integer", "minimum": 1, "maximum": 10});
    assert_eq!(decided(&bounded, &[], "self > 0 && self <= 10"), "holds");
    assert_eq!(decided(&bounded, &[], "self > 1"), "fails");
    assert_eq!(decided(&bounded, &["self != 1"], "self > 1"), "holds");
    let enumerated = json!({"type": "string", "enum": ["a", "b"]});
    assert_eq!(decided(&enumerated, &[], "self in ['a', 'b', 'c']"), "holds");
    assert_eq!(decided(&enumerated, &[], "self == 'a'"), "fails");
    let patterned = json!({"type": "string", "pattern": "^[a-z]+$", "maxLength": 5});
    assert_eq!(decided(&patterned, &[], "self.matches('^[a-z0-9]+$')"), "holds");
    assert_eq!(decided(&patterned, &[], "!self.contains('*')"), "holds");
    assert_eq!(decided(&patterned, &[], "self.size() <= 5 && self != ''"), "holds");
    assert_eq!(decided(&patterned, &[], "!self.startsWith('kube')"), "fails");
    let required =
        json!({"type": "object", "required": ["a", "b"], "properties": {"a": text(), "b": {"type": "integer"}}});
    assert_eq!(decided(&required, &[], "has(self.a)"), "holds");
    assert_eq!(decided(&required, &[], "self.a != 'x'"), "fails");
}

#[test]
fn fields_are_compared_with_each_other() {
    let range = object(json!({"min": {"type": "integer"}, "max": {"type": "integer"}}));
    let present = "has(self.min) && has(self.max)";
    assert_eq!(decided(&range, &[present, "self.min < self.max"], "self.min <= self.max"), "holds");
    assert_eq!(decided(&range, &[present, "self.min <= self.max"], "self.min < self.max"), "fails");
    assert_eq!(
        decided(&range, &[present, "self.min <= self.max", "self.min != self.max"], "self.min < self.max"),
        "holds"
    );
    let pair = json!({"type": "object", "required": ["a", "b"], "properties": {"a": text(), "b": text()}});
    assert_eq!(decided(&pair, &["self.a == self.b"], "self.b == self.a"), "holds");
    assert_eq!(decided(&pair, &["self.a == 'x' && self.b == 'x'"], "self.a == self.b"), "holds");
    assert_eq!(decided(&pair, &["self.a != 'x' && self.b != 'x'"], "self.a == self.b"), "fails");
}

#[test]
fn transitions_are_shown_as_updates() {
    assert_eq!(decided(&text(), &[], "self == oldSelf"), "fails");
    assert_eq!(decided(&text(), &["self == oldSelf"], "oldSelf == '' || self != ''"), "holds");
    assert_eq!(decided(&json!({"type": "string", "enum": ["a"]}), &[], "self == oldSelf"), "holds");
    let role = object(json!({"role": text()}));
    assert_eq!(decided(&role, &[], "!has(oldSelf.role) || has(self.role)"), "fails");
    assert_eq!(decided(&role, &["has(self.role)"], "!has(oldSelf.role) || has(self.role)"), "holds");
}

#[test]
fn rules_about_keys_and_values_of_maps_are_decided() {
    let map = json!({"type": "object", "additionalProperties": text()});
    assert_eq!(decided(&map, &["self.all(k, k != 'a' && k != 'b')"], "self.all(k, k != 'a')"), "holds");
    assert_eq!(decided(&map, &["self.all(k, k != 'a')"], "!('a' in self)"), "holds");
    assert_eq!(decided(&map, &[], "self.all(k, !self[k].startsWith('-'))"), "fails");
    assert_eq!(decided(&map, &["self.all(k, self[k] != '')"], "!has(self.x) || self.x != ''"), "holds");
    let list = json!({"type": "array", "items": text()});
    assert_eq!(decided(&list, &[], "!('*' in self && self.size() > 1)"), "fails");
    assert_eq!(decided(&list, &["!('*' in self)"], "!('*' in self && self.size() > 1)"), "holds");
    assert_eq!(decided(&list, &["self.size() <= 1"], "!('*' in self && self.size() > 1)"), "holds");
}

#[test]
fn items_are_compared_with_each_other() {
    let list = json!({"type": "array", "items": {"type": "object", "required": ["port", "kind"],
        "properties": {"port": {"type": "integer"}, "kind": text(), "host": text()}}});
    let one = |condition: &str| format!("self.all(a, self.exists_one(b, {condition}))");
    let ports = one("a.port == b.port");
    let both = one("a.port == b.port && a.kind == b.kind");
    assert_eq!(decided(&list, &[], &ports), "fails");
    assert_eq!(decided(&list, &[&ports], &both), "holds");
    assert_eq!(decided(&list, &[&both], &ports), "fails");
    assert_eq!(decided(&list, &["size(self) <= 1"], &ports), "holds");
    // Three items would have to be tried.
    assert_eq!(decided(&list, &[&ports], "!(self.size() == 2 && self.all(a, a.port == 1))"), "unknown");
    let all = "self.all(a, self.all(b, a.port == b.port ? a.kind == b.kind : true))";
    assert_eq!(decided(&list, &[&ports], all), "holds");
    assert_eq!(decided(&list, &[], all), "fails");
    assert_eq!(decided(&list, &["self.all(a, a.kind == 'x')"], all), "holds");
    let hosts = "(has(a.host) && has(b.host) ? a.host == b.host : !has(a.host) && !has(b.host))";
    let loose = "(has(a.host) && has(b.host) ? a.host == b.host : true)";
    let [hosts, loose] = [hosts, loose].map(|hosts| one(&format!("a.port == b.port && {hosts}")));
    assert_eq!(decided(&list, &[&loose], &hosts), "holds");
    assert_eq!(decided(&list, &[&hosts], &loose), "fails");
    // An item that is valid only with another one cannot be what remains of a longer list.
    assert_eq!(decided(&list, &[&one("a.port != b.port")], &one("a.port != b.port || false")), "unknown");
}

#[test]
fn items_that_fit_a_condition_are_counted() {
    let list = json!({"type": "array", "items": object(json!({"kind": text()}))});
    let most = |count: usize| format!("self.filter(a, a.kind == 'x').size() <= {count}");
    assert_eq!(decided(&list, &[], &most(1)), "fails");
    assert_eq!(decided(&list, &[&most(1)], &most(2)), "holds");
    assert_eq!(decided(&list, &[&most(2)], &most(1)), "fails");
    assert_eq!(decided(&list, &["self.exists_one(a, a.kind == 'x')"], &most(1)), "holds");
}

/// A set has no twins, and a list of type `map` no two items with the same keys.
#[test]
fn rules_that_forbid_duplicates_hold_for_sets_and_keyed_lists() {
    let set = json!({"type": "array", "items": text(), "x-kubernetes-list-type": "set"});
    let plain = json!({"type": "array", "items": text()});
    for unique in [
        "size(self.filter(i, size(self.filter(j, j == i)) > 1)) == 0",
        "self.filter(i, self.filter(j, i == j).size() > 1).size() == 0",
        "self.all(i, self.filter(j, j == i).size() == 1)",
        "self.all(i, 2 > self.filter(j, j == i).size())",
        "!self.exists(i, self.filter(j, j == i).size() > 1)",
        "self.all(i, self.exists_one(j, j == i))",
    ] {
        assert_eq!(decided(&set, &[], unique), "holds", "{unique}");
        assert_eq!(decided(&plain, &[], unique), "fails", "{unique}");
        assert_eq!(decided(&plain, &["self.all(a, self.exists_one(b, a == b))"], unique), "holds", "{unique}");
        assert_eq!(decided(&plain, &[unique], "self.all(a, self.exists_one(b, a == b))"), "holds", "{unique}");
    }
    let starting = |most: usize| format!("self.filter(a, a.startsWith('x')).size() <= {most}");
    assert_eq!(decided(&set, &[], "self.filter(a, a == 'x').size() <= 1"), "holds");
    assert_eq!(decided(&set, &[], &starting(1)), "fails");
    assert_eq!(decided(&set, &["size(self) <= 2"], &starting(2)), "holds");
    assert_eq!(decided(&set, &["size(self) <= 3"], &starting(2)), "fails");
    let flags = json!({"type": "array", "items": {"type": "boolean"}, "x-kubernetes-list-type": "set"});
    assert_eq!(decided(&flags, &[], "size(self) <= 2"), "holds");
    // If the count need not include the item itself, it can count two other items.
    assert_ne!(decided(&plain, &[], "self.all(i, self.filter(j, j != i).size() <= 1)"), "holds");

    let item = json!({"type": "object", "required": ["name"], "properties": {"name": text(), "kind": text()}});
    let keyed = |keys: Value| json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys});
    let names = "self.all(a, self.exists_one(b, a.name == b.name))";
    assert_eq!(decided(&keyed(json!(["name"])), &[], names), "holds");
    assert_eq!(decided(&keyed(json!(["name", "kind"])), &[], names), "fails");
    assert_eq!(decided(&keyed(json!(["name"])), &[], "self.all(a, self.exists_one(b, a.kind == b.kind))"), "fails");
    let ready = |most: usize| format!("self.filter(a, a.name == 'Ready').size() <= {most}");
    assert_eq!(decided(&keyed(json!(["name"])), &[], &ready(1)), "holds");
    assert_eq!(decided(&keyed(json!(["name"])), &[], &ready(0)), "fails");
    assert_eq!(decided(&keyed(json!(["name"])), &[], "self.filter(a, a.name != 'Ready').size() <= 1"), "fails");
}

#[test]
fn rules_about_an_optional_field_are_decided() {
    let parameters = object(json!({"ssl": text(), "other": text()}));
    let spec = json!({"type": "object", "required": ["version"], "properties": {"version": {"type": "integer"},
        "config": object(json!({"parameters": parameters}))}});
    let long =
        "!has(self.config) || !has(self.config.parameters) || !has(self.config.parameters.ssl) || self.version > 17";
    let short = "!has(self.?config.parameters.ssl) || self.version > 17";
    assert_eq!(decided(&spec, &[long], short), "holds");
    assert_eq!(decided(&spec, &[short], long), "holds");
    assert_eq!(decided(&spec, &[], short), "fails");
    assert_eq!(decided(&spec, &[short], &long.replace("17", "18")), "fails");
    let valued = "!self.?config.?parameters.?ssl.hasValue() || self.version > 17";
    assert_eq!(decided(&spec, &[long], valued), "holds");
    let or = |value: &str| format!("self.?config.parameters.ssl.orValue('{value}') != 'x'");
    assert_eq!(decided(&spec, &[&or("a")], &or("b")), "holds");
    assert_eq!(decided(&spec, &[&or("a")], &or("x")), "fails");
    assert_eq!(decided(&spec, &[], &or("a")), "fails");
}

#[test]
fn a_key_that_rules_only_test_for_is_present_or_absent() {
    let options =
        json!({"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}, "maxProperties": 20});
    let rule = json!({"type": "object", "properties": {"method": {"type": "string", "minLength": 1}, "hba": text(),
        "options": options, "users": {"type": "array", "items": text()}}});
    let (prefix, base) = ("'prefix', 'suffix'", "'base', 'bind', 'password', 'attribute', 'filter'");
    let groups = format!("[[{prefix}], [{base}]]");
    let ldap = "has(self.hba) || self.method != 'ldap' || ";
    let needs = format!("{ldap}(has(self.options) && ['base', 'prefix', 'suffix'].exists(k, k in self.options))");
    let radius = "has(self.hba) || self.method != 'radius' || (has(self.options) && ['servers', 'secrets'].all(k, k in self.options))";
    let one = format!("{ldap}!has(self.options) || {groups}.exists_one(a, a.exists(k, k in self.options))");
    let few = format!("{ldap}!has(self.options) || 2 > size({groups}.filter(a, a.exists(k, k in self.options)))");
    assert_eq!(decided(&rule, &[&needs, radius, &one], &few), "holds");
    assert_eq!(decided(&rule, &[&needs, radius, &few], &one), "holds", "the third rule asks for one of them");
    assert_eq!(decided(&rule, &[&few], &one), "fails");
    assert_eq!(decided(&rule, &[&needs, radius], &few), "fails");

    // Keys that are only compared, not looked up, do not require long maps.
    let names: Vec<String> = (0..30).map(|n| format!("'example.com/name{n}'")).collect();
    let within =
        |count: usize| format!("self.all(x, x in [{}] || !x.startsWith('example.com/'))", names[..count].join(", "));
    let labels = json!({"type": "object", "additionalProperties": text(), "maxProperties": 100});
    assert_eq!(decided(&labels, &[&within(29)], &within(30)), "holds");
    assert_eq!(decided(&labels, &[&within(30)], &within(29)), "fails");
}

#[test]
fn the_part_before_a_slash_is_a_pattern() {
    let find = |text: &str| format!("self.find('^([^/]+)').endsWith('{text}')");
    assert_eq!(decided(&text(), &["self.startsWith('b.io/')"], &find("b.io")), "holds");
    assert_eq!(decided(&text(), &["self.startsWith('b.io')"], &find("b.io")), "fails");
    assert_eq!(decided(&text(), &[&find("a.b.io")], &find("b.io")), "holds");
    assert_eq!(decided(&text(), &[&find("b.io")], &find("a.b.io")), "fails");
    let allowed = |words: &str| format!("self in [{words}] || !{}", find("b.io"));
    assert_eq!(decided(&text(), &[&allowed("'b.io/x'")], &allowed("'b.io/x', 'b.io/y'")), "holds");
    assert_eq!(decided(&text(), &[&allowed("'b.io/x', 'b.io/y'")], &allowed("'b.io/x'")), "fails");
}

/// No current object has a field that only desired describes.
#[test]
fn a_rule_about_a_new_field_assumes_that_it_is_absent() {
    let decided = |live: Value, desired: Value, rule: &str| {
        let rules = [json!({"rule": rule})];
        let live_set = RuleSet { schema: &live, rules: &[], is_root: false, keeps: false };
        let desired_set = RuleSet { schema: &desired, rules: &rules, ..live_set };
        let patterns = Patterns::default();
        match RuleNode::new(live_set, desired_set, &endless(&patterns))
            .expect("schemas")
            .decide(&rules[0], &endless(&patterns))
        {
            Implied::Yes => "holds",
            Implied::No(_) => "fails",
            Implied::Unknown(_) => "unknown",
        }
    };
    let kinds = json!({"type": "string", "enum": ["Old"]});
    let before = || json!({"type": "object", "required": ["kind"], "properties": {"kind": kinds}});
    let after = |new: Value| object(json!({"kind": text(), "new": new}));
    for (rule, expected) in [
        ("!(has(self.new) && self.kind != 'New')", "holds"),
        ("!(!has(self.new) && self.kind == 'New')", "holds"),
        ("!has(self.new) || self.new.all(n, n > 1)", "holds"),
        ("!has(self.new) || (self.kind.trim() in ['New'])", "holds"),
        ("has(self.new) ? self.kind.trim() == 'New' : true", "holds"),
        ("has(self.new) ? self.kind.trim() == 'New' : self.kind == 'New'", "fails"),
        ("has(self.new)", "fails"),
        ("self.new.size() > 0", "fails"),
    ] {
        let list = json!({"type": "array", "items": {"type": "integer"}});
        assert_eq!(decided(before(), after(list), rule), expected, "{rule}");
    }
    // Reading a field of an absent object is an error.
    let around = |new: Value, required: Value| {
        let limit = object(new);
        let rules =
            json!({"type": "array", "items": {"type": "object", "required": required, "properties": {"limit": limit}}});
        object(json!({"rules": rules, "kind": text()}))
    };
    let (old, new) = (json!({"a": text()}), json!({"a": text(), "new": text()}));
    for (required, each, either) in [(json!(["limit"]), "holds", "holds"), (json!([]), "fails", "fails")] {
        let (live, desired) = (around(old.clone(), required.clone()), around(new.clone(), required));
        let rule = "!has(self.rules) || self.rules.all(r, !has(r.limit.new))";
        assert_eq!(decided(live.clone(), desired.clone(), rule), each, "{live}");
        let rule = "!has(self.rules) || self.rules.all(r, !has(r.limit.new) || r.limit.a.trim() == 'x')";
        assert_eq!(decided(live, desired, rule), either);
    }
    // If the field is defaulted, or kept without being described, it can be present.
    let filled = json!({"type": "array", "items": {"type": "integer"}, "default": [1]});
    assert_eq!(decided(before(), after(filled), "!has(self.new)"), "fails");
    let mut kept = before();
    kept["x-kubernetes-preserve-unknown-fields"] = json!(true);
    assert_eq!(decided(kept, after(text()), "!has(self.new)"), "unknown");
}

#[test]
fn a_conditional_value_is_decided_for_both_of_its_branches() {
    let address = object(json!({"address": text(), "ports": text()}));
    let plain = "(has(self.address) && self.address.startsWith('unix://')) ? !has(self.ports) : true";
    let choice = "(has(self.address) ? self.address : \"\").startsWith(\"unix://\") ? !has(self.ports) : true";
    assert_eq!(decided(&address, &[plain], choice), "holds");
    assert_eq!(decided(&address, &[choice], plain), "holds");
    assert_eq!(decided(&address, &[], choice), "fails");

    let labels = json!({"type": "object", "additionalProperties": text()});
    let peer = object(json!({"labels": labels, "mtls": text()}));
    let plain = "!has(self.mtls) || (has(self.labels) && self.labels.size() > 0)";
    let choice = "has(self.mtls) ? (has(self.labels) ? self.labels : {}).size() > 0 : true";
    assert_eq!(decided(&peer, &[plain], choice), "holds");
    assert_eq!(decided(&peer, &[choice], plain), "holds");
    assert_eq!(decided(&peer, &["(has(self.labels) ? self.labels : {}).size() >= 0"], choice), "fails");

    let hosts = object(json!({"hosts": {"type": "array", "items": text()}, "kind": text()}));
    let plain =
        "!has(self.hosts) || !self.hosts.exists(h, h.contains('/')) || has(self.kind) && self.kind in ['A', 'B']";
    let choice = "!((has(self.hosts) ? self.hosts : []).exists(h, h.contains('/')) \
                  && !((has(self.kind) ? self.kind : 'C') in ['A', 'B']))";
    assert_eq!(decided(&hosts, &[plain], choice), "holds");
    assert_eq!(decided(&hosts, &[choice], plain), "holds");
}

#[test]
fn macros_over_constant_lists_are_expanded() {
    let kinds = object(json!({"kind": text(), "low": text(), "high": text()}));
    let listed = "['a', 'b'].exists(k, has(self.kind) && self.kind.startsWith(k))";
    let plain = "has(self.kind) && (self.kind.startsWith('a') || self.kind.startsWith('b'))";
    assert_eq!(decided(&kinds, &[listed], plain), "holds");
    assert_eq!(decided(&kinds, &[plain], listed), "holds");
    assert_eq!(decided(&kinds, &[plain], "['a', 'c'].exists(k, self.kind.startsWith(k))"), "fails");
    assert_eq!(decided(&kinds, &[], "[self.low, self.high].all(t, t != 'x')"), "fails");

    let order = "{'1.0': 1, '1.1': 2}[self.low] <= {'1.0': 1, '1.1': 2}[self.high]";
    let written =
        "self.low in ['1.0', '1.1'] && self.high in ['1.0', '1.1'] && (self.low == '1.0' || self.high == '1.1')";
    assert_eq!(decided(&kinds, &[written], order), "holds");
    assert_eq!(decided(&kinds, &[order], written), "holds");
    assert_eq!(decided(&kinds, &["self.low in ['1.0', '1.1'] && self.high in ['1.0', '1.1']"], order), "fails");
}

#[test]
fn comparisons_that_ignore_case_are_decided() {
    let posted = "self.upperAscii() in ['POST', 'PUT']";
    assert_eq!(decided(&text(), &["self in ['post', 'PUT']"], posted), "holds");
    assert_eq!(decided(&text(), &[posted], "self.matches('^([pP][oO][sS][tT]|[pP][uU][tT])$')"), "holds");
    assert_eq!(decided(&text(), &[posted], "self == 'POST' || self == 'PUT'"), "fails");
    assert_eq!(decided(&text(), &["self == 'a'"], "self.upperAscii() != 'a'"), "holds");
    assert_eq!(decided(&text(), &["self.startsWith('Ab')"], "self.lowerAscii().startsWith('ab')"), "holds");
    assert_eq!(decided(&text(), &["self.lowerAscii().endsWith('ab')"], "self.endsWith('ab')"), "fails");
    assert_eq!(decided(&text(), &["self == 'k'"], "self.lowerAscii() != '\u{212a}'"), "holds");
}

#[test]
fn rules_with_unsupported_functions_are_undecided() {
    let after = |day: &str| format!("timestamp(self) > timestamp('2024-01-0{day}T00:00:00Z')");
    assert_eq!(decided(&text(), &[&after("2")], &after("1")), "unknown");
    assert_eq!(decided(&text(), &["duration(self) > duration('1s')"], "duration(self) > duration('0s')"), "holds");
    assert_eq!(decided(&text(), &[], "self.trim() == self || self.size() >= 0"), "unknown");
    assert_eq!(decided(&text(), &[], "self.nonsense()"), "unknown");
}

#[test]
fn comparisons_of_hostile_rules_end() {
    let fields: serde_json::Map<String, Value> =
        (0..30).map(|n| (format!("f{n}"), json!({"type": "boolean"}))).collect();
    let wide = object(Value::Object(fields));
    let all: Vec<String> = (0..30).map(|n| format!("(has(self.f{n}) && self.f{n})")).collect();
    assert_ne!(decided(&wide, &[], &format!("true || {}", all.join(" || "))), "fails");
    let nested = "self.all(a, ".repeat(40) + "true" + &")".repeat(40);
    assert_ne!(decided(&json!({"type": "array", "items": text()}), &[], &nested), "fails");
}
