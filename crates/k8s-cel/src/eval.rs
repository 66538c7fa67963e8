//! Evaluates an expression.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::access::{at, is_element, missing, select};
use super::ast::{BinaryOperator, Expr, FunctionCall, Literal, MacroKind, SelectionStep};
use super::budget::CelBudget;
use super::convert::{opened, opened_misfit, unwrapped};
use super::cost;
use super::fault::{CelResult, EvaluationError};
use super::types::ListKind;
use super::typing::Ty;
use super::value::{CelList, CelListItems, CelMap, CelString, CelValue, MapKey};
use super::{lib_regex, ops};

/// The server's cost of creating a list or a map.
pub(super) const LIST_COST: u64 = 10;
pub(super) const MAP_COST: u64 = 30;

/// An evaluation in progress.
pub(crate) struct Evaluation<'a, 'b> {
    /// The variables in scope, innermost last. A fault in a variable only matters if the variable is used.
    pub(super) scope: Vec<(&'a str, CelResult<CelValue<'a>>)>,
    pub(super) budget: &'b mut CelBudget,
}

impl<'a, 'b> Evaluation<'a, 'b> {
    /// Creates an evaluation with `variables` in scope.
    pub(crate) fn new(variables: Vec<(&'a str, CelResult<CelValue<'a>>)>, budget: &'b mut CelBudget) -> Self {
        Evaluation { scope: variables, budget }
    }

    /// Evaluates `expr`.
    pub(crate) fn eval(&mut self, expr: &'a Expr) -> CelResult<CelValue<'a>> {
        self.budget.take(1)?;
        match expr {
            Expr::Literal(literal) => Ok(literal_value(literal)),
            Expr::Variable(name) => self.variable(name),
            Expr::TypeName(name) => Ok(CelValue::Type(name)),
            Expr::Path { root, steps } => opened_misfit(self.path(root, steps)?),
            Expr::Has { operand, field } => self.has(operand, field),
            Expr::Not(operand) => match self.eval(operand)? {
                CelValue::Bool(value) => Ok(CelValue::Bool(!value)),
                _ => Err(EvaluationError::no_such_overload()),
            },
            Expr::Negate(operand) => ops::negate(self.eval(operand)?),
            Expr::And(operands) => self.eval_and_or(operands, false),
            Expr::Or(operands) => self.eval_and_or(operands, true),
            Expr::Conditional { cases, otherwise } => self.conditional(cases, otherwise),
            Expr::Binary { first, rest } => self.binary(first, rest),
            Expr::List(items) => self.list(items),
            Expr::Map(entries) => self.map(entries),
            Expr::Call(call) => self.call(call),
            Expr::Macro(macro_) => self.run_macro(macro_),
        }
    }

    fn variable(&mut self, name: &str) -> CelResult<CelValue<'a>> {
        match self.scope.iter().rev().find(|(known, _)| *known == name) {
            Some((_, value)) => {
                let value = value.clone()?;
                self.attribute(value)
            }
            None => Err(EvaluationError::error(format!("no such attribute(s): {name}"))),
        }
    }

