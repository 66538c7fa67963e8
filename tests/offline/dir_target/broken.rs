//! Folders with broken files, with files that a killed run left behind, and folders that are gone.

use super::*;

#[test]
fn every_broken_file_and_every_duplicate_object_is_named() {
    let broken = folder(&[("a.yaml", "kind: [\n"), ("b/c.yaml", "x: }\n"), ("ok.yaml", CRD)]);
    let error = DirTarget::open(broken.path()).err().unwrap();
    let mut files: Vec<&str> =
        error.problems().iter().map(|problem| problem.at.as_ref().unwrap().file.as_str()).collect();
    files.dedup();
    assert_eq!(files.len(), 2, "{error}");
    assert!(files[0].ends_with("a.yaml") && files[1].ends_with("c.yaml"), "{error}");
    assert!(error.problems().iter().all(|problem| problem.at.as_ref().unwrap().line > 0));

    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let twice = folder(&[("a.yaml", map), ("b.yaml", &map.replace("name: a", "name: a, namespace: default"))]);
    let error = DirTarget::open(twice.path()).err().unwrap().to_string();
    assert!(error.contains("is defined twice in this folder") && error.contains("b.yaml:1"), "{error}");
}

#[test]
fn a_live_crd_that_no_server_could_hold_is_an_error_and_not_an_empty_comparison() {
    let head =
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.c}\nspec: {}\n";
    for (crd, message) in [
        (head.to_owned(), "customresourcedefinition/a.b.c cannot be read: spec.versions is missing"),
        (CRD.replace("  scope: ", "  scoop: "), "cannot be read: spec.scope is missing"),
        (CRD.replace("k8s.io/v1\n", "k8s.io/v1beta1\n"), "uses apiVersion apiextensions.k8s.io/v1beta1"),
    ] {
        let folder = folder(&[("crd.yaml", &crd)]);
        let error = DirTarget::open(folder.path()).err().unwrap();
        assert!(error.to_string().ends_with(message), "{error}");
        assert_eq!(error.problems()[0].at.as_ref().unwrap().line, 1);
    }
}

#[test]
fn a_damaged_snapshot_is_an_error_and_not_a_cluster_with_fewer_objects() {
    let folder = folder(&[("live/crd.yaml", CRD), ("new/crd.yaml", CRD)]);
    let snapshot = ["snapshot", "--objects", "--target", "dir:live", "-o", "copy"];
    assert_eq!(gantry(folder.path(), &snapshot).0, Some(0));
    let check = || gantry(folder.path(), &["check", "-f", "new", "--target", "dir:copy"]);
    let (code, said) = check();
    assert!(code == Some(0) && said.contains("Nothing to do"), "{code:?} {said}");
    let file =
        file_names(&folder.path().join("copy")).into_iter().find(|name| name.ends_with(".yaml")).expect("a file");
    let path = folder.path().join("copy").join(&file);
    let text = fs::read_to_string(&path).unwrap();
    for (left, what) in
        [(Some(""), "contains no object"), (Some("# a comment\n"), "contains no object"), (None, "is missing")]
    {
        left.map_or_else(|| fs::remove_file(&path), |left| fs::write(&path, left)).unwrap();
        let (code, said) = check();
        assert!(code == Some(1) && said.contains(&format!("{file} {what}, but .gantry-snapshot lists it")), "{said}");
    }
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert_eq!(check().0, Some(1));
}

#[test]
fn a_missing_folder_is_an_error_with_a_next_step_and_an_empty_one_is_not() {
    let folder = folder(&[]);
    open(&folder);
    let missing = folder.path().join("clutser");
    let error = DirTarget::open(&missing).err().unwrap();
    assert!(error.problems()[0].help.as_ref().unwrap().contains("mkdir"));
    assert!(!missing.exists());
    fs::write(&missing, "").unwrap();
    assert!(DirTarget::open(&missing).err().unwrap().to_string().ends_with("is not a folder"));
}

#[test]
fn leftovers_of_a_killed_run_are_ignored_and_removed_by_the_next_write() {
    let folder = folder(&[(".gantry-abc.tmp", "kind: [")]);
    let target = open(&folder);
    assert_eq!(file_names(folder.path()), [".gantry-abc.tmp"]);
    apply(&target, &config_map("a", json!({}))).unwrap();
    assert_eq!(file_names(folder.path()), ["configmap_default_a.yaml"]);
}

#[test]
fn leftovers_are_removed_without_a_write() {
    let folder = folder(&[(".gantry-abc.tmp", "data: {password: x}"), ("a.yaml", "")]);
    open(&folder).remove_leftovers();
    assert_eq!(file_names(folder.path()), ["a.yaml"]);
}

#[test]
fn an_apply_to_a_deleted_folder_is_refused() {
    let folder = folder(&[]);
    let target = open(&folder);
    fs::remove_dir(folder.path()).unwrap();
    let message = refusal(apply(&target, &config_map("a", json!({}))));
    assert!(message.starts_with("cannot read "), "{message}");
}

#[test]
fn leftovers_are_removed_by_a_deploy_and_kept_by_commands_that_only_read() {
    let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}";
    let folder =
        folder(&[("cluster/.gantry-abc.tmp", "password: x"), ("cluster/a.yaml", manifest), ("a.yaml", manifest)]);
    let cluster = folder.path().join("cluster");
    let look = ["-f", "a.yaml", "--target", "dir:cluster"];
    for command in [&["check"][..], &["deploy", "--dry-run"]] {
        let (code, said) = gantry(folder.path(), &[command, &look].concat());
        assert_eq!((code, file_names(&cluster).len()), (Some(0), 2), "{said}");
    }
    let (code, said) = gantry(folder.path(), &[&["deploy"][..], &look].concat());
    assert!(code == Some(0) && said.contains("unchanged 1 (1 ConfigMap)"), "{code:?} {said}");
    assert_eq!(file_names(&cluster), ["a.yaml"]);
}
