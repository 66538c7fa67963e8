//! Groups findings by object and cause.
//!
//! A field that is removed from three versions of a CRD is three findings in the data, because each version is a
//! separate API. A change that affects a field and all fields around it is a finding for each. Both are a single
//! mistake, so they are shown and counted once here.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::Report;
use gantry_core::finding::{AffectedObject, Breaks, Evidence, Finding, ForVersions, Severity, Source, Verdict};
use gantry_core::resource::ObjectRef;

/// The causes found in one object, over all checks.
pub struct ObjectCauses<'a> {
    /// Absent for findings that do not concern a single object.
    pub object: Option<&'a ObjectRef>,
    /// The worst first, then in the order of the report.
    pub causes: Vec<GroupedFinding<'a>>,
}

/// One finding, or the same finding in several versions of one CRD, or at several nodes if one change causes all of
/// them.
pub struct GroupedFinding<'a> {
    pub check: &'a str,
    /// The first of them.
    pub finding: &'a Finding,
    pub versions: Vec<&'a str>,
    /// The other findings of this cause, in further versions and at further nodes.
    pub others: Vec<&'a Finding>,
}

impl<'a> ObjectCauses<'a> {
    /// The causes of each object, in the order in which the objects first occur.
    pub fn group_findings(report: &'a Report) -> Vec<Self> {
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
                let known = *cause_of.entry((at, number, FindingKey::new(finding))).or_insert(causes.len());
                match (causes.get_mut(known), finding.body.version.as_deref()) {
                    (Some(cause), Some(version)) if !cause.versions.contains(&version) => {
                        cause.versions.push(version);
                        cause.others.push(finding);
                    }
                    _ => causes.push(GroupedFinding {
                        check: &check.name,
                        finding,
                        versions: finding.body.version.as_deref().into_iter().collect(),
                        others: Vec::new(),
                    }),
                }
            }
        }
        for object in &mut objects {
            merge_nodes(&mut object.causes);
            object.causes.sort_by_key(|cause| cause.finding.severity);
        }
        objects
    }
}

/// Merges the findings of one rule at several nodes of the same versions that the same changes cause.
fn merge_nodes(causes: &mut Vec<GroupedFinding<'_>>) {
    let mut merged: Vec<GroupedFinding<'_>> = Vec::with_capacity(causes.len());
    // Only causes with the same key can be the same, and there are few others among these.
    let mut alike: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for cause in causes.drain(..) {
        let GroupedFinding { check, finding, ref versions, .. } = cause;
        if finding.body.caused_by.is_empty() {
            merged.push(cause);
            continue;
        }
        let (body, severity) = (&finding.body, finding.severity);
        let key = (check, &finding.rule, &body.caused_by, versions.clone(), (severity, body.semantic, body.verdict));
        let known = alike.entry(key).or_default();
        match known.iter().find(|at| merged[**at].has_causes_of(&cause)) {
            Some(at) => {
                let known = &mut merged[*at];
                known.others.push(cause.finding);
                known.others.extend(cause.others);
            }
            None => {
                known.push(merged.len());
                merged.push(cause);
            }
        }
    }
    *causes = merged;
}

impl GroupedFinding<'_> {
    /// All findings of this cause.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        std::iter::once(self.finding).chain(self.others.iter().copied())
    }

    /// Who is affected, in the order of the report.
    pub fn breaks(&self) -> Vec<Breaks> {
        let mut all: Vec<Breaks> = self.findings().flat_map(|finding| &finding.body.breaks).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether it is proven that nothing breaks: only documented rules forbid the change.
    pub fn breaks_nothing(&self) -> bool {
        self.findings().all(|finding| {
            matches!(finding.body.verdict, Some(Verdict::Equal | Verdict::Widening))
                && finding.severity == Severity::Error
                && finding.body.semantic.is_some()
        })
    }

    /// Whether the same changes cause both, and everything that is shown only once is the same.
    fn has_causes_of(&self, other: &GroupedFinding<'_>) -> bool {
        let (a, b) = (self.finding, other.finding);
        (self.check, &self.versions, &a.rule, &a.body.caused_by)
            == (other.check, &other.versions, &b.rule, &b.body.caused_by)
            && (a.severity, a.body.semantic, a.body.verdict, &a.body.breaks)
                == (b.severity, b.body.semantic, b.body.verdict, &b.body.breaks)
            && (a.not_written, &a.waived, &a.body.evidence) == (b.not_written, &b.waived, &b.body.evidence)
            && (&a.body.affected, &b.body.affected) == (&None, &None)
    }

    /// The places of the other findings: the version or the node that is different, and the source. Other nodes of the
    /// same version come first.
    pub fn other_places(&self) -> Vec<(String, &Source)> {
        let mut others = self.others.clone();
        others.sort_by_key(|other| other.body.version != self.finding.body.version);
        let place = |other: &'_ Finding| {
            let differs = |new: &Option<String>, first: &Option<String>| new.clone().filter(|_| new != first);
            let version = differs(&other.body.version, &self.finding.body.version);
            let path = differs(&other.body.path, &self.finding.body.path);
            version.into_iter().chain(path).collect::<Vec<_>>().join(", ")
        };
        let places = others.into_iter().filter_map(|other| Some((place(other), other.source.as_ref()?)));
        places.filter(|(what, _)| !what.is_empty()).collect()
    }

    /// The nodes of all findings, without repetition.
    pub fn paths(&self) -> Vec<&str> {
        let mut known = BTreeSet::new();
        let paths = self.findings().filter_map(|finding| finding.body.path.as_deref());
        paths.filter(|path| known.insert(*path)).collect()
    }

    pub fn severity(&self) -> Severity {
        self.finding.severity
    }

    /// What is wrong, in all versions.
    pub fn message(&self) -> Cow<'_, str> {
        match &self.finding.body.wording {
            Some(wording) if self.versions.len() > 1 => Cow::Owned(wording.message.for_versions(&self.versions())),
            _ => Cow::Borrowed(&self.finding.body.message),
        }
    }

    /// What to do, in all versions.
    pub fn help(&self) -> Cow<'_, str> {
        match &self.finding.body.wording {
            Some(wording) if self.versions.len() > 1 => Cow::Owned(wording.help.for_versions(&self.versions())),
            _ => Cow::Borrowed(&self.finding.body.help),
        }
    }

    /// What changed, in a few words where there are any.
    pub fn fact(&self) -> Cow<'_, str> {
        self.finding.body.fact.as_deref().map_or_else(|| self.message(), Cow::Borrowed)
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
struct FindingKey<'a> {
    severity: Severity,
    rule: &'a str,
    path: Option<&'a str>,
    caused_by: &'a [String],
    text: FindingWording<'a>,
    /// The affected objects. Versions with different ones are kept apart, so that none is hidden.
    affected: Option<&'a [AffectedObject]>,
    evidence: Option<&'a Evidence>,
}

