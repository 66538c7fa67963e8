//! A run before its target is opened: its flags, its configuration and its checks.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

use super::goal::Goal;
use crate::cli::{ChartArgs, FlowArgs};
use crate::run::as_helm::ChangedRelease;
use crate::run::baseline::{self, Baselines};
use crate::run::fleet;
use crate::run::history::{ReadRevision, read_revision};
use crate::run::host::Host;
use crate::run::interrupt::until_interrupted;
use crate::run::next_command::ClusterFlags;
use crate::run::output::Output;
use crate::run::prepare::{Asking, InputOfRun, loader, overrides, read_files, read_input};
use gantry_core::finding::Mode;
use gantry_core::manifest::{Input, LoadedManifests};
use gantry_core::options::{Prune, TargetSpec, Waves};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::render;
use gantry_core::ui::progress::ProgressDisplay;
use gantry_deploy::config::{CheckConfig, Loader, Overrides, SelectedCheck, Settings, key};
use gantry_deploy::plan::strategy;
use gantry_olm::content;
use gantry_preflight::custom::{self, ProgramEnvironment};
use gantry_preflight::proofs::ProofCache;
use gantry_preflight::registry::{self, CHECKS};
use gantry_preflight::run::Enabled;
use gantry_report::Report;

/// A run before its target is opened.
pub struct ConfiguredRun<'a> {
    pub args: &'a FlowArgs,
    pub goal: Goal<'a>,
    /// A deploy or a delete, and no dry run.
    pub writes: bool,
    /// The user passed `--yes`.
    pub confirmed: bool,
    pub settings: Settings,
    /// What the settings were read from.
    pub(super) loader: Loader,
    pub(super) enabled: Vec<Enabled>,
    pub baselines: Option<Baselines>,
    /// See [`Input::sum`]; empty without an app.
    pub(super) sum: String,
    pub progress: ProgressDisplay,
    /// The revision whose manifests these are.
    pub revision: Option<u32>,
    /// The release that Helm would change, if it is foretold what Helm does.
    pub as_helm: Option<ChangedRelease>,
    /// Proofs that the clusters of a run on several share.
    pub known: Option<Arc<ProofCache>>,
}

impl ConfiguredRun<'_> {
    pub fn waves(&self) -> Option<&Waves> {
        self.goal.deploy()?.waves.as_ref()
    }

    pub fn deletes(&self) -> bool {
        matches!(self.goal, Goal::Delete(_))
    }

    /// What to compare with the app's last deploy: an app that was deployed with the same need not be read. `None` if a
    /// check needs the live objects anyway.
    pub fn input_of_run(&self) -> Option<InputOfRun<'_>> {
        // Custom checks get the live objects, so these are read.
        let is_known = |enabled: &Enabled| registry::find(&enabled.name).is_some();
        self.enabled.iter().all(is_known).then_some(InputOfRun { flags: &self.args.app, input: &self.sum })
    }

    /// Checks what depends on the manifests, not on the target.
    pub fn check_manifests(&mut self, loaded: &mut LoadedManifests) -> Result<()> {
        let deletes = self.deletes();
        if let Some(release) = &self.as_helm {
            release.mark(&mut loaded.manifests);
        }
        let is_as_helm = self.as_helm.is_some();
        let ConfiguredRun { settings, enabled, .. } = self;
        // Deletions are always checked; in the mode of the configuration, if it names the check.
        let deletes_some = settings.app.is_some()
            || is_as_helm
            || loaded.manifests.iter().any(strategy::may_replace)
            // OLM deletes what leaves a bundle.
            || !loaded.bundles.is_empty();
        for entry in CHECKS.iter().filter(|entry| entry.guards_deletions && deletes_some) {
            if enabled.iter().all(|enabled| enabled.name != entry.name) {
                let check = (entry.build)(&CheckConfig::default());
                enabled.push(Enabled { name: entry.name.to_owned(), mode: Mode::Error, by_default: false, check });
            }
        }
        // A bundle that OLM does not install must not pass.
        let has_bundles = !loaded.bundles.is_empty() && !matches!(self.goal, Goal::Diff(..));
        for entry in CHECKS.iter().filter(|entry| entry.guards_bundles && has_bundles) {
            let is_new = enabled.iter().all(|enabled| enabled.name != entry.name);
            if is_new && settings.may_add_check(entry.name) {
                let check = (entry.build)(&CheckConfig::default());
                enabled.push(Enabled { name: entry.name.to_owned(), mode: Mode::Error, by_default: true, check });
            }
        }
        if let (Some(app), true, false) = (&settings.app, loaded.manifests.is_empty(), deletes) {
            // All members would count as removed from the manifests.
            let problem = Problem::new(format!("there are only bundles to deploy as the app {app}"));
            return Err(Error::usage(
                problem.help("OLM installs bundles; leave out --app, or add the app's manifests"),
            ));
        }
        strategy::fill_nonces(&mut loaded.manifests, Timestamp::now());
        Ok(())
    }
}

