//! Updates that the server refuses for what others set in the live object: known before anything is written.

use crate::support::{Bed, Output, control_plane, create_as, printed_commands, run_printed};
use serde_json::{Value, json};

struct Stage(Bed);

impl Stage {
    fn new() -> Self {
        Stage(Bed::with_namespace())
    }

    fn object(&self, api_version: &str, kind: &str, spec: &Value) -> Value {
        self.0.object(api_version, kind, "web", json!({"spec": spec}))
    }

    fn deployment(&self, container: &Value, rest: Value) -> Value {
        let mut pod = json!({"containers": [{"name": "main", "image": "web:1"}]});
        extend(&mut pod["containers"][0], container.clone());
        extend(&mut pod, rest);
        let template = json!({"metadata": {"labels": {"run": "web"}}, "spec": pod});
        self.object(
            "apps/v1",
            "Deployment",
            &json!({"selector": {"matchLabels": {"run": "web"}}, "template": template}),
        )
    }

    fn create(&self, object: &Value, manager: &str) {
        create_as(control_plane(), manager, object);
    }

    fn live(&self, object: &Value) -> Value {
        control_plane().get(&control_plane().path_of(object)).1
    }

    /// Writes the manifests: a ConfigMap that is new, and the object.
    fn write(&self, object: &Value) {
        self.0.write("manifests.yaml", &format!("{}---\n{object}\n", self.0.config_map("before", "b")));
    }

    fn run(&self, command: &str, more: &[&str]) -> Output {
        let arguments = [&[command, "-f", "manifests.yaml"], more].concat();
        self.0.gantry(control_plane().kubeconfig("admin"), &arguments).run()
    }

    /// Every command ends with exit code 3, and nothing is written. Returns the report.
    fn is_refused(&self, object: &Value, words: &[&str]) -> Value {
        self.write(object);
        let before = self.live(object);
        for command in ["check", "diff", "deploy"] {
            let output = self.run(command, &["-o", "json"]);
            let report = output.code(3).report();
            let errors = report["errors"].to_string();
            for word in words {
                assert!(errors.contains(word), "{command}: {word}\n{errors}");
            }
        }
        assert_eq!(control_plane().get(&self.0.config_map_path("before")).0, 404);
        assert_eq!(self.live(object), before);
        self.run("deploy", &["-o", "json"]).report()
    }

    /// The only printed command makes the deploy possible.
    fn command_helps(&self, report: &Value) {
        let commands = printed_commands(&report["errors"]);
        let [command] = &commands[..] else { panic!("{report:#}") };
        run_printed(command, &control_plane().kubeconfig("admin"), self.0.folder.path());
        self.run("deploy", &["--wait=false"]).code(0);
    }
}

/// The manifest with other values.
fn changed(manifest: &Value) -> String {
    let text = manifest.to_string();
    [("\"c\"", "\"d\""), ("\"1\"", "\"2\""), (":80", ":81")]
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to))
}

fn extend(into: &mut Value, from: Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { panic!("objects") };
    into.extend(from);
}

#[test]
fn several_live_items_with_the_same_keys_are_a_conflict_over_one_field() {
    let env = |values: &[(&str, &str)]| json!({"env": values.iter().map(|(name, value)| json!({"name": name, "value": value})).collect::<Vec<_>>()});
    let port = |protocol: &str, name: &str| json!({"containerPort": 80, "protocol": protocol, "name": name});
    for (live, desired, field) in [
        (env(&[("A", "1"), ("B", "1"), ("A", "2")]), env(&[("A", "1"), ("B", "1")]), "env[name=\\\"A\\\"]"),
        (env(&[("A", "1"), ("A", "1")]), env(&[("A", "1")]), "env[name=\\\"A\\\"]"),
        (
            json!({"ports": [port("TCP", "a"), port("UDP", "u"), port("TCP", "b")]}),
            json!({"ports": [port("TCP", "a"), port("UDP", "u")]}),
            "ports[containerPort=80,protocol=\\\"TCP\\\"]",
        ),
    ] {
        let stage = Stage::new();
        stage.create(&stage.deployment(&live, json!({})), "tool");
        let desired = stage.deployment(&desired, json!({}));
        let field = format!(".spec.template.spec.containers[name=\\\"main\\\"].{field}");
        let path = control_plane().path_of(&desired);
        let (status, answer) = control_plane().server_side_apply(&path, "gantry&dryRun=All", &desired);
        assert_eq!(status, 409, "{answer:#}");
        assert!(answer["details"]["causes"].to_string().contains(&field), "{field} {answer:#}");
        stage.is_refused(&desired, &[&field, "\\\"tool\\\""]);
        // The conflict is the only reason.
        stage.run("deploy", &["--force-conflicts", "--wait=false"]).code(0);
        let container = &stage.live(&desired)["spec"]["template"]["spec"]["containers"][0];
        for list in ["env", "ports"] {
            let expected = &desired["spec"]["template"]["spec"]["containers"][0][list];
            assert_eq!(container.get(list).unwrap_or(&Value::Null), expected);
        }
    }
}

#[test]
fn live_items_with_the_same_keys_that_the_manifest_does_not_set_are_no_conflict() {
    let stage = Stage::new();
    let twice = json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]);
    let env = |env: Value| stage.deployment(&json!({"env": env}), json!({}));
    stage.create(&env(twice), "tool");
    stage.write(&env(json!([{"name": "B", "value": "1"}])));
    stage.run("check", &[]).code(0);
    stage.run("deploy", &["--wait=false"]).code(0);
}

