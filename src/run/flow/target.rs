//! The flow on one open target: read, check, report, and for a deploy write.

use std::collections::BTreeSet;

use super::configured::ConfiguredRun;
use super::gate;
use super::goal::Goal;
use super::migrating::MigratingCrds;
use super::rollback;
use crate::cli::FlowArgs;
use crate::run::app::{self, DeployedApp, ManagedApp, revision};
use crate::run::before::RecordedApp;
use crate::run::host::{Exit, Host};
use crate::run::interrupt::until_interrupted;
use crate::run::next_command::ClusterFlags;
use crate::run::output::Output;
use crate::run::plan_and_check::{Checking, Showing, plan_and_check};
use crate::run::verdict::{self, Terms};
use crate::run::write;
use gantry_cluster::Target;
use gantry_core::finding::{Action, ApplyResult, Baseline, redact};
use gantry_core::manifest::LoadedManifests;
use gantry_core::problem::{Error, Problem, Result};
use gantry_deploy::apply::delete::DeletionResults;
use gantry_deploy::apply::{Applied, Reached};
use gantry_deploy::config::key;
use gantry_deploy::plan::{Plan, Prefetch};
use gantry_deploy::readiness::Readiness;
use gantry_k8s_cel::KubernetesRelease;
use gantry_olm::content::Catalogs;
use gantry_preflight::waive::Waivers;
use gantry_report::{ChangeEntry, ErrorEntry, Outcome, Report, WaitEntry, WaitState};

/// An open target, and what was already read from it.
pub struct OpenedTarget<'a> {
    pub target: Target,
    pub ahead: Prefetch,
    pub before: Option<RecordedApp>,
    pub baseline: Option<&'a Baseline>,
    /// What `--migrate` moves.
    pub migrating: MigratingCrds,
    /// Its context, if it is one of several clusters.
    pub context: Option<&'a str>,
}

