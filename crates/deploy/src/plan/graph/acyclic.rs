//! A directed graph without cycles. If no edge contradicts another one, one topological sort takes them all. Otherwise
//! only edges inside a strongly connected component can close a cycle, and they are added one by one, each component on
//! its own. Sources: Kosaraju's algorithm for components; Pearce and Kelly, "A dynamic topological sort algorithm for
//! directed acyclic graphs", for adding an edge.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

/// The state that the earlier node of an edge must reach before the later one starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Until {
    Written,
    /// Written, and CRDs also served.
    Served,
    Ready,
}

/// One node comes after another.
#[derive(Debug, Clone, Copy)]
pub struct OrderEdge {
    pub later: usize,
    pub earlier: usize,
    pub until: Until,
}

pub struct Acyclic {
    /// For each node, the nodes that it comes after. A node can occur more than once.
    after: Vec<Vec<(usize, Until)>>,
    /// For each node, the nodes that come after it.
    before: Vec<Vec<(usize, Until)>>,
    /// For each node, its place in a topological order.
    place: Vec<usize>,
    /// For each node, the number of the last search that found it.
    found: Vec<usize>,
    searches: usize,
}

impl Acyclic {
    /// A graph with the required edges, which are the first ones of the list, and with each further edge that does not
    /// close a cycle with those before it. Also returns the indices of the edges that are left out, in ascending order.
    /// The topological order follows these keys where the edges allow it.
    ///
    /// # Errors
    /// The required edges form a cycle. Each of the nodes comes after the next one; the last one repeats the first one.
    pub fn without_cycles<K: Ord>(
        edges: &[OrderEdge],
        required: usize,
        keys: &[K],
    ) -> Result<(Self, Vec<usize>), Vec<usize>> {
        // Usually there is no contradiction.
        if let Ok(all) = Self::new(edges.iter().copied(), keys) {
            return Ok((all, Vec::new()));
        }
        Self::new(edges[..required].iter().copied(), keys)?;
        let left_out = left_out(edges, required, keys.len())?;
        let kept = edges.iter().enumerate().filter(|(edge, _)| left_out.binary_search(edge).is_err());
        Ok((Self::new(kept.map(|(_, edge)| *edge), keys)?, left_out))
    }

    /// A graph with these edges, whose topological order follows these keys where the edges allow it.
    ///
    /// # Errors
    /// The edges form a cycle, as in [`Acyclic::without_cycles`].
    fn new<K: Ord>(edges: impl Iterator<Item = OrderEdge>, keys: &[K]) -> Result<Self, Vec<usize>> {
        let count = keys.len();
        let mut graph = Acyclic {
            after: vec![Vec::new(); count],
            before: vec![Vec::new(); count],
            place: vec![usize::MAX; count],
            found: vec![0; count],
            searches: 0,
        };
        edges.for_each(|edge| graph.push(edge));
        let mut missing: Vec<usize> = graph.after.iter().map(Vec::len).collect();
        let entry = |node: usize| Reverse((&keys[node], node));
        let mut free: BinaryHeap<_> = (0..count).filter(|node| missing[*node] == 0).map(entry).collect();
        let mut next = 0;
        while let Some(Reverse((_, node))) = free.pop() {
            graph.place[node] = next;
            next += 1;
            for (later, _) in &graph.before[node] {
                missing[*later] -= 1;
                if missing[*later] == 0 {
                    free.push(entry(*later));
                }
            }
        }
        match (0..count).rev().find(|node| graph.place[*node] == usize::MAX) {
            None => Ok(graph),
            Some(node) => Err(graph.cycle(node)),
        }
    }

    /// A cycle that can be reached from this node, which has no place.
    fn cycle(&self, node: usize) -> Vec<usize> {
        let (mut path, mut seen) = (Vec::new(), BTreeMap::new());
        let mut node = node;
        loop {
            if let Some(start) = seen.insert(node, path.len()) {
                path.push(node);
                return path.split_off(start);
            }
            path.push(node);
            let unplaced = self.after[node].iter().find(|(earlier, _)| self.place[*earlier] == usize::MAX);
            // A node without a place comes after another one without a place.
            let Some((earlier, _)) = unplaced else { return path };
            node = *earlier;
        }
    }

    fn push(&mut self, OrderEdge { later, earlier, until }: OrderEdge) {
        self.after[later].push((earlier, until));
        self.before[earlier].push((later, until));
    }

