//! The deploy of an app.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use super::ManagedApp;
use super::record::describe_this_run;
use super::revision::EndedRevision;
use crate::run::host::Host;
use crate::run::wait_log::WaitLog;
use gantry_cluster::Target;
use gantry_cluster::patience::Patience;
use gantry_core::finding::redact::without_values;
use gantry_core::finding::{Action, ApplyResult, ExtensionEntry};
use gantry_core::options::WaitPolicy;
use gantry_core::problem::Problem;
use gantry_core::resource;
use gantry_core::text;
use gantry_core::ui::progress::ProgressDisplay;
use gantry_deploy::app::parent::{self, AppRecordContent, LastRun};
use gantry_deploy::app::revisions::{RevisionChanges, RevisionEnd, RevisionOutcome};
use gantry_deploy::app::{Parent, RunOutcome};
use gantry_deploy::apply::delete::{self, DeletionResults, RemovalEvent};
use gantry_deploy::apply::{self, Applied, ApplyOptions, NotWritten};
use gantry_deploy::config::{Settings, key};
use gantry_deploy::plan::removal::Removal;
use gantry_deploy::plan::{Change, Plan};
use gantry_deploy::plan::{Deleter, DeployPolicy};
use gantry_deploy::readiness::rules::WaitRule;

/// The result of a deploy of an app.
pub struct DeployedApp {
    pub applied: Applied,
    pub removed: DeletionResults,
    /// The revision to go back to, if this deploy or one before it changed something, and this one did not complete.
    pub way_back: Option<u32>,
}

