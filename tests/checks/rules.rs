//! `CRDUpgradeSafety` from the command line, with a real API server and with a folder: every fixture pair of
//! `tests/fixtures/crd-upgrade-safety`, and the examples in the documentation that the check implements.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use crate::support::{
    Gantry, Isolated, Output, PREDICTED_REFUSALS, Proxy, Recorded, control_plane, crd_fixture_folders, isolated,
};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The number of fixtures that are checked at the same time.
const SIDE_BY_SIDE: usize = 4;

/// A fixture whose live CRD is on the server.
struct Fixture {
    name: String,
    expected: Vec<Judgement>,
    /// A folder with `desired.yaml`.
    work: tempfile::TempDir,
    /// The path of the CRD.
    path: String,
}

/// Deploys the live CRDs of the `wanted` fixtures to the server, and runs `judge` on each, in a thread named after this
/// test and the fixture. There is one deploy for all of them, because waiting for a CRD to be established takes most of
/// the time, and the server establishes many at once.
fn for_each_fixture(wanted: impl Fn(&[Judgement]) -> bool, judge: impl Fn(&Fixture) + Sync) {
    let all = tempfile::tempdir().unwrap();
    let mut fixtures = Vec::new();
    for folder in crd_fixture_folders() {
        let (name, names) = (folder.file_name().unwrap().to_string_lossy().into_owned(), isolated());
        let expected = expected(&folder, &names);
        if wanted(&expected) {
            let work = tempfile::tempdir().unwrap();
            fs::write(work.path().join("desired.yaml"), text(&folder, "desired.yaml", &names)).unwrap();
            let live = text(&folder, "live.yaml", &names);
            fs::write(all.path().join(format!("{name}.yaml")), &live).unwrap();
            fixtures.push(Fixture { name, expected, work, path: path(&live) });
        }
    }
    assert!(fixtures.len() > 40);
    let cp = control_plane();
    Gantry::new().kubeconfig(cp.kubeconfig("admin")).cwd(all.path()).args(["deploy", "-f", "."]).run().code(0);
    let test = thread::current().name().unwrap_or_default().to_owned();
    for fixtures in fixtures.chunks(SIDE_BY_SIDE) {
        thread::scope(|scope| {
            for fixture in fixtures {
                let thread = thread::Builder::new().name(format!("{test}::{}", fixture.name));
                thread.spawn_scoped(scope, || judge(fixture)).unwrap();
            }
        });
    }
}

/// The path of a CRD on the server.
fn path(crd: &str) -> String {
    let crd: Value = serde_yaml::from_str(crd).unwrap();
    format!("{CRDS}/{}", crd["metadata"]["name"].as_str().unwrap())
}

/// A fixture's text with its own group, so that tests do not conflict on the server.
fn text(folder: &Path, file: &str, names: &Isolated) -> String {
    fs::read_to_string(folder.join(file)).unwrap().replace("test.example.com", &names.group)
}

fn live_crd(path: &str) -> Value {
    let (status, crd) = control_plane().get(path);
    assert_eq!(status, 200, "{path}");
    crd
}

/// Rule, severity, version and path of each finding, in the order of the report.
type Judgement = (String, String, Option<String>, Option<String>);

fn judgements<'a>(findings: impl IntoIterator<Item = &'a Value>) -> Vec<Judgement> {
    let text = |finding: &Value, key: &str| finding[key].as_str().map(str::to_owned);
    let judgement = |finding: &Value| {
        let (rule, severity) = (text(finding, "rule").unwrap(), text(finding, "severity").unwrap());
        (rule, severity, text(finding, "version"), text(finding, "path"))
    };
    findings.into_iter().map(judgement).collect()
}

fn expected(folder: &Path, names: &Isolated) -> Vec<Judgement> {
    judgements(&serde_yaml::from_str::<Vec<Value>>(&text(folder, "expected.yaml", names)).unwrap())
}

fn has_errors(judgements: &[Judgement]) -> bool {
    judgements.iter().any(|(_, severity, ..)| severity == "error")
}

fn findings(report: &Value) -> &Vec<Value> {
    report["checks"][0]["findings"].as_array().unwrap()
}

