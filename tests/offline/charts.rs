//! Helm charts and kustomizations as manifests, rendered by programs of the user. The programs here are scripts that
//! record how they are called: what the real Helm prints is checked by hand.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use gantry_k8s_cel::KubernetesRelease;
use serde_json::json;

use crate::git::{Ended, Repository, command, config_map, crd, ended};

/// `helm template`: prints the CRDs of the chart as Helm does, and a ConfigMap with its arguments.
const HELM: &str = r#"#!/bin/sh
[ "$1" = template ] || exit 9
echo "$PWD: $*" >> "$ARGUMENTS"
chart=$3
if [ -f "$chart/broken" ]; then
  echo "Error: An error occurred while checking for chart dependencies. You may need to run \`helm dependency build\` to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: db" >&2
  exit 1
fi
if [ -f "$chart/wrong" ]; then echo "Error: execution error at (web/templates/a.yaml:3:4): size is required" >&2; exit 1; fi
for file in "$chart"/crds/*.yaml; do
  [ -f "$file" ] && printf -- '---\n# Source: web/crds/%s\n' "${file##*/}" && cat "$file"
done
printf -- '---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n' "$2"
"#;

const KUSTOMIZE: &str = "#!/bin/sh\n[ \"$1\" = build ] || exit 9\ncat \"$2\"/../base/*.yaml\n";
const KUBECTL: &str = "#!/bin/sh\n[ \"$1\" = kustomize ] || exit 9\ncat \"$2\"/../base/*.yaml\n";

/// A repository with a chart in `charts/web`, and programs beside it.
struct ChartBed {
    repository: Repository,
}

impl ChartBed {
    fn new() -> Self {
        let bed = ChartBed {
            repository: Repository::with(&[
                ("charts/web/Chart.yaml", "apiVersion: v2\nname: web-app\nversion: 1.0.0\n".into()),
                ("charts/web/crds/crd.yaml", crd(&["keep", "gone"])),
                ("values/prod.yaml", "replicas: 2\n".into()),
            ]),
        };
        fs::create_dir(bed.programs()).unwrap();
        fs::create_dir(bed.repository.root().join("live")).unwrap();
        bed.install("helm", HELM);
        bed
    }

    fn programs(&self) -> PathBuf {
        self.repository.folder.path().join("programs")
    }

    fn install(&self, name: &str, script: &str) {
        let path = self.programs().join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn recorded(&self) -> PathBuf {
        self.repository.folder.path().join("arguments")
    }

    fn check(&self, arguments: &[&str]) -> Ended {
        let _ = fs::remove_file(self.recorded());
        let mut command = command(&self.repository.root(), &[&["check"], arguments].concat());
        let path = format!("{}:/usr/bin:/bin", self.programs().display());
        command.env("PATH", path).env("ARGUMENTS", self.recorded());
        ended(command)
    }

    /// The arguments of the calls of helm, without the working directory.
    fn calls(&self) -> Vec<String> {
        let recorded = fs::read_to_string(self.recorded()).unwrap_or_default();
        recorded.lines().filter_map(|line| Some(line.split_once(": ")?.1.to_owned())).collect()
    }
}

#[test]
fn a_chart_is_rendered_with_its_values_for_the_release_of_the_target() {
    let bed = ChartBed::new();
    let flags = ["--values", "values/prod.yaml", "--set", "a=1", "--set", "b={x,y}", "--release", "shop", "-n", "prod"];
    let target = ["--target", "dir:live", "--kube-version", "1.30", "--chart-version", "2.0.0"];
    let checked = bed.check(&[&["-f", "charts/web", "-o", "json"][..], &flags, &target].concat());
    checked.code(0);
    let names: Vec<String> = checked.changes().into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["samples.test.example.com", "shop"]);
    assert_eq!(
        bed.calls(),
        ["template shop charts/web --include-crds --namespace prod --values values/prod.yaml --set a=1 --set b={x,y} \
          --version 2.0.0 --kube-version 1.30.0"]
    );
    // Without a name, the release has that of the chart. A registry's version can be in the reference. A folder stands for
    // the newest release of Kubernetes.
    let newest = format!("--kube-version {}.0", KubernetesRelease::NEWEST_KNOWN);
    bed.check(&["-f", "charts/web", "--target", "dir:live"]).code(0);
    assert_eq!(bed.calls(), [format!("template web-app charts/web --include-crds {newest}")]);
    bed.check(&["-f", "oci://registry.example.com/charts/web:1.2.3", "--target", "dir:live"]).code(0);
    let chart = "oci://registry.example.com/charts/web";
    assert_eq!(bed.calls(), [format!("template web {chart} --include-crds --version 1.2.3 {newest}")]);
    fs::write(bed.repository.root().join("web-1.0.0.tgz"), "x").unwrap();
    let configured = "apiVersion: gantry.dev/v1alpha1\nkind: Config\nchart: {release: shop, set: [c=3]}\n";
    bed.repository.write("gantry.yaml", configured);
    bed.check(&["-f", "web-1.0.0.tgz", "--target", "dir:live"]).code(0);
    assert_eq!(bed.calls(), [format!("template shop web-1.0.0.tgz --include-crds --set c=3 {newest}")]);
}

