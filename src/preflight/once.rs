//! One mistake that two checks find is told once. A custom resource that its CRD does not take is refused by the server's
//! dry run (`AdmissionDryRun`) and by gantry's validator (`CustomResourceValidation`), which knows the CRD and says more.
//!
//! This comes last: what is waived, or a mere warning there, is told here all the same, as the server refuses it all the
//! same.

use std::collections::BTreeMap;

use super::{admission_dry_run, custom_resource_validation};
use crate::finding::{CheckReport, Finding, Severity};
use crate::text;

/// Leaves out of the report of the dry run what the validator tells as loudly.
pub fn tell(reports: &mut [CheckReport]) {
    let find = |name: &str| reports.iter().position(|report| report.name == name);
    let checks = (find(admission_dry_run::ENTRY.name), find(custom_resource_validation::ENTRY.name));
    let (Some(server), Some(validator)) = checks else { return };
    let mut told: BTreeMap<String, Vec<&Finding>> = BTreeMap::new();
    for finding in &reports[validator].findings {
        told.entry(place(finding)).or_default().push(finding);
    }
    let is_told = |finding: &Finding| {
        let others = told.get(&place(finding));
        others.into_iter().flatten().any(|other| says_the_same(finding, other))
    };
    let mut is_told = reports[server].findings.iter().map(is_told).collect::<Vec<_>>().into_iter();
    let count = is_told.as_slice().iter().filter(|is_told| **is_told).count();
    if count == 0 {
        return;
    }
    let verb = if count == 1 { "is" } else { "are" };
    let message = format!("{} {verb} told by {}", text::count(count, "finding"), reports[validator].name);
    // Its status stays what it is: it did find them.
    reports[server].findings.retain(|_| is_told.next() != Some(true));
    reports[server].message = Some(message);
}

/// The object and the place in its manifest.
fn place(finding: &Finding) -> String {
    let at = finding.source.as_ref().map(|at| (&at.file, at.line, at.column));
    format!("{:?} {at:?}", finding.object)
}

/// With all values, whatever `--redact` takes out of the report: it must not change which findings there are.
fn whole(finding: &Finding) -> &str {
    finding.unredacted.as_ref().unwrap_or(&finding.message)
}

fn says_the_same(server: &Finding, validator: &Finding) -> bool {
    let is_loud = validator.severity <= server.severity && server.severity <= Severity::Warning;
    if server.rule != admission_dry_run::rules::INVALID.name || !is_loud {
        return false;
    }
    let (rule, said, told) = (validator.rule.as_str(), whole(server), whole(validator));
    if rule == custom_resource_validation::rules::MANIFEST_REFUSED.name {
        let words = told.split_once(" refuses it: ").map_or(told, |(_, words)| words);
        // The words of a server are on one line.
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        return line(said).ends_with(&line(words));
    }
    rule == custom_resource_validation::rules::MANIFEST_UNKNOWN_FIELD.name
        && (said.ends_with(told) || said.ends_with("field not declared in schema"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::redact::without_values;
    use crate::finding::{CheckStatus, Mode};
    use crate::resource::ObjectRef;

    fn report(name: &str, findings: Vec<Finding>) -> CheckReport {
        CheckReport {
            name: name.to_owned(),
            mode: Mode::Error,
            status: CheckStatus::Blocked,
            message: None,
            unchecked: Vec::new(),
            coverage: Vec::new(),
            suppressed: Vec::new(),
            findings,
        }
    }

    fn finding(rule: &str, message: &str, redact: bool) -> Finding {
        let object = ObjectRef {
            api_version: "example.com/v1".into(),
            kind: "Widget".into(),
            namespace: Some("a".into()),
            name: "w".into(),
        };
        let finding = crate::finding::samples::finding(rule, Severity::Error, object, message);
        match redact {
            false => finding,
            true => Finding { message: without_values(message), unredacted: Some(message.to_owned()), ..finding },
        }
    }

    #[test]
    fn redaction_does_not_change_which_findings_there_are() {
        let said = |size: i32| format!("spec.size: Invalid value: {size}: spec.size in body should be greater than 1");
        for (by_server, by_validator, left) in [(0, 0, 0), (0, 1, 1)] {
            for redact in [false, true] {
                let server = format!("the server refuses it: {}", said(by_server));
                let validator = format!("the CRD refuses it: {}", said(by_validator));
                let mut reports = [
                    report("AdmissionDryRun", vec![finding(admission_dry_run::rules::INVALID.name, &server, redact)]),
                    report(
                        "CustomResourceValidation",
                        vec![finding(custom_resource_validation::rules::MANIFEST_REFUSED.name, &validator, redact)],
                    ),
                ];
                tell(&mut reports);
                let of = reports.each_ref().map(|report| report.findings.len());
                assert_eq!(of, [left, 1], "{by_server} and {by_validator}, redact: {redact}");
            }
        }
    }
}
