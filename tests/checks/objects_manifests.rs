//! `CustomResourceValidation` from the command line, on custom resources among the manifests, and on objects that need
//! a conversion webhook.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{
    Bed, CrdBuilder, Isolated, Output, Proxy, Webhook, control_plane, fields, finding_id, finding_ids, findings,
};
use serde_json::{Value, json};

/// The CRD with this schema of `spec`.
fn crd(bed: &Bed, spec: &str) -> String {
    bed.crd(&format!("spec: {spec}"))
}

fn sample(bed: &Bed, name: &str, spec: &str) -> String {
    let Isolated { group, namespace } = &bed.names;
    format!("apiVersion: {group}/v1\nkind: Sample\nmetadata:\n  name: {name}\n  namespace: {namespace}\nspec:\n{spec}")
}

fn path(bed: &Bed, version: &str, name: &str) -> String {
    format!("/apis/{}/{version}/namespaces/{}/samples/{name}", bed.names.group, bed.names.namespace)
}

fn gantry(bed: &Bed, arguments: &[&str]) -> Output {
    let check = ["--preflight", "CustomResourceValidation"];
    bed.gantry(control_plane().kubeconfig("admin"), arguments).args(check).run()
}

#[test]
fn a_misspelt_field_is_found_at_its_line_before_anything_is_applied() {
    let cp = control_plane();
    let bed = Bed::with_namespace();
    cp.apply_yaml(&crd(
        &bed,
        "{type: object, properties: {replicas: {type: integer}, name: {type: string, maxLength: 3}}}",
    ));
    bed.write(
        "a.yaml",
        &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: first, namespace: {}}}\n", bed.names.namespace),
    );
    bed.write("b.yaml", &sample(&bed, "one", "  name: abc\n  replcas: 3\n"));
    let proxy = Proxy::start(cp);
    let arguments = ["deploy", "-f", ".", "--preflight", "CustomResourceValidation"];
    let output = bed.gantry(proxy.kubeconfig("admin"), &arguments).run();
    output.code(3).stdout_contains("error[ManifestUnknownField]: unknown field \"spec.replcas\"");
    output.stdout_contains("b.yaml:8:3").stdout_contains("did you mean \"replicas\"?");
    assert_eq!(proxy.writes(), []);

    bed.write("b.yaml", &sample(&bed, "one", "  name: abcd\n  replicas: many\n"));
    let report = gantry(&bed, &["check", "-f", "b.yaml", "-o", "json"]).code(3).report();
    let placed: Vec<(Value, Value, Value)> = findings(&report)
        .iter()
        .map(|finding| (finding["path"].clone(), finding["source"]["line"].clone(), finding["rule"].clone()))
        .collect();
    let rule = json!("ManifestObjectRefused");
    assert_eq!(placed, [(json!("spec.name"), json!(7), rule.clone()), (json!("spec.replicas"), json!(8), rule)]);
    // The server refuses it, too.
    let (status, refused) = cp.post(
        path(&bed, "v1", "").trim_end_matches('/'),
        &json!({"apiVersion": format!("{}/v1", bed.names.group), "kind": "Sample",
            "metadata": {"name": "one", "namespace": bed.names.namespace}, "spec": {"name": "abcd", "replicas": "many"}}),
    );
    assert_eq!(status, 422);
    for finding in findings(&report) {
        let said = finding["message"].as_str().unwrap().split_once("refuses it: ").unwrap().1.to_owned();
        assert!(refused["message"].as_str().unwrap().contains(&said), "{said} {refused}");
    }
    bed.write("b.yaml", &sample(&bed, "one", "  name: abc\n  replicas: 3\n"));
    assert_eq!(gantry(&bed, &["deploy", "-f", ".", "-o", "json"]).code(0).report()["outcome"], "deployed");
}

