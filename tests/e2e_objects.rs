//! `CustomResourceValidation` from the command line, on objects that exist on a real API server; and each of its claims
//! about them put to that server.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::thread;

use serde_json::{Value, json};
use support::{Gantry, Isolated, Output, Proxy, When, control_plane, eventually, isolated};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A CRD of its own, with objects in a namespace of its own.
struct Bed {
    names: Isolated,
}

impl Bed {
    fn new() -> Self {
        let bed = Bed { names: isolated() };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bed.names.namespace}});
        control_plane().apply_yaml(&namespace.to_string());
        bed
    }

    /// A CRD of these versions: name, whether it is the storage version, schema of `spec`.
    fn crd(&self, versions: &[(&str, bool, Value)]) -> Value {
        let version = |(name, storage, spec): &(&str, bool, Value)| {
            json!({"name": name, "served": true, "storage": storage,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("samples.{}", self.names.group)},
            "spec": {
                "group": self.names.group,
                "scope": "Namespaced",
                "names": {"plural": "samples", "singular": "sample", "kind": "Sample", "listKind": "SampleList"},
                "versions": versions.iter().map(version).collect::<Vec<_>>(),
            },
        })
    }

    fn one_version(&self, spec: Value) -> Value {
        self.crd(&[("v1", true, spec)])
    }

    fn object(&self, name: &str, spec: &Value) -> Value {
        json!({"apiVersion": format!("{}/v1", self.names.group), "kind": "Sample",
            "metadata": {"name": name, "namespace": self.names.namespace}, "spec": spec})
    }

    fn collection(&self, version: &str) -> String {
        format!("/apis/{}/{version}/namespaces/{}/samples", self.names.group, self.names.namespace)
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.collection("v1"))
    }

    fn crd_path(&self) -> String {
        format!("{CRDS}/samples.{}", self.names.group)
    }

    /// Puts a CRD on the server.
    fn live(&self, crd: &Value) {
        control_plane().apply_yaml(&crd.to_string());
    }

    fn create(&self, name: &str, spec: &Value) {
        let (status, answer) = control_plane().post(&self.collection("v1"), &self.object(name, spec));
        assert_eq!(status, 201, "{answer}");
    }

    fn gantry(&self, kubeconfig: PathBuf, command: &str, manifests: &Value, flags: &[&str]) -> Output {
        let arguments = [command, "-f", "-", "--preflight", "CustomResourceValidation"];
        Gantry::new().kubeconfig(kubeconfig).args(arguments).args(flags).stdin(manifests.to_string()).run()
    }

    fn check(&self, crd: &Value, flags: &[&str]) -> Output {
        self.gantry(control_plane().kubeconfig("admin"), "check", crd, flags)
    }

    fn json(&self, crd: &Value) -> Value {
        self.check(crd, &["-o", "json"]).report()
    }
}

fn fields(fields: Value) -> Value {
    json!({"type": "object", "properties": fields})
}

