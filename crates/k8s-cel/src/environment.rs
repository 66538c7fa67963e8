//! The environment in which a server compiles an expression: what is declared depends on the release.

use crate::release::KubernetesRelease;

/// The environment in which a server compiles an expression.
///
/// Every server must be able to return to the release before, so expressions that are new in a CRD can use only what
/// that release has, too. Expressions that the live CRD has already can use everything.
///
/// The default is that of new expressions in the newest known release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CelEnvironment {
    release: KubernetesRelease,
    is_live: bool,
}

impl CelEnvironment {
    /// The environment of expressions that are new in a CRD.
    pub fn of_new_expressions(release: KubernetesRelease) -> Self {
        CelEnvironment { release, is_live: false }
    }

    /// The environment of expressions that the live CRD has, too.
    pub fn of_live_expressions(release: KubernetesRelease) -> Self {
        CelEnvironment { release, is_live: true }
    }

    /// The release of the server.
    pub fn release(self) -> KubernetesRelease {
        self.release
    }

    /// Whether expressions can use something with this availability.
    pub(crate) fn has(self, availability: Availability) -> bool {
        let Availability { for_new, for_live, removed } = availability;
        self.release >= KubernetesRelease::minor(if self.is_live { for_live } else { for_new })
            && removed.is_none_or(|removed| self.release < KubernetesRelease::minor(removed))
    }
}

/// The releases from which something can be used in expressions, as minor versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Availability {
    pub for_new: u32,
    pub for_live: u32,
    /// The first release that does not have it.
    pub removed: Option<u32>,
}

impl Availability {
    pub(crate) const fn since(for_new: u32, for_live: u32) -> Self {
        Availability { for_new, for_live, removed: None }
    }
}

/// A field whose name is a reserved word can be selected without escaping.
pub(crate) const RESERVED_FIELDS: Availability = Availability::since(32, 31);
/// The name of a field can be written in backquotes, which selects the keys of maps that are no identifiers.
pub(crate) const QUOTED_NAMES: Availability = Availability::since(37, 37);
/// Literal templates of `format` are validated by the type checker.
pub(crate) const FORMAT_VALIDATOR: Availability = Availability::since(31, 31);
/// The type checker can read a template of `format` that is not a literal. The first servers with the validator fail.
pub(crate) const ANY_FORMAT_TEMPLATE: Availability = Availability::since(32, 32);
/// Literals of durations, times and patterns are validated by the type checker. Before, the server finds the same errors
/// when it compiles the program.
pub(crate) const LITERAL_VALIDATORS: Availability = Availability::since(30, 29);
