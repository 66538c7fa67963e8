//! The half of a run that only reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::app::ManagedApp;
use super::as_helm::ChangedRelease;
use super::diffs;
use super::flow::migrating::MigratingCrds;
use super::verdict::DeployForecast;
use gantry_cluster::Target;
use gantry_core::finding::{Baseline, CheckReport, CheckStatus, Source};
use gantry_core::options::{ReportFormat, WaitPolicy};
use gantry_core::problem::{Problem, Result};
use gantry_core::ui::progress::ProgressDisplay;
use gantry_deploy::app::versions::VERSIONED;
use gantry_deploy::config::{SelectedCheck, Settings, key};
use gantry_deploy::plan::filter::Filter;
use gantry_deploy::plan::not_honoured::{self, NotHonoured};
use gantry_deploy::plan::refusals::ReportedRefusals;
use gantry_deploy::plan::removal::Removal;
use gantry_deploy::plan::{
    self, Change, Deleter, DesiredState, Plan, PlanOptions, Prefetch, autoscaled, bundles, conflicts, graph, handover,
    kapp_labels, only_defaults, owner, records, refusals, storage_classes,
};
use gantry_olm::content::Catalogs;
use gantry_preflight::crd_upgrade_safety::{self, ToolVerdict};
use gantry_preflight::proofs::ProofCache;
use gantry_preflight::run::{self as checks, Enabled, Ran, RunOptions};
use gantry_preflight::waive::Waivers;
use gantry_report::{ChangeEntry, ErrorEntry, PresetCounts, Report, StepEntry};

/// The checks that run, the findings that count as known, and the app that is deployed.
pub struct Checking<'a> {
    pub app: Option<&'a ManagedApp>,
    pub enabled: &'a [Enabled],
    pub waivers: Waivers<'a>,
    pub baseline: Option<&'a Baseline>,
    pub catalogs: Catalogs<'a>,
    /// What `--migrate` moves.
    pub migrating: &'a MigratingCrds,
    /// The release that Helm would change.
    pub as_helm: Option<&'a ChangedRelease>,
    /// Proofs that other clusters share.
    pub known: Option<&'a Arc<ProofCache>>,
    pub showing: Showing<'a>,
}

/// What the report shows of the plan.
#[derive(Clone, Copy)]
pub struct Showing<'a> {
    pub filters: &'a [Filter],
    pub diff: Option<diffs::DiffRequest>,
    pub drops_kapp_selector: bool,
    /// Also details that most users do not need.
    pub verbose: bool,
}

