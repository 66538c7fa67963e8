use super::*;

fn named(name: &str) -> OrderGroup {
    OrderGroup::Named(name.to_owned())
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
        let side = if side == "after" { OrderSide::After } else { OrderSide::Before };
        let (operation, source) = (RuleOperation::Upsert, OrderRuleSource::Annotation(words.to_owned()));
        OrderRule { operation, side, other: operation, group: named(group), source, is_optional }
    };
    Ordering {
        groups: groups.split_whitespace().map(named).collect(),
        rules: rules.split(',').filter(|text| !text.trim().is_empty()).map(rule).collect(),
        is_free: false,
    }
}

/// Each set is after all lower ones.
fn sort(nodes: &[OrderedObject<'_>], operation: RuleOperation) -> Result<Sorted, Disorder> {
    let used: BTreeSet<usize> = nodes.iter().map(|node| node.set).collect();
    let used: Vec<usize> = used.into_iter().collect();
    let wait = |set| SetWait { set, until: Until::Written, is_general: true };
    let set = |(index, rank): (usize, &usize)| Set { rank: *rank as u8, after: (0..index).map(wait).collect() };
    let sets: Vec<Set> = used.iter().enumerate().map(set).collect();
    let node = |node: &OrderedObject<'_>| used.binary_search(&node.set).expect("a set");
    let nodes: Vec<OrderedObject<'_>> = nodes
        .iter()
        .map(|one| OrderedObject { set: node(one), ordering: one.ordering, is_written: one.is_written })
        .collect();
    super::sort(&nodes, &sets, operation)
}

fn sorted(nodes: &[(usize, &str)]) -> Result<Vec<ApplyStep>, Disorder> {
    let orderings: Vec<Ordering> = nodes.iter().map(|(_, text)| ordering(text)).collect();
    let nodes: Vec<OrderedObject<'_>> = nodes
        .iter()
        .zip(&orderings)
        .map(|((set, _), ordering)| OrderedObject { set: *set, ordering: Some(ordering), is_written: true })
        .collect();
    sort(&nodes, RuleOperation::Upsert).map(|sorted| sorted.steps)
}

/// Steps as `members < steps that it waits for`.
fn shown(nodes: &[(usize, &str)]) -> Vec<String> {
    let step = |step: ApplyStep| match step.after[..] {
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
fn a_rule_overrides_only_the_default_order_that_contradicts_it() {
    // The object of rank 2 waits for one of rank 5, which waits for all other lower ranks.
    let nodes = [(1, ""), (2, "| after late"), (3, ""), (5, "late"), (6, "")];
    assert_eq!(shown(&nodes), ["[0]", "[2] < [0]", "[3] < [1]", "[1] < [2]", "[4] < [3]"]);
}

#[test]
fn objects_whose_default_order_a_rule_reverses_are_reported() {
    let orderings = ["", "| after late", "", "late", ""].map(ordering);
    let nodes: Vec<OrderedObject<'_>> = [1, 2, 3, 5, 6]
        .into_iter()
        .zip(&orderings)
        .map(|(set, ordering)| OrderedObject { set, ordering: Some(ordering), is_written: true })
        .collect();
    // By default both would go after the second one, which waits for one of them.
    assert_eq!(sort(&nodes, RuleOperation::Upsert).unwrap().turned, [(2, 1), (3, 1)]);
    assert_eq!(sort(&nodes[2..], RuleOperation::Upsert).unwrap().turned, []);
}

#[test]
fn a_free_object_waits_for_nothing_by_default() {
    let free = Ordering { is_free: true, ..ordering("a") };
    let waits = ordering("| after a");
    let node = |set, ordering| OrderedObject { set, ordering, is_written: true };
    let steps =
        sort(&[node(9, Some(&free)), node(1, None), node(1, Some(&waits))], RuleOperation::Upsert).unwrap().steps;
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
fn an_optional_rule_counts_unless_it_would_close_a_cycle() {
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
fn an_object_is_waited_for_only_if_another_one_is_written_after_it() {
    let [first, between, last] = ["a", "b | after a", "| after b"].map(ordering);
    let awaited = |is_written: [bool; 3]| -> Vec<bool> {
        let nodes = [(&first, is_written[0]), (&between, is_written[1]), (&last, is_written[2])];
        let nodes = nodes.map(|(ordering, is_written)| OrderedObject { set: 5, ordering: Some(ordering), is_written });
        sort(&nodes, RuleOperation::Upsert).unwrap().steps.iter().map(|step| step.is_awaited).collect()
    };
    assert_eq!(awaited([true, true, true]), [true, true, false]);
    assert_eq!(awaited([false, false, true]), [true, true, false]);
    assert_eq!(awaited([false, true, false]), [true, false, false]);
    assert_eq!(awaited([true, false, false]), [false; 3]);
}

#[test]
fn only_rules_about_the_operation_count() {
    let mut later = ordering("| after a");
    later.rules[0].operation = RuleOperation::Delete;
    let group = ordering("a");
    let nodes = [
        OrderedObject { set: 1, ordering: Some(&later), is_written: true },
        OrderedObject { set: 1, ordering: Some(&group), is_written: true },
    ];
    assert_eq!(sort(&nodes, RuleOperation::Upsert).unwrap().steps.len(), 1);
    assert_eq!(sort(&nodes, RuleOperation::Delete).unwrap().steps.len(), 1, "deleted after what is written");
    later.rules[0].other = RuleOperation::Delete;
    let nodes = [
        OrderedObject { set: 1, ordering: Some(&later), is_written: true },
        OrderedObject { set: 1, ordering: Some(&group), is_written: true },
    ];
    assert_eq!(sort(&nodes, RuleOperation::Delete).unwrap().steps.len(), 2);
}

#[test]
fn very_many_objects_are_few_steps_and_too_many_rules_are_refused() {
    let (one, other) = (ordering("a"), ordering("| after a"));
    let node = |ordering| OrderedObject { set: 1, ordering: Some(ordering), is_written: true };
    let nodes: Vec<OrderedObject<'_>> =
        (0..50_000).map(|index| node(if index % 2 == 0 { &one } else { &other })).collect();
    assert_eq!(sort(&nodes, RuleOperation::Upsert).unwrap().steps.len(), 2);
    let chain: Vec<Ordering> = (0..5000).map(|index| ordering(&format!("g{index} | after g{}", index + 1))).collect();
    let nodes: Vec<OrderedObject<'_>> = chain.iter().map(node).collect();
    assert_eq!(sort(&nodes, RuleOperation::Upsert).unwrap().steps.len(), 5000);
    // Each of these waits for each of those.
    let those = (0..1000).map(|index| ordering(&format!("all g{index}")));
    let these = (0..1001).map(|index| ordering(&format!("| after all, after g{index}")));
    let many: Vec<Ordering> = those.chain(these).collect();
    for (count, is_refused) in [(1900, false), (2001, true)] {
        let nodes: Vec<OrderedObject<'_>> = many[..count].iter().map(node).collect();
        let sorted = sort(&nodes, RuleOperation::Upsert);
        assert_eq!(sorted == Err(Disorder::TooMany(MAX_PAIRS)), is_refused, "{count}");
    }
}
