//! Objects that another tool deployed are taken over: what leaves the manifests is removed, and no later upgrade needs
//! force.

use std::process::Command;

use crate::support::admission::{Admission, comes_into_force, only, rule};
use crate::support::{Bed, CrdBuilder, Proxy, control_plane, run_printed};
use serde_json::{Value, json};

/// How a former tool wrote the objects.
#[derive(Clone, Copy, PartialEq)]
enum Wrote {
    /// By `kubectl` with these arguments.
    Kubectl(&'static [&'static str]),
    /// By kubectl, with the marks of another tool on the object.
    Marked(&'static [&'static str], Mark),
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    Helm,
    Kustomization,
    ArgoCd,
    Kapp,
}

use Wrote::{Kubectl, Marked};

const TOOLS: [(&str, Wrote); 10] = [
    ("apply", Kubectl(&["apply"])),
    ("server-side", Kubectl(&["apply", "--server-side"])),
    ("create", Kubectl(&["create"])),
    ("replace", Kubectl(&["replace"])),
    ("helm-update", Marked(&["create", "--field-manager=helm"], Mark::Helm)),
    ("helm-apply", Marked(&["apply", "--server-side", "--field-manager=helm"], Mark::Helm)),
    ("flux", Marked(&["apply", "--server-side", "--field-manager=kustomize-controller"], Mark::Kustomization)),
    ("argo-update", Marked(&["apply", "--field-manager=argocd-controller"], Mark::ArgoCd)),
    ("argo-apply", Marked(&["apply", "--server-side", "--field-manager=argocd-controller"], Mark::ArgoCd)),
    ("kapp", Marked(&["create", "--field-manager=kapp"], Mark::Kapp)),
];

const FLAGS: [&[&str]; 3] = [&[], &["--take-ownership"], &["--force-conflicts"]];

fn kubectl(arguments: &[&str], object: &Value) {
    use std::io::Write as _;
    let mut child = Command::new("kubectl")
        .args(arguments)
        .args(["-f", "-", "--kubeconfig"])
        .arg(control_plane().kubeconfig("admin"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("kubectl");
    child.stdin.take().expect("its input").write_all(object.to_string().as_bytes()).expect("write to it");
    assert!(child.wait().expect("kubectl ends").success(), "{arguments:?}");
}

fn config_map(bed: &Bed, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": bed.names.namespace, "labels": {"stays": "1", "leaves": "1"}},
        "data": {"stays": "1", "leaves": "1"}})
}

fn deployment(bed: &Bed, name: &str) -> Value {
    let env = |name: &str| json!({"name": name, "value": "1"});
    let port = |port: u16| json!({"containerPort": port, "name": format!("p{port}")});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": bed.names.namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [
                {"name": "stays", "image": "i:1", "env": [env("STAYS"), env("LEAVES")], "ports": [port(80), port(81)]},
                {"name": "leaves", "image": "i:1"}]}}}})
}

/// The same object after a key, a label, an environment variable, a port and a container left the manifest.
fn less(object: &Value) -> Value {
    let mut object = object.clone();
    for pointer in ["/metadata/labels", "/data"] {
        if let Some(map) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
            map.shift_remove("leaves");
        }
    }
    if let Some(containers) = object.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut) {
        containers.pop();
        for list in ["env", "ports"] {
            containers[0][list].as_array_mut().expect("a list").pop();
        }
    }
    object
}

fn changed(object: &Value) -> Value {
    let mut object = less(object);
    match object["kind"].as_str() {
        Some("ConfigMap") => object["data"]["stays"] = json!("2"),
        _ => object["spec"]["template"]["spec"]["containers"][0]["image"] = json!("i:2"),
    }
    object
}