#[test]
fn objects_are_validated_by_the_new_crd_of_the_same_deploy() {
    let cp = control_plane();
    let bed = Bed::with_namespace();
    bed.write("crd.yaml", &crd(&bed, "{type: object, properties: {size: {type: integer, maximum: 5}}}"));
    bed.write("object.yaml", &sample(&bed, "one", "  size: 7\n"));
    // The kind is not live yet.
    gantry(&bed, &["deploy", "-f", "."]).code(3).stdout_contains("object.yaml:7:3").stdout_contains("Invalid value: 7");
    assert_eq!(cp.get(&format!("/apis/{}/v1", bed.names.group)).0, 404);
    bed.write("object.yaml", &sample(&bed, "one", "  size: 5\n"));
    gantry(&bed, &["deploy", "-f", "."]).code(0);
    // It is live, and a wider schema is among the manifests.
    bed.write(
        "crd.yaml",
        &crd(&bed, "{type: object, properties: {size: {type: integer, maximum: 9}, more: {type: string}}}"),
    );
    bed.write("object.yaml", &sample(&bed, "one", "  size: 9\n  more: x\n"));
    gantry(&bed, &["deploy", "-f", "."]).code(0);
    assert_eq!(cp.get(&path(&bed, "v1", "one")).1["spec"], json!({"size": 9, "more": "x"}));
    // An invalid live value that is not changed is tolerated, by gantry and by the server.
    cp.apply_yaml(&crd(&bed, "{type: object, properties: {size: {type: integer, maximum: 3}, more: {type: string}}}"));
    std::fs::remove_file(bed.folder.path().join("crd.yaml")).unwrap();
    bed.write("object.yaml", &sample(&bed, "one", "  size: 9\n  more: z\n"));
    gantry(&bed, &["deploy", "-f", "."]).code(0);
    assert_eq!(cp.get(&path(&bed, "v1", "one")).1["spec"]["more"], "z");
    bed.write("object.yaml", &sample(&bed, "one", "  size: 8\n  more: z\n"));
    gantry(&bed, &["deploy", "-f", "."]).code(3).stdout_contains("object.yaml:7:3");
    // An identical new object is refused.
    bed.write("object.yaml", &sample(&bed, "two", "  size: 9\n"));
    gantry(&bed, &["deploy", "-f", "."]).code(3);
}

#[test]
fn a_null_that_an_apply_would_write_is_refused_as_on_the_server() {
    let cp = control_plane();
    let bed = Bed::with_namespace();
    bed.write(
        "crd.yaml",
        &crd(
            &bed,
            "{type: object, properties: {text: {type: string}, free: {type: string, nullable: true}, \
             filled: {type: string, default: x}, object: {type: object, properties: {text: {type: string}}}}}",
        ),
    );
    let deploy = |spec: &str| {
        bed.write("object.yaml", &sample(&bed, "one", spec));
        gantry(&bed, &["deploy", "-f", "."])
    };
    // A create drops such a null; a server-side apply does not.
    let refused = deploy("  text: null\n");
    refused.code(3).stdout_contains("object.yaml:7:3").stdout_contains("must be of type string: \"null\"");
    deploy("  object: null\n").code(3).stdout_contains("object.yaml:7:3");
    deploy("  free: null\n  filled: null\n  object: {text: a}\n").code(0);
    assert_eq!(
        cp.get(&path(&bed, "v1", "one")).1["spec"],
        json!({"free": null, "filled": "x", "object": {"text": "a"}})
    );
    // If it has fields of another manager, the object stays.
    cp.patch(&path(&bed, "v1", "one"), &json!({"spec": {"object": {"text": "b"}}}));
    deploy("  object: null\n").code(0);
    assert_eq!(cp.get(&path(&bed, "v1", "one")).1["spec"]["object"], json!({"text": "b"}));
    deploy("  object: {text: null}\n").code(3);
}

