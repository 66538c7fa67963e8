//! Prepares a run from its arguments: reads the manifests and settings, and opens the target.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::{FutureExt, try_join};

use super::before::{self, RecordedApp};
use super::host::Host;
use super::interrupt::{interrupt, interrupted, until_interrupted};
use crate::cli::{AppFlags, ChartArgs, ConfigFlags, IdentityArgs, InputArgs, KubeconfigArgs, TargetArgs};
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{Connection, DesiredSource, HelmRelease, Impersonate, Target, git};
use gantry_core::manifest::{Input, LoadedManifests, ManifestInputError, PreparedSources, shown_text};
use gantry_core::options::{GitSpec, HelmReleaseSpec, TargetSpec};
use gantry_core::parallel::on_cpu_thread;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::render::{self, ChartOptions, RenderedManifests, Renderers, UpgradedRelease};
use gantry_core::ui::progress::ProgressDisplay;
use gantry_deploy::app::label;
use gantry_deploy::config::{Loader, Overrides, Settings, key};
use gantry_deploy::plan::{Prefetch, graph};
use gantry_preflight::registry;

/// Whether the templates of a chart see what the target is.
#[derive(Clone, Copy)]
pub enum Asking<'a> {
    /// As Helm asks the cluster that it installs a chart in.
    Target,
    /// The target is several clusters, or none that a chart is installed in.
    Nobody,
    /// As Helm asks the cluster when it upgrades this release.
    ForUpgrade(&'a HelmRelease),
}

/// Reads the texts of the manifests: files, those of commits, and what programs render from charts, kustomizations and,
/// with `--render`, any folder.
pub async fn read_input(arguments: &[String], loader: &Loader, asking: Asking<'_>, host: &mut Host) -> Result<Input> {
    let stop = host.stop.clone();
    let readers = until_interrupted(&stop, Box::pin(readers(arguments, loader, asking, host))).await?;
    let InputReaders { renderers, settings } = &readers;
    let mut prepared = PreparedSources::default();
    let mut files = Vec::new();
    let mut problems = Vec::new();
    for argument in arguments {
        let folder = render::folder_of_kustomization(argument).unwrap_or(argument);
        if let Some(spec) = git_argument(argument)? {
            let reading = Box::pin(git::read_manifests(&spec, folder != argument, renderers));
            prepared.append(until_interrupted(&stop, reading).await?);
            continue;
        }
        if let (Some(spec), Some(settings)) = (helm_argument(argument)?, settings) {
            let reading = Box::pin(read_helm_release(&spec, settings));
            let release = until_interrupted(&stop, reading).await?;
            prepared.append(release.to_apply().map_err(Error::failed)?);
            continue;
        }
        let Some(renderer) = renderers.of_argument(argument, &host.working_directory) else {
            files.push(argument.clone());
            continue;
        };
        if folder == "-" {
            let problem = Problem::new("standard input cannot be rendered: a program renders folders");
            return Err(Error::usage(problem.help("render it first: kustomize build DIR | gantry check -f -")));
        }
        let from = shown_text(folder);
        let running = renderer.run(OsStr::new(folder), &host.working_directory, &from);
        let made = tokio::select! {
            made = running => made,
            () = interrupt(&stop) => return Err(interrupted()),
        };
        match made {
            Ok(RenderedManifests { source, notice }) => {
                prepared.sources.push(Arc::new(source));
                prepared.notices.extend(notice);
            }
            Err(problem) => problems.push(problem),
        }
    }
    match problems.is_empty() {
        true => read_files_of(arguments, files, prepared, host).await,
        false => Err(Error::Failed(problems)),
    }
}

/// The commit of an argument that names one.
fn git_argument(argument: &str) -> Result<Option<GitSpec>> {
    let folder = render::folder_of_kustomization(argument).unwrap_or(argument);
    let Some(spec) = folder.strip_prefix("git:") else { return Ok(None) };
    let wrong = |why| Error::usage(Problem::new(format!("-f {}: {why}", shown_text(argument))));
    spec.parse().map(Some).map_err(wrong)
}

