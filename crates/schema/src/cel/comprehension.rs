//! Evaluates macros.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::ast::{Expr, Macro, MacroKind};
use super::convert::{misfit, opened};
use super::equal::find;
use super::eval::{Evaluation, LIST_COST, MAP_COST, go_type, insert, past_cost};
use super::fault::{Fault, Result};
use super::lib_list::sort_by_keys;
use super::value::{List, Map, Value};

/// An element of what a macro runs over: the values of its one or two variables. What does not fit its schema is a fault
/// only once it is looked at.
type Element<'a> = (Result<Value<'a>>, Option<Result<Value<'a>>>);

impl<'a> Evaluation<'a, '_> {
    /// The value of a macro.
    pub(super) fn run_macro(&mut self, of: &'a Macro) -> Result<Value<'a>> {
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
                let kept = self.kept(of, &of.body, elements)?;
                Ok(Value::Bool(kept.len() == 1))
            }
            MacroKind::Filter => {
                let kept = self.kept(of, &of.body, elements)?;
                let kept = kept.into_iter().map(|(value, _)| value.and_then(|value| self.attribute(value)));
                Ok(Value::List(List::new(kept.collect::<Result<_>>()?)))
            }
            MacroKind::List => Ok(Value::List(List::new(self.transform(of, elements)?))),
            MacroKind::Map | MacroKind::MapEntry => self.transform_map(of, elements),
            MacroKind::SortBy | MacroKind::OptMap | MacroKind::OptFlatMap => Err(Fault::no_such_overload()),
        }
    }

    fn sort_by(&mut self, of: &'a Macro) -> Result<Value<'a>> {
        let is_measured = of.resolved.signature.get().is_some();
        let measured = |fault| if is_measured { past_cost("sortBy", 0, fault) } else { fault };
        let target = self.eval(&of.target).map_err(measured)?;
        let is_list = matches!(target, Value::List(_));
        // The keys are made of the elements, in the same order.
        let elements = elements(target, false).map_err(measured)?.collect::<Vec<_>>();
        let values = elements.iter().map(|element| element.0.clone()).collect();
        let keys = self.transform(of, elements.into_iter()).map_err(measured)?;
        match is_list {
            true => sort_by_keys(values, keys, self.budget),
            false => Err(Fault::error("no such overload: @sortByAssociatedKeys")),
        }
    }

    /// Evaluates `expr` with the macro's variables bound to `element`.
    fn bound(&mut self, of: &'a Macro, expr: &'a Expr, element: Element<'a>) -> Result<Value<'a>> {
        self.budget.take(round_cost(of.kind))?;
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

    fn test(&mut self, of: &'a Macro, expr: &'a Expr, element: Element<'a>) -> Result<bool> {
        match self.bound(of, expr, element)? {
            Value::Bool(value) => Ok(value),
            _ => Err(Fault::no_such_overload()),
        }
    }

    /// `all` and `exists`: one decisive element decides, whatever is wrong with the others.
    fn quantifier(
        &mut self,
        of: &'a Macro,
        elements: impl Iterator<Item = Element<'a>>,
        decisive: bool,
    ) -> Result<Value<'a>> {
        let mut fault: Option<Fault> = None;
        for element in elements {
            match self.test(of, &of.body, element) {
                Ok(value) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(_) => {}
                Err(problem @ Fault::Abort(_)) => {
                    return Err(fault.map_or(problem.clone(), |f| Fault::of_both(f, problem)));
                }
                Err(problem) if self.budget.is_exhausted() => return Err(problem),
                Err(problem) => {
                    fault = Some(match fault {
                        None => problem,
                        Some(first) => Fault::of_both(first, problem),
                    });
                }
            }
        }
        fault.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    /// The elements for which `filter` holds. A fault ends nothing: what is reported is the last one, as on the server.
    fn kept(
        &mut self,
        of: &'a Macro,
        filter: &'a Expr,
        elements: impl Iterator<Item = Element<'a>>,
    ) -> Result<Vec<Element<'a>>> {
        let mut kept = Vec::new();
        let mut fault: Option<Fault> = None;
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

    /// The elements that the macro's own filter lets through, if it has one.
    fn filtered(&mut self, of: &'a Macro, elements: impl Iterator<Item = Element<'a>>) -> Result<Vec<Element<'a>>> {
        match &of.filter {
            Some(filter) => self.kept(of, filter, elements),
            None => Ok(elements.collect()),
        }
    }

    fn transform(&mut self, of: &'a Macro, elements: impl Iterator<Item = Element<'a>>) -> Result<Vec<Value<'a>>> {
        let mut values = Vec::new();
        for element in self.filtered(of, elements)? {
            values.push(self.bound(of, &of.body, element)?);
        }
        Ok(values)
    }

    fn transform_map(&mut self, of: &'a Macro, elements: impl Iterator<Item = Element<'a>>) -> Result<Value<'a>> {
        let mut map = BTreeMap::new();
        for element in self.filtered(of, elements)? {
            let key = element.0.clone()?;
            let value = self.bound(of, &of.body, element)?;
            match (of.kind, value) {
                (MacroKind::Map, value) => insert(&mut map, key, value)?,
                (_, Value::Map(entries)) => {
                    for key in entries.keys() {
                        // What does not fit its schema goes along.
                        let value = misfit(find(&entries, &key).map(|value| value.unwrap_or(Value::Null)))?;
                        insert(&mut map, key, value)?;
                    }
                }
                (_, other) => {
                    let name = other.type_name();
                    return Err(Fault::error(format!("no such overload: cel.@mapInsert(map, {name})")));
                }
            }
        }
        Ok(Value::Map(Map::Values(Rc::new(map))))
    }

    /// `optMap` and `optFlatMap`
    fn optional(&mut self, of: &'a Macro) -> Result<Value<'a>> {
        self.budget.take(4)?;
        let before = self.budget.remaining();
        match self.eval(&of.target)? {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(value)) => {
                // The server evaluates it twice: is there a value, and which.
                self.budget.take(before - self.budget.remaining())?;
                let value = self.bound(of, &of.body, (opened(&value), None))?;
                // The macro is a choice between this and nothing.
                self.attribute(if of.kind == MacroKind::OptMap { Value::some(value) } else { value })
            }
            other => Err(Fault::error(format!("no such overload: hasValue({})", other.type_name()))),
        }
    }
}

