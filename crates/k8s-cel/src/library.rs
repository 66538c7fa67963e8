//! The functions that rules can call.
//!
//! Each library is a table of its own. A name can occur in several tables: the types of the arguments decide at run
//! time.

use super::budget::CelBudget;
use super::fault::CelResult;
use super::value::CelValue;
use super::{
    lib_convert, lib_format, lib_list, lib_net, lib_optional, lib_quantity, lib_regex, lib_semver, lib_sets,
    lib_string, lib_time, lib_url,
};

/// The result of a call; `None` if the function is not defined for the types of these arguments.
pub(crate) type OverloadResult<'a> = Option<CelResult<CelValue<'a>>>;

/// Calls a function.
pub(crate) type Implementation = for<'a> fn(&[CelValue<'a>], &mut CelBudget) -> OverloadResult<'a>;

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    pub name: &'static str,
    /// Whether it is called as `target.name(…)`; the target is the first argument.
    pub member: bool,
    /// The number of arguments, including the target.
    pub arity: usize,
    /// Whether it can have one more argument.
    pub has_optional: bool,
    pub call: Implementation,
}

impl Function {
    /// `name(…)`
    pub(crate) const fn global(name: &'static str, arity: usize, call: Implementation) -> Self {
        Function { name, member: false, arity, has_optional: false, call }
    }

    /// `target.name(…)`
    pub(crate) const fn member(name: &'static str, arity: usize, call: Implementation) -> Self {
        Function { name, member: true, arity, has_optional: false, call }
    }

    /// The function, which can have one more argument.
    pub(crate) const fn or_one_more(self) -> Self {
        Function { has_optional: true, ..self }
    }
}

const LIBRARIES: &[&[Function]] = &[
    lib_string::FUNCTIONS,
    lib_list::FUNCTIONS,
    lib_convert::FUNCTIONS,
    lib_time::FUNCTIONS,
    lib_optional::FUNCTIONS,
    lib_regex::FUNCTIONS,
    lib_url::FUNCTIONS,
    lib_quantity::FUNCTIONS,
    lib_net::FUNCTIONS,
    lib_format::FUNCTIONS,
    lib_semver::FUNCTIONS,
    lib_sets::FUNCTIONS,
];

fn all() -> impl Iterator<Item = &'static Function> {
    LIBRARIES.iter().flat_map(|library| library.iter())
}

/// Whether a function with this name exists.
pub(crate) fn is_known(name: &str) -> bool {
    all().any(|function| function.name == name)
}

/// The functions that a call can refer to.
pub(crate) fn overloads(name: &str, member: bool, arity: usize) -> Vec<&'static Function> {
    let fits = |function: &Function| function.arity == arity || function.has_optional && function.arity + 1 == arity;
    all().filter(|function| function.name == name && function.member == member && fits(function)).collect()
}