/// Whether an argument names a chart, perhaps one of a commit.
///
/// # Errors
/// It names a commit wrongly.
pub async fn is_chart(argument: &str, working_directory: &Path) -> Result<bool> {
    Ok(match git_argument(argument)? {
        Some(spec) if render::folder_of_kustomization(argument).is_none() => git::has_chart(&spec).await,
        Some(_) => false,
        None => render::is_chart(argument, working_directory),
    })
}

/// The Helm release of an argument that names one.
fn helm_argument(argument: &str) -> Result<Option<HelmReleaseSpec>> {
    let wrong = |why| Error::usage(Problem::new(format!("-f {}: {why}", shown_text(argument))));
    HelmReleaseSpec::of_argument(argument).transpose().map_err(wrong)
}

/// Reads a Helm release from the cluster of these settings.
async fn read_helm_release(spec: &HelmReleaseSpec, settings: &Settings) -> Result<HelmRelease> {
    let server = KubeTarget::open(&connection(settings, impersonate(settings)?)).await?;
    HelmRelease::read(spec, settings.namespace.as_deref(), &server).await
}

/// What reads arguments that are no files.
struct InputReaders {
    renderers: Renderers,
    /// If an argument needs them.
    settings: Option<Settings>,
}

/// The programs that render the arguments. The configuration is read for them, and the cluster is asked, only if there
/// is a chart or a release.
async fn readers(arguments: &[String], loader: &Loader, asking: Asking<'_>, host: &Host) -> Result<InputReaders> {
    let command = loader.render();
    let mut has_release = false;
    for argument in arguments {
        has_release |= helm_argument(argument)?.is_some();
    }
    let mut has_chart = false;
    for argument in arguments.iter().filter(|_| command.is_none()) {
        has_chart |= is_chart(argument, &host.working_directory).await?;
    }
    if !has_chart && !has_release {
        return Ok(InputReaders { renderers: Renderers { command, ..Renderers::default() }, settings: None });
    }
    let settings = loader.load([], &registry::known())?.settings;
    if !has_chart {
        return Ok(InputReaders { renderers: settings.renderers.clone(), settings: Some(settings) });
    }
    let problems = settings.renderers.charts.problems_of_values(&host.working_directory);
    if !problems.is_empty() {
        return Err(Error::Usage(problems));
    }
    let mut renderers = settings.renderers.clone();
    let charts = &mut renderers.charts;
    match (asking, &settings.target) {
        (Asking::Target, TargetSpec::Kube) => see_cluster(charts, &settings).await?,
        (Asking::Target, TargetSpec::HelmRelease(spec)) => {
            see_cluster(charts, &settings).await?;
            upgrade(charts, &read_helm_release(spec, &settings).await?, false);
        }
        (Asking::ForUpgrade(release), _) => {
            see_cluster(charts, &settings).await?;
            upgrade(charts, release, true);
        }
        (Asking::Target | Asking::Nobody, _) => {}
    }
    Ok(InputReaders { renderers, settings: Some(settings) })
}

/// Renders charts as an upgrade of the release.
fn upgrade(charts: &mut ChartOptions, release: &HelmRelease, leaves_crds: bool) {
    charts.release.get_or_insert_with(|| release.name().to_owned());
    charts.namespace = Some(release.namespace.clone());
    charts.upgraded = Some(UpgradedRelease { values: release.values().map(str::to_owned), leaves_crds });
}

/// Lets the templates of charts see the cluster of these settings.
async fn see_cluster(charts: &mut ChartOptions, settings: &Settings) -> Result<()> {
    let server = KubeTarget::open(&connection(settings, impersonate(settings)?)).await?;
    charts.kube_version = server.release().await.map(|release| format!("{release}.0"));
    let namespace = charts.namespace.take();
    charts.namespace = namespace.or_else(|| Some(server.default_namespace().to_owned()));
    let mut versions = BTreeSet::new();
    for resource in server.served().await?.into_iter().filter(|resource| !resource.plural.contains('/')) {
        let version = match resource.group.as_str() {
            "" => resource.version,
            group => format!("{group}/{}", resource.version),
        };
        versions.insert(format!("{version}/{}", resource.kind));
        versions.insert(version);
    }
    charts.api_versions = versions.into_iter().collect();
    Ok(())
}

