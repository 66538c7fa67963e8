//! `gantry deploy` and `gantry check` from the command line, with a real API server.

use std::path::Path;

use crate::support::{Bed, Gantry, Isolated, Proxy, When, closed_port, control_plane, results};
use serde_json::{Value, json};

/// The objects of a typical application, one file each; the server accepts each of them only after those before it.
fn application(bed: &Bed) -> Vec<String> {
    let Isolated { group, namespace } = &bed.names;
    let account = format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: app, namespace: {namespace}}}\n");
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: login, namespace: {namespace}}}\nstringData: {{password: hunter2}}\n"
    );
    let roles = format!(
        "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {namespace}}}
rules: [{{apiGroups: [{group}], resources: [samples], verbs: [get, list, watch]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {namespace}}}
subjects: [{{kind: ServiceAccount, name: app, namespace: {namespace}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: app, namespace: {namespace}}}
rules: [{{apiGroups: [''], resources: [secrets], resourceNames: [login], verbs: [get]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: app, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: app}}
subjects: [{{kind: ServiceAccount, name: app, namespace: {namespace}}}]
"
    );
    let deployment = format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: app, namespace: {namespace}, labels: {{app: app}}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: app}}}}
  template:
    metadata: {{labels: {{app: app}}}}
    spec:
      serviceAccountName: app
      containers:
      - name: app
        image: example.com/app:1
        ports: [{{containerPort: 80}}]
        resources: {{requests: {{cpu: 0.5, memory: 1024Mi}}}}
        envFrom: [{{secretRef: {{name: login}}}}]
"
    );
    let crd = bed.crd("first: {type: string}, second: {type: integer, default: 2}");
    vec![bed.namespace(), crd, bed.sample(), bed.config_map("a", "x"), account, secret, roles, deployment]
}

#[test]
fn an_application_is_deployed_in_one_run_in_any_order_of_its_files() {
    let files = application(&Bed::new()).len();
    for first in 0..files {
        let bed = Bed::new();
        let mut files = application(&bed);
        files.rotate_left(first);
        if first % 2 == 1 {
            files.reverse();
        }
        for (number, text) in files.iter().enumerate() {
            bed.write(&format!("{number}.yaml"), text);
        }
        let proxy = Proxy::start(control_plane());
        let deploy = || bed.gantry(proxy.kubeconfig("admin"), &["deploy", "-f", ".", "-o", "json"]).run();

        let run = deploy();
        let report = run.code(0).contains_nowhere("hunter2").report();
        assert!(results(&report).iter().all(|(_, result)| result == "applied"), "{run}");
        assert_eq!(report["summary"]["created"], 11, "{run}");
        let sample = control_plane().get(&bed.sample_path()).1;
        assert_eq!((&sample["first"], &sample["second"]), (&json!("x"), &json!(2)), "pruned or not defaulted");
        let password = format!("/api/v1/namespaces/{}/secrets/login", bed.names.namespace);
        assert_eq!(control_plane().get(&password).1["data"]["password"], "aHVudGVyMg==");

        let written = proxy.writes();
        assert_eq!(written.len(), 11, "{written:?}");
        let again = deploy();
        assert_eq!(again.code(0).report()["outcome"], "unchanged", "{again}");
        assert_eq!(proxy.writes(), written, "the second run writes nothing");
    }
}

#[test]
fn only_what_changed_is_written() {
    let bed = Bed::new();
    let with = |value: &str| {
        let objects = [bed.namespace(), bed.crd("first: {type: string}"), bed.sample()];
        format!("{}---\n{}---\n{}", objects.join("---\n"), bed.config_map("a", "x"), bed.config_map("b", value))
    };
    bed.write("manifests.yaml", &with("x"));
    let proxy = Proxy::start(control_plane());
    bed.deploy(proxy.kubeconfig("admin"), &[]).run().code(0);
    let before = proxy.writes().len();
    bed.write("manifests.yaml", &with("z"));
    let run = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    let summary = &run.code(0).report()["summary"];
    assert_eq!((&summary["updated"], &summary["unchanged"]), (&json!(1), &json!(4)), "{run}");
    let written: Vec<String> = proxy.writes().drain(before..).map(|request| request.path).collect();
    assert_eq!(written, [bed.config_map_path("b")]);
    assert_eq!(control_plane().get(&bed.config_map_path("b")).1["data"]["key"], "z");
}

