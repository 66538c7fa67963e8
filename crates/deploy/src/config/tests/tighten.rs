//! Config documents among the manifests: what they may do, and what is ignored.

use super::*;

const TEAM: &str = "preflightRules:\n- name: CRDUpgradeSafety\n";

fn rules(entries: &str) -> String {
    gantry(&format!("preflightRules:\n{entries}"))
}

fn notices(bed: &Bed) -> Vec<String> {
    bed.load().notices.iter().map(ToString::to_string).collect()
}

/// The effective value and its layer; `None` if the default is in effect.
fn effective(bed: &Bed, key: &str) -> Option<(String, String)> {
    let path = format!("preflightRules[CRDUpgradeSafety].config.{key}");
    let list = bed.settings().list();
    let found = list.iter().find(|setting| setting.path == path)?;
    Some((found.value.as_str().unwrap_or_default().to_owned(), found.layer.clone()))
}

fn user(body: &str) -> Bed {
    Bed::new().user(body)
}

fn project(body: &str) -> Bed {
    Bed::new().file("gantry.yaml", body)
}

fn file(body: &str) -> Bed {
    Bed::new().with("c.yaml", body)
}

#[test]
fn manifests_cannot_weaken_a_check_that_a_config_file_configures() {
    for team in [user, project, file] {
        for (entry, ignored) in [
            ("- {name: CRDUpgradeSafety, enabled: false}\n", "enabled: false"),
            ("- {name: CRDUpgradeSafety, config: {mode: warn}}\n", "mode: warn"),
            ("- {name: CRDUpgradeSafety, config: {failMode: open}}\n", "failMode: open"),
            ("- {name: CRDUpgradeSafety, config: {enforcement: None}}\n", "enforcement: None"),
            ("- {name: CRDUpgradeSafety, config: {preset: theirs}}\n", "preset: theirs"),
        ] {
            for preflight in [None, Some("CRDUpgradeSafety")] {
                for text in [rules(entry), kapp(&format!("preflightRules:\n{entry}"))] {
                    let bed = team(TEAM).manifest(&text);
                    let bed = preflight.into_iter().fold(bed, Bed::preflight);
                    let loaded = bed.load();
                    let checks: Vec<(&str, Mode)> =
                        loaded.settings.checks.iter().map(|check| (check.name.as_str(), check.mode)).collect();
                    assert_eq!(checks, [("CRDUpgradeSafety", Mode::Error)], "{entry}");
                    for key in ["mode", "failMode", "enforcement", "preset"] {
                        assert_eq!(effective(&bed, key), None, "{entry}");
                    }
                    let [notice] = notices(&bed).try_into().unwrap_or_else(|all| panic!("{all:?}"));
                    assert!(
                        notice.starts_with("manifests/config.yaml:6:")
                            && notice.contains(&format!("ignored: {ignored} of the check \"CRDUpgradeSafety\"")),
                        "{notice}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_notice_names_the_config_file_with_the_entry_that_counts() {
    let bed = file(TEAM).manifest(&rules("- {name: CRDUpgradeSafety, enabled: false}\n"));
    assert_eq!(
        bed.load().notices.iter().map(say).collect::<Vec<_>>(),
        [
            "manifests/config.yaml:6:28: ignored: enabled: false of the check \"CRDUpgradeSafety\"; a Config document among \
             the manifests may only make a check stricter | the check is configured at c.yaml:4; change it there, or with -c FILE"
        ]
    );
}

#[test]
fn manifests_may_be_stricter_than_the_team() {
    let loose = "preflightRules:\n- name: CRDUpgradeSafety\n  enabled: false\n  config: {mode: warn, failMode: open, enforcement: None}\n";
    let strict = "- name: CRDUpgradeSafety\n  enabled: true\n  config: {mode: error, failMode: closed, enforcement: Strict}\n- name: PermissionValidation\n";
    let bed = project(loose).manifest(&rules(strict));
    assert_eq!(bed.checks(), ["CRDUpgradeSafety", "PermissionValidation"]);
    for (key, value) in [("mode", "error"), ("failMode", "closed"), ("enforcement", "Strict")] {
        assert_eq!(effective(&bed, key), Some((value.into(), "manifests".into())));
    }
    assert_eq!(notices(&bed), Vec::<String>::new());
    // A later document cannot undo it.
    let back = "- name: CRDUpgradeSafety\n  enabled: false\n  config: {mode: warn}\n";
    let bed = bed.manifest(&rules(back));
    assert_eq!(effective(&bed, "mode"), Some(("error".into(), "manifests".into())));
    assert_eq!(bed.checks().len(), 2);
    assert_eq!(notices(&bed).len(), 2);
}

#[test]
fn manifests_configure_the_keys_of_kapp_for_checks_that_no_config_file_has() {
    let other = "preflightRules:\n- name: PermissionValidation\n";
    let entry = "- name: CRDUpgradeSafety\n  config: {mode: warn, failMode: open}\n";
    for (bed, count) in [(Bed::new(), 1), (project(other), 2), (Bed::new().preflight("CRDUpgradeSafety"), 1)] {
        let bed = bed.manifest(&kapp(&format!("preflightRules:\n{entry}")));
        assert_eq!(bed.checks().len(), count);
        assert_eq!(effective(&bed, "mode"), Some(("warn".into(), "manifests".into())));
        assert_eq!(
            notices(&bed),
            [
                "manifests/config.yaml:7:12: a Config document among the manifests sets mode: warn for the check \"CRDUpgradeSafety\"",
                "manifests/config.yaml:7:24: a Config document among the manifests sets failMode: open for the check \"CRDUpgradeSafety\"",
            ]
        );
    }
    // They can also disable it, unless the flag names the check.
    let off = rules("- {name: CRDUpgradeSafety, enabled: false}\n");
    let bed = Bed::new().manifest(&off);
    assert_eq!(bed.checks(), Vec::<String>::new());
    assert!(notices(&bed)[0].ends_with("disables the check \"CRDUpgradeSafety\""), "{:?}", notices(&bed));
    for bed in
        [bed.preflight("CRDUpgradeSafety"), Bed::new().manifest(&off).variable("GANTRY_PREFLIGHT", "CRDUpgradeSafety")]
    {
        assert_eq!(bed.checks(), ["CRDUpgradeSafety"]);
        assert!(notices(&bed)[0].contains("ignored: enabled: false"), "{:?}", notices(&bed));
    }
    // Keys that kapp does not read can be set only in files.
    let bed = Bed::new().manifest(&rules("- {name: CRDUpgradeSafety, config: {enforcement: None, preset: theirs}}\n"));
    assert_eq!((effective(&bed, "enforcement"), effective(&bed, "preset")), (None, None));
    assert_eq!(notices(&bed).len(), 2);
}

#[test]
fn manifests_that_name_another_check_do_not_replace_the_default_one() {
    for text in ["- name: PermissionValidation\n", "- {name: mine, cel: {expression: e}}\n"] {
        assert_eq!(Bed::new().manifest(&rules(text)).checks().len(), 2, "{text}");
        assert_eq!(Bed::new().manifest(&rules(text)).checks()[0], "CRDUpgradeSafety");
    }
    let bed = Bed::new().manifest(&gantry("preflightRules: []\n"));
    assert_eq!(bed.checks(), ["CRDUpgradeSafety"]);
    assert!(
        notices(&bed)[0]
            .ends_with("an empty preflightRules does not disable the checks that run by default or are inherited")
    );
    // A file of the team decides which checks run.
    let bed = project("preflightRules:\n- name: PermissionValidation\n").manifest(&gantry("preflightRules: []\n"));
    assert_eq!(bed.checks(), ["PermissionValidation"]);
}

#[test]
fn an_invalid_configuration_among_the_manifests_is_an_error() {
    for entry in [
        "- {name: CRDUpgradeSafety, config: {mode: wran}}\n",
        "- {name: CRDUpgradeSafety, config: {mode: [warn]}}\n",
        "- {name: CRDUpgradeSafety, config: {mod: warn}}\n",
        "- {name: CRDUpgradeSafety, cel: {expression: 'true'}}\n",
        "- {name: CRDUpgradeSafty}\n",
        "- name: CRDUpgradeSafety\n- {name: CRDUpgradeSafety, enabled: false}\n",
    ] {
        for bed in [Bed::new(), project(TEAM)] {
            assert_eq!(bed.manifest(&rules(entry)).problems().len(), 1, "{entry}");
        }
    }
    // Nor do they hide one of the team.
    let bed = project("preflightRules:\n- {name: CRDUpgradeSafety, config: {mode: wran}}\n");
    let bed = bed.manifest(&rules("- {name: CRDUpgradeSafety, config: {mode: warn}}\n"));
    assert_eq!(bed.problems().len(), 1);
}

#[test]
fn waivers_of_manifests_are_ignored() {
    let bed = Bed::new().manifest(&gantry("waivers:\n- {rule: '*', reason: let me in}\n"));
    assert_eq!(bed.settings().waivers, []);
    assert_eq!(notices(&bed), ["manifests/config.yaml:5:1: ignored: waivers in a Config document among the manifests"]);
}

#[test]
fn manifests_cannot_touch_a_check_of_the_teams_own() {
    let team = "preflightRules:\n- {name: mine, enabled: false, exec: {command: [./mine]}}\n- {name: no-x, cel: {expression: e}}\n";
    let theirs = "- {name: mine, enabled: true}\n- {name: no-x, enabled: false, config: {mode: warn}}\n- {name: theirs, cel: {expression: e}, config: {mode: warn}}\n";
    let bed = file(team).manifest(&rules(theirs));
    let checks: Vec<(String, Mode)> = bed.settings().checks.into_iter().map(|check| (check.name, check.mode)).collect();
    let safety = ("CRDUpgradeSafety".into(), Mode::Error);
    assert_eq!(checks, [safety, ("no-x".into(), Mode::Error), ("theirs".into(), Mode::Warn)]);
    let ignored = [
        "enabled: true of the check \"mine\"",
        "enabled: false of the check \"no-x\"",
        "mode: warn of the check \"no-x\"",
    ];
    assert_eq!(notices(&bed).len(), 3, "{:?}", notices(&bed));
    for (notice, what) in notices(&bed).iter().zip(ignored) {
        assert!(notice.contains(&format!("ignored: {what}")), "{notice}");
    }
}

/// Notices beyond a limit are only counted. A notice about a weakened check is always shown.
#[test]
fn notices_about_weakened_checks_come_before_those_about_ignored_keys() {
    let many: String = (0..40).map(|i| format!("- {{name: c{i}, exec: {{command: [c]}}}}\n")).collect();
    let weak = "- {name: CRDUpgradeSafety, config: {mode: warn}}\n";
    let bed = Bed::new().manifest(&rules(&format!("{many}{weak}")));
    let notices = notices(&bed);
    assert_eq!(notices.len(), 41);
    assert!(notices[0].contains("sets mode: warn"), "{}", notices[0]);
}

#[test]
fn a_config_file_that_is_also_among_the_manifests_is_read_once() {
    let body = "preflightRules:\n- {name: CRDUpgradeSafety, config: {preset: theirs}}\ntarget: dir:live\n";
    let mut bed = Bed::new().with("c.yaml", body);
    let text = std::fs::read_to_string(bed.loader.working_directory.join("c.yaml")).unwrap();
    let source = ManifestSource::new("./c.yaml", text);
    let bytes = 0..source.text().len();
    bed.manifests.push(ManifestOrigin {
        source: Arc::new(source),
        document: 1,
        line: 1,
        bytes,
        within: Vec::new(),
        renamed: &[],
    });
    assert_eq!(notices(&bed), Vec::<String>::new());
    assert_eq!(effective(&bed, "preset"), Some(("theirs".into(), "-c file".into())));
}
