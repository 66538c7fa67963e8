//! The order that a configuration asks for: groups and rules of all objects that resource matchers fit.
//!
//! Source: `changeGroupBindings` and `changeRuleBindings` in kapp's documentation of its Config.

use super::rule::Pattern;
use crate::matcher::Matcher;
use crate::problem::Location;

pub const GROUP_BINDINGS: &str = "changeGroupBindings";
pub const RULE_BINDINGS: &str = "changeRuleBindings";

/// All bindings of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bindings {
    pub groups: Vec<GroupBinding>,
    pub rules: Vec<RuleBinding>,
}

/// Objects that are in a change group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupBinding {
    /// May have placeholders.
    pub name: String,
    pub matchers: Vec<Matcher>,
    pub at: Option<Location>,
}

/// Objects that have change rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleBinding {
    /// Each with its place.
    pub rules: Vec<(Pattern, Option<Location>)>,
    /// A rule does not count where it would close a cycle.
    pub ignore_if_cyclical: bool,
    pub matchers: Vec<Matcher>,
}

impl Bindings {
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.rules.is_empty()
    }
}
