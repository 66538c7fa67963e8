use serde_json::Value;

use super::*;
use crate::samples;
use crate::surroundings::tests::write_to_text;

fn sarif(report: &Report) -> Value {
    serde_json::from_str(&write_to_text(report, write)).expect("JSON")
}

#[test]
fn every_sample_follows_the_schema_of_the_standard() {
    let schema = include_str!("../../../../tests/fixtures/sarif/sarif-schema-2.1.0.json");
    // The published pattern is not a valid regular expression; gantry writes no `language`.
    let schema = schema.replace("^[a-zA-Z]{2}|^[a-zA-Z]{2}-[a-zA-Z]{2}]?$", "");
    let schema = serde_json::from_str(&schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for (name, report) in samples::all() {
        let sarif = sarif(&report);
        let errors: Vec<String> =
            validator.iter_errors(&sarif).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
    let mut wrong = sarif(&samples::blocked());
    wrong["runs"][0]["results"][0]["level"] = "fatal".into();
    assert!(!validator.is_valid(&wrong));
}

#[test]
fn a_result_says_what_where_and_what_to_do() {
    let sarif = sarif(&samples::blocked());
    let run = &sarif["runs"][0];
    assert_eq!(run["invocations"][0], serde_json::json!({"executionSuccessful": true}));
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    assert_eq!(rules.len(), 1, "each rule is there once");
    assert_eq!(rules[0]["shortDescription"]["text"], "A field is removed");
    assert_eq!(rules[0]["defaultConfiguration"]["level"], "error");
    assert_eq!(rules[0]["properties"]["tags"], serde_json::json!(["CRDUpgradeSafety"]));
    let result = &run["results"][0];
    let at = &result["locations"][0];
    assert_eq!(
        at["physicalLocation"],
        serde_json::json!({
            "artifactLocation": {"uri": "deploy/manifests/crd.yaml", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 24, "startColumn": 17},
        })
    );
    assert_eq!(
        at["logicalLocations"][0]["fullyQualifiedName"],
        "customresourcedefinition/samples.test.example.com v1alpha1 ^.spec.pollInterval"
    );
    let message = result["message"]["text"].as_str().expect("a message");
    assert!(message.contains("may not be removed from v1alpha1\nNext: keep spec.pollInterval"), "{message}");
    let fingerprint = |result: &Value| result["partialFingerprints"][FINGERPRINT].as_str().unwrap().to_owned();
    assert_ne!(fingerprint(result), fingerprint(&run["results"][1]), "another version is another finding");
    assert_eq!((result["ruleIndex"].as_u64(), result["level"].as_str()), (Some(0), Some("error")));
}

#[test]
fn moved_lines_leave_the_fingerprint_as_it_is() {
    let before = samples::blocked();
    let mut after = before.clone();
    after.checks[0].findings[0].source = Some(samples::source("elsewhere.yaml", 900, 1));
    let of = |report: &Report| sarif(report)["runs"][0]["results"][0]["partialFingerprints"].clone();
    assert_eq!(of(&before), of(&after));
}

#[test]
fn a_waived_finding_is_suppressed_with_its_reason() {
    let mut report = samples::blocked();
    let finding = &mut report.checks[0].findings[0];
    (finding.severity, finding.original_severity) = (Severity::Waived, Some(Severity::Error));
    finding.waived = Some(gantry_core::finding::Waived { reason: "agreed".into(), expires: Some("2026-12-31".into()) });
    let sarif = sarif(&report);
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    let suppressed = serde_json::json!([
        {"kind": "external", "status": "accepted", "justification": "agreed (until 2026-12-31)"}]);
    assert_eq!((&results[0]["suppressions"], results[0]["level"].as_str()), (&suppressed, Some("error")));
    assert!(results[1].get("suppressions").is_none());
}

#[test]
fn a_report_with_unchecked_parts_is_no_success() {
    let sarif = sarif(&samples::could_not_check());
    let invocation = &sarif["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let told: Vec<(&str, &str)> = invocation["toolExecutionNotifications"]
        .as_array()
        .expect("notifications")
        .iter()
        .map(|told| (told["level"].as_str().unwrap(), told["message"]["text"].as_str().unwrap()))
        .collect();
    assert!(told[0].0 == "error" && told[0].1.starts_with("PermissionValidation could not check: "), "{told:?}");
    assert!(told[1].0 == "warning" && told[1].1.starts_with("WebhookReadiness was skipped: "), "{told:?}");
    // The run is still unsuccessful if other checks have findings.
    let mut both = samples::blocked();
    both.checks.extend(samples::could_not_check().checks);
    assert_eq!(self::sarif(&both)["runs"][0]["invocations"][0]["executionSuccessful"], false);
}

#[test]
fn hostile_text_is_neither_a_link_nor_a_control_character() {
    let mut report = samples::hostile();
    report.checks[0].findings[0].body.message = "[click](https://evil.example) \u{1b}[2J\u{202e}\u{fffe}".into();
    let text = write_to_text(&report, write);
    assert!(!text.contains("](") && !text.contains("\\u001b") && !text.contains("\\u202e"), "{text}");
    assert!(!text.chars().any(|c| c != '\n' && text::is_hostile(c)));
}
