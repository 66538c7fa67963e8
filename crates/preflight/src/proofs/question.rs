//! The question for a prover, and its answer.
//!
//! Rules compare keywords; a proof decides whether objects break. `CRDUpgradeSafety` combines the two (`decide`). If
//! both are undecided, `failMode` decides.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use serde_json::Value;

use gantry_core::crd::{ConversionStrategy, Crd};
use gantry_core::finding::{Breaks, Verdict, Witness};
use gantry_k8s_cel::KubernetesRelease;
pub use gantry_proof::ChangeOrigin;
use gantry_proof::Limits;
use gantry_schema::ScalePaths;

/// One version that both CRDs have.
#[derive(Debug, Clone, Copy)]
pub struct VersionPairQuestion<'a> {
    pub group: &'a str,
    pub kind: &'a str,
    pub version: &'a str,
    pub namespaced: bool,
    /// Whether the desired CRD serves it. If not, nothing is written at it: its schema prunes and defaults what is
    /// stored, and validates nothing.
    pub served: bool,
    /// `openAPIV3Schema`, as JSON text.
    pub live_schema: &'a str,
    pub desired_schema: &'a str,
    /// Whether the version has the status subresource.
    pub live_status: bool,
    pub desired_status: bool,
    /// The fields that the scale subresource reads, in live and in desired.
    pub scale: [&'a ScalePaths; 2],
    /// The number of versions that both CRDs have, which share the limits.
    pub versions: usize,
    /// Where live and desired store the objects of the version, if that is another version and no webhook converts.
    pub stored: [Option<StoredAt<'a>>; 2],
}

/// The version at which a CRD stores the objects of its other versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredAt<'a> {
    pub version: &'a str,
    /// Its `openAPIV3Schema`, as JSON text.
    pub schema: &'a str,
}

impl<'a> StoredAt<'a> {
    /// For each side, where the objects of a version are stored.
    pub fn of_sides(live: &'a Crd, desired: &'a Crd, version: &str) -> [Option<Self>; 2] {
        // A manifest without a conversion keeps the live one.
        let is_webhook = |crd: &Crd| crd.strategy().or(live.strategy()) == Some(ConversionStrategy::Webhook);
        if [live, desired].into_iter().any(is_webhook) || live.preserve_unknown_fields {
            return [None; 2];
        }
        [live, desired].map(|crd| {
            let storage = crd.storage().filter(|storage| *storage.name != *version)?;
            Some(StoredAt { version: &storage.name, schema: storage.schema()? })
        })
    }
}

/// What is proven about a version, or about one node in it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeProof {
    pub verdict: Verdict,
    /// The reason for the verdict, or why it is undecided.
    pub reason: Option<String>,
    pub breaks: Vec<Breaks>,
    pub witnesses: Vec<Witness>,
}

impl ChangeProof {
    /// Whether it is proven that no object breaks.
    pub fn is_harmless(&self) -> bool {
        matches!(self.verdict, Verdict::Equal | Verdict::Widening)
    }

    /// Combines the proof about a node with those about nodes below it: the worst verdict, and everyone affected by any
    /// of them.
    pub fn heaviest(own: &ChangeProof, below: &[&ChangeProof]) -> ChangeProof {
        let weight = |proof: &ChangeProof| match proof.verdict {
            Verdict::DataLoss => 6,
            _ if proof.breaks == [Breaks::Behaviour] => 2,
            Verdict::Incomparable => 5,
            Verdict::Narrowing => 4,
            Verdict::Undecided => 3,
            Verdict::Widening => 1,
            Verdict::Equal => 0,
        };
        let heaviest = below.iter().copied().fold(own, |most, one| if weight(one) > weight(most) { one } else { most });
        let breaks = all_breaks(below.iter().copied().chain([own]));
        // An undecided node can break more than the known changes.
        let breaks = if heaviest.verdict == Verdict::Undecided { heaviest.breaks.clone() } else { breaks };
        ChangeProof { breaks, ..heaviest.clone() }
    }
}

/// What any of these breaks, each once.
fn all_breaks<'p>(proofs: impl IntoIterator<Item = &'p ChangeProof>) -> Vec<Breaks> {
    let mut breaks: Vec<Breaks> = proofs.into_iter().flat_map(|proof| proof.breaks.iter().copied()).collect();
    breaks.sort_unstable();
    breaks.dedup();
    breaks
}

