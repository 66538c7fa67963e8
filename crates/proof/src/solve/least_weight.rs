//! The weight that every value of a schema has at least: lists that must have items double it with each level, and such
//! values are better not built.

use serde_json::Value;

use super::{MAX_WEIGHT, Solver};
use crate::constraints::SharedSchema;
use crate::keywords::{self as kw, JsonTypeSet};
use crate::product::{ValuePath, ValueStep};

/// The weights of [`kw::weight`].
const VALUE: u64 = 32;
const ENTRY: u64 = 48;

impl<'s> Solver<'s> {
    /// A lower bound of the weight of every value that the schema accepts.
    pub(super) fn least_weight(&self, schema: &SharedSchema<'s>) -> u64 {
        match schema {
            SharedSchema::Ref(schema) => self.least_weight_of(schema),
            SharedSchema::Own(_) => VALUE,
        }
    }

    /// Whether every value around the end of `value_path` is too large to be built.
    pub fn is_too_large_around(&self, value_path: Option<&ValuePath<'s>>) -> bool {
        let mut weight = VALUE;
        let mut level = value_path;
        while let Some(at) = level {
            if let Some(SharedSchema::Ref(structure)) = at.constraints.holds.first() {
                weight = match at.step {
                    ValueStep::Item => {
                        let others = least_items(structure).saturating_sub(1);
                        let item = kw::get(structure, "items").map_or(VALUE, |item| self.least_weight_of(item));
                        weight.saturating_add(item.saturating_mul(others))
                    }
                    ValueStep::Field(_) | ValueStep::Entry(_) => weight.max(self.least_weight_of(structure)),
                };
            }
            level = at.above.as_deref();
        }
        weight > MAX_WEIGHT
    }

    fn least_weight_of(&self, schema: &'s Value) -> u64 {
        let key = std::ptr::from_ref(schema);
        if let Some(known) = self.least.borrow().get(&key) {
            return *known;
        }
        let weight = match kw::kinds(schema) {
            JsonTypeSet::ARRAY => {
                let item = kw::get(schema, "items").map_or(VALUE, |item| self.least_weight_of(item));
                item.saturating_mul(least_items(schema)).saturating_add(VALUE)
            }
            JsonTypeSet::OBJECT => {
                let written = |name: &&str| !kw::is_meta(name);
                // What is filled in is not written.
                let fields =
                    kw::names(schema, "required").filter(written).filter_map(|name| kw::property(schema, name));
                let written = fields.filter(|field| kw::default_of(field).is_none());
                written.fold(VALUE, |sum, field| sum.saturating_add(ENTRY).saturating_add(self.least_weight_of(field)))
            }
            _ => VALUE,
        };
        self.spend(1);
        self.least.borrow_mut().insert(key, weight);
        weight
    }
}

fn least_items(schema: &Value) -> u64 {
    kw::count(schema, "minItems").and_then(|least| u64::try_from(least).ok()).unwrap_or(0)
}
