//! The recipes for Argo CD and Flux in `packaging`, and the Job that they have in common. There is no kubelet: the tests
//! build and apply the manifests, read them back, mount the ConfigMaps as the kubelet does, and run the commands with a
//! token of the account.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output as CommandOutput};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Api, Bed, changed, control_plane, eventually, merge};

const ARGO_CD: [&str; 3] = ["--take-ownership", "--field-manager=argocd-controller", "--force-conflicts"];
const FLUX: [&str; 3] = ["--take-ownership", "--field-manager=kustomize-controller", "--force-conflicts"];

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging")
}

fn documents(text: &str) -> Vec<Value> {
    serde_yaml::Deserializer::from_str(text).map(|document| Value::deserialize(document).expect("YAML")).collect()
}

fn read(file: &str) -> Vec<Value> {
    documents(&fs::read_to_string(packaging().join(file)).unwrap_or_else(|error| panic!("{file}: {error}")))
}

fn of_kind<'v>(objects: &'v [Value], kind: &str) -> &'v Value {
    objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {objects:?}"))
}

/// Copies the files of a folder of `packaging` into a new one.
fn copy(from: &str, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(packaging().join(from)).expect(from).map(|entry| entry.expect("an entry").path()) {
        fs::copy(&entry, to.join(entry.file_name().expect("a name"))).expect("copy a file");
    }
}

/// Builds a kustomization with the kustomize of kubectl, which lets files of other folders in, as Flux does.
fn build(folder: &Path) -> Vec<Value> {
    let mut kubectl = Command::new(gantry_testbed::kubectl());
    let built = kubectl.args(["kustomize", "--load-restrictor=LoadRestrictionsNone"]).arg(folder).output();
    let built = built.expect("kubectl");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    documents(&String::from_utf8_lossy(&built.stdout))
}

/// Applies the objects of an account with names of the test, and returns a kubeconfig with a token of it, once its
/// permissions are in force.
fn account(bed: &Bed, objects: &[Value]) -> PathBuf {
    let cp = control_plane();
    let namespace = &bed.names.namespace;
    cp.apply_yaml(&bed.namespace());
    let subject = of_kind(objects, "ClusterRoleBinding")["subjects"][0].clone();
    let name = subject["name"].as_str().expect("a name");
    let own = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}});
    cp.apply_yaml(&own.to_string());
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        let mut object = of_kind(objects, kind).clone();
        let role = format!("{}-{namespace}", object["metadata"]["name"].as_str().expect("a name"));
        object["metadata"]["name"] = json!(role);
        if kind == "ClusterRoleBinding" {
            assert_eq!(object["roleRef"]["name"], of_kind(objects, "ClusterRole")["metadata"]["name"]);
            object["roleRef"]["name"] = json!(role);
            object["subjects"][0]["namespace"] = json!(namespace);
        }
        cp.apply_yaml(&object.to_string());
    }
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
    let (status, answer) = cp.post(&path, &request);
    assert_eq!(status, 201, "{answer:#}");
    let token = answer["status"]["token"].as_str().expect("a token");
    let api = Api::new(&cp.url(), Some(&cp.ca_file()), Some(token));
    eventually("the account may read CRDs", || (api.get(&bed.crd_path()).0 != 403).then_some(()));
    changed(bed.folder.path(), &cp.kubeconfig("admin"), |_, user| *user = json!({"token": token}))
}

/// The live CRD as Argo CD or Flux has applied it, with this maximum length.
fn crd_of(bed: &Bed, manager: &str, marks: &Value, length: u32) {
    let mut crd: Value = serde_yaml::from_str(&crd(bed, length)).expect("YAML");
    merge(&mut crd, json!({"metadata": marks}));
    let (status, answer) = control_plane().server_side_apply(&bed.crd_path(), manager, &crd);
    assert!(status < 300, "{answer:#}");
    control_plane().wait_until_served(&bed.crd_path());
}

