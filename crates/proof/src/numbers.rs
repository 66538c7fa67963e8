//! Finitely many numbers that represent all numbers.
//!
//! Bounds cut the number line into intervals, and all numbers of an interval are treated in the same way. So one number
//! from each interval, together with the bounds themselves, decides. With `multipleOf` the intervals repeat, and one
//! period decides.

use serde_json::{Value, json};

use super::constraints::{SharedSchema, ValueConstraints};
use super::keywords::{self as kw, JsonTypeSet};
use gantry_schema::as_stored;

/// Numbers that represent all others.
pub struct NumberRepresentatives {
    pub values: Vec<Value>,
    /// Whether they represent all numbers.
    pub are_all: bool,
}

/// The maximum period that is tried.
const PERIOD: i64 = 240;

#[derive(Default)]
struct Cuts {
    at: Vec<f64>,
    factors: Vec<f64>,
}

impl Cuts {
    fn read(&mut self, part: &Value) {
        let number = |keyword: &str| part.get(keyword).and_then(Value::as_f64);
        self.at.extend(["minimum", "maximum"].into_iter().filter_map(number));
        self.factors.extend(number("multipleOf"));
        for option in kw::list(part, "enum") {
            self.at.extend(option.as_f64());
            // An integer equals the string that consists of the character with that code point.
            self.at.extend(option.as_str().and_then(|text| text.chars().next()).map(|c| f64::from(u32::from(c))));
        }
        match part.get("format").and_then(Value::as_str) {
            Some("int32") => self.at.extend([f64::from(i32::MIN), f64::from(i32::MAX)]),
            Some("float") => self.at.extend([f64::from(f32::MIN), f64::from(f32::MAX)]),
            _ => {}
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            kw::list(part, keyword).iter().for_each(|branch| self.read(branch));
        }
        if let Some(not) = kw::get(part, "not") {
            self.read(not);
        }
    }
}

/// Integers, or for [`Kinds::FRACTION`] other numbers, that represent all that `constraints` can distinguish.
pub fn representatives(constraints: &ValueConstraints, kind: JsonTypeSet) -> NumberRepresentatives {
    let mut cuts = Cuts::default();
    constraints.holds.iter().chain(&constraints.fails).for_each(|part| cuts.read(part));
    cuts.at.push(0.0);
    cuts.at.retain(|f| f.is_finite());
    cuts.at.sort_by(f64::total_cmp);
    cuts.at.dedup();
    if kind == JsonTypeSet::INTEGER { integers(&cuts) } else { fractions(&cuts) }
}

fn integers(cuts: &Cuts) -> NumberRepresentatives {
    let mut period: i64 = 1;
    let mut are_all = true;
    for factor in &cuts.factors {
        let whole = (*factor as i64).max(1);
        let common = (period / gcd(period, whole)).saturating_mul(whole);
        // For integers a fractional factor is truncated to an integer, and 0 refuses every integer.
        if common > PERIOD || *factor < 1.0 && *factor > 0.0 && cuts.factors.len() > 1 {
            are_all = false;
        } else {
            period = common;
        }
    }
    let mut values: Vec<i64> = Vec::new();
    for cut in &cuts.at {
        let at = *cut as i64;
        let reach = if period == 1 { 2 } else { period };
        values.extend((-reach..=reach).filter_map(|by| at.checked_add(by)));
        for factor in cuts.factors.iter().map(|f| *f as i64).filter(|f| *f > PERIOD) {
            let below = at.saturating_sub(at.rem_euclid(factor));
            values.extend([below, below.saturating_add(factor), below.saturating_sub(factor)]);
        }
    }
    values.extend([i64::MIN, i64::MAX]);
    values.sort_by_key(|i| (i.unsigned_abs(), *i < 0));
    values.dedup();
    NumberRepresentatives { values: values.into_iter().map(|i| json!(i)).collect(), are_all }
}