    /// Adds an edge. Returns false and adds nothing if it would close a cycle.
    fn add(&mut self, edge: OrderEdge) -> bool {
        let OrderEdge { later, earlier, .. } = edge;
        if later == earlier {
            return false;
        }
        let (low, high) = (self.place[later], self.place[earlier]);
        if low < high {
            // A path between the two visits only nodes with places in between.
            let Some(mut behind) =
                self.search(later, Some(earlier), |graph, node| &graph.before[node], |place| place <= high)
            else {
                return false;
            };
            let ahead = self.search(earlier, None, |graph, node| &graph.after[node], |place| place >= low);
            let mut ahead = ahead.unwrap_or_default();
            ahead.sort_by_key(|node| self.place[*node]);
            behind.sort_by_key(|node| self.place[*node]);
            ahead.extend(behind);
            let mut places: Vec<usize> = ahead.iter().map(|node| self.place[*node]).collect();
            places.sort_unstable();
            for (node, place) in ahead.into_iter().zip(places) {
                self.place[node] = place;
            }
        }
        self.push(edge);
        true
    }

    /// `start` and the nodes that can be reached from it through nodes whose places fit; `None` if `end` is one of
    /// them.
    fn search(
        &mut self,
        start: usize,
        end: Option<usize>,
        next: impl Fn(&Self, usize) -> &Vec<(usize, Until)>,
        fits: impl Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        self.searches += 1;
        self.found[start] = self.searches;
        let (mut all, mut at) = (vec![start], 0);
        while at < all.len() {
            for edge in 0..next(self, all[at]).len() {
                let (node, _) = next(self, all[at])[edge];
                if Some(node) == end {
                    return None;
                }
                if self.found[node] != self.searches && fits(self.place[node]) {
                    self.found[node] = self.searches;
                    all.push(node);
                }
            }
            at += 1;
        }
        Some(all)
    }

    /// For each node, the nodes that it comes after, without duplicates and without those that follow from other edges
    /// (a transitive reduction).
    pub fn direct_edges(&mut self) -> Vec<Vec<(usize, Until)>> {
        // In this order, a search ends at the first one that is too far away.
        let Acyclic { place, after, before, .. } = self;
        after.iter_mut().for_each(|edges| edges.sort_unstable_by_key(|(node, _)| Reverse(place[*node])));
        before.iter_mut().for_each(|edges| edges.sort_unstable_by_key(|(node, _)| place[*node]));
        (0..self.after.len()).map(|node| self.direct_of(node)).collect()
    }

    fn direct_of(&mut self, node: usize) -> Vec<(usize, Until)> {
        let mut after: BTreeMap<usize, Until> = BTreeMap::new();
        for &(earlier, until) in &self.after[node] {
            let known = after.entry(earlier).or_insert(until);
            *known = until.max(*known);
        }
        if after.len() <= 1 {
            return after.into_iter().collect();
        }
        // In one direction, a search can visit most of the graph although a few nodes in the other direction are
        // enough.
        let mut limit = 64;
        loop {
            if let Some(follow) = self.follow_behind(&after, limit).or_else(|| self.follow_ahead(&after, limit)) {
                return after.into_iter().filter(|(earlier, _)| !follow.contains(earlier)).collect();
            }
            limit *= 4;
        }
    }

    /// Those of these nodes that another of them comes after, directly or not, and that must have reached the same
    /// state for it. Searches the nodes that these come after. `None` if more than `limit` edges would be visited.
    fn follow_behind(&mut self, nodes: &BTreeMap<usize, Until>, mut limit: usize) -> Option<BTreeSet<usize>> {
        let low = nodes.keys().map(|node| self.place[*node]).min()?;
        let mut follow = BTreeSet::new();
        let mut open: Vec<usize> = nodes.keys().copied().collect();
        self.searches += 1;
        open.iter().for_each(|node| self.found[*node] = self.searches);
        while let Some(node) = open.pop() {
            for &(earlier, until) in self.after[node].iter().take_while(|(earlier, _)| self.place[*earlier] >= low) {
                limit = limit.checked_sub(1)?;
                if nodes.get(&earlier).is_some_and(|needed| until >= *needed) {
                    follow.insert(earlier);
                }
                if std::mem::replace(&mut self.found[earlier], self.searches) != self.searches {
                    open.push(earlier);
                }
            }
        }
        Some(follow)
    }

