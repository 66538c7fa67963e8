//! Configuration: layers of `kind: Config`, merged and validated before anything else happens.
//!
//! ```text
//! defaults ← user file ← gantry.yaml ← -c FILE… ← Configs among the manifests ← GANTRY_* ← flags
//! ```
//!
//! [`document`] checks each document separately, so all mistakes of all files are reported at once, with their lines.
//! [`merge`] merges the layers with figment into a raw Config, and [`Settings`] is its validated form. [`select`]
//! decides which checks run. This module does not read the process's environment and does not send requests: [`Loader`]
//! holds the inputs.

mod admission;
mod catalogs;
mod check;
mod custom;
mod document;
mod duration;
mod environment;
mod files;
mod flags;
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
mod weaker;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use gantry_core::manifest::ManifestOrigin;
use gantry_core::options::{HelmReleaseSpec, TargetSpec};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::render::{HELM_BIN, Render};
use gantry_k8s_cel::KubernetesRelease;

pub use admission::AdmissionSettings;
pub use check::{
    AmongManifests, CheckConfig, ConfigReader, KeyDescription, KnownCheck, KnownKind, KnownPreflightRules,
};
pub use custom::{CheckDefinition, CustomCheck, Withheld};
pub use environment::Overrides;
pub use files::PROJECT_FILE;
pub use flags::{FlagValue, SettingFlags};
pub use keys::table as key;
pub use keys::{
    API_VERSION, CRD_UPGRADE_SAFETY, ConfigKey, DEFAULT_CHECKS, KAPP_API_VERSION, KEYS, KIND, PREFLIGHT_VARIABLE,
};
pub use lists::{ConfiguredRules, FieldRule};
pub use located::{LocatedData, LocatedValue};
pub use origin::{Layer, SettingOrigin};
pub use schema::schema;
pub use selected::SelectedCheck;
pub use settings::{Settings, Timeouts};
pub use show::Setting;
pub use waivers::Waiver;
pub use weaker::weaker;

/// The inputs that configuration is read from.
#[derive(Debug, Clone, Default)]
pub struct Loader {
    /// The process's environment.
    pub environment: BTreeMap<String, String>,
    /// The variables that are not UTF-8.
    pub unreadable_environment: BTreeMap<String, OsString>,
    /// The folder that relative paths are resolved against. `gantry.yaml` is looked up here and then in each parent.
    pub working_directory: PathBuf,
    /// The files of `-c`, in order.
    pub files: Vec<PathBuf>,
    /// The flags.
    pub overrides: Overrides,
    /// Texts in place of those on disk, by path: the config files of a commit. `None` if the commit lacks the file.
    pub replaced: BTreeMap<PathBuf, Option<String>>,
}

/// Valid settings and notices about them for the user.
#[derive(Debug, Clone)]
pub struct LoadedSettings {
    /// The validated settings.
    pub settings: Settings,
    /// Such as that a file weakens a check, or that a setting has no effect.
    pub notices: Vec<Problem>,
}