fn deploy(folder: &Path, flags: &[&str]) -> Output {
    let cp = control_plane();
    Gantry::new()
        .kubeconfig(cp.kubeconfig("admin"))
        .cwd(folder)
        .args(["deploy", "-f", "desired.yaml", "--preflight", "CRDUpgradeSafety"])
        .args(flags)
        .run()
}

/// Deploys `live` to the server, writes `desired` to a folder; returns that folder and the live CRD's path.
fn stage(live: &str, desired: &str) -> (tempfile::TempDir, String) {
    let cp = control_plane();
    Gantry::new().kubeconfig(cp.kubeconfig("admin")).args(["deploy", "-f", "-"]).stdin(live).run().code(0);
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("desired.yaml"), desired).unwrap();
    (work, path(live))
}

#[test]
fn every_fixture_has_the_same_findings_on_a_server_and_on_a_folder() {
    for_each_fixture(
        |_| true,
        |Fixture { name, expected, work, path }| {
            let before = live_crd(path);
            fs::create_dir(work.path().join("cluster")).unwrap();
            let stored = work.path().join("cluster/live.json");
            fs::write(&stored, before.to_string()).unwrap();
            let to_folder = || {
                let arguments = ["deploy", "-f", "desired.yaml", "--target", "dir:cluster", "-o", "json"];
                Gantry::new().cwd(work.path()).args(arguments).run()
            };

            let on_folder = to_folder();
            let output = deploy(work.path(), &["-o", "json"]);
            let report = output.report();
            // Only a server has objects, or shows that it has none.
            let without_evidence = |report: &Value| {
                let mut findings = findings(report).to_vec();
                findings
                    .iter_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(|finding| drop(finding.remove("evidence")));
                findings
            };
            assert_eq!(without_evidence(&report), without_evidence(&on_folder.report()), "{name}");

            assert_eq!(&judgements(findings(&report)), expected, "{name}");
            if has_errors(expected) {
                output.code(3);
                assert_eq!(
                    before["metadata"]["resourceVersion"],
                    live_crd(path)["metadata"]["resourceVersion"],
                    "{name}"
                );
                assert_eq!(fs::read_to_string(&stored).unwrap(), before.to_string(), "{name}");
                on_folder.code(3);
                let crd = before["metadata"]["name"].as_str().unwrap();
                let last = output.stderr.lines().last().unwrap_or_default();
                let words =
                    format!("validating upgrade for CRD \"{crd}\" failed: CustomResourceDefinition {crd} failed ");
                assert!(last.starts_with(&words), "{name}: {last}");
            } else {
                output.code(0);
                // The server's state then matches the manifest, according to a run that writes nothing.
                let outcomes = ["deployed", "unchanged"];
                assert!(outcomes.contains(&report["outcome"].as_str().unwrap()), "{name}");
                assert_eq!(deploy(work.path(), &["-o", "json"]).code(0).report()["outcome"], "unchanged", "{name}");
                on_folder.code(0);
                assert!(outcomes.contains(&on_folder.report()["outcome"].as_str().unwrap()), "{name}: {on_folder}");
                let stored_then = fs::read_to_string(&stored).unwrap();
                assert_eq!(to_folder().code(0).report()["outcome"], "unchanged", "{name}");
                assert_eq!(fs::read_to_string(&stored).unwrap(), stored_then, "{name}");
            }
        },
    );
}

/// CRDs that the server itself refuses, in its own words.
const REFUSED_BY_THE_SERVER: [(&str, &str); 5] = [
    ("KindChanged", "field is immutable"),
    ("NoScopeChange", "field is immutable"),
    ("NoStoredVersionRemoved", "previously a storage version"),
    ("UnknownChange", "uniqueItems cannot be set to true"),
    ("CRDInvalid", "must not be empty for specified object fields"),
];

