//! Finds the resource of each kind of the manifests. CRDs are known, kinds that CRDs of the manifests define are read
//! from those, and only the others are looked up in the target's discovery.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Change, Unplaced};
use gantry_cluster::{Discovered, Gvk, ObjectToRead, Target};
use gantry_core::crd::{Crd, CrdReadError};
use gantry_core::manifest::Manifest;
use gantry_core::problem::{Error, Location, Problem, Result, did_you_mean};
pub use gantry_core::resource::is_built_in;
use gantry_core::resource::{ObjectRef, RawObject, Resource};
use gantry_olm::cluster_extension;

/// Where one kind is served, and where its live objects can be read.
#[derive(Debug, Clone)]
pub(super) struct ServedKind {
    pub resource: Arc<Resource>,
    /// The resource to read live objects at; `None` if the kind is not served yet, so that there are none.
    pub read_as: Option<Arc<Resource>>,
}

impl ServedKind {
    pub fn object_to_read(&self, object: &Arc<ObjectRef>) -> Option<ObjectToRead> {
        self.read_as.as_ref().map(|resource| ObjectToRead { resource: resource.clone(), object: object.clone() })
    }
}

/// Every kind of the manifests, as far as it was found.
pub(super) struct ManifestKinds {
    found: BTreeMap<Gvk, ServedKind>,
    /// Why some kinds are unknown. Kinds that are in neither map are not served.
    unanswered: BTreeMap<Gvk, Problem>,
    /// Kinds that are served but do not support patch, with the verbs that they support.
    unwritable: BTreeMap<Gvk, Vec<String>>,
    /// What the CRDs of the manifests say about a kind of a group.
    defined: BTreeMap<(String, String), ManifestCrd>,
}

/// A CRD of the manifests.
struct ManifestCrd {
    at: Location,
    /// The served versions.
    ///
    /// # Errors
    /// The CRD cannot be read.
    served: std::result::Result<Vec<String>, CrdReadError>,
}

fn gvk_of(object: &ObjectRef) -> Gvk {
    Gvk { group: object.group().into(), version: object.version().into(), kind: object.kind.clone() }
}

fn gvk_of_resource(resource: &Resource) -> Gvk {
    Gvk { group: resource.group.clone(), version: resource.version.clone(), kind: resource.kind.clone() }
}

/// Looks up the kinds of `others` in discovery that none of the CRDs can define, so that this need not wait until the
/// live CRDs are read. A CRD is named after its group.
pub(super) async fn look_ahead(crds: &[Manifest], others: &[Manifest], target: &Target) -> Result<KindsAhead> {
    let defined: BTreeSet<&str> = crds.iter().filter_map(|crd| Some(crd.object.name.split_once('.')?.1)).collect();
    let is_elsewhere = |gvk: &Gvk| !defined.contains(gvk.group.as_str());
    let asked: BTreeSet<Gvk> = others.iter().map(|manifest| gvk_of(&manifest.object)).filter(is_elsewhere).collect();
    let found = match asked.is_empty() {
        true => Discovered::default(),
        false => target.discover(&asked).await?,
    };
    Ok(KindsAhead { asked, found })
}

/// The kinds that were looked up ahead, and the answer.
#[derive(Default)]
pub(super) struct KindsAhead {
    asked: BTreeSet<Gvk>,
    found: Discovered,
}

/// Finds every kind of `others`.
pub(super) async fn resolve(
    crds: &[Change],
    others: &[Manifest],
    ahead: KindsAhead,
    target: &Target,
) -> Result<ManifestKinds> {
    let mut needed: BTreeSet<Gvk> = others.iter().map(|manifest| gvk_of(&manifest.object)).collect();
    let mut kinds = BTreeMap::new();
    if needed.is_empty() {
        return Ok(ManifestKinds {
            found: kinds,
            unanswered: BTreeMap::new(),
            unwritable: BTreeMap::new(),
            defined: BTreeMap::new(),
        });
    }
    let mut of_crds = BTreeMap::new();
    for change in crds {
        of_crds.extend(defined(change));
        let Some((sides, desired)) = change.crd().and_then(|sides| Some((sides, sides.defined()?))) else { continue };
        let live_served: Vec<Resource> = sides.readable_live().into_iter().flat_map(|live| live.resources()).collect();
        for resource in desired.resources() {
            let gvk = gvk_of_resource(&resource);
            if needed.remove(&gvk) {
                let same = live_served.iter().find(|live| live.version == resource.version);
                let mut read_as = same.or(live_served.first()).cloned();
                if change.unread.is_some() {
                    // It may not be served; then there are no live objects.
                    read_as = Some(resource.clone());
                }
                kinds.insert(gvk, ServedKind { resource: resource.into(), read_as: read_as.map(Arc::new) });
            }
        }
    }
    let KindsAhead { asked, found } = ahead;
    let (known, unknown): (BTreeSet<Gvk>, BTreeSet<Gvk>) = needed.into_iter().partition(|gvk| asked.contains(gvk));
    let Discovered { mut served, mut unanswered, mut unwritable } = found;
    served.retain(|gvk, _| known.contains(gvk));
    unanswered.retain(|gvk, _| known.contains(gvk));
    unwritable.retain(|gvk, _| known.contains(gvk));
    if !unknown.is_empty() {
        let found = target.discover(&unknown).await?;
        served.extend(found.served);
        unanswered.extend(found.unanswered);
        unwritable.extend(found.unwritable);
    }
    for (gvk, resource) in served.into_iter().filter(|(gvk, _)| !unwritable.contains_key(gvk)) {
        let resource = Arc::new(resource);
        kinds.insert(gvk, ServedKind { read_as: Some(resource.clone()), resource });
    }
    Ok(ManifestKinds { found: kinds, unanswered, unwritable, defined: of_crds })
}

