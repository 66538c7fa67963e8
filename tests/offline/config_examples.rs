//! Every file in `config-examples/` loads, has the documented effect, and is valid by the JSON Schema.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gantry_core::finding::Mode;
use gantry_core::options::{AdmissionMode, UnjudgedChange};
use gantry_deploy::config::{CheckDefinition, LoadedSettings, Loader, SelectedCheck, schema};
use gantry_preflight::registry;

/// The files to load for each example, the example itself last, and the resulting `mode` and `failMode`.
const EXAMPLES: &[(&[&str], Mode, Option<&str>)] = &[
    (&["team-defaults.yaml"], Mode::Error, Some("closed")),
    (&["catalogs.yaml"], Mode::Error, None),
    (&["warn-only.yaml"], Mode::Warn, None),
    (&["fail-open.yaml"], Mode::Error, Some("open")),
    (&["existing-objects.yaml"], Mode::Error, None),
    (&["evidence.yaml"], Mode::Error, None),
    (&["preset.yaml"], Mode::Error, None),
    (&["permissions.yaml"], Mode::Error, None),
    (&["server-verdict.yaml"], Mode::Error, None),
    (&["admission.yaml"], Mode::Error, None),
    (&["waivers.yaml"], Mode::Error, None),
    (&["conversion-webhook.yaml"], Mode::Error, None),
    (&["crdify.yaml"], Mode::Error, None),
    (&["app.yaml"], Mode::Error, None),
    (&["pipeline-reports.yaml"], Mode::Error, None),
    (&["extensions.yaml"], Mode::Error, None),
    (&["operators.yaml"], Mode::Error, None),
    (&["kapp.yaml"], Mode::Error, Some("closed")),
    (&["per-environment/base.yaml"], Mode::Error, Some("closed")),
    (&["per-environment/base.yaml", "per-environment/staging.yaml"], Mode::Warn, Some("closed")),
    (&["per-environment/base.yaml", "per-environment/production.yaml"], Mode::Error, Some("closed")),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config-examples")
}

fn load(files: &[&str]) -> LoadedSettings {
    let loader =
        Loader { working_directory: folder(), files: files.iter().map(PathBuf::from).collect(), ..Loader::default() };
    loader.load([], &registry::known()).unwrap_or_else(|error| panic!("{files:?}: {error}"))
}

#[test]
fn every_example_says_what_it_is_for() {
    let of_several_checks =
        [["server-verdict.yaml"], ["app.yaml"], ["extensions.yaml"], ["operators.yaml"], ["preset.yaml"]];
    for (files, mode, fail_mode) in EXAMPLES.iter().filter(|(files, ..)| of_several_checks.iter().all(|of| files != of))
    {
        let settings = load(files).settings;
        // CustomResourceValidation runs beside it, unless the example names checks.
        let [check, ..] = settings.checks.as_slice() else { panic!("{files:?}: {:?}", settings.checks) };
        let is_beside = |check: &SelectedCheck| check.by_default || check.name == "CustomResourceValidation";
        assert!(settings.checks[1..].iter().all(is_beside), "{files:?}: {:?}", settings.checks);
        let found = check.config.0.as_ref().and_then(|config| config.get("failMode")).map(|value| value.to_value());
        assert_eq!((check.mode, found), (*mode, fail_mode.map(Into::into)), "{files:?}");
    }
}

#[test]
fn the_example_of_server_verdicts_checks_kinds_and_objects() {
    let checks = load(&["server-verdict.yaml"]).settings.checks;
    let checks: Vec<(&str, Mode)> = checks.iter().map(|check| (check.name.as_str(), check.mode)).collect();
    assert_eq!(checks, [("APIAvailability", Mode::Warn), ("AdmissionDryRun", Mode::Error)]);
}

#[test]
fn the_example_of_a_preset_leaves_the_default_checks_on() {
    let checks = load(&["preset.yaml"]).settings.checks;
    let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["CRDUpgradeSafety", "CustomResourceValidation"]);
    let config = checks[0].config.0.as_ref().expect("the preset");
    assert_eq!(config.to_value(), serde_json::json!({"preset": "semantic"}));
}

#[test]
fn the_example_of_the_webhook_names_crds_for_each_mode() {
    let admission = load(&["admission.yaml"]).settings.admission;
    let words = [
        ("widgets.example.com", AdmissionMode::Deny),
        ("databases.example.org", AdmissionMode::Deny),
        ("gadgets.example.org", AdmissionMode::Warn),
        ("tools.some.vendor.example", AdmissionMode::Audit),
        ("widgets.dev.example.com", AdmissionMode::Ignore),
    ];
    for (crd, mode) in words {
        assert_eq!(admission.mode_of(crd), mode, "{crd}");
    }
    assert_eq!(admission.on_timeout, UnjudgedChange::Warn);
    assert_eq!(admission.accepted_by, ["system:masters", "platform-team"]);
}

#[test]
fn the_example_of_an_app_has_a_record_and_limits() {
    let settings = load(&["app.yaml"]).settings;
    assert_eq!((settings.app.as_deref(), settings.app_namespace.as_deref()), (Some("shop"), Some("shop-system")));
    assert_eq!(settings.take_ownership, ["deployment.apps/shop", "service/shop"]);
    assert_eq!(settings.timeouts.delete, Duration::from_secs(600));
    let checks: Vec<(&str, Mode)> = settings.checks.iter().map(|check| (check.name.as_str(), check.mode)).collect();
    assert_eq!(checks, [("CRDUpgradeSafety", Mode::Error), ("DeletionSafety", Mode::Error)]);
    // Ten of forty are more than a fifth.
    let most = settings.prune_max.expect("a limit");
    assert!(most.allows(8, 40) && !most.allows(10, 40));
}

