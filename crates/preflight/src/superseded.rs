//! A problem that two checks find is reported once, by the check that knows more: [`CheckEntry::supersedes`] names the
//! findings of other checks that it replaces. For example, a custom resource that its CRD refuses is reported by the
//! server's dry run and by gantry's validator, which knows the CRD and reports more.
//!
//! This is the last step: if the superseding finding is waived or only a warning, the server's refusal is still
//! reported, since the server refuses the object anyway.
//!
//! [`CheckEntry::supersedes`]: super::entry::CheckEntry::supersedes

use std::collections::BTreeMap;

use super::entry::Superseded;
use super::registry;
use gantry_core::finding::{CheckReport, Finding, Fingerprint, Severity};
use gantry_core::text;

/// A finding that was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// The index of the report that it was removed from.
    pub report: usize,
    pub severity: Severity,
    /// The finding that reports the same.
    pub reported_by: Fingerprint,
}

/// Removes from each report the findings that another one reports with at least the same severity, and returns them.
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
    let mut superseding: BTreeMap<String, Vec<&Finding>> = BTreeMap::new();
    for finding in &reports[by].findings {
        superseding.entry(place_key(finding)).or_default().push(finding);
    }
    let left_out = |theirs: &Finding| {
        let mut ours =
            superseding.get(&place_key(theirs)).into_iter().flatten().filter(|_| theirs.rule == superseded.rule);
        let is_as_severe = |ours: &Finding| ours.severity <= theirs.severity && theirs.severity <= Severity::Warning;
        let same = ours.find(|ours| is_as_severe(ours) && is_same(ours, theirs))?;
        Some(LeftOut { report: of, severity: theirs.severity, reported_by: Fingerprint::new(same) })
    };
    let mut results = reports[of].findings.iter().map(left_out).collect::<Vec<_>>().into_iter();
    let left_out: Vec<LeftOut> = results.as_slice().iter().flatten().copied().collect();
    let count = left_out.len();
    if count == 0 {
        return left_out;
    }
    let verb = if count == 1 { "is" } else { "are" };
    let message = format!("{} {verb} reported by {}", text::count(count, "finding"), reports[by].name);
    // The status does not change, because the check did find them.
    reports[of].findings.retain(|_| !matches!(results.next(), Some(Some(_))));
    reports[of].message = Some(message);
    left_out
}

/// Whether both findings report the same complaint of the server about the object.
fn is_same(ours: &Finding, theirs: &Finding) -> bool {
    ours.body
        .complaint
        .as_ref()
        .zip(theirs.body.complaint.as_ref())
        .is_some_and(|(ours, theirs)| ours.is_said_by(theirs))
}

/// A key of the object and the place in its manifest.
fn place_key(finding: &Finding) -> String {
    let at = finding.source.as_ref().map(|at| (&at.file, at.line, at.column));
    format!("{:?} {at:?}", finding.object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::finding::{CheckStatus, Mode, ServerRefusal};
    use gantry_core::resource::ObjectRef;

    fn report(name: &str, findings: Vec<Finding>) -> CheckReport {
        CheckReport::new(name, Mode::Error, CheckStatus::Blocked, findings)
    }

    fn finding(rule: &str, says: Option<ServerRefusal>) -> Finding {
        let object = ObjectRef {
            api_version: "example.com/v1".into(),
            kind: "Widget".into(),
            namespace: Some("a".into()),
            name: "w".into(),
        };
        let finding = gantry_core::finding::samples::finding(rule, Severity::Error, object, "the server refuses it");
        finding.with(|body| body.complaint = says)
    }

    #[test]
    fn the_server_is_left_out_where_it_has_same_section() {
        let said = |size: i32| format!("spec.size: Invalid value: {size}: spec.size in body should be greater than 1");
        let refused = |text: String| Some(ServerRefusal::Refused(text));
        let unknown = Some(ServerRefusal::UnknownField);
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