/// Everything from the manifests to the report. It only reads.
pub async fn plan_and_check(
    settings: &Settings,
    desired: DesiredState,
    ahead: Prefetch,
    target: &Target,
    checking: Checking<'_>,
    progress: &ProgressDisplay,
    report: &mut Report,
) -> Result<(Plan, DeployForecast, Vec<Problem>)> {
    let stage = progress.stage("reading live objects", None);
    let Checking { enabled, waivers, baseline, catalogs, migrating, as_helm, known, app, showing } = checking;
    let (id, none) = (app.map(|managed| managed.app.id()), BTreeMap::new());
    let deleter = match app.is_some_and(ManagedApp::deletes) {
        true => Deleter::AppDelete,
        false if as_helm.is_some() => Deleter::Helm,
        false => Deleter::Deploy,
    };
    let policy = super::app::deploy_policy(settings, deleter);
    let taken = owner::TakeoverPatterns::new(&settings.take_ownership)
        .dropping_kapp_selector(showing.drops_kapp_selector)
        .with_kapp(app.and_then(ManagedApp::kapp_id));
    let options = PlanOptions {
        namespace: settings.namespace.as_deref(),
        goes_on_unread: enabled.iter().any(|enabled| !enabled.check.needs_live_objects()),
        keep_unplaced: enabled.iter().any(|enabled| enabled.check.reports_unserved_kinds()),
        settles_doubts: true,
        rebases: &settings.rules.rebases,
        app: id.as_deref(),
        known: app.map_or(&none, ManagedApp::content),
        as_applied: app.map_or(&none, ManagedApp::as_applied),
        keeps_answers: showing.diff.is_some(),
        helm_release: as_helm.and_then(ChangedRelease::patched),
        ..PlanOptions::new(&policy, &taken)
    };
    let on_read = |done, total| stage.set(done, total);
    let mut plan = plan::prepare(desired, ahead, target, showing.filters, options, &on_read).await?;
    let mut of_app = app.map(|managed| managed.plan(&mut plan, settings)).unwrap_or_default();
    if let Some(managed) = app {
        of_app.hindrances.extend(managed.forbidden(&plan, target).await);
    }
    let mut foreign = Vec::new();
    if let Some(release) = as_helm {
        let foretold = release.plan_removals(&mut plan, target).await?;
        of_app.notices.extend(foretold.notices);
        foreign = foretold.refusals;
    }
    plan.lookups.extend(migrating.lookups());
    plan.migrates = migrating.moves_any();
    drop(stage);
    let (graph, order) = graph::sort_changes(&plan.changes, &plan.removals, &settings.rules.bindings, policy.waits)?;
    plan.graph = graph;
    report.preset = settings.checks.iter().find_map(SelectedCheck::preset).map(str::to_owned);
    // The page of several clusters has no room for it.
    let is_one_of_many = known.is_some();
    let writes_page = settings.output.iter().any(|spec| spec.format == ReportFormat::Html);
    if writes_page && !is_one_of_many && report.preset.is_some() {
        let counts = |tool: ToolVerdict| (tool.preset, PresetCounts { errors: tool.errors, warnings: tool.warnings });
        report.by_tools = crd_upgrade_safety::judge_by_tools(&plan.changes).into_iter().map(counts).collect();
    }
    report.kubernetes_release = plan.server_release.map(|release| release.to_string());
    report.graph = steps(&plan);
    report.changes = plan.changes.iter().map(entry).chain(plan.removals.iter().map(removed)).collect();
    report.deleted_by_olm = plan.deleted_by_olm.clone();

    let stage = progress.stage("checking", None);
    let options = RunOptions {
        warn_only: settings.is_on(&key::WARN_ONLY),
        redact: settings.is_on(&key::REDACT),
        waivers,
        baseline,
        to_migrate: &migrating.before,
        migrated: &migrating.done,
        catalogs,
        olm_release: settings.olm,
        custom_checks: &settings.custom_checks,
        known,
        stage: &stage,
    };
    let reported = ReportedRefusals::of_all(enabled.iter().map(|enabled| enabled.check.reported_refusals()));
    let foreseeing = async {
        let mut conflicts = conflicts::foresee(&plan, target).await;
        only_defaults::mark(&plan, &mut conflicts, target).await;
        conflicts
    };
    // None of these waits for another.
    let (ran, conflicts, autoscaled, classes, refusals_ahead) = futures::join!(
        checks::run(enabled, &plan, target, options),
        foreseeing,
        autoscaled::notices(&plan, target),
        storage_classes::notices(&plan, target),
        refusals::look_ahead(&plan, target, reported)
    );
    let Ran { mut reports, problems, notices, extensions, subscriptions, baseline } = ran;
    name_target(&mut reports, target);
    report.checks = reports;
    report.extensions = extensions;
    report.subscriptions = subscriptions;
    report.baseline = baseline;
    report.warnings = problems.iter().map(ErrorEntry::from).collect();
    let NotHonoured { blocks, notices: left_out } = not_honoured::find_not_honoured(&plan);
    let mut notices: Vec<Problem> = notices
        .into_iter()
        .chain(plan::terminating_notices(&plan))
        .chain(autoscaled)
        .chain(classes)
        .chain(kapp_labels::notice(&plan))
        .chain(handover::notices(&plan, &conflicts))
        .chain(left_out)
        .chain(order.notices)
        .chain(order.unawaited.into_iter().filter(|_| settings.wait == WaitPolicy::Crds))
        .chain(order.turned.into_iter().filter(|_| showing.verbose))
        .chain(of_app.notices)
        .chain(crd_upgrade_safety::unchecked_upgrades(settings, &plan))
        .chain(std::mem::take(&mut plan.notices))
        .collect();
    if !showing.filters.is_empty() && plan.changes.is_empty() && plan.unplaced.is_empty() {
        notices.push(Problem::new("no object of the manifests matches --filter"));
    }
    let mut foreseen = DeployForecast {
        conflicts,
        not_honoured: blocks.into_iter().chain(order.blocks).chain(unread_templates(settings, &plan)).collect(),
        owned: refused_by_owner(&plan, app, showing.verbose).into_iter().chain(foreign).collect(),
        too_many: of_app.blocks,
        unread_members: of_app.hindrances,
        ..DeployForecast::default()
    };
    // If the deploy is blocked, what would have stopped it later does not matter.
    if report.checks.iter().all(|check| check.status != CheckStatus::Blocked) {
        let known = refusals::foresee(&plan, target, reported, refusals_ahead).await;
        foreseen.refusals = known.problems;
        let is_new =
            |found: &conflicts::ChangeConflicts| !foreseen.conflicts.iter().any(|known| known.change == found.change);
        let new: Vec<conflicts::ChangeConflicts> = known.conflicts.into_iter().filter(is_new).collect();
        foreseen.conflicts.extend(new);
        notices.extend(known.notices);
        foreseen.refusals.extend(refusals::unfit_for_managed_fields(&plan));
    }
    // The check of dry runs reports every denial.
    if !reported.dry_runs {
        foreseen.refusals.extend(refusals::denied_crds(&plan));
    }
    foreseen.refusals.extend(refusals::no_longer_served(&plan));
    foreseen.refusals.extend(bundles::served_too_late(&plan));
    if let Some(wanted) = showing.diff {
        Box::pin(diffs::add_diffs(&plan, target, settings, wanted, report)).await;
        if !reported.dry_runs && foreseen.refusals.is_empty() {
            foreseen.refusals = refusals::known(&plan);
        }
    }
    drop(stage);
    report.update_summary();
    Ok((plan, foreseen, notices))
}

