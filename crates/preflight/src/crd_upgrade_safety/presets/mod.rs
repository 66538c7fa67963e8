//! The verdicts of other tools, reproduced: `preset: kapp`, `olm-v1` and `crdify`.
//!
//! These presets predict the verdict of a tool for teams that also use it. The code in this folder therefore has no
//! judgement of its own: it walks schemas as the tools do (flat tables of nodes, [`flatten`]), compares them as their
//! Go types do ([`typed`]) and uses their texts. Sources: crdify at commit bb9957dbf465 (June 2026), which OLM v1 uses
//! with its own settings since operator-controller v1.11.0, and kapp's `CRDUpgradeSafety` with the node tables of
//! crd-schema-checker.
//!
//! One thing is not reproduced: the struct diff that crdify prints for an unhandled change. OLM's short form of it is
//! used for both.

pub(crate) mod crdify;
mod flatten;
mod gostring;
pub(crate) mod kapp;
pub mod options;
mod typed;
pub(crate) mod validations;

use std::collections::BTreeMap;

use self::options::{CrdifyOptions, UNHANDLED};
use super::compare;
use super::json::{Json, JsonMap};
use gantry_core::crd::{Crd, CrdPair, CrdSide, MalformedCrd, steps};
use gantry_core::finding::Severity;
use gantry_core::resource::Step;

/// A tool, with its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PresetTool {
    /// kapp's own `CRDUpgradeSafety`, which has no settings that change its verdict.
    Kapp,
    /// Also OLM v1, with [`CrdifyOptions::olm_v1`].
    Crdify(CrdifyOptions),
}

/// A finding of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flagged {
    /// The tool's own name: `type`, `existingFieldRemoval`, `NoScopeChange`.
    pub validation: &'static str,
    /// The severity that the tool's settings give it.
    pub severity: Severity,
    /// `v1`, or `v1alpha1 -> v1` for a pair of served versions.
    pub version: Option<String>,
    /// In the tool's own notation.
    pub path: Option<String>,
    /// The tool's own text.
    pub text: String,
    /// The line that the tool prints after `validating upgrade for CRD "N"`.
    pub documented: String,
    /// The place in the desired CRD to point at.
    pub at: Vec<Step>,
    /// Whether none of kapp's validations handles the change, so that `failMode` decides.
    pub unknown: bool,
    /// Whether the tool's settings switch the validation off, so that the tool itself does not report it.
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

/// The page of `gantry rules` that explains a tool's validation: the rule about the same change, or the check.
pub(crate) fn explained_by(validation: &'static str) -> &'static str {
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

/// The findings of the tool for a pair of CRDs, including those that its settings switch [off](Flagged::off).
pub fn judge(pair: &CrdPair, tool: &PresetTool) -> Result<Vec<Flagged>, MalformedCrd> {
    Ok(judge_schemas(pair, &SchemasByVersion::read(pair)?, tool))
}

/// The same for schemas that were parsed already.
pub(crate) fn judge_schemas(pair: &CrdPair, schemas: &SchemasByVersion<'_>, tool: &PresetTool) -> Vec<Flagged> {
    match tool {
        PresetTool::Kapp => kapp::judge(pair, schemas),
        PresetTool::Crdify(options) => crdify::judge(pair, schemas, options),
    }
}

/// The parsed schemas of both CRDs, by version.
pub(crate) struct SchemasByVersion<'a> {
    live: BTreeMap<&'a str, Json<'a>>,
    desired: BTreeMap<&'a str, Json<'a>>,
    empty: JsonMap<'a>,
}

impl<'a> SchemasByVersion<'a> {
    pub fn read(pair: &'a CrdPair) -> Result<Self, MalformedCrd> {
        let of = |crd: &'a Crd, side| {
            let versions = crd
                .versions
                .iter()
                .map(|version| Ok((&*version.name, compare::parse(version.schema().unwrap_or("{}"), version, side)?)));
            versions.collect::<Result<BTreeMap<_, _>, MalformedCrd>>()
        };
        let (live, desired) = (of(&pair.live, CrdSide::Live)?, of(&pair.desired, CrdSide::Desired)?);
        Ok(SchemasByVersion { live, desired, empty: JsonMap::default() })
    }

    /// The live schema of a version; an empty schema if there is none.
    pub fn live(&self, version: &str) -> &JsonMap<'a> {
        self.live.get(version).and_then(Json::map).unwrap_or(&self.empty)
    }

    /// The desired schema of a version; an empty schema if there is none.
    pub fn desired(&self, version: &str) -> &JsonMap<'a> {
        self.desired.get(version).and_then(Json::map).unwrap_or(&self.empty)
    }
}

#[cfg(test)]
mod tests;
