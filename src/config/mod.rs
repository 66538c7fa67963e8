//! Configuration: layers of `kind: Config`, merged and validated before anything else happens.
//!
//! ```text
//! defaults ← user file ← gantry.yaml ← -c FILE… ← Configs among the manifests ← GANTRY_* ← flags
//! ```
//!
//! [`document`] checks each document by itself, so that every mistake of every file is reported at once, with its line.
//! [`merge`] lays the layers over each other with figment into a raw Config; [`Settings`] is what is left when
//! everything in it has been found good. [`select`] decides which checks run. Nothing in here reads the process's
//! environment or sends a request: the surroundings are handed in by [`Loader`].

mod catalogs;
mod check;
mod custom;
mod document;
mod duration;
mod environment;
mod files;
mod kapp_defaults;
mod keys;
mod layer;
mod lists;
mod located;
mod merge;
mod origin;
mod raw;
mod schema;
mod select;
mod selected;
mod settings;
mod show;
#[cfg(test)]
mod tests;
mod tighten;
mod waivers;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::manifest::Origin;
use crate::problem::{Error, Problem, Result};
use crate::render::Render;

pub use catalogs::{CatalogContent, CatalogSource};
pub use check::{AmongManifests, ConfigMap, ConfigReader, KeyDescription, Known, KnownCheck, KnownKind};
pub use custom::{CustomCheck, Definition, Withheld};
pub use environment::Overrides;
pub use files::PROJECT_FILE;
pub use keys::{API_VERSION, DEFAULT_CHECK, KAPP_API_VERSION, KEYS, KIND, Key, PREFLIGHT_VARIABLE};
pub use lists::{FieldRule, Rules};
pub use located::{Located, LocatedData};
pub use origin::{Layer, Place};
pub use schema::schema;
pub use selected::SelectedCheck;
pub use settings::{Settings, Timeouts};
pub use show::Setting;
pub use waivers::Waiver;

/// The surroundings that configuration is read from.
#[derive(Debug, Clone, Default)]
pub struct Loader {
    /// The process's environment.
    pub environment: BTreeMap<String, String>,
    /// The variables that are not UTF-8.
    pub unreadable_environment: BTreeMap<String, OsString>,
    /// Where `gantry.yaml` is looked for, upwards; relative paths start here.
    pub working_directory: PathBuf,
    /// The files of `-c`, in their order.
    pub files: Vec<PathBuf>,
    /// The flags.
    pub overrides: Overrides,
}

/// Valid settings and what the user should hear of them.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub settings: Settings,
    pub notices: Vec<Problem>,
}

