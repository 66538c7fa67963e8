//! Commits in place of the live state: `--target git:REV[:PATH]`, in repositories that each test creates with the real
//! git.

mod gate;
mod moved;
mod rendered;
mod repositories;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

/// A repository in its own folder, isolated from this machine's git configuration.
pub(super) struct Repository {
    folder: TempDir,
}

/// The result of a `gantry` run.
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Repository {
    pub(super) fn new() -> Self {
        let repository = Repository { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(repository.root()).unwrap();
        repository.git(&["init", "-q", "-b", "main"]);
        repository
    }

    /// A repository with one commit that has this CRD in `deploy/crds/crd.yaml`.
    fn with_crd(fields: &[&str]) -> Self {
        let repository = Self::new();
        repository.write("deploy/crds/crd.yaml", crd(fields));
        repository.commit();
        repository
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    pub(super) fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.root(), arguments)
    }

    /// Commits all files of the folder.
    pub(super) fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "change"]);
    }

    /// A clone next to it, over a protocol that supports partial clones.
    fn clone(&self, options: &[&str]) -> PathBuf {
        let (from, to) = (format!("file://{}", self.root().display()), self.folder.path().join("clone"));
        let arguments = [&["clone", "-q"], options, &[&from, to.to_str().unwrap()]].concat();
        git(self.folder.path(), &arguments);
        to
    }

    /// Runs `gantry check` in the folder.
    pub(super) fn check(&self, arguments: &[&str]) -> Ended {
        check_in(&self.root(), arguments)
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
        command.env_remove(name);
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1")
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let user = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "protocol.file.allow=always"];
    let mut command = Command::new("git");
    let output = quiet(&mut command).args(user).args(arguments).current_dir(folder).output().expect("git");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"));
    quiet(&mut command).args(arguments).current_dir(folder).env("HOME", folder).env_remove("XDG_CONFIG_HOME");
    command
}

fn ended(mut command: Command) -> Ended {
    let output = command.output().expect("gantry");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

pub(super) fn check_in(folder: &Path, arguments: &[&str]) -> Ended {
    ended(command(folder, &[&["check"], arguments].concat()))
}

impl Ended {
    #[track_caller]
    fn code(&self, expected: i32) -> &Self {
        assert_eq!(self.code, Some(expected), "{}\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    fn says(&self, text: &str) -> &Self {
        // Long lines are wrapped.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (stdout, stderr) = (words(&self.stdout), words(&self.stderr));
        assert!(stderr.contains(text) || stdout.contains(text), "{text}\n{}\n{}", self.stdout, self.stderr);
        self
    }

    fn report(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{}\n{}", self.stdout, self.stderr))
    }

    /// The action and the object of each change.
    fn changes(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let report = self.report();
        let changes = report["changes"].as_array().expect("changes");
        changes.iter().map(|change| (text(&change["action"]), text(&change["object"]["name"]))).collect()
    }
}

/// A CRD whose only version has these fields.
fn crd(fields: &[&str]) -> String {
    crd_named("samples", fields)
}

fn crd_named(plural: &str, fields: &[&str]) -> String {
    let fields: String = fields.iter().map(|field| format!("              {field}: {{type: string}}\n")).collect();
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.test.example.com
spec:
  group: test.example.com
  names: {{kind: Kind{plural}, plural: {plural}}}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
{fields}"
    )
}

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n")
}

const REMOVED: &str = "NoExistingFieldRemoved";

#[test]
fn a_pull_request_that_removes_a_field_is_blocked_and_the_next_one_passes() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.git(&["checkout", "-q", "-b", "remove"]);
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    repository.commit();
    let blocked = repository.check(&["-f", "deploy", "--target", "git:main", "-o", "json"]);
    blocked.code(3);
    let finding = &blocked.report()["checks"][0]["findings"][0];
    assert_eq!(finding["rule"], REMOVED);
    assert_eq!(finding["source"], json!({"file": "deploy/crds/crd.yaml", "line": 19, "column": 13}), "{finding}");

    repository.write("deploy/crds/crd.yaml", crd(&["keep", "gone"]));
    repository.commit();
    repository.check(&["-f", "deploy", "--target", "git:main"]).code(0);
    // Compared with the previous commit, this one only adds.
    repository.check(&["-f", "deploy", "--target", "git:HEAD~1"]).code(0).says("1 update");
    repository.check(&["-f", "deploy", "--target", "git:HEAD"]).code(0).says("1 object unchanged");
}

