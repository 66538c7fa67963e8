//! Releases of Helm on a real API server: as a target, as manifests, and foretold upgrades. Helm is a script here; the
//! releases are recorded as Helm 3 and 4 record them.
#![cfg(unix)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::rights::grant;
use crate::support::{Bed, Output, control_plane, eventually};

/// Prints what the chart in `$3` would be rendered as, followed by the values on standard input.
const HELM: &str = "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$ARGUMENTS\"\ncat \"$3/out.yaml\"\n\
                    case \" $* \" in *' --values - '*) sed 's/^/# values: /' ;; esac\n";

struct HelmBed {
    bed: Bed,
}

impl HelmBed {
    fn new() -> Self {
        let bed = Bed::with_namespace();
        let helm = bed.folder.path().join("helm");
        fs::write(&helm, HELM).unwrap();
        fs::set_permissions(&helm, fs::Permissions::from_mode(0o755)).unwrap();
        HelmBed { bed }
    }

    fn namespace(&self) -> &str {
        &self.bed.names.namespace
    }

    /// A chart that the script renders as this text.
    fn chart(&self, folder: &str, text: &str) {
        fs::create_dir_all(self.bed.folder.path().join(folder)).unwrap();
        self.bed.write(&format!("{folder}/Chart.yaml"), "name: web\nversion: 2.0.0\n");
        self.bed.write(&format!("{folder}/out.yaml"), text);
    }

    /// Records a revision of the release `shop`, as `helm install` and `helm upgrade` do.
    fn record(&self, revision: u32, status: &str, manifest: &str, more: &Value) {
        let mut release = json!({
            "name": "shop", "namespace": self.namespace(), "version": revision, "manifest": manifest,
            "info": {"status": status}, "chart": {"metadata": {"name": "web", "version": "1.0.0"}},
        });
        release.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(release.to_string().as_bytes()).unwrap();
        let data = STANDARD.encode(STANDARD.encode(encoder.finish().unwrap()));
        let name = format!("sh.helm.release.v1.shop.v{revision}");
        let labels = json!({"owner": "helm", "name": "shop", "status": status, "version": revision.to_string()});
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
            "metadata": {"name": name, "labels": labels}, "data": {"release": data},
        });
        let path = format!("/api/v1/namespaces/{}/secrets", self.namespace());
        assert_eq!(control_plane().post(&path, &secret).0, 201);
    }

    fn config_map(&self, name: &str, value: &str) -> String {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  a: {value}\n")
    }

    /// Creates an object of the release in the cluster, with the marks of Helm.
    fn install(&self, name: &str, value: &str, annotations: &Value) {
        let mut marks =
            json!({"meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": self.namespace()});
        marks.as_object_mut().unwrap().extend(annotations.as_object().cloned().unwrap());
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": value},
            "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": marks},
        });
        let path = self.bed.config_map_path(name);
        assert_eq!(control_plane().server_side_apply(&path, "helm", &object).0, 201);
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let (helm, recorded) = (self.bed.folder.path().join("helm"), self.bed.folder.path().join("arguments"));
        let kubeconfig = control_plane().kubeconfig("admin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let gantry = self.bed.gantry(kubeconfig, arguments);
        gantry.env("PATH", path).env("HELM_BIN", &helm).env("ARGUMENTS", &recorded).run()
    }
}

#[test]
fn a_chart_is_compared_with_what_a_release_has_recorded() {
    let bed = HelmBed::new();
    let (old, new) = (bed.bed.crd("a: {type: string}"), bed.bed.crd("a: {type: integer}"));
    let files = json!([{"name": "crds/a.yaml", "data": STANDARD.encode(&old)}]);
    let chart = json!({
        "config": {"replicas": 3}, "chart": {"metadata": {"name": "web", "version": "1.0.0"}, "files": files},
    });
    let recorded = format!("{}---\n{}", bed.config_map("same", "x"), bed.config_map("changed", "old"));
    bed.record(1, "superseded", &recorded, &json!({}));
    bed.record(2, "deployed", &recorded, &chart);
    bed.record(3, "failed", "", &json!({}));
    let text = format!("{}---\n{}---\n{new}", bed.config_map("same", "x"), bed.config_map("changed", "new"));
    bed.chart("new", &text);
    let target = format!("helm:{}/shop", bed.namespace());
    bed.run(&["check", "-f", "new", "--target", &target])
        .code(3)
        .stdout_contains("shop revision 2 (web 1.0.0) as Kubernetes 1.")
        .stdout_contains(&format!("update    configmap/changed -n {}", bed.namespace()))
        .stdout_contains("in shop revision 2")
        .contains_nowhere("configmap/same");
    let arguments = fs::read_to_string(bed.bed.folder.path().join("arguments")).unwrap();
    let arguments: Vec<&str> = arguments.lines().collect();
    assert_eq!(arguments[1], "shop", "the name of the release");
    assert!(arguments.contains(&"--is-upgrade") && arguments.contains(&"-"), "{arguments:?}");
    assert!(arguments.windows(2).any(|pair| pair == ["--namespace", bed.namespace()]), "{arguments:?}");

    // Its own revision, with the CRDs that its chart had; and nothing can be written.
    let this = format!("{target}:1");
    bed.run(&["diff", "-f", &this, "--target", &target]).code(0).stdout_contains("Nothing to do");
    bed.run(&["deploy", "-f", "new", "--target", &target, "--yes"]).code(2).stderr_contains("it is only read");
    bed.run(&["check", "-f", "new", "--target", &format!("{target}:9")]).code(1).stderr_contains("no revision 9");
    bed.run(&["check", "-f", "new", "--target", "helm:nope", "-n", bed.namespace()])
        .code(1)
        .stderr_contains("Helm has no release nope");
    bed.run(&["check", "-f", "new", "--target", &target, "-n", "other"]).code(2).stderr_contains("leave out -n");
}

