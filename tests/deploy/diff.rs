//! `gantry diff` and `--diff`: what a deploy would change in each object, as the server computes it.

use std::fmt::Write as _;

use crate::support::{Bed, Output, Proxy, When, control_plane};
use serde_json::{Value, json};

/// Runs `gantry diff` on the bed's manifests as this user.
fn diff(bed: &Bed, user: &str, flags: &[&str]) -> Output {
    let arguments = [&["diff", "-f", "manifests.yaml"], flags].concat();
    bed.gantry(control_plane().kubeconfig(user), &arguments).run()
}

/// Deploys the first object, and then replaces its manifest with the second.
fn deployed(bed: &Bed, before: &Value, after: &Value) {
    bed.write("manifests.yaml", &format!("{}---\n{before}\n", bed.namespace()));
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    bed.write("manifests.yaml", &format!("{after}\n"));
}

/// The lines of the diff below the header that contains this text.
fn lines<'o>(output: &'o Output, header: &str) -> Vec<&'o str> {
    let lines = output.stdout.lines().skip_while(|line| !line.contains(header));
    lines.skip(1).take_while(|line| !line.is_empty()).collect()
}

fn object(bed: &Bed, api_version: &str, kind: &str, name: &str, rest: &Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "namespace": bed.names.namespace}});
    for (key, value) in rest.as_object().expect("a map") {
        object[key] = value.clone();
    }
    object
}

fn deployment(bed: &Bed, container: &Value) -> Value {
    let labels = json!({"app": "web"});
    let spec = json!({"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
        "spec": {"containers": [container]}}});
    object(bed, "apps/v1", "Deployment", "web", &json!({"spec": spec}))
}

fn image(name: &str) -> Value {
    json!({"name": "web", "image": name})
}

const IMAGE: [&str; 3] = ["  spec.template.spec.containers[web]:", "-   image: nginx:1.25", "+   image: nginx:1.27"];

#[test]
fn a_diff_shows_the_new_image_of_a_deployment() {
    let bed = Bed::new();
    deployed(&bed, &deployment(&bed, &image("nginx:1.25")), &deployment(&bed, &image("nginx:1.27")));
    let output = diff(&bed, "admin", &[]);
    let header = format!("update deployment.apps/web -n {}  (manifests.yaml:1)", bed.names.namespace);
    output.code(0).stdout_contains(&format!("\n{header}\n")).contains_nowhere("≈");
    assert_eq!(lines(&output, &header), IMAGE, "{output}");
    output.stdout_contains("Plan     update    1 (1 Deployment)").stdout_contains("nothing was written (diff only)");
    // For a read-only user the diff is computed by gantry, and marked.
    let output = diff(&bed, "reader", &[]);
    output
        .code(0)
        .stdout_contains(&format!("\n≈ {header}\n"))
        .stdout_contains("\n  1 object: user \"reader\" may not patch deployments.apps");
    assert_eq!(lines(&output, &header), IMAGE, "{output}");
}

#[test]
fn a_diff_shows_fields_that_are_removed_or_fall_back_to_a_default() {
    let bed = Bed::new();
    let with = |policy: Option<&str>, env: Value| {
        let mut container = json!({"name": "web", "image": "nginx:1.25", "env": env});
        container["imagePullPolicy"] = policy.into();
        container.as_object_mut().expect("a map").retain(|_, value| !value.is_null());
        deployment(&bed, &container)
    };
    let before = with(Some("Always"), json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]));
    deployed(&bed, &before, &with(None, json!([{"name": "B", "value": "2"}])));
    let output = diff(&bed, "admin", &[]);
    output.code(0);
    let shown = lines(&output, "update deployment");
    assert_eq!(
        shown,
        [
            "  spec.template.spec.containers[web]:",
            "-   imagePullPolicy: Always",
            "+   imagePullPolicy: IfNotPresent",
            "    env:",
            "-   - {name: A, value: \"1\"}",
        ],
        "{output}"
    );
}

