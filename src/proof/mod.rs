//! Whether one version's schema accepts all that another accepts.

pub mod automaton;
pub mod cel;
pub mod strings;