#[test]
fn wrong_check_names_end_a_run_before_it_needs_a_server() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.namespace());
    let closed = closed_port(bed.folder.path());
    let fails = |arguments: &[&str], message: &str| {
        let run = bed.deploy(closed.clone(), arguments).run();
        run.code(2).stderr_contains(message).contains_nowhere("127.0.0.1");
        run
    };
    fails(&["--preflight", "Nothing"], "unknown preflight check \"Nothing\" specified");
    fails(
        &["--preflight", "CRDUpgradeSafety,CRDUpgradeSafety"],
        "duplicate preflight check \"CRDUpgradeSafety\" specified",
    );
    fails(&["--preflight", "CRDUpgradeSafty"], "unknown preflight check \"CRDUpgradeSafty\" specified")
        .stderr_contains("did you mean \"CRDUpgradeSafety\"?");

    let config = |rules: &str| {
        bed.write(
            "c.yaml",
            &format!(
                "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n{rules}"
            ),
        );
    };
    config("- name: Nothing\n");
    fails(&["-c", "c.yaml"], "unknown preflight check in configuration: \"Nothing\"");
    config("- name: CRDUpgradeSafety\n");
    fails(&["-c", "c.yaml"], "duplicate preflight check in configuration: \"CRDUpgradeSafety\"");
    config("  config: {mode: eror}\n");
    fails(&["-c", "c.yaml"], "\"eror\" is not one of error, warn");
}

