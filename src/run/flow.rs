//! `deploy`, `check` and `diff`: one flow. `deploy` continues after the report.

use std::path::PathBuf;

use super::baseline::Baselines;
use super::fleet;
use super::host::{Exit, Host};
use super::interrupt::until_interrupted;
use super::output::Output;
use super::prepare::{PreparedRun, loader, open};
use crate::cli::{DeleteArgs, FlowArgs, RollbackArgs};
use gantry_core::options::TargetSpec;
use gantry_core::problem::Result;
use gantry_report::Report;
use gantry_report::ReportPurpose;

pub(super) mod configured;
mod gate;
mod goal;
pub(super) mod migrating;
mod rollback;
pub(super) mod target;

use self::configured::prepare;
pub use self::goal::{Actor, Goal};
use self::migrating::MigratingCrds;
use self::target::{OpenedTarget, detailed, on_target};

/// Deletes an app: a deploy of no manifests, which prunes all members.
pub async fn delete(args: &DeleteArgs, host: &mut Host) -> Exit {
    let deploy = args.deploy();
    let purpose = if args.dry_run { ReportPurpose::DryRun } else { ReportPurpose::Delete };
    report(&deploy.flow, Goal::Delete(&deploy), purpose, host).await
}

/// Deploys the manifests of an earlier revision of an app.
pub async fn rollback(args: &RollbackArgs, host: &mut Host) -> Exit {
    let deploy = args.deploy();
    run(&deploy.flow, Goal::Rollback(&deploy, args.revision), host).await
}

/// Runs the flow and prints the result.
pub async fn run(args: &FlowArgs, goal: Goal<'_>, host: &mut Host) -> Exit {
    let purpose = match goal {
        Goal::Check(_) => ReportPurpose::Check,
        Goal::Diff(..) => ReportPurpose::Diff,
        Goal::Deploy(deploy) | Goal::Rollback(deploy, _) if deploy.dry_run => ReportPurpose::DryRun,
        Goal::Deploy(_) | Goal::Delete(_) | Goal::Rollback(..) => ReportPurpose::Deploy,
    };
    report(args, goal, purpose, host).await
}

async fn report(args: &FlowArgs, goal: Goal<'_>, purpose: ReportPurpose, host: &mut Host) -> Exit {
    let mut output = Output::new(&args.output, purpose);
    let mut report = Report::default();
    let exit = match Box::pin(steps(args, goal, host, &mut output, &mut report)).await {
        Ok(FlowOutcome::OnMany(ended)) => {
            let fleet::FleetOutcome { list, exit, fresh } = *ended;
            return match output.finish_list(host, &list, fresh.as_ref()) {
                Ok(()) => exit,
                Err(error) => {
                    output.print_problems(host, error.problems());
                    Exit::from(&error)
                }
            };
        }
        Ok(FlowOutcome::OnOne(exit)) if args.detailed_exitcode => detailed(exit, &report),
        Ok(FlowOutcome::OnOne(exit)) => exit,
        Err(error) => {
            let error = match goal {
                Goal::Rollback(..) => rollback::reworded(error),
                _ => error,
            };
            output.add_to(&mut report, &error);
            output.print_problems(host, error.problems());
            if !output.is_configured() {
                // The report must not overwrite a file with an error, either.
                let loader = loader(&args.input.config, host);
                let files = args
                    .input
                    .files
                    .iter()
                    .chain(&args.input.kustomizations)
                    .map(PathBuf::from)
                    .chain(loader.every_file());
                let files: Vec<PathBuf> = files.map(|file| host.working_directory.join(file)).collect();
                if let Err(error) = output.refuse_to_overwrite(&files, &TargetSpec::Kube, host) {
                    output.print_problems(host, error.problems());
                }
            }
            Exit::from(&error)
        }
    };
    match output.finish(host, &report) {
        Ok(()) => exit,
        Err(error) => {
            output.print_problems(host, error.problems());
            // The report is missing or incomplete, so the outcome goes to stderr.
            output.print_results(host, &report);
            Exit::from(&error)
        }
    }
}

/// How a run ended.
enum FlowOutcome {
    OnOne(Exit),
    OnMany(Box<fleet::FleetOutcome>),
}

async fn steps(
    args: &FlowArgs,
    goal: Goal<'_>,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
) -> Result<FlowOutcome> {
    let (mut run, input) = prepare(args, goal, host, output, report).await?;
    let stop = host.stop.clone();
    let migrates = goal.deploy().is_some_and(|deploy| deploy.migrate);
    if !run.deletes()
        && run.revision.is_none()
        && let Some(members) = until_interrupted(&stop, fleet::find(&run, &host.working_directory)).await?
    {
        if migrates {
            migrating::check_target(&run, true)?;
        }
        return Box::pin(fleet::run(run, members, input, host, output)).await.map(Box::new).map(FlowOutcome::OnMany);
    }
    if migrates {
        migrating::check_target(&run, false)?;
    }
    let baseline = run.baselines.take().map(Baselines::of_one).transpose()?;
    let input = (!run.deletes()).then_some(input);
    let opening = Box::pin(open(&run.settings, input, run.input_of_run(), &run.progress));
    let PreparedRun { mut loaded, target, ahead, before } = until_interrupted(&stop, opening).await?;
    run.check_manifests(&mut loaded)?;
    let migrating = MigratingCrds::default();
    let at = OpenedTarget { target, ahead, before, baseline: baseline.as_ref(), migrating, context: None };
    let exit = match migrates {
        true => Box::pin(migrating::deploy(&mut run, loaded, at, host, output, report)).await?,
        false => Box::pin(on_target(&run, loaded, at, host, output, report, &mut |_| ())).await?,
    };
    Ok(FlowOutcome::OnOne(exit))
}
