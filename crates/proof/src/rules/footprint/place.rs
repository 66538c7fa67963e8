//! Resolves paths in rules.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{FIXED, FootprintReader};
use crate::keywords as kw;
use crate::rules::view::ViewStep;
use gantry_k8s_cel::ast::{Expr, Literal, SelectionStep};
use gantry_k8s_cel::unescape;
use gantry_schema::{self as schema, Sense};

/// A place below the node: the path to it, and its schemas.
#[derive(Clone, Debug)]
pub(super) struct FootprintPlace<'a> {
    pub path: Vec<ViewStep>,
    pub schema: &'a Value,
    /// Desired's schema of this place, if any.
    pub desired: Option<&'a Value>,
    /// Whether fields that live does not describe are kept here.
    pub keeps: bool,
    /// The value here in every object, because no object of live has the field, and desired fills it in. The path is
    /// that of the object that gets it.
    pub filled: Option<&'a Value>,
}

impl<'a> FootprintReader<'a, '_> {
    /// The place that a chain of selections leads to.
    pub(super) fn place(&mut self, expr: &Expr) -> Option<FootprintPlace<'a>> {
        match expr {
            Expr::Variable(name) => match self.scope.iter().rev().find(|(bound, _)| bound == name) {
                Some((_, place)) => Some(place.clone()),
                None => (name == "self" || name == "oldSelf").then(|| self.root.clone()),
            },
            Expr::Path { root, steps } => {
                let start = self.place(root)?;
                self.follow(start, steps)
            }
            _ => None,
        }
    }

    pub(super) fn follow(
        &mut self,
        mut place: FootprintPlace<'a>,
        steps: &[SelectionStep],
    ) -> Option<FootprintPlace<'a>> {
        for step in steps {
            if is_absent(&place) {
                return Some(place);
            }
            if let Some(filled) = place.filled {
                place = follow_filled(place, filled, step)?;
                continue;
            }
            place = match step {
                SelectionStep::Field { name, optional: false } => self.field(place, &unescape(name)?)?,
                SelectionStep::Index { index: Expr::Literal(Literal::String(key)), optional: false } => {
                    self.entry(place, key)?
                }
                SelectionStep::Index { index: Expr::Literal(Literal::Int(index)), optional: false } => {
                    let index = usize::try_from(*index).ok().filter(|index| *index < 64)?;
                    self.add_unsupported(FIXED);
                    let view = self.view(&place);
                    view.kept = view.kept.max(index + 1);
                    item(place)?
                }
                SelectionStep::Index { index: Expr::Variable(key), optional: false } => {
                    let (_, bound) = self.scope.iter().rev().find(|(name, _)| name == key)?;
                    let (last, map) = bound.path.split_last()?;
                    if *last != ViewStep::Name || map != place.path {
                        return None;
                    }
                    value(place)?
                }
                _ => return None,
            };
        }
        Some(place)
    }

    fn field(&mut self, place: FootprintPlace<'a>, name: &str) -> Option<FootprintPlace<'a>> {
        let is_resource = place.path.is_empty() && self.is_root || kw::embedded(place.schema);
        let is_metadata = place.path.is_empty() && self.is_root && name == "metadata";
        let is_named = || kw::property(place.schema, "metadata").is_some_and(|own| kw::property(own, "name").is_some());
        if is_metadata && !is_named() {
            // Rules are run on objects of one name only.
            self.add_unsupported("the name of the object");
            return Some(FootprintPlace {
                path: vec![ViewStep::Field(name.to_owned())],
                schema: metadata(),
                desired: None,
                keeps: false,
                filled: None,
            });
        }
        let desired = place.desired.and_then(|desired| kw::property(desired, name));
        if let Some(schema) = kw::property(place.schema, name) {
            let mut path = place.path;
            path.push(ViewStep::Field(name.to_owned()));
            return Some(FootprintPlace { path, schema, desired, keeps: false, filled: None });
        }
        // Live drops a field that it does not describe, so no object has it, unless desired defaults it.
        let is_dropped = kw::additional(place.schema).is_none()
            && !kw::preserves(place.schema)
            && !place.keeps
            && !is_resource
            && kind(place.schema) == "object";
        if let (true, Some(desired)) = (is_dropped, desired) {
            return Some(match kw::default_of(desired) {
                None => absent_place(place),
                Some(value) => FootprintPlace { desired: Some(desired), filled: Some(value), ..place },
            });
        }
        self.entry(place, name)
    }

    /// The value of a map under a fixed key. The view must keep this entry.
    pub(super) fn entry(&mut self, place: FootprintPlace<'a>, key: &str) -> Option<FootprintPlace<'a>> {
        let path = place.path.clone();
        let value = value(place)?;
        let map = self.footprint.view.at(&path);
        map.kept += 1;
        map.sought += 1;
        map.sought_keys.insert(key.to_owned());
        map.keys.get_or_insert_default().words.insert(key.to_owned());
        // What the rule checks on this value is recorded for the values of all keys, which does no harm.
        Some(value)
    }
}

/// The place that a step leads to from one that desired fills in with `filled`. None if that is not certain.
fn follow_filled<'a>(place: FootprintPlace<'a>, filled: &'a Value, step: &SelectionStep) -> Option<FootprintPlace<'a>> {
    match step {
        SelectionStep::Field { name, optional: false } => {
            let name = unescape(name)?;
            let desired = place.desired.and_then(|desired| kw::property(desired, &name));
            // Defaults inside of a default are filled in, too.
            match filled.get(&name).or_else(|| desired.and_then(kw::default_of)) {
                Some(value) => Some(FootprintPlace { desired, filled: Some(value), ..place }),
                None => Some(absent_place(place)),
            }
        }
        SelectionStep::Index { index: Expr::Literal(Literal::Int(index)), optional: false } => {
            let item = filled.get(usize::try_from(*index).ok()?)?;
            let desired = place.desired.and_then(|desired| kw::get(desired, "items"));
            Some(FootprintPlace { desired, filled: Some(item), ..place })
        }
        _ => None,
    }
}

/// `metadata` of a custom resource, as rules see it.
fn metadata() -> &'static Value {
    static METADATA: std::sync::LazyLock<Value> = std::sync::LazyLock::new(
        || serde_json::json!({"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}),
    );
    &METADATA
}

pub(super) fn kind(schema: &Value) -> &str {
    match schema.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) => "int-or-string",
        None => "",
    }
}

