//! Tests of the layers from end to end: files in, settings or problems out.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use gantry_core::finding::Mode;
use gantry_core::manifest::ManifestSource;
use gantry_core::options::{PresetFlag, TargetSpec};

mod custom_checks;
mod lists;
mod preset;
mod project;
mod schemas;
mod shown;
mod tighten;

fn configure_safety(reader: &mut ConfigReader<'_>) {
    let choices = [("closed", true), ("open", false)];
    reader.strictness("failMode", "What an unknown change does.", &choices, true, AmongManifests::Set);
    let choices = [("Strict", true), ("None", false)];
    reader.strictness("enforcement", "Whether.", &choices, true, AmongManifests::Tighten);
    reader.choice("preset", "Whose.", &[("ours", 1), ("theirs", 2), ("semantic", 3), ("evidence", 4), ("kapp", 5)], 1);
}

fn configure_permissions(reader: &mut ConfigReader<'_>) {
    reader.strings("verbs", "The verbs.");
    reader.integer("limit", "How many.", 3);
    reader.bool("deep", "Whether.", false);
    reader.string("user", "Who.");
    reader.duration("patience", "How long.", Duration::from_secs(1));
    if let Some(nested) = reader.value("nested", serde_json::json!({"type": "object"})) {
        for (key, value) in nested.entries().filter(|(key, _)| *key != "fine") {
            reader.report_problem(&format!("nested.{key}"), value, "is not fine");
        }
    }
}

fn known() -> KnownPreflightRules {
    KnownPreflightRules {
        checks: vec![
            KnownCheck { name: "CRDUpgradeSafety", about: "CRDs stay safe.", configure: configure_safety },
            KnownCheck { name: "PermissionValidation", about: "Rights are there.", configure: configure_permissions },
        ],
        left_out: &[],
        kinds: vec![
            KnownKind { key: "cel", about: "An expression.", runs_programs: false, configure: configure_cel },
            KnownKind { key: "exec", about: "A program.", runs_programs: true, configure: configure_exec },
        ],
    }
}

fn configure_cel(reader: &mut ConfigReader<'_>) {
    reader.string("expression", "What holds.");
    reader.required("expression", "write one");
}

fn configure_exec(reader: &mut ConfigReader<'_>) {
    reader.strings("command", "What runs.");
    reader.required("command", "name it");
    reader.duration("timeout", "How long.", Duration::from_secs(30));
}

#[test]
fn a_gantry_without_olm_refuses_its_checks_and_catalogs() {
    let body = "catalogs: [{name: a, path: catalog}]\npreflightRules: [{name: ExtensionResolution}]\n";
    let known = KnownPreflightRules { left_out: &["ExtensionResolution"], ..known() };
    let Err(Error::Usage(problems)) = Bed::new().file("gantry.yaml", body).loader.load([], &known) else {
        panic!("no usage error")
    };
    let refused = [
        "gantry.yaml:4:25: unknown preflight check in configuration: \"ExtensionResolution\"",
        "gantry.yaml:3:11: catalogs: no check reads them",
    ];
    let next = "this gantry was built without Operator Lifecycle Manager: use a build with the feature olm";
    assert_eq!(problems.iter().map(say).collect::<Vec<_>>(), refused.map(|text| format!("{text} | {next}")));
}

