//! Locates or builds the servers and kubectl.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::releases::OtherRelease;

/// The module that pins the servers and kubectl. It is copied to the build folder, because the package can be in a
/// read-only location.
const GO_MOD: &str = include_str!("../control-plane/go.mod");
const GO_SUM: &str = include_str!("../control-plane/go.sum");
/// The same for kwok.
const KWOK_MOD: &str = include_str!("../control-plane/kwok/go.mod");
const KWOK_SUM: &str = include_str!("../control-plane/kwok/go.sum");

/// The source of a program that evaluates version ranges with the libraries used by OLM.
const RANGE_ORACLE: &str = include_str!("../control-plane/range-oracle/main.go");

pub struct Binaries {
    pub kube_apiserver: PathBuf,
    pub etcd: PathBuf,
}

/// The binaries of the controllers of a control plane.
pub struct Controllers {
    pub controller_manager: PathBuf,
    pub scheduler: PathBuf,
    pub kwok: PathBuf,
}

/// The binaries in `KUBEBUILDER_ASSETS` if it is set, otherwise those of the pinned Go module, built if necessary.
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
        _ => build_pinned(),
    }
}

/// The API server of another release, built if necessary, and the etcd of [`binaries`].
pub fn binaries_of(release: OtherRelease) -> Binaries {
    let [kube_apiserver] = kubernetes_commands(release, ["kube-apiserver"]);
    Binaries { kube_apiserver, ..binaries() }
}

/// The controllers of another release, built if necessary, and the kwok of [`controllers`].
pub fn controllers_of(release: OtherRelease) -> Controllers {
    let [controller_manager, scheduler] = kubernetes_commands(release, ["kube-controller-manager", "kube-scheduler"]);
    let folder = versions_folder();
    let kwok = folder.join("kwok");
    build_missing(&folder, [(&kwok, (KWOK_COMMAND, Module::Kwok))]);
    Controllers { controller_manager, scheduler, kwok }
}

/// Commands of another release of Kubernetes.
fn kubernetes_commands<const N: usize>(release: OtherRelease, names: [&str; N]) -> [PathBuf; N] {
    let folder = cache().join(format!("kubernetes-{}", release.version));
    let packages = names.map(|name| format!("k8s.io/kubernetes/cmd/{name}"));
    let binaries = names.map(|name| folder.join(name));
    let module = Module::OtherKubernetes(release);
    build_missing(&folder, binaries.iter().zip(packages.each_ref().map(|package| (package.as_str(), module))));
    binaries
}

/// The binaries of the controllers. They are built even if `KUBEBUILDER_ASSETS` is set, unless it contains all of
/// them, which is rare.
pub fn controllers() -> Controllers {
    const NAMES: [&str; 3] = ["kube-controller-manager", "kube-scheduler", "kwok"];
    let folder = std::env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty());
    let given = folder.map(|folder| NAMES.map(|name| absolute(Path::new(&folder), name)));
    let [controller_manager, scheduler, kwok] =
        given.filter(|given| given.iter().all(|binary| binary.is_file())).unwrap_or_else(|| {
            let folder = versions_folder();
            let binaries = NAMES.map(|name| folder.join(name));
            let packages = [
                ("k8s.io/kubernetes/cmd/kube-controller-manager", Module::Pinned),
                ("k8s.io/kubernetes/cmd/kube-scheduler", Module::Pinned),
                (KWOK_COMMAND, Module::Kwok),
            ];
            build_missing(&folder, binaries.iter().zip(packages));
            binaries
        });
    Controllers { controller_manager, scheduler, kwok }
}

/// The path of kubectl: the one in `KUBEBUILDER_ASSETS` if that folder has one, otherwise the one of the Kubernetes
/// version that this crate pins, built if necessary.
///
/// # Panics
///
/// If it cannot be built; the message gives the reason.
pub fn kubectl() -> PathBuf {
    const NAME: &str = "kubectl";
    let folder = std::env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty());
    let given = folder.map(|folder| absolute(Path::new(&folder), NAME)).filter(|binary| binary.is_file());
    given.unwrap_or_else(|| {
        let folder = versions_folder();
        let binary = folder.join(NAME);
        build_missing(&folder, [(&binary, ("k8s.io/kubernetes/cmd/kubectl", Module::Pinned))]);
        binary
    })
}

/// The program in `control-plane/range-oracle`, built if necessary. It evaluates version ranges with the libraries
/// that Operator Lifecycle Manager uses. The comment at the top of its source describes its input and output.
pub fn range_oracle() -> PathBuf {
    let folder = versions_folder();
    // The name depends on the source, because other test processes might be using an existing binary.
    let mut hasher = DefaultHasher::new();
    (RANGE_ORACLE, GO_MOD).hash(&mut hasher);
    let binary = folder.join(format!("range-oracle-{:016x}", hasher.finish()));
    if !binary.is_file() {
        let source = folder.join("range-oracle");
        fs::create_dir_all(&source).unwrap_or_else(|e| panic!("cannot create {}: {e}", source.display()));
        fs::write(source.join("main.go"), RANGE_ORACLE).expect("write the source of the program");
        build_missing(&folder, [(&binary, ("./range-oracle", Module::Pinned))]);
    }
    binary
}

const KWOK_COMMAND: &str = "sigs.k8s.io/kwok/cmd/kwok";

