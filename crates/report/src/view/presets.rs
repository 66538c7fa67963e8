//! The verdict of each preset about the upgrades of CRDs, as far as the findings of a run tell.
//!
//! A run judges by one preset. Its findings also carry what the semantic presets would say of them, and a run that makes
//! a page asks the tools that presets reproduce.

use super::causes::{GroupedFinding, ObjectCauses};
use crate::Report;
use gantry_core::finding::{Examined, Finding, Mode, Severity};

/// The check that has presets.
const CHECK: &str = "CRDUpgradeSafety";
/// The names that `--preset` accepts, in the order in which they are shown. `olm-classic` is the same as `documented`.
pub const PRESETS: [&str; 6] = [DOCUMENTED, SEMANTIC, EVIDENCE, "kapp", "olm-v1", "crdify"];
const DOCUMENTED: &str = "documented";
const SEMANTIC: &str = "semantic";
const EVIDENCE: &str = "evidence";

/// What one preset says of all upgrades of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresetVerdict {
    /// Its name.
    pub name: &'static str,
    /// Whether the run judges by it.
    pub is_configured: bool,
    /// The numbers of errors and warnings. `None` if the run did not find out.
    pub counts: Option<PresetCounts>,
}

/// The findings of a run by one preset, counted as they are shown; of a tool that the run asked, all that it reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PresetCounts {
    /// Each of them blocks.
    pub errors: usize,
    /// They do not block.
    pub warnings: usize,
}

impl PresetCounts {
    /// All errors as warnings.
    fn without_errors(self) -> Self {
        PresetCounts { errors: 0, warnings: self.errors + self.warnings }
    }
}

