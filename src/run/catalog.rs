//! `gantry catalog`: shows what can be installed, and the upgrade paths between versions. It only reads.

mod ask;
mod diff;
mod live;
mod problems;

use std::io::{self, Write};

use gantry_catalog::graph::{InstalledBundleRef, UpgradeGraph};
use gantry_catalog::mistakes::mistakes;
use gantry_catalog::{
    Blob, BlobSchema, Catalog, Channel, Csvs, KeptCatalogParts, OlmRelease, Package, PackageBundle, VersionRelease,
};
use serde_json::json;

use self::live::LiveCatalogs;
use self::problems::{broken, named, no_channel, no_item, no_version, suggest};
use super::host::{Exit, Host};
use super::interrupt::until_interrupted;
use super::prepare::{impersonating, loader, overrides_of_kubeconfig};
use crate::cli::{CatalogArgs, CatalogCommand};
use gantry_cluster::Target;
use gantry_core::ci_log::{Guarded, OutputSyntax};
use gantry_core::options::CatalogFormat;
use gantry_core::problem::{Error, Problem, Result};
use gantry_deploy::config::{Loader, Settings, key};
use gantry_olm::cluster_catalog::ClusterCatalog;
use gantry_olm::content;
use gantry_olm::printed::{self as shown, Way};
use gantry_olm::source::CatalogSource;
use gantry_preflight::registry;
use gantry_report::json::harmless;

/// The most mistakes of a package that are printed; the others are counted.
const MOST_MISTAKES: usize = 10;

/// Answers one question about the catalogs.
pub async fn run(args: &CatalogArgs, host: &mut Host) -> Exit {
    if let Some(CatalogCommand::Diff(args)) = &args.command {
        return Box::pin(diff::run(args, host)).await;
    }
    match run_catalog(args, host).await {
        Ok(answer) => {
            let exit = host.say(&answer.text);
            match (answer.problems.is_empty(), exit) {
                (false, Exit::Success) => host.complain(&Error::Failed(answer.problems)),
                (_, exit) => exit,
            }
        }
        Err(error) => host.complain(&error),
    }
}

/// What is printed, and what could not be read.
#[derive(Default)]
struct CatalogPrintout {
    text: String,
    problems: Vec<Problem>,
}

impl From<String> for CatalogPrintout {
    fn from(text: String) -> Self {
        CatalogPrintout { text, problems: Vec::new() }
    }
}

async fn run_catalog(args: &CatalogArgs, host: &mut Host) -> Result<CatalogPrintout> {
    check(args)?;
    let overrides = overrides_of_kubeconfig(&args.kubeconfig, &args.config)
        .with_catalogs(&args.catalogs)
        .with(&key::OLM, &args.olm)
        .with(&key::TARGET, &args.target);
    let loader = Loader { overrides: impersonating(overrides, &args.identity), ..loader(&args.config, host) };
    let loaded = loader.load([], &registry::known())?;
    host.print_notices(&loaded.notices);
    let settings = loaded.settings;
    let olm = settings.olm.map_or(OlmRelease::NEWEST, |named| named.olm);
    let note = settings.olm.filter(|_| args.olm.is_some()).and_then(|named| named.note());
    host.print_notices(&note.map(Problem::new).into_iter().collect::<Vec<_>>());
    content::check(&settings.catalogs, &host.working_directory)?;
    // A user who names catalogs may not have a cluster.
    let asks_cluster = settings.catalogs.is_empty() || args.names_cluster();
    let live = match asks_cluster {
        true => until_interrupted(&host.stop, live::find(&settings)).await?,
        false => LiveCatalogs::default(),
    };
    host.print_notices(&live.notices);
    let asks_across = args.provides.is_some() || args.requires.is_some();
    let is_answer = args.supported || args.from.is_some() || args.version.is_some() || args.bundle || asks_across;
    let is_blobs = args.output == Some(CatalogFormat::Json) && !is_answer;
    let keep = KeptCatalogParts {
        properties_of: args.package.iter().filter(|_| !is_blobs).cloned().collect(),
        all_properties: asks_across,
        judged_for: args.supported.then_some(olm),
        csv: match (args.supported, &args.package, &args.item) {
            (true, None, _) => Csvs::All,
            (true, Some(_), _) => Csvs::Kept,
            _ if args.version.is_some() => Csvs::Kept,
            (_, Some(_), Some(_)) if !is_blobs && args.from.is_none() => Csvs::Kept,
            _ => Csvs::None,
        },
        ..KeptCatalogParts::default()
    };
    let printed = is_blobs.then(|| (args.package.clone(), args.item.clone()));
    let catalogs = read(&settings, &live, keep, printed, host).await?;
    let found = CatalogQuery { args, olm, catalogs: &catalogs };
    let answer = match &args.package {
        // None of the catalogs could be read.
        _ if catalogs.is_empty() && !live.unread.is_empty() => Ok(CatalogPrintout::default()),
        None if asks_across => ask::across(args, &catalogs),
        None => Ok(found.all(is_blobs)),
        Some(package) => found.of_package(package, is_blobs, host),
    };
    // The package may be in the catalogs that could not be read.
    match answer {
        Ok(answer) => Ok(CatalogPrintout { problems: [live.unread, answer.problems].concat(), ..answer }),
        Err(Error::Failed(problems)) => Err(Error::Failed([live.unread, problems].concat())),
        Err(usage) => Err(usage),
    }
}