#[test]
fn values_that_an_apply_cannot_parse_or_empties_are_not_ratcheted() {
    let cp = control_plane();
    let bed = Bed::with_namespace();
    let deploy = |spec: &str| {
        bed.write("object.yaml", &sample(&bed, "one", spec));
        gantry(&bed, &["deploy", "-f", "."])
    };
    let crd = |a: &str| {
        let map = "{type: object, additionalProperties: {type: string}}";
        crd(&bed, &format!("{{type: object, properties: {{a: {a}, b: {{type: string}}, map: {map}}}}}"))
    };
    cp.apply_yaml(&crd("{type: boolean}"));
    deploy("  a: true\n  map: {k: v}\n").code(0);
    // For the server, no entry is left, and it writes null.
    deploy("  a: true\n  map: {}\n").code(3).stdout_contains("spec.map").stdout_contains("must be of type object");
    deploy("  a: true\n").code(0);
    // A plain update that does not touch it would be accepted.
    cp.apply_yaml(&crd("{type: string}"));
    assert_eq!(cp.patch(&path(&bed, "v1", "one"), &json!({"spec": {"b": "x"}})).0, 200);
    deploy("  a: true\n  b: y\n")
        .code(3)
        .stdout_contains("object.yaml:7:3")
        .stdout_contains("expected string, got true");
}

/// The server's answer to a server-side apply.
fn apply(bed: &Bed, text: &str) -> (u16, Value) {
    let object = serde_yaml::from_str(text).unwrap();
    control_plane().server_side_apply(&path(bed, "v1", "one"), "gantry", &object)
}

