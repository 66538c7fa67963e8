//! Manifests that were moved or copied since the commit.

use std::fs;

use super::{REMOVED, Repository, config_map, crd, crd_named};

#[test]
fn a_file_may_move_within_the_folder_and_a_deleted_one_removes_its_objects() {
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
fn a_new_path_is_a_notice_and_an_unknown_one_is_an_error() {
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
fn a_moved_file_is_compared_with_its_former_content() {
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
fn a_file_that_moved_into_the_folder_is_compared_with_its_former_content() {
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
fn a_file_that_moved_into_the_folder_from_one_of_several_places_is_an_error() {
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
fn only_the_path_of_the_target_counts_as_live() {
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
fn a_copy_is_new_and_a_file_from_two_places_is_an_error() {
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
