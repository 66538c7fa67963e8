//! Change groups and change rules: their types, and how kapp writes them.

use std::fmt;

use serde_json::Value;

use crate::plan::directives::Phase;
use gantry_core::problem::Location;
use gantry_core::resource::ObjectRef;

const PLACEHOLDERS: [&str; 6] = ["api-group", "kind", "name", "namespace", "crd-group", "crd-kind"];
/// The maximum length of a group name. It may contain the names of objects.
const MAX_NAME: usize = 2000;

/// The groups to which kapp adds objects by their kind.
pub const BY_KIND: &str = "change-groups.kapp.k14s.io/";

/// The operation on an object that a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleOperation {
    /// It is created or updated.
    Upsert,
    Delete,
}

/// Whether a rule puts its object before or after the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderSide {
    Before,
    After,
}

/// A set of objects that a rule names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderGroup {
    Named(String),
    /// One object: group, kind, namespace and name.
    Object(String, String, Option<String>, String),
    /// The objects of a phase with this number: see [`super::waves`].
    Wave(Phase, i64),
    /// Namespaces and CRDs that come before all waves.
    Foundation,
}

impl OrderGroup {
    pub fn for_object(object: &ObjectRef) -> OrderGroup {
        let (group, kind, namespace, name) = object.identity();
        OrderGroup::Object(group.into(), kind.into(), namespace.map(Into::into), name.into())
    }

    /// Whether the group is one of those to which kapp adds objects by their kind.
    pub fn is_by_kind(&self) -> bool {
        matches!(self, OrderGroup::Named(name) if name.starts_with(BY_KIND))
    }
}

impl fmt::Display for OrderGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderGroup::Named(name) => write!(f, "the change group {name}"),
            OrderGroup::Wave(_, number) => write!(f, "wave {number}"),
            OrderGroup::Foundation => f.write_str("the namespaces and CRDs"),
            OrderGroup::Object(group, kind, namespace, name) => {
                write!(f, "{}", kind.to_lowercase())?;
                if !group.is_empty() {
                    write!(f, ".{group}")?;
                }
                write!(f, "/{name}")?;
                namespace.as_ref().map_or(Ok(()), |namespace| write!(f, " -n {namespace}"))
            }
        }
    }
}

/// `upsert after upserting GROUP`: the object's own operation, the side, and the operation on the members of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderRule {
    pub operation: RuleOperation,
    pub side: OrderSide,
    pub other: RuleOperation,
    pub group: OrderGroup,
    pub source: OrderRuleSource,
    /// It is ignored if it would close a cycle.
    pub is_optional: bool,
}

/// The source of a group or a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OrderRuleSource {
    #[default]
    Nowhere,
    /// The annotation with this key.
    Annotation(String),
    /// The configuration: the key of the list, and the place of the entry.
    Binding(&'static str, Option<Location>),
}

impl fmt::Display for OrderRuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderRuleSource::Nowhere => Ok(()),
            OrderRuleSource::Annotation(key) => f.write_str(key),
            OrderRuleSource::Binding(key, _) => f.write_str(key),
        }
    }
}

/// The object that gives `{placeholder}` in the name of a group its value.
pub struct Placeholders<'a> {
    pub object: &'a ObjectRef,
    pub namespace: &'a str,
    pub manifest: &'a Value,
}

impl Placeholders<'_> {
    fn value(&self, placeholder: &str) -> Result<&str, String> {
        let of_crd = |pointer: &str| match self.object.is_crd() {
            true => self.manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default(),
            false => "",
        };
        let value = match placeholder {
            "api-group" => self.object.group(),
            "kind" => &self.object.kind,
            "name" => &self.object.name,
            "namespace" => self.namespace,
            "crd-group" => of_crd("/spec/group"),
            "crd-kind" => of_crd("/spec/names/kind"),
            _ => return Err(unknown(placeholder)),
        };
        if value.is_empty() { Err(format!("{{{placeholder}}} has no value for this object")) } else { Ok(value) }
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Result<OrderGroup, String> {
        group_name(name, |placeholder| self.value(placeholder)).map(OrderGroup::Named)
    }
}

/// A rule whose group may contain placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderRulePattern {
    operation: RuleOperation,
    side: OrderSide,
    other: RuleOperation,
    group: String,
}

impl OrderRulePattern {
    /// Reads `upsert after upserting GROUP`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "a rule is like \"upsert after upserting apps.example.com/database\"";
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[operation, side, other, group] = &words[..] else { return Err(FORM.to_owned()) };
        let operation = match operation {
            "upsert" => RuleOperation::Upsert,
            "delete" => RuleOperation::Delete,
            _ => return Err(format!("{FORM}; its first word is upsert or delete")),
        };
        let side = match side {
            "before" => OrderSide::Before,
            "after" => OrderSide::After,
            _ => return Err(format!("{FORM}; its second word is before or after")),
        };
        let other = match other {
            "upserting" => RuleOperation::Upsert,
            "deleting" => RuleOperation::Delete,
            _ => return Err(format!("{FORM}; its third word is upserting or deleting")),
        };
        check_group(group)?;
        Ok(OrderRulePattern { operation, side, other, group: group.to_owned() })
    }

    /// The rule of an object.
    ///
    /// # Errors
    /// A placeholder has no value for the object.
    pub fn rule(
        &self,
        values: &Placeholders<'_>,
        source: OrderRuleSource,
        is_optional: bool,
    ) -> Result<OrderRule, String> {
        let OrderRulePattern { operation, side, other, ref group } = *self;
        Ok(OrderRule { operation, side, other, group: values.group(group)?, source, is_optional })
    }
}

/// Checks the name of a change group.
///
/// # Errors
/// An unknown placeholder or an invalid name.
pub fn check_group(name: &str) -> Result<(), String> {
    let known = |placeholder: &str| match PLACEHOLDERS.contains(&placeholder) {
        true => Ok("x"),
        false => Err(unknown(placeholder)),
    };
    group_name(name, known).map(drop)
}

fn unknown(placeholder: &str) -> String {
    let [others @ .., last] = PLACEHOLDERS.map(|name| format!("{{{name}}}"));
    format!("unknown placeholder {{{placeholder}}}; known are {} and {last}", others.join(", "))
}

/// The name of a group with its placeholders filled in.
///
/// # Errors
/// Those of `value`, and an invalid name.
fn group_name<'a>(name: &str, value: impl Fn(&str) -> Result<&'a str, String>) -> Result<String, String> {
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
