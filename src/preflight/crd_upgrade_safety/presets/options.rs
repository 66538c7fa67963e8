//! What crdify lets one configure, and what the tools configure by themselves.

use crate::finding::Severity;

/// What remains when all validations have taken their keyword out.
pub const UNHANDLED: &str = "unhandled";

/// How loud a validation is; `None` switches it off. What it looks at counts as handled all the same.
pub type Enforcement = Option<Severity>;

/// What becomes of served versions that differ where the desired CRD converts by webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conversion {
    /// They are compared all the same.
    #[default]
    None,
    /// They are not compared: the webhook is trusted to tell them apart.
    Ignore,
}

/// Everything that decides a verdict of crdify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub conversion: Conversion,
    pub unhandled: Enforcement,
    /// `enum`'s `additionPolicy: Allow`.
    pub enum_addition: bool,
    /// `nullable`'s `additionPolicy: Allow`.
    pub nullable_addition: bool,
    /// `nullable`'s `removalPolicy: Allow`.
    pub nullable_removal: bool,
    /// `oneOf`'s `additionPolicy: Allow`.
    pub one_of_addition: bool,
    /// `oneOf`'s `removalPolicy: Allow`.
    pub one_of_removal: bool,
    /// `pattern`'s `removalPolicy: Allow`.
    pub pattern_removal: bool,
    /// Validations that are not errors, by name.
    pub enforcement: Vec<(&'static str, Enforcement)>,
}

/// crdify's defaults: everything is an error.
impl Default for Options {
    fn default() -> Self {
        Options {
            conversion: Conversion::None,
            unhandled: Some(Severity::Error),
            enum_addition: false,
            nullable_addition: false,
            nullable_removal: false,
            one_of_addition: false,
            one_of_removal: false,
            pattern_removal: false,
            enforcement: Vec::new(),
        }
    }
}

impl Options {
    /// What OLM v1 hands to crdify.
    pub fn olm_v1() -> Self {
        Options {
            conversion: Conversion::Ignore,
            enum_addition: true,
            enforcement: vec![("description", None)],
            ..Options::default()
        }
    }

    /// How loud a validation is.
    pub fn enforcement(&self, validation: &str) -> Enforcement {
        if validation == UNHANDLED {
            return self.unhandled;
        }
        // The last entry wins, as in crdify.
        let configured = self.enforcement.iter().rev().find(|(name, _)| *name == validation);
        configured.map_or(Some(Severity::Error), |(_, enforcement)| *enforcement)
    }
}
