//! The type checker: what the server refuses when a CRD is written, no rule here evaluates.
//!
//! It follows cel-go's checker, macros included: those are typed as what they expand to. Objects are typed by their
//! schema; int-or-string and what `dyn` makes of a value is left to the evaluation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::{Call, Expr, Literal, Macro, MacroKind, Step};
use super::constant::{literal_argument, unfit_index};
use super::lib_string_format;
use super::problem::{Parsed, Problem};
use super::signature::{Signature, signatures};
use super::types::{self, Kind};
use super::typing::{BOOL, Bindings, INT, Ty};

type Checked = Result<Ty, String>;

/// The type of `expr`, whose names are resolved; the error is why the server refuses it. `optional_old` says that
/// `oldSelf` is an optional.
pub(crate) fn check(expr: &Expr, of: &Arc<types::Type>, optional_old: bool) -> Parsed<Ty> {
    let this = Ty::of_schema(of);
    let old = if optional_old { Ty::optional(this.clone()) } else { this.clone() };
    check_in(expr, vec![("self", this), ("oldSelf", old)])
}

/// The type of `expr`, whose names are resolved, with these variables in scope.
pub(crate) fn check_in<'e>(expr: &'e Expr, scope: Vec<(&'e str, Ty)>) -> Parsed<Ty> {
    let mut checker = Checker {
        scope,
        bindings: Bindings::default(),
        literals: Vec::new(),
        in_format: 0,
        formats: Vec::new(),
        formatted: BTreeMap::new(),
        named: Vec::new(),
    };
    let checked = checker.whole(expr);
    match checker.bindings.is_exhausted() {
        true => Err(Problem::limit("the types of the expression are too large".to_owned())),
        false => Ok(checked?),
    }
}

