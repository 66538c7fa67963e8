//! Compares two CRDs and returns violations, without any I/O.
//!
//! Live and desired are paired once: the CRDs as a whole, then each version that both have, node by node, through
//! properties, items and additionalProperties. A rule sees one such pair and nothing else.

use std::sync::Arc;

use super::json::{Json, JsonMap};
use super::node::{AddedNode, KeywordDifference, NodePair, RemovedNode, SchemaNodePlace, Transition};
use super::rule::{CrdRuleViolation, Judge, Rule, UNKNOWN_CHANGE, ViolationText};
use super::rules::RULES;
use gantry_core::crd::{Crd, CrdPair, CrdReadError, CrdReadErrorKind, CrdSide, CrdVersion, MalformedCrd, steps};
use gantry_core::finding::KeywordChange;
use gantry_core::finding::wording::Wording;
use gantry_core::resource::Step;
use gantry_schema::keywords;
use gantry_schema::{self as schema, Sense};
use gantry_yaml::explain_json;

/// Keywords that only contain further schema nodes. The walk descends into them and compares each node on its own.
/// (`additionalProperties` is walked too, but a rule is responsible for its other values.)
#[cfg(test)]
pub(crate) const WALKED: &[&str] = &["items", "properties"];

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

fn is_set(schema: &JsonMap, keyword: &str) -> bool {
    matches!(keywords::get(schema, keyword), Some(Json::Bool(true)))
}

/// Whether every resource has a field of this name, whether its schema describes the field or not.
fn is_built_in(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// A violation of a rule by a pair of CRDs.
#[derive(Debug, Clone)]
pub struct RuleViolation {
    /// The rule that is violated.
    pub rule: &'static Rule,
    /// The version whose schema it is about; `None` if it is about the whole CRD.
    pub version: Option<String>,
    /// The schema node: `^.spec.pollInterval`.
    pub path: Option<String>,
    /// The same as steps from the root of the version's schema; empty if the violation is not about a node.
    pub node: Vec<Step>,
    /// What the rule says, before it has a place.
    pub diagnosis: ViolationText,
}

impl RuleViolation {
    /// A violation of a rule about whole CRDs.
    pub(crate) fn of_crd(rule: &'static Rule, found: CrdRuleViolation) -> Self {
        let (path, node) = found.diagnosis.node.clone().unzip();
        RuleViolation { rule, version: found.version, path, node: node.unwrap_or_default(), diagnosis: found.diagnosis }
    }
}

/// The difference between a live CRD and the desired one.
#[derive(Debug, Default)]
pub struct CrdComparison {
    /// Those of the rules about whole CRDs first, then those of each version.
    pub violations: Vec<RuleViolation>,
    /// The versions in whose schema no rule reports anything, but whose new fields can affect existing objects: see
    /// [`adds_to_objects`].
    pub additions: Vec<Arc<str>>,
}

/// Compares a live CRD with the desired one.
///
/// # Errors
/// The schema is not an object.
pub fn compare_crds(pair: &CrdPair) -> Result<CrdComparison, MalformedCrd> {
    let mut additions = Vec::new();
    let mut violations = Vec::new();
    for rule in RULES {
        let found = match rule.judge {
            Judge::Crd(judge) => judge(pair),
            Judge::Versions(judge) => judge(pair, &compare_versions),
            Judge::Node(_) | Judge::Removed(_) | Judge::Added(_) | Judge::Server | Judge::Proof => continue,
        };
        violations.extend(found.into_iter().map(|found| RuleViolation::of_crd(rule, found)));
    }
    for (live, desired) in pair.common_versions() {
        let Some(desired_text) = desired.schema() else {
            return Err(MalformedCrd { side: CrdSide::Desired, error: desired.without_schema() });
        };
        let live_text = live.schema().unwrap_or("{}");
        if pair.has_same_versions || live_text == desired_text {
            continue;
        }
        let (live_schema, desired_schema) =
            (parse(live_text, live, CrdSide::Live)?, parse(desired_text, desired, CrdSide::Desired)?);
        let of_version = compare_schemas(&pair.desired.name, &live.name, desired.index, &live_schema, &desired_schema)?;
        if !of_version.iter().any(|violation| violation.path.is_some())
            && adds_to_objects(&live_schema, &desired_schema)
        {
            additions.push(Arc::clone(&live.name));
        }
        violations.extend(of_version);
    }
    Ok(CrdComparison { violations, additions })
}

/// Parses the schema of a version.
pub(super) fn parse<'t>(text: &'t str, version: &CrdVersion, side: CrdSide) -> Result<Json<'t>, MalformedCrd> {
    let unreadable =
        |error| CrdReadError { fault: CrdReadErrorKind::Type(explain_json(&error)), at: steps::schema(version.index) };
    Json::parse(text).map_err(|error| MalformedCrd { side, error: unreadable(error) })
}

