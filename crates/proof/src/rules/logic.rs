//! Rules that follow from live's rules by logic alone, whatever the functions in them compute:
//! `isIP(self) || self == ''` holds wherever `isIP(self)` holds.
//!
//! Rules are split at `&&`, `||`, `!` and `? :`. What is left are atoms. The same atom has the same result in every
//! rule of a node, since all of them see the same value. A rule follows if it is true whenever the others are true,
//! whatever the results of the atoms are.
//!
//! A rule accepts a value only if it is true: false and an error both refuse it. So the errors of atoms count. `&&` and
//! `||` ignore an error if another operand decides them
//! (<https://github.com/google/cel-spec/blob/master/doc/langdef.md#logical-operators>).

mod facts;
mod order;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::budget::BUDGET;
use super::footprint::parts;
use super::{RuleNode, RuleProofResources, alike, restated, source};
use crate::keywords as kw;
use gantry_k8s_cel::ast::{BinaryOperator, Expr, FunctionCall, Literal, Macro, MacroKind, SelectionStep};
use gantry_k8s_cel::{CompiledRule, compile_rules_sharing, parse_rule, unescape};
use order::Order;

/// The maximum number of formula nodes that are evaluated for one rule.
const EVALUATED: u64 = 200_000;
const EVALUATED_PER_STEP: u64 = 64;

/// The result of a boolean expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormulaTruth {
    True,
    False,
    Error,
    /// Of an expression that is compared with constants: where its value lies among them.
    Cell(usize),
    /// Of an equation: its operands have values that cannot be compared. For the server `a == b` is then an error, but
    /// `a != b` is true.
    Incomparable,
}

const RESULTS: [FormulaTruth; 4] =
    [FormulaTruth::True, FormulaTruth::False, FormulaTruth::Error, FormulaTruth::Incomparable];

impl From<bool> for FormulaTruth {
    fn from(value: bool) -> Self {
        if value { FormulaTruth::True } else { FormulaTruth::False }
    }
}

impl FormulaTruth {
    fn not(self) -> Self {
        match self {
            FormulaTruth::True => FormulaTruth::False,
            FormulaTruth::False => FormulaTruth::True,
            _ => FormulaTruth::Error,
        }
    }
}

#[derive(Debug)]
enum Formula {
    Constant(bool),
    Atom(usize),
    /// `a != b`, where the atom is `a == b`.
    Unequal(usize),
    /// A comparison of an expression with a constant, one of those of the atom.
    Compared {
        atom: usize,
        operator: BinaryOperator,
        constant: usize,
    },
    /// Whether two booleans are equal or, if `is_equal` is false, unequal.
    Same {
        operands: Box<(Formula, Formula)>,
        is_equal: bool,
    },
    /// Something that is certain where all conditions are true.
    Fact {
        conditions: Vec<Formula>,
        then: Box<Formula>,
    },
    Not(Box<Formula>),
    /// `||` if `decisive` is true, `&&` if it is false.
    Joined {
        operands: Vec<Formula>,
        decisive: bool,
    },
    Conditional {
        cases: Vec<(Formula, Formula)>,
        otherwise: Box<Formula>,
    },
}

/// What matters about a part of a formula: whether it is true, whether it is false, or both.
#[derive(Clone, Copy)]
enum WantedTruth {
    True,
    False,
    Both,
}

/// What matters about an atom, as a set of bits. If it is a single one, the atom needs only two results.
const IS_TRUE: u8 = 1;
const IS_FALSE: u8 = 2;
const IS_UNEQUAL: u8 = 4;

/// When the server evaluates a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Always,
    /// Only if there is an old value.
    OnUpdate,
    /// Only if there is none: one half of a rule whose `oldSelf` is an optional.
    OnCreate,
    /// Always, but its `oldSelf` is an optional that cannot be resolved.
    WithOptional,
}

/// A rule as a formula.
struct Statement {
    formula: Formula,
    atoms: BTreeSet<usize>,
    /// The number of nodes of the formula.
    size: u64,
    when: When,
    /// The fields of `self` that it reads, by the names on the way to them.
    paths: BTreeSet<Vec<String>>,
}