/// A folder with config files to load.
struct Bed {
    folder: TempDir,
    loader: Loader,
    manifests: Vec<ManifestOrigin>,
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let home = folder.path().join("home").to_str().unwrap().to_owned();
        let variable = if cfg!(windows) { "APPDATA" } else { "HOME" };
        let environment = [(variable.to_owned(), home)].into();
        let loader = Loader { environment, working_directory: work, ..Loader::default() };
        Bed { folder, loader, manifests: Vec::new() }
    }

    fn file(self, name: &str, body: &str) -> Self {
        let path = self.loader.working_directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, gantry(body)).unwrap();
        self
    }

    fn raw_file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.loader.working_directory.join(name), text).unwrap();
        self
    }

    fn user(self, body: &str) -> Self {
        let below = if cfg!(windows) { "home/gantry" } else { "home/.config/gantry" };
        let folder = self.folder.path().join(below);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.yaml"), gantry(body)).unwrap();
        self
    }

    /// `-c`
    fn with(mut self, name: &str, body: &str) -> Self {
        self.loader.files.push(name.into());
        self.file(name, body)
    }

    fn manifest(mut self, text: &str) -> Self {
        let before = "kind: Other\n---\n";
        let source = ManifestSource::new("manifests/config.yaml", format!("{before}{text}"));
        let bytes = before.len()..source.text().len();
        self.manifests.push(ManifestOrigin {
            source: Arc::new(source),
            document: 2,
            line: 3,
            bytes,
            within: Vec::new(),
            renamed: &[],
        });
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.loader.environment.insert(name.into(), value.into());
        self
    }

    fn preflight(mut self, value: &str) -> Self {
        self.loader.overrides = self.loader.overrides.with_checks(&[value.to_owned()]);
        self
    }

    fn flag(mut self, key: &ConfigKey, value: impl FlagValue) -> Self {
        self.loader.overrides = self.loader.overrides.with(key, &value);
        self
    }

    fn try_load(&self) -> Result<LoadedSettings> {
        self.loader.load(&self.manifests, &known())
    }

    fn load(&self) -> LoadedSettings {
        self.try_load().unwrap_or_else(|error| panic!("{error}"))
    }

    fn settings(&self) -> Settings {
        self.load().settings
    }

    /// `place: message | help`
    fn problems(&self) -> Vec<String> {
        match self.try_load() {
            Ok(_) => Vec::new(),
            Err(Error::Usage(problems)) => problems.iter().map(say).collect(),
            Err(error) => panic!("not a usage error: {error}"),
        }
    }

    fn checks(&self) -> Vec<String> {
        self.settings().checks.iter().map(|check| check.name.clone()).collect()
    }
}

fn gantry(body: &str) -> String {
    format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\n{body}")
}

fn kapp(body: &str) -> String {
    format!("apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\n{body}")
}

fn say(problem: &Problem) -> String {
    match &problem.help {
        Some(help) => format!("{problem} | {help}"),
        None => problem.to_string(),
    }
}

fn source<'a>(list: &'a [Setting], path: &str) -> (&'a str, &'a str) {
    let found = list.iter().find(|setting| setting.path == path).unwrap_or_else(|| panic!("no {path} in {list:#?}"));
    (&found.layer, &found.source)
}

#[test]
fn without_any_layer_the_default_check_runs_with_defaults() {
    let settings = Bed::new().settings();
    assert_eq!(settings.checks.len(), 1);
    assert_eq!(settings.checks[0].name, "CRDUpgradeSafety");
    assert_eq!(settings.checks[0].mode, Mode::Error);
    assert_eq!(
        (settings.field_manager.as_str(), settings.is_on(&key::WARN_ONLY), settings.is_on(&key::FORCE_CONFLICTS)),
        ("gantry", false, false)
    );
    assert_eq!(settings.target, TargetSpec::Kube);
    assert_eq!(settings.timeouts.request, Duration::from_secs(30));
    assert_eq!(settings.output.len(), 1);
    assert_eq!(source(&settings.list(), "fieldManager"), ("default", ""));
}