/// Whether a field that is new in the schema, which no rule reports, can affect existing objects: a default can violate
/// constraints around it, and the fields that every resource has may already have values.
fn adds_to_objects(live: &Json, desired: &Json) -> bool {
    live.map().zip(desired.map()).is_some_and(|(live, desired)| adds_below(live, desired, true))
}

fn adds_below(live: &JsonMap, desired: &JsonMap, is_resource: bool) -> bool {
    let is_resource = is_resource || [live, desired].iter().any(|schema| is_set(schema, EMBEDDED));
    let fields = |schema| keywords::get(schema, "properties").and_then(Json::map);
    let known = fields(live);
    let mut of_fields = fields(desired).into_iter().flat_map(JsonMap::iter);
    of_fields.any(|(name, field)| match (known.and_then(|known| known.get(name)).and_then(Json::map), field.map()) {
        (Some(live), Some(desired)) => adds_below(live, desired, false),
        (None, Some(desired)) => keywords::get(desired, "default").is_some() || is_resource && is_built_in(name),
        _ => false,
    }) || ["items", "additionalProperties"].into_iter().any(|keyword| {
        let below = |schema| keywords::get(schema, keyword).and_then(Json::map);
        below(live).zip(below(desired)).is_some_and(|(live, desired)| adds_below(live, desired, false))
    })
}

/// The violations of the rules about nodes between two versions of one CRD: path, rule and message.
fn compare_versions(crd: &Crd, lower: &str, higher: &str) -> Vec<(String, &'static str, Wording)> {
    let schema = |name: &str| crd.version(name).and_then(CrdVersion::schema).unwrap_or("{}");
    let (Ok(live), Ok(desired)) = (Json::parse(schema(lower)), Json::parse(schema(higher))) else { return Vec::new() };
    // A schema that cannot be compared is an error of its own version.
    let violations = compare_schemas(&crd.name, lower, 0, &live, &desired).unwrap_or_default();
    violations.into_iter().map(|v| (v.path.unwrap_or_default(), v.rule.doc.name, v.diagnosis.message)).collect()
}

/// Compares two schemas node by node. `version` is the version that the violations name, and `index` the index of the
/// version in the desired CRD that they point at.
pub(crate) fn compare_schemas(
    crd: &str,
    version: &str,
    index: usize,
    live: &Json,
    desired: &Json,
) -> Result<Vec<RuleViolation>, MalformedCrd> {
    let mut violations = Vec::new();
    let mut walk = SchemaWalk { crd, version, index, way: Vec::new(), violations: &mut violations };
    walk.compare_node(live, desired, KeptByList::default())?;
    Ok(violations)
}

/// One step down the schema.
#[derive(Debug, Clone, Copy)]
enum SchemaWalkStep<'n> {
    Property(&'n str),
    Items,
    ItemsAt(usize),
    AdditionalProperties,
}

/// The walk through the schema of one version. Paths are only formatted for nodes that have changes.
struct SchemaWalk<'w, 'n> {
    crd: &'w str,
    version: &'w str,
    /// The index of the version in the desired CRD.
    index: usize,
    /// The steps from the root to the current node.
    way: Vec<SchemaWalkStep<'n>>,
    violations: &'w mut Vec<RuleViolation>,
}

