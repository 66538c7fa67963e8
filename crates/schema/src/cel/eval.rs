//! Evaluates an expression.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::access::{at, is_element, missing, select};
use super::ast::{Call, Expr, Literal, MacroKind, Operator, Step};
use super::budget::Budget;
use super::convert::{opened, opened_misfit, unwrapped};
use super::cost;
use super::fault::{Fault, Result};
use super::types::ListKind;
use super::typing::Ty;
use super::value::{Items, Key, List, Map, Text, Value};
use super::{lib_regex, ops};

/// The server's cost of creating a list or a map.
pub(super) const LIST_COST: u64 = 10;
pub(super) const MAP_COST: u64 = 30;

/// An evaluation in progress.
pub(crate) struct Evaluation<'a, 'b> {
    /// The variables in scope, innermost last. A fault in a variable only matters if the variable is used.
    pub(super) scope: Vec<(&'a str, Result<Value<'a>>)>,
    pub(super) budget: &'b mut Budget,
}

impl<'a, 'b> Evaluation<'a, 'b> {
    /// Creates an evaluation with `variables` in scope.
    pub(crate) fn new(variables: Vec<(&'a str, Result<Value<'a>>)>, budget: &'b mut Budget) -> Self {
        Evaluation { scope: variables, budget }
    }

    /// Evaluates `expr`.
    pub(crate) fn eval(&mut self, expr: &'a Expr) -> Result<Value<'a>> {
        self.budget.take(1)?;
        match expr {
            Expr::Literal(literal) => Ok(literal_value(literal)),
            Expr::Variable(name) => self.variable(name),
            Expr::TypeName(name) => Ok(Value::Type(name)),
            Expr::Path { root, steps } => opened_misfit(self.path(root, steps)?),
            Expr::Has { operand, field } => self.has(operand, field),
            Expr::Not(operand) => match self.eval(operand)? {
                Value::Bool(value) => Ok(Value::Bool(!value)),
                _ => Err(Fault::no_such_overload()),
            },
            Expr::Negate(operand) => ops::negate(self.eval(operand)?),
            Expr::And(operands) => self.logic(operands, false),
            Expr::Or(operands) => self.logic(operands, true),
            Expr::Conditional { cases, otherwise } => self.conditional(cases, otherwise),
            Expr::Binary { first, rest } => self.binary(first, rest),
            Expr::List(items) => self.list(items),
            Expr::Map(entries) => self.map(entries),
            Expr::Call(call) => self.call(call),
            Expr::Macro(macro_) => self.run_macro(macro_),
        }
    }

    fn variable(&mut self, name: &str) -> Result<Value<'a>> {
        match self.scope.iter().rev().find(|(known, _)| *known == name) {
            Some((_, value)) => {
                let value = value.clone()?;
                self.attribute(value)
            }
            None => Err(Fault::error(format!("no such attribute(s): {name}"))),
        }
    }