fn crd(bed: &Bed, length: u32) -> String {
    bed.crd(&format!("field: {{type: string, maxLength: {length}}}"))
}

/// Argo CD marks no CRD.
fn argo_cd_marks() -> Value {
    json!({})
}

fn flux_marks() -> Value {
    json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}})
}

/// Writes the content of a ConfigMap as the kubelet does.
fn mount(config_map: &Value, at: &Path) {
    let _ = fs::remove_dir_all(at);
    fs::create_dir_all(at.join("..2026_01_02")).expect("a folder");
    symlink("..2026_01_02", at.join("..data")).expect("a link");
    for (name, text) in config_map["data"].as_object().into_iter().flatten() {
        fs::write(at.join("..2026_01_02").join(name), text.as_str().expect("text")).expect("write a file");
        symlink(format!("..data/{name}"), at.join(name)).expect("a link");
    }
}

/// The Job and its ConfigMaps, as the server has them after they were applied in the namespace of the test.
struct Applied {
    job: Value,
    config_maps: Vec<Value>,
}

fn apply(bed: &Bed, objects: &[Value]) -> Applied {
    let namespaced = |object: &Value| {
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!(bed.names.namespace);
        // As by Argo CD with its default policy, and by Flux with force.
        control_plane().delete(&format!("{}?propagationPolicy=Background", control_plane().path_of(&object)));
        eventually("the former object is deleted", || {
            (control_plane().get(&control_plane().path_of(&object)).0 == 404).then_some(())
        });
        control_plane().apply_yaml(&object.to_string()).remove(0)
    };
    let job = namespaced(of_kind(objects, "Job"));
    let config_maps = objects.iter().filter(|object| object["kind"] == "ConfigMap").map(namespaced).collect();
    Applied { job, config_maps }
}

impl Applied {
    fn container(&self) -> &Value {
        &self.job["spec"]["template"]["spec"]["containers"][0]
    }

    fn arguments(&self) -> Vec<String> {
        let arguments = self.container()["args"].as_array().expect("args");
        arguments.iter().map(|argument| argument.as_str().expect("text").to_owned()).collect()
    }

    /// Mounts the volumes, and returns the paths in the container with those in the folder of the test.
    fn mounts(&self, bed: &Bed) -> Vec<(String, PathBuf)> {
        let volumes = self.job["spec"]["template"]["spec"]["volumes"].as_array().expect("volumes");
        let mounts = self.container()["volumeMounts"].as_array().expect("mounts");
        let mounted = mounts.iter().map(|mounted| {
            let volume = volumes.iter().find(|volume| volume["name"] == mounted["name"]).expect("a volume");
            let found = self.config_maps.iter().find(|map| map["metadata"]["name"] == volume["configMap"]["name"]);
            assert!(found.is_some() || volume["configMap"]["optional"] == true, "{volume}");
            let at = bed.folder.path().join(mounted["name"].as_str().expect("a name"));
            mount(found.unwrap_or(&Value::Null), &at);
            (mounted["mountPath"].as_str().expect("a path").to_owned(), at)
        });
        mounted.collect()
    }

    /// Runs the command of the Job without these arguments.
    fn run_without(&self, bed: &Bed, kubeconfig: &Path, without: &[&str]) -> crate::support::Output {
        let mounts = self.mounts(bed);
        let local = |path: &str| mounts.iter().find(|(mounted, _)| mounted == path).map(|(_, at)| at.clone());
        let arguments = self.arguments().into_iter().filter(|argument| !without.contains(&argument.as_str()));
        let arguments: Vec<PathBuf> = arguments.map(|one| local(&one).unwrap_or(one.into())).collect();
        let folder = local(self.container()["workingDir"].as_str().expect("a folder")).expect("it is mounted");
        bed.gantry(kubeconfig.to_owned(), &[]).args(arguments).cwd(folder).run()
    }

