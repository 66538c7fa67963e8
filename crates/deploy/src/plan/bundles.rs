//! Bundles in a plan: checks validate the objects that OLM would write, but a deploy does not write them.
//!
//! The package of a bundle determines which ClusterExtension installs it. That determines the namespace of the objects,
//! and whether OLM checks the CRDs when it upgrades them.

use std::collections::{BTreeMap, BTreeSet};

use gantry_catalog::render::{self, RenderedConversion};
use serde_json::Value;

use super::certificates::{CERT_MANAGER, WebhookCertificates};
use super::planned_bundle::{Installer, PlannedBundle};
use super::rendered;
use super::{Change, Crds, Plan, Unplaced};
use gantry_cluster::Target;
use gantry_core::managed_fields::{ManagerEntry, ManagerOperation};
use gantry_core::manifest::{self, Manifest};
use gantry_core::merge;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::{HELM_RELEASE, RawObject, Resource};
use gantry_olm::cluster_extension::{self, LiveExtension, is_one};

/// The bundles of a plan.
#[derive(Default)]
pub(super) struct OpenedBundles {
    pub bundles: Vec<PlannedBundle>,
    /// The objects that OLM would write, each in the namespace of its ClusterExtension.
    pub manifests: Vec<Manifest>,
    /// Notices about what could not be read.
    pub notices: Vec<Problem>,
    /// The ClusterExtensions of the target, if they were listed.
    pub live: Option<Vec<LiveExtension>>,
}

/// Finds the ClusterExtension of each bundle, and renders what OLM creates from the ClusterServiceVersions. A bundle
/// without a ClusterExtension is installed into `namespace`.
///
/// # Errors
/// OLM cannot read a ClusterServiceVersion.
pub(super) async fn open(
    bundles: Vec<manifest::ManifestBundle>,
    others: &[Manifest],
    target: &Target,
    namespace: &str,
) -> Result<OpenedBundles> {
    let mut opened = OpenedBundles::default();
    let mut installers: BTreeMap<String, Installer> = BTreeMap::new();
    // Use the first one: OLM installs a package once.
    for installer in others.iter().filter_map(Installer::of_manifest) {
        installers.entry(installer.extension.wanted.package.clone()).or_insert(installer);
    }
    if bundles.iter().any(|bundle| !installers.contains_key(bundle.package())) {
        let version = others.iter().find(|manifest| is_one(&manifest.object));
        match cluster_extension::list(target, version.map(|manifest| manifest.object.version())).await {
            Ok(live) => {
                // If it is among the manifests, the manifest takes precedence; it can name another package.
                let named: BTreeSet<&str> = others
                    .iter()
                    .filter(|manifest| is_one(&manifest.object))
                    .map(|manifest| manifest.object.name.as_str())
                    .collect();
                let extensions = live.iter().map(|live| &live.extension);
                for extension in extensions.filter(|extension| !named.contains(extension.name.as_str())) {
                    let installer = || Installer { extension: extension.clone(), at: None };
                    installers.entry(extension.wanted.package.clone()).or_insert_with(installer);
                }
                opened.live = Some(live);
            }
            Err(problem) => {
                let message = format!("ClusterExtensions cannot be listed: {}", problem.message);
                let help = "add the ClusterExtension of the bundle to the manifests: it says in which namespace OLM \
                            installs it";
                opened.notices.push(Problem::new(message).help(help));
            }
        }
    }
    let mut of_bundles = Vec::new();
    for manifest::ManifestBundle { directory, content, csv, manifests } in bundles {
        let installer = installers.get(&content.annotations.package).cloned();
        opened.bundles.push(PlannedBundle {
            directory,
            content,
            csv,
            installer,
            certificates: WebhookCertificates::default(),
        });
        of_bundles.push(manifests);
    }
    let mut csvs = opened.bundles.iter().filter_map(|bundle| bundle.content.csv.as_ref());
    let certificates = match csvs.any(|(csv, _)| !csv.webhooks.is_empty()) {
        true => WebhookCertificates::find(target).await,
        false => WebhookCertificates::default(),
    };
    let mut problems = Vec::new();
    for (index, (bundle, objects)) in opened.bundles.iter_mut().zip(of_bundles).enumerate() {
        bundle.certificates = certificates;
        match bundle.rendered_manifests(index, namespace) {
            Ok((mut rendered, notices)) => {
                opened.notices.extend(notices);
                opened.notices.extend(rendered::leave_out_known(&mut rendered, &objects));
                opened.manifests.extend(rendered);
            }
            Err(problem) => problems.push(problem),
        }
        opened.manifests.extend(objects.into_iter().map(|object| installed_by(object, bundle)));
    }
    if problems.is_empty() { Ok(opened) } else { Err(Error::Failed(problems)) }
}