/// Runs on one target, from the manifests to the end. `on_plan` gets the plan as soon as it is built.
pub async fn on_target(
    run: &ConfiguredRun<'_>,
    mut loaded: LoadedManifests,
    at: OpenedTarget<'_>,
    host: &mut Host,
    output: &mut Output,
    report: &mut Report,
    on_plan: &mut (dyn FnMut(&Plan) + Send),
) -> Result<Exit> {
    let ConfiguredRun { args, goal, writes, confirmed, settings, enabled, sum, progress, .. } = run;
    let (args, writes, confirmed, deletes) = (*args, *writes, *confirmed, run.deletes());
    let OpenedTarget { target, ahead, before, baseline, migrating, context } = at;
    let stop = host.stop.clone();
    if args.fail_on_weaker_gate && target.as_commit().is_none() {
        let problem =
            Problem::new("--fail-on-weaker-gate: the target is not a commit, so there is no gate to compare with");
        return Err(Error::usage(problem.help("name one: --target git:main")));
    }
    if writes {
        target.remove_leftovers();
    }
    output.add_notices(host, target.notices(), report);
    output.add_notices(host, &loaded.notices, report);
    if settings.is_on(&key::LOGS) && settings.is_on(&key::REDACT) {
        let problem = Problem::new("the logs of Pods are not shown: they can contain any values");
        output.add_notices(host, &[problem.help("leave out --redact to see them")], report);
    }
    let is_asked = host.stdin_is_terminal && host.stderr_is_terminal && !confirmed;
    let use_of = app::Use { writes, asks: writes && is_asked, confirmed, deletes };
    // Boxed, because the future is large and the caller's thread may have little stack.
    let configs = revision::texts_of(&loaded.configs);
    let before = app::AppBeforeRun { before, input: sum.clone(), configs, rollback_to: run.revision };
    let opened = Box::pin(app::open(settings, &args.app, &mut loaded.manifests, &target, use_of, before));
    let managed = until_interrupted(&stop, opened).await?;
    if deletes && writes && !confirmed {
        write::needs_terminal(host, "delete without confirmation: --yes")?;
    }
    report.target = target.describe();
    let weaker = gate::find_weakenings(run, &loaded, &target).await;
    let checking = Checking {
        enabled,
        waivers: Waivers { list: &settings.waivers, today: host.today },
        baseline,
        catalogs: Catalogs {
            sources: &settings.catalogs,
            working_directory: &host.working_directory,
            timeout: settings.timeouts.request,
        },
        migrating: &migrating,
        as_helm: run.as_helm.as_ref(),
        known: run.known.as_ref(),
        app: managed.as_ref(),
        showing: Showing {
            filters: &args.filter,
            diff: goal.diffs(args),
            drops_kapp_selector: args.drop_kapp_selector,
            verbose: args.output.verbose > 0,
        },
    };
    let looked_at = Box::pin(plan_and_check(settings, loaded.into(), ahead, &target, checking, progress, report));
    let (plan, foreseen, notices) = until_interrupted(&stop, looked_at).await?;
    on_plan(&plan);
    output.add_notices(host, &notices, report);
    let is_other = |release: &KubernetesRelease| Some(*release) != plan.server_release;
    if target.is_server() && plan.server_release.is_some() && settings.kube_versions.iter().any(is_other) {
        let message =
            format!("the server is of Kubernetes {}, which decides; --kube-version has no effect", plan.release());
        let help = "it is for targets without a server: --target dir:FOLDER, --target git:REVISION";
        output.add_notices(host, &[Problem::new(message).help(help)], report);
    }
    add_warnings(host, output, &target, settings.is_on(&key::REDACT));
    let is_weaker = args.fail_on_weaker_gate && !weaker.is_empty();
    if !is_weaker {
        report.warnings.extend(weaker.iter().map(ErrorEntry::from));
    }
    output.print_warnings(host, &report.warnings);

    let terms = Terms {
        writes,
        force_conflicts: settings.is_on(&key::FORCE_CONFLICTS),
        fail_on: settings.fail_on,
        redact: settings.is_on(&key::REDACT),
    };
    let verdict = verdict::before_writing(&report.checks, &plan, &foreseen, terms);
    output.print_notices(host, &verdict.notices);
    report.outcome = verdict.outcome;
    report.errors.extend(verdict.errors);
    if is_weaker {
        report.errors.extend(weaker.iter().map(ErrorEntry::from));
        report.outcome = Outcome::Blocked;
        output.review(host, report)?;
        return Ok(Exit::Blocked);
    }
    // The notices were printed already. With --force-conflicts they are not errors.
    if !settings.is_on(&key::FORCE_CONFLICTS) {
        report.warnings.extend(verdict.notices.iter().map(ErrorEntry::from));
    }
    let is_rollback = matches!(goal, Goal::Rollback(..));
    if is_rollback {
        rollback::reword(report);
    }
    output.review(host, report)?;
    if is_rollback && matches!(verdict.exit, Exit::Blocked | Exit::Failed) {
        let notice = managed.as_ref().map(|managed| rollback::other_ways(managed, run, context));
        output.add_notices(host, notice.as_slice(), report);
    }
    if !verdict.goes_on {
        let options = app::options(settings, None, &report.extensions);
        if verdict.outcome == Outcome::Unchanged && options.ready_timeout.is_some() {
            let applied = Box::pin(write::resume(&plan, &target, options, progress, host)).await;
            output.add_notices(host, &applied.notices, report);
            report.waits = waits(&applied, settings.is_on(&key::REDACT));
            let (outcome, exit, errors) =
                verdict::after_writing(&applied, &DeletionResults::default(), settings.is_on(&key::REDACT));
            if exit != Exit::Success {
                report.outcome = outcome;
                report.errors.extend(errors);
                if let Some(managed) = &managed {
                    let revision = managed.way_back(&plan, &target).await;
                    output.add_notices(host, revision.map(to_go_back(args, managed, context)).as_slice(), report);
                }
                // The record keeps the entry of the earlier run.
                return Ok(exit);
            }
        }
        if let (Outcome::Unchanged, Some(managed)) = (verdict.outcome, &managed) {
            let notice = Box::pin(managed.write_record_if_stale(&plan, &target, settings, host)).await?;
            output.add_notices(host, notice.as_slice(), report);
        }
        return Ok(verdict.exit);
    }
    // Without a terminal there is no question: the checks decide.
    if is_asked {
        let question = write::question(report, &target);
        let question = match run.revision {
            Some(number) => format!("Roll back to revision {number}: {}", decapitalised(&question)),
            None => question,
        };
        write::confirm(host, &question).await?;
    }

    let DeployedApp { applied, removed, way_back } = match &managed {
        None => {
            let options = app::options(settings, None, &report.extensions);
            let applied = Box::pin(write::write(&plan, &target, options, progress, host)).await;
            DeployedApp { applied, removed: DeletionResults::default(), way_back: None }
        }
        Some(managed) => {
            let write = async |host: &mut Host, written| {
                write::write(&plan, &target, app::options(settings, written, &report.extensions), progress, host).await
            };
            Box::pin(app::deploy(managed, &plan, &target, settings, progress, host, write)).await
        }
    };
    add_warnings(host, output, &target, settings.is_on(&key::REDACT));
    output.add_notices(host, &applied.notices, report);
    for (entry, result) in report.changes.iter_mut().zip(applied.results.iter().chain(&removed.results)) {
        entry.result = Some(*result);
    }
    // Something else created these after the plan was built.
    for index in &applied.were_there {
        report.changes[*index].action = if managed.is_some() { Action::Adopt } else { Action::Update };
    }
    report.waits = waits(&applied, settings.is_on(&key::REDACT));
    if target.is_server() {
        let cluster = ClusterFlags::of_flow(args, context);
        output.add_notices(host, &migrating.objects_left_behind(&plan, &applied.results, &cluster), report);
    }
    if let Some(managed) = &managed {
        output.add_notices(host, way_back.map(to_go_back(args, managed, context)).as_slice(), report);
    }
    let (outcome, exit, errors) = verdict::after_writing(&applied, &removed, settings.is_on(&key::REDACT));
    report.outcome = outcome;
    report.errors.extend(errors);
    if is_rollback {
        rollback::reword(report);
    }
    report.update_summary();
    Ok(exit)
}

