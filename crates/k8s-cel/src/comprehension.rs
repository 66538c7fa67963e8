//! Evaluates macros.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::ast::{Expr, Macro, MacroKind};
use super::convert::{misfit, opened};
use super::equal::find;
use super::eval::{Evaluation, LIST_COST, MAP_COST, go_type, insert, past_cost};
use super::fault::{CelResult, EvaluationError};
use super::lib_list::sort_by_keys;
use super::value::{CelList, CelMap, CelValue};

/// The values of a macro's one or two variables for one element. A value that does not match its schema is a fault
/// only when it is used.
type MacroElement<'a> = (CelResult<CelValue<'a>>, Option<CelResult<CelValue<'a>>>);

impl<'a> Evaluation<'a, '_> {
    /// Evaluates a macro.
    pub(super) fn run_macro(&mut self, of: &'a Macro) -> CelResult<CelValue<'a>> {
        if matches!(of.kind, MacroKind::OptMap | MacroKind::OptFlatMap) {
            return self.optional(of);
        }
        if of.kind == MacroKind::SortBy {
            return self.sort_by(of);
        }
        let elements = elements(self.eval(&of.target)?, of.variables.len() == 2)?;
        self.budget.take(if matches!(of.kind, MacroKind::Map | MacroKind::MapEntry) { MAP_COST } else { LIST_COST })?;
        match of.kind {
            MacroKind::All => self.quantifier(of, elements, false),
            MacroKind::Exists => self.quantifier(of, elements, true),
            MacroKind::ExistsOne => {
                let kept = self.filter_elements(of, &of.body, elements)?;
                Ok(CelValue::Bool(kept.len() == 1))
            }
            MacroKind::Filter => {
                let kept = self.filter_elements(of, &of.body, elements)?;
                let kept = kept.into_iter().map(|(value, _)| value.and_then(|value| self.attribute(value)));
                Ok(CelValue::List(CelList::new(kept.collect::<CelResult<_>>()?)))
            }
            MacroKind::List => Ok(CelValue::List(CelList::new(self.transform(of, elements)?))),
            MacroKind::Map | MacroKind::MapEntry => self.transform_map(of, elements),
            MacroKind::SortBy | MacroKind::OptMap | MacroKind::OptFlatMap => Err(EvaluationError::no_such_overload()),
        }
    }

    fn sort_by(&mut self, of: &'a Macro) -> CelResult<CelValue<'a>> {
        let is_measured = of.resolved.signature.get().is_some();
        let measured = |fault| if is_measured { past_cost("sortBy", 0, fault) } else { fault };
        let target = self.eval(&of.target).map_err(measured)?;
        let is_list = matches!(target, CelValue::List(_));
        // The keys are computed from the elements, in the same order.
        let elements = elements(target, false).map_err(measured)?.collect::<Vec<_>>();
        let values = elements.iter().map(|element| element.0.clone()).collect();
        let keys = self.transform(of, elements.into_iter()).map_err(measured)?;
        match is_list {
            true => sort_by_keys(values, keys, self.budget),
            false => Err(EvaluationError::error("no such overload: @sortByAssociatedKeys")),
        }
    }

    /// Evaluates `expr` with the macro's variables bound to `element`.
    fn bound(&mut self, of: &'a Macro, expr: &'a Expr, element: MacroElement<'a>) -> CelResult<CelValue<'a>> {
        self.budget.take(iteration_cost(of.kind))?;
        let depth = self.scope.len();
        let (first, second) = element;
        if let Some(name) = of.variables.first() {
            self.scope.push((name, first));
        }
        if let (Some(name), Some(second)) = (of.variables.get(1), second) {
            self.scope.push((name, second));
        }
        let result = self.eval(expr);
        self.scope.truncate(depth);
        result
    }

    fn test(&mut self, of: &'a Macro, expr: &'a Expr, element: MacroElement<'a>) -> CelResult<bool> {
        match self.bound(of, expr, element)? {
            CelValue::Bool(value) => Ok(value),
            _ => Err(EvaluationError::no_such_overload()),
        }
    }

    /// `all` and `exists`: a decisive element determines the result, regardless of faults in other elements.
    fn quantifier(
        &mut self,
        of: &'a Macro,
        elements: impl Iterator<Item = MacroElement<'a>>,
        decisive: bool,
    ) -> CelResult<CelValue<'a>> {
        let mut fault: Option<EvaluationError> = None;
        for element in elements {
            match self.test(of, &of.body, element) {
                Ok(value) if value == decisive => return Ok(CelValue::Bool(decisive)),
                Ok(_) => {}
                Err(problem @ EvaluationError::Abort(_)) => {
                    return Err(fault.map_or(problem.clone(), |f| EvaluationError::of_both(f, problem)));
                }
                Err(problem) if self.budget.is_exhausted() => return Err(problem),
                Err(problem) => {
                    fault = Some(match fault {
                        None => problem,
                        Some(first) => EvaluationError::of_both(first, problem),
                    });
                }
            }
        }
        fault.map_or(Ok(CelValue::Bool(!decisive)), Err)
    }

    /// The elements for which `filter` holds. A fault does not stop the loop; like the server, this reports the last
    /// fault.
    fn filter_elements(
        &mut self,
        of: &'a Macro,
        filter: &'a Expr,
        elements: impl Iterator<Item = MacroElement<'a>>,
    ) -> CelResult<Vec<MacroElement<'a>>> {
        let mut kept = Vec::new();
        let mut fault: Option<EvaluationError> = None;
        for element in elements {
            match self.test(of, filter, element.clone()) {
                Ok(true) => kept.push(element),
                Ok(false) => {}
                Err(problem) if problem.is_final() => return Err(problem),
                Err(problem) => fault = Some(problem),
            }
        }
        fault.map_or(Ok(kept), Err)
    }

    /// The elements that pass the macro's filter, if it has one.
    fn filtered(
        &mut self,
        of: &'a Macro,
        elements: impl Iterator<Item = MacroElement<'a>>,
    ) -> CelResult<Vec<MacroElement<'a>>> {
        match &of.filter {
            Some(filter) => self.filter_elements(of, filter, elements),
            None => Ok(elements.collect()),
        }
    }

    fn transform(
        &mut self,
        of: &'a Macro,
        elements: impl Iterator<Item = MacroElement<'a>>,
    ) -> CelResult<Vec<CelValue<'a>>> {
        let mut values = Vec::new();
        for element in self.filtered(of, elements)? {
            values.push(self.bound(of, &of.body, element)?);
        }
        Ok(values)
    }

    fn transform_map(
        &mut self,
        of: &'a Macro,
        elements: impl Iterator<Item = MacroElement<'a>>,
    ) -> CelResult<CelValue<'a>> {
        let mut map = BTreeMap::new();
        for element in self.filtered(of, elements)? {
            let key = element.0.clone()?;
            let value = self.bound(of, &of.body, element)?;
            match (of.kind, value) {
                (MacroKind::Map, value) => insert(&mut map, key, value)?,
                (_, CelValue::Map(entries)) => {
                    for key in entries.keys() {
                        // A value that does not match its schema is copied as it is.
                        let value = misfit(find(&entries, &key).map(|value| value.unwrap_or(CelValue::Null)))?;
                        insert(&mut map, key, value)?;
                    }
                }
                (_, other) => {
                    let name = other.type_name();
                    return Err(EvaluationError::error(format!("no such overload: cel.@mapInsert(map, {name})")));
                }
            }
        }
        Ok(CelValue::Map(CelMap::Values(Rc::new(map))))
    }

    /// `optMap` and `optFlatMap`
    fn optional(&mut self, of: &'a Macro) -> CelResult<CelValue<'a>> {
        self.budget.take(4)?;
        let before = self.budget.remaining();
        match self.eval(&of.target)? {
            CelValue::Optional(None) => Ok(CelValue::Optional(None)),
            CelValue::Optional(Some(value)) => {
                // The server evaluates the target twice: for the test and for the value.
                self.budget.take(before - self.budget.remaining())?;
                let value = self.bound(of, &of.body, (opened(&value), None))?;
                // The expansion of the macro is a conditional between this value and none.
                self.attribute(if of.kind == MacroKind::OptMap { CelValue::some(value) } else { value })
            }
            other => Err(EvaluationError::error(format!("no such overload: hasValue({})", other.type_name()))),
        }
    }
}