    /// A value read through what cel-go calls an attribute: inside an optional, it becomes plain data.
    pub(super) fn attribute(&mut self, value: Value<'a>) -> Result<Value<'a>> {
        match value {
            Value::Optional(Some(value)) => unwrapped(&value, self.budget).map(Value::some),
            value => Ok(value),
        }
    }

    /// Evaluates `operands` joined by `||` (`decisive` is true) or `&&` (`decisive` is false). A decisive operand
    /// determines the result, regardless of faults in the others.
    fn logic(&mut self, operands: &'a [Expr], decisive: bool) -> Result<Value<'a>> {
        let mut fault: Option<Fault> = None;
        for operand in operands {
            let problem = match self.eval(operand) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => continue,
                Ok(_) => Fault::no_such_overload(),
                Err(problem @ Fault::Abort(_)) => {
                    return Err(fault.map_or(problem.clone(), |fault| Fault::of_both(fault, problem)));
                }
                Err(problem) => problem,
            };
            fault = Some(match fault {
                None => problem,
                Some(first) => Fault::of_both(first, problem),
            });
        }
        fault.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn conditional(&mut self, cases: &'a [(Expr, Expr)], otherwise: &'a Expr) -> Result<Value<'a>> {
        for (condition, value) in cases {
            match self.eval(condition)? {
                Value::Bool(true) => return self.chosen(value),
                Value::Bool(false) => {}
                _ => return Err(Fault::no_such_overload()),
            }
        }
        self.chosen(otherwise)
    }

    /// Evaluates the chosen operand of a conditional, which the server always treats as an attribute.
    fn chosen(&mut self, operand: &'a Expr) -> Result<Value<'a>> {
        let value = self.eval(operand)?;
        match operand {
            Expr::Path { .. } | Expr::Variable(_) | Expr::Has { .. } | Expr::Conditional { .. } => Ok(value),
            Expr::Macro(of) if matches!(of.kind, MacroKind::OptMap | MacroKind::OptFlatMap) => Ok(value),
            _ => self.attribute(value),
        }
    }

    fn binary(&mut self, first: &'a Expr, rest: &'a [(Operator, Expr)]) -> Result<Value<'a>> {
        let mut value = self.eval(first);
        for (operator, operand) in rest {
            if let (Operator::In, Expr::List(items)) = (operator, operand)
                && items.is_empty()
            {
                // The server does not evaluate the left operand if the list is empty.
                value = Ok(Value::Bool(false));
                continue;
            }
            // Evaluate both operands before reporting the first fault, so that an undecided operand is noticed.
            let operand = self.eval(operand);
            value = match (value, operand) {
                (Ok(left), Ok(right)) => {
                    let cost = cost::of_operator(*operator, &left, &right);
                    let before = self.budget.remaining();
                    let value = ops::apply(*operator, left, right, self.budget);
                    self.budget.take_up_to(before, cost)?;
                    value
                }
                (Err(left), Err(right)) => Err(Fault::of_both(left, right)),
                (Err(fault), _) | (_, Err(fault)) => Err(fault),
            };
        }
        value
    }

    fn list(&mut self, items: &'a [(Expr, bool)]) -> Result<Value<'a>> {
        self.budget.take(LIST_COST)?;
        let mut values = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.eval(item)?, optional) {
                (Value::Optional(value), true) => values.extend(value.map(|value| (*value).clone())),
                (other, true) => return Err(not_optional("list element", &other)),
                (value, false) => values.push(value),
            }
        }
        Ok(Value::List(List::new(values)))
    }

    fn map(&mut self, entries: &'a [(Expr, Expr, bool)]) -> Result<Value<'a>> {
        self.budget.take(MAP_COST)?;
        let mut map = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            let value = match (self.eval(value)?, optional) {
                (Value::Optional(None), true) => continue,
                (Value::Optional(Some(value)), true) => (*value).clone(),
                (other, true) => {
                    let entry = format!("entry '{}'", super::lib_convert::display(&key));
                    return Err(not_optional(&entry, &other));
                }
                (value, false) => value,
            };
            // The last of several entries with the same key wins.
            match Key::of(&key) {
                Some(slot) => map.insert(slot, (key, value)),
                None => return Err(invalid_key(&key)),
            };
        }
        Ok(Value::Map(Map::Values(Rc::new(map))))
    }

    /// `has(operand.field)`
    fn has(&mut self, operand: &'a Expr, name: &str) -> Result<Value<'a>> {
        let operand = match self.eval(operand)? {
            Value::Optional(None) => return Ok(Value::Bool(false)),
            Value::Optional(Some(value)) => opened(&unwrapped(&value, self.budget)?)?,
            value => value,
        };
        select(&operand, name).map(|found| Value::Bool(found.is_some()))
    }

    /// Evaluates a chain of selections. After the first optional selection, the rest is optional too. A value that
    /// does not match its schema becomes a misfit if it is a list element and the last in the chain.
    fn path(&mut self, root: &'a Expr, steps: &'a [Step]) -> Result<Value<'a>> {
        let mut value = self.eval(root)?;
        let mut is_optional = false;
        if let Value::Optional(inner) = value {
            let Some(inner) = inner else { return Ok(Value::Optional(None)) };
            value = opened(&unwrapped(&inner, self.budget)?)?;
            is_optional = true;
        }
        for (nth, step) in steps.iter().enumerate() {
            self.budget.take(1)?;
            let (found, missing, optional) = match step {
                Step::Field { name, optional } => {
                    (select(&value, name)?, Fault::error(format!("no such key: {name}")), *optional)
                }
                Step::Index { index, optional } => {
                    let index = self.index(index)?;
                    let found = match at(&value, &index) {
                        // The element exists even if it does not match its schema.
                        Err(Fault::Error(text)) if nth + 1 == steps.len() && is_element(&value, &index) => {
                            Some(Value::Misfit(text.into()))
                        }
                        found => found?,
                    };
                    (found, missing(&value, &index), *optional)
                }
            };
            is_optional = is_optional || optional;
            value = match found {
                Some(found) => found,
                None if is_optional => return Ok(Value::Optional(None)),
                None => return Err(missing),
            };
        }
        Ok(if is_optional { Value::some(value) } else { value })
    }

