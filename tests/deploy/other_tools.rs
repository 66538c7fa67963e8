//! Annotations of Argo CD, Flux, Helm, kpt and Config Sync that keep an object, or leave it alone.

use crate::support::{Bed, Output, control_plane};
use serde_json::{Value, json};

/// An app in a namespace.
struct App {
    bed: Bed,
}

impl App {
    fn new() -> Self {
        let bed = Bed::new();
        control_plane().apply_yaml(&bed.namespace());
        App { bed }
    }

    fn object(&self, kind: &str, name: &str, annotations: &Value) -> Value {
        let metadata = json!({"name": name, "namespace": self.bed.names.namespace, "annotations": annotations});
        json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})
    }

    fn config_map(&self, name: &str, value: &str, annotations: &Value) -> Value {
        let mut object = self.object("ConfigMap", name, annotations);
        object["data"] = json!({"a": value});
        object
    }

    fn claim(&self, name: &str, annotations: &Value) -> Value {
        let mut claim = self.object("PersistentVolumeClaim", name, annotations);
        claim["spec"] = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "resources": {"requests": {"storage": "1Gi"}}});
        claim
    }

    fn run(&self, command: &str, objects: Option<&[Value]>, flags: &[&str]) -> Output {
        let mut arguments = vec![command, "-a", "shop", "-n", &self.bed.names.namespace, "--wait=false"];
        if let Some(objects) = objects {
            let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
            self.bed.write("manifests.yaml", &texts.join("\n---\n"));
            arguments.extend(["-f", "manifests.yaml"]);
        } else {
            arguments.pop();
        }
        self.bed.gantry(control_plane().kubeconfig("admin"), &[&arguments[..], flags].concat()).run()
    }

    fn deploy(&self, objects: &[Value]) -> Output {
        self.run("deploy", Some(objects), &["--prune=yes", "--prune-max=99"])
    }

    fn value(&self, name: &str) -> Option<String> {
        let (status, answer) = control_plane().get(&self.bed.config_map_path(name));
        (status == 200).then(|| answer["data"]["a"].as_str().expect("a value").to_owned())
    }
}

fn live(object: &Value) -> Option<Value> {
    let cp = control_plane();
    Some(cp.get(&cp.path_of(object))).filter(|(code, _)| *code == 200).map(|(_, answer)| answer)
}

/// Annotations that keep an object, also next to others and in other notations that their tools accept.
const KEEPING: [(&str, &str); 14] = [
    ("argocd.argoproj.io/sync-options", "Prune=false"),
    ("argocd.argoproj.io/sync-options", "Delete=false"),
    ("argocd.argoproj.io/sync-options", "ServerSideApply=true, Prune=confirm"),
    ("argocd.argoproj.io/sync-options", "Delete=confirm,Validate=false"),
    ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
    ("kustomize.toolkit.fluxcd.io/prune", "Disabled"),
    ("helm.sh/resource-policy", "keep"),
    ("helm.sh/resource-policy", " Keep "),
    ("cli-utils.sigs.k8s.io/on-remove", "keep"),
    ("client.lifecycle.config.k8s.io/deletion", "detach"),
    ("gantry.dev/prune", "keep"),
    // Misspelt.
    ("argocd.argoproj.io/sync-options", "Prune=flase"),
    ("kustomize.toolkit.fluxcd.io/prune", "off"),
    ("client.lifecycle.config.k8s.io/deletion", "orphan"),
];