#[test]
fn items_of_a_list_are_matched_by_key() {
    let bed = Bed::new();
    let with =
        |ports: Value, env: Value| deployment(&bed, &json!({"name": "web", "image": "a", "ports": ports, "env": env}));
    let before = with(
        json!([{"containerPort": 80, "name": "http"}, {"containerPort": 443, "name": "https"}]),
        json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}]),
    );
    let after = with(
        json!([{"containerPort": 443, "name": "tls"}, {"containerPort": 80, "name": "http"}]),
        json!([{"name": "C", "value": "3"}, {"name": "A", "value": "1"}, {"name": "B", "value": "20"}]),
    );
    deployed(&bed, &before, &after);
    let output = diff(&bed, "admin", &[]);
    output.code(0);
    assert_eq!(
        lines(&output, "update deployment"),
        [
            "  spec.template.spec.containers[web].env:",
            "    # the order changed from A, B, C to C, A, B",
            "    [B]:",
            "-     value: \"2\"",
            "+     value: \"20\"",
            "  spec.template.spec.containers[web].ports:",
            "    # the order changed from 80/TCP, 443/TCP to 443/TCP, 80/TCP",
            "    [443/TCP]:",
            "-     name: https",
            "+     name: tls",
        ],
        "{output}"
    );
}

#[test]
fn values_of_a_secret_are_in_no_output() {
    let bed = Bed::new();
    let secret = |value: &str| {
        let copy = json!({"kind": "Secret", "data": {"password": value}}).to_string();
        let mut secret = object(
            &bed,
            "v1",
            "Secret",
            "login",
            &json!({"stringData": {"password": value, "again": value, "user": "somebody-here"}}),
        );
        secret["metadata"]["annotations"] = json!({"example.com/copy": copy});
        secret
    };
    deployed(&bed, &secret("correct-horse"), &secret("battery-staple"));
    for (user, flags) in [
        ("admin", &["-v"][..]),
        ("admin", &["-o", "json"]),
        ("admin", &["--redact"]),
        ("reader", &[]),
        ("reader", &["-o", "json", "--diff=full"]),
    ] {
        let output = diff(&bed, user, flags);
        output.code(0);
        for value in ["correct-horse", "battery-staple", "somebody-here", "Y29ycmVjdC1ob3Jz", "YmF0dGVyeS1zdGFwbG"] {
            output.contains_nowhere(value);
        }
        output.stdout_contains("password: ").stdout_contains("[hidden ").stdout_contains("example.com/copy");
    }
    let output = diff(&bed, "admin", &[]);
    let marks: Vec<&str> =
        lines(&output, "update secret").into_iter().filter(|line| line.contains("[hidden")).collect();
    let mark = |start: &str| {
        let line = marks.iter().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {output}"));
        line.rsplit("password: ").next().and_then(|text| text.rsplit("again: ").next()).expect("a mark").to_owned()
    };
    assert_eq!(mark("-   again"), mark("-   password"), "{output}");
    assert_eq!(mark("+   again"), mark("+   password"), "{output}");
    assert_ne!(mark("+   again"), mark("-   again"), "{output}");
}

#[test]
fn one_changed_line_of_a_config_map_with_300_is_shown_alone() {
    let bed = Bed::new();
    let config = |changed: &str| {
        let mut text = String::new();
        for number in 1..=300 {
            let line = if number == 150 { changed.to_owned() } else { format!("setting.{number} = {number}") };
            writeln!(text, "{line}").expect("in memory");
        }
        object(&bed, "v1", "ConfigMap", "config", &json!({"data": {"app.conf": text}}))
    };
    deployed(&bed, &config("timeout = 10"), &config("timeout = \u{1b}[31m\u{202e}20"));
    let output = diff(&bed, "admin", &[]);
    output.code(0).contains_nowhere("\u{1b}").contains_nowhere("\u{202e}");
    assert_eq!(
        lines(&output, "update configmap"),
        [
            "  data:",
            "    app.conf: |",
            "      setting.148 = 148",
            "      setting.149 = 149",
            "-     timeout = 10",
            "+     timeout = \\u{1b}[31m\\u{202e}20",
            "      setting.151 = 151",
            "      setting.152 = 152",
        ],
        "{output}"
    );
}

