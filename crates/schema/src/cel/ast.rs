//! The syntax tree of an expression, with macros as nodes of their own.
//!
//! Chains that a rule may repeat without nesting (`a.b.c`, `a + b + c`, `a || b || c`, `a ? b : c ? d : e`) are flat
//! lists, so that neither parsing nor evaluating a long rule needs a deep stack.

use std::sync::{Arc, OnceLock};

use super::library::Function;
use super::signature::Signature;
use crate::re2::Pattern;

/// An expression.
#[derive(Debug, Clone)]
pub enum Expr {
    /// A literal.
    Literal(Literal),
    /// A variable: `self`, `oldSelf` or one bound by a macro.
    Variable(String),
    /// The name of a type, as in `type(x) == int`.
    TypeName(&'static str),
    /// `root.a[b].?c`: selections that are made one after the other.
    Path {
        /// What is selected from.
        root: Box<Expr>,
        /// The selections, the first one first.
        steps: Vec<Step>,
    },
    /// `has(operand.field)`.
    Has {
        /// What may have the field.
        operand: Box<Expr>,
        /// The field, unescaped.
        field: String,
    },
    /// `!a`
    Not(Box<Expr>),
    /// `-a`
    Negate(Box<Expr>),
    /// `a && b && …`
    And(Vec<Expr>),
    /// `a || b || …`
    Or(Vec<Expr>),
    /// `condition ? value : …`, tried in order, and the last `else`.
    Conditional {
        /// Conditions, and what is taken where they hold.
        cases: Vec<(Expr, Expr)>,
        /// What is taken where none of them holds.
        otherwise: Box<Expr>,
    },
    /// Operators of one precedence, applied from left to right.
    Binary {
        /// The leftmost operand.
        first: Box<Expr>,
        /// Operators, and their right operands.
        rest: Vec<(Operator, Expr)>,
    },
    /// A list and which of its elements are optional (`[?x]`).
    List(Vec<(Expr, bool)>),
    /// A map and which of its entries are optional (`{?k: v}`).
    Map(Vec<(Expr, Expr, bool)>),
    /// A function call.
    Call(Call),
    /// A macro.
    Macro(Box<Macro>),
}

impl Expr {
    /// A call that is not a macro.
    pub(crate) fn call(function: String, member: bool, args: Vec<Expr>) -> Expr {
        Expr::Call(Call { function, member, args, resolved: Resolved::default(), pattern: None })
    }
}

/// A literal value.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// Such as `-1` or `0x1F`.
    Int(i64),
    /// Such as `1u`.
    Uint(u64),
    /// Such as `1.5`.
    Double(f64),
    /// A string, unescaped.
    String(String),
    /// Such as `b"abc"`.
    Bytes(Vec<u8>),
}

/// One selection of a path.
#[derive(Debug, Clone)]
pub enum Step {
    /// `.field` or `.?field`
    Field {
        /// The name, unescaped.
        name: String,
        /// Whether it is written `.?`.
        optional: bool,
    },
    /// `[index]` or `[?index]`
    Index {
        /// What is between the brackets.
        index: Expr,
        /// Whether it is written `[?`.
        optional: bool,
    },
}

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `in`
    In,
}

impl Operator {
    /// The name of the function that it stands for.
    pub fn function(self) -> &'static str {
        match self {
            Operator::Add => "_+_",
            Operator::Subtract => "_-_",
            Operator::Multiply => "_*_",
            Operator::Divide => "_/_",
            Operator::Modulo => "_%_",
            Operator::Equal => "_==_",
            Operator::NotEqual => "_!=_",
            Operator::Less => "_<_",
            Operator::LessEqual => "_<=_",
            Operator::Greater => "_>_",
            Operator::GreaterEqual => "_>=_",
            Operator::In => "@in",
        }
    }
}

/// A function call. The target of `a.f(b)` is the first argument.
#[derive(Debug, Clone)]
pub struct Call {
    /// The name of the function, with its namespace.
    pub function: String,
    /// Whether it is called on a target: `a.f(b)`.
    pub member: bool,
    /// The arguments.
    pub args: Vec<Expr>,
    /// What the name stands for.
    pub resolved: Resolved,
    /// The pattern argument of `matches`, `find` and `findAll`, compiled once where it is a literal.
    pub pattern: Option<Arc<Pattern>>,
}

/// The functions of the library that a call stands for, known once the expression is resolved and its types are checked.
#[derive(Debug, Clone, Default)]
pub struct Resolved {
    /// What the name and number of arguments allow; filled in when the expression is resolved.
    pub(crate) overloads: Vec<&'static Function>,
    /// The overload that is meant, where the type checker finds just one.
    pub(crate) signature: OnceLock<&'static Signature>,
}

/// A macro: a call whose arguments are evaluated with variables of its own.
#[derive(Debug, Clone)]
pub struct Macro {
    /// Which macro it is.
    pub kind: MacroKind,
    /// The list or map that is gone through.
    pub target: Expr,
    /// One variable (element or key), or two (index and element, or key and value).
    pub variables: Vec<String>,
    /// The condition of a `map` with three arguments.
    pub filter: Option<Expr>,
    /// What is evaluated for each element.
    pub body: Expr,
    /// What `sortBy` stands for.
    pub resolved: Resolved,
}

/// Which macro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MacroKind {
    /// `all`
    All,
    /// `exists`
    Exists,
    /// `exists_one`, `existsOne`
    ExistsOne,
    /// `filter`
    Filter,
    /// `map` and `transformList`
    List,
    /// `transformMap`
    Map,
    /// `transformMapEntry`
    MapEntry,
    /// `sortBy`
    SortBy,
    /// `optMap`
    OptMap,
    /// `optFlatMap`
    OptFlatMap,
}