/// The server's cost of one iteration of a macro without the body: macros are loops that extend a list or a map.
fn iteration_cost(kind: MacroKind) -> u64 {
    match kind {
        MacroKind::Filter | MacroKind::List | MacroKind::SortBy => 4 + LIST_COST,
        MacroKind::Map | MacroKind::MapEntry => 4 + MAP_COST,
        _ => 4,
    }
}

/// The elements that a macro iterates over: list elements or map keys. With two variables, pairs of index and element
/// or of key and value.
fn elements<'a>(target: CelValue<'a>, two: bool) -> CelResult<Box<dyn Iterator<Item = MacroElement<'a>> + 'a>> {
    Ok(match target {
        CelValue::List(list) => Box::new((0..list.len()).map(move |index| match two {
            true => (Ok(CelValue::Int(i64::try_from(index).unwrap_or(i64::MAX))), Some(list.get(index))),
            false => (list.get(index), None),
        })),
        CelValue::Map(map) => Box::new(map.keys().into_iter().map(move |key| match two {
            true => {
                let value = find(&map, &key).map(|value| value.unwrap_or(CelValue::Null));
                (Ok(key), Some(value))
            }
            false => (Ok(key), None),
        })),
        other if two => {
            return Err(EvaluationError::error(format!("unsupported comprehension range type: {}", go_type(&other))));
        }
        other => return Err(EvaluationError::error(format!("got '{}', expected iterable type", go_type(&other)))),
    })
}
