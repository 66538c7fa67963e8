//! Dependencies between bundles, as classic OLM resolves them.
//!
//! Sources: `pkg/controller/registry/resolver/cache/predicates.go` of operator-lifecycle-manager for the matching and
//! the texts; `alpha/property` and `constraints` of operator-registry and api for the properties.

use std::fmt;

use gantry_k8s_cel::gotext::quote;
use gantry_yaml::explain_json;
use serde::Deserialize;

use crate::error::OlmError;
use crate::property::Property;
use crate::skip_range::SkipRange;
use crate::version::SemanticVersion;

/// The maximum nesting of constraints.
const MOST_DEPTH: usize = 64;

/// An API that a bundle provides or requires. All three parts must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct Api {
    /// Its group.
    #[serde(default)]
    pub group: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// Its kind.
    #[serde(default)]
    pub kind: String,
}

/// A requirement of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleRequirement {
    /// An operator that provides an API.
    Api(Api),
    /// An operator of a package, in a range of versions.
    Package {
        /// The package.
        name: String,
        /// The text of the range.
        range: String,
        /// The range.
        versions: SkipRange,
    },
    /// An operator that meets all of these.
    All(Vec<BundleRequirement>),
    /// An operator that meets one of these.
    Any(Vec<BundleRequirement>),
    /// An operator that meets none of these.
    Not(Vec<BundleRequirement>),
    /// A CEL expression over properties, which is not evaluated here.
    Cel(String),
}

/// An operator that can meet requirements.
pub trait InstalledOperator {
    /// Whether it provides the API.
    fn provides(&self, api: &Api) -> bool;
    /// Whether it is of the package, in a version for which `is_taken` returns true.
    fn is_of_package(&self, name: &str, is_taken: &dyn Fn(&SemanticVersion) -> bool) -> bool;
}

impl BundleRequirement {
    /// Reads a property of a bundle; `None` for a property that requires nothing.
    ///
    /// # Errors
    /// The value does not have the type that the property requires.
    pub fn of_property(property: &Property) -> Result<Option<BundleRequirement>, OlmError> {
        match property.kind.as_str() {
            "olm.gvk.required" => parse(&property.value).map(|api| Some(BundleRequirement::Api(api))),
            "olm.package.required" => parse::<PackageRange>(&property.value).and_then(PackageRange::read).map(Some),
            "olm.constraint" => return Ok(Some(OlmConstraint::parse(&property.value)?.read(0)?)),
            _ => Ok(None),
        }
        .map_err(|why| format!("{}: {why}", property.kind).into())
    }

    /// Reads a dependency in `metadata/dependencies.yaml`, where requirements have the type names of provided
    /// properties.
    ///
    /// # Errors
    /// The value does not have the type that the dependency requires.
    pub fn of_dependency(dependency: &Property) -> Result<Option<BundleRequirement>, OlmError> {
        match dependency.kind.as_str() {
            "olm.gvk" => Ok(Some(BundleRequirement::Api(parse(&dependency.value)?))),
            "olm.package" => Ok(Some(parse::<PackageRange>(&dependency.value)?.read()?)),
            _ => BundleRequirement::of_property(dependency),
        }
    }

    /// Whether one of these operators meets the requirement; `None` if an expression would have to be evaluated.
    pub fn holds<'o>(&self, operators: impl IntoIterator<Item = &'o dyn InstalledOperator>) -> Option<bool> {
        any_holds(operators.into_iter().map(|operator| self.is_met_by(operator)))
    }

    /// As in OLM, a single operator must meet a whole constraint.
    fn is_met_by(&self, operator: &dyn InstalledOperator) -> Option<bool> {
        let not = |holds: Option<bool>| holds.map(|holds| !holds);
        let one_of = |parts: &[BundleRequirement]| any_holds(parts.iter().map(|part| part.is_met_by(operator)));
        match self {
            BundleRequirement::Api(api) => Some(operator.provides(api)),
            BundleRequirement::Package { name, versions, .. } => {
                Some(operator.is_of_package(name, &|version| versions.contains(version)))
            }
            BundleRequirement::All(parts) => not(any_holds(parts.iter().map(|part| not(part.is_met_by(operator))))),
            BundleRequirement::Any(parts) => one_of(parts),
            BundleRequirement::Not(parts) => not(one_of(parts)),
            BundleRequirement::Cel(_) => None,
        }
    }

    /// Every API that it asks for, at any level; not those of a `not`.
    pub fn apis(&self) -> Vec<&Api> {
        match self {
            BundleRequirement::Api(api) => vec![api],
            BundleRequirement::All(parts) | BundleRequirement::Any(parts) => {
                parts.iter().flat_map(BundleRequirement::apis).collect()
            }
            BundleRequirement::Package { .. } | BundleRequirement::Not(_) | BundleRequirement::Cel(_) => Vec::new(),
        }
    }

    /// Whether it requires a package.
    pub fn is_of_package(&self) -> bool {
        matches!(self, BundleRequirement::Package { .. })
    }
}