impl Loader {
    /// Reads, merges and validates all layers. `among_manifests` are the Config documents among the manifests; `known`
    /// are the available checks.
    pub fn load<'a>(
        &self,
        among_manifests: impl IntoIterator<Item = &'a ManifestOrigin>,
        known: &KnownPreflightRules,
    ) -> Result<LoadedSettings> {
        let mut reading = self.read_files();
        reading.layers.insert(0, merge::defaults());
        let came_along = self.read_among_manifests(among_manifests, &mut reading);
        let (environment, named) = environment::environment(&self.environment, &self.unreadable_environment);
        reading.add(environment);
        reading.add(self.overrides.layer());
        let named = self.overrides.named().or(named);
        reading.notices.extend(custom::guard(&mut reading.layers, known));
        reading.notices.extend(tighten::remove_weaker_settings(&mut reading.layers, named.as_ref(), known));

        let merged = match merge::merge(&reading.layers) {
            Ok(merged) => merged,
            Err(error) => {
                reading.problems.push(Problem::new(format!("the configuration cannot be merged: {error}")));
                return Err(Error::Usage(reading.problems));
            }
        };
        let selection = select::select(named.as_ref(), &merged, &reading.layers, came_along, known);
        reading.problems.extend(selection.problems);
        // Notices about weakened checks come first, because only the first notices are shown; the rest are counted.
        reading.notices.splice(..0, selection.notices);
        let (waivers, problems) = waivers::read(merged.tree.at(key::WAIVERS.path));
        reading.problems.extend(problems);
        let (rules, problems) = lists::read(&merged.tree, &reading.layers);
        reading.problems.extend(problems);
        let (catalogs, problems) = catalogs::read(merged.tree.at(catalogs::CATALOGS), known);
        reading.problems.extend(problems);
        if !reading.problems.is_empty() {
            return Err(Error::Usage(reading.problems));
        }
        let select::ConfiguredChecks { checks, own, switches, without_crd_safety, .. } = selection;
        let settings =
            Settings::new(merged, checks, own, (waivers, rules, catalogs), switches).map_err(Error::usage)?;
        let mut settings = Settings { without_crd_safety, ..settings };
        // Objects without a namespace are in that of the release.
        if let TargetSpec::HelmRelease(HelmReleaseSpec { namespace: Some(namespace), .. }) = &settings.target {
            settings.namespace.get_or_insert_with(|| namespace.clone());
            settings.renderers.charts.namespace.clone_from(&settings.namespace);
        }
        let charts = &mut settings.renderers.charts;
        charts.helm = self.helm();
        charts.folder.clone_from(&self.working_directory);
        charts.kube_version = match (&settings.target, settings.kube_versions.first()) {
            // A server has its own release.
            (TargetSpec::Kube, _) | (TargetSpec::HelmRelease(_), None) => None,
            (_, Some(release)) => Some(format!("{release}.0")),
            // What the target stands for. The default of a Helm may be years old: then it refuses charts.
            (_, None) => Some(format!("{}.0", KubernetesRelease::NEWEST_KNOWN)),
        };
        Ok(LoadedSettings { settings, notices: reading.notices })
    }

    /// The program that `HELM_BIN` names. A relative path starts at the working directory.
    fn helm(&self) -> Option<OsString> {
        let unreadable = || self.unreadable_environment.get(HELM_BIN).cloned();
        let named = self.environment.get(HELM_BIN).map(OsString::from).or_else(unreadable)?;
        if named.is_empty() {
            return None;
        }
        let has_folder = Path::new(&named).components().count() > 1;
        Some(if has_folder { self.working_directory.join(named).into() } else { named })
    }

    /// The program that renders the manifests. It must be known before the manifests exist; [`Loader::load`] reports
    /// problems with the configuration later.
    pub fn render(&self) -> Option<Render> {
        let mut reading = self.read_files();
        reading.add(environment::environment(&self.environment, &self.unreadable_environment).0);
        reading.add(self.overrides.layer());
        let texts = reading.layers.iter().rev().filter_map(|layer| layer.values.get("render")?.as_str());
        texts.map(str::to_owned).next()?.parse().ok()
    }

    /// Reads the Config documents among the manifests, except those in files that are read as configuration already.
    /// Returns whether the project file is among the manifests.
    fn read_among_manifests<'a>(
        &self,
        documents: impl IntoIterator<Item = &'a ManifestOrigin>,
        reading: &mut document::ConfigReading,
    ) -> bool {
        let canonical = |path: PathBuf| path.canonicalize().ok();
        let project = self.project_file().and_then(|(_, path)| canonical(path));
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

    /// The files that can come with the project, whether or not they exist: each place of the project file, and the
    /// files of `-c`.
    pub fn files_of_project(&self) -> impl Iterator<Item = PathBuf> {
        let project = self.working_directory.ancestors().map(|folder| folder.join(files::PROJECT_FILE));
        project.chain(self.files.iter().map(|name| self.working_directory.join(name)))
    }

    /// The nearest project file: its name relative to the working directory, and its path.
    fn project_file(&self) -> Option<(PathBuf, PathBuf)> {
        files::project_file(&self.working_directory, &self.replaced)
    }

    /// Every file that configuration is read from, whether or not it exists.
    pub fn every_file(&self) -> impl Iterator<Item = PathBuf> {
        let user = files::user_file(&self.environment, &self.unreadable_environment, cfg!(windows));
        let project = self.project_file().map(|(_, path)| path);
        let named = self.files.iter().map(|name| self.working_directory.join(name));
        user.into_iter().chain(project).chain(named)
    }

    fn read_files(&self) -> document::ConfigReading {
        let mut reading = document::ConfigReading::default();
        if let Some(path) = files::user_file(&self.environment, &self.unreadable_environment, cfg!(windows)) {
            reading.add(files::read(Layer::User, &path, &path, None, None));
        }
        if let Some((name, path)) = self.project_file() {
            // A user who also names it with -c trusts it.
            let canonical = |path: &Path| path.canonicalize().ok();
            let is_named =
                self.files.iter().any(|name| canonical(&self.working_directory.join(name)) == canonical(&path));
            let folder = path.parent().filter(|_| !is_named);
            let text = self.replaced.get(&path);
            reading.add(files::read(Layer::Project, &name, &path, text, folder));
        }
        for name in &self.files {
            let path = self.working_directory.join(name);
            reading.add(files::read(Layer::File, name, &path, self.replaced.get(&path), None));
        }
        reading
    }
}

fn read_among_manifests(origin: &ManifestOrigin) -> document::ConfigReading {
    let source = &origin.source;
    document::read(&document::ConfigText {
        layer: Layer::Manifests,
        file: &source.name,
        document: origin.document,
        text: source.text().get(origin.bytes.clone()).unwrap_or_default(),
        lines_before: source.text().get(..origin.bytes.start).map_or(0, files::count_lines),
        within: &origin.within,
        indent: 0,
        folded: None,
        folder: Path::new(""),
        confined_to: None,
    })
}
