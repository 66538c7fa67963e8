//! `--baseline`: findings that an earlier report also has do not count.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::formats::{gantry, repository};

const BREAKING: [&str; 5] = ["check", "-f", "breaking", "--target", "dir:live"];

/// Runs gantry with a JSON report, and returns the exit code, the report, and the human output.
fn run(repository: &TempDir, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let all: Vec<&str> = arguments.iter().copied().chain(["-o", "human", "-o", "json=now.json"]).collect();
    let ran = gantry(repository, &all);
    let report = fs::read(repository.path().join("deploy/now.json")).unwrap_or_default();
    let told = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    (ran.status.code(), serde_json::from_slice(&report).unwrap_or_default(), told)
}

/// A repository with `base.json`, the report of a run with these arguments.
fn with_baseline(arguments: &[&str]) -> TempDir {
    let repository = repository();
    let all: Vec<&str> = arguments.iter().copied().chain(["-o", "json=base.json"]).collect();
    gantry(&repository, &all);
    assert!(repository.path().join("deploy/base.json").is_file());
    repository
}

fn edit(repository: &TempDir, file: &str, from: &str, to: &str) {
    let path = repository.path().join("deploy").join(file);
    let text = fs::read_to_string(&path).expect("a file");
    assert!(text.contains(from), "{from}: {text}");
    fs::write(path, text.replacen(from, to, 1)).expect("written");
}

/// The number of findings with this severity and this state.
fn count(report: &Value, severity: &str, state: &str) -> usize {
    let findings = report["checks"].as_array().expect("checks").iter().flat_map(|check| check["findings"].as_array());
    findings.flatten().filter(|found| found["severity"] == severity && found["baselineState"] == state).count()
}

#[test]
fn a_warning_blocks_if_asked() {
    let repository = repository();
    let warned = ["check", "-f", "breaking", "--target", "dir:live", "--warn-only"];
    let strict = |arguments: &[&str]| run(&repository, &[&warned[..], arguments].concat());
    let (code, report, told) = strict(&[]);
    assert_eq!((code, report["outcome"].as_str()), (Some(0), Some("planned")), "{told}");
    let (code, report, told) = strict(&["--fail-on", "warning"]);
    assert_eq!((code, report["outcome"].as_str()), (Some(3), Some("blocked")), "{told}");
    assert!(told.contains("13 warnings block, because --fail-on is warning"), "{told}");
    // A known finding is none that counts.
    gantry(&repository, &[&warned[..], &["-o", "json=base.json"]].concat());
    let (code, _, told) = strict(&["--fail-on", "warning", "--baseline", "base.json"]);
    assert_eq!(code, Some(0), "{told}");
    let (code, _, told) = strict(&["--fail-on", "warnings"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("did you mean \"warning\"?"), "{told}");
}

#[test]
fn a_finding_of_the_baseline_does_not_count_at_any_line() {
    let repository = with_baseline(&BREAKING);
    edit(&repository, "breaking/bakery.yaml", "apiVersion", "# a\n# line\napiVersion");
    let (code, report, told) = run(&repository, &[&BREAKING[..], &["--baseline", "base.json"]].concat());
    assert_eq!(code, Some(0), "{told}");
    assert_eq!((count(&report, "known", "unchanged"), report["outcome"].as_str()), (15, Some("planned")), "{report:#}");
    assert_eq!(
        report["baseline"],
        serde_json::json!({"file": "base.json", "new": 0, "unchanged": 15, "updated": 0, "absent": 0})
    );
    let summary = &report["summary"];
    assert_eq!((&summary["errors"], &summary["warnings"], &summary["known"]), (&0.into(), &0.into(), &15.into()));
    assert!(told.contains("Compared with base.json: 15 known findings do not count."), "{told}");
    assert!(told.contains("CRDUpgradeSafety          passed: 15 known (-v shows all)"), "{told}");

    // Only new findings have an effect.
    edit(&repository, "breaking/bakery.yaml", "size:", "weight:");
    let (code, report, told) = run(&repository, &[&BREAKING[..], &["--baseline", "base.json"]].concat());
    assert_eq!((code, count(&report, "error", "new")), (Some(3), 1), "{told}");
    assert!(told.contains("error[NoExistingFieldRemoved]: field spec.size may not be removed from v1"), "{told}");
    assert!(told.contains("14 known findings do not count, 1 is new or worse, 1 is gone."), "{told}");
    assert!(told.contains("Would be blocked: 1 error. Nothing was written."), "{told}");
}

#[test]
fn findings_that_are_worse_than_in_the_baseline_or_not_in_it_count() {
    let repository = with_baseline(&[&BREAKING[..], &["--warn-only"]].concat());
    let (code, report, told) = run(&repository, &[&BREAKING[..], &["--baseline", "base.json"]].concat());
    assert_eq!((code, count(&report, "error", "updated")), (Some(3), 11), "{told}");
    assert_eq!(count(&report, "known", "unchanged"), 4, "{told}");

    let repository = with_baseline(&BREAKING);
    edit(&repository, "breaking/bakery.yaml", "[apple, lemon]", "[apple]");
    let (code, report, told) = run(&repository, &[&BREAKING[..], &["--baseline", "base.json"]].concat());
    assert_eq!((code, count(&report, "error", "updated")), (Some(3), 1), "{told}");
}

#[test]
fn unchecked_parts_are_never_known() {
    let config = "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: lost\n  cel:\n    \
        match: {kinds: [ClusterRole]}\n    expression: object.gone.field == 1\n";
    let repository = repository();
    fs::write(repository.path().join("deploy/gantry.yaml"), config).expect("written");
    let check = ["check", "-f", "safe", "--target", "dir:live"];
    assert_eq!(run(&repository, &[&check[..], &["-o", "json=base.json"]].concat()).0, Some(1));
    let (code, _, told) = run(&repository, &[&check[..], &["--baseline", "base.json"]].concat());
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("lost could not complete; this does not count as a pass"), "{told}");
}