/// The object as the former tool left it.
fn deployed(object: &Value, wrote: Wrote) {
    let mut object = object.clone();
    let arguments = match wrote {
        Kubectl(arguments) => arguments,
        Marked(arguments, mark) => {
            let namespace = object["metadata"]["namespace"].clone();
            let kind = match object["kind"].as_str() {
                Some("ConfigMap") => "/ConfigMap",
                _ => "apps/Deployment",
            };
            let (at, marks) = match mark {
                Mark::Helm => (
                    "annotations",
                    json!({"meta.helm.sh/release-name": "r", "meta.helm.sh/release-namespace": namespace}),
                ),
                Mark::Kustomization => (
                    "labels",
                    json!({
                    "kustomize.toolkit.fluxcd.io/name": "k", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}),
                ),
                Mark::ArgoCd => (
                    "annotations",
                    json!({"argocd.argoproj.io/tracking-id":
                    format!("shop:{kind}:{}/{}", namespace.as_str().unwrap(), object["metadata"]["name"].as_str().unwrap())}),
                ),
                Mark::Kapp => ("labels", json!({"kapp.k14s.io/app": "1700000000000"})),
            };
            let map = object["metadata"].as_object_mut().expect("metadata");
            let map = map.entry(at).or_insert_with(|| json!({})).as_object_mut().expect("a map");
            map.extend(marks.as_object().cloned().expect("marks"));
            arguments
        }
    };
    if arguments == ["replace"] {
        kubectl(&["create"], &less(&object));
    }
    kubectl(arguments, &object);
}

fn live(object: &Value) -> Value {
    let (status, live) = control_plane().get(&control_plane().path_of(object));
    assert_eq!(status, 200);
    live
}

/// Whether the live object has what left the manifest, as text for a failure; empty if it is as it should be.
fn remains(object: &Value) -> Vec<String> {
    let live = live(object);
    let mut found = Vec::new();
    for pointer in ["/metadata/labels/leaves", "/data/leaves"] {
        found.extend(live.pointer(pointer).map(|_| pointer.to_owned()));
    }
    if let Some(containers) = live.pointer("/spec/template/spec/containers").and_then(Value::as_array) {
        found.extend((containers.len() != 1).then(|| "a container".to_owned()));
        for list in ["env", "ports"] {
            let count = containers[0][list].as_array().map_or(0, Vec::len);
            found.extend((count != 1).then(|| format!("{count} of {list}")));
        }
    }
    found
}

/// Of every former tool: the cell of each flag, with and without an app, for a ConfigMap and a Deployment.
#[test]
fn fields_that_leave_the_manifests_after_a_takeover_are_removed() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let mut wrong = Vec::new();
    for (tool, wrote) in TOOLS {
        for (number, flags) in FLAGS.into_iter().enumerate() {
            let name = format!("{tool}-{number}");
            let objects = [config_map(&bed, &name), deployment(&bed, &name)];
            objects.iter().for_each(|object| deployed(object, wrote));
            let deploy = |objects: &[Value], flags: &[&str]| {
                let text: Vec<String> = objects.iter().map(Value::to_string).collect();
                bed.write("manifests.yaml", &text.join("\n---\n"));
                let app = ["--wait=false", "-y", "-a", &name];
                // Every other tool without an app.
                let app = if number == 1 { &app[..2] } else { &app[..] };
                bed.deploy(cp.kubeconfig("admin"), &[app, flags].concat()).run()
            };
            // An owner that is marked blocks, and nothing is written.
            let is_blocked = matches!(wrote, Marked(..)) && !flags.contains(&"--take-ownership");
            let before: Vec<Value> = objects.iter().map(live).collect();
            let first = deploy(&objects, flags);
            if is_blocked {
                first.code(3).stdout_contains("OwnedByOther");
                assert_eq!(objects.iter().map(live).collect::<Vec<_>>(), before, "{name}");
                continue;
            }
            first.code(0);
            deploy(&objects.each_ref().map(less), &[]).code(0);
            for object in &objects {
                wrong.extend(remains(object).into_iter().map(|what| format!("{name} {}: {what}", object["kind"])));
            }
            deploy(&objects.each_ref().map(changed), &[]).code(0).stdout_contains("2 updated");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn fields_that_the_first_manifests_do_not_set_are_removed_as_by_kubectl() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let [ours, kubectls] = ["ours", "kubectls"].map(|name| {
        let objects = [config_map(&bed, name), deployment(&bed, name)];
        objects.iter().for_each(|object| kubectl(&["apply"], object));
        objects
    });
    bed.write("manifests.yaml", &ours.each_ref().map(|object| less(object).to_string()).join("\n---\n"));
    let foretold = bed.gantry(cp.kubeconfig("admin"), &["diff", "-f", "manifests.yaml"]).run();
    foretold.stdout_contains("leaves").stdout_contains("LEAVES");
    // What the server defaults again does not go.
    foretold.contains_nowhere("progressDeadlineSeconds").contains_nowhere("dnsPolicy");
    let run = bed.deploy(cp.kubeconfig("admin"), &["--wait=false"]).run();
    run.code(0).stderr_contains("taking over from kubectl apply");
    kubectls.iter().for_each(|object| kubectl(&["apply", "--server-side"], &less(object)));
    for (ours, kubectls) in ours.iter().zip(&kubectls) {
        assert_eq!(remains(ours), Vec::<String>::new());
        assert_eq!(remains(kubectls), Vec::<String>::new());
        let [ours, kubectls] = [live(ours), live(kubectls)].map(|object| {
            let text = json!([object["spec"], object["data"], object["metadata"]["labels"]]).to_string();
            text.replace("kubectls", "NAME").replace("ours", "NAME")
        });
        assert_eq!(ours, kubectls);
    }
}

#[test]
fn fields_of_people_and_controllers_stay_and_are_named() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let object = config_map(&bed, "edited");
    kubectl(&["apply"], &object);
    let path = format!("{}?fieldManager=kubectl-edit", cp.path_of(&object));
    assert_eq!(cp.patch(&path, &json!({"data": {"by-hand": "1"}})).0, 200);
    bed.write("manifests.yaml", &less(&object).to_string());
    let run = bed.deploy(cp.kubeconfig("admin"), &[]).run();
    run.code(0).stderr_contains(".data.by-hand of kubectl-edit stays");
    assert_eq!(live(&object)["data"], json!({"stays": "1", "by-hand": "1"}));
}

