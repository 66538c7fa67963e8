//! What an equation of the old and the new value says about their parts.

use std::collections::BTreeSet;

use super::{Formula, FormulaReader, Logic, Statement, WantedTruth, When, is_scalar_type};
use crate::keywords as kw;
use crate::rules::footprint::parts;
use gantry_k8s_cel::ast::{BinaryOperator, Expr, SelectionStep};
use gantry_k8s_cel::unescape;

/// The maximum number of parts of values for which facts are collected.
const MAX_FACTS: usize = 32;

/// The names on the way from the variable to the field that the expression reads.
fn field_path(expr: &Expr, variable: &str) -> Option<Vec<String>> {
    match expr {
        Expr::Variable(name) if name == variable => Some(Vec::new()),
        Expr::Path { root, steps } if matches!(&**root, Expr::Variable(name) if name == variable) => {
            let name = |step: &SelectionStep| match step {
                SelectionStep::Field { name, optional: false } => Some(name.clone()),
                _ => None,
            };
            steps.iter().map(name).collect()
        }
        _ => None,
    }
}

/// The path of a part of `self` that the equation compares with the same part of `oldSelf`.
pub(super) fn unchanged_part(first: &Expr, second: &Expr) -> Option<Vec<String>> {
    let ways = [(first, second), (second, first)];
    ways.into_iter().find_map(|(new, old)| {
        field_path(new, "self").filter(|path| field_path(old, "oldSelf").is_some_and(|other| other == *path))
    })
}

/// The paths of all fields of `self` and `oldSelf` that the expression reads or tests.
pub(super) fn paths(expr: &Expr) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    let mut todo = vec![expr];
    while let Some(expr) = todo.pop() {
        for variable in ["self", "oldSelf"] {
            if let Expr::Has { operand, field } = expr
                && let Some(mut path) = field_path(operand, variable)
            {
                path.push(field.clone());
                found.insert(path);
            }
            found.extend(field_path(expr, variable).filter(|path| !path.is_empty()));
        }
        todo.extend(parts(expr));
    }
    found
}

/// The expression that reads the field.
fn read(variable: &str, path: &[String]) -> Expr {
    let root = Expr::Variable(variable.to_owned());
    match path {
        [] => root,
        path => {
            let step = |name: &String| SelectionStep::Field { name: name.clone(), optional: false };
            Expr::Path { root: Box::new(root), steps: path.iter().map(step).collect() }
        }
    }
}

impl Logic<'_> {
    /// Equal values have the same fields, and their fields are equal: facts about the fields that the statement reads,
    /// where an equation of the old and the new value of what is around them is known. Their atoms become those of the
    /// statement.
    pub(super) fn facts(&mut self, of: &mut Statement) -> Vec<Statement> {
        if of.when != When::OnUpdate {
            return Vec::new();
        }
        let mut facts: Vec<(BTreeSet<usize>, Formula)> = Vec::new();
        let known = self.unchanged.clone();
        for path in of.paths.iter().take(MAX_FACTS) {
            for (around, equation) in &known {
                if path.len() <= around.len() || !path.starts_with(around) || !self.is_plain(around) {
                    continue;
                }
                let mut conditions = vec![*equation];
                for length in around.len() + 1..=path.len() {
                    let path = &path[..length];
                    if !self.is_plain(path) {
                        break;
                    }
                    let there = self.presence("self", path);
                    let before = self.presence("oldSelf", path);
                    let as_formulas = |atoms: &[usize]| atoms.iter().map(|atom| Formula::Atom(*atom)).collect();
                    facts.push((
                        conditions.iter().copied().chain([there, before]).collect::<BTreeSet<usize>>(),
                        Formula::Fact {
                            conditions: as_formulas(&conditions),
                            then: Box::new(Formula::Same {
                                operands: Box::new((Formula::Atom(there), Formula::Atom(before))),
                                is_equal: true,
                            }),
                        },
                    ));
                    conditions.push(there);
                    if self.schema_at(path).is_some_and(is_scalar_type) {
                        let mut reader =
                            FormulaReader { logic: self, atoms: BTreeSet::new(), size: 0, when: When::OnUpdate };
                        let equation = Expr::Binary {
                            first: Box::new(read("self", path)),
                            rest: vec![(BinaryOperator::Equal, read("oldSelf", path))],
                        };
                        let equal = reader.formula(&equation, WantedTruth::True);
                        let atoms = reader.atoms;
                        facts.push((
                            conditions.iter().copied().chain(atoms).collect(),
                            Formula::Fact { conditions: as_formulas(&conditions), then: Box::new(equal) },
                        ));
                    }
                }
            }
        }
        let statement = |(atoms, formula): (BTreeSet<usize>, Formula)| {
            let size = atoms.len() as u64 + 2;
            Statement { formula, atoms, size, when: When::OnUpdate, paths: BTreeSet::new() }
        };
        let facts: Vec<Statement> = facts.into_iter().map(statement).collect();
        of.atoms.extend(facts.iter().flat_map(|fact| fact.atoms.iter().copied()));
        facts
    }

    fn presence(&mut self, variable: &str, path: &[String]) -> usize {
        let Some((field, around)) = path.split_last() else { unreachable!("a field has a name") };
        let test = Expr::Has { operand: Box::new(read(variable, around)), field: field.clone() };
        self.known_atom((format!("{test:?}"), String::new()), super::IS_TRUE | super::IS_FALSE)
    }

    fn known_atom(&mut self, atom: (String, String), asked: u8) -> usize {
        let next = self.atoms.len();
        let index = *self.atoms.entry(atom).or_insert(next);
        if index == next {
            self.asked.push(0);
        }
        self.asked[index] |= asked;
        index
    }

    fn schema_at(&self, path: &[String]) -> Option<&serde_json::Value> {
        path.iter().try_fold(self.schema, |schema, name| kw::property(schema, &unescape(name)?))
    }

    /// Whether every value on the way to the field has a type and is never null.
    fn is_plain(&self, path: &[String]) -> bool {
        let is_plain = |length: usize| {
            let schema = self.schema_at(&path[..length]);
            schema.is_some_and(|schema| kw::has_type(schema) && !kw::flag(schema, "nullable"))
        };
        (0..=path.len()).all(is_plain)
    }
}
