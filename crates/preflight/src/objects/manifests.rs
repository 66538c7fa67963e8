//! Validates the custom resources among the manifests against the CRD that will be in force when they are written: the
//! one among the manifests, otherwise the live one.

mod converted;
mod definition;
mod lost_values;
mod recorded;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub use self::lost_values::LostValue;

use self::definition::CrdWithOrigin;
use super::compiled::CompiledVersion;
use super::validator::is_notice;
use super::{cause, place};
use crate::rule::RuleDoc;
use crate::{CheckLookup, Context, CouldNotCheck, Violation};
use gantry_cluster::ObjectToRead;
use gantry_core::crd::{ConversionStrategy, Crd};
use gantry_core::finding::{Breaks, ServerRefusal};
use gantry_core::merge;
use gantry_core::parallel::{in_parallel, on_cpu_thread};
use gantry_core::problem::did_you_mean;
use gantry_core::resource::{RawObject, Resource, Step};
use gantry_deploy::plan::{Change, is_built_in};
use gantry_k8s_cel::{KubernetesRelease, gotext};
use gantry_schema::typed::{self, Duplicates, TypedValueError, UnreadableKind};
use gantry_schema::{FieldError, PrunedField};

/// Metadata that a manifest may set.
const METADATA: [&str; 7] =
    ["annotations", "finalizers", "generateName", "labels", "name", "namespace", "ownerReferences"];

/// The kind of fault in a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// The definition refuses the object.
    Refused,
    /// The definition does not describe a field.
    UnknownField,
}

impl Wrong {
    /// Who is affected.
    pub const fn breaks(self) -> &'static [Breaks] {
        match self {
            Wrong::Refused => &[Breaks::Writers],
            Wrong::UnknownField => &[Breaks::Writers, Breaks::Data],
        }
    }
}

/// A fault in one manifest.
#[derive(Debug)]
pub struct ManifestRefusal {
    /// The index of the change in the plan.
    pub change: usize,
    pub wrong: Wrong,
    pub version: String,
    /// The field, for example `spec.list[*].x`.
    pub path: Option<String>,
    pub message: String,
    /// The server's complaint about it.
    pub complaint: ServerRefusal,
    pub help: String,
    /// The place in the manifest.
    pub at: Vec<Step>,
    pub label: String,
}

impl ManifestRefusal {
    /// The fault as a violation of a rule.
    pub fn into_violation(self, doc: &RuleDoc) -> Violation {
        let mut violation = Violation::new(doc, self.change, Some(self.version), self.message, self.help, self.at);
        violation.body.complaint = Some(self.complaint);
        violation.body.breaks = self.wrong.breaks().to_vec();
        violation.path(self.path).label(self.label)
    }
}

/// The faults in the manifests, and what could not be checked.
#[derive(Default)]
pub struct ManifestRefusals {
    pub faults: Vec<ManifestRefusal>,
    /// Values that the server accepts and does not keep.
    pub lost: Vec<LostValue>,
    pub unchecked: Vec<CouldNotCheck>,
    /// What could not be checked because the user lacks a right.
    pub not_allowed: Vec<CouldNotCheck>,
}

impl ManifestRefusals {
    fn extend(&mut self, other: ManifestRefusals) {
        self.faults.extend(other.faults);
        self.lost.extend(other.lost);
        self.unchecked.extend(other.unchecked);
        self.not_allowed.extend(other.not_allowed);
    }
}

impl ManifestRefusals {
    /// Adds what could not be checked, because the user lacks a right or for another reason.
    fn not_answered(&mut self, needs_right: bool, error: CouldNotCheck) {
        match needs_right {
            true => self.not_allowed.push(error),
            false => self.unchecked.push(error),
        }
    }
}

/// The custom resources by the name of their CRD, as indices into the plan.
fn by_crd(changes: &[Change], is_wanted: &dyn Fn(usize) -> bool) -> BTreeMap<String, Vec<usize>> {
    let mut wanted: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, change) in changes.iter().enumerate() {
        if is_wanted(index) && !change.desired.object.is_crd() && !is_built_in(&change.resource.group) {
            wanted.entry(format!("{}.{}", change.resource.plural, change.resource.group)).or_default().push(index);
        }
    }
    wanted
}

