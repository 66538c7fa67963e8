//! Decides whether every object that the live schema accepts is accepted by the desired schema, unpruned and with the
//! same defaults.
//!
//! Two halves check each other. For each keyword that differs, the *prover* searches for a value that the live schema
//! accepts and the desired keyword refuses; if none can exist, the keyword is proven. The *refuter* embeds the values
//! found in whole custom resources and validates them against both sides with [`gantry_schema`], which validates as the
//! API server does. What is neither proven nor refuted is undecided, with the reason.
//!
//! ```text
//! product ─► constraints ─► solve (strings, numbers) ─► witness ─► Proof
//!     └─► cel, rules ─────────────────────────────┘
//! ```
//!
//! This crate does no I/O. `docs/proof.md` describes what is decided and what is assumed of the API server.

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
mod status;
pub mod strings;
#[cfg(test)]
mod tests;
mod text;
mod witness;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use gantry_schema::{Patterns, Schema};
use keywords as kw;
use product::{Effect, Obligation, Unwalked, Walked};
use rules::repair::Repairs;
use solve::Solver;
use witness::{Settled, Side, Sides};

/// One version of a CRD, live or desired.
#[derive(Clone, Copy, Debug)]
pub struct Version<'a> {
    /// The `openAPIV3Schema`.
    pub schema: &'a Value,
    /// Whether the version has a status subresource. If so, `status` is written only through it.
    pub status_subresource: bool,
    /// The `apiVersion` of its objects, such as `example.com/v1`.
    pub api_version: &'a str,
    /// The `kind` of its objects.
    pub kind: &'a str,
}

/// The resources that one pair of versions can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Abstract steps of about a microsecond each. Whatever is left when they run out is undecided.
    pub steps: u64,
}

/// The maximum number of steps for one pair of versions, for all versions of one CRD, and for all CRDs of a run. The
/// share of a CRD never falls below `MIN_STEPS_PER_CRD`, which is what real CRDs need.
const STEPS_PER_VERSION: u64 = 2_000_000;
const STEPS_PER_CRD: u64 = 6_000_000;
const STEPS_PER_RUN: u64 = 150_000_000;
const MIN_STEPS_PER_CRD: u64 = 500_000;

impl Default for Limits {
    fn default() -> Self {
        Self { steps: STEPS_PER_VERSION }
    }
}

impl Limits {
    /// The limits for each pair of versions of a CRD with `versions` pairs to compare, in a run over `crds` CRDs.
    ///
    /// The share depends only on the two counts: a verdict never depends on how long other CRDs took.
    pub fn shared(crds: usize, versions: usize) -> Self {
        let crd = (STEPS_PER_RUN / crds.max(1) as u64).clamp(MIN_STEPS_PER_CRD, STEPS_PER_CRD);
        Self { steps: (crd / versions.max(1) as u64).min(STEPS_PER_VERSION) }
    }
}

/// How the objects that desired accepts compare with those that live accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both accept the same objects, and prune and default them in the same way.
    Equal,
    /// Desired accepts every object that live accepts, unchanged, and possibly more.
    Widening,
    /// Desired refuses, or defaults differently, an object that live accepts: there is a witness.
    Narrowing,
    /// Like narrowing, and desired also accepts an object that live refuses or prunes: there are witnesses both ways.
    Incomparable,
    /// Desired drops a part of an object that live keeps: there is a witness.
    DataLoss,
    /// Neither proven nor refuted.
    Undecided,
}

/// Who is affected by a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Breaks {
    /// Stored objects: their next update is refused even if it does not change the invalid value.
    StoredObjects,
    /// Clients that write values that were valid before the change.
    Writers,
    /// Clients that read values that are no longer stored.
    Readers,
    /// Data that is lost.
    Data,
    /// Behaviour that depends on a default that changed.
    Behaviour,
}

/// What the other side does to a witness that one side accepts and keeps unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The whole object is refused.
    Refused,
    /// A part of the object is dropped.
    Pruned,
    /// Nothing is refused or dropped, but different defaults are filled in.
    Defaulted,
}

/// A whole custom resource that the two sides treat differently, confirmed by validating it against both.
#[derive(Clone, Debug, PartialEq)]
pub struct Witness {
    /// The object to write.
    pub object: Value,
    /// For an update, the old object, which both sides accept.
    pub old_object: Option<Value>,
    /// What the other side does to the object.
    pub desired: Difference,
    /// The validation error of the side that refuses the object, or the field that is dropped or defaulted.
    pub message: String,
    /// Whether the object's status has to be written through the status subresource, after the object is created.
    pub via_status: bool,
}