#[test]
fn mode_warn_deploys_every_unsafe_change_that_the_server_accepts() {
    let warn = "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  config: {mode: warn}\n";
    let seen = Mutex::new(BTreeSet::new());
    for_each_fixture(has_errors, |Fixture { name, expected, work, path }| {
        seen.lock().unwrap().extend(expected.iter().map(|(rule, ..)| rule.clone()));
        let before = live_crd(path);
        fs::write(work.path().join("warn.yaml"), warn).unwrap();
        let outputs = ["-c", "warn.yaml", "-o", "human", "-o", "json=report.json"];
        let output = deploy(work.path(), &outputs);
        let report: Value = serde_json::from_slice(&fs::read(work.path().join("report.json")).unwrap()).unwrap();

        // What the server refuses stays an error.
        let quieter = |(rule, severity, version, path): Judgement| match PREDICTED_REFUSALS.contains(&rule.as_str()) {
            true => (rule, severity, version, path),
            false => (rule, severity.replace("error", "warning"), version, path),
        };
        assert_eq!(judgements(findings(&report)), expected.iter().cloned().map(quieter).collect::<Vec<_>>(), "{name}");
        if expected.iter().any(|(rule, ..)| PREDICTED_REFUSALS.contains(&rule.as_str())) {
            output.code(3).stdout_contains("error[").stdout_contains("Nothing was written");
            output.stderr_contains("mode: warn of CRDUpgradeSafety");
            assert_eq!(report["outcome"], "blocked", "{name}");
            assert_eq!(before["metadata"]["resourceVersion"], live_crd(path)["metadata"]["resourceVersion"], "{name}");
            return;
        }
        output.stdout_contains("warning[").contains_nowhere("error[").contains_nowhere("validating upgrade for CRD");

        let refusal = REFUSED_BY_THE_SERVER.iter().find(|(rule, _)| expected.iter().any(|(found, ..)| found == rule));
        if let Some((_, words)) = refusal {
            output.code(1).stdout_contains("error: customresourcedefinition/").stdout_contains(words);
            assert_eq!(
                (&report["outcome"], &report["changes"][0]["result"]),
                (&json!("failed"), &json!("failed")),
                "{name}"
            );
            assert_eq!(before["metadata"]["resourceVersion"], live_crd(path)["metadata"]["resourceVersion"], "{name}");
        } else {
            output.code(0).stdout_contains("Deployed with");
            assert_eq!(report["outcome"], "deployed", "{name}");
            assert_eq!(deploy(work.path(), &["-o", "json"]).code(0).report()["outcome"], "unchanged", "{name}");
        }
    });
    let seen = seen.into_inner().unwrap();
    // The prohibited changes of the documentation; it lists one for each bound keyword.
    for rule in [
        "NoScopeChange",
        "NoStoredVersionRemoved",
        "NoRequiredFieldAdded",
        "NoExistingFieldRemoved",
        "NoTypeChange",
        "NoDefaultAdded",
        "NoDefaultChanged",
        "NoDefaultRemoved",
        "NoEnumAdded",
        "NoEnumValueRemoved",
        "NoMinimumTightened",
        "NoMaximumTightened",
        "UnknownChange",
    ] {
        assert!(seen.contains(rule), "no fixture for {rule}");
    }
}

/// The CRD that the documentation starts with.
fn base(names: &Isolated) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: samples.{group}}}
spec:
  group: {group}
  names: {{kind: Sample, listKind: SampleList, plural: samples, singular: sample}}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {{type: object}}
          status: {{type: object}}
          pollInterval: {{type: string}}
",
        group = names.group
    )
}

#[test]
fn the_documented_examples_are_blocked_with_the_documented_messages() {
    let examples = [
        (
            "scope: Namespaced",
            "scope: Cluster",
            r#""NoScopeChange" validation failed: scope changed from "Namespaced" to "Cluster""#,
        ),
        (
            "name: v1alpha1",
            "name: v1alpha2",
            r#""NoStoredVersionRemoved" validation failed: stored version "v1alpha1" removed"#,
        ),
        (
            "          pollInterval: {type: string}\n",
            "",
            r#""NoExistingFieldRemoved" validation failed: crd/N version/v1alpha1 field/^.pollInterval may not be removed"#,
        ),
        (
            "        properties:\n",
            "        required: [pollInterval]\n        properties:\n",
            r#""ChangeValidator" validation failed: version "v1alpha1", field "^": new required fields added: [pollInterval]"#,
        ),
    ];
    for (from, to, words) in examples {
        let names = isolated();
        let live = base(&names);
        let (work, path) = stage(&live, &live.replace(from, to));
        let before = live_crd(&path);
        let output = deploy(work.path(), &[]);
        output.code(3);
        let name = format!("samples.{}", names.group);
        let expected = format!(
            "validating upgrade for CRD \"{name}\" failed: CustomResourceDefinition {name} failed upgrade safety \
             validation. {}",
            words.replace("crd/N", &format!("crd/{name}"))
        );
        assert_eq!(output.stderr.lines().last(), Some(expected.as_str()));
        assert_eq!(before["metadata"]["resourceVersion"], live_crd(&path)["metadata"]["resourceVersion"]);
    }
}

