//! The cost of rules at run time: the server refuses an object if one rule, or all its rules together, cost too much.
//!
//! The maximum cost of a rule for one value is the server's own estimate, with live's bounds instead of desired's: a
//! value that live does not accept does not matter. Objects of more than 128 KiB are not considered: without a bound in
//! the schema, only the size of an object limits the number of values.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::keywords as kw;
use gantry_k8s_cel::{COST_PER_OBJECT, most_costs};

/// The maximum size of an object that is considered, in bytes. A request may have 3 MiB, but for such objects the
/// estimate of nearly every rule about an unbounded list is beyond the limits, and custom resources are not as large.
const OBJECT: i64 = 128 << 10;

/// What live says about the values of one of desired's nodes.
#[derive(Clone, Copy)]
pub enum LiveValues<'a> {
    /// They are values of this node. `keeps` is whether the enclosing list keeps unknown fields.
    Node { schema: &'a Value, keeps: bool },
    /// They can be anything.
    Nothing,
    /// There are none.
    Absent,
}

/// Desired's schema with live's bounds, without rules of nodes that have no values, and without descriptions.
pub fn bounded(known: LiveValues<'_>, desired: &Value, is_resource: bool) -> Value {
    let Some(keywords) = desired.as_object() else { return desired.clone() };
    let known = match known {
        LiveValues::Node { schema, .. } if kw::type_name(schema) != kw::type_name(desired) => LiveValues::Nothing,
        known => known,
    };
    let is_resource = is_resource || kw::embedded(desired);
    let mut result = Map::new();
    for (keyword, value) in keywords {
        let value = match (keyword.as_str(), value) {
            ("description", _) => continue,
            ("x-kubernetes-validations", _) if matches!(known, LiveValues::Absent) => continue,
            ("maxItems" | "maxProperties" | "maxLength", _) => continue,
            ("properties", Value::Object(fields)) => {
                let below = |(name, field): (&String, &Value)| {
                    (name.clone(), bounded(of_field(known, name, field, is_resource), field, false))
                };
                fields.iter().map(below).collect()
            }
            ("items" | "additionalProperties", Value::Object(_)) => bounded(of_part(known, keyword), value, false),
            _ => value.clone(),
        };
        result.insert(keyword.clone(), value);
    }
    for keyword in ["maxItems", "maxProperties", "maxLength"] {
        let theirs = match known {
            LiveValues::Node { schema, .. } => kw::count(schema, keyword),
            LiveValues::Nothing => None,
            LiveValues::Absent => Some(0),
        };
        let by_size = match (keyword, kw::type_name(desired)) {
            ("maxItems", Some("array")) => kw::get(desired, "items").map(|item| OBJECT / (least_bytes(item) + 1)),
            // The quotes of the key, a colon and a comma.
            ("maxProperties", Some("object")) => kw::additional(desired).map(|entry| OBJECT / (least_bytes(entry) + 4)),
            ("maxLength", Some("string")) => Some(OBJECT),
            _ => None,
        };
        let bounds = [kw::count(desired, keyword), theirs, by_size].into_iter().flatten();
        bounds.min().map(|bound| result.insert(keyword.to_owned(), json!(bound)));
    }
    Value::Object(result)
}

/// The minimum size of a value of the node, in bytes.
fn least_bytes(schema: &Value) -> i64 {
    // A value that is filled in takes no space in a request.
    let required = |name: &str| {
        let field = kw::property(schema, name).filter(|field| kw::default_of(field).is_none())?;
        Some(name_bytes(name) + least_bytes(field))
    };
    let fields = match kw::type_name(schema) {
        Some("object") => kw::names(schema, "required").filter_map(required).sum(),
        _ => 0,
    };
    own_bytes(schema) + fields
}

/// The minimum size of a value without the parts below, in bytes.
fn own_bytes(schema: &Value) -> i64 {
    match kw::type_name(schema) {
        Some("boolean") => 4,
        Some("string" | "array" | "object") => 2,
        _ => 1,
    }
}

/// The size of the name of a field, in bytes, with its quotes, a colon and a comma.
fn name_bytes(name: &str) -> i64 {
    name.len() as i64 + 4
}