impl Loader {
    /// Reads, merges and validates all layers. `among_manifests` are the Config documents that the manifests hold;
    /// `known` are the checks that there are.
    pub fn load<'a>(&self, among_manifests: impl IntoIterator<Item = &'a Origin>, known: &Known) -> Result<Loaded> {
        let mut reading = self.read_files();
        reading.layers.insert(0, merge::defaults());
        let came_along = self.read_among_manifests(among_manifests, &mut reading);
        let (environment, named) = environment::environment(&self.environment, &self.unreadable_environment);
        reading.add(environment);
        reading.add(self.overrides.layer());
        let named = self.overrides.named().or(named);
        reading.notices.extend(custom::guard(&mut reading.layers, known));
        reading.notices.extend(tighten::tighten(&mut reading.layers, named.as_ref(), known));

        let merged = match merge::merge(&reading.layers) {
            Ok(merged) => merged,
            Err(error) => {
                reading.problems.push(Problem::new(format!("the configuration cannot be merged: {error}")));
                return Err(Error::Usage(reading.problems));
            }
        };
        let selection = select::select(named.as_ref(), &merged, &reading.layers, came_along, known);
        reading.problems.extend(selection.problems);
        // What was weakened comes first, so that it is not among those that are only counted.
        reading.notices.splice(..0, selection.notices);
        let (waivers, problems) = waivers::read(merged.tree.at(keys::WAIVERS));
        reading.problems.extend(problems);
        let (rules, problems) = lists::read(&merged.tree, &reading.layers);
        reading.problems.extend(problems);
        let (catalogs, problems) = catalogs::read(merged.tree.at(catalogs::CATALOGS));
        reading.problems.extend(problems);
        if !reading.problems.is_empty() {
            return Err(Error::Usage(reading.problems));
        }
        let select::Selection { checks, own, switches, .. } = selection;
        let settings =
            Settings::new(merged, checks, own, (waivers, rules, catalogs), switches).map_err(Error::usage)?;
        Ok(Loaded { settings, notices: reading.notices })
    }

    /// What makes the manifests, which is to be known before there are any. What is wrong with the configuration is said by
    /// [`Loader::load`].
    pub(crate) fn render(&self) -> Option<Render> {
        let mut reading = self.read_files();
        reading.add(environment::environment(&self.environment, &self.unreadable_environment).0);
        reading.add(self.overrides.layer());
        let texts = reading.layers.iter().rev().filter_map(|layer| layer.values.get("render")?.as_str());
        texts.map(str::to_owned).next()?.parse().ok()
    }

    /// Reads the Config documents among the manifests, but for those of files that are configuration already. Answers
    /// whether the project file is one of these: then it came with the manifests.
    fn read_among_manifests<'a>(
        &self,
        documents: impl IntoIterator<Item = &'a Origin>,
        reading: &mut document::Reading,
    ) -> bool {
        let canonical = |path: PathBuf| path.canonicalize().ok();
        let project = files::project_file(&self.working_directory).and_then(|(_, path)| canonical(path));
        let user = files::user_file(&self.environment, &self.unreadable_environment, cfg!(windows)).and_then(canonical);
        let named = self.files.iter().filter_map(|name| canonical(self.working_directory.join(name)));
        let known: BTreeSet<PathBuf> = named.chain(project.clone()).chain(user).collect();
        let mut came_along = false;
        for origin in documents {
            let name = &*origin.source.name;
            let path = if name == "-" { None } else { canonical(self.working_directory.join(name)) };
            came_along |= path.is_some() && path == project;
            if !path.is_some_and(|path| known.contains(&path)) {
                reading.add(read_among_manifests(origin));
            }
        }
        came_along
    }

    /// Every file that configuration is read from, whether it is there or not.
    pub fn every_file(&self) -> impl Iterator<Item = PathBuf> {
        let user = files::user_file(&self.environment, &self.unreadable_environment, cfg!(windows));
        let project = files::project_file(&self.working_directory).map(|(_, path)| path);
        let named = self.files.iter().map(|name| self.working_directory.join(name));
        user.into_iter().chain(project).chain(named)
    }

    fn read_files(&self) -> document::Reading {
        let mut reading = document::Reading::default();
        if let Some(path) = files::user_file(&self.environment, &self.unreadable_environment, cfg!(windows)) {
            reading.add(files::read(Layer::User, &path, &path, None));
        }
        if let Some((name, path)) = files::project_file(&self.working_directory) {
            // Who names it with -c, too, vouches for it.
            let canonical = |path: &Path| path.canonicalize().ok();
            let is_named =
                self.files.iter().any(|name| canonical(&self.working_directory.join(name)) == canonical(&path));
            let folder = path.parent().filter(|_| !is_named);
            reading.add(files::read(Layer::Project, &name, &path, folder));
        }
        for name in &self.files {
            reading.add(files::read(Layer::File, name, &self.working_directory.join(name), None));
        }
        reading
    }
}

fn read_among_manifests(origin: &Origin) -> document::Reading {
    let source = &origin.source;
    document::read(&document::Text {
        layer: Layer::Manifests,
        file: &source.name,
        document: origin.document,
        text: source.text.get(origin.bytes.clone()).unwrap_or_default(),
        lines_before: source.text.get(..origin.bytes.start).map_or(0, files::count_lines),
        within: &origin.within,
        indent: 0,
        folded: None,
        folder: Path::new(""),
        confined_to: None,
    })
}