/// The CRDs that [`check`] reads: those that are not among the manifests.
pub fn lookups(changes: &[Change], is_wanted: &dyn Fn(usize) -> bool) -> Vec<CheckLookup> {
    let is_among = |name: &String| changes.iter().any(|c| c.desired.object.is_crd() && c.desired.object.name == *name);
    let others = by_crd(changes, is_wanted).into_iter().filter(|(name, _)| !is_among(name));
    others.map(|(name, objects)| CheckLookup::get(objects[0], Resource::crd(), None, name)).collect()
}

/// Validates the custom resources of the plan for whose index `is_wanted` returns true.
pub async fn check_manifests(context: &Context<'_>, is_wanted: &(dyn Fn(usize) -> bool + Sync)) -> ManifestRefusals {
    let mut found = ManifestRefusals::default();
    let changes = &context.plan.changes;
    let mut wanted = by_crd(changes, is_wanted);
    let mut definitions: Vec<(CrdWithOrigin, Vec<usize>)> = Vec::new();
    for (change, sides) in changes.iter().filter_map(|change| Some((change, change.crd()?))) {
        let name = &change.desired.object.name;
        let Some(objects) = wanted.remove(name) else { continue };
        let live = sides.readable_live();
        match sides.desired() {
            Ok(crd) => {
                if let Some(error) = crd.lacks_schema(live.map(Arc::as_ref)) {
                    found.unchecked.push(CouldNotCheck {
                        message: format!("custom resources of {name} cannot be validated: its {error}"),
                        help: Some("the server refuses the CRD: give each version a structural schema".to_owned()),
                    });
                    continue;
                }
                let whose = "the CRD among the manifests";
                let mut definition = CrdWithOrigin::new(Arc::clone(crd), live.cloned(), whose, name.clone());
                definition.ask(context, &objects, &mut found).await;
                definitions.push((definition, objects));
            }
            Err(reason) => found.unchecked.push(CouldNotCheck {
                message: format!("custom resources of {name} cannot be validated: its manifest: {reason}"),
                help: Some("write the CRD as apiextensions.k8s.io/v1".into()),
            }),
        }
    }
    match live_crds(context, wanted.keys()).await {
        Ok(crds) => {
            for ((name, objects), raw) in wanted.into_iter().zip(crds) {
                // The kind belongs to an aggregated API, which validates its objects itself.
                let Some(raw) = raw else { continue };
                match Crd::read(&raw) {
                    Ok(crd) => {
                        let crd = Arc::new(crd);
                        let mut definition = CrdWithOrigin::new(Arc::clone(&crd), Some(crd), "the live CRD", name);
                        definition.ask(context, &objects, &mut found).await;
                        definitions.push((definition, objects));
                    }
                    Err(reason) => found.unchecked.push(CouldNotCheck {
                        message: format!("custom resources of {name} cannot be validated: the live CRD: {reason}"),
                        help: None,
                    }),
                }
            }
        }
        Err(not_read) => {
            for (needs_right, error) in not_read {
                found.not_answered(needs_right, error);
            }
        }
    }
    let work: Vec<DefinitionObjects> = definitions
        .into_iter()
        .map(|(definition, objects)| DefinitionObjects {
            definition: Arc::new(definition),
            objects: objects.into_iter().map(|index| (index, changes[index].clone())).collect(),
        })
        .collect();
    let (manager, redact) = (Arc::from(&*context.plan.policy.field_manager), context.redact);
    let release = context.plan.release();
    match on_cpu_thread(move || validate_all(work, &manager, redact, release)).await {
        Some(validated) => found.extend(validated),
        None => found
            .unchecked
            .push(CouldNotCheck { message: "interrupted while validating custom resources".into(), help: None }),
    }
    found
}

