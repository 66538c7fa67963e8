//! Where a setting comes from.

use std::fmt;

use gantry_core::problem::{Location, Problem};

/// The source of a setting. A later layer overrides an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Nothing sets the key.
    Default,
    /// `~/.config/gantry/config.yaml`.
    User,
    /// `gantry.yaml`.
    Project,
    /// `-c FILE`.
    File,
    /// A Config document among the manifests.
    Manifests,
    /// `GANTRY_…`.
    Environment,
    /// A flag of the command line, which wins over all other layers.
    Flag,
}

impl Layer {
    /// Whether it is a file that the team or the user chose: the user file, the project file, `-c`.
    pub(super) fn is_of_team(self) -> bool {
        matches!(self, Layer::User | Layer::Project | Layer::File)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Default => "default",
            Layer::User => "user file",
            Layer::Project => "project file",
            Layer::File => "-c file",
            Layer::Manifests => "manifests",
            Layer::Environment => "environment",
            Layer::Flag => "flag",
        })
    }
}

/// The place where a value is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    /// The built-in default.
    Default,
    /// A place in a file.
    File(Location),
    /// The environment variable of this name.
    Variable(String),
    /// This flag.
    Flag(&'static str),
}

impl SettingOrigin {
    /// A problem with the value at this place.
    pub fn problem(&self, message: impl fmt::Display) -> Problem {
        match self {
            SettingOrigin::Default => Problem::new(message.to_string()),
            SettingOrigin::File(location) => Problem::new(message.to_string()).at(location.clone()),
            SettingOrigin::Variable(name) => Problem::new(format!("{name}: {message}")),
            SettingOrigin::Flag(name) => Problem::new(format!("{name}: {message}")),
        }
    }

    /// The file, line and column, for a value that is in a file.
    pub fn location(&self) -> Option<&Location> {
        match self {
            SettingOrigin::File(location) => Some(location),
            _ => None,
        }
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::Default => Ok(()),
            SettingOrigin::File(location) => location.fmt(f),
            SettingOrigin::Variable(name) => f.write_str(name),
            SettingOrigin::Flag(name) => f.write_str(name),
        }
    }
}