#[test]
fn a_refused_takeover_leaves_the_fields_with_the_tool() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let object = config_map(&bed, "kept");
    kubectl(&["apply", "--server-side", "--field-manager=helm"], &object);
    let before = live(&object);
    let mut other = object.clone();
    other["data"]["stays"] = json!("2");
    bed.write("manifests.yaml", &other.to_string());
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(3).stdout_contains("last deployed by helm");
    assert_eq!(live(&object), before);
}

#[test]
fn take_ownership_also_takes_changed_values_but_none_of_people() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let object = config_map(&bed, "web");
    deployed(&object, Marked(&["apply", "--server-side", "--field-manager=helm"], Mark::Helm));
    let mut other = object.clone();
    other["data"]["stays"] = json!("2");
    bed.write("manifests.yaml", &other.to_string());
    let take = || bed.deploy(cp.kubeconfig("admin"), &["--take-ownership"]).run();
    let path = format!("{}?fieldManager=kubectl-edit", cp.path_of(&object));
    assert_eq!(cp.patch(&path, &json!({"data": {"leaves": "by hand"}})).0, 200);
    let before = live(&object);
    take().code(3).stdout_contains("kubectl-edit").contains_nowhere("\"helm\" owns");
    assert_eq!(live(&object), before);
    other["data"]["leaves"] = json!("by hand");
    bed.write("manifests.yaml", &other.to_string());
    take().code(0).stdout_contains("1 adopted");
    assert_eq!(live(&object)["data"], other["data"]);
}

/// The strategy, the probe and the port of the tool leave with its fields, and those of the manifest come: the server
/// accepts each, and refuses both at once.
#[test]
fn values_that_the_server_refuses_only_beside_those_of_the_tool_are_deployed() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    for (tool, wrote) in TOOLS {
        let mut before = deployment(&bed, tool);
        let mut after = before.clone();
        for (object, strategy, probe, port) in [
            (&mut before, json!({"rollingUpdate": {"maxSurge": 2}}), json!({"httpGet": {"port": 80}}), 80),
            (&mut after, json!({"type": "Recreate"}), json!({"exec": {"command": ["true"]}}), 82),
        ] {
            object["spec"]["strategy"] = strategy;
            let container = &mut object["spec"]["template"]["spec"]["containers"][0];
            container["livenessProbe"] = probe;
            container["ports"] = json!([{"containerPort": port, "name": "web"}]);
        }
        deployed(&before, wrote);
        bed.write("manifests.yaml", &after.to_string());
        let flags = ["--take-ownership", "--force-conflicts"];
        let checks = [&["check", "--preflight=AdmissionDryRun", "-f", "manifests.yaml"][..], &flags].concat();
        bed.gantry(cp.kubeconfig("admin"), &checks).run().code(0);
        bed.deploy(cp.kubeconfig("admin"), &[&["--wait=false", "-y"][..], &flags].concat()).run().code(0);
        let live = live(&after);
        let container = &live["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(live["spec"]["strategy"], json!({"type": "Recreate"}), "{tool}");
        assert_eq!(container["livenessProbe"].get("httpGet"), None, "{tool}");
        assert_eq!(container["ports"], json!([{"containerPort": 82, "name": "web", "protocol": "TCP"}]), "{tool}");
    }
}

