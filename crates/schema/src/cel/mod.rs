//! CEL rules (`x-kubernetes-validations`), evaluated as the API server does.
//!
//! ```text
//! rule text ─► lexer ─► parser, macros ─► resolve ─► check ─► eval, comprehension ─► rule: message, reason, field
//! schema ────► types ───────────────────► typing ─┘   │        └─ ops, equal, library: lib_*
//!                 └──► convert: data as typed values ─┘
//! ```
//!
//! All of this is our own. The language is small; what decides a verdict are Kubernetes' types, libraries and error
//! semantics, down to what the server evaluates lazily, folds at compile time or reads without its schema, and that
//! nothing in a CRD may bring the process down: nesting is limited and steps are counted. The crates there are have
//! neither a type checker nor a limit of steps, and a parser alone would save three files of forty. What holds this one
//! to the server are tables of expressions with the results of the server's own packages, and generated rules and
//! objects that a real server judges as well (docs/testing.md).
//!
//! Steps are counted so that a rule takes at least as many as the server counts in cost: one that is too expensive there
//! is undecided here, and so are some that are cheap enough there.
//!
//! What cannot be parsed, checked or evaluated here is [`Answer::Undecided`], never a rule that holds. The server refuses
//! a CRD with a rule that does not check.

pub mod ast;
mod budget;
mod check;
mod check_macros;
mod comprehension;
mod constant;
mod convert;
mod cost;
mod engine;
mod equal;
mod estimate;
mod eval;
#[cfg(test)]
mod exhaustion;
mod expression;
mod fault;
mod field_path;
mod lexer;
mod lib_convert;
mod lib_format;
mod lib_list;
mod lib_net;
mod lib_optional;
mod lib_quantity;
mod lib_regex;
mod lib_semver;
mod lib_sets;
mod lib_string;
mod lib_string_format;
mod lib_time;
mod lib_url;
mod library;
mod macros;
mod ops;
mod parser;
mod problem;
mod resolve;
mod rule;
mod signature;
#[cfg(test)]
mod table;
mod types;
mod typing;
mod value;

pub use budget::Budget;
pub use engine::Engine;
pub use expression::Expression;
pub use field_path::FieldPath;
pub(crate) use problem::Problem;
pub use rule::parse_rule;
pub use rule::{Answer, Failure, Reason, Rule, compile_rules, compile_rules_sharing};
pub(crate) use rule::{Compiled, compile_expression};
pub use types::unescape;
pub(crate) use types::{Kind, Type, escape};