fn findings(report: &Value) -> Vec<Value> {
    report["checks"][0]["findings"].as_array().expect("findings").clone()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The names of the affected objects of each rule and path.
fn affected(report: &Value) -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut affected: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for finding in findings(report) {
        let objects = finding["affected"]["objects"].as_array().expect("objects").iter();
        let names: BTreeSet<String> = objects.map(|object| text(&object["name"])).collect();
        assert_eq!(finding["affected"]["count"], names.len(), "{finding}");
        affected.entry((text(&finding["rule"]), text(&finding["path"]))).or_default().extend(names);
    }
    affected
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

#[test]
fn among_500_objects_exactly_those_that_break_are_named_and_once_repaired_the_deploy_passes() {
    let cp = control_plane();
    let bed = Bed::new();
    let live = bed.one_version(fields(json!({
        "interval": {"type": "string"}, "owner": {"type": "string"}, "retries": {"type": "integer"},
        "legacy": {"type": "string"},
        "config": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}})));
    bed.live(&live);
    let good = |number: usize| json!({"interval": "5m", "owner": format!("team-{number}"), "retries": 3});
    let name = |number: usize| format!("object-{number:03}");
    thread::scope(|scope| {
        for part in 0..4 {
            let bed = &bed;
            scope.spawn(move || {
                for number in (part..500).step_by(4) {
                    let mut spec = good(number);
                    match number {
                        77 => drop(spec.as_object_mut().unwrap().remove("owner")),
                        177 => spec["retries"] = json!(9),
                        277 => spec["config"] = json!({"colour": "red"}),
                        _ if number % 25 == 0 => spec["legacy"] = json!(format!("secret-{number}")),
                        _ => {}
                    }
                    bed.create(&name(number), &spec);
                }
            });
        }
    });
    let desired = bed.one_version(json!({"type": "object", "required": ["owner"], "properties": {
        "interval": {"type": "string"}, "owner": {"type": "string"}, "retries": {"type": "integer", "maximum": 5},
        "config": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "required": ["level"], "properties": {"level": {"type": "integer"}}}}}));

    let blocked = bed.gantry(cp.kubeconfig("admin"), "deploy", &desired, &["-o", "json", "--force-conflicts"]);
    let report = blocked.code(3).report();
    let losing: BTreeSet<String> = (0..500).step_by(25).map(name).collect();
    let expected = BTreeMap::from([
        (("ExistingDataPruned".to_owned(), "spec.legacy".to_owned()), losing.clone()),
        (("ExistingObjectRefusedOnUpdate".to_owned(), "spec.config.level".to_owned()), names(["object-277"])),
        (("ExistingObjectRefusedOnUpdate".to_owned(), "spec.owner".to_owned()), names(["object-077"])),
        (("ExistingObjectRefusedWhenTouched".to_owned(), "spec.retries".to_owned()), names(["object-177"])),
    ]);
    assert_eq!(affected(&report), expected);
    assert!(findings(&report).iter().all(|finding| finding["affected"]["of"] == 500));
    let human = bed.check(&desired, &[]);
    human.code(3).stdout_contains("20 of 500 objects lose spec.legacy");
    human.stdout_contains(&format!("{}/object-277  spec.config.level", bed.names.namespace));
    human.stdout_contains(&format!("{}/object-225  spec.legacy: \"secret-225\"", bed.names.namespace));
    human.stdout_contains("… and 10 more (-v shows them");
    assert!(!human.stdout.contains("object-250"), "{human}");

    for (number, change) in
        [(77, json!({"owner": "me"})), (177, json!({"retries": 5})), (277, json!({"config": {"level": 3}}))]
    {
        assert_eq!(cp.patch(&bed.path(&name(number)), &json!({"spec": change})).0, 200);
    }
    for object in &losing {
        assert_eq!(cp.patch(&bed.path(object), &json!({"spec": {"legacy": null}})).0, 200);
    }
    let flags = ["-o", "json", "--force-conflicts"];
    let deployed = bed.gantry(cp.kubeconfig("admin"), "deploy", &desired, &flags);
    assert_eq!(deployed.code(0).report()["outcome"], "deployed");
    assert_eq!(findings(&deployed.report()), Vec::<Value>::new());
}

