//! Collects what the walks find out about each node, and derives the verdicts.

use std::collections::{BTreeMap, BTreeSet};

use gantry_schema::ratchet::RatchetingRefusals;
use serde_json::Value;

use crate::keywords as kw;
use crate::product::{ChangeOrigin, Changed, ExpectedEffect, Obligation, Unwalked, Walked};
use crate::solve::Solver;
use crate::witness::{CompiledSides, Settled};
use crate::{AffectedParty, Difference, NodeProof, PartProof, Proof, ProofWitness, SchemaRelation};

/// The maximum weight in bytes of a witness that is shown, and of all witnesses of one pair together. Larger ones are
/// left out; the verdict stays.
const MAX_WITNESS_WEIGHT: u64 = 2 << 20;
const MAX_WITNESSES_WEIGHT: u64 = 16 << 20;
/// The maximum length of a witness's message: the server lists all values of an `enum` and quotes the refused value.
pub const MAX_MESSAGE: usize = 4 << 10;
/// The maximum number of witnesses of one node.
const MAX_WITNESSES: usize = 3;

/// What was found out about one node.
#[derive(Default)]
struct NodeState {
    changes: BTreeSet<String>,
    /// The node's own keywords that differ.
    keywords: BTreeSet<String>,
    witnesses: Vec<ConfirmedWitness>,
    open: Vec<(ChangeOrigin, String)>,
    /// Of the keywords that break nothing: those whose change alone accepts more.
    widening: BTreeSet<String>,
    /// What is unproven or refuted in the other direction.
    backward_open: Vec<ChangeOrigin>,
    /// Witnesses in the other direction.
    reverse: Vec<ConfirmedWitness>,
}

/// A witness that the validator confirmed.
struct ConfirmedWitness {
    witness: ProofWitness,
    reason: String,
    is_shown: bool,
    origin: ChangeOrigin,
}

/// Whether there is room to show the witness. A witness that is not shown is emptied.
fn has_room_to_show(witness: &mut ProofWitness, together: &mut u64) -> bool {
    if let Some((end, _)) = witness.message.char_indices().nth(MAX_MESSAGE) {
        witness.message.truncate(end);
        witness.message.push('…');
    }
    let weight = kw::weight(&witness.object) + witness.old_object.as_ref().map_or(0, kw::weight);
    let is_shown = weight <= MAX_WITNESS_WEIGHT && *together + weight <= MAX_WITNESSES_WEIGHT;
    if is_shown {
        *together += weight;
    } else {
        witness.object = Value::Null;
        witness.old_object = witness.old_object.is_some().then_some(Value::Null);
    }
    is_shown
}

/// What was found out about all nodes.
#[derive(Default)]
pub struct NodeStates {
    by_path: BTreeMap<String, NodeState>,
    notes: Vec<(String, String)>,
    /// The paths of nodes where live accepts anything: their verdict covers all nodes below.
    pub summed_up: BTreeSet<String>,
    is_cut: bool,
    pub steps: u64,
    /// The total weight of the witnesses that are shown.
    shown: u64,
}

