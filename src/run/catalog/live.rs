//! The catalogs of a cluster for `gantry catalog`.

use crate::run::prepare::open_target;
use gantry_cluster::Target;
use gantry_core::problem::{Error, Problem, Result};
use gantry_deploy::config::Settings;
use gantry_olm::cluster_catalog::{self, ClusterCatalog};

/// The catalogs of a cluster to read.
#[derive(Default)]
pub struct LiveCatalogs {
    /// The cluster, if it was asked.
    pub target: Option<Target>,
    pub catalogs: Vec<ClusterCatalog>,
    /// Why others cannot be read.
    pub unread: Vec<Problem>,
    /// What is left out.
    pub notices: Vec<Problem>,
}

const NAME_ONE: &str = "name one with --catalog NAME=PATH, or with catalogs in gantry.yaml";

/// Finds the catalogs of the cluster, in addition to those of the configuration.
pub async fn find(settings: &Settings) -> Result<LiveCatalogs> {
    let none = || Problem::new("there is no catalog to read").help(NAME_ONE);
    let found = async {
        let target = open_target(settings).await?;
        let catalogs = cluster_catalog::list(&target).await?;
        Ok((target, catalogs))
    };
    let (target, catalogs) = match found.await {
        Ok(found) => found,
        Err(Error::Failed(problems)) if settings.catalogs.is_empty() => {
            return Err(Error::Failed([vec![none()], problems].concat()));
        }
        Err(error) => return Err(error),
    };
    let is_served = catalogs.is_some();
    let is_configured = |catalog: &ClusterCatalog| settings.catalogs.iter().any(|source| source.name == catalog.name);
    let (available, left_out): (Vec<_>, Vec<_>) = catalogs
        .unwrap_or_default()
        .into_iter()
        .filter(|catalog| !is_configured(catalog))
        .partition(|catalog| catalog.available);
    let names = |catalogs: &[ClusterCatalog]| catalogs.iter().map(|catalog| catalog.name.clone()).collect::<Vec<_>>();
    if !target.is_server() && !available.is_empty() {
        let names = names(&available);
        let problem =
            format!("a {} has no content of catalogs: {} in {}", target.noun(), names.join(", "), target.describe());
        return Err(Error::failed(Problem::new(problem).help(format!("name it: --catalog {}=PATH", names[0]))));
    }
    if available.is_empty() && settings.catalogs.is_empty() {
        let why = match (is_served, left_out.is_empty()) {
            (false, _) => format!("no ClusterCatalogs are served at {}: is OLM v1 installed there?", target.describe()),
            (true, true) => format!("there is no ClusterCatalog at {}", target.describe()),
            (true, false) => format!(
                "no ClusterCatalog is available at {}; Unavailable: {}",
                target.describe(),
                names(&left_out).join(", ")
            ),
        };
        return Err(Error::Failed(vec![none(), Problem::new(why)]));
    }
    let mut live = LiveCatalogs::default();
    if !is_served {
        live.notices.push(Problem::new(format!("no ClusterCatalogs are served at {}", target.describe())));
    }
    live.target = Some(target);
    if !left_out.is_empty() {
        let names = names(&left_out).join(", ");
        live.notices.push(Problem::new(format!("left out, as their availabilityMode is Unavailable: {names}")));
    }
    for catalog in available {
        match catalog.service() {
            Ok(_) => live.catalogs.push(catalog),
            Err(problem) => live.unread.push(problem),
        }
    }
    Ok(live)
}
