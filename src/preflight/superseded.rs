//! One mistake that two checks find is reported once, by the check that knows more: [`CheckEntry::supersedes`] says which
//! findings of others it replaces. A custom resource that its CRD does not take is refused by the server's dry run
//! and by gantry's validator, which knows the CRD and says more.
//!
//! This comes last: if the other check's finding is waived or only a warning, the server's refusal is still reported, since
//! the server refuses the object anyway.
//!
//! [`CheckEntry::supersedes`]: super::entry::CheckEntry::supersedes

use std::collections::BTreeMap;

use super::entry::Superseded;
use super::registry;
use crate::finding::{CheckReport, Finding, Fingerprint, Severity};
use crate::text;

/// A finding that was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// The report that it was of.
    pub of: usize,
    pub severity: Severity,
    /// The finding that reports the same.
    pub told_by: Fingerprint,
}

/// Leaves out of each report what another one reports with the same severity, and answers what that was.
pub fn leave_out(reports: &mut [CheckReport]) -> Vec<LeftOut> {
    let mut left_out = Vec::new();
    for by in 0..reports.len() {
        let Some(check) = registry::find(&reports[by].name) else { continue };
        for superseded in check.supersedes {
            if let Some(of) = reports.iter().position(|report| report.name == superseded.check) {
                left_out.extend(leave_out_of(reports, of, by, superseded));
            }
        }
    }
    left_out
}

fn leave_out_of(reports: &mut [CheckReport], of: usize, by: usize, superseded: &Superseded) -> Vec<LeftOut> {
    let mut told: BTreeMap<String, Vec<&Finding>> = BTreeMap::new();
    for finding in &reports[by].findings {
        told.entry(place(finding)).or_default().push(finding);
    }
    let teller = |theirs: &Finding| {
        let mut others = told.get(&place(theirs)).into_iter().flatten().filter(|_| theirs.rule == superseded.rule);
        let is_loud = |ours: &Finding| ours.severity <= theirs.severity && theirs.severity <= Severity::Warning;
        let ours = others.find(|ours| is_loud(ours) && is_same(ours, theirs))?;
        Some(LeftOut { of, severity: theirs.severity, told_by: Fingerprint::of(ours) })
    };
    let mut tellers = reports[of].findings.iter().map(teller).collect::<Vec<_>>().into_iter();
    let left_out: Vec<LeftOut> = tellers.as_slice().iter().flatten().copied().collect();
    let count = left_out.len();
    if count == 0 {
        return left_out;
    }
    let verb = if count == 1 { "is" } else { "are" };
    let message = format!("{} {verb} reported by {}", text::count(count, "finding"), reports[by].name);
    // Its status stays what it is: it did find them.
    reports[of].findings.retain(|_| !matches!(tellers.next(), Some(Some(_))));
    reports[of].message = Some(message);
    left_out
}

/// Whether both are about what the server has against the object.
fn is_same(ours: &Finding, theirs: &Finding) -> bool {
    ours.complaint.as_ref().zip(theirs.complaint.as_ref()).is_some_and(|(ours, theirs)| ours.is_said_by(theirs))
}

/// The object and the place in its manifest.
fn place(finding: &Finding) -> String {
    let at = finding.source.as_ref().map(|at| (&at.file, at.line, at.column));
    format!("{:?} {at:?}", finding.object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{CheckStatus, Complaint, Mode};
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

    fn finding(rule: &str, says: Option<Complaint>) -> Finding {
        let object = ObjectRef {
            api_version: "example.com/v1".into(),
            kind: "Widget".into(),
            namespace: Some("a".into()),
            name: "w".into(),
        };
        let finding = crate::finding::samples::finding(rule, Severity::Error, object, "the server refuses it");
        Finding { complaint: says, ..finding }
    }

    #[test]
    fn the_server_is_left_out_where_it_says_the_same() {
        let said = |size: i32| format!("spec.size: Invalid value: {size}: spec.size in body should be greater than 1");
        let refused = |text: String| Some(Complaint::Refused(text));
        let unknown = Some(Complaint::UnknownField);
        for (by_server, by_validator, left) in [
            (refused(said(0)), refused(said(0)), 0),
            (refused(format!("Widget \"w\" is\n invalid: {}", said(0))), refused(said(0)), 0),
            (refused(said(0)), refused(said(1)), 1),
            (unknown.clone(), unknown.clone(), 0),
            (unknown.clone(), refused(said(0)), 1),
            (refused(said(0)), unknown, 1),
            (None, refused(said(0)), 1),
            (None, None, 1),
        ] {
            let mut reports = [
                report("AdmissionDryRun", vec![finding("ObjectInvalid", by_server.clone())]),
                report("CustomResourceValidation", vec![finding("ManifestObjectRefused", by_validator.clone())]),
            ];
            leave_out(&mut reports);
            let of = reports.each_ref().map(|report| report.findings.len());
            assert_eq!(of, [left, 1], "{by_server:?} and {by_validator:?}");
        }
    }
}
