//! The types of macros, which are the types of their expansions in the server.

use super::ast::{Literal, Macro, MacroKind};
use super::check::{Checked, CheckedExpression, TypeChecker, undeclared};
use super::estimate::{ACCUMULATOR, Id, Loop, Of};
use super::signature::has_macro;
use super::typing::{BOOL, INT, Ty};

/// The variable that holds the list to be sorted in `sortBy`.
const SORTED: &str = "@__sortBy_input__";

/// The start value, the condition for continuing, and the result of a loop.
struct Frame {
    start: CheckedExpression,
    condition: Id,
    step: Id,
    result: Id,
}

/// The name of a macro.
fn name_of(of: &Macro) -> &'static str {
    match of.kind {
        MacroKind::All => "all",
        MacroKind::Exists => "exists",
        MacroKind::ExistsOne => "exists_one",
        MacroKind::Filter => "filter",
        MacroKind::List if of.variables.len() == 1 => "map",
        MacroKind::List => "transformList",
        MacroKind::Map => "transformMap",
        MacroKind::MapEntry => "transformMapEntry",
        MacroKind::SortBy => "sortBy",
        MacroKind::OptMap => "optMap",
        MacroKind::OptFlatMap => "optFlatMap",
    }
}

impl<'e> TypeChecker<'e> {
    pub fn run_macro(&mut self, of: &'e Macro) -> Checked {
        let name = name_of(of);
        if !has_macro(name, of.variables.len() + usize::from(of.filter.is_some()) + 1, self.environment) {
            return Err(undeclared(name));
        }
        let begin = self.sketch.len();
        let target = self.expr(&of.target)?;
        match of.kind {
            MacroKind::OptMap | MacroKind::OptFlatMap => {
                let copy = self.sketch.copy(begin, target.id);
                let copy = CheckedExpression { ty: target.ty.clone(), id: copy };
                self.optional_macro(of, target, copy)
            }
            MacroKind::SortBy => self.sorted(of, target),
            _ => {
                let result = self.in_loop(of, target)?;
                let ty = self.bindings.resolve(&result.ty);
                Ok(CheckedExpression { ty, id: result.id })
            }
        }
    }

    fn in_loop(&mut self, of: &'e Macro, range: CheckedExpression) -> Checked {
        let elements = self.range(&range.ty, of.variables.len() == 2)?;
        let depth = self.scope.len();
        let mut variables = of.variables.iter().map(String::as_str);
        self.scope.extend(variables.clone().zip([elements.0.clone(), elements.1]));
        let frame = match of.kind {
            MacroKind::All | MacroKind::Exists => self.quantified(of),
            MacroKind::ExistsOne => self.check_exists_one(of),
            _ => self.collected(of, elements.0),
        };
        self.scope.truncate(depth);
        let Frame { start, condition, step, result } = frame?;
        let ty = match of.kind {
            MacroKind::ExistsOne => BOOL,
            _ => start.ty,
        };
        let variables = (variables.next().unwrap_or_default(), variables.next());
        let of = Loop { range: range.id, variables, start: start.id, condition, step, result };
        Ok(self.part(ty, || Of::Loop(Box::new(of))))
    }

    fn accumulator(&mut self, ty: &Ty) -> CheckedExpression {
        self.part(ty.clone(), || Of::Name(ACCUMULATOR))
    }

    /// `all` and `exists`
    fn quantified(&mut self, of: &'e Macro) -> Result<Frame, String> {
        let start = self.literal(&Literal::Bool(of.kind == MacroKind::All));
        let mut goes_on = self.accumulator(&BOOL);
        if of.kind == MacroKind::Exists {
            goes_on = self.overload("!_", false, vec![goes_on])?;
        }
        // The condition for continuing.
        let of_that = vec![goes_on.id];
        let condition = self.part(BOOL, || Of::Call { args: of_that, is_member: false, overloads: Vec::new() }).id;
        let so_far = self.accumulator(&BOOL).id;
        let body = self.condition(&of.body)?;
        let step = self.part(BOOL, || Of::Logic(vec![so_far, body])).id;
        let result = self.accumulator(&BOOL).id;
        Ok(Frame { start, condition, step, result })
    }

    /// `exists_one`
    fn check_exists_one(&mut self, of: &'e Macro) -> Result<Frame, String> {
        let start = self.literal(&Literal::Int(0));
        let condition = self.literal(&Literal::Bool(true)).id;
        let body = self.expr(&of.body)?;
        let (so_far, one) = (self.accumulator(&INT), self.literal(&Literal::Int(1)));
        let more = self.overload("_+_", false, vec![so_far, one])?;
        let as_many = self.accumulator(&INT);
        let step = self.overload("_?_:_", false, vec![body, more, as_many])?.id;
        let (found, one) = (self.accumulator(&INT), self.literal(&Literal::Int(1)));
        let result = self.overload("_==_", false, vec![found, one])?.id;
        Ok(Frame { start, condition, step, result })
    }