#[test]
fn three_dots_compare_with_the_merge_base() {
    let repository = Repository::with_crd(&["keep"]);
    repository.git(&["checkout", "-q", "-b", "topic"]);
    repository.commit();
    repository.git(&["checkout", "-q", "main"]);
    // What others added to the main branch in the meantime does not count as removed.
    repository.write("deploy/crds/crd.yaml", crd(&["keep", "later"]));
    repository.commit();
    repository.git(&["checkout", "-q", "topic"]);
    repository.check(&["-f", "deploy", "--target", "git:main"]).code(3);
    repository.check(&["-f", "deploy", "--target", "git:main..."]).code(0).says("1 object unchanged");
    repository.check(&["-f", "deploy", "--target", "git:main...topic"]).code(0).says("1 object unchanged");
    repository.git(&["checkout", "-q", "--orphan", "other"]);
    repository.write("other", "");
    repository.commit();
    let alone = repository.check(&["-f", "deploy", "--target", "git:main..."]);
    alone.code(1).says("\"main\" and \"HEAD\" have no commit in common");
}

#[test]
fn the_paths_of_the_manifests_are_read_from_the_root_of_the_repository() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.write("other/crd.yaml", crd_named("others", &["x"]));
    repository.commit();
    repository.git(&["tag", "-a", "v1", "-m", "v1"]);
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    let deep = repository.root().join("deploy/crds");
    for (folder, manifests) in [(&deep, "."), (&deep, ".."), (&deep, "crd.yaml"), (&repository.root(), "./deploy/")] {
        check_in(folder, &["-f", manifests, "--target", "git:v1"]).code(3).says(REMOVED);
    }
    let absolute = repository.root().join("deploy");
    check_in(&deep, &["-f", absolute.to_str().unwrap(), "--target", "git:v1"]).code(3).says(REMOVED);
    // A path of the target is relative to the root, wherever gantry runs.
    check_in(&deep, &["-f", ".", "--target", "git:v1:deploy/crds/crd.yaml"]).code(3);
    check_in(&deep, &["-f", ".", "--target", "git:v1:."]).code(3);
    check_in(&deep, &["-f", ".", "--target", "git:v1:other"]).code(0).says("1 create");
    let both = repository.check(&["-f", "deploy", "-f", "other", "--target", "git:v1", "-o", "json"]);
    both.code(3);
    let actions =
        [("update".into(), "samples.test.example.com".into()), ("unchanged".into(), "others.test.example.com".into())];
    assert_eq!(both.changes(), actions);
}

#[test]
fn manifests_without_a_path_in_the_repository_need_one() {
    let repository = Repository::with_crd(&["keep"]);
    let outside = repository.folder.path().join("outside.yaml");
    fs::write(&outside, crd(&[])).unwrap();
    let outside = outside.to_str().unwrap();
    let refused = repository.check(&["-f", outside, "--target", "git:main"]);
    refused.code(2).says("outside.yaml is not in the git repository").says("--target git:main:PATH");
    repository.check(&["-f", outside, "--target", "git:main:deploy"]).code(3).says(REMOVED);
    let refused = repository.check(&["-f", "-", "--target", "git:main"]);
    refused.code(1).says("no objects found in -");
    let text = repository.root().join("deploy/crds/crd.yaml");
    let mut piped = command(&repository.root(), &["check", "-f", "-", "--target", "git:main"]);
    piped.stdin(fs::File::open(text).unwrap());
    ended(piped).code(2).says("standard input has no path at a commit").says("--target git:main:PATH");
}

#[test]
fn an_ambiguous_revision_is_a_notice_and_one_without_a_commit_is_refused() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.git(&["tag", "release"]);
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    repository.commit();
    repository.git(&["branch", "release"]);
    repository.git(&["config", "core.warnAmbiguousRefs", "false"]);
    let check = |target: &str| repository.check(&["-f", "deploy", "--target", target]);
    let both = "notice: \"release\" is ambiguous: refs/tags/release and refs/heads/release; git uses the first";
    check("git:release").code(3).says(both).says("--target git:refs/heads/release");
    check("git:release...").code(3).says(both);
    let whole = check("git:refs/heads/release");
    whole.code(0).says("1 object unchanged");
    assert!(!whole.stderr.contains("git takes"), "{}", whole.stderr);
    repository.git(&["tag", "file", &repository.git(&["rev-parse", "HEAD:deploy/crds/crd.yaml"])]);
    check("git:file").code(1).says("\"file\" is a blob, not a commit").says("--target git:REV:PATH");
}