    fn run(&self, bed: &Bed, kubeconfig: &Path) -> crate::support::Output {
        self.run_without(bed, kubeconfig, &[])
    }
}

#[test]
fn the_hook_of_argo_cd_checks_what_argo_cd_owns() {
    let bed = Bed::new();
    let kubeconfig = account(&bed, &read("kubernetes/account.yaml"));
    crd_of(&bed, "argocd-controller", &argo_cd_marks(), 9);
    let application = bed.folder.path().join("application");
    copy("argocd/presync", &application);
    let desired = |length: u32| {
        fs::write(application.join("crds.yaml"), crd(&bed, length)).expect("write a file");
        build(&application)
    };

    let objects = desired(5);
    for object in [of_kind(&objects, "ConfigMap"), of_kind(&objects, "Job")] {
        assert_eq!(object["metadata"]["annotations"]["argocd.argoproj.io/hook"], "PreSync", "{object}");
    }
    let narrower = apply(&bed, &objects);
    let blocked = narrower.run(&bed, &kubeconfig);
    blocked.code(3).stdout_contains("error[NoMaxLengthTightened]").stdout_contains("manifests/crds.yaml:");
    blocked.contains_nowhere("taking over").contains_nowhere("..2026");

    // The same with a configuration.
    let waiver = json!({"apiVersion": "gantry.dev/v1alpha1", "kind": "Config", "waivers": [
        {"rule": "NoMaxLengthTightened", "reason": "nobody uses it"}]});
    fs::write(application.join("gantry.yaml"), waiver.to_string()).expect("write a file");
    apply(&bed, &desired(5)).run(&bed, &kubeconfig).code(0).stdout_contains("1 waived");

    let wider = apply(&bed, &desired(20)).run(&bed, &kubeconfig);
    wider.code(0).contains_nowhere("taking over");
}

#[test]
fn the_job_of_flux_runs_when_the_crds_change_and_checks_what_flux_owns() {
    let cp = control_plane();
    let bed = Bed::new();
    let kubeconfig = account(&bed, &read("kubernetes/account.yaml"));
    crd_of(&bed, "kustomize-controller", &flux_marks(), 9);
    copy("flux/check", &bed.folder.path().join("deploy/check"));
    let desired = |length: u32| {
        fs::write(bed.folder.path().join("deploy/crds.yaml"), crd(&bed, length)).expect("write a file");
        build(&bed.folder.path().join("deploy/check"))
    };
    let blocked = apply(&bed, &desired(5));
    blocked
        .run(&bed, &kubeconfig)
        .code(3)
        .stdout_contains("error[NoMaxLengthTightened]")
        .contains_nowhere("taking over");
    let passed = desired(20);
    assert_eq!(of_kind(&desired(20), "Job"), of_kind(&passed, "Job"));
    // The Job changes with the CRDs, which the server allows only for a new one.
    let mut job = of_kind(&passed, "Job").clone();
    job["metadata"]["namespace"] = json!(bed.names.namespace);
    let (status, answer) = cp.server_side_apply(&cp.path_of(&job), "kustomize-controller&force=true", &job);
    assert_eq!(status, 422, "{answer:#}");
    assert!(answer["message"].as_str().expect("a message").contains("field is immutable"), "{answer:#}");
    apply(&bed, &passed).run(&bed, &kubeconfig).code(0).contains_nowhere("taking over");

    let kustomizations = read("flux/kustomizations.yaml");
    let [check, deploy] = &kustomizations[..] else { panic!("{kustomizations:?}") };
    let path = |object: &Value| object["spec"]["path"].as_str().expect("a path").to_owned();
    assert_eq!(deploy["spec"]["dependsOn"], json!([{"name": check["metadata"]["name"]}]));
    assert_eq!(check["spec"]["sourceRef"], deploy["spec"]["sourceRef"], "then the revisions are compared, too");
    assert_eq!((&check["spec"]["force"], &check["spec"]["wait"]), (&json!(true), &json!(true)));
    assert_eq!(path(check), format!("{}/check", path(deploy)));
}