#[test]
fn the_example_of_a_pipeline_writes_reports_to_files() {
    let outputs = load(&["pipeline-reports.yaml"]).settings.output;
    let files: Vec<_> = outputs.iter().filter_map(|output| output.file.as_deref()?.to_str()).collect();
    let expected = ["gantry.json", "gantry.sarif", "gantry.xml", "gantry.html"].map(|name| folder().join(name));
    assert!(files.iter().zip(&expected).all(|(file, expected)| expected.ends_with(file)), "{files:?}");
    assert_eq!((outputs.len(), files.len()), (5, 4));
}

#[test]
fn no_example_is_forgotten() {
    let covered: BTreeSet<PathBuf> =
        EXAMPLES.iter().filter_map(|(files, ..)| files.last()).chain(OWN_CHECKS).map(PathBuf::from).collect();
    assert_eq!(covered, examples());
}

#[test]
fn files_of_environments_override_their_base() {
    let staging = load(&["per-environment/base.yaml", "per-environment/staging.yaml"]).settings;
    let production = load(&["per-environment/base.yaml", "per-environment/production.yaml"]).settings;
    assert_eq!((staging.context.as_deref(), production.context.as_deref()), (Some("staging"), Some("production")));
    assert_eq!((staging.field_manager.as_str(), production.field_manager.as_str()), ("platform", "platform"));
    assert_eq!(staging.timeouts.established, Duration::from_secs(60));
    assert_eq!(production.timeouts.established, Duration::from_secs(300));
}

#[test]
fn only_the_file_of_kapp_causes_notices() {
    for (files, ..) in EXAMPLES {
        let notices = load(files).notices;
        assert_eq!(notices.len(), usize::from(files.contains(&"kapp.yaml")), "{files:?}: {notices:?}");
    }
    assert_eq!(
        load(&["kapp.yaml"]).notices[0].message,
        "ignored in kapp's Config: minimumRequiredVersion, diffAgainstLastAppliedFieldExclusionRules"
    );
}

/// To update the file: `UPDATE_DOCS=1 cargo test --test offline config_examples`.
#[test]
fn the_published_schema_is_the_one_that_the_program_prints() {
    let file = folder().join("../docs/config.schema.json");
    let text = format!("{:#}\n", schema(&registry::known()));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), text, "docs/config.schema.json is not up to date");
}

#[test]
fn the_first_line_of_every_example_of_gantry_names_the_schema() {
    for file in examples().into_iter().map(|file| folder().join(file)) {
        let text = std::fs::read_to_string(&file).unwrap();
        let line = text.lines().next().unwrap_or_default();
        let named = line.strip_prefix("# yaml-language-server: $schema=");
        let named = named.map(|path| file.parent().unwrap().join(path).canonicalize().unwrap());
        let expected = folder().join("../docs/config.schema.json").canonicalize().unwrap();
        let of_kapp = text.contains(gantry_deploy::config::KAPP_API_VERSION);
        assert_eq!(named, (!of_kapp).then_some(expected), "{}", file.display());
    }
}

#[test]
fn every_example_of_gantry_fits_the_schema() {
    let validator = jsonschema::validator_for(&schema(&registry::known())).expect("the schema is one");
    for file in examples() {
        let text = std::fs::read_to_string(folder().join(&file)).expect("an example");
        let value = gantry_yaml::parse(&text).expect("YAML").expect("a document").to_value();
        let of_kapp = value["apiVersion"] == gantry_deploy::config::KAPP_API_VERSION;
        assert_eq!(validator.is_valid(&value), !of_kapp, "{}", file.display());
    }
}

#[test]
fn the_documentation_shows_the_real_output() {
    let shown = load(&["per-environment/base.yaml", "per-environment/staging.yaml"]).settings.show();
    let page = std::fs::read_to_string(folder().join("../docs/configuration.md")).expect("the page");
    assert!(page.contains(&shown), "docs/configuration.md does not hold:\n{shown}");
}

#[test]
fn the_documentation_names_every_key_of_every_check() {
    let page = std::fs::read_to_string(folder().join("../docs/configuration.md")).expect("the page");
    for check in registry::known().checks {
        assert!(page.contains(&format!("`{}`", check.name)), "{}", check.name);
        for key in check.keys() {
            assert!(page.contains(&format!("| `{}` |", key.name)), "{} of {}", key.name, check.name);
        }
    }
}

/// Each has three checks, which `tests/checks/custom_checks.rs` runs.
const OWN_CHECKS: &[&str] = &["own-checks-cel.yaml", "own-checks-exec.yaml"];

#[test]
fn the_example_of_own_checks_has_three_of_each_kind() {
    for (file, kind) in OWN_CHECKS.iter().zip(["cel", "exec"]) {
        let settings = load(&[file]).settings;
        let is_own =
            |check: &SelectedCheck| matches!(check.definition, CheckDefinition::Own { kind: key, .. } if key == kind);
        let own: Vec<&SelectedCheck> = settings.checks.iter().filter(|check| !check.by_default).collect();
        assert!(own.len() == 3 && own.into_iter().all(is_own), "{:?}", settings.checks);
    }
}

/// Every YAML file in the folder, at any depth, relative to it.
fn examples() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("the folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                found.insert(path.strip_prefix(folder()).expect("below the folder").to_owned());
            }
        }
    }
    found
}
