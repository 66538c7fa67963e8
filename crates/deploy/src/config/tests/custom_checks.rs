//! Tests of custom checks: their definitions, their problems, and those that are not run.

use super::*;

#[test]
fn a_team_defines_checks_of_its_own() {
    let bed = Bed::new()
        .file("ci/base.yaml", "preflightRules:\n- name: no-x\n  cel: {expression: e}\n- name: mine\n  exec: {command: [./check, ./arg], timeout: 1m}\n- {name: CRDUpgradeSafety}\n")
        .with("ci/base.yaml", "preflightRules:\n- name: no-x\n  cel: {expression: e}\n- name: mine\n  exec: {command: [./check, ./arg], timeout: 1m}\n- {name: CRDUpgradeSafety}\n")
        .with("over.yaml", "preflightRules:\n- {name: mine, exec: {timeout: 2m}, config: {mode: warn}}\n- {name: no-x, enabled: false}\n");
    assert_eq!(bed.checks(), ["mine", "CRDUpgradeSafety"]);
    let settings = bed.settings();
    assert_eq!(settings.custom_checks.iter().map(|check| &*check.name).collect::<Vec<_>>(), ["no-x", "mine"]);
    let mine = &settings.checks[0];
    assert_eq!(mine.mode, Mode::Warn);
    assert!(matches!(mine.definition, CheckDefinition::Own { kind: "exec", .. }));
    let list = settings.list();
    assert_eq!(source(&list, "preflightRules[mine].exec.timeout"), ("-c file", "over.yaml:4:32"));
    let command = list.iter().find(|setting| setting.path == "preflightRules[mine].exec.command").unwrap();
    assert_eq!(
        command.value,
        serde_json::json!(["ci/check", "./arg"]),
        "the program's path is relative to the file's folder"
    );
    // The output of `show` can be loaded again.
    let shown = settings.show();
    assert!(shown.contains("  exec:\n    command:\n      - ci/check"), "{shown}");
    let bed = Bed::new().raw_file("shown.yaml", &shown);
    assert_eq!(bed.problems(), Vec::<String>::new());
}

#[test]
fn problems_of_own_checks_have_their_lines() {
    let body = "preflightRules:\n- name: a\n  cel: {}\n- name: b\n  exec: {timeout: 1s}\n- {name: c, cel: {expression: e}, exec: {command: [c]}}\n- {name: Nay, cel: {expression: e}}\n- {name: CRDUpgradeSafety, cel: {expression: e}}\n- {name: d}\n";
    let problems = Bed::new().with("c.yaml", body).problems();
    let starts = [
        "c.yaml:5:3: preflightRules[a].cel has no expression | write one",
        "c.yaml:7:3: preflightRules[b].exec has no command | name it",
        "c.yaml:8:35: the check \"c\" has both \"cel\" and \"exec\" | split it into two checks",
        "c.yaml:9:15: \"Nay\" is not a valid name for your own check | use lower case",
        "c.yaml:10:28: \"CRDUpgradeSafety\" is a built-in check and does not accept \"cel\"",
        "c.yaml:11:10: unknown preflight check in configuration: \"d\"",
    ];
    for start in starts {
        assert!(problems.iter().any(|problem| problem.starts_with(start)), "{start}\n{problems:#?}");
    }
}

#[test]
fn programs_that_come_with_the_manifests_are_not_run() {
    let exec = gantry("preflightRules:\n- name: mine\n  exec: {command: [./evil]}\n");
    let bed = Bed::new().manifest(&exec);
    let loaded = bed.load();
    assert!(say(&loaded.notices[0]).starts_with("manifests/config.yaml:7:3: ignored: \"exec\" of the check \"mine\""));
    let check = &loaded.settings.checks[1];
    assert!(
        matches!(&check.definition, CheckDefinition::NotRun { at: Some(at), why: Withheld::CameWithManifests } if at.line == 7),
        "{:?}",
        check.definition
    );
    // Nor does one replace another.
    let bed = Bed::new().with("c.yaml", "preflightRules:\n- name: mine\n  exec: {command: [./good]}\n").manifest(&exec);
    let loaded = bed.load();
    assert_eq!(loaded.notices.len(), 1);
    let config = loaded.settings.checks[1].config.0.as_ref().unwrap().to_value();
    assert_eq!(config, serde_json::json!({"command": ["./good"]}));
    // An expression is harmless, but it does not replace one of the team.
    let cel = gantry("preflightRules:\n- name: mine\n  cel: {expression: 'true'}\n");
    assert_eq!(Bed::new().manifest(&cel).checks(), ["CRDUpgradeSafety", "mine"]);
    let bed = Bed::new().with("c.yaml", "preflightRules:\n- name: mine\n  cel: {expression: e}\n").manifest(&cel);
    let loaded = bed.load();
    assert_eq!(loaded.settings.checks[1].config.0.as_ref().unwrap().to_value(), serde_json::json!({"expression": "e"}));
    assert!(say(&loaded.notices[0]).contains("ignored: \"cel\""));
}