#[test]
fn claims_that_an_annotation_keeps_stay_when_they_leave_the_manifests_and_when_the_app_is_deleted() {
    for leaves_manifests in [true, false] {
        let app = App::new();
        let claims: Vec<Value> = KEEPING
            .iter()
            .enumerate()
            .map(|(index, (key, value))| app.claim(&format!("data{index}"), &json!({*key: value})))
            .collect();
        // A claim would need a controller to go.
        let plain = app.config_map("plain", "1", &json!({"argocd.argoproj.io/sync-options": "Prune=true"}));
        let rest = app.config_map("rest", "1", &json!({}));
        let output = app.deploy(&[&claims[..], &[plain.clone(), rest.clone()]].concat());
        output
            .code(0)
            .stderr_contains("Prune=flase: the value is unknown; to be safe, the object stays")
            .stderr_contains("prune: off: the value is unknown");
        output.stderr_contains("deletion: orphan: the value is unknown").stderr_contains("notice: manifests.yaml:23:");
        let output = match leaves_manifests {
            true => app.deploy(&[rest]),
            false => app.run("delete", None, &["--yes"]),
        };
        output.code(0);
        for (claim, (key, _)) in claims.iter().zip(KEEPING) {
            let live = live(claim).unwrap_or_else(|| panic!("{claim} is gone\n{output}"));
            assert!(live["metadata"].get("deletionTimestamp").is_none(), "{claim}");
            let name = claim["metadata"]["name"].as_str().expect("a name");
            let said = format!("persistentvolumeclaim/{name} -n {} leaves the app and stays", app.bed.names.namespace);
            output.stderr_contains(&said).stderr_contains(key);
        }
        assert!(live(&plain).is_none(), "{output}");
    }
}

#[test]
fn an_annotation_or_label_that_only_the_live_object_has_keeps_it() {
    let app = App::new();
    let names = ["argo", "config-sync", "label"];
    let objects: Vec<Value> = names.iter().map(|name| app.config_map(name, "1", &json!({}))).collect();
    let rest = app.config_map("rest", "1", &json!({}));
    app.deploy(&[&objects[..], std::slice::from_ref(&rest)].concat()).code(0);
    let set = |name: &str, metadata: Value| {
        let (code, answer) = control_plane().patch(&app.bed.config_map_path(name), &json!({ "metadata": metadata }));
        assert_eq!(code, 200, "{answer}");
    };
    set("argo", json!({"annotations": {"argocd.argoproj.io/sync-options": "Prune=false"}}));
    set("config-sync", json!({"annotations": {"client.lifecycle.config.k8s.io/deletion": "detach"}}));
    set("label", json!({"labels": {"kustomize.toolkit.fluxcd.io/prune": "disabled"}}));
    app.deploy(&[rest]).code(0).stderr_contains("its label says kustomize.toolkit.fluxcd.io/prune: disabled");
    assert_eq!(names.map(|name| app.value(name).is_some()), [true; 3]);
}

#[test]
fn an_object_that_an_annotation_protects_is_not_overwritten() {
    let app = App::new();
    let cp = control_plane();
    // The name, the annotation, and whether a missing object is created.
    let cases = [
        ("if-not-present", "kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent", true),
        ("any-case", "kustomize.toolkit.fluxcd.io/ssa", "ifnotpresent", true),
        ("misspelt", "kustomize.toolkit.fluxcd.io/ssa", "IfNotPresnt", true),
        ("ignore", "kustomize.toolkit.fluxcd.io/ssa", "Ignore", false),
        ("reconcile", "kustomize.toolkit.fluxcd.io/reconcile", "disabled", false),
        ("mutation", "client.lifecycle.config.k8s.io/mutation", "ignore", true),
        ("managed", "configmanagement.gke.io/managed", "disabled", false),
        ("local", "config.kubernetes.io/local-config", "true", false),
        ("override", "kustomize.toolkit.fluxcd.io/ssa", "Override", true),
    ];
    let objects = |value: &str| cases.map(|(name, key, word, _)| app.config_map(name, value, &json!({key: word})));
    let values = || cases.map(|(name, ..)| app.value(name));

    let output = app.run("deploy", Some(&objects("1")), &[]);
    output.code(0).stderr_contains("IfNotPresnt: the value is unknown; to be safe, the object is not changed");
    assert_eq!(values(), cases.map(|(.., is_created)| is_created.then(|| "1".to_owned())), "{output}");

    for (name, ..) in cases.into_iter().filter(|(.., is_created)| !is_created) {
        cp.apply_yaml(&app.config_map(name, "1", &json!({})).to_string());
    }
    let output = app.run("deploy", Some(&objects("2")), &["--force-conflicts"]);
    output.code(0);
    let expected = cases.map(|(name, ..)| Some(if name == "override" { "2" } else { "1" }.to_owned()));
    assert_eq!(values(), expected, "{output}");

    // A label means the same to Flux.
    let mut labelled = app.config_map("if-not-present", "3", &json!({}));
    labelled["metadata"]["labels"] = json!({"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"});
    app.run("deploy", Some(&[labelled]), &["--prune=no"]).code(0);
    assert_eq!(app.value("if-not-present").as_deref(), Some("1"));
    // Once the manifest has no such annotation, the object is written.
    let plain = app.config_map("mutation", "3", &json!({}));
    app.run("deploy", Some(&[plain]), &["--prune=no"]).code(0).stdout_contains("1 updated");
    assert_eq!(app.value("mutation").as_deref(), Some("3"));
}