/// Whether the node describes the items of a list that keeps unknown fields. Then the server keeps those of the items.
#[derive(Clone, Copy, Default)]
struct KeptByList {
    live: bool,
    desired: bool,
}

impl<'n> SchemaWalk<'_, 'n> {
    fn compare_node(&mut self, live: &'n Json, desired: &'n Json, kept: KeptByList) -> Result<(), MalformedCrd> {
        let live = self.schema(live, CrdSide::Live)?;
        let desired = self.schema(desired, CrdSide::Desired)?;
        let changes = changes(live, desired);
        if !changes.is_empty() {
            let place = self.place();
            for change in &changes {
                if let Some((side, value)) = misfit(change) {
                    let (keyword, field) = (change.keyword.to_owned(), place.field().to_owned());
                    let mut at = place.steps.clone();
                    at.push(change.keyword.into());
                    let error = CrdReadError {
                        fault: CrdReadErrorKind::Value { keyword, field, value: value.to_string() },
                        at,
                    };
                    return Err(MalformedCrd { side, error });
                }
            }
            let is_unclaimed = |change: &&KeywordDifference| !is_claimed(change.keyword, change.transition());
            let unclaimed: Vec<&KeywordDifference> = changes.iter().filter(is_unclaimed).collect();
            let pair = NodePair { place: &place, live, desired, changes: &changes, unclaimed: &unclaimed };
            if self.judge(&pair) == ChildComparison::Hidden {
                return Ok(());
            }
        }
        self.compare_children(live, desired, kept)
    }

    /// Evaluates every rule about a node. A violation of a rule that hides others is the only one, here and below.
    fn judge(&mut self, pair: &NodePair) -> ChildComparison {
        let mut found = Vec::new();
        for rule in RULES {
            let Judge::Node(judge) = rule.judge else { continue };
            let Some(diagnosis) = judge(pair) else { continue };
            let violation = violation(rule, pair.place, keyword_changes(pair.changes), diagnosis);
            if rule.hides_others {
                self.violations.push(violation);
                return ChildComparison::Hidden;
            }
            found.push(violation);
        }
        self.violations.extend(found);
        ChildComparison::Open
    }

    fn compare_children(
        &mut self,
        live: &'n JsonMap,
        desired: &'n JsonMap,
        kept: KeptByList,
    ) -> Result<(), MalformedCrd> {
        let keeps = KeptByList {
            live: kept.live || self.keeps_unknown(live),
            desired: kept.desired || self.keeps_unknown(desired),
        };
        let open = KeptByList::default();
        if let Some(Json::Map(properties)) = keywords::get(live, "properties") {
            let successors = keywords::get(desired, "properties").and_then(Json::map);
            for (name, child) in properties.iter() {
                let successor = successors.and_then(|map| map.get(name));
                self.compare_child(SchemaWalkStep::Property(name), child, successor, open)?;
            }
        }
        if keeps.live && keeps.desired {
            self.report_described(live, desired)?;
        }
        match (keywords::get(live, "items"), keywords::get(desired, "items")) {
            (Some(Json::List(list)), Some(Json::List(successors))) => {
                for (i, child) in list.iter().enumerate() {
                    self.compare_child(SchemaWalkStep::ItemsAt(i), child, successors.get(i), keeps)?;
                }
            }
            (Some(child @ Json::Map(_)), successor @ (None | Some(Json::Map(_)))) => {
                self.compare_child(SchemaWalkStep::Items, child, successor, keeps)?;
            }
            _ => {}
        }
        match (keywords::get(live, "additionalProperties"), keywords::get(desired, "additionalProperties")) {
            (Some(child @ Json::Map(_)), successor @ (None | Some(Json::Map(_)))) => {
                self.compare_child(SchemaWalkStep::AdditionalProperties, child, successor, open)
            }
            (Some(child @ Json::Map(_)), Some(Json::Bool(false))) => {
                self.compare_child(SchemaWalkStep::AdditionalProperties, child, None, open)
            }
            _ => Ok(()),
        }
    }

    fn compare_child(
        &mut self,
        down: SchemaWalkStep<'n>,
        live: &'n Json,
        desired: Option<&'n Json>,
        kept: KeptByList,
    ) -> Result<(), MalformedCrd> {
        self.way.push(down);
        match desired {
            Some(desired) => self.compare_node(live, desired, kept)?,
            None => self.report_removed(self.schema(live, CrdSide::Live)?),
        }
        self.way.pop();
        Ok(())
    }

    /// Whether the server keeps unknown fields of a node. It always keeps those of metadata, whatever schemas say.
    fn keeps_unknown(&self, schema: &JsonMap) -> bool {
        let is_metadata = matches!(self.way[..], [SchemaWalkStep::Property("metadata")]);
        is_metadata || is_set(schema, PRESERVE)
    }

    /// Reports the fields that only desired describes, in a node that keeps unknown fields on both sides.
    fn report_described(&mut self, live: &'n JsonMap, desired: &'n JsonMap) -> Result<(), MalformedCrd> {
        let known = keywords::get(live, "properties").and_then(Json::map);
        let Some(Json::Map(properties)) = keywords::get(desired, "properties") else { return Ok(()) };
        for (name, child) in properties.iter() {
            // Every resource has these fields, and the API server knows them.
            if self.way.is_empty() && is_built_in(name) || known.is_some_and(|known| known.get(name).is_some()) {
                continue;
            }
            self.way.push(SchemaWalkStep::Property(name));
            let desired = self.schema(child, CrdSide::Desired)?;
            let place = self.place();
            let node = AddedNode { place: &place, name, desired };
            for rule in RULES {
                if let Judge::Added(judge) = rule.judge {
                    let changes = one_sided_changes(desired, CrdSide::Desired);
                    self.violations.push(violation(rule, &place, changes, judge(&node)));
                }
            }
            self.way.pop();
        }
        Ok(())
    }

    fn report_removed(&mut self, live: &JsonMap) {
        let place = self.place();
        let name = match self.way.last() {
            Some(SchemaWalkStep::Property(name)) => name,
            Some(SchemaWalkStep::AdditionalProperties) => "additionalProperties",
            Some(SchemaWalkStep::Items | SchemaWalkStep::ItemsAt(_)) | None => "items",
        };
        let node = RemovedNode { place: &place, name, live };
        for rule in RULES {
            if let Judge::Removed(judge) = rule.judge {
                self.violations.push(violation(rule, &place, one_sided_changes(live, CrdSide::Live), judge(&node)));
            }
        }
    }

    fn schema<'s, 'a>(&self, json: &'s Json<'a>, side: CrdSide) -> Result<&'s JsonMap<'a>, MalformedCrd> {
        json.map().ok_or_else(|| {
            let place = self.place();
            let fault =
                CrdReadErrorKind::NotASchema { field: place.field().to_owned(), version: place.version.clone() };
            MalformedCrd { side, error: CrdReadError { fault, at: place.steps } }
        })
    }

    fn place(&self) -> SchemaNodePlace {
        let mut path = String::from("^");
        let mut steps = steps::schema(self.index);
        for down in &self.way {
            match *down {
                SchemaWalkStep::Property(name) => {
                    path.push('.');
                    path.push_str(name);
                    steps.extend(["properties".into(), name.into()]);
                }
                SchemaWalkStep::Items => {
                    path.push_str(".items");
                    steps.push("items".into());
                }
                SchemaWalkStep::ItemsAt(i) => {
                    path.push_str(&format!(".items[{i}]"));
                    steps.extend(["items".into(), i.into()]);
                }
                SchemaWalkStep::AdditionalProperties => {
                    path.push_str(".additionalProperties");
                    steps.push("additionalProperties".into());
                }
            }
        }
        SchemaNodePlace { crd: self.crd.to_owned(), version: self.version.to_owned(), path, steps }
    }
}

