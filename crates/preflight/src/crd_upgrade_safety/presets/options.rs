//! The settings of crdify, and the settings with which the tools run it.

use gantry_core::finding::Severity;

/// The validation that reports the changes that no other validation handles.
pub(crate) const UNHANDLED: &str = "unhandled";

/// The severity of a validation; `None` switches it off. Its keyword still counts as handled.
pub(crate) type Enforcement = Option<Severity>;

/// Whether served versions are compared if the desired CRD converts with a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConversionPolicy {
    /// They are compared.
    #[default]
    None,
    /// They are not compared: the webhook is trusted to convert between them.
    Ignore,
}

/// All settings of crdify that affect its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrdifyOptions {
    /// crdify's `conversionPolicy`.
    pub conversion: ConversionPolicy,
    /// The severity of a change that no validation handles.
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
    /// The configured severities of validations, by name; the others are errors.
    pub enforcement: Vec<(&'static str, Enforcement)>,
}

/// The defaults of crdify: everything is an error.
impl Default for CrdifyOptions {
    fn default() -> Self {
        CrdifyOptions {
            conversion: ConversionPolicy::None,
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

impl CrdifyOptions {
    /// The settings that OLM v1 passes to crdify.
    pub fn olm_v1() -> Self {
        CrdifyOptions {
            conversion: ConversionPolicy::Ignore,
            enum_addition: true,
            enforcement: vec![("description", None)],
            ..CrdifyOptions::default()
        }
    }

    /// The severity of a validation.
    pub fn enforcement(&self, validation: &str) -> Enforcement {
        if validation == UNHANDLED {
            return self.unhandled;
        }
        // The last entry wins, as in crdify.
        let configured = self.enforcement.iter().rev().find(|(name, _)| *name == validation);
        configured.map_or(Some(Severity::Error), |(_, enforcement)| *enforcement)
    }
}