#[test]
fn a_value_that_an_apply_cannot_parse_is_refused_even_if_the_write_drops_it() {
    let cp = control_plane();
    let bed = Bed::with_namespace();
    let keyed = |keys: &str| {
        format!(
            "{{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [{keys}], items: {{type: object, \
             required: [type], properties: {{type: {{type: string}}, role: {{type: string, default: a}}, at: {{type: string}}}}}}}}"
        )
    };
    let crd = |list: &str| {
        let status = format!("{{type: object, properties: {{conditions: {}}}}}", keyed("type"));
        let spec = format!("{{type: object, properties: {{text: {{type: string}}, list: {list}}}}}");
        bed.crd(&format!("spec: {spec}, status: {status}")) + "    subresources: {status: {}}\n"
    };
    cp.apply_yaml(&crd("{type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}"));
    let object = |spec: &str| sample(&bed, "one", &format!("{spec}status:\n  conditions:\n"));
    let omits = "omits all key fields [\"type\"] (and doesn't have default values for any key fields)";
    // A create and an update drop the status, but the server decodes it first.
    for (text, live) in [("a", 404), ("b", 200)] {
        let written = |condition: &str| object(&format!("  text: {text}\n")) + condition;
        let keyless = written("  - at: now\n");
        bed.write("object.yaml", &keyless);
        let refused = gantry(&bed, &["deploy", "-f", "."]);
        refused
            .code(3)
            .stdout_contains(".status.conditions: element 0: associative list with keys has an element that");
        refused.stdout_contains(omits).stdout_contains("object.yaml:9:3");
        let (status, answer) = apply(&bed, &keyless);
        assert_eq!(status, 500, "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(omits), "{answer}");
        assert_eq!(cp.get(&path(&bed, "v1", "one")).0, live);
        bed.write("object.yaml", &written("  - {type: Ready, at: now}\n"));
        gantry(&bed, &["deploy", "-f", "."]).code(0);
    }
    // The same for metadata.
    let twice = sample(&bed, "one", "  text: a\n").replace("spec:", "  finalizers: [a.b/c, a.b/c]\nspec:");
    bed.write("object.yaml", &twice);
    let refused = gantry(&bed, &["deploy", "-f", "."]);
    refused.code(3).stdout_contains("duplicate entries for key [=\"a.b/c\"]").stdout_contains("object.yaml:6:3");
    // One finding, not two, if the server is asked as well.
    let arguments = ["check", "-f", ".", "-o", "json", "--preflight", "CustomResourceValidation,AdmissionDryRun"];
    let both = bed.gantry(cp.kubeconfig("admin"), &arguments).run();
    assert_eq!(findings(&both.report()).len(), 1, "{both}");

    // No apply can change a live list whose items have no keys, whatever it sets.
    bed.write("object.yaml", &sample(&bed, "one", "  text: a\n  list: [{at: now}]\n"));
    gantry(&bed, &["deploy", "-f", "."]).code(0);
    cp.apply_yaml(&crd(&keyed("type")));
    let text = sample(&bed, "one", "  text: b\n");
    let (status, answer) = apply(&bed, &text);
    assert_eq!(status, 500, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("failed to create typed live object"), "{answer}");
    bed.write("object.yaml", &text);
    gantry(&bed, &["deploy", "-f", "."]).code(3).stdout_contains("server-side apply cannot parse the live object");
}

/// The server decides what an apply keeps of the fields that its manager no longer sets. The test has a rule for each
/// field that refuses everything and shows the resulting value in its message.
#[test]
fn fields_that_a_manager_gives_up_are_removed_as_on_the_server() {
    let cp = control_plane();
    let bed = Bed::with_namespace();
    let rules = [
        ("items", "self.items.exists(item, item.name == 'X')"),
        ("tags", "self.tags.exists(tag, tag == 'X')"),
        ("plain", "self.plain.exists(text, text == 'X')"),
        ("map", "'X' in self.map"),
        ("whole", "'X' in self.whole"),
        ("box", "has(self.box.X)"),
        ("deep", "has(self.deep.tags) && self.deep.tags.exists(tag, tag == 'X')"),
    ]
    .map(|(field, has)| {
        let letters = ["a", "b", "c", "d"].map(|letter| format!("({} ? '{letter}' : '')", has.replace('X', letter)));
        let message = format!("'{field}: ' + (has(self.{field}) ? {} : 'gone')", letters.join(" + "));
        json!({"rule": "!has(self.probe)", "messageExpression": message})
    });
    let text = json!({"type": "string", "maxLength": 9});
    let list = |kind: &str| json!({"type": "array", "x-kubernetes-list-type": kind, "maxItems": 9, "items": text});
    let map = |kind: &str| json!({"type": "object", "x-kubernetes-map-type": kind, "additionalProperties": text});
    let items = json!({"type": "array", "maxItems": 9, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "kind"],
        "items": {"type": "object", "required": ["name"],
            "properties": {"name": text, "kind": {"type": "string", "default": "x"}}}});
    let letters = json!({"a": text, "b": text, "c": text, "d": text});
    let spec = json!({"type": "object", "x-kubernetes-validations": rules, "properties": {
        "probe": {"type": "boolean"}, "items": items, "tags": list("set"), "plain": list("atomic"),
        "map": map("granular"), "whole": map("atomic"), "box": {"type": "object", "properties": letters},
        "deep": {"type": "object", "properties": {"tags": list("set")}}}});
    cp.apply_yaml(&crd(&bed, &spec.to_string()));

    let name = |name: &str| json!({"name": name});
    let ours = json!({"items": [name("a"), name("b")], "tags": ["a", "b"], "plain": ["a"], "map": {"a": ""},
        "whole": {"a": ""}, "box": {"a": ""}, "deep": {"tags": ["a"]}});
    let more = json!({"items": [name("a"), name("b"), name("c")], "tags": ["a", "b", "c"], "map": {"b": ""},
        "box": {"b": ""}, "deep": {"tags": ["a", "b"]}});
    let manifests = [
        json!({}),
        json!({"items": [name("b")], "tags": ["b"], "map": {"c": ""}, "whole": {"b": ""}, "deep": {"tags": null}}),
        json!({"items": [name("d")], "tags": ["d"], "box": {"b": ""}, "deep": {"tags": ["d"]}}),
    ];
    let mut causes = Vec::new();
    for on_record in ["nobody", "other"] {
        let mut object = json!({"apiVersion": format!("{}/v1", bed.names.group), "kind": "Sample",
            "metadata": {"name": on_record, "namespace": bed.names.namespace}, "spec": ours});
        let path = path(&bed, "v1", on_record);
        assert_eq!(cp.server_side_apply(&path, "gantry", &object).0, 201);
        let (status, live) = cp.patch(&format!("{path}?fieldManager=other"), &json!({"spec": more}));
        assert_eq!(status, 200, "{live}");
        if on_record == "nobody" {
            let records = live["metadata"]["managedFields"].as_array().unwrap();
            let kept: Vec<&Value> = records.iter().filter(|entry| entry["manager"] == "gantry").collect();
            let (status, live) = cp.patch(&path, &json!({"metadata": {"managedFields": kept}}));
            assert_eq!((status, live["metadata"]["managedFields"].as_array().unwrap().len()), (200, 1));
        }
        for manifest in &manifests {
            object["spec"] = manifest.clone();
            object["spec"]["probe"] = json!(true);
            let (status, refused) = cp.server_side_apply(&path, "gantry", &object);
            assert_eq!(status, 422, "{refused}");
            bed.write("object.json", &object.to_string());
            let report = gantry(&bed, &["check", "-f", "object.json", "-o", "json"]).code(3).report();
            let found = findings(&report);
            let messages: Vec<&str> = found.iter().map(|finding| finding["message"].as_str().unwrap()).collect();
            for cause in refused["details"]["causes"].as_array().unwrap() {
                let cause = cause["message"].as_str().unwrap();
                causes.push(cause.to_owned());
                let is_found = messages.iter().any(|message| message.contains(cause));
                assert!(is_found, "{on_record} {manifest}\n{cause}\n{messages:#?}");
            }
        }
    }
    // A list without items of other managers is removed together with unowned items; otherwise only gantry's items are
    // removed.
    for (cause, times) in [("items: gone", 1), ("items: c", 1), ("items: bc", 2), ("map: b", 2)] {
        let seen = causes.iter().filter(|known| known.ends_with(cause)).count();
        assert_eq!(seen, times, "{cause} of {causes:#?}");
    }
}

