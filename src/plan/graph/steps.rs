//! Sorts objects into steps: by written rules first, then by the default order unless it contradicts them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::acyclic::{Acyclic, Edge as Link, Until};
use super::rule::{Group, Operation, Rule, Side, Source};
use super::written::Ordering;

/// The maximum number of pairs of steps that rules put in an order. Objects with the same rules and the same default order share
/// a step.
const MAX_PAIRS: usize = 1_000_000;

/// An object to sort.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
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
    pub after: Vec<Wait>,
}

/// A wait of a set for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    pub set: usize,
    pub until: Until,
    /// If edges contradict each other, general ones are dropped first.
    pub is_general: bool,
}

/// Objects that are written in parallel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
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
    Cycle(Vec<Edge>),
    /// More pairs than [`MAX_PAIRS`].
    TooMany(usize),
}

/// One object comes after another one, by a rule of one of them.
#[derive(Debug, PartialEq, Eq)]
pub struct Edge {
    pub later: usize,
    pub earlier: usize,
    /// Which of the two has the rule, and its source.
    pub of: usize,
    pub source: Source,
}

/// What the objects of one step have in common.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    set: usize,
    is_free: bool,
    groups: Vec<usize>,
    /// The side, the group, and whether the rule is ignored if it would close a cycle.
    rules: Vec<(Side, usize, bool)>,
}

/// An edge from a written rule: one kind comes after another.
struct Written {
    later: usize,
    earlier: usize,
    is_optional: bool,
}

impl Kind {
    fn has_rules(&self) -> bool {
        !self.groups.is_empty() || !self.rules.is_empty()
    }
}

/// Nodes as steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sorted {
    pub steps: Vec<Step>,
    /// Pairs of nodes whose default order a rule reverses.
    pub turned: Vec<(usize, usize)>,
}

/// Sorts the nodes by the rules about this operation, and by the default order of their sets.
///
/// # Errors
/// The rules form a cycle, or there are too many.
pub fn sort(nodes: &[Node<'_>], sets: &[Set], operation: Operation) -> Result<Sorted, Disorder> {
    let sorting = Sorting::new(nodes, sets, operation);
    let mut written = sorting.written()?;
    // Required rules first, so that only optional ones are dropped.
    written.sort_by_key(|written| written.is_optional);
    let count = written.iter().filter(|written| !written.is_optional).count();
    let of_rule =
        |Written { later, earlier, .. }: &Written| Link { later: *later, earlier: *earlier, until: Until::Ready };
    let mut links: Vec<Link> = written.iter().map(of_rule).collect();
    let of_rules = links.len();
    links.extend(sorting.defaults()?);
    let keys: Vec<(u8, usize)> = (0..sorting.kinds.len()).map(|kind| sorting.key(kind)).collect();
    let required = Acyclic::new(links[..count].iter().copied(), &keys);
    let mut order = required.map_err(|cycle| Disorder::Cycle(sorting.cycle(&cycle)))?;
    let pair = |link: &Link| (link.later, link.earlier);
    let mut edges: Vec<(usize, usize)> = links[..count].iter().map(pair).collect();
    let mut turned = Vec::new();
    // Usually there is no contradiction, and all edges are added at once.
    if let Ok(all) = Acyclic::new(links.iter().copied(), &keys) {
        order = all;
        edges.extend(links[count..of_rules].iter().map(pair));
    } else {
        for (index, link) in links.iter().enumerate().skip(count) {
            let (is_rule, is_added) = (index < of_rules, order.add(*link));
            if is_rule && is_added {
                edges.push(pair(link));
            }
            if !is_rule && !is_added && of_rules > 0 {
                let first = |kind: usize| sorting.kinds[kind].1.first().copied();
                turned.extend(first(link.later).zip(first(link.earlier)));
            }
        }
    }
    turned.sort_unstable();
    turned.dedup();
    let awaited = sorting.awaited(&edges);
    Ok(Sorted { steps: sorting.steps(&mut order, &edges, &awaited), turned })
}

struct Sorting<'a> {
    nodes: &'a [Node<'a>],
    sets: &'a [Set],
    operation: Operation,
    kinds: Vec<(Kind, Vec<usize>)>,
    /// The kinds in each group that a rule names.
    members: Vec<Vec<usize>>,
    groups: BTreeMap<&'a Group, usize>,
}

