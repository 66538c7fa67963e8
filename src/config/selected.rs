//! A check that runs, and whether one does.

use super::check::ConfigMap;
use super::custom::Definition;
use super::origin::{Layer, Place};
use crate::finding::Mode;

/// A check that runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedCheck {
    pub name: String,
    pub mode: Mode,
    pub definition: Definition,
    /// The entry's `config`; of a check that a team defines what makes it one (`exec`, `cel`).
    pub config: ConfigMap,
}

/// Whether a check runs, and who said so.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Switch {
    pub name: String,
    pub enabled: bool,
    pub layer: Layer,
    pub place: Place,
}