/// What the server counts for one round of a macro's loop besides the body: macros are loops that grow a list or map.
fn round_cost(kind: MacroKind) -> u64 {
    match kind {
        MacroKind::Filter | MacroKind::List | MacroKind::SortBy => 4 + LIST_COST,
        MacroKind::Map | MacroKind::MapEntry => 4 + MAP_COST,
        _ => 4,
    }
}

/// What a macro runs over: elements of a list or keys of a map, or with two variables both index and element, key and
/// value.
fn elements<'a>(target: Value<'a>, two: bool) -> Result<Box<dyn Iterator<Item = Element<'a>> + 'a>> {
    Ok(match target {
        Value::List(list) => Box::new((0..list.len()).map(move |index| match two {
            true => (Ok(Value::Int(i64::try_from(index).unwrap_or(i64::MAX))), Some(list.get(index))),
            false => (list.get(index), None),
        })),
        Value::Map(map) => Box::new(map.keys().into_iter().map(move |key| match two {
            true => {
                let value = find(&map, &key).map(|value| value.unwrap_or(Value::Null));
                (Ok(key), Some(value))
            }
            false => (Ok(key), None),
        })),
        other if two => {
            return Err(Fault::error(format!("unsupported comprehension range type: {}", go_type(&other))));
        }
        other => return Err(Fault::error(format!("got '{}', expected iterable type", go_type(&other)))),
    })
}