impl<'a> Sorting<'a> {
    fn new(nodes: &'a [Node<'a>], sets: &'a [Set], operation: Operation) -> Self {
        let rules = |ordering: &'a Ordering| {
            ordering.rules.iter().filter(move |rule| (rule.operation, rule.other) == (operation, operation))
        };
        let orderings = || nodes.iter().filter_map(|node| node.ordering);
        let named: BTreeSet<&Group> = orderings().flat_map(rules).map(|rule| &rule.group).collect();
        let groups: BTreeMap<&Group, usize> = named.into_iter().enumerate().map(|(id, group)| (group, id)).collect();
        let mut kinds: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
        for (index, node) in nodes.iter().enumerate() {
            let ordering = node.ordering;
            let of = ordering.iter().flat_map(|ordering| &ordering.groups);
            let mut kind = Kind {
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
            kinds.insert(Kind { set, is_free: false, groups: Vec::new(), rules: Vec::new() }, Vec::new());
        }
        let kinds: Vec<(Kind, Vec<usize>)> = kinds.into_iter().collect();
        let mut members = vec![Vec::new(); groups.len()];
        for (index, (kind, _)) in kinds.iter().enumerate() {
            kind.groups.iter().for_each(|group| members[*group].push(index));
        }
        Sorting { nodes, sets, operation, kinds, members, groups }
    }

    /// The edges from written rules.
    fn written(&self) -> Result<Vec<Written>, Disorder> {
        let mut edges = Vec::new();
        for (index, (kind, of_kind)) in self.kinds.iter().enumerate() {
            for &(side, group, is_optional) in &kind.rules {
                if edges.len() + self.members[group].len() > MAX_PAIRS {
                    return Err(Disorder::TooMany(MAX_PAIRS));
                }
                for &other in &self.members[group] {
                    match (side, other == index) {
                        (Side::After, false) => edges.push(Written { later: index, earlier: other, is_optional }),
                        (Side::Before, false) => edges.push(Written { later: other, earlier: index, is_optional }),
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
        let (Kind { set, .. }, members) = &self.kinds[kind];
        (self.sets[*set].rank, members.first().copied().unwrap_or_default())
    }

    /// The edges of a cycle of kinds; each kind comes after the next one.
    fn cycle(&self, cycle: &[usize]) -> Vec<Edge> {
        let first = |kind: usize| (self.kinds[kind].1[0], kind);
        cycle.windows(2).map(|pair| self.edge(first(pair[0]), first(pair[1]))).collect()
    }

    /// The rule by which an object of one kind comes after an object of another.
    fn edge(&self, (later, of_later): (usize, usize), (earlier, of_earlier): (usize, usize)) -> Edge {
        let source = |node: usize, side: Side, other: usize| {
            let rules = &self.nodes[node].ordering?.rules;
            let names_other =
                |group: &Group| self.groups.get(group).is_some_and(|group| self.members[*group].contains(&other));
            let is_about = |rule: &&Rule| {
                (rule.operation, rule.other, rule.side) == (self.operation, self.operation, side)
                    && names_other(&rule.group)
            };
            // A cycle consists of required rules.
            let rule = rules.iter().filter(is_about).min_by_key(|rule| rule.is_optional);
            rule.map(|rule| (node, rule.source.clone()))
        };
        let by_later = || source(later, Side::After, of_earlier);
        let (of, source) = by_later().or_else(|| source(earlier, Side::Before, of_later)).unwrap_or_default();
        Edge { later, earlier, of, source }
    }

    /// The edges of the default order: specific edges before general ones, and among each those of objects with rules first.
    fn defaults(&self) -> Result<Vec<Link>, Disorder> {
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
                        links.extend(others.iter().map(|earlier| Link { later: *later, earlier: *earlier, until }));
                    }
                }
            }
        }
        Ok(links)
    }

    /// The kinds as steps, each after those that it waits for, lower ranks first.
    fn steps(&self, order: &mut Acyclic, edges: &[(usize, usize)], of_rules: &BTreeSet<usize>) -> Vec<Step> {
        let count = self.kinds.len();
        let direct = order.direct();
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
        let mut steps: Vec<Step> = Vec::with_capacity(count);
        while let Some(Reverse((_, kind))) = ready.pop() {
            places[kind] = steps.len();
            let mut after: Vec<(usize, Until)> =
                direct[kind].iter().map(|(earlier, until)| (places[*earlier], *until)).collect();
            after.sort_unstable();
            steps.push(Step {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Group {
        Group::Named(name.to_owned())
    }

    /// `groups | rules`, as in `a b | after c, before d`; `?` marks a rule that is ignored if it would close a cycle.
    fn ordering(text: &str) -> Ordering {
        let (groups, rules) = text.split_once('|').unwrap_or((text, ""));
        let rule = |text: &str| {
            let (words, is_optional) = match text.trim().strip_suffix('?') {
                Some(words) => (words, true),
                None => (text.trim(), false),
            };
            let (side, group) = words.split_once(' ').unwrap();
            let side = if side == "after" { Side::After } else { Side::Before };
            let (operation, source) = (Operation::Upsert, Source::Annotation(words.to_owned()));
            Rule { operation, side, other: operation, group: named(group), source, is_optional }
        };
        Ordering {
            groups: groups.split_whitespace().map(named).collect(),
            rules: rules.split(',').filter(|text| !text.trim().is_empty()).map(rule).collect(),
            is_free: false,
        }
    }

    /// Each set is after all lower ones.
    fn sort(nodes: &[Node<'_>], operation: Operation) -> Result<Sorted, Disorder> {
        let used: BTreeSet<usize> = nodes.iter().map(|node| node.set).collect();
        let used: Vec<usize> = used.into_iter().collect();
        let wait = |set| Wait { set, until: Until::Written, is_general: true };
        let set = |(index, rank): (usize, &usize)| Set { rank: *rank as u8, after: (0..index).map(wait).collect() };
        let sets: Vec<Set> = used.iter().enumerate().map(set).collect();
        let node = |node: &Node<'_>| used.binary_search(&node.set).expect("a set");
        let nodes: Vec<Node<'_>> = nodes
            .iter()
            .map(|one| Node { set: node(one), ordering: one.ordering, is_written: one.is_written })
            .collect();
        super::sort(&nodes, &sets, operation)
    }

    fn sorted(nodes: &[(usize, &str)]) -> Result<Vec<Step>, Disorder> {
        let orderings: Vec<Ordering> = nodes.iter().map(|(_, text)| ordering(text)).collect();
        let nodes: Vec<Node<'_>> = nodes
            .iter()
            .zip(&orderings)
            .map(|((set, _), ordering)| Node { set: *set, ordering: Some(ordering), is_written: true })
            .collect();
        sort(&nodes, Operation::Upsert).map(|sorted| sorted.steps)
    }

    /// Steps as `members < steps that it waits for`.
    fn shown(nodes: &[(usize, &str)]) -> Vec<String> {
        let step = |step: Step| match step.after[..] {
            [] => format!("{:?}", step.members),
            _ => format!("{:?} < {:?}", step.members, step.after),
        };
        sorted(nodes).unwrap().into_iter().map(step).collect()
    }

    fn cycle(nodes: &[(usize, &str)]) -> Vec<(usize, usize, usize, String)> {
        match sorted(nodes) {
            Err(Disorder::Cycle(edges)) => {
                edges.into_iter().map(|edge| (edge.later, edge.earlier, edge.of, edge.source.to_string())).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_rules_lower_ranks_come_first() {
        assert_eq!(shown(&[]), [""; 0]);
        assert_eq!(shown(&[(5, ""), (1, ""), (5, ""), (3, "")]), ["[1]", "[3] < [0]", "[0, 2] < [1]"]);
        // A group that no rule names changes nothing.
        assert_eq!(shown(&[(5, "a"), (5, "")]), ["[0, 1]"]);
    }

    #[test]
    fn rules_order_objects_of_one_rank() {
        assert_eq!(shown(&[(5, "| after db"), (5, ""), (5, "db")]), ["[1]", "[2]", "[0] < [1]"]);
        assert_eq!(shown(&[(5, "db"), (5, "| before db")]), ["[1]", "[0] < [0]"]);
        // All members of a group, also those with rules of their own.
        let nodes = [(5, "x | after y"), (5, "x"), (5, "| after x"), (5, "y")];
        assert_eq!(shown(&nodes), ["[1]", "[3]", "[0] < [1]", "[2] < [0, 2]"]);
    }

    #[test]
    fn a_written_rule_is_stronger_than_the_default_order_and_the_rest_of_it_stays() {
        // The object of rank 2 waits for one of rank 5, which waits for all other lower ranks.
        let nodes = [(1, ""), (2, "| after late"), (3, ""), (5, "late"), (6, "")];
        assert_eq!(shown(&nodes), ["[0]", "[2] < [0]", "[3] < [1]", "[1] < [2]", "[4] < [3]"]);
    }

    #[test]
    fn what_a_rule_turns_round_is_known() {
        let orderings = ["", "| after late", "", "late", ""].map(ordering);
        let nodes: Vec<Node<'_>> = [1, 2, 3, 5, 6]
            .into_iter()
            .zip(&orderings)
            .map(|(set, ordering)| Node { set, ordering: Some(ordering), is_written: true })
            .collect();
        // By default both would go after the second one, which waits for one of them.
        assert_eq!(sort(&nodes, Operation::Upsert).unwrap().turned, [(2, 1), (3, 1)]);
        assert_eq!(sort(&nodes[2..], Operation::Upsert).unwrap().turned, []);
    }

    #[test]
    fn a_free_object_waits_for_nothing_by_default() {
        let free = Ordering { is_free: true, ..ordering("a") };
        let waits = ordering("| after a");
        let node = |set, ordering| Node { set, ordering, is_written: true };
        let steps =
            sort(&[node(9, Some(&free)), node(1, None), node(1, Some(&waits))], Operation::Upsert).unwrap().steps;
        let after = |member: usize| {
            let step = steps.iter().find(|step| step.members == [member]).unwrap();
            step.after.iter().flat_map(|after| steps[*after].members.clone()).collect::<Vec<usize>>()
        };
        assert_eq!((after(0), after(1), after(2)), (vec![], vec![], vec![0]));
    }

    #[test]
    fn a_cycle_names_each_edge_and_the_rule_behind_it() {
        let key = str::to_owned;
        assert_eq!(
            cycle(&[(5, "a | after b"), (5, "b | after a")]),
            [(1, 0, 1, key("after a")), (0, 1, 0, key("after b"))]
        );
        // The rule belongs to the earlier object.
        let found = cycle(&[(5, "a | before b, after c"), (5, "b"), (5, "c | after b")]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.contains(&(1, 0, 0, key("before b"))), "{found:?}");
        // Two objects with the same rules.
        assert_eq!(
            cycle(&[(5, "a | after a"), (5, "a | after a")]),
            [(0, 1, 0, key("after a")), (1, 0, 1, key("after a"))]
        );
        assert_eq!(shown(&[(5, "a | after a")]), ["[0]"]);
    }

    #[test]
    fn a_rule_that_may_be_ignored_counts_unless_it_would_close_a_cycle() {
        assert_eq!(shown(&[(5, "| after b?"), (5, "b")]), ["[1]", "[0] < [0]"]);
        // Regardless of the order in the list.
        assert_eq!(shown(&[(5, "a | after b?"), (5, "b | after a")]), ["[0]", "[1] < [0]"]);
        assert_eq!(shown(&[(5, "a | after b"), (5, "b | after a?")]), ["[1]", "[0] < [0]"]);
        // Of two optional rules that contradict each other, one applies.
        assert_eq!(shown(&[(5, "a | before b?"), (5, "b | before a?")]), ["[0]", "[1] < [0]"]);
        assert_eq!(shown(&[(5, "a | after a?"), (5, "a | after a?")]), ["[0, 1]"]);
        // Nothing waits for the group of a dropped rule.
        let nodes = [(5, "a | after b?"), (5, "b | after a")];
        let awaited: Vec<bool> = sorted(&nodes).unwrap().iter().map(|step| step.is_awaited).collect();
        assert_eq!(awaited, [true, false]);
        // A cycle of required rules does not name optional ones.
        let cycle = cycle(&[(5, "a | after b?, after b"), (5, "b | after a")]);
        assert_eq!(cycle.len(), 2, "{cycle:?}");
    }

    #[test]
    fn only_what_is_written_makes_others_be_awaited() {
        let [first, between, last] = ["a", "b | after a", "| after b"].map(ordering);
        let awaited = |is_written: [bool; 3]| -> Vec<bool> {
            let nodes = [(&first, is_written[0]), (&between, is_written[1]), (&last, is_written[2])];
            let nodes = nodes.map(|(ordering, is_written)| Node { set: 5, ordering: Some(ordering), is_written });
            sort(&nodes, Operation::Upsert).unwrap().steps.iter().map(|step| step.is_awaited).collect()
        };
        assert_eq!(awaited([true, true, true]), [true, true, false]);
        assert_eq!(awaited([false, false, true]), [true, true, false]);
        assert_eq!(awaited([false, true, false]), [true, false, false]);
        assert_eq!(awaited([true, false, false]), [false; 3]);
    }

    #[test]
    fn only_rules_about_the_operation_count() {
        let mut later = ordering("| after a");
        later.rules[0].operation = Operation::Delete;
        let group = ordering("a");
        let nodes = [
            Node { set: 1, ordering: Some(&later), is_written: true },
            Node { set: 1, ordering: Some(&group), is_written: true },
        ];
        assert_eq!(sort(&nodes, Operation::Upsert).unwrap().steps.len(), 1);
        assert_eq!(sort(&nodes, Operation::Delete).unwrap().steps.len(), 1, "deleted after what is written");
        later.rules[0].other = Operation::Delete;
        let nodes = [
            Node { set: 1, ordering: Some(&later), is_written: true },
            Node { set: 1, ordering: Some(&group), is_written: true },
        ];
        assert_eq!(sort(&nodes, Operation::Delete).unwrap().steps.len(), 2);
    }

    #[test]
    fn very_many_objects_are_few_steps_and_too_many_rules_are_refused() {
        let (one, other) = (ordering("a"), ordering("| after a"));
        let node = |ordering| Node { set: 1, ordering: Some(ordering), is_written: true };
        let nodes: Vec<Node<'_>> = (0..50_000).map(|index| node(if index % 2 == 0 { &one } else { &other })).collect();
        assert_eq!(sort(&nodes, Operation::Upsert).unwrap().steps.len(), 2);
        let chain: Vec<Ordering> =
            (0..5000).map(|index| ordering(&format!("g{index} | after g{}", index + 1))).collect();
        let nodes: Vec<Node<'_>> = chain.iter().map(node).collect();
        assert_eq!(sort(&nodes, Operation::Upsert).unwrap().steps.len(), 5000);
        // Each of these waits for each of those.
        let those = (0..1000).map(|index| ordering(&format!("all g{index}")));
        let these = (0..1001).map(|index| ordering(&format!("| after all, after g{index}")));
        let many: Vec<Ordering> = those.chain(these).collect();
        for (count, is_refused) in [(1900, false), (2001, true)] {
            let nodes: Vec<Node<'_>> = many[..count].iter().map(node).collect();
            let sorted = sort(&nodes, Operation::Upsert);
            assert_eq!(sorted == Err(Disorder::TooMany(MAX_PAIRS)), is_refused, "{count}");
        }
    }
}