#[test]
fn a_deploy_writes_despite_known_findings_and_says_so() {
    let repository = with_baseline(&BREAKING);
    let deploy = ["deploy", "-f", "breaking", "--target", "dir:live", "--yes"];
    assert_eq!(run(&repository, &deploy).0, Some(3));
    let (code, report, told) = run(&repository, &[&deploy[..], &["--baseline", "base.json"]].concat());
    assert_eq!((code, report["outcome"].as_str()), (Some(0), Some("deployed")), "{told}");
    assert!(told.contains("Compared with base.json: 15 known findings do not count."), "{told}");
}

#[test]
fn an_invalid_baseline_is_a_usage_error() {
    let repository = with_baseline(&BREAKING);
    let deploy = repository.path().join("deploy");
    let base = fs::read_to_string(deploy.join("base.json")).expect("a report");
    for (name, text) in [
        ("later.json", base.replace("gantry.dev/v1alpha1", "gantry.dev/v2")),
        ("other.json", base.replace("\"Report\"", "\"Config\"")),
        ("half.json", base[..base.len() / 2].to_owned()),
        ("odd.json", base.replace("\"severity\": \"error\"", "\"severity\": \"fatal\"")),
        ("list.json", "[]".to_owned()),
        ("deep.json", "[".repeat(100_000)),
        ("empty.json", String::new()),
    ] {
        fs::write(deploy.join(name), text).expect("written");
    }
    for (name, message) in [
        ("absent.json", "--baseline absent.json: cannot be read: "),
        ("live", "--baseline live: cannot be read: "),
        ("later.json", "it has apiVersion \"gantry.dev/v2\", and this gantry reads \"gantry.dev/v1alpha1\""),
        ("other.json", "it is not a report: it lacks kind: Report"),
        ("half.json", "half.json:"),
        ("odd.json", "unknown variant `fatal`"),
        ("list.json", "--baseline is not a JSON report: invalid type: sequence, expected an object"),
        ("-", "--baseline -: it is read from a file, not from standard input"),
        ("deep.json", "--baseline is not a JSON report: "),
        ("empty.json", "empty.json:1"),
    ] {
        // Nothing listens on that port: the error is found before any request.
        let arguments = ["check", "-f", "breaking", "--kubeconfig", "nowhere", "--baseline", name];
        let (code, _, told) = run(&repository, &arguments);
        assert_eq!(code, Some(2), "{name}: {told}");
        assert!(told.contains(message) && told.contains("write one with -o json=FILE"), "{name}: {told}");
    }
    let (code, _, told) =
        run(&repository, &[&BREAKING[..], &["--baseline", "base.json", "-o", "json=base.json"]].concat());
    assert!(code == Some(2) && told.contains("would overwrite base.json, which this run reads"), "{told}");
    assert_eq!(fs::read_to_string(deploy.join("base.json")).expect("it is there"), base);
}

#[test]
fn manifests_cannot_bring_a_baseline() {
    let repository = with_baseline(&BREAKING);
    let config = "apiVersion: gantry.dev/v1alpha1\nkind: Config\nbaseline: base.json\n";
    fs::write(repository.path().join("deploy/breaking/config.yaml"), config).expect("written");
    let (code, _, told) = run(&repository, &BREAKING);
    assert!(code == Some(2) && told.contains("baseline"), "{told}");
}

#[test]
fn a_report_of_an_earlier_version_is_a_baseline() {
    let repository = repository();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/offline/reports/v1alpha1");
    let blocked = recorded.join("blocked.json");
    let blocked = blocked.to_str().expect("a path");
    let (code, report, told) = run(&repository, &[&BREAKING[..], &["--baseline", blocked]].concat());
    assert_eq!((code, count(&report, "known", "unchanged")), (Some(0), 15), "{told}");
    for file in fs::read_dir(recorded).expect("a folder") {
        let file = file.expect("an entry").path();
        let name = file.to_str().expect("a path");
        let (code, _, told) = run(&repository, &["check", "-f", "safe", "--target", "dir:live", "--baseline", name]);
        assert_eq!(code, Some(0), "{name}: {told}");
    }
}