/// The first word of the command that the check `mine` runs, or the reason why it does not run.
fn program(bed: &Bed) -> std::result::Result<String, Withheld> {
    let settings = bed.settings();
    let mine = settings.custom_checks.iter().find(|check| check.name == "mine").expect("the check");
    match &mine.definition {
        CheckDefinition::NotRun { why, .. } => Err(*why),
        _ => Ok(mine.config.0.as_ref().unwrap().to_value()["command"][0].as_str().unwrap().to_owned()),
    }
}

#[test]
fn programs_of_the_project_file_run_where_the_user_asks_for_them() {
    let exec = |name: &str| format!("preflightRules:\n- name: mine\n  exec: {{command: [{name}]}}\n");
    let project = || Bed::new().file("gantry.yaml", &exec("theirs"));
    assert_eq!(program(&project()), Err(Withheld::NotAllowed));
    assert_eq!(program(&project().variable("GANTRY_ALLOW_EXEC", "1")), Ok("theirs".into()));
    assert_eq!(program(&project().variable("GANTRY_ALLOW_EXEC", "0")), Err(Withheld::NotAllowed));
    assert_eq!(program(&project().user("allowExec: true\n")), Ok("theirs".into()));
    assert_eq!(program(&project().with("c.yaml", "allowExec: true\n")), Ok("theirs".into()));
    assert_eq!(program(&project().flag(&key::ALLOW_EXEC, true)), Ok("theirs".into()));
    let mut named = project();
    named.loader.files.push("gantry.yaml".into());
    assert_eq!(program(&named), Ok("theirs".into()));
    // The user can still turn it off.
    let off = project().user("allowExec: true\n").variable("GANTRY_ALLOW_EXEC", "false");
    assert_eq!(program(&off), Err(Withheld::NotAllowed));

    // The project file cannot change a part of the user's own program...
    for part in ["command: [theirs]", "timeout: 1s"] {
        let part = format!("preflightRules:\n- name: mine\n  exec: {{{part}}}\n");
        let bed = Bed::new().user(&exec("mine")).file("gantry.yaml", &part);
        assert_eq!(program(&bed), Err(Withheld::NotAllowed), "{part}");
    }
    // ...and manifests can neither allow nor replace a program.
    let cel = gantry("preflightRules:\n- name: mine\n  cel: {expression: 'true'}\n");
    assert_eq!(program(&project().manifest(&cel)), Err(Withheld::NotAllowed));
    for bed in [Bed::new().file("gantry.yaml", "allowExec: true\n"), Bed::new().manifest(&gantry("allowExec: true\n"))]
    {
        let problems = bed.problems();
        assert!(problems.len() == 1 && problems[0].contains("cannot set \"allowExec\""), "{problems:?}");
    }
    // A program from the user's file or a file of -c needs no permission.
    assert_eq!(program(&Bed::new().user(&exec("mine"))), Ok("mine".into()));
    assert_eq!(program(&project().with("c.yaml", &exec("mine"))), Ok("mine".into()));
}

#[test]
fn a_project_file_among_the_manifests_runs_no_program() {
    let body = "preflightRules:\n- name: mine\n  exec: {command: [theirs]}\n";
    let mut bed = Bed::new().file("gantry.yaml", body).variable("GANTRY_ALLOW_EXEC", "1");
    assert_eq!(program(&bed), Ok("theirs".into()));
    let source = ManifestSource::new("gantry.yaml", gantry(body));
    let bytes = 0..source.text().len();
    bed.manifests.push(ManifestOrigin {
        source: Arc::new(source),
        document: 1,
        line: 1,
        bytes,
        within: Vec::new(),
        renamed: &[],
    });
    assert_eq!(program(&bed), Err(Withheld::CameWithManifests));
    bed.loader.files.push("gantry.yaml".into());
    assert_eq!(program(&bed), Ok("theirs".into()));
}
