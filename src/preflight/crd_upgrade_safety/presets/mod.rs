//! Other tools' verdicts, reproduced: `preset: kapp`, `olm-v1` and `crdify`.
//!
//! A team whose cluster asks one of these tools can see here what it will say. So nothing in this folder judges by its own
//! lights: it looks at schemas as the tools do (flat tables of nodes, [`flatten`]), compares them as their Go types would
//! ([`typed`]) and speaks in their words. Sources: crdify at commit bb9957dbf465 (June 2026), which OLM
//! v1 has with settings of its own since operator-controller v1.11.0, and kapp's `CRDUpgradeSafety` on the node tables of
//! crd-schema-checker.
//!
//! One thing is not reproduced: the struct diff that crdify prints for an unhandled change. The short form that OLM makes of
//! it stands for both.

pub mod crdify;
mod flatten;
mod gostring;
pub mod kapp;
pub mod options;
mod typed;
pub mod validations;

use std::collections::BTreeMap;

use self::options::{Options, UNHANDLED};
use super::compare;
use super::json::{Json, Map};
use crate::crd::{Crd, CrdPair, Malformed, Side, steps};
use crate::finding::Severity;
use crate::resource::Step;

/// A tool, with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    Kapp,
    /// Also OLM v1, with [`Options::olm_v1`].
    Crdify(Options),
}

/// A finding of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flagged {
    /// The tool's own name: `type`, `existingFieldRemoval`, `NoScopeChange`.
    pub validation: &'static str,
    pub severity: Severity,
    /// `v1`, or `v1alpha1 -> v1` for a pair of served versions.
    pub version: Option<String>,
    /// In the tool's own notation.
    pub path: Option<String>,
    pub text: String,
    /// The line that the tool prints, behind `validating upgrade for CRD "N"`.
    pub documented: String,
    /// Where in the desired CRD to point.
    pub at: Vec<Step>,
    /// A change that none of kapp's validations takes: `failMode` decides.
    pub unknown: bool,
    /// The tool's settings switch the validation off: the tool itself would not say it.
    pub off: bool,
}

impl Flagged {
    fn new(validation: &'static str, version: Option<String>, path: Option<String>, text: String) -> Self {
        let at = steps::versions();
        Flagged {
            validation,
            severity: Severity::Error,
            version,
            path,
            text,
            documented: String::new(),
            at,
            unknown: false,
            off: false,
        }
    }
}

/// What `gantry rules` can explain of a tool's validation: the rule about the same, or the check.
pub fn explained_by(validation: &'static str) -> &'static str {
    match validation {
        "default" => "NoDefaultChanged",
        "enum" => "NoEnumValueRemoved",
        "maxItems" => "NoMaxItemsTightened",
        "maxLength" => "NoMaxLengthTightened",
        "maxProperties" => "NoMaxPropertiesTightened",
        "maximum" => "NoMaximumTightened",
        "minItems" => "NoMinItemsTightened",
        "minLength" => "NoMinLengthTightened",
        "minProperties" => "NoMinPropertiesTightened",
        "minimum" => "NoMinimumTightened",
        "nullable" => "NullableChange",
        "oneOf" => "OneOfChange",
        "pattern" => "PatternChange",
        "required" => "NoRequiredFieldAdded",
        "type" => "NoTypeChange",
        UNHANDLED | kapp::CHANGE_VALIDATOR => "UnknownChange",
        crdify::SCOPE => kapp::NO_SCOPE_CHANGE,
        crdify::STORED_VERSION_REMOVAL => kapp::NO_STORED_VERSION_REMOVED,
        crdify::EXISTING_FIELD_REMOVAL => kapp::NO_EXISTING_FIELD_REMOVED,
        kapp::NO_SCOPE_CHANGE | kapp::NO_STORED_VERSION_REMOVED | kapp::NO_EXISTING_FIELD_REMOVED => validation,
        _ => "CRDUpgradeSafety",
    }
}

/// What the tool says of a live CRD and the one that is to replace it; and what it would say if its
/// settings did not switch that [off](Flagged::off).
pub fn judge(pair: &CrdPair, tool: &Tool) -> Result<Vec<Flagged>, Malformed> {
    let schemas = Schemas::read(pair)?;
    Ok(match tool {
        Tool::Kapp => kapp::judge(pair, &schemas),
        Tool::Crdify(options) => crdify::judge(pair, &schemas, options),
    })
}

/// The parsed schemas of both CRDs by version.
pub struct Schemas<'a> {
    live: BTreeMap<&'a str, Json<'a>>,
    desired: BTreeMap<&'a str, Json<'a>>,
    empty: Map<'a>,
}

impl<'a> Schemas<'a> {
    fn read(pair: &'a CrdPair) -> Result<Self, Malformed> {
        let of = |crd: &'a Crd, side| {
            let versions = crd
                .versions
                .iter()
                .map(|version| Ok((&*version.name, compare::parse(version.schema().unwrap_or("{}"), version, side)?)));
            versions.collect::<Result<BTreeMap<_, _>, Malformed>>()
        };
        let (live, desired) = (of(&pair.live, Side::Live)?, of(&pair.desired, Side::Desired)?);
        Ok(Schemas { live, desired, empty: Map::default() })
    }

    /// The live schema of a version; the empty one where there is none.
    pub fn live(&self, version: &str) -> &Map<'a> {
        self.live.get(version).and_then(Json::map).unwrap_or(&self.empty)
    }

    /// The desired schema of a version; the empty one where there is none.
    pub fn desired(&self, version: &str) -> &Map<'a> {
        self.desired.get(version).and_then(Json::map).unwrap_or(&self.empty)
    }
}

#[cfg(test)]
mod tests;
