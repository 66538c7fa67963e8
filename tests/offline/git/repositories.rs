//! Unusual, damaged and hostile repositories.

use std::fs;
use std::path::Path;

use super::{REMOVED, Repository, check_in, command, crd, ended, git};

#[test]
fn the_work_tree_may_be_outside_of_the_working_directory() {
    let repository = Repository::with_removed_field();
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
fn a_damaged_repository_is_reported() {
    let repository = Repository::with_crd(&["keep"]);
    let object = |name: &str| {
        let hash = repository.git(&["rev-parse", name]);
        repository.root().join(".git/objects").join(&hash[..2]).join(&hash[2..])
    };
    let check = || repository.check_deploy("git:main");
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
fn the_command_for_a_shallow_clone_fetches_the_merge_base() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.git(&["branch", "topic"]);
    for change in ["one", "two"] {
        repository.write(change, change);
        repository.commit();
    }
    repository.git(&["checkout", "-q", "topic"]);
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    repository.commit();
    repository.write("other", "text");
    repository.commit();
    for (target, command, fetched) in [
        ("git:origin/main...", "git fetch --unshallow origin main:refs/remotes/origin/main", "git:origin/main..."),
        ("git:main...", "git fetch --unshallow origin main", "git:FETCH_HEAD..."),
    ] {
        let clone = repository.clone(&["--depth=1", "--branch=topic"]);
        let check = |target: &str| check_in(&clone, &["-f", "deploy", "--target", target]);
        check(target).code(1).says(command);
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        git(&clone, &words);
        check(fetched).code(3).says(REMOVED);
    }
}

#[test]
fn a_partial_clone_says_what_to_fetch_and_runs_no_program_of_its_configuration() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.git(&["config", "uploadpack.allowFilter", "true"]);
    repository.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    repository.commit();
    for filter in ["--filter=blob:none", "--filter=tree:0"] {
        let clone = repository.clone(&[filter]);
        let ran = repository.folder.path().join("ran");
        // As git would start it for a fetch.
        let program = format!("touch '{}'; git-upload-pack", ran.display());
        git(&clone, &["config", "remote.origin.uploadpack", &program]);
        git(&clone, &["config", "protocol.file.allow", "always"]);
        let check = || check_in(&clone, &["-f", "deploy", "--target", "git:HEAD~1"]);
        check().code(1).says("this is a partial clone").says("git fetch --refetch --no-filter origin");
        assert!(!ran.exists(), "{filter}");
        git(&clone, &["fetch", "-q", "--refetch", "--no-filter", "origin"]);
        assert!(ran.exists(), "the program is one that a fetch runs");
        check().code(3).says(REMOVED);
        fs::remove_file(&ran).unwrap();
    }
}

#[test]
fn a_submodule_is_a_notice_and_is_not_followed() {
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

#[test]
fn the_error_of_git_about_a_repository_is_shown() {
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
fn no_program_of_the_repository_runs_and_nothing_is_written() {
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

#[cfg(unix)]
#[test]
fn a_link_out_of_the_repository_is_not_read() {
    use std::os::unix::fs::symlink;
    let repository = Repository::with_crd(&["keep"]);
    let secrets = repository.folder.path().join("home");
    fs::create_dir(&secrets).unwrap();
    fs::write(secrets.join("netrc.yaml"), "machine example.com login me password hunter2\n").unwrap();
    let link = |to: &str, name: &str| symlink(to, repository.root().join(name)).unwrap();
    repository.write("shared/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    link("../shared/map.yaml", "deploy/inside.yaml");
    for format in ["human", "github", "sarif", "json"] {
        let check = |path: &str| repository.check(&["-f", path, "--target", "git:main", "-o", format]);
        check("deploy").code(0);
        link("../../home/netrc.yaml", "deploy/out.yaml");
        link("../.git/config", "deploy/config.yaml");
        link("../home", "folder");
        for path in ["deploy", "deploy/out.yaml", "deploy/../deploy/config.yaml", "folder", "folder/netrc.yaml"] {
            let refused = check(path);
            refused.code(1).says("a link that leads out of the repository");
            for text in ["hunter2", "machine", "[core]"] {
                assert!(!refused.stdout.contains(text) && !refused.stderr.contains(text), "{path}: {}", refused.stdout);
            }
        }
        for name in ["deploy/out.yaml", "deploy/config.yaml", "folder"] {
            fs::remove_file(repository.root().join(name)).unwrap();
        }
    }
}
