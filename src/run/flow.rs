//! `deploy`, `check` and `diff`: one flow. `deploy` continues after the report.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use super::app::{self, Deployed};
use super::baseline::{self, Baselines};
use super::before::Before;
use super::diffs;
use super::fleet;
use super::host::{Exit, Host};
use super::interrupt::until;
use super::look::{Checking, Showing, look};
use super::output::Output;
use super::prepare::{Last, Opened, loader, open, overrides, read_files, read_input};
use super::verdict::{self, Terms};
use super::write;
use crate::apply::delete::Removed;
use crate::apply::{Applied, Reached};
use crate::catalog::{self, Catalogs};
use crate::cli::{DeleteArgs, DeployArgs, FlowArgs};
use crate::cluster::Target;
use crate::config::{Loader, Overrides, SelectedCheck, Settings};
use crate::finding::{ApplyResult, Baseline, Mode, redact};
use crate::manifest::{Input, Loaded};
use crate::options::{DiffKind, TargetSpec, Waves};
use crate::plan::{Plan, Prefetch, strategy};
use crate::preflight::custom::{self, Surroundings};
use crate::preflight::deletion_safety;
use crate::preflight::extension_resolution;
use crate::preflight::proofs::Known;
use crate::preflight::registry;
use crate::preflight::run::Enabled;
use crate::preflight::waive::Waivers;
use crate::problem::{Error, Problem, Result};
use crate::readiness::State;
use crate::report::human::Purpose;
use crate::report::{ChangeEntry, ErrorEntry, Outcome, Report, WaitEntry, WaitState};
use crate::ui::progress::Progress;

/// Deletes an app: a deploy of no manifests, which prunes all members.
pub async fn delete(args: &DeleteArgs, host: &mut Host) -> Exit {
    let deploy = args.deploy();
    let purpose = if args.dry_run { Purpose::DryRun } else { Purpose::Delete };
    report(&deploy.flow, Goal::Delete(&deploy), purpose, host).await
}

/// Which command runs the flow.
#[derive(Clone, Copy)]
pub enum Goal<'a> {
    Deploy(&'a DeployArgs),
    /// The deploy of no manifests that deletes an app.
    Delete(&'a DeployArgs),
    Check,
    Diff,
}

impl<'a> Goal<'a> {
    fn deploy(self) -> Option<&'a DeployArgs> {
        match self {
            Goal::Deploy(deploy) | Goal::Delete(deploy) => Some(deploy),
            Goal::Check | Goal::Diff => None,
        }
    }

    /// The diffs to show.
    fn diffs(self, args: &FlowArgs) -> Option<diffs::Wanted> {
        let always = matches!(self, Goal::Diff).then_some(DiffKind::Changes);
        args.diff.or(always).map(|kind| diffs::Wanted { kind, all: args.output.verbose > 0 })
    }
}

/// Runs the flow and prints the result.
pub async fn run(args: &FlowArgs, goal: Goal<'_>, host: &mut Host) -> Exit {
    let purpose = match goal {
        Goal::Check => Purpose::Check,
        Goal::Diff => Purpose::Diff,
        Goal::Deploy(deploy) if deploy.dry_run => Purpose::DryRun,
        Goal::Deploy(_) | Goal::Delete(_) => Purpose::Deploy,
    };
    report(args, goal, purpose, host).await
}