/// Reports all errors of the configuration, before the first request.
pub async fn prepare<'a>(
    args: &'a FlowArgs,
    goal: Goal<'a>,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
) -> Result<(ConfiguredRun<'a>, Input)> {
    let deploy = goal.deploy();
    let arguments = args.input.arguments();
    let mut loader = Loader { overrides: overrides_of_flow(args), ..loader(&args.input.config, host) };
    let as_helm = match goal.is_as_helm() {
        false => None,
        true if fleet::may_be_several(args) => {
            let problem = Problem::new("--as-helm: a release is in one cluster, but several may be named");
            return Err(Error::usage(problem.help("name one: --context NAME")));
        }
        true if !args.filter.is_empty() => {
            // Objects that are filtered out would count as removed from the chart.
            let problem = Problem::new("--filter cannot be used with --as-helm");
            return Err(Error::usage(problem.help("leave out --filter to foretell the whole release")));
        }
        true => {
            let settings = loader.load([], &registry::known())?.settings;
            let opening = Box::pin(ChangedRelease::open(&arguments, &settings, &host.working_directory));
            let release = until_interrupted(&host.stop.clone(), opening).await?;
            loader.overrides = release.overrides(loader.overrides);
            Some(release)
        }
    };
    let (input, revision) = match goal.revision() {
        None => {
            check_chart_flags(&args.input.chart, &arguments, &host.working_directory)?;
            let asking = match &as_helm {
                Some(release) => Asking::ForUpgrade(&release.deployed),
                None if fleet::may_be_several(args) => Asking::Nobody,
                None => Asking::Target,
            };
            (read_input(&arguments, &loader, asking, host).await?, None)
        }
        Some(wanted) => {
            let settings = loader.load([], &registry::known())?.settings;
            let reading = Box::pin(read_revision(&settings, wanted, ClusterFlags::of_flow(args, None)));
            let ReadRevision { number, input } = until_interrupted(&host.stop.clone(), reading).await?;
            (input, Some(number))
        }
    };
    let writes = deploy.is_some_and(|deploy| !deploy.dry_run);
    let (mut settings, mut enabled, input) = configure(args, &loader, writes, input, host, output, report)?;
    let baselines = args.baseline.as_deref().map(|file| baseline::read(file, &host.working_directory)).transpose()?;
    if matches!(goal, Goal::Diff(..)) && args.input.preflight.is_empty() {
        enabled.clear();
        settings.without_crd_safety = None;
    }
    if settings.app.is_none() {
        args.app.need_none()?;
    }
    if let (Some(app), false) = (&settings.app, args.filter.is_empty()) {
        // Objects that are filtered out would count as removed from the manifests.
        let problem = Problem::new(format!("--filter cannot be used with an app ({app})"));
        return Err(Error::usage(problem.help("leave out --filter to deploy or compare the whole app")));
    }
    let progress = ProgressDisplay::new(host.stderr_is_terminal, output.is_quiet());
    let sum = if settings.app.is_some() { input.sum() } else { String::new() };
    let confirmed = deploy.is_some_and(|deploy| deploy.yes);
    Ok((
        ConfiguredRun {
            args,
            goal,
            writes,
            confirmed,
            settings,
            loader,
            enabled,
            baselines,
            sum,
            progress,
            revision,
            as_helm,
            known: None,
        },
        input,
    ))
}