#[test]
fn descriptions_of_a_crd_are_one_line() {
    let bed = Bed::new();
    let crd = |described: bool, more: &str| {
        let words = if described { ", description: what it is" } else { "" };
        let fields: Vec<String> = (0..40).map(|n| format!("f{n:02}: {{type: string{words}}}")).collect();
        bed.crd(&format!("{}{more}", fields.join(", ")))
    };
    bed.write("manifests.yaml", &crd(false, ""));
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    bed.write("manifests.yaml", &crd(true, ", replicas: {type: integer, minimum: 1}"));
    for (user, mark) in [("admin", ""), ("reader", "≈ ")] {
        let output = diff(&bed, user, &[]);
        output.code(0).stdout_contains(&format!("\n{mark}update customresourcedefinition/samples."));
        let shown = lines(&output, "update customresourcedefinition");
        let changed: Vec<&str> = shown.iter().copied().filter(|line| line.starts_with(['-', '+'])).collect();
        assert_eq!(changed, ["+   replicas: {minimum: 1, type: integer}"], "{output}");
        assert_eq!(shown.last(), Some(&"  # 40 descriptions changed"), "{output}");
        assert_eq!(shown.first(), Some(&"  spec.versions[v1].schema.openAPIV3Schema:"), "{output}");
    }
    control_plane().delete(&bed.crd_path());
}

/// A release like those of Argo CD: a CRD of a megabyte in which every description changes, images, a Secret.
#[test]
fn a_release_with_a_large_crd_is_a_short_diff_even_without_rights_to_write() {
    let bed = Bed::new();
    let release = |version: u8| -> String {
        // This many words make the server store about a megabyte.
        let words = format!("release {version}: {}", "what the field is there for, in many words; ".repeat(8));
        let field = |n: usize| format!("f{n:04}: {{type: string, description: \"{words}{n}\"}}");
        let mut fields: Vec<String> = (0..2000).map(field).collect();
        if version > 1 {
            let deep: Vec<String> = (0..60).map(|n| format!("g{n:02}: {{type: string}}")).collect();
            fields.push(format!("sources: {{type: object, properties: {{{}}}}}", deep.join(", ")));
        }
        let workload = |n: u8| {
            let labels = json!({"app": format!("argo-{n}")});
            let containers = json!([{"name": "main", "image": format!("example.com/argo:{version}")}]);
            let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
            let spec = json!({"selector": {"matchLabels": labels}, "template": template});
            object(&bed, "apps/v1", "Deployment", &format!("argo-{n}"), &json!({"spec": spec})).to_string()
        };
        let key = format!("password-of-{version}");
        let secret = object(&bed, "v1", "Secret", "login", &json!({"stringData": {"key": key}})).to_string();
        let crd = bed.crd(&fields.join(", "));
        [bed.namespace(), crd, secret].into_iter().chain((0..7).map(workload)).collect::<Vec<_>>().join("\n---\n")
    };
    bed.write("manifests.yaml", &release(1));
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    assert!(control_plane().get(&bed.crd_path()).1.to_string().len() > 800_000);
    bed.write("manifests.yaml", &release(2));
    for (user, mark) in [("admin", ""), ("reader", "≈ ")] {
        let output = diff(&bed, user, &[]);
        output.code(0).stdout_contains(&format!("\n{mark}update customresourcedefinition/samples."));
        output.stdout_contains("  # 2000 descriptions changed").contains_nowhere("password-of-");
        let images = output.stdout.lines().filter(|line| line.starts_with('+') && line.contains("image:")).count();
        let shown = output.stdout.lines().count();
        assert!(images == 7 && shown <= 120, "{images} images in {shown} lines: {output}");
    }
    control_plane().delete(&bed.crd_path());
}

#[test]
fn a_created_object_is_shown_as_one_line_or_as_a_whole() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed.write("manifests.yaml", &format!("{}---\n{}", bed.config_map("a", "\"1\""), bed.config_map("b", "\"2\"")));
    let output = diff(&bed, "admin", &[]);
    output.code(0);
    let header = |name: &str, line: usize| {
        format!("create configmap/{name} -n {}  (manifests.yaml:{line})", bed.names.namespace)
    };
    output.stdout_contains(&format!("\n{}\n{}\n", header("a", 1), header("b", 6)));
    let output = diff(&bed, "admin", &["--diff=full"]);
    output.code(0).stdout_contains(&header("a", 1)).stdout_contains("\n+   key: \"1\"\n").contains_nowhere("≈");
    output.contains_nowhere("managedFields").contains_nowhere("creationTimestamp");
    diff(&bed, "reader", &["--diff=full"]).code(0).stdout_contains("≈ create").stdout_contains("\n+   key: \"2\"\n");
    // Nothing was written, and unchanged objects are not shown.
    assert_eq!(control_plane().get(&bed.config_map_path("a")).0, 404);
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    diff(&bed, "admin", &[]).code(0).stdout_contains("unchanged 2 (2 ConfigMap)").contains_nowhere("configmap/");
}