/// Removes the layers from the top; each time, the next lower layer takes effect.
#[test]
fn a_value_comes_from_the_last_layer_that_sets_it() {
    let mut bed = Bed::new()
        .user("fieldManager: user\nnamespace: user\n")
        .file("gantry.yaml", "fieldManager: project\n")
        .with("a.yaml", "fieldManager: a\n")
        .with("b.yaml", "\nfieldManager: b\n")
        .variable("GANTRY_FIELD_MANAGER", "variable")
        .flag(&key::FIELD_MANAGER, "flag".to_owned());
    let shown = |bed: &Bed| {
        let settings = bed.settings();
        let list = settings.list();
        let (layer, place) = source(&list, "fieldManager");
        (settings.field_manager.clone(), format!("{layer} {place}"))
    };
    let expect = |value: &str, place: &str| (value.to_owned(), place.to_owned());

    assert_eq!(shown(&bed), expect("flag", "flag --field-manager"));
    bed.loader.overrides = Overrides::default();
    assert_eq!(shown(&bed), expect("variable", "environment GANTRY_FIELD_MANAGER"));
    bed.loader.environment.remove("GANTRY_FIELD_MANAGER");
    assert_eq!(shown(&bed), expect("b", "-c file b.yaml:4:15"));
    bed.loader.files.pop();
    assert_eq!(shown(&bed), expect("a", "-c file a.yaml:3:15"));
    bed.loader.files.pop();
    assert_eq!(shown(&bed), expect("project", "project file gantry.yaml:3:15"));
    assert_eq!(bed.settings().namespace.as_deref(), Some("user"));
    std::fs::remove_file(bed.loader.working_directory.join("gantry.yaml")).unwrap();
    let (value, place) = shown(&bed);
    assert_eq!(value, "user");
    assert!(place.starts_with("user file ") && place.ends_with("config.yaml:3:15"), "{place}");
}

#[test]
fn rules_merge_by_name_and_by_key() {
    let bed = Bed::new()
        .file("gantry.yaml", "preflightRules:\n- name: PermissionValidation\n  config: {verbs: [get, list], limit: 5}\n- name: CRDUpgradeSafety\n  config:\n    mode: warn\n")
        .with("b.yaml", "preflightRules:\n- name: CRDUpgradeSafety\n  config: {failMode: open}\n- name: PermissionValidation\n  config: {verbs: [patch]}\n");
    let settings = bed.settings();
    let names: Vec<&str> = settings.checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(names, ["PermissionValidation", "CRDUpgradeSafety"], "the order of first appearance");
    assert_eq!(settings.checks[1].mode, Mode::Warn);
    let list = settings.list();
    assert_eq!(source(&list, "preflightRules[CRDUpgradeSafety].config.mode"), ("project file", "gantry.yaml:8:11"));
    assert_eq!(source(&list, "preflightRules[CRDUpgradeSafety].config.failMode"), ("-c file", "b.yaml:5:22"));
    let verbs = list.iter().find(|setting| setting.path.ends_with("verbs")).unwrap();
    assert_eq!((verbs.value.to_string().as_str(), verbs.source.as_str()), ("[\"patch\"]", "b.yaml:7:19"));
    assert_eq!(source(&list, "preflightRules[PermissionValidation].config.limit").0, "project file");
}

#[test]
fn enabled_switches_inherited_checks_off_and_on() {
    let base = "preflightRules:\n- name: CRDUpgradeSafety\n- name: PermissionValidation\n";
    let off = "preflightRules:\n- {name: CRDUpgradeSafety, enabled: false}\n";
    let mention = "preflightRules:\n- {name: CRDUpgradeSafety, config: {mode: warn}}\n";
    let on = "preflightRules:\n- {name: CRDUpgradeSafety, enabled: true}\n";
    assert_eq!(Bed::new().with("a", base).with("b", off).checks(), ["PermissionValidation"]);
    assert_eq!(Bed::new().with("a", base).with("b", off).with("c", mention).checks(), ["PermissionValidation"]);
    assert_eq!(
        Bed::new().with("a", base).with("b", off).with("c", on).checks(),
        ["CRDUpgradeSafety", "PermissionValidation"]
    );
}

#[test]
fn running_no_check_is_reported() {
    let body = "preflightRules:\n- {name: CRDUpgradeSafety, enabled: false}\n";
    let loaded = Bed::new().file("gantry.yaml", body).load();
    assert!(loaded.settings.checks.is_empty());
    assert!(say(&loaded.notices[0]).starts_with("no preflight check runs"), "{:?}", loaded.notices);
    // A list without a built-in check, null, and a missing list leave the default as it is.
    let empty = Bed::new().file("gantry.yaml", "preflightRules: []\n");
    assert_eq!(empty.checks(), ["CRDUpgradeSafety"]);
    assert_eq!(Bed::new().file("gantry.yaml", "preflightRules:\n").checks(), ["CRDUpgradeSafety"]);
    let over = Bed::new()
        .file("gantry.yaml", "preflightRules: [{name: CRDUpgradeSafety}]\n")
        .with("b", "preflightRules: []\n");
    assert_eq!(over.checks(), ["CRDUpgradeSafety"]);
    assert_eq!(
        over.load().notices.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["b:3:1: an empty preflightRules does not disable the checks that run by default or are inherited"]
    );
}

