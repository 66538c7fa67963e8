//! Whether one version's schema accepts all that another accepts.

pub mod automaton;
pub mod cel;
mod rules;
pub mod strings;
