//! The order that a configuration defines: change groups and rules for all objects that resource matchers match.
//!
//! Source: `changeGroupBindings` and `changeRuleBindings` in kapp's documentation of its Config.

use super::rule::OrderRulePattern;
use gantry_core::matcher::Matcher;
use gantry_core::problem::Location;

pub const GROUP_BINDINGS: &str = "changeGroupBindings";
pub const RULE_BINDINGS: &str = "changeRuleBindings";

/// All bindings of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderBindings {
    pub groups: Vec<GroupBinding>,
    pub rules: Vec<RuleBinding>,
}

/// Adds objects to a change group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupBinding {
    /// May contain placeholders.
    pub name: String,
    pub matchers: Vec<Matcher>,
    pub at: Option<Location>,
}

/// Adds change rules to objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleBinding {
    /// Each with its place.
    pub rules: Vec<(OrderRulePattern, Option<Location>)>,
    /// Rules that would close a cycle are ignored.
    pub ignore_if_cyclical: bool,
    pub matchers: Vec<Matcher>,
}

impl OrderBindings {
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.rules.is_empty()
    }
}
