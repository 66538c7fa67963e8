//! `deploy` and `check`: one flow, and `deploy` goes on after the report.

use tokio::sync::watch;

use super::output::Output;
use super::{Exit, Host};
use crate::apply::{self, Applied, ApplyOptions, Event};
use crate::cli::{DeployArgs, FlowArgs};
use crate::config::Settings;
use crate::manifest::{self, Loaded};
use crate::plan::{self, Action, Plan, PlanOptions};
use crate::preflight::run::{self as checks, Enabled};
use crate::problem::{Error, Problem, Result};
use crate::report::{CheckStatus, ErrorEntry, Outcome, Report};
use crate::target::{Connection, Target};
use crate::ui::confirm;
use crate::ui::progress::Progress;

/// Runs the flow and prints what came of it.
pub async fn run(args: &FlowArgs, deploy: Option<&DeployArgs>, host: &mut Host) -> Exit {
    let mut output = Output::new(args, host);
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
        Err(problem) => {
            output.problems(host, &[problem]);
            Exit::Failed
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
        result = look(&settings, manifests.manifests, &enabled, &progress, report) => result?,
        _ = stop.wait_for(|stop| *stop) => {
            return Err(Error::failed(Problem::new("interrupted; nothing was written")));
        }
    };
    let (target, plan) = looked_at;

    let writes = deploy.is_some_and(|deploy| !deploy.dry_run);
    let exit = verdict(report, writes, &plan);
    output.report(host, report)?;
    if exit != Exit::Success || !writes {
        return Ok(exit);
    }
    if plan.changes.iter().all(|change| change.action == Action::Unchanged) {
        return Ok(Exit::Success);
    }
    // Off a terminal nobody can answer: the checks are the gate.
    let asks = host.stdin_is_terminal && host.stderr_is_terminal && !deploy.is_some_and(|deploy| deploy.yes);
    if asks && !confirmed(host).await {
        return Err(Error::failed(Problem::new("not confirmed; nothing was written")));
    }

    let applied = write(&plan, &target, &settings, &progress, host.stop.clone()).await;
    Ok(conclude(report, applied))
}

/// Reads configuration and manifests. A broken configuration is said even when the manifests are broken too.
fn read_files(
    args: &FlowArgs,
    deploy: Option<&DeployArgs>,
    host: &mut Host,
    output: &mut Output,
) -> Result<(Settings, Vec<Enabled>, Loaded)> {
    let loaded = manifest::load(&args.files).map_err(Error::Failed)?;
    let settings = Settings {
        target: args.target.clone().unwrap_or(crate::target::TargetSpec::Kube),
        context: args.context.clone(),
        kubeconfig: args.kubeconfig.clone(),
        namespace: None,
        field_manager: "gantry".into(),
        force_conflicts: deploy.is_some_and(|d| d.force_conflicts),
        warn_only: args.warn_only,
        request_timeout: None,
        established_timeout: std::time::Duration::from_secs(60),
    };
    let e = &crate::preflight::registry::CHECKS[0];
    let enabled =
        vec![Enabled { name: e.name, mode: crate::report::Mode::Error, check: (e.build)(&Default::default()) }];
    Ok((settings, enabled, loaded))
}

/// Everything up to the report; reads only.
async fn look(
    settings: &Settings,
    loaded: Vec<manifest::Manifest>,
    enabled: &[Enabled],
    progress: &Progress,
    report: &mut Report,
) -> Result<(Target, Plan)> {
    let connection = Connection {
        kubeconfig: settings.kubeconfig.clone(),
        context: settings.context.clone(),
        timeout: settings.request_timeout,
    };
    let target = Target::open(&settings.target, &connection).await?;
    report.target = target.describe();

    let stage = progress.stage("reading live objects", None);
    let options = PlanOptions { namespace: settings.namespace.as_deref(), field_manager: &settings.field_manager };
    let plan = plan::build(loaded, &target, options, &|done, total| stage.set(done, total)).await?;
    drop(stage);
    report.changes = plan.changes.iter().map(Into::into).collect();

    let stage = progress.stage("checking", None);
    report.checks = checks::run(enabled, &plan, &target, settings.warn_only).await;
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
async fn confirmed(host: &mut Host) -> bool {
    let Some(mut stdin) = host.stdin.take() else { return false };
    let mut stop = host.stop.clone();
    // On a thread of its own, because a read from the terminal cannot be called off.
    let answer = tokio::task::spawn_blocking(move || {
        confirm::confirm("Deploy?", &mut *stdin, &mut std::io::stderr()).unwrap_or(false)
    });
    tokio::select! {
        answer = answer => answer.unwrap_or(false),
        _ = stop.wait_for(|stop| *stop) => false,
    }
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
        established_timeout: settings.established_timeout,
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
