//! Comparisons of one expression with several constants: `x <= 15` follows from `x <= 10`, whatever `x` is.
//!
//! The expression either ends in an error, which is one in all comparisons, or has a value that lies somewhere among the
//! constants.

use std::cmp::Ordering;

use serde_json::json;

use super::{Formula, FormulaReader, FormulaTruth, WantedTruth, is_true};
use crate::keywords as kw;
use gantry_k8s_cel::ast::{BinaryOperator, Expr, FunctionCall, Literal, SelectionStep};
use gantry_k8s_cel::{CelBudget, CelRuleResult, compile_rules, unescape};

/// The maximum number of constants for one expression.
const MAX_CONSTANTS: usize = 64;

/// A constant that values are compared with.
#[derive(Clone, Debug, PartialEq)]
enum OrderConstant {
    Int(i128),
    /// The text of a duration.
    Duration(String),
    Quantity(String),
}

/// The constants that one expression is compared with.
#[derive(Debug, Default)]
pub(super) struct Order {
    constants: Vec<OrderConstant>,
    /// The indices of the constants, in ascending order; those of equal ones are left out.
    ranks: Vec<usize>,
    /// For each constant, its place in `ranks`.
    places: Vec<usize>,
}

impl Order {
    /// The index of the constant. None if it cannot be compared with the others.
    fn add(&mut self, constant: OrderConstant) -> Option<usize> {
        if let Some(known) = self.constants.iter().position(|known| *known == constant) {
            return Some(known);
        }
        if self.constants.len() >= MAX_CONSTANTS {
            return None;
        }
        // A constant that cannot be read is an error in every comparison.
        compare(&constant, &constant)?;
        let mut place = self.ranks.len();
        let mut equal = None;
        for (at, known) in self.ranks.iter().enumerate() {
            match compare(&constant, &self.constants[*known])? {
                Ordering::Less => {
                    place = at;
                    break;
                }
                Ordering::Equal => {
                    equal = Some(at);
                    break;
                }
                Ordering::Greater => {}
            }
        }
        let index = self.constants.len();
        self.constants.push(constant);
        match equal {
            Some(at) => self.places.push(at),
            None => {
                self.ranks.insert(place, index);
                self.places.iter_mut().filter(|known| **known >= place).for_each(|known| *known += 1);
                self.places.push(place);
            }
        }
        Some(index)
    }

    /// All results of the expression: an error, a value between two constants, or one of them.
    pub(super) fn results(&self) -> Vec<FormulaTruth> {
        let is_possible = |cell: &usize| {
            let (below, above) = (cell.checked_sub(2), cell / 2);
            let (Some(below), true) = (below, cell.is_multiple_of(2)) else { return true };
            match (self.ranks.get(below / 2), self.ranks.get(above)) {
                (Some(below), Some(above)) => match (&self.constants[*below], &self.constants[*above]) {
                    // There is no integer between them.
                    (OrderConstant::Int(below), OrderConstant::Int(above)) => below + 1 < *above,
                    _ => true,
                },
                _ => true,
            }
        };
        let cells = (0..=2 * self.ranks.len()).filter(is_possible).map(FormulaTruth::Cell);
        cells.chain([FormulaTruth::Error]).collect()
    }

    /// Whether a value in the cell compares so with the constant.
    pub(super) fn compare(&self, cell: usize, operator: BinaryOperator, constant: usize) -> bool {
        let order = cell.cmp(&(2 * self.places[constant] + 1));
        match operator {
            BinaryOperator::Less => order.is_lt(),
            BinaryOperator::LessEqual => order.is_le(),
            BinaryOperator::Greater => order.is_gt(),
            BinaryOperator::GreaterEqual => order.is_ge(),
            BinaryOperator::Equal => order.is_eq(),
            _ => order.is_ne(),
        }
    }
}

/// The order of two constants, as the rules' own functions compare them. None if one cannot be read.
fn compare(a: &OrderConstant, b: &OrderConstant) -> Option<Ordering> {
    let holds = |rule: String| {
        let rules = [json!({ "rule": rule })];
        let compiled = compile_rules(&json!({"type": "object"}), &rules, false);
        match compiled.first()?.evaluate(&json!({}), None, &mut CelBudget::default()) {
            CelRuleResult::Holds => Some(true),
            CelRuleResult::Fails(failure) if !failure.is_error => Some(false),
            _ => None,
        }
    };
    let of = |less: &dyn Fn(&str, &str) -> String, a: &str, b: &str| match (holds(less(a, b))?, holds(less(b, a))?) {
        (true, false) => Some(Ordering::Less),
        (false, true) => Some(Ordering::Greater),
        (false, false) => Some(Ordering::Equal),
        (true, true) => None,
    };
    let quoted = |text: &str| crate::rules::restated::quoted(text);
    match (a, b) {
        (OrderConstant::Int(a), OrderConstant::Int(b)) => Some(a.cmp(b)),
        (OrderConstant::Duration(a), OrderConstant::Duration(b)) => {
            of(&|a, b| format!("duration({}) < duration({})", quoted(a), quoted(b)), a, b)
        }
        (OrderConstant::Quantity(a), OrderConstant::Quantity(b)) => {
            of(&|a, b| format!("quantity({}).isLessThan(quantity({}))", quoted(a), quoted(b)), a, b)
        }
        _ => None,
    }
}

