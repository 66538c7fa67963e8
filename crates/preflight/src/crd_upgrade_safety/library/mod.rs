//! Which violations a new release of Kubernetes' Go modules causes: a CRD embeds types of these, such as PodTemplateSpec,
//! and its author only raised their version.
//!
//! An embedded type is recognized by the names and the types of all fields, down to the last, never by the field of the
//! CRD that has it. A violation comes from the library if both sides are of one type, and if its change is the
//! difference of the type between a release that has the live node and one that has the desired node, keyword by
//! keyword. What an author adds to an embedded type, such as an enum, is not.

mod matching;
mod table;

use std::borrow::Cow;
use std::collections::BTreeMap;

use self::matching::{Found, VersionNodes};
use self::table::{LIBRARY, Releases};
use super::compare::RuleViolation;
use super::json::Json;
use super::rule::Judge;
use crate::Violation;
use gantry_core::crd::CrdPair;
use gantry_core::finding::LibraryChange;

/// Notes the change of the library in each violation of one CRD that comes from it, and what surrounds each.
pub fn note_library_changes(pair: &CrdPair, found: &mut [RuleViolation]) {
    let mut explained: Vec<(usize, Found)> = Vec::new();
    for (live, desired) in pair.common_versions() {
        let is_asked = |violation: &RuleViolation| {
            violation.version.as_deref() == Some(&*live.name)
                && violation.path.is_some()
                && matches!(violation.rule.judge, Judge::Node(_) | Judge::Removed(_))
        };
        let asked: Vec<usize> = (0..found.len()).filter(|at| is_asked(&found[*at])).collect();
        if asked.is_empty() {
            continue;
        }
        let schemas = [live, desired].map(|version| Json::parse(version.schema().unwrap_or("{}")));
        let [Ok(live), Ok(desired)] = &schemas else { continue };
        let mut nodes = VersionNodes::new(live, desired);
        for at in asked {
            explained.extend(nodes.explain(&found[at].node).map(|change| (at, change)));
            found[at].diagnosis.body.surroundings = nodes.surroundings(&found[at].node);
        }
    }
    // All types of a CRD are of one release; what contradicts the largest of them only looks like the library's.
    explained.sort_by_key(|(_, found)| std::cmp::Reverse(found.nodes));
    let mut releases = [Releases::ALL; 2];
    explained.retain(|(_, found)| {
        let both = [releases[0].and(found.from), releases[1].and(found.to)];
        let agrees = both.iter().all(|releases| !releases.is_empty());
        if agrees {
            releases = both;
        }
        agrees
    });
    let [from, to] = releases.map(|releases| LIBRARY.names_of(releases));
    for (at, Found { embedded, way, .. }) in explained {
        let violation = &mut found[at];
        let Some(path) = violation.path.as_deref().and_then(|path| path.strip_suffix(&*way)) else { continue };
        violation.diagnosis.body.library_change = Some(LibraryChange {
            module: Cow::Borrowed(LIBRARY.module(embedded[0])),
            embedded: Cow::Owned(LIBRARY.name(&embedded)),
            path: path.to_owned(),
            from: from.clone(),
            to: to.clone(),
        });
    }
}

/// Narrows the releases to those of all CRDs of one API group, which have the same author. Of two that contradict each
/// other, the one that is less certain only looks like the library's. `group` has the group of a violation.
pub fn reconcile_releases<'g>(violations: &mut [Violation], group: impl Fn(&Violation) -> &'g str) {
    let mut agreed: BTreeMap<&str, [Vec<String>; 2]> = BTreeMap::new();
    let mut order: Vec<usize> = (0..violations.len()).collect();
    let certainty = |violation: &Violation| {
        let change = violation.body.library_change.as_ref()?;
        Some(change.from.len() * change.to.len())
    };
    order.retain(|at| certainty(&violations[*at]).is_some());
    order.sort_by_key(|at| certainty(&violations[*at]));
    for at in &order {
        let Some(change) = &violations[*at].body.library_change else { continue };
        let known = agreed.entry(group(&violations[*at])).or_insert_with(|| [change.from.clone(), change.to.clone()]);
        let both = [(&known[0], &change.from), (&known[1], &change.to)]
            .map(|(known, own)| known.iter().filter(|release| own.contains(release)).cloned().collect::<Vec<_>>());
        if both.iter().all(|releases| !releases.is_empty()) {
            *known = both;
        }
    }
    for at in order {
        let [from, to] = &agreed[group(&violations[at])];
        let change = &mut violations[at].body.library_change;
        let agrees = |change: &mut LibraryChange| {
            from.iter().all(|release| change.from.contains(release))
                && to.iter().all(|release| change.to.contains(release))
        };
        match change.take_if(agrees) {
            Some(agreeing) => *change = Some(LibraryChange { from: from.clone(), to: to.clone(), ..agreeing }),
            None => *change = None,
        }
    }
}
