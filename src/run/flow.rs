//! `deploy` and `check`: one flow, and `deploy` goes on after the report.

use tokio::sync::watch;

use super::output::Output;
use super::{Exit, Host};
use crate::apply::{self, Applied, ApplyOptions, Event};
use crate::cli::{DeployArgs, FlowArgs};
use crate::config::{Loader, Overrides, Settings};
use crate::date::Date;
use crate::manifest::{self, Manifest};
use crate::plan::{self, Action, Plan, PlanOptions};
use crate::preflight::registry;
use crate::preflight::run::{self as checks, Enabled};
use crate::preflight::waive::Waivers;
use crate::problem::{Error, Problem, Result};
use crate::report::human::Purpose;
use crate::report::{CheckStatus, ErrorEntry, Outcome, Report, Summary};
use crate::target::{Connection, Target};
use crate::text;
use crate::ui::confirm;
use crate::ui::progress::Progress;

/// Runs the flow and prints what came of it.
pub async fn run(args: &FlowArgs, deploy: Option<&DeployArgs>, host: &mut Host) -> Exit {
    let purpose = match deploy {
        None => Purpose::Check,
        Some(deploy) if deploy.dry_run => Purpose::DryRun,
        Some(_) => Purpose::Deploy,
    };
    let mut output = Output::new(args, purpose);
    let mut report = Report::default();
    let exit = match steps(args, deploy, host, &mut output, &mut report).await {
        Ok(exit) => exit,
        Err(error) => {
            report.outcome = Outcome::Failed;
            report.errors.extend(error.problems().iter().map(ErrorEntry::from));
            output.problems(host, error.problems());
            Exit::from(&error)
        }
    };
    match output.finish(host, &report) {
        Ok(()) => exit,
        Err(error) => {
            output.problems(host, error.problems());
            Exit::from(&error)
        }
    }
}

async fn steps(
    args: &FlowArgs,
    deploy: Option<&DeployArgs>,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
) -> Result<Exit> {
    // Configuration and manifests: everything that can be wrong in files is said before the first request.
    let (settings, enabled, manifests) = read_files(args, deploy, host, output)?;
    let progress = Progress::new(host.stderr_is_terminal && !output.quiet());

    let mut stop = host.stop.clone();
    let looked_at = tokio::select! {
        result = look(&settings, manifests, &enabled, &progress, host.today, report) => result?,
        _ = stop.wait_for(|stop| *stop) => {
            return Err(Error::failed(Problem::new("interrupted; nothing was written")));
        }
    };
    let (target, plan) = looked_at;
    tell_warnings(host, output, &target);
    output.warnings(host, &report.warnings);

    let writes = deploy.is_some_and(|deploy| !deploy.dry_run);
    let exit = verdict(report, writes, &plan);
    output.review(host, report)?;
    if exit != Exit::Success || !writes {
        return Ok(exit);
    }
    if plan.changes.iter().all(|change| change.action == Action::Unchanged) {
        return Ok(Exit::Success);
    }
    // Off a terminal nobody can answer: the checks are the gate.
    let asks = host.stdin_is_terminal && host.stderr_is_terminal && !deploy.is_some_and(|deploy| deploy.yes);
    if asks && !confirmed(host, question(report, &target)).await {
        return Err(Error::failed(Problem::new("not confirmed; nothing was written")));
    }

    let applied = write(&plan, &target, &settings, &progress, host.stop.clone()).await;
    tell_warnings(host, output, &target);
    Ok(conclude(report, applied))
}

/// The server's own warnings (deprecated APIs and the like), as kubectl shows them.
fn tell_warnings(host: &mut Host, output: &mut Output, target: &Target) {
    let warnings = target.take_warnings().into_iter().map(|text| Problem::new(format!("the API server warns: {text}")));
    output.notices(host, &warnings.collect::<Vec<_>>());
}

/// Reads configuration and manifests. A broken configuration is said even when the manifests are broken too: its exit
/// code is another.
fn read_files(
    args: &FlowArgs,
    deploy: Option<&DeployArgs>,
    host: &mut Host,
    output: &mut Output,
) -> Result<(Settings, Vec<Enabled>, Vec<Manifest>)> {
    let loader = Loader {
        environment: host.environment.clone(),
        working_directory: host.working_directory.clone(),
        files: args.config.config_files.clone(),
        overrides: Overrides {
            preflight: args.preflight.clone(),
            warn_only: args.warn_only,
            target: args.target.clone(),
            kubeconfig: args.kubeconfig.clone(),
            context: args.context.clone(),
            namespace: args.namespace.clone(),
            field_manager: deploy.and_then(|deploy| deploy.field_manager.clone()),
            force_conflicts: deploy.is_some_and(|deploy| deploy.force_conflicts),
            output: args.output.clone(),
            color: args.color,
        },
    };
    let manifests = manifest::load(&args.files, &mut host.stdin);
    let configs = manifests.iter().flat_map(|loaded| &loaded.configs).map(|document| &document.origin);
    let loaded = loader.load(configs, &registry::known())?;
    let manifests = manifests.map_err(Error::Failed)?;
    if manifests.manifests.is_empty() {
        let problem = Problem::new("the manifests hold configuration and no object to deploy");
        return Err(Error::failed(problem.help("name the manifests with -f and configuration files with -c")));
    }

    let settings = loaded.settings;
    output.configure(&settings.output, settings.color, host)?;
    for manifest in &manifests.manifests {
        output.add_source(manifest.origin.source.clone());
    }
    output.notices(host, &loaded.notices);
    output.notices(host, &manifests.notices);
    let enabled = settings
        .checks
        .iter()
        .filter_map(|selected| {
            let entry = registry::find(selected.name)?;
            Some(Enabled { name: entry.name, mode: selected.mode, check: (entry.build)(&selected.config) })
        })
        .collect();
    Ok((settings, enabled, manifests.manifests))
}