#[test]
fn an_object_that_a_live_annotation_excludes_is_not_written_until_it_is_removed() {
    let app = App::new();
    let object = |value: &str| [app.config_map("settings", value, &json!({}))];
    app.deploy(&object("1")).code(0);
    for (key, value) in [
        ("kustomize.toolkit.fluxcd.io/reconcile", "disabled"),
        ("kustomize.toolkit.fluxcd.io/ssa", "Ignore"),
        ("client.lifecycle.config.k8s.io/mutation", "ignore"),
        ("configmanagement.gke.io/managed", "disabled"),
    ] {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        assert_eq!(control_plane().patch(&app.bed.config_map_path("settings"), &patch).0, 200);
        let before = app.value("settings");
        let output = app.deploy(&object(key));
        output.code(0).stderr_contains("is not changed: the live object has the annotation").stderr_contains(key);
        output.stderr_contains("notice: manifests.yaml:1");
        assert_eq!(app.value("settings"), before, "{output}");

        // The command of the notice.
        let command = output.stderr.split("to have it written again: ").nth(1).expect("a command");
        let command = command.split(&format!("{key}-")).next().expect("its end").replace("\n", " ");
        let words: Vec<&str> = command.split_whitespace().filter(|word| *word != "=" && *word != "|").skip(1).collect();
        let done = std::process::Command::new(gantry_testbed::kubectl())
            .args(words)
            .arg(format!("{key}-"))
            .env("HOME", app.bed.folder.path())
            .env("KUBECONFIG", control_plane().kubeconfig("admin"))
            .output()
            .expect("kubectl runs");
        assert!(done.status.success(), "{command}: {done:?}");
        app.deploy(&object(key)).code(0).stdout_contains("1 updated");
        assert_eq!(app.value("settings").as_deref(), Some(key));
    }
}