/// Objects that belong to another tool, and the records of apps: nothing is written to them.
fn refused_by_owner(plan: &Plan, app: Option<&ManagedApp>, verbose: bool) -> Vec<Problem> {
    let records = records::refused(plan, app.map(|managed| &managed.app));
    records.into_iter().chain(owner::refused(plan, verbose)).collect()
}

/// The error for `templateRules`, which are not read: references to versioned objects would keep naming an older
/// version.
fn unread_templates(settings: &Settings, plan: &Plan) -> Option<Problem> {
    let at = settings.rules.templates.clone()?;
    let is_versioned = |change: &&Change| {
        change.desired.metadata_may_contain(&["versioned"])
            && change.desired.raw.value()["metadata"]["annotations"].get(VERSIONED).is_some()
    };
    let change = plan.changes.iter().find(is_versioned)?;
    let message = format!(
        "templateRules: gantry follows only its own list of references to versioned objects, and {} is one",
        change.desired.object
    );
    let help = "remove the rules if Pods, workloads and CronJobs alone refer to it, or annotate the others with \
        kapp.k14s.io/versioned-explicit-ref";
    Some(Problem::new(message).at(at).help(help))
}

fn entry(change: &Change) -> ChangeEntry {
    let origin = &change.desired.origin;
    ChangeEntry {
        action: change.reported_action(),
        object: change.desired.object.clone(),
        source: Some(Source { file: origin.source.name.clone(), line: origin.line, column: None }),
        result: None,
        diff: None,
    }
}

/// The graph of the plan as one list of steps. Those of the removals wait for the last ones of the changes.
fn steps(plan: &Plan) -> Vec<StepEntry> {
    if !plan.is_written() {
        return Vec::new();
    }
    let changes = &plan.graph.changes;
    let written = |index: &usize| plan.changes[*index].is_written();
    let first = changes.iter().map(|step| StepEntry {
        members: step.members.iter().copied().filter(written).collect(),
        after: step.after.clone(),
        ready: step.ready.clone(),
    });
    let waited_for: BTreeSet<usize> = changes.iter().flat_map(|step| step.after.iter().copied()).collect();
    let ends: Vec<usize> = (0..changes.len()).filter(|step| !waited_for.contains(step)).collect();
    let then = plan.graph.removals.iter().map(|step| StepEntry {
        members: step.members.iter().map(|index| plan.changes.len() + index).collect(),
        after: match &step.after[..] {
            [] => ends.clone(),
            after => after.iter().map(|step| changes.len() + step).collect(),
        },
        ready: Vec::new(),
    });
    first.chain(then).collect()
}

fn removed(removal: &Removal) -> ChangeEntry {
    ChangeEntry { action: removal.action, object: removal.object.clone(), source: None, result: None, diff: None }
}

/// Nothing is live in a commit: the labels of findings name it instead.
fn name_target(reports: &mut [CheckReport], target: &Target) {
    let Some(name) = target.read_only_name() else { return };
    let labels =
        reports.iter_mut().flat_map(|report| &mut report.findings).filter_map(|found| found.body.label.as_mut());
    for label in labels {
        if let Some(rest) = label.strip_prefix("the live CRD ") {
            *label = format!("{} {rest}", name);
        } else if let Some(rest) = label.strip_suffix(" in the live CRD") {
            *label = format!("{rest} in {}", name);
        }
    }
}