    /// A value read through what cel-go calls an attribute: inside an optional, it becomes plain data.
    pub(super) fn attribute(&mut self, value: CelValue<'a>) -> CelResult<CelValue<'a>> {
        match value {
            CelValue::Optional(Some(value)) => unwrapped(&value, self.budget).map(CelValue::some),
            value => Ok(value),
        }
    }

    /// Evaluates `operands` joined by `||` (`decisive` is true) or `&&` (`decisive` is false). A decisive operand
    /// determines the result, regardless of faults in the others.
    fn eval_and_or(&mut self, operands: &'a [Expr], decisive: bool) -> CelResult<CelValue<'a>> {
        let mut fault: Option<EvaluationError> = None;
        for operand in operands {
            let problem = match self.eval(operand) {
                Ok(CelValue::Bool(value)) if value == decisive => return Ok(CelValue::Bool(decisive)),
                Ok(CelValue::Bool(_)) => continue,
                Ok(_) => EvaluationError::no_such_overload(),
                Err(problem @ EvaluationError::Abort(_)) => {
                    return Err(fault.map_or(problem.clone(), |fault| EvaluationError::of_both(fault, problem)));
                }
                Err(problem) => problem,
            };
            fault = Some(match fault {
                None => problem,
                Some(first) => EvaluationError::of_both(first, problem),
            });
        }
        fault.map_or(Ok(CelValue::Bool(!decisive)), Err)
    }

    fn conditional(&mut self, cases: &'a [(Expr, Expr)], otherwise: &'a Expr) -> CelResult<CelValue<'a>> {
        for (condition, value) in cases {
            match self.eval(condition)? {
                CelValue::Bool(true) => return self.chosen(value),
                CelValue::Bool(false) => {}
                _ => return Err(EvaluationError::no_such_overload()),
            }
        }
        self.chosen(otherwise)
    }

    /// Evaluates the chosen operand of a conditional, which the server always treats as an attribute.
    fn chosen(&mut self, operand: &'a Expr) -> CelResult<CelValue<'a>> {
        let value = self.eval(operand)?;
        match operand {
            Expr::Path { .. } | Expr::Variable(_) | Expr::Has { .. } | Expr::Conditional { .. } => Ok(value),
            Expr::Macro(of) if matches!(of.kind, MacroKind::OptMap | MacroKind::OptFlatMap) => Ok(value),
            _ => self.attribute(value),
        }
    }

    fn binary(&mut self, first: &'a Expr, rest: &'a [(BinaryOperator, Expr)]) -> CelResult<CelValue<'a>> {
        let mut value = self.eval(first);
        for (operator, operand) in rest {
            if let (BinaryOperator::In, Expr::List(items)) = (operator, operand)
                && items.is_empty()
            {
                // The server does not evaluate the left operand if the list is empty.
                value = Ok(CelValue::Bool(false));
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
                (Err(left), Err(right)) => Err(EvaluationError::of_both(left, right)),
                (Err(fault), _) | (_, Err(fault)) => Err(fault),
            };
        }
        value
    }

    fn list(&mut self, items: &'a [(Expr, bool)]) -> CelResult<CelValue<'a>> {
        self.budget.take(LIST_COST)?;
        let mut values = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.eval(item)?, optional) {
                (CelValue::Optional(value), true) => values.extend(value.map(|value| (*value).clone())),
                (other, true) => return Err(not_optional("list element", &other)),
                (value, false) => values.push(value),
            }
        }
        Ok(CelValue::List(CelList::new(values)))
    }

    fn map(&mut self, entries: &'a [(Expr, Expr, bool)]) -> CelResult<CelValue<'a>> {
        self.budget.take(MAP_COST)?;
        let mut map = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            let value = match (self.eval(value)?, optional) {
                (CelValue::Optional(None), true) => continue,
                (CelValue::Optional(Some(value)), true) => (*value).clone(),
                (other, true) => {
                    let entry = format!("entry '{}'", super::lib_convert::display(&key));
                    return Err(not_optional(&entry, &other));
                }
                (value, false) => value,
            };
            // The last of several entries with the same key wins.
            match MapKey::from_value(&key) {
                Some(slot) => map.insert(slot, (key, value)),
                None => return Err(invalid_key(&key)),
            };
        }
        Ok(CelValue::Map(CelMap::Values(Rc::new(map))))
    }

    /// `has(operand.field)`
    fn has(&mut self, operand: &'a Expr, name: &str) -> CelResult<CelValue<'a>> {
        let operand = match self.eval(operand)? {
            CelValue::Optional(None) => return Ok(CelValue::Bool(false)),
            CelValue::Optional(Some(value)) => opened(&unwrapped(&value, self.budget)?)?,
            value => value,
        };
        select(&operand, name).map(|found| CelValue::Bool(found.is_some()))
    }

    /// Evaluates a chain of selections. After the first optional selection, the rest is optional too. A value that
    /// does not match its schema becomes a misfit if it is a list element and the last in the chain.
    fn path(&mut self, root: &'a Expr, steps: &'a [SelectionStep]) -> CelResult<CelValue<'a>> {
        let mut value = self.eval(root)?;
        let mut is_optional = false;
        if let CelValue::Optional(inner) = value {
            let Some(inner) = inner else { return Ok(CelValue::Optional(None)) };
            value = opened(&unwrapped(&inner, self.budget)?)?;
            is_optional = true;
        }
        for (nth, step) in steps.iter().enumerate() {
            self.budget.take(1)?;
            let (found, missing, optional) = match step {
                SelectionStep::Field { name, optional } => {
                    (select(&value, name)?, EvaluationError::error(format!("no such key: {name}")), *optional)
                }
                SelectionStep::Index { index, optional } => {
                    let index = self.index(index)?;
                    let found = match at(&value, &index) {
                        // The element exists even if it does not match its schema.
                        Err(EvaluationError::Error(text)) if nth + 1 == steps.len() && is_element(&value, &index) => {
                            Some(CelValue::Misfit(text.into()))
                        }
                        found => found?,
                    };
                    (found, missing(&value, &index), *optional)
                }
            };
            is_optional = is_optional || optional;
            value = match found {
                Some(found) => found,
                None if is_optional => return Ok(CelValue::Optional(None)),
                None => return Err(missing),
            };
        }
        Ok(if is_optional { CelValue::some(value) } else { value })
    }