/// Whether the nodes below are compared.
#[derive(PartialEq, Eq)]
enum ChildComparison {
    Open,
    Hidden,
}

/// The changes of a node, for the report.
fn keyword_changes(changes: &[KeywordDifference]) -> Vec<KeywordChange> {
    changes.iter().map(|change| KeywordChange::new(change.keyword, change.live, change.desired)).collect()
}

/// All keywords of a node that exists on one side only, as changes.
fn one_sided_changes(node: &JsonMap, side: CrdSide) -> Vec<KeywordChange> {
    let change = |keyword: &str, value| match side {
        CrdSide::Live => KeywordChange::new(keyword, Some(value), None::<&Json>),
        CrdSide::Desired => KeywordChange::new(keyword, None::<&Json>, Some(value)),
    };
    let compared = node.iter().filter(|(keyword, value)| is_compared(keyword, value));
    let mut changes: Vec<KeywordChange> = compared.map(|(keyword, value)| change(keyword, value)).collect();
    changes.sort_by(|a, b| a.keyword.cmp(&b.keyword));
    changes
}

fn violation(
    rule: &'static Rule,
    place: &SchemaNodePlace,
    changes: Vec<KeywordChange>,
    mut diagnosis: ViolationText,
) -> RuleViolation {
    diagnosis.body.schema_changes = changes;
    let node = steps::below_schema(&place.steps).unwrap_or_default().to_vec();
    RuleViolation { rule, version: Some(place.version.clone()), path: Some(place.path.clone()), node, diagnosis }
}

