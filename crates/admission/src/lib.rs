//! The admission webhook of gantry: the verdict of `gantry check` at the API server, whoever writes.
//!
//! The API server asks about each update and deletion of a CustomResourceDefinition, and about writes of its status.
//! [`judge`] gives the verdict, by the same checks as `gantry check`; [`decide`] makes an answer of it, as the
//! configuration says; [`server`] serves both over HTTPS.

pub mod certificates;
pub mod decide;
pub mod install;
pub mod judge;
mod metrics;
pub mod review;
pub mod self_signed;
pub mod server;
