//! Where the kube-apiserver and etcd binaries come from.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The module that pins both servers. It is copied to where they are built, as a package may lie where nothing may be
/// written.
const GO_MOD: &str = include_str!("../control-plane/go.mod");
const GO_SUM: &str = include_str!("../control-plane/go.sum");

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
                     unset it to have both built",
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

/// Builds what is missing in the folder of these versions, one test process at a time.
fn built() -> Binaries {
    let kubernetes = pinned("k8s.io/kubernetes");
    let folder = cache().join(format!("kubernetes-{kubernetes}-etcd-{}", pinned("go.etcd.io/etcd/server/v3")));
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("cannot create {}: {e}", folder.display()));
    let found = in_folder(&folder);

    let lock = File::create(folder.join("lock")).expect("create the build's lock file");
    lock.lock().expect("lock the build");
    for (binary, package) in
        [(&found.etcd, "go.etcd.io/etcd/server/v3"), (&found.kube_apiserver, "k8s.io/kubernetes/cmd/kube-apiserver")]
    {
        if !binary.is_file() {
            build(package, binary, &folder, kubernetes);
        }
    }
    found
}

/// Where built servers are kept: in Cargo's target directory, or else in the user's cache.
fn cache() -> PathBuf {
    // A test binary lies in the target directory; a documentation test runs in the folder of its package.
    let of_binary = std::env::current_exe()
        .ok()
        .and_then(|binary| binary.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()).map(Path::to_owned));
    let of_package = || {
        let folder = std::env::current_dir().ok()?;
        let targets = folder.ancestors().map(|folder| folder.join("target"));
        targets.into_iter().find(|target| target.join("CACHEDIR.TAG").is_file())
    };
    if let Some(target) = of_binary.or_else(of_package) {
        return target.join("control-plane");
    }
    let user = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let user = user.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    user.expect("a home folder to keep the servers in, or KUBEBUILDER_ASSETS with them").join("gantry-testbed")
}

fn build(package: &str, binary: &Path, folder: &Path, kubernetes: &str) {
    for (name, text) in [("go.mod", GO_MOD), ("go.sum", GO_SUM)] {
        fs::write(folder.join(name), text)
            .unwrap_or_else(|e| panic!("cannot write {name} in {}: {e}", folder.display()));
    }
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
        .current_dir(folder)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env_remove("GOFLAGS")
        .env_remove("GOOS")
        .env_remove("GOARCH")
        .status()
        .unwrap_or_else(|e| {
            panic!(
                "the tests need a real kube-apiserver and etcd, and `go` to build them does not start ({e}).\n\
                 Install Go {} or newer, or set KUBEBUILDER_ASSETS to a folder with both binaries.",
                go_version()
            )
        });
    assert!(
        status.success(),
        "`go build {package}` failed in {folder} ({status}); its messages are above.\n\
         It needs Go {} or newer and, the first time, a module proxy. Or set KUBEBUILDER_ASSETS to a folder with both binaries.",
        go_version(),
        folder = folder.display()
    );
    fs::rename(&unfinished, binary).expect("move the built binary into place");
}

/// The version of a module in the `require` block of go.mod.
fn pinned(module: &str) -> &'static str {
    line_after(module).unwrap_or_else(|| panic!("go.mod does not require {module}"))
}

fn go_version() -> &'static str {
    line_after("go").unwrap_or("of its go.mod")
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