#[test]
fn a_filter_selects_the_objects_that_are_shown_checked_and_written() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    let secret = object(&bed, "v1", "Secret", "a", &json!({"stringData": {"a": "b"}}));
    bed.write(
        "manifests.yaml",
        &format!("{}---\n{}---\n{secret}", bed.config_map("a", "\"1\""), bed.config_map("b", "\"2\"")),
    );
    let output = diff(&bed, "admin", &["--filter", "kind=ConfigMap,name=b,op=create", "--filter", "kind=Sec*"]);
    output
        .code(0)
        .stdout_contains("create configmap/b")
        .stdout_contains("create secret/a")
        .contains_nowhere("configmap/a");
    let output = diff(&bed, "admin", &["--filter", "op=update"]);
    output.code(0).stderr_contains("notice: no object of the manifests matches --filter").contains_nowhere("create");
    let proxy = Proxy::start(control_plane());
    for (filter, said) in [("kid=x", "did you mean \"kind\"?"), ("op=gone", "unknown op"), ("kind", "not KEY=VALUE")] {
        for command in ["diff", "check", "deploy"] {
            let arguments = [command, "-f", "manifests.yaml", "--filter", filter];
            bed.gantry(proxy.kubeconfig("admin"), &arguments).run().code(2).stderr_contains(said);
        }
    }
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "--filter", "name=a"];
    bed.gantry(proxy.kubeconfig("admin"), &arguments)
        .run()
        .code(2)
        .stderr_contains("--filter cannot be used with an app");
    assert!(proxy.requests().is_empty(), "{:?}", proxy.requests());
    let output = bed.deploy(control_plane().kubeconfig("admin"), &["--filter", "kind=configmap,name=b"]).run();
    output.code(0).stdout_contains("1 created");
    let is_there = |name: &str| control_plane().get(&bed.config_map_path(name)).0 == 200;
    assert_eq!((is_there("a"), is_there("b")), (false, true));
}

#[test]
fn the_exit_code_says_whether_there_are_changes() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed.write("manifests.yaml", &bed.config_map("a", "\"1\""));
    let run = |command: &[&str]| {
        let arguments = [command, &["-f", "manifests.yaml", "--detailed-exitcode"]].concat();
        bed.gantry(control_plane().kubeconfig("admin"), &arguments).run()
    };
    for command in [&["diff"][..], &["check"], &["deploy", "--dry-run"], &["deploy"]] {
        run(command).code(4);
    }
    for command in [&["diff"][..], &["check"], &["deploy", "--dry-run"], &["deploy"]] {
        run(command).code(0);
    }
    diff(&bed, "admin", &[]).code(0);
    // An object that cannot be read or whose kind is not served is an error, not a change.
    bed.write("manifests.yaml", &bed.config_map("a", "\"2\"").replace("ConfigMap", "ConfigMop"));
    run(&["diff"]).code(3).stderr_contains("is served by the target");
}

#[test]
fn a_refusal_of_the_dry_run_for_the_comparison_blocks_the_deploy() {
    let bed = Bed::new();
    let deploy = |manifests: &[String], flags: &[&str]| {
        bed.write("manifests.yaml", &manifests.join("---\n"));
        bed.deploy(control_plane().kubeconfig("admin"), flags).run()
    };
    let (first, second) = (bed.config_map("a", "\"1\""), bed.config_map("b", "\"1\""));
    deploy(&[bed.namespace(), first.clone(), second.clone()], &[]).code(0);
    let changed = |text: &str, value: &str| text.replace("\"1\"", value);
    let manifests = [changed(&first, "\"2\""), second.replace("key:", "a/b:")];
    let refused = "configmap/b -n ";
    for flags in [&["--diff"][..], &["--diff", "--dry-run"]] {
        let output = deploy(&manifests, flags);
        output.code(3).stdout_contains(refused).stdout_contains("a valid config key must consist of");
        output.stdout_contains("1 error. Nothing was written.");
    }
    let live = control_plane().get(&bed.config_map_path("a")).1;
    assert_eq!(live["data"], control_plane().get(&bed.config_map_path("b")).1["data"]);
    // A warning would not help: the server refuses it all the same.
    let output = deploy(&manifests, &["--diff", "--dry-run", "--preflight", "AdmissionDryRun", "--warn-only"]);
    output.code(3).stderr_contains("--warn-only: 1 finding (ObjectInvalid) stays an error");
    // A field of the schema that the same deploy writes.
    let crd = |schema: &str| bed.crd(schema);
    deploy(&[crd("first: {type: string}"), bed.sample()], &[]).code(0);
    let sample = bed.sample() + "second: new\n";
    deploy(&[crd("first: {type: string}, second: {type: string}"), sample], &["--diff"]).code(0);
}