/// A catalog to read.
#[derive(Clone, Copy)]
enum CatalogToRead<'a> {
    Configured(&'a CatalogSource),
    Live(&'a ClusterCatalog, &'a Target),
}

/// Usage errors that clap cannot detect.
fn check(args: &CatalogArgs) -> Result<()> {
    let wrong = |message: &str| Err(Error::usage(Problem::new(message)));
    if args.olm.is_some() && !args.supported && args.version.is_none() {
        return wrong("--olm is for --supported and --version");
    }
    if matches!(args.output, Some(CatalogFormat::Mermaid | CatalogFormat::Dot)) {
        if args.provides.is_some() || args.requires.is_some() || args.version.is_some() || args.bundle {
            return wrong(
                "-o mermaid and -o dot show whole upgrade graphs: gantry catalog PACKAGE [CHANNEL] -o mermaid",
            );
        }
        if args.package.is_none() {
            return wrong("a graph shows one package: gantry catalog PACKAGE [CHANNEL] -o mermaid");
        }
        if args.from.is_some() || args.supported {
            return wrong(
                "-o mermaid and -o dot show whole upgrade graphs and cannot be used with --from or --supported",
            );
        }
    }
    Ok(())
}

/// Gets each blob.
struct BlobPrinter {
    catalog: Catalog,
    keep: KeptCatalogParts,
    /// Which blobs are printed: all packages, everything of one package, or one item of it.
    printed: Option<(Option<String>, Option<String>)>,
    out: Box<dyn Write + Send>,
    /// Why writing stopped.
    failure: Option<io::Error>,
}

/// The error that ends reading once the output is closed.
const CLOSED: &str = "the output was closed";

impl BlobPrinter {
    fn add(&mut self, blob: &Blob<'_>) -> std::result::Result<(), String> {
        self.catalog.add(blob, &self.keep)?;
        if !self.is_printed(blob) {
            return Ok(());
        }
        // JSON has control characters below U+0020 only as escapes; the others are escaped here.
        let json = blob.json();
        writeln!(self.out, "{}", harmless(&json)).map_err(|error| {
            self.failure = Some(error);
            CLOSED.to_owned()
        })
    }

    fn is_printed(&self, blob: &Blob<'_>) -> bool {
        match &self.printed {
            None => false,
            Some((None, _)) => blob.kind() == BlobSchema::Package,
            Some((Some(package), _)) if blob.of_package() != package => false,
            Some((_, None)) => true,
            Some((Some(package), Some(item))) => match blob.kind() {
                BlobSchema::Channel => blob.name == *item,
                BlobSchema::Bundle => {
                    let bundle =
                        self.catalog.packages.get(package).and_then(|package| package.bundles.get(&*blob.name));
                    bundle.is_some_and(|bundle| is_meant(bundle, item))
                }
                _ => false,
            },
        }
    }
}