/// The keywords of a node itself whose meaning differs between the sides, sorted.
pub(super) fn changes<'n, 'a>(live: &'n JsonMap<'a>, desired: &'n JsonMap<'a>) -> Vec<KeywordDifference<'n, 'a>> {
    let mut changes: Vec<KeywordDifference> = Vec::new();
    for (keyword, live, desired) in live.side_by_side(desired) {
        // Most keywords do not change. This is also true of their meaning, whatever it is.
        if let (Some(live), Some(desired)) = (live, desired)
            && live.is_same_scalar(desired)
        {
            continue;
        }
        let filled = |value: Option<&'n Json<'a>>| value.filter(|value| is_compared(keyword, value));
        let change = KeywordDifference { keyword, live: filled(live), desired: filled(desired) };
        // Keywords that are walked are not compared here, or every level would compare everything below it again.
        if (change.live.is_some() || change.desired.is_some()) && !is_walked(&change) && !is_same(&change) {
            changes.push(change);
        }
    }
    changes
}

/// Whether a rule other than [`UNKNOWN_CHANGE`] is responsible for this transition.
fn is_claimed(keyword: &str, transition: Transition) -> bool {
    RULES
        .iter()
        .filter(|rule| rule.doc.name != UNKNOWN_CHANGE)
        .flat_map(|rule| rule.claims)
        .any(|claim| claim.keyword == keyword && claim.on.contains(&transition))
}

fn is_same(change: &KeywordDifference) -> bool {
    schema::is_same_keyword(change.keyword, change.live, change.desired, Sense::Everything)
}

pub(super) fn is_compared(keyword: &str, value: &Json) -> bool {
    !keywords::is_waived(keyword) && !keywords::is_dropped(keyword, value)
}

/// Whether [`SchemaWalk::children`] reports everything about this change.
fn is_walked(change: &KeywordDifference) -> bool {
    match (change.keyword, change.live, change.desired) {
        // A new field has no live side to pair it with, and does not change the existing fields.
        ("properties", ..)
        | ("items" | "additionalProperties", Some(Json::Map(_)), None | Some(Json::Map(_)))
        | ("additionalProperties", Some(Json::Map(_)), Some(Json::Bool(false))) => true,
        ("items", Some(Json::List(live)), Some(Json::List(desired))) => live.len() >= desired.len(),
        _ => false,
    }
}

fn misfit<'n>(change: &KeywordDifference<'n, '_>) -> Option<(CrdSide, &'n Json<'n>)> {
    let unfit = |value: Option<&'n Json<'n>>| value.filter(|value| !keywords::fits(change.keyword, value));
    unfit(change.desired)
        .map(|value| (CrdSide::Desired, value))
        .or(unfit(change.live).map(|value| (CrdSide::Live, value)))
}