#[test]
fn the_report_has_the_lines_as_data() {
    let bed = Bed::new();
    deployed(&bed, &deployment(&bed, &image("nginx:1.25")), &deployment(&bed, &image("nginx:1.27")));
    let change = |output: &Output| output.report()["changes"][0].clone();
    let with = change(
        bed.gantry(control_plane().kubeconfig("admin"), &["check", "-f", "manifests.yaml", "-o", "json", "--diff"])
            .run()
            .code(0),
    );
    let line = |is: &str, text: &str| json!({"is": is, "text": text});
    let lines = with["diff"]["lines"].as_array().expect("lines");
    assert!(lines.contains(&line("removed", "  image: nginx:1.25")), "{with}");
    assert!(lines.contains(&line("added", "  image: nginx:1.27")), "{with}");
    assert!(lines.contains(&line("context", "spec.template.spec.containers[web]:")), "{with}");
    assert!(with["diff"].get("approximate").is_none(), "{with}");
    let without = change(
        bed.gantry(control_plane().kubeconfig("admin"), &["check", "-f", "manifests.yaml", "-o", "json"]).run().code(0),
    );
    assert!(without.get("diff").is_none(), "{without}");
    assert!(change(diff(&bed, "reader", &["-o", "json"]).code(0))["diff"]["approximate"].is_string());
    // With `--redact`: the place and the type, and no value.
    let output = diff(&bed, "admin", &["--redact"]);
    output.code(0).contains_nowhere("nginx").stdout_contains("image: \"[string ");
}

/// The diff and a check that needs the same dry run share one request.
#[test]
fn an_object_is_sent_as_a_dry_run_once_in_a_run() {
    let bed = Bed::new();
    deployed(&bed, &deployment(&bed, &image("nginx:1.25")), &deployment(&bed, &image("nginx:1.27")));
    let proxy = Proxy::start(control_plane());
    let arguments = ["deploy", "--dry-run", "-f", "manifests.yaml", "--diff", "--preflight", "AdmissionDryRun"];
    let output = bed.gantry(proxy.kubeconfig("admin"), &arguments).run();
    output.code(0).stdout_contains("+   image: nginx:1.27").contains_nowhere("≈");
    assert!(proxy.writes().is_empty());
    let asked = proxy.requests().iter().filter(|request| request.method == "PATCH").count();
    assert_eq!(asked, 1, "{:?}", proxy.requests());
}

#[test]
fn a_diff_is_computed_if_a_webhook_does_not_support_dry_runs() {
    let bed = Bed::new();
    deployed(&bed, &deployment(&bed, &image("nginx:1.25")), &deployment(&bed, &image("nginx:1.27")));
    let proxy = Proxy::start(control_plane());
    let message = "admission webhook \"w.example.com\" does not support dry run";
    let refused = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": "BadRequest", "code": 400});
    proxy.answer(When::new("PATCH", "/deployments/web").query("dryRun=All"), 400, refused);
    let output = bed.gantry(proxy.kubeconfig("admin"), &["diff", "-f", "manifests.yaml"]).run();
    output.code(0).stdout_contains("the webhook \"w.example.com\" does not support dry runs");
    assert_eq!(lines(&output, "≈ update deployment"), IMAGE, "{output}");
}

#[test]
fn a_diff_compares_with_a_folder() {
    let bed = Bed::new();
    std::fs::create_dir(bed.folder.path().join("live")).expect("a folder");
    bed.write("manifests.yaml", &bed.config_map("a", "before"));
    let run = |command: &[&str]| {
        let arguments = [command, &["-f", "manifests.yaml", "--target", "dir:live"]].concat();
        bed.gantry(bed.folder.path().join("none"), &arguments).run()
    };
    run(&["deploy"]).code(0);
    bed.write("manifests.yaml", &bed.config_map("a", "after"));
    let output = run(&["diff"]);
    output.code(0).stdout_contains("the target is a folder");
    assert_eq!(lines(&output, "≈ update configmap/a"), ["  data:", "-   key: before", "+   key: after"], "{output}");
}
