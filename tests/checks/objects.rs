//! `CustomResourceValidation` from the command line, on existing objects of a real API server; each of its claims about
//! them is verified with that server.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use crate::support::{Proxy, Samples, When, affected, control_plane, eventually, fields, findings, names, text};
use serde_json::{Value, json};

#[test]
fn among_500_objects_exactly_those_that_break_are_named_and_once_repaired_the_deploy_passes() {
    let cp = control_plane();
    let bed = Samples::new();
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

#[test]
fn every_object_is_validated_by_a_new_version_and_a_removed_version_names_its_managers() {
    let cp = control_plane();
    let bed = Samples::new();
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
fn nothing_is_listed_if_nothing_can_break() {
    let bed = Samples::new();
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
    let bed = Samples::new();
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
fn namespaces_labels_and_examples_limit_the_listed_objects() {
    let cp = control_plane();
    let bed = Samples::new();
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
        ("pageSize: 0", "not an integer from 1 to 10000"),
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
    let bed = Samples::new();
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
fn a_list_that_expires_once_counts_objects_once_and_twice_is_no_pass() {
    let bed = Samples::new();
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
    assert!(text(&report["checks"][0]["unchecked"][0]["message"]).contains("cannot be validated"), "{twice}");
}

#[test]
fn a_user_who_may_not_list_sees_the_rule_to_ask_for() {
    let cp = control_plane();
    let bed = Samples::new();
    bed.live(&bed.one_version(fields(json!({"a": {"type": "string"}}))));
    bed.create("one", &json!({"a": "b"}));
    let user = cp.user(&json!([{"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get", "list"]}]));
    let desired = bed.one_version(fields(json!({"b": {"type": "string"}})));
    let output = bed.gantry(cp.kubeconfig(&user), "check", &desired, &[]);
    output.code(1).stdout_contains("could not check");
    let rule =
        format!("with the rule {{apiGroups: [\"{}\"], resources: [\"samples\"], verbs: [\"list\"]}}", bed.names.group);
    assert!(output.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(&rule), "{output}");
    let report = bed.gantry(cp.kubeconfig(&user), "check", &desired, &["-o", "json", "--warn-only"]).code(1).report();
    assert_eq!(report["outcome"], "failed");

    // A CRD that is not among the manifests must be read.
    let blind = cp.user(&json!([{"apiGroups": [bed.names.group], "resources": ["samples"], "verbs": ["get", "list"]}]));
    let output = bed.gantry(cp.kubeconfig(&blind), "check", &bed.object("new", &json!({"a": 1})), &[]);
    output
        .code(1)
        .stdout_contains("custom resources cannot be validated without their CRDs")
        .stdout_contains("customresourcedefinitions");
}

#[test]
fn a_version_that_nobody_serves_is_served_again_and_another_change_of_it_cannot_be_checked() {
    let bed = Samples::new();
    let served = bed.one_version(fields(json!({"size": {"type": "integer"}})));
    bed.live(&served);
    eventually("the kind to be served", || (control_plane().get(&bed.collection("v1")).0 == 200).then_some(()));
    bed.create("one", &json!({"size": 1}));
    let mut unserved = served.clone();
    unserved["spec"]["versions"][0]["served"] = json!(false);
    bed.live(&unserved);
    bed.check(&served, &[]).code(0).contains_nowhere("could not check");
    let mut narrowed = bed.one_version(fields(json!({"size": {"type": "integer", "maximum": 0}})));
    narrowed["spec"]["versions"][0]["served"] = json!(true);
    let run = bed.check(&narrowed, &[]);
    assert_ne!(run.code, Some(0));
    run.stdout_contains("serve a version without another change");
}
