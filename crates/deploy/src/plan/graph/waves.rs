//! The order that hooks and waves of Argo CD, and hooks of Helm, ask for.
//!
//! Objects are ordered by phase, then by number. Objects without any of these annotations are in the middle phase, with
//! the number 0; those of a number wait until all objects of the number before it are ready. Namespaces and CRDs wait
//! for nothing, except in a wave above 0: whatever is to run before everything else needs them.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::{OrderGroup, OrderRule, OrderRuleSource, OrderSide, RuleOperation};
use super::written::Ordering;
use crate::plan::directives::{ARGO_WAVE, FoundDirective, HELM_WEIGHT, Phase};

/// The place of an object in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    phase: Phase,
    number: i64,
}

/// The rank of objects without annotations.
const DEFAULT: Rank = Rank { phase: Phase::WithOthers, number: 0 };

/// A rank, and the annotations that define it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnnotatedRank {
    rank: Rank,
    hook: &'static str,
    number: &'static str,
}

/// An object in this order.
#[derive(Debug, Clone, Copy)]
pub struct WaveMember {
    /// `None` without annotations.
    pub ranked: Option<AnnotatedRank>,
    /// A Namespace or a CRD.
    pub is_foundation: bool,
}

/// The rank of an object that is written; `None` for the default.
pub fn of_written(found: &[FoundDirective]) -> Option<AnnotatedRank> {
    let hook = found.iter().filter_map(|found| Some((found.phase()?, found.directive.key))).min();
    // Helm reads the weight of hooks only.
    let number = number(found, ARGO_WAVE).or_else(|| number(found, HELM_WEIGHT).filter(|_| hook.is_some()));
    let (phase, hook_key) = hook.unwrap_or((Phase::WithOthers, ARGO_WAVE));
    let (number, number_key) = number.unwrap_or((0, hook_key));
    let is_ranked = hook.is_some() || found.iter().any(|found| found.directive.key == ARGO_WAVE);
    is_ranked.then_some(AnnotatedRank { rank: Rank { phase, number }, hook: hook_key, number: number_key })
}

/// The rank of an object that is deleted: hooks are deleted like other objects.
pub fn of_deleted(found: &[FoundDirective]) -> Option<AnnotatedRank> {
    let (number, key) = number(found, ARGO_WAVE)?;
    Some(AnnotatedRank { rank: Rank { number, ..DEFAULT }, hook: key, number: key })
}

fn number(found: &[FoundDirective], key: &'static str) -> Option<(i64, &'static str)> {
    let found = found.iter().find(|found| found.directive.key == key)?;
    Some((found.number()?, key))
}

