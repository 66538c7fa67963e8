//! The checks for Operator Lifecycle Manager, and the data that they share: the ClusterExtensions of the plan and the
//! live ones, and the catalogs from which they are resolved. Each is read once per run.

pub(crate) mod catalogs;
pub mod extension_resolution;
pub mod operator_dependencies;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use gantry_catalog::resolve::{InstalledBundle, ServedCatalog};
use gantry_catalog::{Csvs, KeptCatalogParts, NamedRelease, Package};
use serde_json::Value;
use tokio::sync::OnceCell;

use self::catalogs::{AllKnown, Contents, SelectableCatalog};
use crate::{Context, CouldNotCheck};
use gantry_cluster::Target;
use gantry_cluster::selector::ParsedLabelSelector;
use gantry_core::problem::Problem;
use gantry_core::resource::Step;
use gantry_deploy::plan::{Change, Plan, predicted};
use gantry_olm::cluster_extension::{self, Extension, LiveExtension, installed};
use gantry_olm::source::CatalogSource;
use gantry_olm::subscription::{self, SubscriptionObject};

/// The checks that this build lacks.
pub const LEFT_OUT: &[&str] = &[];

/// A ClusterExtension of the plan.
#[derive(Debug, Clone)]
pub(crate) struct RequestedExtension {
    /// Index into `plan.changes`.
    pub change: usize,
    pub extension: Extension,
    pub installed: Option<InstalledBundle>,
}

/// The ClusterExtensions of a plan, as their manifests have them.
#[derive(Debug, Default)]
pub(crate) struct OfPlan {
    pub asked: Vec<RequestedExtension>,
    /// Fields that have the wrong type or value: the change, the steps to the field, and the message.
    pub wrong: Vec<(usize, Vec<Step>, String)>,
}

impl OfPlan {
    /// Reads the manifests. `after` returns an object as it is after the deploy, which is what OLM resolves.
    pub fn read(plan: &Plan, after: impl Fn(&Change) -> Value) -> OfPlan {
        let mut of_plan = OfPlan::default();
        for (index, change) in plan.changes.iter().enumerate() {
            let object = &change.desired.object;
            if !cluster_extension::is_one(object) {
                continue;
            }
            let value = change.desired.raw.value();
            let wrong = cluster_extension::invalid_fields(object, &value).into_iter();
            of_plan.wrong.extend(wrong.map(|(at, message)| (index, at, message)));
            if let Some(extension) = Extension::parse(object, &after(change)) {
                let installed = change.live.as_ref().and_then(|live| installed(&live.raw.value()));
                of_plan.asked.push(RequestedExtension { change: index, extension, installed });
            }
        }
        of_plan
    }
}

/// A catalog that an extension selects, with its part about the package of the extension.
pub(crate) struct Selected<'a> {
    pub known: &'a SelectableCatalog,
    pub package: Option<&'a Package>,
    /// The names of all packages of the catalog.
    pub packages: Vec<&'a str>,
}

impl Selected<'_> {
    pub fn source(&self) -> ServedCatalog<'_> {
        ServedCatalog { name: &self.known.name, priority: self.known.priority, package: self.package }
    }
}

/// OLM's objects and the catalogs, for all checks of one run. Everything is read on first use; concurrent callers wait
/// for the same result.
pub struct OlmState<'a> {
    plan: &'a Plan,
    target: &'a Target,
    /// The catalogs of the configuration.
    configured: &'a [CatalogSource],
    /// Whether a check needs all packages, not only the requested ones.
    looks_at_all: bool,
    /// The configured release of OLM v1.
    release: Option<NamedRelease>,
    of_plan: OnceLock<OfPlan>,
    known: OnceCell<Result<AllKnown, Problem>>,
    live: OnceCell<Result<Vec<LiveExtension>, Problem>>,
    contents: OnceCell<Contents>,
    installers: OnceCell<Result<Vec<RequestedExtension>, Problem>>,
}

