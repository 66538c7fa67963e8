//! Sorts objects into steps: by written rules first, then by the default order unless it contradicts them.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::acyclic::{Acyclic, OrderEdge, Until};
use super::rule::{OrderGroup, OrderRule, OrderRuleSource, OrderSide, RuleOperation};
use super::written::Ordering;

/// The maximum number of pairs of steps that rules put in an order. Objects with the same rules and the same default
/// order share a step.
const MAX_PAIRS: usize = 1_000_000;

/// An object to sort.
#[derive(Debug, Clone, Copy)]
pub struct OrderedObject<'a> {
    /// The index of its set.
    pub set: usize,
    /// `None` without rules and groups.
    pub ordering: Option<&'a Ordering>,
    /// Whether it is written or deleted. Rules may also make objects wait for one that is not.
    pub is_written: bool,
}

/// Objects that wait for the same objects by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    /// Of the steps that could start at the same time, those with lower ranks are listed first.
    pub rank: u8,
    /// The sets that it waits for.
    pub after: Vec<SetWait>,
}

/// A wait of a set for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetWait {
    pub set: usize,
    pub until: Until,
    /// If edges contradict each other, general ones are dropped first.
    pub is_general: bool,
}

/// Objects that are written in parallel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyStep {
    /// The indices of the objects. Empty if the step only makes other steps wait.
    pub members: Vec<usize>,
    /// The indices of the steps that have to be written before this one starts. All of them are earlier in the list.
    pub after: Vec<usize>,
    /// Those of them that also have to be ready.
    pub ready: Vec<usize>,
    /// The indices of the steps that rules make it wait for, not only the default order.
    pub needs: Vec<usize>,
    /// Whether something that is written waits until its objects are ready, and not only until its CRDs are served.
    pub is_awaited: bool,
}

/// Why the objects cannot be sorted.
#[derive(Debug, PartialEq, Eq)]
pub enum Disorder {
    /// In each edge, one object comes after the next one.
    Cycle(Vec<ObjectRuleEdge>),
    /// More pairs than [`MAX_PAIRS`].
    TooMany(usize),
}

/// One object comes after another one, by a rule of one of them.
#[derive(Debug, PartialEq, Eq)]
pub struct ObjectRuleEdge {
    pub later: usize,
    pub earlier: usize,
    /// Which of the two has the rule, and its source.
    pub of: usize,
    pub source: OrderRuleSource,
}

/// What the objects of one step have in common.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StepKey {
    set: usize,
    is_free: bool,
    groups: Vec<usize>,
    /// The side, the group, and whether the rule is ignored if it would close a cycle.
    rules: Vec<(OrderSide, usize, bool)>,
}

/// An edge from a written rule: one kind comes after another.
struct KindRuleEdge {
    later: usize,
    earlier: usize,
    is_optional: bool,
}

impl StepKey {
    fn has_rules(&self) -> bool {
        !self.groups.is_empty() || !self.rules.is_empty()
    }
}

/// Nodes as steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sorted {
    pub steps: Vec<ApplyStep>,
    /// Pairs of nodes whose default order a rule reverses.
    pub turned: Vec<(usize, usize)>,
}

/// Sorts the nodes by the rules about this operation, and by the default order of their sets.
///
/// # Errors
/// The rules form a cycle, or there are too many.
pub fn sort(nodes: &[OrderedObject<'_>], sets: &[Set], operation: RuleOperation) -> Result<Sorted, Disorder> {
    let sorting = Sorting::new(nodes, sets, operation);
    let mut written = sorting.written_edges()?;
    // Required rules first, so that only optional ones are dropped.
    written.sort_by_key(|written| written.is_optional);
    let required = written.iter().filter(|written| !written.is_optional).count();
    let of_rule = |KindRuleEdge { later, earlier, .. }: &KindRuleEdge| OrderEdge {
        later: *later,
        earlier: *earlier,
        until: Until::Ready,
    };
    let mut links: Vec<OrderEdge> = written.iter().map(of_rule).collect();
    links.extend(sorting.defaults()?);
    let keys: Vec<(u8, usize)> = (0..sorting.kinds.len()).map(|kind| sorting.key(kind)).collect();
    let ordered = Acyclic::without_cycles(&links, required, &keys);
    let (mut order, left_out) = ordered.map_err(|cycle| Disorder::Cycle(sorting.cycle(&cycle)))?;
    let kept = written.iter().enumerate().filter(|(link, _)| left_out.binary_search(link).is_err());
    let edges: Vec<(usize, usize)> = kept.map(|(_, rule)| (rule.later, rule.earlier)).collect();
    let awaited = sorting.awaited(&edges);
    let mut turned = Vec::new();
    if !written.is_empty() {
        let first = |kind: usize| sorting.kinds[kind].1.first().copied();
        let defaults = left_out.iter().filter(|link| **link >= written.len()).map(|link| links[*link]);
        turned.extend(defaults.filter_map(|link| first(link.later).zip(first(link.earlier))));
        turned.sort_unstable();
        turned.dedup();
    }
    Ok(Sorted { steps: sorting.steps(&mut order, &edges, &awaited), turned })
}

struct Sorting<'a> {
    nodes: &'a [OrderedObject<'a>],
    sets: &'a [Set],
    operation: RuleOperation,
    kinds: Vec<(StepKey, Vec<usize>)>,
    /// The kinds in each group that a rule names.
    members: Vec<Vec<usize>>,
    groups: BTreeMap<&'a OrderGroup, usize>,
}

