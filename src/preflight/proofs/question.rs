//! The question that is put to a proof layer, and the shape of its answer.
//!
//! Rules look at keywords; whether an object breaks is another question. `CRDUpgradeSafety` puts the two together
//! (`decide`). What nobody decides falls to `failMode`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use crate::finding::{Breaks, Verdict, Witness};
use gantry_proof::Limits;
use gantry_schema::Scale;

/// One version that both CRDs have.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub group: &'a str,
    pub kind: &'a str,
    pub version: &'a str,
    pub namespaced: bool,
    /// `openAPIV3Schema`, as JSON text.
    pub live_schema: &'a str,
    pub desired_schema: &'a str,
    /// Whether the version has the status subresource.
    pub live_status: bool,
    pub desired_status: bool,
    /// What the scale subresource of both reads.
    pub scale: &'a Scale,
    /// How many versions both CRDs have: they share what may be spent.
    pub versions: usize,
}

/// What is proven of a version, or of one node in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    pub verdict: Verdict,
    /// Why it is undecided, or what makes it so.
    pub reason: Option<String>,
    pub breaks: Vec<Breaks>,
    pub witnesses: Vec<Witness>,
}

impl Proof {
    /// Whether every object is proven to fare as it does today.
    pub fn is_harmless(&self) -> bool {
        matches!(self.verdict, Verdict::Equal | Verdict::Widening)
    }

    /// What is proven of a node together with nodes below it: what breaks most, and everyone whom any of it breaks.
    pub fn heaviest(own: &Proof, below: &[&Proof]) -> Proof {
        let weight = |proof: &Proof| match proof.verdict {
            Verdict::DataLoss => 6,
            _ if proof.breaks == [Breaks::Behaviour] => 2,
            Verdict::Incomparable => 5,
            Verdict::Narrowing => 4,
            Verdict::Undecided => 3,
            Verdict::Widening => 1,
            Verdict::Equal => 0,
        };
        let heaviest = below.iter().copied().fold(own, |most, one| if weight(one) > weight(most) { one } else { most });
        let all = || below.iter().copied().chain([own]);
        let mut breaks: Vec<Breaks> = all().flat_map(|proof| proof.breaks.iter().copied()).collect();
        breaks.sort_unstable();
        breaks.dedup();
        // What is undecided may break more than what is known to change.
        let breaks = if heaviest.verdict == Verdict::Undecided { heaviest.breaks.clone() } else { breaks };
        Proof { breaks, ..heaviest.clone() }
    }
}

/// What is proven of a version.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionProof {
    pub whole: Proof,
    /// By path (`^.spec.pollInterval`), for nodes that changed.
    pub nodes: BTreeMap<String, Proof>,
    /// The paths of those among `nodes` that speak for all nodes below as well.
    pub of_all_below: BTreeSet<String>,
    /// Whether every node was looked at, so that one that is not among `nodes` means the same for every object.
    pub is_complete: bool,
}

/// What is proven of a node that means what it meant.
static SAME: Proof = Proof { verdict: Verdict::Equal, reason: None, breaks: Vec::new(), witnesses: Vec::new() };

impl VersionProof {
    /// What is proven of a node: of the node itself, of one above that speaks for it, of the values of its map, else what
    /// holds for the whole version.
    pub fn of(&self, path: &str) -> Option<&Proof> {
        let above = || self.above(path).and_then(|above| self.nodes.get(above));
        let whole = || matches!(self.whole.verdict, Verdict::Equal | Verdict::Widening).then_some(&self.whole);
        let values = || self.nodes.get(&format!("{path}.additionalProperties"));
        let same = || self.is_complete.then_some(&SAME);
        self.nodes.get(path).or_else(above).or_else(whole).or_else(values).or_else(same)
    }

    /// The node above that speaks for this one.
    fn above<'p>(&self, path: &'p str) -> Option<&'p str> {
        let ends = path.char_indices().filter(|(_, character)| *character == '.').map(|(at, _)| &path[..at]);
        ends.filter(|_| !self.of_all_below.is_empty()).find(|above| self.of_all_below.contains(*above))
    }
}

/// What knows what a change of a schema does to objects.
pub trait Prover: Debug + Send + Sync {
    /// `None` where nothing can be said at all.
    fn prove(&self, question: &Question<'_>, limits: Limits) -> Option<VersionProof>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_compared_has_the_proof_of_the_node_above_that_speaks_for_it() {
        let proof = |verdict| Proof { verdict, ..SAME.clone() };
        let nodes =
            [("^.spec.a", Verdict::DataLoss), ("^.spec.a.d", Verdict::Narrowing), ("^.spec.b", Verdict::Narrowing)];
        let version = VersionProof {
            whole: proof(Verdict::DataLoss),
            nodes: nodes.map(|(path, verdict)| (path.to_owned(), proof(verdict))).into(),
            of_all_below: ["^.spec.a".to_owned()].into(),
            is_complete: true,
        };
        let verdict = |path: &str| version.of(path).map(|proof| proof.verdict);
        assert_eq!(verdict("^.spec.a.items.c"), Some(Verdict::DataLoss));
        assert_eq!(verdict("^.spec.a.d"), Some(Verdict::Narrowing));
        assert_eq!(verdict("^.spec.b.c"), Some(Verdict::Equal));
        assert_eq!(verdict("^.spec.ab"), Some(Verdict::Equal));
    }
}