/// The notice that names the command that goes back to a revision.
fn to_go_back<'a>(
    args: &'a FlowArgs,
    managed: &'a ManagedApp,
    context: Option<&'a str>,
) -> impl Fn(u32) -> Problem + 'a {
    move |revision| {
        let command = revision::rollback_command(args, &managed.app, revision, context);
        let message = format!("revision {revision} of the app {} was deployed before", managed.app.name);
        Problem::new(message).help(format!("to go back to it: {command}"))
    }
}

/// The sentence within another one.
fn decapitalised(sentence: &str) -> String {
    let (first, rest) = sentence.split_at(sentence.len().min(1));
    // DELETE stays as it is.
    let is_word = !rest.starts_with(char::is_uppercase);
    if is_word { format!("{}{rest}", first.to_lowercase()) } else { sentence.to_owned() }
}

/// What was awaited, as entries of the report.
fn waits(applied: &Applied, redacted: bool) -> Vec<WaitEntry> {
    let entry = |(change, Reached { state, after }): (&usize, &Reached)| {
        let reason =
            state.reason().map(|reason| if redacted { redact::without_values(reason) } else { reason.to_owned() });
        let state = match state {
            Readiness::Ready { .. } => WaitState::Ready,
            Readiness::InProgress(_) => WaitState::InProgress,
            Readiness::Failed(_) => WaitState::Failed,
        };
        WaitEntry { change: *change, state, reason, seconds: after.as_secs() }
    };
    applied.waits.iter().map(entry).collect()
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
    output.print_notices(host, &warnings);
}

/// The exit code with `--detailed-exitcode`.
pub fn detailed(exit: Exit, report: &Report) -> Exit {
    let is_change = |change: &ChangeEntry| match change.result {
        Some(result) => matches!(result, ApplyResult::Applied | ApplyResult::Deleted),
        None => !change.action.leaves_alone(),
    };
    if exit == Exit::Success && report.changes.iter().any(is_change) { Exit::Changes } else { exit }
}
