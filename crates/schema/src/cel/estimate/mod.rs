//! What a rule may cost at most, as the server estimates it when a CRD is written.
//!
//! ```text
//! check ──► sketch: every node, typed; macros as loops ─┐
//! schema ─► extent: how large values can be ────────────┴─► walk ─► call: what each function costs
//! ```
//!
//! The arithmetic is that of the server, down to where it overflows and to which sizes it does not know, as the result
//! decides whether a CRD is taken. The tables of `tests/fixtures/cel` hold it to what the server's own packages estimate.
//!
//! Only the most that a rule may cost is of interest. Of sizes there is a least one, too: what `replace` makes is the
//! larger, the less it replaces at a time.

mod call;
mod extent;
mod place;
mod size;
mod sketch;
mod walk;

pub(crate) use extent::Extent;
pub(super) use sketch::{ACCUMULATOR, Id, Loop, Of, Sketch};
pub(super) use walk::estimate;
