//! Objects that another tool owns: they are not written unless the user takes them over.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Bed, Proxy, When, control_plane};
use serde_json::{Value, json};

/// Labels and annotations that the tools write on the ConfigMap `name`.
fn marks(bed: &Bed, tool: &str, name: &str) -> Value {
    let namespace = &bed.names.namespace;
    match tool {
        "kapp" => json!({
            "labels": {"kapp.k14s.io/app": "1700000000000", "kapp.k14s.io/association": "v1.abc"},
            "annotations": {"kapp.k14s.io/identity": "v1;x//ConfigMap/x;v1"}
        }),
        "applyset" => json!({"labels": {"applyset.kubernetes.io/part-of": "applyset-other-v1"}}),
        "kustomization" => json!({"labels": {
            "kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}}),
        "helmrelease" => json!({"labels": {
            "helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": "flux-system"}}),
        "argocd" => json!({"annotations": {
            "argocd.argoproj.io/tracking-id": format!("shop:/ConfigMap:{namespace}/{name}")}}),
        "helm" => json!({"annotations": {
            "meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": namespace},
            "labels": {"app.kubernetes.io/managed-by": "Helm"}}),
        _ => panic!("{tool}"),
    }
}

const TOOLS: [(&str, &str); 6] = [
    ("kapp", "a kapp app (kapp.k14s.io/app: 1700000000000)"),
    ("applyset", "another ApplySet (applyset-other-v1)"),
    ("kustomization", "the Flux Kustomization apps in namespace flux-system"),
    ("helmrelease", "the Flux HelmRelease web in namespace flux-system"),
    ("argocd", "the Argo CD application shop"),
    ("helm", "the Helm release shop in namespace"),
];

fn object(bed: &Bed, name: &str, value: &str, marks: &Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": value}});
    object["metadata"] = json!({"name": name, "namespace": bed.names.namespace});
    for (key, marks) in marks.as_object().into_iter().flatten() {
        object["metadata"][key] = marks.clone();
    }
    object
}

/// One ConfigMap of each tool, live at value `old`, and manifests without their marks.
fn owned(value: &str) -> Bed {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    for (tool, _) in TOOLS {
        control_plane().apply_yaml(&object(&bed, tool, "old", &marks(&bed, tool, tool)).to_string());
    }
    let manifests = TOOLS.map(|(tool, _)| object(&bed, tool, value, &json!({})).to_string());
    bed.write("manifests.yaml", &manifests.join("\n---\n"));
    bed
}

fn live(bed: &Bed, name: &str) -> Value {
    let (status, answer) = control_plane().get(&bed.config_map_path(name));
    assert_eq!(status, 200, "{name}");
    answer
}

#[test]
fn an_object_of_another_tool_blocks_even_with_force_conflicts() {
    let cp = control_plane();
    let bed = owned("new");
    for command in [&["deploy", "--force-conflicts"][..], &["check"], &["deploy", "--dry-run"]] {
        let output = bed.gantry(cp.kubeconfig("admin"), &[command, &["-f", "manifests.yaml"]].concat()).run();
        output.code(3).stdout_contains("6 errors. Nothing was written.");
        for (tool, owner) in TOOLS {
            output.stdout_contains(&format!("OwnedByOther: configmap/{tool} -n {}", bed.names.namespace));
            output.stdout_contains(&format!("belongs to {owner}"));
        }
        output.stdout_contains("--take-ownership=configmap/kapp");
    }
    assert!(TOOLS.iter().all(|(tool, _)| live(&bed, tool)["data"]["a"] == "old"));
}

#[test]
fn every_command_says_in_the_same_words_what_to_do_about_an_object_of_argo_cd_or_flux() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    let tools = [
        ("argocd", "Argo CD", "argocd-controller"),
        ("kustomization", "Flux", "kustomize-controller"),
        ("helmrelease", "Flux", "helm-controller"),
    ];
    for (name, _, manager) in tools {
        let mut object = object(&bed, name, "old", &marks(&bed, name, name));
        // A field that a deploy which took the object over would remove.
        object["data"]["own"] = json!("of the tool");
        let (status, answer) = cp.server_side_apply(&bed.config_map_path(name), manager, &object);
        assert_eq!(status, 201, "{answer:#}");
    }
    let manifests = tools.map(|(name, ..)| object(&bed, name, "new", &json!({})).to_string());
    bed.write("manifests.yaml", &manifests.join("\n---\n"));
    let mut said: Vec<String> = Vec::new();
    for command in [&["check"][..], &["diff"], &["deploy"], &["deploy", "--dry-run"]] {
        let output = bed.gantry(cp.kubeconfig("admin"), &[command, &["-f", "manifests.yaml"]].concat()).run();
        output.code(3).contains_nowhere("taking over").contains_nowhere("taken over from");
        let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for (name, tool, manager) in tools {
            for part in [
                format!("or take it over with --take-ownership=configmap/{name}; {tool} writes it again until"),
                format!("gantry check --take-ownership --field-manager={manager} --force-conflicts"),
            ] {
                assert!(text.contains(&part), "{command:?}: {part}: {output}");
            }
        }
        let is_owner = |line: &&str| line.contains("OwnedByOther") || line.contains("--take-ownership");
        said.push(output.stdout.lines().filter(is_owner).collect::<Vec<_>>().join("\n"));
    }
    assert!(said.iter().all(|one| *one == said[0]), "{said:#?}");
    assert!(tools.iter().all(|(name, ..)| live(&bed, name)["data"]["a"] == "old"));
}

#[test]
fn a_mark_of_a_tool_that_the_manifest_sets_is_not_foreign() {
    let bed = owned("new");
    let manifest = |release: &str| {
        let mut object = object(&bed, "helm", "new", &marks(&bed, "helm", "helm"));
        object["metadata"]["annotations"]["meta.helm.sh/release-name"] = release.into();
        bed.write("manifests.yaml", &object.to_string());
    };
    let deploy = || bed.deploy(control_plane().kubeconfig("admin"), &["--force-conflicts"]).run();
    manifest("other");
    deploy().code(3);
    manifest("shop");
    deploy().code(0).stdout_contains("1 updated");
}

#[test]
fn an_object_that_is_taken_over_loses_the_marks_and_nothing_else() {
    let cp = control_plane();
    let bed = owned("new");
    let taken = |pattern: &str| vec![format!("--take-ownership={pattern}"), "--force-conflicts".to_owned()];
    let deploy = |flags: &[String]| bed.deploy(cp.kubeconfig("admin"), &[]).args(flags).arg("-o").arg("json").run();

    // A different object, or a different kind: still blocked.
    for pattern in ["configmap/kap", "secret/*", "kapp"] {
        deploy(&taken(pattern)).code(3);
    }
    let output = deploy(&taken("configmap/*"));
    output.code(0);
    let report = output.report();
    assert_eq!(report["summary"]["adopted"], 6, "{report}");
    assert!(report["changes"].as_array().unwrap().iter().all(|change| change["action"] == "adopt"));
    for (tool, _) in TOOLS {
        let live = live(&bed, tool);
        assert_eq!(live["data"]["a"], "new", "{tool}");
        let left = [&live["metadata"]["labels"], &live["metadata"]["annotations"]].map(Value::to_string);
        let left = left.join(" ");
        let expected = if tool == "helm" { r#"{"app.kubernetes.io/managed-by":"Helm"} null"# } else { "null null" };
        assert_eq!(left, expected, "{tool}");
    }
    // From now on gantry owns it.
    deploy(&["--force-conflicts".into()]).code(0);
}

#[test]
fn owners_of_objects_in_a_folder_are_found() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &object(&bed, "a", "new", &json!({})).to_string());
    std::fs::create_dir(bed.folder.path().join("live")).unwrap();
    bed.write("live/a.yaml", &object(&bed, "a", "old", &marks(&bed, "helm", "a")).to_string());
    let deploy = |flags: &[&str]| bed.deploy("none".into(), &["--target", "dir:live"]).args(flags).run();
    deploy(&[]).code(3).stdout_contains("belongs to the Helm release shop");
    deploy(&["--take-ownership", "-y"]).code(0).stdout_contains("1 adopted");
    // A manifest counts as applied by the manager that applies the next version: the label that this lacks goes with the marks.
    let text = std::fs::read_to_string(bed.folder.path().join("live/a.yaml")).unwrap();
    assert!(text.contains("new") && !text.contains("meta.helm.sh") && !text.contains("managed-by"), "{text}");
    assert!(!text.contains("null"), "{text}");
    deploy(&[]).code(0).stdout_contains("1 object unchanged");
}

#[test]
fn marks_are_removed_although_a_controller_writes_meanwhile() {
    let bed = owned("new");
    let proxy = Proxy::start(control_plane());
    let path = bed.config_map_path("kapp");
    let ticked = AtomicBool::new(false);
    // Between the write and the removal of the marks.
    proxy.before(When::new("PATCH", "/configmaps/kapp"), {
        let path = path.clone();
        move || {
            if control_plane().get(&path).1["data"]["a"] == "new" && !ticked.swap(true, Ordering::SeqCst) {
                let tick = json!({"metadata": {"annotations": {"example.com/tick": "1"}}});
                assert_eq!(control_plane().patch(&path, &tick).0, 200);
            }
        }
    });
    let flags = ["--take-ownership=configmap/*", "--force-conflicts"];
    bed.deploy(proxy.kubeconfig("admin"), &flags).run().code(0);
    let metadata = control_plane().get(&path).1["metadata"].clone();
    assert_eq!((&metadata["labels"], &metadata["annotations"]), (&Value::Null, &json!({"example.com/tick": "1"})));
}

#[test]
fn the_first_of_many_objects_of_one_owner_are_named() {
    let bed = Bed::new();
    std::fs::create_dir(bed.folder.path().join("live")).unwrap();
    let names = |count: usize| (1..=count).map(|number| format!("map-{number}")).collect::<Vec<_>>();
    let refused = |count: usize, flags: &[&str]| {
        let manifests =
            names(count).iter().map(|name| object(&bed, name, "new", &json!({})).to_string()).collect::<Vec<_>>();
        bed.write("manifests.yaml", &manifests.join("\n---\n"));
        for name in names(count) {
            let live = object(&bed, &name, "old", &marks(&bed, "applyset", &name)).to_string();
            bed.write(&format!("live/{name}.yaml"), &live);
        }
        let output = bed.deploy("none".into(), &["--target", "dir:live"]).args(flags).run();
        output.code(3);
        // Lines are wrapped.
        output.stdout.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ")
    };
    let is_named = |text: &str, number: usize| text.contains(&format!("configmap/map-{number} -n"));
    let one = refused(1, &[]);
    assert!(one.contains("change it where that tool reads it, or take it over with") && !one.contains("them"), "{one}");
    let many = refused(8, &[]);
    assert!(many.contains(", … and 3 more (-v lists all) belong to another ApplySet (applyset-other-v1)"), "{many}");
    assert!(many.contains("change them where that tool reads them, or take them over with"), "{many}");
    assert!(is_named(&many, 5) && !(6..=8).any(|number| is_named(&many, number)), "{many}");
    let all = refused(8, &["-v"]);
    assert!((1..=8).all(|number| is_named(&all, number)) && !all.contains("more"), "{all}");
}

#[test]
fn a_member_of_another_app_of_gantry_is_named_with_the_app() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let manifest = |value: &str| bed.write("manifests.yaml", &object(&bed, "a", value, &json!({})).to_string());
    let deploy = |flags: &[&str]| bed.deploy(cp.kubeconfig("admin"), flags).run();
    let namespace = bed.names.namespace.clone();
    manifest("old");
    deploy(&["-a", "shop", "-n", &namespace]).code(0);
    manifest("new");
    for flags in [&[][..], &["-a", "store", "-n", &namespace]] {
        let text = deploy(flags).code(3).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&format!("belongs to gantry's app shop in namespace {namespace}")), "{text}");
        assert!(text.contains("deploy with -a shop"), "{text}");
        assert!(!text.contains("applyset-"), "{text}");
    }
    assert_eq!(live(&bed, "a")["data"]["a"], "old");
    // The command of the message.
    deploy(&["-a", "shop", "--app-namespace", &namespace]).code(0).stdout_contains("1 updated");
}