/// The custom resources of one definition, with their indices in the plan.
struct DefinitionObjects {
    definition: Arc<CrdWithOrigin>,
    objects: Vec<(usize, Change)>,
}

fn validate_all(
    work: Vec<DefinitionObjects>,
    manager: &Arc<str>,
    redact: bool,
    release: KubernetesRelease,
) -> ManifestRefusals {
    let mut found = ManifestRefusals::default();
    let mut jobs = Vec::new();
    for work in work {
        jobs.extend(by_version(work, manager, redact, release, &mut found));
    }
    jobs.sort_by_key(|job| job.index);
    in_parallel(&jobs, ValidationJob::run).into_iter().for_each(|validated| found.extend(validated));
    found
}

/// Compiles each version that manifests use, once. Manifests that cannot be validated further are added to `found`.
fn by_version(
    work: DefinitionObjects,
    manager: &Arc<str>,
    redact: bool,
    release: KubernetesRelease,
    found: &mut ManifestRefusals,
) -> Vec<ValidationJob> {
    let DefinitionObjects { definition, objects } = work;
    let mut versions: BTreeMap<String, Vec<(usize, Change)>> = BTreeMap::new();
    for (index, change) in objects {
        versions.entry(change.resource.version.clone()).or_default().push((index, change));
    }
    let mut jobs = Vec::new();
    for (name, objects) in versions {
        let Some(version) = definition.crd.served(&name) else {
            found.faults.extend(objects.iter().map(|(index, _)| unserved(&definition, &name, *index)));
            continue;
        };
        match CompiledVersion::compile(version, release) {
            Ok(compiled) => {
                let version = Arc::new(compiled);
                jobs.extend(objects.into_iter().map(|(index, change)| ValidationJob {
                    change,
                    index,
                    definition: Arc::clone(&definition),
                    version: Arc::clone(&version),
                    manager: Arc::clone(manager),
                    redact,
                }));
            }
            Err(reason) => found.unchecked.push(CouldNotCheck {
                message: format!(
                    "custom resources of {} cannot be validated: the schema of {name} in {}: {reason}",
                    definition.name, definition.whose
                ),
                help: Some("make it a structural schema: kubectl apply --dry-run=server shows what is wrong".into()),
            }),
        }
    }
    jobs
}

/// The fault of a manifest at a version that is not served when it is written.
fn unserved(definition: &CrdWithOrigin, version: &str, index: usize) -> ManifestRefusal {
    let served: Vec<&str> =
        definition.crd.versions.iter().filter(|version| version.served).map(|version| &*version.name).collect();
    let message = format!("{} does not serve {version}, so the server will not accept this object", definition.whose);
    let help = match served.as_slice() {
        [] => format!("serve a version of {}", definition.name),
        served => format!("change it to {}", served.join(" or ")),
    };
    ManifestRefusal {
        change: index,
        wrong: Wrong::Refused,
        version: version.to_owned(),
        path: None,
        complaint: ServerRefusal::Refused(message.clone()),
        message,
        help,
        at: vec!["apiVersion".into()],
        label: format!("{version} is no longer served once the CRD is written"),
    }
}

/// The live CRDs of these names. The errors say whether the user lacks a right.
async fn live_crds(
    context: &Context<'_>,
    names: impl Iterator<Item = &String>,
) -> Result<Vec<Option<RawObject>>, Vec<(bool, CouldNotCheck)>> {
    let wanted: Vec<ObjectToRead> = names.map(|name| ObjectToRead::crd(name)).collect();
    match context.target.read(&wanted, &|_, _| ()).await {
        Ok(live) => Ok(live.into_iter().map(|live| live.map(|live| live.raw)).collect()),
        Err(error) => Err(error
            .problems()
            .iter()
            .map(|problem| {
                let message = format!("custom resources cannot be validated without their CRDs: {}", problem.message);
                (problem.needs_right, CouldNotCheck { message, help: problem.help.clone() })
            })
            .collect()),
    }
}