/// A CRD with two versions, v1 with `size` and v2 with `count`, converted by a webhook.
fn converted(bed: &Bed, conversion: &Value, limit: u64, versions: &[&str]) -> Value {
    let add = |crd: CrdBuilder, name: &&str| {
        let field = if *name == "v1" { "size" } else { "count" };
        crd.version_of_spec(name, fields(json!({field: {"type": "integer", "maximum": limit}}))).storage(*name == "v1")
    };
    versions.iter().fold(CrdBuilder::samples(&bed.names.group).conversion(conversion), add).build()
}

/// Renames `size` to `count` and back.
fn rename(mut object: Value, wanted: &str) -> Value {
    let (from, to) = if wanted.ends_with("/v1") { ("count", "size") } else { ("size", "count") };
    if let Some(spec) = object["spec"].as_object_mut()
        && let Some(value) = spec.remove(from)
    {
        spec.insert(to.to_owned(), value);
    }
    object["apiVersion"] = json!(wanted);
    object
}

fn create(bed: &Bed, name: &str, spec: Value) {
    let object = json!({"apiVersion": format!("{}/v1", bed.names.group), "kind": "Sample",
        "metadata": {"name": name, "namespace": bed.names.namespace}, "spec": spec});
    let (status, answer) = control_plane().post(path(bed, "v1", "").trim_end_matches('/'), &object);
    assert_eq!(status, 201, "{answer}");
}

fn check(bed: &Bed, crd: &Value) -> Output {
    bed.write("crd.json", &crd.to_string());
    // Another manager wrote the live CRD.
    gantry(bed, &["check", "-f", "crd.json", "-o", "json", "--force-conflicts"])
}