/// A policy that came after the object refuses it as it is, also if only its managers change.
#[test]
fn an_object_whose_live_content_is_refused_is_taken_over_with_valid_content() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let cases: [(&str, &[&str]); 3] =
        [("added", &[]), ("forced", &["--force-conflicts"]), ("owned", &["--take-ownership"])];
    let objects = cases.map(|(name, _)| config_map(&bed, name));
    for (object, (_, flags)) in objects.iter().zip(cases) {
        match flags {
            ["--take-ownership"] => {
                deployed(object, Marked(&["apply", "--server-side", "--field-manager=helm"], Mark::Helm));
            }
            _ => kubectl(&["apply"], object),
        }
    }
    let mut admission = Admission::default();
    let name = format!("team-{}", bed.names.namespace);
    let spec = json!({"matchConstraints": {"namespaceSelector": only(&bed), "resourceRules": [rule("configmaps")]},
        "validations": [{"expression": "has(object.data) && 'team' in object.data", "message": "data.team is missing"}]});
    admission.configure("validatingadmissionpolicies", &json!({"metadata": {"name": name}, "spec": spec}));
    let spec = json!({"policyName": name, "validationActions": ["Deny"]});
    admission.configure("validatingadmissionpolicybindings", &json!({"metadata": {"name": name}, "spec": spec}));
    comes_into_force(&bed, "configmaps", "data.team is missing");
    for (object, (name, flags)) in objects.iter().zip(cases) {
        let mut right = less(object);
        right["data"]["team"] = json!("a");
        if !flags.is_empty() {
            right["data"]["stays"] = json!("2");
        }
        bed.write("manifests.yaml", &right.to_string());
        let run = bed.deploy(cp.kubeconfig("admin"), flags).run();
        run.code(0);
        let live = live(object);
        assert_eq!((&live["data"], name), (&right["data"], name), "{run}");
        right["data"]["stays"] = json!("3");
        bed.write("manifests.yaml", &right.to_string());
        bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0).stdout_contains("1 updated");
    }
}

