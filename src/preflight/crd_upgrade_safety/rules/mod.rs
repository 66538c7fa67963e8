//! The rules, one file each: what it forbids, why, an example, what to do, and the code that judges.
//!
//! Rules say what is wrong; how loud that is gets decided elsewhere. A rule claims the transitions of keywords that it
//! judges, and whatever changed and nobody claims is an unknown change. So a rule that is silent about a claimed
//! transition has said that it is safe.

mod additional_properties_change;
mod all_of_change;
mod any_of_change;
mod conversion_changed;
mod crd_invalid;
mod embedded_resource_change;
mod exclusive_maximum_change;
mod exclusive_minimum_change;
mod format_change;
mod int_or_string_change;
mod kind_changed;
mod list_map_keys_change;
mod list_type_change;
mod map_type_change;
mod multiple_of_change;
mod name_removed;
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
mod not_change;
mod nullable_change;
mod one_of_change;
mod pattern_change;
mod preserve_unknown_fields_change;
mod printer_column_removed;
mod pruning_turned_on;
mod scale_path_changed;
mod selectable_field_removed;
mod served_version_removed;
mod served_versions_differ;
mod status_subresource_added;
mod storage_version_loses_fields;
mod storage_version_moved;
mod subresource_removed;
mod unknown_change;
mod validation_rule_change;
mod version_deprecated;
mod version_unserved;

use super::model::{CrdPair, NodePair, Place, RemovedNode, Transition};
use crate::finding::wording::Wording;
use crate::finding::{Breaks, Severity, Verdict};
use crate::preflight::rule::RuleDoc;
use crate::resource::Step;

/// One compatibility judgement.
#[derive(Debug)]
pub struct Rule {
    pub doc: RuleDoc,
    /// Where the rule comes from, which decides how a violation weighs.
    pub weight: Weight,
    /// The transitions that this rule has the say on.
    pub claims: &'static [Claim],
    /// A violation of this rule is the cause of all others on the same node and below it, which are not reported.
    pub hides_others: bool,
    pub judge: Judge,
}

/// Where a rule comes from. [`super::decide`] makes a severity of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The reference documents forbid the change.
    Forbidden,
    /// The reference documents call the change unknown: what nobody decides falls to `failMode`.
    Unknown,
    /// The reference documents do not speak of it. The severity of the rule holds; under `preset: semantic` this one.
    Beyond { semantic: Severity },
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
    /// Whole CRDs, new ones too, as the API server judges them: see [`super::server`].
    Server,
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
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
    /// Who is hurt by this very change, where that is less than the rule says.
    pub breaks: Option<Vec<Breaks>>,
    /// Where the change of this keyword alone decides what becomes of objects.
    pub verdict: Option<Verdict>,
    /// Whether it refuses updates for what they change, which no single object shows.
    pub is_about_updates: bool,
}

impl Said {
    /// A change of a field, in the words that are documented for it.
    pub fn of_field(place: &Place, keyword: &str, text: &str) -> Self {
        let mut at = place.steps.clone();
        at.push(keyword.into());
        Said {
            fact: Some(text.to_owned()),
            documented: Some(format!(
                "\"ChangeValidator\" validation failed: version \"{}\", field \"{}\": {text}",
                place.version, place.path
            )),
            at,
            ..Said::default()
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

/// Every rule, sorted by name. Violations of one node are reported in this order.
pub static RULES: &[Rule] = &[
    additional_properties_change::RULE,
    all_of_change::RULE,
    any_of_change::RULE,
    crd_invalid::RULE,
    conversion_changed::RULE,
    embedded_resource_change::RULE,
    exclusive_maximum_change::RULE,
    exclusive_minimum_change::RULE,
    format_change::RULE,
    int_or_string_change::RULE,
    kind_changed::RULE,
    list_map_keys_change::RULE,
    list_type_change::RULE,
    map_type_change::RULE,
    multiple_of_change::RULE,
    name_removed::RULE,
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
    not_change::RULE,
    nullable_change::RULE,
    one_of_change::RULE,
    pattern_change::RULE,
    preserve_unknown_fields_change::RULE,
    printer_column_removed::RULE,
    pruning_turned_on::RULE,
    scale_path_changed::RULE,
    selectable_field_removed::RULE,
    served_version_removed::RULE,
    served_versions_differ::RULE,
    status_subresource_added::RULE,
    storage_version_loses_fields::RULE,
    storage_version_moved::RULE,
    subresource_removed::RULE,
    unknown_change::RULE,
    validation_rule_change::RULE,
    version_deprecated::RULE,
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