#[test]
fn the_setting_that_disables_crd_upgrade_safety_is_known() {
    let place = |bed: Bed| bed.settings().without_crd_safety.map(|place| place.to_string());
    let file = |text: &str| Bed::new().file("gantry.yaml", &format!("preflightRules:\n{text}"));
    assert_eq!(place(Bed::new()), None);
    assert_eq!(place(file("- {name: mine, cel: {expression: e}}\n")), None);
    let other = "- {name: mine, cel: {expression: e}}\n- name: PermissionValidation\n";
    assert_eq!(place(file(other)).as_deref(), Some("gantry.yaml:5:9"));
    let off = "- name: PermissionValidation\n- name: CRDUpgradeSafety\n  enabled: false\n";
    assert_eq!(place(file(off)).as_deref(), Some("gantry.yaml:6:12"));
    assert_eq!(place(Bed::new().preflight("PermissionValidation")).as_deref(), Some("--preflight"));
    assert_eq!(place(file(other).preflight("CRDUpgradeSafety")), None);
    let variable = Bed::new().variable("GANTRY_PREFLIGHT", "PermissionValidation");
    assert_eq!(place(variable).as_deref(), Some("GANTRY_PREFLIGHT"));
}

#[test]
fn own_checks_add_to_the_default_and_do_not_replace_it() {
    let own = "preflightRules:\n- {name: mine, cel: {expression: e}}\n";
    assert_eq!(Bed::new().file("gantry.yaml", own).checks(), ["CRDUpgradeSafety", "mine"]);
    assert_eq!(Bed::new().with("c.yaml", own).checks(), ["CRDUpgradeSafety", "mine"]);
    let off = "preflightRules:\n- {name: mine, enabled: false, cel: {expression: e}}\n";
    assert_eq!(Bed::new().file("gantry.yaml", off).checks(), ["CRDUpgradeSafety"]);
    let chosen = "preflightRules:\n- {name: mine, cel: {expression: e}}\n- name: PermissionValidation\n";
    assert_eq!(Bed::new().file("gantry.yaml", chosen).checks(), ["mine", "PermissionValidation"]);
}

#[test]
fn named_checks_run_and_no_others() {
    let files = "preflightRules:\n- {name: CRDUpgradeSafety, enabled: false, config: {mode: warn}}\n- name: PermissionValidation\n";
    let bed = Bed::new().file("gantry.yaml", files).preflight("CRDUpgradeSafety");
    assert_eq!(bed.checks(), ["CRDUpgradeSafety"]);
    assert_eq!(bed.settings().checks[0].mode, Mode::Warn, "with its configuration from the files");
    let both = Bed::new().preflight("PermissionValidation, CRDUpgradeSafety");
    assert_eq!(both.checks(), ["PermissionValidation", "CRDUpgradeSafety"]);
    let twice = Bed::new().preflight("PermissionValidation").preflight("CRDUpgradeSafety");
    assert_eq!(twice.checks(), ["PermissionValidation", "CRDUpgradeSafety"]);
    let variable = Bed::new().file("gantry.yaml", files).variable("GANTRY_PREFLIGHT", "CRDUpgradeSafety");
    assert_eq!(variable.checks(), ["CRDUpgradeSafety"]);
    assert_eq!(variable.preflight("PermissionValidation").checks(), ["PermissionValidation"]);
}