    /// The same as [`Acyclic::follow_behind`], but searches from each of these nodes for another one that comes after
    /// it.
    fn follow_ahead(&mut self, nodes: &BTreeMap<usize, Until>, mut limit: usize) -> Option<BTreeSet<usize>> {
        let high = nodes.keys().map(|node| self.place[*node]).max()?;
        let mut follow = BTreeSet::new();
        for (start, needed) in nodes {
            self.searches += 1;
            let mut open = vec![*start];
            'search: while let Some(node) = open.pop() {
                for &(later, until) in self.before[node].iter().take_while(|(later, _)| self.place[*later] <= high) {
                    limit = limit.checked_sub(1)?;
                    // The edges of the node itself say which state it must reach.
                    if node == *start && until < *needed {
                        continue;
                    }
                    if nodes.contains_key(&later) {
                        follow.insert(*start);
                        break 'search;
                    }
                    if std::mem::replace(&mut self.found[later], self.searches) != self.searches {
                        open.push(later);
                    }
                }
            }
        }
        Some(follow)
    }
}

/// The indices of the edges that close a cycle with required ones and those before them.
fn left_out(edges: &[OrderEdge], required: usize, count: usize) -> Result<Vec<usize>, Vec<usize>> {
    let component = components(edges, count);
    let mut inner: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, edge) in edges.iter().enumerate() {
        if component[edge.later] == component[edge.earlier] {
            inner.entry(component[edge.later]).or_default().push(index);
        }
    }
    let mut left_out = Vec::new();
    for indices in inner.into_values() {
        let nodes: BTreeSet<usize> =
            indices.iter().flat_map(|index| [edges[*index].later, edges[*index].earlier]).collect();
        let numbers: HashMap<usize, usize> = nodes.into_iter().zip(0..).collect();
        let renumbered = |index: &usize| {
            let edge = edges[*index];
            OrderEdge { later: numbers[&edge.later], earlier: numbers[&edge.earlier], ..edge }
        };
        let (first, rest) = indices.split_at(indices.partition_point(|index| *index < required));
        let mut graph = Acyclic::new(first.iter().map(renumbered), &vec![(); numbers.len()])?;
        left_out.extend(rest.iter().filter(|index| !graph.add(renumbered(index))));
    }
    left_out.sort_unstable();
    Ok(left_out)
}