    /// Evaluates an index, which must have a type that the server can look up.
    fn index(&mut self, expr: &'a Expr) -> Result<Value<'a>> {
        let value = match expr {
            Expr::Path { root, steps } => {
                self.budget.take(1)?;
                self.path(root, steps)?
            }
            _ => self.eval(expr)?,
        };
        match &value {
            Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => Ok(value),
            _ => Err(Fault::error(format!("invalid qualifier type: {}", go_type(&value)))),
        }
    }

    fn call(&mut self, call: &'a Call) -> Result<Value<'a>> {
        if let ("or" | "orValue", [target, other]) = (call.function.as_str(), call.args.as_slice()) {
            // The alternative is evaluated only if needed.
            return match self.eval(target)? {
                Value::Optional(None) => self.eval(other),
                Value::Optional(Some(value)) if call.function == "orValue" => opened(&value),
                Value::Optional(some) => Ok(Value::Optional(some)),
                other => Ok(other),
            };
        }
        let mut args = Vec::with_capacity(call.args.len());
        let mut fault: Option<Fault> = None;
        for (index, arg) in call.args.iter().enumerate() {
            match self.eval(arg) {
                Ok(value) => args.push(value),
                // With more than two arguments the server stops at the first fault; otherwise it evaluates all of
                // them.
                Err(problem @ (Fault::Error(_) | Fault::Abort(_))) if call.args.len() > 2 && fault.is_none() => {
                    return Err(problem);
                }
                Err(problem) => {
                    let is_measured = call.resolved.signature.get().is_some();
                    let problem = if is_measured { past_cost(&call.function, index, problem) } else { problem };
                    fault = Some(fault.map_or(problem.clone(), |fault| Fault::of_both(fault, problem)));
                }
            }
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        let before = self.budget.remaining();
        let result = self.apply(call, &args);
        let cost = cost::of_call(&call.function, &args, &result, before);
        self.budget.take_up_to(before, cost)?;
        result
    }

    /// Calls a function with these arguments.
    fn apply(&mut self, call: &'a Call, args: &[Value<'a>]) -> Result<Value<'a>> {
        if let Some(pattern) = &call.pattern {
            let pattern = pattern.regex().map_err(|problem| Fault::Undecided(problem.to_owned()))?;
            return lib_regex::call(&call.function, pattern, args, self.budget);
        }
        if let Some(signature) = call.resolved.signature.get()
            && !signature.fits(args)
        {
            // The value of an optional or a list element does not always have the type that the type checker inferred.
            return Err(no_such_function(&call.function, args));
        }
        if let ("sum", Some(signature), [Value::List(list)]) =
            (call.function.as_str(), call.resolved.signature.get(), args)
            && list.len() == 0
        {
            return Ok(zero(&signature.result));
        }
        for overload in &call.resolved.overloads {
            if let Some(result) = (overload.call)(args, self.budget) {
                return result;
            }
        }
        Err(no_such_function(&call.function, args))
    }
}

/// Adjusts a fault in an argument of a call whose overload is known at compile time. The server computes the cost of
/// the call even if an argument is a fault, and panics if the cost depends on that argument.
pub(super) fn past_cost(function: &str, index: usize, fault: Fault) -> Fault {
    match (function, index, &fault) {
        ("sort" | "sortBy" | "distinct", _, Fault::Error(_)) => Fault::Abort(
            "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add".to_owned(),
        ),
        ("flatten", 1, Fault::Error(_)) => {
            Fault::Abort("internal error: interface conversion: ref.Val is *types.Err, not types.Int".to_owned())
        }
        _ => fault,
    }
}

/// The server's error for a function that is not defined for the types of these arguments.
fn no_such_function(name: &str, args: &[Value]) -> Fault {
    match (name, args.first()) {
        ("distinct", Some(target)) => {
            let missing = match target {
                Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => "Contains",
                Value::Bytes(_) | Value::Duration(_) | Value::Timestamp(_) => "Contains",
                _ => "Add",
            };
            let name = go_type(target);
            Fault::Abort(format!(
                "internal error: interface conversion: {name} is not traits.Lister: missing method {missing}"
            ))
        }
        ("flatten", Some(target)) => match args.get(1) {
            Some(depth) if !matches!(depth, Value::Int(_)) => Fault::Abort(format!(
                "internal error: interface conversion: ref.Val is {}, not types.Int",
                go_type(depth)
            )),
            depth => Fault::error(format!(
                "no such overload: {}.flatten({})",
                if matches!(target, Value::Map(_)) { "map(dyn, dyn)" } else { target.type_name() },
                depth.map_or("", Value::type_name)
            )),
        },
        // These are dispatched by the value, not by its type.
        ("contains" | "endsWith" | "matches" | "startsWith", _) => Fault::no_such_overload(),
        ("size" | "sort", Some(Value::String(_) | Value::Duration(_) | Value::Timestamp(_))) => {
            Fault::no_such_overload()
        }
        ("size" | "sort", _) => Fault::error(format!("no such overload: {name}")),
        _ => {
            let types: Vec<_> = args.iter().map(Value::type_name).collect();
            Fault::error(format!("no such overload: {name}({})", types.join(", ")))
        }
    }
}

pub(super) fn literal_value(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(value) => Value::String(Text::Borrowed(value)),
        Literal::Bytes(value) => Value::Bytes(value.as_slice().into()),
    }
}