#[test]
fn warnings_deploy_and_a_dry_run_writes_nothing() {
    let cp = control_plane();
    let names = isolated();
    let live = base(&names);
    let (work, path) = stage(&live, &live.replace("          pollInterval: {type: string}\n", ""));
    let proxy = Proxy::start(cp);
    Gantry::new()
        .kubeconfig(proxy.kubeconfig("admin"))
        .cwd(work.path())
        .args(["deploy", "-f", "desired.yaml", "--dry-run", "--warn-only"])
        .run()
        .code(0)
        .stdout_contains("warning[NoExistingFieldRemoved]");
    assert!(proxy.writes().is_empty());

    let warn = "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  config: {mode: warn}\n";
    fs::write(work.path().join("warn.yaml"), warn).unwrap();
    deploy(work.path(), &["-c", "warn.yaml"]).code(0).stdout_contains("warning[NoExistingFieldRemoved]");
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties";
    assert_eq!(live_crd(&path).pointer(properties).unwrap().get("pollInterval"), None);
}

#[test]
fn a_new_crd_that_the_server_refuses_is_blocked_with_its_message() {
    let cp = control_plane();
    let names = isolated();
    let work = tempfile::tempdir().unwrap();
    let broken = base(&names).replace("pollInterval: {type: string}", "pollInterval: {type: string, pattern: '['}");
    fs::write(work.path().join("desired.yaml"), &broken).unwrap();
    let (status, answer) =
        cp.post(&format!("{CRDS}?dryRun=All"), &serde_yaml::from_str::<Value>(&broken).expect("a manifest"));
    assert_eq!(status, 422);
    let cause = &answer["details"]["causes"][0];
    let words = format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap());

    let proxy = Proxy::start(cp);
    let flags = ["deploy", "-f", "desired.yaml", "-o", "human", "-o", "json=report.json"];
    let run = Gantry::new().kubeconfig(proxy.kubeconfig("admin")).cwd(work.path()).args(flags).run();
    run.code(3).stdout_contains("error[CRDInvalid]").stdout_contains("desired.yaml");
    assert!(proxy.writes().is_empty());
    let report: Value = serde_json::from_slice(&fs::read(work.path().join("report.json")).unwrap()).unwrap();
    let finding = &findings(&report)[0];
    assert_eq!(finding["message"], format!("the API server refuses this CRD: {words}"));
    assert_eq!((&finding["version"], &finding["path"]), (&json!("v1alpha1"), &json!("^.pollInterval")));

    // The same with a folder as the cluster, and as a warning with another tool's preset.
    fs::create_dir(work.path().join("cluster")).unwrap();
    let check = |preset: &str| {
        let config = format!(
            "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  config: {{preset: {preset}}}\n"
        );
        fs::write(work.path().join("config.yaml"), config).unwrap();
        let flags = ["check", "-f", "desired.yaml", "--target", "dir:cluster", "-c", "config.yaml"];
        Gantry::new().cwd(work.path()).args(flags).run()
    };
    check("semantic").code(3).stdout_contains("error[CRDInvalid]");
    for preset in ["kapp", "olm-v1", "crdify"] {
        check(preset).code(3).stdout_contains("warning[CRDInvalid]").stdout_contains("the API server would refuse it");
    }
}

