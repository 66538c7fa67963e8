//! `preset: evidence` of `CRDUpgradeSafety`: errors are checked against the cluster's objects and the manifests of the
//! deploy.

use std::thread;

use crate::support::{
    Bed, CrdBuilder, Gantry, Output, Proxy, Samples, Webhook, control_plane, fields, findings, rights, text,
};
use serde_json::{Value, json};

const CONFIG: &str = "{apiVersion: gantry.dev/v1alpha1, kind: Config, \
    preflightRules: [{name: CRDUpgradeSafety, config: {preset: evidence}}]}";

/// Runs gantry under the preset.
fn run(kubeconfig: impl AsRef<std::path::Path>, command: &str, manifests: &[&Value], flags: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, CONFIG).expect("a file");
    let input: Vec<String> = manifests.iter().map(ToString::to_string).collect();
    // The live objects were written by another manager.
    let arguments = [command, "-f", "-", "--force-conflicts", "-c", config.to_str().expect("a path")];
    Gantry::new().kubeconfig(kubeconfig).args(arguments).args(flags).stdin(input.join("\n---\n")).run()
}

fn admin() -> std::path::PathBuf {
    control_plane().kubeconfig("admin")
}

fn json_of(manifests: &[&Value]) -> Value {
    run(admin(), "check", manifests, &["-o", "json"]).report()
}

/// Severity, rule and evidence of each finding.
fn summaries(report: &Value) -> Vec<(String, String, Value)> {
    let summary = |finding: &Value| (text(&finding["severity"]), text(&finding["rule"]), finding["evidence"].clone());
    findings(report).iter().map(summary).collect()
}

fn only(report: &Value) -> (String, String, Value) {
    let summaries = summaries(report);
    let [one] = summaries.as_slice() else { panic!("{summaries:#?}") };
    one.clone()
}

/// Creates an object under a field manager.
fn create(bed: &Samples, manager: &str, name: &str, spec: &Value) {
    let path = format!("{}?fieldManager={manager}", bed.collection("v1"));
    let (status, answer) = control_plane().post(&path, &bed.object(name, spec));
    assert_eq!(status, 201, "{answer}");
}

fn string() -> Value {
    json!({"type": "string"})
}