/// The text of a finding.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum FindingWording<'a> {
    OfAnyVersion(&'a ForVersions),
    OfOne { version: Option<&'a str>, message: &'a str, help: &'a str },
}

impl<'a> FindingKey<'a> {
    fn new(finding: &'a Finding) -> Self {
        let text = match &finding.body.wording {
            Some(wording) => FindingWording::OfAnyVersion(wording),
            None => {
                let version = finding.body.version.as_deref();
                FindingWording::OfOne { version, message: &finding.body.message, help: &finding.body.help }
            }
        };
        FindingKey {
            severity: finding.severity,
            rule: &finding.rule,
            path: finding.body.path.as_deref(),
            caused_by: &finding.body.caused_by,
            text,
            affected: finding.body.affected.as_ref().map(|affected| &affected.objects[..]),
            evidence: finding.body.evidence.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, samples};
    use gantry_core::finding::{Affected, CheckStatus};

    #[test]
    fn the_same_finding_in_two_versions_is_one_cause() {
        let report = samples::blocked();
        let objects = ObjectCauses::group_findings(&report);
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
        other.body.wording.as_mut().expect("of any version").message = "something else".into();
        let twice = one.clone();
        let check = samples::check("CRDUpgradeSafety", CheckStatus::Blocked, vec![softer, one, other, twice]);
        let report = samples::report(Outcome::Blocked, Vec::new(), vec![check]);
        let objects = ObjectCauses::group_findings(&report);
        let versions: Vec<String> = objects[0].causes.iter().map(GroupedFinding::versions).collect();
        assert_eq!(versions, ["v1alpha1", "v1beta2", "v1alpha1", "v1beta1"], "the worst first, none lost");
    }

    #[test]
    fn nodes_that_the_same_changes_affect_are_one_cause() {
        let at = |path: &str, version: &str, cause: &str| {
            let mut finding = samples::removed_field(version, 24);
            finding.body.path = Some(path.into());
            finding.body.caused_by = Vec::from_iter((!cause.is_empty()).then(|| cause.to_owned()));
            finding.body.wording.as_mut().expect("of any version").message = path.into();
            finding
        };
        let merged = |findings: Vec<Finding>| {
            let check = samples::check("CRDUpgradeSafety", CheckStatus::Blocked, findings);
            let report = samples::report(Outcome::Blocked, Vec::new(), vec![check]);
            let of = |cause: &GroupedFinding<'_>| (cause.versions(), cause.paths().join(" "));
            ObjectCauses::group_findings(&report)[0].causes.iter().map(of).collect::<Vec<_>>()
        };
        let same = ["v1", "v2"].map(|version| [at("^", version, "^.a.b"), at("^.a", version, "^.a.b")]).concat();
        assert_eq!(merged(same.clone()), [("v1 and v2".into(), "^ ^.a".into())]);
        // Not if the causes are unknown or others, nor if one has other versions, effects or reasons to pass.
        assert_eq!(merged(vec![at("^", "v1", ""), at("^.a", "v1", "")]).len(), 2);
        assert_eq!(merged(vec![at("^", "v1", "^.b"), at("^.a", "v1", "^.a.b")]).len(), 2);
        assert_eq!(merged(same[..3].to_vec()).len(), 2);
        let change: [fn(&mut Finding); 4] = [
            |finding| finding.rule = "Other".into(),
            |finding| finding.severity = Severity::Warning,
            |finding| finding.body.verdict = None,
            |finding| finding.body.breaks = Vec::new(),
        ];
        for change in change {
            let mut findings = vec![at("^", "v1", "^.a.b"), at("^.a", "v1", "^.a.b")];
            change(&mut findings[1]);
            assert_eq!(merged(findings).len(), 2);
        }
    }

    #[test]
    fn versions_that_break_other_objects_stay_apart() {
        let finding = |version: &str, object: &str| {
            let mut finding = samples::removed_field(version, 24);
            let object = AffectedObject { namespace: None, name: object.into(), path: None, value: None };
            finding.body.affected =
                Some(Affected { count: 1, of: 2, unlisted: 0, examples: 10, objects: vec![object] });
            finding
        };
        let findings = vec![finding("v1", "first"), finding("v2", "second"), finding("v3", "first")];
        let check = samples::check("CustomResourceValidation", CheckStatus::Blocked, findings);
        let report = samples::report(Outcome::Blocked, Vec::new(), vec![check]);
        let objects = ObjectCauses::group_findings(&report);
        let versions: Vec<String> = objects[0].causes.iter().map(GroupedFinding::versions).collect();
        assert_eq!(versions, ["v1 and v3", "v2"], "no object is hidden");
    }
}
