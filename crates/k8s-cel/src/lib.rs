//! CEL rules (`x-kubernetes-validations`), evaluated as the API server does it.
//!
//! ```text
//! rule text ─► lexer ─► parser, macros ─► resolve ─► check ─► eval, comprehension ─► rule: message, reason, field
//! schema ────► types ───────────────────► typing ─┘   │        └─ ops, equal, object_list, library: lib_*
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
//! Whatever cannot be parsed, checked or evaluated here is [`CelRuleResult::Undecided`], never a rule that holds. The
//! server rejects a CRD with a rule that does not type-check.
//!
//! The rest of the crate is what the language rests on: Go's libraries with their quirks ([`golang`], [`gotext`]),
//! patterns ([`re2`]), formats ([`formats`]) and quantities ([`quantity`]). This crate does no I/O.

mod access;
pub mod ast;
mod budget;
mod check;
mod check_macros;
mod comprehension;
mod constant;
mod convert;
mod cost;
mod environment;
mod equal;
mod estimate;
mod eval;
mod expression;
mod fault;
mod field_path;
pub mod formats;
pub mod golang;
pub mod gotext;
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
mod num;
mod object_list;
mod ops;
mod parser;
mod problem;
pub mod quantity;
pub mod re2;
mod release;
mod resolve;
mod rule;
mod signature;
#[cfg(test)]
mod tests;
mod types;
mod typing;
mod value;
mod worst;

pub use budget::{COST_PER_CALL, COST_PER_OBJECT, CelBudget, EXHAUSTED};
pub use environment::CelEnvironment;
pub use expression::{CelExpression, NoExpressionValue};
pub use field_path::FieldPath;
pub use num::Num;
pub use problem::ExpressionError;
pub use release::{InvalidRelease, KubernetesRelease};
pub use rule::{
    CelRuleResult, CompiledExpression, CompiledRule, FailedCelRule, RuleFailureReason, compile_expression,
    compile_rules, compile_rules_sharing, parse_rule,
};
pub use types::{CelType, escape, unescape};
pub use worst::most_costs;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CelReadme;
