//! Groups findings: errors before warnings, each kind in one place, and the same finding in many objects once.

use std::collections::BTreeMap;

use super::causes::{GroupedFinding, ObjectCauses};
use gantry_core::finding::{FindingBody, Severity, Surroundings, Verdict};
use gantry_core::resource::ObjectRef;

/// All findings of one rule with one severity.
pub struct RuleBlocks<'a> {
    pub rule: &'a str,
    /// In the order of the report; never empty.
    pub blocks: Vec<Block<'a>>,
}

/// What changed at one place, in one object or in the same way in several.
pub struct Block<'a> {
    /// Never empty. The first is shown in full, the others only with their places.
    pub places: Vec<CausesAtPlace<'a>>,
}

/// The facts about one place in one object: one, or all that changed at the same node of a schema. Never empty.
pub struct CausesAtPlace<'a> {
    pub facts: Vec<&'a GroupedFinding<'a>>,
}

impl RuleBlocks<'_> {
    /// The number of findings.
    pub fn findings(&self) -> usize {
        self.blocks.iter().map(Block::findings).sum()
    }
}

impl<'a> Block<'a> {
    pub fn first(&self) -> &CausesAtPlace<'a> {
        &self.places[0]
    }

    /// The number of findings.
    pub fn findings(&self) -> usize {
        self.places.iter().map(|place| place.facts.len()).sum()
    }

    /// The number of other nodes at which the same changes.
    pub fn other_nodes(&self) -> usize {
        let mut paths: Vec<Option<&str>> =
            self.places.iter().map(|place| place.cause().finding.body.path.as_deref()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths.len() - 1
    }

    pub fn causes(&self) -> impl Iterator<Item = &'a GroupedFinding<'a>> {
        self.places.iter().flat_map(|place| place.facts.iter().copied())
    }
}

impl<'a> CausesAtPlace<'a> {
    /// The fact that names the place.
    pub fn cause(&self) -> &'a GroupedFinding<'a> {
        self.facts[0]
    }

    pub fn object(&self) -> Option<&'a ObjectRef> {
        self.cause().finding.object.as_ref()
    }
}

/// The kinds of findings of one severity, in the order in which they first occur.
pub fn kinds<'a>(objects: &'a [ObjectCauses<'a>], severity: Severity) -> Vec<RuleBlocks<'a>> {
    let mut blocks: Vec<Block<'a>> = Vec::new();
    let mut same = BTreeMap::new();
    for place in objects.iter().flat_map(|object| places(object, severity)) {
        let keys = Same::all(&place);
        let known = keys.iter().find_map(|key| same.get(key).copied()).unwrap_or(blocks.len());
        for key in keys {
            same.entry(key).or_insert(known);
        }
        match blocks.get_mut(known) {
            Some(block) => block.places.push(place),
            None => blocks.push(Block { places: vec![place] }),
        }
    }
    // What breaks something comes first.
    blocks.sort_by_key(|block| block.causes().all(GroupedFinding::breaks_nothing));
    let mut kinds: Vec<RuleBlocks<'a>> = Vec::new();
    let mut kind_of = BTreeMap::new();
    for block in blocks {
        let rule = block.first().cause().finding.rule.as_str();
        let known = *kind_of.entry(rule).or_insert(kinds.len());
        match kinds.get_mut(known) {
            Some(kind) => kind.blocks.push(block),
            None => kinds.push(RuleBlocks { rule, blocks: vec![block] }),
        }
    }
    kinds
}

/// Groups the findings of one object by node.
fn places<'a>(object: &'a ObjectCauses<'a>, severity: Severity) -> Vec<CausesAtPlace<'a>> {
    let mut places: Vec<CausesAtPlace<'a>> = Vec::new();
    let mut nodes = BTreeMap::new();
    for cause in object.causes.iter().filter(|cause| cause.severity() == severity) {
        // Without a path and a version, it does not concern a schema node.
        let node = cause.finding.body.path.as_deref().filter(|_| !cause.versions.is_empty());
        let known = match node {
            Some(path) => *nodes.entry((cause.check, path, &cause.versions)).or_insert(places.len()),
            None => places.len(),
        };
        match places.get_mut(known) {
            Some(place) => place.facts.push(cause),
            None => places.push(CausesAtPlace { facts: vec![cause] }),
        }
    }
    places
}

/// The key by which findings of two objects, or at two places, are reported once.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Same<'a>(Vec<Fact<'a>>);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Fact<'a> {
    check: &'a str,
    rule: &'a str,
    place: SamePlace<'a>,
    versions: &'a [&'a str],
    verdict: Option<Verdict>,
    /// Those of the library that makes the change.
    releases: Option<(&'a [String], &'a [String])>,
    not_written: bool,
    waived: Option<&'a str>,
}

