//! What the checks of Operator Lifecycle Manager share: the ClusterExtensions and Subscriptions of the plan, and the catalogs
//! that they are resolved from, which are read once in a run.

pub mod catalogs;

use std::collections::{BTreeMap, BTreeSet};

use gantry_catalog::resolve::{InstalledBundle, Source, UpgradeConstraints};
use gantry_catalog::{Csvs, Keep, Package};
use tokio::sync::OnceCell;

use self::catalogs::{Contents, Known};
use super::{Context, CouldNotCheck};
use crate::cluster::selector::Selector;
use crate::olm::cluster_extension::{self, Extension, installed};
use crate::plan::Plan;
use crate::problem::Problem;

/// A ClusterExtension of the plan.
pub struct Asked {
    /// Index into the plan.
    pub change: usize,
    pub extension: Extension,
    pub installed: Option<InstalledBundle>,
}

/// The ClusterExtensions of the plan. `constraints` are those of extensions that leave updates to the catalog.
pub fn asked(plan: &Plan, constraints: UpgradeConstraints) -> Vec<Asked> {
    let changes =
        plan.changes.iter().enumerate().filter(|(_, change)| cluster_extension::is_one(&change.desired.object));
    let read = changes.filter_map(|(index, change)| {
        let mut extension = Extension::of(&change.desired.object, &change.desired.raw.value())?;
        if extension.wanted.constraints == UpgradeConstraints::Catalog {
            extension.wanted.constraints = constraints;
        }
        let installed = change.live.as_ref().and_then(|live| installed(&live.raw.value()));
        Some(Asked { change: index, extension, installed })
    });
    read.collect()
}

/// A catalog that an extension selects, with what it says of the package.
pub struct Selected<'a> {
    pub known: &'a Known,
    pub package: Option<&'a Package>,
    /// The names of all packages of the catalog.
    pub packages: Vec<&'a str>,
}

impl Selected<'_> {
    pub fn source(&self) -> Source<'_> {
        Source { name: &self.known.name, priority: self.known.priority, package: self.package }
    }
}

/// What the catalogs say, for all checks of one run.
#[derive(Debug, Default)]
pub struct Olm {
    /// Whether a check looks at all packages, and not only at those that are asked for.
    looks_at_all: bool,
    known: OnceCell<Result<Vec<Known>, CouldNotCheck>>,
    contents: OnceCell<Contents>,
}

impl Olm {
    pub fn new(looks_at_all: bool) -> Olm {
        Olm { looks_at_all, ..Olm::default() }
    }

    /// Every catalog, by name.
    ///
    /// # Errors
    /// The ClusterCatalogs cannot be listed.
    pub async fn known(&self, context: &Context<'_>) -> Result<&[Known], CouldNotCheck> {
        let notice = |text| context.notices.add(text);
        let list = || async {
            let known = catalogs::known(context.plan, context.target, context.catalogs.sources, &notice).await;
            known.map_err(|Problem { message, help, .. }| CouldNotCheck { message, help })
        };
        self.known.get_or_init(list).await.as_deref().map_err(Clone::clone)
    }

    /// What is in them: in those that the ClusterExtensions of the plan select, or in all.
    ///
    /// # Errors
    /// The ClusterCatalogs cannot be listed.
    pub async fn contents(&self, context: &Context<'_>) -> Result<&Contents, CouldNotCheck> {
        let known = self.known(context).await?;
        let asked = asked(context.plan, UpgradeConstraints::Catalog);
        let packages: BTreeSet<String> = asked.iter().map(|asked| asked.extension.wanted.package.clone()).collect();
        let keep = Keep { properties_of: packages, all_properties: self.looks_at_all, csv: Csvs::Kept };
        let wanted: BTreeMap<&str, &Known> = match self.looks_at_all {
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

/// Whether the target has all the catalogs that there are: a folder need not.
pub fn has_catalogs(context: &Context<'_>) -> bool {
    context.target.is_server()
}

/// The available catalogs that an extension selects. The error is OLM's.
pub fn selected<'a>(asked: &Asked, known: &'a [Known]) -> Result<Vec<&'a Known>, String> {
    let selector = Selector::of_object(&asked.extension.selector)
        .map_err(|why| format!("desired catalog selector is invalid: {why}"))?;
    let is_selected =
        |known: &&Known| known.available && selector.selects(|key| known.labels.get(key).map(String::as_str));
    Ok(known.iter().filter(is_selected).collect())
}

/// What the selected catalogs say of the package; `None` where one cannot be read, which leaves nothing to be said.
pub fn contents_of<'a>(asked: &Asked, selected: &[&'a Known], contents: &'a Contents) -> Option<Vec<Selected<'a>>> {
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