/// The group and kind that a CRD of the manifests defines, also if the CRD is not complete.
fn defined(change: &Change) -> Option<((String, String), ManifestCrd)> {
    let at = change.desired.origin.location();
    match change.crd()?.desired_at_any_version() {
        Ok(crd) => {
            let served = crd.resources().map(|resource| resource.version).collect();
            Some(((crd.group.clone(), crd.names.kind.clone()), ManifestCrd { at, served: Ok(served) }))
        }
        Err(unreadable) => {
            let crd = change.desired.raw.value();
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let of = (text(&crd["spec"]["group"])?, text(&crd["spec"]["names"]["kind"])?);
            Some((of, ManifestCrd { at, served: Err(unreadable.clone()) }))
        }
    }
}

/// The manifests whose kind is known, with that kind, and the others.
pub(super) struct PlacedManifests<'k> {
    pub manifests: Vec<Manifest>,
    /// The kind of each.
    pub kinds: Vec<&'k ServedKind>,
    pub unplaced: Vec<Unplaced>,
}

/// Finds the kind of every manifest, and fills in the namespace of namespaced ones.
pub(super) fn place<'k>(
    mut manifests: Vec<Manifest>,
    kinds: &'k ManifestKinds,
    namespace: &str,
) -> Result<PlacedManifests<'k>> {
    let is_unknown = |manifest: &mut Manifest| !kinds.found.contains_key(&gvk_of(&manifest.object));
    let unplaced = manifests.extract_if(.., is_unknown).map(|manifest| kinds.unplaced(manifest)).collect();
    let mut of = Vec::with_capacity(manifests.len());
    for manifest in &mut manifests {
        let kind = &kinds.found[&gvk_of(&manifest.object)];
        let fits = kind.resource.namespaced == manifest.object.namespace.is_some();
        if !fits {
            let given = kind.resource.namespaced.then(|| namespace.to_owned());
            Arc::make_mut(&mut manifest.object).namespace = given;
        }
        of.push(kind);
    }
    match duplicates(&manifests) {
        Some(error) => Err(error),
        None => Ok(PlacedManifests { manifests, kinds: of, unplaced }),
    }
}

fn not_written(manifest: &Manifest, verbs: &[String]) -> Problem {
    let object = &manifest.object;
    Problem::new(format!(
        "{} of {} cannot be applied: the API does not support patch (only {})",
        object.kind,
        object.api_version,
        gantry_core::text::sanitize(&verbs.join(", "))
    ))
    .at(manifest.origin.location())
    .help("remove it from the manifests: this is a request-only API (a review), not a stored object")
}

fn not_served(manifest: &Manifest, kinds: &ManifestKinds) -> Problem {
    let object = &manifest.object;
    let problem = Problem::new(format!(
        "no kind {:?} in {:?} is served by the target or defined by the manifests",
        object.kind, object.api_version
    ))
    .at(manifest.origin.location());
    if let Some(ManifestCrd { at, served }) = kinds.defined.get(&(object.group().to_owned(), object.kind.clone())) {
        return problem.help(match served {
            Ok(served) => format!("the CRD at {at} serves {}: write the object at one of these", served.join(", ")),
            Err(unreadable) => {
                format!("complete the CRD at {at}, so that gantry knows where the kind is served: {unreadable}")
            }
        });
    }
    let near = did_you_mean(&object.kind, kinds.found.keys().map(|gvk| gvk.kind.as_str()));
    match near {
        Some(near) if near != object.kind => problem.help(format!("did you mean {near:?}?")),
        _ => problem.help("check apiVersion and kind, or add the CRD that defines it to the manifests"),
    }
}