/// The verdict on one node: on the node's own keywords that differ.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeProof {
    /// The node's path, such as `^.spec.list.items.name`.
    pub path: String,
    /// What the change of this node alone does.
    pub verdict: Verdict,
    /// What changed, and for an undecided node why it is undecided.
    pub reason: String,
    /// Who is affected, sorted; empty if nothing breaks.
    pub breaks: Vec<Breaks>,
    /// Objects that live accepts and that desired refuses, prunes or defaults differently.
    ///
    /// A witness that is too large to print is left out, and the reason says so.
    pub witnesses: Vec<Witness>,
    /// For [`Verdict::Incomparable`]: objects that desired accepts and live does not.
    pub reverse: Vec<Witness>,
    /// Whether the verdict also covers all nodes below, because live accepts anything there.
    pub is_of_all_below: bool,
}

/// The verdict on a pair of versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Proof {
    /// What the change does as a whole.
    pub verdict: Verdict,
    /// For an undecided pair, why it is undecided; otherwise empty.
    pub reason: String,
    /// Who is affected, sorted; empty if nothing breaks.
    pub breaks: Vec<Breaks>,
    /// The nodes that differ in more than their descriptions, sorted by path. Nodes below one whose verdict
    /// [covers all below](NodeProof::is_of_all_below) are left out.
    pub nodes: Vec<NodeProof>,
    /// Changes that refuse and drop nothing but are worth reporting: a path and a sentence.
    pub notes: Vec<(String, String)>,
    /// Whether every node was compared. If so, the nodes that are not in `nodes` are the same on both sides.
    pub is_complete: bool,
    /// The steps used, out of those that [`Limits`] allow.
    pub steps: u64,
}

/// The maximum nesting of a schema, counted in JSON levels.
const MAX_DEPTH: usize = 200;
/// The maximum total weight of the compiled patterns of one pair.
const MAX_PATTERNS_WEIGHT: u64 = 1_000_000;
/// The maximum weight in bytes of a witness that is shown, and of all witnesses of one pair together. Larger ones are
/// left out; the verdict stays.
const MAX_WITNESS_WEIGHT: u64 = 2 << 20;
const MAX_WITNESSES_WEIGHT: u64 = 16 << 20;
/// The maximum length of a witness's message: the server lists all values of an `enum` and quotes the refused value.
const MAX_MESSAGE: usize = 4 << 10;
/// The maximum number of witnesses of one node.
const MAX_WITNESSES: usize = 3;

/// Compares two versions: does `desired` accept every object that `live` accepts, unpruned and with the same defaults?
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
    if [live, desired].iter().any(|version| keywords::is_deeper_than(version.schema, MAX_DEPTH)) {
        return undecided("the schema is nested too deeply".to_owned());
    }
    let is_same = keywords::same(live.schema, desired.schema);
    if is_same && live.status_subresource == desired.status_subresource {
        return Proof { verdict: Verdict::Equal, is_complete: true, ..undecided(String::new()) };
    }
    // Building a state of a pattern's automaton takes about as long as a step.
    let patterns = Patterns::within(limits.steps.min(MAX_PATTERNS_WEIGHT));
    let compiled = |version: &Version| Schema::compile_sharing(version.schema, &patterns);
    let (live_schema, desired_schema) = match (compiled(live), compiled(desired)) {
        (Ok(live), Ok(desired)) => (live, desired),
        (Err(error), _) => return undecided(format!("the live schema: {error}")),
        (_, Err(error)) => return undecided(format!("the desired schema: {error}")),
    };
    let forward = Sides {
        source: Side::new(live, live_schema.clone()),
        target: Side::new(desired, desired_schema.clone()),
        repairs: Repairs::new(&patterns),
    };
    let backward = Sides {
        source: Side::new(desired, desired_schema),
        target: Side::new(live, live_schema),
        repairs: Repairs::new(&patterns),
    };
    let created = status::without_default(live, desired);
    let (live, desired) = match &created {
        Some([old, new]) => (&Version { schema: old, ..*live }, &Version { schema: new, ..*desired }),
        None => (live, desired),
    };
    // Finding breaks matters more than finding out whether desired also accepts more.
    let forward_steps = limits.steps / 3 * 2;
    let solver = Solver::new(forward_steps, &patterns);
    let mut walked = product::walk(&solver, live.schema, desired.schema);
    status::add_obligation(&solver, live, desired, &mut walked);
    product::add_cost_obligation(&solver, live.schema, desired.schema, &mut walked);
    let mut nodes = Nodes::default();
    let mut unwalked = nodes.add_forward(&forward, &solver, walked);
    while !unwalked.is_empty() {
        let mut walked = product::resume(&solver, unwalked);
        product::add_cost_obligation(&solver, live.schema, desired.schema, &mut walked);
        unwalked = nodes.add_forward(&forward, &solver, walked);
    }
    let spent = forward_steps - solver.left();
    let solver = Solver::new(limits.steps - spent, &patterns);
    let mut walked = product::walk_except(&solver, desired.schema, live.schema, &nodes.summed_up);
    status::add_obligation(&solver, desired, live, &mut walked);
    product::add_cost_obligation(&solver, desired.schema, live.schema, &mut walked);
    nodes.add_backward(&backward, &solver, walked);
    nodes.steps = limits.steps - solver.left();
    nodes.finish()
}