impl<'a> Sorting<'a> {
    fn new(nodes: &'a [OrderedObject<'a>], sets: &'a [Set], operation: RuleOperation) -> Self {
        let rules = |ordering: &'a Ordering| {
            ordering.rules.iter().filter(move |rule| (rule.operation, rule.other) == (operation, operation))
        };
        let orderings = || nodes.iter().filter_map(|node| node.ordering);
        let named: BTreeSet<&OrderGroup> = orderings().flat_map(rules).map(|rule| &rule.group).collect();
        let groups: BTreeMap<&OrderGroup, usize> =
            named.into_iter().enumerate().map(|(id, group)| (group, id)).collect();
        let mut kinds: BTreeMap<StepKey, Vec<usize>> = BTreeMap::new();
        for (index, node) in nodes.iter().enumerate() {
            let ordering = node.ordering;
            let of = ordering.iter().flat_map(|ordering| &ordering.groups);
            let mut kind = StepKey {
                set: node.set,
                is_free: ordering.is_some_and(|ordering| ordering.is_free),
                groups: of.filter_map(|group| groups.get(group).copied()).collect(),
                rules: ordering
                    .into_iter()
                    .flat_map(rules)
                    .map(|rule| (rule.side, groups[&rule.group], rule.is_optional))
                    .collect(),
            };
            kind.rules.sort_unstable();
            kind.rules.dedup();
            kinds.entry(kind).or_default().push(index);
        }
        // A set without objects makes other sets wait for each other.
        let used: BTreeSet<usize> = nodes.iter().map(|node| node.set).collect();
        for set in (0..sets.len()).filter(|set| !used.contains(set)) {
            kinds.insert(StepKey { set, is_free: false, groups: Vec::new(), rules: Vec::new() }, Vec::new());
        }
        let kinds: Vec<(StepKey, Vec<usize>)> = kinds.into_iter().collect();
        let mut members = vec![Vec::new(); groups.len()];
        for (index, (kind, _)) in kinds.iter().enumerate() {
            kind.groups.iter().for_each(|group| members[*group].push(index));
        }
        Sorting { nodes, sets, operation, kinds, members, groups }
    }

    /// The edges from written rules.
    fn written_edges(&self) -> Result<Vec<KindRuleEdge>, Disorder> {
        let mut edges = Vec::new();
        for (index, (kind, of_kind)) in self.kinds.iter().enumerate() {
            for &(side, group, is_optional) in &kind.rules {
                if edges.len() + self.members[group].len() > MAX_PAIRS {
                    return Err(Disorder::TooMany(MAX_PAIRS));
                }
                for &other in &self.members[group] {
                    match (side, other == index) {
                        (OrderSide::After, false) => {
                            edges.push(KindRuleEdge { later: index, earlier: other, is_optional })
                        }
                        (OrderSide::Before, false) => {
                            edges.push(KindRuleEdge { later: other, earlier: index, is_optional })
                        }
                        // An object does not wait for itself, and two of the same kind cannot wait for each other.
                        (_, true) if is_optional => {}
                        (_, true) => {
                            if let [first, second, ..] = of_kind[..] {
                                let edge = |later, earlier| self.edge((later, index), (earlier, index));
                                return Err(Disorder::Cycle(vec![edge(first, second), edge(second, first)]));
                            }
                        }
                    }
                }
            }
        }
        Ok(edges)
    }

    /// The kinds that a kind with written objects comes after, directly or through kinds without any.
    fn awaited(&self, edges: &[(usize, usize)]) -> BTreeSet<usize> {
        let mut earlier: Vec<Vec<usize>> = vec![Vec::new(); self.kinds.len()];
        edges.iter().for_each(|(later, before)| earlier[*later].push(*before));
        let is_written = |kind: &usize| self.kinds[*kind].1.iter().any(|node| self.nodes[*node].is_written);
        let mut open: Vec<usize> = (0..self.kinds.len()).filter(is_written).collect();
        let mut awaited = BTreeSet::new();
        while let Some(kind) = open.pop() {
            open.extend(earlier[kind].iter().filter(|earlier| awaited.insert(**earlier)));
        }
        awaited
    }

    /// Rank and first member.
    fn key(&self, kind: usize) -> (u8, usize) {
        let (StepKey { set, .. }, members) = &self.kinds[kind];
        (self.sets[*set].rank, members.first().copied().unwrap_or_default())
    }

    /// The edges of a cycle of kinds; each kind comes after the next one.
    fn cycle(&self, cycle: &[usize]) -> Vec<ObjectRuleEdge> {
        let first = |kind: usize| (self.kinds[kind].1[0], kind);
        cycle.windows(2).map(|pair| self.edge(first(pair[0]), first(pair[1]))).collect()
    }

    /// The rule by which an object of one kind comes after an object of another.
    fn edge(&self, (later, of_later): (usize, usize), (earlier, of_earlier): (usize, usize)) -> ObjectRuleEdge {
        let source = |node: usize, side: OrderSide, other: usize| {
            let rules = &self.nodes[node].ordering?.rules;
            let names_other =
                |group: &OrderGroup| self.groups.get(group).is_some_and(|group| self.members[*group].contains(&other));
            let is_about = |rule: &&OrderRule| {
                (rule.operation, rule.other, rule.side) == (self.operation, self.operation, side)
                    && names_other(&rule.group)
            };
            // A cycle consists of required rules.
            let rule = rules.iter().filter(is_about).min_by_key(|rule| rule.is_optional);
            rule.map(|rule| (node, rule.source.clone()))
        };
        let by_later = || source(later, OrderSide::After, of_earlier);
        let (of, source) = by_later().or_else(|| source(earlier, OrderSide::Before, of_later)).unwrap_or_default();
        ObjectRuleEdge { later, earlier, of, source }
    }

    /// The edges of the default order: specific edges before general ones, and among each those of objects with rules
    /// first.
    fn defaults(&self) -> Result<Vec<OrderEdge>, Disorder> {
        let mut of_sets: Vec<Vec<usize>> = vec![Vec::new(); self.sets.len()];
        for (index, (kind, _)) in self.kinds.iter().enumerate().filter(|(_, (kind, _))| !kind.is_free) {
            of_sets[kind.set].push(index);
        }
        let (mut links, mut pairs) = (Vec::new(), 0);
        for (is_general, is_ruled) in [(false, true), (false, false), (true, true), (true, false)] {
            for (set, waits) in self.sets.iter().enumerate() {
                let has_rules = |kind: &&usize| self.kinds[**kind].0.has_rules() == is_ruled;
                let those: Vec<usize> = of_sets[set].iter().filter(has_rules).copied().collect();
                for wait in waits.after.iter().filter(|wait| wait.is_general == is_general && !those.is_empty()) {
                    let others = &of_sets[wait.set];
                    // Without rules, a set is one kind.
                    pairs += if (those.len(), others.len()) == (1, 1) { 0 } else { those.len() * others.len() };
                    if pairs > MAX_PAIRS {
                        return Err(Disorder::TooMany(MAX_PAIRS));
                    }
                    for later in &those {
                        let until = wait.until;
                        links.extend(others.iter().map(|earlier| OrderEdge {
                            later: *later,
                            earlier: *earlier,
                            until,
                        }));
                    }
                }
            }
        }
        Ok(links)
    }

    /// The kinds as steps, each after those that it waits for, lower ranks first.
    fn steps(&self, order: &mut Acyclic, edges: &[(usize, usize)], of_rules: &BTreeSet<usize>) -> Vec<ApplyStep> {
        let count = self.kinds.len();
        let direct = order.direct_edges();
        let mut missing: Vec<usize> = direct.iter().map(Vec::len).collect();
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut awaited: Vec<bool> = (0..count).map(|kind| of_rules.contains(&kind)).collect();
        let ruled: BTreeSet<(usize, usize)> = edges.iter().copied().collect();
        for (later, earlier) in direct.iter().enumerate() {
            for (earlier, until) in earlier {
                before[*earlier].push(later);
                awaited[*earlier] |= *until == Until::Ready && !ruled.contains(&(later, *earlier));
            }
        }
        let key = |kind: usize| Reverse((self.key(kind), kind));
        let mut ready: BinaryHeap<_> = (0..count).filter(|kind| missing[*kind] == 0).map(key).collect();
        let mut places = vec![0; count];
        let mut steps: Vec<ApplyStep> = Vec::with_capacity(count);
        while let Some(Reverse((_, kind))) = ready.pop() {
            places[kind] = steps.len();
            let mut after: Vec<(usize, Until)> =
                direct[kind].iter().map(|(earlier, until)| (places[*earlier], *until)).collect();
            after.sort_unstable();
            steps.push(ApplyStep {
                members: self.kinds[kind].1.clone(),
                after: after.iter().map(|(earlier, _)| *earlier).collect(),
                ready: after.iter().filter(|(_, until)| *until > Until::Written).map(|(earlier, _)| *earlier).collect(),
                needs: Vec::new(),
                is_awaited: awaited[kind],
            });
            for later in &before[kind] {
                missing[*later] -= 1;
                if missing[*later] == 0 {
                    ready.push(key(*later));
                }
            }
        }
        for (later, earlier) in edges {
            steps[places[*later]].needs.push(places[*earlier]);
        }
        steps
    }
}
