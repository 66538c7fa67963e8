//! CEL rules (`x-kubernetes-validations`), evaluated as the API server does it.
//!
//! ```text
//! rule text ─► lexer ─► parser, macros ─► resolve ─► check ─► eval, comprehension ─► rule: message, reason, field
//! schema ────► types ───────────────────► typing ─┘   │        └─ ops, equal, library: lib_*
//!                 └──► convert: data as typed values ─┘
//! ```
//!
//! This is an implementation of its own, for two reasons. First, the language is small, and results mainly depend on
//! Kubernetes' types, libraries and error semantics, including what the server evaluates lazily, folds at compile time
//! or reads without its schema. Second, no CRD may crash or block the process: nesting is limited and steps are
//! counted. Existing crates have neither a type checker nor a step limit, and a parser alone would replace only three
//! of forty files. Two kinds of tests compare this implementation with the server: tables of expressions with the
//! results of the server's own packages, and generated rules and objects that a real server evaluates too
//! (docs/internals/testing.md).
//!
//! A rule takes at least as many steps as the server counts in cost. A rule that is too expensive for the server is
//! therefore undecided here, and so are some that are cheap enough for the server.
//!
//! Whatever cannot be parsed, checked or evaluated here is [`Answer::Undecided`], never a rule that holds. The server
//! rejects a CRD with a rule that does not type-check.

mod access;
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
mod worst;

pub(crate) use budget::EXHAUSTED;
pub use budget::{COST_PER_CALL, COST_PER_OBJECT, CelBudget};
pub use engine::Engine;
pub use expression::CelExpression;
pub use field_path::FieldPath;
pub(crate) use problem::ExpressionError;
pub use rule::parse_rule;
pub use rule::{CelRuleResult, CompiledRule, FailedCelRule, RuleFailureReason, compile_rules, compile_rules_sharing};
pub(crate) use rule::{CompiledExpression, compile_expression};
pub use types::unescape;
pub(crate) use types::{CelType, CelTypeKind, escape};
pub use worst::most_costs;
