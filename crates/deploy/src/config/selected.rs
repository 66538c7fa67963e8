//! A check that runs, and whether a check is enabled.

use super::check::CheckConfig;
use super::custom::CheckDefinition;
use super::keys::{CRD_UPGRADE_SAFETY, PRESET};
use super::located::LocatedData;
use super::origin::{Layer, SettingOrigin};
use gantry_core::finding::Mode;

/// The preset without configuration.
const DEFAULT_PRESET: &str = "documented";

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

impl SelectedCheck {
    /// The preset of `CRDUpgradeSafety`; `None` for another check.
    pub fn preset(&self) -> Option<&str> {
        if self.name != CRD_UPGRADE_SAFETY {
            return None;
        }
        let named = self.config.0.as_ref().and_then(|config| config.get(PRESET));
        match named.map(|named| &named.data) {
            Some(LocatedData::Scalar(name)) => name.as_str(),
            _ => Some(DEFAULT_PRESET),
        }
    }
}

/// Whether a check is enabled, and the place that decides it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Switch {
    pub name: String,
    pub enabled: bool,
    pub layer: Layer,
    pub place: SettingOrigin,
}