/// Adds the groups and rules of this order to those of the members. All are by index. Deletions are in the opposite
/// order.
pub fn add(members: &BTreeMap<usize, WaveMember>, orderings: &mut BTreeMap<usize, Ordering>, operation: RuleOperation) {
    let is_default = |member: &WaveMember| member.ranked.is_none_or(|ranked| ranked.rank == DEFAULT);
    if members.values().all(is_default) {
        return;
    }
    let rank = |member: &WaveMember| member.ranked.map_or(DEFAULT, |ranked| ranked.rank);
    let is_apart = |member: &WaveMember| {
        let Rank { phase, number } = rank(member);
        member.is_foundation && phase == Phase::WithOthers && number <= 0
    };
    let ranks: BTreeSet<Rank> = members.values().filter(|member| !is_apart(member)).map(rank).collect();
    let has_foundation = members.values().any(is_apart);
    for (&index, member) in members {
        let ordering = orderings.entry(index).or_default();
        if is_apart(member) {
            ordering.groups.insert(OrderGroup::Foundation);
            continue;
        }
        let rank = rank(member);
        ordering.groups.insert(OrderGroup::Wave(rank.phase, rank.number));
        let Some(ranked) = member.ranked.filter(|_| rank != DEFAULT) else { continue };
        // The rules are those of objects with annotations, so that a message can name them.
        let (neighbour, side) = match rank > DEFAULT {
            true => (ranks.range(..rank).next_back(), OrderSide::After),
            false => (ranks.range(rank..).nth(1), OrderSide::Before),
        };
        let mut rule = |group, key: &str| {
            let side = match (operation, side) {
                (RuleOperation::Upsert, side) => side,
                (RuleOperation::Delete, OrderSide::After) => OrderSide::Before,
                (RuleOperation::Delete, OrderSide::Before) => OrderSide::After,
            };
            let source = OrderRuleSource::Annotation(key.to_owned());
            ordering.rules.push(OrderRule { operation, side, other: operation, group, source, is_optional: false });
        };
        if let Some(neighbour) = neighbour {
            let key = if neighbour.phase == rank.phase { ranked.number } else { ranked.hook };
            rule(OrderGroup::Wave(neighbour.phase, neighbour.number), key);
        }
        // By default, they are deleted last.
        if has_foundation && side == OrderSide::After && operation == RuleOperation::Upsert {
            rule(OrderGroup::Foundation, ranked.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::plan::directives::of_object;

    fn ranked(annotations: &Value) -> Option<(Phase, i64)> {
        let found = of_object(&json!({"metadata": {"annotations": annotations}}));
        of_written(&found).map(|AnnotatedRank { rank: Rank { phase, number }, .. }| (phase, number))
    }

    #[test]
    fn an_object_has_the_phase_of_its_hook_and_the_number_of_its_wave() {
        let (hook, wave) = ("argocd.argoproj.io/hook", ARGO_WAVE);
        let (helm, weight) = ("helm.sh/hook", HELM_WEIGHT);
        for (annotations, expected) in [
            (json!({}), None),
            (json!({wave: "3"}), Some((Phase::WithOthers, 3))),
            (json!({wave: "-3"}), Some((Phase::WithOthers, -3))),
            (json!({wave: "three"}), Some((Phase::WithOthers, 0))),
            (json!({hook: "PreSync", wave: "2"}), Some((Phase::BeforeAll, 2))),
            (json!({hook: "PostSync,PreSync"}), Some((Phase::BeforeAll, 0))),
            (json!({helm: "post-install", weight: "-5"}), Some((Phase::AfterAll, -5))),
            (json!({helm: "post-install", weight: "-5", wave: "1"}), Some((Phase::AfterAll, 1))),
            (json!({helm: "post-install", hook: "Sync"}), Some((Phase::WithOthers, 0))),
            (json!({weight: "-5"}), None),
            (json!({hook: "PostDelete"}), None),
        ] {
            assert_eq!(ranked(&annotations), expected, "{annotations}");
        }
    }

    #[test]
    fn each_wave_waits_for_the_previous_one_and_deletions_are_in_the_opposite_order() {
        let member = |wave: Option<&str>, is_foundation: bool| {
            let annotations = wave.map_or(json!({}), |wave| json!({ARGO_WAVE: wave}));
            let found = of_object(&json!({"metadata": {"annotations": annotations}}));
            WaveMember { ranked: of_written(&found), is_foundation }
        };
        let members = [member(Some("-2"), false), member(Some("4"), false), member(None, false), member(None, true)];
        let members: BTreeMap<usize, WaveMember> = members.into_iter().enumerate().collect();
        let rules = |operation: RuleOperation| {
            let mut orderings = BTreeMap::new();
            add(&members, &mut orderings, operation);
            let rules = orderings.into_iter().flat_map(|(index, ordering)| {
                ordering.rules.into_iter().map(move |rule| (index, rule.side, rule.group))
            });
            rules.collect::<Vec<_>>()
        };
        let default = || OrderGroup::Wave(Phase::WithOthers, 0);
        let written = [
            (0, OrderSide::Before, default()),
            (1, OrderSide::After, default()),
            (1, OrderSide::After, OrderGroup::Foundation),
        ];
        assert_eq!(rules(RuleOperation::Upsert), written);
        assert_eq!(rules(RuleOperation::Delete), [(0, OrderSide::After, default()), (1, OrderSide::Before, default())]);
        let same = BTreeMap::from([(0, member(Some("0"), false)), (1, member(None, false))]);
        let mut orderings = BTreeMap::new();
        add(&same, &mut orderings, RuleOperation::Upsert);
        assert_eq!(orderings, BTreeMap::new());
    }
}