/// Deploys the objects with a program of another project, as a release of this name.
fn deploy_with(bed: &Bed, program: &str, name: &str, objects: &[Value]) {
    let cp = control_plane();
    let namespace = &bed.names.namespace;
    let text: Vec<String> = objects.iter().map(Value::to_string).collect();
    let text = text.join("\n---\n");
    let variable = format!("GANTRY_TEST_{}", program.to_uppercase());
    let path = std::env::var(&variable).unwrap_or_else(|_| panic!("{variable} is the path of {program}"));
    let mut command = Command::new(path);
    if program == "kapp" {
        bed.write("former.yaml", &text);
        command.args(["deploy", "-y", "--wait=false", "-f", "former.yaml", "-a", name]);
    } else {
        let chart = bed.folder.path().join(name);
        std::fs::create_dir_all(chart.join("templates")).expect("a folder");
        std::fs::write(chart.join("Chart.yaml"), format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"))
            .expect("write");
        std::fs::write(chart.join("templates/all.yaml"), text).expect("write");
        command.args(["upgrade", "--install", name, name]);
    }
    let output = command
        .args(["-n", namespace, "--kubeconfig"])
        .arg(cp.kubeconfig("admin"))
        .current_dir(bed.folder.path())
        .env("HOME", bed.folder.path())
        .output()
        .expect("the program runs");
    assert!(output.status.success(), "{program}: {output:?}");
}

/// The same matrix after the real programs, each of which deployed the objects twice.
#[test]
#[ignore = "needs the programs: GANTRY_TEST_KAPP, GANTRY_TEST_HELM3, GANTRY_TEST_HELM4"]
fn fields_that_leave_the_manifests_after_a_takeover_from_real_programs_are_removed() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let mut wrong = Vec::new();
    for program in ["kapp", "helm3", "helm4"] {
        let from_kapp: &[&str] = &["--from-kapp"];
        for (number, flags) in FLAGS.into_iter().chain((program == "kapp").then_some(from_kapp)).enumerate() {
            let name = format!("{program}-{number}");
            let object = format!("{name}-object");
            let objects = [config_map(&bed, &object), deployment(&bed, &object)];
            deploy_with(&bed, program, &name, &objects.each_ref().map(less));
            deploy_with(&bed, program, &name, &objects);
            let deploy = |objects: &[Value], flags: &[&str]| {
                let text: Vec<String> = objects.iter().map(Value::to_string).collect();
                bed.write("manifests.yaml", &text.join("\n---\n"));
                let app = ["--wait=false", "-y", "-a", &name, "-n", &bed.names.namespace];
                bed.deploy(cp.kubeconfig("admin"), &[&app, flags].concat()).run()
            };
            let before: Vec<Value> = objects.iter().map(live).collect();
            let first = deploy(&objects, flags);
            println!("== {name} {flags:?}\n{first}");
            if !flags.iter().any(|flag| matches!(*flag, "--take-ownership" | "--from-kapp")) {
                first.code(3).stdout_contains("OwnedByOther");
                assert_eq!(objects.iter().map(live).collect::<Vec<_>>(), before, "{name}");
                continue;
            }
            first.code(0);
            let second = deploy(&objects.each_ref().map(less), &[]);
            println!("{second}");
            second.code(0);
            for object in &objects {
                wrong.extend(remains(object).into_iter().map(|what| format!("{name} {}: {what}", object["kind"])));
            }
            let third = deploy(&objects.each_ref().map(changed), &[]);
            println!("{third}");
            third.code(0).stdout_contains("2 updated");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The command of the guide, after all objects of the release are in the app.
#[test]
fn the_objects_of_a_helm_release_stay_when_its_records_are_deleted() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    let namespace = &bed.names.namespace;
    let record = |release: &str, version: &str, status: &str| {
        let labels = json!({"owner": "helm", "name": release, "status": status, "version": version});
        json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": {
            "name": format!("sh.helm.release.v1.{release}.v{version}"), "namespace": namespace, "labels": labels},
            "stringData": {"release": "H4sIAAAAAAAA"}})
    };
    let records =
        [record("shop", "1", "superseded"), record("shop", "2", "deployed"), record("other", "1", "deployed")];
    records.iter().for_each(|record| drop(cp.apply_yaml(&record.to_string())));
    let objects = [config_map(&bed, "web"), config_map(&bed, "settings")];
    let wrote = Marked(&["create", "--field-manager=helm"], Mark::Helm);
    objects.iter().for_each(|object| deployed(object, wrote));
    let deploy = |objects: &[Value], flags: &[&str]| {
        let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
        bed.write("manifests.yaml", &texts.join("\n---\n"));
        bed.deploy(cp.kubeconfig("admin"), &[&["-a", "shop", "-n", namespace], flags].concat()).run()
    };
    deploy(&objects, &[]).code(3).stdout_contains("OwnedByOther");
    deploy(&objects, &["--take-ownership"]).code(0).stdout_contains("2 adopted");

    let guide = include_str!("../../docs/taking-over.md");
    let start = guide.find("kubectl delete secret ").expect("a command");
    let command = guide[start..].split('`').next().expect("its end").replace("-n prod", &format!("-n {namespace}"));
    run_printed(&command, &cp.kubeconfig("admin"), bed.folder.path());
    let left = records.iter().map(|record| cp.get(&cp.path_of(record)).0).collect::<Vec<_>>();
    assert_eq!(left, [404, 404, 200]);
    let changed: Vec<Value> = objects.iter().map(changed).collect();
    deploy(&changed, &[]).code(0).stdout_contains("2 updated");
    for object in &changed {
        assert_eq!(cp.get(&cp.path_of(object)).1["data"], object["data"]);
    }
}

/// A CRD as older generators write it: with a value that the server drops, so that it is in conflict with the manager
/// that applied it, although it is the same.
fn generated_crd(bed: &Bed, maximum: u32) -> Value {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": maximum}}}}});
    let mut crd = CrdBuilder::samples(&bed.names.group).version("v1", schema).build();
    crd["spec"]["preserveUnknownFields"] = false.into();
    crd
}