#[test]
fn the_flag_overrides_the_variable_and_the_configuration() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.crd("first: {type: string}, second: {type: string}"));
    bed.write("manifests.yaml", &bed.crd("first: {type: string}"));
    let config = |rules: &str| {
        bed.write("gantry.yaml", &format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\n{rules}"));
    };
    let check = |variable: &str, flags: &[&str]| {
        // Another manager wrote the CRD.
        let arguments = ["check", "-f", "manifests.yaml", "-o", "json", "--force-conflicts"];
        let gantry = bed.gantry(control_plane().kubeconfig("reader"), &arguments);
        gantry.args(flags).env("GANTRY_PREFLIGHT", variable).run()
    };
    let ran = |run: &crate::support::Output| run.report()["checks"].as_array().expect("a list of checks").len();
    const SAFETY: &str = "CRDUpgradeSafety";

    // Disabled in the file, enabled by the variable or flag, and then with the file's settings.
    config("preflightRules: [{name: CRDUpgradeSafety, enabled: false, config: {mode: warn}}]\n");
    let off = check("", &[]);
    insta::assert_snapshot!(off.shown(), @r#"
    exit code 0
    ----- stdout
    (JSON)
    ----- stderr
    notice: no preflight check runs: preflightRules enables none (--preflight CRDUpgradeSafety still runs one)
    notice: gantry.yaml:3:52: CRDUpgradeSafety does not run, so the upgrade of CRD samples.NAME.example.com is not checked (enable it in preflightRules: - name: CRDUpgradeSafety)
    notice: --force-conflicts takes ownership of these fields: field manager "unknown" owns fields that the manifests change in 1 object:
      customresourcedefinition/samples.NAME.example.com: .spec.versions
    "#);
    assert_eq!(ran(&off), 0, "{off}");
    for (variable, flags) in [("", &["--preflight", SAFETY][..]), (SAFETY, &[])] {
        let run = check(variable, flags);
        let checks = &run.code(0).report()["checks"];
        assert_eq!((&checks[0]["status"], &checks[0]["mode"]), (&json!("warned"), &json!("warn")), "{run}");
    }

    // Enabled in the file; the variable and the flag cannot name an unknown check, not even together with a known one.
    config("preflightRules: [{name: CRDUpgradeSafety, enabled: true}]\n");
    check("", &[]).code(3);
    insta::assert_snapshot!(check("Nothing", &[]).shown(), @r#"
    exit code 2
    ----- stdout
    (JSON)
    ----- stderr
    error: unknown preflight check "Nothing" specified
      = help: it is from GANTRY_PREFLIGHT; known checks: APIAvailability, AdmissionDryRun,
              CRDUpgradeSafety, ConversionWebhook, CustomResourceValidation, DeletionSafety,
              ExtensionResolution, OperatorDependencies, PermissionValidation
    "#);
    check("", &["--preflight", SAFETY, "--preflight", "Nothing"]).code(2);
    check("Nothing", &["--preflight", SAFETY]).code(3);
    insta::assert_snapshot!(check("", &["--preflight", SAFETY, "--preflight", SAFETY]).shown(), @r#"
    exit code 2
    ----- stdout
    (JSON)
    ----- stderr
    error: duplicate preflight check "CRDUpgradeSafety" specified
      = help: name each check once
    "#);

    // A Config document among the manifests cannot disable a check of the file. It can disable the default check, with
    // a notice, and the flag takes precedence.
    let among =
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules: [{name: CRDUpgradeSafety, enabled: false}]\n";
    bed.write("manifests.yaml", &format!("{among}---\n{}", bed.crd("first: {type: string}")));
    insta::assert_snapshot!(check("", &[]).shown(), @r#"
    exit code 3
    ----- stdout
    (JSON)
    ----- stderr
    notice: manifests.yaml:3:43: ignored: enabled: false of the check "CRDUpgradeSafety"; a Config document among the manifests may only make a check stricter (the check is configured at gantry.yaml:3; change it there, or with -c FILE)
    notice: CRDUpgradeSafety did not check everything: the server was not asked whether it accepts samples.NAME.example.com; gantry's own rules for Kubernetes 1.36 decided: user "reader" may not patch customresourcedefinitions.apiextensions.k8s.io at the cluster scope (ask for a ClusterRole with the rule {apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["patch"]}, bound to that user)
    notice: --force-conflicts takes ownership of these fields: field manager "unknown" owns fields that the manifests change in 1 object:
      customresourcedefinition/samples.NAME.example.com: .spec.versions
    validating upgrade for CRD "samples.NAME.example.com" failed: CustomResourceDefinition samples.NAME.example.com failed upgrade safety validation. "NoExistingFieldRemoved" validation failed: crd/samples.NAME.example.com version/v1 field/^.second may not be removed
    "#);
    std::fs::remove_file(bed.folder.path().join("gantry.yaml")).expect("removed");
    // The other default check still runs.
    assert_eq!(ran(check("", &[]).code(0).stderr_contains(SAFETY)), 1);
    check("", &["--preflight", SAFETY]).code(3);
}

#[test]
fn a_blocked_deploy_writes_nothing() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.crd("first: {type: string}, second: {type: string}"));
    bed.write("manifests.yaml", &format!("{}---\n{}", bed.namespace(), bed.crd("first: {type: string}")));
    let proxy = Proxy::start(control_plane());
    let run = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    assert_eq!(run.code(3).report()["outcome"], "blocked", "{run}");
    assert_eq!(proxy.writes(), []);
}

#[test]
fn the_quickstart_of_the_documentation_is_blocked() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/quickstart");
    // A copy, because a gantry that does not block would write into the repository.
    let copy = tempfile::tempdir().expect("a temporary folder");
    for part in ["cluster", "manifests"] {
        std::fs::create_dir(copy.path().join(part)).expect("a folder");
        for entry in std::fs::read_dir(folder.join(part)).expect("the quickstart") {
            let file = entry.expect("a file").path();
            let name = file.file_name().expect("its name");
            std::fs::copy(&file, copy.path().join(part).join(name)).expect("copy a file");
        }
    }
    let run = Gantry::new().cwd(copy.path()).args(["deploy", "-f", "manifests", "--target", "dir:cluster"]).run();
    insta::assert_snapshot!(run.shown(), @r#"
    exit code 3
    ----- stdout
    Target   dir: cluster
    Plan     create    1 (1 Sample)
             update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com
             create    sample.test.example.com/nightly -n default

    error[NoExistingFieldRemoved]: field spec.pollInterval may not be removed from v1alpha1
      --> manifests/crd.yaml:23:15
    21 |             spec:
    22 |               type: object
    23 |               properties:
       |               ^^^^^^^^^^ the live CRD has pollInterval here (string)
       = in      samples.test.example.com, v1alpha1, ^.spec.pollInterval
       = breaks  writers: the server refuses or drops what they send today
                 readers: they no longer find what they read today
                 data: the server drops values from objects when they are next written
       = proof   accepted today, loses values with this change: spec.pollInterval is dropped
                   {apiVersion: test.example.com/v1alpha1, kind: Sample, metadata: {name: x}, spec:
                   {pollInterval: ""}}
       = next    keep spec.pollInterval in v1alpha1 and mark it as deprecated, or remove it only in a
                 new version that a webhook converts, or after a migration
                 if the CRD is not yours: stay on its old version, or accept the change in gantry.yaml:
                   waivers: [{rule: NoExistingFieldRemoved, object: samples.test.example.com, path:
                   "^.spec.pollInterval", reason: "why this is fine here"}]

    error[NoMaximumTightened]: maximum of spec.retries may not be lowered from 10 to 5 in v1alpha1
      --> manifests/crd.yaml:26:19
    24 |                 retries:
    25 |                   type: integer
    26 |                   maximum: 5
       |                   ^^^^^^^ was 10 in the live CRD
       = in      samples.test.example.com, v1alpha1, ^.spec.retries
       = breaks  writers
       = proof   accepted today, refused with this change: spec.retries: Invalid value: 6: spec.retries
                 in body should be less than or equal to 5
                   {apiVersion: test.example.com/v1alpha1, kind: Sample, metadata: {name: x}, spec:
                   {retries: 6}}
       = next    keep maximum: 10 in v1alpha1, or use 5 only in a new version that a webhook converts,
                 or after a migration

    For details of a rule: gantry rules NoExistingFieldRemoved.

    CRDUpgradeSafety          blocked: 2 errors in samples.test.example.com (1 NoExistingFieldRemoved, 1
                              NoMaximumTightened)
    CustomResourceValidation  passed: 0 objects of 1 CRD read

    Blocked: 2 errors. Nothing was written.
    ----- stderr
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoExistingFieldRemoved" validation failed: crd/samples.test.example.com version/v1alpha1 field/^.spec.pollInterval may not be removed; "ChangeValidator" validation failed: version "v1alpha1", field "^.spec.retries": maximum constraint decreased from 10 to 5
    "#);
}

#[test]
fn a_kapp_config_among_the_manifests_is_read_and_not_applied() {
    let bed = Bed::new();
    let config = "apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\nlabelScopingRules: []\npreflightRules:\n- name: \
                  CRDUpgradeSafety\n  enabled: true\n";
    bed.write("manifests.yaml", &format!("{config}---\n{}", bed.namespace()));
    let proxy = Proxy::start(control_plane());
    let run = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    insta::assert_snapshot!(run.shown(), @r#"
    exit code 0
    ----- stdout
    (JSON)
    ----- stderr
    notice: manifests.yaml:1:1: ignored in kapp's Config: labelScopingRules (gantry reads only preflightRules, changeGroupBindings, changeRuleBindings, waitRules, rebaseRules, diffMaskRules, diffAgainstExistingFieldExclusionRules, additionalLabels from it)
    "#);
    let namespace = (format!("Namespace {}", bed.names.namespace), "applied".to_owned());
    assert_eq!(results(&run.report()), [namespace]);
    assert_eq!(proxy.writes().len(), 1, "{:?}", proxy.writes());
}

#[test]
fn a_crd_that_changes_after_the_check_is_not_written() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.crd("first: {type: string}"));
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    bed.write("manifests.yaml", &bed.crd("first: {type: string}, second: {type: string}"));
    let proxy = Proxy::start(control_plane());
    let path = bed.crd_path();
    // The first is the dry run of the check.
    proxy.before(When::new("PATCH", &path).nth(2), move || {
        let label = json!({"metadata": {"labels": {"by": "someone-else"}}});
        assert_eq!(control_plane().patch(&path, &label).0, 200);
    });
    let run = bed.deploy(proxy.kubeconfig("admin"), &[]).run();
    insta::assert_snapshot!(run.shown(), @r#"
    exit code 1
    ----- stdout
    Target   kube: test (http://127.0.0.1:PORT)
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.NAME.example.com

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed: proven safe for every possible object: 1 CRD

    error: customresourcedefinition/samples.NAME.example.com changed in the target after it was checked; it was not written
     --> manifests.yaml:1
      = help: run the same command again: it checks what is live now

    Failed       customresourcedefinition/samples.NAME.example.com

    Fix the errors above, then run the same command again to continue.
    Failed: of 1 object, 1 failed.
    "#);
    let live = control_plane().get(&bed.crd_path()).1;
    assert_eq!(live["metadata"]["labels"]["by"], "someone-else");
    let schema = &live["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["properties"], json!({"first": {"type": "string"}}));

    bed.deploy(proxy.kubeconfig("admin"), &[]).run().code(0);
}

#[test]
fn a_crd_that_appears_after_the_check_is_not_written() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.crd("first: {type: string}"));
    let theirs = bed.crd("theirs: {type: string}");
    let proxy = Proxy::start(control_plane());
    proxy.before(When::new("PATCH", &bed.crd_path()).nth(1), move || _ = control_plane().apply_yaml(&theirs));
    // Without force, the field conflict alone would prevent the write.
    bed.deploy(proxy.kubeconfig("admin"), &["--force-conflicts"]).run().code(1);
    let live = control_plane().get(&bed.crd_path()).1;
    let schema = &live["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["properties"], json!({"theirs": {"type": "string"}}));
}

#[test]
fn a_field_conflict_names_the_field_the_manager_and_the_flag() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    let path = bed.config_map_path("a");
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "theirs"}});
    assert_eq!(control_plane().server_side_apply(&path, "other-tool", &theirs).0, 201);
    bed.write("manifests.yaml", &bed.config_map("a", "ours"));
    let admin = control_plane().kubeconfig("admin");
    let run = bed.deploy(admin.clone(), &[]).run();
    insta::assert_snapshot!(run.shown(), @r#"
    exit code 3
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     update    1 (1 ConfigMap)
             update    configmap/a -n NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    error: field manager "other-tool" owns fields that the manifests change in 1 object:
     --> manifests.yaml:1
      | configmap/a -n NAME: .data.key
      = help: remove these fields from the manifests to leave them to "other-tool", or take ownership
              with --force-conflicts

    Blocked: 1 error. Nothing was written.
    "#);
    assert_eq!(control_plane().get(&path).1["data"]["key"], "theirs");

    bed.deploy(admin, &["--force-conflicts"]).run().code(0);
    assert_eq!(control_plane().get(&path).1["data"]["key"], "ours");
}