#[test]
fn wrong_names_of_checks_are_refused_with_the_message_of_kapp() {
    assert_eq!(
        Bed::new().preflight("CRDUpgradeSafty,Nope,PermissionValidation,PermissionValidation").problems(),
        [
            "unknown preflight check \"CRDUpgradeSafty\" specified | did you mean \"CRDUpgradeSafety\"?",
            "unknown preflight check \"Nope\" specified | known checks: CRDUpgradeSafety, PermissionValidation",
            "duplicate preflight check \"PermissionValidation\" specified | name each check once",
        ]
    );
    assert_eq!(
        Bed::new().preflight("").problems(),
        ["unknown preflight check \"\" specified | known checks: CRDUpgradeSafety, PermissionValidation"]
    );
    assert_eq!(
        Bed::new().preflight("CRDUpgradeSafety,").problems(),
        ["unknown preflight check \"\" specified | there is a comma without a name before or after it; remove it"]
    );
    let files = "preflightRules:\n- name: CRDUpgradeSafety\n- name: crdUpgradeSafety\n- name: CRDUpgradeSafety\n";
    assert_eq!(
        Bed::new().file("gantry.yaml", files).problems(),
        [
            "gantry.yaml:6:9: duplicate preflight check in configuration: \"CRDUpgradeSafety\" | first defined at gantry.yaml:4:9; keep one of them",
            "gantry.yaml:5:9: unknown preflight check in configuration: \"crdUpgradeSafety\" | did you mean \"CRDUpgradeSafety\"?",
        ]
    );
}

#[test]
fn an_invalid_check_configuration_is_reported_with_its_line_even_if_the_check_is_off() {
    let files = "preflightRules:\n- name: CRDUpgradeSafety\n  config:\n    mode: eror\n    failmode: open\n    mood: 1\n- name: PermissionValidation\n  enabled: false\n  config: {verbs: [get, 1], limit: -1, deep: maybe, user: 3, patience: 0s, nested: {fine: 1, bad: 2}}\n";
    assert_eq!(
        Bed::new().file("gantry.yaml", files).problems(),
        [
            "gantry.yaml:6:11: preflightRules[CRDUpgradeSafety].config.mode: \"eror\" is not one of error, warn (did you mean \"error\"?)",
            "gantry.yaml:7:5: unknown key \"preflightRules[CRDUpgradeSafety].config.failmode\" | did you mean \"failMode\"?",
            "gantry.yaml:8:5: unknown key \"preflightRules[CRDUpgradeSafety].config.mood\" | did you mean \"mode\"?",
            "gantry.yaml:11:19: preflightRules[PermissionValidation].config.verbs: [\"get\",1] is not a list of strings",
            "gantry.yaml:11:36: preflightRules[PermissionValidation].config.limit: -1 is not a non-negative integer",
            "gantry.yaml:11:46: preflightRules[PermissionValidation].config.deep: \"maybe\" is not true or false",
            "gantry.yaml:11:59: preflightRules[PermissionValidation].config.user: 3 is not a string",
            "gantry.yaml:11:72: preflightRules[PermissionValidation].config.patience: \"0s\" must be longer than zero",
            "gantry.yaml:11:99: preflightRules[PermissionValidation].config.nested.bad: is not fine",
        ]
    );
}