#[test]
fn an_unknown_revision_is_explained() {
    let repository = Repository::with_crd(&["keep"]);
    let check = |target: &str| repository.check(&["-f", "deploy", "--target", target]);
    check("git:mian").code(1).says("there is no commit \"mian\" in this repository").says("did you mean \"main\"?");
    check("git:HEAD~5").code(1).says("there is no commit \"HEAD~5\"");
    check("git:HEAD^{tree}").code(1).says("\"HEAD^{tree}\" is a tree, not a commit");
    check("git:--output=x").code(2).says("a revision does not start with -");
    check("git:-h").code(2);
    check("git:main..topic").code(2).says("a range of commits");
    check("git:main:../x").code(2).says("is not relative to the root");
    let deploy = ended(command(&repository.root(), &["deploy", "-f", "deploy", "--target", "git:nope", "-y"]));
    deploy.code(2).says("a commit of git cannot be deployed to");
    ended(command(&repository.root(), &["deploy", "-f", "deploy", "--target", "git:main", "--dry-run"])).code(0);
    ended(command(&repository.root(), &["diff", "-f", "deploy", "--target", "git:main"])).code(0);
    assert!(!repository.root().join("x").exists());
}

#[cfg(unix)]
#[test]
fn links_are_followed_within_the_commit() {
    use std::os::unix::fs::symlink;
    let repository = Repository::with_crd(&["keep", "gone"]);
    let root = repository.root();
    fs::create_dir(root.join("links")).unwrap();
    symlink("../deploy/crds/crd.yaml", root.join("links/crd.yaml")).unwrap();
    symlink("nowhere", root.join("links/broken.yaml")).unwrap();
    symlink("../deploy", root.join("links/folder.yaml")).unwrap();
    symlink("deploy/crds", root.join("current")).unwrap();
    fs::create_dir(root.join("more")).unwrap();
    symlink("../deploy/crds", root.join("more/shared")).unwrap();
    symlink("../deploy/crds/crd.yaml", root.join("more/README")).unwrap();
    repository.commit();
    fs::create_dir(root.join("out")).unwrap();
    symlink("/etc/hostname", root.join("out/host.yaml")).unwrap();
    repository.commit();
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    let check = |target: &str| repository.check(&["-f", "deploy", "--target", target]);
    let linked = check("git:HEAD:links");
    linked.code(3).says(REMOVED).says("HEAD:links/broken.yaml: a dangling link at this commit");
    linked.says("HEAD:links/folder.yaml: a link to a directory is not followed");
    let unread = "/shared: a link to a directory is not followed; nothing in it counts as live";
    check("git:HEAD:more").code(0).says(&format!("HEAD:more{unread}"));
    let more = format!("dir:{}", root.join("more").display());
    check(&more).code(0).says(unread);
    symlink("nowhere", root.join("more/broken.yaml")).unwrap();
    check(&more).code(1).says("broken.yaml");
    fs::remove_file(root.join("more/broken.yaml")).unwrap();
    check("git:HEAD:current").code(3).says(REMOVED);
    check("git:HEAD:current/crd.yaml").code(3).says(REMOVED);
    check("git:HEAD:links/crd.yaml").code(3).says(REMOVED);
    check("git:HEAD:out").code(1).says("a link out of the repository, to /etc/hostname");
    // `-f` itself can be such a link.
    repository.check(&["-f", "current", "--target", "git:HEAD"]).code(3).says(REMOVED);
}

#[test]
fn unreadable_files_are_named_with_their_commit() {
    let repository = Repository::new();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";
    repository.write("lfs/crd.yaml", pointer);
    repository.write("latin/crd.yaml", b"a: 1\nb: \xe9t\xe9\n");
    repository.write("broken/crd.yaml", "a: [1\n");
    repository.write("broken/list.yaml", "- 1\n");
    repository.write("twice/a.yaml", crd(&["a"]));
    repository.write("twice/b.yaml", crd(&["b"]));
    repository.write("repeated/a.yaml", crd(&["a"]));
    repository.write("repeated/b.yaml", crd(&["a"]));
    repository.write("deploy/crd.yaml", crd(&["a"]));
    repository.commit();
    let check = |path: &str| repository.check(&["-f", "deploy", "--target", &format!("git:main:{path}")]);
    check("lfs").code(1).says("a Git LFS pointer").says("main:lfs/crd.yaml");
    check("latin").code(1).says("the file is not UTF-8: byte 8 is 0xE9").says("main:latin/crd.yaml:2");
    check("broken").code(1).says("main:broken/crd.yaml").says("main:broken/list.yaml");
    check("twice").code(1).says("is defined twice in this commit").says("main:twice/b.yaml");
    check("repeated").code(0);
}

