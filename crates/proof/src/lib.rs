//! Whether every object that one version's schema takes is taken by another, unpruned and with the same defaults.
//!
//! Two halves that check each other. The *prover* asks, for each keyword that differs, whether a value exists that the
//! live schema takes and the desired keyword refuses; where none can exist the keyword is proven. The *refuter* puts
//! the values found into whole custom resources and takes those through both sides with [`gantry_schema`], which
//! judges as the API server does. What is neither proven nor shown is undecided, with the reason.
//!
//! ```text
//! product ─► constraints ─► solve (strings, numbers) ─► witness ─► Proof
//!     └─► cel, rules ─────────────────────────────┘
//! ```
//!
//! Nothing here does I/O. `docs/proof.md` says what is decided
//! and what is assumed of the API server.

#![deny(missing_docs)]

pub mod automaton;
pub mod cel;
mod constraints;
mod formats;
mod keywords;
mod numbers;
mod product;
mod rules;
mod solve;
pub mod strings;
#[cfg(test)]
mod tests;
mod witness;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use gantry_schema::{Patterns, Schema};
use keywords as kw;
use product::{Effect, Obligation, Unwalked, Walked};
use rules::repair::Repairs;
use solve::Solver;
use witness::{Judges, Side, Tried};

/// One version of a CRD, on one side of the question.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// The `openAPIV3Schema`.
    pub schema: &'a Value,
    /// Whether the version has a status subresource: then only that writes `status`.
    pub status_subresource: bool,
    /// Group and version as objects spell it, such as `example.com/v1`.
    pub api_version: &'a str,
    /// The kind of the custom resource, as objects spell it.
    pub kind: &'a str,
}

/// What may be spent on one pair of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Abstract steps, about a microsecond each. Past them what is left is undecided.
    pub steps: u64,
}

/// Steps for one pair of versions at most, for all versions of one CRD, and for all CRDs of a run. The share of a CRD
/// never falls below `LEAST`: that is what real ones need.
const VERSION: u64 = 2_000_000;
const CRD: u64 = 6_000_000;
const RUN: u64 = 150_000_000;
const LEAST: u64 = 500_000;

impl Default for Limits {
    fn default() -> Self {
        Self { steps: VERSION }
    }
}

impl Limits {
    /// What each pair of versions may take in a run over so many CRDs, where `versions` of this one are asked about.
    ///
    /// The share follows from the counts alone: what is decided never depends on how long other CRDs took.
    pub fn shared(crds: usize, versions: usize) -> Self {
        let crd = (RUN / crds.max(1) as u64).clamp(LEAST, CRD);
        Self { steps: (crd / versions.max(1) as u64).min(VERSION) }
    }
}

/// How what desired takes compares with what live takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both take the same objects, prune and default them alike.
    Equal,
    /// Whatever live takes, desired takes unchanged; perhaps more.
    Widening,
    /// An object that live takes is refused, or defaulted differently: there is a witness.
    Narrowing,
    /// As narrowing, and desired takes an object that live refuses or prunes: there are witnesses both ways.
    Incomparable,
    /// An object that live keeps loses a part: there is a witness.
    DataLoss,
    /// Neither proven nor shown.
    Undecided,
}

/// Who meets a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Breaks {
    /// Objects that are there already: their next update is refused though it leaves alone what is wrong.
    StoredObjects,
    /// Clients that write what was valid.
    Writers,
    /// Clients that read what is no longer there.
    Readers,
    /// Values that get lost.
    Data,
    /// Values that are filled in differently.
    Behaviour,
}

/// What desired does to a witness that live takes and keeps as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The whole object is refused.
    Refused,
    /// A part of the object is dropped.
    Pruned,
    /// Nothing is refused or dropped, and other values are filled in than live fills in.
    Defaulted,
}

/// A whole custom resource that both sides treat differently; the validator has run it through both.
#[derive(Clone, Debug, PartialEq)]
pub struct Witness {
    /// The object that is written.
    pub object: Value,
    /// For an update: the object before, which both sides take.
    pub old_object: Option<Value>,
    /// What the refusing side does.
    pub desired: Difference,
    /// The refusing side's own words, or which field is concerned.
    pub message: String,
    /// The object's status is written through the status subresource, once the rest of it exists.
    pub via_status: bool,
}

