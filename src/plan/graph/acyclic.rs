//! A directed graph without cycles. Adding an edge is cheap if the current order allows it; otherwise, only the nodes between
//! the two are visited. Source: Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic
//! graphs".

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

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
pub struct Edge {
    pub later: usize,
    pub earlier: usize,
    pub until: Until,
}

pub struct Acyclic {
    /// For each node, the nodes that it comes after. A node can occur more than once.
    after: Vec<Vec<(usize, Until)>>,
    /// For each node, the nodes that come after it.
    before: Vec<Vec<usize>>,
    /// For each node, its place in a topological order.
    place: Vec<usize>,
    /// For each node, the number of the last search that found it.
    found: Vec<usize>,
    searches: usize,
}

impl Acyclic {
    /// A graph with these edges, whose topological order follows these keys where the edges allow it.
    ///
    /// # Errors
    /// The edges form a cycle. Each of the nodes comes after the next one; the last one repeats the first one.
    pub fn new<K: Ord>(edges: impl Iterator<Item = Edge>, keys: &[K]) -> Result<Self, Vec<usize>> {
        let count = keys.len();
        let mut graph = Acyclic {
            after: vec![Vec::new(); count],
            before: vec![Vec::new(); count],
            place: vec![usize::MAX; count],
            found: vec![0; count],
            searches: 0,
        };
        for Edge { later, earlier, until } in edges {
            graph.push(later, earlier, until);
        }
        let mut missing: Vec<usize> = graph.after.iter().map(Vec::len).collect();
        let entry = |node: usize| Reverse((&keys[node], node));
        let mut free: BinaryHeap<_> = (0..count).filter(|node| missing[*node] == 0).map(entry).collect();
        let mut next = 0;
        while let Some(Reverse((_, node))) = free.pop() {
            graph.place[node] = next;
            next += 1;
            for later in &graph.before[node] {
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

    fn push(&mut self, later: usize, earlier: usize, until: Until) {
        self.after[later].push((earlier, until));
        self.before[earlier].push(later);
    }

    /// Adds an edge. Returns false and adds nothing if it would close a cycle.
    pub fn add(&mut self, Edge { later, earlier, until }: Edge) -> bool {
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
        self.push(later, earlier, until);
        true
    }

    /// `start` and the nodes that can be reached from it through nodes whose places fit; `None` if `end` is one of them.
    fn search<E: Copy + Target>(
        &mut self,
        start: usize,
        end: Option<usize>,
        next: impl Fn(&Self, usize) -> &Vec<E>,
        fits: impl Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        self.searches += 1;
        self.found[start] = self.searches;
        let (mut all, mut at) = (vec![start], 0);
        while at < all.len() {
            for edge in 0..next(self, all[at]).len() {
                let node = next(self, all[at])[edge].node();
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
    pub fn direct(&mut self) -> Vec<Vec<(usize, Until)>> {
        (0..self.after.len()).map(|node| self.direct_of(node)).collect()
    }

    fn direct_of(&mut self, node: usize) -> Vec<(usize, Until)> {
        let mut after: BTreeMap<usize, Until> = BTreeMap::new();
        for &(earlier, until) in &self.after[node] {
            let known = after.entry(earlier).or_insert(until);
            *known = until.max(*known);
        }
        let Some(low) = after.keys().map(|earlier| self.place[*earlier]).min() else { return Vec::new() };
        if after.len() == 1 {
            return after.into_iter().collect();
        }
        // The edges that follow from others: each node that any of them comes after, and the state it must reach for that.
        self.searches += 1;
        let mut follows: BTreeMap<usize, Until> = BTreeMap::new();
        let mut all: Vec<usize> = after.keys().copied().collect();
        while let Some(other) = all.pop() {
            if self.found[other] == self.searches {
                continue;
            }
            self.found[other] = self.searches;
            for &(earlier, until) in self.after[other].iter().filter(|(earlier, _)| self.place[*earlier] >= low) {
                if after.contains_key(&earlier) {
                    let known = follows.entry(earlier).or_insert(until);
                    *known = until.max(*known);
                }
                all.push(earlier);
            }
        }
        let follows = |(earlier, until): &(usize, Until)| follows.get(earlier).is_some_and(|known| known >= until);
        after.into_iter().filter(|edge| !follows(edge)).collect()
    }
}

/// The node at the other end of an edge.
trait Target {
    fn node(self) -> usize;
}

impl Target for usize {
    fn node(self) -> usize {
        self
    }
}

impl Target for (usize, Until) {
    fn node(self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(later: usize, earlier: usize) -> Edge {
        Edge { later, earlier, until: Until::Written }
    }

    fn graph(count: usize) -> Acyclic {
        Acyclic::new(std::iter::empty(), &vec![0; count]).expect("no cycle")
    }

    #[test]
    fn an_edge_is_added_unless_it_closes_a_cycle() {
        // The keys put each node after those that come after it.
        let mut graph = graph(5);
        for (later, earlier) in [(0, 1), (1, 2), (2, 3), (3, 4)] {
            assert!(graph.add(edge(later, earlier)));
        }
        for (later, earlier) in [(4, 0), (3, 1), (2, 2)] {
            assert!(!graph.add(edge(later, earlier)), "{later} after {earlier}");
        }
        assert!(graph.add(edge(0, 4)));
        assert_eq!(graph.place, [4, 3, 2, 1, 0]);
    }

    /// Compared with a search of all paths.
    #[test]
    fn edges_in_any_order_are_judged_as_by_a_search_of_the_whole_graph() {
        let mut random = 7u64;
        for _ in 0..200 {
            let (count, mut graph) = (12, graph(12));
            let mut edges: Vec<(usize, usize)> = Vec::new();
            for _ in 0..40 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (later, earlier) = ((random >> 33) as usize % count, (random >> 45) as usize % count);
                let mut reached = vec![earlier];
                let mut at = 0;
                while at < reached.len() {
                    let node = reached[at];
                    reached.extend(edges.iter().filter(|(from, _)| *from == node).map(|(_, to)| *to));
                    at += 1;
                }
                let fits = !reached.contains(&later);
                assert_eq!(graph.add(edge(later, earlier)), fits, "{later} after {earlier}: {edges:?}");
                if fits {
                    edges.push((later, earlier));
                }
                assert!(edges.iter().all(|(later, earlier)| graph.place[*later] > graph.place[*earlier]));
            }
        }
    }

    #[test]
    fn what_follows_from_other_edges_is_left_out_but_for_what_has_to_be_ready() {
        let mut graph = graph(4);
        for (later, earlier, until) in [
            (1, 0, Until::Written),
            (2, 1, Until::Written),
            (2, 0, Until::Written),
            (3, 2, Until::Written),
            (3, 0, Until::Ready),
            (3, 1, Until::Written),
            (3, 2, Until::Served),
        ] {
            assert!(graph.add(Edge { later, earlier, until }));
        }
        let direct = graph.direct();
        assert_eq!(direct[2], [(1, Until::Written)]);
        assert_eq!(direct[3], [(0, Until::Ready), (2, Until::Served)]);
    }

    #[test]
    fn a_cycle_is_told_from_its_start_to_its_start() {
        let edges = [(0, 1), (1, 2), (2, 1), (3, 2)].map(|(later, earlier)| edge(later, earlier));
        assert_eq!(Acyclic::new(edges.into_iter(), &[0; 4]).err().expect("a cycle"), [2, 1, 2]);
    }
}
