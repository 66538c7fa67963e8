//! The rules of a node: those that desired adds or that see something else now.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::obligation::WalkPosition;
use super::{
    COMPILED_PER_STEP, ChangeOrigin, ComparedNode, ExpectedEffect, ProductWalk, RULES, ValueStep, changed_keywords,
};
use crate::cel::{self, Implied, RuleSet};
use crate::constraints::{SharedSchema, ValueConstraints};
use crate::keywords as kw;
use crate::rules::RuleProofResources;
use crate::rules::restated::{self, absence};
use crate::text::shorten;

impl<'s> ProductWalk<'_, 's> {
    /// Compares the rules of a node. If they need more than a small share of the steps, the other nodes go first.
    pub(super) fn rules_within_share(&mut self, node: ComparedNode<'_, 's>, differing: &[&'s str]) {
        let (known, costs) = (self.walked.obligations.len(), self.walked.costs.len());
        let solver = self.solver;
        let is_over = solver.with_share(1, || {
            self.rules(node, differing);
            solver.left() == 0
        });
        if is_over && solver.left() > 0 {
            let ComparedNode { source, structure, target, place } = node;
            self.walked.obligations.truncate(known);
            self.walked.costs.truncate(costs);
            self.postponed.push((source.clone(), structure, target, place.clone(), differing.to_vec()));
        }
    }

    /// Compares the rules that needed more than their share before.
    pub(super) fn postponed_rules(&mut self) {
        for (source, structure, target, place, differing) in std::mem::take(&mut self.postponed) {
            let node = ComparedNode { source: &source, structure, target, place: &place };
            self.solver.with_share(15, || self.rules(node, &differing));
        }
    }

    fn rules(&mut self, node: ComparedNode<'_, 's>, differing: &[&str]) {
        let ComparedNode { source, structure, target, place } = node;
        let rules = kw::list(target, "x-kubernetes-validations");
        if rules.is_empty() {
            return;
        }
        let live = RuleSet {
            schema: structure,
            rules: kw::list(structure, "x-kubernetes-validations"),
            is_root: place.is_root,
            keeps: place.source_keeps,
        };
        let desired = RuleSet { schema: target, rules, is_root: place.is_root, keeps: place.target_keeps };
        let known: HashSet<_> = live.rules.iter().map(cel::judging_part).collect();
        let added: Vec<&str> = rules
            .iter()
            .filter(|rule| !known.contains(&cel::judging_part(rule)))
            .filter_map(|rule| rule.get("rule").and_then(Value::as_str))
            .collect();
        let is_unchanged = added.is_empty();
        let reason = match added[..] {
            [] => "x-kubernetes-validations: sees different types or defaults".to_owned(),
            _ => format!("x-kubernetes-validations: {} added or changed", shorten(&added.join("; "))),
        };
        // Only the compilation of both schemas is charged here; the rules charge the rest themselves.
        if !self.solver.spend(500 + (kw::size(structure) + kw::size(target)) as u64 / COMPILED_PER_STEP) {
            let why = Some("the step limit was reached".to_owned());
            return self.obligation(place, reason, ExpectedEffect::Refused, Vec::new(), why);
        }
        let added = cel::added(live, desired);
        if !added.is_empty() {
            self.walked.costs.push((place.clone(), reason.clone()));
        }
        let costly = |means: &RuleProofResources<'_>| cel::too_costly(live, desired, &added, means);
        let answer = self.solver.with_means(|means| cel::implied(live, desired, means));
        let answer = match answer {
            Implied::Yes => Implied::Yes,
            _ if self.follow_from_above(&added, place) => Implied::Yes,
            answer => answer,
        };
        let (values, open) = match answer {
            Implied::Yes => match self.solver.with_means(costly) {
                Some(why) => (Vec::new(), Some(why)),
                None => return,
            },
            Implied::No(found) => (found, Some("other values may differ".to_owned())),
            Implied::Unknown(why) => (Vec::new(), Some(why)),
        };
        // The server evaluates no rule for a null.
        if values.is_empty()
            && self.solver.solve(&ValueConstraints { null: false, ..source.clone() }, None, 1).is_nothing()
        {
            return;
        }
        let known = self.walked.obligations.len();
        self.obligation(place, reason, ExpectedEffect::Refused, values, open);
        let is_own = !is_unchanged && !self.holds_alone(live, desired);
        self.attribute(
            known,
            place,
            if is_own { changed_keywords(differing, &[RULES]) } else { ChangeOrigin::OtherNodes },
        );
    }

    /// Whether these rules of the target follow from what the source says about a value around the node.
    fn follow_from_above(&self, rules: &[&Value], place: &WalkPosition<'s>) -> bool {
        let mut steps: Vec<&ValueStep> = Vec::new();
        let mut level = place.value_path.as_deref();
        // Where a list keeps unknown fields of its items, an object can have fields that only desired describes.
        let levels = std::iter::successors(level, |level| level.above.as_deref());
        let mut structures = levels.filter_map(|level| level.constraints.holds.first());
        if place.source_keeps || structures.any(|part| kw::type_name(part) == Some("array") && kw::preserves(part)) {
            return false;
        }
        while let Some(value_path) = level {
            steps.insert(0, &value_path.step);
            level = value_path.above.as_deref();
            let Some(SharedSchema::Ref(around)) = value_path.constraints.holds.first() else { return false };
            let own = kw::list(around, RULES);
            if own.is_empty() || kw::type_name(around).is_none() || kw::flag(around, "x-kubernetes-int-or-string") {
                continue;
            }
            let Some(asked) = rules.iter().map(|rule| moved(rule, &steps, around)).collect::<Option<Vec<Value>>>()
            else {
                return false;
            };
            let is_root = level.is_none();
            let live = RuleSet { schema: around, rules: own, is_root, keeps: false };
            let desired = RuleSet { schema: value_path.target, rules: &asked, is_root, keeps: false };
            if self.solver.with_means(|means| cel::implied(live, desired, means)) == Implied::Yes {
                return true;
            }
        }
        false
    }

    /// Whether live's schema with desired's rules refuses nothing, so that what breaks comes from changes elsewhere.
    fn holds_alone(&self, live: RuleSet<'_>, desired: RuleSet<'_>) -> bool {
        let alone = RuleSet { rules: desired.rules, ..live };
        if kw::is_same_node(live.schema, desired.schema)
            || !self.solver.spend(500 + kw::size(live.schema) as u64 / COMPILED_PER_STEP)
        {
            return false;
        }
        let added = cel::added(live, alone);
        self.solver.with_means(|means| cel::implied(live, alone, means)) == Implied::Yes
            && self.solver.with_means(|means| cel::too_costly(live, alone, &added, means)).is_none()
    }
}

/// The rule as one of a value around it, `steps` above. None if it cannot be written so with certainty.
fn moved(rule: &Value, steps: &[&ValueStep], around: &Value) -> Option<Value> {
    let text = rule.get("rule")?.as_str()?;
    if kw::flag(rule, "optionalOldSelf") {
        return None;
    }
    let moved = match absence("self", steps, &|at| restated::moved(text, at), 0) {
        Some(moved) => moved,
        None => restated::moved_transition(text, steps, around)?,
    };
    Some(json!({ "rule": moved }))
}