/// The strongly connected component of each node, as the number of one of its nodes.
fn components(edges: &[OrderEdge], count: usize) -> Vec<usize> {
    let (mut after, mut before) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for OrderEdge { later, earlier, .. } in edges {
        after[*later].push(*earlier);
        before[*earlier].push(*later);
    }
    let (mut finished, mut seen) = (Vec::with_capacity(count), vec![false; count]);
    for start in 0..count {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let mut path = vec![(start, 0)];
        while let Some((node, next)) = path.last_mut() {
            if let Some(earlier) = after[*node].get(*next) {
                *next += 1;
                if !std::mem::replace(&mut seen[*earlier], true) {
                    path.push((*earlier, 0));
                }
            } else {
                finished.push(*node);
                path.pop();
            }
        }
    }
    let mut component = vec![usize::MAX; count];
    for start in finished.into_iter().rev() {
        let mut open = vec![start];
        while let Some(node) = open.pop() {
            if component[node] == usize::MAX {
                component[node] = start;
                open.extend(&before[node]);
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(later: usize, earlier: usize, until: Until) -> OrderEdge {
        OrderEdge { later, earlier, until }
    }

    fn written(pairs: &[(usize, usize)]) -> Vec<OrderEdge> {
        pairs.iter().map(|(later, earlier)| edge(*later, *earlier, Until::Written)).collect()
    }

    #[test]
    fn an_edge_is_added_unless_it_closes_a_cycle() {
        // The keys put each node after those that come after it.
        let mut graph = Acyclic::new(std::iter::empty(), &[0; 5]).expect("no cycle");
        for edge in written(&[(0, 1), (1, 2), (2, 3), (3, 4)]) {
            assert!(graph.add(edge));
        }
        for edge in written(&[(4, 0), (3, 1), (2, 2)]) {
            assert!(!graph.add(edge), "{edge:?}");
        }
        assert!(graph.add(edge(0, 4, Until::Written)));
        assert_eq!(graph.place, [4, 3, 2, 1, 0]);
    }

    /// The node and all nodes that it comes after.
    fn reached(edges: &[OrderEdge], node: usize) -> BTreeSet<usize> {
        let (mut reached, mut open) = (BTreeSet::new(), vec![node]);
        while let Some(node) = open.pop() {
            if reached.insert(node) {
                open.extend(edges.iter().filter(|edge| edge.later == node).map(|edge| edge.earlier));
            }
        }
        reached
    }

    /// Lists of random edges between 12 nodes, from few to many: with one or several components, or none.
    fn random() -> impl Iterator<Item = Vec<OrderEdge>> {
        let mut random = 7u64;
        let mut below = move |most: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % most
        };
        let untils = [Until::Written, Until::Served, Until::Ready];
        (0..300).map(move |_| (0..5 + below(35)).map(|_| edge(below(12), below(12), untils[below(3)])).collect())
    }

    #[test]
    fn edges_in_any_order_are_judged_as_by_a_search_of_the_whole_graph() {
        let (mut graphs, mut cycles) = (0, 0);
        for edges in random() {
            for required in [0, 3] {
                let (mut kept, mut expected, mut is_cycle) = (Vec::new(), Vec::new(), false);
                for (index, edge) in edges.iter().enumerate() {
                    let fits = !reached(&kept, edge.earlier).contains(&edge.later);
                    is_cycle |= !fits && index < required;
                    if fits { kept.push(*edge) } else { expected.push(index) }
                }
                match Acyclic::without_cycles(&edges, required, &[0; 12]) {
                    Ok((graph, left_out)) => {
                        assert_eq!((is_cycle, left_out), (false, expected), "{edges:?}");
                        assert!(kept.iter().all(|edge| graph.place[edge.later] > graph.place[edge.earlier]));
                        graphs += 1;
                    }
                    Err(cycle) => {
                        assert!(is_cycle && cycle.first() == cycle.last(), "{cycle:?} {edges:?}");
                        cycles += 1;
                    }
                }
            }
        }
        assert!(graphs > 300 && cycles > 30, "{graphs} {cycles}");
    }

    #[test]
    fn edges_that_follow_from_others_are_found_as_by_a_search_for_each_of_them() {
        for edges in random() {
            let (mut graph, left_out) = Acyclic::without_cycles(&edges, 0, &[0; 12]).expect("an order");
            let kept = edges.iter().enumerate().filter(|(index, _)| !left_out.contains(index));
            let kept: Vec<OrderEdge> = kept.map(|(_, edge)| *edge).collect();
            let found = graph.direct_edges();
            for (node, found) in found.into_iter().enumerate() {
                let mut after: BTreeMap<usize, Until> = BTreeMap::new();
                for edge in kept.iter().filter(|edge| edge.later == node) {
                    let known = after.entry(edge.earlier).or_insert(edge.until);
                    *known = edge.until.max(*known);
                }
                let all: BTreeSet<usize> = after.keys().flat_map(|earlier| reached(&kept, *earlier)).collect();
                let follows = |earlier: usize, until: Until| {
                    kept.iter().any(|edge| all.contains(&edge.later) && edge.earlier == earlier && edge.until >= until)
                };
                let (follow, direct): (BTreeMap<usize, Until>, BTreeMap<usize, Until>) =
                    after.iter().partition(|(earlier, until)| follows(**earlier, **until));
                assert_eq!(found, direct.into_iter().collect::<Vec<_>>(), "{node} of {edges:?}");
                // Neither direction depends on the other one.
                let follow: BTreeSet<usize> = follow.into_keys().collect();
                if !after.is_empty() {
                    assert_eq!(graph.follow_behind(&after, usize::MAX).as_ref(), Some(&follow), "{node} of {edges:?}");
                    assert_eq!(graph.follow_ahead(&after, usize::MAX).as_ref(), Some(&follow), "{node} of {edges:?}");
                }
            }
        }
    }

    #[test]
    fn edges_that_follow_from_others_are_left_out_unless_they_wait_for_readiness() {
        let edges = [
            edge(1, 0, Until::Written),
            edge(2, 1, Until::Written),
            edge(2, 0, Until::Written),
            edge(3, 2, Until::Written),
            edge(3, 0, Until::Ready),
            edge(3, 1, Until::Written),
            edge(3, 2, Until::Served),
        ];
        let (mut graph, left_out) = Acyclic::without_cycles(&edges, 0, &[0; 4]).expect("no cycle");
        assert_eq!(left_out, [0; 0]);
        let direct = graph.direct_edges();
        assert_eq!(direct[2], [(1, Until::Written)]);
        assert_eq!(direct[3], [(0, Until::Ready), (2, Until::Served)]);
    }

    #[test]
    fn a_cycle_is_listed_from_its_start_back_to_its_start() {
        let edges = written(&[(0, 1), (1, 2), (2, 1), (3, 2)]);
        assert_eq!(Acyclic::without_cycles(&edges, 4, &[0; 4]).err().expect("a cycle"), [2, 1, 2]);
    }
}