/// The operator with its operands exchanged. None if it is no comparison.
fn mirrored(operator: BinaryOperator) -> Option<BinaryOperator> {
    Some(match operator {
        BinaryOperator::Less => BinaryOperator::Greater,
        BinaryOperator::LessEqual => BinaryOperator::GreaterEqual,
        BinaryOperator::Greater => BinaryOperator::Less,
        BinaryOperator::GreaterEqual => BinaryOperator::LessEqual,
        BinaryOperator::Equal | BinaryOperator::NotEqual => operator,
        _ => return None,
    })
}

/// The argument of a call of this function that is not a method.
fn argument<'e>(expr: &'e Expr, name: &str) -> Option<&'e Expr> {
    match expr {
        Expr::Call(FunctionCall { function, member: false, args, .. }) if function == name => match &args[..] {
            [argument] => Some(argument),
            _ => None,
        },
        _ => None,
    }
}

/// The text of `function('text')`.
fn constant_of(expr: &Expr, function: &str) -> Option<String> {
    match argument(expr, function)? {
        Expr::Literal(Literal::String(text)) => Some(text.clone()),
        _ => None,
    }
}

fn integer(expr: &Expr) -> Option<i128> {
    match expr {
        Expr::Literal(Literal::Int(value)) => Some(i128::from(*value)),
        _ => None,
    }
}

/// The expression, and a constant that is added to it.
fn shifted(expr: &Expr) -> (&Expr, i128) {
    if let Expr::Binary { first, rest } = expr
        && let [(operator, constant)] = &rest[..]
        && let Some(constant) = integer(constant)
        && integer(first).is_none()
    {
        match operator {
            BinaryOperator::Add => return (first, constant),
            BinaryOperator::Subtract => return (first, -constant),
            _ => {}
        }
    }
    (expr, 0)
}

impl FormulaReader<'_, '_> {
    /// A comparison of an expression with a constant, or of two integers.
    pub(super) fn compared(
        &mut self,
        first: &Expr,
        operator: BinaryOperator,
        second: &Expr,
        asked: WantedTruth,
        whole: &Expr,
    ) -> Option<Formula> {
        let mirror = mirrored(operator)?;
        if let Some(compared) = self.compared_with_constant(first, operator, second) {
            return Some(compared);
        }
        if let Some(compared) = self.compared_with_constant(second, mirror, first) {
            return Some(compared);
        }
        self.compared_integers(first, operator, second, asked, whole)
    }

    fn compared_with_constant(&mut self, first: &Expr, operator: BinaryOperator, second: &Expr) -> Option<Formula> {
        if let Some(0) = integer(second)
            && let Expr::Call(FunctionCall { function, member: true, args, .. }) = first
            && let ("compareTo", [value, constant]) = (function.as_str(), &args[..])
            && argument(value, "quantity").is_some()
            && let Some(text) = constant_of(constant, "quantity")
        {
            return self.in_order(format!("{value:?}"), operator, OrderConstant::Quantity(text));
        }
        if let Some(constant) = integer(second) {
            return match integer(first).is_none() && self.is_integer(first) {
                true => self.in_order(format!("{first:?}"), operator, OrderConstant::Int(constant)),
                false => None,
            };
        }
        let text = constant_of(second, "duration")?;
        let is_duration = argument(first, "duration").is_some() && constant_of(first, "duration").is_none();
        is_duration.then(|| self.in_order(format!("{first:?}"), operator, OrderConstant::Duration(text)))?
    }

    /// `quantity(x).isGreaterThan(quantity('1'))`
    pub(super) fn compared_quantities(&mut self, call: &FunctionCall) -> Option<Formula> {
        let operator = match call.function.as_str() {
            "isGreaterThan" => BinaryOperator::Greater,
            "isLessThan" => BinaryOperator::Less,
            _ => return None,
        };
        let ([value, constant], true) = (&call.args[..], call.member) else { return None };
        argument(value, "quantity")?;
        let text = constant_of(constant, "quantity")?;
        self.in_order(format!("{value:?}"), operator, OrderConstant::Quantity(text))
    }