#[test]
fn a_chart_is_compared_with_another_chart_without_a_cluster() {
    let bed = HelmBed::new();
    bed.chart("old", &bed.config_map("a", "old"));
    bed.chart("new", &bed.config_map("a", "new"));
    bed.run(&["diff", "-f", "new", "--target", "chart:old", "-n", "prod", "--kubeconfig", "missing"])
        .code(0)
        .stdout_contains("update configmap/a -n prod")
        .stdout_contains("chart: old");
    bed.run(&["diff", "-f", "new", "--target", "chart:nope"]).code(2).stderr_contains("there is no such chart");
}

#[test]
fn an_upgrade_by_helm_is_foretold_with_its_deletions() {
    let bed = HelmBed::new();
    let namespace = bed.namespace();
    let all: Vec<String> = ["changed", "gone", "kept"].iter().map(|name| bed.config_map(name, "old")).collect();
    bed.record(1, "deployed", &all.join("---\n"), &json!({}));
    bed.install("changed", "old", &json!({}));
    bed.install("gone", "old", &json!({}));
    bed.install("kept", "old", &json!({"helm.sh/resource-policy": "keep"}));
    let crds = format!("---\n# Source: web/crds/a.yaml\n{}", bed.bed.crd("a: {type: string}"));
    bed.chart("new", &format!("{crds}---\n# Source: web/templates/a.yaml\n{}", bed.config_map("changed", "new")));
    let as_helm = ["-f", "new", "--as-helm", "--release", "shop", "-n", namespace];
    bed.run(&[&["diff"], &as_helm[..]].concat())
        .code(0)
        .stdout_contains("update configmap/changed")
        .stdout_contains("delete configmap/gone")
        .contains_nowhere("meta.helm.sh")
        .contains_nowhere("customresourcedefinition/")
        .stderr_contains("configmap/kept -n")
        .stderr_contains("in crds/, which Helm installs only with the first release");
    // Without the flag it is what a deploy would do.
    bed.run(&["check", "-f", "new", "--release", "shop", "-n", namespace]).code(3).stdout_contains("OwnedByOther");

    // Helm runs only the hooks of an upgrade, and imports nothing that exists.
    let hook = |name: &str, events: &str| {
        let marked = format!("  name: {name}\n  annotations: {{helm.sh/hook: '{events}'}}\n");
        bed.config_map(name, "x").replace(&format!("  name: {name}\n"), &marked)
    };
    bed.chart(
        "hooks",
        &[
            bed.config_map("changed", "old"),
            bed.config_map("gone", "old"),
            bed.config_map("kept", "old"),
            hook("before", "pre-install, pre-upgrade"),
            hook("installs", "post-install"),
        ]
        .join("---\n"),
    );
    let with_hooks = ["diff", "-f", "hooks", "--as-helm", "--release", "shop", "-n", namespace];
    bed.run(&with_hooks).code(0).stdout_contains("create configmap/before").contains_nowhere("configmap/installs");
    let path = bed.bed.config_map_path("foreign");
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign"}, "data": {"a": "x"}});
    assert_eq!(control_plane().server_side_apply(&path, "somebody", &foreign).0, 201);
    bed.chart("imports", &[bed.config_map("changed", "old"), bed.config_map("foreign", "x")].join("---\n"));
    bed.run(&["check", "-f", "imports", "--as-helm", "--release", "shop", "-n", namespace])
        .code(3)
        .stdout_contains("Helm refuses this change: configmap/foreign");
    bed.run(&[&["check"], &as_helm[..], &["--filter", "kind=ConfigMap"]].concat())
        .code(2)
        .stderr_contains("leave out --filter");

    // Another release owns it.
    let path = bed.bed.config_map_path("changed");
    let other = json!({"metadata": {"annotations": {"meta.helm.sh/release-name": "other"}}});
    assert_eq!(control_plane().patch(&path, &other).0, 200);
    bed.run(&[&["check"], &as_helm[..]].concat()).code(3).stdout_contains("belongs to the Helm release other");

    bed.run(&["check", "-f", "new", "--as-helm", "-n", namespace]).code(2).stderr_contains("no release is named");
    bed.run(&["check", "-f", "helm", "--as-helm", "-n", namespace]).code(2).stderr_contains("neither a chart nor");
    let target = ["--target", "chart:new"];
    bed.run(&[&["check"], &as_helm[..], &target].concat()).code(2).stderr_contains("the target is not a cluster");
}