/// The object as OLM writes it: with the labels of its owner, and in the namespace of the ClusterExtension, whatever
/// namespace it names.
fn installed_by(mut manifest: Manifest, bundle: &PlannedBundle) -> Manifest {
    if bundle.extension().is_none() {
        return manifest;
    }
    let mut value = manifest.raw.value();
    bundle.add_labels(&mut value);
    if let Some(namespace) = bundle.namespace().filter(|_| !manifest.object.is_crd()) {
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            match render::is_moved(&manifest.object.kind) {
                true => drop(metadata.insert("namespace".to_owned(), namespace.into())),
                false => drop(metadata.shift_remove("namespace")),
            }
        }
        // For a cluster-scoped kind it is removed again.
        std::sync::Arc::make_mut(&mut manifest.object).namespace = Some(namespace.to_owned());
    }
    manifest.raw = RawObject::from_value(&value);
    manifest
}

/// Adds the conversion webhook to the CRDs of bundles, as OLM does: the CRD of a bundle does not name it. If no
/// ClusterExtension determines its namespace, that of the live CRD is used, or `namespace`.
pub(super) fn add_conversions(crds: &mut [Change], bundles: &[PlannedBundle], namespace: &str) {
    for change in crds {
        let Some(bundle) = change.desired.bundle.and_then(|index| bundles.get(index)) else { continue };
        let Some(csv) = bundle.csv.as_ref().filter(|_| bundle.has_conversion(&change.desired.object.name)) else {
            continue;
        };
        let live = || {
            let live = change.live.as_ref()?.raw.value();
            live.pointer("/spec/conversion/webhook/clientConfig/service/namespace")?.as_str().map(str::to_owned)
        };
        let of_extension = bundle.namespace().map(str::to_owned);
        let install = of_extension.or_else(live).unwrap_or_else(|| namespace.to_owned());
        let options = bundle.render_options(&install);
        let Some(RenderedConversion { conversion, annotation }) =
            render::crd_conversion(&csv.raw.value(), &change.desired.object.name, options)
        else {
            continue;
        };
        let mut value = change.desired.raw.value();
        // Invalid CRDs are reported elsewhere.
        let (Some(_), Some(_)) = (value["spec"].as_object(), value["metadata"].as_object()) else { continue };
        value["spec"]["conversion"] = conversion;
        if let Some((key, text)) = annotation {
            if !value["metadata"]["annotations"].is_object() {
                value["metadata"]["annotations"] = Value::Object(serde_json::Map::new());
            }
            value["metadata"]["annotations"][key] = text.into();
        }
        change.desired.raw = RawObject::from_value(&value);
        change.crds = Crds::default();
    }
}

/// Whether OLM creates a Service of this name for the webhooks of a bundle.
pub fn makes_service(plan: &Plan, name: &str) -> bool {
    let is_it = |change: &Change| {
        let object = &change.desired.object;
        change.desired.bundle.is_some() && object.kind == "Service" && object.name == name
    };
    plan.changes.iter().any(is_it)
}

/// Says what to do about kinds of cert-manager that are not served.
pub(super) fn explain_certificates(unplaced: &mut [Unplaced]) {
    let is_certificate = |unplaced: &&mut Unplaced| {
        unplaced.manifest.bundle.is_some() && unplaced.manifest.object.group() == CERT_MANAGER
    };
    for unplaced in unplaced.iter_mut().filter(is_certificate) {
        let help = "install cert-manager first: OLM v1 obtains the certificates of webhooks from it";
        unplaced.problem.help = Some(help.into());
    }
}

/// How OLM wrote a live object of a bundle, and will write it again: with the same field manager, so that fields that
/// the bundle no longer has are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleWriter {
    /// Boxcutter, by server-side apply as this field manager.
    Applier(Box<str>),
    /// Helm, by plain updates as this field manager.
    Helm(Box<str>),
}