#[cfg(target_os = "linux")]
#[test]
fn file_names_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt as _;
    let repository = Repository::new();
    for name in [&b"caf\xe9.yaml"[..], b"a\nb.yaml", b"*.yaml", b":(top)x.yaml", b"-r.yaml", b"\x1b[31mred.yaml"] {
        let field = name.iter().map(|byte| format!("f{byte}")).collect::<String>();
        let folder = repository.root().join("deploy");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(std::ffi::OsStr::from_bytes(name)), crd_named(&field, &["x"])).unwrap();
    }
    repository.commit();
    let unchanged = repository.check(&["-f", "deploy", "--target", "git:main", "-o", "json"]);
    unchanged.code(0);
    assert_eq!(unchanged.changes().iter().filter(|(action, _)| action == "unchanged").count(), 6);
    for (path, number) in [(":(top)x.yaml", 1), ("*.yaml", 1), ("-r.yaml", 1), ("a\nb.yaml", 1)] {
        let target = format!("git:main:deploy/{path}");
        let one = repository.check(&["-f", "deploy", "--target", &target, "-o", "json"]);
        assert_eq!(one.changes().iter().filter(|(action, _)| action == "unchanged").count(), number, "{path}");
    }
    repository.write(":(top)deploy", crd_named("magic", &["x"]));
    repository.commit();
    let magic = repository.check(&["-f", ":(top)deploy", "--target", "git:main", "-o", "json"]);
    assert_eq!(magic.changes(), [("unchanged".into(), "magic.test.example.com".into())]);
    let red = repository.check(&["-f", "deploy", "--target", "git:main:deploy/\u{1b}[31m.yaml"]);
    red.code(1);
    assert!(!red.stderr.contains('\u{1b}'), "{}", red.stderr);
}

#[test]
fn a_bundle_in_a_commit_is_read_as_a_bundle() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    let annotations = "annotations: {operators.operatorframework.io.bundle.mediatype.v1: registry+v1, \
        operators.operatorframework.io.bundle.package.v1: p, \
        operators.operatorframework.io.bundle.manifests.v1: manifests/}\n";
    repository.write("bundle/metadata/annotations.yaml", annotations);
    repository.write("bundle/manifests/crd.txt", crd(&["keep", "gone"]));
    repository.write("bundle/tests/not-a-manifest.yaml", "[]\n");
    repository.commit();
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    repository.check(&["-f", "deploy", "--target", "git:main:bundle"]).code(3).says(REMOVED);
}

#[test]
fn a_commit_answers_as_the_folder_of_its_files() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    let object =
        "apiVersion: test.example.com/v1\nkind: Kindsamples\nmetadata: {name: one, namespace: a}\nspec: {gone: x}\n";
    repository.write("deploy/object.yaml", object);
    repository
        .write("deploy/secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: geheim}\n");
    repository.commit();
    let desired = repository.folder.path().join("desired.yaml");
    fs::write(&desired, crd(&["keep"])).unwrap();
    let checks = "CRDUpgradeSafety,CustomResourceValidation,PermissionValidation,ConversionWebhook,DeletionSafety";
    let report = |target: &str| {
        let flags = ["-f", desired.to_str().unwrap(), "--preflight", checks, "-o", "json", "--target", target];
        let mut report = repository.check(&flags).report();
        report["target"].take();
        let report = report.to_string().replace("a commit has no users", "a folder has no users");
        report.replace("HEAD has gone here", "the live CRD has gone here")
    };
    let (of_folder, of_commit) = (report("dir:deploy"), report("git:HEAD:deploy"));
    assert!(of_folder.contains("gone") && !of_folder.contains("geheim"), "{of_folder}");
    assert_eq!(of_commit, of_folder);
}

#[test]
fn a_kind_that_a_commit_lacks_does_not_end_the_check_of_the_others() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    let certificate = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: a, namespace: team}\n";
    repository.write("deploy/certificate.yaml", certificate);
    repository.commit();
    let check = || repository.check(&["-f", "deploy", "--target", "git:main"]);
    check().code(0).says("neither main nor a manifest defines the kind: certificate.cert-manager.io/a");
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    check().code(3).says(REMOVED);
    // A kind of Kubernetes itself is known, so this one is a mistake.
    repository.write("deploy/crds/crd.yaml", crd(&["keep", "gone"]));
    repository.write("deploy/certificate.yaml", "apiVersion: v1\nkind: ConfigMop\nmetadata: {name: a}\n");
    check().code(3).says("ConfigMop");
}

#[test]
fn a_crd_that_left_the_manifests_is_a_notice() {
    let repository = Repository::with_crd(&["keep"]);
    repository.write("deploy/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: team}\n");
    repository.commit();
    let told = "main has a CRD that is no longer among the manifests: ";
    let check = || repository.check(&["-f", "deploy", "--target", "git:main"]);
    assert!(!check().code(0).stderr.contains(told));
    fs::remove_file(repository.root().join("deploy/crds/crd.yaml")).unwrap();
    check().code(0).says(told).says("its objects are deleted, too");
}