/// Refuses flags for charts if there is none.
fn check_chart_flags(flags: &ChartArgs, arguments: &[String], working_directory: &Path) -> Result<()> {
    let may_be = |argument: &String| argument.starts_with("git:") || render::is_chart(argument, working_directory);
    match flags.first_flag().filter(|_| !arguments.iter().any(may_be)) {
        None => Ok(()),
        Some(flag) => {
            let problem = Problem::new(format!("{flag} is for Helm charts, but -f names none"));
            Err(Error::usage(problem.help(render::CHART_HELP)))
        }
    }
}

/// The settings from flags.
fn overrides_of_flow(args: &FlowArgs) -> Overrides {
    overrides(&args.input)
        .with_made(&args.settings)
        .with(&key::AS_USER, &args.identity.user)
        .with(&key::AS_GROUPS, &args.identity.groups)
        .with(&key::APP, &args.app.name)
        .with(&key::APP_NAMESPACE, &args.app.namespace)
        .with(&key::PRUNE, &args.app.prune.map(Prune::from))
        .with(&key::PRUNE_MAX, &args.app.prune_max)
        .with(&key::OUTPUT, &args.output.specs)
        .with(&key::COLOR, &args.output.color)
}

/// Reads the configuration, including the Config documents among the manifests.
fn configure(
    args: &FlowArgs,
    loader: &Loader,
    writes: bool,
    input: Input,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
) -> Result<(Settings, Vec<Enabled>, Input)> {
    let loaded = loader.load(input.configs(), &registry::known())?;
    let settings = loaded.settings;
    output.configure(&settings.output, settings.color, settings.is_on(&key::REDACT), host)?;
    output.with_connection(&settings);
    if settings.output_is_of_project {
        output.spare_foreign_files(host)?;
    }
    let mut read = read_files(loader, &settings, &input, host);
    read.extend(args.baseline.iter().map(|file| host.working_directory.join(file)));
    output.refuse_to_overwrite(&read, &settings.target, host)?;
    for source in input.sources() {
        output.add_source(source.clone());
    }
    output.add_notices(host, &loaded.notices, report);
    if settings.target.is_read_only() && writes {
        let what = match &settings.target {
            TargetSpec::HelmRelease(_) => "a Helm release",
            TargetSpec::Chart(_) => "a chart",
            TargetSpec::Git(_) | TargetSpec::Commits(_) | TargetSpec::Kube | TargetSpec::Dir(_) => "a commit of git",
        };
        let problem = Problem::new(format!("{what} cannot be deployed to: it is only read"));
        let help = "compare with it: gantry check, gantry diff or gantry deploy --dry-run";
        return Err(Error::usage(problem.help(help)));
    }
    let surroundings = ProgramEnvironment::new(host.working_directory.clone(), host.environment.clone());
    let enabled = settings
        .checks
        .iter()
        .filter_map(|SelectedCheck { name, mode, by_default, definition, config }| {
            let check = match registry::find(name) {
                Some(entry) => (entry.build)(config),
                None => custom::build(name, definition, config, &surroundings)?,
            };
            Some(Enabled { name: name.clone(), mode: *mode, by_default: *by_default, check })
        })
        .collect::<Vec<Enabled>>();
    if enabled.iter().any(|enabled| enabled.check.reads_catalogs()) {
        content::check(&settings.catalogs, &host.working_directory)?;
    }
    output.quote_tools(settings.kapp_lines, enabled.iter().any(|enabled| enabled.check.reproduces_a_tool()));
    Ok((settings, enabled, input))
}