/// The values that defaults on the path to a place put there.
pub(super) fn defaults_at<'s>(root: &'s Value, path: &[ViewStep]) -> Vec<&'s Value> {
    let (mut schema, mut filled) = (root, Vec::new());
    for key in path {
        let below = match key {
            ViewStep::Field(name) => kw::property(schema, name),
            ViewStep::Item => kw::get(schema, "items"),
            ViewStep::Value => kw::additional(schema),
            ViewStep::Name => None,
        };
        let inside = |value: &'s Value| -> Vec<&'s Value> {
            match (key, value) {
                (ViewStep::Field(name), Value::Object(map)) => map.get(name).into_iter().collect(),
                (ViewStep::Item, Value::Array(items)) => items.iter().collect(),
                (ViewStep::Value, Value::Object(map)) => map.values().collect(),
                _ => Vec::new(),
            }
        };
        filled = filled.into_iter().flat_map(inside).collect();
        let Some(below) = below else { return filled };
        filled.extend(kw::default_of(below));
        schema = below;
    }
    filled
}

/// The keywords of a schema that constrain a value.
pub(super) fn constraining_keywords(schema: &Value) -> BTreeMap<&str, &Value> {
    let is_said = |key: &str| key == "default" || schema::is_left_out(key, Sense::Objects);
    let entries = schema.as_object().into_iter().flatten();
    entries.filter(|(key, _)| !is_said(key)).map(|(key, value)| (key.as_str(), value)).collect()
}

/// Represents all places that no object of live has.
static ABSENT: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| Value::Null);

fn absent_place(place: FootprintPlace<'_>) -> FootprintPlace<'_> {
    FootprintPlace { schema: &ABSENT, desired: None, filled: None, ..place }
}

pub(super) fn is_absent(place: &FootprintPlace<'_>) -> bool {
    std::ptr::eq(place.schema, &*ABSENT)
}

pub(super) fn item(place: FootprintPlace<'_>) -> Option<FootprintPlace<'_>> {
    let schema = place.schema.get("items")?;
    let desired = place.desired.and_then(|desired| desired.get("items"));
    let keeps = place.keeps || kw::preserves(place.schema);
    let mut path = place.path;
    path.push(ViewStep::Item);
    Some(FootprintPlace { path, schema, desired, keeps, filled: None })
}

pub(super) fn value(place: FootprintPlace<'_>) -> Option<FootprintPlace<'_>> {
    let schema = place.schema.get("additionalProperties").filter(|values| values.is_object())?;
    let desired = place.desired.and_then(|desired| desired.get("additionalProperties"));
    let mut path = place.path;
    path.push(ViewStep::Value);
    Some(FootprintPlace { path, schema, desired, keeps: false, filled: None })
}