/// The judgement of one node, or rather of the keywords of its own that differ.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeProof {
    /// Such as `^.spec.list.items.name`.
    pub path: String,
    /// What the change of this node alone does.
    pub verdict: Verdict,
    /// What changed, and for an undecided node why that is not decided.
    pub reason: String,
    /// Sorted; empty where nothing breaks.
    pub breaks: Vec<Breaks>,
    /// Objects that live takes and desired does not.
    ///
    /// One that is too large to show is left out, which the reason says.
    pub witnesses: Vec<Witness>,
    /// For [`Verdict::Incomparable`]: objects that desired takes and live does not.
    pub reverse: Vec<Witness>,
    /// Whether the judgement is that of all nodes below as well: live leaves open what is there.
    pub is_of_all_below: bool,
}

/// The judgement of a pair of versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    /// What the change does as a whole.
    pub verdict: Verdict,
    /// For an undecided pair: why.
    pub reason: String,
    /// Sorted; empty where nothing breaks.
    pub breaks: Vec<Breaks>,
    /// The nodes that differ in more than their descriptions, by path; but for those below one that
    /// [is judged with all below](NodeProof::is_of_all_below).
    pub nodes: Vec<NodeProof>,
    /// What changed without refusing or dropping anything and is still worth saying: a path and a sentence.
    pub notes: Vec<(String, String)>,
    /// Whether every node was compared, so that those not among `nodes` are the same on both sides.
    pub is_complete: bool,
    /// Steps taken, of those that [`Limits`] allow.
    pub steps: u64,
}

/// How deep a schema may be nested, counted in JSON.
const DEPTH: usize = 200;
/// What the patterns of one pair may weigh together once they are compiled.
const PATTERNS: u64 = 1_000_000;
/// A witness beyond this is not shown, nor are those of one pair beyond what they may weigh together. The verdict stays.
const SHOWN: u64 = 2 << 20;
const SHOWN_TOGETHER: u64 = 16 << 20;
/// The longest message of a witness: the server lists all values of an `enum`, and quotes whatever was refused.
const MESSAGE: usize = 4 << 10;
/// Witnesses of one node at most.
const WITNESSES: usize = 3;

/// Judges whether what `live` takes is taken by `desired`.
pub fn prove(live: &Version, desired: &Version, limits: Limits) -> Proof {
    let undecided = |reason: String| Proof {
        verdict: Verdict::Undecided,
        reason,
        breaks: Vec::new(),
        nodes: Vec::new(),
        notes: Vec::new(),
        is_complete: false,
        steps: 0,
    };
    if [live, desired].iter().any(|version| keywords::is_deeper_than(version.schema, DEPTH)) {
        return undecided("the schema is nested too deep".to_owned());
    }
    let is_same = keywords::same(live.schema, desired.schema);
    if is_same && live.status_subresource == desired.status_subresource {
        return Proof { verdict: Verdict::Equal, is_complete: true, ..undecided(String::new()) };
    }
    // A state of a pattern's machine takes about as long as a step.
    let patterns = Patterns::within(limits.steps.min(PATTERNS));
    let compiled = |version: &Version| Schema::compile_sharing(version.schema, &patterns);
    let (there, here) = match (compiled(live), compiled(desired)) {
        (Ok(there), Ok(here)) => (there, here),
        (Err(error), _) => return undecided(format!("the live schema: {error}")),
        (_, Err(error)) => return undecided(format!("the desired schema: {error}")),
    };
    let forward = Judges {
        source: Side::new(live, there.clone()),
        target: Side::new(desired, here.clone()),
        repairs: Repairs::new(&patterns),
    };
    let backward =
        Judges { source: Side::new(desired, here), target: Side::new(live, there), repairs: Repairs::new(&patterns) };
    // What breaks counts for more than whether desired takes more besides.
    let most = limits.steps / 3 * 2;
    let solver = Solver::new(most, &patterns);
    let mut walked = product::walk(&solver, live.schema, desired.schema);
    status_moves(&solver, live, desired, &mut walked);
    let mut nodes = Nodes::default();
    let mut unwalked = nodes.add_forward(&forward, &solver, walked);
    while !unwalked.is_empty() {
        unwalked = nodes.add_forward(&forward, &solver, product::resume(&solver, unwalked));
    }
    let spent = most - solver.left();
    let solver = Solver::new(limits.steps - spent, &patterns);
    let mut walked = product::walk_but(&solver, desired.schema, live.schema, &nodes.summed_up);
    status_moves(&solver, desired, live, &mut walked);
    nodes.add_backward(&backward, &solver, walked);
    nodes.steps = limits.steps - solver.left();
    nodes.finish()
}