impl<'a> OlmState<'a> {
    /// Reads nothing yet.
    pub fn new(
        plan: &'a Plan,
        target: &'a Target,
        configured: &'a [CatalogSource],
        looks_at_all: bool,
        release: Option<NamedRelease>,
    ) -> OlmState<'a> {
        let (of_plan, known, live, contents, installers) = Default::default();
        OlmState { plan, target, configured, looks_at_all, release, of_plan, known, live, contents, installers }
    }

    /// The target of the run.
    pub(crate) fn target(&self) -> &Target {
        self.target
    }

    /// Whether the configuration names the release of OLM v1.
    pub(crate) fn knows_release(&self) -> bool {
        self.release.is_some()
    }

    /// Whether the target is a server, which has catalogd.
    pub(crate) fn is_of_server(&self) -> bool {
        self.target.is_server()
    }

    /// The object of a change after the deploy, in which fields of other field managers stay. The objects of a
    /// commit, a chart or a release are manifests: what a manifest no longer has is gone.
    pub fn object_after(&self, change: &Change) -> Value {
        match self.target {
            Target::Recorded(_) => change.desired_value(),
            _ => predicted::predict_object(self.plan, change),
        }
    }

    /// The ClusterExtensions of the plan.
    pub(crate) fn of_plan(&self) -> &OfPlan {
        self.of_plan.get_or_init(|| OfPlan::read(self.plan, |change| self.object_after(change)))
    }

    /// The live ClusterExtensions.
    ///
    /// # Errors
    /// The ClusterExtensions cannot be listed.
    pub async fn live(&self) -> Result<&[LiveExtension], Problem> {
        if let Some(live) = &self.plan.live_extensions {
            return Ok(live);
        }
        let first = self.of_plan().asked.first();
        let version = first.map(|asked| self.plan.changes[asked.change].resource.version.as_str());
        let list = || cluster_extension::list(self.target, version);
        self.live.get_or_init(list).await.as_deref().map_err(Clone::clone)
    }

    /// The live ClusterExtensions that install bundles of the plan. Their change is one of the bundle.
    ///
    /// # Errors
    /// The ClusterExtensions cannot be listed.
    pub(crate) async fn installers(&self) -> Result<&[RequestedExtension], Problem> {
        let find = async || {
            let mut found = Vec::new();
            for (index, bundle) in self.plan.bundles.iter().enumerate() {
                let Some(installer) = bundle.installer.as_ref().filter(|installer| installer.at.is_none()) else {
                    continue;
                };
                // A bundle may have no objects; nothing is reported of the change.
                let of_bundle = self.plan.changes.iter().position(|change| change.desired.bundle == Some(index));
                let change = of_bundle.unwrap_or_default();
                let live = self.live().await?;
                let name = &installer.extension.name;
                if let Some(live) = live.iter().find(|live| live.extension.name == *name) {
                    let (extension, installed) = (live.extension.clone(), live.installed.clone());
                    found.push(RequestedExtension { change, extension, installed });
                }
            }
            Ok(found)
        };
        self.installers.get_or_init(find).await.as_deref().map_err(Clone::clone)
    }

    /// Every catalog, by name.
    ///
    /// # Errors
    /// The ClusterCatalogs cannot be listed.
    pub async fn known(&self) -> Result<&[SelectableCatalog], Problem> {
        let list = || catalogs::known(self.plan, self.target, self.configured, |change| self.object_after(change));
        self.known.get_or_init(list).await.as_ref().map(|all| all.catalogs.as_slice()).map_err(Clone::clone)
    }

    /// The notices about the catalogs, if they were read.
    pub fn notices(&self) -> Vec<Problem> {
        let all = self.known.get().and_then(|known| known.as_ref().ok());
        all.into_iter().flat_map(|all| &all.notices).map(Problem::new).collect()
    }

    /// The contents of the catalogs that the ClusterExtensions of the plan select, or of all catalogs.
    ///
    /// # Errors
    /// The ClusterCatalogs cannot be listed.
    pub(crate) async fn contents(&self, context: &Context<'_>) -> Result<&Contents, CouldNotCheck> {
        let known = self.known().await?;
        // Without them, the content is that of the plan alone; who needs them reports the error.
        let installers = self.installers().await.unwrap_or_default();
        let asked: Vec<&RequestedExtension> = self.of_plan().asked.iter().chain(installers).collect();
        let mut packages: BTreeSet<String> = asked.iter().map(|asked| asked.extension.wanted.package.clone()).collect();
        let subscriptions = self.plan.changes.iter().filter(|change| subscription::is_one(&change.desired.object));
        packages.extend(
            subscriptions
                .filter_map(|change| SubscriptionObject::parse(&change.desired_value()))
                .map(|object| object.package),
        );
        let keep = KeptCatalogParts {
            properties_of: packages,
            all_properties: self.looks_at_all,
            csv: Csvs::Kept,
            ..KeptCatalogParts::default()
        };
        let wanted: BTreeMap<&str, &SelectableCatalog> = match self.looks_at_all {
            true => known.iter().filter(|known| known.available).map(|known| (known.name.as_str(), known)).collect(),
            false => {
                let selected = asked.iter().filter_map(|asked| selected(asked, known).ok()).flatten();
                selected.map(|known| (known.name.as_str(), known)).collect()
            }
        };
        let read = || catalogs::read(wanted.into_values(), &keep, context);
        Ok(self.contents.get_or_init(read).await)
    }
}

/// Whether the target has every catalog that OLM would use. A folder may lack some.
pub(crate) fn has_catalogs(context: &Context<'_>) -> bool {
    context.target.is_server()
}

/// The available catalogs that an extension selects. The error is OLM's message.
pub(crate) fn selected<'a>(
    asked: &RequestedExtension,
    known: &'a [SelectableCatalog],
) -> Result<Vec<&'a SelectableCatalog>, String> {
    let matching = matching(asked, known)?;
    Ok(matching.into_iter().filter(|known| known.available).collect())
}

/// The catalogs that an extension selects, available or not. The error is OLM's message.
pub(crate) fn matching<'a>(
    asked: &RequestedExtension,
    known: &'a [SelectableCatalog],
) -> Result<Vec<&'a SelectableCatalog>, String> {
    let selector = ParsedLabelSelector::of_object(&asked.extension.selector)
        .map_err(|why| format!("desired catalog selector is invalid: {why}"))?;
    let is_selected = |known: &&SelectableCatalog| selector.selects(|key| known.labels.get(key).map(String::as_str));
    Ok(known.iter().filter(is_selected).collect())
}

/// What the selected catalogs contain about the package; `None` if one of them cannot be read, because then the result
/// is unknown.
pub(crate) fn contents_of<'a>(
    asked: &RequestedExtension,
    selected: &[&'a SelectableCatalog],
    contents: &'a Contents,
) -> Option<Vec<Selected<'a>>> {
    let read = selected.iter().map(|known| {
        let catalog = contents.get(&known.name)?.as_ref().ok()?;
        Some(Selected {
            known,
            package: catalog.packages.get(&asked.extension.wanted.package),
            packages: catalog.packages.keys().map(String::as_str).collect(),
        })
    });
    read.collect()
}
