//! Rules that follow from the bounds of the schema alone.
//!
//! A sum of the sizes of sixteen lists has too many combinations to try, but none has to be tried: each size lies
//! between the bounds that live sets, so does their sum, and often that decides the comparison. Every value that is
//! read must certainly be present (required, defaulted, or checked by an earlier condition): otherwise the rule would
//! fail with an error.

use serde_json::Value;

use crate::keywords as kw;
use gantry_k8s_cel::ast::{BinaryOperator, Expr, Literal, SelectionStep};
use gantry_k8s_cel::{parse_rule, unescape};

/// Whether the rule holds for every value that `live` accepts, with `desired`'s defaults. False if that is unknown.
pub fn always_holds(rule: &str, live: &Value, desired: &Value) -> bool {
    let Ok(Some(expr)) = parse_rule(rule) else { return false };
    RangeEvaluator { live, desired }.truth(&expr, &[]) == Some(RangeTruth::True)
}

/// What the conditions before an expression guarantee.
#[derive(Clone)]
enum ValueGuarantee {
    /// The field at this place is present.
    There(String),
    /// The list at this place has more items than this.
    Longer(String, i64),
}

#[derive(Clone, Copy, PartialEq)]
enum RangeTruth {
    True,
    False,
    Either,
}

/// The integers from the first to the second, inclusive.
type IntegerRange = (i64, i64);

/// More parts than any value in a request can have.
const HUGE: i64 = 1 << 40;

/// A value that is certainly present.
struct PresentValue<'a> {
    name: String,
    live: &'a Value,
    desired: &'a Value,
}

struct RangeEvaluator<'a> {
    live: &'a Value,
    desired: &'a Value,
}

impl<'a> RangeEvaluator<'a> {
    /// The value of a condition. None: unknown, or possibly an error.
    fn truth(&self, expr: &Expr, known: &[ValueGuarantee]) -> Option<RangeTruth> {
        match expr {
            Expr::Literal(Literal::Bool(value)) => Some(if *value { RangeTruth::True } else { RangeTruth::False }),
            Expr::Has { operand, field } => {
                let around = self.place(operand, known)?;
                kw::property(around.live, &unescape(field)?)?;
                let name = format!("{}.{field}", around.name);
                let is_there = known.iter().any(|fact| matches!(fact, ValueGuarantee::There(known) if *known == name));
                Some(if is_there { RangeTruth::True } else { RangeTruth::Either })
            }
            Expr::Not(inner) => Some(opposite(self.truth(inner, known)?)),
            Expr::And(operands) => self.chain(operands, known, RangeTruth::False, &learned),
            Expr::Or(operands) => self.chain(operands, known, RangeTruth::True, &|operand| match operand {
                Expr::Not(refused) => learned(refused),
                _ => Vec::new(),
            }),
            Expr::Conditional { cases, otherwise } => {
                let reached = self.reachable_branches(cases, otherwise, known)?.into_iter();
                reached.map(|(expr, known)| self.truth(expr, &known)).reduce(|a, b| Some(join(a?, b?)))?
            }
            Expr::Binary { first, rest } => {
                let [(operator, second)] = &rest[..] else { return None };
                compare(self.range(first, known)?, *operator, self.range(second, known)?)
            }
            _ => None,
        }
    }

    /// Evaluates operands of which a single one with the value `deciding` decides the result. An operand matters only
    /// if the ones before it are not `deciding`, so their opposites are known there.
    fn chain(
        &self,
        operands: &[Expr],
        known: &[ValueGuarantee],
        deciding: RangeTruth,
        learned: &dyn Fn(&Expr) -> Vec<ValueGuarantee>,
    ) -> Option<RangeTruth> {
        let mut known = known.to_vec();
        let mut all = opposite(deciding);
        for operand in operands {
            match self.truth(operand, &known)? {
                truth if truth == deciding => return Some(deciding),
                RangeTruth::Either => all = RangeTruth::Either,
                _ => {}
            }
            known.extend(learned(operand));
        }
        Some(all)
    }

