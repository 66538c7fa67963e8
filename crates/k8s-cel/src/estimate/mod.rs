//! The maximum cost of a rule, as the server estimates it when a CRD is written.
//!
//! ```text
//! check ──► sketch: every node with its type; macros as loops ─┐
//! schema ─► extent: size limits of values ─────────────────────┴─► walk ─► call: the cost of each function
//! ```
//!
//! The arithmetic matches the server's, including its overflows and the sizes that it does not know, because the
//! result decides whether a CRD is accepted. Tests compare it with the estimates of the server's own packages in the
//! tables of `tests/fixtures/cel`.
//!
//! Only the maximum cost of a rule is relevant. Sizes have a minimum too, because the result of `replace` is larger if
//! the replaced parts are shorter.

mod call;
mod extent;
mod model;
mod place;
mod size;
mod sketch;
mod walk;

pub(crate) use extent::Extent;
pub(super) use sketch::{ACCUMULATOR, Id, Loop, Of, Sketch};
pub(super) use walk::estimate;