/// The start of the name of the field manager with which operator-controller applies.
const BOXCUTTER: &str = "olm.operatorframework.io";
/// The field manager of Helm in operator-controller: it is the name of the program.
const OPERATOR_CONTROLLER: &str = "operator-controller";

impl BundleWriter {
    /// The field manager.
    pub fn manager(&self) -> &str {
        match self {
            BundleWriter::Applier(manager) | BundleWriter::Helm(manager) => manager,
        }
    }

    /// Helm, as operator-controller contains it.
    pub(super) fn of_operator_controller() -> Self {
        BundleWriter::Helm(OPERATOR_CONTROLLER.into())
    }

    /// Whether operator-controller has written the object by a plain update, as Helm does.
    pub(super) fn may_be_helm(live: &RawObject) -> bool {
        let is_its = |entry: ManagerEntry<'_>| {
            entry.operation() == ManagerOperation::Update && entry.manager() == OPERATOR_CONTROLLER
        };
        ManagerEntry::all(&live.value()).any(is_its)
    }

    /// Whether Boxcutter wrote it.
    pub(super) fn is_boxcutter(&self) -> bool {
        matches!(self, BundleWriter::Applier(manager) if manager.starts_with(BOXCUTTER))
    }

    /// Finds out how a live object was written; `None` if `managedFields` do not say it.
    pub fn of_live(live: &RawObject) -> Option<Self> {
        let live = live.value();
        let entries: Vec<ManagerEntry<'_>> =
            ManagerEntry::all(&live).filter(|entry| entry.subresource().is_empty()).collect();
        let by = |operation| entries.iter().copied().filter(move |entry| entry.operation() == operation);
        let mut appliers = by(ManagerOperation::Apply).map(ManagerEntry::manager);
        if let Some(boxcutter) = appliers.clone().find(|manager| manager.starts_with(BOXCUTTER)) {
            return Some(BundleWriter::Applier(boxcutter.into()));
        }
        if live["metadata"]["annotations"][HELM_RELEASE].is_string() {
            let updaters = || by(ManagerOperation::Update);
            let marker = || updaters().find(|entry| merge::owns_helm_release(&entry.fields()));
            let helm = updaters().find(|entry| entry.manager() == OPERATOR_CONTROLLER).or_else(marker);
            if let Some(helm) = helm {
                return Some(BundleWriter::Helm(helm.manager().into()));
            }
        }
        let first = appliers.next()?;
        appliers.next().is_none().then(|| BundleWriter::Applier(first.into()))
    }
}

/// Objects that a deploy would write and whose kind is not served until OLM has installed the bundle that defines it:
/// one problem for each kind.
pub fn served_too_late(plan: &Plan) -> Vec<Problem> {
    let crds = plan.changes.iter().filter(|change| change.desired.bundle.is_some());
    let crds: BTreeMap<&str, &Change> =
        crds.filter(|crd| crd.desired.object.is_crd()).map(|crd| (crd.desired.object.name.as_str(), crd)).collect();
    let mut late: BTreeMap<(&Resource, usize), Vec<&Change>> = BTreeMap::new();
    for change in plan.changes.iter().filter(|change| change.is_written()) {
        let resource = &*change.resource;
        let Some(crd) = crds.get(format!("{}.{}", resource.plural, resource.group).as_str()) else { continue };
        let live = crd.crd().and_then(|sides| sides.readable_live());
        if live.is_none_or(|live| live.served(&resource.version).is_none()) {
            late.entry((resource, crd.desired.bundle.unwrap_or_default())).or_default().push(change);
        }
    }
    let problem = |((_, bundle), changes): ((&Resource, usize), Vec<&Change>)| {
        let first = &changes[0].desired;
        let more = if changes.len() > 1 { format!(" and {} more", changes.len() - 1) } else { String::new() };
        let bundle = plan.bundles.get(bundle).map(PlannedBundle::to_text).unwrap_or_default();
        let message = format!(
            "{}{more}: this kind is not served until OLM has installed the bundle {bundle}, which defines it",
            first.object
        );
        Problem::new(message)
            .at(first.origin.location())
            .help("deploy the ClusterExtension first, and these objects once it is installed")
    };
    late.into_iter().map(problem).collect()
}
