//! The order that a configuration asks for: groups and rules of all objects that resource matchers fit.
//!
//! Source: `changeGroupBindings` and `changeRuleBindings` in kapp's documentation of its Config.

use super::written::{Operation, Placeholders, Rule, Side, Source};
use crate::matcher::Matcher;
use crate::problem::Location;

pub const GROUP_BINDINGS: &str = "changeGroupBindings";
pub const RULE_BINDINGS: &str = "changeRuleBindings";

const PLACEHOLDERS: [&str; 6] = ["api-group", "kind", "name", "namespace", "crd-group", "crd-kind"];
/// A group may be named after objects, whose names are shorter than this.
const MAX_NAME: usize = 2000;

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

/// A rule as it is written, the placeholders of its group not filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    operation: Operation,
    side: Side,
    other: Operation,
    group: String,
}

impl Pattern {
    /// Reads `upsert after upserting GROUP`.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "a rule is like \"upsert after upserting apps.example.com/database\"";
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[operation, side, other, group] = &words[..] else { return Err(FORM.to_owned()) };
        let operation = match operation {
            "upsert" => Operation::Upsert,
            "delete" => Operation::Delete,
            _ => return Err(format!("{FORM}; its first word is upsert or delete")),
        };
        let side = match side {
            "before" => Side::Before,
            "after" => Side::After,
            _ => return Err(format!("{FORM}; its second word is before or after")),
        };
        let other = match other {
            "upserting" => Operation::Upsert,
            "deleting" => Operation::Delete,
            _ => return Err(format!("{FORM}; its third word is upserting or deleting")),
        };
        check_group(group)?;
        Ok(Pattern { operation, side, other, group: group.to_owned() })
    }

    /// The rule of an object.
    ///
    /// # Errors
    /// A placeholder has no value for it.
    pub fn rule(&self, values: &Placeholders<'_>, source: Source, is_optional: bool) -> Result<Rule, String> {
        let Pattern { operation, side, other, ref group } = *self;
        Ok(Rule { operation, side, other, group: values.group(group)?, source, is_optional })
    }
}

/// Whether a change group may be called so; if not, why.
///
/// # Errors
/// An unknown placeholder, or what no name is made of.
pub fn check_group(name: &str) -> Result<(), String> {
    let known = |placeholder: &str| match PLACEHOLDERS.contains(&placeholder) {
        true => Ok("x"),
        false => Err(unknown(placeholder)),
    };
    group_name(name, known).map(drop)
}

pub fn unknown(placeholder: &str) -> String {
    let [others @ .., last] = PLACEHOLDERS.map(|name| format!("{{{name}}}"));
    format!("unknown placeholder {{{placeholder}}}; there are {} and {last}", others.join(", "))
}

/// The name of a group with its placeholders filled in.
///
/// # Errors
/// Those of `value`, and what no name is made of.
pub fn group_name<'a>(name: &str, value: impl Fn(&str) -> Result<&'a str, String>) -> Result<String, String> {
    let mut full = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((placeholder, after)) = after.split_once('}') else { break };
        full.push_str(before);
        full.push_str(value(placeholder)?);
        rest = after;
    }
    full.push_str(rest);
    match is_name(&full) {
        true => Ok(full),
        false => Err("the name of a change group is like apps.example.com/database".to_owned()),
    }
}

/// One part or two, each of letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_end = |end: Option<u8>| end.is_some_and(|byte| byte.is_ascii_alphanumeric());
        is_end(part.bytes().next())
            && is_end(part.bytes().next_back())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let (first, second) = name.split_once('/').map_or((name, None), |(first, second)| (first, Some(second)));
    name.len() <= MAX_NAME && is_part(first) && second.is_none_or(is_part)
}
