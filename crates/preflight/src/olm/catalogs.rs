//! The catalogs that OLM v1 would use: those of the manifests, of the cluster and of the configuration, and their
//! contents.

use std::collections::BTreeMap;

use futures::future::join_all;
use gantry_catalog::{Blob, Catalog, KeptCatalogParts};
use serde_json::Value;

use crate::{Context, CouldNotCheck};
use gantry_cluster::Target;
use gantry_core::finding::Action;
use gantry_core::problem::Problem;
use gantry_core::resource::ObjectRef;
use gantry_deploy::plan::{Change, Plan};
use gantry_olm::cluster_catalog::{self, ClusterCatalog, NAME_LABEL, Serving};
use gantry_olm::content::{self, Catalogs};
use gantry_olm::source::CatalogSource;

/// A catalog that OLM v1 may select.
#[derive(Debug)]
pub struct SelectableCatalog {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub priority: i32,
    pub available: bool,
    pub content: CatalogContentSource,
}

/// Where the content of a catalog is.
#[derive(Debug)]
pub enum CatalogContentSource {
    Configured(CatalogSource),
    /// catalogd serves the content.
    Live(Box<ClusterCatalog>),
    /// catalogd does not serve the content.
    NotServed {
        since: Option<String>,
        why: String,
    },
    /// The content does not exist yet, or is not available here, with the reason.
    Unknown(String),
}

/// Every catalog, by name.
#[derive(Debug)]
pub(super) struct AllKnown {
    pub catalogs: Vec<SelectableCatalog>,
    /// Notices about the catalogs for the user.
    pub notices: Vec<String>,
}