/// The name of the module whose version is the pinned version of Kubernetes.
pub const PINNED_KUBERNETES: &str = "k8s.io/kubernetes";

/// A Go module that requires the commands to build.
#[derive(Clone, Copy)]
enum Module {
    /// `control-plane`, with the pinned versions of Kubernetes and etcd.
    Pinned,
    Kwok,
    OtherKubernetes(OtherRelease),
}

impl Module {
    /// The version of Kubernetes that its commands report.
    fn kubernetes(self) -> &'static str {
        match self {
            Module::Pinned | Module::Kwok => pinned(PINNED_KUBERNETES),
            Module::OtherKubernetes(release) => release.version,
        }
    }

    /// The text of its go.mod and go.sum.
    fn files(self) -> [String; 2] {
        match self {
            Module::Pinned => [GO_MOD, GO_SUM].map(str::to_owned),
            Module::Kwok => [KWOK_MOD, KWOK_SUM].map(str::to_owned),
            Module::OtherKubernetes(release) => release.module(),
        }
    }
}

fn absolute(folder: &Path, name: &str) -> PathBuf {
    // Relative to the current folder, not to the folder in which the servers will run.
    std::path::absolute(folder).expect("an absolute path").join(name)
}

fn in_folder(folder: &Path) -> Binaries {
    Binaries { kube_apiserver: absolute(folder, "kube-apiserver"), etcd: absolute(folder, "etcd") }
}

fn build_pinned() -> Binaries {
    let folder = versions_folder();
    let found = in_folder(&folder);
    let packages = [
        (&found.etcd, ("go.etcd.io/etcd/server/v3", Module::Pinned)),
        (&found.kube_apiserver, ("k8s.io/kubernetes/cmd/kube-apiserver", Module::Pinned)),
    ];
    build_missing(&folder, packages);
    found
}

/// The cache folder for the pinned versions.
fn versions_folder() -> PathBuf {
    let kubernetes = pinned(PINNED_KUBERNETES);
    cache().join(format!("kubernetes-{kubernetes}-etcd-{}", pinned("go.etcd.io/etcd/server/v3")))
}

/// Builds missing binaries, in one test process at a time.
fn build_missing<'a>(folder: &Path, packages: impl IntoIterator<Item = (&'a PathBuf, (&'a str, Module))>) {
    fs::create_dir_all(folder).unwrap_or_else(|e| panic!("cannot create {}: {e}", folder.display()));
    let lock = File::create(folder.join("lock")).expect("create the build's lock file");
    lock.lock().expect("lock the build");
    for (binary, (package, module)) in packages {
        if !binary.is_file() {
            build(package, binary, folder, module);
        }
    }
}

/// The cache folder for built servers: in Cargo's target directory, or otherwise in the user's cache.
fn cache() -> PathBuf {
    // A test binary is in the target directory; a documentation test runs in the folder of its package.
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

fn build(package: &str, binary: &Path, folder: &Path, module: Module) {
    let kubernetes = module.kubernetes();
    let folder = &match module {
        Module::Kwok => folder.join("module-kwok"),
        Module::Pinned | Module::OtherKubernetes(_) => folder.to_owned(),
    };
    fs::create_dir_all(folder).unwrap_or_else(|e| panic!("cannot create {}: {e}", folder.display()));
    for (name, text) in ["go.mod", "go.sum"].into_iter().zip(module.files()) {
        fs::write(folder.join(name), text)
            .unwrap_or_else(|e| panic!("cannot write {name} in {}: {e}", folder.display()));
    }
    // Write directly to stderr: the test runner would capture the output of eprintln! until the test ends.
    let _ = writeln!(
        std::io::stderr(),
        "building {package} {kubernetes} for the tests (everything of a release: about 6 minutes, once)"
    );
    let (update, tags) = match module {
        Module::Pinned | Module::Kwok => ("-mod=readonly", ""),
        // Go adds the checksums of the staging modules to go.sum.
        Module::OtherKubernetes(release) => ("-mod=mod", release.tags),
    };
    let (major, minor) = major_minor(kubernetes);
    let version = "k8s.io/component-base/version";
    let unfinished = binary.with_extension("unfinished");
    let status = Command::new("go")
        .args(["build", update, "-tags", tags, "-trimpath", "-buildvcs=false", "-ldflags"])
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
                "the tests need the Kubernetes servers, and `go`, which builds them, does not start ({e}).\n\
                 Install Go {} or newer, or set KUBEBUILDER_ASSETS to a folder with the binaries.",
                go_version()
            )
        });
    assert!(
        status.success(),
        "`go build {package}` failed in {folder} ({status}); its messages are above.\n\
         It needs Go {} or newer and, the first time, a module proxy.\n\
         Or set KUBEBUILDER_ASSETS to a folder with the binaries.",
        go_version(),
        folder = folder.display()
    );
    fs::rename(&unfinished, binary).expect("move the built binary into place");
}

/// The version of a module in the `require` block of go.mod.
pub fn pinned(module: &str) -> &'static str {
    line_after(module).unwrap_or_else(|| panic!("go.mod does not require {module}"))
}

fn go_version() -> &'static str {
    line_after("go").unwrap_or("of its go.mod")
}

/// The second word of the first line in go.mod whose first word is `word` and that has more than one word.
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