/// The rules of live at one node.
pub struct Logic<'a> {
    schema: &'a Value,
    /// Whether an update can reorder a list without changing it for the server.
    has_keyed_lists: bool,
    /// The atoms: an expression and nothing, or the two operands of an equation.
    atoms: BTreeMap<(String, String), usize>,
    asked: Vec<u8>,
    /// The constants that atoms are compared with.
    orders: BTreeMap<usize, Order>,
    /// Equations of a part of `self` with the same part of `oldSelf`: the names on the way to it, and the atom.
    unchanged: Vec<(Vec<String>, usize)>,
    premises: Vec<Statement>,
}

/// The logic of a node's live rules, read when it is needed. None: no rule can be proven.
pub type LiveLogic<'a> = OnceCell<Option<RefCell<Logic<'a>>>>;

impl RuleNode<'_> {
    /// Whether `rule`, one of desired's, follows from live's rules, whatever their parts mean.
    pub(super) fn follows_by_logic(&self, rule: &Value, means: &RuleProofResources<'_>) -> bool {
        let Self { live, desired, patterns, .. } = self;
        let Ok(asked) = self.compiled_rule(rule) else { return false };
        let logic = self.logic.get_or_init(|| {
            let read: u64 = live.rules.iter().map(|rule| source(rule).len() as u64).sum();
            let compared = kw::size(live.schema) + kw::size(desired.schema);
            if !means.spend(read / BUDGET.rule_bytes_per_step + compared as u64)
                || !alike::see_the_same_values(live, desired)
            {
                return None;
            }
            let compiled = compile_rules_sharing(live.schema, live.rules, live.is_root, patterns);
            Logic::from_rules(live.schema, live.rules.iter().zip(compiled)).map(RefCell::new)
        });
        logic.as_ref().is_some_and(|logic| {
            logic.borrow_mut().implies(rule, asked, &|evaluated| means.spend(evaluated / EVALUATED_PER_STEP))
        })
    }
}

impl<'a> Logic<'a> {
    /// `rules`: live's rules, as they are written and compiled. `schema` is their node.
    ///
    /// None: the server may abort the evaluation of nearly any rule there.
    pub fn from_rules<'r>(schema: &'a Value, rules: impl Iterator<Item = (&'r Value, CompiledRule)>) -> Option<Self> {
        // The items of a set are keys of a hash table there, which lists and objects cannot be.
        let can_be_key = |item: &Value| is_scalar_type(item) || kw::flag(item, "x-kubernetes-int-or-string");
        if has_list(schema, "set", &|list| !list.get("items").is_some_and(can_be_key)) {
            return None;
        }
        let has_keyed_lists = has_list(schema, "map", &|_| true);
        let mut logic = Logic {
            schema,
            has_keyed_lists,
            atoms: BTreeMap::new(),
            asked: Vec::new(),
            orders: BTreeMap::new(),
            unchanged: Vec::new(),
            premises: Vec::new(),
        };
        for (written, rule) in rules {
            let premises = logic.statements(written, &rule).unwrap_or_default();
            logic.premises.extend(premises);
        }
        Some(logic)
    }

    /// Whether a rule of desired follows. `spend` takes the number of evaluated formula nodes.
    pub fn implies(&mut self, written: &Value, rule: &CompiledRule, spend: &dyn Fn(u64) -> bool) -> bool {
        let Some(conclusions) = self.statements(written, rule) else { return false };
        conclusions.into_iter().all(|conclusion| self.follows(conclusion, spend))
    }

    fn follows(&mut self, mut conclusion: Statement, spend: &dyn Fn(u64) -> bool) -> bool {
        let facts = self.facts(&mut conclusion);
        // A transition rule is not evaluated when an object is created, and its failures are never tolerated. The
        // server tolerates the other failures if the value did not change; it may have been reordered.
        let holds_too = |when: When| when == conclusion.when || when == When::Always && !self.has_keyed_lists;
        // Without an old value, a rule may be false whatever its atoms are.
        let is_about_it =
            |premise: &&Statement| premise.when == When::OnCreate || !premise.atoms.is_disjoint(&conclusion.atoms);
        let premises = self.premises.iter().filter(is_about_it).filter(|premise| holds_too(premise.when));
        let premises: Vec<&Statement> = premises.chain(&facts).collect();
        let mut search = FormulaSearch {
            asked: &self.asked,
            orders: &self.orders,
            results: vec![None; self.asked.len()],
            left: EVALUATED,
            premises,
            conclusion,
        };
        let follows = search.follows();
        spend(EVALUATED - search.left) && follows
    }

