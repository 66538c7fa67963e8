//! Helm charts and commits on a real API server. Helm is a script here, which records how it is called.
#![cfg(unix)]

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Bed, control_plane};

const HELM: &str = "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$ARGUMENTS\"\ncat \"$3/out.yaml\"\n";

fn path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

#[test]
fn a_chart_sees_the_release_and_the_apis_of_the_cluster() {
    let bed = Bed::with_namespace();
    bed.write("Chart.yaml", "name: web\n");
    bed.write("out.yaml", &bed.config_map("from-chart", "a"));
    let helm = bed.folder.path().join("helm");
    fs::write(&helm, HELM).unwrap();
    fs::set_permissions(&helm, fs::Permissions::from_mode(0o755)).unwrap();
    let recorded = bed.folder.path().join("arguments");
    let kubeconfig = control_plane().kubeconfig("admin");
    let namespace = &bed.names.namespace;
    bed.gantry(kubeconfig, &["deploy", "-f", ".", "--release", "shop", "-n", namespace])
        .env("PATH", path())
        .env("HELM_BIN", &helm)
        .env("ARGUMENTS", &recorded)
        .run()
        .code(0);
    assert_eq!(control_plane().get(&bed.config_map_path("from-chart")).0, 200);
    let arguments = fs::read_to_string(&recorded).unwrap();
    let options = |name: &str| -> Vec<&str> {
        let lines: Vec<&str> = arguments.lines().collect();
        lines.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1]).collect()
    };
    let release = control_plane().get("/version").1;
    let minor = release["minor"].as_str().unwrap().to_owned();
    assert_eq!(options("--kube-version"), [format!("1.{minor}.0")]);
    let apis = options("--api-versions");
    for api in ["v1", "v1/ConfigMap", "apps/v1", "apps/v1/Deployment"] {
        assert!(apis.contains(&api), "{api}: {apis:?}");
    }
    assert!(!apis.iter().any(|api| api.contains("status")), "{apis:?}");
    assert_eq!(options("--namespace"), [namespace]);
}

#[test]
fn the_manifests_of_a_commit_are_deployed() {
    let bed = Bed::with_namespace();
    bed.write("a.yaml", &bed.config_map("from-commit", "committed"));
    let git = |arguments: &[&str]| {
        let user = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
        let done = Command::new("git").args(user).args(arguments).current_dir(bed.folder.path()).output().expect("git");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    bed.write("a.yaml", &bed.config_map("from-commit", "on disk"));
    let kubeconfig = control_plane().kubeconfig("admin");
    let run =
        |command: &str| bed.gantry(kubeconfig.clone(), &[command, "-f", "git:HEAD:a.yaml"]).env("PATH", path()).run();
    run("deploy").code(0);
    let live = control_plane().get(&bed.config_map_path("from-commit")).1;
    assert!(live["data"].to_string().contains("committed"), "{live}");
    run("diff").code(0).stdout_contains("Nothing to do");
}
