//! Checks of a team's own: what defines one, what is wrong with one, and which are not run.

use super::*;

#[test]
fn a_team_defines_checks_of_its_own() {
    let bed = Bed::new()
        .file("ci/base.yaml", "preflightRules:\n- name: no-x\n  cel: {expression: e}\n- name: mine\n  exec: {command: [./check, ./arg], timeout: 1m}\n- {name: CRDUpgradeSafety}\n")
        .with("ci/base.yaml", "preflightRules:\n- name: no-x\n  cel: {expression: e}\n- name: mine\n  exec: {command: [./check, ./arg], timeout: 1m}\n- {name: CRDUpgradeSafety}\n")
        .with("over.yaml", "preflightRules:\n- {name: mine, exec: {timeout: 2m}, config: {mode: warn}}\n- {name: no-x, enabled: false}\n");
    assert_eq!(bed.checks(), ["mine", "CRDUpgradeSafety"]);
    let settings = bed.settings();
    assert_eq!(settings.own_checks.iter().map(|check| &*check.name).collect::<Vec<_>>(), ["no-x", "mine"]);
    let mine = &settings.checks[0];
    assert_eq!(mine.mode, Mode::Warn);
    assert!(matches!(mine.definition, Definition::Own { kind: "exec", .. }));
    let list = settings.list();
    assert_eq!(source(&list, "preflightRules[mine].exec.timeout"), ("-c file", "over.yaml:4:32"));
    let command = list.iter().find(|setting| setting.path == "preflightRules[mine].exec.command").unwrap();
    assert_eq!(command.value, serde_json::json!(["ci/check", "./arg"]), "the program starts at the file's folder");
    // What is shown can be loaded again.
    let shown = settings.show();
    assert!(shown.contains("  exec:\n    command:\n      - ci/check"), "{shown}");
    let bed = Bed::new().raw_file("shown.yaml", &shown);
    assert_eq!(bed.problems(), Vec::<String>::new());
}

#[test]
fn what_is_wrong_with_a_check_of_ones_own_has_its_line() {
    let body = "preflightRules:\n- name: a\n  cel: {}\n- name: b\n  exec: {timeout: 1s}\n- {name: c, cel: {expression: e}, exec: {command: [c]}}\n- {name: Nay, cel: {expression: e}}\n- {name: CRDUpgradeSafety, cel: {expression: e}}\n- {name: d}\n";
    let problems = Bed::new().with("c.yaml", body).problems();
    let starts = [
        "c.yaml:5:3: preflightRules[a].cel has no expression | write one",
        "c.yaml:7:3: preflightRules[b].exec has no command | name it",
        "c.yaml:8:35: the check \"c\" has both \"cel\" and \"exec\" | make two checks",
        "c.yaml:9:15: \"Nay\" cannot be the name of a check of your own | use lower case",
        "c.yaml:10:28: \"CRDUpgradeSafety\" is a check of gantry's own and takes no \"cel\"",
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
    assert!(
        say(&loaded.notices[0]).starts_with("manifests/config.yaml:7:3: left alone: \"exec\" of the check \"mine\"")
    );
    let check = &loaded.settings.checks[1];
    assert!(matches!(&check.definition, Definition::NotRun { at: Some(at) } if at.line == 7), "{:?}", check.definition);
    // Nor does one get into the place of another.
    let bed = Bed::new().with("c.yaml", "preflightRules:\n- name: mine\n  exec: {command: [./good]}\n").manifest(&exec);
    let loaded = bed.load();
    assert_eq!(loaded.notices.len(), 1);
    let config = loaded.settings.checks[0].config.0.as_ref().unwrap().to_value();
    assert_eq!(config, serde_json::json!({"command": ["./good"]}));
    // An expression does no harm, but it does not replace one of the team's.
    let cel = gantry("preflightRules:\n- name: mine\n  cel: {expression: 'true'}\n");
    assert_eq!(Bed::new().manifest(&cel).checks(), ["CRDUpgradeSafety", "mine"]);
    let bed = Bed::new().with("c.yaml", "preflightRules:\n- name: mine\n  cel: {expression: e}\n").manifest(&cel);
    let loaded = bed.load();
    assert_eq!(loaded.settings.checks[0].config.0.as_ref().unwrap().to_value(), serde_json::json!({"expression": "e"}));
    assert!(say(&loaded.notices[0]).contains("left alone: \"cel\""));
}
