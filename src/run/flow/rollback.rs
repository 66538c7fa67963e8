//! What a rollback says otherwise than the deploy that it is: its user does not have the manifests.

use super::configured::ConfiguredRun;
use crate::run::app::ManagedApp;
use crate::run::next_command::{self, ClusterFlags};
use gantry_core::next_step::in_rollback;
use gantry_core::problem::{Error, Problem};
use gantry_report::Report;

/// Makes the next steps of a report those of a rollback.
pub fn reword(report: &mut Report) {
    let findings = report.checks.iter_mut().flat_map(|check| &mut check.findings);
    findings.for_each(|finding| finding.body.help = in_rollback(&finding.body.help));
    let errors = report.errors.iter_mut().filter_map(|error| error.help.as_mut());
    errors.for_each(|help| *help = in_rollback(help));
}

/// The same for the error that ends a run.
pub fn reworded(mut error: Error) -> Error {
    let (Error::Usage(problems) | Error::Failed(problems) | Error::Blocked(problems)) = &mut error;
    problems.iter_mut().filter_map(|problem| problem.help.as_mut()).for_each(|help| *help = in_rollback(help));
    error
}

/// The most deploys that the steps of a finding ask for before the rollback can be run again.
const DEPLOYS: u32 = 3;

/// The notice after a refused rollback: how to go back to another revision, or to correct this one. The deploys of an app
/// that are steps of a finding make revisions, so the wanted one may be the oldest, and gone at the end.
pub fn other_ways(managed: &ManagedApp, run: &ConfiguredRun<'_>, context: Option<&str>) -> Problem {
    let app = &managed.app;
    let cluster = ClusterFlags::of_flow(run.args, context);
    let (list, deploy) = (next_command::history(app, &cluster), next_command::deploy(app, &cluster));
    let number = run.revision.map(|number| format!("revision {number} of ")).unwrap_or_default();
    let of_steps = run.revision.and_then(|number| {
        let newer = managed.last_revision()?.saturating_sub(number);
        let needed = newer.saturating_add(1 + DEPLOYS);
        (needed > run.settings.history).then(|| {
            format!("; deploys of the app before that: with --history={needed}, so that revision {number} is kept")
        })
    });
    Problem::new(format!("{number}the app {} cannot be deployed as it is", app.name)).help(format!(
        "other revisions: {list}; corrected manifests, in a folder DIR: {deploy}{}",
        of_steps.unwrap_or_default()
    ))
}