/// Whether one holds; `None` if none does, but at least one is unknown.
fn any_holds(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = Some(false);
    for part in parts {
        match part {
            Some(true) => return Some(true),
            Some(false) => {}
            None => known = None,
        }
    }
    known
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group: {}, version: {}, kind: {}", self.group, self.version, self.kind)
    }
}

impl fmt::Display for BundleRequirement {
    /// The text that OLM puts after `requires an operator`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[BundleRequirement], between: &str| {
            parts.iter().enumerate().try_for_each(|(at, part)| {
                let before = if at == 0 { "" } else { between };
                write!(f, "{before}{part}")
            })
        };
        match self {
            BundleRequirement::Api(api) => write!(f, "providing an API with {api}"),
            BundleRequirement::Package { name, range, .. } => {
                write!(f, "with package: {name} and with version in range: {range}")
            }
            BundleRequirement::All(parts) => list(f, parts, " and "),
            BundleRequirement::Any(parts) => list(f, parts, " or "),
            BundleRequirement::Not(parts) => {
                f.write_str("not ")?;
                list(f, parts, " nor ")
            }
            BundleRequirement::Cel(rule) => write!(f, "with constraint: {rule:?}"),
        }
    }
}

/// The APIs that these properties provide; a property that cannot be parsed provides nothing.
pub fn provided<'p>(properties: impl IntoIterator<Item = &'p Property>) -> impl Iterator<Item = Api> {
    let provided = properties.into_iter().filter(|property| property.kind == "olm.gvk");
    provided.filter_map(|property| serde_json::from_str(&property.value).ok()).collect::<Vec<Api>>().into_iter()
}

fn parse<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| explain_json(&error))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PackageRange {
    package_name: String,
    /// `version` in a dependencies.yaml.
    #[serde(alias = "version")]
    version_range: String,
}

impl PackageRange {
    fn read(self) -> Result<BundleRequirement, String> {
        let PackageRange { package_name: name, version_range: range } = self;
        let versions = SkipRange::parse(&range).map_err(|why| format!("{range:?}: {why}"))?;
        Ok(BundleRequirement::Package { name, range, versions })
    }
}

/// The value of an `olm.constraint`. OLM refuses unknown fields in it, at every level (`pkg/constraints/constraint.go`
/// of operator-framework/api), but not in other properties.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OlmConstraint {
    #[serde(rename = "failureMessage")]
    _failure_message: Option<String>,
    gvk: Option<RequiredApi>,
    package: Option<RequiredPackage>,
    all: Option<CompoundConstraints>,
    any: Option<CompoundConstraints>,
    not: Option<CompoundConstraints>,
    cel: Option<CelConstraint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequiredApi {
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RequiredPackage {
    package_name: String,
    version_range: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompoundConstraints {
    #[serde(default)]
    constraints: Vec<OlmConstraint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CelConstraint {
    #[serde(default)]
    rule: String,
}

impl OlmConstraint {
    fn parse(text: &str) -> Result<OlmConstraint, String> {
        parse(text).map_err(|why| match why.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
            // In Go's words.
            Some((field, _)) => format!("parse olm.constraint: json: unknown field {}", quote(field)),
            None => format!("parse olm.constraint: {why}"),
        })
    }

    fn read(self, depth: usize) -> Result<BundleRequirement, String> {
        let failed = |why: String| format!("convert olm.constraint to resolver predicate: {why}");
        if depth > MOST_DEPTH {
            return Err(failed(format!("constraints are nested more than {MOST_DEPTH} levels deep")));
        }
        let list = |parts: CompoundConstraints| -> Result<Vec<BundleRequirement>, String> {
            parts.constraints.into_iter().map(|part| part.read(depth + 1)).collect()
        };
        match self {
            OlmConstraint { gvk: Some(RequiredApi { group, version, kind }), .. } => {
                Ok(BundleRequirement::Api(Api { group, version, kind }))
            }
            OlmConstraint { package: Some(RequiredPackage { package_name, version_range }), .. } => {
                PackageRange { package_name, version_range }.read().map_err(failed)
            }
            OlmConstraint { all: Some(parts), .. } => list(parts).map(BundleRequirement::All),
            OlmConstraint { any: Some(parts), .. } => list(parts).map(BundleRequirement::Any),
            OlmConstraint { not: Some(parts), .. } => list(parts).map(BundleRequirement::Not),
            OlmConstraint { cel: Some(CelConstraint { rule }), .. } => Ok(BundleRequirement::Cel(rule)),
            _ => Err(failed("constraint is empty".to_owned())),
        }
    }
}
