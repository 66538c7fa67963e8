//! Objects that Helm has written, itself or as a part of OLM: what the release that is installed says of them, and so what
//! Helm changes.
//!
//! Helm compares the new manifests with those of the release. What these had and the new ones lack is removed, whoever
//! wrote it since. Without the record, the fields that Helm's field manager owns stand in for it: see
//! [`gantry_cluster::FormerTools::AsHelm`].

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use super::bundles::BundleWriter;
use super::planned_bundle::PlannedBundle;
use super::published::Published;
use super::{Action, Change, doubtful};
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{DRY_RUNS_IN_FLIGHT, HelmRelease, HelmUpgrade, OLM_NAMESPACES, Target};
use gantry_core::problem::Problem;
use gantry_core::resource::{HELM_KEEP, HELM_NAMESPACE, HELM_RELEASE, MANAGED_BY, ObjectRef, Resource};
use gantry_core::text::sanitize;
use gantry_olm::cluster_extension::{KIND, OWNER_KIND, OWNER_NAME};

/// The annotations with which OLM's Helm names the ClusterExtension of objects that outlive it.
const OWNER_ANNOTATIONS: [&str; 2] = ["operator-sdk/primary-resource", "operator-sdk/primary-resource-type"];

/// Finds out what Helm makes of each object of the bundles that it has written. Returns the releases, and notices.
pub(super) async fn find_upgrades(
    changes: &mut [Change],
    bundles: &[PlannedBundle],
    target: &Target,
) -> (Vec<InstalledRelease>, Vec<Problem>) {
    let (mut releases, mut notices) = (Vec::new(), Vec::new());
    let Some(server) = target.as_server() else { return (releases, notices) };
    for (index, bundle) in bundles.iter().enumerate() {
        let mut of_bundle: Vec<&mut Change> =
            changes.iter_mut().filter(|change| change.desired.bundle == Some(index)).collect();
        let Some(name) = release_name(bundle, &of_bundle) else { continue };
        match InstalledRelease::read(&name, server).await {
            Ok(Some(release)) => {
                of_bundle.iter_mut().for_each(|change| release.find_upgrade(change));
                releases.push(release);
            }
            // Somebody may have removed what marks the objects of Helm.
            _ if !of_bundle.iter().any(|change| is_marked(change)) => {}
            Ok(None) => {
                let why = format!("there is none in {}", OLM_NAMESPACES.join(" or "));
                notices.push(without_record(&name, &why));
            }
            Err(problem) => notices.push(without_record(&name, &problem.message)),
        }
    }
    (releases, notices)
}

fn without_record(name: &str, why: &str) -> Problem {
    let name = sanitize(name);
    let message = format!(
        "the record of the Helm release {name} cannot be read, so what OLM removes is judged by the fields that it wrote: \
         {why}"
    );
    Problem::new(message).help("grant the right to list and get Secrets in the namespace of operator-controller")
}

/// The name of the release of a bundle, if Helm has written any of its objects: that of its ClusterExtension.
fn release_name(bundle: &PlannedBundle, changes: &[&mut Change]) -> Option<String> {
    let is_written = |change: &&mut Change| {
        let is_boxcutter = change.bundle_writer.as_ref().is_some_and(BundleWriter::is_boxcutter);
        !is_boxcutter && change.live.as_ref().is_some_and(|live| BundleWriter::may_be_helm(&live.raw))
    };
    let marked = changes.iter().find(|change| is_marked(change));
    if marked.is_none() && !changes.iter().any(is_written) {
        return None;
    }
    let named = || marks(&marked?.live.as_ref()?.raw.value(), HELM_RELEASE).map(str::to_owned);
    bundle.extension().map(|extension| extension.name.clone()).or_else(named)
}

fn is_marked(change: &Change) -> bool {
    matches!(change.bundle_writer, Some(BundleWriter::Helm(_)))
}

fn marks<'v>(object: &'v Value, annotation: &str) -> Option<&'v str> {
    object["metadata"]["annotations"][annotation].as_str()
}