#[test]
fn an_upgrade_by_helm_is_foretold_as_the_patches_that_it_sends() {
    let bed = HelmBed::new();
    let namespace = bed.namespace();
    control_plane().apply_yaml(&bed.bed.crd("first: {type: string}"));
    eventually("the kind is served", || {
        let path = format!("/apis/{}/v1/namespaces/{namespace}/samples", bed.bed.names.group);
        (control_plane().get(&path).0 == 200).then_some(())
    });
    let manifest = format!("{}---\n{}", bed.config_map("a", "x"), bed.bed.sample());
    bed.record(1, "deployed", &manifest, &json!({}));
    bed.install("a", "x", &json!({}));
    // Somebody changes an object after the installation.
    let drifted = bed.bed.sample().replace("first: x", "first: drifted");
    control_plane().apply_yaml(&drifted);
    bed.chart("same", &manifest);
    let as_helm = |command: &str, more: &[&str]| {
        let named = [command, "-f", "same", "--as-helm", "--release", "shop", "-n", namespace];
        bed.run(&[&named[..], more].concat())
    };
    // Of a custom resource, Helm writes what differs between the releases. Besides, it marks the object.
    let run = as_helm("diff", &[]);
    run.code(0).stdout_contains("update sample.").contains_nowhere("drifted").contains_nowhere("configmap/a");
    run.contains_nowhere("taking over").contains_nowhere("--force-conflicts");
    let marked = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {
        "meta.helm.sh/release-name": "shop", "meta.helm.sh/release-namespace": namespace}}});
    let path = format!("/apis/{}/v1/namespaces/{namespace}/samples/one", bed.bed.names.group);
    assert_eq!(control_plane().patch(&path, &marked).0, 200);
    as_helm("check", &["--detailed-exitcode"]).code(0).stdout_contains("2 objects unchanged");
    // Of a kind that Helm knows, it writes what the chart sets.
    let path = bed.bed.config_map_path("a");
    assert_eq!(control_plane().patch(&path, &json!({"data": {"a": "drifted", "b": "stays"}})).0, 200);
    let run = as_helm("diff", &[]);
    run.code(0).stdout_contains("update configmap/a").stdout_contains("drifted").contains_nowhere("stays");
}

#[test]
fn a_rollback_by_helm_is_foretold() {
    let bed = HelmBed::new();
    bed.record(1, "superseded", &bed.config_map("a", "old"), &json!({}));
    let now = format!("{}---\n{}", bed.config_map("a", "new"), bed.config_map("added", "x"));
    bed.record(2, "deployed", &now, &json!({"apply_method": "ssa"}));
    bed.install("a", "new", &json!({}));
    bed.install("added", "x", &json!({}));
    bed.run(&["diff", "-f", &format!("helm:{}/shop:1", bed.namespace()), "--as-helm"])
        .code(0)
        .stdout_contains("update configmap/a")
        .stdout_contains("delete configmap/added")
        .contains_nowhere("meta.helm.sh");
}

#[test]
fn the_printed_rights_suffice_to_read_a_release() {
    let bed = HelmBed::new();
    bed.record(1, "deployed", &bed.config_map("a", "x"), &json!({}));
    let cp = control_plane();
    let user = cp.user(&json!([]));
    let printed = bed.run(&["permissions", "-f", "helm:shop", "-n", bed.namespace(), "--as", &user]);
    let check = ["check", "-f", "helm:shop", "-n", bed.namespace()];
    let as_user = || bed.bed.gantry(cp.kubeconfig(&user), &check).run();
    as_user().code(1).stderr_contains("secrets");
    grant(cp, &user, &printed.code(0).stdout);
    as_user().code(0).stdout_contains("configmap/a");
    // The release is read from the cluster, whatever the target.
    let release = format!("helm:{}/shop", bed.namespace());
    let in_folder = bed.run(&["permissions", "-f", &release, "--target", "dir:.", "--as", &user]);
    in_folder.code(0).stdout_contains("[secrets]").stdout_contains(&format!("namespace: {}", bed.namespace()));
}
