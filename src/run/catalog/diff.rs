//! `gantry catalog diff`: what a new release of a catalog changes, also for what is installed from it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gantry_catalog::{Blob, Catalog, KeptCatalogParts, diff};

use super::super::host::{Exit, Host};
use super::super::interrupt::until_interrupted;
use super::super::prepare::{OptionalInput, impersonating, loader, open_target, overrides_of_target};
use crate::cli::CatalogDiffArgs;
use gantry_cluster::Target;
use gantry_core::manifest::LoadedManifests;
use gantry_core::options::CatalogDiffFormat;
use gantry_core::problem::{Error, Problem, Result, did_you_mean};
use gantry_core::text::shell_word;
use gantry_deploy::config::{Loader, Settings};
use gantry_olm::affected::{CatalogReleases, affected_extensions, affected_subscriptions};
use gantry_olm::cluster_catalog::{self, ClusterCatalog, NAME_LABEL};
use gantry_olm::cluster_extension::{self, Extension, LiveExtension, installed};
use gantry_olm::content;
use gantry_olm::printed::{CatalogComparison, ComparedCatalog, comparison_json, comparison_markdown, comparison_text};
use gantry_olm::source::{CatalogContent, CatalogSource};
use gantry_olm::subscription::{self, SubscriptionObject};
use gantry_report::json::write_value;

/// Compares, prints, and returns the exit code.
pub async fn run(args: &CatalogDiffArgs, host: &mut Host) -> Exit {
    match compare(args, host).await {
        Ok((comparison, problems)) => {
            let is_complete = args.package.is_some();
            let text = match args.output.unwrap_or(CatalogDiffFormat::Human) {
                CatalogDiffFormat::Human => comparison_text(&comparison, is_complete),
                CatalogDiffFormat::Json => pretty(&comparison_json(&comparison)),
                CatalogDiffFormat::Markdown => comparison_markdown(&comparison, is_complete),
            };
            match (problems.is_empty(), host.say(&text)) {
                (false, Exit::Success) => host.complain(&Error::Failed(problems)),
                (true, Exit::Success) if args.detailed_exitcode && comparison.has_changes() => Exit::Changes,
                (_, exit) => exit,
            }
        }
        Err(error) => host.complain(&error),
    }
}