#[test]
fn annotations_that_replace_an_object_do_so_when_the_server_refuses_the_update() {
    let app = App::new();
    let cases = [
        ("argo-force", "argocd.argoproj.io/sync-options", "Force=true", [true, false]),
        ("argo-both", "argocd.argoproj.io/sync-options", "Force=true,Replace=true", [true, true]),
        ("flux", "kustomize.toolkit.fluxcd.io/force", "Enabled", [true, false]),
    ];
    let objects = |value: &str| -> Vec<Value> {
        let of = |(name, key, word, _): (&str, &str, &str, [bool; 2])| {
            let mut fixed = app.config_map(&format!("{name}-fixed"), value, &json!({key: word}));
            fixed["immutable"] = true.into();
            [fixed, app.config_map(name, value, &json!({key: word}))]
        };
        cases.into_iter().flat_map(of).collect()
    };
    let uid = |object: &Value| live(object).expect("it is there")["metadata"]["uid"].clone();
    app.deploy(&objects("1")).code(0);
    let before: Vec<Value> = objects("1").iter().map(uid).collect();
    let output = app.deploy(&objects("2"));
    output.code(0).stdout_contains("4 replaced");
    let is_new: Vec<bool> = objects("2").iter().zip(&before).map(|(object, before)| uid(object) != *before).collect();
    assert_eq!(is_new, cases.iter().flat_map(|(.., replaced)| *replaced).collect::<Vec<_>>(), "{output}");

    // `Replace=true` by itself updates the object, and a notice says so.
    let replace =
        |value: &str| [app.config_map("plain", value, &json!({"argocd.argoproj.io/sync-options": "Replace=true"}))];
    app.run("deploy", Some(&replace("1")), &["--prune=no"]).code(0).contains_nowhere("server-side apply");
    let before = uid(&replace("1")[0]);
    let output = app.run("deploy", Some(&replace("2")), &["--prune=no"]);
    output.code(0).stderr_contains("Replace=true: the object is updated with server-side apply");
    assert_eq!((uid(&replace("2")[0]), app.value("plain").as_deref()), (before, Some("2")));
}

#[test]
fn fields_that_another_deploy_tool_has_set_stay_with_the_annotation_for_it() {
    let app = App::new();
    let cp = control_plane();
    let names = ["merged", "taken"];
    let keys = ["kustomize.toolkit.fluxcd.io/ssa", "example.com/other"];
    for name in names {
        let mut theirs = app.config_map(name, "1", &Value::Null);
        theirs["metadata"].as_object_mut().expect("metadata").remove("annotations");
        theirs["data"]["theirs"] = "1".into();
        let path = cp.path_of(&theirs);
        assert!(cp.server_side_apply(&path, "kubectl", &theirs).0 < 300);
    }
    let objects: Vec<Value> =
        names.iter().zip(keys).map(|(name, key)| app.config_map(name, "1", &json!({key: "Merge"}))).collect();
    app.run("deploy", Some(&objects), &[]).code(0);
    let theirs = names.map(|name| cp.get(&app.bed.config_map_path(name)).1["data"].get("theirs").is_some());
    assert_eq!(theirs, [true, false]);
}

#[test]
fn unsupported_annotations_of_other_tools_block_or_are_notices() {
    let app = App::new();
    let mutation = "config.kubernetes.io/apply-time-mutation";
    let objects = [
        app.config_map("plain", "1", &json!({})),
        app.config_map("copied", "${other}", &json!({mutation: "- sourcePath: $.data.a"})),
    ];
    let output = app.run("deploy", Some(&objects), &[]);
    output
        .code(3)
        .stdout_contains("configmap/copied")
        .stdout_contains(mutation)
        .stdout_contains("--> manifests.yaml:3:");
    assert_eq!((app.value("plain"), app.value("copied")), (None, None));

    let drift = "helm.toolkit.fluxcd.io/driftDetection";
    let objects = |value: &str| {
        [
            app.config_map("drift", value, &json!({drift: "disabled"})),
            app.config_map("group", value, &json!({"helm.sh/resource-group": "one"})),
            app.config_map("wave", value, &json!({"argocd.argoproj.io/sync-wave": "first"})),
            app.config_map("options", value, &json!({"argocd.argoproj.io/sync-options": "Prunes=false"})),
            app.config_map("display", value, &json!({"argocd.argoproj.io/compare-options": "IgnoreExtraneous"})),
        ]
    };
    let output = app.run("deploy", Some(&objects("1")), &[]);
    output.code(0).stderr_contains("gantry does not order resource groups").contains_nowhere(drift);
    output.stderr_contains("sync-wave: first: the value is unknown").stderr_contains("notice: manifests.yaml:5:");
    output.stderr_contains("sync-options: Prunes=false: the value is unknown").contains_nowhere("compare-options");
    app.run("deploy", Some(&objects("2")), &[]).code(0).stderr_contains(drift);
}
