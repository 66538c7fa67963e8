//! Values of custom resources that are lost between versions where no webhook converts: the server stores an object at
//! the storage version, reads it at the version of each request, and prunes it both times.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::{CrdWithOrigin, ManifestRefusals, ValidationJob};
use crate::objects::place;
use crate::rule::RuleDoc;
use crate::{Context, CouldNotCheck, Violation};
use gantry_cluster::ObjectToRead;
use gantry_core::crd::lost_fields;
use gantry_core::crd::{ConversionStrategy, Crd, CrdVersion};
use gantry_core::merge;
use gantry_core::resource::Step;
use gantry_deploy::plan::Change;
use gantry_k8s_cel::re2::Patterns;
use gantry_schema::{PrunedField, Schema};

/// A value that is lost although the server accepts the manifest.
#[derive(Debug)]
pub struct LostValue {
    /// The index of the change in the plan.
    change: usize,
    version: String,
    /// The field, for example `spec.list[*].x`.
    path: String,
    message: String,
    help: String,
    /// The place in the manifest.
    at: Vec<Step>,
    label: String,
}

impl LostValue {
    /// The lost value as a violation of a rule.
    pub fn into_violation(self, doc: &RuleDoc) -> Violation {
        Violation::new(doc, self.change, Some(self.version), self.message, self.help, self.at)
            .path(self.path)
            .label(self.label)
    }
}

/// What the other versions of a CRD do to an object that is written at one of them.
pub(super) struct OtherVersions {
    storage: Structure,
    /// The other versions at which a write drops, from now on, what the storage version keeps.
    narrower: Vec<Narrower>,
}

/// A served version that lacks fields of the storage version.
struct Narrower {
    version: Structure,
    /// The storage version and this one in the live CRD, if it serves this one and no webhook converts.
    live: Option<[Structure; 2]>,
}

impl Narrower {
    /// What a write at the version drops of an object in storage, and does not drop with the live CRD.
    fn drop_from(&self, stored: &Value) -> Vec<PrunedField> {
        let mut dropped = self.version.drop_from(&mut stored.clone());
        if let Some([storage, version]) = &self.live {
            let mut object = stored.clone();
            storage.drop_from(&mut object);
            let known = version.drop_from(&mut object);
            dropped.retain(|lost| !known.iter().any(|known| known.at == lost.at));
        }
        dropped
    }
}

/// A version that only prunes and fills in defaults.
struct Structure {
    name: Arc<str>,
    schema: Schema,
}

impl Structure {
    /// `None` if its schema cannot be compiled, which is reported where objects are written at it.
    fn compile(version: &CrdVersion) -> Option<Self> {
        let schema = Schema::compile_structure(&version.schema_value().ok()?, &Patterns::default()).ok()?;
        Some(Structure { name: Arc::clone(&version.name), schema })
    }

    /// Prunes the object, and returns what it loses, one value for each place in the schema.
    fn drop_from(&self, object: &mut Value) -> Vec<PrunedField> {
        self.schema.fit_with_nulls(object).unwrap_or_default()
    }
}

impl OtherVersions {
    /// `live` is the live CRD if the deploy changes it.
    pub(super) fn compile(crd: &Crd, live: Option<&Crd>) -> Option<Self> {
        let narrower = |version: &CrdVersion| {
            let live = live?;
            let known = (!live.converts_by_webhook()).then_some(live);
            if lost_fields::newly_lost_by_writers(known, crd, version).is_empty() {
                return None;
            }
            let before = known.and_then(|live| Some([live.storage()?, live.served(&version.name)?]));
            let live =
                before.and_then(|[storage, before]| Some([Structure::compile(storage)?, Structure::compile(before)?]));
            Some(Narrower { version: Structure::compile(version)?, live })
        };
        let narrower = crd.served_versions().filter_map(narrower).collect();
        Some(OtherVersions { storage: Structure::compile(crd.storage()?)?, narrower })
    }
}

/// Reads the live objects that are written at a version which can lack some of their fields, at a version that has
/// them.
pub(super) async fn read_whole(
    context: &Context<'_>,
    definition: &CrdWithOrigin,
    objects: &[usize],
    found: &mut ManifestRefusals,
) -> BTreeMap<usize, Value> {
    let mut whole = BTreeMap::new();
    let is_converted = definition.conversion == ConversionStrategy::Webhook;
    let Some(live) = definition.live.as_deref().filter(|live| !is_converted && !live.converts_by_webhook()) else {
        return whole;
    };
    let mut wider: BTreeMap<&str, Option<&CrdVersion>> = BTreeMap::new();
    let mut wanted = Vec::new();
    for index in objects {
        let change = &context.plan.changes[*index];
        let Some(read) = change.live.as_ref().filter(|_| change.is_written() && change.action.applies()) else {
            continue;
        };
        let version = change.resource.version.as_str();
        let Some(wider) = *wider.entry(version).or_insert_with(|| wider_version(live, &definition.crd, version)) else {
            continue;
        };
        let read = read.raw.value();
        if read["apiVersion"] == live.api_version(&wider.name).as_str() {
            whole.insert(*index, read);
        } else if context.target.is_server() {
            wanted.push((*index, wanted_at(change, live, wider)));
        }
    }
    let (indices, wanted): (Vec<usize>, Vec<ObjectToRead>) = wanted.into_iter().unzip();
    if wanted.is_empty() {
        return whole;
    }
    match context.target.read(&wanted, &|_, _| ()).await {
        Ok(read) => {
            let read = indices.into_iter().zip(read);
            whole.extend(read.filter_map(|(index, live)| Some((index, live?.raw.value()))));
        }
        Err(error) => {
            for problem in error.problems() {
                let message = format!(
                    "whether custom resources of {} lose values at another version is unknown: {}",
                    definition.name, problem.message
                );
                found.not_answered(problem.needs_right, CouldNotCheck { message, help: problem.help.clone() });
            }
        }
    }
    whole
}

