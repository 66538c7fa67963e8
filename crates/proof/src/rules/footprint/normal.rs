//! Rewrites rules into a normal form in which more of them can be analysed: operations on a conditional are applied to
//! each of its values.
//!
//! `(has(self.a) ? self.a : '').startsWith('x')` becomes `has(self.a) ? self.a.startsWith('x') : ''.startsWith('x')`,
//! and macros over list literals are unrolled. The result has the same footprint as the rule; it is analysed, never
//! evaluated.

use super::variables::{binds_any_of, replaced};
use gantry_k8s_cel::ast::{BinaryOperator, Expr, FunctionCall, Literal, Macro, MacroKind, SelectionStep};

/// The maximum number of conditionals and items that are expanded; the rest stay unchanged.
const SPREAD: usize = 64;
/// The maximum number of comparisons that a membership in a list of tuples becomes.
const MAX_TUPLE_COMPARISONS: usize = 2_000;

/// The rule in normal form.
pub(super) fn normal(expr: Expr) -> Expr {
    Normal { left: SPREAD }.normalize(expr)
}

struct Normal {
    left: usize,
}

impl Normal {
    fn normalize(&mut self, expr: Expr) -> Expr {
        match expr {
            Expr::Has { operand, field } => match chain(&operand) {
                Some(mut there) => {
                    there.push(Expr::Has { operand: Box::new(without_optional_steps(&operand)), field });
                    Expr::And(there)
                }
                None => Expr::Has { operand, field },
            },
            Expr::Not(operand) => Expr::Not(Box::new(self.normalize(*operand))),
            Expr::Negate(operand) => match self.normalize(*operand) {
                choice @ Expr::Conditional { .. } => {
                    self.expand_conditional(choice, &|value| Expr::Negate(Box::new(value)))
                }
                operand => Expr::Negate(Box::new(operand)),
            },
            Expr::And(operands) => Expr::And(self.all(operands)),
            Expr::Or(operands) => Expr::Or(self.all(operands)),
            Expr::Conditional { cases, otherwise } => Expr::Conditional {
                cases: cases.into_iter().map(|(when, value)| (self.normalize(when), self.normalize(value))).collect(),
                otherwise: Box::new(self.normalize(*otherwise)),
            },
            Expr::Binary { first, rest } => {
                if let Some(equations) = equations_of_tuples(&first, &rest) {
                    return self.normalize(equations);
                }
                let (operators, mut operands): (Vec<_>, Vec<Expr>) = rest.into_iter().unzip();
                operands.insert(0, *first);
                self.expand_operands(operands, &|operands| {
                    let mut operands = operands.into_iter();
                    let first = Box::new(operands.next().unwrap_or(Expr::Literal(Literal::Null)));
                    Expr::Binary { first, rest: operators.iter().copied().zip(operands).collect() }
                })
            }
            Expr::Call(call) => match &call.args[..] {
                [path, otherwise] if call.function == "orValue" && chain(path).is_some() => {
                    let there = Expr::And(chain(path).unwrap_or_default());
                    self.normalize(Expr::Conditional {
                        cases: vec![(there, without_optional_steps(path))],
                        otherwise: Box::new(otherwise.clone()),
                    })
                }
                [path] if call.function == "hasValue" && chain(path).is_some() => {
                    Expr::And(chain(path).unwrap_or_default())
                }
                [Expr::Macro(of)] if call.function == "size" && self.is_of_constants(of) => {
                    self.normalize_exists_one(of)
                }
                [Expr::Macro(of)] if of.kind == MacroKind::List && self.is_unrollable(of) => {
                    let items = self.unrolled(of).into_iter().map(|item| (item, false)).collect();
                    self.normalize(Expr::Call(FunctionCall { args: vec![Expr::List(items)], ..call.clone() }))
                }
                [Expr::List(items)] if call.function == "sum" && items.iter().all(|(_, optional)| !optional) => {
                    let mut items = items.iter().map(|(item, _)| item.clone());
                    let zero = || Expr::Literal(Literal::Int(0));
                    let first = Box::new(items.next().unwrap_or_else(zero));
                    self.normalize(Expr::Binary {
                        first,
                        rest: items.map(|item| (BinaryOperator::Add, item)).collect(),
                    })
                }
                [Expr::List(items)] if call.function == "size" && items.iter().all(|(_, optional)| !optional) => {
                    Expr::Literal(Literal::Int(i64::try_from(items.len()).unwrap_or(i64::MAX)))
                }
                [Expr::Map(entries)] if call.function == "size" && entries.is_empty() => Expr::Literal(Literal::Int(0)),
                args => self.expand_operands(args.to_vec(), &|args| Expr::Call(FunctionCall { args, ..call.clone() })),
            },
            Expr::Path { root, steps } => match self.normalize(*root) {
                choice @ Expr::Conditional { .. } => {
                    self.expand_conditional(choice, &|value| Expr::Path { root: Box::new(value), steps: steps.clone() })
                }
                root => Expr::Path { root: Box::new(root), steps },
            },
            Expr::Macro(of) => self.normalize_macro(*of),
            other => other,
        }
    }

