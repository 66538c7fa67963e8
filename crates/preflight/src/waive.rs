//! Waivers: findings that may pass, with a reason. They are applied to the findings of every check, after the severity
//! is decided.
//!
//! A waived finding stays in the report. An expired waiver no longer applies, and is reported. So is a waiver that
//! matches nothing, because it may be misspelt, or the finding may be gone.

use std::collections::BTreeSet;

use wildmatch::WildMatch;

use super::crd_upgrade_safety::server;
use super::custom_resource_validation;
use gantry_core::date::Date;
use gantry_core::finding::{CheckReport, CheckStatus, Finding, Severity, Waived};
use gantry_core::problem::Problem;
use gantry_deploy::config::Waiver;

/// The waivers of a run.
#[derive(Debug, Clone, Copy)]
pub struct Waivers<'a> {
    /// In the order of the file.
    pub list: &'a [Waiver],
    /// The current date in UTC. A waiver still applies on the day on which it expires.
    pub today: Date,
}

impl Waivers<'_> {
    /// Waives findings, and returns the problems with the waivers themselves.
    ///
    /// `rules_of_all` are the rules of all checks, `rules_that_ran` those of the checks that completed in this run: a
    /// waiver for a rule of another check is not reported as unused.
    pub fn apply(&self, reports: &mut [CheckReport], rules_of_all: &[&str], rules_that_ran: &[&str]) -> Vec<Problem> {
        let mut used = vec![false; self.list.len()];
        let mut problems = Vec::new();
        for finding in reports.iter_mut().flat_map(|report| &mut report.findings) {
            for (waiver, used) in self.list.iter().zip(&mut used) {
                if !waiver.matches(finding) {
                    continue;
                }
                *used = true;
                if finding.refused_by_server {
                    if !self.is_expired(waiver) {
                        problems.push(waiver.unfit_for(finding));
                    }
                } else if !self.is_expired(waiver) && finding.severity != Severity::Waived {
                    finding.original_severity = Some(finding.severity);
                    finding.severity = Severity::Waived;
                    finding.waived = Some(Waived {
                        reason: waiver.reason.clone(),
                        expires: waiver.expires.map(|date| date.to_string()),
                    });
                }
            }
        }
        let whole = reports.iter().all(|report| report.status != CheckStatus::Failed);
        for (waiver, used) in self.list.iter().zip(used) {
            let rule = waiver.rule.as_deref().map(WildMatch::new);
            // The rules of a program, CHECK/RULE, are matched by the name of their check.
            let check =
                waiver.rule.as_deref().and_then(|rule| rule.split_once('/')).map(|(check, _)| WildMatch::new(check));
            let is_one = |name: &&str| {
                rule.as_ref().is_none_or(|rule| rule.matches(name))
                    || check.as_ref().is_some_and(|check| check.matches(name))
            };
            let fits = |names: &[&str]| names.iter().any(is_one) || rule.is_none();
            if self.is_expired(waiver) {
                let expires = waiver.expires.map(|date| date.to_string()).unwrap_or_default();
                problems.push(waiver.problem(
                    format!("the waiver ({}) expired on {expires} and no longer applies", waiver.reason),
                    "fix the finding, extend `expires`, or remove the waiver",
                ));
            } else if !used && rule.is_some() && !fits(rules_of_all) {
                problems.push(waiver.problem(
                    format!(
                        "the waiver ({}) matches no rule: {:?}",
                        waiver.reason,
                        waiver.rule.as_deref().unwrap_or_default()
                    ),
                    "gantry rules lists them",
                ));
            } else if !used && whole && fits(rules_that_ran) {
                problems.push(waiver.problem(
                    format!("the waiver ({}) matches no finding of this run", waiver.reason),
                    "fix its patterns, or remove it if the finding is gone",
                ));
            }
        }
        problems
    }

    fn is_expired(&self, waiver: &Waiver) -> bool {
        waiver.expires.is_some_and(|last_day| last_day < self.today)
    }
}

/// Lets the findings pass that a migration resolves before the deploy: stored versions of the CRDs to migrate that are
/// removed, and objects that are or were written at them. Of CRDs that are `migrated` already: the doubt whether every
/// object was written.
pub fn set_aside(reports: &mut [CheckReport], to_migrate: &BTreeSet<String>, migrated: &BTreeSet<String>) {
    let is_resolved = |finding: &&mut Finding| {
        let is_in = |crds: &BTreeSet<String>| {
            finding.object.as_ref().is_some_and(|object| object.is_crd() && crds.contains(&object.name))
        };
        let is_of_removed_version = server::is_of_removed_stored_version(&finding.rule)
            || custom_resource_validation::is_of_removed_version(&finding.rule);
        is_of_removed_version && is_in(to_migrate) || finding.rule == "UnservedVersionRemoved" && is_in(migrated)
    };
    for finding in reports.iter_mut().flat_map(|report| &mut report.findings).filter(is_resolved) {
        let reason = "deploy --migrate moves the stored objects first".to_owned();
        finding.original_severity = Some(finding.severity);
        finding.severity = Severity::Waived;
        finding.refused_by_server = false;
        finding.waived = Some(Waived { reason, expires: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::finding::Mode;
    use gantry_core::finding::samples;

    fn waiver(rule: &str, path: Option<&str>, expires: Option<&str>) -> Waiver {
        Waiver {
            object: Some("samples.*".into()),
            version: None,
            path: path.map(str::to_owned),
            rule: Some(rule.into()),
            reason: "agreed".into(),
            expires: expires.and_then(Date::parse),
            at: None,
        }
    }

    fn apply(list: &[Waiver]) -> (Vec<Severity>, Vec<String>) {
        let finding = samples::removed_field("v1alpha1", 24);
        let mut reports = vec![CheckReport::new("CRDUpgradeSafety", Mode::Error, CheckStatus::Blocked, vec![finding])];
        let today = Date::parse("2026-11-21").unwrap();
        let rules = ["NoExistingFieldRemoved", "NoTypeChange"];
        let problems = Waivers { list, today }.apply(&mut reports, &rules, &rules);
        let severities = reports[0].findings.iter().map(|finding| finding.severity).collect();
        (severities, problems.into_iter().map(|problem| problem.message).collect())
    }

    #[test]
    fn a_waiver_is_valid_until_the_end_of_its_last_day() {
        for (expires, severity) in
            [(None, Severity::Waived), (Some("2026-11-21"), Severity::Waived), (Some("2026-11-20"), Severity::Error)]
        {
            let (severities, problems) = apply(&[waiver("NoExisting*", None, expires)]);
            assert_eq!(severities, [severity]);
            assert_eq!(problems.len(), usize::from(severity == Severity::Error), "{problems:?}");
        }
    }

    #[test]
    fn a_bracket_in_a_waiver_is_not_a_pattern() {
        let (severities, _) = apply(&[waiver("*", Some("^.spec.pollInterval"), None)]);
        assert_eq!(severities, [Severity::Waived]);
        let (severities, problems) = apply(&[waiver("*", Some("^.spec.[p]ollInterval"), None)]);
        assert_eq!(severities, [Severity::Error]);
        assert_eq!(problems, ["the waiver (agreed) matches no finding of this run"]);
    }

    #[test]
    fn a_waiver_that_matches_nothing_is_reported_with_its_reason() {
        let (_, problems) = apply(&[waiver("NoTypeChange", None, None), waiver("NoSuchRule", None, None)]);
        assert_eq!(
            problems,
            [
                "the waiver (agreed) matches no finding of this run",
                "the waiver (agreed) matches no rule: \"NoSuchRule\""
            ]
        );
    }
}