/// Finds out what Helm makes of each object of this release, which it upgrades itself.
///
/// # Errors
/// The manifests of the release cannot be read.
pub(super) fn find_upgrades_of(release: &HelmRelease, changes: &mut [Change]) -> Result<(), Problem> {
    let release = InstalledRelease::of_record(release.name(), release, false)?;
    changes.iter_mut().for_each(|change| release.find_upgrade(change));
    Ok(())
}

/// Group, kind, namespace and name: the version is none of what Helm tells objects apart by.
type RecordedPlace = (String, String, Option<String>, String);

/// A release that is installed.
pub(super) struct InstalledRelease {
    name: String,
    /// Whether OLM has installed it.
    is_of_olm: bool,
    namespace: String,
    objects: BTreeMap<RecordedPlace, Value>,
    /// The owner reference that OLM gives to its objects.
    owner: Option<Value>,
}

impl InstalledRelease {
    async fn read(name: &str, server: &KubeTarget) -> Result<Option<Self>, Problem> {
        let release = HelmRelease::of_extension(name, server).await?;
        release.map(|release| Self::of_record(name, &release, true)).transpose()
    }

    fn of_record(name: &str, release: &HelmRelease, is_of_olm: bool) -> Result<Self, Problem> {
        let mut objects = BTreeMap::new();
        let mut owner = None;
        for object in release.objects()? {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
            let version = text("/apiVersion").unwrap_or_default();
            let group = version.split_once('/').map_or("", |(group, _)| group).to_owned();
            let name = text("/metadata/name").unwrap_or_default();
            let references = object["metadata"]["ownerReferences"].as_array();
            let of_extension = references.into_iter().flatten().find(|reference| reference["kind"] == KIND);
            owner = owner.or_else(|| of_extension.cloned());
            let place = (group, text("/kind").unwrap_or_default(), text("/metadata/namespace"), name);
            // Helm takes the first of two.
            objects.entry(place).or_insert(object);
        }
        let (name, namespace) = (name.to_owned(), release.namespace.clone());
        Ok(InstalledRelease { name, is_of_olm, namespace, objects, owner })
    }

    /// The objects in its manifests.
    pub(super) fn objects(&self) -> impl Iterator<Item = ObjectRef> {
        let object = |(place, object): (&RecordedPlace, &Value)| {
            let (_, kind, namespace, name) = place.clone();
            let api_version = object["apiVersion"].as_str()?.to_owned();
            let namespace = namespace.or_else(|| Some(self.namespace.clone()));
            Some(ObjectRef { api_version, kind, namespace, name })
        };
        self.objects.iter().filter_map(object)
    }

    fn find_upgrade(&self, change: &mut Change) {
        if change.bundle_writer.as_ref().is_some_and(BundleWriter::is_boxcutter) {
            return;
        }
        let Some(live) = &change.live else { return };
        let former = self.former(change, &change.resource);
        let live = live.raw.value();
        let is_adopted =
            marks(&live, HELM_RELEASE) == Some(&self.name) && marks(&live, HELM_NAMESPACE) == Some(&self.namespace);
        if former.is_none() && !is_adopted {
            return;
        }
        let new = self.as_helm_writes(change, former);
        // For an object that it adopts, Helm compares the new manifest with itself.
        let former = former.cloned().unwrap_or_else(|| new.clone());
        change.helm = Some(Arc::new(HelmUpgrade { former, new }));
        if self.is_of_olm && !matches!(change.bundle_writer, Some(BundleWriter::Helm(_))) {
            change.bundle_writer = Some(BundleWriter::of_operator_controller());
        }
    }

    /// The object in the manifests of the release.
    fn former(&self, change: &Change, resource: &Resource) -> Option<&Value> {
        let object = &change.desired.object;
        let namespace = object.namespace.clone().filter(|_| resource.namespaced);
        let place = |namespace| (object.group().to_owned(), object.kind.clone(), namespace, object.name.clone());
        let is_default = namespace.as_deref() == Some(&self.namespace);
        let without = || self.objects.get(&place(None)).filter(|_| is_default);
        self.objects.get(&place(namespace.clone())).or_else(without)
    }

