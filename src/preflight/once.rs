//! One mistake that two checks find is told once. A custom resource that its CRD does not take is refused by the server's
//! dry run (`AdmissionDryRun`) and by gantry's validator (`CustomResourceValidation`), which knows the CRD and says more.
//!
//! This comes last: what is waived, or a mere warning there, is told here all the same, as the server refuses it all the
//! same.

use std::collections::BTreeMap;

use super::{admission_dry_run, custom_resource_validation};
use crate::report::{CheckReport, Finding, Severity};
use crate::text;

/// Leaves out of the report of the dry run what the validator tells as loudly.
pub fn tell(reports: &mut [CheckReport], redact: bool) {
    let find = |name: &str| reports.iter().position(|report| report.name == name);
    let checks = (find(admission_dry_run::ENTRY.name), find(custom_resource_validation::ENTRY.name));
    let (Some(server), Some(validator)) = checks else { return };
    let mut told: BTreeMap<String, Vec<&Finding>> = BTreeMap::new();
    for finding in &reports[validator].findings {
        told.entry(place(finding)).or_default().push(finding);
    }
    let is_told = |finding: &Finding| {
        let others = told.get(&place(finding));
        others.into_iter().flatten().any(|other| says_the_same(finding, other, redact))
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

fn says_the_same(server: &Finding, validator: &Finding, redact: bool) -> bool {
    let is_loud = validator.severity <= server.severity && server.severity <= Severity::Warning;
    if server.rule != admission_dry_run::rules::INVALID.name || !is_loud {
        return false;
    }
    let (rule, said) = (validator.rule.as_str(), server.message.as_str());
    if rule == custom_resource_validation::rules::MANIFEST_REFUSED.name {
        let words =
            validator.message.split_once(" refuses it: ").map_or(validator.message.as_str(), |(_, words)| words);
        // The words of a server are on one line. Without values both say where, and that is all.
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        return redact || line(said).ends_with(&line(words));
    }
    rule == custom_resource_validation::rules::MANIFEST_UNKNOWN_FIELD.name
        && (said.ends_with(&validator.message) || said.ends_with("field not declared in schema"))
}