    /// The range of an integer expression. None: unknown, not an integer, or possibly an error.
    fn range(&self, expr: &Expr, known: &[ValueGuarantee]) -> Option<IntegerRange> {
        match expr {
            Expr::Literal(Literal::Int(value)) => Some((*value, *value)),
            Expr::Binary { first, rest } => {
                let mut range = self.range(first, known)?;
                for (operator, operand) in rest {
                    let (low, high) = self.range(operand, known)?;
                    range = match operator {
                        BinaryOperator::Add => (range.0.checked_add(low)?, range.1.checked_add(high)?),
                        BinaryOperator::Subtract => (range.0.checked_sub(high)?, range.1.checked_sub(low)?),
                        _ => return None,
                    };
                }
                Some(range)
            }
            Expr::Conditional { cases, otherwise } => {
                let reached = self.reachable_branches(cases, otherwise, known)?.into_iter();
                let ranges = reached.map(|(expr, known)| self.range(expr, &known));
                ranges.reduce(|a, b| a.zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))))?
            }
            _ => self.size(&self.place(sized(expr)?, known)?),
        }
    }

    /// The branches of a conditional that can be reached, with what is known in each.
    fn reachable_branches<'e>(
        &self,
        cases: &'e [(Expr, Expr)],
        otherwise: &'e Expr,
        known: &[ValueGuarantee],
    ) -> Option<Vec<(&'e Expr, Vec<ValueGuarantee>)>> {
        let mut reached = Vec::new();
        for (when, then) in cases {
            let truth = self.truth(when, known)?;
            if truth != RangeTruth::False {
                reached.push((then, known.iter().cloned().chain(learned(when)).collect()));
            }
            if truth == RangeTruth::True {
                return Some(reached);
            }
        }
        reached.push((otherwise, known.to_vec()));
        Some(reached)
    }

    /// The value at a path, if it is certainly present and neither side allows a null there.
    fn place(&self, expr: &Expr, known: &[ValueGuarantee]) -> Option<PresentValue<'a>> {
        let (root, steps) = match expr {
            Expr::Path { root, steps } => (&**root, &steps[..]),
            root => (root, &[][..]),
        };
        if !matches!(root, Expr::Variable(name) if name == "self") {
            return None;
        }
        let mut place = PresentValue { name: "self".to_owned(), live: self.live, desired: self.desired };
        for step in steps {
            place = match step {
                SelectionStep::Field { name, optional: false } => {
                    let raw = unescape(name)?;
                    let path = format!("{}.{name}", place.name);
                    let (live, desired) = (kw::property(place.live, &raw)?, kw::property(place.desired, &raw)?);
                    let is_there = kw::is_to_be_written(place.live, &raw)
                        || kw::default_of(desired).is_some()
                        || known.iter().any(|fact| matches!(fact, ValueGuarantee::There(known) if *known == path));
                    is_there.then_some(PresentValue { name: path, live, desired })?
                }
                SelectionStep::Index { index: Expr::Literal(Literal::Int(index)), optional: false } if *index >= 0 => {
                    let path = format!("{}[{index}]", place.name);
                    let is_long = |fact: &ValueGuarantee| matches!(fact, ValueGuarantee::Longer(known, least) if *known == place.name && least >= index);
                    let is_there = self.size(&place)?.0 > *index || known.iter().any(is_long);
                    let (live, desired) = (kw::get(place.live, "items")?, kw::get(place.desired, "items")?);
                    is_there.then_some(PresentValue { name: path, live, desired })?
                }
                _ => return None,
            };
            let is_plain = |schema: &Value| kw::type_name(schema).is_some() && !kw::flag(schema, "nullable");
            if !is_plain(place.live) || kw::type_name(place.live) != kw::type_name(place.desired) {
                return None;
            }
        }
        Some(place)
    }

    /// The range of sizes of the value at a place, including its default.
    fn size(&self, place: &PresentValue<'_>) -> Option<IntegerRange> {
        let PresentValue { live, desired, .. } = place;
        let (least, most) = match (kw::type_name(live)?, kw::type_name(desired)?) {
            ("array", "array") => ("minItems", "maxItems"),
            ("object", "object") => ("minProperties", "maxProperties"),
            // A format can give a string another type.
            ("string", "string") if [live, desired].iter().all(|side| kw::get(side, "format").is_none()) => {
                ("minLength", "maxLength")
            }
            _ => return None,
        };
        // Defaults can add fields to an object.
        let is_exact = least != "minProperties" || !kw::has_defaults(desired);
        let low = kw::count(live, least).unwrap_or(0).max(0);
        let high = kw::count(live, most).filter(|high| is_exact && *high >= 0).unwrap_or(HUGE);
        let filled = kw::default_of(desired).map(|default| match default {
            Value::Array(items) => items.len(),
            Value::Object(map) => map.len(),
            Value::String(text) => text.chars().count(),
            _ => 0,
        });
        let filled = filled.map(|size| size as i64);
        Some((filled.map_or(low, |size| size.min(low)), filled.map_or(high, |size| size.max(high))))
    }
}