/// Everything up to the report; reads only.
async fn look(
    settings: &Settings,
    manifests: Vec<Manifest>,
    enabled: &[Enabled],
    progress: &Progress,
    today: Date,
    report: &mut Report,
) -> Result<(Target, Plan)> {
    let connection = Connection {
        kubeconfig: settings.kubeconfig.clone(),
        context: settings.context.clone(),
        timeout: Some(settings.timeouts.request),
    };
    let target = Target::open(&settings.target, &connection).await?;
    report.target = target.describe();

    let stage = progress.stage("reading live objects", None);
    let options = PlanOptions { namespace: settings.namespace.as_deref(), field_manager: &settings.field_manager };
    let plan = plan::build(manifests, &target, options, &|done, total| stage.set(done, total)).await?;
    drop(stage);
    report.changes = plan.changes.iter().map(Into::into).collect();

    let stage = progress.stage("checking", None);
    let waivers = Waivers { list: &settings.waivers, today };
    let (reports, problems) = checks::run(enabled, &plan, &target, settings.warn_only, waivers).await;
    report.checks = reports;
    report.warnings = problems.iter().map(ErrorEntry::from).collect();
    drop(stage);
    report.count();
    Ok((target, plan))
}

/// What the checks amount to: the report's outcome so far, and the exit code if the run ended here.
fn verdict(report: &mut Report, writes: bool, plan: &Plan) -> Exit {
    let has = |status| report.checks.iter().any(|check| check.status == status);
    // Blocked weighs more than failed: the findings are certain, and they are what has to be mended first.
    let (outcome, exit) = if has(CheckStatus::Blocked) {
        (Outcome::Blocked, Exit::Blocked)
    } else if has(CheckStatus::Failed) {
        (Outcome::Failed, Exit::Failed)
    } else if writes && plan.changes.iter().all(|change| change.action == Action::Unchanged) {
        (Outcome::Unchanged, Exit::Success)
    } else {
        (Outcome::Planned, Exit::Success)
    };
    report.outcome = outcome;
    exit
}

/// Asks whether to write. An interrupt is a no.
async fn confirmed(host: &mut Host, question: String) -> bool {
    let Some(mut stdin) = host.stdin.take() else { return false };
    let mut stop = host.stop.clone();
    // On a thread of its own, because a read from the terminal cannot be called off.
    let answer = tokio::task::spawn_blocking(move || {
        confirm::confirm(&question, &mut *stdin, &mut std::io::stderr()).unwrap_or(false)
    });
    tokio::select! {
        answer = answer => answer.unwrap_or(false),
        _ = stop.wait_for(|stop| *stop) => false,
    }
}

fn question(report: &Report, target: &Target) -> String {
    let Summary { created, updated, warnings, .. } = report.summary;
    let warned =
        if warnings > 0 { format!(", in spite of {}", text::count(warnings, "warning")) } else { String::new() };
    format!("Create {created} and update {updated} in {}{warned}?", target.describe())
}

async fn write(
    plan: &Plan,
    target: &Target,
    settings: &Settings,
    progress: &Progress,
    stop: watch::Receiver<bool>,
) -> Applied {
    let options = ApplyOptions {
        field_manager: settings.field_manager.clone(),
        force_conflicts: settings.force_conflicts,
        established_timeout: settings.timeouts.established,
    };
    let stage = progress.stage("applying", None);
    apply::run(plan, target, &options, stop, &|event| match event {
        Event::Applied(done, total) => stage.set(done, Some(total)),
        Event::Established(done, total) => stage.note(&format!("waiting for CRDs to be served: {done} of {total}")),
    })
    .await
}

fn conclude(report: &mut Report, applied: Applied) -> Exit {
    for (entry, result) in report.changes.iter_mut().zip(&applied.results) {
        entry.result = Some(*result);
    }
    report.errors.extend(applied.problems.iter().map(ErrorEntry::from));
    if applied.interrupted {
        report.errors.push((&Problem::new("interrupted").help("run the same command again to continue")).into());
    }
    let complete = report.errors.is_empty();
    report.outcome = if complete { Outcome::Deployed } else { Outcome::Failed };
    report.count();
    if complete { Exit::Success } else { Exit::Failed }
}
