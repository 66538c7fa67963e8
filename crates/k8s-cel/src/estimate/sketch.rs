//! The form of an expression used by the cost estimate: its nodes with their types, and macros expanded to the
//! server's loops.

use crate::ast::Literal;
use crate::signature::Signature;
use crate::typing::Ty;

/// The maximum number of nodes. Only expressions with nested macros that the server copies repeatedly have more.
const MAX_NODES: usize = 200_000;

/// The index of a node.
pub(crate) type Id = usize;

/// An expression, recorded during type checking. A node comes after all its descendants.
#[derive(Debug)]
pub(crate) struct Sketch<'e> {
    pub nodes: Vec<SketchNode<'e>>,
    is_wanted: bool,
    is_too_large: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct SketchNode<'e> {
    pub ty: Ty,
    pub of: Of<'e>,
}

#[derive(Debug, Clone)]
pub(crate) enum Of<'e> {
    /// A constant: its size, and its value if it is an integer.
    Constant {
        size: u64,
        int: Option<i64>,
    },
    /// A variable, or the name of a type.
    Name(&'e str),
    Field {
        operand: Id,
        name: &'e str,
    },
    Has(Id),
    /// `&&` and `||`
    Logic(Vec<Id>),
    List(Vec<Id>),
    Map(Vec<(Id, Id)>),
    /// A call; the target of `a.f(b)` is the first argument. A call without overloads costs a single step.
    Call {
        args: Vec<Id>,
        is_member: bool,
        overloads: Vec<&'static Signature>,
    },
    /// A value bound to a variable.
    Bind {
        name: &'e str,
        value: Id,
        result: Id,
    },
    Loop(Box<Loop<'e>>),
}

/// The expansion of a macro: for each element of the range, a step that updates an accumulator.
#[derive(Debug, Clone)]
pub(crate) struct Loop<'e> {
    pub range: Id,
    /// One variable (element or key), or two (index and element, or key and value).
    pub variables: (&'e str, Option<&'e str>),
    pub start: Id,
    pub condition: Id,
    pub step: Id,
    pub result: Id,
}

/// The variable in which a loop accumulates its result.
pub(crate) const ACCUMULATOR: &str = "__result__";

impl<'e> Sketch<'e> {
    /// An empty sketch. It stays empty unless `is_wanted`.
    pub fn new(is_wanted: bool) -> Self {
        Sketch { nodes: Vec::new(), is_wanted, is_too_large: false }
    }

    pub fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    pub fn add(&mut self, ty: &Ty, of: impl FnOnce() -> Of<'e>) -> Id {
        if !self.is_wanted {
            return 0;
        }
        if self.nodes.len() == MAX_NODES {
            self.is_too_large = true;
            return 0;
        }
        self.nodes.push(SketchNode { ty: ty.clone(), of: of() });
        self.nodes.len() - 1
    }

    pub fn constant(&mut self, ty: &Ty, literal: &Literal) -> Id {
        self.add(ty, || Of::Constant {
            size: match literal {
                Literal::String(text) => text.chars().count() as u64,
                Literal::Bytes(bytes) => bytes.len() as u64,
                _ => 1,
            },
            int: match literal {
                Literal::Int(value) => Some(*value),
                _ => None,
            },
        })
    }

    /// The number of nodes, which is the index of the next node.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Appends a copy of the expression `root`, whose nodes begin at `start`.
    pub fn copy(&mut self, start: usize, root: Id) -> Id {
        if !self.is_wanted {
            return 0;
        }
        let end = self.nodes.len();
        if end + (root - start) >= MAX_NODES || self.is_too_large {
            self.is_too_large = true;
            return 0;
        }
        let by = end - start;
        for at in start..=root {
            let mut node = self.nodes[at].clone();
            node.of.shift(by);
            self.nodes.push(node);
        }
        root + by
    }
}

impl Of<'_> {
    fn shift(&mut self, by: usize) {
        match self {
            Of::Constant { .. } | Of::Name(_) => {}
            Of::Field { operand, .. } | Of::Has(operand) => *operand += by,
            Of::Logic(of) | Of::List(of) | Of::Call { args: of, .. } => of.iter_mut().for_each(|id| *id += by),
            Of::Map(entries) => entries.iter_mut().for_each(|(key, value)| {
                *key += by;
                *value += by;
            }),
            Of::Bind { value, result, .. } => {
                *value += by;
                *result += by;
            }
            Of::Loop(of) => {
                for id in [&mut of.range, &mut of.start, &mut of.condition, &mut of.step, &mut of.result] {
                    *id += by;
                }
            }
        }
    }
}