fn fractions(cuts: &Cuts) -> NumberRepresentatives {
    let mut values: Vec<f64> = vec![0.5, -0.5, 1e300, -1e300, 1e19, -1e19];
    for (at, cut) in cuts.at.iter().enumerate() {
        values.push(*cut);
        let next = cuts.at.get(at + 1).copied().unwrap_or(cut + 1.0);
        for share in [0.5, 0.25, 0.0625] {
            values.push(cut + (next - cut) * share);
        }
        values.extend([cut + 0.5, cut - 0.5, cut + 0.25, cut - 0.25, cut.next_up(), cut.next_down()]);
        for factor in &cuts.factors {
            let below = (cut / factor).floor();
            values.extend((-3..=3).map(|by| (below + f64::from(by)) * factor));
            // A number just beside a multiple still counts as a multiple, depending on the release.
            let beside = [1.0, 2.0, 3.0, -1.0, -2.0].map(|times| times * factor);
            values.extend(beside.into_iter().flat_map(|at| [at * (1.0 + 5e-10), at * (1.0 - 5e-10)]));
        }
    }
    // A number that reads as an integer is treated as an integer.
    values.retain(|f| f.is_finite() && (f.fract() != 0.0 || f.abs() > 9.3e18));
    values.sort_by(f64::total_cmp);
    values.sort_by_cached_key(|f| digits(*f));
    values.dedup();
    let values = values.into_iter().map(|f| json!(f)).collect();
    NumberRepresentatives { values, are_all: cuts.factors.is_empty() }
}

/// The same constraints without `multipleOf`, which are weaker. None if removing it would not weaken them.
pub fn without_factors<'s>(constraints: &ValueConstraints<'s>) -> Option<ValueConstraints<'s>> {
    let has_factors = |part: &SharedSchema| {
        let mut cuts = Cuts::default();
        cuts.read(part);
        !cuts.factors.is_empty()
    };
    let holds = constraints
        .holds
        .iter()
        .map(|part| without_multiple_of(part).map(SharedSchema::owned))
        .collect::<Option<Vec<_>>>()?;
    let fails = constraints.fails.iter().filter(|part| !has_factors(part)).cloned().collect();
    Some(ValueConstraints { holds, fails, ..constraints.clone() })
}

fn without_multiple_of(part: &Value) -> Option<Value> {
    let mut part = part.clone();
    let map = part.as_object_mut()?;
    map.remove("multipleOf");
    for keyword in ["allOf", "anyOf"] {
        if let Some(Value::Array(branches)) = map.get_mut(keyword) {
            for branch in branches {
                *branch = without_multiple_of(branch)?;
            }
        }
    }
    for keyword in ["oneOf", "not"] {
        if map.get(keyword).is_some_and(|below| below.to_string().contains("multipleOf")) {
            return None;
        }
    }
    Some(part)
}

/// The length of a number in decimal notation: short numbers are tried first.
fn digits(f: f64) -> usize {
    f.to_string().len()
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The values that an `enum` can accept: its own, and the numbers that count as one of them. `kinds` are the kinds that
/// the types allow.
pub fn enum_values(options: &[Value], constraints: &ValueConstraints, kinds: JsonTypeSet) -> NumberRepresentatives {
    let mut values: Vec<Value> = options.to_vec();
    let mut are_all = true;
    // A stored CRD contains 2 where the manifest had 2.0.
    for option in options {
        let mut stored = option.clone();
        as_stored(&mut stored);
        // Most values are stored as they are written.
        if stored != *option && !values.contains(&stored) {
            values.push(stored);
        }
    }
    // The server truncates a fraction before it compares it with an integer: of the numbers between two integers, all
    // pass or none.
    if kinds.contains(JsonTypeSet::FRACTION) && values.iter().any(Value::is_i64) {
        let fractions = representatives(constraints, JsonTypeSet::FRACTION);
        values.extend(fractions.values);
        are_all = fractions.are_all;
    }
    for option in options {
        if let Some(text) = option.as_str()
            && kinds.contains(JsonTypeSet::INTEGER)
        {
            let mut characters = text.chars();
            if let (Some(c), None) = (characters.next(), characters.next()) {
                values.push(json!(u32::from(c)));
            }
        }
    }
    NumberRepresentatives { values, are_all }
}
