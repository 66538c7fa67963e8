//! Manifests that a command renders, on both sides of the comparison.

use std::fs;

use serde_json::json;

use super::{Repository, check_in, crd, crd_named};

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
    insta::assert_snapshot!(check("", &["-f", "overlays/new"]).shown(), @r#"
    exit code 0
    ----- stdout
    (JSON)
    ----- stderr
    notice: main:overlays/new: does not exist at this commit; nothing in it counts as live (if its objects were elsewhere, name that path: --target git:main:PATH)
    "#);
    // Other files that the command reads also come from the commit.
    let render = "sh -c 'test -e overlays/prod/crd.yaml && cat \"$1\"/crd.yaml' render {dir}";
    repository.check(&["-f", "overlays/prod", "--render", render, "--target", "git:main"]).code(0);
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    let of_folder = repository.check(&["-f", "overlays/prod", "--render", RENDER, "--target", "dir:overlays/prod"]);
    insta::assert_snapshot!(of_folder.shown(), @r#"
    exit code 0
    ----- stdout
    Target   dir: overlays/prod
    Plan     create    1 (1 CustomResourceDefinition)
             unchanged 1 (1 CustomResourceDefinition)
             create    customresourcedefinition/others.test.example.com

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Planned: 1 create, 1 unchanged; nothing was written (check only)
    "#);
}

#[cfg(unix)]
#[test]
fn errors_of_a_renderer_are_shown_and_escaped() {
    let repository = Repository::with_crd(&["keep"]);
    let check = |render: &str| repository.check(&["-f", "deploy", "--render", render, "--target", "git:main"]);
    let failed = check("sh -c 'printf \"no such base\\033[31m\" >&2; exit 7' {dir}");
    insta::assert_snapshot!(failed.shown(), @r#"
    exit code 1
    ----- stderr
    error: "sh", which renders deploy, failed (exit status: 7): no such base\u{1b}[31m
      = help: run it manually in that folder
    "#);
    assert!(!failed.stderr.contains('\u{1b}'), "{}", failed.stderr);
    insta::assert_snapshot!(check("no-such-program {dir}").shown(), @r#"
    exit code 1
    ----- stderr
    error: "no-such-program", which renders deploy, is not installed
      = help: install it, or name its path in --render
    "#);
    insta::assert_snapshot!(check("cat").shown(), @r#"
    exit code 2
    ----- stderr
    error: --render: "cat" has no placeholder for the folder: add {dir}
    "#);
    insta::assert_snapshot!(check("cat 'x {dir}").shown(), @r#"
    exit code 2
    ----- stderr
    error: --render: "cat 'x {dir}" has an unclosed quote
    "#);
    let stdin = repository.check(&["-f", "-", "--render", "cat {dir}", "--target", "git:main"]);
    insta::assert_snapshot!(stdin.shown(), @r#"
    exit code 2
    ----- stderr
    error: standard input cannot be rendered: a program renders folders
      = help: render it first: kustomize build DIR | gantry check -f -
    "#);
    // Only the commit's side fails.
    repository.write("deploy/crds/ready", "");
    let late = check("sh -c 'cat \"$1\"/crds/ready \"$1\"/crds/crd.yaml' render {dir}");
    late.code(1).says("which renders main:deploy, failed").says("ready: No such file");
}

#[cfg(unix)]
#[test]
fn no_renderer_comes_from_the_project_file_or_the_manifests() {
    let repository = Repository::with_crd(&["keep"]);
    let ran = repository.folder.path().join("ran");
    let config = format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\nrender: touch {} {{dir}}\n", ran.display());
    for (file, said) in [
        ("gantry.yaml", "the project file cannot set \"render\""),
        ("deploy/config.yaml", "a Config document among the manifests cannot set \"render\""),
    ] {
        repository.write(file, &config);
        repository.check_deploy("git:main").code(2).says(said);
        fs::remove_file(repository.root().join(file)).unwrap();
        assert!(!ran.exists());
    }
    // The user's own file may set it.
    let own = repository.folder.path().join("own.yaml");
    fs::write(&own, "apiVersion: gantry.dev/v1alpha1\nkind: Config\nrender: cat {dir}/crds/crd.yaml\n").unwrap();
    let rendered = repository.check(&["-f", "deploy", "--target", "git:main", "-c", own.to_str().unwrap()]);
    insta::assert_snapshot!(rendered.shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: main (COMMIT)
    Plan     unchanged 1 (1 CustomResourceDefinition)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 1 object unchanged
    "#);
}
