//! Tests of the output of `gantry config show`.

use super::*;

#[test]
fn shown_settings_can_be_loaded_with_the_same_meaning() {
    let bed = Bed::new()
        .file("gantry.yaml", "preflightRules:\n- name: PermissionValidation\n  config:\n    verbs: [get, 'yes', \"a: b # c\"]\n    user: 'null'\n- {name: CRDUpgradeSafety, enabled: false, config: {mode: warn}}\ntimeouts: {request: 1m30s}\n")
        .variable("GANTRY_WARN_ONLY", "true");
    let settings = bed.settings();
    let shown = settings.show();
    insta::assert_snapshot!(shown, @r#"
    apiVersion: gantry.dev/v1alpha1
    kind: Config
    preflightRules:
    - name: PermissionValidation
      enabled: true                  # project file gantry.yaml:4
      config:
        user: "null"                 # project file gantry.yaml:7
        verbs:
          - get                      # project file gantry.yaml:6
          - "yes"                    # project file gantry.yaml:6
          - "a: b # c"               # project file gantry.yaml:6
    - name: CRDUpgradeSafety
      enabled: false                 # project file gantry.yaml:8
      config:
        mode: warn                   # project file gantry.yaml:8
    warnOnly: true                   # environment GANTRY_WARN_ONLY
    failOn: error                    # default
    target: kube                     # default
    fieldManager: gantry             # default
    forceConflicts: false            # default
    history: 5                       # default
    historySecrets: true             # default
    logs: false                      # default
    ignoreFailingApiServices: false  # default
    keepGoing: false                 # default
    timeouts:
      request: 1m30s                 # project file gantry.yaml:9
      established: 1m                # default
      apply: 2m                      # default
      ready: 15m                     # default
      delete: 5m                     # default
      credentials: 1m                # default
    allowExec: false                 # default
    admission:
      mode: warn                     # default
      onTimeout: deny                # default
      acceptedBy:
        - "system:masters"           # default
    redact: false                    # default
    output:
      - human                        # default
    kappLines: auto                  # default
    color: auto                      # default
    "#);
    let mut again = Bed::new().raw_file("shown.yaml", &shown);
    again.loader.files.push("shown.yaml".into());
    let again = again.settings();
    assert_eq!(again.checks.len(), settings.checks.len());
    let values = |settings: &Settings| {
        settings.list().into_iter().map(|setting| (setting.path, setting.value)).collect::<Vec<_>>()
    };
    assert_eq!(values(&again), values(&settings));
}

#[test]
fn shown_settings_contain_no_control_characters() {
    let hostile = "a\u{1b}[2J\nkind: \u{202e}\u{e0001}\u{9b}'\"\\";
    let bed = Bed::new().flag(&key::CONTEXT, hostile.to_owned());
    let shown = bed.settings().show();
    assert!(!shown.contains(|c| c != '\n' && gantry_core::text::is_hostile(c)), "{shown:?}");
    let mut again = Bed::new().raw_file("shown.yaml", &shown);
    again.loader.files.push("shown.yaml".into());
    assert_eq!(again.settings().context.as_deref(), Some(hostile));
}

#[test]
fn shown_settings_with_a_preflight_flag_run_the_same_checks() {
    let bed = Bed::new()
        .file("gantry.yaml", "preflightRules: [{name: CRDUpgradeSafety}]\n")
        .preflight("PermissionValidation");
    let mut again = Bed::new().raw_file("shown.yaml", &bed.settings().show());
    again.loader.files.push("shown.yaml".into());
    assert_eq!(again.checks(), ["PermissionValidation"]);
}