    /// Evaluates an index, which must have a type that the server can look up.
    fn index(&mut self, expr: &'a Expr) -> CelResult<CelValue<'a>> {
        let value = match expr {
            Expr::Path { root, steps } => {
                self.budget.take(1)?;
                self.path(root, steps)?
            }
            _ => self.eval(expr)?,
        };
        match &value {
            CelValue::Bool(_) | CelValue::Int(_) | CelValue::Uint(_) | CelValue::Double(_) | CelValue::String(_) => {
                Ok(value)
            }
            _ => Err(EvaluationError::error(format!("invalid qualifier type: {}", go_type(&value)))),
        }
    }

    fn call(&mut self, call: &'a FunctionCall) -> CelResult<CelValue<'a>> {
        if let ("or" | "orValue", [target, other]) = (call.function.as_str(), call.args.as_slice()) {
            // The alternative is evaluated only if needed.
            return match self.eval(target)? {
                CelValue::Optional(None) => self.eval(other),
                CelValue::Optional(Some(value)) if call.function == "orValue" => opened(&value),
                CelValue::Optional(some) => Ok(CelValue::Optional(some)),
                other => Ok(other),
            };
        }
        let mut args = Vec::with_capacity(call.args.len());
        let mut fault: Option<EvaluationError> = None;
        for (index, arg) in call.args.iter().enumerate() {
            match self.eval(arg) {
                Ok(value) => args.push(value),
                // With more than two arguments the server stops at the first fault; otherwise it evaluates all of
                // them.
                Err(problem @ (EvaluationError::Error(_) | EvaluationError::Abort(_)))
                    if call.args.len() > 2 && fault.is_none() =>
                {
                    return Err(problem);
                }
                Err(problem) => {
                    let is_measured = call.resolved.signature.get().is_some();
                    let problem = if is_measured { past_cost(&call.function, index, problem) } else { problem };
                    fault = Some(fault.map_or(problem.clone(), |fault| EvaluationError::of_both(fault, problem)));
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
    fn apply(&mut self, call: &'a FunctionCall, args: &[CelValue<'a>]) -> CelResult<CelValue<'a>> {
        if let Some(pattern) = &call.pattern {
            let pattern = pattern.regex().map_err(|problem| EvaluationError::Undecided(problem.to_string()))?;
            return lib_regex::call(&call.function, pattern, args, self.budget);
        }
        if let Some(signature) = call.resolved.signature.get()
            && !signature.fits(args)
        {
            // The value of an optional or a list element does not always have the type that the type checker inferred.
            return Err(no_such_function(&call.function, args));
        }
        if let ("sum", Some(signature), [CelValue::List(list)]) =
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
pub(super) fn past_cost(function: &str, index: usize, fault: EvaluationError) -> EvaluationError {
    match (function, index, &fault) {
        ("sort" | "sortBy" | "distinct", _, EvaluationError::Error(_)) => EvaluationError::Abort(
            "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add".to_owned(),
        ),
        ("flatten", 1, EvaluationError::Error(_)) => EvaluationError::Abort(
            "internal error: interface conversion: ref.Val is *types.Err, not types.Int".to_owned(),
        ),
        _ => fault,
    }
}

/// The server's error for a function that is not defined for the types of these arguments.
fn no_such_function(name: &str, args: &[CelValue]) -> EvaluationError {
    match (name, args.first()) {
        ("distinct", Some(target)) => {
            let missing = match target {
                CelValue::Int(_) | CelValue::Uint(_) | CelValue::Double(_) | CelValue::String(_) => "Contains",
                CelValue::Bytes(_) | CelValue::Duration(_) | CelValue::Timestamp(_) => "Contains",
                _ => "Add",
            };
            let name = go_type(target);
            EvaluationError::Abort(format!(
                "internal error: interface conversion: {name} is not traits.Lister: missing method {missing}"
            ))
        }
        ("flatten", Some(target)) => match args.get(1) {
            Some(depth) if !matches!(depth, CelValue::Int(_)) => EvaluationError::Abort(format!(
                "internal error: interface conversion: ref.Val is {}, not types.Int",
                go_type(depth)
            )),
            depth => EvaluationError::error(format!(
                "no such overload: {}.flatten({})",
                if matches!(target, CelValue::Map(_)) { "map(dyn, dyn)" } else { target.type_name() },
                depth.map_or("", CelValue::type_name)
            )),
        },
        // These are dispatched by the value, not by its type.
        ("contains" | "endsWith" | "matches" | "startsWith", _) => EvaluationError::no_such_overload(),
        ("size" | "sort", Some(CelValue::String(_) | CelValue::Duration(_) | CelValue::Timestamp(_))) => {
            EvaluationError::no_such_overload()
        }
        ("size" | "sort", _) => EvaluationError::error(format!("no such overload: {name}")),
        _ => {
            let types: Vec<_> = args.iter().map(CelValue::type_name).collect();
            EvaluationError::error(format!("no such overload: {name}({})", types.join(", ")))
        }
    }
}

pub(super) fn literal_value(literal: &Literal) -> CelValue<'_> {
    match literal {
        Literal::Null => CelValue::Null,
        Literal::Bool(value) => CelValue::Bool(*value),
        Literal::Int(value) => CelValue::Int(*value),
        Literal::Uint(value) => CelValue::Uint(*value),
        Literal::Double(value) => CelValue::Double(*value),
        Literal::String(value) => CelValue::String(CelString::Borrowed(value)),
        Literal::Bytes(value) => CelValue::Bytes(value.as_slice().into()),
    }
}

fn not_optional(what: &str, value: &CelValue) -> EvaluationError {
    let value = match value {
        CelValue::Null => "0".to_owned(),
        value => super::lib_convert::display(value),
    };
    EvaluationError::error(format!("cannot initialize optional {what} from non-optional value {value}"))
}

/// The error for an invalid map key. The server accepts nearly any type as a key, but can look up only some of them.
fn invalid_key(key: &CelValue) -> EvaluationError {
    if matches!(key, CelValue::Bytes(_) | CelValue::Semver(_) | CelValue::Format(_)) {
        let name = go_type(key);
        return EvaluationError::Abort(format!("internal error: runtime error: hash of unhashable type {name}"));
    }
    EvaluationError::Undecided(format!("a key of type {} is not supported", key.type_name()))
}

/// Inserts an entry into a map under construction.
pub(super) fn insert<'a>(
    map: &mut BTreeMap<MapKey, (CelValue<'a>, CelValue<'a>)>,
    key: CelValue<'a>,
    value: CelValue<'a>,
) -> CelResult<()> {
    let Some(slot) = MapKey::from_value(&key) else { return Err(invalid_key(&key)) };
    match map.insert(slot, (key, value)) {
        None => Ok(()),
        Some((key, _)) => Err(EvaluationError::error(format!(
            "insert failed: key {} already exists",
            super::lib_convert::display(&key)
        ))),
    }
}

/// The sum of an empty list.
fn zero<'a>(of: &Ty) -> CelValue<'a> {
    match of {
        Ty::Scalar("uint") => CelValue::Uint(0),
        Ty::Scalar("double") => CelValue::Double(0.0),
        Ty::Of("google.protobuf.Duration", _) => CelValue::Duration(0),
        _ => CelValue::Int(0),
    }
}

/// The Go type of a value in the server's messages.
pub(super) fn go_type(value: &CelValue) -> &'static str {
    match value {
        CelValue::Null => "types.Null",
        CelValue::Bool(_) => "types.Bool",
        CelValue::Int(_) => "types.Int",
        CelValue::Uint(_) => "types.Uint",
        CelValue::Double(_) => "types.Double",
        CelValue::String(_) => "types.String",
        CelValue::Bytes(_) => "types.Bytes",
        CelValue::Duration(_) => "types.Duration",
        CelValue::Timestamp(_) => "types.Timestamp",
        CelValue::List(CelList { kind: Some(ListKind::Set), items: CelListItems::Taken(_) }) => "*common.refValSetList",
        CelValue::List(CelList { kind: Some(ListKind::Map(_)), items: CelListItems::Taken(_) }) => {
            "*common.refValMapList"
        }
        CelValue::List(CelList { kind: Some(ListKind::Set), .. }) => "*common.unstructuredSetList",
        CelValue::List(CelList { kind: Some(ListKind::Map(_)), .. }) => "*common.unstructuredMapList",
        CelValue::List(list) => match &list.items {
            CelListItems::Json(..) | CelListItems::Merged(..) => "*common.unstructuredList",
            CelListItems::Joined(_) => "*types.concatList",
            _ => "*types.baseList",
        },
        CelValue::Map(CelMap::Json { .. }) => "*common.unstructuredMap",
        CelValue::Map(_) => "*types.baseMap",
        CelValue::Type(_) => "*types.Type",
        CelValue::Optional(_) => "*types.Optional",
        CelValue::Quantity(_) => "cel.Quantity",
        CelValue::Url(_) => "cel.URL",
        CelValue::Ip(_) => "cel.IP",
        CelValue::Cidr(_) => "cel.CIDR",
        CelValue::Format(_) => "cel.Format",
        CelValue::Semver(_) => "cel.Semver",
        CelValue::Unknown(_) => "*common.unknownPreserved",
        CelValue::Misfit(_) => "*types.Err",
    }
}
