//! Configuration: layers of `kind: Config`, merged and validated before anything else happens.
//!
//! ```text
//! defaults ← user file ← gantry.yaml ← -c FILE… ← Configs among the manifests ← GANTRY_* ← flags
//! ```
//!
//! [`document`] checks each document by itself, so that every mistake of every file is told at once, with its line.
//! [`merge`] lays the layers over each other with figment into a raw Config; [`Settings`] is what is left when
//! everything in it has been found good. [`select`] decides which checks run. Nothing in here reads the process's
//! environment or sends a request: the surroundings are handed in by [`Loader`].

mod check;
mod document;
mod duration;
mod environment;
mod files;
mod keys;
mod layer;
mod merge;
mod own;
mod raw;
mod schema;
mod select;
mod show;
#[cfg(test)]
mod tests;
mod tighten;
mod waivers;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::manifest::Origin;
use crate::options::{ColorChoice, OutputSpec, TargetSpec};
use crate::problem::{Error, Problem, Result};

pub use check::{AmongManifests, ConfigMap, ConfigReader, KeyDescription, Known, KnownCheck, KnownKind};
pub use environment::Overrides;
pub use files::PROJECT_FILE;
pub use keys::{API_VERSION, DEFAULT_CHECK, KAPP_API_VERSION, KEYS, KIND, Key, PREFLIGHT_VARIABLE};
pub use layer::{Layer, Place};
pub use merge::{Located, LocatedData};
pub use own::{Definition, OwnCheck, Withheld};
pub use schema::schema;
pub use select::SelectedCheck;
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

/// The configuration of a run: merged, complete and valid.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The checks that run, in the order in which they were asked for.
    pub checks: Vec<SelectedCheck>,
    /// Every check that the files define, whether it runs or not, by name.
    pub own_checks: Vec<OwnCheck>,
    /// Findings that may pass, in the order of the file.
    pub waivers: Vec<Waiver>,
    pub warn_only: bool,
    pub target: TargetSpec,
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    /// The user or service account to impersonate.
    pub user: Option<String>,
    /// The groups to impersonate.
    pub groups: Vec<String>,
    pub namespace: Option<String>,
    pub field_manager: String,
    pub force_conflicts: bool,
    /// Programs that the project file names may run.
    pub allow_exec: bool,
    pub timeouts: Timeouts,
    /// No output holds a value of an object.
    pub redact: bool,
    pub output: Vec<OutputSpec>,
    pub color: ColorChoice,
    switches: Vec<select::Switch>,
    tree: Located,
}

/// Time limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Of one request to the API server.
    pub request: Duration,
    /// Until an applied CRD is Established.
    pub established: Duration,
    /// Of a credential plugin that asks nobody.
    pub credentials: Duration,
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
        reading.notices.extend(own::guard(&mut reading.layers, known));
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
        let (waivers, problems) = waivers::read(merged.tree.at(waivers::WAIVERS));
        reading.problems.extend(problems);
        if !reading.problems.is_empty() {
            return Err(Error::Usage(reading.problems));
        }
        let select::Selection { checks, own, switches, .. } = selection;
        let settings = Settings::new(merged, checks, own, waivers, switches).map_err(Error::usage)?;
        Ok(Loaded { settings, notices: reading.notices })
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
        folder: Path::new(""),
        confined_to: None,
    })
}

impl Settings {
    /// The one step from raw to validated. Each document was checked already, so what fails here is a default or a
    /// merge gone wrong.
    fn new(
        merged: merge::Merged,
        checks: Vec<SelectedCheck>,
        own_checks: Vec<OwnCheck>,
        waivers: Vec<Waiver>,
        switches: Vec<select::Switch>,
    ) -> std::result::Result<Settings, Problem> {
        let merge::Merged { raw, tree, .. } = merged;
        let wrong = |path: &str, why: String| {
            let message = format!("{path}: {why}");
            tree.at(path).map_or_else(|| Problem::new(message.clone()), |found| found.place.problem(&message))
        };
        let missing = |path: &'static str| move || Problem::new(format!("{path} has no value"));
        let limits = raw.timeouts.unwrap_or_default();
        let limit = |path: &'static str, text: Option<String>| {
            keys::duration(&text.ok_or_else(missing(path))?).map_err(|why| wrong(path, why))
        };
        let target = raw.target.ok_or_else(missing("target"))?;
        let output = raw.output.ok_or_else(missing("output"))?;
        let color = raw.color.ok_or_else(missing("color"))?;
        Ok(Settings {
            checks,
            own_checks,
            waivers,
            warn_only: raw.warn_only.ok_or_else(missing("warnOnly"))?,
            target: target.parse().map_err(|why| wrong("target", why))?,
            kubeconfig: raw.kubeconfig.map(PathBuf::from),
            context: raw.context,
            user: raw.user,
            groups: raw.as_groups.unwrap_or_default(),
            namespace: raw.namespace,
            field_manager: raw.field_manager.ok_or_else(missing("fieldManager"))?,
            force_conflicts: raw.force_conflicts.ok_or_else(missing("forceConflicts"))?,
            allow_exec: raw.allow_exec.ok_or_else(missing("allowExec"))?,
            timeouts: Timeouts {
                request: limit("timeouts.request", limits.request)?,
                established: limit("timeouts.established", limits.established)?,
                credentials: limit("timeouts.credentials", limits.credentials)?,
            },
            redact: raw.redact.ok_or_else(missing("redact"))?,
            output: output
                .iter()
                .map(|text| text.parse().map_err(|why| wrong("output", why)))
                .collect::<std::result::Result<_, _>>()?,
            color: keys::color(&color).map_err(|why| wrong("color", why))?,
            switches,
            tree,
        })
    }
}
