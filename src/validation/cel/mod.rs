//! CEL rules (`x-kubernetes-validations`), evaluated as the API server does.
//!
//! ```text
//! rule text ─► lexer ─► parser, macros ─► resolve ─► eval, comprehension ─► rule: message, reason, field
//! schema ────► types ─► convert: data as typed values ─┘  └─ ops, equal, library: lib_*
//! ```
//!
//! Parser and evaluator are our own. The language is small; what is particular are Kubernetes' types, libraries and
//! error semantics, and that nothing in a CRD may bring the process down: nesting is limited and steps are counted.
//!
//! What cannot be parsed or evaluated here is [`Answer::Undecided`], never a rule that holds. Rules are not type-checked
//! as a whole: a CRD whose rules do not check is refused by the server when it is written.

mod ast;
mod budget;
mod comprehension;
mod convert;
mod engine;
mod equal;
mod eval;
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
mod resolve;
mod rule;
mod time;
mod types;
mod value;

pub use budget::Budget;
pub use engine::Engine;
pub use rule::{Answer, Failure, Reason, Rule, compile_rules};