#[test]
fn fail_mode_decides_about_an_unknown_change() {
    let names = isolated();
    // A format is a program, so whether each of its texts matches a pattern is undecided.
    let live = base(&names).replace("pollInterval: {type: string}", "pollInterval: {type: string, format: duration}");
    let (work, path) = stage(&live, &live.replace("format: duration", "format: duration, pattern: '^[0-9]'"));
    deploy(work.path(), &[]).code(3).stderr_contains("unable to determine if change to existing field is safe");
    let open = "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  config: {failMode: open}\n";
    fs::write(work.path().join("open.yaml"), open).unwrap();
    deploy(work.path(), &["-c", "open.yaml"]).code(0);
    let pattern = "/spec/versions/0/schema/openAPIV3Schema/properties/pollInterval/pattern";
    assert_eq!(live_crd(&path).pointer(pattern), Some(&json!("^[0-9]")));
}

#[test]
fn built_in_kinds_are_unchanged_the_second_time() {
    let cp = control_plane();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    cp.apply_yaml("apiVersion: v1\nkind: Namespace\nmetadata: {name: demo}\n");
    let proxy = Proxy::start(cp);
    let deploy = || {
        Gantry::new()
            .kubeconfig(proxy.kubeconfig("admin"))
            .cwd(&folder)
            .args(["deploy", "-f", "built-in-kinds.yaml", "-o", "json"])
            .run()
    };
    let first = deploy();
    assert_eq!(first.code(0).report()["outcome"], "deployed");
    let written = proxy.writes().len();
    assert!(written >= 27, "{written}");
    let second = deploy();
    assert_eq!(second.code(0).report()["outcome"], "unchanged");
    assert_eq!(proxy.writes().len(), written);
    assert_eq!(dry_runs(&proxy.requests()), Vec::<&str>::new(), "known without asking");
}

/// Only the server knows which values it normalises: gantry asks with dry runs, and not on every deploy.
#[test]
fn values_that_the_server_normalises_are_no_update() {
    let cp = control_plane();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let proxy = Proxy::start(cp);
    let gantry = |command: &str| {
        let gantry = Gantry::new().kubeconfig(proxy.kubeconfig("admin")).cwd(&folder);
        gantry.args([command, "-f", "normalised-kinds.yaml", "-o", "json", "--preflight", "CRDUpgradeSafety"]).run()
    };
    assert_eq!(gantry("deploy").code(0).report()["outcome"], "deployed");
    let before = proxy.requests().len();
    let report = gantry("deploy").code(0).report();
    let changes = report["changes"].as_array().unwrap();
    assert!(changes.len() > 40, "{}", changes.len());
    let written: Vec<&Value> = changes.iter().filter(|c| c["action"] != "unchanged").map(|c| &c["object"]).collect();
    assert!(written.is_empty(), "{written:#?}");
    assert_eq!(report["outcome"], "unchanged");
    // Each of them was requested at most once, and nothing was written.
    let asked = &proxy.requests()[before..];
    assert!(asked.iter().all(|request| !request.is_write()));
    let dry_runs = dry_runs(asked);
    assert!(dry_runs.contains(&"/apis/autoscaling/v2/namespaces/odd/horizontalpodautoscalers/up"), "{dry_runs:?}");
    assert_eq!(dry_runs.iter().collect::<BTreeSet<_>>().len(), dry_runs.len(), "{dry_runs:#?}");
    // A changed value that could be a default is an update.
    let work = tempfile::tempdir().unwrap();
    let service = |selector: &str| {
        let service = format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: less, namespace: odd}}\nspec: {{ports: [{{port: 80}}], selector: {selector}}}\n"
        );
        fs::write(work.path().join("service.yaml"), service).unwrap();
        Gantry::new().kubeconfig(cp.kubeconfig("admin")).cwd(work.path()).args(["deploy", "-f", "service.yaml"]).run()
    };
    service("{a: b, c: d}").code(0).stdout_contains("1 create");
    service("{a: b}").code(0).stdout_contains("1 update");
    service("{}").code(0).stdout_contains("1 update");
    service("{}").code(0).stdout_contains("unchanged 1 (1 Service)");
    assert_eq!(cp.get("/api/v1/namespaces/odd/services/less").1["spec"].get("selector"), None);
}

/// The paths of the objects with a dry run.
fn dry_runs(requests: &[Recorded]) -> Vec<&str> {
    let is_dry_run = |request: &&Recorded| request.method == "PATCH" && request.query.contains("dryRun=All");
    requests.iter().filter(is_dry_run).map(|request| request.path.as_str()).collect()
}
