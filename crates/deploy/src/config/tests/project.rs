//! What the project file, which comes with the manifests, may not set.

use super::*;

#[test]
fn the_project_file_cannot_impersonate_a_user() {
    let problems = Bed::new().file("gantry.yaml", "as: root\nasGroups: [system:masters]\n").problems();
    assert!(problems[0].starts_with("gantry.yaml:3:1: the project file cannot set \"as\""), "{problems:?}");
    assert!(problems[1].starts_with("gantry.yaml:4:1: the project file cannot set \"asGroups\""), "{problems:?}");
    let mine = Bed::new().with("mine.yaml", "as: u\nasGroups: [g, h]\n").settings();
    assert_eq!((mine.user.as_deref(), mine.groups), (Some("u"), vec!["g".into(), "h".into()]));
    let problems = Bed::new().with("mine.yaml", "as: ''\nasGroups: []\n").problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn a_user_name_that_cannot_be_sent_in_a_header_is_refused_with_its_place() {
    let why = "the name contains the control character \\u{1}, which cannot be sent";
    let problems = Bed::new().with("mine.yaml", "as: \"a\\x01\"\nasGroups: [g, \"b\\x01\"]\n").problems();
    let [user, groups] = &problems[..] else { panic!("{problems:?}") };
    assert!(user.starts_with(&format!("mine.yaml:3:5: as: {why}")), "{user}");
    assert!(groups.starts_with(&format!("mine.yaml:4:11: asGroups: {why}")), "{groups}");
    let mut bed = Bed::new();
    bed.loader.environment.insert("GANTRY_AS".into(), "a\u{1}".into());
    assert!(bed.problems()[0].starts_with(&format!("GANTRY_AS: {why}")), "{:?}", bed.problems());
    let bed = Bed::new().flag(&key::AS_GROUPS, vec!["a\u{1}".to_owned()]);
    assert!(bed.problems()[0].starts_with(&format!("--as-group: {why}")), "{:?}", bed.problems());
    let bed = Bed::new().flag(&key::AS_USER, "a\u{1}".to_owned());
    assert!(bed.problems()[0].starts_with(&format!("--as: {why}")), "{:?}", bed.problems());
}

#[test]
fn the_project_file_cannot_name_a_kubeconfig() {
    let problems = Bed::new().file("gantry.yaml", "kubeconfig: evil\n").problems();
    assert!(problems[0].starts_with("gantry.yaml:3:1: the project file cannot set \"kubeconfig\""), "{problems:?}");
    assert_eq!(Bed::new().with("mine.yaml", "kubeconfig: mine\n").settings().kubeconfig, Some("mine".into()));
}

#[test]
fn the_project_file_cannot_write_a_report_outside_of_its_folder() {
    for path in ["/tmp/report.json", "../report.json", "out/../../report.json"] {
        let body = format!("output: [human, json={path}]\n");
        let problems = Bed::new().file("gantry.yaml", &body).problems();
        let refused = format!("gantry.yaml:3:9: output: \"json={path}\" is outside the folder of this file");
        assert!(problems[0].starts_with(&refused), "{problems:?}");
        // A file that the user names is trusted.
        let named = Bed::new().with("mine.yaml", &body).settings();
        assert_eq!(named.output.len(), 2, "{path}");
        let mut bed = Bed::new().file("gantry.yaml", &body);
        bed.loader.files = vec!["gantry.yaml".into()];
        assert_eq!(bed.settings().output.len(), 2, "{path}");
    }
    let bed = Bed::new().file("gantry.yaml", "output: [json=./out/report.json]\n");
    assert_eq!(bed.settings().output[0].file, Some(Path::new("./out/report.json").into()));
    assert_eq!(Bed::new().file("gantry.yaml", "output: [json=report.json]\n").settings().output.len(), 1);
}

#[test]
fn the_project_file_cannot_deploy_to_a_folder_outside_of_its_own() {
    for path in ["/elsewhere", "..", "live/../../elsewhere"] {
        let body = format!("target: dir:{path}\n");
        let problems = Bed::new().file("gantry.yaml", &body).problems();
        let refused = format!("gantry.yaml:3:9: target: \"dir:{path}\" is outside the folder of this file");
        assert!(problems[0].starts_with(&refused), "{problems:?}");
        assert!(matches!(Bed::new().with("mine.yaml", &body).settings().target, TargetSpec::Dir(_)), "{path}");
        let mut bed = Bed::new().file("gantry.yaml", &body);
        bed.loader.files = vec!["gantry.yaml".into()];
        assert!(matches!(bed.settings().target, TargetSpec::Dir(_)), "{path}");
    }
    for path in ["live", "./live/staging", "."] {
        let settings = Bed::new().file("gantry.yaml", &format!("target: dir:{path}\n")).settings();
        assert!(matches!(settings.target, TargetSpec::Dir(_)), "{path}");
    }
}

#[test]
#[cfg(unix)]
fn a_report_does_not_follow_a_link_out_of_the_project() {
    for (link, to, output) in [("out", "..", "out/report.json"), ("report.json", "../not-there", "report.json")] {
        let bed = Bed::new().file("gantry.yaml", &format!("output: [json={output}]\n"));
        std::os::unix::fs::symlink(to, bed.loader.working_directory.join(link)).unwrap();
        let problems = bed.problems();
        assert!(problems[0].contains("is outside the folder of this file"), "{link}: {problems:?}");
    }
}

#[test]
fn the_project_file_cannot_write_into_a_git_folder() {
    for path in [".git/hooks/post-checkout", ".GIT/config", "sub/.git/config", "bare/hooks/post-update", "hooks/x"] {
        let bed = Bed::new().file("gantry.yaml", &format!("output: [human={path}]\n"));
        let folder = &bed.loader.working_directory;
        std::fs::create_dir_all(folder.join(".git/hooks")).unwrap();
        for part in ["objects", "refs", "hooks"] {
            std::fs::create_dir_all(folder.join("bare").join(part)).unwrap();
        }
        std::fs::write(folder.join("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(".git/hooks", folder.join("hooks")).unwrap();
        let problems = bed.problems();
        assert!(problems[0].contains("is in a folder of git"), "{path}: {problems:?}");
    }
    let problems = Bed::new().file("gantry.yaml", "target: dir:.git/x\n").problems();
    assert!(problems[0].contains("is in a folder of git"), "{problems:?}");
}

#[test]
fn the_project_file_cannot_read_a_catalog_outside_of_its_folder() {
    for path in ["/etc/passwd", "../home/.netrc", "a/../../b"] {
        let body = format!("catalogs: [{{name: a, path: {path}}}]\n");
        let problems = Bed::new().file("gantry.yaml", &body).problems();
        let refused = format!("gantry.yaml:3:28: catalogs[0].path: \"{path}\" is outside the folder of this file");
        assert!(problems[0].starts_with(&refused), "{problems:?}");
        assert_eq!(Bed::new().with("mine.yaml", &body).settings().catalogs.len(), 1, "{path}");
    }
    let bed = Bed::new().file("gantry.yaml", "catalogs: [{name: a, path: catalog}]\n");
    assert_eq!(bed.settings().catalogs.len(), 1);
}
