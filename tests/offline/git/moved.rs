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
    insta::assert_snapshot!(created.shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: HEAD~1 (COMMIT)
    Plan     create    1 (1 CustomResourceDefinition)
             create    customresourcedefinition/others.test.example.com

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Planned: 1 create; nothing was written (check only)
    ----- stderr
    notice: HEAD~1:new: does not exist at this commit; nothing in it counts as live (if its objects were elsewhere, name that path: --target git:HEAD~1:PATH)
    "#);
    insta::assert_snapshot!(repository.check(&["-f", "new", "--target", "git:HEAD~1:new"]).shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: HEAD~1:new (COMMIT)
    Plan     create    1 (1 CustomResourceDefinition)
             create    customresourcedefinition/others.test.example.com

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Planned: 1 create; nothing was written (check only)
    ----- stderr
    notice: HEAD~1:new: does not exist at this commit; nothing in it counts as live (if its objects were elsewhere, name that path: --target git:HEAD~1:PATH)
    "#);
    let slip = repository.check(&["-f", "new", "--target", "git:HEAD~1:deploy/crsd"]);
    insta::assert_snapshot!(slip.shown(), @r#"
    exit code 1
    ----- stderr
    error: does not exist at this commit, nor at HEAD
     --> HEAD~1:deploy/crsd
      = help: did you mean deploy/crds?
    "#);
    insta::assert_snapshot!(repository.check(&["-f", "new", "--target", "git:HEAD~1:deploz/crds"]).shown(), @r#"
    exit code 1
    ----- stderr
    error: does not exist at this commit, nor at HEAD
     --> HEAD~1:deploz/crds
      = help: did you mean deploy?
    "#);
    repository.write("docs/readme.md", "");
    repository.commit();
    let empty = repository.check(&["-f", "new", "--target", "git:HEAD:docs"]);
    insta::assert_snapshot!(empty.shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: HEAD:docs (COMMIT)
    Plan     create    1 (1 CustomResourceDefinition)
             create    customresourcedefinition/others.test.example.com

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Planned: 1 create; nothing was written (check only)
    ----- stderr
    notice: HEAD:docs: no .yaml, .yml or .json file; nothing in it counts as live
    notice: HEAD:docs: customresourcedefinition/others.test.example.com counted as new: at this commit in new/crd.yaml (to compare with that file: --target git:HEAD:new/crd.yaml)
    "#);
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
    insta::assert_snapshot!(check(&["-f", "deploy"]).shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: HEAD (COMMIT)
    Plan     unchanged 2 (1 CustomResourceDefinition, 1 ConfigMap)

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Nothing to do: 2 objects unchanged
    ----- stderr
    notice: HEAD:deploy: does not define 1 object at this commit: compared with crds/crd.yaml (these files had the objects and no longer have them)
    "#);
    repository.write("deploy/crd.yaml", crd(&["keep"]));
    repository.write("deploy/more.yaml", config_map("more"));
    let moved = check(&["-f", "deploy"]);
    insta::assert_snapshot!(moved.shown(), @r#"
    exit code 3
    ----- stdout
    Target   git: HEAD (COMMIT)
    Plan     create    1 (1 ConfigMap)
             update    1 (1 CustomResourceDefinition)
             unchanged 1 (1 ConfigMap)
             update    customresourcedefinition/samples.test.example.com
             create    configmap/more -n default

    error[NoExistingFieldRemoved]: field spec.gone may not be removed from v1
      --> deploy/crd.yaml:19:13
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
    notice: HEAD:deploy: does not define 1 object at this commit: compared with crds/crd.yaml (these files had the objects and no longer have them)
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoExistingFieldRemoved" validation failed: crd/samples.test.example.com version/v1 field/^.spec.gone may not be removed
    "#);
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
    insta::assert_snapshot!(check(&["-f", "deploy"]).shown(), @r#"
    exit code 3
    ----- stdout
    Target   git: HEAD (COMMIT)
    Plan     update    1 (1 CustomResourceDefinition)
             unchanged 2 (2 ConfigMap)
             update    customresourcedefinition/samples.test.example.com

    error[NoExistingFieldRemoved]: field spec.gone may not be removed from v1
      --> deploy/crd.yaml:19:13
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
    notice: HEAD:deploy: does not define 1 object at this commit: compared with crds/crd.yaml (these files had the objects and no longer have them)
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoExistingFieldRemoved" validation failed: crd/samples.test.example.com version/v1 field/^.spec.gone may not be removed
    "#);
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
    let check = || repository.check_deploy("git:main");
    insta::assert_snapshot!(check().shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: main (COMMIT)
    Plan     create    1 (1 CustomResourceDefinition)
             unchanged 1 (1 ConfigMap)
             create    customresourcedefinition/samples.test.example.com

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Planned: 1 create, 1 unchanged; nothing was written (check only)
    ----- stderr
    notice: main:deploy: customresourcedefinition/samples.test.example.com counted as new: also in a file that still has it, one/crd.yaml (to compare with that file: --target git:main:one/crd.yaml)
    "#);
    fs::remove_file(repository.root().join("two/crd.yaml")).unwrap();
    insta::assert_snapshot!(check().shown(), @r#"
    exit code 3
    ----- stdout
    Target   git: main (COMMIT)
    Plan     update    1 (1 CustomResourceDefinition)
             unchanged 1 (1 ConfigMap)
             update    customresourcedefinition/samples.test.example.com

    error[NoExistingFieldRemoved]: field spec.gone may not be removed from v1
      --> deploy/crd.yaml:19:13
    17 |           spec:
    18 |             type: object
    19 |             properties:
       |             ^^^^^^^^^^ main has gone here (string)
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
    notice: main:deploy: does not define 1 object at this commit: compared with two/crd.yaml (these files had the objects and no longer have them)
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoExistingFieldRemoved" validation failed: crd/samples.test.example.com version/v1 field/^.spec.gone may not be removed
    "#);
    fs::remove_file(repository.root().join("one/crd.yaml")).unwrap();
    let unclear = check();
    insta::assert_snapshot!(unclear.shown(), @r#"
    exit code 1
    ----- stderr
    error: does not define customresourcedefinition/samples.test.example.com at this commit; it is in one/crd.yaml and in two/crd.yaml
     --> main:deploy
      = help: check its file alone, and name the one to compare with: --target git:main:one/crd.yaml
    "#);
}

#[test]
fn only_the_path_of_the_target_counts_as_live() {
    let repository =
        Repository::with(&[("deploy/cm.yaml", config_map("settings")), ("crds/crd.yaml", crd(&["keep", "gone"]))]);
    repository.git(&["mv", "crds/crd.yaml", "deploy/crd.yaml"]);
    repository.write("deploy/crd.yaml", crd(&["keep"]));
    let named = repository.check_deploy("git:main:deploy");
    insta::assert_snapshot!(named.shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: main:deploy (COMMIT)
    Plan     create    1 (1 CustomResourceDefinition)
             unchanged 1 (1 ConfigMap)
             create    customresourcedefinition/samples.test.example.com

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Planned: 1 create, 1 unchanged; nothing was written (check only)
    ----- stderr
    notice: main:deploy: customresourcedefinition/samples.test.example.com counted as new: at this commit in crds/crd.yaml (to compare with that file: --target git:main:crds/crd.yaml)
    "#);
    repository.check_deploy("git:main:.").code(3).says(REMOVED);
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
    insta::assert_snapshot!(copied.shown(), @r#"
    exit code 0
    ----- stdout
    Target   git: main (COMMIT)
    Plan     create    1 (1 CustomResourceDefinition)
             create    customresourcedefinition/samples.test.example.com

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Planned: 1 create; nothing was written (check only)
    ----- stderr
    notice: main:overlays/staging: does not exist at this commit; nothing in it counts as live (customresourcedefinition/samples.test.example.com is also in overlays/dev/crd.yaml, which still has it; to compare with that file: --target git:main:overlays/dev/crd.yaml)
    "#);
    repository.check(&["-f", "overlays/staging", "--target", "git:main:overlays/dev/crd.yaml"]).code(3).says(REMOVED);
    fs::remove_dir_all(repository.root().join("overlays/prod")).unwrap();
    insta::assert_snapshot!(repository.check(&["-f", "overlays/staging", "--target", "git:main"]).shown(), @r#"
    exit code 3
    ----- stdout
    Target   git: main (COMMIT)
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    error[NoExistingFieldRemoved]: field spec.gone may not be removed from v1
      --> overlays/staging/crd.yaml:19:13
    17 |           spec:
    18 |             type: object
    19 |             properties:
       |             ^^^^^^^^^^ main has gone here (string)
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
    notice: main:overlays/staging: does not exist at this commit: 1 object compared with overlays/prod/crd.yaml (these files had the objects and no longer have them)
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoExistingFieldRemoved" validation failed: crd/samples.test.example.com version/v1 field/^.spec.gone may not be removed
    "#);
    fs::remove_dir_all(repository.root().join("overlays/dev")).unwrap();
    let unclear = repository.check(&["-f", "overlays/staging", "--target", "git:main"]);
    insta::assert_snapshot!(unclear.shown(), @r#"
    exit code 1
    ----- stderr
    error: does not exist at this commit; customresourcedefinition/samples.test.example.com is in overlays/dev/crd.yaml and in overlays/prod/crd.yaml
     --> main:overlays/staging
      = help: name the one to compare with: --target git:main:overlays/dev/crd.yaml
    "#);
}