/// The flags of the recipes are those that the message names.
#[test]
fn the_message_about_an_owner_names_the_flags_that_check_for_it() {
    let recipes = [
        ("argocd/presync/gantry-check.yaml", "argocd-controller", "shop-gantry-manifests", ARGO_CD),
        ("flux/check/gantry-check.yaml", "kustomize-controller", "gantry-manifests", FLUX),
    ];
    for (file, manager, manifests, flags) in recipes {
        let bed = Bed::with_namespace();
        let marks = if flags == ARGO_CD { argo_cd_marks() } else { flux_marks() };
        crd_of(&bed, manager, &marks, 9);
        let data = json!({"data": {"crds.yaml": crd(&bed, 20)}});
        let maps = [merged(bed.object("v1", "ConfigMap", manifests, json!({})), data)];
        let job = read(file).remove(0);
        let applied = apply(&bed, &[&[job][..], &maps[..]].concat());
        let kubeconfig = control_plane().kubeconfig("admin");
        let blocked = applied.run_without(&bed, &kubeconfig, &flags);
        let words = blocked.code(3).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("OwnedByOther"), "{words}");
        assert!(words.contains(&format!("gantry check {}", flags.join(" "))), "{words}");
        applied.run(&bed, &kubeconfig).code(0);
    }
}

fn merged(mut object: Value, rest: Value) -> Value {
    merge(&mut object, rest);
    object
}

/// The copies of the Job differ only in what makes them hooks.
#[test]
fn the_jobs_of_all_recipes_are_the_same() {
    let job = |file: &str| {
        let spec = of_kind(&read(file), "Job")["spec"].to_string();
        serde_json::from_str::<Value>(&spec.replace("shop-gantry-", "gantry-")).expect("JSON")
    };
    let plain = job("kubernetes/check.yaml");
    for (file, flags) in [("argocd/presync/gantry-check.yaml", ARGO_CD), ("flux/check/gantry-check.yaml", FLUX)] {
        let mut of_tool = job(file);
        let arguments = of_tool["template"]["spec"]["containers"][0]["args"].as_array_mut().expect("args");
        let (_, last) = arguments.split_at(arguments.len() - flags.len());
        assert_eq!(last, flags.map(Value::from), "{file}");
        arguments.truncate(arguments.len() - flags.len());
        assert_eq!(of_tool, plain, "{file}");
    }
}

fn program(folder: &Path, name: &str, script: &str) {
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join(name), format!("#!/bin/sh\n{script}\n")).expect("write a file");
    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).expect("set permissions");
}