/// Finds every catalog. A ClusterCatalog defines its properties, the configuration the place of its content.
pub(super) async fn known(
    plan: &Plan,
    target: &Target,
    configured: &[CatalogSource],
    after: impl Fn(&Change) -> Value,
) -> Result<AllKnown, Problem> {
    let live = cluster_catalog::list(target).await.map_err(|error| {
        let problem = error.first_problem();
        Problem { message: format!("the ClusterCatalogs cannot be listed: {}", problem.message), ..problem }
    })?;
    let mut of_objects: BTreeMap<String, (ClusterCatalog, Option<&'static str>)> =
        live.into_iter().flatten().map(|catalog| (catalog.name.clone(), (catalog, None))).collect();
    // A catalog that the deploy deletes no longer counts.
    let deleted = plan.removals.iter().filter(|removal| removal.action == Action::Delete);
    for removal in deleted.filter(|removal| is_catalog(&removal.object)) {
        of_objects.remove(&removal.object.name);
    }
    for (desired, is_other) in of_manifests(plan, after) {
        let found = match of_objects.remove(&desired.name) {
            Some((live, _)) => {
                // Labels that the manifest does not name are kept.
                let labels = live.labels.into_iter().chain(desired.labels).collect();
                let other =
                    "its source changes in this deploy, and its new content is unknown until catalogd unpacks it";
                let merged = ClusterCatalog { labels, url: live.url, serving: live.serving, ..desired };
                (merged, is_other.then_some(other))
            }
            None => (desired, Some("it is new, and its content is unknown until catalogd unpacks it")),
        };
        of_objects.insert(found.0.name.clone(), found);
    }
    let mut sources: BTreeMap<&str, &CatalogSource> =
        configured.iter().map(|source| (source.name.as_str(), source)).collect();
    let has_objects = !of_objects.is_empty();
    let mut known: Vec<SelectableCatalog> = of_objects
        .into_values()
        .map(|(catalog, unknown)| {
            let content = match (sources.remove(catalog.name.as_str()), unknown, &catalog.serving) {
                (Some(source), ..) => CatalogContentSource::Configured(source.clone()),
                (None, Some(why), _) => CatalogContentSource::Unknown(why.to_owned()),
                (None, None, Serving::No { since, why }) => {
                    CatalogContentSource::NotServed { since: since.clone(), why: why.clone() }
                }
                (None, None, Serving::Yes) if target.is_server() => {
                    CatalogContentSource::Live(Box::new(catalog.clone()))
                }
                (None, None, _) => {
                    CatalogContentSource::Unknown("there is no server from which its content could be read".to_owned())
                }
            };
            let ClusterCatalog { name, labels, priority, available, .. } = catalog;
            SelectableCatalog { name, labels, priority, available, content }
        })
        .collect();
    let mut notices = Vec::new();
    for source in sources.into_values() {
        if has_objects {
            let name = &source.name;
            notices.push(format!(
                "the catalog {name} of the configuration is not a ClusterCatalog of the target or of the manifests, so \
                 OLM does not use it"
            ));
        }
        let mut labels = source.labels.clone();
        labels.insert(NAME_LABEL.to_owned(), source.name.clone());
        known.push(SelectableCatalog {
            name: source.name.clone(),
            labels,
            priority: source.priority,
            available: source.available,
            content: CatalogContentSource::Configured(source.clone()),
        });
    }
    known.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(AllKnown { catalogs: known, notices })
}

/// Whether an object is a ClusterCatalog.
pub fn is_catalog(object: &ObjectRef) -> bool {
    object.kind == cluster_catalog::KIND && object.group() == cluster_catalog::GROUP
}

/// The ClusterCatalogs of the manifests, and whether the source of each differs from the live one.
fn of_manifests(plan: &Plan, after: impl Fn(&Change) -> Value) -> Vec<(ClusterCatalog, bool)> {
    let catalogs = plan.changes.iter().filter(|change| is_catalog(&change.desired.object));
    let read = catalogs.filter_map(|change| {
        let desired = after(change);
        let live = change.live.as_ref().map(|live| live.raw.value());
        let is_other = live.is_some_and(|live| {
            let image = |object: &Value| object.pointer("/spec/source/image/ref").cloned();
            image(&live) != image(&desired)
        });
        Some((ClusterCatalog::parse(&desired.to_string())?, is_other))
    });
    read.collect()
}

/// The content of each catalog by its name, or why it is unknown.
pub type Contents = BTreeMap<String, Result<Catalog, CouldNotCheck>>;

struct CatalogReading {
    catalog: Catalog,
    keep: KeptCatalogParts,
}

impl CatalogReading {
    fn add(&mut self, blob: &Blob<'_>) -> Result<(), String> {
        Ok(self.catalog.add(blob, &self.keep)?)
    }
}

/// Reads these catalogs concurrently, each once.
pub async fn read<'a>(
    catalogs: impl Iterator<Item = &'a SelectableCatalog>,
    keep: &KeptCatalogParts,
    context: &Context<'_>,
) -> Contents {
    let reads = catalogs.map(|known| {
        let keep = keep.clone();
        async move {
            let state = CatalogReading { catalog: Catalog::default(), keep };
            let Catalogs { working_directory, timeout, .. } = context.catalogs;
            let (state, read) = match &known.content {
                CatalogContentSource::Configured(source) => {
                    content::read(source, working_directory, timeout, state, CatalogReading::add).await
                }
                CatalogContentSource::Live(catalog) => {
                    content::read_live(catalog, context.target, state, CatalogReading::add).await
                }
                CatalogContentSource::NotServed { since, why } => {
                    return (known.name.clone(), Err(not_served(known, since, why)));
                }
                CatalogContentSource::Unknown(why) => return (known.name.clone(), Err(unknown(known, why))),
            };
            let read = match (state, read) {
                (Some(state), Ok(())) => Ok(state.catalog),
                (_, Err(problem)) => Err(unreadable(problem)),
                (None, Ok(())) => Err(unreadable(Problem::new("interrupted while reading a catalog"))),
            };
            (known.name.clone(), read)
        }
    });
    join_all(reads).await.into_iter().collect()
}

fn unreadable(problem: Problem) -> CouldNotCheck {
    let place = problem.at.map(|at| format!("{at}: ")).unwrap_or_default();
    CouldNotCheck { message: format!("{place}{}", problem.message), help: problem.help }
}

fn not_served(known: &SelectableCatalog, since: &Option<String>, why: &str) -> CouldNotCheck {
    let since = since.as_ref().map(|since| format!(" since {since}")).unwrap_or_default();
    CouldNotCheck {
        message: format!(
            "CatalogNotServed: catalog \"{}\" is not being served{since}: {why}; OLM resolves nothing while it is \
             selected",
            known.name
        ),
        help: Some(format!(
            "see kubectl describe clustercatalog {0}; or deselect it (spec.availabilityMode: Unavailable, or the \
             selector of the ClusterExtension), or provide its content: --catalog {0}=PATH",
            known.name
        )),
    }
}

fn unknown(known: &SelectableCatalog, why: &str) -> CouldNotCheck {
    CouldNotCheck {
        message: format!("the content of the catalog {} is unknown: {why}", known.name),
        help: Some(format!("provide its content: --catalog {0}=PATH, or catalogs in gantry.yaml", known.name)),
    }
}
