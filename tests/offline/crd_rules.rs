//! `tests/fixtures/crd-upgrade-safety`: pairs of CRDs, each with exactly the findings that it must have.
//!
//! Every rule runs on every fixture. A real API server accepts each live CRD, and each desired one that is not blocked:
//! the same fixtures are deployed to one. A folder with a file `offline` is an exception; the file has the reason.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gantry_core::crd::CrdPair;
use gantry_core::finding::{Severity, Verdict};
use gantry_preflight::Violation;
use gantry_preflight::crd_upgrade_safety::compare::{self, RuleViolation};
use gantry_preflight::crd_upgrade_safety::rules::RULES;
use gantry_preflight::crd_upgrade_safety::{CrdUpgradeOptions, CrdUpgradeSafety, Preset};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    rule: String,
    /// Under `preset: documented`.
    severity: Severity,
    /// Under `preset: semantic`, if that differs.
    semantic: Option<Severity>,
    /// The proof's result for the change, if the fixture requires one.
    verdict: Option<Verdict>,
    version: Option<String>,
    path: Option<String>,
    /// Checked if the fixture specifies it.
    documented: Option<String>,
}

struct Fixture {
    name: String,
    live: String,
    desired: String,
    expected: Vec<Expected>,
}

fn fixtures() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/crd-upgrade-safety");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fixture(path)).collect()
}

fn fixture(path: &Path) -> Fixture {
    let read = |file: &str| std::fs::read_to_string(path.join(file)).unwrap_or_else(|e| panic!("{path:?} {file}: {e}"));
    let json = |file: &str| serde_yaml::from_str::<Value>(&read(file)).unwrap().to_string();
    Fixture {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        live: json("live.yaml"),
        desired: json("desired.yaml"),
        expected: serde_yaml::from_str(&read("expected.yaml")).unwrap_or_else(|e| panic!("{path:?}: {e}")),
    }
}

fn compared(fixture: &Fixture, live: &str, desired: &str) -> Vec<RuleViolation> {
    let compared = CrdPair::parse(live, desired).and_then(|pair| compare::compare_crds(&pair));
    compared.unwrap_or_else(|error| panic!("{}: {error:?}", fixture.name)).violations
}

fn judged(fixture: &Fixture, preset: Preset) -> Vec<Violation> {
    let check = CrdUpgradeSafety::new(CrdUpgradeOptions { preset, ..CrdUpgradeOptions::default() });
    check.judge(&fixture.live, &fixture.desired).unwrap_or_else(|error| panic!("{}: {error:?}", fixture.name))
}

#[test]
fn every_fixture_has_its_findings_and_no_others() {
    let fixtures = fixtures();
    assert!(fixtures.len() > 40, "only {} fixtures were found", fixtures.len());
    let mut wrong = Vec::new();
    for fixture in &fixtures {
        let semantic = judged(fixture, Preset::Semantic);
        let found: Vec<Expected> = judged(fixture, Preset::Documented)
            .into_iter()
            .zip(&semantic)
            .enumerate()
            .map(|(i, (violation, semantic))| Expected {
                rule: violation.rule.into_owned(),
                severity: violation.severity,
                semantic: Some(semantic.severity).filter(|semantic| *semantic != violation.severity),
                verdict: violation.body.verdict,
                version: violation.body.version,
                path: violation.body.path,
                documented: violation
                    .body
                    .documented
                    .filter(|_| fixture.expected.get(i).is_some_and(|expected| expected.documented.is_some())),
            })
            .collect();
        if found != fixture.expected {
            wrong.push(format!("{}\n    found {found:?}\n expected {:?}", fixture.name, fixture.expected));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A finding that claims that objects break has a witness; a finding that claims that none does has none.
#[test]
fn every_proof_of_a_breakage_has_a_witness() {
    for fixture in &fixtures() {
        for violation in judged(fixture, Preset::Semantic) {
            let breaks =
                matches!(violation.body.verdict, Some(Verdict::Narrowing | Verdict::Incomparable | Verdict::DataLoss));
            assert_eq!(!violation.body.witnesses.is_empty(), breaks, "{}: {violation:?}", fixture.name);
        }
    }
}

#[test]
fn an_unchanged_crd_has_no_findings() {
    for fixture in &fixtures() {
        for side in [&fixture.live, &fixture.desired] {
            let found = compared(fixture, side, side);
            assert!(found.is_empty(), "{}: {found:?}", fixture.name);
        }
    }
}

/// The same schema with different text: no shortcut for equal text applies, so every node is walked.
#[test]
fn a_crd_that_is_only_formatted_differently_has_no_findings() {
    for fixture in &fixtures() {
        for side in [&fixture.live, &fixture.desired] {
            let spaced = serde_json::to_string_pretty(&serde_json::from_str::<Value>(side).unwrap()).unwrap();
            assert_ne!(&spaced, side);
            let found = compared(fixture, side, &spaced);
            assert!(found.is_empty(), "{}: {found:?}", fixture.name);
        }
    }
}

#[test]
fn every_rule_has_a_fixture() {
    let expected: BTreeSet<String> = fixtures().into_iter().flat_map(|f| f.expected).map(|e| e.rule).collect();
    for rule in RULES {
        assert!(expected.contains(rule.doc.name), "no fixture expects {}", rule.doc.name);
    }
}

/// A finding must point into the desired CRD, at least to the version that it is about.
#[test]
fn every_finding_points_into_the_desired_crd() {
    use gantry_core::resource::Step;
    for fixture in &fixtures() {
        let desired: Value = serde_json::from_str(&fixture.desired).unwrap();
        for violation in compared(fixture, &fixture.live, &fixture.desired) {
            let mut at = &desired;
            let mut depth = 0;
            for step in &violation.diagnosis.at {
                let next = match step {
                    Step::Key(key) => at.get(key),
                    Step::Index(index) => at.get(index),
                };
                let Some(next) = next else { break };
                at = next;
                depth += 1;
            }
            let whole = violation.path.is_none();
            assert!(depth >= if whole { 2 } else { 5 }, "{}: {:?}", fixture.name, violation.diagnosis.at);
            assert!(
                !violation.diagnosis.message.is_empty() && !violation.diagnosis.help.is_empty(),
                "{}",
                fixture.name
            );
            assert!(violation.diagnosis.body.label.is_some(), "{}", fixture.name);
        }
    }
}
