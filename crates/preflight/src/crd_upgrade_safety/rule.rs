//! The type of a rule: its claims, its weight, the function that evaluates it, and the diagnosis that this returns.

use super::node::{AddedNode, NodePair, RemovedNode, SchemaNodePlace, Transition};
use crate::rule::RuleDoc;
use gantry_core::crd::{Crd, CrdPair};
use gantry_core::finding::wording::Wording;
use gantry_core::finding::{Breaks, FindingBody, Severity, Verdict};
use gantry_core::resource::Step;

/// The rule that reports every change that no other rule claims.
pub const UNKNOWN_CHANGE: &str = "UnknownChange";

/// One compatibility judgement.
#[derive(Debug)]
pub struct Rule {
    pub doc: RuleDoc,
    /// The origin of the rule, which decides how a violation is weighed.
    pub weight: Weight,
    /// The transitions that this rule is responsible for.
    pub claims: &'static [Claim],
    /// Whether a violation of this rule explains all others on the same node and below it, so that they are not
    /// reported.
    pub hides_others: bool,
    pub judge: Judge,
}

/// The origin of a rule, from which [`super::decide`] derives the severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The documentation of kapp and OLM forbids the change.
    Forbidden,
    /// The documentation of kapp and OLM calls the change unknown: `failMode` decides what is undecided.
    Unknown,
    /// The documentation of kapp and OLM does not mention the change. The severity is the rule's own, or this one under
    /// `preset: semantic`.
    Beyond { semantic: Severity },
}

/// The input of a rule, and the function that evaluates it.
#[derive(Debug, Clone, Copy)]
pub enum Judge {
    /// The CRD as a whole.
    Crd(fn(&CrdPair) -> Vec<CrdRuleViolation>),
    /// The versions of one CRD, compared with each other by the rules about nodes.
    Versions(fn(&CrdPair, &Between) -> Vec<CrdRuleViolation>),
    /// A node that both sides have.
    Node(fn(&NodePair) -> Option<ViolationText>),
    /// A node that is removed. The rule is not evaluated for its children, which are removed with it.
    Removed(fn(&RemovedNode) -> ViolationText),
    /// A node that only desired describes, below a node that keeps unknown fields. The rule is not evaluated for its
    /// children.
    Added(fn(&AddedNode) -> ViolationText),
    /// Whole CRDs, including new ones, as the API server validates them: see [`super::server`].
    Server,
    /// What is proven to break at nodes that no other rule reports: see [`super::indirect`].
    Proof,
}

/// Compares two versions of one CRD, given by name, with the rules about nodes. Returns path, rule and message of each
/// violation.
pub type Between<'b> = dyn Fn(&Crd, &str, &str) -> Vec<(String, &'static str, Wording)> + 'b;

/// A keyword and the transitions that a rule is responsible for.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    pub keyword: &'static str,
    pub on: &'static [Transition],
}

impl Claim {
    /// Every transition of the keyword.
    pub const fn all(keyword: &'static str) -> Self {
        Claim { keyword, on: &[Transition::Added, Transition::Changed, Transition::Removed] }
    }

    pub const fn on_transitions(keyword: &'static str, on: &'static [Transition]) -> Self {
        Claim { keyword, on }
    }
}

/// A violation of a rule about whole CRDs.
#[derive(Debug, Clone)]
pub struct CrdRuleViolation {
    pub version: Option<String>,
    pub diagnosis: ViolationText,
}

/// A violation in words.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ViolationText {
    /// The message, on one line.
    pub message: Wording,
    /// The message without the consequence that the keyword has in general, for a change that is proven to have none.
    pub bare: Option<Wording>,
    /// The concrete next step.
    pub help: Wording,
    /// The steps to take, one a line, if one step is not enough.
    pub steps: Vec<String>,
    /// The place in the desired CRD to point at.
    pub at: Vec<Step>,
    /// Who is affected, if this is narrower than the rule's `breaks`.
    pub breaks: Option<Vec<Breaks>>,
    /// The effect on objects, if the change of this keyword alone decides it.
    pub verdict: Option<Verdict>,
    /// The node of the schema that a violation of the CRD as a whole is about: its path, and the steps from the root of
    /// the version's schema.
    pub node: Option<(String, Vec<Step>)>,
    /// What no proof about valid objects shows.
    pub beyond_proof: Option<BeyondProof>,
    /// The severity under `preset: semantic` of a change that the documentation of kapp and OLM does not mention, if it is
    /// not that of the rule.
    pub semantic: Option<Severity>,
    /// Whether the server refuses certain updates because of what they change, which no single object shows.
    pub is_about_updates: bool,
    /// Whether the defaults that stored objects got hide what is refused of those who send none.
    pub is_hidden_by_defaults: bool,
    /// What the finding says as it is here. Its message, help, effects and proof come from the fields above, the
    /// preset and the prover.
    pub body: FindingBody,
}

/// A break that no proof about valid objects shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeyondProof {
    /// Managers that share a part of an object conflict over what each of them owned, or overwrite each other.
    ///
    /// Source: <https://kubernetes.io/docs/reference/using-api/server-side-apply/#compatibility-across-topology-changes>
    LostOwners,
    /// The server refuses a value that it drops today before it validates the object.
    RefusedNull,
    /// The server keeps such a value, in place of the default that it fills in today, or where a rule may see it.
    KeptNull,
    /// Objects are read without a default that they have today.
    LostDefault,
}

impl BeyondProof {
    /// The least severity of the finding, if it is proven harmless otherwise.
    pub fn least_severity(self) -> Severity {
        match self {
            BeyondProof::RefusedNull => Severity::Error,
            BeyondProof::LostOwners | BeyondProof::KeptNull | BeyondProof::LostDefault => Severity::Warning,
        }
    }

    /// Whether "every valid object stays valid and unchanged" is not true of what clients send.
    pub fn voids_proof(self) -> bool {
        self != BeyondProof::LostOwners
    }
}

impl ViolationText {
    /// A change of a field, with the text that kapp and OLM document for it.
    pub fn of_field(place: &SchemaNodePlace, keyword: &str, text: &str) -> Self {
        let mut at = place.steps.clone();
        at.push(keyword.into());
        let (version, path) = (&place.version, &place.path);
        ViolationText { at, ..ViolationText::default() }.fact(text.to_owned()).documented(format!(
            "\"ChangeValidator\" validation failed: version \"{version}\", field \"{path}\": {text}"
        ))
    }

    #[must_use]
    pub fn message(mut self, message: impl Into<Wording>) -> Self {
        self.message = message.into();
        self
    }

    /// With the change in a few words, without the place: `minItems added: 1`.
    #[must_use]
    pub fn fact(mut self, fact: String) -> Self {
        self.body.fact = Some(fact);
        self
    }

    /// With the text that kapp and OLM document: `"NoScopeChange" validation failed: …`.
    #[must_use]
    pub fn documented(mut self, text: String) -> Self {
        self.body.documented = Some(text);
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<Wording>) -> Self {
        self.help = help.into();
        self
    }

    /// With the label of the place that it points at.
    #[must_use]
    pub fn label(mut self, label: String) -> Self {
        self.body.label = Some(label);
        self
    }
}