/// The operand of `size()`, if the expression is a call of it.
fn sized(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Call(call) if call.function == "size" => call.args.first().filter(|_| call.args.len() == 1),
        _ => None,
    }
}

/// The name of a place, as [`RangeEvaluator::place`] writes it.
fn name(expr: &Expr) -> Option<String> {
    let (root, steps) = match expr {
        Expr::Path { root, steps } => (&**root, &steps[..]),
        root => (root, &[][..]),
    };
    let mut name = match root {
        Expr::Variable(name) => name.clone(),
        _ => return None,
    };
    for step in steps {
        name.push_str(&match step {
            SelectionStep::Field { name, optional: false } => format!(".{name}"),
            SelectionStep::Index { index: Expr::Literal(Literal::Int(index)), optional: false } => format!("[{index}]"),
            _ => return None,
        });
    }
    Some(name)
}

/// What is known if the condition holds.
fn learned(condition: &Expr) -> Vec<ValueGuarantee> {
    match condition {
        Expr::Has { operand, field } => {
            name(operand).map(|around| ValueGuarantee::There(format!("{around}.{field}"))).into_iter().collect()
        }
        Expr::And(operands) => operands.iter().flat_map(learned).collect(),
        Expr::Binary { first, rest } => {
            let [(operator, Expr::Literal(Literal::Int(bound)))] = &rest[..] else { return Vec::new() };
            let least = match operator {
                BinaryOperator::Greater => Some(*bound),
                BinaryOperator::GreaterEqual => bound.checked_sub(1),
                _ => None,
            };
            let list = sized(first).and_then(name);
            list.zip(least).map(|(list, least)| ValueGuarantee::Longer(list, least)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn opposite(truth: RangeTruth) -> RangeTruth {
    match truth {
        RangeTruth::True => RangeTruth::False,
        RangeTruth::False => RangeTruth::True,
        RangeTruth::Either => RangeTruth::Either,
    }
}

fn join(a: RangeTruth, b: RangeTruth) -> RangeTruth {
    if a == b { a } else { RangeTruth::Either }
}

fn compare(a: IntegerRange, operator: BinaryOperator, b: IntegerRange) -> Option<RangeTruth> {
    let decide = |is_always: bool, is_never: bool| match (is_always, is_never) {
        (true, _) => RangeTruth::True,
        (_, true) => RangeTruth::False,
        _ => RangeTruth::Either,
    };
    Some(match operator {
        BinaryOperator::Less => decide(a.1 < b.0, a.0 >= b.1),
        BinaryOperator::LessEqual => decide(a.1 <= b.0, a.0 > b.1),
        BinaryOperator::Greater => decide(a.0 > b.1, a.1 <= b.0),
        BinaryOperator::GreaterEqual => decide(a.0 >= b.1, a.1 < b.0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn routes(most: i64, matches: Value) -> Value {
        let mut field = json!({"type": "array", "maxItems": most, "items": {"type": "string"}});
        field.as_object_mut().expect("an object").extend(matches.as_object().cloned().unwrap_or_default());
        json!({"type": "array", "maxItems": 2, "items": {"type": "object", "properties": {"m": field}}})
    }

    #[test]
    fn a_sum_of_sizes_lies_between_the_bounds() {
        let sum = "(self.size() > 0 ? (has(self[0].m) ? self[0].m.size() : 0) : 0) \
                   + (self.size() > 1 ? (has(self[1].m) ? self[1].m.size() : 0) : 0) <= 16";
        let unasked = "(self.size() > 0 ? self[0].m.size() : 0) + (self.size() > 1 ? self[1].m.size() : 0) <= 16";
        let unbounded = "self[0].m.size() <= 16";
        let filled = json!({"default": ["a"]});
        let overfull = json!({"default": vec!["a"; 9]});
        for (rule, live, desired, expected) in [
            (sum, routes(8, json!({})), routes(64, json!({})), true),
            (sum, routes(9, json!({})), routes(64, json!({})), false),
            // Reading a value that may be absent is an error.
            (unasked, routes(8, json!({})), routes(64, json!({})), false),
            (unasked, routes(8, filled.clone()), routes(64, json!({})), false),
            (unasked, routes(8, json!({})), routes(64, filled), true),
            (unasked, routes(8, json!({})), routes(64, overfull), false),
            (unbounded, routes(8, json!({"default": []})), routes(8, json!({"default": []})), false),
            (sum, routes(8, json!({"nullable": true})), routes(64, json!({})), false),
            (sum, routes(8, json!({"type": "object"})), routes(64, json!({})), false),
        ] {
            assert_eq!(always_holds(rule, &live, &desired), expected, "{rule} {live} {desired}");
        }
    }

    #[test]
    fn a_default_of_the_live_schema_alone_is_not_assumed_for_the_desired_one() {
        let side = |default: Value| {
            let mut field = json!({"type": "string", "maxLength": 3});
            field.as_object_mut().expect("an object").extend(default.as_object().cloned().unwrap_or_default());
            json!({"type": "object", "required": ["a"], "properties": {"a": field}})
        };
        let (bare, filled) = (side(json!({})), side(json!({"default": "x"})));
        for (live, desired, expected) in [(&bare, &bare, true), (&filled, &bare, false), (&filled, &filled, true)] {
            assert_eq!(always_holds("self.a.size() <= 3", live, desired), expected, "{live} {desired}");
        }
    }

    #[test]
    fn conditions_narrow_sizes_and_a_rule_that_may_fail_does_not_hold() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "minLength": 2, "maxLength": 5},
            "b": {"type": "array", "minItems": 1, "items": {"type": "string", "maxLength": 3}},
            "d": {"type": "string", "format": "date", "maxLength": 3},
        }});
        for (rule, expected) in [
            ("self.a.size() >= 2", true),
            ("self.a.size() > 2", false),
            ("size(self.a) < 6", true),
            ("self.a.size() - 2 >= 0", true),
            ("self.b.size() > 0", false),
            ("!has(self.b) || self.b.size() > 0", true),
            ("has(self.b) && self.b.size() > 0", false),
            ("has(self.b) ? self.b[0].size() <= 3 : true", true),
            ("has(self.b) ? self.b[1].size() <= 3 : true", false),
            ("!(has(self.b) && self.b.size() < 1)", true),
            ("has(self.d) ? self.d.size() <= 3 : true", false),
            ("self.a.size() <= 5 && self.a.size() != 0", false),
            ("oldSelf.a.size() <= 5", false),
            ("self.a.size() + 9223372036854775807 > 0", false),
        ] {
            assert_eq!(always_holds(rule, &schema, &schema), expected, "{rule}");
        }
    }
}