fn pretty(json: &serde_json::Value) -> String {
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = write_value(json, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A catalog to read.
enum ComparedSource {
    /// A file, a folder or a URL of the command line.
    Unnamed(Box<CatalogSource>),
    Configured(Box<CatalogSource>),
    Live(Box<ClusterCatalog>),
}

impl ComparedSource {
    /// The name and the labels, if the catalog has a name.
    fn identity(&self) -> Option<(&str, &BTreeMap<String, String>)> {
        match self {
            ComparedSource::Unnamed(_) => None,
            ComparedSource::Configured(source) => Some((&source.name, &source.labels)),
            ComparedSource::Live(catalog) => Some((&catalog.name, &catalog.labels)),
        }
    }
}

async fn compare(args: &CatalogDiffArgs, host: &mut Host) -> Result<(CatalogComparison, Vec<Problem>)> {
    let overrides = impersonating(overrides_of_target(&args.target, &args.config), &args.identity);
    let loader = Loader { overrides, ..loader(&args.config, host) };
    let (input, settings) = OptionalInput::open(&args.files, &loader, host).await?;
    let manifests = input.read()?;
    let stop = host.stop.clone();
    let named = [&args.old, &args.new].map(|text| local_source(text, &settings, host));
    let asks_cluster = args.names_target() || named.iter().any(Option::is_none);
    let target = match asks_cluster {
        true => Some(until_interrupted(&stop, open_target(&settings)).await?),
        false => None,
    };
    let mut live = BTreeMap::new();
    if let Some(target) = target.as_ref().filter(|_| named.iter().any(Option::is_none)) {
        let listed = until_interrupted(&stop, cluster_catalog::list(target)).await?;
        live = listed.into_iter().flatten().map(|catalog| (catalog.name.clone(), catalog)).collect();
    }
    let mut sources = Vec::new();
    for (text, named) in [&args.old, &args.new].into_iter().zip(named) {
        sources.push(match (named, live.get(text)) {
            (Some(source), _) => source,
            (None, Some(catalog)) => ComparedSource::Live(Box::new(catalog.clone())),
            (None, None) => return Err(Error::failed(no_catalog(text, &settings, &live))),
        });
    }
    let configured: Vec<CatalogSource> = sources.iter().filter_map(configured).cloned().collect();
    content::check(&configured, &host.working_directory)?;
    let [old_source, new_source] = [&sources[0], &sources[1]];
    let reads = async {
        let read = |source| read_catalog(source, target.as_ref(), &settings, host);
        Ok(tokio::join!(read(old_source), read(new_source)))
    };
    let (old, new) = match until_interrupted(&stop, reads).await? {
        (Ok(old), Ok(new)) => (old, new),
        (old, new) => return Err(Error::Failed([old.err(), new.err()].into_iter().flatten().collect())),
    };
    if let Some(package) = args.package.as_deref()
        && !old.packages.contains_key(package)
        && !new.packages.contains_key(package)
    {
        let names = old.packages.keys().chain(new.packages.keys()).map(String::as_str);
        let problem = Problem::new(format!("neither catalog has a package {package:?}"));
        return Err(Error::failed(match did_you_mean(package, names) {
            Some(near) => problem.help(format!("did you mean {near:?}?")),
            None => problem,
        }));
    }
    let (mut extensions, mut subscriptions, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(target) = &target {
        match until_interrupted(&stop, async { Ok(cluster_extension::list(target, None).await) }).await? {
            Ok(found) => extensions = found,
            Err(problem) => problems.push(unlisted(cluster_extension::KIND, problem)),
        }
        match until_interrupted(&stop, async { Ok(subscription::list(target).await) }).await? {
            Ok(found) => subscriptions = found,
            Err(problem) => problems.push(unlisted(subscription::KIND, problem)),
        }
    }
    if let Some(manifests) = &manifests {
        (extensions, subscriptions) = of_manifests(manifests, &extensions, &subscriptions, &settings);
    }
    let given = args.name.as_ref().map(|name| {
        let labels = BTreeMap::from([(NAME_LABEL.to_owned(), name.clone())]);
        (name.as_str(), labels)
    });
    let identity = given
        .as_ref()
        .map(|(name, labels)| (*name, labels))
        .or_else(|| old_source.identity())
        .or_else(|| new_source.identity());
    let releases = CatalogReleases { old: &old, new: &new, identity };
    let is_asked = |package: &str| args.package.as_deref().is_none_or(|only| only == package);
    extensions.retain(|live| is_asked(&live.extension.wanted.package));
    subscriptions.retain(|object| is_asked(&object.package));
    let affected = [affected_extensions(releases, &extensions), affected_subscriptions(releases, &subscriptions)];
    let comparison = CatalogComparison {
        old: compared(&args.old, &old, args.package.as_deref(), String::new()),
        new: compared(&args.new, &new, args.package.as_deref(), flag_of(new_source, identity.map(|(name, _)| name))),
        packages: diff::compare(&old, &new, args.package.as_deref()),
        affected: (target.is_some() || manifests.is_some()).then(|| affected.concat()),
        considered: extensions.len() + subscriptions.len(),
    };
    Ok((comparison, problems))
}

fn compared(source: &str, catalog: &Catalog, only: Option<&str>, flag: String) -> ComparedCatalog {
    let asked = catalog.packages.iter().filter(|(name, _)| only.is_none_or(|only| only == *name));
    let unreadable = asked.filter_map(|(name, package)| Some((name.clone(), package.broken.clone()?)));
    ComparedCatalog {
        source: source.to_owned(),
        packages: catalog.packages.len(),
        unreadable: unreadable.collect(),
        flag,
    }
}

/// The flag with which `gantry catalog` reads a catalog that neither the configuration nor the target has.
fn flag_of(source: &ComparedSource, name: Option<&str>) -> String {
    let ComparedSource::Unnamed(source) = source else { return String::new() };
    format!("--catalog {}={}", shell_word(name.unwrap_or("new")), shell_word(&source.name))
}

fn configured(source: &ComparedSource) -> Option<&CatalogSource> {
    match source {
        ComparedSource::Unnamed(source) | ComparedSource::Configured(source) => Some(source),
        ComparedSource::Live(_) => None,
    }
}

/// The catalog of the configuration with this name, or the file, folder or URL; `None` if only the target can have it.
fn local_source(text: &str, settings: &Settings, host: &Host) -> Option<ComparedSource> {
    if let Some(source) = settings.catalogs.iter().find(|source| source.name == text) {
        let mut source = source.clone();
        source.labels.insert(NAME_LABEL.to_owned(), source.name.clone());
        return Some(ComparedSource::Configured(Box::new(source)));
    }
    let content = match text {
        url if url.starts_with("http://") || url.starts_with("https://") => {
            CatalogContent::Url { url: url.to_owned(), ca_file: None }
        }
        // A name that nothing has is reported with the names that there are.
        path if host.working_directory.join(path).exists() || path.contains(['/', '.']) => {
            CatalogContent::Path(PathBuf::from(path))
        }
        _ => return None,
    };
    let (name, labels) = (text.to_owned(), BTreeMap::new());
    let source = CatalogSource { name, content, priority: 0, labels, available: true, at: None };
    Some(ComparedSource::Unnamed(Box::new(source)))
}

fn no_catalog(text: &str, settings: &Settings, live: &BTreeMap<String, ClusterCatalog>) -> Problem {
    let problem = Problem::new(format!(
        "{text:?} is not a file or folder, not a catalog of the configuration, and not a ClusterCatalog of the target"
    ));
    let configured = settings.catalogs.iter().map(|source| source.name.as_str());
    let names: Vec<&str> = configured.chain(live.keys().map(String::as_str)).collect();
    match (did_you_mean(text, names.iter().copied()), names.is_empty()) {
        (Some(near), _) => problem.help(format!("did you mean {near:?}?")),
        (None, false) => problem.help(format!("the catalogs are {}", names.join(", "))),
        (None, true) => problem.help("name a file, a folder or a URL"),
    }
}

struct ComparedReading {
    catalog: Catalog,
    keep: KeptCatalogParts,
}

impl ComparedReading {
    fn add(&mut self, blob: &Blob<'_>) -> std::result::Result<(), String> {
        Ok(self.catalog.add(blob, &self.keep)?)
    }
}

async fn read_catalog(
    source: &ComparedSource,
    target: Option<&Target>,
    settings: &Settings,
    host: &Host,
) -> std::result::Result<Catalog, Problem> {
    let keep = KeptCatalogParts { all_images: true, ..KeptCatalogParts::default() };
    let state = ComparedReading { catalog: Catalog::default(), keep };
    let (state, read) = match (source, target) {
        (ComparedSource::Unnamed(source) | ComparedSource::Configured(source), _) => {
            let timeout = settings.timeouts.request;
            content::read(source, &host.working_directory, timeout, state, ComparedReading::add).await
        }
        (ComparedSource::Live(catalog), Some(target)) => {
            content::read_live(catalog, target, state, ComparedReading::add).await
        }
        (ComparedSource::Live(catalog), None) => {
            return Err(Problem::new(format!("there is no target with the catalog {}", catalog.name)));
        }
    };
    read?;
    state.map(|state| state.catalog).ok_or_else(|| Problem::new("interrupted while reading a catalog"))
}

fn unlisted(kind: &str, problem: Problem) -> Problem {
    Problem { message: format!("it is unknown which {kind}s are affected: {}", problem.message), ..problem }
}

/// The ClusterExtensions and Subscriptions of the manifests. What is installed is in the status of the live object, or
/// in that of the manifest, if it was exported.
fn of_manifests(
    manifests: &LoadedManifests,
    live: &[LiveExtension],
    live_subscriptions: &[SubscriptionObject],
    settings: &Settings,
) -> (Vec<LiveExtension>, Vec<SubscriptionObject>) {
    let (mut extensions, mut subscriptions) = (Vec::new(), Vec::new());
    for manifest in &manifests.manifests {
        if cluster_extension::is_one(&manifest.object) {
            let value = manifest.raw.value();
            let Some(extension) = Extension::parse(&manifest.object, &value) else { continue };
            let known = live.iter().find(|live| live.extension.name == extension.name);
            let installed = known.and_then(|live| live.installed.clone()).or_else(|| installed(&value));
            extensions.push(LiveExtension { extension, installed });
        } else if subscription::is_one(&manifest.object) {
            let Some(mut object) = SubscriptionObject::parse(&manifest.raw.value()) else { continue };
            if object.namespace.is_empty() {
                object.namespace = settings.namespace.clone().unwrap_or_default();
            }
            let known = live_subscriptions
                .iter()
                .find(|live| (&live.name, &live.namespace) == (&object.name, &object.namespace));
            if let Some(known) = known {
                object.installed_csv.clone_from(&known.installed_csv);
            }
            subscriptions.push(object);
        }
    }
    (extensions, subscriptions)
}