    /// What the rule says: a rule whose `oldSelf` is an optional says one thing if there is an old value, and another one
    /// if there is none. None if the rule does not compile, or if its evaluation may be aborted.
    fn statements(&mut self, written: &Value, rule: &CompiledRule) -> Option<Vec<Statement>> {
        if rule.problem().is_some() {
            return None;
        }
        let text = rule.source();
        let is_optional = kw::flag(written, "optionalOldSelf");
        if !rule.is_transition() {
            return Some(vec![self.statement(text, When::Always)?]);
        } else if !is_optional {
            return Some(vec![self.statement(text, When::OnUpdate)?]);
        }
        // Whether a null is an old value is another question.
        let parts = (restated::without_optional(text, true), restated::without_optional(text, false));
        match parts {
            (Some(with), Some(without)) if !kw::flag(self.schema, "nullable") => {
                Some(vec![self.statement(&with, When::OnUpdate)?, self.statement(&without, When::OnCreate)?])
            }
            _ => Some(vec![self.statement(text, When::WithOptional)?]),
        }
    }

    fn statement(&mut self, text: &str, when: When) -> Option<Statement> {
        let expr = parse_rule(text).ok()??;
        if may_abort(&expr) {
            return None;
        }
        let mut reader = FormulaReader { logic: self, atoms: BTreeSet::new(), size: 0, when };
        let formula = reader.formula(&expr, WantedTruth::True);
        let FormulaReader { atoms, size, .. } = reader;
        Some(Statement { formula, atoms, size, when, paths: facts::paths(&expr) })
    }
}

/// Reads a rule as a formula.
struct FormulaReader<'l, 'a> {
    logic: &'l mut Logic<'a>,
    atoms: BTreeSet<usize>,
    size: u64,
    when: When,
}

impl FormulaReader<'_, '_> {
    fn formula(&mut self, expr: &Expr, asked: WantedTruth) -> Formula {
        self.size += 1;
        match expr {
            Expr::Literal(Literal::Bool(value)) => Formula::Constant(*value),
            Expr::Not(operand) => {
                let asked = match asked {
                    WantedTruth::True => WantedTruth::False,
                    WantedTruth::False => WantedTruth::True,
                    WantedTruth::Both => WantedTruth::Both,
                };
                Formula::Not(Box::new(self.formula(operand, asked)))
            }
            Expr::And(operands) => self.joined(operands, false, asked),
            Expr::Or(operands) => self.joined(operands, true, asked),
            Expr::Conditional { cases, otherwise } => Formula::Conditional {
                cases: cases
                    .iter()
                    .map(|(condition, value)| (self.formula(condition, WantedTruth::Both), self.formula(value, asked)))
                    .collect(),
                otherwise: Box::new(self.formula(otherwise, asked)),
            },
            Expr::Binary { first, rest } => match &rest[..] {
                [(operator, second)] if let Some(compared) = self.compared(first, *operator, second, asked, expr) => {
                    compared
                }
                [(operator @ (BinaryOperator::Equal | BinaryOperator::NotEqual), second)]
                    if is_boolean(first) && is_boolean(second) =>
                {
                    let operands =
                        Box::new((self.formula(first, WantedTruth::Both), self.formula(second, WantedTruth::Both)));
                    Formula::Same { operands, is_equal: *operator == BinaryOperator::Equal }
                }
                [(BinaryOperator::Equal, second)] => Formula::Atom(self.equation(first, second, is_true(asked))),
                [(BinaryOperator::NotEqual, second)] => {
                    Formula::Unequal(self.equation(first, second, is_unequal(asked)))
                }
                _ => Formula::Atom(self.atom((format!("{expr:?}"), String::new()), is_true(asked))),
            },
            Expr::Call(call) if let Some(compared) = self.compared_quantities(call) => compared,
            _ => Formula::Atom(self.atom((format!("{expr:?}"), String::new()), is_true(asked))),
        }
    }

    fn joined(&mut self, operands: &[Expr], decisive: bool, asked: WantedTruth) -> Formula {
        Formula::Joined { operands: operands.iter().map(|operand| self.formula(operand, asked)).collect(), decisive }
    }

    fn equation(&mut self, first: &Expr, second: &Expr, asked: u8) -> usize {
        let unchanged = facts::unchanged_part(first, second).filter(|_| self.when == When::OnUpdate);
        let is_sorted = self.is_scalar(first) && self.is_scalar(second);
        let (first, second) = (format!("{first:?}"), format!("{second:?}"));
        let atom = if is_sorted && second < first { (second, first) } else { (first, second) };
        let atom = self.atom(atom, asked);
        if let Some(path) = unchanged
            && !self.logic.unchanged.iter().any(|(_, known)| *known == atom)
        {
            self.logic.unchanged.push((path, atom));
        }
        atom
    }

