//! What a rule is: what it claims, how it weighs, the function that judges, and what that says.

use super::node::{AddedNode, NodePair, Place, RemovedNode, Transition};
use crate::crd::{Crd, CrdPair};
use crate::finding::wording::Wording;
use crate::finding::{Breaks, Severity, Verdict};
use crate::preflight::rule::RuleDoc;
use crate::resource::Step;

/// The rule that has what no other rule claims.
pub const UNKNOWN_CHANGE: &str = "UnknownChange";

/// One compatibility judgement.
#[derive(Debug)]
pub struct Rule {
    pub doc: RuleDoc,
    /// Where the rule comes from, which decides how a violation weighs.
    pub weight: Weight,
    /// The transitions that this rule is responsible for.
    pub claims: &'static [Claim],
    /// A violation of this rule is the cause of all others on the same node and below it, which are not reported.
    pub hides_others: bool,
    pub judge: Judge,
}

/// Where a rule comes from. [`super::decide`] makes a severity of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The documentation of kapp and OLM forbids the change.
    Forbidden,
    /// The documentation of kapp and OLM calls the change unknown: what nobody decides falls to `failMode`.
    Unknown,
    /// The documentation of kapp and OLM does not mention it. The severity of the rule holds; under `preset: semantic` this one.
    Beyond { semantic: Severity },
}

/// What a rule looks at, and the function that looks.
#[derive(Debug, Clone, Copy)]
pub enum Judge {
    /// The CRD as a whole.
    Crd(fn(&CrdPair) -> Vec<Found>),
    /// Versions of one CRD beside each other, given what the rules about nodes say of two of them.
    Versions(fn(&CrdPair, &Between) -> Vec<Found>),
    /// A node that both sides have.
    Node(fn(&NodePair) -> Option<Diagnosis>),
    /// A node that is gone. Its children, gone with it, are not asked about.
    Removed(fn(&RemovedNode) -> Diagnosis),
    /// A node that is described for the first time, where live keeps unknown fields. Its children are not asked about.
    Added(fn(&AddedNode) -> Diagnosis),
    /// Whole CRDs, new ones too, as the API server judges them: see [`super::server`].
    Server,
    /// What is proven of nodes that no other rule speaks of: see [`super::indirect`].
    Proof,
}

/// What the rules about nodes say of two versions of one CRD, each by its name: path, rule and message.
pub type Between<'b> = dyn Fn(&Crd, &str, &str) -> Vec<(String, &'static str, Wording)> + 'b;

/// A keyword and what became of it.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    pub keyword: &'static str,
    pub on: &'static [Transition],
}

impl Claim {
    /// Whatever becomes of the keyword.
    pub const fn all(keyword: &'static str) -> Self {
        Claim { keyword, on: &[Transition::Added, Transition::Changed, Transition::Removed] }
    }

    pub const fn on(keyword: &'static str, on: &'static [Transition]) -> Self {
        Claim { keyword, on }
    }
}

/// A violation of a rule about whole CRDs.
#[derive(Debug, Clone)]
pub struct Found {
    pub version: Option<String>,
    pub said: Diagnosis,
}

/// A violation in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// One line for people.
    pub message: Wording,
    /// What changed at the place, in a few words and without the place: `minItems added: 1`.
    pub fact: Option<String>,
    /// The text that kapp and OLM document, where there is one: `"NoScopeChange" validation failed: …`.
    pub documented: Option<String>,
    /// The concrete next step.
    pub help: Wording,
    /// Where one step is not enough: all of them, a line each.
    pub steps: Vec<String>,
    /// Where in the desired CRD to point.
    pub at: Vec<Step>,
    /// What the mark there says.
    pub label: Option<String>,
    /// Who is affected by this change, where that is less than the rule says.
    pub breaks: Option<Vec<Breaks>>,
    /// Where the change of this keyword alone decides what becomes of objects.
    pub verdict: Option<Verdict>,
    /// Whether it refuses updates for what they change, which no single object shows.
    pub is_about_updates: bool,
}

impl Diagnosis {
    /// A change of a field, in the words that are documented for it.
    pub fn of_field(place: &Place, keyword: &str, text: &str) -> Self {
        let mut at = place.steps.clone();
        at.push(keyword.into());
        Diagnosis {
            fact: Some(text.to_owned()),
            documented: Some(format!(
                "\"ChangeValidator\" validation failed: version \"{}\", field \"{}\": {text}",
                place.version, place.path
            )),
            at,
            ..Diagnosis::default()
        }
    }

    #[must_use]
    pub fn message(mut self, message: impl Into<Wording>) -> Self {
        self.message = message.into();
        self
    }

    #[must_use]
    pub fn fact(mut self, fact: String) -> Self {
        self.fact = Some(fact);
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<Wording>) -> Self {
        self.help = help.into();
        self
    }

    #[must_use]
    pub fn label(mut self, label: String) -> Self {
        self.label = Some(label);
        self
    }
}