/// Reads all catalogs, one after another.
async fn read(
    settings: &Settings,
    live: &LiveCatalogs,
    keep: KeptCatalogParts,
    printed: Option<(Option<String>, Option<String>)>,
    host: &mut Host,
) -> Result<Vec<(String, Catalog)>> {
    let (mut catalogs, mut problems) = (Vec::new(), Vec::new());
    let configured = settings.catalogs.iter().map(CatalogToRead::Configured);
    let target = live.target.iter();
    let of_cluster =
        target.flat_map(|target| live.catalogs.iter().map(move |catalog| CatalogToRead::Live(catalog, target)));
    for source in configured.chain(of_cluster) {
        let out = Guarded::new(std::mem::replace(&mut host.stdout, Box::new(io::sink())), OutputSyntax::Json);
        let state = BlobPrinter {
            catalog: Catalog::default(),
            keep: keep.clone(),
            printed: printed.clone(),
            out: Box::new(io::BufWriter::with_capacity(1 << 16, out)),
            failure: None,
        };
        let (state, read) = read_catalog(source, settings, state, host).await?;
        let Some(mut state) = state else { return Err(Error::Failed(read.err().into_iter().collect())) };
        let flushed = state.out.flush();
        host.stdout = state.out;
        match state.failure.or(flushed.err()) {
            // The reader closed the pipe (`gantry catalog -o json | head`).
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(catalogs),
            Some(error) => return Err(Error::failed(Problem::new(format!("cannot write: {error}")))),
            None => {}
        }
        problems.extend(read.err());
        let (CatalogToRead::Configured(CatalogSource { name, .. })
        | CatalogToRead::Live(ClusterCatalog { name, .. }, _)) = source;
        catalogs.push((name.clone(), state.catalog));
    }
    if problems.is_empty() { Ok(catalogs) } else { Err(Error::Failed(problems)) }
}

async fn read_catalog(
    source: CatalogToRead<'_>,
    settings: &Settings,
    state: BlobPrinter,
    host: &Host,
) -> Result<(Option<BlobPrinter>, std::result::Result<(), Problem>)> {
    let timeout = settings.timeouts.request;
    let read = async {
        Ok(match source {
            CatalogToRead::Configured(source) => {
                content::read(source, &host.working_directory, timeout, state, BlobPrinter::add).await
            }
            CatalogToRead::Live(catalog, target) => content::read_live(catalog, target, state, BlobPrinter::add).await,
        })
    };
    until_interrupted(&host.stop, read).await
}

/// Whether `item` is the name or the version of the bundle.
fn is_meant(bundle: &PackageBundle, item: &str) -> bool {
    if bundle.name == item || bundle.version == item {
        return true;
    }
    match (VersionRelease::parse(item), bundle.version()) {
        (Ok(item), Ok(version)) => item == version,
        _ => false,
    }
}

/// What was read, and the arguments.
struct CatalogQuery<'a> {
    args: &'a CatalogArgs,
    /// The release of OLM v1 that is judged for.
    olm: OlmRelease,
    catalogs: &'a [(String, Catalog)],
}

