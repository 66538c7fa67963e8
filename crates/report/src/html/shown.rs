//! The findings that the page shows, by object.

use std::collections::{BTreeMap, BTreeSet};

use super::super::view::causes::{GroupedFinding, ObjectCauses};
use super::super::words;
use gantry_core::resource::ObjectRef;

/// The maximum number of findings on the page, the worst first. With more, browsers become slow; `-o json` has all.
pub const MOST: usize = 20_000;
/// The maximum number of findings that are shown in full, the worst first, and the first of each rule. The others have
/// one line each.
pub const MOST_IN_FULL: usize = 1000;

/// The findings of the page: objects with the worst findings first, and of each object the worst findings first.
pub struct ShownFindings<'a> {
    pub objects: Vec<ShownObject<'a>>,
    /// The number of findings that are not shown.
    pub left_out: usize,
}

/// An object and its findings.
pub struct ShownObject<'a> {
    /// Unique on the page.
    pub number: usize,
    /// As kubectl names it.
    pub name: String,
    /// Absent for findings that do not concern a single object.
    pub object: Option<&'a ObjectRef>,
    pub findings: Vec<ShownFinding<'a>>,
}

/// A finding of the page.
pub struct ShownFinding<'a> {
    /// Unique on the page.
    pub number: usize,
    pub cause: &'a GroupedFinding<'a>,
    /// Whether everything about it is shown, and not only a line.
    pub is_full: bool,
}

impl<'a> ShownFindings<'a> {
    pub fn new(objects: &'a [ObjectCauses<'a>]) -> Self {
        let of_object =
            |(at, object): (usize, &'a ObjectCauses<'a>)| object.causes.iter().map(move |cause| (at, cause));
        let mut all: Vec<(usize, &GroupedFinding<'a>)> = objects.iter().enumerate().flat_map(of_object).collect();
        all.sort_by_key(|(_, cause)| cause.severity());
        let left_out = all.len().saturating_sub(MOST);
        let mut shown = ShownFindings { objects: Vec::new(), left_out };
        let (mut place_of, mut rules) = (BTreeMap::new(), BTreeSet::new());
        for (number, (at, cause)) in all.into_iter().take(MOST).enumerate() {
            let place = *place_of.entry(at).or_insert_with(|| {
                shown.objects.push(ShownObject {
                    number: shown.objects.len() + 1,
                    name: words::object(cause.finding),
                    object: objects[at].object,
                    findings: Vec::new(),
                });
                shown.objects.len() - 1
            });
            let is_full = rules.insert(&cause.finding.rule) || number < MOST_IN_FULL;
            shown.objects[place].findings.push(ShownFinding { number: 0, cause, is_full });
        }
        let findings = shown.objects.iter_mut().flat_map(|object| &mut object.findings);
        (1..).zip(findings).for_each(|(number, finding)| finding.number = number);
        shown
    }

    /// All of them, in the order of the page.
    pub fn iter(&self) -> impl Iterator<Item = &ShownFinding<'a>> {
        self.objects.iter().flat_map(|object| &object.findings)
    }
}

impl ShownObject<'_> {
    /// The id of its section.
    pub fn anchor(&self) -> String {
        format!("object-{}", self.number)
    }
}

impl ShownFinding<'_> {
    /// The id of its part of the page.
    pub fn anchor(&self) -> String {
        format!("finding-{}", self.number)
    }
}