/// What was found out about one node.
#[derive(Default)]
struct NodeState {
    changes: BTreeSet<String>,
    witnesses: Vec<Found>,
    open: Vec<String>,
    /// Whether something is unproven or refuted in the other direction.
    backward_open: bool,
    /// Witnesses in the other direction, and whether each is shown.
    reverse: Vec<(Witness, bool)>,
}

/// A witness that the validator confirmed.
struct Found {
    witness: Witness,
    reason: String,
    /// Whether an update is refused even if it does not change the invalid value.
    is_stuck: bool,
    is_shown: bool,
}

/// Whether there is room to show the witness. A witness that is not shown is emptied.
fn shown(witness: &mut Witness, together: &mut u64) -> bool {
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

#[derive(Default)]
struct Nodes {
    by_path: BTreeMap<String, NodeState>,
    notes: Vec<(String, String)>,
    /// The paths of nodes where live accepts anything: their verdict covers all nodes below.
    summed_up: BTreeSet<String>,
    is_cut: bool,
    steps: u64,
    /// The total weight of the witnesses that are shown.
    shown: u64,
}

impl Nodes {
    /// Settles what a walk found. Returns the nodes whose parts still have to be compared: those that do not break
    /// themselves.
    fn add_forward<'s>(&mut self, sides: &Sides, solver: &Solver<'s>, walked: Walked<'s>) -> Vec<Unwalked<'s>> {
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
            // Data loss matters most.
            obligations.sort_by_key(|obligation| obligation.effect);
            let known = self.by_path.entry(path).or_default();
            for obligation in obligations {
                if known.witnesses.len() >= MAX_WITNESSES {
                    break;
                }
                match sides.settle(solver, &obligation) {
                    Settled::Confirmed(mut witness) => {
                        let is_stuck = obligation.is_of_whole || obligation.is_in_list();
                        let is_shown = shown(&mut witness, &mut self.shown);
                        known.witnesses.push(Found {
                            witness: *witness,
                            reason: obligation.reason,
                            is_stuck,
                            is_shown,
                        });
                    }
                    Settled::Unreachable => {}
                    Settled::Open(why) => known.open.push(format!("{}: {why}", obligation.reason)),
                }
            }
        }
        self.summed_up.extend(walked.unwalked.iter().map(|node| node.path.clone()));
        // A changed default breaks less than what could be below.
        let is_breaking = |found: &Found| found.witness.desired != Difference::Defaulted;
        let breaks = |path: &str| self.by_path.get(path).is_some_and(|known| known.witnesses.iter().any(is_breaking));
        walked.unwalked.into_iter().filter(|node| !breaks(&node.path)).collect()
    }

    fn add_backward<'s>(&mut self, sides: &Sides, solver: &Solver<'s>, walked: Walked<'s>) {
        // Whether desired accepts more matters only if something breaks.
        let mut is_shown = !self.by_path.values().any(|known| !known.witnesses.is_empty());
        for (path, what) in walked.changed {
            // A node that the forward walk did not reach has no obligations, but that does not make it equal.
            let is_missed = self.is_cut && !self.by_path.contains_key(&path);
            let known = self.by_path.entry(path).or_default();
            if is_missed {
                known.open.push("not compared: the step limit was reached".to_owned());
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
            match sides.settle(solver, &obligation) {
                Settled::Confirmed(mut witness) if witness.desired != Difference::Defaulted => {
                    known.backward_open = true;
                    let is_kept = shown(&mut witness, &mut self.shown);
                    known.reverse.push((*witness, is_kept));
                    is_shown = true;
                }
                Settled::Unreachable => {}
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
            // A changed default breaks less than what is still undecided at the same node could.
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

fn reasons(known: &NodeState) -> String {
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

/// Who is affected by the difference. The server tolerates an invalid value that an update does not change, but not if
/// the surrounding value is validated as a whole, and not inside lists whose items it does not correlate with the old
/// ones.
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
