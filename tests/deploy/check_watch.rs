//! `check --watch`.

use crate::support::{Bed, Gantry};

fn watching(bed: &Bed) -> Gantry {
    std::fs::create_dir(bed.folder.path().join("live")).unwrap();
    let arguments =
        ["check", "-f", "a.yaml", "--target", "dir:live", "-o", "human", "-o", "json=report.json", "--watch"];
    Gantry::new().cwd(bed.folder.path()).args(arguments)
}

#[test]
fn a_check_runs_again_when_a_manifest_changes() {
    let bed = Bed::new();
    bed.write("a.yaml", &bed.config_map("first", "x"));
    let mut running = watching(&bed).spawn();
    running.wait_for_line(|line| line.contains("configmap/first").then_some(()));
    running.wait_for_stderr("waiting for changes");
    bed.write("unrelated.txt", "x");
    bed.write("a.yaml", "a: [\n");
    running.wait_for_stderr("a.yaml changed");
    running.wait_for_stderr("a.yaml:");
    // Editors replace the file.
    bed.write("a.yaml.new", &bed.config_map("second", "x"));
    std::fs::rename(bed.folder.path().join("a.yaml.new"), bed.folder.path().join("a.yaml")).unwrap();
    running.wait_for_line(|line| line.contains("configmap/second").then_some(()));
    bed.write("gantry.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\nwrong: 1\n");
    running.wait_for_stderr("gantry.yaml changed");
    running.wait_for_stderr("wrong");
    running.interrupt();
    let output = running.wait();
    output.code(2);
    assert!(!output.stderr.contains("unrelated") && !output.stderr.contains("report.json changed"), "{output}");
}

/// Its own reports in the folder do not cause the next run.
#[test]
fn reports_in_a_watched_folder_are_no_changes() {
    let bed = Bed::new();
    bed.write("a.yaml", &bed.config_map("first", "x"));
    bed.write("gantry.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\noutput: [human, html=report.html]\n");
    let live = tempfile::tempdir().unwrap();
    let target = format!("dir:{}", live.path().display());
    let arguments = ["check", "-f", ".", "--target", &target, "--watch"];
    let mut running = Gantry::new().cwd(bed.folder.path()).args(arguments).spawn();
    running.wait_for_stderr("waiting for changes");
    bed.write("b.yaml", &bed.config_map("second", "x"));
    running.wait_for_stderr("b.yaml changed");
    running.wait_for_line(|line| line.contains("configmap/second").then_some(()));
    running.interrupt();
    let output = running.wait();
    assert!(bed.folder.path().join("report.html").exists());
    assert!(!output.stderr.contains("report"), "{output}");
}

#[test]
fn what_cannot_change_is_not_watched() {
    let bed = Bed::new();
    let run = |arguments: &[&str]| Gantry::new().cwd(bed.folder.path()).args(arguments).run();
    run(&["check", "-f", "-", "--watch"]).code(2).stderr_contains("standard input is read only once");
    run(&["check", "-f", "git:HEAD", "--watch"]).code(2).stderr_contains("names no file on disk");
}