impl NodeStates {
    /// Settles what a walk found. Returns the nodes whose parts still have to be compared: those that do not break
    /// themselves.
    pub fn add_forward<'s>(
        &mut self,
        sides: &CompiledSides,
        solver: &Solver<'s>,
        walked: Walked<'s>,
    ) -> Vec<Unwalked<'s>> {
        for Changed { path, words, keywords } in walked.changed {
            let known = self.by_path.entry(path).or_default();
            known.changes.insert(words);
            known.keywords.extend(keywords);
        }
        self.notes.extend(walked.notes);
        self.is_cut |= walked.is_cut;
        let mut settled: BTreeMap<String, Vec<Obligation>> = BTreeMap::new();
        for obligation in walked.obligations {
            settled.entry(obligation.path.clone()).or_default().push(obligation);
        }
        for (path, mut obligations) in settled {
            // Data loss matters most.
            obligations.sort_by_key(|obligation| obligation.effect);
            let known = self.by_path.entry(path).or_default();
            for obligation in obligations {
                // One change can break in many ways; another change of the node is judged by itself.
                if known.witnesses.iter().filter(|found| found.origin == obligation.origin).count() >= MAX_WITNESSES {
                    continue;
                }
                match solver.with_share(6, || sides.settle_obligation(solver, &obligation)) {
                    Settled::Confirmed(mut witness) => {
                        let is_lost = witness.is_lost_to_another_change;
                        if is_lost {
                            witness.desired = Difference::Refused;
                        }
                        witness.refused_updates = sides.refused_updates(solver, &witness);
                        let is_shown = !is_lost && has_room_to_show(&mut witness, &mut self.shown);
                        known.witnesses.push(ConfirmedWitness {
                            witness: *witness,
                            reason: obligation.reason,
                            is_shown,
                            origin: obligation.origin,
                        });
                    }
                    Settled::Unreachable => {}
                    Settled::Open(why) => {
                        known.open.push((obligation.origin, format!("{}: {why}", obligation.reason)));
                    }
                }
            }
        }
        self.summed_up.extend(walked.unwalked.iter().map(|node| node.path.clone()));
        // A changed default breaks less than what could be below.
        let is_breaking = |found: &ConfirmedWitness| found.witness.desired != Difference::Defaulted;
        let breaks = |path: &str| self.by_path.get(path).is_some_and(|known| known.witnesses.iter().any(is_breaking));
        walked.unwalked.into_iter().filter(|node| !breaks(&node.path)).collect()
    }

    /// The keywords that break nothing, of each node where another change does.
    pub fn harmless_beside_breaking(&self) -> BTreeMap<String, BTreeSet<String>> {
        let breaks = |known: &NodeState| !known.witnesses.is_empty() || !known.open.is_empty();
        let harmless = self.by_path.iter().filter(|(_, known)| breaks(known)).map(|(path, known)| {
            let keywords = known.keywords.iter().filter(|keyword| !known.is_breaking(keyword)).cloned().collect();
            (path.clone(), keywords)
        });
        harmless.filter(|(_, keywords): &(_, BTreeSet<String>)| !keywords.is_empty()).collect()
    }

    pub fn add_backward<'s>(&mut self, sides: &CompiledSides, solver: &Solver<'s>, walked: Walked<'s>) {
        // Whether desired accepts more matters only if something breaks.
        let mut is_shown = !self.by_path.values().any(|known| !known.witnesses.is_empty());
        for Changed { path, words, keywords } in walked.changed {
            // A node that the forward walk did not reach has no obligations, but that does not make it equal.
            let is_missed = self.is_cut && !self.by_path.contains_key(&path);
            let known = self.by_path.entry(path).or_default();
            if is_missed {
                known.open.push((ChangeOrigin::Node, "not compared: the step limit was reached".to_owned()));
            }
            if known.changes.is_empty() {
                known.changes.insert(words);
                known.keywords.extend(keywords);
            }
        }
        for (path, keyword) in walked.widening {
            self.by_path.entry(path).or_default().widening.insert(keyword);
        }
        for obligation in walked.obligations {
            let known = self.by_path.entry(obligation.path.clone()).or_default();
            let is_of_same = |found: &ConfirmedWitness| found.origin == obligation.origin;
            let is_asked = !known.witnesses.is_empty() && known.reverse.is_empty()
                || known.witnesses.iter().any(is_of_same) && !known.reverse.iter().any(is_of_same)
                || !is_shown;
            if obligation.effect == ExpectedEffect::Defaulted || !is_asked {
                known.backward_open.push(obligation.origin);
                continue;
            }
            match solver.with_share(6, || sides.settle_obligation(solver, &obligation)) {
                Settled::Confirmed(mut witness) if witness.desired != Difference::Defaulted => {
                    known.backward_open.push(obligation.origin.clone());
                    let is_kept = has_room_to_show(&mut witness, &mut self.shown);
                    known.reverse.push(ConfirmedWitness {
                        witness: *witness,
                        reason: obligation.reason,
                        is_shown: is_kept,
                        origin: obligation.origin,
                    });
                    is_shown = true;
                }
                Settled::Unreachable => {}
                _ => known.backward_open.push(obligation.origin),
            }
        }
    }

    pub fn finish(self) -> Proof {
        let mut nodes = Vec::new();
        let is_reverse_shown = self.by_path.values().any(|known| !known.reverse.is_empty());
        for (path, known) in self.by_path {
            let own = known.judged_where(|_| true);
            let breaks_nothing = matches!(own.verdict, SchemaRelation::Equal | SchemaRelation::Widening);
            let parts = if breaks_nothing { Vec::new() } else { known.parts() };
            let reason = match own.reason {
                reason if breaks_nothing && reason.is_empty() => {
                    known.changes.iter().cloned().collect::<Vec<_>>().join("; ")
                }
                reason => reason,
            };
            nodes.push(NodeProof {
                is_of_all_below: self.summed_up.contains(&path),
                path,
                verdict: own.verdict,
                reason,
                breaks: own.breaks,
                witnesses: own.witnesses,
                reverse: own.reverse,
                parts,
            });
        }
        let has = |verdict: SchemaRelation| nodes.iter().any(|node| node.verdict == verdict);
        let undecided = nodes.iter().find(|node| node.verdict == SchemaRelation::Undecided);
        let mut reason = String::new();
        let verdict = if has(SchemaRelation::DataLoss) {
            SchemaRelation::DataLoss
        } else if has(SchemaRelation::Incomparable) || has(SchemaRelation::Narrowing) && is_reverse_shown {
            SchemaRelation::Incomparable
        } else if has(SchemaRelation::Narrowing) {
            SchemaRelation::Narrowing
        } else if let Some(node) = undecided {
            reason = format!("{}: {}", node.path, node.reason);
            SchemaRelation::Undecided
        } else if has(SchemaRelation::Widening) {
            SchemaRelation::Widening
        } else {
            SchemaRelation::Equal
        };
        let breaks: BTreeSet<AffectedParty> = nodes.iter().flat_map(|node| node.breaks.iter().copied()).collect();
        Proof {
            verdict,
            reason,
            breaks: breaks.into_iter().collect(),
            nodes,
            notes: self.notes,
            is_complete: !self.is_cut,
            steps: self.steps,
        }
    }
}

