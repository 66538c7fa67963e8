//! The checks as test suites (`-o junit`), for the test reports of build servers.
//!
//! Each check is a suite, and each of its objects a test case. A case has the same name whether it fails or passes, so
//! build servers show how long it has failed and when it was fixed. What could not be checked is an error, which is
//! neither a failure nor a pass.

use std::collections::BTreeMap;
use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report as Suites, TestCase, TestCaseStatus, TestSuite, XmlString};

use super::places::ReportPaths;
use super::{ErrorEntry, FormatWriter, Report, ReportContext, ReportList, words};
use gantry_core::ci_log::OutputSyntax;
use gantry_core::finding::{CheckReport, CheckStatus, Finding, Severity};
use gantry_core::resource::ObjectRef;
use gantry_core::text;

/// The maximum number of findings of one object that are written out.
const WRITTEN: usize = 100;

pub const WRITER: FormatWriter = FormatWriter {
    write,
    write_list,
    syntax: OutputSyntax::Xml,
    is_start_of_report: |head| head.contains("<testsuites name=\"gantry\""),
};

/// Writes the report.
fn write(report: &Report, around: ReportContext<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut suites = Suites::new("gantry");
    add(&mut suites, "", report, around.places);
    suites.serialize(out).map_err(io::Error::other)
}

/// Writes the reports of many clusters: the names of suites and classes begin with the name of the cluster.
fn write_list(list: &ReportList, around: ReportContext<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut suites = Suites::new("gantry");
    for cluster in &list.clusters {
        add(&mut suites, &format!("{}: ", words::line(&cluster.name, 200)), &cluster.report, around.places);
    }
    if !list.errors.is_empty() {
        suites.add_test_suite(stopped("gantry", &list.errors, around.places));
    }
    suites.serialize(out).map_err(io::Error::other)
}

fn add(suites: &mut Suites, prefix: &str, report: &Report, places: &ReportPaths) {
    suites.add_test_suites(report.checks.iter().map(|check| suite(prefix, check, places)));
    if !report.errors.is_empty() {
        suites.add_test_suite(stopped(&format!("{prefix}gantry"), &report.errors, places));
    }
}

/// One check.
fn suite(prefix: &str, check: &CheckReport, places: &ReportPaths) -> TestSuite {
    let name = format!("{prefix}{}", words::line(&check.name, 200));
    let mut suite = TestSuite::new(xml(&name));
    if check.status == CheckStatus::Skipped {
        let mut skipped = TestCaseStatus::skipped();
        skipped.set_message(xml(check.message.as_deref().unwrap_or("no reason given")));
        suite.add_test_case(test_case(&name, &name, skipped));
        return suite;
    }
    for (object, findings) in by_object(check) {
        suite.add_test_case(of_object(&name, object, &findings, places));
    }
    for (number, unchecked) in check.unchecked.iter().enumerate() {
        let mut error = TestCaseStatus::non_success(NonSuccessKind::Error);
        error.set_message(xml(&format!("could not check: {}", unchecked.message))).set_type("could-not-check");
        if let Some(help) = &unchecked.help {
            error.set_description(xml(help));
        }
        suite.add_test_case(test_case(&name, &format!("could not check {}", number + 1), error));
    }
    // Viewers leave out a suite without cases.
    if suite.test_cases.is_empty() {
        suite.add_test_case(test_case(&name, &name, TestCaseStatus::success()));
    }
    suite
}

/// The objects that a check examined or has findings in, in the order of the report. `None` stands for findings that do
/// not concern a single object.
fn by_object(check: &CheckReport) -> Vec<(Option<&ObjectRef>, Vec<&Finding>)> {
    let mut objects: Vec<(Option<&ObjectRef>, Vec<&Finding>)> = Vec::new();
    let mut known = BTreeMap::new();
    let found = check.findings.iter().map(|finding| (finding.object.as_ref(), Some(finding)));
    let looked_at = check.coverage.iter().map(|coverage| (Some(&coverage.object), None));
    for (object, finding) in found.chain(looked_at) {
        let at = *known.entry(object).or_insert_with(|| {
            objects.push((object, Vec::new()));
            objects.len() - 1
        });
        objects[at].1.extend(finding);
    }
    objects
}

fn of_object(check: &str, object: Option<&ObjectRef>, findings: &[&Finding], places: &ReportPaths) -> TestCase {
    let name = object.map_or_else(|| "the plan".to_owned(), ToString::to_string);
    let (errors, others): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.severity == Severity::Error);
    let status = match errors.first() {
        None => TestCaseStatus::success(),
        Some(first) => {
            let more = if errors.len() > 1 { format!(" (and {} more)", errors.len() - 1) } else { String::new() };
            let mut failure = TestCaseStatus::non_success(NonSuccessKind::Failure);
            failure.set_message(xml(&format!("{}{more}", words::message(first))));
            failure.set_type(xml(&first.rule)).set_description(xml(&join_findings(&errors)));
            failure
        }
    };
    let mut case = test_case(check, &name, status);
    if !others.is_empty() {
        case.set_system_out(xml(&join_findings(&others)));
    }
    let source = errors.iter().chain(&others).find_map(|finding| finding.source.as_ref());
    if let Some(source) = source {
        // GitLab shows it with the case.
        case.extra.insert("file".into(), xml(&places.position_of(source).path));
    }
    case
}

