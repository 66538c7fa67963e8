//! The types of the type checker, and which type is assignable to another.
//!
//! The rules are those of cel-go's checker, because its decisions determine whether a CRD is accepted. That includes
//! the order in which type variables are bound, and which of two types is kept as the more general one.

use std::fmt;
use std::sync::Arc;

use super::types;

/// The step limit of the type checker. It is exceeded only by types that double with each step of an expression.
const MAX_STEPS: usize = 1_000_000;

/// A type.
#[derive(Debug, Clone)]
pub(crate) enum Ty {
    /// Unknown before the expression is evaluated.
    Dyn,
    Null,
    /// `bool`, `int`, `uint`, `double`, `string`, `bytes`.
    Scalar(&'static str),
    /// All other types, with their parameters: `list<int>`, `net.IP`, `google.protobuf.Duration`.
    Of(&'static str, Arc<[Ty]>),
    /// An object with declared properties. Each node of a schema is a type of its own.
    Object(Arc<types::CelType>),
    /// A type variable.
    Variable(usize),
}

impl PartialEq for Ty {
    fn eq(&self, other: &Ty) -> bool {
        match (self, other) {
            (Ty::Dyn, Ty::Dyn) | (Ty::Null, Ty::Null) => true,
            (Ty::Scalar(left), Ty::Scalar(right)) => left == right,
            (Ty::Of(left, of_left), Ty::Of(right, of_right)) => left == right && of_left == of_right,
            (Ty::Object(left), Ty::Object(right)) => Arc::ptr_eq(left, right),
            (Ty::Variable(left), Ty::Variable(right)) => left == right,
            _ => false,
        }
    }
}

/// The name in the server's messages.
impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Dyn => f.write_str("dyn"),
            Ty::Null => f.write_str("null"),
            Ty::Scalar(name) => f.write_str(name),
            Ty::Object(_) => f.write_str("object"),
            Ty::Variable(number) => write!(f, "_var{number}"),
            Ty::Of(name, of) => {
                f.write_str(name)?;
                for (index, of) in of.iter().enumerate() {
                    write!(f, "{}{of}", if index == 0 { "(" } else { ", " })?;
                }
                f.write_str(if of.is_empty() { "" } else { ")" })
            }
        }
    }
}

pub(crate) const BOOL: Ty = Ty::Scalar("bool");
pub(crate) const INT: Ty = Ty::Scalar("int");
pub(crate) const STRING: Ty = Ty::Scalar("string");

impl Ty {
    pub(crate) fn without_parameters(name: &'static str) -> Ty {
        Ty::Of(name, Arc::new([]))
    }

    /// The type of the type named `name`.
    pub(crate) fn of_type(name: &'static str) -> Ty {
        let of = match name {
            "bool" | "int" | "uint" | "double" | "string" | "bytes" => Ty::Scalar(name),
            "null_type" => Ty::Null,
            "list" => Ty::list(Ty::Dyn),
            "map" => Ty::map(Ty::Dyn, Ty::Dyn),
            name => Ty::without_parameters(name),
        };
        Ty::Of("type", Arc::new([of]))
    }

    pub(crate) fn list(of: Ty) -> Ty {
        Ty::Of("list", Arc::new([of]))
    }

    pub(crate) fn map(key: Ty, value: Ty) -> Ty {
        Ty::Of("map", Arc::new([key, value]))
    }

    pub(crate) fn optional(of: Ty) -> Ty {
        Ty::Of("optional_type", Arc::new([of]))
    }

    /// The type of the value inside an optional.
    pub(crate) fn in_optional(&self) -> Option<&Ty> {
        match self {
            Ty::Of("optional_type", of) => of.first(),
            _ => None,
        }
    }

    /// The type of the values of a schema node.
    pub(crate) fn of_schema(of: &Arc<types::CelType>) -> Ty {
        match &of.kind {
            types::CelTypeKind::Bool => BOOL,
            types::CelTypeKind::Int => INT,
            types::CelTypeKind::Double => Ty::Scalar("double"),
            types::CelTypeKind::String => STRING,
            types::CelTypeKind::Bytes => Ty::Scalar("bytes"),
            types::CelTypeKind::Duration => Ty::without_parameters("google.protobuf.Duration"),
            types::CelTypeKind::Date | types::CelTypeKind::DateTime => {
                Ty::without_parameters("google.protobuf.Timestamp")
            }
            types::CelTypeKind::List { items, .. } => Ty::list(Ty::of_schema(items)),
            types::CelTypeKind::Map(values) => Ty::map(STRING, Ty::of_schema(values)),
            types::CelTypeKind::Object(_) => Ty::Object(Arc::clone(of)),
            // Rules cannot access untyped fields.
            types::CelTypeKind::IntOrString | types::CelTypeKind::Unknown | types::CelTypeKind::Untyped => Ty::Dyn,
        }
    }

    fn accepts_null(&self) -> bool {
        match self {
            Ty::Null | Ty::Object(_) => true,
            Ty::Of(name, _) => !matches!(*name, "list" | "map" | "type"),
            _ => false,
        }
    }
}

/// The values of type variables.
#[derive(Debug, Default)]
pub(crate) struct TypeBindings {
    bound: Vec<Option<Ty>>,
    /// The previous value for each change, so that changes can be undone.
    journal: Vec<(usize, Option<Ty>)>,
    steps: usize,
}

impl TypeBindings {
    /// A new type variable.
    pub(crate) fn new_variable(&mut self) -> Ty {
        self.bound.push(None);
        Ty::Variable(self.bound.len() - 1)
    }