/// Writes the app's record, its members, deletes what leaves it, and writes the record again.
///
/// Until the run ends, the record names every kind and namespace that the run may have written to. So the next run
/// finds all members, whatever stops this one.
pub async fn deploy(
    managed: &ManagedApp,
    plan: &Plan,
    target: &Target,
    settings: &Settings,
    progress: &ProgressDisplay,
    host: &mut Host,
    write: impl AsyncFnOnce(&mut Host, Option<(usize, resource::LiveObject)>) -> Applied,
) -> DeployedApp {
    let not_removed = || DeletionResults {
        results: vec![ApplyResult::NotReached; plan.removals.len()],
        ..DeletionResults::default()
    };
    let failed = |problem: Problem, written: Option<&(usize, resource::LiveObject)>| {
        let applied = Applied { problems: vec![problem], ..Applied::with_step_started(plan, written) };
        DeployedApp { applied, removed: not_removed(), way_back: None }
    };
    let writes = Arc::clone(&host.writes);
    writes.begin(plan.writes());
    let written = match state_namespace(managed, plan, target, settings, &host.stop).await {
        Ok(written) => written,
        Err(problem) => return failed(problem, None),
    };
    let (kinds, namespaces) = managed.kinds_and_namespaces(plan);
    // Whether there are revisions to delete.
    let known = managed.parent.as_ref().filter(|_| managed.deletes).and_then(|parent| parent.last.as_ref()?.revision);
    let started = AppRecordContent {
        kinds,
        namespaces,
        members: managed.intended(plan),
        last: LastRun { revision: known, ..describe_this_run(RunOutcome::Started, target, host).await },
        last_applied: None,
        may_split: plan.needs_parts,
    };
    let stop = host.stop.clone();
    let patience = Patience { limit: settings.timeouts.apply, stop: &stop };
    let mut parent = match write_first_record(managed, plan, started, patience, target, settings).await {
        Ok(parent) => parent,
        Err(problem) => return failed(problem, written.as_ref()),
    };
    let run = parent.last.clone().unwrap_or_else(LastRun::none);
    let revision = managed.keep_revision(plan, &run, settings, patience, target).await;
    let mut applied = write(host, written).await;
    let mut removed = match applied.problems.is_empty() && applied.unready.is_empty() && !applied.interrupted {
        true => {
            let timeout = settings.timeouts.delete;
            let written = plan.changes_written();
            let log = WaitLog::new(&mut host.stderr, progress.is_logged());
            let stage = progress.stage("deleting", Some(plan.removals.len()));
            let on_event = |event: RemovalEvent<'_>| match event {
                RemovalEvent::Removed(removed) => {
                    writes.set_done(written + removed);
                    stage.set(removed, None);
                }
                RemovalEvent::Deleting(removals) => {
                    let objects = || removals.iter().map(|(_, removal)| &*removal.object);
                    stage.note(
                        &objects().next().map(|object| format!("waiting until {object} is gone")).unwrap_or_default(),
                    );
                    log.update_deletions(objects());
                }
            };
            let (removals, steps) = (&plan.removals, &plan.graph.removals);
            delete::run(removals, steps, target, &settings.field_manager, timeout, &host.stop, &on_event).await
        }
        false => not_removed(),
    };
    let is_done = removed.results.iter().all(|result| *result != ApplyResult::NotReached)
        && removed.problems().next().is_none()
        && applied.problems.is_empty()
        && applied.unready.is_empty()
        && !applied.interrupted;
    if let Some(kapp) = managed.kapp.as_ref().filter(|_| is_done) {
        // Write the members to our record before kapp's is deleted: they are recorded nowhere else.
        let last = parent.last.clone().unwrap_or_else(LastRun::none);
        let content = AppRecordContent { last, ..managed.record(plan, &applied, &removed) };
        match parent::write(&managed.app, Some(&parent), content, patience, target).await {
            Ok(now) => {
                parent = now;
                removed.problems.extend(kapp.finish_takeover(plan, target).await.err().into_iter().flatten());
            }
            Err(error) => removed.problems.push(error.problem),
        }
    }
    applied.interrupted |= *host.stop.borrow() && removed.results.contains(&ApplyResult::NotReached);
    let problems: Vec<&Problem> = removed.problems().chain(&applied.problems).chain(&applied.unready).collect();
    let outcome = if problems.is_empty() && !applied.interrupted { RunOutcome::Applied } else { RunOutcome::Failed };
    let ended_as = match outcome {
        RunOutcome::Applied => RevisionOutcome::Deployed,
        _ if applied.interrupted => RevisionOutcome::Interrupted,
        _ if applied.problems.is_empty() && removed.problems.is_empty() => RevisionOutcome::NotReady,
        _ => RevisionOutcome::Failed,
    };
    let mut last = parent.last.clone().unwrap_or_else(LastRun::none);
    (last.time, last.outcome) = (Timestamp::now(), outcome);
    // Everyone who can read the record sees them.
    let reason = |message: &str| match settings.is_on(&key::REDACT) {
        true => text::cut(&without_values(message), REASON).into_owned(),
        false => text::cut(message, REASON).into_owned(),
    };
    last.reasons = problems.iter().take(5).map(|problem| reason(&problem.message)).collect();
    let limit = if outcome == RunOutcome::Applied { patience.limit } else { patience.limit.min(AFTER_FAILURE) };
    // After a failure, the user has waited long enough.
    let patience = Patience { limit, ..patience };
    let changes = Some(RevisionChanges::done(plan, &applied, &removed));
    let end = RevisionEnd { time: last.time, outcome: ended_as, reasons: last.reasons.clone(), changes };
    let EndedRevision { number, way_back, notices } = match revision {
        Some(revision) => revision.end(&managed.app, end, patience, target).await,
        None => EndedRevision::default(),
    };
    last.revision = number;
    let last_applied = if outcome == RunOutcome::Applied { managed.last_applied(plan, &applied) } else { None };
    let content = AppRecordContent { last, last_applied, ..managed.record(plan, &applied, &removed) };
    // If another manager wrote to the record meanwhile (a label, an annotation), try again with what is live now.
    let mut answer = managed.write_final_record(Some(&parent), content.clone(), patience, settings, target).await;
    if answer.is_err()
        && let Ok(Some(now)) = Parent::read(&managed.app, target).await
        && now.last == parent.last
    {
        parent = now;
        answer = managed.write_final_record(Some(&parent), content, patience, settings, target).await;
    }
    match answer {
        Ok(notice) => applied.notices.extend(notice),
        Err(problem) => removed.problems.push(problem),
    }
    applied.notices.extend(notices);
    let way_back = way_back.filter(|_| ended_as != RevisionOutcome::Deployed);
    DeployedApp { applied, removed, way_back }
}