async fn report(args: &FlowArgs, goal: Goal<'_>, purpose: Purpose, host: &mut Host) -> Exit {
    let mut output = Output::new(&args.output, purpose);
    let mut report = Report::default();
    let exit = match Box::pin(steps(args, goal, host, &mut output, &mut report)).await {
        Ok(Ended::OnMany(ended)) => {
            let fleet::Ended { list, exit, fresh } = *ended;
            return match output.finish_list(host, &list, fresh.as_ref()) {
                Ok(()) => exit,
                Err(error) => {
                    output.problems(host, error.problems());
                    Exit::from(&error)
                }
            };
        }
        Ok(Ended::OnOne(exit)) if args.detailed_exitcode => detailed(exit, &report),
        Ok(Ended::OnOne(exit)) => exit,
        Err(error) => {
            output.add_to(&mut report, &error);
            output.problems(host, error.problems());
            if !output.is_configured() {
                // The report must not overwrite a file with an error, either.
                let loader = loader(&args.input.config, host);
                let files = args.input.files.iter().map(PathBuf::from).chain(loader.every_file());
                let files: Vec<PathBuf> = files.map(|file| host.working_directory.join(file)).collect();
                if let Err(error) = output.spare(&files, &TargetSpec::Kube, host) {
                    output.problems(host, error.problems());
                }
            }
            Exit::from(&error)
        }
    };
    match output.finish(host, &report) {
        Ok(()) => exit,
        Err(error) => {
            output.problems(host, error.problems());
            // The report is missing or incomplete, so the outcome goes to stderr.
            output.applied(host, &report);
            Exit::from(&error)
        }
    }
}

/// How a run ended.
enum Ended {
    OnOne(Exit),
    OnMany(Box<fleet::Ended>),
}

/// The exit code with `--detailed-exitcode`.
pub(super) fn detailed(exit: Exit, report: &Report) -> Exit {
    let is_change = |change: &ChangeEntry| match change.result {
        Some(result) => matches!(result, ApplyResult::Applied | ApplyResult::Deleted),
        None => !change.action.leaves_alone(),
    };
    if exit == Exit::Success && report.changes.iter().any(is_change) { Exit::Changes } else { exit }
}

async fn steps(
    args: &FlowArgs,
    goal: Goal<'_>,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
) -> Result<Ended> {
    let (mut run, input) = prepare(args, goal, host, output, report).await?;
    let stop = host.stop.clone();
    if !run.deletes()
        && let Some(contexts) = until(&stop, fleet::find(&run, &host.working_directory)).await?
    {
        return Box::pin(fleet::run(run, contexts, input, host, output)).await.map(Box::new).map(Ended::OnMany);
    }
    let baseline = run.baselines.take().map(Baselines::of_one).transpose()?;
    let input = (!run.deletes()).then_some(input);
    let opening = Box::pin(open(&run.settings, input, run.last(), &run.progress));
    let Opened { mut loaded, target, ahead, before } = until(&stop, opening).await?;
    run.take_in(&mut loaded)?;
    let at = At { target, ahead, before, baseline: baseline.as_ref() };
    Box::pin(on_target(&run, loaded, at, host, output, report, &mut |_| ())).await.map(Ended::OnOne)
}

/// A run before its target is opened.
pub(super) struct Run<'a> {
    pub args: &'a FlowArgs,
    pub goal: Goal<'a>,
    /// A deploy or a delete, and no dry run.
    pub writes: bool,
    /// The user passed `--yes`.
    pub confirmed: bool,
    pub settings: Settings,
    enabled: Vec<Enabled>,
    pub baselines: Option<Baselines>,
    /// See [`Input::sum`]; empty without an app.
    sum: String,
    pub progress: Progress,
    /// Proofs that the clusters of a run on several share.
    pub known: Option<Arc<Known>>,
}

