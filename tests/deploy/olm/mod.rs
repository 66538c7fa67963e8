//! Operator Lifecycle Manager: the checks of extensions and operators, and the catalogs of a cluster.

mod extensions;
mod live_catalogs;
mod operators;