/// What is proven about a version.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionProof {
    pub whole: ChangeProof,
    /// The proofs about changed nodes, by path (`^.spec.pollInterval`).
    pub nodes: BTreeMap<String, ChangeProof>,
    /// The paths of those in `nodes` whose proof also covers all nodes below.
    pub of_all_below: BTreeSet<String>,
    /// For a node that breaks and that both sides have: what each of its changes does, by path.
    pub parts: BTreeMap<String, Vec<ChangePartProof>>,
    /// Whether every node was compared, so that a node not in `nodes` has the same meaning as before.
    pub is_complete: bool,
    /// The paths of the nodes at which desired keeps a null that live drops, if it is not known that nothing around them
    /// refuses it.
    pub open_nulls: BTreeSet<String>,
    /// The objects among the witnesses that desired refuses as they are sent, and not as live stores them, with the
    /// defaults that it fills in.
    pub hidden: Vec<Value>,
}

/// What is proven about a part of what changes at a node.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangePartProof {
    pub origin: ChangeOrigin,
    pub proof: ChangeProof,
}

impl ChangePartProof {
    /// Whether it is about the change of such a keyword of the node.
    pub fn is_of(&self, is_changed: &dyn Fn(&str) -> bool) -> bool {
        match &self.origin {
            ChangeOrigin::Node => true,
            ChangeOrigin::Keywords(keywords) => keywords.iter().any(|keyword| is_changed(keyword)),
            ChangeOrigin::OtherNodes => false,
        }
    }
}

/// The proof about a node whose meaning does not change.
static SAME: ChangeProof =
    ChangeProof { verdict: Verdict::Equal, reason: None, breaks: Vec::new(), witnesses: Vec::new() };

impl VersionProof {
    /// Adds what is proven about a node, unless it is known to break already.
    pub(super) fn add(&mut self, path: String, origin: ChangeOrigin, proof: ChangeProof) {
        if let Some(known) = self.nodes.get_mut(&path).filter(|known| !known.is_harmless()) {
            let is_undecided = known.verdict == Verdict::Undecided;
            if known.breaks != [Breaks::Behaviour] && (!is_undecided || proof.verdict == Verdict::Undecided) {
                // What it breaks beside what is known of it.
                known.breaks = all_breaks([known, &proof]);
                return;
            }
        }
        if self.whole.is_harmless() || self.whole.verdict == Verdict::Undecided || proof.verdict != Verdict::Undecided {
            self.add_to_whole(&proof);
        }
        let known = self.known_break(&path);
        let whole = match &known {
            // What it may break stays open.
            Some(known) if known.verdict == Verdict::Undecided => {
                let reasons: Vec<&str> =
                    [&proof.reason, &known.reason].into_iter().flatten().map(String::as_str).collect();
                ChangeProof { breaks: all_breaks([&proof, known]), reason: Some(reasons.join("; ")), ..proof.clone() }
            }
            _ => proof.clone(),
        };
        self.parts_beside(&path, known).push(ChangePartProof { origin, proof });
        self.nodes.insert(path, whole);
    }

    /// Adds what is proven about the change of a keyword of a node, whatever else is known of the node.
    pub(super) fn add_of_keyword(&mut self, path: &str, keyword: &str, proof: ChangeProof) {
        self.add_to_whole(&proof);
        let known = self.known_break(path);
        let of_node = ChangeProof::heaviest(&proof, &known.iter().collect::<Vec<_>>());
        let origin = ChangeOrigin::Keywords(vec![keyword.to_owned()]);
        self.parts_beside(path, known).insert(0, ChangePartProof { origin, proof });
        self.nodes.insert(path.to_owned(), of_node);
    }

    fn add_to_whole(&mut self, proof: &ChangeProof) {
        self.whole = ChangeProof { witnesses: Vec::new(), ..ChangeProof::heaviest(&self.whole, &[proof]) };
    }

    /// What is known of a node, if that breaks anything.
    fn known_break(&self, path: &str) -> Option<ChangeProof> {
        self.nodes.get(path).filter(|known| !known.is_harmless()).cloned()
    }

    /// The parts of what changes at a node, to add another one. What is `known` of the node is the first of them.
    fn parts_beside(&mut self, path: &str, known: Option<ChangeProof>) -> &mut Vec<ChangePartProof> {
        let parts = self.parts.entry(path.to_owned()).or_default();
        if let (true, Some(proof)) = (parts.is_empty(), known) {
            parts.push(ChangePartProof { origin: ChangeOrigin::Node, proof });
        }
        parts
    }

