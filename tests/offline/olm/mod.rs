//! Operator Lifecycle Manager: catalogs, and the checks of extensions and operators.

mod catalog;
mod extensions;