#[test]
fn a_server_that_dies_in_mid_deploy_leaves_an_exact_report() {
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    let account = format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: a, namespace: {namespace}}}\n");
    bed.write("manifests.yaml", &[bed.namespace(), account, bed.config_map("a", "x")].join("---\n"));
    let proxy = Proxy::start(control_plane());
    proxy.refuse_from(When::new("PATCH", "/serviceaccounts/"));
    let run = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    let expected = [
        (format!("Namespace {namespace}"), "applied"),
        ("ServiceAccount a".to_owned(), "failed"),
        ("ConfigMap a".to_owned(), "notReached"),
    ];
    assert_eq!(results(&run.code(1).report()), expected.map(|(object, result)| (object, result.to_owned())), "{run}");
    assert_eq!(control_plane().get(&format!("/api/v1/namespaces/{namespace}")).0, 200);
    assert_eq!(control_plane().get(&format!("/api/v1/namespaces/{namespace}/serviceaccounts/a")).0, 404);

    let again = bed.deploy(control_plane().kubeconfig("admin"), &["-o", "json"]).run();
    let summary = &again.code(0).report()["summary"];
    assert_eq!((&summary["created"], &summary["unchanged"]), (&json!(2), &json!(1)), "{again}");
}

#[test]
fn objects_after_a_refused_one_are_not_written() {
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: b, namespace: {namespace}}}\nspec: {{containers: [{{name: a, image: a}}]}}\n"
    );
    // The server refuses an object of this size.
    let refused = bed.config_map("a", &"x".repeat(1_100_000));
    bed.write("manifests.yaml", &[bed.namespace(), refused, pod].join("---\n"));
    let run = bed.deploy(control_plane().kubeconfig("admin"), &["-o", "json"]).run();
    let results: Vec<String> = results(&run.code(1).report()).into_iter().map(|(_, result)| result).collect();
    assert_eq!(results, ["applied", "failed", "notReached"], "{run}");
    assert_eq!(control_plane().get(&format!("/api/v1/namespaces/{namespace}/pods/b")).0, 404);
}

