//! The findings as a report on code quality (`-o gitlab`), which GitLab shows beside the lines of a merge request.
//!
//! GitLab compares it with that of the target branch by fingerprint and accepts each fingerprint only once. The format
//! cannot express what could not be checked, so that is written as an entry.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::places::CodePosition;
use super::{FormatWriter, Report, ReportContext, json, words};
use gantry_core::ci_log::OutputSyntax;
use gantry_core::finding::{Finding, Fingerprint, Severity};
use gantry_core::hash::fnv128;

#[derive(Serialize)]
struct CodeQualityEntry {
    description: String,
    check_name: String,
    fingerprint: String,
    severity: &'static str,
    location: GitlabLocation,
}

#[derive(Serialize)]
struct GitlabLocation {
    path: String,
    lines: GitlabLines,
}

#[derive(Serialize)]
struct GitlabLines {
    begin: usize,
}

pub const WRITER: FormatWriter = FormatWriter {
    write,
    write_list: |list, around, out| write(&list.combined(), around, out),
    syntax: OutputSyntax::Json,
    // Without findings it is an empty list.
    is_start_of_report: |head| head == "[]\n" || head.starts_with('[') && head.contains("\"check_name\""),
};

/// Writes the report.
fn write(report: &Report, around: ReportContext<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut entries: Vec<CodeQualityEntry> = Vec::new();
    let somewhere = || location(around.places.first_place(report));
    for (check, message, _) in words::unchecked(report) {
        let name = words::line(&check.name, 100);
        let description = format!("{name} could not check: {message}");
        entries.push(stopped(description, name, somewhere()));
    }
    for error in &report.errors {
        let at = error.source.as_ref().map_or_else(somewhere, |source| location(around.places.position_of(source)));
        entries.push(stopped(words::line(&error.message, 1000), "gantry".to_owned(), at));
    }
    let mut times = BTreeMap::new();
    for finding in report.checks.iter().flat_map(|check| &check.findings) {
        // Accepted findings need not be fixed.
        let Some(severity) = severity(finding) else { continue };
        let number = times.entry(Fingerprint::new(finding)).and_modify(|number| *number += 1).or_insert(0_usize);
        entries.push(CodeQualityEntry {
            description: description(finding),
            check_name: words::line(&finding.rule, 100),
            fingerprint: Fingerprint::new(finding).numbered(*number).to_string(),
            severity,
            location: location(around.places.of_finding(finding, report)),
        });
    }
    json::write_value(&entries, out)
}

/// An entry for an error that is not a finding.
fn stopped(description: String, check_name: String, location: GitlabLocation) -> CodeQualityEntry {
    let fingerprint = format!("{:032x}", fnv128(format!("{check_name}\n{description}").as_bytes()));
    CodeQualityEntry { description, check_name, fingerprint, severity: "blocker", location }
}

fn description(finding: &Finding) -> String {
    let inside = words::version_and_path(finding);
    let inside = if inside.is_empty() { inside } else { format!(" ({inside})") };
    let parent = words::parent_place(finding).map(|place| format!(" {place}")).unwrap_or_default();
    format!("{}{inside}: {}{parent}", words::object(finding), words::message(finding))
}

/// GitLab's severity; `None` for findings that are left out.
fn severity(finding: &Finding) -> Option<&'static str> {
    match finding.severity {
        // The report of the target branch has it, too.
        Severity::Known => severity(&Finding { severity: finding.severity_if_unaccepted(), ..finding.clone() }),
        Severity::Error => Some("blocker"),
        Severity::Warning => Some("minor"),
        Severity::Info => Some("info"),
        Severity::Waived => None,
    }
}

fn location(place: CodePosition) -> GitlabLocation {
    GitlabLocation { path: place.path, lines: GitlabLines { begin: place.line.unwrap_or(1) } }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::samples;
    use crate::surroundings::tests::write_to_text;

    fn entries(report: &Report) -> Vec<Value> {
        serde_json::from_str(&write_to_text(report, write)).expect("a list")
    }

    #[test]
    fn a_finding_has_what_gitlab_asks_for() {
        let entries = entries(&samples::blocked());
        let description = "customresourcedefinition/samples.test.example.com (v1alpha1, ^.spec.pollInterval): field \
            spec.pollInterval may not be removed from v1alpha1";
        let fingerprint = Fingerprint::new(&samples::removed_field("v1alpha1", 1)).to_string();
        assert_eq!(
            entries[0],
            json!({
                "description": description,
                "check_name": "NoExistingFieldRemoved",
                "fingerprint": fingerprint,
                "severity": "blocker",
                "location": {"path": "deploy/manifests/crd.yaml", "lines": {"begin": 24}},
            })
        );
    }

    #[test]
    fn every_fingerprint_occurs_once() {
        for (name, mut report) in samples::all() {
            let again = report.checks.first().map(|check| check.findings.clone()).unwrap_or_default();
            report.checks.iter_mut().take(1).for_each(|check| check.findings.extend(again.clone()));
            let entries = entries(&report);
            let all: BTreeSet<&str> = entries.iter().map(|entry| entry["fingerprint"].as_str().unwrap()).collect();
            assert_eq!(all.len(), entries.len(), "{name}");
        }
    }

    #[test]
    fn unchecked_parts_are_reported_and_waived_findings_are_not() {
        let unchecked = entries(&samples::could_not_check());
        assert_eq!(
            (&unchecked[0]["check_name"], &unchecked[0]["severity"]),
            (&json!("PermissionValidation"), &json!("blocker"))
        );
        let mut waived = samples::blocked();
        waived.checks[0].findings.iter_mut().for_each(|finding| finding.severity = Severity::Waived);
        assert!(entries(&waived).is_empty());
    }
}