    /// Whether the types have become too large to continue.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps > MAX_STEPS
    }

    fn find(&self, variable: usize) -> Option<&Ty> {
        self.bound.get(variable).and_then(Option::as_ref)
    }

    fn bind(&mut self, variable: usize, to: Ty) {
        if let Some(slot) = self.bound.get_mut(variable) {
            self.journal.push((variable, slot.replace(to)));
        }
    }

    /// Whether each type in `given` is assignable to the one in `wanted`; if so, binds type variables.
    pub(crate) fn assign(&mut self, given: &[Ty], wanted: &[Ty]) -> bool {
        self.journal.clear();
        let assignable = self.unify_all(given, wanted);
        if !assignable {
            while let Some((variable, before)) = self.journal.pop() {
                self.bound[variable] = before;
            }
        }
        assignable
    }

    fn unify_all(&mut self, given: &[Ty], wanted: &[Ty]) -> bool {
        given.len() == wanted.len() && given.iter().zip(wanted).all(|(given, wanted)| self.unify(given, wanted))
    }

    fn unify(&mut self, given: &Ty, wanted: &Ty) -> bool {
        self.steps += 1;
        if self.is_exhausted() {
            return false;
        }
        if let Ty::Variable(variable) = wanted {
            let (valid, known) = self.stands_for(given, *variable);
            if valid || known {
                return valid;
            }
        }
        match (given, wanted) {
            (Ty::Variable(variable), wanted) => self.stands_for(wanted, *variable).0,
            (Ty::Dyn, _) | (_, Ty::Dyn) => true,
            (Ty::Null, other) | (other, Ty::Null) => other.accepts_null(),
            (Ty::Of("type", _), Ty::Of("type", _)) => true,
            (Ty::Of(given, of_given), Ty::Of(wanted, of_wanted)) => {
                given == wanted && self.unify_all(of_given, of_wanted)
            }
            (given, wanted) => given == wanted,
        }
    }

    /// Whether `ty` is assignable to the variable, and whether the variable was bound before.
    fn stands_for(&mut self, ty: &Ty, variable: usize) -> (bool, bool) {
        if *ty == Ty::Variable(variable) {
            return (true, true);
        }
        let Some(known) = self.find(variable).cloned() else {
            let free = !self.occurs(variable, ty);
            if free {
                self.bind(variable, ty.clone());
            }
            return (free, false);
        };
        if *ty == known {
            return (true, true);
        }
        if !self.unify(ty, &known) {
            return (false, true);
        }
        let general = if is_no_more_specific(ty, &known) { ty.clone() } else { known };
        if !self.occurs(variable, &general) {
            self.bind(variable, general);
        }
        (true, true)
    }

    fn occurs(&mut self, variable: usize, within: &Ty) -> bool {
        self.steps += 1;
        if self.is_exhausted() {
            return true;
        }
        match within {
            Ty::Variable(other) if *other == variable => true,
            Ty::Variable(other) => {
                let bound = self.find(*other).cloned();
                bound.is_some_and(|bound| self.occurs(variable, &bound))
            }
            Ty::Of(_, of) => of.iter().any(|of| self.occurs(variable, of)),
            _ => false,
        }
    }

    /// `ty` with its variables replaced by their values.
    pub(crate) fn resolve(&mut self, ty: &Ty) -> Ty {
        self.steps += 1;
        if self.is_exhausted() {
            return Ty::Dyn;
        }
        match ty {
            Ty::Variable(variable) => match self.find(*variable).cloned() {
                Some(bound) => self.resolve(&bound),
                None => ty.clone(),
            },
            Ty::Of(name, of) if !of.is_empty() => Ty::Of(name, of.iter().map(|of| self.resolve(of)).collect()),
            _ => ty.clone(),
        }
    }

    /// [`TypeBindings::resolve`], with unbound variables replaced by `dyn`.
    pub(crate) fn close(&mut self, ty: &Ty) -> Ty {
        match self.resolve(ty) {
            Ty::Variable(_) => Ty::Dyn,
            Ty::Of(name, of) if !of.is_empty() => Ty::Of(name, of.iter().map(|of| self.close(of)).collect()),
            closed => closed,
        }
    }

    /// The outermost part of a type, with variables replaced by their values.
    pub(crate) fn head<'t>(&'t self, ty: &'t Ty) -> &'t Ty {
        let mut at = ty;
        // A variable is never bound to itself.
        while let Ty::Variable(variable) = at {
            match self.find(*variable) {
                Some(bound) => at = bound,
                None => return &Ty::Dyn,
            }
        }
        at
    }

    /// The most general of two types if one is assignable to the other.
    pub(crate) fn join(&mut self, one: Ty, other: Ty) -> Option<Ty> {
        let fits = self.assign(std::slice::from_ref(&one), std::slice::from_ref(&other));
        fits.then(|| if is_no_more_specific(&one, &other) { one } else { other })
    }
}

fn is_no_more_specific(one: &Ty, other: &Ty) -> bool {
    match (one, other) {
        (Ty::Dyn | Ty::Variable(_), _) => true,
        (_, Ty::Dyn | Ty::Variable(_)) => false,
        (Ty::Of("type", _), Ty::Of("type", _)) => true,
        (Ty::Of(one, of_one), Ty::Of(other, of_other)) => {
            one == other
                && of_one.len() == of_other.len()
                && of_one.iter().zip(of_other.iter()).all(|(one, other)| is_no_more_specific(one, other))
        }
        _ => one == other,
    }
}