impl Run<'_> {
    pub fn waves(&self) -> Option<&Waves> {
        self.goal.deploy()?.waves.as_ref()
    }

    fn deletes(&self) -> bool {
        matches!(self.goal, Goal::Delete(_))
    }

    /// What the app was last deployed with, if not all of its objects have to be read.
    pub fn last(&self) -> Option<Last<'_>> {
        // Custom checks get the live objects, so these are read.
        let is_known = |enabled: &Enabled| registry::find(&enabled.name).is_some();
        self.enabled.iter().all(is_known).then_some(Last { flags: &self.args.app, input: &self.sum })
    }

    /// Checks what depends on the manifests, not on the target.
    pub fn take_in(&mut self, loaded: &mut Loaded) -> Result<()> {
        let deletes = self.deletes();
        let Run { settings, enabled, .. } = self;
        // Deletions are always checked; in the mode of the configuration, if it names the check.
        let deletes_some = settings.app.is_some() || loaded.manifests.iter().any(strategy::may_replace);
        if deletes_some && enabled.iter().all(|enabled| enabled.name != deletion_safety::NAME) {
            let check = Box::new(deletion_safety::DeletionSafety);
            enabled.push(Enabled { name: deletion_safety::NAME.to_owned(), mode: Mode::Error, check });
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
pub(super) async fn prepare<'a>(
    args: &'a FlowArgs,
    goal: Goal<'a>,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
) -> Result<(Run<'a>, Input)> {
    let deploy = goal.deploy();
    let render = Loader { overrides: overrides(&args.input), ..loader(&args.input.config, host) };
    let input = read_input(&args.input.files, &render, host).await?;
    let writes = deploy.is_some_and(|deploy| !deploy.dry_run);
    let (settings, mut enabled, input) = configure(args, writes, input, host, output, report)?;
    let baselines = args.baseline.as_deref().map(|file| baseline::read(file, &host.working_directory)).transpose()?;
    if matches!(goal, Goal::Diff) && args.input.preflight.is_empty() {
        enabled.clear();
    }
    if settings.app.is_none() {
        args.app.need_none()?;
    }
    if let (Some(app), false) = (&settings.app, args.filter.is_empty()) {
        // Objects that are filtered out would count as removed from the manifests.
        let problem = Problem::new(format!("--filter cannot be used with an app ({app})"));
        return Err(Error::usage(problem.help("leave out --filter to deploy or compare the whole app")));
    }
    let progress = Progress::new(host.stderr_is_terminal && !output.quiet());
    let sum = if settings.app.is_some() { input.sum() } else { String::new() };
    let confirmed = deploy.is_some_and(|deploy| deploy.yes);
    Ok((Run { args, goal, writes, confirmed, settings, enabled, baselines, sum, progress, known: None }, input))
}

/// An open target, and what was already read from it.
pub(super) struct At<'a> {
    pub target: Target,
    pub ahead: Prefetch,
    pub before: Option<Before>,
    pub baseline: Option<&'a Baseline>,
}