struct Checker<'e> {
    /// The variables in scope, the innermost last.
    scope: Vec<(&'e str, Ty)>,
    bindings: Bindings,
    /// The types of the elements of each literal list or map: they have to be the same.
    literals: Vec<Vec<Ty>>,
    /// How many calls of `format` are around: inside of them elements may differ.
    in_format: usize,
    /// The literal texts of calls of `format`, with their literal arguments.
    formats: Vec<(&'e str, &'e [(Expr, bool)])>,
    /// The types of what is in literals inside of calls of `format`.
    formatted: BTreeMap<*const Expr, Ty>,
    /// Variables whose type is not known yet where they are used.
    named: Vec<(&'e str, Ty)>,
}

impl<'e> Checker<'e> {
    fn whole(&mut self, expr: &'e Expr) -> Checked {
        let ty = self.expr(expr)?;
        self.literals()?;
        self.formats()?;
        self.named()?;
        Ok(self.bindings.close(&ty))
    }

    fn expr(&mut self, expr: &'e Expr) -> Checked {
        match expr {
            Expr::Literal(literal) => Ok(match literal {
                Literal::Null => Ty::Null,
                Literal::Bool(_) => BOOL,
                Literal::Int(_) => INT,
                Literal::Uint(_) => Ty::Scalar("uint"),
                Literal::Double(_) => Ty::Scalar("double"),
                Literal::String(_) => Ty::Scalar("string"),
                Literal::Bytes(_) => Ty::Scalar("bytes"),
            }),
            Expr::Variable(name) => {
                let Some((_, ty)) = self.scope.iter().rev().find(|(known, _)| known == name) else {
                    return Err(format!("undeclared reference to '{name}'"));
                };
                let ty = ty.clone();
                if matches!(ty, Ty::Variable(_) | Ty::Of("type", _)) {
                    self.named.push((name, ty.clone()));
                }
                Ok(ty)
            }
            Expr::TypeName(name) => Ok(Ty::of_type(name)),
            Expr::Path { root, steps } => {
                let mut ty = self.expr(root)?;
                for step in steps {
                    ty = self.step(ty, step)?;
                }
                Ok(ty)
            }
            Expr::Has { operand, field } => {
                let operand = self.expr(operand)?;
                self.field(operand, field, false)?;
                Ok(BOOL)
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
                for operand in operands {
                    self.condition(operand)?;
                }
                Ok(BOOL)
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

    /// The type that all elements of a literal have. In the end they have to be equal.
    fn elements(&mut self, types: Vec<Ty>) -> Ty {
        let mut joined: Option<Ty> = None;
        for ty in &types {
            joined = Some(match joined {
                None => ty.clone(),
                Some(before) => self.bindings.join(before, ty.clone()).unwrap_or(Ty::Dyn),
            });
        }
        if self.in_format == 0 {
            self.literals.push(types);
        }
        joined.unwrap_or_else(|| self.bindings.fresh())
    }

    /// Literal texts with clauses that the types of the arguments do not allow are refused.
    fn formats(&mut self) -> Result<(), String> {
        for (template, items) in std::mem::take(&mut self.formats) {
            let formatted = &self.formatted;
            let bindings = &mut self.bindings;
            let mut ty =
                |expr: &Expr| formatted.get(&std::ptr::from_ref(expr)).map_or(Ty::Dyn, |ty| bindings.close(ty));
            lib_string_format::check(template, items, &mut ty)?;
        }
        Ok(())
    }

    /// The server takes a variable that holds a type for the name of one, and does not find it.
    fn named(&mut self) -> Result<(), String> {
        for (name, ty) in std::mem::take(&mut self.named) {
            if matches!(self.bindings.close(&ty), Ty::Of("type", _)) {
                return Err(format!("reference to undefined type: {name}"));
            }
        }
        Ok(())
    }

    fn list(&mut self, items: &'e [(Expr, bool)]) -> Checked {
        let mut types = Vec::with_capacity(items.len());
        for (item, optional) in items {
            types.push(self.element(item, *optional)?);
        }
        Ok(Ty::list(self.elements(types)))
    }

    fn map(&mut self, entries: &'e [(Expr, Expr, bool)]) -> Checked {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (key, value, optional) in entries {
            keys.push(self.element(key, false)?);
            values.push(self.element(value, *optional)?);
        }
        let keys = self.elements(keys);
        Ok(Ty::map(keys, self.elements(values)))
    }

    /// An element of a literal, or what is in it if it is an optional one (`[?x]`).
    fn element(&mut self, expr: &'e Expr, optional: bool) -> Checked {
        let ty = self.expr(expr)?;
        if self.in_format > 0 {
            self.formatted.insert(expr, ty.clone());
        }
        match (optional, ty.in_optional()) {
            (false, _) => Ok(ty),
            (true, Some(inner)) => Ok(inner.clone()),
            // That what is no more than dynamic is refused is an error of the server's own.
            (true, None) => Err(mismatch(&Ty::optional(ty.clone()), &ty)),
        }
    }

    /// Whether all elements of a literal are of the same type, what is known only at the end taken into account.
    fn literals(&mut self) -> Result<(), String> {
        for types in std::mem::take(&mut self.literals) {
            let mut closed = types.iter().map(|ty| self.bindings.close(ty)).collect::<Vec<_>>().into_iter();
            let Some(first) = closed.next() else { continue };
            if let Some(other) = closed.find(|other| *other != first) {
                return Err(mismatch(&first, &other));
            }
        }
        Ok(())
    }

    fn step(&mut self, ty: Ty, step: &'e Step) -> Checked {
        match step {
            Step::Field { name, optional } => self.field(ty, name, *optional),
            Step::Index { index: expr, optional } => {
                let index = self.expr(expr)?;
                if let Some(name) = unfit_index(expr) {
                    return Err(format!("invalid qualifier type: {name}"));
                }
                self.overload(if *optional { "_[?_]" } else { "_[_]" }, false, vec![ty, index])
            }
        }
    }

    fn field(&mut self, operand: Ty, name: &str, optional: bool) -> Checked {
        let operand = self.bindings.resolve(&operand);
        let (target, in_optional) = match operand.in_optional() {
            Some(inner) => (inner.clone(), true),
            None => (operand, false),
        };
        let ty = match &target {
            Ty::Object(of) => property(of, name).ok_or_else(|| format!("undefined field '{name}'"))?,
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

    fn condition(&mut self, expr: &'e Expr) -> Result<(), String> {
        let ty = self.expr(expr)?;
        self.assert(ty, &BOOL)
    }

    fn assert(&mut self, ty: Ty, wanted: &Ty) -> Result<(), String> {
        match self.bindings.assign(std::slice::from_ref(wanted), std::slice::from_ref(&ty)) {
            true => Ok(()),
            false => Err(mismatch(&self.bindings.close(wanted), &self.bindings.close(&ty))),
        }
    }

    fn call(&mut self, call: &'e Call) -> Checked {
        let mut args = Vec::with_capacity(call.args.len());
        self.in_format += usize::from(call.function == "format");
        for arg in &call.args {
            args.push(self.expr(arg)?);
        }
        self.in_format -= usize::from(call.function == "format");
        let (ty, only) = self.resolved(&call.function, call.member, args)?;
        if let Some(signature) = only {
            call.signature.get_or_init(|| signature);
        }
        if let ("format", true, [Expr::Literal(Literal::String(template)), Expr::List(items)]) =
            (call.function.as_str(), call.member, call.args.as_slice())
        {
            self.formats.push((template, items));
        }
        literal_argument(call)?;
        Ok(ty)
    }

    /// The result of a function. Of several overloads that fit the result is that of the first, or `dyn`.
    fn overload(&mut self, name: &str, member: bool, args: Vec<Ty>) -> Checked {
        self.resolved(name, member, args).map(|(result, _)| result)
    }

    /// The same, and the overload if only one fits.
    fn resolved(
        &mut self,
        name: &str,
        member: bool,
        args: Vec<Ty>,
    ) -> Result<(Ty, Option<&'static Signature>), String> {
        let mut result: Option<(Ty, Option<&'static Signature>)> = None;
        for signature in signatures(name, member) {
            if signature.args.len() != args.len() {
                continue;
            }
            let variables: Vec<Ty> = (0..signature.variables).map(|_| self.bindings.fresh()).collect();
            let wanted: Vec<Ty> = signature.args.iter().map(|arg| instance(arg, &variables)).collect();
            if self.bindings.assign(&args, &wanted) {
                let of_this = self.bindings.resolve(&instance(&signature.result, &variables));
                result = Some(match result {
                    None => (of_this, Some(signature)),
                    Some((before, _)) if before == of_this => (before, None),
                    Some(_) => (Ty::Dyn, None),
                });
            }
        }
        result.ok_or_else(|| {
            let shown: Vec<String> = args.iter().map(|arg| self.bindings.close(arg).to_string()).collect();
            let applied = match (member, shown.split_first()) {
                (true, Some((target, rest))) => format!("{target}.({})", rest.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            format!("found no matching overload for '{name}' applied to '{applied}'")
        })
    }

    fn run_macro(&mut self, of: &'e Macro) -> Checked {
        let target = self.expr(&of.target)?;
        if matches!(of.kind, MacroKind::OptMap | MacroKind::OptFlatMap) {
            return self.optional_macro(of, target);
        }
        let elements = self.range(&target, of.variables.len() == 2)?;
        let depth = self.scope.len();
        let variables = of.variables.iter().map(String::as_str);
        self.scope.extend(variables.zip([elements.0.clone(), elements.1]));
        let result = self.comprehension(of, target, elements.0);
        self.scope.truncate(depth);
        let result = result?;
        Ok(self.bindings.resolve(&result))
    }

    /// What a macro does in its loop, with its variables in scope.
    fn comprehension(&mut self, of: &'e Macro, target: Ty, first: Ty) -> Checked {
        if matches!(of.kind, MacroKind::All | MacroKind::Exists) {
            self.condition(&of.body)?;
            return Ok(BOOL);
        }
        if of.kind == MacroKind::ExistsOne {
            let body = self.expr(&of.body)?;
            self.overload("_?_:_", false, vec![body, INT, INT])?;
            return Ok(BOOL);
        }
        let result = match of.kind {
            MacroKind::Map | MacroKind::MapEntry => Ty::map(self.bindings.fresh(), self.bindings.fresh()),
            _ => Ty::list(self.bindings.fresh()),
        };
        // What these macros expand to names the variable besides.
        if let (MacroKind::Filter | MacroKind::Map, Some(name)) = (of.kind, of.variables.first()) {
            self.named.push((name, first.clone()));
        }
        // A filter has its condition for a body.
        let condition = match of.kind {
            MacroKind::Filter => Some(self.expr(&of.body)?),
            _ => of.filter.as_ref().map(|filter| self.expr(filter)).transpose()?,
        };
        let grown = match of.kind {
            MacroKind::Filter => self.overload("_+_", false, vec![result.clone(), Ty::list(first)])?,
            MacroKind::Map => {
                let value = self.expr(&of.body)?;
                self.overload("cel.@mapInsert", false, vec![result.clone(), first, value])?
            }
            MacroKind::MapEntry => {
                let entry = self.expr(&of.body)?;
                self.overload("cel.@mapInsert", false, vec![result.clone(), entry])?
            }
            _ => {
                let value = self.expr(&of.body)?;
                self.overload("_+_", false, vec![result.clone(), Ty::list(value)])?
            }
        };
        let step = match condition {
            Some(condition) => self.overload("_?_:_", false, vec![condition, grown, result.clone()])?,
            None => grown,
        };
        self.assert(step, &result)?;
        let result = self.bindings.resolve(&result);
        match of.kind {
            MacroKind::SortBy => {
                let (ty, only) = self.resolved("@sortByAssociatedKeys", true, vec![target, result])?;
                if let Some(signature) = only {
                    of.signature.get_or_init(|| signature);
                }
                Ok(ty)
            }
            _ => Ok(result),
        }
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

    fn optional_macro(&mut self, of: &'e Macro, target: Ty) -> Checked {
        let condition = self.overload("hasValue", true, vec![target.clone()])?;
        let value = self.overload("value", true, vec![target])?;
        let name = of.variables.first().map(String::as_str).unwrap_or_default();
        // What the macro expands to names the variable besides.
        self.named.push((name, value.clone()));
        self.scope.push((name, value));
        let body = self.expr(&of.body);
        self.scope.pop();
        let body = self.bindings.resolve(&body?);
        let some = match of.kind {
            MacroKind::OptMap => self.overload("optional.of", false, vec![body])?,
            _ => body,
        };
        let none = self.overload("optional.none", false, Vec::new())?;
        self.overload("_?_:_", false, vec![condition, some, none])
    }
}

fn mismatch(wanted: &Ty, found: &Ty) -> String {
    format!("expected type '{wanted}' but found '{found}'")
}

/// A type of a signature with the variables of one call.
fn instance(ty: &Ty, variables: &[Ty]) -> Ty {
    match ty {
        Ty::Variable(number) => variables.get(*number).cloned().unwrap_or(Ty::Dyn),
        Ty::Of(name, of) if !of.is_empty() => Ty::Of(name, of.iter().map(|of| instance(of, variables)).collect()),
        other => other.clone(),
    }
}

/// The type of the property that rules call `name`.
fn property(of: &types::Type, name: &str) -> Option<Ty> {
    let Kind::Object(properties) = &of.kind else { return None };
    let unescaped = types::unescape(name)?;
    let found = properties.get(&unescaped).filter(|of| of.is_declared())?;
    // A reserved word can be written as it is, too.
    (types::escape(&unescaped)? == name || types::RESERVED.contains(&name)).then(|| Ty::of_schema(found))
}
