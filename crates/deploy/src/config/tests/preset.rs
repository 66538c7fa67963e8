//! `preset`: the flag over the variable over the files, and a later file over an earlier one.

use super::*;

/// The preset that the check runs with, and the source of the key that `gantry config show` prints for it.
fn preset(bed: &Bed) -> Option<String> {
    let settings = bed.settings();
    let check = settings.checks.iter().find(|check| check.name == "CRDUpgradeSafety").expect("it runs");
    let found = check.config.0.as_ref()?.get("preset")?.to_value();
    found.as_str().map(str::to_owned)
}

const OWN: &str = "preflightRules:\n- name: CRDUpgradeSafety\n  config: {preset: theirs}\n";

#[test]
fn the_later_layer_sets_the_preset() {
    let flag = |bed: Bed| bed.flag(&key::PRESET, PresetFlag::Kapp);
    assert_eq!(preset(&Bed::new()), None);
    for (bed, expected) in [
        (Bed::new().file("gantry.yaml", "preset: semantic\n"), "semantic"),
        (Bed::new().variable("GANTRY_PRESET", "evidence"), "evidence"),
        (flag(Bed::new()), "kapp"),
        (flag(Bed::new().variable("GANTRY_PRESET", "evidence")), "kapp"),
        (Bed::new().file("gantry.yaml", OWN), "theirs"),
        // In one layer, what is said about the check alone counts.
        (Bed::new().file("gantry.yaml", &format!("preset: semantic\n{OWN}")), "theirs"),
        (Bed::new().file("gantry.yaml", OWN).with("c.yaml", "preset: semantic\n"), "semantic"),
        (Bed::new().file("gantry.yaml", "preset: semantic\n").with("c.yaml", OWN), "theirs"),
        (Bed::new().file("gantry.yaml", OWN).variable("GANTRY_PRESET", "evidence"), "evidence"),
        (flag(Bed::new().with("c.yaml", OWN)), "kapp"),
    ] {
        assert_eq!(preset(&bed).as_deref(), Some(expected));
        // What is shown has the same effect when it is loaded.
        let shown = bed.settings().show();
        let mut again = Bed::new().raw_file("shown.yaml", &shown);
        again.loader.files.push("shown.yaml".into());
        assert_eq!(preset(&again).as_deref(), Some(expected), "{shown}");
    }
}

#[test]
fn an_unknown_preset_is_an_error_with_the_similar_one() {
    let problems = Bed::new().variable("GANTRY_PRESET", "semantik").problems();
    assert!(problems[0].starts_with("GANTRY_PRESET: \"semantik\" is not one of documented, semantic"), "{problems:?}");
    assert!(problems[0].contains("(did you mean \"semantic\"?)"), "{problems:?}");
    let problems = Bed::new().file("gantry.yaml", "preset: olm\n").problems();
    assert!(problems[0].starts_with("gantry.yaml:3:9: preset: \"olm\" is not one of"), "{problems:?}");
}

#[test]
fn manifests_cannot_set_the_preset() {
    let problems = Bed::new().manifest(&gantry("preset: semantic\n")).problems();
    assert!(problems[0].contains("a Config document among the manifests cannot set \"preset\""), "{problems:?}");
    let bed = Bed::new().manifest(&gantry(OWN));
    assert_eq!(preset(&bed), None);
}

#[test]
fn a_preset_for_a_check_that_does_not_run_is_reported() {
    let bed = Bed::new().preflight("PermissionValidation").flag(&key::PRESET, PresetFlag::Semantic);
    let notices: Vec<String> = bed.load().notices.iter().map(ToString::to_string).collect();
    assert_eq!(notices, ["--preset: has no effect, because CRDUpgradeSafety does not run"]);
}