#[test]
fn a_conversion_webhook_converts_the_objects_of_each_version() {
    let cp = control_plane();
    let bed = Bed::with_namespace();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let webhook = Webhook::converting(cp, move |object, wanted| {
        counted.fetch_add(1, Ordering::Relaxed);
        rename(object, wanted)
    });
    cp.apply_yaml(&converted(&bed, &webhook.conversion(), 9, &["v1", "v2"]).to_string());
    create(&bed, "big", json!({"size": 7}));
    create(&bed, "small", json!({"size": 1}));
    let output = check(&bed, &converted(&bed, &webhook.conversion(), 5, &["v1", "v2"]));
    let touched = "ExistingObjectRefusedWhenTouched";
    assert_eq!(
        finding_ids(&output.report()),
        [finding_id(touched, "v1", "spec.size"), finding_id(touched, "v2", "spec.count")],
        "{output}"
    );
    let report = output.code(0).report();
    assert!(findings(&report).iter().all(|finding| finding["affected"]["objects"][0]["name"] == "big"));
    assert!(asked.load(Ordering::Relaxed) > 0);

    // The result of the webhook for a version that is not served yet is unknown.
    let output = check(&bed, &converted(&bed, &webhook.conversion(), 9, &["v1", "v2", "v3"]));
    assert_eq!(finding_ids(&output.report()), [finding_id("VersionNotJudged", "v3", "")], "{output}");
    output.code(0);
}

#[test]
fn a_webhook_that_is_down_or_answers_nonsense_is_a_finding() {
    let cp = control_plane();
    let working = Webhook::converting(cp, rename);
    let nonsense = Webhook::start(cp, |_| json!({"kind": "Nonsense"}));
    let mut down = working.conversion();
    // Nothing listens on this port: its listener is gone.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    down["webhook"]["clientConfig"]["url"] = json!(format!("https://127.0.0.1:{port}/convert"));
    for conversion in [down, nonsense.conversion()] {
        let bed = Bed::with_namespace();
        cp.apply_yaml(&converted(&bed, &working.conversion(), 9, &["v1", "v2"]).to_string());
        create(&bed, "big", json!({"size": 7}));
        let (status, answer) = cp.patch(
            &format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/samples.{}", bed.names.group),
            &json!({"spec": {"conversion": conversion}}),
        );
        assert_eq!(status, 200, "{answer}");
        crate::support::eventually("the webhook is the new one", || {
            (cp.get(&path(&bed, "v2", "big")).0 == 500).then_some(())
        });
        let output = check(&bed, &converted(&bed, &conversion, 5, &["v1", "v2"]));
        // Objects stored at v1 need no conversion and are still checked.
        assert_eq!(
            finding_ids(&output.report()),
            [
                finding_id("ExistingObjectRefusedWhenTouched", "v1", "spec.size"),
                finding_id("ObjectNotConverted", "v2", "")
            ],
            "{output}"
        );
        output.code(3);
        let report = output.report();
        assert!(findings(&report)[1]["message"].as_str().unwrap().contains("conversion webhook for"), "{output}");
        assert_eq!(report["checks"][0]["status"], "blocked");
    }
}

#[test]
fn messages_of_a_conversion_webhook_are_hidden_with_redact() {
    let cp = control_plane();
    let bed = Bed::with_namespace();
    let failing = Webhook::start(cp, |review| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": {
            "uid": review["request"]["uid"], "convertedObjects": [],
            "result": {"status": "Failure", "message": "cannot convert s3cret"}}})
    });
    cp.apply_yaml(&converted(&bed, &failing.conversion(), 9, &["v1", "v2"]).to_string());
    create(&bed, "big", json!({"size": 7}));
    bed.write("object.yaml", &sample(&bed, "big", "  count: 7\n").replace("/v1", "/v2"));
    gantry(&bed, &["check", "-f", "object.yaml"]).code(1).stderr_contains("cannot convert s3cret");
    for flags in [&["--redact"][..], &["--redact", "-o", "json"]] {
        let output = gantry(&bed, &[&["check", "-f", "object.yaml"], flags].concat());
        output.code(1).contains_nowhere("s3cret").stderr_contains("conversion webhook for");
    }
}
