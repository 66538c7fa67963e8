//! Groups findings by object and cause.
//!
//! A field that is removed from three versions of a CRD is three findings in the data, because each version is a separate
//! API. It is a single mistake, so it is shown and counted once here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::finding::{AffectedObject, Evidence, Finding, ForVersions, Severity};
use crate::report::Report;
use crate::resource::ObjectRef;

/// The causes found in one object, over all checks.
pub struct ObjectCauses<'a> {
    /// Absent for findings that do not concern a single object.
    pub object: Option<&'a ObjectRef>,
    /// The worst first, then in the order of the report.
    pub causes: Vec<Cause<'a>>,
}

/// One finding, or the same finding in several versions of one CRD.
pub struct Cause<'a> {
    pub check: &'a str,
    /// The first of them.
    pub finding: &'a Finding,
    pub versions: Vec<&'a str>,
    /// The other findings of this cause, in further versions.
    pub others: Vec<&'a Finding>,
}

impl<'a> ObjectCauses<'a> {
    /// The causes of each object, in the order in which the objects first occur.
    pub fn of(report: &'a Report) -> Vec<Self> {
        let mut objects: Vec<ObjectCauses<'a>> = Vec::new();
        let mut place_of = BTreeMap::new();
        let mut cause_of = BTreeMap::new();
        for (number, check) in report.checks.iter().enumerate() {
            for finding in &check.findings {
                let at = *place_of.entry(&finding.object).or_insert_with(|| {
                    objects.push(ObjectCauses { object: finding.object.as_ref(), causes: Vec::new() });
                    objects.len() - 1
                });
                let causes = &mut objects[at].causes;
                let known = *cause_of.entry((at, number, Key::of(finding))).or_insert(causes.len());
                match (causes.get_mut(known), finding.version.as_deref()) {
                    (Some(cause), Some(version)) if !cause.versions.contains(&version) => {
                        cause.versions.push(version);
                        cause.others.push(finding);
                    }
                    _ => causes.push(Cause {
                        check: &check.name,
                        finding,
                        versions: finding.version.as_deref().into_iter().collect(),
                        others: Vec::new(),
                    }),
                }
            }
        }
        for object in &mut objects {
            object.causes.sort_by_key(|cause| cause.finding.severity);
        }
        objects
    }
}

impl Cause<'_> {
    /// All findings of this cause.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        std::iter::once(self.finding).chain(self.others.iter().copied())
    }

    pub fn severity(&self) -> Severity {
        self.finding.severity
    }

    /// What is wrong, in all versions.
    pub fn message(&self) -> Cow<'_, str> {
        match &self.finding.wording {
            Some(wording) if self.versions.len() > 1 => Cow::Owned(wording.message.for_versions(&self.versions())),
            _ => Cow::Borrowed(&self.finding.message),
        }
    }

    /// What to do, in all versions.
    pub fn help(&self) -> Cow<'_, str> {
        match &self.finding.wording {
            Some(wording) if self.versions.len() > 1 => Cow::Owned(wording.help.for_versions(&self.versions())),
            _ => Cow::Borrowed(&self.finding.help),
        }
    }

    /// What changed, in a few words where there are any.
    pub fn fact(&self) -> Cow<'_, str> {
        self.finding.fact.as_deref().map_or_else(|| self.message(), Cow::Borrowed)
    }

    /// `v1`, `v1 and v2`, `v1, v2 and v3`
    pub fn versions(&self) -> String {
        match self.versions.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        }
    }
}

/// The key by which findings of several versions are the same: everything but the version.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    severity: Severity,
    rule: &'a str,
    path: Option<&'a str>,
    said: Shown<'a>,
    /// The affected objects. Versions with different ones are kept apart, so that none is hidden.
    affected: Option<&'a [AffectedObject]>,
    evidence: Option<&'a Evidence>,
}

/// The text of a finding.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Shown<'a> {
    OfAnyVersion(&'a ForVersions),
    OfOne { version: Option<&'a str>, message: &'a str, help: &'a str },
}

impl<'a> Key<'a> {
    fn of(finding: &'a Finding) -> Self {
        let said = match &finding.wording {
            Some(wording) => Shown::OfAnyVersion(wording),
            None => {
                let version = finding.version.as_deref();
                Shown::OfOne { version, message: &finding.message, help: &finding.help }
            }
        };
        Key {
            severity: finding.severity,
            rule: &finding.rule,
            path: finding.path.as_deref(),
            said,
            affected: finding.affected.as_ref().map(|affected| &affected.objects[..]),
            evidence: finding.evidence.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Affected, CheckStatus};
    use crate::report::{Outcome, samples};

    #[test]
    fn the_same_finding_in_two_versions_is_one_cause() {
        let report = samples::blocked();
        let objects = ObjectCauses::of(&report);
        assert_eq!((objects.len(), objects[0].causes.len()), (1, 1));
        let cause = &objects[0].causes[0];
        assert_eq!(cause.versions(), "v1alpha1 and v1beta1");
        assert_eq!(cause.message(), "field spec.pollInterval may not be removed from v1alpha1 and v1beta1");
    }

    #[test]
    fn different_findings_are_not_grouped() {
        let one = samples::removed_field("v1alpha1", 24);
        let mut softer = samples::removed_field("v1beta1", 44);
        softer.severity = Severity::Warning;
        let mut other = samples::removed_field("v1beta2", 44);
        other.wording.as_mut().expect("of any version").message = "something else".into();
        let twice = one.clone();
        let check = samples::check("CRDUpgradeSafety", CheckStatus::Blocked, vec![softer, one, other, twice]);
        let report = samples::report(Outcome::Blocked, Vec::new(), vec![check]);
        let objects = ObjectCauses::of(&report);
        let versions: Vec<String> = objects[0].causes.iter().map(Cause::versions).collect();
        assert_eq!(versions, ["v1alpha1", "v1beta2", "v1alpha1", "v1beta1"], "the worst first, none lost");
    }
    #[test]
    fn versions_that_break_other_objects_stay_apart() {
        let finding = |version: &str, object: &str| {
            let mut finding = samples::removed_field(version, 24);
            let object = AffectedObject { namespace: None, name: object.into(), path: None, value: None };
            finding.affected = Some(Affected { count: 1, of: 2, unlisted: 0, examples: 10, objects: vec![object] });
            finding
        };
        let findings = vec![finding("v1", "first"), finding("v2", "second"), finding("v3", "first")];
        let check = samples::check("CustomResourceValidation", CheckStatus::Blocked, findings);
        let report = samples::report(Outcome::Blocked, Vec::new(), vec![check]);
        let objects = ObjectCauses::of(&report);
        let versions: Vec<String> = objects[0].causes.iter().map(Cause::versions).collect();
        assert_eq!(versions, ["v1 and v3", "v2"], "no object is hidden");
    }
}
