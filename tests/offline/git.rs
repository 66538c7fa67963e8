//! Commits in place of the live state: `--target git:REV[:PATH]`, in repositories that each test creates with the real
//! git.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

/// A repository in its own folder, isolated from this machine's git configuration.
struct Repository {
    folder: TempDir,
}

/// The result of a `gantry` run.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Repository {
    fn new() -> Self {
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

    fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.root(), arguments)
    }

    /// Commits all files of the folder.
    fn commit(&self) {
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
    fn check(&self, arguments: &[&str]) -> Ended {
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

fn check_in(folder: &Path, arguments: &[&str]) -> Ended {
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
fn three_dots_are_where_the_branches_part() {
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
fn a_file_may_move_within_the_folder_and_one_that_goes_takes_its_objects_along() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.write("deploy/crds/other.yaml", crd_named("others", &["x"]));
    repository.commit();
    repository.git(&["mv", "deploy/crds/crd.yaml", "deploy/renamed.yml"]);
    repository.git(&["rm", "-q", "deploy/crds/other.yaml"]);
    repository.write("deploy/renamed.yml", crd(&["keep"]));
    repository.commit();
    let blocked = repository.check(&["-f", "deploy", "--target", "git:HEAD~1", "-o", "json"]);
    blocked.code(3);
    assert_eq!(blocked.changes(), [("update".into(), "samples.test.example.com".into())]);
    assert_eq!(blocked.report()["checks"][0]["findings"][0]["source"]["file"], "deploy/renamed.yml");
}

#[test]
fn a_path_that_is_new_is_said_and_one_that_nobody_has_is_an_error() {
    let repository = Repository::with_crd(&["keep"]);
    repository.write("new/crd.yaml", crd_named("others", &["x"]));
    repository.commit();
    let created = repository.check(&["-f", "new", "--target", "git:HEAD~1"]);
    created
        .code(0)
        .says("1 create")
        .says("notice: HEAD~1:new: does not exist at this commit")
        .says("--target git:HEAD~1:PATH");
    repository.check(&["-f", "new", "--target", "git:HEAD~1:new"]).code(0).says("notice: HEAD~1:new: does not exist");
    let slip = repository.check(&["-f", "new", "--target", "git:HEAD~1:deploy/crsd"]);
    slip.code(1).says("does not exist at this commit, nor at HEAD").says("did you mean deploy/crds?");
    repository.check(&["-f", "new", "--target", "git:HEAD~1:deploz/crds"]).code(1).says("did you mean deploy?");
    repository.write("docs/readme.md", "");
    repository.commit();
    let empty = repository.check(&["-f", "new", "--target", "git:HEAD:docs"]);
    empty.code(0).says("notice: HEAD:docs: no .yaml, .yml or .json file");
}

#[test]
fn what_moved_is_compared_with_what_it_was() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.write("deploy/crds/more.yaml", crd_named("others", &["x"]));
    repository.write("deploy/templates/chart.yaml", "name: {{ .Values.name }}\n");
    repository.commit();
    repository.git(&["checkout", "-q", "-b", "move"]);
    repository.git(&["mv", "deploy/crds", "charts"]);
    repository.write("charts/crd.yaml", crd(&["keep"]));
    repository.write("charts/new.yaml", crd_named("news", &["x"]));
    repository.commit();
    for target in ["git:main", "git:main:charts"] {
        let moved = repository.check(&["-f", "charts", "--target", target]);
        moved.code(3).says(REMOVED).says("create 1 (").says("update 1 (").says("unchanged 1 (");
        moved.says("main:charts: does not exist at this commit: 2 objects compared with deploy/crds/crd.yaml, deploy/crds/more.yaml");
    }
    // For a file that still exists, only objects that left it have moved.
    repository.git(&["checkout", "-q", "main"]);
    repository.write("all.yaml", format!("{}\n---\n{}", crd_named("stays", &["a"]), crd_named("goes", &["a", "b"])));
    repository.commit();
    repository.write("all.yaml", crd_named("stays", &["a"]));
    repository.write("split/goes.yaml", crd_named("goes", &["a"]));
    repository.write("split/stays.yaml", crd_named("stays", &[]));
    let split = repository.check(&["-f", "split", "--target", "git:main", "-o", "json"]);
    split.code(3);
    let actions =
        [("create".into(), "stays.test.example.com".into()), ("update".into(), "goes.test.example.com".into())];
    let mut changes = split.changes();
    changes.sort();
    assert_eq!(changes, actions);
}

#[test]
fn what_moved_into_the_folder_is_compared_with_what_it_was() {
    let repository = Repository::new();
    repository.write("deploy/cm.yaml", config_map("settings"));
    repository.write("crds/crd.yaml", crd(&["keep", "gone"]));
    // Next to the moved file there are files that cannot be read, and one that only mentions the object.
    repository
        .write("templates/chart.yaml", "kind: CustomResourceDefinition\nname: samples.test.example.com {{ x }}\n");
    repository.write("latin/a.yaml", b"CustomResourceDefinition samples.test.example.com \xe9\n");
    repository.commit();
    repository.git(&["mv", "crds/crd.yaml", "deploy/crd.yaml"]);
    let check = |flags: &[&str]| repository.check(&[&["--target", "git:HEAD"], flags].concat());
    check(&["-f", "deploy"]).code(0).says("2 objects unchanged");
    repository.write("deploy/crd.yaml", crd(&["keep"]));
    repository.write("deploy/more.yaml", config_map("more"));
    let said = "HEAD:deploy: does not define 1 object at this commit: compared with crds/crd.yaml";
    let moved = check(&["-f", "deploy"]);
    moved.code(3).says(REMOVED).says(said).says("create 1 (").says("update 1 (").says("unchanged 1 (");
    for file in ["deploy", "./deploy/", "deploy/crd.yaml"] {
        check(&["-f", "deploy/cm.yaml", "-f", file]).code(3).says(REMOVED);
    }
    // A name can be written with escapes.
    let escaped = crd(&["keep", "gone"]).replace("samples.test.example.com\n", "\"s\\u0061mples.test.example.com\"\n");
    repository.git(&["checkout", "-q", "-f", "HEAD"]);
    repository.write("crds/crd.yaml", escaped);
    repository.commit();
    repository.git(&["rm", "-q", "crds/crd.yaml"]);
    repository.write("deploy/crd.yaml", crd(&["keep"]));
    check(&["-f", "deploy"]).code(3).says(REMOVED).says(said);
    // Of the objects in a file, only those that left it have moved.
    repository.git(&["checkout", "-q", "-f", "HEAD"]);
    repository.write("all.yaml", format!("{}---\n{}", crd_named("stays", &["a"]), crd_named("goes", &["a", "b"])));
    repository.commit();
    fs::remove_file(repository.root().join("deploy/crd.yaml")).unwrap();
    repository.write("all.yaml", crd_named("stays", &["a"]));
    repository.write("deploy/goes.yaml", crd_named("goes", &["a"]));
    repository.write("deploy/stays.yaml", crd_named("stays", &[]));
    let split = check(&["-f", "deploy", "-o", "json"]);
    split.code(3);
    for (action, plural) in [("update", "goes"), ("create", "stays")] {
        let change = (action.to_owned(), format!("{plural}.test.example.com"));
        assert!(split.changes().contains(&change), "{change:?}\n{}", split.stdout);
    }
    let stays =
        "customresourcedefinition/stays.test.example.com counted as new: also in a file that still has it, all.yaml";
    split.says(&format!("HEAD:deploy: {stays}")).says("--target git:HEAD:all.yaml");
}

#[test]
fn what_moved_into_the_folder_from_one_of_several_places_is_asked_for() {
    let repository = Repository::new();
    repository.write("deploy/cm.yaml", config_map("settings"));
    for place in ["one", "two"] {
        repository.write(&format!("{place}/crd.yaml"), crd(&["keep", "gone"]));
    }
    repository.commit();
    repository.write("deploy/crd.yaml", crd(&["keep"]));
    let check = || repository.check(&["-f", "deploy", "--target", "git:main"]);
    check().code(0).says("counted as new: also in a file that still has it, one/crd.yaml");
    fs::remove_file(repository.root().join("two/crd.yaml")).unwrap();
    check().code(3).says("does not define 1 object at this commit: compared with two/crd.yaml");
    fs::remove_file(repository.root().join("one/crd.yaml")).unwrap();
    let unclear = check();
    unclear.code(1).says("--> main:deploy").says("does not define customresourcedefinition/samples.test.example.com");
    unclear.says("it is in one/crd.yaml and in two/crd.yaml").says("--target git:main:one/crd.yaml");
}

#[test]
fn a_path_of_the_target_is_all_that_counts_as_live() {
    let repository = Repository::new();
    repository.write("deploy/cm.yaml", config_map("settings"));
    repository.write("crds/crd.yaml", crd(&["keep", "gone"]));
    repository.commit();
    repository.git(&["mv", "crds/crd.yaml", "deploy/crd.yaml"]);
    repository.write("deploy/crd.yaml", crd(&["keep"]));
    let named = repository.check(&["-f", "deploy", "--target", "git:main:deploy"]);
    named.code(0).says("1 create");
    named.says("customresourcedefinition/samples.test.example.com counted as new: at this commit in crds/crd.yaml");
    named.says("--target git:main:crds/crd.yaml");
    repository.check(&["-f", "deploy", "--target", "git:main:."]).code(3).says(REMOVED);
}

#[test]
fn a_copy_is_new_and_what_was_in_two_places_is_asked_for() {
    let repository = Repository::new();
    for overlay in ["dev", "prod"] {
        repository.write(&format!("overlays/{overlay}/crd.yaml"), crd(&["keep", "gone"]));
    }
    repository.commit();
    repository.write("overlays/staging/crd.yaml", crd(&["keep"]));
    let copied = repository.check(&["-f", "overlays/staging", "--target", "git:main"]);
    copied.code(0).says("1 create").says("main:overlays/staging: does not exist at this commit");
    copied.says("is also in overlays/dev/crd.yaml, which still has it").says("--target git:main:overlays/dev/crd.yaml");
    repository.check(&["-f", "overlays/staging", "--target", "git:main:overlays/dev/crd.yaml"]).code(3).says(REMOVED);
    fs::remove_dir_all(repository.root().join("overlays/prod")).unwrap();
    repository.check(&["-f", "overlays/staging", "--target", "git:main"]).code(3).says("overlays/prod/crd.yaml");
    fs::remove_dir_all(repository.root().join("overlays/dev")).unwrap();
    let unclear = repository.check(&["-f", "overlays/staging", "--target", "git:main"]);
    unclear.code(1).says("samples.test.example.com is in overlays/dev/crd.yaml and in overlays/prod/crd.yaml");
    unclear.says("name the one to compare with: --target git:main:overlays/dev/crd.yaml");
}

#[test]
fn the_work_tree_may_be_elsewhere() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    let (root, crds) = (repository.root(), repository.root().join("deploy/crds"));
    let run = |folder: &Path, file: &str, work_tree: Option<&Path>| {
        let mut check = command(folder, &["check", "-f", file, "--target", "git:main"]);
        check.env("GIT_DIR", root.join(".git"));
        work_tree.map(|work_tree| check.env("GIT_WORK_TREE", work_tree));
        ended(check)
    };
    run(repository.folder.path(), crds.to_str().unwrap(), Some(&root)).code(3).says(REMOVED);
    // Without it, git uses the working directory as the root.
    let moved = run(&root.join("deploy"), "crds", None);
    moved
        .code(3)
        .says(REMOVED)
        .says("main:crds: does not exist at this commit: 1 object compared with deploy/crds/crd.yaml");
    check_in(&root.join(".git"), &["-f", "../deploy", "--target", "git:main"]).code(2).says("is in its .git");
}

#[test]
fn a_name_of_two_things_is_said_and_one_of_no_commit_is_refused() {
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
fn a_damaged_repository_is_called_one() {
    let repository = Repository::with_crd(&["keep"]);
    let object = |name: &str| {
        let hash = repository.git(&["rev-parse", name]);
        repository.root().join(".git/objects").join(&hash[..2]).join(&hash[2..])
    };
    let check = || repository.check(&["-f", "deploy", "--target", "git:main"]);
    for (name, message) in [
        ("HEAD:deploy/crds/crd.yaml", "main:deploy/crds/crd.yaml"),
        ("HEAD:deploy", "git failed: "),
        ("HEAD", "git failed: "),
    ] {
        let path = object(name);
        let whole = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        let damaged = check();
        damaged.code(1).says(message).says("git fsck").says("git fetch --refetch");
        assert!(
            !damaged.stderr.contains("error: error:") && !damaged.stderr.contains("failed: error"),
            "{}",
            damaged.stderr
        );
        fs::remove_file(&path).unwrap();
        fs::write(&path, whole).unwrap();
        check().code(0);
    }
}

#[test]
fn a_revision_that_is_not_there_is_explained() {
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

#[test]
fn a_bare_repository_and_another_work_tree_have_the_same_commits() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    let bare = repository.clone(&["--bare"]);
    let manifests = repository.folder.path().join("new.yaml");
    fs::write(&manifests, crd(&["keep"])).unwrap();
    let manifests = manifests.to_str().unwrap();
    check_in(&bare, &["-f", manifests, "--target", "git:main:deploy"]).code(3).says(REMOVED);
    check_in(&bare, &["-f", manifests, "--target", "git:main"]).code(2).says("the repository is bare");
    let mut elsewhere = command(repository.folder.path(), &["check", "-f", manifests, "--target", "git:main:deploy"]);
    elsewhere.env("GIT_DIR", &bare);
    ended(elsewhere).code(3).says(REMOVED);

    let linked = repository.folder.path().join("linked");
    repository.git(&["worktree", "add", "-q", "-b", "topic", linked.to_str().unwrap()]);
    fs::write(linked.join("deploy/crds/crd.yaml"), crd(&["keep"])).unwrap();
    check_in(&linked, &["-f", "deploy", "--target", "git:main"]).code(3).says(REMOVED);
    check_in(&linked.join("deploy"), &["-f", "crds", "--target", "git:HEAD"]).code(3).says(REMOVED);
}

#[test]
fn a_shallow_clone_says_what_to_fetch() {
    let repository = Repository::with_crd(&["keep"]);
    repository.write("deploy/crds/crd.yaml", crd(&["keep", "more"]));
    repository.commit();
    repository.git(&["checkout", "-q", "-b", "topic"]);
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    repository.commit();
    let clone = repository.clone(&["--depth=1", "--branch=topic"]);
    let check = |target: &str| check_in(&clone, &["-f", "deploy", "--target", target]);
    check("git:HEAD").code(0);
    check("git:HEAD~1").code(1).says("this clone is shallow").says("git fetch --deepen=50");
    check("git:main").code(1).says("git fetch --depth=1 origin main, then use FETCH_HEAD");
    check("git:origin/main").code(1).says("git fetch --depth=1 origin main:refs/remotes/origin/main");
    git(&clone, &["fetch", "-q", "--depth=1", "origin", "main:refs/remotes/origin/main"]);
    check("git:origin/main").code(3).says(REMOVED);
    check("git:FETCH_HEAD").code(3).says(REMOVED);
    check("git:main").code(1).says("did you mean origin/main?");
    check("git:origin/main...").code(1).says("is shallow").says("git fetch --unshallow");
    git(&clone, &["fetch", "-q", "--unshallow"]);
    check("git:origin/main...").code(3).says(REMOVED);
}

#[test]
fn a_partial_clone_fetches_what_it_needs() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.git(&["config", "uploadpack.allowFilter", "true"]);
    repository.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    repository.commit();
    let clone = repository.clone(&["--filter=blob:none"]);
    check_in(&clone, &["-f", "deploy", "--target", "git:HEAD~1"]).code(3).says(REMOVED);
    // Without its remote it cannot, and reports so.
    let offline = repository.folder.path().join("offline");
    fs::create_dir(&offline).unwrap();
    fs::remove_dir_all(&clone).unwrap();
    let clone = repository.clone(&["--filter=blob:none"]);
    fs::rename(repository.root(), offline.join("moved")).unwrap();
    check_in(&clone, &["-f", "deploy", "--target", "git:HEAD~1"]).code(1).says("git failed: ");
}

#[test]
fn a_submodule_is_said_and_not_followed() {
    let (inner, outer) = (Repository::with_crd(&["keep"]), Repository::with_crd(&["keep"]));
    let inner = inner.root();
    outer.git(&["submodule", "--quiet", "add", inner.to_str().unwrap(), "deploy/sub"]);
    outer.commit();
    fs::remove_dir_all(outer.root().join("deploy/sub")).unwrap();
    let check = |target: &str| outer.check(&["-f", "deploy", "--target", target]);
    check("git:main").code(0).says("notice: main:deploy/sub: a submodule; its files are not read");
    for path in ["deploy/sub", "deploy/sub/deploy"] {
        let refused = check(&format!("git:main:{path}"));
        refused.code(1).says("deploy/sub is a submodule").says("run gantry in deploy/sub");
    }
}

#[cfg(unix)]
#[test]
fn links_lead_to_what_the_commit_has_there() {
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
fn what_cannot_be_read_is_named_with_its_commit() {
    let repository = Repository::new();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n";
    repository.write("lfs/crd.yaml", pointer);
    repository.write("latin/crd.yaml", b"a: 1\nb: \xe9t\xe9\n");
    repository.write("broken/crd.yaml", "a: [1\n");
    repository.write("broken/list.yaml", "- 1\n");
    repository.write("twice/a.yaml", crd(&["a"]));
    repository.write("twice/b.yaml", crd(&["b"]));
    repository.write("deploy/crd.yaml", crd(&["a"]));
    repository.commit();
    let check = |path: &str| repository.check(&["-f", "deploy", "--target", &format!("git:main:{path}")]);
    check("lfs").code(1).says("a Git LFS pointer").says("main:lfs/crd.yaml");
    check("latin").code(1).says("the file is not UTF-8: byte 8 is 0xE9").says("main:latin/crd.yaml:2");
    check("broken").code(1).says("main:broken/crd.yaml").says("main:broken/list.yaml");
    check("twice").code(1).says("is defined twice in this commit").says("main:twice/b.yaml");
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_need_not_be_text() {
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
fn git_says_itself_why_it_does_not_read_a_repository() {
    let repository = Repository::with_crd(&["keep"]);
    let arguments = ["check", "-f", "deploy", "--target", "git:main"];
    let mut foreign = command(&repository.root(), &arguments);
    foreign.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    ended(foreign)
        .code(1)
        .says("detected dubious ownership in repository at")
        .says("git config --global --add safe.directory");
    let mut missing = command(&repository.root(), &arguments);
    missing.env("PATH", repository.folder.path());
    ended(missing).code(1).says("git is not installed");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("crd.yaml"), crd(&["keep"])).unwrap();
    let mut nowhere = command(folder.path(), &["check", "-f", "crd.yaml", "--target", "git:main"]);
    nowhere.env("GIT_CEILING_DIRECTORIES", folder.path().parent().unwrap());
    ended(nowhere).code(1).says("the working directory is not in a git repository");
}

#[cfg(unix)]
#[test]
fn nothing_of_the_repository_is_run_and_nothing_is_written() {
    use std::os::unix::fs::PermissionsExt as _;
    let repository = Repository::with_crd(&["keep"]);
    let ran = repository.folder.path().join("ran");
    let program = format!("#!/bin/sh\ntouch '{}'\n", ran.display());
    for hook in ["post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"] {
        let hook = repository.root().join(".git/hooks").join(hook);
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, &program).unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = repository.folder.path().join("program");
    fs::write(&script, &program).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    for key in ["core.pager", "core.fsmonitor", "filter.x.smudge", "diff.x.textconv", "alias.cat-file", "core.editor"] {
        repository.git(&["config", key, script]);
    }
    repository.write(".gitattributes", "*.yaml filter=x diff=x text eol=crlf\n");
    let before = fs::read(repository.root().join(".git/index")).unwrap();
    let mut check = command(&repository.root(), &["check", "-f", "deploy", "--target", "git:main"]);
    check.env("GIT_PAGER", script).env("PAGER", script).env("GIT_EXTERNAL_DIFF", script);
    ended(check).code(0).says("1 object unchanged");
    assert!(!ran.exists());
    assert_eq!(fs::read(repository.root().join(".git/index")).unwrap(), before);
}

#[test]
fn a_bundle_is_read_as_one() {
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
        report.to_string().replace("a commit has no users", "a folder has no users")
    };
    let (of_folder, of_commit) = (report("dir:deploy"), report("git:HEAD:deploy"));
    assert!(of_folder.contains("gone") && !of_folder.contains("geheim"), "{of_folder}");
    assert_eq!(of_commit, of_folder);
}

/// A renderer that works on every machine: it prints the files of the folder and of a base next to it.
#[cfg(unix)]
const RENDER: &str = "sh -c 'cat \"$1\"/crd.yaml \"$1\"/../base/*.yaml' render {dir}";

#[cfg(unix)]
#[test]
fn both_sides_are_rendered_by_the_same_command() {
    use std::os::unix::fs::symlink;
    let repository = Repository::new();
    repository.write("overlays/prod/crd.yaml", crd(&["keep", "gone"]));
    repository.write("overlays/base/base.yaml", format!("---\n{}", crd_named("others", &["a", "b"])));
    fs::create_dir(repository.root().join("overlays/linked")).unwrap();
    symlink("../prod/crd.yaml", repository.root().join("overlays/linked/crd.yaml")).unwrap();
    repository.commit();
    let check = |folder: &str, flags: &[&str]| {
        let flags = [&["--render", RENDER, "--target", "git:main", "-o", "json"], flags].concat();
        check_in(&repository.root().join(folder), &flags)
    };
    check("", &["-f", "overlays/prod"]).code(0);
    // The commit is rendered with its own base.
    repository.write("overlays/base/base.yaml", format!("---\n{}", crd_named("others", &["a"])));
    for (folder, file) in [("", "overlays/prod"), ("overlays", "prod"), ("overlays/prod", "."), ("", "overlays/linked")]
    {
        let blocked = check(folder, &["-f", file]);
        blocked.code(3);
        let finding = &blocked.report()["checks"][0]["findings"][0];
        assert_eq!(finding["object"]["name"], "others.test.example.com", "{folder} {file}");
        assert_eq!(finding["source"]["file"], format!("{file} (rendered)"));
    }
    // The rendered file does not exist on a code host: the finding is shown at the source.
    repository.write("overlays/prod/kustomization.yaml", "resources: [crd.yaml, ../base]\n");
    let shown_at = |format: &str, pointer: &str| {
        let flags = ["-f", "overlays/prod", "--render", RENDER, "--target", "git:main", "-o", format];
        let written = repository.check(&flags);
        written.code(3).report().pointer(pointer).cloned().unwrap_or_default()
    };
    let file = "overlays/prod/kustomization.yaml";
    let place = json!({"artifactLocation": {"uri": file, "uriBaseId": "%SRCROOT%"}});
    assert_eq!(shown_at("sarif", "/runs/0/results/0/locations/0/physicalLocation"), place);
    assert_eq!(shown_at("gitlab", "/0/location"), json!({"path": file, "lines": {"begin": 1}}));
    fs::remove_file(repository.root().join(file)).unwrap();
    assert_eq!(shown_at("gitlab", "/0/location/path"), "overlays/prod");
    // A path that the commit does not have is an empty cluster, as without a renderer.
    repository.write("overlays/new/crd.yaml", crd(&["keep"]));
    check("", &["-f", "overlays/new"]).code(0).says("overlays/new: does not exist at this commit");
    // Other files that the command reads also come from the commit.
    let render = "sh -c 'test -e overlays/prod/crd.yaml && cat \"$1\"/crd.yaml' render {dir}";
    repository.check(&["-f", "overlays/prod", "--render", render, "--target", "git:main"]).code(0);
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    let of_folder = repository.check(&["-f", "overlays/prod", "--render", RENDER, "--target", "dir:overlays/prod"]);
    of_folder.code(0).says("1 create");
}

#[cfg(unix)]
#[test]
fn what_a_renderer_says_is_shown_and_harmless() {
    let repository = Repository::with_crd(&["keep"]);
    let check = |render: &str| repository.check(&["-f", "deploy", "--render", render, "--target", "git:main"]);
    let failed = check("sh -c 'printf \"no such base\\033[31m\" >&2; exit 7' {dir}");
    failed.code(1).says("\"sh\", which renders deploy, failed (exit status: 7): no such base");
    assert!(!failed.stderr.contains('\u{1b}'), "{}", failed.stderr);
    check("no-such-program {dir}").code(1).says("\"no-such-program\", which renders deploy, is not installed");
    check("cat").code(2).says("has no placeholder for the folder");
    check("cat 'x {dir}").code(2).says("an unclosed quote");
    let stdin = repository.check(&["-f", "-", "--render", "cat {dir}", "--target", "git:main"]);
    stdin.code(2).says("standard input cannot be rendered");
    // Only the commit's side fails.
    repository.write("deploy/crds/ready", "");
    let late = check("sh -c 'cat \"$1\"/crds/ready \"$1\"/crds/crd.yaml' render {dir}");
    late.code(1).says("which renders main:deploy, failed").says("ready: No such file");
}

#[cfg(unix)]
#[test]
fn no_program_comes_with_the_project() {
    let repository = Repository::with_crd(&["keep"]);
    let ran = repository.folder.path().join("ran");
    let config = format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\nrender: touch {} {{dir}}\n", ran.display());
    for (file, said) in [
        ("gantry.yaml", "the project file cannot set \"render\""),
        ("deploy/config.yaml", "a Config document among the manifests cannot set \"render\""),
    ] {
        repository.write(file, &config);
        repository.check(&["-f", "deploy", "--target", "git:main"]).code(2).says(said);
        fs::remove_file(repository.root().join(file)).unwrap();
        assert!(!ran.exists());
    }
    // The user's own file may set it.
    let own = repository.folder.path().join("own.yaml");
    fs::write(&own, "apiVersion: gantry.dev/v1alpha1\nkind: Config\nrender: cat {dir}/crds/crd.yaml\n").unwrap();
    let rendered = repository.check(&["-f", "deploy", "--target", "git:main", "-c", own.to_str().unwrap()]);
    rendered.code(0).says("1 object unchanged");
}
