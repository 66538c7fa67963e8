//! The rules, one file each: what it forbids, why, an example, what to do, and the code that judges.
//!
//! Rules say what is wrong; how loud that is gets decided elsewhere. A rule claims the transitions of keywords that it
//! judges, and whatever changed and nobody claims is an unknown change. So a rule that is silent about a claimed
//! transition has said that it is safe.

mod no_default_added;
mod no_default_changed;
mod no_default_removed;
mod no_enum_added;
mod no_enum_value_removed;
mod no_existing_field_removed;
mod no_max_items_tightened;
mod no_max_length_tightened;
mod no_max_properties_tightened;
mod no_maximum_tightened;
mod no_min_items_tightened;
mod no_min_length_tightened;
mod no_min_properties_tightened;
mod no_minimum_tightened;
mod no_required_field_added;
mod no_scope_change;
mod no_stored_version_removed;
mod no_type_change;
mod served_version_removed;
mod unknown_change;
mod version_unserved;

use super::model::{CrdPair, NodePair, Place, RemovedNode, Transition};
use crate::preflight::rule::RuleDoc;
use crate::resource::Step;

/// One compatibility judgement.
#[derive(Debug)]
pub struct Rule {
    pub doc: RuleDoc,
    /// The transitions that this rule has the say on.
    pub claims: &'static [Claim],
    /// A violation of this rule is the cause of all others on the same node and below it, which are not reported.
    pub hides_others: bool,
    pub judge: Judge,
}

/// What a rule looks at, and the function that looks.
#[derive(Debug, Clone, Copy)]
pub enum Judge {
    /// The CRD as a whole.
    Crd(fn(&CrdPair) -> Vec<Found>),
    /// A node that both sides have.
    Node(fn(&NodePair) -> Option<Said>),
    /// A node that is gone. Its children, gone with it, are not asked about.
    Removed(fn(&RemovedNode) -> Said),
}

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
    pub said: Said,
}

/// A violation in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// One line for people.
    pub message: String,
    /// The text that kapp and OLM document, where there is one: `"NoScopeChange" validation failed: …`.
    pub documented: Option<String>,
    /// The concrete next step.
    pub help: String,
    /// Where in the desired CRD to point.
    pub at: Vec<Step>,
    /// What the mark there says.
    pub label: Option<String>,
}

impl Said {
    /// A change of a field, in the words that are documented for it.
    pub fn of_field(place: &Place, keyword: &str, text: &str) -> Self {
        let mut at = place.steps.clone();
        at.push(keyword.into());
        Said {
            message: String::new(),
            documented: Some(format!(
                "\"ChangeValidator\" validation failed: version \"{}\", field \"{}\": {text}",
                place.version, place.path
            )),
            help: String::new(),
            at,
            label: None,
        }
    }

    #[must_use]
    pub fn message(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    #[must_use]
    pub fn help(mut self, help: String) -> Self {
        self.help = help;
        self
    }

    #[must_use]
    pub fn label(mut self, label: String) -> Self {
        self.label = Some(label);
        self
    }
}

/// Every rule, sorted by name. Violations of one node are reported in this order.
pub static RULES: &[Rule] = &[
    no_default_added::RULE,
    no_default_changed::RULE,
    no_default_removed::RULE,
    no_enum_added::RULE,
    no_enum_value_removed::RULE,
    no_existing_field_removed::RULE,
    no_max_items_tightened::RULE,
    no_max_length_tightened::RULE,
    no_max_properties_tightened::RULE,
    no_maximum_tightened::RULE,
    no_min_items_tightened::RULE,
    no_min_length_tightened::RULE,
    no_min_properties_tightened::RULE,
    no_minimum_tightened::RULE,
    no_required_field_added::RULE,
    no_scope_change::RULE,
    no_stored_version_removed::RULE,
    no_type_change::RULE,
    served_version_removed::RULE,
    unknown_change::RULE,
    version_unserved::RULE,
];

/// The rule that has what no other rule claims.
pub const UNKNOWN_CHANGE: &str = "UnknownChange";

/// Whether a rule other than [`UNKNOWN_CHANGE`] has the say on this transition.
pub fn is_claimed(keyword: &str, transition: Transition) -> bool {
    RULES
        .iter()
        .filter(|rule| rule.doc.name != UNKNOWN_CHANGE)
        .flat_map(|rule| rule.claims)
        .any(|claim| claim.keyword == keyword && claim.on.contains(&transition))
}