#[test]
fn a_new_scale_subresource_is_an_error_only_if_an_object_has_a_number_that_it_refuses() {
    let bed = Samples::new();
    let live = bed.one_version(fields(json!({"replicas": {"type": "integer"}})));
    bed.live(&live);
    create(&bed, "hand", "two", &json!({"replicas": 2}));
    create(&bed, "hand", "none", &json!({}));
    let mut desired = live;
    desired["spec"]["versions"][0]["subresources"] =
        json!({"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
    let found = || {
        let (severity, rule, evidence) = only(&json_of(&[&desired]));
        assert_eq!(rule, "ScaleFieldRestricted");
        (severity, text(&evidence["message"]))
    };
    let none =
        "0 of 2 objects have a value of spec.replicas that v1 refuses or changes; they are written by hand (2 objects)";
    assert_eq!(found(), ("warning".to_owned(), none.to_owned()));
    create(&bed, "hand", "less", &json!({"replicas": -1}));
    let one = "1 of 3 objects has a value of spec.replicas that v1 refuses or changes; written by hand (1 object)";
    assert_eq!(found(), ("error".to_owned(), one.to_owned()));
}

#[test]
fn a_removed_field_that_no_object_sets_is_a_warning_and_the_deploy_continues() {
    let bed = Samples::new();
    bed.live(&bed.one_version(fields(json!({"size": string(), "legacy": string()}))));
    for number in 0..7 {
        create(&bed, "rook", &format!("o{number}"), &json!({"size": "s"}));
    }
    create(&bed, "hand", "by-hand", &json!({"size": "s"}));
    let desired = bed.one_version(fields(json!({"size": string()})));

    let documented = ["check", "-f", "-", "--force-conflicts"];
    let blocked = Gantry::new().kubeconfig(admin()).args(documented).stdin(desired.to_string()).run();
    blocked.code(3).stdout_contains("Objects  no object of this cluster is affected (8 objects read)\n");
    blocked.stdout_contains("0 of 8 objects set spec.legacy");

    let (severity, rule, evidence) = only(&json_of(&[&desired]));
    assert_eq!((severity.as_str(), rule.as_str()), ("warning", "NoExistingFieldRemoved"));
    let message = "0 of 8 objects set spec.legacy; their writers do not set it: rook (7 objects), hand (1 object)";
    assert_eq!(
        evidence,
        json!({"examined": "noneAffected", "message": message, "objects": 8, "affectedObjects": 0, "manifests": 0,
            "affectedManifests": 0, "managers": [{"name": "rook", "objects": 7}, {"name": "hand", "objects": 1}]})
    );
    let proxy = Proxy::start(control_plane());
    let check = run(proxy.kubeconfig("admin"), "check", &[&desired], &[]);
    check.code(0).stdout_contains("warning[NoExistingFieldRemoved]").stdout_contains("0 of 8 objects set spec.legacy");
    run(proxy.kubeconfig("admin"), "deploy", &[&desired], &["--dry-run"]).code(0);
    assert!(proxy.writes().is_empty(), "{:?}", proxy.writes());
    run(admin(), "deploy", &[&desired], &[]).code(0);
    let (_, live) = control_plane().get(&bed.crd_path());
    assert_eq!(
        live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["legacy"],
        Value::Null
    );
}

#[test]
fn a_removed_field_that_objects_set_stays_an_error_with_their_number_names_and_managers() {
    let bed = Samples::new();
    bed.live(&bed.one_version(fields(json!({"size": string(), "legacy": string(), "unused": string()}))));
    for number in 0..9 {
        let spec = match number % 2 {
            0 => json!({"size": "s", "legacy": "s3cret"}),
            _ => json!({"size": "s"}),
        };
        create(&bed, if number == 8 { "hand" } else { "rook" }, &format!("o{number}"), &spec);
    }
    let desired = bed.one_version(fields(json!({"size": string()})));
    let report = json_of(&[&desired]);
    let [legacy, unused] = summaries(&report).try_into().expect("two findings");
    assert_eq!((legacy.0.as_str(), unused.0.as_str()), ("error", "warning"), "each field by itself");
    let namespace = &bed.names.namespace;
    let example = |name: &str| json!({"namespace": namespace, "name": name});
    assert_eq!(
        legacy.2,
        json!({"examined": "affected",
            "message": "5 of 9 objects set spec.legacy; written by rook (4 objects), hand (1 object)",
            "objects": 9, "affectedObjects": 5, "manifests": 0, "affectedManifests": 0,
            "examples": [example("o0"), example("o2"), example("o4")],
            "managers": [{"name": "rook", "objects": 4}, {"name": "hand", "objects": 1}]})
    );
    // Each object counts once, and the severities of the default preset stay.
    let documented = ["check", "-f", "-", "--force-conflicts", "--preflight", "CRDUpgradeSafety"];
    let blocked = Gantry::new().kubeconfig(admin()).args(documented).stdin(desired.to_string()).run();
    let affected = ["o0", "o2", "o4"].map(|name| format!("{namespace}/{name}")).join(", ");
    let sentence = format!("5 of 9 objects of this cluster are affected: {affected} and 2 more");
    let unwrapped = blocked.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains(&sentence), "{unwrapped}");
    blocked.code(3).stdout_contains("CRDUpgradeSafety  blocked: 2 errors");
    let human = run(admin(), "deploy", &[&desired], &["--redact"]);
    human.code(3).stdout_contains("5 of 9 objects set spec.legacy; written by rook (4 objects), hand (1 object)");
    human.stdout_contains(&format!("{namespace}/o0")).stdout_contains("… and 2 more");
    human.contains_nowhere("s3cret");
    run(admin(), "check", &[&desired], &["-o", "json", "--redact"]).code(3).contains_nowhere("s3cret");
}

#[test]
fn objects_that_may_not_be_listed_are_a_notice_with_the_right_to_grant() {
    let bed = Samples::new();
    bed.live(&bed.one_version(fields(json!({"size": string(), "legacy": string()}))));
    create(&bed, "hand", "one", &json!({"size": "s", "legacy": "s"}));
    let desired = bed.one_version(fields(json!({"size": string()})));
    let crds = json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
        "verbs": ["get", "list"]});
    let user = control_plane().user(&json!([crds]));
    let arguments = ["check", "-f", "-", "--force-conflicts", "--preflight", "CRDUpgradeSafety"];
    let kubeconfig = control_plane().kubeconfig(&user);
    let output = Gantry::new().kubeconfig(kubeconfig).args(arguments).stdin(desired.to_string()).run();
    output.code(3).stderr_contains(&format!("whether objects of samples.{} suffer is unknown", bed.names.group));
    output.stderr_contains("verbs: [\"list\"]");
    assert!(!output.stdout.contains("Objects  "), "{}", output.stdout);
}