/// The verdict of each preset; none if the report does not name its preset, or its check found nothing.
pub fn verdicts_by_preset(report: &Report, objects: &[ObjectCauses<'_>]) -> Vec<PresetVerdict> {
    let configured = report.preset.as_deref().map(|name| if name == "olm-classic" { DOCUMENTED } else { name });
    let Some(configured) = PRESETS.into_iter().find(|name| Some(*name) == configured) else { return Vec::new() };
    let Some(check) = report.checks.iter().find(|check| check.name == CHECK) else { return Vec::new() };
    let causes = || objects.iter().flat_map(|object| &object.causes).filter(|cause| cause.check == CHECK);
    if causes().next().is_none() {
        return Vec::new();
    }
    let all = || causes().flat_map(GroupedFinding::findings);
    let has_read =
        |finding: &Finding| all().any(|other| other.object == finding.object && other.body.evidence.is_some());
    let counts = |name: &str| -> Option<PresetCounts> {
        if let Some(counts) = report.by_tools.get(name).filter(|_| name != configured) {
            return Some(if check.mode == Mode::Warn { counts.without_errors() } else { *counts });
        }
        let mut counts = PresetCounts::default();
        for cause in causes() {
            match worst_severity(cause, name, configured, check.mode, &has_read)? {
                Severity::Error => counts.errors += 1,
                Severity::Warning => counts.warnings += 1,
                Severity::Info | Severity::Waived | Severity::Known => {}
            }
        }
        Some(counts)
    };
    let verdict = |name| PresetVerdict { name, is_configured: name == configured, counts: counts(name) };
    PRESETS.into_iter().map(verdict).collect()
}

/// The worst severity of the findings of a cause under a preset.
fn worst_severity(
    cause: &GroupedFinding<'_>,
    name: &str,
    configured: &str,
    mode: Mode,
    has_read: &dyn Fn(&Finding) -> bool,
) -> Option<Severity> {
    let severities = cause.findings().map(|finding| severity_under(finding, name, configured, mode, has_read));
    severities.collect::<Option<Vec<_>>>()?.into_iter().min()
}

/// The severity of a finding under a preset. `has_read` says whether the objects of the CRD were read.
fn severity_under(
    finding: &Finding,
    name: &str,
    configured: &str,
    mode: Mode,
    has_read: &dyn Fn(&Finding) -> bool,
) -> Option<Severity> {
    if name == configured || matches!(finding.severity, Severity::Waived | Severity::Known) {
        return Some(finding.severity);
    }
    if !matches!(configured, DOCUMENTED | SEMANTIC | EVIDENCE) {
        return None;
    }
    let is_capped = (mode == Mode::Warn || finding.not_written) && !finding.refused_by_server;
    let cap = |severity: Severity| if is_capped { severity.max(Severity::Warning) } else { severity };
    let semantic = finding.body.semantic.map_or(finding.severity, cap);
    match name {
        SEMANTIC => Some(semantic),
        // Nothing was asked about a finding that breaks nothing.
        EVIDENCE if semantic != Severity::Error || finding.refused_by_server => Some(semantic),
        EVIDENCE => match finding.body.evidence.as_ref().map(|evidence| evidence.examined) {
            Some(Examined::NoneAffected) => Some(Severity::Warning),
            Some(Examined::Affected | Examined::No) => Some(Severity::Error),
            // Objects do not show it.
            None => has_read(finding).then_some(Severity::Error),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    /// The name, whether it is configured, and the errors and warnings.
    type ShownVerdict = (&'static str, bool, Option<(usize, usize)>);

    fn counts(report: &Report) -> Vec<ShownVerdict> {
        let objects = ObjectCauses::group_findings(report);
        let of = |verdict: PresetVerdict| {
            let counts = verdict.counts.map(|counts| (counts.errors, counts.warnings));
            (verdict.name, verdict.is_configured, counts)
        };
        verdicts_by_preset(report, &objects).into_iter().map(of).collect()
    }

    fn with_preset(report: Report, preset: &str) -> Report {
        Report { preset: Some(preset.into()), ..report }
    }

    #[test]
    fn findings_tell_the_verdict_of_the_semantic_presets() {
        let mut report = with_preset(samples::evidence(), "evidence");
        assert_eq!(
            counts(&report),
            [
                ("documented", false, None),
                ("semantic", false, Some((3, 0))),
                ("evidence", true, Some((2, 1))),
                ("kapp", false, None),
                ("olm-v1", false, None),
                ("crdify", false, None),
            ]
        );
        // By the documentation all are errors, and one of them breaks nothing.
        report.checks[0].findings.iter_mut().for_each(|finding| {
            finding.severity = Severity::Error;
            finding.body.semantic = None;
        });
        report.checks[0].findings[0].body.semantic = Some(Severity::Info);
        let report = with_preset(report, "documented");
        let expected = [("documented", true, Some((3, 0))), ("semantic", false, Some((2, 0)))];
        assert_eq!(counts(&report)[..2], expected);
        assert_eq!(counts(&report)[2], ("evidence", false, Some((1, 1))));
        assert!(counts(&with_preset(report, "olm-classic"))[0].1);
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        let mut report = with_preset(samples::blocked(), "documented");
        assert_eq!(counts(&report)[2], ("evidence", false, None), "no object was asked");
        report.preset = Some("kapp".into());
        let known: Vec<_> = counts(&report).into_iter().filter(|(.., counts)| counts.is_some()).collect();
        assert_eq!(known, [("kapp", true, Some((1, 0)))]);
        report.preset = None;
        assert_eq!(counts(&report), []);
        assert_eq!(counts(&with_preset(samples::unchanged(), "semantic")), []);
    }

    #[test]
    fn a_finding_that_only_warns_does_so_under_every_preset() {
        let mut report = with_preset(samples::blocked(), "documented");
        report.checks[0].mode = Mode::Warn;
        report.checks[0].findings.iter_mut().for_each(|finding| {
            finding.severity = Severity::Warning;
            finding.body.semantic = Some(Severity::Error);
        });
        assert_eq!(counts(&report)[1], ("semantic", false, Some((0, 1))));
        report.checks[0].findings[0].refused_by_server = true;
        assert_eq!(counts(&report)[1], ("semantic", false, Some((1, 0))));
    }
}