/// The manifests of a command that can do without.
pub struct OptionalInput {
    input: Option<Input>,
    configs: usize,
}

impl OptionalInput {
    /// Reads the texts of the manifests, if there are any, and the settings with the configuration among them.
    pub async fn open(files: &[String], loader: &Loader, host: &mut Host) -> Result<(Self, Settings)> {
        let input = match files {
            [] => None,
            files => Some(read_input(files, loader, Asking::Target, host).await?),
        };
        let configs: Vec<_> = input.iter().flat_map(|input| input.configs()).cloned().collect();
        let loaded = loader.load(&configs, &registry::known())?;
        host.print_notices(&loaded.notices);
        Ok((OptionalInput { input, configs: configs.len() }, loaded.settings))
    }

    /// The manifests; `None` if no file is named.
    pub fn read(self) -> Result<Option<LoadedManifests>> {
        let Some(input) = self.input else { return Ok(None) };
        complete(input.read()?, self.configs).map(Some)
    }
}

/// Reads the texts of the manifests on a separate thread: standard input may be a pipe that nobody writes to.
async fn read_files_of(
    arguments: &[String],
    files: Vec<String>,
    prepared: PreparedSources,
    host: &mut Host,
) -> Result<Input> {
    let (arguments, mut stdin) = (arguments.to_vec(), host.stdin.take());
    let reading =
        tokio::task::spawn_blocking(move || (Input::open_with(&arguments, &files, &mut stdin, prepared), stdin));
    let read = tokio::select! {
        read = reading => read,
        () = interrupt(&host.stop) => return Err(interrupted()),
    };
    let (input, stdin) = read.map_err(|_| Error::failed(Problem::new("the manifests could not be read")))?;
    host.stdin = stdin;
    Ok(input)
}

/// The settings from flags that all commands with manifests and a target have.
pub fn overrides(input: &InputArgs) -> Overrides {
    let of_target = overrides_of_target(&input.target, &input.config);
    let of_release = || {
        let mut named = input.files.iter().filter_map(|argument| HelmReleaseSpec::of_argument(argument)?.ok());
        named.find_map(|spec| spec.namespace)
    };
    // Objects without a namespace are in that of their release.
    let namespace = input.target.namespace.clone().or_else(of_release);
    overrides_of_charts(of_target.with(&key::NAMESPACE, &namespace), &input.chart)
        .with_checks(&input.preflight)
        .with_catalogs(&input.catalogs)
        .with(&key::PRESET, &input.preset)
        .with(&key::OLM, &input.olm)
        .with(&key::RENDER, &input.render)
}

/// These settings, and those of how charts are rendered.
pub fn overrides_of_charts(overrides: Overrides, chart: &ChartArgs) -> Overrides {
    overrides
        .with(&key::CHART_VALUES, &chart.values)
        .with(&key::CHART_SET, &chart.set)
        .with(&key::CHART_RELEASE, &chart.release)
        .with(&key::CHART_VERSION, &chart.chart_version)
}

/// The same for a command that does not require manifests.
pub fn overrides_of_target(target: &TargetArgs, config: &ConfigFlags) -> Overrides {
    overrides_of_kubeconfig(&target.kubeconfig, config)
        .with(&key::TARGET, &target.target)
        .with(&key::NAMESPACE, &target.namespace)
}

/// The same for a command whose target is a cluster.
pub fn overrides_of_kubeconfig(kubeconfig: &KubeconfigArgs, config: &ConfigFlags) -> Overrides {
    Overrides::default()
        .with(&key::KUBECONFIG, &kubeconfig.file)
        .with(&key::CONTEXT, &kubeconfig.context)
        .with(&key::CLUSTER, &kubeconfig.cluster)
        .with(&key::USER, &kubeconfig.user)
        .with(&key::SERVER, &kubeconfig.server)
        .with(&key::TOKEN, &kubeconfig.token)
        .with(&key::ALLOW_EXEC, &config.allow_exec)
}