/// A change of the schema of `spec`, a `spec` that it does not affect, and one that it affects.
struct Change {
    rule: &'static str,
    live: Value,
    desired: Value,
    good: Value,
    bad: Value,
    /// The evidence for the two objects.
    message: &'static str,
}

fn changes() -> Vec<Change> {
    let x = |schema: Value| fields(json!({"x": schema, "y": string()}));
    let refused = "1 of 2 objects has a value of spec.x that v1 refuses or changes";
    let change = |rule, live, desired, good, bad, message| Change { rule, live, desired, good, bad, message };
    vec![
        change(
            "NoRequiredFieldAdded",
            x(string()),
            json!({"type": "object", "required": ["x"], "properties": {"x": string(), "y": string()}}),
            json!({"x": "a"}),
            json!({"y": "a"}),
            "1 of 2 objects lacks a field that v1 newly requires in spec",
        ),
        change(
            "NoEnumValueRemoved",
            x(json!({"type": "string", "enum": ["a", "b"]})),
            x(json!({"type": "string", "enum": ["a"]})),
            json!({"x": "a"}),
            json!({"x": "b"}),
            refused,
        ),
        change(
            "NoMaxLengthTightened",
            x(json!({"type": "string", "maxLength": 9})),
            x(json!({"type": "string", "maxLength": 2})),
            json!({"x": "ab"}),
            json!({"x": "abc"}),
            refused,
        ),
        change(
            "PatternChange",
            x(json!({"type": "string", "pattern": "^[a-z]*$"})),
            x(json!({"type": "string", "pattern": "^[a-m]*$"})),
            json!({"x": "abc"}),
            json!({"x": "xyz"}),
            refused,
        ),
        change(
            "NoMinimumTightened",
            x(json!({"type": "integer"})),
            x(json!({"type": "integer", "minimum": 1})),
            json!({"x": 1}),
            json!({"x": 0}),
            refused,
        ),
        change(
            "NoTypeChange",
            x(string()),
            x(json!({"type": "integer"})),
            json!({"y": "a"}),
            json!({"x": "a"}),
            refused,
        ),
        change(
            "ListTypeChange",
            x(json!({"type": "array", "items": string()})),
            x(json!({"type": "array", "items": string(), "x-kubernetes-list-type": "set"})),
            json!({"x": ["a", "b"]}),
            json!({"x": ["a", "a"]}),
            refused,
        ),
        change(
            "ValidationRuleChange",
            x(json!({"type": "integer"})),
            x(json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self % 2 == 1"}]})),
            json!({"x": 3}),
            json!({"x": 4}),
            refused,
        ),
        change(
            "PreserveUnknownFieldsChange",
            x(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
            x(json!({"type": "object"})),
            json!({"x": {}}),
            json!({"x": {"whatever": 1}}),
            "1 of 2 objects loses a field below spec.x",
        ),
        change(
            "PreservedFieldDescribed",
            x(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
            x(
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": fields(json!({"k": string()}))}}),
            ),
            json!({"x": {"b": {"c": 1}}}),
            json!({"x": {"a": {"c": 1}}}),
            "1 of 2 objects has a value of spec.x.a that v1 refuses or changes",
        ),
        change(
            "OneOfChange",
            x(string()),
            json!({"type": "object", "properties": {"x": string(), "y": string()}, "oneOf": [{"required": ["x"]}, {"required": ["y"]}]}),
            json!({"x": "a"}),
            json!({"x": "a", "y": "b"}),
            "1 of 2 objects has a value of spec that v1 refuses or changes",
        ),
        change(
            "NoExistingFieldRemoved",
            x(json!({"type": "array", "items": fields(json!({"a": string(), "b": string()}))})),
            x(json!({"type": "array", "items": fields(json!({"a": string()}))})),
            json!({"x": [{"a": "a"}]}),
            json!({"x": [{"a": "a"}, {"b": "b"}]}),
            "1 of 2 objects sets spec.x.items.b",
        ),
    ]
}

#[test]
fn each_kind_of_change_is_judged_by_what_it_does_to_objects() {
    thread::scope(|scope| {
        for change in changes() {
            scope.spawn(move || {
                let bed = Samples::new();
                bed.live(&bed.one_version(change.live.clone()));
                bed.create("good", &change.good);
                let desired = bed.one_version(change.desired.clone());
                let error = |report: &Value| {
                    let found = summaries(report).into_iter().find(|(_, rule, _)| rule == change.rule);
                    found.unwrap_or_else(|| panic!("{}: {report:#}", change.rule))
                };
                let (severity, _, evidence) = error(&json_of(&[&desired]));
                assert_eq!(
                    (severity.as_str(), &evidence["examined"]),
                    ("warning", &json!("noneAffected")),
                    "{}: {evidence:#}",
                    change.rule
                );
                run(admin(), "check", &[&desired], &[]).code(0);

                bed.create("bad", &change.bad);
                let (severity, _, evidence) = error(&json_of(&[&desired]));
                assert_eq!(severity, "error", "{}: {evidence:#}", change.rule);
                assert_eq!(
                    (&evidence["affectedObjects"], &evidence["examples"][0]["name"]),
                    (&json!(1), &json!("bad"))
                );
                assert!(text(&evidence["message"]).starts_with(change.message), "{}: {evidence:#}", change.rule);
                run(admin(), "check", &[&desired], &[]).code(3);
            });
        }
    });
}

/// What happens to objects at a new version is charged to no change of another version, and is an error where it breaks
/// them.
#[test]
fn breakage_at_a_new_version_is_attributed_to_that_version() {
    let (one, two) = (|| json!({"r": string(), "m": string()}), || json!({"r": string()}));
    let requires = json!({"type": "object", "required": ["nm"], "properties": {"nm": string(), "r": string()}});
    let lost = ("StorageVersionLosesFields", "v1", "");
    let removed = ("NoExistingFieldRemoved", "v1", "^.spec.m");
    let refused = ("IndirectChange", "v2", "^.spec");
    let defaulted = json!({"r": string(), "dd": {"type": "string", "default": "z"}});
    for (spec, first, second, errors, warnings) in [
        (json!({"r": "x"}), fields(one()), fields(two()), vec![], vec![lost]),
        (json!({"r": "x", "m": "y"}), fields(one()), fields(two()), vec![lost], vec![]),
        (json!({"r": "x"}), fields(one()), requires.clone(), vec![refused], vec![lost]),
        (json!({"r": "x"}), fields(two()), requires.clone(), vec![refused], vec![lost, removed]),
        (json!({"r": "x", "m": "y"}), fields(two()), requires, vec![removed, refused], vec![lost]),
        (json!({"r": "x"}), fields(one()), fields(defaulted), vec![], vec![lost]),
    ] {
        let bed = Samples::new();
        bed.live(&bed.one_version(fields(one())));
        create(&bed, "hand", "a", &spec);
        let desired = bed.crd(&[("v1", false, first), ("v2", true, second)]);
        let report = json_of(&[&desired]);
        let of = |severity: &str| {
            let mut found: Vec<(String, String, String)> = findings(&report)
                .iter()
                .filter(|finding| finding["severity"] == severity && finding["rule"] != "ServedVersionsDiffer")
                .map(|finding| (text(&finding["rule"]), text(&finding["version"]), text(&finding["path"])))
                .filter(|(rule, ..)| !matches!(rule.as_str(), "StorageVersionMoved" | "ServedVersionLosesFields"))
                .collect();
            found.sort();
            found
        };
        let sorted = |wanted: Vec<(&str, &str, &str)>| {
            let mut wanted: Vec<_> = wanted
                .iter()
                .map(|(rule, at, path)| ((*rule).to_owned(), (*at).to_owned(), (*path).to_owned()))
                .collect();
            wanted.sort();
            wanted
        };
        assert_eq!((of("error"), of("warning")), (sorted(errors), sorted(warnings)), "{spec} {desired:#}");
    }
}

#[test]
fn a_change_that_objects_cannot_prove_harmless_stays_an_error() {
    let bed = Samples::new();
    bed.live(&bed.one_version(fields(json!({"x": string()}))));
    bed.create("one", &json!({"x": "a"}));
    let fixed = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    let (severity, rule, evidence) = only(&json_of(&[&bed.one_version(fields(json!({"x": fixed})))]));
    assert_eq!(
        (severity.as_str(), rule.as_str(), &evidence["examined"]),
        ("error", "ValidationRuleChange", &json!("no"))
    );
    assert!(text(&evidence["message"]).contains("refuses certain updates"), "{evidence}");

    let mut cluster = bed.one_version(fields(json!({"x": string()})));
    cluster["spec"]["scope"] = json!("Cluster");
    let scope =
        summaries(&json_of(&[&cluster])).into_iter().find(|(_, rule, _)| rule == "NoScopeChange").expect("a finding");
    assert_eq!((scope.0.as_str(), &scope.2["examined"]), ("error", &json!("no")));
}

#[test]
fn manifests_of_the_deploy_count_as_they_will_be_written() {
    let bed = Samples::new();
    bed.live(&bed.one_version(fields(json!({"size": string(), "legacy": string()}))));
    bed.create("stored", &json!({"size": "s"}));
    let desired = bed.one_version(fields(json!({"size": string()})));
    let new = bed.object("coming", &json!({"legacy": "x"}));
    let fine = bed.object("fine", &json!({"size": "x"}));
    let (severity, _, evidence) = only(&json_of(&[&desired, &new, &fine]));
    assert_eq!(
        (severity.as_str(), &evidence["manifests"], &evidence["affectedManifests"]),
        ("error", &json!(2), &json!(1))
    );
    assert_eq!(
        evidence["examples"],
        json!([{"namespace": bed.names.namespace, "name": "coming", "fromManifest": true}])
    );
    let human = run(admin(), "check", &[&desired, &new, &fine], &[]);
    human.code(3).stdout_contains("coming (a manifest of this deploy)");
    human.stdout_contains("1 of 2 manifests of this deploy sets spec.legacy");

    let (severity, _, evidence) = only(&json_of(&[&desired, &fine]));
    assert_eq!(severity, "warning", "{evidence}");
    let message = "0 of 1 objects and 0 of 1 manifests of this deploy set spec.legacy";
    assert!(text(&evidence["message"]).starts_with(message), "{evidence}");
    // A field that a manifest adds to a live object counts, too.
    let (severity, _, evidence) = only(&json_of(&[&desired, &bed.object("stored", &json!({"legacy": "x"}))]));
    assert_eq!((severity.as_str(), &evidence["affectedManifests"]), ("error", &json!(1)), "{evidence}");
}

#[test]
fn a_user_who_may_not_list_gets_the_verdict_of_semantic_and_permissions_grants_the_list() {
    let cp = control_plane();
    let bed = Bed::new();
    let samples = Samples::new();
    samples.live(&samples.one_version(fields(json!({"size": string(), "legacy": string()}))));
    samples.create("one", &json!({"size": "s"}));
    let desired = samples.one_version(fields(json!({"size": string()})));
    let crds = json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get", "list"]});
    let user = cp.user(&json!([crds]));
    let output = run(cp.kubeconfig(&user), "check", &[&desired], &[]);
    output.code(3).stdout_contains("as under preset: semantic").stdout_contains("error[NoExistingFieldRemoved]");
    let report = run(cp.kubeconfig(&user), "check", &[&desired], &["-o", "json"]).report();
    let (severity, _, evidence) = only(&report);
    assert_eq!((severity.as_str(), &evidence["examined"]), ("error", &json!("no")));
    assert!(text(&evidence["message"]).contains("list samples"), "{evidence}");

    bed.write("manifests.yaml", &desired.to_string());
    bed.write("gantry.yaml", CONFIG);
    let granted = rights::printed(&bed, cp, &user);
    assert!(granted.contains(&samples.names.group) && granted.contains("list"), "{granted}");
    rights::grant(cp, &user, &granted);
    run(cp.kubeconfig(&user), "check", &[&desired], &[]).code(0);
}

#[test]
fn a_folder_is_judged_by_its_objects_and_without_any_as_semantic() {
    let folder = tempfile::tempdir().expect("a folder");
    let cluster = folder.path().join("cluster");
    std::fs::create_dir(&cluster).expect("a folder");
    let crd = |spec: Value| CrdBuilder::samples("example.com").version_of_spec("v1", spec).build();
    std::fs::write(cluster.join("crd.yaml"), crd(fields(json!({"a": string(), "b": string()}))).to_string())
        .expect("a file");
    std::fs::write(folder.path().join("config.yaml"), CONFIG).expect("a file");
    std::fs::write(folder.path().join("manifests.yaml"), crd(fields(json!({"a": string()}))).to_string())
        .expect("a file");
    let check = || {
        let arguments =
            ["check", "-f", "manifests.yaml", "-c", "config.yaml", "--target", "dir:cluster", "--force-conflicts"];
        Gantry::new().cwd(folder.path()).args(arguments).run()
    };
    let object = |name: &str, spec: Value| {
        let object = json!({"apiVersion": "example.com/v1", "kind": "Sample", "metadata": {"name": name, "namespace": "n"}, "spec": spec});
        std::fs::write(cluster.join(format!("{name}.yaml")), object.to_string()).expect("a file");
    };
    check().code(3).stdout_contains("as under preset: semantic: the folder has no object of this kind");
    object("good", json!({"a": "x"}));
    check().code(0).stdout_contains("the only object is not affected");
    object("bad", json!({"b": "x"}));
    check().code(3).stdout_contains("1 of 2 objects sets spec.b").stdout_contains("n/bad");
}

#[test]
fn a_change_that_is_proven_safe_is_not_listed_and_two_checks_share_one_list() {
    let bed = Samples::new();
    bed.live(&bed.one_version(fields(json!({"a": json!({"type": "string", "maxLength": 5}), "b": string()}))));
    const OBJECTS: usize = 1201;
    thread::scope(|scope| {
        for part in 0..4 {
            let bed = &bed;
            scope.spawn(move || {
                for number in (part..OBJECTS).step_by(4) {
                    let spec = if number % 400 == 7 { json!({"b": "x"}) } else { json!({"a": "x"}) };
                    bed.create(&format!("o{number:04}"), &spec);
                }
            });
        }
    });
    let lists = |proxy: &Proxy| proxy.requests().iter().filter(|request| request.path.ends_with("/samples")).count();
    let wider =
        bed.one_version(fields(json!({"a": json!({"type": "string", "maxLength": 9}), "b": string(), "c": string()})));
    let proxy = Proxy::start(control_plane());
    run(proxy.kubeconfig("admin"), "check", &[&wider], &[]).code(0);
    assert_eq!(lists(&proxy), 0, "{:?}", proxy.requests());

    let narrower = bed.one_version(fields(json!({"a": json!({"type": "string", "maxLength": 5})})));
    let count = |flags: &[&str]| {
        let proxy = Proxy::start(control_plane());
        let output = run(proxy.kubeconfig("admin"), "check", &[&narrower], &[&["-o", "json"], flags].concat());
        let report = output.code(3).report();
        let evidence =
            summaries(&report).into_iter().find(|(_, rule, _)| rule == "NoExistingFieldRemoved").expect("a finding").2;
        assert_eq!((&evidence["objects"], &evidence["affectedObjects"]), (&json!(OBJECTS), &json!(3)), "{evidence}");
        assert!(text(&evidence["message"]).starts_with("3 of 1,201 objects set spec.b"), "{evidence}");
        (lists(&proxy), report)
    };
    let (alone, _) = count(&[]);
    let (both, report) = count(&["--preflight", "CRDUpgradeSafety,CustomResourceValidation"]);
    assert_eq!((alone, both), (3, 3), "pages of 500");
    let existing = &report["checks"][1]["findings"][0];
    assert_eq!((&existing["rule"], &existing["affected"]["count"]), (&json!("ExistingDataPruned"), &json!(3)));
}

#[test]
fn with_a_conversion_webhook_each_version_is_judged_as_the_webhook_shows_it() {
    let cp = control_plane();
    let bed = Samples::new();
    let webhook = Webhook::converting(cp, |mut object, wanted| {
        // v1 has `size` in place of `amount` in v2.
        let spec = object["spec"].as_object_mut().expect("a spec");
        let (from, to) = if wanted.ends_with("/v2") { ("size", "amount") } else { ("amount", "size") };
        if let Some(value) = spec.remove(from) {
            spec.insert(to.to_owned(), value);
        }
        object["apiVersion"] = wanted.into();
        object
    });
    let crd = |second: Value| {
        let mut crd =
            bed.crd(&[("v1", true, fields(json!({"size": string(), "note": string()}))), ("v2", false, second)]);
        crd["spec"]["conversion"] = webhook.conversion();
        crd
    };
    bed.live(&crd(fields(json!({"amount": string(), "note": string()}))));
    bed.create("one", &json!({"size": "s"}));
    let find = |crd: &Value| {
        let report = json_of(&[crd]);
        summaries(&report).into_iter().find(|(_, rule, _)| rule == "NoExistingFieldRemoved").expect("a finding")
    };
    let (severity, _, evidence) = find(&crd(fields(json!({"amount": string()}))));
    assert_eq!(severity, "warning", "{evidence}");
    assert!(
        text(&evidence["message"])
            .contains("the only object is not affected, as the live conversion webhook shows it at v2"),
        "{evidence}"
    );
    let (severity, _, evidence) = find(&crd(fields(json!({"note": string()}))));
    assert_eq!((severity.as_str(), &evidence["affectedObjects"]), ("error", &json!(1)), "v1 has no amount: {evidence}");
    // A manifest at another version: only the webhook can convert it.
    let desired = crd(fields(json!({"amount": string()})));
    let (severity, _, evidence) = {
        let report = json_of(&[&desired, &bed.object("two", &json!({"size": "s"}))]);
        summaries(&report).into_iter().find(|(_, rule, _)| rule == "NoExistingFieldRemoved").expect("a finding")
    };
    assert_eq!((severity.as_str(), &evidence["examined"]), ("error", &json!("no")), "{evidence}");
    assert!(text(&evidence["message"]).contains("only the conversion webhook can convert it to v2"), "{evidence}");
}

#[test]
fn with_a_conversion_webhook_that_is_down_an_error_stays_and_says_so() {
    let bed = Samples::new();
    let webhook = Webhook::converting(control_plane(), |object, _| object);
    let crd = |second: Value| {
        let schema = fields(json!({"size": string(), "note": string()}));
        let mut crd = bed.crd(&[("v1", true, schema), ("v2", false, second)]);
        let mut conversion = webhook.conversion();
        conversion["webhook"]["clientConfig"]["url"] = json!("https://127.0.0.1:1/");
        crd["spec"]["conversion"] = conversion;
        crd
    };
    let both = || fields(json!({"size": string(), "note": string()}));
    bed.live(&crd(both()));
    bed.create("one", &json!({"size": "s"}));
    let desired = crd(fields(json!({"size": string()})));
    let (severity, rule, evidence) = only(&json_of(&[&desired]));
    assert_eq!((severity.as_str(), rule.as_str()), ("error", "NoExistingFieldRemoved"));
    assert_eq!(evidence["examined"], "no", "{evidence}");
    let message = text(&evidence["message"]);
    assert!(message.starts_with("as under preset: semantic: objects cannot be read at v2: "), "{message}");
    assert!(message.contains("connection refused"), "{message}");
}
