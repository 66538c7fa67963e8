//! The syntax tree of an expression, in which macros are separate nodes.
//!
//! Chains that a rule can repeat without nesting (`a.b.c`, `a + b + c`, `a || b || c`, `a ? b : c ? d : e`) are flat
//! lists, so neither parsing nor evaluating a long rule needs a deep stack.

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
    /// `root.a[b].?c`: a sequence of selections.
    Path {
        /// The value that the first selection applies to.
        root: Box<Expr>,
        /// The selections, in order.
        steps: Vec<SelectionStep>,
    },
    /// `has(operand.field)`.
    Has {
        /// The value that is tested for the field.
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
    /// `condition ? value : …`: cases in order, followed by the last `else`.
    Conditional {
        /// The conditions and their values.
        cases: Vec<(Expr, Expr)>,
        /// The value if no condition holds.
        otherwise: Box<Expr>,
    },
    /// Operators of the same precedence, applied from left to right.
    Binary {
        /// The leftmost operand.
        first: Box<Expr>,
        /// The operators and their right operands.
        rest: Vec<(BinaryOperator, Expr)>,
    },
    /// A list, with a flag for each element that says whether it is optional (`[?x]`).
    List(Vec<(Expr, bool)>),
    /// A map, with a flag for each entry that says whether it is optional (`{?k: v}`).
    Map(Vec<(Expr, Expr, bool)>),
    /// A function call.
    Call(FunctionCall),
    /// A macro.
    Macro(Box<Macro>),
}

impl Expr {
    /// A call that is not a macro.
    pub(crate) fn call(function: String, member: bool, args: Vec<Expr>) -> Expr {
        Expr::Call(FunctionCall { function, member, args, resolved: ResolvedCall::default(), pattern: None })
    }
}

/// A literal value.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An int, such as `-1` or `0x1F`.
    Int(i64),
    /// A uint, such as `1u`.
    Uint(u64),
    /// A double, such as `1.5`.
    Double(f64),
    /// A string, unescaped.
    String(String),
    /// Bytes, such as `b"abc"`.
    Bytes(Vec<u8>),
}

/// One selection in a path.
#[derive(Debug, Clone)]
pub enum SelectionStep {
    /// `.field` or `.?field`
    Field {
        /// The name, unescaped.
        name: String,
        /// Whether it is written with `.?`.
        optional: bool,
    },
    /// `[index]` or `[?index]`
    Index {
        /// The expression in the brackets.
        index: Expr,
        /// Whether it is written with `[?`.
        optional: bool,
    },
}

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOperator {
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

impl BinaryOperator {
    /// The name of the function that implements the operator.
    pub fn function(self) -> &'static str {
        match self {
            BinaryOperator::Add => "_+_",
            BinaryOperator::Subtract => "_-_",
            BinaryOperator::Multiply => "_*_",
            BinaryOperator::Divide => "_/_",
            BinaryOperator::Modulo => "_%_",
            BinaryOperator::Equal => "_==_",
            BinaryOperator::NotEqual => "_!=_",
            BinaryOperator::Less => "_<_",
            BinaryOperator::LessEqual => "_<=_",
            BinaryOperator::Greater => "_>_",
            BinaryOperator::GreaterEqual => "_>=_",
            BinaryOperator::In => "@in",
        }
    }
}

/// A function call. The target of `a.f(b)` is the first argument.
#[derive(Debug, Clone)]
pub struct FunctionCall {
    /// The name of the function, including its namespace.
    pub function: String,
    /// Whether it has a target: `a.f(b)`.
    pub member: bool,
    /// The arguments.
    pub args: Vec<Expr>,
    /// The library functions that the name refers to.
    pub resolved: ResolvedCall,
    /// The pattern argument of `matches`, `find` and `findAll`, compiled once if it is a literal.
    pub pattern: Option<Arc<Pattern>>,
}

/// The library functions that a call refers to; set by name resolution and type checking.
#[derive(Debug, Clone, Default)]
pub struct ResolvedCall {
    /// The candidates for the name and number of arguments; set by name resolution.
    pub(crate) overloads: Vec<&'static Function>,
    /// The selected overload, if the type checker finds exactly one.
    pub(crate) signature: OnceLock<&'static Signature>,
}

/// A macro: a call that evaluates its arguments with variables of its own.
#[derive(Debug, Clone)]
pub struct Macro {
    /// The macro.
    pub kind: MacroKind,
    /// The list, map or optional that the macro iterates over.
    pub target: Expr,
    /// One variable (element or key), or two (index and element, or key and value).
    pub variables: Vec<String>,
    /// The condition of a `map` with three arguments.
    pub filter: Option<Expr>,
    /// The expression that is evaluated for each element.
    pub body: Expr,
    /// The library functions that `sortBy` refers to.
    pub resolved: ResolvedCall,
}

/// The kind of a macro.
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