#[test]
fn an_object_whose_write_got_no_response_is_not_reported_as_unwritten() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.namespace());
    let proxy = Proxy::start(control_plane());
    proxy.lose_answer(When::new("PATCH", &bed.names.namespace));
    let run = bed.deploy(proxy.kubeconfig("admin"), &[]).run();
    insta::assert_snapshot!(run.shown(), @r#"
    exit code 1
    ----- stdout
    Target   kube: test (http://127.0.0.1:PORT)
    Plan     create    1 (1 Namespace)
             create    namespace/NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    error: namespace/NAME: 127.0.0.1:PORT closed the connection before the response was complete; it is unknown whether the object was written
     --> manifests.yaml:1
      = help: did the API server stop, or does it use TLS although the kubeconfig says http? Run again

    Failed       namespace/NAME

    Fix the errors above, then run the same command again to continue.
    Failed: of 1 object, 1 failed.
    "#);
}

#[test]
fn a_json_file_is_written_beside_the_human_report() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.namespace());
    let outputs = ["-o", "human", "-o", "json=report.json"];
    let run = bed.deploy(control_plane().kubeconfig("admin"), &outputs).run();
    insta::assert_snapshot!(run.shown(), @r#"
    exit code 0
    ----- stdout
    Target   kube: test (https://127.0.0.1:PORT)
    Plan     create    1 (1 Namespace)
             create    namespace/NAME

    CRDUpgradeSafety          passed
    CustomResourceValidation  passed

    Deployed: 1 created
    "#);
    let file = std::fs::read(bed.folder.path().join("report.json")).expect("the report's file");
    let report: Value = serde_json::from_slice(&file).expect("JSON");
    assert_eq!(report["outcome"], "deployed");
    assert_eq!(report["summary"]["created"], 1);
}

/// An unchanged object is not written. Each of these changes is a real one, however small it looks.
#[test]
fn empty_values_and_similar_values_are_deployed() {
    let cp = control_plane();
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    let manifests = |token: &str, toleration: &str, container: &str, peer: &str, version: &str| {
        format!(
            "{}---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: d, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: d}}}}
  template:
    metadata: {{labels: {{app: d}}}}
    spec:
      {token}
      tolerations: [{{key: a, operator: Exists, effect: NoExecute{toleration}}}]
      containers: [{{name: c, image: x, securityContext: {{runAsUser: 1{container}}}}}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: p, namespace: {namespace}}}
spec: {{podSelector: {{}}, ingress: [{{from: [{{podSelector: {{}}{peer}}}]}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: m, namespace: {namespace}}}
data: {{version: \"{version}\"}}
",
            bed.namespace()
        )
    };
    let nothing = || manifests("restartPolicy: Always", "", "", "", "1.10");
    let zeros = [
        manifests("automountServiceAccountToken: false", "", "", "", "1.10"),
        manifests("restartPolicy: Always", ", tolerationSeconds: 0", "", "", "1.10"),
        manifests("restartPolicy: Always", "", ", allowPrivilegeEscalation: false", "", "1.10"),
        manifests("restartPolicy: Always", "", "", ", namespaceSelector: {}", "1.10"),
        manifests("restartPolicy: Always", "", "", "", "1.1"),
    ];
    let live = |kind: &str| {
        let path = match kind {
            "d" => format!("/apis/apps/v1/namespaces/{namespace}/deployments/d"),
            "p" => format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/p"),
            _ => format!("/api/v1/namespaces/{namespace}/configmaps/m"),
        };
        cp.get(&path).1
    };
    let spec = || {
        let pod = &live("d")["spec"]["template"]["spec"];
        let container = &pod["containers"][0]["securityContext"]["allowPrivilegeEscalation"];
        json!([
            pod["automountServiceAccountToken"],
            pod["tolerations"][0]["tolerationSeconds"],
            container,
            live("p")["spec"]["ingress"][0]["from"][0]["namespaceSelector"],
            live("m")["data"]["version"],
        ])
    };
    let deploy = || bed.deploy(cp.kubeconfig("admin"), &["-o", "json"]).run().code(0).report();
    let before = json!([null, null, null, null, "1.10"]);
    let after = [json!(false), json!(0), json!(false), json!({}), json!("1.1")];
    for (number, manifests) in zeros.iter().enumerate() {
        bed.write("manifests.yaml", &nothing());
        deploy();
        // Removed again: an empty selector is not a default either.
        assert_eq!(spec(), before, "before {number}");
        bed.write("manifests.yaml", manifests);
        assert_eq!(deploy()["summary"]["updated"], 1, "{number}");
        let mut expected = before.clone();
        expected[number] = after[number].clone();
        assert_eq!(spec(), expected, "{number}");
        assert_eq!(deploy()["outcome"], "unchanged", "{number}");
    }
}
