//! A check that runs, and whether a check is enabled.

use super::check::CheckConfig;
use super::custom::CheckDefinition;
use super::origin::{Layer, SettingOrigin};
use gantry_core::finding::Mode;

/// A check that runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedCheck {
    /// The name of the check.
    pub name: String,
    /// Whether its findings are errors or warnings.
    pub mode: Mode,
    /// No flag, variable or file names the check.
    pub by_default: bool,
    /// Whether it is built in.
    pub definition: CheckDefinition,
    /// The entry's `config`; for a custom check, its definition (`exec`, `cel`).
    pub config: CheckConfig,
}

/// Whether a check is enabled, and the place that decides it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Switch {
    pub name: String,
    pub enabled: bool,
    pub layer: Layer,
    pub place: SettingOrigin,
}