#[test]
fn the_plugin_of_argo_cd_gives_manifests_only_if_the_check_passes() {
    let bed = Bed::new();
    let kubeconfig = account(&bed, &read("argocd/plugin/role.yaml"));
    crd_of(&bed, "argocd-controller", &argo_cd_marks(), 9);
    let [plugin] = &read("argocd/plugin/plugin.yaml")[..] else { panic!("one document") };
    let generate = &plugin["spec"]["generate"];
    let words = |key: &str| {
        generate[key].as_array().expect(key).iter().map(|word| word.as_str().expect("text")).collect::<Vec<_>>()
    };
    let words: Vec<&str> = [words("command"), words("args")].concat();
    let (programs, application) = (bed.folder.path().join("bin"), bed.folder.path().join("application"));
    // `kustomize build .` as `kubectl kustomize .`
    program(&programs, "kustomize", &format!("shift; exec '{}' kustomize \"$@\"", gantry_testbed::kubectl().display()));
    symlink(env!("CARGO_BIN_EXE_gantry"), programs.join("gantry")).expect("a link");
    fs::create_dir(&application).expect("a folder");
    fs::write(application.join("kustomization.yaml"), "resources: [crds.yaml]\n").expect("write a file");
    let temporary = bed.folder.path().join("tmp");
    fs::create_dir(&temporary).expect("a folder");
    let run = |length: u32| -> CommandOutput {
        fs::write(application.join("crds.yaml"), crd(&bed, length)).expect("write a file");
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("PATH"));
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&application).env_clear().env("PATH", path);
        command.env("HOME", &temporary).env("TMPDIR", &temporary).env("KUBECONFIG", &kubeconfig).output().expect("sh")
    };
    let passed = run(20);
    let said = |output: &CommandOutput| String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(passed.status.success(), "{}", said(&passed));
    assert_eq!(documents(&String::from_utf8_lossy(&passed.stdout)), build(&application));
    assert!(said(&passed).contains("CRDUpgradeSafety  passed"), "{}", said(&passed));
    let blocked = run(5);
    assert_eq!(blocked.status.code(), Some(3), "{}", said(&blocked));
    assert!(blocked.stdout.is_empty() && said(&blocked).contains("error[NoMaxLengthTightened]"), "{}", said(&blocked));
    fs::write(application.join("kustomization.yaml"), "resources: [missing.yaml]\n").expect("write a file");
    let failed = run(20);
    assert!(!failed.status.success() && failed.stdout.is_empty(), "{}", said(&failed));
    assert_eq!(fs::read_dir(&temporary).expect("a folder").count(), 0, "nothing is left behind");
}

/// The API server accepts the repo server with the sidecar: each mount has its volume.
#[test]
fn the_sidecar_of_argo_cd_is_added_to_the_repo_server() {
    let bed = Bed::with_namespace();
    let folder = bed.folder.path().join("argocd");
    copy("argocd/plugin", &folder);
    // What the patch needs of the Deployment in an installation of Argo CD.
    let labels = json!({"app.kubernetes.io/name": "argocd-repo-server"});
    let pod = json!({
        "automountServiceAccountToken": false,
        "serviceAccountName": "argocd-repo-server",
        "containers": [{"name": "argocd-repo-server", "image": "argocd"}],
        "volumes": [{"name": "var-files", "emptyDir": {}}, {"name": "plugins", "emptyDir": {}}]
    });
    let server = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "argocd-repo-server"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    });
    fs::write(folder.join("installation.yaml"), server.to_string()).expect("write a file");
    let kustomization = fs::read_to_string(folder.join("kustomization.yaml")).expect("a kustomization");
    let kustomization = kustomization.replace("  - role.yaml\n", "  - role.yaml\n  - installation.yaml\n");
    fs::write(folder.join("kustomization.yaml"), kustomization).expect("write a file");
    let built = build(&folder);
    let mut deployment = of_kind(&built, "Deployment").clone();
    let account = of_kind(&built, "ClusterRoleBinding")["subjects"][0].clone();
    assert_eq!(account["name"], deployment["spec"]["template"]["spec"]["serviceAccountName"]);
    assert_eq!(account["namespace"], deployment["metadata"]["namespace"]);
    deployment["metadata"]["namespace"] = json!(bed.names.namespace);
    let applied = control_plane().apply_yaml(&deployment.to_string()).remove(0);
    let pod = &applied["spec"]["template"]["spec"];
    let sidecar = pod["containers"].as_array().expect("containers").iter().find(|one| one["name"] == "gantry");
    assert!(sidecar.is_some(), "{pod:#}");
    let config = pod["volumes"].as_array().expect("volumes").iter().find(|one| one["name"] == "gantry-plugin");
    assert_eq!(config.expect("a volume")["configMap"]["name"], of_kind(&built, "ConfigMap")["metadata"]["name"]);
    assert_eq!(
        documents(of_kind(&built, "ConfigMap")["data"]["plugin.yaml"].as_str().expect("text"))[0]["kind"],
        "ConfigManagementPlugin"
    );
}