#[test]
fn a_change_of_crds_in_the_crds_folder_blocks_and_is_told_to_be_applied_by_hand() {
    let bed = ChartBed::new();
    bed.repository.write("charts/web/crds/crd.yaml", crd(&["keep"]));
    let both = ["-f", "charts/web", "--target", "git:main"];
    let blocked = bed.check(&both);
    blocked.code(3).says("field spec.gone may not be removed from v1").says("--> charts/web (rendered):");
    blocked.says("charts/web has a file in crds/, which Helm installs only with the first release and never upgrades");
    blocked.says("gantry deploy -f charts/web/crds --force-conflicts");
    // Once, although both sides were rendered; the commit from its own files.
    assert_eq!(blocked.stderr.matches("never upgrades").count(), 1, "{}", blocked.stderr);
    let calls = bed.calls();
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(calls[1].starts_with("template web-app /") && calls[1].contains("/charts/web --include-crds"), "{calls:?}");
    let place = json!({"path": "charts/web/Chart.yaml", "lines": {"begin": 1}});
    let quality = bed.check(&[&both[..], &["-o", "gitlab"]].concat());
    assert_eq!(quality.report()[0]["location"], place);
    // Both sides from git, with a values file of the commit.
    bed.repository.git(&["tag", "v1"]);
    bed.repository.commit();
    let values = ["--values", "values/prod.yaml"];
    bed.check(&[&["-f", "git:HEAD:charts/web", "--target", "git:v1"], &values[..]].concat()).code(3);
    assert_eq!(bed.calls().iter().filter(|call| call.contains("--values values/prod.yaml")).count(), 2);
    // A commit without the chart is an empty cluster.
    let old = bed.repository.git(&["commit-tree", "-m", "empty", &bed.repository.git(&["mktree"])]);
    let created = bed.check(&["-f", "charts/web", "--target", &format!("git:{old}")]);
    created.code(0).says("2 create").says("does not exist at this commit");
    // With a path of its own the target is a chart, too.
    let same = ["-f", "oci://registry.example.com/web", "--release", "web-app", "--target", "git:v1:charts/web"];
    bed.check(&same).code(0).says("1 object unchanged");
}

#[test]
fn errors_of_charts_name_the_next_step() {
    let bed = ChartBed::new();
    let check = |flags: &[&str]| bed.check(&[&["-f", "charts/web", "--target", "dir:live"], flags].concat());
    bed.repository.write("values/broken.yaml", "a: 1\nb: [1\n");
    bed.repository.write("values/list.yaml", "- a\n");
    check(&["--values", "values/broken.yaml"]).code(2).says("values/broken.yaml:");
    check(&["--values", "values/list.yaml"]).code(2).says("the file is not a mapping").says("values/list.yaml:1");
    check(&["--values", "none.yaml"]).code(2).says("none.yaml").says("relative to the working directory");
    assert!(bed.calls().is_empty());
    bed.check(&["-f", "values", "--set", "a=1", "--target", "dir:live"]).code(2).says("--set is for Helm charts");
    bed.repository.write("charts/web/broken", "");
    check(&[]).code(1).says("missing in charts/ directory: db").says("helm dependency build charts/web");
    fs::remove_file(bed.repository.root().join("charts/web/broken")).unwrap();
    bed.repository.write("charts/web/wrong", "");
    check(&["--set", "a=b c"])
        .code(1)
        .says("size is required")
        .says("helm template web-app charts/web --include-crds --set 'a=b c' --kube-version");
    fs::remove_file(bed.programs().join("helm")).unwrap();
    check(&[]).code(1).says("charts/web is a Helm chart, and \"helm\" is not installed").says("HELM_BIN");
    // The variable names another program.
    bed.install("helm4", HELM);
    fs::remove_file(bed.repository.root().join("charts/web/wrong")).unwrap();
    let _ = fs::remove_file(bed.recorded());
    let mut named = command(&bed.repository.root(), &["check", "-f", "charts/web", "--target", "git:main"]);
    named.env("HELM_BIN", bed.programs().join("helm4")).env("ARGUMENTS", bed.recorded());
    ended(named).code(0);
    assert_eq!(bed.calls().len(), 2);
}

#[test]
fn a_kustomization_is_built_on_both_sides() {
    let bed = ChartBed::new();
    bed.repository.write("base/crd.yaml", crd(&["keep", "gone"]));
    bed.repository.write("overlay/kustomization.yaml", "resources: [../base]\n");
    bed.repository.commit();
    bed.repository.git(&["tag", "v1"]);
    bed.repository.write("base/crd.yaml", crd(&["keep"]));
    let mut without = command(&bed.repository.root(), &["check", "-k", "overlay", "--target", "dir:live"]);
    without.env("PATH", bed.programs());
    ended(without).code(1).says("overlay is a kustomization, and neither kustomize nor kubectl is installed");
    for (program, script) in [("kubectl", KUBECTL), ("kustomize", KUSTOMIZE)] {
        bed.install(program, script);
        let blocked = bed.check(&["-k", "overlay", "--target", "git:v1"]);
        blocked.code(3).says("--> overlay (rendered):");
        // The other one is not needed.
        fs::remove_file(bed.programs().join(program)).unwrap();
    }
    bed.install("kustomize", KUSTOMIZE);
    bed.repository.write("more/map.yaml", config_map("more"));
    bed.check(&["-k", "overlay", "-f", "more", "--target", "git:v1"]).code(3).says("create 1");
    bed.check(&["-k", "git:v1:overlay", "--target", "git:v1"]).code(0).says("1 object unchanged");
    // A kustomization is not read as manifests.
    bed.check(&["-f", "overlay", "--target", "git:v1"]).code(1).says("gantry check -k DIR");
}
