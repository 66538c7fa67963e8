//! Commits in place of the live state: `--target git:REV[:PATH]`, in repositories that each test creates with the real
//! git.

mod desired;
mod gate;
mod moved;
mod rendered;
mod repositories;
mod repository;
mod revisions;

use std::fs;

use serde_json::json;

pub(super) use repository::{Ended, Repository, check_in, command, config_map, crd, ended};
use repository::{crd_named, git};

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
    repository.check_deploy("git:main").code(0);
    // Compared with the previous commit, this one only adds.
    insta::assert_snapshot!(repository.check_deploy("git:HEAD~1").shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: HEAD~1 (COMMIT)
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed: proven safe for every possible object: 1 CRD

    Planned: 1 update; nothing was written (check only)
    "#);
    insta::assert_snapshot!(repository.check_deploy("git:HEAD").shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: HEAD (COMMIT)
    Plan     unchanged 1 (1 CustomResourceDefinition)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    "#);
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
    insta::assert_snapshot!(check_in(&deep, &["-f", ".", "--target", "git:v1:other"]).shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: v1:other (COMMIT)
    Plan     create    1 (1 CustomResourceDefinition)
             create    customresourcedefinition/samples.test.example.com

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Planned: 1 create; nothing was written (check only)
    ----- stderr
    notice: v1:other: customresourcedefinition/samples.test.example.com counted as new: at this commit in deploy/crds/crd.yaml (to compare with that file: --target git:v1:deploy/crds/crd.yaml)
    notice: v1 has a CRD that is no longer among the manifests: others.test.example.com (if a deploy prunes or somebody deletes what is no longer there, its objects are deleted, too)
    "#);
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
    insta::assert_snapshot!(refused.shown(), @r#"
    exit code 1
    ----- stderr
    error: no objects found in -
      = help: the files are empty or contain only comments
    "#);
    let text = repository.root().join("deploy/crds/crd.yaml");
    let mut piped = command(&repository.root(), &["check", "-f", "-", "--target", "git:main"]);
    piped.stdin(fs::File::open(text).unwrap());
    insta::assert_snapshot!(ended(piped).shown(), @r#"
    exit code 2
    ----- stderr
    error: standard input has no path at a commit
      = help: name the path in the repository: --target git:main:PATH
    "#);
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
    let check = |target: &str| repository.check_deploy(target);
    let linked = check("git:HEAD:links");
    insta::assert_snapshot!(linked.shown(), @r#"
    exit code 3
    ----- stdout
    Target   git: HEAD:links (COMMIT)
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    error[NoExistingFieldRemoved]: field spec.gone may not be removed from v1
      --> deploy/crds/crd.yaml:19:13
    17 |           spec:
    18 |             type: object
    19 |             properties:
       |             ^^^^^^^^^^ HEAD has gone here (string)
       = in      samples.test.example.com, v1, ^.spec.gone
       = breaks  writers: the server refuses or drops what they send today
                 readers: they no longer find what they read today
                 data: the server drops values from objects when they are next written
       = proof   accepted today, loses values with this change: spec.gone is dropped
                   {apiVersion: test.example.com/v1, kind: Kindsamples, metadata: {name: x}, spec:
                   {gone: ""}}
       = next    keep spec.gone in v1 and mark it as deprecated, or remove it only in a new version that
                 a webhook converts, or after a migration
                 if the CRD is not yours: stay on its old version, or accept the change in gantry.yaml:
                   waivers: [{rule: NoExistingFieldRemoved, object: samples.test.example.com, path:
                   "^.spec.gone", reason: "why this is fine here"}]

    For details of a rule: gantry rules NoExistingFieldRemoved.

    CRDUpgradeSafety          blocked: 1 error in samples.test.example.com (NoExistingFieldRemoved)
    CustomResourceValidation  passed: 0 objects of 1 CRD read

    Would be blocked: 1 error. Nothing was written.
    ----- stderr
    notice: HEAD:links/broken.yaml: a dangling link at this commit is not read
    notice: HEAD:links/folder.yaml: a link to a directory is not followed; nothing in it counts as live (name the path that it leads to: --target git:REV:PATH)
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoExistingFieldRemoved" validation failed: crd/samples.test.example.com version/v1 field/^.spec.gone may not be removed
    "#);
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
    insta::assert_snapshot!(check("git:HEAD:out").shown(), @r#"
    exit code 1
    ----- stderr
    error: a link out of the repository, to /etc/hostname, which the commit does not contain
     --> HEAD:out/host.yaml
      = help: name a path without the link: --target git:REV:PATH
    "#);
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
    let check = |path: &str| repository.check_deploy(&format!("git:main:{path}"));
    insta::assert_snapshot!(check("lfs").shown(), @r#"
    exit code 1
    ----- stderr
    error: a Git LFS pointer instead of the file
     --> main:lfs/crd.yaml
      = help: git has no content for it; check out the commit with Git LFS, and name that folder:
              --target dir:PATH
    "#);
    insta::assert_snapshot!(check("latin").shown(), @r#"
    exit code 1
    ----- stderr
    error: the file is not UTF-8: byte 8 is 0xE9
     --> main:latin/crd.yaml:2:4
      = help: save it as UTF-8; binary data of a Secret belongs in `data` as base64
    "#);
    insta::assert_snapshot!(check("broken").shown(), @r#"
    exit code 1
    ----- stderr
    error: not valid YAML: did not find expected ',' or ']' while parsing a flow sequence
     --> main:broken/crd.yaml:2:1

    error: a manifest is a mapping with apiVersion, kind and metadata, but this is a list
     --> main:broken/list.yaml:1:1
    "#);
    insta::assert_snapshot!(check("twice").shown(), @r#"
    exit code 1
    ----- stderr
    error: customresourcedefinition/samples.test.example.com is defined twice in this commit
     --> main:twice/b.yaml:1
      = help: a cluster has each object only once; first defined at main:twice/a.yaml:1
    "#);
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
    let red = repository.check_deploy("git:main:deploy/\u{1b}[31m.yaml");
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
    repository.check_deploy("git:main:bundle").code(3).says(REMOVED);
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
    let check = || repository.check_deploy("git:main");
    insta::assert_snapshot!(check().shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: main (COMMIT)
    Plan     unchanged 1 (1 CustomResourceDefinition)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    ----- stderr
    notice: deploy/certificate.yaml:1: not checked, because neither main nor a manifest defines the kind: certificate.cert-manager.io/a -n team (a check on a cluster that has the CRD also checks these; or give the CRD with -f, too)
    "#);
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    check().code(3).says(REMOVED);
    // A kind of Kubernetes itself is known, so this one is a mistake.
    repository.write("deploy/crds/crd.yaml", crd(&["keep", "gone"]));
    repository.write("deploy/certificate.yaml", "apiVersion: v1\nkind: ConfigMop\nmetadata: {name: a}\n");
    insta::assert_snapshot!(check().shown(), @r#"
    exit code 3
    ----- stdout
    Target   git: main (COMMIT)
    Plan     unchanged 1 (1 CustomResourceDefinition)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    error: no kind "ConfigMop" in "v1" is served by the target or defined by the manifests
     --> deploy/certificate.yaml:1
      = help: check apiVersion and kind, or add the CRD that defines it to the manifests

    Would be blocked: 1 error. Nothing was written.
    "#);
}

#[test]
fn a_crd_that_left_the_manifests_is_a_notice() {
    let repository = Repository::with_crd(&["keep"]);
    repository.write("deploy/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: team}\n");
    repository.commit();
    let told = "main has a CRD that is no longer among the manifests: ";
    let check = || repository.check_deploy("git:main");
    assert!(!check().code(0).stderr.contains(told));
    fs::remove_file(repository.root().join("deploy/crds/crd.yaml")).unwrap();
    insta::assert_snapshot!(check().shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: main (COMMIT)
    Plan     unchanged 1 (1 ConfigMap)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    ----- stderr
    notice: main has a CRD that is no longer among the manifests: samples.test.example.com (if a deploy prunes or somebody deletes what is no longer there, its objects are deleted, too)
    "#);
}