    /// The manifest with what Helm and OLM add to it.
    fn as_helm_writes(&self, change: &Change, former: Option<&Value>) -> Value {
        let mut new = change.desired_value();
        let Some(metadata) = new["metadata"].as_object_mut() else { return new };
        let mut put = |field: &str, key: &str, text: &str| {
            let map = metadata.entry(field).or_insert_with(|| json!({}));
            if !map.is_object() {
                *map = json!({});
            }
            map[key] = text.into();
        };
        put("labels", MANAGED_BY, "Helm");
        put("annotations", HELM_RELEASE, &self.name);
        put("annotations", HELM_NAMESPACE, &self.namespace);
        if !self.is_of_olm {
            return new;
        }
        // Without a ClusterExtension among the manifests, nothing else says whose the object is.
        for label in [OWNER_KIND, OWNER_NAME] {
            let known = former.and_then(|former| former["metadata"]["labels"][label].as_str());
            if let Some(known) = known.filter(|_| metadata["labels"].get(label).is_none()) {
                metadata["labels"][label] = known.into();
            }
        }
        if metadata["annotations"][HELM_KEEP.0] == HELM_KEEP.1 {
            let owner = [format!("/{}", self.name), format!("{KIND}.{}", gantry_olm::cluster_catalog::GROUP)];
            for (annotation, text) in OWNER_ANNOTATIONS.into_iter().zip(owner) {
                metadata["annotations"][annotation] = text.into();
            }
        } else if let Some(owner) = &self.owner {
            let references = metadata.entry("ownerReferences").or_insert_with(|| json!([]));
            if let Some(references) = references.as_array_mut() {
                references.push(owner.clone());
            }
        }
        new
    }
}

/// Decides which of these objects Helm changes. `asks` the server about a patch that may change nothing.
pub(super) async fn decide(changes: &mut [Change], target: &Target, field_manager: &str, asks: bool) {
    let Some(server) = target.as_server() else { return };
    let wanted: Vec<usize> = (0..changes.len()).filter(|index| changes[*index].helm.is_some()).collect();
    if wanted.is_empty() {
        return;
    }
    let decisions = {
        let changes = &*changes;
        let published = Published::read(wanted.iter().map(|index| &changes[*index]), target).await;
        let decision = |index: usize| {
            let (change, published) = (&changes[index], &published);
            async move { (index, action(change, published, server, field_manager, asks).await) }
        };
        let decisions = stream::iter(wanted.into_iter().map(decision)).buffered(DRY_RUNS_IN_FLIGHT);
        decisions.collect::<Vec<_>>().await
    };
    for (index, action) in decisions {
        match action {
            Some(action) if matches!(changes[index].action, Action::Update | Action::Unchanged) => {
                changes[index].action = action;
            }
            Some(_) => {}
            // Without the schema of the kind, the patch is unknown.
            None => changes[index].helm = None,
        }
    }
}

async fn action(
    change: &Change,
    published: &Published<'_>,
    server: &KubeTarget,
    field_manager: &str,
    asks: bool,
) -> Option<Action> {
    let (live, helm) = (&change.live.as_ref()?.raw, change.helm.as_ref()?);
    let is_same = match helm.patch(&live.value(), &change.resource, published.document(&change.resource))? {
        Err(_) => false,
        Ok(patch) if patch.is_empty() => true,
        Ok(patch) if patch.merged(&live.value()).is_some_and(|next| next == live.value()) => true,
        Ok(_) if asks => {
            let answer = server.dry_run(&change.request(&change.pin(), field_manager, true)).await;
            let is_same = answer.as_ref().is_ok_and(|answer| doubtful::is_same_content(answer, live));
            if !is_same {
                change.answer.keep(&answer);
            }
            is_same
        }
        Ok(_) => false,
    };
    Some(if is_same { Action::Unchanged } else { Action::Update })
}