fn join_findings(findings: &[&Finding]) -> String {
    let mut texts: Vec<String> = findings.iter().take(WRITTEN).map(|finding| words::plain_text(finding)).collect();
    if findings.len() > WRITTEN {
        texts.push(format!("and {} more: -o json has them all", findings.len() - WRITTEN));
    }
    texts.join("\n\n")
}

/// The errors of the run, apart from findings.
fn stopped(name: &str, errors: &[ErrorEntry], places: &ReportPaths) -> TestSuite {
    let mut suite = TestSuite::new(xml(name));
    for (number, error) in errors.iter().enumerate() {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        let first = error.message.lines().next().unwrap_or_default();
        status.set_message(xml(first)).set_type("error");
        let at = error.source.as_ref().map(|source| format!("{}\n", words::place(source))).unwrap_or_default();
        let help = error.help.as_ref().map(|help| format!("\n{help}")).unwrap_or_default();
        status.set_description(xml(&format!("{at}{}{help}", error.message)));
        let mut case = test_case(name, &format!("error {}", number + 1), status);
        if let Some(source) = &error.source {
            case.extra.insert("file".into(), xml(&places.position_of(source).path));
        }
        suite.add_test_case(case);
    }
    suite
}

fn test_case(check: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(xml(&words::line(name, 300)), status);
    case.set_classname(xml(check));
    case
}

/// Escapes untrusted text.
fn xml(text: &str) -> XmlString {
    XmlString::new(text::sanitize_block(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use crate::surroundings::tests::write_to_text as as_text;

    fn suites(report: &Report) -> Suites {
        Suites::deserialize_from_str(&as_text(report, write)).expect("JUnit")
    }

    #[test]
    fn every_sample_can_be_read_back() {
        for (name, report) in samples::all() {
            let suites = suites(&report);
            let expected = report.checks.len() + usize::from(!report.errors.is_empty());
            assert_eq!(suites.test_suites.len(), expected, "{name}");
            assert!(suites.test_suites.iter().all(|suite| !suite.test_cases.is_empty()), "{name}");
        }
    }

    #[test]
    fn a_blocked_object_is_one_failure_with_all_that_is_wrong() {
        let suites = suites(&samples::blocked());
        let [suite] = &suites.test_suites[..] else { panic!("{suites:?}") };
        let [case] = &suite.test_cases[..] else { panic!("{suite:?}") };
        assert_eq!(case.name.as_str(), "customresourcedefinition/samples.test.example.com");
        assert_eq!(case.classname.as_ref().unwrap().as_str(), "CRDUpgradeSafety");
        assert_eq!(case.extra[&XmlString::new("file")].as_str(), "deploy/manifests/crd.yaml");
        let TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, message, description, .. } = &case.status
        else {
            panic!("{case:?}")
        };
        assert!(message.as_ref().unwrap().as_str().ends_with("from v1alpha1 (and 1 more)"), "{message:?}");
        let text = description.as_ref().unwrap().as_str();
        for part in ["crd.yaml:24:17", "crd.yaml:44:17", "proof   accepted today, loses values", "next    keep spec"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn an_object_with_warnings_passes_and_shows_them() {
        let suites = suites(&samples::warned());
        let case = &suites.test_suites[0].test_cases[0];
        assert!(matches!(case.status, TestCaseStatus::Success { .. }));
        assert!(case.system_out.as_ref().unwrap().as_str().contains("warning[NoRequiredFieldAdded]"));
        assert_eq!((suites.failures, suites.errors), (0, 0));
    }

    #[test]
    fn an_unchecked_check_is_an_error_and_a_skipped_one_is_skipped() {
        let suites = suites(&samples::could_not_check());
        let of = |at: usize| &suites.test_suites[at].test_cases[0].status;
        assert!(matches!(of(0), TestCaseStatus::Success { .. }));
        assert!(matches!(of(1), TestCaseStatus::NonSuccess { kind: NonSuccessKind::Error, .. }));
        assert!(matches!(of(2), TestCaseStatus::Skipped { .. }));
        assert_eq!((suites.tests, suites.errors, suites.failures), (3, 1, 0));
    }

    #[test]
    fn hostile_text_stays_text() {
        let mut report = samples::hostile();
        report.checks[0].findings[0].body.message = "]]></failure><script> \u{fffe}\u{ffff}\u{1b}[2J &amp;".into();
        let text = as_text(&report, write);
        assert!(!text.contains("<script>") && !text.contains(['\u{fffe}', '\u{ffff}', '\u{1b}']), "{text}");
        Suites::deserialize_from_str(&text).expect("JUnit");
    }
}