    fn all(&mut self, exprs: Vec<Expr>) -> Vec<Expr> {
        exprs.into_iter().map(|expr| self.normalize(expr)).collect()
    }

    /// `made(operands)`, with conditionals among the operands expanded.
    fn expand_operands(&mut self, operands: Vec<Expr>, made: &dyn Fn(Vec<Expr>) -> Expr) -> Expr {
        let operands = self.all(operands);
        match operands.iter().position(|operand| matches!(operand, Expr::Conditional { .. })) {
            Some(at) if self.left > 0 => self.expand_conditional(operands[at].clone(), &|value| {
                let mut operands = operands.clone();
                operands[at] = value;
                made(operands)
            }),
            _ => made(operands),
        }
    }

    /// The conditional with `made` applied to each of its values.
    fn expand_conditional(&mut self, choice: Expr, made: &dyn Fn(Expr) -> Expr) -> Expr {
        let Expr::Conditional { cases, otherwise } = choice else { return made(choice) };
        if self.left == 0 {
            return made(Expr::Conditional { cases, otherwise });
        }
        self.left -= 1;
        Expr::Conditional {
            cases: cases.into_iter().map(|(when, value)| (when, self.normalize(made(value)))).collect(),
            otherwise: Box::new(self.normalize(made(*otherwise))),
        }
    }

    /// Whether the macro runs over a list literal whose items mean the same in its body, so that it can be written as
    /// one expression for each item.
    fn is_unrollable(&self, of: &Macro) -> bool {
        let Expr::List(items) = &of.target else { return false };
        let is_movable = |(item, optional): &(Expr, bool)| !optional && !binds_any_of(&of.body, item);
        of.variables.len() == 1 && of.filter.is_none() && items.len() <= self.left && items.iter().all(is_movable)
    }

    /// The body of a macro that [`Self::is_unrollable`], for each item.
    fn unrolled(&mut self, of: &Macro) -> Vec<Expr> {
        let (Expr::List(items), [variable]) = (&of.target, &of.variables[..]) else { return Vec::new() };
        self.left -= items.len();
        items.iter().map(|(item, _)| replaced(&of.body, variable, item)).collect()
    }

    /// Whether the macro counts the items of a list literal that satisfy a condition.
    fn is_of_constants(&self, of: &Macro) -> bool {
        matches!(of.kind, MacroKind::ExistsOne | MacroKind::Filter) && self.is_unrollable(of)
    }

    /// An expression with the same footprint as a macro that [`Self::is_of_constants`]: the conditions on all items
    /// decide it together.
    fn normalize_exists_one(&mut self, of: &Macro) -> Expr {
        let each = self.unrolled(of).into_iter();
        let each: Vec<_> =
            each.map(|condition| (BinaryOperator::Equal, Expr::Not(Box::new(self.normalize(condition))))).collect();
        Expr::Binary { first: Box::new(Expr::Literal(Literal::Bool(true))), rest: each }
    }