fn of_field<'a>(known: LiveValues<'a>, name: &str, field: &Value, is_resource: bool) -> LiveValues<'a> {
    let found = match known {
        LiveValues::Node { schema, keeps } => match kw::property(schema, name).or_else(|| kw::additional(schema)) {
            Some(schema) => LiveValues::Node { schema, keeps: false },
            None if keeps || kw::preserves(schema) || is_resource && kw::is_meta(name) => LiveValues::Nothing,
            None => LiveValues::Absent,
        },
        known => known,
    };
    // A value that desired fills in has desired's bounds.
    let default = kw::default_of(field);
    let theirs = match found {
        LiveValues::Node { schema, .. } => kw::default_of(schema),
        _ => None,
    };
    match default {
        Some(default) if !theirs.is_some_and(|theirs| kw::same_value(theirs, default)) => LiveValues::Nothing,
        _ => found,
    }
}

fn of_part<'a>(known: LiveValues<'a>, keyword: &str) -> LiveValues<'a> {
    match known {
        LiveValues::Node { schema, keeps } => match kw::get(schema, keyword).filter(|part| part.is_object()) {
            Some(part) => {
                LiveValues::Node { schema: part, keeps: keyword == "items" && (keeps || kw::preserves(schema)) }
            }
            None => LiveValues::Nothing,
        },
        known => known,
    }
}

/// A node with the cost of its own rules for one value.
struct Priced {
    cost: f64,
    /// The minimum size of a value without the parts below, in bytes.
    bytes: f64,
    fields: Vec<PricedField>,
    /// The items or entries, and their maximum number.
    parts: Option<(Box<Priced>, Option<f64>)>,
}

struct PricedField {
    of: Priced,
    /// The size of its name and separators, in bytes.
    bytes: f64,
    is_required: bool,
}

impl Priced {
    /// `None` if the cost of a rule cannot be estimated.
    fn estimate(schema: &Value, is_resource: bool) -> Option<Self> {
        let is_resource = is_resource || kw::embedded(schema);
        let rules = kw::list(schema, "x-kubernetes-validations");
        let cost = match rules {
            [] => 0,
            rules => most_costs(schema, rules, is_resource)
                .into_iter()
                .try_fold(0_u64, |sum, cost| cost.map(|cost| sum.saturating_add(cost)))?,
        };
        let required: HashSet<&str> = kw::names(schema, "required").collect();
        let mut fields = Vec::new();
        for (name, field) in kw::properties(schema).into_iter().flatten() {
            let is_filled = kw::default_of(field).is_some();
            fields.push(PricedField {
                of: Priced::estimate(field, false)?,
                // A value that is filled in takes no space in a request.
                bytes: if is_filled { 0.0 } else { name_bytes(name) as f64 },
                is_required: !is_filled && required.contains(name.as_str()),
            });
        }
        let is_list = kw::type_name(schema) == Some("array");
        let (part, most) = match is_list {
            true => (kw::get(schema, "items"), "maxItems"),
            false => (kw::additional(schema), "maxProperties"),
        };
        let parts = match part {
            Some(part) => {
                Some((Box::new(Priced::estimate(part, false)?), kw::count(schema, most).map(|most| most as f64)))
            }
            None => None,
        };
        Some(Priced { cost: cost as f64, bytes: own_bytes(schema) as f64, fields, parts })
    }

    /// The maximum cost of a value and everything in it, if each byte of it costs `price`.
    fn most(&self, price: f64) -> f64 {
        let mut most = self.cost - price * self.bytes;
        for field in &self.fields {
            let own = field.of.most(price) - price * field.bytes;
            most += if field.is_required { own } else { own.max(0.0) };
        }
        if let Some((part, times)) = &self.parts {
            // A comma.
            let own = part.most(price) - price;
            if own > 0.0 {
                most += own * times.unwrap_or(f64::INFINITY);
            }
        }
        most
    }
}

/// A reason, if all rules of an object together may cost more than the server allows. `schema` is [`bounded`].
pub fn too_costly_together(schema: &Value) -> Option<String> {
    let Some(priced) = Priced::estimate(schema, true) else {
        return Some("the cost of the rules is not known".to_owned());
    };
    // Whatever price a byte has, the cost is at most that of the object at this price plus the price of all its bytes.
    let prices = [0.0].into_iter().chain((-8..32).map(|power| 2.0_f64.powi(power)));
    let most = prices.map(|price| priced.most(price) + price * OBJECT as f64).fold(f64::INFINITY, f64::min);
    (most > COST_PER_OBJECT as f64).then(|| {
        format!(
            "all rules of one object together may cost {most:.0}, more than the server's limit of {COST_PER_OBJECT}"
        )
    })
}