/// The version, best the storage version, at which the server shows fields that a write at `version` drops.
fn wider_version<'c>(live: &'c Crd, desired: &Crd, version: &str) -> Option<&'c CrdVersion> {
    let written = desired.version(version).filter(|version| !version.storage)?;
    let mut served: Vec<&CrdVersion> = live.served_versions().filter(|other| *other.name != *version).collect();
    served.sort_by_key(|version| !version.storage);
    served.into_iter().find(|other| !lost_fields::lost_between(other, written).is_empty())
}

fn wanted_at(change: &Change, live: &Crd, version: &CrdVersion) -> ObjectToRead {
    let mut object = change.desired.object.as_ref().clone();
    object.api_version = live.api_version(&version.name);
    ObjectToRead { resource: Arc::new(live.resource(&version.name)), object: Arc::new(object) }
}

impl ValidationJob {
    /// The values that are lost when the manifest is written, or with the next write at another version.
    pub(super) fn lost_values(&self, manifest: &Value) -> Vec<LostValue> {
        if self.definition.conversion == ConversionStrategy::Webhook {
            return Vec::new();
        }
        let Some(others) = self.definition.other_versions() else { return Vec::new() };
        let mut object = merge::intent(manifest.clone(), self.version.status_subresource);
        if self.version.schema.fit(&mut object).is_err() {
            return Vec::new();
        }
        let mut lost = Vec::new();
        let (version, storage) = (&self.version.name, &others.storage.name);
        if storage != version {
            let dropped = others.storage.drop_from(&mut object);
            lost.extend(self.once_each(&dropped, |field| {
                (
                    format!(
                        "{field} is lost when it is written at {version}: {} stores every object at {storage}, which does \
                         not have it",
                        self.definition.whose
                    ),
                    format!("add {field} to {storage} as well, or convert with a webhook; until then leave it out"),
                    format!("{storage}, the storage version, does not have it"),
                )
            }));
        }
        for narrower in others.narrower.iter().filter(|narrower| narrower.version.name != *version) {
            let (dropped, at) = (narrower.drop_from(&object), &narrower.version.name);
            lost.extend(self.once_each(&dropped, |field| {
                (
                    format!(
                        "{field} is lost with the next write of this object at {at}, even of a label: {at} does not have \
                         it, and the storage version {storage} has it"
                    ),
                    format!("add {field} to {at} as well, convert with a webhook, or stop serving {at}"),
                    format!("{at}, which is served too, does not have it"),
                )
            }));
        }
        lost.extend(self.lost_from_live(&others.storage));
        lost
    }

    /// What the live object loses because the version of the manifest lacks it.
    fn lost_from_live(&self, storage: &Structure) -> Vec<LostValue> {
        let Some(live) = self.definition.whole.get(&self.index) else { return Vec::new() };
        let mut after = live.clone();
        let Ok(mut dropped) = self.version.schema.fit_with_nulls(&mut after) else { return Vec::new() };
        // A default that is filled in again is not lost.
        if storage.schema.prepare_stored(&mut after).is_ok() {
            dropped.retain(|lost| place::value_at(&after, &lost.at) != Some(&lost.value));
        }
        // What the new storage version lacks is reported about the CRD.
        let kept: Vec<String> = storage.drop_from(&mut live.clone()).into_iter().map(|lost| lost.path).collect();
        dropped.retain(|lost| !kept.contains(&lost.path));
        let (version, to) = (&self.version.name, &storage.name);
        let mut lost = self.once_each(&dropped, |field| {
            (
                format!("the live object loses {field} when this manifest is written: {version} does not have it"),
                format!(
                    "write the manifest at {to}, which has it: apiVersion: {}",
                    self.definition.crd.api_version(to)
                ),
                format!("{version} does not have {field}, which the live object has"),
            )
        });
        for lost in &mut lost {
            lost.at = vec!["apiVersion".into()];
        }
        lost
    }

    /// The lost values, one for each place in the schema, with message, help and label.
    fn once_each(&self, lost: &[PrunedField], words: impl Fn(&str) -> (String, String, String)) -> Vec<LostValue> {
        let mut found: Vec<LostValue> = Vec::new();
        for lost in lost {
            let place = place::find_place(&lost.at, &self.version.raw);
            if found.iter().any(|found| found.path == place.pattern) {
                continue;
            }
            let (message, help, label) = words(&place.pattern);
            found.push(LostValue {
                change: self.index,
                version: self.version.name.to_string(),
                path: place.pattern,
                message,
                help,
                at: place.steps,
                label,
            });
        }
        found
    }
}