/// These settings, and the flags that name the user of the requests.
pub fn impersonating(overrides: Overrides, identity: &IdentityArgs) -> Overrides {
    overrides.with(&key::AS_USER, &identity.user).with(&key::AS_GROUPS, &identity.groups)
}

/// The sources of the configuration, without the flags of single commands.
pub fn loader(flags: &ConfigFlags, host: &Host) -> Loader {
    Loader {
        environment: host.environment.clone(),
        unreadable_environment: host.unreadable_environment.clone(),
        working_directory: host.working_directory.clone(),
        files: flags.config_files.clone(),
        overrides: Overrides::default().with(&key::ALLOW_EXEC, &flags.allow_exec),
        replaced: BTreeMap::new(),
    }
}

/// Every file that the run reads, which no report may overwrite.
pub fn read_files(loader: &Loader, settings: &Settings, input: &Input, host: &Host) -> Vec<PathBuf> {
    let manifests = input.sources().iter().map(|source| PathBuf::from(&*source.name));
    let arguments = input.arguments().iter().map(PathBuf::from);
    let kubeconfig = settings.kubeconfig.iter().cloned();
    let variable = |name: &str| {
        let text = host.environment.get(name).map(OsString::from);
        text.or_else(|| host.unreadable_environment.get(name).cloned())
    };
    let listed = variable("KUBECONFIG").unwrap_or_default();
    let from_environment = std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty());
    let at_home = variable("HOME").map(|home| Path::new(&home).join(".kube").join("config"));
    let files =
        manifests.chain(arguments).chain(loader.every_file()).chain(kubeconfig).chain(from_environment).chain(at_home);
    files.map(|file| host.working_directory.join(file)).collect()
}

/// The user and groups to impersonate.
pub fn impersonate(settings: &Settings) -> Result<Option<Impersonate>> {
    match (&settings.user, &settings.groups[..]) {
        (None, []) => Ok(None),
        (Some(user), groups) => Ok(Some(Impersonate { user: user.clone(), groups: groups.to_vec() })),
        (None, _) => Err(Error::usage(
            Problem::new("a group cannot be impersonated without a user").help("also name a user with --as"),
        )),
    }
}

/// The connection to the target of these settings.
pub fn connection(settings: &Settings, impersonate: Option<Impersonate>) -> Connection {
    Connection {
        kubeconfig: settings.kubeconfig.clone(),
        read: None,
        context: settings.context.clone(),
        overrides: settings.connection.clone(),
        impersonate,
        timeout: Some(settings.timeouts.request),
        credentials_timeout: Some(settings.timeouts.credentials),
    }
}

/// Opens the target of these settings, without manifests to compare it with.
pub async fn open_target(settings: &Settings) -> Result<Target> {
    Target::open(&settings.target, &connection(settings, impersonate(settings)?), DesiredSource::default()).await
}

/// Where the manifests come from, for a target that is read in the same way.
pub fn desired_source<'a>(
    settings: &'a Settings,
    files: &'a [String],
    loaded: Option<&'a LoadedManifests>,
) -> DesiredSource<'a> {
    DesiredSource { files, render: Some(&settings.renderers), loaded, namespace: settings.namespace.as_deref() }
}

/// The flags and the input of a run, to compare with an app's last deploy.
#[derive(Clone, Copy)]
pub struct InputOfRun<'a> {
    pub flags: &'a AppFlags,
    /// See [`Input::sum`].
    pub input: &'a str,
}

/// The manifests and the target.
pub struct PreparedRun {
    pub loaded: LoadedManifests,
    pub target: Target,
    pub ahead: Prefetch,
    /// The app, if it was read.
    pub before: Option<RecordedApp>,
}