    /// A proof that the version changes nothing for any object.
    pub fn harmless() -> Self {
        VersionProof {
            whole: SAME.clone(),
            nodes: BTreeMap::new(),
            of_all_below: BTreeSet::new(),
            parts: BTreeMap::new(),
            is_complete: true,
            open_nulls: BTreeSet::new(),
            hidden: Vec::new(),
        }
    }

    /// All proofs about nodes and their parts.
    pub fn proofs_mut(&mut self) -> impl Iterator<Item = &mut ChangeProof> {
        let of_parts = self.parts.values_mut().flatten().map(|part| &mut part.proof);
        self.nodes.values_mut().chain(of_parts)
    }

    /// The proof about the change of some keywords of a node. If it is not known by itself: that about the whole node.
    pub fn of_change(&self, path: &str, is_changed: &dyn Fn(&str) -> bool) -> Option<ChangeProof> {
        let Some(parts) = self.parts.get(path).filter(|_| self.is_complete) else { return self.of_node(path).cloned() };
        let own: Vec<&ChangeProof> =
            parts.iter().filter(|part| part.is_of(is_changed)).map(|part| &part.proof).collect();
        // A keyword that means the same for every object has no part.
        let values = || self.nodes.get(&format!("{path}.additionalProperties"));
        let (first, rest) = match own.split_first() {
            Some((first, rest)) => (*first, rest),
            None => (values().filter(|_| is_changed("additionalProperties")).unwrap_or(&SAME), &[][..]),
        };
        Some(ChangeProof::heaviest(first, rest))
    }

    /// The proof that covers a node: of the node itself, of an ancestor that covers it, of the whole version if that is
    /// harmless, or of the values of its map. If there is none, but every node was compared, the node does not change.
    pub fn of_node(&self, path: &str) -> Option<&ChangeProof> {
        let above = || self.ancestor_path(path).and_then(|above| self.nodes.get(above));
        let whole = || matches!(self.whole.verdict, Verdict::Equal | Verdict::Widening).then_some(&self.whole);
        let values = || self.nodes.get(&format!("{path}.additionalProperties"));
        let same = || self.is_complete.then_some(&SAME);
        self.nodes.get(path).or_else(above).or_else(whole).or_else(values).or_else(same)
    }

    /// The ancestor whose proof covers this node.
    fn ancestor_path<'p>(&self, path: &'p str) -> Option<&'p str> {
        let ends = path.char_indices().filter(|(_, character)| *character == '.').map(|(at, _)| &path[..at]);
        ends.filter(|_| !self.of_all_below.is_empty()).find(|above| self.of_all_below.contains(*above))
    }
}

/// Proves what a change of a schema does to objects.
pub trait Prover: Debug + Send + Sync {
    /// The release of the server that the proofs are about.
    fn release(&self) -> KubernetesRelease {
        KubernetesRelease::default()
    }

    /// `None` if nothing can be proven at all.
    fn prove(&self, question: &VersionPairQuestion<'_>, limits: Limits) -> Option<VersionProof>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_was_not_compared_has_the_proof_of_the_node_above_it() {
        let proof = |verdict| ChangeProof { verdict, ..SAME.clone() };
        let nodes =
            [("^.spec.a", Verdict::DataLoss), ("^.spec.a.d", Verdict::Narrowing), ("^.spec.b", Verdict::Narrowing)];
        let version = VersionProof {
            whole: proof(Verdict::DataLoss),
            nodes: nodes.map(|(path, verdict)| (path.to_owned(), proof(verdict))).into(),
            of_all_below: ["^.spec.a".to_owned()].into(),
            parts: BTreeMap::new(),
            is_complete: true,
            open_nulls: BTreeSet::new(),
            hidden: Vec::new(),
        };
        let verdict = |path: &str| version.of_node(path).map(|proof| proof.verdict);
        assert_eq!(verdict("^.spec.a.items.c"), Some(Verdict::DataLoss));
        assert_eq!(verdict("^.spec.a.d"), Some(Verdict::Narrowing));
        assert_eq!(verdict("^.spec.b.c"), Some(Verdict::Equal));
        assert_eq!(verdict("^.spec.ab"), Some(Verdict::Equal));
    }
}