/// Runs on one target, from the manifests to the end. `on_plan` gets the plan as soon as it is built.
pub(super) async fn on_target(
    run: &Run<'_>,
    mut loaded: Loaded,
    at: At<'_>,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
    on_plan: &mut (dyn FnMut(&Plan) + Send),
) -> Result<Exit> {
    let Run { args, goal, writes, confirmed, settings, enabled, sum, progress, .. } = run;
    let (args, writes, confirmed, deletes) = (*args, *writes, *confirmed, run.deletes());
    let At { target, ahead, before, baseline } = at;
    let stop = host.stop.clone();
    if writes {
        target.remove_leftovers();
    }
    add_notices(target.notices(), host, output, report);
    add_notices(&loaded.notices, host, output, report);
    if settings.logs && settings.redact {
        let problem = Problem::new("the logs of Pods are not shown: they can contain any values");
        add_notices(&[problem.help("leave out --redact to see them")], host, output, report);
    }
    let is_asked = host.stdin_is_terminal && host.stderr_is_terminal && !confirmed;
    let use_of = app::Use { writes, asks: writes && is_asked, confirmed, deletes };
    // Boxed, because the future is large and the caller's thread may have little stack.
    let before = app::Known { before, input: sum.clone() };
    let opened = Box::pin(app::open(settings, &args.app, &mut loaded.manifests, &target, use_of, before));
    let managed = until(&stop, opened).await?;
    if deletes && writes && !confirmed {
        write::needs_terminal(host, "delete without confirmation: --yes")?;
    }
    report.target = target.describe();
    let checking = Checking {
        enabled,
        waivers: Waivers { list: &settings.waivers, today: host.today },
        baseline,
        catalogs: Catalogs {
            sources: &settings.catalogs,
            working_directory: &host.working_directory,
            timeout: settings.timeouts.request,
        },
        known: run.known.as_ref(),
        app: managed.as_ref(),
        showing: Showing {
            filters: &args.filter,
            diff: goal.diffs(args),
            drops_kapp_selector: args.drop_kapp_selector,
            verbose: args.output.verbose > 0,
        },
    };
    let looked_at = Box::pin(look(settings, loaded.into(), ahead, &target, checking, progress, report));
    let (plan, foreseen, notices) = until(&stop, looked_at).await?;
    on_plan(&plan);
    add_notices(&notices, host, output, report);
    add_warnings(host, output, &target, settings.redact);
    output.warnings(host, &report.warnings);

    let terms = Terms { writes, force_conflicts: settings.force_conflicts, redact: settings.redact };
    let verdict = verdict::before_writing(&report.checks, &plan, &foreseen, terms);
    output.notices(host, &verdict.notices);
    report.outcome = verdict.outcome;
    report.errors.extend(verdict.errors);
    // The notices were printed already. With --force-conflicts they are not errors.
    if !settings.force_conflicts {
        report.warnings.extend(verdict.notices.iter().map(ErrorEntry::from));
    }
    output.review(host, report)?;
    if !verdict.goes_on {
        let options = app::options(settings, None, &report.extensions);
        if verdict.outcome == Outcome::Unchanged && options.ready_timeout.is_some() {
            let applied = Box::pin(write::resume(&plan, &target, options, progress, host)).await;
            add_notices(&applied.notices, host, output, report);
            report.waits = waits(&applied, settings.redact);
            let (outcome, exit, errors) = verdict::after_writing(&applied, &Removed::default(), settings.redact);
            if exit != Exit::Success {
                report.outcome = outcome;
                report.errors.extend(errors);
                // The record keeps the entry of the earlier run.
                return Ok(exit);
            }
        }
        if let (Outcome::Unchanged, Some(managed)) = (verdict.outcome, &managed) {
            Box::pin(managed.settle(&plan, &target, host)).await?;
        }
        return Ok(verdict.exit);
    }
    // Without a terminal there is no question: the checks decide.
    if is_asked {
        write::confirm(host, &write::question(report, &target)).await?;
    }

    let Deployed { applied, removed } = match &managed {
        None => {
            let options = app::options(settings, None, &report.extensions);
            let applied = Box::pin(write::write(&plan, &target, options, progress, host)).await;
            Deployed { applied, removed: Removed::default() }
        }
        Some(managed) => {
            let write = async |host: &mut Host, written| {
                write::write(&plan, &target, app::options(settings, written, &report.extensions), progress, host).await
            };
            Box::pin(app::deploy(managed, &plan, &target, settings, host, write)).await
        }
    };
    add_warnings(host, output, &target, settings.redact);
    add_notices(&applied.notices, host, output, report);
    for (entry, result) in report.changes.iter_mut().zip(applied.results.iter().chain(&removed.results)) {
        entry.result = Some(*result);
    }
    report.waits = waits(&applied, settings.redact);
    let (outcome, exit, errors) = verdict::after_writing(&applied, &removed, settings.redact);
    report.outcome = outcome;
    report.errors.extend(errors);
    report.count();
    Ok(exit)
}

/// What was awaited, as entries of the report.
fn waits(applied: &Applied, redacted: bool) -> Vec<WaitEntry> {
    let entry = |(change, Reached { state, after }): (&usize, &Reached)| {
        let reason =
            state.reason().map(|reason| if redacted { redact::without_values(reason) } else { reason.to_owned() });
        let state = match state {
            State::Ready { .. } => WaitState::Ready,
            State::InProgress(_) => WaitState::InProgress,
            State::Failed(_) => WaitState::Failed,
        };
        WaitEntry { change: *change, state, reason, seconds: after.as_secs() }
    };
    applied.waits.iter().map(entry).collect()
}

