//! Both sides from git: `-f git:REV[:PATH]`, and several commits as targets.

use serde_json::json;

use super::{REMOVED, Repository, check_in, crd, crd_named};

/// The tags v1 and v2 of a repository: the second lacks a field. The working tree is newer than both.
fn two_releases() -> Repository {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.git(&["tag", "v1"]);
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    repository.commit();
    repository.git(&["tag", "v2"]);
    repository.write("deploy/crds/crd.yaml", "not: [a, manifest");
    repository.commit();
    repository
}

#[test]
fn both_sides_are_read_from_commits_and_findings_are_shown_at_the_file() {
    let repository = two_releases();
    let both = ["-f", "git:v2:deploy", "--target", "git:v1"];
    let blocked = repository.check(&[&both[..], &["-o", "json"]].concat());
    blocked.code(3);
    let finding = &blocked.report()["checks"][0]["findings"][0];
    assert_eq!(finding["rule"], REMOVED);
    assert_eq!(finding["source"], json!({"file": "v2:deploy/crds/crd.yaml", "line": 19, "column": 13}), "{finding}");
    // The other way round, a field is added.
    repository.check(&["-f", "git:v1:deploy", "--target", "git:v2"]).code(0).says("1 update");
    // Code hosts show it at the file of the working tree, if there is one.
    let annotations = repository.check(&[&both[..], &["-o", "github"]].concat());
    assert!(annotations.stdout.contains("::error file=deploy/crds/crd.yaml,line="), "{}", annotations.stdout);
    std::fs::remove_file(repository.root().join("deploy/crds/crd.yaml")).unwrap();
    let quality = repository.check(&[&both[..], &["-o", "gitlab"]].concat());
    assert!(quality.stdout.contains("\"path\": \"deploy/crds/crd.yaml\""), "{}", quality.stdout);
    assert!(quality.stdout.contains("\"begin\": 1\n"), "{}", quality.stdout);
}

#[test]
fn without_a_path_all_manifests_of_the_commit_are_read_and_both_sides_from_anywhere_in_the_repository() {
    let repository = two_releases();
    let deep = repository.root().join("deploy");
    check_in(&deep, &["-f", "git:v2", "--target", "git:v1"]).code(3).says(REMOVED);
    check_in(&deep, &["-f", "git:v1...:deploy/crds/crd.yaml", "--target", "git:v1"]).code(0).says("1 object unchanged");
    // The working directory is no repository.
    check_in(repository.folder.path(), &["-f", "git:v2", "--target", "dir:."])
        .code(1)
        .says("the working directory is not in a git repository");
}

#[test]
fn what_moved_between_two_commits_is_compared_with_its_earlier_file() {
    let repository = Repository::with_crd(&["keep", "gone"]);
    repository.write("old/copy.yaml", crd_named("copies", &["keep", "gone"]));
    repository.commit();
    repository.git(&["tag", "v1"]);
    repository.git(&["mv", "deploy/crds/crd.yaml", "new.yaml"]);
    repository.write("new/crd.yaml", crd(&["keep"]));
    repository.write("new/copy.yaml", crd_named("copies", &["keep"]));
    repository.git(&["rm", "-q", "-f", "new.yaml"]);
    repository.commit();
    repository.git(&["tag", "v2"]);
    // In the working tree everything is elsewhere again: only the commits count.
    repository.git(&["rm", "-q", "-r", "old", "new"]);
    let moved = repository.check(&["-f", "git:v2:new", "--target", "git:v1"]);
    moved
        .code(3)
        .says("compared with deploy/crds/crd.yaml")
        .says("create customresourcedefinition/copies.test.example.com");
}