#[test]
fn a_crd_that_another_tool_applied_is_taken_over_and_the_server_is_not_asked_about_it() {
    for arguments in [
        &["create"][..],
        &["apply"],
        &["apply", "--server-side"],
        &["apply", "--server-side", "--field-manager=helm"],
        &["apply", "--server-side", "--field-manager=kustomize-controller"],
        &["apply", "--server-side", "--field-manager=argocd-controller"],
    ] {
        let bed = Bed::new();
        let crd = generated_crd(&bed, 5);
        kubectl(arguments, &crd);
        control_plane().wait_until_served(&bed.crd_path());
        let proxy = Proxy::start(control_plane());
        bed.write_objects([&crd]);
        // Its field manager is the mark of Argo CD.
        let take: &[&str] =
            if arguments.contains(&"--field-manager=argocd-controller") { &["--take-ownership"] } else { &[] };
        let check = ["check", "-f", "manifests.yaml", "-o", "json"];
        let check = bed.gantry(proxy.kubeconfig("admin"), &check).args(take).run();
        let report = check.code(0).report();
        let changed = &report["summary"][if take.is_empty() { "updated" } else { "adopted" }];
        assert_eq!((&report["outcome"], changed), (&json!("planned"), &json!(1)), "{arguments:?}");
        let asked = proxy.requests().iter().filter(|request| request.query.contains("dryRun")).count();
        assert_eq!(asked, 0, "{arguments:?}");

        bed.deploy(control_plane().kubeconfig("admin"), &["-y"]).args(take).run().code(0);
        let again = bed.deploy(control_plane().kubeconfig("admin"), &["-y"]).run();
        again.code(0).stdout_contains("unchanged");
        let live = control_plane().get(&bed.crd_path()).1;
        let owners = live["metadata"]["managedFields"].as_array().expect("managedFields").iter();
        let owners: Vec<&Value> =
            owners.filter(|entry| entry["subresource"].is_null()).map(|entry| &entry["manager"]).collect();
        assert_eq!(owners, ["gantry"], "{arguments:?}: {live:#}");

        // A real change of it is one question.
        bed.write_objects([&generated_crd(&bed, 9)]);
        let proxy = Proxy::start(control_plane());
        bed.gantry(proxy.kubeconfig("admin"), &["check", "-f", "manifests.yaml"]).run().code(0);
        let asked = proxy.requests().iter().filter(|request| request.query.contains("dryRun")).count();
        assert_eq!(asked, 1, "{arguments:?}");
    }
}

#[test]
fn the_server_is_asked_once_about_a_changed_crd_in_conflict() {
    for arguments in [&["apply", "--server-side"][..], &["apply", "--server-side", "--field-manager=somebody"]] {
        let bed = Bed::new();
        kubectl(arguments, &generated_crd(&bed, 5));
        control_plane().wait_until_served(&bed.crd_path());
        bed.write_objects([&generated_crd(&bed, 9)]);
        let proxy = Proxy::start(control_plane());
        let check = bed.gantry(proxy.kubeconfig("admin"), &["check", "-f", "manifests.yaml"]).run();
        check.code(3).stdout_contains("--force-conflicts");
        let requests = proxy.requests();
        let asked: Vec<&str> =
            requests.iter().filter(|one| one.query.contains("dryRun")).map(|one| &*one.query).collect();
        assert!(asked.len() == 1 && asked[0].contains("force=true"), "{arguments:?}: {asked:?}");
    }
}

#[test]
fn a_crd_that_somebody_else_applied_stays_in_conflict_and_changed_values_of_a_tool_too() {
    let bed = Bed::new();
    kubectl(&["apply", "--server-side", "--field-manager=somebody"], &generated_crd(&bed, 5));
    bed.write_objects([&generated_crd(&bed, 5)]);
    let admin = || control_plane().kubeconfig("admin");
    let run = bed.deploy(admin(), &["-y"]).run();
    run.code(3).stdout_contains("\"somebody\" owns fields that differ from the manifests only in values");
    let bed = Bed::new();
    kubectl(&["apply", "--server-side"], &generated_crd(&bed, 5));
    bed.write_objects([&generated_crd(&bed, 9)]);
    let run = bed.deploy(admin(), &["-y"]).run();
    run.code(3).stdout_contains("they were last deployed by kubectl apply --server-side");
    bed.deploy(admin(), &["-y", "--force-conflicts"]).run().code(0);
}