    fn normalize_macro(&mut self, of: Macro) -> Expr {
        if of.kind == MacroKind::ExistsOne && self.is_of_constants(&of) {
            return self.normalize_exists_one(&of);
        }
        let target = self.normalize(of.target.clone());
        if matches!(target, Expr::Conditional { .. }) {
            return self.expand_conditional(target, &|target| Expr::Macro(Box::new(Macro { target, ..of.clone() })));
        }
        let of = Macro { target, ..of };
        if matches!(of.kind, MacroKind::All | MacroKind::Exists) && self.is_unrollable(&of) {
            let each = self.unrolled(&of);
            let each = self.all(each);
            return if of.kind == MacroKind::All { Expr::And(each) } else { Expr::Or(each) };
        }
        let filter = of.filter.as_ref().map(|filter| self.normalize(filter.clone()));
        let body = self.normalize(of.body.clone());
        Expr::Macro(Box::new(Macro { filter, body, ..of }))
    }
}

/// The `has()` conditions under which a path with optional steps (`self.?a.b`) has a value; `None` for any other
/// expression.
fn chain(expr: &Expr) -> Option<Vec<Expr>> {
    let Expr::Path { root, steps } = expr else { return None };
    let first = steps.iter().position(|step| matches!(step, SelectionStep::Field { optional: true, .. }))?;
    let asked = |at: usize| match &steps[at] {
        SelectionStep::Field { name, .. } => {
            let operand = match at {
                0 => (**root).clone(),
                _ => without_optional_steps(&Expr::Path { root: root.clone(), steps: steps[..at].to_vec() }),
            };
            Some(Expr::Has { operand: Box::new(operand), field: name.clone() })
        }
        SelectionStep::Index { .. } => None,
    };
    (first..steps.len()).map(asked).collect()
}

/// The path without optional steps.
fn without_optional_steps(expr: &Expr) -> Expr {
    let Expr::Path { root, steps } = expr else { return expr.clone() };
    let taken = |step: &SelectionStep| match step {
        SelectionStep::Field { name, .. } => SelectionStep::Field { name: name.clone(), optional: false },
        index @ SelectionStep::Index { .. } => index.clone(),
    };
    Expr::Path { root: root.clone(), steps: steps.iter().map(taken).collect() }
}

/// `[a, b] in [['x', 'y'], …]` as a disjunction of `a == 'x' && b == 'y'`, and a comparison of two list literals
/// likewise. None for any other comparison.
fn equations_of_tuples(first: &Expr, rest: &[(BinaryOperator, Expr)]) -> Option<Expr> {
    let elements = |expr: &'_ Expr| -> Option<Vec<Expr>> {
        let Expr::List(items) = expr else { return None };
        items.iter().all(|(_, optional)| !optional).then(|| items.iter().map(|(item, _)| item.clone()).collect())
    };
    let [(operator, second)] = rest else { return None };
    let (own, others) = (elements(first)?, elements(second)?);
    let equal = |others: Vec<Expr>| match others.len() == own.len() {
        true => {
            let each = own.iter().cloned().zip(others);
            let equation =
                |(own, other)| Expr::Binary { first: Box::new(own), rest: vec![(BinaryOperator::Equal, other)] };
            Expr::And(each.map(equation).collect())
        }
        false => Expr::Literal(Literal::Bool(false)),
    };
    if own.len().saturating_mul(others.len()) > MAX_TUPLE_COMPARISONS {
        return None;
    }
    match operator {
        BinaryOperator::In => {
            let tuples: Option<Vec<Vec<Expr>>> = others.iter().map(elements).collect();
            Some(Expr::Or(tuples?.into_iter().map(equal).collect()))
        }
        BinaryOperator::Equal => Some(equal(others)),
        BinaryOperator::NotEqual => Some(Expr::Not(Box::new(equal(others)))),
        _ => None,
    }
}
