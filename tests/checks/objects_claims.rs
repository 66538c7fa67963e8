//! Verifies the claims of `CustomResourceValidation` about existing objects with the API server: which writes are
//! refused, which values are lost, and which are defaulted.

use std::collections::BTreeMap;
use std::thread;

use crate::support::{
    Gantry, Samples, affected, control_plane, eventually, fields, finding_id, finding_ids, findings, names, text,
};
use serde_json::{Value, json};

/// The claim about one object, and which writes the server accepts once the desired CRD is in force.
struct Claim {
    live: Value,
    desired: Value,
    spec: Value,
    /// Sets the affected field to a different, equally invalid value.
    touch: Value,
    rule: &'static str,
    /// Whether the server accepts: a label, another field of spec, the touch, an identical new object.
    takes: [bool; 4],
}

fn claims() -> Vec<Claim> {
    let with = |field: Value| fields(json!({"x": field, "other": {"type": "string"}, "y": {"type": "string"}}));
    let integer = || with(json!({"type": "integer"}));
    let texts = |more: Value| {
        let mut list = json!({"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9}});
        list.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        with(list)
    };
    let nested = |more: Value| {
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let mut object = json!({"type": "object", "properties": {"map": map, "z": {"type": "string"}}});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        with(object)
    };
    // Next to unchanged fields, some of which are objects and keyed lists, and one of which accepts anything.
    let beside = |x: Value, required: Value| {
        let a = fields(json!({"a": {"type": "integer"}}));
        let item = json!({"type": "object", "required": ["k"],
            "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}});
        let mut schema = fields(json!({"x": x, "other": {"type": "string"}, "y": fields(json!({"n": a})),
            "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}));
        schema["required"] = required;
        schema
    };
    let claim = |live: Value, desired: Value, spec: Value, touch: Value, rule, takes| Claim {
        live,
        desired,
        spec,
        touch,
        rule,
        takes,
    };
    const TOUCHED: &str = "ExistingObjectRefusedWhenTouched";
    const ON_UPDATE: &str = "ExistingObjectRefusedOnUpdate";
    let mut required = integer();
    required["required"] = json!(["x"]);
    let rule_on_spec = |rule: &str| {
        let mut schema = integer();
        schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
        schema
    };
    vec![
        claim(
            integer(),
            with(json!({"type": "integer", "maximum": 5})),
            json!({"x": 7}),
            json!({"x": 8}),
            TOUCHED,
            [true, true, false, false],
        ),
        claim(
            integer(),
            with(json!({"type": "string"})),
            json!({"x": 7}),
            json!({"x": 8}),
            ON_UPDATE,
            [true, true, false, false],
        ),
        claim(integer(), required, json!({"y": "a"}), json!({"y": "b"}), ON_UPDATE, [true, false, false, false]),
        claim(
            integer(),
            with(json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self < 5"}]})),
            json!({"x": 7}),
            json!({"x": 8}),
            TOUCHED,
            [true, true, false, false],
        ),
        claim(
            integer(),
            rule_on_spec("self.x < 5"),
            json!({"x": 7}),
            json!({"x": 8}),
            ON_UPDATE,
            [true, false, false, false],
        ),
        claim(
            integer(),
            with(json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > oldSelf"}]})),
            json!({"x": 7}),
            json!({"x": 6}),
            ON_UPDATE,
            [false, false, false, true],
        ),
        claim(
            integer(),
            with(json!({"type": "integer", "x-kubernetes-validations": [
                {"rule": "oldSelf.hasValue() || self < 5", "optionalOldSelf": true}]})),
            json!({"x": 7}),
            json!({"x": 8}),
            "ExistingObjectRefused",
            [true, true, true, false],
        ),
        claim(
            texts(json!({})),
            texts(json!({"x-kubernetes-list-type": "set"})),
            json!({"x": ["a", "a"]}),
            json!({"x": ["a", "a"], "y": "b"}),
            TOUCHED,
            [true, true, true, false],
        ),
        claim(
            texts(json!({})),
            texts(json!({"items": {"type": "string", "maxLength": 3}})),
            json!({"x": ["long", "b"]}),
            json!({"x": ["long", "c"]}),
            TOUCHED,
            [true, true, false, false],
        ),
        // A bound that the format cannot represent refuses every number.
        claim(
            with(json!({"type": "integer", "format": "int32", "maximum": 10})),
            with(json!({"type": "integer", "format": "int32", "maximum": 3_000_000_000_u32})),
            json!({"x": 5}),
            json!({"x": 6}),
            TOUCHED,
            [true, true, false, false],
        ),
        // A value that exists in the object and is unchanged in the schema counts as not touched.
        claim(
            nested(json!({})),
            nested(json!({"required": ["z"]})),
            json!({"x": {"map": {"k": "v"}}}),
            json!({"x": {"map": {"k": "w"}}}),
            TOUCHED,
            [true, true, false, false],
        ),
        claim(
            with(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
            with(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "required": ["a"],
                    "properties": {"a": {"type": "integer"}}})),
            json!({"x": {"more": 1}}),
            json!({"x": {"more": 2}}),
            ON_UPDATE,
            [false, false, false, false],
        ),
        claim(
            beside(json!({"type": "integer"}), json!([])),
            beside(json!({"type": "integer"}), json!(["x"])),
            json!({"y": {"n": {"a": 1}}, "l": [{"k": "a", "v": 1}]}),
            json!({"y": {"n": {"a": 2}}}),
            ON_UPDATE,
            [true, false, false, false],
        ),
        claim(
            beside(json!({"type": "integer"}), json!([])),
            beside(json!({"type": "integer"}), json!(["x"])),
            json!({"open": {"more": 1}}),
            json!({"y": {"n": {"a": 2}}}),
            ON_UPDATE,
            [false, false, false, false],
        ),
    ]
}

#[test]
fn every_predicted_refusal_is_confirmed_by_the_server() {
    let cp = control_plane();
    thread::scope(|scope| {
        for (number, claim) in claims().into_iter().enumerate() {
            scope.spawn(move || {
                let bed = Samples::new();
                bed.live(&bed.one_version(claim.live));
                bed.create("one", &claim.spec);
                let desired = bed.one_version(claim.desired);
                let report = bed.json(&desired);
                let rules: Vec<String> = findings(&report).iter().map(|finding| text(&finding["rule"])).collect();
                assert_eq!(rules, [claim.rule], "{number}");
                let message = text(&findings(&report)[0]["message"]);
                let is_of_any = message.contains("on any update, even of labels");
                assert_eq!(is_of_any, !claim.takes[0], "{number}: {message}");

                bed.live(&desired);
                let create = || cp.post(&bed.collection("v1"), &bed.object("two", &claim.spec)).0;
                let patch = |body: Value| cp.patch(&bed.path("one"), &body).0;
                if !claim.takes[3] {
                    eventually("the new schema is in force", || {
                        let status = create();
                        if status == 201 {
                            cp.delete(&bed.path("two"));
                        }
                        (status == 422).then_some(())
                    });
                } else {
                    eventually("the new schema is in force", || {
                        (patch(json!({"metadata": {"labels": {"a": "b"}}})) == 422).then_some(())
                    });
                }
                let takes = [
                    patch(json!({"metadata": {"labels": {"a": "c"}}})),
                    patch(json!({"spec": {"other": "set"}})),
                    patch(json!({"spec": claim.touch})),
                    create(),
                ];
                assert_eq!(takes.map(|status| status < 300), claim.takes, "{number}: {takes:?}");
            });
        }
    });
}

#[test]
fn predicted_losses_and_defaults_happen_on_the_server() {
    let cp = control_plane();
    let bed = Samples::new();
    let old = || fields(json!({"kept": {"type": "string"}, "gone": {"type": "string"}, "size": {"type": "integer"}}));
    bed.live(&bed.crd(&[("v1", true, old())]));
    bed.create("one", &json!({"kept": "k", "gone": "g"}));

    // The storage version changes to one that lacks a field and defaults another.
    let new = fields(json!({"kept": {"type": "string"}, "size": {"type": "integer", "default": 3}}));
    let moved = bed.crd(&[("v1", false, old()), ("v2", true, new)]);
    let report = bed.json(&moved);
    let expected = [
        finding_id("ExistingDataPruned", "v2", "spec.gone"),
        finding_id("ExistingObjectDefaultedDifferently", "v2", "spec.size"),
    ];
    assert_eq!(finding_ids(&report), expected);
    assert!(text(&findings(&report)[0]["message"]).contains("when next written: v2 becomes the storage version"));

    bed.live(&moved);
    assert_eq!(cp.get(&bed.path("one")).1["spec"]["gone"], "g", "it still reads");
    // A write of something else at the old version loses the field.
    eventually("v2 is the storage version", || {
        let (_, written) = cp.patch(&bed.path("one"), &json!({"metadata": {"labels": {"n": null, "m": "x"}}}));
        assert_eq!(written["kind"], "Sample", "{written}");
        cp.patch(&bed.path("one"), &json!({"metadata": {"labels": {"n": "y"}}}));
        cp.get(&bed.path("one")).1["spec"].get("gone").is_none().then_some(())
    });
    assert_eq!(cp.get(&bed.path("one")).1["spec"]["kept"], "k");
}

#[test]
fn a_new_scale_subresource_is_compared_with_existing_replicas() {
    let cp = control_plane();
    let bed = Samples::new();
    let live = bed.one_version(fields(json!({"replicas": {"type": "number"}})));
    bed.live(&live);
    for (name, replicas) in [("fits", json!(2)), ("less", json!(-1)), ("part", json!(1.5))] {
        bed.create(name, &json!({"replicas": replicas}));
    }
    let mut desired = live;
    desired["spec"]["versions"][0]["subresources"] =
        json!({"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
    let report = bed.json(&desired);
    let rule = "ExistingObjectRefusedOnUpdate".to_owned();
    assert_eq!(affected(&report), BTreeMap::from([((rule, "spec.replicas".to_owned()), names(["less", "part"]))]));
    let messages: Vec<String> = findings(&report).iter().map(|finding| text(&finding["message"])).collect();
    assert!(messages.iter().all(|message| message.contains("because the scale subresource reads it")), "{messages:?}");

    bed.live(&desired);
    let touch = |name: &str| cp.patch(&bed.path(name), &json!({"metadata": {"labels": {"a": name}}})).0;
    eventually("the subresource is in force", || (touch("less") == 422).then_some(()));
    assert_eq!(["fits", "part"].map(touch), [200, 422]);
}

/// A default that the scale subresource refuses, in a field that it has always read.
#[test]
fn a_default_that_the_scale_subresource_refuses_blocks_every_update() {
    let cp = control_plane();
    let bed = Samples::new();
    let crd = |replicas: Value| {
        let mut crd = bed.one_version(fields(json!({"replicas": replicas})));
        crd["spec"]["versions"][0]["subresources"] =
            json!({"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
        crd
    };
    bed.live(&crd(json!({"type": "integer"})));
    bed.create("none", &json!({}));
    bed.create("one", &json!({"replicas": 1}));
    let desired = crd(json!({"type": "integer", "default": -1}));
    let report = bed.json(&desired);
    let of = |rule: &str| ((rule.to_owned(), "spec.replicas".to_owned()), names(["none"]));
    let expected = [of("ExistingObjectDefaultedDifferently"), of("ExistingObjectRefusedOnUpdate")];
    assert_eq!(affected(&report), BTreeMap::from(expected));

    bed.live(&desired);
    let touch = |name: &str| cp.patch(&bed.path(name), &json!({"metadata": {"labels": {"a": name}}})).0;
    eventually("the default is in force", || (touch("none") == 422).then_some(()));
    assert_eq!(touch("one"), 200);
}

/// Lists of objects or lists that become a set: only server-side apply refuses them.
#[test]
fn a_set_of_objects_blocks_every_server_side_apply() {
    let cp = control_plane();
    let bed = Samples::new();
    let spec = |list_type: &str| {
        let list =
            |items: Value| json!({"type": "array", "maxItems": 1, "x-kubernetes-list-type": list_type, "items": items});
        fields(json!({
            "objects": list(json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}})),
            "any": list(json!({"x-kubernetes-preserve-unknown-fields": true})),
            "texts": list(json!({"type": "string"})),
        }))
    };
    bed.live(&bed.one_version(spec("atomic")));
    bed.create("object", &json!({"objects": [{"a": "b"}]}));
    bed.create("list", &json!({"any": [["a"]]}));
    bed.create("text", &json!({"any": ["a"], "texts": ["a"]}));
    let desired = bed.one_version(spec("set"));
    let report = bed.json(&desired);
    let of = |path: &str, name: &str| (("ExistingObjectRefusedOnUpdate".to_owned(), path.to_owned()), names([name]));
    assert_eq!(affected(&report), BTreeMap::from([of("spec.any", "list"), of("spec.objects", "object")]));
    for finding in findings(&report) {
        assert!(text(&finding["message"]).contains("refused on any server-side apply"), "{finding}");
    }

    bed.live(&desired);
    let label = |name: &str| {
        let mut object = bed.object(name, &json!({}));
        object.as_object_mut().expect("an object").remove("spec");
        object["metadata"]["labels"] = json!({"a": name});
        cp.server_side_apply(&bed.path(name), "label", &object).0
    };
    eventually("the set is in force", || (label("object") == 500).then_some(()));
    assert_eq!(["list", "text"].map(label), [500, 200]);
    let patch = |name: &str| cp.patch(&bed.path(name), &json!({"metadata": {"labels": {"b": name}}})).0;
    assert_eq!(["object", "list"].map(patch), [200, 200], "other writes are not refused");
}

/// A field that becomes an embedded resource: its metadata is decoded into a fixed form, or cannot be decoded.
#[test]
fn malformed_embedded_metadata_is_lost_or_makes_an_object_unreadable() {
    let cp = control_plane();
    let bed = Samples::new();
    let pod = |metadata: Value| json!({"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}});
    let mut field = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    bed.live(&bed.one_version(fields(json!({"pod": field}))));
    bed.create("fits", &pod(json!({"name": "x", "labels": {"a": "1"}})));
    bed.create("number", &pod(json!({"name": "x", "labels": {"a": 1}})));
    bed.create("text", &pod(json!("x")));
    bed.create("kind", &json!({"pod": {"apiVersion": "v1", "kind": 2}}));

    field["x-kubernetes-embedded-resource"] = json!(true);
    let desired = bed.one_version(fields(json!({"pod": field})));
    let at = |rule: &str, path: &str| (rule.to_owned(), path.to_owned());
    let expected = BTreeMap::from([
        (at("ExistingDataPruned", "spec.pod.kind"), names(["kind"])),
        (at("ExistingDataPruned", "spec.pod.metadata.labels"), names(["number"])),
        (at("ExistingObjectRefusedOnUpdate", "spec.pod.kind"), names(["kind"])),
        (at("ExistingObjectRefusedOnUpdate", "spec.pod.metadata"), names(["text"])),
    ]);
    assert_eq!(affected(&bed.json(&desired)), expected);

    bed.live(&desired);
    eventually("the new schema is in force", || (cp.get(&bed.path("text")).0 == 500).then_some(()));
    let metadata = |name: &str| cp.get(&bed.path(name)).1["spec"]["pod"]["metadata"].clone();
    assert_eq!(
        (metadata("fits"), metadata("number")),
        (json!({"name": "x", "labels": {"a": "1"}}), json!({"name": "x"}))
    );
    let touch = json!({"metadata": {"labels": {"a": "b"}}});
    let written = ["fits", "number", "text", "kind"].map(|name| cp.patch(&bed.path(name), &touch).0);
    assert_eq!(written, [200, 200, 500, 422]);
}

#[test]
fn a_null_that_is_no_longer_allowed_is_lost() {
    let cp = control_plane();
    let bed = Samples::new();
    fn without_null() -> Value {
        json!({"type": "string"})
    }
    fn with_null() -> Value {
        json!({"type": "string", "nullable": true})
    }
    let map = |entry: Value| json!({"type": "object", "additionalProperties": entry});
    let spec = |of: fn() -> Value, entry: Value, open: Value| {
        fields(json!({"a": of(), "map": map(of()), "any": map(entry), "open": open, "kept": map(json!(true)),
            "list": {"type": "array", "items": fields(json!({"a": of()}))}}))
    };
    let unknown = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    bed.live(&bed.one_version(spec(with_null, json!(true), unknown())));
    let entries = json!({"k": null, "l": "x"});
    let stored = json!({"a": null, "map": entries, "any": entries, "open": entries, "kept": entries,
        "list": [{"a": null}]});
    bed.create("nulls", &stored);
    bed.create("none", &json!({"a": "x", "map": {"l": "x"}}));
    assert_eq!(cp.get(&bed.path("nulls")).1["spec"], stored);

    let mut open = unknown();
    open["properties"] = json!({"k": without_null()});
    let desired = bed.one_version(spec(without_null, json!({"x-kubernetes-preserve-unknown-fields": true}), open));
    let report = bed.check(&desired, &["-o", "json"]).code(3).report();
    let lost: Vec<String> = findings(&report)
        .iter()
        .filter(|finding| finding["rule"] == "ExistingDataPruned")
        .map(|finding| {
            assert_eq!(finding["affected"]["objects"][0]["name"], "nulls");
            assert!(text(&finding["message"]).ends_with(": it is null, which is not allowed in v1"), "{finding}");
            text(&finding["path"])
        })
        .collect();
    assert_eq!(lost, ["spec.a", "spec.any[*]", "spec.list[*].a", "spec.map[*]", "spec.open.k"]);

    bed.live(&desired);
    let left = json!({"l": "x"});
    let expected = json!({"map": left, "any": left, "open": left, "kept": entries, "list": [{}]});
    eventually("the server uses the new schema", || {
        (cp.get(&bed.path("nulls")).1["spec"].get("a").is_none()).then_some(())
    });
    assert_eq!(cp.get(&bed.path("nulls")).1["spec"], expected);
}

/// As the message of `NullableChange` says.
#[test]
fn a_null_in_a_list_that_is_no_longer_allowed_is_refused() {
    let cp = control_plane();
    let bed = Samples::new();
    let spec = |items: Value| fields(json!({"list": {"type": "array", "items": items}}));
    bed.live(&bed.one_version(spec(json!({"type": "string", "nullable": true}))));
    bed.create("nulls", &json!({"list": ["a", null]}));
    let desired = bed.one_version(spec(json!({"type": "string"})));
    let gantry = Gantry::new().kubeconfig(cp.kubeconfig("admin")).stdin(desired.to_string());
    let output = gantry.args(["check", "-f", "-", "--preflight", "CRDUpgradeSafety", "--force-conflicts"]).run();
    output.code(3).stdout_contains("error[NullableChange]").stdout_contains("refuses a null from now on");

    bed.live(&desired);
    eventually("the server uses the new schema", || {
        let again = bed.object("again", &json!({"list": ["a", null]}));
        (cp.post(&bed.collection("v1"), &again).0 == 422).then_some(())
    });
    assert_eq!(cp.get(&bed.path("nulls")).1["spec"], json!({"list": ["a", null]}));
}