/// The object that a server-side apply cannot parse.
#[derive(Clone, Copy)]
enum Whose {
    Manifest,
    Live,
}

struct ValidationJob {
    change: Change,
    /// The index of the change in the plan.
    index: usize,
    definition: Arc<CrdWithOrigin>,
    version: Arc<CompiledVersion>,
    /// The field manager of the deploy.
    manager: Arc<str>,
    redact: bool,
}

impl ValidationJob {
    fn run(&self) -> ManifestRefusals {
        let mut found = ManifestRefusals::default();
        let manifest = self.change.desired.raw.value();
        match self.version.schema.fit(&mut manifest.clone()) {
            Ok(pruned) => found.faults.extend(pruned.iter().map(|lost| self.unknown(lost))),
            Err(error) => {
                found.faults.push(self.refused(&error));
                return found;
            }
        }
        found.lost.extend(self.lost_values(&manifest));
        let old = self.old();
        let mut new = merge::intent(manifest.clone(), self.version.status_subresource);
        if let Some((raw, _)) = &old {
            new = merge::merge(raw, &new, &self.version.raw, &self.manager);
        }
        found.faults.extend(self.recorded(&new));
        if self.version.schema.prepare_applied(&mut new).is_err() {
            return found;
        }
        let outcome = self.version.schema.validate(&new, old.as_ref().map(|(_, old)| old));
        let errors: Vec<FieldError> = outcome.errors.into_iter().filter(|error| !is_notice(error)).collect();
        let mut reported: Vec<Vec<Step>> = errors.iter().map(|error| error.at.clone()).collect();
        // The server parses the manifest before it reads the live object, so ratcheting does not apply here.
        let unreadable = self.unreadable(&manifest, Duplicates::Refused, &reported);
        reported.extend(unreadable.iter().map(TypedValueError::steps));
        found.faults.extend(unreadable.iter().map(|unreadable| self.untyped(unreadable, Whose::Manifest)));
        found.faults.extend(errors.iter().map(|error| self.refused(error)));
        if let Some((live, _)) = &old {
            let unreadable = self.unreadable(live, Duplicates::Allowed, &reported);
            found.faults.extend(unreadable.iter().map(|unreadable| self.untyped(unreadable, Whose::Live)));
        }
        found.unchecked.extend(outcome.undecided.iter().map(|undecided| CouldNotCheck {
            message: format!(
                "{}: a rule for {} could not be evaluated: {}: {}",
                self.change.desired.object, undecided.path, undecided.rule, undecided.reason
            ),
            help: Some("check with a dry run on the server: kubectl apply --dry-run=server".into()),
        }));
        found
    }

    /// The live object at the version of the manifest, as stored and as read. `None` for a create, and if only a
    /// webhook can convert the object to that version. Then the manifest must be valid on its own.
    fn old(&self) -> Option<(Value, Value)> {
        let mut raw = self.change.live.as_ref()?.raw.value();
        let api_version = self.definition.crd.api_version(&self.version.name);
        if raw["apiVersion"] != api_version.as_str() {
            if self.definition.conversion == ConversionStrategy::Webhook {
                return None;
            }
            raw["apiVersion"] = api_version.into();
        }
        let mut old = raw.clone();
        let is_stored = self.definition.crd.storage().is_some_and(|storage| storage.name == self.version.name);
        let read = if is_stored {
            self.version.schema.prepare_stored(&mut old).map(drop)
        } else {
            self.version.schema.fit(&mut old).map(drop)
        };
        read.is_ok().then_some((raw, old))
    }

    fn refused(&self, error: &FieldError) -> ManifestRefusal {
        let place = place::find_place(&error.at, &self.version.raw);
        let words = cause::find_cause(error, &place, &self.version.raw).words;
        let reason = if self.redact { format!("{}: {words}", error.path) } else { error.to_string() };
        let message = format!("{} refuses it: {reason}", self.definition.whose);
        let help =
            format!("fix the manifest, or change the schema of {} in {}", self.version.name, self.definition.name);
        self.fault(Wrong::Refused, ServerRefusal::Refused(error.to_string()), message, help, &place, words)
    }