    fn atom(&mut self, atom: (String, String), asked: u8) -> usize {
        let next = self.logic.atoms.len();
        let index = *self.logic.atoms.entry(atom).or_insert(next);
        if index == next {
            self.logic.asked.push(0);
        }
        self.logic.asked[index] |= asked;
        self.atoms.insert(index);
        index
    }

    /// Whether the operand of an equation is certainly a scalar. Equations of scalars are symmetric; others are not: a
    /// list of type `set` on the left is compared without regard to order, one on the right is not.
    fn is_scalar(&self, expr: &Expr) -> bool {
        let has_scalar = |name: &str, steps: &[SelectionStep]| {
            let mut schema = Some(self.logic.schema)
                .filter(|_| name == "self" || name == "oldSelf" && self.when != When::WithOptional);
            for step in steps {
                let SelectionStep::Field { name, optional: false } = step else { return false };
                schema = schema.and_then(|schema| kw::property(schema, &unescape(name)?));
            }
            schema.is_some_and(is_scalar_type)
        };
        match expr {
            Expr::Literal(_) => true,
            // No macro binds these names here: macros are parts of atoms.
            Expr::Variable(name) => has_scalar(name, &[]),
            Expr::Path { root, steps } => matches!(&**root, Expr::Variable(name) if has_scalar(name, steps)),
            Expr::Call(FunctionCall { function, .. }) => SCALAR_FUNCTIONS.contains(&function.as_str()),
            _ => false,
        }
    }
}

/// Whether the expression is certainly a boolean.
fn is_boolean(expr: &Expr) -> bool {
    match expr {
        Expr::Has { .. } | Expr::Not(_) | Expr::And(_) | Expr::Or(_) | Expr::Literal(Literal::Bool(_)) => true,
        Expr::Binary { rest, .. } => matches!(
            &rest[..],
            [(
                BinaryOperator::Equal
                    | BinaryOperator::NotEqual
                    | BinaryOperator::Less
                    | BinaryOperator::LessEqual
                    | BinaryOperator::Greater
                    | BinaryOperator::GreaterEqual
                    | BinaryOperator::In,
                _
            )]
        ),
        _ => false,
    }
}

/// Functions with this name have no other results than strings or integers.
const SCALAR_FUNCTIONS: &[&str] =
    &["charAt", "int", "join", "lowerAscii", "replace", "size", "string", "substring", "trim", "upperAscii"];

fn is_scalar_type(schema: &Value) -> bool {
    matches!(kw::type_name(schema), Some("boolean" | "integer" | "number" | "string"))
        && !kw::flag(schema, "x-kubernetes-int-or-string")
}

fn is_true(asked: WantedTruth) -> u8 {
    match asked {
        WantedTruth::True => IS_TRUE,
        WantedTruth::False => IS_FALSE,
        WantedTruth::Both => IS_TRUE | IS_FALSE,
    }
}

/// What `a != b` asks of `a == b`.
fn is_unequal(asked: WantedTruth) -> u8 {
    match asked {
        WantedTruth::True => IS_UNEQUAL,
        WantedTruth::False => IS_TRUE,
        WantedTruth::Both => IS_TRUE | IS_UNEQUAL,
    }
}

/// Whether there is a list of this type at any level that satisfies the condition.
fn has_list(schema: &Value, of_type: &str, condition: &dyn Fn(&Value) -> bool) -> bool {
    match schema {
        Value::Object(map) => {
            map.get("x-kubernetes-list-type").is_some_and(|list_type| list_type == of_type) && condition(schema)
                || map.values().any(|below| has_list(below, of_type, condition))
        }
        Value::Array(items) => items.iter().any(|below| has_list(below, of_type, condition)),
        _ => false,
    }
}

/// Whether the server may abort the evaluation of the whole rule at some part of it: no `||` ignores that, so the order
/// of operands would count.
fn may_abort(expr: &Expr) -> bool {
    let may = match expr {
        Expr::Call(FunctionCall { function, .. }) => matches!(function.as_str(), "sort" | "distinct" | "flatten"),
        Expr::Macro(of) => matches!(**of, Macro { kind: MacroKind::SortBy, .. }),
        // A key may have a type that cannot be a key.
        Expr::Map(_) => true,
        _ => false,
    };
    may || parts(expr).into_iter().any(may_abort)
}