#[test]
fn a_port_with_the_name_of_a_live_port_is_refused_with_the_live_port_and_its_manager() {
    let stage = Stage::new();
    let ports =
        |number: u16| stage.deployment(&json!({"ports": [{"containerPort": number, "name": "http"}]}), json!({}));
    stage.create(&ports(80), "tool");
    let item = ".spec.template.spec.containers[name=\\\"main\\\"].ports[containerPort=80,protocol=\\\"TCP\\\"]";
    let report = stage.is_refused(&ports(81), &["Duplicate value", item, "field manager \\\"tool\\\""]);
    stage.command_helps(&report);
    let live = &stage.live(&ports(81))["spec"]["template"]["spec"]["containers"][0]["ports"];
    assert_eq!(*live, json!([{"containerPort": 81, "name": "http", "protocol": "TCP"}]));
}

#[test]
fn a_live_field_that_excludes_one_of_the_manifest_is_refused_with_its_manager() {
    let volume = |source: Value| {
        let mut volume = json!({"name": "v"});
        extend(&mut volume, source);
        json!({"volumes": [volume]})
    };
    let probe = |handler: &str, value: Value| (json!({"livenessProbe": {handler: value}}), json!({}));
    let value = json!({"env": [{"name": "A", "value": "1"}]});
    let reference = json!({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]});
    for (live, desired, words) in [
        (
            (json!({}), volume(json!({"emptyDir": {"medium": "Memory"}}))),
            (json!({}), volume(json!({"configMap": {"name": "c"}}))),
            ".volumes[name=\\\"v\\\"].emptyDir",
        ),
        (
            (json!({}), volume(json!({"emptyDir": {}}))),
            (json!({}), volume(json!({"configMap": {"name": "c"}}))),
            ".volumes[name=\\\"v\\\"].emptyDir",
        ),
        (
            (json!({}), volume(json!({"secret": {"secretName": "s"}}))),
            (json!({}), volume(json!({"emptyDir": {}}))),
            ".volumes[name=\\\"v\\\"].secret",
        ),
        (probe("exec", json!({"command": ["true"]})), probe("httpGet", json!({"port": 80})), ".livenessProbe.exec"),
        ((value.clone(), json!({})), (reference.clone(), json!({})), ".env[name=\\\"A\\\"].value"),
        ((reference, json!({})), (value, json!({})), ".env[name=\\\"A\\\"].valueFrom"),
    ] {
        let stage = Stage::new();
        stage.create(&stage.deployment(&live.0, live.1), "tool");
        let desired = stage.deployment(&desired.0, desired.1);
        let report = stage.is_refused(&desired, &["may not", words, "field manager \\\"tool\\\""]);
        stage.command_helps(&report);
        let part = words.rsplit('.').next().expect("a name");
        let pod = stage.live(&desired)["spec"]["template"]["spec"].to_string();
        assert!(!pod.contains(&format!("\"{part}\":")), "{pod}");
        // The command leaves nothing behind that the next change is in conflict with.
        stage.write(&serde_json::from_str(&changed(&desired)).expect("a manifest"));
        stage.run("deploy", &["--wait=false"]).code(0);
    }
}

#[test]
fn a_default_of_the_server_that_excludes_the_manifest_is_refused() {
    let stage = Stage::new();
    let plain = stage.deployment(&json!({}), json!({}));
    stage.write(&plain);
    stage.run("deploy", &["--wait=false"]).code(0);
    let (status, _) = control_plane().delete(&stage.0.config_map_path("before"));
    assert_eq!(status, 200);
    let mut recreated = plain;
    recreated["spec"]["strategy"] = json!({"type": "Recreate"});
    let report = stage.is_refused(&recreated, &[".spec.strategy.rollingUpdate", "Forbidden"]);
    stage.command_helps(&report);
    assert_eq!(stage.live(&recreated)["spec"]["strategy"], json!({"type": "Recreate"}));
    recreated["spec"]["strategy"] = json!({"type": "RollingUpdate"});
    stage.write(&recreated);
    stage.run("deploy", &["--wait=false"]).code(0);
}

#[test]
fn a_live_port_of_a_former_deploy_tool_refuses_nothing() {
    let stage = Stage::new();
    let ports =
        |number: u16| stage.deployment(&json!({"ports": [{"containerPort": number, "name": "http"}]}), json!({}));
    stage.create(&ports(80), "kubectl-create");
    stage.write(&ports(81));
    stage.run("check", &[]).code(0);
    stage.run("deploy", &["--wait=false"]).code(0);
    let live = &stage.live(&ports(81))["spec"]["template"]["spec"]["containers"][0]["ports"];
    assert_eq!(*live, json!([{"containerPort": 81, "name": "http", "protocol": "TCP"}]));
}

#[test]
fn a_live_port_without_a_name_beside_a_new_one_is_refused() {
    let stage = Stage::new();
    let service = |port: u16| {
        stage.object("v1", "Service", &json!({"selector": {"run": "web"}, "ports": [{"port": port, "targetPort": 1}]}))
    };
    stage.create(&service(80), "tool");
    let words = ["Required value", ".spec.ports[port=80,protocol=\\\"TCP\\\"]", "field manager \\\"tool\\\""];
    let report = stage.is_refused(&service(81), &words);
    stage.command_helps(&report);
    assert_eq!(stage.live(&service(81))["spec"]["ports"][0]["port"], 81);
}
