//! The type checker: no rule is evaluated that the server rejects when a CRD is written.
//!
//! It follows cel-go's checker, including macros, which are typed as their expansions. Objects are typed by their
//! schema; the types of int-or-string values and of the results of `dyn` are checked during evaluation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::{Expr, FunctionCall, Literal, SelectionStep};
use super::constant::{is_validated, literal_argument, unfit_index};
use super::environment::{ANY_FORMAT_TEMPLATE, CelEnvironment, FORMAT_VALIDATOR, LITERAL_VALIDATORS, RESERVED_FIELDS};
use super::estimate::{Id, Of, Sketch, estimate};
use super::lib_string_format;
use super::problem::{ExpressionError, ExpressionResult};
use super::signature::{Signature, is_declared, signatures};
use super::types::{self, CelTypeKind};
use super::typing::{BOOL, INT, STRING, Ty, TypeBindings};

/// A checked subexpression.
#[derive(Debug, Clone)]
pub(super) struct CheckedExpression {
    pub ty: Ty,
    /// Its node in the sketch.
    pub id: Id,
}

pub(super) type Checked = Result<CheckedExpression, String>;

/// The type of `expr`, whose names are already resolved; the error is the reason why the server rejects it.
/// `optional_old` is whether `oldSelf` is an optional.
pub(crate) fn check(expr: &Expr, of: &Arc<types::CelType>, optional_old: bool) -> ExpressionResult<Ty> {
    check_in(expr, variables(of, optional_old))
}

fn variables(of: &Arc<types::CelType>, optional_old: bool) -> Vec<(&'static str, Ty)> {
    let this = Ty::of_schema(of);
    let old = if optional_old { Ty::optional(this.clone()) } else { this.clone() };
    vec![("self", this), ("oldSelf", old)]
}

/// The type of `expr`, whose names are already resolved, with these variables in scope.
pub(crate) fn check_in<'e>(expr: &'e Expr, scope: Vec<(&'e str, Ty)>) -> ExpressionResult<Ty> {
    let (ty, checker) = run(expr, scope, false, CelEnvironment::default())?;
    match checker.program_error {
        Some(problem) => Err(problem.into()),
        None => Ok(ty),
    }
}

/// The result of checking a well-typed expression.
#[derive(Debug)]
pub(crate) struct Analysis {
    pub ty: Ty,
    /// The reason why the server cannot compile it to a program, if any.
    pub program_error: Option<String>,
    /// The server's estimate of its maximum cost.
    pub cost: ExpressionResult<u64>,
}

/// [`check`] with additional results.
pub(crate) fn analyze(
    expr: &Expr,
    of: &Arc<types::CelType>,
    optional_old: bool,
    environment: CelEnvironment,
) -> ExpressionResult<Analysis> {
    let (ty, checker) = run(expr, variables(of, optional_old), true, environment)?;
    let cost = estimate(&checker.sketch, &checker.bindings, of, environment.release());
    Ok(Analysis { ty, program_error: checker.program_error, cost })
}

fn run<'e>(
    expr: &'e Expr,
    scope: Vec<(&'e str, Ty)>,
    is_sketched: bool,
    environment: CelEnvironment,
) -> ExpressionResult<(Ty, TypeChecker<'e>)> {
    let mut checker = TypeChecker {
        environment,
        scope,
        bindings: TypeBindings::default(),
        sketch: Sketch::new(is_sketched),
        program_error: None,
        literals: Vec::new(),
        in_format: 0,
        formats: Vec::new(),
        formatted: BTreeMap::new(),
        named: Vec::new(),
    };
    let checked = checker.check_expression(expr);
    match checker.bindings.is_exhausted() {
        true => Err(ExpressionError::limit("the types of the expression are too large".to_owned())),
        false => Ok((checked?, checker)),
    }
}