    /// The values that a server-side apply cannot parse, without those that are already reported, there or below.
    /// Unknown fields are left out: they are reported as such.
    fn unreadable(&self, object: &Value, duplicates: Duplicates, reported: &[Vec<Step>]) -> Vec<TypedValueError> {
        let is_reported = |steps: &[Step]| reported.iter().any(|reported| reported.starts_with(steps));
        let found = typed::unreadable(&self.version.raw, object, duplicates, self.version.schema.release()).into_iter();
        found.filter(|found| found.kind != UnreadableKind::Undeclared && !is_reported(&found.steps())).collect()
    }

    fn untyped(&self, unreadable: &TypedValueError, whose: Whose) -> ManifestRefusal {
        let place = place::find_place(&unreadable.at, &self.version.raw);
        let words = unreadable.words();
        let (says, help) = match whose {
            Whose::Manifest => (
                format!("{} refuses it: ", self.definition.whose),
                format!("fix the manifest, or change the schema of {} in {}", self.version.name, self.definition.name),
            ),
            // Other updates than an apply tolerate it.
            Whose::Live => (
                "server-side apply cannot parse the live object: ".to_owned(),
                format!(
                    "repair the live object first with another update than an apply: kubectl patch {} --type=merge -p PATCH",
                    self.change.desired.object.to_write()
                ),
            ),
        };
        let whole = format!("{}: {}", unreadable.path, gotext::without_types(&unreadable.message));
        let message = if self.redact { format!("{says}{}: {words}", place.pattern) } else { format!("{says}{whole}") };
        self.fault(Wrong::Refused, ServerRefusal::Refused(whole), message, help, &place, words.to_owned())
    }

    fn unknown(&self, lost: &PrunedField) -> ManifestRefusal {
        let path = lost.path.as_str();
        let place = place::find_place(&lost.at, &self.version.raw);
        let (name, parent) = match place.steps.split_last() {
            Some((Step::Key(name), parent)) => (name.as_str(), parent),
            _ => (path, &[][..]),
        };
        let near = did_you_mean(name, self.known(parent, path).iter().map(String::as_str)).map(str::to_owned);
        let near = near.filter(|near| near != name);
        let message =
            format!("unknown field {path:?}: {} does not have it in {}", self.definition.whose, self.version.name);
        let help = match &near {
            Some(near) => format!("did you mean {near:?}?"),
            None => "remove it, or add it to the CRD first".to_owned(),
        };
        let label = near.map_or_else(|| "unknown field".to_owned(), |near| format!("did you mean {near:?}?"));
        self.fault(Wrong::UnknownField, ServerRefusal::UnknownField, message, help, &place, label)
    }

    /// The fields that could be meant by an unknown field at `path`.
    fn known(&self, parent: &[Step], path: &str) -> Vec<String> {
        if path.starts_with("metadata.") && parent.len() == 1 {
            return METADATA.map(str::to_owned).to_vec();
        }
        let mut node = Some(&*self.version.raw);
        for step in parent {
            node = node.and_then(|node| match step {
                Step::Key(key) => node
                    .get("properties")
                    .and_then(|properties| properties.get(key))
                    .or_else(|| node.get("additionalProperties")),
                Step::Index(_) => node.get("items"),
            });
        }
        let properties = node.and_then(|node| node.get("properties")).and_then(Value::as_object);
        properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
    }

    fn fault(
        &self,
        wrong: Wrong,
        complaint: ServerRefusal,
        message: String,
        help: String,
        place: &place::ObjectPlace,
        label: String,
    ) -> ManifestRefusal {
        ManifestRefusal {
            change: self.index,
            wrong,
            version: self.version.name.to_string(),
            path: (!place.pattern.is_empty()).then(|| place.pattern.clone()),
            message,
            complaint,
            help,
            at: place.steps.clone(),
            label,
        }
    }
}