#[test]
fn several_commits_are_one_report_that_says_which_base_is_hurt() {
    let repository = two_releases();
    repository.write("deploy/crds/crd.yaml", crd(&["keep"]));
    repository.commit();
    let flags: [&[&str]; 2] = [
        &["--target", "git:v1,v2"],
        &["--target", "git:v1:deploy", "--target", "git:v2:deploy", "--target", "git:v1:deploy"],
    ];
    for flags in flags {
        let checked = repository.check(&[&["-f", "deploy"], flags, &["-o", "json"]].concat());
        checked.code(3);
        let list = checked.report();
        let outcomes: Vec<_> =
            list["clusters"].as_array().unwrap().iter().map(|it| it["report"]["outcome"].clone()).collect();
        assert_eq!(outcomes, ["blocked", "planned"], "{list}");
    }
    let shown = repository.check(&["-f", "deploy", "--target", "git:v1,v2"]).stdout;
    let from = shown.find("Overview").expect("an overview");
    insta::assert_snapshot!(&shown[from..], @r"
    Overview 2 commits
             blocked          1  v1
             nothing to do    1  v2
    Live     the CRDs of v1 differ from those of:
             v2: samples.test.example.com

    Would be blocked: 1 of 2 commits. Nothing was written.
    ");
    assert!(shown.starts_with("Commit   v1\n"), "{shown}");
    // A configuration file can name them, too.
    repository.write("gantry.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\ntarget: ['git:v1', 'git:v2']\n");
    repository.check(&["-f", "deploy"]).code(3).says("1 of 2 commits");
    // And a commit can be the desired side of several others.
    repository.check(&["-f", "git:v2:deploy", "--target", "git:v1,HEAD"]).code(3).says("1 of 2 commits");
}

#[test]
fn a_commit_or_path_that_is_not_there_is_named_with_the_next_step() {
    let repository = two_releases();
    let cases = [
        (&["-f", "git:v3:deploy"][..], 1, "the newest tags are v2, v1"),
        (&["-f", "git:mian:deploy"], 1, "did you mean \"main\"?"),
        (&["-f", "git:v1:deploi"], 1, "did you mean deploy?"),
        (&["-f", "git:v1:deploy/crds/none"], 1, "does not exist at this commit"),
        (&["-f", "git:"], 2, "a revision is missing after git:"),
        (&["-f", "git:v1:../x"], 2, "not relative to the root of the repository"),
        (&["-f", "git:HEAD:deploy"], 1, "HEAD:deploy/crds/crd.yaml"),
    ];
    for (flags, code, said) in cases {
        repository.check(&[flags, &["--target", "git:v1"]].concat()).code(code).says(said);
    }
    repository.check(&["-f", "git:v2", "--target", "git:v1,kube"]).code(3).says("there is no commit \"kube\"");
    let mixed = ["-f", "git:v2", "--target", "git:v1", "--target", "kube"];
    repository.check(&mixed).code(2).says("several targets are commits");
    repository.check(&["-f", "git:v2", "--target", "git:v1,v2", "--kube-version", "1.30,1.31"]).code(2);
    repository.write("empty/empty.yaml", "");
    repository.commit();
    repository.check(&["-f", "git:HEAD:empty", "--target", "git:v1"]).code(1).says("the file is empty at this commit");
    // A shallow clone lacks the tag.
    let clone = repository.clone(&["--depth=1"]);
    check_in(&clone, &["-f", "git:v1:deploy", "--target", "dir:."]).code(1).says("git fetch --depth=1 origin v1");
}

#[test]
fn a_commit_on_the_desired_side_is_rendered_from_all_its_files() {
    let repository =
        Repository::with(&[("base/crd.yaml", crd(&["keep", "gone"])), ("overlay/kustomization.yaml", "x".into())]);
    repository.git(&["tag", "v1"]);
    repository.write("base/crd.yaml", crd(&["keep"]));
    repository.commit();
    repository.git(&["tag", "v2"]);
    repository.git(&["rm", "-q", "-r", "base"]);
    let render = ["--render", "sh -c 'cat \"$1\"/../base/*.yaml' render {dir}"];
    let flags = [&["-f", "git:v2:overlay", "--target", "git:v1", "-o", "github"], &render[..]].concat();
    let blocked = repository.check(&flags);
    blocked.code(3).says(REMOVED);
    assert!(blocked.stdout.contains("::error file=overlay/kustomization.yaml,title="), "{}", blocked.stdout);
}