pub(super) struct TypeChecker<'e> {
    /// What is declared.
    pub environment: CelEnvironment,
    /// The variables in scope, innermost last.
    pub scope: Vec<(&'e str, Ty)>,
    pub bindings: TypeBindings,
    /// The basis of the cost estimate.
    pub sketch: Sketch<'e>,
    /// The first constant that prevents the server from compiling a program.
    program_error: Option<String>,
    /// The element types of each literal list or map, which must be equal.
    literals: Vec<Vec<Ty>>,
    /// The number of enclosing `format` calls: inside them, element types can differ.
    in_format: usize,
    /// The literal templates of `format` calls, with their literal arguments.
    formats: Vec<(&'e str, &'e [(Expr, bool)])>,
    /// The types of the elements of literals inside `format` calls.
    formatted: BTreeMap<*const Expr, Ty>,
    /// Variables whose type was still unknown when they were used.
    pub named: Vec<(&'e str, Ty)>,
}

impl<'e> TypeChecker<'e> {
    fn check_expression(&mut self, expr: &'e Expr) -> Result<Ty, String> {
        let ty = self.expr(expr)?.ty;
        self.check_literals()?;
        self.check_formats()?;
        self.refuse_names_of_types()?;
        Ok(self.bindings.close(&ty))
    }

    /// Records a subexpression of type `ty`.
    pub fn part(&mut self, ty: Ty, of: impl FnOnce() -> Of<'e>) -> CheckedExpression {
        let id = self.sketch.add(&ty, of);
        CheckedExpression { ty, id }
    }

    pub fn expr(&mut self, expr: &'e Expr) -> Checked {
        match expr {
            Expr::Literal(literal) => Ok(self.literal(literal)),
            Expr::Variable(name) => {
                let Some((_, ty)) = self.scope.iter().rev().find(|(known, _)| known == name) else {
                    return Err(format!("undeclared reference to '{name}'"));
                };
                let ty = ty.clone();
                if matches!(ty, Ty::Variable(_) | Ty::Of("type", _)) {
                    self.named.push((name, ty.clone()));
                }
                Ok(self.part(ty, || Of::Name(name)))
            }
            Expr::TypeName(name) => {
                self.require_type(name)?;
                Ok(self.part(Ty::of_type(name), || Of::Name(name)))
            }
            Expr::Path { root, steps } => {
                let mut part = self.expr(root)?;
                for step in steps {
                    part = self.step(part, step)?;
                }
                Ok(part)
            }
            Expr::Has { operand, field } => {
                let operand = self.expr(operand)?;
                self.field_type(&operand.ty, field, false)?;
                Ok(self.part(BOOL, || Of::Has(operand.id)))
            }
            Expr::Not(operand) => {
                let operand = self.expr(operand)?;
                self.overload("!_", false, vec![operand])
            }
            Expr::Negate(operand) => {
                let operand = self.expr(operand)?;
                self.overload("-_", false, vec![operand])
            }
            Expr::And(operands) | Expr::Or(operands) => {
                let operands =
                    operands.iter().map(|operand| self.condition(operand)).collect::<Result<Vec<_>, String>>()?;
                Ok(self.part(BOOL, || Of::Logic(operands)))
            }
            Expr::Conditional { cases, otherwise } => {
                let cases = cases
                    .iter()
                    .map(|(condition, value)| Ok((self.expr(condition)?, self.expr(value)?)))
                    .collect::<Result<Vec<_>, String>>()?;
                let mut result = self.expr(otherwise)?;
                for (condition, value) in cases.into_iter().rev() {
                    result = self.overload("_?_:_", false, vec![condition, value, result])?;
                }
                Ok(result)
            }
            Expr::Binary { first, rest } => {
                let mut result = self.expr(first)?;
                for (operator, operand) in rest {
                    let operand = self.expr(operand)?;
                    result = self.overload(operator.function(), false, vec![result, operand])?;
                }
                Ok(result)
            }
            Expr::List(items) => self.list(items),
            Expr::Map(entries) => self.map(entries),
            Expr::Call(call) => self.call(call),
            Expr::Macro(of) => self.run_macro(of),
        }
    }

    pub fn literal(&mut self, literal: &Literal) -> CheckedExpression {
        let ty = match literal {
            Literal::Null => Ty::Null,
            Literal::Bool(_) => BOOL,
            Literal::Int(_) => INT,
            Literal::Uint(_) => Ty::Scalar("uint"),
            Literal::Double(_) => Ty::Scalar("double"),
            Literal::String(_) => Ty::Scalar("string"),
            Literal::Bytes(_) => Ty::Scalar("bytes"),
        };
        let id = self.sketch.constant(&ty, literal);
        CheckedExpression { ty, id }
    }

    /// The common type of the elements of a literal. At the end of the check all must be equal.
    fn elements(&mut self, types: Vec<Ty>) -> Ty {
        let is_validated = self.environment.has(LITERAL_VALIDATORS);
        let mut joined: Option<Ty> = None;
        for ty in &types {
            joined = Some(match joined {
                None => ty.clone(),
                Some(before) => self.bindings.join(before.clone(), ty.clone()).unwrap_or_else(|| {
                    // Without the validator, types that have nothing in common are refused at once.
                    if !is_validated {
                        self.literals.push(vec![before, ty.clone()]);
                    }
                    Ty::Dyn
                }),
            });
        }
        if self.in_format == 0 && is_validated {
            self.literals.push(types);
        }
        joined.unwrap_or_else(|| self.bindings.new_variable())
    }

    /// Rejects literal templates with clauses that the types of the arguments do not allow.
    fn check_formats(&mut self) -> Result<(), String> {
        for (template, items) in std::mem::take(&mut self.formats) {
            let formatted = &self.formatted;
            let bindings = &mut self.bindings;
            let mut ty =
                |expr: &Expr| formatted.get(&std::ptr::from_ref(expr)).map_or(Ty::Dyn, |ty| bindings.close(ty));
            lib_string_format::check(template, items, &mut ty)?;
        }
        Ok(())
    }

    /// The server takes a variable that holds a type for the name of a type, and does not find that type.
    fn refuse_names_of_types(&mut self) -> Result<(), String> {
        for (name, ty) in std::mem::take(&mut self.named) {
            if matches!(self.bindings.close(&ty), Ty::Of("type", _)) {
                return Err(format!("reference to undefined type: {name}"));
            }
        }
        Ok(())
    }

    fn list(&mut self, items: &'e [(Expr, bool)]) -> Checked {
        let (mut types, mut ids) = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for (item, optional) in items {
            let item = self.element(item, *optional)?;
            types.push(item.ty);
            ids.push(item.id);
        }
        let ty = Ty::list(self.elements(types));
        Ok(self.part(ty, || Of::List(ids)))
    }

    fn map(&mut self, entries: &'e [(Expr, Expr, bool)]) -> Checked {
        let (mut keys, mut values, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for (key, value, optional) in entries {
            let key = self.element(key, false)?;
            let value = self.element(value, *optional)?;
            keys.push(key.ty);
            values.push(value.ty);
            ids.push((key.id, value.id));
        }
        let keys = self.elements(keys);
        let ty = Ty::map(keys, self.elements(values));
        Ok(self.part(ty, || Of::Map(ids)))
    }

    /// An element of a literal, or the value inside it if it is an optional element (`[?x]`).
    fn element(&mut self, expr: &'e Expr, optional: bool) -> Checked {
        if optional {
            self.require_optionals("?")?;
        }
        let CheckedExpression { ty, id } = self.expr(expr)?;
        if self.in_format > 0 {
            self.formatted.insert(expr, ty.clone());
        }
        match (optional, ty.in_optional()) {
            (false, _) => Ok(CheckedExpression { ty, id }),
            (true, Some(inner)) => Ok(CheckedExpression { ty: inner.clone(), id }),
            // The server requires an optional here and, inconsistently, rejects a dynamic value too.
            (true, None) => Err(mismatch(&Ty::optional(ty.clone()), &ty)),
        }
    }

    /// Checks that the elements of each literal have the same type, after all type variables are bound.
    fn check_literals(&mut self) -> Result<(), String> {
        for types in std::mem::take(&mut self.literals) {
            let mut closed = types.iter().map(|ty| self.bindings.close(ty)).collect::<Vec<_>>().into_iter();
            let Some(first) = closed.next() else { continue };
            if let Some(other) = closed.find(|other| *other != first) {
                return Err(mismatch(&first, &other));
            }
        }
        Ok(())
    }

    fn step(&mut self, operand: CheckedExpression, step: &'e SelectionStep) -> Checked {
        match step {
            SelectionStep::Field { name, optional: false } => {
                let ty = self.field_type(&operand.ty, name, false)?;
                Ok(self.part(ty, || Of::Field { operand: operand.id, name }))
            }
            SelectionStep::Field { name, optional: true } => {
                self.require_optionals(".?")?;
                let ty = self.field_type(&operand.ty, name, true)?;
                let name = self.sketch.constant(&STRING, &Literal::String(name.clone()));
                let args = vec![operand.id, name];
                Ok(self.part(ty, || Of::Call { args, is_member: false, overloads: Vec::new() }))
            }
            SelectionStep::Index { index: expr, optional } => {
                if *optional {
                    self.require_optionals("[?")?;
                }
                let index = self.expr(expr)?;
                if let Some(name) = unfit_index(expr) {
                    self.program_error.get_or_insert_with(|| format!("invalid qualifier type: {name}"));
                }
                self.overload(if *optional { "_[?_]" } else { "_[_]" }, false, vec![operand, index])
            }
        }
    }

    fn field_type(&mut self, operand: &Ty, name: &str, optional: bool) -> Result<Ty, String> {
        let operand = self.bindings.resolve(operand);
        let (target, in_optional) = match operand.in_optional() {
            Some(inner) => (inner.clone(), true),
            None => (operand, false),
        };
        let ty = match &target {
            Ty::Object(of) => {
                property(of, name, self.environment).ok_or_else(|| format!("undefined field '{name}'"))?
            }
            Ty::Of("map", of) => of.get(1).cloned().unwrap_or(Ty::Dyn),
            Ty::Variable(_) => {
                self.bindings.assign(&[Ty::Dyn], std::slice::from_ref(&target));
                Ty::Dyn
            }
            Ty::Dyn => Ty::Dyn,
            other => return Err(format!("type '{other}' does not support field selection")),
        };
        let ty = if in_optional || optional { Ty::optional(ty) } else { ty };
        Ok(self.bindings.resolve(&ty))
    }

    pub fn condition(&mut self, expr: &'e Expr) -> Result<Id, String> {
        let CheckedExpression { ty, id } = self.expr(expr)?;
        self.assert(ty, &BOOL)?;
        Ok(id)
    }

    pub fn assert(&mut self, ty: Ty, wanted: &Ty) -> Result<(), String> {
        match self.bindings.assign(std::slice::from_ref(wanted), std::slice::from_ref(&ty)) {
            true => Ok(()),
            false => Err(mismatch(&self.bindings.close(wanted), &self.bindings.close(&ty))),
        }
    }

    fn call(&mut self, call: &'e FunctionCall) -> Checked {
        let mut args = Vec::with_capacity(call.args.len());
        self.in_format += usize::from(call.function == "format");
        for arg in &call.args {
            args.push(self.expr(arg)?);
        }
        self.in_format -= usize::from(call.function == "format");
        let (part, only) = self.resolved(&call.function, call.member, args)?;
        if let Some(signature) = only {
            call.resolved.signature.get_or_init(|| signature);
        }
        if let ("format", true, [Expr::Literal(Literal::String(template)), Expr::List(items)]) =
            (call.function.as_str(), call.member, call.args.as_slice())
            && self.environment.has(FORMAT_VALIDATOR)
        {
            self.formats.push((template, items));
        }
        if call.function == "format"
            && call.member
            && !matches!(call.args.first(), Some(Expr::Literal(_)))
            && self.environment.has(FORMAT_VALIDATOR)
            && !self.environment.has(ANY_FORMAT_TEMPLATE)
        {
            return Err("the template of 'format' is not a literal, on which a server of this release fails".to_owned());
        }
        let has_validators = self.environment.has(LITERAL_VALIDATORS);
        if let Err(problem) = literal_argument(call) {
            match is_validated(call) {
                // Only the validator checks the target of `matches`, by mistake.
                true if !has_validators && call.function == "matches" => {}
                true if has_validators => return Err(problem),
                _ => _ = self.program_error.get_or_insert(problem),
            }
        }
        Ok(part)
    }

    /// Rejects the syntax of optionals where they do not exist.
    fn require_optionals(&self, syntax: &str) -> Result<(), String> {
        match is_declared("_?._", self.environment) {
            true => Ok(()),
            false => Err(format!("unsupported syntax '{syntax}'")),
        }
    }

    /// Rejects the name of a type whose library does not exist.
    fn require_type(&self, name: &str) -> Result<(), String> {
        let maker = match name {
            "optional_type" => "optional.none",
            "net.IP" => "ip",
            "net.CIDR" => "cidr",
            _ => return Ok(()),
        };
        match is_declared(maker, self.environment) {
            true => Ok(()),
            false => Err(undeclared(name)),
        }
    }

    /// The result type of a function. If several overloads match, it is their common result type, or `dyn`.
    pub fn overload(&mut self, name: &str, member: bool, args: Vec<CheckedExpression>) -> Checked {
        self.resolved(name, member, args).map(|(result, _)| result)
    }

    /// [`TypeChecker::overload`], which also returns the overload if exactly one matches.
    pub fn resolved(
        &mut self,
        name: &str,
        member: bool,
        args: Vec<CheckedExpression>,
    ) -> Result<(CheckedExpression, Option<&'static Signature>), String> {
        let (types, ids): (Vec<Ty>, Vec<Id>) = args.into_iter().map(|part| (part.ty, part.id)).unzip();
        let mut result: Option<Ty> = None;
        let mut overloads = Vec::new();
        for signature in signatures(name, member) {
            if signature.args.len() != types.len() || !self.environment.has(signature.availability) {
                continue;
            }
            let variables: Vec<Ty> = (0..signature.variables).map(|_| self.bindings.new_variable()).collect();
            let wanted: Vec<Ty> = signature.args.iter().map(|arg| instance(arg, &variables)).collect();
            if self.bindings.assign(&types, &wanted) {
                let of_this = self.bindings.resolve(&instance(&signature.result, &variables));
                overloads.push(signature);
                result = Some(match result {
                    None => of_this,
                    Some(before) if before == of_this => before,
                    Some(_) => Ty::Dyn,
                });
            }
        }
        let Some(ty) = result else {
            if !is_declared(name, self.environment) {
                return Err(undeclared(name));
            }
            let shown: Vec<String> = types.iter().map(|arg| self.bindings.close(arg).to_string()).collect();
            let applied = match (member, shown.split_first()) {
                (true, Some((target, rest))) => format!("{target}.({})", rest.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            return Err(format!("found no matching overload for '{name}' applied to '{applied}'"));
        };
        let only = match overloads.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        Ok((self.part(ty, || Of::Call { args: ids, is_member: member, overloads }), only))
    }
}

/// The error for a function or type that does not exist. The server takes a namespace for a variable.
pub(super) fn undeclared(name: &str) -> String {
    let name = name.split_once('.').map_or(name, |(namespace, _)| namespace);
    format!("undeclared reference to '{name}'")
}

fn mismatch(wanted: &Ty, found: &Ty) -> String {
    format!("expected type '{wanted}' but found '{found}'")
}

/// A type in a signature, instantiated with the variables of one call.
fn instance(ty: &Ty, variables: &[Ty]) -> Ty {
    match ty {
        Ty::Variable(number) => variables.get(*number).cloned().unwrap_or(Ty::Dyn),
        Ty::Of(name, of) if !of.is_empty() => Ty::Of(name, of.iter().map(|of| instance(of, variables)).collect()),
        other => other.clone(),
    }
}

/// The type of the property with the identifier `name`.
fn property(of: &types::CelType, name: &str, environment: CelEnvironment) -> Option<Ty> {
    let CelTypeKind::Object(properties) = &of.kind else { return None };
    let unescaped = types::unescape(name)?;
    let found = properties.get(&unescaped).filter(|of| of.is_declared())?;
    // A reserved word can also be written without escaping.
    let is_plain = types::RESERVED.contains(&name) && environment.has(RESERVED_FIELDS);
    (types::escape(&unescaped)? == name || is_plain).then(|| Ty::of_schema(found))
}