/// Records that the run has begun, and what it is going to write.
///
/// If a webhook of an app that is deleted stands in the way, its configuration is deleted before.
async fn write_first_record(
    managed: &ManagedApp,
    plan: &Plan,
    started: AppRecordContent,
    patience: Patience<'_>,
    target: &Target,
    settings: &Settings,
) -> std::result::Result<Parent, Problem> {
    let (app, before) = (&managed.app, managed.parent.as_ref());
    let callers: Vec<&Removal> = match managed.deletes {
        true => plan.removals.iter().filter(|removal| is_webhook_configuration(removal)).collect(),
        false => Vec::new(),
    };
    if !callers.is_empty() {
        let once = Patience::none(patience.stop);
        match parent::write(app, before, started.clone(), once, target).await {
            Ok(parent) => return Ok(parent),
            Err(error) if error.lacks_webhook => {}
            Err(error) => return Err(error.problem),
        }
        for removal in callers {
            delete::remove(removal, target, &settings.field_manager, patience).await?;
        }
    }
    parent::write(app, before, started, patience, target).await.map_err(|error| error.problem)
}

fn is_webhook_configuration(removal: &Removal) -> bool {
    let object = &removal.object;
    removal.action == Action::Delete
        && object.group() == "admissionregistration.k8s.io"
        && object.kind.ends_with("WebhookConfiguration")
}

/// Creates the namespace of the app's record, if the manifests have it. Returns its index and the live object.
async fn state_namespace(
    managed: &ManagedApp,
    plan: &Plan,
    target: &Target,
    settings: &Settings,
    stop: &watch::Receiver<bool>,
) -> std::result::Result<Option<(usize, resource::LiveObject)>, Problem> {
    let is_state = |change: &Change| {
        let object = &change.desired.object;
        change.is_written()
            && object.is_namespace()
            && object.name == managed.app.namespace
            && change.action == Action::Create
    };
    let Some(index) = plan.changes.iter().position(is_state) else { return Ok(None) };
    let options = options(settings, None, &[]);
    let written = apply::apply_one(&plan.changes[index], target, &options, stop).await.map_err(NotWritten::problem)?;
    Ok(Some((index, written.live)))
}

/// Whether a deploy waits until what it writes is ready.
pub fn waits(settings: &Settings) -> bool {
    settings.wait == WaitPolicy::True
}

/// Whether a deploy shows logs of Pods. They may hold any value.
pub fn shows_logs(settings: &Settings) -> bool {
    settings.is_on(&key::LOGS) && !settings.is_on(&key::REDACT) && waits(settings)
}

/// How a deploy writes and waits, as far as its plan and its checks depend on it.
pub fn deploy_policy(settings: &Settings, deleter: Deleter) -> DeployPolicy {
    DeployPolicy {
        field_manager: settings.field_manager.clone(),
        force_conflicts: settings.is_on(&key::FORCE_CONFLICTS),
        waits: waits(settings),
        shows_logs: shows_logs(settings),
        ignores_failing_apis: settings.is_on(&key::IGNORE_FAILING_API_SERVICES),
        has_app: settings.app.is_some(),
        deleter,
    }
}

/// How a deploy writes, and which states of ClusterExtensions it waits for.
pub fn options(
    settings: &Settings,
    written: Option<(usize, resource::LiveObject)>,
    extensions: &[ExtensionEntry],
) -> ApplyOptions {
    // If several rules match an object, the first one decides: the user's.
    let predicted = extensions.iter().filter_map(|extension| {
        let versions = extension.versions();
        (!versions.is_empty()).then(|| WaitRule::predicted(&extension.name, versions))
    });
    ApplyOptions {
        field_manager: settings.field_manager.clone(),
        force_conflicts: settings.is_on(&key::FORCE_CONFLICTS),
        marks: settings.app.is_some(),
        established_timeout: settings.timeouts.established,
        keep_going: settings.is_on(&key::KEEP_GOING),
        delete_timeout: settings.timeouts.delete,
        apply_timeout: settings.timeouts.apply,
        awaits_all_crds: settings.wait != WaitPolicy::False,
        ready_timeout: waits(settings).then_some(settings.timeouts.ready),
        rules_timeout: (settings.wait != WaitPolicy::False).then_some(settings.timeouts.ready),
        resource_timeout: settings.timeouts.resource,
        shows_logs: shows_logs(settings),
        ignores_api_services: settings.is_on(&key::IGNORE_FAILING_API_SERVICES),
        shows_waits: false,
        wait_rules: settings.rules.waits.iter().cloned().chain(predicted).collect(),
        written,
    }
}

/// How long a record is tried to be written after the run has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// The most characters that are kept of each reason for a failure.
const REASON: usize = 1000;