    /// The macros that build a list or a map. `first` is the type of their first variable.
    fn collected(&mut self, of: &'e Macro, first: Ty) -> Result<Frame, String> {
        let start = match of.kind {
            MacroKind::Map | MacroKind::MapEntry => {
                let ty = Ty::map(self.bindings.new_variable(), self.bindings.new_variable());
                self.part(ty, || Of::Map(Vec::new()))
            }
            _ => {
                let ty = Ty::list(self.bindings.new_variable());
                self.part(ty, || Of::List(Vec::new()))
            }
        };
        let goes_on = self.literal(&Literal::Bool(true)).id;
        let name = of.variables.first().map(String::as_str).unwrap_or_default();
        // The expansion of these macros also names the variable.
        if let MacroKind::Filter | MacroKind::Map = of.kind {
            self.named.push((name, first.clone()));
        }
        // The body of a filter is its condition.
        let condition = match of.kind {
            MacroKind::Filter => Some(self.expr(&of.body)?),
            _ => of.filter.as_ref().map(|filter| self.expr(filter)).transpose()?,
        };
        let so_far = self.accumulator(&start.ty);
        let grown = match of.kind {
            MacroKind::Filter => {
                let element = self.part(first.clone(), || Of::Name(name)).id;
                let element = self.part(Ty::list(first), || Of::List(vec![element]));
                self.overload("_+_", false, vec![so_far, element])?
            }
            MacroKind::Map => {
                let key = self.part(first, || Of::Name(name));
                let value = self.expr(&of.body)?;
                self.overload("cel.@mapInsert", false, vec![so_far, key, value])?
            }
            MacroKind::MapEntry => {
                let entry = self.expr(&of.body)?;
                self.overload("cel.@mapInsert", false, vec![so_far, entry])?
            }
            _ => {
                let value = self.expr(&of.body)?;
                let value = self.part(Ty::list(value.ty), || Of::List(vec![value.id]));
                self.overload("_+_", false, vec![so_far, value])?
            }
        };
        let step = match condition {
            Some(condition) => {
                let as_it_was = self.accumulator(&start.ty);
                self.overload("_?_:_", false, vec![condition, grown, as_it_was])?
            }
            None => grown,
        };
        self.assert(step.ty, &start.ty)?;
        let result = self.accumulator(&start.ty).id;
        Ok(Frame { start, condition: goes_on, step: step.id, result })
    }

    /// The types of a macro's variables.
    fn range(&mut self, target: &Ty, two: bool) -> Result<(Ty, Ty), String> {
        let target = self.bindings.resolve(target);
        Ok(match &target {
            Ty::Of("list", of) => {
                let element = of.first().cloned().unwrap_or(Ty::Dyn);
                if two { (INT, element) } else { (element, Ty::Dyn) }
            }
            Ty::Of("map", of) => (of.first().cloned().unwrap_or(Ty::Dyn), of.get(1).cloned().unwrap_or(Ty::Dyn)),
            Ty::Dyn | Ty::Variable(_) => {
                self.bindings.assign(&[Ty::Dyn], std::slice::from_ref(&target));
                (Ty::Dyn, Ty::Dyn)
            }
            other => {
                return Err(format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                ));
            }
        })
    }

    /// `sortBy`: the list is bound to a variable and sorted by the keys computed from it.
    fn sorted(&mut self, of: &'e Macro, list: CheckedExpression) -> Checked {
        let input = self.part(list.ty.clone(), || Of::Name(SORTED));
        let keys = self.in_loop(of, input)?;
        let keys = CheckedExpression { ty: self.bindings.resolve(&keys.ty), id: keys.id };
        let target = self.part(list.ty.clone(), || Of::Name(SORTED));
        let (result, only) = self.resolved("@sortByAssociatedKeys", true, vec![target, keys])?;
        if let Some(signature) = only {
            of.resolved.signature.get_or_init(|| signature);
        }
        Ok(self.part(result.ty, || Of::Bind { name: SORTED, value: list.id, result: result.id }))
    }

    fn optional_macro(&mut self, of: &'e Macro, target: CheckedExpression, copy: CheckedExpression) -> Checked {
        let condition = self.overload("hasValue", true, vec![target])?;
        let value = self.overload("value", true, vec![copy])?;
        let name = of.variables.first().map(String::as_str).unwrap_or_default();
        // The expansion of the macro also names the variable.
        self.named.push((name, value.ty.clone()));
        self.scope.push((name, value.ty));
        let body = self.expr(&of.body);
        self.scope.pop();
        let body = body?;
        let ty = self.bindings.resolve(&body.ty);
        let bound = self.part(ty, || Of::Bind { name, value: value.id, result: body.id });
        let some = match of.kind {
            MacroKind::OptMap => self.overload("optional.of", false, vec![bound])?,
            _ => bound,
        };
        let none = self.overload("optional.none", false, Vec::new())?;
        self.overload("_?_:_", false, vec![condition, some, none])
    }
}
