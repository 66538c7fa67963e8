//! Everything from the manifests up to the report; reads only.

use super::verdict::Foreseen;
use crate::cluster::Target;
use crate::config::Settings;
use crate::finding::{CheckStatus, Source};
use crate::manifest::Manifest;
use crate::plan::{self, Change, Plan, PlanOptions, Prefetch, conflicts, only_defaults, owner, refusals, strategy};
use crate::preflight::run::{self as checks, Enabled, Ran, RunOptions};
use crate::preflight::waive::Waivers;
use crate::problem::{Problem, Result};
use crate::report::{ChangeEntry, ErrorEntry, Report};
use crate::ui::progress::Progress;

/// The checks that run, and what they may find.
pub struct Checking<'a> {
    pub enabled: &'a [Enabled],
    pub waivers: Waivers<'a>,
}

/// Everything from there up to the report; reads only.
pub async fn look(
    settings: &Settings,
    manifests: Vec<Manifest>,
    ahead: Prefetch,
    target: &Target,
    checking: Checking<'_>,
    progress: &Progress,
    report: &mut Report,
) -> Result<(Plan, Foreseen, Vec<Problem>)> {
    let stage = progress.stage("reading live objects", None);
    let Checking { enabled, waivers } = checking;
    let options = PlanOptions {
        namespace: settings.namespace.as_deref(),
        field_manager: &settings.field_manager,
        goes_on_unread: enabled.iter().any(|enabled| !enabled.check.needs_live_objects()),
        keep_unplaced: enabled.iter().any(|enabled| enabled.check.tells_unplaced()),
        settles_doubts: true,
        taken: &owner::Taken::new(&settings.take_ownership),
    };
    let plan = plan::build(manifests, ahead, target, options, &|done, total| stage.set(done, total)).await?;
    drop(stage);
    report.changes = plan.changes.iter().map(entry).collect();

    let stage = progress.stage("checking", None);
    let options = RunOptions {
        warn_only: settings.warn_only,
        redact: settings.redact,
        field_manager: &settings.field_manager,
        force_conflicts: settings.force_conflicts,
        waivers,
        custom_checks: &settings.custom_checks,
        stage: &stage,
    };
    let Ran { reports, problems, notices } = checks::run(enabled, &plan, target, options).await;
    report.checks = reports;
    report.warnings = problems.iter().map(ErrorEntry::from).collect();
    let mut conflicts = conflicts::foresee(&plan, target, &settings.field_manager).await;
    only_defaults::mark(&plan, &mut conflicts, target, &settings.field_manager).await;
    let strategy::NotHonoured { blocks, notices: left_out } = strategy::not_honoured(&plan);
    let notices = notices.into_iter().chain(left_out).collect();
    let mut foreseen =
        Foreseen { conflicts, not_honoured: blocks, owned: owner::refused(&plan), ..Foreseen::default() };
    // Of a deploy that is blocked nobody wants to know how far it would have come.
    if report.checks.iter().all(|check| check.status != CheckStatus::Blocked) {
        foreseen.refusals = refusals::foresee(&plan, target, &settings.field_manager, settings.force_conflicts).await;
    }
    drop(stage);
    report.count();
    Ok((plan, foreseen, notices))
}

fn entry(change: &Change) -> ChangeEntry {
    let origin = &change.desired.origin;
    ChangeEntry {
        action: change.action,
        object: change.desired.object.clone(),
        source: Source { file: origin.source.name.clone(), line: origin.line, column: None },
        result: None,
    }
}