#[test]
fn all_problems_of_a_document_are_reported_at_once() {
    let body = "warnonly: true\nwarnOnly: \"yes\"\ntimeouts: {request: 5, establishd: 1m}\nfieldManager: ''\nnamespace: Bad_Name\ncolor: allways\ntarget: cluster\noutput: [xml]\ncontext: 7\nzzz: 1\npreflightRules:\n- CRDUpgradeSafety\n- config: {}\n- {name: CRDUpgradeSafety, enable: false, config: []}\n";
    let problems = Bed::new().file("gantry.yaml", body).problems();
    let found: Vec<&str> = problems.iter().map(String::as_str).collect();
    assert_eq!(
        found[..9],
        [
            "gantry.yaml:3:1: unknown key \"warnonly\" | did you mean \"warnOnly\"?",
            "gantry.yaml:4:11: warnOnly: \"yes\" is not true or false",
            "gantry.yaml:5:21: timeouts.request: 5 is not a string; quote it",
            "gantry.yaml:5:24: unknown key \"timeouts.establishd\" | did you mean \"established\"?",
            "gantry.yaml:6:15: fieldManager: the value is empty",
            "gantry.yaml:7:12: namespace: \"Bad_Name\" is not a namespace: at most 63 lower case letters, digits and -, starting and ending with a letter or digit",
            "gantry.yaml:8:8: color: \"allways\" is not one of auto, always, never (did you mean \"always\"?)",
            "gantry.yaml:9:9: target: unknown target \"cluster\"; known: kube, dir:PATH, git:REV,…[:PATH], \
             chart:CHART, helm:[NAMESPACE/]RELEASE[:REVISION]",
            "gantry.yaml:10:9: output: unknown format \"xml\"; known: human, json, yaml, sarif, junit, markdown, github, gitlab, html, name",
        ]
    );
    assert!(
        found[10].starts_with(
            "gantry.yaml:12:1: unknown key \"zzz\" | known keys: preflightRules, waivers, catalogs, changeGroupBindings"
        ),
        "{found:#?}"
    );
    assert_eq!(
        found[11..],
        [
            "gantry.yaml:14:3: preflightRules[0] is not a mapping | write \"- name: CRDUpgradeSafety\"",
            "gantry.yaml:15:3: preflightRules[1] has no name | name the check: - name: CRDUpgradeSafety",
            "gantry.yaml:16:28: unknown key \"preflightRules[CRDUpgradeSafety].enable\" | did you mean \"enabled\"?",
            "gantry.yaml:16:51: preflightRules[CRDUpgradeSafety].config is not a mapping",
        ]
    );
}

#[test]
fn a_file_that_is_not_a_configuration_is_refused_with_its_line() {
    let file = "kind: Config\n---\napiVersion: v1\nkind: ConfigMap\n---\napiVersion: gantry.dev/v1alpha2\nkind: Config\n---\napiVersion: gantry.dev/v1alpha1\nkind: config\n---\na: [\n";
    let mut bed = Bed::new().raw_file("c.yaml", file);
    bed.loader.files.push("c.yaml".into());
    let problems = bed.problems();
    assert!(problems[0].starts_with(
        "c.yaml:1:1: this is not a configuration: apiVersion and kind are missing | a config file starts"
    ));
    assert!(
        problems[1]
            .starts_with("c.yaml:3:13: this is not a configuration but a ConfigMap (v1) | pass manifests with -f")
    );
    assert_eq!(
        problems[2],
        "c.yaml:6:13: unknown apiVersion \"gantry.dev/v1alpha2\" for a Config | did you mean \"gantry.dev/v1alpha1\"?"
    );
    assert_eq!(problems[3], "c.yaml:10:7: unknown kind \"config\" in gantry.dev/v1alpha1 | did you mean \"Config\"?");
    assert!(problems[4].starts_with("c.yaml:13:") || problems[4].starts_with("c.yaml:12:"), "{}", problems[4]);
    assert_eq!(problems.len(), 5);
}

#[test]
fn a_key_written_twice_is_refused() {
    assert_eq!(
        Bed::new().file("gantry.yaml", "warnOnly: true\nwarnOnly: false\n").problems(),
        ["gantry.yaml:4:1: the key \"warnOnly\" is written twice | first defined at gantry.yaml:3:1; keep one of them"]
    );
}

#[test]
fn a_named_config_file_must_exist_and_others_need_not() {
    let mut bed = Bed::new();
    assert!(bed.problems().is_empty());
    bed.loader.files = vec!["gone.yaml".into(), ".".into()];
    assert_eq!(
        bed.problems(),
        ["cannot read the config file gone.yaml: no such file", "cannot read the config file .: it is a directory"]
    );
    let path = bed.loader.working_directory.join("latin.yaml");
    std::fs::write(path, b"apiVersion: x\nkind: \xe9\n").unwrap();
    bed.loader.files = vec!["latin.yaml".into()];
    assert_eq!(bed.problems(), ["cannot read the config file latin.yaml: it is not UTF-8 (line 2)"]);
}

