//! Which updates of an invalid object are refused: what gantry says, compared with what a real API server does.

use serde_json::{Value, json};

use crate::support::{CrdBuilder, Gantry, Isolated, control_plane, eventually, fields, isolated};

fn crd(names: &Isolated, list: &Value) -> Value {
    let spec = fields(json!({"list": list, "other": {"type": "string"}}));
    CrdBuilder::samples(&names.group).cluster_scoped().version_of_spec("v1", spec).build()
}

/// The report of `check` on this CRD.
fn report(desired: &Value) -> Value {
    let checks = "CRDUpgradeSafety,CustomResourceValidation";
    let gantry = Gantry::new().kubeconfig(control_plane().kubeconfig("admin"));
    gantry.args(["check", "-f", "-", "--preflight", checks, "-o", "json"]).stdin(desired.to_string()).run().report()
}

fn findings<'r>(report: &'r Value, check: &str) -> &'r Vec<Value> {
    let checks = report["checks"].as_array().expect("checks");
    let found = checks.iter().find(|found| found["name"] == check).expect("the check");
    found["findings"].as_array().expect("findings")
}

#[test]
fn both_checks_say_which_changes_of_each_kind_of_list_the_server_refuses() {
    let cp = control_plane();
    let text = |pattern: Option<&str>| match pattern {
        Some(pattern) => json!({"type": "string", "pattern": pattern}),
        None => json!({"type": "string"}),
    };
    let item = |field: Value| json!({"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "h": field, "p": {"type": "string"}}});
    let list = |kind: Option<&str>, items: Value| {
        let mut list = json!({"type": "array", "items": items});
        if let Some(kind) = kind {
            list["x-kubernetes-list-type"] = kind.into();
        }
        if kind == Some("map") {
            list["x-kubernetes-list-map-keys"] = json!(["k"]);
        }
        list
    };
    let in_map = |value: Value| json!({"type": "object", "additionalProperties": value});
    type Schema<'a> = &'a dyn Fn(Option<&str>) -> Value;
    let atomic = |pattern: Option<&str>| list(None, text(pattern));
    let set = |pattern: Option<&str>| list(Some("set"), text(pattern));
    let structs = |pattern: Option<&str>| list(Some("atomic"), item(text(pattern)));
    let keyed = |pattern: Option<&str>| list(Some("map"), item(text(pattern)));
    let nested = |pattern: Option<&str>| list(None, list(None, text(pattern)));
    let keyed_in_atomic = |pattern: Option<&str>| {
        list(None, json!({"type": "object", "properties": {"l": list(Some("map"), item(text(pattern)))}}))
    };
    let lists_in_map = |pattern: Option<&str>| in_map(list(None, text(pattern)));
    let maps_in_list = |pattern: Option<&str>| list(None, in_map(text(pattern)));
    let granular = |pattern: Option<&str>| item(text(pattern));
    let one_map = |pattern: Option<&str>| {
        let mut whole = item(text(pattern));
        whole["x-kubernetes-map-type"] = "atomic".into();
        whole
    };
    let (up, ok, new) = (|| json!({"k": "1", "h": "UP"}), || json!({"k": "2", "h": "ok"}), || json!({"k": "3"}));
    let touched = || json!({"k": "2", "h": "ok", "p": "x"});
    let l = |items: Value| json!({ "l": items });
    // The schema, the stored value, the value with an addition, with another part changed, with another invalid value,
    // and the list that is validated as a whole.
    let cases: [(Schema<'_>, [Value; 4], Option<&str>); 10] = [
        (
            &atomic,
            [json!(["UP", "ok"]), json!(["UP", "ok", "new"]), json!(["UP", "new"]), json!(["DOWN", "ok"])],
            Some("spec.list"),
        ),
        (
            &set,
            [json!(["UP", "ok"]), json!(["UP", "ok", "new"]), json!(["UP", "new"]), json!(["DOWN", "ok"])],
            Some("spec.list"),
        ),
        (
            &structs,
            [
                json!([up(), ok()]),
                json!([up(), ok(), new()]),
                json!([up(), touched()]),
                json!([{"k": "1", "h": "DOWN"}, ok()]),
            ],
            Some("spec.list"),
        ),
        (
            &keyed,
            [
                json!([up(), ok()]),
                json!([up(), ok(), new()]),
                json!([up(), touched()]),
                json!([{"k": "1", "h": "DOWN"}, ok()]),
            ],
            None,
        ),
        (
            &nested,
            [
                json!([["UP"], ["ok"]]),
                json!([["UP"], ["ok"], ["new"]]),
                json!([["UP"], ["new"]]),
                json!([["DOWN"], ["ok"]]),
            ],
            Some("spec.list"),
        ),
        (
            &keyed_in_atomic,
            [
                json!([l(json!([up()])), l(json!([ok()]))]),
                json!([l(json!([up()])), l(json!([ok(), new()]))]),
                json!([l(json!([up()])), l(json!([touched()]))]),
                json!([l(json!([{"k": "1", "h": "DOWN"}])), l(json!([ok()]))]),
            ],
            Some("spec.list"),
        ),
        (
            &lists_in_map,
            [
                json!({"a": ["UP", "ok"], "b": ["ok"]}),
                json!({"a": ["UP", "ok", "new"], "b": ["ok"]}),
                json!({"a": ["UP", "new"], "b": ["ok"]}),
                json!({"a": ["DOWN", "ok"], "b": ["ok"]}),
            ],
            Some("spec.list[*]"),
        ),
        (
            &maps_in_list,
            [
                json!([{"a": "UP"}]),
                json!([{"a": "UP"}, {"b": "ok"}]),
                json!([{"a": "UP", "b": "ok"}]),
                json!([{"a": "DOWN"}]),
            ],
            Some("spec.list"),
        ),
        (
            &granular,
            [
                up(),
                json!({"k": "1", "h": "UP", "p": "x"}),
                json!({"k": "4", "h": "UP"}),
                json!({"k": "1", "h": "DOWN"}),
            ],
            None,
        ),
        (
            &one_map,
            [
                up(),
                json!({"k": "1", "h": "UP", "p": "x"}),
                json!({"k": "4", "h": "UP"}),
                json!({"k": "1", "h": "DOWN"}),
            ],
            None,
        ),
    ];
    for (schema, [stored, longer, changed, invalid], whole) in cases {
        let names = isolated();
        let collection = format!("/apis/{}/v1/samples", names.group);
        let object = |name: &str| {
            json!({"apiVersion": format!("{}/v1", names.group), "kind": "Sample", "metadata": {"name": name},
                "spec": {"list": stored}})
        };
        let desired = crd(&names, &schema(Some("^[a-z]+$")));
        cp.apply_yaml(&crd(&names, &schema(None)).to_string());
        for name in ["label", "other", "longer", "changed", "invalid"] {
            assert_eq!(cp.post(&collection, &object(name)).0, 201);
        }
        let report = report(&desired);
        let of_objects = findings(&report, "CustomResourceValidation");
        let message = of_objects[0]["message"].as_str().expect("a message");
        let said = whole.map(|whole| format!("when {whole} is changed in any way (for example an item is added)"));
        assert_eq!(message.contains("in any way"), whole.is_some(), "{message}");
        assert!(said.is_none_or(|said| message.contains(&said)), "{message}");
        let of_crd = findings(&report, "CRDUpgradeSafety");
        let breaks = of_crd[0]["breaks"].as_array().expect("breaks");
        assert_eq!(breaks.contains(&json!("storedObjects")), whole.is_some(), "{of_crd:?}");

        cp.apply_yaml(&desired.to_string());
        eventually("the new schema is in force", || (cp.post(&collection, &object("late")).0 == 422).then_some(()));
        let takes = [
            ("label", json!({"metadata": {"labels": {"a": "b"}}})),
            ("other", json!({"spec": {"other": "x"}})),
            ("longer", json!({"spec": {"list": longer}})),
            ("changed", json!({"spec": {"list": changed}})),
            ("invalid", json!({"spec": {"list": invalid}})),
        ]
        .map(|(name, change)| cp.patch(&format!("{collection}/{name}"), &change).0 == 200);
        assert_eq!(takes, [true, true, whole.is_none(), whole.is_none(), false], "{desired}");
    }
}

/// There is only one empty list, so no update that changes it leaves it invalid.
#[test]
fn an_empty_list_below_a_new_minimum_stays_writable_for_both_checks() {
    let cp = control_plane();
    let names = isolated();
    let list = |least: u64| json!({"type": "array", "minItems": least, "items": {"type": "string"}});
    cp.apply_yaml(&crd(&names, &list(0)).to_string());
    let collection = format!("/apis/{}/v1/samples", names.group);
    let object = |name: &str| {
        json!({"apiVersion": format!("{}/v1", names.group), "kind": "Sample", "metadata": {"name": name},
            "spec": {"list": []}})
    };
    assert_eq!(cp.post(&collection, &object("one")).0, 201);
    let desired = crd(&names, &list(1));
    let report = report(&desired);
    let message = findings(&report, "CustomResourceValidation")[0]["message"].as_str().expect("a message");
    assert!(message.contains("refused when created again"), "{message}");
    assert_eq!(findings(&report, "CRDUpgradeSafety")[0]["breaks"], json!(["writers"]));
    cp.apply_yaml(&desired.to_string());
    eventually("the new schema is in force", || (cp.post(&collection, &object("two")).0 == 422).then_some(()));
    for change in
        [json!({"metadata": {"labels": {"a": "b"}}}), json!({"spec": {"other": "x"}}), json!({"spec": {"list": ["a"]}})]
    {
        assert_eq!(cp.patch(&format!("{collection}/one"), &change).0, 200, "{change}");
    }
}

#[test]
fn a_rule_that_cannot_be_evaluated_has_the_error_of_the_server() {
    let cp = control_plane();
    let int_or_string = || json!({"x-kubernetes-int-or-string": true, "maxLength": 32});
    // The schema of the field, a value, and the rule.
    for (field, value, rule) in [
        (int_or_string(), json!(4), "quantity(self.list).isGreaterThan(quantity('1'))"),
        (json!({"type": "integer"}), json!(0), "10 / self.list > 1"),
        (json!({"type": "integer"}), json!(0), "10 % self.list > 1"),
        (json!({"type": "integer"}), json!(i64::MAX), "self.list + 1 > 0"),
        (json!({"type": "array", "maxItems": 9, "items": {"type": "string"}}), json!([]), "self.list[0] == 'a'"),
        (json!({"type": "string"}), json!("a"), "self.other == 'a'"),
        (json!({"type": "string"}), json!("a"), "int(self.list) > 0"),
        (json!({"type": "string"}), json!("a"), "duration(self.list) > duration('1s')"),
        (json!({"type": "string"}), json!("a"), "timestamp(self.list) > timestamp('2020-01-01T00:00:00Z')"),
    ] {
        let names = isolated();
        let of = |rules: Value| {
            let mut crd = crd(&names, &field);
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] =
                rules;
            crd
        };
        cp.apply_yaml(&of(json!([])).to_string());
        let collection = format!("/apis/{}/v1/samples", names.group);
        let object = |name: &str| {
            json!({"apiVersion": format!("{}/v1", names.group), "kind": "Sample", "metadata": {"name": name},
                "spec": {"list": value}})
        };
        assert_eq!(cp.post(&collection, &object("one")).0, 201);
        let desired = of(json!([{"rule": rule, "message": "the message of the rule"}]));
        let report = report(&desired);
        let found = findings(&report, "CustomResourceValidation").to_vec();
        cp.apply_yaml(&desired.to_string());
        let refused = eventually("the new schema is in force", || {
            let (status, body) = cp.post(&collection, &object("two"));
            (status == 422).then_some(body)
        });
        let words = refused["details"]["causes"][0]["message"].as_str().expect("the server's words");
        assert!(
            words.contains("the message of the rule") && !words.ends_with("\": the message of the rule"),
            "{words}"
        );
        let shown = json!(found).to_string();
        let error = words.strip_prefix("Invalid value: \"object\": ").unwrap_or(words);
        assert!(shown.contains(json!(error).to_string().trim_matches('"')), "the server: {words}\ngantry: {shown}");
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        assert_eq!(cp.patch(&format!("{collection}/one"), &label).0, 422, "{rule}");
        assert_eq!(found[0]["rule"], "ExistingObjectRefusedOnUpdate", "{shown}");
    }
}