/// Names where the target serves these kinds instead: at other versions of the group, or, for kinds of Kubernetes, in
/// another group.
pub(super) async fn name_served_versions(unplaced: &mut [Unplaced], kinds: &ManifestKinds, target: &Target) {
    let is_unknown = |unplaced: &&mut Unplaced| {
        let object = &unplaced.manifest.object;
        let is_defined = kinds.defined.contains_key(&(object.group().to_owned(), object.kind.clone()));
        !unplaced.is_down && !unplaced.is_unwritable && !is_defined
    };
    let unknown: Vec<&mut Unplaced> = unplaced.iter_mut().filter(is_unknown).collect();
    // Without an answer, the help is a more general one.
    let served = if unknown.is_empty() { Vec::new() } else { target.served().await.unwrap_or_default() };
    for unplaced in unknown {
        let object = &unplaced.manifest.object;
        let of_kind =
            || served.iter().filter(|resource| resource.kind == object.kind && !resource.plural.contains('/'));
        let mut at: Vec<String> =
            of_kind().filter(|resource| resource.group == object.group()).map(Resource::api_version).collect();
        if at.is_empty() && is_built_in(object.group()) {
            at = of_kind().filter(|resource| is_built_in(&resource.group)).map(Resource::api_version).collect();
        }
        at.dedup();
        if !at.is_empty() {
            let moved = cluster_extension::moved_fields(object).map_or_else(
                || format!("see kubectl explain {} for fields that differ there", object.kind.to_lowercase()),
                str::to_owned,
            );
            let help =
                format!("the target serves {} at {}: change apiVersion, and {moved}", object.kind, at.join(" and "));
            unplaced.problem.help = Some(gantry_core::text::sanitize(&help).into_owned());
        }
    }
}

impl ManifestKinds {
    /// A manifest of a kind that was not found.
    fn unplaced(&self, manifest: Manifest) -> Unplaced {
        let gvk = gvk_of(&manifest.object);
        let (unanswered, verbs) = (self.unanswered.get(&gvk).cloned(), self.unwritable.get(&gvk));
        let (is_down, is_unwritable) = (unanswered.is_some(), verbs.is_some());
        let problem =
            unanswered.or_else(|| Some(not_written(&manifest, verbs?))).unwrap_or_else(|| not_served(&manifest, self));
        Unplaced { manifest, problem, is_down, is_unwritable }
    }

    /// The structural schema of each custom kind that has live objects in the plan, for its defaults. Without the
    /// right to read a CRD its kind is missing: the plan may then have `update` instead of `unchanged`.
    pub async fn schemas(&self, changes: &[Change], target: &Target) -> BTreeMap<Resource, RawObject> {
        let mut schemas = BTreeMap::new();
        let mut missing: BTreeMap<String, Vec<Resource>> = BTreeMap::new();
        for change in changes.iter().filter(|change| change.live.is_some() && !change.desired.object.is_crd()) {
            let resource = &*change.resource;
            if !is_built_in(&resource.group) && !schemas.contains_key(resource) {
                let name = format!("{}.{}", resource.plural, resource.group);
                let of_plan = changes.iter().find(|c| c.desired.object.is_crd() && c.desired.object.name == name);
                match of_plan.filter(|crd| crd.live.is_some()) {
                    Some(crd) => {
                        let live = crd.crd().and_then(|sides| sides.readable_live());
                        let schema = live.and_then(|live| schema_of(live, resource));
                        schemas.extend(schema.map(|schema| (resource.clone(), RawObject::new(schema))));
                    }
                    None => {
                        let waiting = missing.entry(name).or_default();
                        if !waiting.contains(resource) {
                            waiting.push(resource.clone());
                        }
                    }
                }
            }
        }
        let wanted: Vec<ObjectToRead> = missing.keys().map(|name| ObjectToRead::crd(name)).collect();
        let live = target.read(&wanted, &|_, _| ()).await.unwrap_or_default();
        for ((_, resources), live) in missing.iter().zip(live) {
            let Some(crd) = live.and_then(|live| Crd::read(&live.raw).ok()) else { continue };
            for resource in resources {
                let schema = schema_of(&crd, resource);
                schemas.extend(schema.map(|schema| (resource.clone(), RawObject::new(schema))));
            }
        }
        schemas
    }
}

/// The schema of one version of a CRD.
pub(super) fn schema_of<'c>(crd: &'c Crd, resource: &Resource) -> Option<&'c str> {
    crd.version(&resource.version)?.schema()
}

/// Manifests that are the same object once namespaces are filled in.
fn duplicates(placed: &[Manifest]) -> Option<Error> {
    let mut seen = BTreeMap::new();
    let mut problems = Vec::new();
    for manifest in placed {
        let identity = manifest.object.identity();
        if let Some(first) = seen.insert(identity, &manifest.origin) {
            problems.push(
                Problem::new(format!("{} is defined twice", manifest.object))
                    .at(manifest.origin.location())
                    .help(format!("it is also defined at {}; keep one of them", first.location())),
            );
        }
    }
    (!problems.is_empty()).then_some(Error::Failed(problems))
}