/// What the argument after the package names.
enum CatalogItem<'a> {
    Channel(&'a Channel),
    Bundles(Vec<&'a PackageBundle>),
}

impl<'a> CatalogQuery<'a> {
    /// Prints all packages.
    fn all(&self, is_blobs: bool) -> CatalogPrintout {
        let packages =
            self.catalogs.iter().flat_map(|(catalog, found)| found.packages.values().map(move |p| (catalog, p)));
        let problems = packages.filter_map(|(catalog, package)| broken(catalog, package)).collect();
        let text = match (self.args.supported, is_blobs) {
            (true, _) => self.supported(None),
            (_, true) => String::new(),
            _ => shown::packages(self.catalogs),
        };
        CatalogPrintout { text, problems }
    }

    fn supported(&self, package: Option<&str>) -> String {
        let olm = self.olm;
        let mut bundles = Vec::new();
        for (catalog, found) in self.catalogs {
            for of in found.packages.values().filter(|of| package.is_none_or(|package| of.name == package)) {
                // OLM v1 refuses declared dependencies before it looks at the ClusterServiceVersion.
                let is_supported = |bundle: &&PackageBundle| {
                    let support = bundle.support.as_ref();
                    bundle.required.is_empty() && support.is_some_and(|support| support.unsupported.is_empty())
                };
                let supported = of.by_version().into_iter().filter(is_supported);
                bundles.extend(supported.map(|bundle| (catalog.as_str(), of.name.as_str(), bundle)));
            }
        }
        if self.args.output != Some(CatalogFormat::Json) {
            return shown::supported(self.catalogs, &bundles, olm);
        }
        let line = |(_, package, bundle): &(&str, &str, &PackageBundle)| {
            let csv = bundle.csv.as_ref();
            let version = csv.map(|csv| &csv.version).filter(|version| !version.is_empty());
            let mut line = json!({"package": package, "version": version.unwrap_or(&bundle.version)});
            match csv.and_then(|csv| csv.webhooks) {
                None => line["webhooks"] = "unknown".into(),
                Some(0) => {}
                Some(number) => line["webhooks"] = number.into(),
            }
            format!("{line}\n")
        };
        bundles.iter().map(line).collect()
    }

    /// Prints one package.
    fn of_package(&self, name: &str, is_blobs: bool, host: &mut Host) -> Result<CatalogPrintout> {
        let found =
            self.catalogs.iter().filter_map(|(catalog, found)| Some((catalog.as_str(), found.packages.get(name)?)));
        let found: Vec<(&str, &Package)> = found.collect();
        if found.is_empty() {
            return Err(Error::failed(self.no_package(name)));
        }
        let problems: Vec<Problem> = found.iter().filter_map(|(catalog, package)| broken(catalog, package)).collect();
        if !problems.is_empty() {
            return Err(Error::Failed(problems));
        }
        for (catalog, package) in &found {
            warn(catalog, package, host);
        }
        if self.args.supported {
            return Ok(self.supported(Some(name)).into());
        }
        if let Some(range) = &self.args.version {
            return ask::installed_by_range(self.args, range, self.olm, &found).map(CatalogPrintout::from);
        }
        if let Some(from) = &self.args.from {
            return self.print_ways(&found, from);
        }
        let Some(item) = &self.args.item else {
            return Ok(match self.args.output {
                _ if is_blobs => CatalogPrintout::default(),
                Some(CatalogFormat::Mermaid) => pictures(&found, shown::picture::mermaid),
                Some(CatalogFormat::Dot) => pictures(&found, shown::picture::dot),
                _ => joined(found.iter().map(|(catalog, package)| shown::package(catalog, package))),
            });
        };
        let items: Vec<(&str, &Package, CatalogItem)> =
            found.iter().filter_map(|(catalog, package)| Some((*catalog, *package, item_of(package, item)?))).collect();
        if items.is_empty() {
            return Err(Error::failed(no_item(&found, item)));
        }
        if is_blobs {
            return Ok(CatalogPrintout::default());
        }
        let mut texts = Vec::new();
        for (catalog, package, item) in items {
            texts.push(match (item, self.args.output) {
                (CatalogItem::Channel(channel), Some(CatalogFormat::Mermaid)) => {
                    shown::picture::mermaid(package, &[channel])
                }
                (CatalogItem::Channel(channel), Some(CatalogFormat::Dot)) => shown::picture::dot(package, &[channel]),
                (CatalogItem::Channel(channel), _) if self.args.bundle => {
                    let name = &channel.name;
                    let problem =
                        Problem::new(format!("--bundle needs a bundle or its version, and {name} is a channel"));
                    return Err(Error::usage(problem));
                }
                (CatalogItem::Channel(channel), _) => shown::channel(catalog, package, channel),
                (CatalogItem::Bundles(_), Some(CatalogFormat::Mermaid | CatalogFormat::Dot)) => {
                    return Err(Error::usage(Problem::new("a graph shows a package or a channel, not a bundle")));
                }
                (CatalogItem::Bundles(bundles), format) if self.args.bundle => {
                    let as_json = format == Some(CatalogFormat::Json);
                    bundles.iter().map(|bundle| shown::bundle_source(catalog, package, bundle, as_json)).collect()
                }
                (CatalogItem::Bundles(bundles), _) => {
                    let bundles = bundles.iter().map(|bundle| shown::bundle(catalog, package, bundle));
                    bundles.collect::<Vec<_>>().join("\n")
                }
            });
        }
        Ok(joined(texts))
    }

    fn print_ways(&self, found: &[(&str, &'a Package)], from: &str) -> Result<CatalogPrintout> {
        let (mut texts, mut problems) = (Vec::new(), Vec::new());
        for (catalog, package) in found {
            let channels: Vec<String> = self.args.item.iter().cloned().collect();
            if let Some(channel) = channels.iter().find(|channel| !package.channels.contains_key(*channel)) {
                problems.push(no_channel(catalog, package, channel));
                continue;
            }
            match self.print_way(catalog, package, &channels, from) {
                Ok(text) => texts.push(text),
                Err(problem) => problems.push(problem),
            }
        }
        // With several catalogs, it is enough if one has it.
        if texts.is_empty() { Err(Error::Failed(problems)) } else { Ok(joined(texts)) }
    }

    fn print_way(
        &self,
        catalog: &str,
        package: &Package,
        channels: &[String],
        from: &str,
    ) -> std::result::Result<String, Problem> {
        let graph = UpgradeGraph::new(package, channels);
        let named =
            package.bundles.get(from).into_iter().chain(package.by_version().into_iter().filter(|b| is_meant(b, from)));
        let start = match (named.into_iter().next(), VersionRelease::parse(from)) {
            (Some(bundle), _) => graph.installed(&bundle.name),
            (None, Ok(version)) => InstalledBundleRef { name: None, version: Some(version.version) },
            (None, Err(_)) => return Err(no_version(catalog, package, from)),
        };
        let to = match &self.args.to {
            None => None,
            Some(to) => {
                let meant = package.by_version().into_iter().find(|bundle| is_meant(bundle, to));
                Some(meant.ok_or_else(|| no_version(catalog, package, to))?)
            }
        };
        let way = Way { catalog, package, graph: &graph, from: start, from_text: from, to };
        let as_json = self.args.output == Some(CatalogFormat::Json);
        match shown::render_ways(&way, as_json) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => {
                let to = to.map(|bundle| bundle.version.as_str()).unwrap_or_default();
                let name = &package.name;
                let problem = Problem::new(format!("{name}: no edges lead from {from} to {to} (catalog {catalog})"));
                Err(problem.help(format!("gantry catalog {name} --from {from} lists the reachable versions")))
            }
            Err(_) => Err(Problem::new(format!("{}: the upgrade graph is too large to search", package.name))),
        }
    }

    fn no_package(&self, name: &str) -> Problem {
        let names = || self.catalogs.iter().flat_map(|(_, catalog)| catalog.packages.keys().map(String::as_str));
        let catalogs: Vec<&str> = self.catalogs.iter().map(|(name, _)| name.as_str()).collect();
        let problem = Problem::new(format!("no package {name:?} in {}", named("catalog", &catalogs)));
        problem.help(suggest(name, names(), "gantry catalog lists all packages"))
    }
}

fn pictures(found: &[(&str, &Package)], draw: fn(&Package, &[&Channel]) -> String) -> CatalogPrintout {
    let of = |package: &Package| draw(package, &package.channels.values().collect::<Vec<_>>());
    joined(found.iter().map(|(_, package)| of(package)))
}

fn joined(texts: impl IntoIterator<Item = String>) -> CatalogPrintout {
    texts.into_iter().collect::<Vec<_>>().join("\n").into()
}

fn item_of<'a>(package: &'a Package, item: &str) -> Option<CatalogItem<'a>> {
    if let Some(channel) = package.channels.get(item) {
        return Some(CatalogItem::Channel(channel));
    }
    let bundles: Vec<&PackageBundle> =
        package.by_version().into_iter().filter(|bundle| is_meant(bundle, item)).collect();
    (!bundles.is_empty()).then_some(CatalogItem::Bundles(bundles))
}

/// What `opm validate` would refuse. OLM v1 accepts it, but it is rarely intended.
fn warn(catalog: &str, package: &Package, host: &mut Host) {
    let mistakes = mistakes(package);
    let shown = mistakes.iter().take(MOST_MISTAKES);
    let mut notices: Vec<Problem> = shown
        .map(|mistake| Problem::new(format!("CatalogInvalid: catalog {catalog}, package {}: {mistake}", package.name)))
        .collect();
    if mistakes.len() > MOST_MISTAKES {
        notices.push(Problem::new(format!("CatalogInvalid: and {} more mistakes", mistakes.len() - MOST_MISTAKES)));
    }
    host.print_notices(&notices);
}
