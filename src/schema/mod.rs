//! The schema of a custom resource as it is written: its keywords, and when two schemas say the same.
//!
//! ```text
//! keywords   one table: the shape of each keyword, what depends on it, which value is as good as none
//! same       equality by that table, for whichever type holds the JSON
//! tree       what the equality needs of such a type
//! ```
//!
//! "Unchanged" is decided here, for the checks that compare CRDs, for the proof and for what is asked of existing objects.
//! Two comparisons are others on purpose: the presets of other tools compare as these tools do
//! (`preflight/crd_upgrade_safety/presets/typed.rs`), and values of objects compare as the server compares them on an update
//! (`validation/correlate.rs`).

pub mod keywords;
pub mod same;
pub mod tree;

pub use same::{Sense, is_left_out, same, same_schema};
pub use tree::{Tree, same_value};
