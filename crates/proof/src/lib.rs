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
//! This crate does no I/O. `docs/internals/proof.md` describes what is decided and what is assumed of the API server.

mod automaton;
mod cel;
mod constraints;
mod formats;
mod kept_items;
mod keywords;
mod names;
mod nodes;
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

use serde_json::Value;

use gantry_k8s_cel::KubernetesRelease;
use gantry_k8s_cel::re2::Patterns;
use gantry_schema::Schema;
use gantry_schema::ratchet::RatchetingRefusals;
use nodes::NodeStates;
pub use product::ChangeOrigin;
use solve::Solver;
use witness::{ComparedVersion, CompiledSides};

/// One version of a CRD, live or desired.
#[derive(Clone, Copy, Debug)]
pub struct VersionSchema<'a> {
    /// The `openAPIV3Schema`.
    pub schema: &'a Value,
    /// Whether the version has a status subresource. If so, `status` is written only through it.
    pub status_subresource: bool,
    /// The `apiVersion` of its objects, such as `example.com/v1`.
    pub api_version: &'a str,
    /// The `kind` of its objects.
    pub kind: &'a str,
    /// The release of the server that has the CRD. The schemas must not have the formats that it ignores: see
    /// [`gantry_schema::drop_ignored_formats`].
    pub release: KubernetesRelease,
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
pub enum SchemaRelation {
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
pub enum AffectedParty {
    /// Stored objects: updates are refused that leave the invalid value as it is. See [`gantry_schema::ratchet`].
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
#[non_exhaustive]
pub struct ProofWitness {
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
    /// Whether only a stored object shows the difference, when it is read: the other side refuses to write it, for
    /// another reason.
    pub is_read_only: bool,
    /// For a refused object that is stored already: which of its updates are refused, too.
    pub refused_updates: Option<RatchetingRefusals>,
    /// Whether another change drops what this one would refuse. Such a witness is not shown.
    is_lost_to_another_change: bool,
}

/// The verdict on one node: on the node's own keywords that differ.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NodeProof {
    /// The node's path, such as `^.spec.list.items.name`.
    pub path: String,
    /// What the change of this node alone does.
    pub verdict: SchemaRelation,
    /// What changed, and for an undecided node why it is undecided.
    pub reason: String,
    /// Who is affected, sorted; empty if nothing breaks.
    pub breaks: Vec<AffectedParty>,
    /// Objects that live accepts and that desired refuses, prunes or defaults differently.
    ///
    /// A witness that is too large to print is left out, and the reason says so.
    pub witnesses: Vec<ProofWitness>,
    /// For [`Verdict::Incomparable`]: objects that desired accepts and live does not.
    pub reverse: Vec<ProofWitness>,
    /// Whether the verdict also covers all nodes below, because live accepts anything there.
    pub is_of_all_below: bool,
    /// For a node that breaks and that both sides have: what each of its changes does.
    pub parts: Vec<PartProof>,
}

/// The verdict on a part of what changes at a node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PartProof {
    /// The change that is judged.
    pub origin: ChangeOrigin,
    /// What this change does.
    pub verdict: SchemaRelation,
    /// What breaks, and for an undecided change why it is undecided; empty if nothing breaks.
    pub reason: String,
    /// Who is affected, sorted; empty if nothing breaks.
    pub breaks: Vec<AffectedParty>,
    /// As in [`NodeProof::witnesses`].
    pub witnesses: Vec<ProofWitness>,
    /// As in [`NodeProof::reverse`].
    pub reverse: Vec<ProofWitness>,
}

/// The verdict on a pair of versions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Proof {
    /// What the change does as a whole.
    pub verdict: SchemaRelation,
    /// For an undecided pair, why it is undecided; otherwise empty.
    pub reason: String,
    /// Who is affected, sorted; empty if nothing breaks.
    pub breaks: Vec<AffectedParty>,
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
/// Compares two versions: does `desired` accept every object that `live` accepts, unpruned and with the same defaults?
pub fn prove(live: &VersionSchema, desired: &VersionSchema, limits: Limits) -> Proof {
    let undecided = |reason: String| Proof {
        verdict: SchemaRelation::Undecided,
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
    let is_same = keywords::is_same_node(live.schema, desired.schema);
    if is_same && live.status_subresource == desired.status_subresource {
        return Proof { verdict: SchemaRelation::Equal, is_complete: true, ..undecided(String::new()) };
    }
    let [old, new] = [live, desired].map(|version| kept_items::with_kept_items(version.schema));
    let (live, desired) = (&VersionSchema { schema: &old, ..*live }, &VersionSchema { schema: &new, ..*desired });
    let named = names::with_names(live, desired);
    let (live, desired) = match &named {
        Some([old, new]) => (&VersionSchema { schema: old, ..*live }, &VersionSchema { schema: new, ..*desired }),
        None => (live, desired),
    };
    // Building a state of a pattern's automaton takes about as long as a step.
    let patterns = Patterns::with_limit(limits.steps.min(MAX_PATTERNS_WEIGHT));
    let compiled = |version: &VersionSchema| {
        Schema::compile_sharing(version.schema, &patterns).map(|schema| schema.with_release(version.release))
    };
    let (live_schema, desired_schema) = match (compiled(live), compiled(desired)) {
        (Ok(live), Ok(desired)) => (live, desired),
        (Err(error), _) => return undecided(format!("the live schema: {error}")),
        (_, Err(error)) => return undecided(format!("the desired schema: {error}")),
    };
    let forward = CompiledSides::new(
        ComparedVersion::new(live, live_schema.clone()),
        ComparedVersion::new(desired, desired_schema.clone()),
        &patterns,
    );
    let backward = CompiledSides::new(
        ComparedVersion::new(desired, desired_schema),
        ComparedVersion::new(live, live_schema),
        &patterns,
    );
    let created = status::without_default(live, desired);
    let (live, desired) = match &created {
        Some([old, new]) => (&VersionSchema { schema: old, ..*live }, &VersionSchema { schema: new, ..*desired }),
        None => (live, desired),
    };
    // Finding breaks matters more than finding out whether desired also accepts more.
    let forward_steps = limits.steps / 3 * 2;
    let solver = Solver::new(forward_steps, &patterns, live.release);
    let mut walked = product::walk(&solver, live.schema, desired.schema);
    status::add_obligation(&solver, live, desired, &mut walked);
    product::add_cost_obligation(&solver, live.schema, desired.schema, &mut walked);
    let mut nodes = NodeStates::default();
    let mut unwalked = nodes.add_forward(&forward, &solver, walked);
    while !unwalked.is_empty() {
        let mut walked = product::resume(&solver, unwalked);
        product::add_cost_obligation(&solver, live.schema, desired.schema, &mut walked);
        unwalked = nodes.add_forward(&forward, &solver, walked);
    }
    let spent = forward_steps - solver.left();
    let solver = Solver::new(limits.steps - spent, &patterns, live.release);
    let harmless = nodes.harmless_beside_breaking();
    let mut walked = product::walk_back(&solver, desired.schema, live.schema, &nodes.summed_up, &harmless);
    status::add_obligation(&solver, desired, live, &mut walked);
    product::add_cost_obligation(&solver, desired.schema, live.schema, &mut walked);
    nodes.add_backward(&backward, &solver, walked);
    nodes.steps = limits.steps - solver.left();
    nodes.finish()
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ProofReadme;