    /// A comparison of two integers says how their difference compares with a constant: `a + 1 <= b`, that `a - b` is
    /// at most -1.
    fn compared_integers(
        &mut self,
        first: &Expr,
        operator: BinaryOperator,
        second: &Expr,
        asked: WantedTruth,
        whole: &Expr,
    ) -> Option<Formula> {
        let ((left, added), (right, other)) = (shifted(first), shifted(second));
        if integer(left).is_some() || integer(right).is_some() || !self.is_integer(left) || !self.is_integer(right) {
            return None;
        }
        let is_shifted = added != 0 || other != 0;
        // A sum that overflows is an error. That is not false, but where only true matters it is the same.
        if is_shifted && !matches!(asked, WantedTruth::True) {
            return None;
        }
        let (left, right) = (format!("{left:?}"), format!("{right:?}"));
        let (key, operator, constant) = match left <= right {
            true => (format!("{left} - {right}"), operator, other - added),
            false => (format!("{right} - {left}"), mirrored(operator)?, added - other),
        };
        let compared = self.in_order(key, operator, OrderConstant::Int(constant))?;
        if !is_shifted {
            return Some(compared);
        }
        let fits = self.atom((format!("{whole:?}"), "fits".to_owned()), is_true(asked));
        // If it is true, the other operand shows that the sum is no overflow.
        let is_certain = other == 0
            && match operator_of(whole) {
                Some(BinaryOperator::Less | BinaryOperator::LessEqual) => added >= 0,
                Some(BinaryOperator::Greater | BinaryOperator::GreaterEqual) => added <= 0,
                Some(BinaryOperator::Equal) => true,
                _ => false,
            };
        if is_certain {
            return Some(compared);
        }
        Some(Formula::Joined { operands: vec![compared, Formula::Atom(fits)], decisive: false })
    }

    fn in_order(&mut self, key: String, operator: BinaryOperator, constant: OrderConstant) -> Option<Formula> {
        let kind = match constant {
            OrderConstant::Int(_) => "integer",
            OrderConstant::Duration(_) => "duration",
            OrderConstant::Quantity(_) => "quantity",
        };
        let key = (key, format!("in the order of {kind}"));
        // An order that has no constant yet would leave an atom without results.
        let atom = self.logic.atoms.get(&key).copied();
        let constant = match atom {
            Some(atom) => self.logic.orders.get_mut(&atom)?.add(constant)?,
            None => {
                let mut order = super::Order::default();
                let constant = order.add(constant)?;
                let atom = self.atom(key.clone(), 0);
                self.logic.orders.insert(atom, order);
                constant
            }
        };
        let atom = self.atom(key, 0);
        Some(Formula::Compared { atom, operator, constant })
    }

    /// Whether the expression is certainly an integer, if it is no error.
    fn is_integer(&self, expr: &Expr) -> bool {
        let is_field = |name: &str, steps: &[SelectionStep]| {
            let is_value = name == "self" || name == "oldSelf" && self.when != super::When::WithOptional;
            let mut schema = Some(self.logic.schema).filter(|_| is_value);
            for step in steps {
                let SelectionStep::Field { name, optional: false } = step else { return false };
                schema = schema.and_then(|schema| kw::property(schema, &unescape(name)?));
            }
            schema.is_some_and(|schema| {
                kw::type_name(schema) == Some("integer")
                    && !kw::flag(schema, "nullable")
                    && !kw::flag(schema, "x-kubernetes-int-or-string")
            })
        };
        match expr {
            Expr::Literal(Literal::Int(_)) => true,
            Expr::Variable(name) => is_field(name, &[]),
            Expr::Path { root, steps } => matches!(&**root, Expr::Variable(name) if is_field(name, steps)),
            Expr::Call(FunctionCall { function, .. }) => {
                matches!(function.as_str(), "size" | "indexOf" | "lastIndexOf" | "int" | "compareTo")
            }
            Expr::Binary { first, rest } => {
                let is_arithmetic = |operator: &BinaryOperator| {
                    use BinaryOperator::{Add, Divide, Modulo, Multiply, Subtract};
                    matches!(operator, Add | Subtract | Multiply | Divide | Modulo)
                };
                self.is_integer(first)
                    && rest.iter().all(|(operator, operand)| is_arithmetic(operator) && self.is_integer(operand))
            }
            _ => false,
        }
    }
}

fn operator_of(expr: &Expr) -> Option<BinaryOperator> {
    match expr {
        Expr::Binary { rest, .. } => rest.first().map(|(operator, _)| *operator),
        _ => None,
    }
}