/// Where findings are the same.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum SamePlace<'a> {
    /// At the node of this path.
    Path { path: Option<&'a str>, message: &'a str, help: &'a str },
    /// Wherever the same object of a schema is.
    Anywhere { surroundings: &'a Surroundings, fact: &'a str },
}

impl<'a> Same<'a> {
    /// The keys of a place. None if it concerns only this object: it has affected objects of its own, or no object.
    fn all(place: &CausesAtPlace<'a>) -> Vec<Self> {
        let keys = |is_at: fn(&'a GroupedFinding<'a>) -> Option<SamePlace<'a>>| {
            let facts = place.facts.iter().map(|cause| Fact::new(cause, is_at(cause)?));
            facts.collect::<Option<Vec<_>>>().map(Same)
        };
        [keys(SamePlace::at_path), keys(SamePlace::anywhere)].into_iter().flatten().collect()
    }
}

impl<'a> SamePlace<'a> {
    fn at_path(cause: &GroupedFinding<'a>) -> Option<Self> {
        let FindingBody { path, message, help, .. } = &cause.finding.body;
        Some(SamePlace::Path { path: path.as_deref(), message, help })
    }

    fn anywhere(cause: &GroupedFinding<'a>) -> Option<Self> {
        let FindingBody { surroundings, fact, .. } = &cause.finding.body;
        Some(SamePlace::Anywhere { surroundings: surroundings.as_ref()?, fact: fact.as_deref()? })
    }
}

impl<'a> Fact<'a> {
    fn new(cause: &'a GroupedFinding<'a>, place: SamePlace<'a>) -> Option<Self> {
        let finding = cause.finding;
        let is_shared = finding.object.is_some() && finding.body.affected.is_none() && finding.body.evidence.is_none();
        is_shared.then_some(Fact {
            check: cause.check,
            rule: &finding.rule,
            place,
            versions: &cause.versions,
            verdict: finding.body.verdict,
            releases: finding.body.library_change.as_ref().map(|change| (&*change.from, &*change.to)),
            not_written: finding.not_written,
            waived: finding.waived.as_ref().map(|waived| waived.reason.as_str()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, samples};
    use gantry_core::finding::{CheckStatus, Evidence, Examined, Finding};

    fn shape(findings: Vec<Finding>) -> Vec<(String, Vec<Vec<usize>>)> {
        let check = samples::check("CRDUpgradeSafety", CheckStatus::Blocked, findings);
        let report = samples::report(Outcome::Blocked, Vec::new(), vec![check]);
        let objects = ObjectCauses::group_findings(&report);
        let kinds = kinds(&objects, Severity::Error);
        let sizes = |block: &Block<'_>| block.places.iter().map(|place| place.facts.len()).collect();
        kinds.iter().map(|kind| (kind.rule.to_owned(), kind.blocks.iter().map(sizes).collect())).collect()
    }

    fn finding_at(rule: &str, object: &str, path: &str) -> Finding {
        let finding = samples::finding(rule, Severity::Error, samples::crd(object), rule);
        finding.with(|body| {
            body.path = Some(path.into());
            body.version = Some("v1".into());
        })
    }

    #[test]
    fn changes_at_one_node_are_grouped() {
        let found =
            vec![finding_at("A", "x", "^.spec"), finding_at("B", "x", "^.spec"), finding_at("B", "x", "^.status")];
        assert_eq!(shape(found), [("A".to_owned(), vec![vec![2]]), ("B".to_owned(), vec![vec![1]])]);
        // A CRD as a whole is not a node.
        let whole = |rule: &str| {
            finding_at(rule, "x", "").with(|body| {
                body.path = None;
                body.version = None;
            })
        };
        assert_eq!(shape(vec![whole("A"), whole("B")]).len(), 2);
    }

    #[test]
    fn the_same_finding_of_many_objects_is_one_group() {
        let found =
            vec![finding_at("A", "x", "^.spec"), finding_at("A", "y", "^.spec"), finding_at("A", "z", "^.status")];
        assert_eq!(shape(found), [("A".to_owned(), vec![vec![1, 1], vec![1]])]);
        let both = |object: &str| [finding_at("A", object, "^.spec"), finding_at("B", object, "^.spec")];
        assert_eq!(shape([both("x"), both("y")].concat()), [("A".to_owned(), vec![vec![2, 2]])]);
    }

    #[test]
    fn affected_objects_are_shown_for_each() {
        let suffers = |object: &str| {
            finding_at("A", object, "^.spec").with(|body| {
                body.evidence = Some(Evidence {
                    examined: Examined::Affected,
                    message: "1 of 1 objects".into(),
                    objects: 1,
                    affected_objects: 1,
                    manifests: 0,
                    affected_manifests: 0,
                    examples: Vec::new(),
                    managers: Vec::new(),
                })
            })
        };
        assert_eq!(shape(vec![suffers("x"), suffers("y")]), [("A".to_owned(), vec![vec![1], vec![1]])]);
    }
}
