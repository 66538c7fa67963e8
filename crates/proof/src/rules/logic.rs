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

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::budget::BUDGET;
use super::footprint::parts;
use super::{RuleNode, RuleProofResources, alike, source};
use crate::keywords as kw;
use gantry_k8s_cel::ast::{BinaryOperator, Expr, FunctionCall, Literal, Macro, MacroKind, SelectionStep};
use gantry_k8s_cel::{CompiledRule, compile_rules_sharing, parse_rule, unescape};

/// The maximum number of formula nodes that are evaluated for one rule.
const EVALUATED: u64 = 200_000;
const EVALUATED_PER_STEP: u64 = 64;

/// The result of a boolean expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FormulaTruth {
    True,
    False,
    Error,
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
            FormulaTruth::Error | FormulaTruth::Incomparable => FormulaTruth::Error,
        }
    }
}

#[derive(Debug)]
enum Formula {
    Constant(bool),
    Atom(usize),
    /// `a != b`, where the atom is `a == b`.
    Unequal(usize),
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
    /// Always, but its `oldSelf` is an optional.
    WithOptional,
}

/// A rule as a formula.
struct Statement {
    formula: Formula,
    atoms: BTreeSet<usize>,
    /// The number of nodes of the formula.
    size: u64,
    when: When,
}

/// The rules of live at one node.
pub struct Logic<'a> {
    schema: &'a Value,
    /// Whether an update can reorder a list without changing it for the server.
    has_keyed_lists: bool,
    /// The atoms: an expression and nothing, or the two operands of an equation.
    atoms: BTreeMap<(String, String), usize>,
    asked: Vec<u8>,
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
        let mut logic =
            Logic { schema, has_keyed_lists, atoms: BTreeMap::new(), asked: Vec::new(), premises: Vec::new() };
        for (written, rule) in rules {
            if let Some(premise) = logic.statement(written, &rule) {
                logic.premises.push(premise);
            }
        }
        Some(logic)
    }

    /// Whether a rule of desired follows. `spend` takes the number of evaluated formula nodes.
    pub fn implies(&mut self, written: &Value, rule: &CompiledRule, spend: &dyn Fn(u64) -> bool) -> bool {
        let Some(conclusion) = self.statement(written, rule) else { return false };
        // A transition rule is not evaluated when an object is created, and its failures are never tolerated. The
        // server tolerates the other failures if the value did not change; it may have been reordered.
        let holds_too = |when: When| when == conclusion.when || when == When::Always && !self.has_keyed_lists;
        let is_about_it = |premise: &&Statement| !premise.atoms.is_disjoint(&conclusion.atoms);
        let premises: Vec<&Statement> =
            self.premises.iter().filter(is_about_it).filter(|premise| holds_too(premise.when)).collect();
        let mut search = FormulaSearch {
            asked: &self.asked,
            results: vec![None; self.asked.len()],
            left: EVALUATED,
            premises,
            conclusion,
        };
        let follows = search.follows();
        spend(EVALUATED - search.left) && follows
    }

    /// None if the rule does not compile, or if its evaluation may be aborted.
    fn statement(&mut self, written: &Value, rule: &CompiledRule) -> Option<Statement> {
        if rule.problem().is_some() {
            return None;
        }
        let when = match (rule.is_transition(), kw::flag(written, "optionalOldSelf")) {
            (false, _) => When::Always,
            (true, false) => When::OnUpdate,
            (true, true) => When::WithOptional,
        };
        let expr = parse_rule(rule.source()).ok()??;
        if may_abort(&expr) {
            return None;
        }
        let mut reader = FormulaReader { logic: self, atoms: BTreeSet::new(), size: 0, when };
        let formula = reader.formula(&expr, WantedTruth::True);
        let FormulaReader { atoms, size, .. } = reader;
        Some(Statement { formula, atoms, size, when })
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
                [(BinaryOperator::Equal, second)] => Formula::Atom(self.equation(first, second, is_true(asked))),
                [(BinaryOperator::NotEqual, second)] => {
                    Formula::Unequal(self.equation(first, second, is_unequal(asked)))
                }
                _ => Formula::Atom(self.atom((format!("{expr:?}"), String::new()), is_true(asked))),
            },
            _ => Formula::Atom(self.atom((format!("{expr:?}"), String::new()), is_true(asked))),
        }
    }

    fn joined(&mut self, operands: &[Expr], decisive: bool, asked: WantedTruth) -> Formula {
        Formula::Joined { operands: operands.iter().map(|operand| self.formula(operand, asked)).collect(), decisive }
    }

    fn equation(&mut self, first: &Expr, second: &Expr, asked: u8) -> usize {
        let is_sorted = self.is_scalar(first) && self.is_scalar(second);
        let (first, second) = (format!("{first:?}"), format!("{second:?}"));
        let atom = if is_sorted && second < first { (second, first) } else { (first, second) };
        self.atom(atom, asked)
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
        let mut open = match truth(&self.conclusion.formula, &self.results) {
            Ok(FormulaTruth::True) => return true,
            Ok(_) => None,
            Err(atom) => Some(atom),
        };
        for premise in &self.premises {
            match truth(&premise.formula, &self.results) {
                Ok(FormulaTruth::True) => {}
                Ok(_) => return true,
                Err(atom) => open = open.or(Some(atom)),
            }
        }
        // Without an open atom, all premises are true and the conclusion is not.
        let Some(atom) = open else { return false };
        let possible = if self.asked[atom].count_ones() == 1 { &RESULTS[..2] } else { &RESULTS };
        let follows = possible.iter().all(|result| {
            self.results[atom] = Some(*result);
            self.follows()
        });
        self.results[atom] = None;
        follows
    }
}

/// The result of the formula, or the first atom whose missing result it depends on.
fn truth(formula: &Formula, results: &[Option<FormulaTruth>]) -> Result<FormulaTruth, usize> {
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
        Formula::Not(operand) => Ok(truth(operand, results)?.not()),
        Formula::Joined { operands, decisive } => {
            let mut joined = FormulaTruth::from(!decisive);
            for operand in operands {
                match truth(operand, results)? {
                    result if result == FormulaTruth::from(*decisive) => return Ok(result),
                    FormulaTruth::Error => joined = FormulaTruth::Error,
                    _ => {}
                }
            }
            Ok(joined)
        }
        Formula::Conditional { cases, otherwise } => {
            for (condition, value) in cases {
                match truth(condition, results)? {
                    FormulaTruth::True => return truth(value, results),
                    FormulaTruth::False => {}
                    _ => return Ok(FormulaTruth::Error),
                }
            }
            truth(otherwise, results)
        }
    }
}

#[cfg(test)]
mod tests;