fn not_optional(what: &str, value: &Value) -> Fault {
    let value = match value {
        Value::Null => "0".to_owned(),
        value => super::lib_convert::display(value),
    };
    Fault::error(format!("cannot initialize optional {what} from non-optional value {value}"))
}

/// The error for an invalid map key. The server accepts nearly any type as a key, but can look up only some of them.
fn invalid_key(key: &Value) -> Fault {
    if matches!(key, Value::Bytes(_) | Value::Semver(_) | Value::Format(_)) {
        let name = go_type(key);
        return Fault::Abort(format!("internal error: runtime error: hash of unhashable type {name}"));
    }
    Fault::Undecided(format!("a key of type {} is not supported", key.type_name()))
}

/// Inserts an entry into a map under construction.
pub(super) fn insert<'a>(
    map: &mut BTreeMap<Key, (Value<'a>, Value<'a>)>,
    key: Value<'a>,
    value: Value<'a>,
) -> Result<()> {
    let Some(slot) = Key::of(&key) else { return Err(invalid_key(&key)) };
    match map.insert(slot, (key, value)) {
        None => Ok(()),
        Some((key, _)) => {
            Err(Fault::error(format!("insert failed: key {} already exists", super::lib_convert::display(&key))))
        }
    }
}

/// The sum of an empty list.
fn zero<'a>(of: &Ty) -> Value<'a> {
    match of {
        Ty::Scalar("uint") => Value::Uint(0),
        Ty::Scalar("double") => Value::Double(0.0),
        Ty::Of("google.protobuf.Duration", _) => Value::Duration(0),
        _ => Value::Int(0),
    }
}

/// The Go type of a value in the server's messages.
pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Duration(_) => "types.Duration",
        Value::Timestamp(_) => "types.Timestamp",
        Value::List(List { kind: Some(ListKind::Set), .. }) => "*common.unstructuredSetList",
        Value::List(List { kind: Some(ListKind::Map(_)), .. }) => "*common.unstructuredMapList",
        Value::List(list) => match &list.items {
            Items::Json(..) | Items::Merged(..) => "*common.unstructuredList",
            Items::Joined(_) => "*types.concatList",
            _ => "*types.baseList",
        },
        Value::Map(Map::Json { .. }) => "*common.unstructuredMap",
        Value::Map(_) => "*types.baseMap",
        Value::Type(_) => "*types.Type",
        Value::Optional(_) => "*types.Optional",
        Value::Quantity(_) => "cel.Quantity",
        Value::Url(_) => "cel.URL",
        Value::Ip(_) => "cel.IP",
        Value::Cidr(_) => "cel.CIDR",
        Value::Format(_) => "cel.Format",
        Value::Semver(_) => "cel.Semver",
        Value::Unknown(_) => "*common.unknownPreserved",
        Value::Misfit(_) => "*types.Err",
    }
}