/// Reads the manifests and opens the target. If there is much to read, live CRDs are requested in parallel. Problems of
/// the manifests are reported whatever the target answers, and even if it does not answer.
///
/// Without input there are no manifests: an app is deleted. With `last`, the app is read in parallel.
pub async fn open(
    settings: &Settings,
    input: Option<Input>,
    last: Option<InputOfRun<'_>>,
    progress: &ProgressDisplay,
) -> Result<PreparedRun> {
    let connection = connection(settings, impersonate(settings)?);
    let release = settings.kube_versions.first().copied();
    let Some(input) = input else {
        let target = Target::open(&settings.target, &connection, DesiredSource::default()).await?;
        let target = target.with_release(release);
        return Ok(PreparedRun { loaded: LoadedManifests::default(), target, ahead: Prefetch::none(), before: None });
    };
    let names = input.foreseen_crds();
    // Objects that moved are searched for in a commit, so the manifests are read first.
    let is_long = !names.is_empty() && !matches!(settings.target, TargetSpec::Git(_));
    let arguments = input.arguments().to_vec();
    let reading = read_manifests(settings, input);
    let opening = async |loaded: Option<&LoadedManifests>| {
        let desired = desired_source(settings, &arguments, loaded);
        let target = Target::open(&settings.target, &connection, desired).await?.with_release(release);
        let stage = progress.stage("reading live objects", None);
        if let Some(InputOfRun { flags, input }) = &last
            && let Some(before) = before::look_ahead(settings, flags, input, &target).await?
        {
            return Ok::<_, Error>((target, Prefetch::none(), Some(before)));
        }
        let ahead = Prefetch::read(names, &target, &|done, total| stage.set(done, total)).await;
        Ok((target, ahead, None))
    };
    let (loaded, (target, ahead, before)) = match is_long {
        false => {
            let loaded = reading.await?;
            let opened = opening(Some(&loaded)).await?;
            (loaded, opened)
        }
        true => {
            let (loaded, opened) = try_join!(reading, opening(None).map(Ok))?;
            (loaded, opened?)
        }
    };
    Ok(PreparedRun { loaded, target, ahead, before })
}

/// Reads the manifests, and reports what is wrong with them on any target.
pub async fn read_manifests(settings: &Settings, input: Input) -> Result<LoadedManifests> {
    let configs = input.configs().count();
    let interrupted = || Error::failed(Problem::new("interrupted while reading the manifests"));
    let read = on_cpu_thread(move || input.read()).await.ok_or_else(interrupted)?;
    let read = match (read, &settings.app) {
        (Err(ManifestInputError { problems, is_empty: true }), Some(app)) => {
            let problems = problems.into_iter().map(|problem| problem.help(delete_instead(app, settings)));
            return Err(Error::Usage(problems.collect()));
        }
        (read, _) => read?,
    };
    let mut loaded = complete(read, configs).map_err(|error| match (error, &settings.app) {
        (Error::Failed(problems), Some(app)) => {
            Error::Usage(problems.into_iter().map(|problem| problem.help(delete_instead(app, settings))).collect())
        }
        (error, _) => error,
    })?;
    label::add(&mut loaded.manifests, &settings.rules.labels);
    graph::check(&loaded.manifests, &settings.rules.bindings, settings.namespace.as_deref().unwrap_or("default"))?;
    Ok(loaded)
}

/// The next step if an app is deployed without manifests: all of its members would count as removed from them.
fn delete_instead(app: &str, settings: &Settings) -> String {
    let namespace = settings.app_namespace.as_ref().or(settings.namespace.as_ref());
    let flag = namespace.map(|namespace| format!(" -n {namespace}")).unwrap_or_default();
    format!("to delete the app: gantry delete -a {app}{flag}")
}

/// Checks that there is something to deploy, and that all Config documents were found early enough.
pub fn complete(loaded: LoadedManifests, configs: usize) -> Result<LoadedManifests> {
    if let Some(late) = loaded.configs.get(configs) {
        let problem =
            Problem::new("this Config document was detected too late to take effect").at(late.origin.location());
        return Err(Error::usage(problem.help("write its apiVersion without escapes or tags")));
    }
    if loaded.manifests.is_empty() && loaded.bundles.is_empty() {
        let problem = Problem::new("the manifests contain only configuration and no object to deploy");
        return Err(Error::failed(problem.help("pass manifests with -f and configuration files with -c")));
    }
    Ok(loaded)
}