/// A status that was everybody's to write and is now written through its subresource alone.
fn status_moves<'s>(solver: &Solver<'s>, source: &Version<'s>, target: &Version<'s>, walked: &mut Walked<'s>) {
    if !source.status_subresource && target.status_subresource {
        walked.obligations.extend(product::status_doubt(solver, source.schema, target.schema));
    }
}

/// What is known of one node.
#[derive(Default)]
struct Known {
    changes: BTreeSet<String>,
    witnesses: Vec<Found>,
    open: Vec<String>,
    /// Doubts in the other direction.
    backward_open: bool,
    /// Witnesses the other way, and whether each is shown.
    reverse: Vec<(Witness, bool)>,
}

/// A witness that the validator confirmed.
struct Found {
    witness: Witness,
    reason: String,
    /// Whether an update is refused that leaves alone what is wrong.
    is_stuck: bool,
    is_shown: bool,
}

/// Whether there is room to show the witness. One that is not shown is emptied.
fn shown(witness: &mut Witness, together: &mut u64) -> bool {
    if let Some((end, _)) = witness.message.char_indices().nth(MESSAGE) {
        witness.message.truncate(end);
        witness.message.push('…');
    }
    let weight = kw::weight(&witness.object) + witness.old_object.as_ref().map_or(0, kw::weight);
    let is_shown = weight <= SHOWN && *together + weight <= SHOWN_TOGETHER;
    if is_shown {
        *together += weight;
    } else {
        witness.object = Value::Null;
        witness.old_object = witness.old_object.is_some().then_some(Value::Null);
    }
    is_shown
}

#[derive(Default)]
struct Nodes {
    by_path: BTreeMap<String, Known>,
    notes: Vec<(String, String)>,
    /// The paths of nodes that live leaves open: what becomes of all below is said of them.
    summed_up: BTreeSet<String>,
    is_cut: bool,
    steps: u64,
    /// What the witnesses weigh that are shown.
    shown: u64,
}

impl Nodes {
    /// Settles what a walk found. Gives back the nodes whose parts have to be compared: those that do not break themselves.
    fn add_forward<'s>(&mut self, judges: &Judges, solver: &Solver<'s>, walked: Walked<'s>) -> Vec<Unwalked<'s>> {
        for (path, what) in walked.changed {
            self.by_path.entry(path).or_default().changes.insert(what);
        }
        self.notes.extend(walked.notes);
        self.is_cut |= walked.is_cut;
        let mut settled: BTreeMap<String, Vec<Obligation>> = BTreeMap::new();
        for obligation in walked.obligations {
            settled.entry(obligation.path.clone()).or_default().push(obligation);
        }
        for (path, mut obligations) in settled {
            // What gets lost weighs most.
            obligations.sort_by_key(|obligation| obligation.effect);
            let known = self.by_path.entry(path).or_default();
            for obligation in obligations {
                if known.witnesses.len() >= WITNESSES {
                    break;
                }
                match judges.settle(solver, &obligation) {
                    Tried::Confirmed(mut witness) => {
                        let is_stuck = obligation.is_of_whole || obligation.is_in_list();
                        let is_shown = shown(&mut witness, &mut self.shown);
                        known.witnesses.push(Found {
                            witness: *witness,
                            reason: obligation.reason,
                            is_stuck,
                            is_shown,
                        });
                    }
                    Tried::Unreachable => {}
                    Tried::Open(why) => known.open.push(format!("{}: {why}", obligation.reason)),
                }
            }
        }
        self.summed_up.extend(walked.unwalked.iter().map(|node| node.path.clone()));
        // Another default breaks less than what may be below.
        let is_breaking = |found: &Found| found.witness.desired != Difference::Defaulted;
        let breaks = |path: &str| self.by_path.get(path).is_some_and(|known| known.witnesses.iter().any(is_breaking));
        walked.unwalked.into_iter().filter(|node| !breaks(&node.path)).collect()
    }

