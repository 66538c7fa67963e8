//! Findings that a bump of a library explains, folded within their objects.

use std::collections::BTreeMap;

use super::super::view::causes::ObjectCauses;
use super::super::view::groups::{self, RuleBlocks};
use super::super::view::library::{LibraryBump, take_bumps};
use super::shown::{ShownFinding, ShownObject};
use gantry_core::finding::{Finding, Severity};
use gantry_core::text;

/// The bumps, and what of the page belongs to each.
pub struct FoldedBumps<'a> {
    bumps: Vec<(LibraryBump<'a>, String)>,
    /// By finding, without the worst of each bump, which is shown.
    folded: BTreeMap<*const Finding, usize>,
}

impl<'a> FoldedBumps<'a> {
    pub fn new(objects: &'a [ObjectCauses<'a>]) -> Self {
        let mut folded = FoldedBumps { bumps: Vec::new(), folded: BTreeMap::new() };
        for severity in [Severity::Error, Severity::Warning] {
            let mut kinds = groups::kinds(objects, severity);
            let total = kinds.iter().map(RuleBlocks::findings).sum();
            for bump in take_bumps(&mut kinds) {
                let worst = bump.worst().map(|worst| worst.first().cause().finding);
                let causes =
                    bump.causes().filter(|cause| !worst.is_some_and(|worst| std::ptr::eq(worst, cause.finding)));
                folded.folded.extend(causes.map(|cause| (std::ptr::from_ref(cause.finding), folded.bumps.len())));
                let sentence = bump.sentence(severity, total);
                folded.bumps.push((bump, sentence));
            }
        }
        folded
    }

    /// Each bump in words.
    pub fn sentences(&self) -> impl Iterator<Item = &str> {
        self.bumps.iter().map(|(_, sentence)| sentence.as_str())
    }

    /// The bump in which a finding is folded.
    pub fn bump_of(&self, finding: &ShownFinding<'_>) -> Option<usize> {
        self.folded.get(&std::ptr::from_ref(finding.cause.finding)).copied()
    }

    /// The folds of one object: their title, and the findings in each.
    pub fn of_object<'s>(&self, object: &'s ShownObject<'a>) -> Vec<(String, Vec<&'s ShownFinding<'a>>)> {
        let mut folds = Vec::new();
        for (number, (bump, _)) in self.bumps.iter().enumerate() {
            let inside: Vec<&ShownFinding<'a>> =
                object.findings.iter().filter(|finding| self.bump_of(finding) == Some(number)).collect();
            if inside.is_empty() {
                continue;
            }
            let what = bump.describe(inside.iter().map(|finding| finding.cause));
            folds.push((format!("{}: {what}", text::count(inside.len(), "more finding")), inside));
        }
        folds
    }
}