#[test]
fn unsupported_keys_of_kapp_are_named_once_and_ignored() {
    let body = "minimumRequiredVersion: 0.60.0\nlabelScopingRules: []\nwaitRules: []\npreflightRules:\n- name: CRDUpgradeSafety\n  config: {mode: warn}\n";
    let mut bed = Bed::new().raw_file("kapp.yaml", &kapp(body));
    bed.loader.files.push("kapp.yaml".into());
    let loaded = bed.load();
    assert_eq!(loaded.settings.checks[0].mode, Mode::Warn);
    assert_eq!(
        loaded.notices.iter().map(say).collect::<Vec<_>>(),
        [
            "kapp.yaml:1:1: ignored in kapp's Config: minimumRequiredVersion, labelScopingRules | gantry reads only preflightRules, changeGroupBindings, changeRuleBindings, waitRules, rebaseRules, diffMaskRules, diffAgainstExistingFieldExclusionRules, additionalLabels from it"
        ]
    );
    let bed = bed.raw_file("kapp.yaml", &kapp("preflightRule: []\n"));
    assert!(say(&bed.load().notices[0]).ends_with("did you mean \"preflightRules\" instead of \"preflightRule\"?"));
    let bed = bed.raw_file("kapp.yaml", &kapp("preflightRules: [{name: CRDUpgradeSafety, config: {mod: warn}}]\n"));
    assert_eq!(bed.problems().len(), 1, "the configuration of a check is strict in kapp's documents too");
}

#[test]
fn documents_among_the_manifests_configure_checks_and_nothing_else() {
    let bed = Bed::new()
        .manifest(&kapp("rebaseRules: []\npreflightRules:\n- name: PermissionValidation\n  config: {mode: error}\n"));
    assert_eq!(bed.checks(), ["CRDUpgradeSafety", "PermissionValidation"]);
    let list = bed.settings().list();
    assert_eq!(
        source(&list, "preflightRules[PermissionValidation].config.mode"),
        ("manifests", "manifests/config.yaml:8:18")
    );
    let others = |key: &&ConfigKey| {
        !matches!(
            key.kind,
            keys::SettingKind::Rules
                | keys::SettingKind::Waivers
                | keys::SettingKind::Catalogs
                | keys::SettingKind::Labels
                | keys::SettingKind::Bindings
        )
    };
    for key in KEYS.iter().filter(others).filter(|key| !key.path.contains('.')) {
        let problems = Bed::new().manifest(&gantry(&format!("{}: x\n", key.path))).problems();
        // Without a column, the line of a credential is not shown.
        let at = if key.kind == keys::SettingKind::Secret { "5" } else { "5:1" };
        let expected =
            format!("manifests/config.yaml:{at}: a Config document among the manifests cannot set {:?}", key.path);
        assert!(problems.len() == 1 && problems[0].starts_with(&expected), "{problems:?}");
    }
    assert_eq!(Bed::new().manifest(&gantry("timeouts: {request: 1s}\n")).problems().len(), 1);
}

#[test]
fn a_config_in_a_list_is_found() {
    use gantry_core::resource::Step;
    let mut bed = Bed::new().manifest("kind: List\napiVersion: v1\nitems:\n- apiVersion: gantry.dev/v1alpha1\n  kind: Config\n  preflightRules: [{name: PermissionValidation}]\n");
    bed.manifests[0].within = vec![Step::Key("items".into()), Step::Index(0)];
    assert_eq!(bed.checks(), ["CRDUpgradeSafety", "PermissionValidation"]);
}

#[test]
fn paths_start_at_the_file_that_names_them() {
    let mut bed = Bed::new().file("gantry.yaml", "target: dir:live\noutput: [human, json=out/report.json]\n");
    let deep = bed.loader.working_directory.join("deep");
    std::fs::create_dir(&deep).unwrap();
    bed.loader.working_directory = deep;
    let settings = bed.settings();
    assert_eq!(settings.target, TargetSpec::Dir(Path::new("..").join("live")));
    assert_eq!(settings.output[1].file, Some(Path::new("..").join("out/report.json")));
    let bed = bed.flag(&key::TARGET, TargetSpec::Dir("live".into()));
    assert_eq!(
        bed.settings().target,
        TargetSpec::Dir("live".into()),
        "the path of a flag is relative to the working directory"
    );
}