    fn add_backward<'s>(&mut self, judges: &Judges, solver: &Solver<'s>, walked: Walked<'s>) {
        // Only where something breaks does it matter whether desired takes more.
        let mut is_shown = !self.by_path.values().any(|known| !known.witnesses.is_empty());
        for (path, what) in walked.changed {
            // What the walk there did not come to is not the same for having no obligations.
            let is_missed = self.is_cut && !self.by_path.contains_key(&path);
            let known = self.by_path.entry(path).or_default();
            if is_missed {
                known.open.push("not compared: the limit of steps is reached".to_owned());
            }
            if known.changes.is_empty() {
                known.changes.insert(what);
            }
        }
        for obligation in walked.obligations {
            let known = self.by_path.entry(obligation.path.clone()).or_default();
            let is_asked = !known.witnesses.is_empty() && known.reverse.is_empty() || !is_shown;
            if obligation.effect == Effect::Defaulted || !is_asked {
                known.backward_open = true;
                continue;
            }
            match judges.settle(solver, &obligation) {
                Tried::Confirmed(mut witness) if witness.desired != Difference::Defaulted => {
                    known.backward_open = true;
                    let is_kept = shown(&mut witness, &mut self.shown);
                    known.reverse.push((*witness, is_kept));
                    is_shown = true;
                }
                Tried::Unreachable => {}
                _ => known.backward_open = true,
            }
        }
    }

    fn finish(self) -> Proof {
        let mut nodes = Vec::new();
        let is_reverse_shown = self.by_path.values().any(|known| !known.reverse.is_empty());
        for (path, known) in self.by_path {
            let changes = || known.changes.iter().cloned().collect::<Vec<_>>().join("; ");
            let lost = known.witnesses.iter().any(|found| found.witness.desired == Difference::Pruned);
            // Another default breaks less than what is undecided beside it may.
            let is_mild = |found: &Found| found.witness.desired == Difference::Defaulted;
            let is_open = !known.open.is_empty() && known.witnesses.iter().all(is_mild);
            let (verdict, reason) = if lost {
                (Verdict::DataLoss, reasons(&known))
            } else if let Some(why) = known.open.first().filter(|_| is_open) {
                (Verdict::Undecided, why.clone())
            } else if !known.witnesses.is_empty() && !known.reverse.is_empty() {
                (Verdict::Incomparable, reasons(&known))
            } else if !known.witnesses.is_empty() {
                (Verdict::Narrowing, reasons(&known))
            } else if known.backward_open {
                (Verdict::Widening, changes())
            } else {
                (Verdict::Equal, changes())
            };
            let mut breaks: BTreeSet<Breaks> = BTreeSet::new();
            for found in &known.witnesses {
                breaks.extend(breaks_of(&found.witness, found.is_stuck));
            }
            nodes.push(NodeProof {
                is_of_all_below: self.summed_up.contains(&path),
                path,
                verdict,
                reason,
                breaks: breaks.into_iter().collect(),
                witnesses: known
                    .witnesses
                    .into_iter()
                    .filter(|found| found.is_shown)
                    .map(|found| found.witness)
                    .collect(),
                reverse: known
                    .reverse
                    .into_iter()
                    .filter(|(_, is_shown)| *is_shown && verdict == Verdict::Incomparable)
                    .map(|(witness, _)| witness)
                    .collect(),
            });
        }
        let has = |verdict: Verdict| nodes.iter().any(|node| node.verdict == verdict);
        let undecided = nodes.iter().find(|node| node.verdict == Verdict::Undecided);
        let mut reason = String::new();
        let verdict = if has(Verdict::DataLoss) {
            Verdict::DataLoss
        } else if has(Verdict::Incomparable) || has(Verdict::Narrowing) && is_reverse_shown {
            Verdict::Incomparable
        } else if has(Verdict::Narrowing) {
            Verdict::Narrowing
        } else if let Some(node) = undecided {
            reason = format!("{}: {}", node.path, node.reason);
            Verdict::Undecided
        } else if has(Verdict::Widening) {
            Verdict::Widening
        } else {
            Verdict::Equal
        };
        let breaks: BTreeSet<Breaks> = nodes.iter().flat_map(|node| node.breaks.iter().copied()).collect();
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

fn reasons(known: &Known) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for Found { reason, .. } in &known.witnesses {
        if !reasons.contains(&reason.as_str()) {
            reasons.push(reason);
        }
    }
    if known.witnesses.iter().any(|found| !found.is_shown) {
        reasons.push("an object that shows it is too large to print");
    }
    reasons.join("; ")
}

/// Who meets the difference. An update is forgiven what it leaves alone, but not where the value around is judged as a
/// whole, nor inside of lists, whose items the server does not pair with the old ones.
fn breaks_of(witness: &Witness, is_stuck: bool) -> Vec<Breaks> {
    match witness.desired {
        Difference::Refused if witness.old_object.is_some() => vec![Breaks::Writers],
        Difference::Refused if is_stuck => vec![Breaks::StoredObjects, Breaks::Writers],
        Difference::Refused => vec![Breaks::Writers],
        Difference::Pruned => vec![Breaks::Writers, Breaks::Readers, Breaks::Data],
        Difference::Defaulted => vec![Breaks::Behaviour],
    }
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
