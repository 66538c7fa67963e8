//! Where the kube-apiserver and etcd binaries come from.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The module that pins both servers.
const GO_MOD: &str = include_str!("../control-plane/go.mod");

pub struct Binaries {
    pub kube_apiserver: PathBuf,
    pub etcd: PathBuf,
}

/// The binaries of `KUBEBUILDER_ASSETS` where that is set, else those of the pinned Go module, built now if need be.
pub fn binaries() -> Binaries {
    match std::env::var_os("KUBEBUILDER_ASSETS") {
        Some(folder) if !folder.is_empty() => {
            let found = in_folder(Path::new(&folder));
            for binary in [&found.kube_apiserver, &found.etcd] {
                assert!(
                    binary.is_file(),
                    "{} does not exist: KUBEBUILDER_ASSETS must name a folder with kube-apiserver and etcd; \
                     unset it to have both built from tests/control-plane",
                    binary.display()
                );
            }
            found
        }
        _ => built(),
    }
}

fn in_folder(folder: &Path) -> Binaries {
    // Relative to here, not to the folder that the servers will run in.
    let folder = std::path::absolute(folder).expect("an absolute path");
    Binaries { kube_apiserver: folder.join("kube-apiserver"), etcd: folder.join("etcd") }
}

/// Builds what is missing in `target/control-plane/VERSIONS`, one test process at a time.
fn built() -> Binaries {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let kubernetes = pinned("k8s.io/kubernetes");
    let folder = target
        .join("control-plane")
        .join(format!("kubernetes-{kubernetes}-etcd-{}", pinned("go.etcd.io/etcd/server/v3")));
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("cannot create {}: {e}", folder.display()));
    let found = in_folder(&folder);

    let lock = File::create(folder.join("lock")).expect("create the build's lock file");
    lock.lock().expect("lock the build");
    for (binary, package) in
        [(&found.etcd, "go.etcd.io/etcd/server/v3"), (&found.kube_apiserver, "k8s.io/kubernetes/cmd/kube-apiserver")]
    {
        if !binary.is_file() {
            build(package, binary, kubernetes);
        }
    }
    found
}

fn build(package: &str, binary: &Path, kubernetes: &str) {
    // Straight to stderr: the test runner would hold back what goes through eprintln! until the test is over.
    let _ = writeln!(std::io::stderr(), "building {package} for the tests (both servers: about 3 minutes, once)");
    let (major, minor) = major_minor(kubernetes);
    let version = "k8s.io/component-base/version";
    let unfinished = binary.with_extension("unfinished");
    let status = Command::new("go")
        .args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags"])
        .arg(format!(
            "-s -w -X {version}.gitVersion={kubernetes} -X {version}.gitMajor={major} -X {version}.gitMinor={minor}"
        ))
        .arg("-o")
        .args([&unfinished, Path::new(package)])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/control-plane"))
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env_remove("GOFLAGS")
        .env_remove("GOOS")
        .env_remove("GOARCH")
        .status()
        .unwrap_or_else(|e| {
            panic!(
                "the tests need a real kube-apiserver and etcd, and `go` to build them does not start ({e}).\n\
                 Install Go {} or newer, or set KUBEBUILDER_ASSETS to a folder with both binaries (docs/testing.md).",
                go_version()
            )
        });
    assert!(
        status.success(),
        "`go build {package}` failed in tests/control-plane ({status}); its messages are above.\n\
         It needs Go {} or newer and, the first time, a module proxy. Or set KUBEBUILDER_ASSETS (docs/testing.md).",
        go_version()
    );
    fs::rename(&unfinished, binary).expect("move the built binary into place");
}

/// The version of a module in the `require` block of go.mod.
fn pinned(module: &str) -> &'static str {
    line_after(module).unwrap_or_else(|| panic!("tests/control-plane/go.mod does not require {module}"))
}

fn go_version() -> &'static str {
    line_after("go").unwrap_or("of tests/control-plane/go.mod")
}

/// The second word of the first line of go.mod that starts with the word `word` and has more than one.
fn line_after(word: &str) -> Option<&'static str> {
    GO_MOD.lines().find_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [first, second, ..] if first == word => Some(second),
        _ => None,
    })
}

fn major_minor(version: &str) -> (&str, &str) {
    let mut parts = version.trim_start_matches('v').split('.');
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}