impl NodeState {
    /// What each changed keyword does; empty if the node exists on one side only.
    fn parts(&self) -> Vec<PartProof> {
        if self.keywords.is_empty() {
            return Vec::new();
        }
        let of_witnesses = self.witnesses.iter().map(|found| &found.origin);
        let breaking: BTreeSet<&ChangeOrigin> =
            of_witnesses.chain(self.open.iter().map(|(origin, _)| origin)).collect();
        let harmless = self.keywords.iter().filter(|keyword| !self.is_breaking(keyword));
        let harmless = harmless.map(|keyword| {
            let is_wider = self.widening.contains(keyword);
            let verdict = if is_wider { SchemaRelation::Widening } else { SchemaRelation::Equal };
            PartProof { verdict, ..self.judged(ChangeOrigin::Keywords(vec![keyword.clone()])) }
        });
        breaking.iter().map(|origin| self.judged((*origin).clone())).chain(harmless).collect()
    }

    /// Whether something that breaks comes from the change of this keyword.
    fn is_breaking(&self, keyword: &String) -> bool {
        let is_of =
            |origin: &ChangeOrigin| matches!(origin, ChangeOrigin::Keywords(keywords) if keywords.contains(keyword));
        self.witnesses.iter().any(|found| is_of(&found.origin)) || self.open.iter().any(|(origin, _)| is_of(origin))
    }

    /// The verdict on what comes from one origin.
    fn judged(&self, origin: ChangeOrigin) -> PartProof {
        let is_meant = |known: &ChangeOrigin| *known == origin;
        let part = self.judged_where(is_meant);
        PartProof { origin, ..part }
    }

    /// The verdict on what comes from these origins.
    fn judged_where(&self, is_meant: impl Fn(&ChangeOrigin) -> bool) -> PartProof {
        let witnesses: Vec<&ConfirmedWitness> = self.witnesses.iter().filter(|found| is_meant(&found.origin)).collect();
        let reverse: Vec<&ConfirmedWitness> = self.reverse.iter().filter(|found| is_meant(&found.origin)).collect();
        let lost = witnesses.iter().any(|found| found.witness.desired == Difference::Pruned);
        // A changed default breaks less than what is still undecided at the same node could.
        let is_mild = witnesses.iter().all(|found| found.witness.desired == Difference::Defaulted);
        let open = self.open.iter().find(|(origin, _)| is_meant(origin)).filter(|_| is_mild);
        let (verdict, reason) = if lost {
            (SchemaRelation::DataLoss, reasons(&witnesses))
        } else if let Some((_, why)) = open {
            (SchemaRelation::Undecided, why.clone())
        } else if !witnesses.is_empty() && !reverse.is_empty() {
            (SchemaRelation::Incomparable, reasons(&witnesses))
        } else if !witnesses.is_empty() {
            (SchemaRelation::Narrowing, reasons(&witnesses))
        } else if self.backward_open.iter().any(is_meant) {
            (SchemaRelation::Widening, String::new())
        } else {
            (SchemaRelation::Equal, String::new())
        };
        let breaks: BTreeSet<AffectedParty> = witnesses.iter().flat_map(|found| breaks_of(&found.witness)).collect();
        let to_show = |found: &[&ConfirmedWitness]| {
            found.iter().filter(|found| found.is_shown).take(MAX_WITNESSES).map(|found| found.witness.clone()).collect()
        };
        PartProof {
            origin: ChangeOrigin::Node,
            verdict,
            reason,
            breaks: breaks.into_iter().collect(),
            witnesses: to_show(&witnesses),
            reverse: if verdict == SchemaRelation::Incomparable { to_show(&reverse) } else { Vec::new() },
        }
    }
}

fn reasons(found: &[&ConfirmedWitness]) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for ConfirmedWitness { reason, .. } in found {
        if !reasons.contains(&reason.as_str()) {
            reasons.push(reason);
        }
    }
    if found.iter().any(|found| !found.is_shown && !found.witness.is_lost_to_another_change) {
        reasons.push("an object that shows it is too large to print");
    }
    reasons.join("; ")
}

/// Who is affected by the difference.
fn breaks_of(witness: &ProofWitness) -> Vec<AffectedParty> {
    let is_stuck = witness.refused_updates.as_ref().is_some_and(RatchetingRefusals::are_of_stored_objects);
    match witness.desired {
        Difference::Refused if witness.old_object.is_some() => vec![AffectedParty::Writers],
        Difference::Refused if is_stuck => vec![AffectedParty::StoredObjects, AffectedParty::Writers],
        Difference::Refused => vec![AffectedParty::Writers],
        Difference::Pruned => vec![AffectedParty::Writers, AffectedParty::Readers, AffectedParty::Data],
        Difference::Defaulted => vec![AffectedParty::Behaviour],
    }
}