/// Prints notices to stderr and adds them to the report.
fn add_notices(notices: &[Problem], host: &mut Host, output: &mut Output, report: &mut Report) {
    output.notices(host, notices);
    report.notices.extend(notices.iter().map(ErrorEntry::from));
}

/// Prints the server's own warnings (deprecated APIs and the like), as kubectl does.
fn add_warnings(host: &mut Host, output: &mut Output, target: &Target, redacted: bool) {
    let said = |text: String| if redacted { redact::warning(&text).to_owned() } else { text };
    let mut warnings: Vec<Problem> = target
        .take_warnings()
        .into_iter()
        .map(|text| Problem::new(format!("the API server warns: {}", said(text))))
        .collect();
    // Values are hidden, so that several warnings may have become the same.
    let mut seen = BTreeSet::new();
    warnings.retain(|warning| seen.insert(warning.message.clone()));
    output.notices(host, &warnings);
}

/// Reads the configuration, including the Config documents among the manifests.
fn configure(
    args: &FlowArgs,
    writes: bool,
    input: Input,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
) -> Result<(Settings, Vec<Enabled>, Input)> {
    let overrides = Overrides {
        warn_only: args.warn_only,
        user: args.identity.user.clone(),
        groups: args.identity.groups.clone(),
        field_manager: args.field_manager.clone(),
        force_conflicts: args.force_conflicts,
        take_ownership: args.take_ownership.clone(),
        app: args.app.name.clone(),
        app_namespace: args.app.namespace.clone(),
        prune: args.app.prune.map(Into::into),
        prune_max: args.app.prune_max,
        wait: args.wait,
        logs: args.logs,
        ignore_failing_api_services: args.ignore_failing_api_services,
        keep_going: args.keep_going,
        apply_timeout: args.apply_timeout.clone(),
        wait_timeout: args.wait_timeout.clone(),
        wait_resource_timeout: args.wait_resource_timeout.clone(),
        output: args.output.specs.clone(),
        color: args.output.color,
        redact: args.redact,
        ..overrides(&args.input)
    };
    let loader = Loader { overrides, ..loader(&args.input.config, host) };
    let loaded = loader.load(input.configs(), &registry::known())?;
    let settings = loaded.settings;
    output.configure(&settings.output, settings.color, settings.redact, host)?;
    let mut read = read_files(&loader, &settings, &input, host);
    read.extend(args.baseline.iter().map(|file| host.working_directory.join(file)));
    output.spare(&read, &settings.target, host)?;
    for source in input.sources() {
        output.add_source(source.clone());
    }
    add_notices(&loaded.notices, host, output, report);
    if let (TargetSpec::Git(_), true) = (&settings.target, writes) {
        let problem = Problem::new("a commit of git cannot be deployed to: it is only read");
        let help = "compare with it: gantry check, gantry diff or gantry deploy --dry-run";
        return Err(Error::usage(problem.help(help)));
    }
    let surroundings = Surroundings::new(host.working_directory.clone(), host.environment.clone());
    let enabled = settings
        .checks
        .iter()
        .filter_map(|SelectedCheck { name, mode, definition, config }| {
            let check = match registry::find(name) {
                Some(entry) => (entry.build)(config),
                None => custom::build(name, definition, config, &surroundings)?,
            };
            Some(Enabled { name: name.clone(), mode: *mode, check })
        })
        .collect::<Vec<Enabled>>();
    if enabled.iter().any(|enabled| enabled.name == extension_resolution::NAME) {
        catalog::check(&settings.catalogs, &host.working_directory)?;
    }
    if enabled.iter().any(|enabled| enabled.check.reproduces_a_tool()) {
        output.quote_tools();
    }
    Ok((settings, enabled, input))
}