/// Looks for results of the atoms with which all premises are true and the conclusion is not.
struct FormulaSearch<'l> {
    asked: &'l [u8],
    orders: &'l BTreeMap<usize, Order>,
    results: Vec<Option<FormulaTruth>>,
    /// The formula nodes that may still be evaluated. This bounds the depth of the recursion too.
    left: u64,
    premises: Vec<&'l Statement>,
    conclusion: Statement,
}

impl FormulaSearch<'_> {
    /// Whether the conclusion is true with all results that make the premises true, given those known so far.
    fn follows(&mut self) -> bool {
        let size = self.conclusion.size + self.premises.iter().map(|premise| premise.size).sum::<u64>();
        if self.left < size {
            self.left = 0;
            return false;
        }
        self.left -= size;
        let mut open = match truth(&self.conclusion.formula, &self.results, self.orders) {
            Ok(FormulaTruth::True) => return true,
            Ok(_) => None,
            Err(atom) => Some(atom),
        };
        for premise in &self.premises {
            match truth(&premise.formula, &self.results, self.orders) {
                Ok(FormulaTruth::True) => {}
                Ok(_) => return true,
                Err(atom) => open = open.or(Some(atom)),
            }
        }
        // Without an open atom, all premises are true and the conclusion is not.
        let Some(atom) = open else { return false };
        let cells;
        let possible = match self.orders.get(&atom) {
            Some(order) => {
                cells = order.results();
                &cells[..]
            }
            None if self.asked[atom].count_ones() == 1 => &RESULTS[..2],
            None => &RESULTS,
        };
        let follows = possible.iter().all(|result| {
            self.results[atom] = Some(*result);
            self.follows()
        });
        self.results[atom] = None;
        follows
    }
}

/// The result of the formula, or the first atom whose missing result it depends on.
fn truth(
    formula: &Formula,
    results: &[Option<FormulaTruth>],
    orders: &BTreeMap<usize, Order>,
) -> Result<FormulaTruth, usize> {
    let truth = |formula: &Formula| truth(formula, results, orders);
    match formula {
        Formula::Constant(value) => Ok(FormulaTruth::from(*value)),
        Formula::Atom(atom) => match results[*atom].ok_or(*atom)? {
            FormulaTruth::Incomparable => Ok(FormulaTruth::Error),
            result => Ok(result),
        },
        Formula::Unequal(atom) => match results[*atom].ok_or(*atom)? {
            FormulaTruth::Incomparable => Ok(FormulaTruth::True),
            result => Ok(result.not()),
        },
        Formula::Compared { atom, operator, constant } => match results[*atom].ok_or(*atom)? {
            FormulaTruth::Cell(cell) => Ok(orders
                .get(atom)
                .map_or(FormulaTruth::Error, |order| order.compare(cell, *operator, *constant).into())),
            _ => Ok(FormulaTruth::Error),
        },
        Formula::Same { operands, is_equal } => match (truth(&operands.0)?, truth(&operands.1)?) {
            (FormulaTruth::Error, _) | (_, FormulaTruth::Error) => Ok(FormulaTruth::Error),
            (first, second) => Ok(((first == second) == *is_equal).into()),
        },
        Formula::Fact { conditions, then } => {
            for condition in conditions {
                if truth(condition)? != FormulaTruth::True {
                    return Ok(FormulaTruth::True);
                }
            }
            truth(then)
        }
        Formula::Not(operand) => Ok(truth(operand)?.not()),
        Formula::Joined { operands, decisive } => {
            let mut joined = FormulaTruth::from(!decisive);
            for operand in operands {
                match truth(operand)? {
                    result if result == FormulaTruth::from(*decisive) => return Ok(result),
                    FormulaTruth::Error => joined = FormulaTruth::Error,
                    _ => {}
                }
            }
            Ok(joined)
        }
        Formula::Conditional { cases, otherwise } => {
            for (condition, value) in cases {
                match truth(condition)? {
                    FormulaTruth::True => return truth(value),
                    FormulaTruth::False => {}
                    _ => return Ok(FormulaTruth::Error),
                }
            }
            truth(otherwise)
        }
    }
}

#[cfg(test)]
mod tests;