/// What becomes of one object, and which writes the server takes once the desired CRD is in force.
struct Claim {
    live: Value,
    desired: Value,
    spec: Value,
    /// Sets the field in question to another value that is as wrong.
    touch: Value,
    rule: &'static str,
    /// Whether the server takes: a label, another field of spec, the touch, a new object like it.
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
    // Beside fields that stay as they are, some of which hold objects and lists with keys, one anything.
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
        // What is in the object and stays as it is in the schema counts as left alone.
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
fn every_claim_about_refusals_is_the_servers_own_verdict() {
    let cp = control_plane();
    thread::scope(|scope| {
        for (number, claim) in claims().into_iter().enumerate() {
            scope.spawn(move || {
                let bed = Bed::new();
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
fn lost_and_filled_in_fields_are_lost_and_filled_in_on_the_server() {
    let cp = control_plane();
    let bed = Bed::new();
    let old = || fields(json!({"kept": {"type": "string"}, "gone": {"type": "string"}, "size": {"type": "integer"}}));
    bed.live(&bed.crd(&[("v1", true, old())]));
    bed.create("one", &json!({"kept": "k", "gone": "g"}));

    // The storage version moves to one that lacks a field, and fills another one in.
    let new = fields(json!({"kept": {"type": "string"}, "size": {"type": "integer", "default": 3}}));
    let moved = bed.crd(&[("v1", false, old()), ("v2", true, new)]);
    let report = bed.json(&moved);
    let said: Vec<(String, String, String)> = findings(&report)
        .iter()
        .map(|finding| (text(&finding["rule"]), text(&finding["version"]), text(&finding["path"])))
        .collect();
    let say = |rule: &str, path: &str| (rule.to_owned(), "v2".to_owned(), path.to_owned());
    assert_eq!(said, [say("ExistingDataPruned", "spec.gone"), say("ExistingObjectDefaultedDifferently", "spec.size")]);
    assert!(text(&findings(&report)[0]["message"]).contains("when next written: v2 becomes the storage version"));

    bed.live(&moved);
    assert_eq!(cp.get(&bed.path("one")).1["spec"]["gone"], "g", "it still reads");
    // A write at the old version, of something else, loses it.
    eventually("v2 is the storage version", || {
        let (_, written) = cp.patch(&bed.path("one"), &json!({"metadata": {"labels": {"n": null, "m": "x"}}}));
        assert_eq!(written["kind"], "Sample", "{written}");
        cp.patch(&bed.path("one"), &json!({"metadata": {"labels": {"n": "y"}}}));
        cp.get(&bed.path("one")).1["spec"].get("gone").is_none().then_some(())
    });
    assert_eq!(cp.get(&bed.path("one")).1["spec"]["kept"], "k");
}

#[test]
fn a_scale_subresource_is_held_against_the_numbers_that_exist() {
    let cp = control_plane();
    let bed = Bed::new();
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
    assert!(messages.iter().all(|message| message.contains("since the scale subresource reads it")), "{messages:?}");

    bed.live(&desired);
    let touch = |name: &str| cp.patch(&bed.path(name), &json!({"metadata": {"labels": {"a": name}}})).0;
    eventually("the subresource is in force", || (touch("less") == 422).then_some(()));
    assert_eq!(["fits", "part"].map(touch), [200, 422]);
}

/// A field that becomes an embedded resource: its metadata is read into a fixed form, or not at all.
#[test]
fn metadata_that_does_not_fit_is_lost_when_read_and_makes_an_object_unreadable_where_it_is_none() {
    let cp = control_plane();
    let bed = Bed::new();
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
fn a_new_version_is_held_against_every_object_and_a_version_that_goes_names_its_writers() {
    let cp = control_plane();
    let bed = Bed::new();
    let v1 = || fields(json!({"a": {"type": "string"}, "b": {"type": "string"}}));
    let alpha = || fields(json!({"a": {"type": "string"}, "b": {"type": "string"}}));
    bed.live(&bed.crd(&[("v1", true, v1()), ("v1alpha1", false, alpha())]));
    bed.create("one", &json!({"a": "x"}));
    let mut two = bed.object("two", &json!({"b": "y"}));
    two["apiVersion"] = json!(format!("{}/v1alpha1", bed.names.group));
    let path = format!("{}/two", bed.collection("v1alpha1"));
    assert_eq!(cp.server_side_apply(&path, "old-controller", &two).0, 201);

    let mut desired = bed.crd(&[
        ("v1", true, v1()),
        ("v1alpha1", false, alpha()),
        ("v2", false, fields(json!({"b": {"type": "string"}}))),
    ]);
    desired["spec"]["versions"][1]["served"] = json!(false);
    let found = findings(&bed.check(&desired, &["-o", "json"]).code(3).report());
    let said: Vec<(String, String, Value)> = found
        .iter()
        .map(|f| (text(&f["rule"]), text(&f["version"]), f["affected"]["objects"][0]["name"].clone()))
        .collect();
    assert_eq!(
        said,
        [
            ("ObjectInRemovedVersion".to_owned(), "v1alpha1".to_owned(), json!("two")),
            ("ExistingDataPruned".to_owned(), "v2".to_owned(), json!("one")),
        ]
    );
    assert!(text(&found[0]["message"]).contains("by old-controller"), "{}", found[0]);
    assert_eq!(found[0]["severity"], "warning");
    let when = text(&found[0]["affected"]["objects"][0]["value"]);
    let (_, live) = cp.get(&path);
    assert_eq!(when, format!("last {}", text(&live["metadata"]["managedFields"][0]["time"])));
}

#[test]
fn nothing_is_listed_where_nothing_can_break() {
    let bed = Bed::new();
    let proxy = Proxy::start(control_plane());
    let live = bed.one_version(fields(json!({"a": {"type": "string"}})));
    bed.live(&live);
    bed.create("one", &json!({"a": "x"}));
    let mut desired = live.clone();
    desired["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!("words");
    desired["spec"]["names"]["shortNames"] = json!(["smp"]);
    bed.gantry(proxy.kubeconfig("admin"), "check", &desired, &[]).code(0);
    let lists = |proxy: &Proxy| proxy.requests().iter().filter(|request| request.path.ends_with("/samples")).count();
    assert_eq!(lists(&proxy), 0, "{:?}", proxy.requests());
    desired["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["a"]["maxLength"] =
        json!(9);
    bed.gantry(proxy.kubeconfig("admin"), "check", &desired, &[]).code(0);
    assert!(lists(&proxy) > 0, "{:?}", proxy.requests());
}

#[test]
fn redacted_output_has_kinds_and_no_values() {
    let bed = Bed::new();
    bed.live(&bed.one_version(fields(
        json!({"password": {"type": "string"}, "pin": {"type": "string"}, "note": {"type": "string"}}),
    )));
    bed.create("one", &json!({"password": "hunter2", "pin": "hunter22"}));
    let desired = bed.one_version(fields(
        json!({"pin": {"type": "string", "maxLength": 4}, "note": {"type": "string", "format": "date"}}),
    ));
    let object = bed.object("new", &json!({"pin": "hunter222", "note": "hunter2222", "hunter3": 1}));
    let both = json!({"apiVersion": "v1", "kind": "List", "items": [desired, object]});
    bed.check(&both, &[]).code(3).stdout_contains("\"hunter2\"");
    for flags in [&["--redact"][..], &["--redact", "-o", "json"], &["--redact", "-v"]] {
        let output = bed.check(&both, flags);
        output.code(3).contains_nowhere("hunter2").stdout_contains("spec.password").stdout_contains("spec.pin");
    }
    let found = findings(&bed.check(&both, &["--redact", "-o", "json"]).report());
    assert_eq!(found[0]["affected"]["objects"][0]["value"], "string");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("redact.yaml");
    std::fs::write(&config, "{apiVersion: gantry.dev/v1alpha1, kind: Config, redact: true}").unwrap();
    bed.check(&both, &["-c", config.to_str().unwrap()]).code(3).contains_nowhere("hunter2");
}

#[test]
fn namespaces_labels_and_examples_narrow_what_is_looked_at() {
    let cp = control_plane();
    let bed = Bed::new();
    bed.live(&bed.one_version(fields(json!({"a": {"type": "string"}}))));
    let other = format!("{}-b", bed.names.namespace);
    cp.apply_yaml(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}).to_string());
    for (namespace, name, tier) in
        [(&bed.names.namespace, "one", "x"), (&bed.names.namespace, "two", "y"), (&other, "three", "x")]
    {
        let mut object = bed.object(name, &json!({"a": "b"}));
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["labels"] = json!({"tier": tier});
        let path = format!("/apis/{}/v1/namespaces/{namespace}/samples", bed.names.group);
        assert_eq!(cp.post(&path, &object).0, 201);
    }
    let desired = bed.one_version(fields(json!({"b": {"type": "string"}})));
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    let with = |keys: &str, flags: &[&str]| {
        let text = format!(
            "{{apiVersion: gantry.dev/v1alpha1, kind: Config, preflightRules: [{{name: CustomResourceValidation, config: {{{keys}}}}}]}}"
        );
        std::fs::write(&config, text).unwrap();
        bed.check(&desired, &[&["-c", config.to_str().unwrap()], flags].concat())
    };
    let who = |keys: &str| affected(&with(keys, &["-o", "json"]).code(3).report()).into_values().next().unwrap();
    assert_eq!(who(""), names(["one", "two", "three"]));
    assert_eq!(who("pageSize: 1"), names(["one", "two", "three"]));
    assert_eq!(who(&format!("namespaces: [{other}]")), names(["three"]));
    assert_eq!(who(&format!("namespaces: [{0}, {0}]", bed.names.namespace)), names(["one", "two"]));
    assert_eq!(who("labelSelector: tier=x"), names(["one", "three"]));
    assert_eq!(who(&format!("labelSelector: 'tier in (x)', namespaces: [{}]", bed.names.namespace)), names(["one"]));
    with("maxExamples: 1", &[]).code(3).stdout_contains("… and 2 more");
    with("mode: warn", &[]).code(0).stdout_contains("3 objects lose spec.a");
    for (keys, words) in [
        ("pageSize: 0", "not a whole number from 1 to 10000"),
        ("namespaces: [Team_A]", "is not a namespace"),
        ("namespaces: team", "is not a list of namespaces"),
        ("labelSelector: 'a in b'", "labelSelector"),
        ("maxExample: 3", "did you mean \"maxExamples\"?"),
    ] {
        with(keys, &[]).code(2).stderr_contains(words);
    }
}

#[test]
fn a_folder_gives_the_same_findings_as_the_server() {
    let cp = control_plane();
    let bed = Bed::new();
    bed.live(&bed.one_version(fields(json!({"a": {"type": "string"}, "n": {"type": "integer"}}))));
    bed.create("one", &json!({"a": "x", "n": 7}));
    bed.create("two", &json!({"n": 3}));
    let desired = bed.one_version(json!({"type": "object", "required": ["m"], "properties": {
        "m": {"type": "string", "default": "d"}, "n": {"type": "integer", "maximum": 5}}}));
    let folder = tempfile::tempdir().unwrap();
    let cluster = folder.path().join("cluster");
    std::fs::create_dir(&cluster).unwrap();
    std::fs::write(cluster.join("crd.json"), cp.get(&bed.crd_path()).1.to_string()).unwrap();
    for name in ["one", "two"] {
        std::fs::write(cluster.join(format!("{name}.json")), cp.get(&bed.path(name)).1.to_string()).unwrap();
    }
    let target = format!("dir:{}", cluster.display());
    let on_folder = bed.check(&desired, &["--target", &target, "-o", "json"]);
    let on_server = bed.check(&desired, &["-o", "json"]);
    assert_eq!(findings(&on_folder.code(3).report()), findings(&on_server.code(3).report()));
    assert_eq!(findings(&on_server.report()).len(), 3);
}

#[test]
fn a_list_that_expires_once_is_counted_once_and_twice_is_no_pass() {
    let bed = Bed::new();
    bed.live(&bed.one_version(fields(json!({"a": {"type": "string"}}))));
    for number in 0..9 {
        bed.create(&format!("o{number}"), &json!({"a": "b"}));
    }
    let desired = bed.one_version(fields(json!({"b": {"type": "string"}})));
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.yaml");
    std::fs::write(
        &config,
        "{apiVersion: gantry.dev/v1alpha1, kind: Config, preflightRules: [{name: CustomResourceValidation, config: {pageSize: 3}}]}",
    )
    .unwrap();
    let flags = ["-o", "json", "-c", config.to_str().unwrap()];
    let gone = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Expired",
        "message": "The provided continue parameter is too old", "code": 410});

    let proxy = Proxy::start(control_plane());
    proxy.answer(When::new("GET", "/samples").query("continue=").nth(1), 410, gone.clone());
    let once = bed.gantry(proxy.kubeconfig("admin"), "check", &desired, &flags);
    let found = findings(&once.code(3).report());
    assert_eq!((&found[0]["affected"]["count"], &found[0]["affected"]["of"]), (&json!(9), &json!(9)));

    let proxy = Proxy::start(control_plane());
    for nth in 0..4 {
        proxy.answer(When::new("GET", "/samples").query("continue=").nth(nth), 410, gone.clone());
    }
    let twice = bed.gantry(proxy.kubeconfig("admin"), "check", &desired, &flags);
    let report = twice.code(1).report();
    assert_eq!(report["checks"][0]["status"], "failed");
    assert!(text(&report["checks"][0]["unchecked"][0]["message"]).contains("cannot be judged"), "{twice}");
}

#[test]
fn whoever_may_not_list_is_told_the_rule_to_ask_for() {
    let cp = control_plane();
    let bed = Bed::new();
    bed.live(&bed.one_version(fields(json!({"a": {"type": "string"}}))));
    bed.create("one", &json!({"a": "b"}));
    let user = cp.user(&json!([{"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get", "list"]}]));
    let desired = bed.one_version(fields(json!({"b": {"type": "string"}})));
    let output = bed.gantry(cp.kubeconfig(&user), "check", &desired, &[]);
    output.code(1).stdout_contains("could not check");
    for line in [
        format!("- apiGroups: [\"{}\"]", bed.names.group),
        "resources: [\"samples\"]".into(),
        "verbs: [\"list\"]".into(),
    ] {
        output.stdout_contains(&line);
    }
    let report = bed.gantry(cp.kubeconfig(&user), "check", &desired, &["-o", "json", "--warn-only"]).code(1).report();
    assert_eq!(report["outcome"], "failed");

    // A CRD that is not among the manifests has to be read.
    let blind = cp.user(&json!([{"apiGroups": [bed.names.group], "resources": ["samples"], "verbs": ["get", "list"]}]));
    let output = bed.gantry(cp.kubeconfig(&blind), "check", &bed.object("new", &json!({"a": 1})), &[]);
    output
        .code(1)
        .stdout_contains("custom resources cannot be validated without their CRDs")
        .stdout_contains("customresourcedefinitions");
}
